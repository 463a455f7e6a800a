//! TCP sequence numbers: 32 bits on the wire, unbounded in engines.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Position of an octet in one direction of a TCP connection, counted from 0, the SYN, without wrapping.
///
/// The engine uses `Octet`; only segments carry [`TcpSeq`]. A sequence number is converted when a segment arrives,
/// relative to the one that the engine expects ([`TcpSeq::near`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Octet(u64);

/// A 32-bit TCP sequence number (RFC 9293, section 3.4). Not ordered: compare through
/// [`TcpSeq::near`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpSeq(u32);

impl Octet {
    /// Position of the SYN.
    pub const SYN: Self = Self(0);
    /// Position of the first octet of data.
    pub const FIRST: Self = Self(1);

    /// Creates the position that `index` octets precede, the SYN included.
    #[inline]
    pub const fn new(index: u64) -> Self {
        Self(index)
    }
    /// Returns the number of octets before this one, the SYN included.
    #[inline]
    pub const fn index(self) -> u64 {
        self.0
    }
    /// Returns the sequence number of the octet if the SYN has `initial`.
    #[inline]
    pub const fn to_seq(self, initial: TcpSeq) -> TcpSeq {
        TcpSeq((self.0 as u32).wrapping_add(initial.0))
    }
    /// Returns the octets from `earlier` (inclusive) to `self` (exclusive); zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl TcpSeq {
    /// Creates the sequence number `n`.
    #[inline]
    pub const fn new(n: u32) -> Self {
        Self(n)
    }
    /// Returns the 32-bit number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Returns the octet with this sequence number that lies nearest to `reference`: at most 2^31 - 1 octets after it
    /// or 2^31 before, in a direction whose SYN has `initial`.
    ///
    /// `None` if that octet would lie before the SYN.
    #[inline]
    pub const fn near(self, reference: Octet, initial: TcpSeq) -> Option<Octet> {
        let distance = self.0.wrapping_sub(reference.to_seq(initial).0) as i32;
        match reference.0.checked_add_signed(distance as i64) {
            Some(index) => Some(Octet(index)),
            None => None,
        }
    }
}

impl Add<u64> for Octet {
    type Output = Self;
    #[inline]
    fn add(self, octets: u64) -> Self {
        Self(self.0 + octets)
    }
}
impl AddAssign<u64> for Octet {
    #[inline]
    fn add_assign(&mut self, octets: u64) {
        self.0 += octets;
    }
}
/// Returns the octets from `earlier` (inclusive) to `self` (exclusive).
impl Sub for Octet {
    type Output = u64;
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for Octet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}
impl fmt::Debug for TcpSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_finds_the_octet_on_both_sides_of_a_wrap() {
        let initial = TcpSeq::new(u32::MAX - 15);
        for index in [0u64, 1, 15, 16, 17, 1 << 31, (1 << 32) - 1, 1 << 32, 5 << 32] {
            let reference = Octet::new(index);
            for distance in [0i64, 1, 1_460, (1 << 31) - 1, -1, -1_460, -(1 << 31)] {
                let Some(expected) = index.checked_add_signed(distance) else { continue };
                let seq = Octet::new(expected).to_seq(initial);
                assert_eq!(seq.near(reference, initial), Some(Octet::new(expected)), "{index} {distance}");
            }
        }
    }

    #[test]
    fn a_number_from_before_the_syn_is_nobodys() {
        assert_eq!(TcpSeq::new(9).near(Octet::SYN, TcpSeq::new(10)), None);
    }
}
