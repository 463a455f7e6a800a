//! Random streams, one per purpose and entity.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, public domain), seeded by splitmix64. The implementation is part
//! of this crate so that no upgrade of a library can change a fingerprint.

/// Purpose of a random stream. A new purpose leaves the numbers of all others unchanged; renumbering does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Domain {
    /// Arrival times of a host's flows.
    FlowArrival = 1,
    /// Sizes of a host's flows.
    FlowSize = 2,
    /// Destinations of a host's flows.
    FlowDestination = 3,
    /// Path hashes of flows.
    PathEntropy = 4,
    /// Random loss on a link.
    LinkLoss = 5,
    /// ECN marking at a port.
    EcnMark = 6,
    /// Permutations and other choices made once per workload.
    WorkloadShape = 7,
    /// A host's first-send jitter.
    StartJitter = 8,
    /// Fates of packets between two ends, in tests and in the data plane's impairment device.
    Impairment = 9,
    /// Choice of the packet that a port trims when its queue is full.
    Trimming = 10,
    /// Choice of the port to which a switch sends a packet.
    LoadBalancing = 11,
    /// Order in which a sender uses its paths.
    PathSpraying = 12,
    /// Operations requested by a connection's applications.
    Operation = 13,
    /// Order in which a switch handles packets that arrive simultaneously.
    Ties = 14,
    /// A NIC's clock, and its delay before it begins to send.
    NicClock = 15,
    /// Times at which flows in progress are sampled.
    Looks = 16,
}

/// A stream of uniform 64-bit numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng([u64; 4]);

/// Mixes 64 bits (splitmix64's finaliser).
#[inline]
pub const fn mix64(n: u64) -> u64 {
    let mut z = n;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// Returns the stream of `domain` and `entity` in the run with this `seed`. Streams are independent.
    pub const fn stream(seed: u64, domain: Domain, entity: u64) -> Self {
        let mut key = mix64(seed.wrapping_add(GOLDEN));
        key = mix64(key ^ (domain as u64).wrapping_mul(GOLDEN));
        key = mix64(key ^ entity.wrapping_add(1).wrapping_mul(0xd134_2543_de82_ef95));
        let mut state = [0; 4];
        let mut i = 0;
        while i < 4 {
            key = key.wrapping_add(GOLDEN);
            state[i] = mix64(key);
            i += 1;
        }
        Self(state)
    }
    /// Returns 64 uniform bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
    /// Returns a uniform number below `n`, with negligible bias (2^-64 per value).
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing lies below zero");
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }
    /// Returns a uniform number in [0, 1) in steps of 2^-53.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }
    /// Shuffles `items` uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_never_changes() {
        let mut rng = Rng([1, 2, 3, 4]);
        // First outputs of the reference implementation from this state.
        assert_eq!(rng.next_u64(), 41_943_041);
        assert_eq!(rng.next_u64(), 58_720_359);
        assert_eq!(rng.next_u64(), 3_588_806_011_781_223);
    }

    #[test]
    fn streams_differ_by_seed_domain_and_entity() {
        let base = Rng::stream(1, Domain::LinkLoss, 0);
        assert_ne!(base, Rng::stream(2, Domain::LinkLoss, 0));
        assert_ne!(base, Rng::stream(1, Domain::EcnMark, 0));
        assert_ne!(base, Rng::stream(1, Domain::LinkLoss, 1));
        assert_eq!(base, Rng::stream(1, Domain::LinkLoss, 0));
    }

    #[test]
    fn below_reaches_every_value_evenly() {
        let mut rng = Rng::stream(7, Domain::Impairment, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (9_600..10_400).contains(&n)), "{counts:?}");
    }
}
