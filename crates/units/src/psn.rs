//! Packet sequence numbers: 24 bits on the wire, unbounded in engines.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Sequence number of a packet within its queue pair, counted from 0 without wrapping.
///
/// Engines use `Seq`; only packets carry [`Psn`]. A PSN is converted when a packet arrives, relative to the number that
/// the engine expects ([`Psn::near`]), so that no engine handles a wrap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

/// A 24-bit packet sequence number (BTH.PSN). Not ordered: compare through [`Psn::near`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Seq {
    /// The first packet.
    pub const ZERO: Self = Self(0);

    /// Creates the number of the packet that `index` packets precede.
    #[inline]
    pub const fn new(index: u64) -> Self {
        Self(index)
    }
    /// Returns the number of packets before this one.
    #[inline]
    pub const fn index(self) -> u64 {
        self.0
    }
    /// Returns the PSN of the packet if the queue pair began at `first`.
    #[inline]
    pub const fn to_psn(self, first: Psn) -> Psn {
        Psn::new((self.0 as u32).wrapping_add(first.0))
    }
    /// Returns the packets from `earlier` (inclusive) to `self` (exclusive); `None` if `earlier` is later.
    #[inline]
    pub const fn checked_since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }
}

impl Psn {
    /// Number of distinct PSNs: the largest PSN plus one.
    pub const MODULUS: u32 = 1 << 24;

    /// Creates a PSN from the low 24 bits of `n`.
    #[inline]
    pub const fn new(n: u32) -> Self {
        Self(n & (Self::MODULUS - 1))
    }
    /// Returns the 24-bit number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Returns the next PSN.
    #[inline]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
    /// Returns the PSN `packets` packets later.
    #[inline]
    pub const fn plus(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_add(packets))
    }
    /// Returns the signed distance from `other` to `self` by 24-bit serial numbers; negative if `self` comes before.
    #[inline]
    pub const fn ahead_of(self, other: Self) -> i32 {
        // Sign-extend the 24-bit difference.
        (self.0.wrapping_sub(other.0) << 8) as i32 >> 8
    }
    /// Returns the sequence number with this PSN that lies nearest to `reference`: at most 2^23 - 1 packets after it or
    /// 2^23 before, for a queue pair that began at `first`.
    ///
    /// `None` if that number would lie before the queue pair's first packet.
    #[inline]
    pub const fn near(self, reference: Seq, first: Psn) -> Option<Seq> {
        let ahead = self.0.wrapping_sub(reference.to_psn(first).0) & (Self::MODULUS - 1);
        // Sign-extend the 24-bit difference.
        let distance = ((ahead << 8) as i32 >> 8) as i64;
        // No queue pair lives for 2^63 packets.
        let index = reference.0 as i64 + distance;
        if index >= 0 { Some(Seq(index as u64)) } else { None }
    }
}

impl Add<u64> for Seq {
    type Output = Self;
    #[inline]
    fn add(self, packets: u64) -> Self {
        Self(self.0 + packets)
    }
}
impl AddAssign<u64> for Seq {
    #[inline]
    fn add_assign(&mut self, packets: u64) {
        self.0 += packets;
    }
}
/// Returns the packets from `earlier` (inclusive) to `self` (exclusive).
impl Sub for Seq {
    type Output = u64;
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "psn {:#08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_finds_the_sequence_number_on_both_sides_of_a_wrap() {
        let first = Psn::new(0xff_fff0);
        for index in [0u64, 1, 15, 16, 17, 1 << 23, (1 << 24) - 1, 1 << 24, 5 << 24, u64::from(u32::MAX) + 7] {
            let reference = Seq::new(index);
            for distance in [0i64, 1, 110, (1 << 23) - 1, -1, -110, -(1 << 23)] {
                let Some(expected) = index.checked_add_signed(distance) else { continue };
                let psn = Seq::new(expected).to_psn(first);
                assert_eq!(psn.near(reference, first), Some(Seq::new(expected)), "{index} {distance}");
            }
        }
    }

    /// Checks all 2^24 PSNs against references and first PSNs on both sides of each wrap: the sequence number found has
    /// the PSN, lies in the window of [`Psn::near`], and is missing only before the first packet. The windows of two
    /// references have 2^24 numbers each, so no other number could have been meant.
    #[test]
    fn every_psn_has_one_number_near_each_reference() {
        let half = 1_i64 << 23;
        for first in [0, 1, (1 << 23) - 1, 1 << 23, Psn::MODULUS - 1].map(Psn::new) {
            for reference in [0, 5, (1 << 23) - 1, 1 << 23, (1 << 24) - 3, (7 << 24) + 1, (1 << 40) + 9] {
                for psn in (0..Psn::MODULUS).map(Psn::new) {
                    let distance = i64::from(psn.ahead_of(Seq::new(reference).to_psn(first)));
                    assert!((-half..half).contains(&distance));
                    let found = psn.near(Seq::new(reference), first);
                    assert_eq!(found.map(Seq::index), reference.checked_add_signed(distance));
                    assert!(found.is_none_or(|seq| seq.to_psn(first) == psn), "{psn:?} {reference} {first:?}");
                }
            }
        }
    }

    #[test]
    fn serial_numbers_wrap() {
        let (first, last) = (Psn::new(0), Psn::new(Psn::MODULUS - 1));
        assert_eq!((last.next(), first.ahead_of(last), last.ahead_of(first)), (first, 1, -1));
        assert_eq!((last.plus(5), last.plus(5).ahead_of(last)), (Psn::new(4), 5));
        assert_eq!(Psn::new(1 << 23).ahead_of(first), -(1 << 23));
    }

    #[test]
    fn a_psn_from_before_the_first_packet_is_nobodys() {
        assert_eq!(Psn::new(9).near(Seq::ZERO, Psn::new(10)), None);
    }
}
