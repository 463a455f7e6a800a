//! Limits of what strangers can make a daemon do: token buckets by source prefix, in a fixed amount of memory.

use core::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Token buckets by source prefix: /24 of IPv4, /48 of IPv6. Prefixes whose hashes collide share a bucket, so that no
/// flood of sources takes more memory; the hash is keyed, so that nobody can choose whom to share with.
#[derive(Clone, Debug)]
pub struct Buckets {
    hash: SipHasher24,
    buckets: Box<[Bucket]>,
    /// Nanoseconds per token.
    interval: u64,
    /// Nanoseconds that a full bucket is worth.
    depth: u64,
}

/// Time up to which a bucket's tokens are spent, in nanoseconds: the generic cell rate algorithm.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    spent_until: u64,
}

impl Buckets {
    /// Creates `count` full buckets, each with `burst` tokens and as many more per second as `rate`.
    ///
    /// # Panics
    /// If a number is zero, or the rate exceeds 10^9.
    pub fn new(rate: u32, burst: u32, count: usize, key: [u8; 16]) -> Self {
        assert!(rate > 0 && rate <= 1_000_000_000 && burst > 0 && count > 0, "a limit of something");
        let interval = 1_000_000_000 / u64::from(rate);
        Self {
            hash: SipHasher24::new_with_key(&key),
            buckets: vec![Bucket::default(); count].into(),
            interval,
            depth: interval * u64::from(burst),
        }
    }

    /// Takes a token of the prefix of `source`; returns false if there is none. `now` is in nanoseconds and may stand
    /// still, but not go back.
    pub fn take(&mut self, now: u64, source: IpAddr) -> bool {
        let (interval, depth) = (self.interval, self.depth);
        let bucket = self.bucket(source);
        let spent = bucket.spent_until.max(now) + interval;
        let is_there = spent <= now.saturating_add(depth);
        if is_there {
            bucket.spent_until = spent;
        }
        is_there
    }

    /// Returns a token that [`Buckets::take`] has taken.
    pub fn give_back(&mut self, source: IpAddr) {
        let interval = self.interval;
        let bucket = self.bucket(source);
        bucket.spent_until = bucket.spent_until.saturating_sub(interval);
    }

    fn bucket(&mut self, source: IpAddr) -> &mut Bucket {
        let at = self.hash.hash(&prefix(source)) % self.buckets.len() as u64;
        &mut self.buckets[at as usize]
    }
}

/// Returns the prefix of an address: a first byte for the family, then the prefix's bytes.
fn prefix(source: IpAddr) -> [u8; 7] {
    match source.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [4, a, b, c, 0, 0, 0]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, ..] = address.octets();
            [6, a, b, c, d, e, f]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_gets_its_burst_and_then_its_rate() {
        let mut limit = Buckets::new(10, 3, 1_024, [1; 16]);
        let (a, b) = (address("10.0.0.1"), address("10.0.1.1"));
        let taken = |limit: &mut Buckets, now, source| (0..100).filter(|_| limit.take(now, source)).count();
        assert_eq!(taken(&mut limit, 5 * SECOND, a), 3);
        assert_eq!(taken(&mut limit, 5 * SECOND, address("10.0.0.77")), 0, "one prefix");
        assert_eq!(taken(&mut limit, 5 * SECOND, address("::ffff:10.0.0.9")), 0, "the same prefix, mapped");
        assert_eq!(taken(&mut limit, 5 * SECOND, b), 3, "another prefix");
        assert_eq!(taken(&mut limit, 5 * SECOND + SECOND / 10, a), 1);
        assert_eq!(taken(&mut limit, 50 * SECOND, a), 3, "a bucket holds no more than its burst");
        limit.give_back(a);
        assert_eq!(taken(&mut limit, 50 * SECOND, a), 1);
    }

    #[test]
    fn a_flood_of_prefixes_takes_no_more_memory_and_is_bounded() {
        let mut limit = Buckets::new(10, 3, 64, [1; 16]);
        let sources = (0..100_000u32).map(|n| IpAddr::from((n << 8).to_be_bytes()));
        assert!(sources.filter(|source| limit.take(SECOND, *source)).count() <= 3 * 64);
    }
}
