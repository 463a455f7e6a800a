//! Sequence numbers, their epochs, and pull numbers: all wrap and compare as serial numbers (RFC 1982; the paper leaves
//! this open, appendix A needs it).

/// The width of numbers and of their part below the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Numbers {
    /// Modulus of the numbers, less one.
    mask: u32,
    /// Bits of a `u32` beyond the width of numbers.
    unused: u32,
    /// Bits below the epoch: "the lowest ten bits" (appendix A).
    low: u32,
}

impl Numbers {
    /// Bits below the epoch in appendix A.
    pub const LOW: u32 = 10;

    /// Creates numbers of `bits` bits, of which `low` are below the epoch.
    ///
    /// # Panics
    /// Unless `0 < low < bits <= 32`.
    pub const fn new(bits: u32, low: u32) -> Self {
        assert!(0 < low && low < bits && bits <= 32);
        Self { mask: u32::MAX >> (32 - bits), unused: 32 - bits, low }
    }

    /// Returns `number + n`, wrapped.
    #[inline]
    pub const fn add(self, number: u32, n: u32) -> u32 {
        number.wrapping_add(n) & self.mask
    }
    /// Returns the signed distance from one number to another; negative if `to` comes before `from`.
    #[inline]
    pub const fn distance(self, from: u32, to: u32) -> i32 {
        (to.wrapping_sub(from) << self.unused) as i32 >> self.unused
    }
    /// Returns whether `number` comes after `other`.
    #[inline]
    pub const fn is_after(self, number: u32, other: u32) -> bool {
        (number.wrapping_sub(other) << self.unused) as i32 > 0
    }
    /// Returns the first number of the epoch of `number`.
    #[inline]
    pub const fn first(self, number: u32) -> u32 {
        number & self.mask & !((1 << self.low) - 1)
    }
    /// Returns the first number of the `n`th epoch after that of `number`.
    #[inline]
    pub const fn epoch_after(self, number: u32, n: u32) -> u32 {
        self.add(self.first(number), n << self.low)
    }
    /// Returns the first number of the epoch selected by `random`.
    pub const fn random_epoch(self, random: u32) -> u32 {
        (random << self.low) & self.mask
    }
    /// Returns the number of packets of one epoch.
    pub const fn epoch_length(self) -> u32 {
        1 << self.low
    }
    /// Returns the most packets that both ends may keep: half an epoch, so that packets of an old connection left in
    /// the network never fall into the window of the next (the paper: less than an epoch).
    pub const fn widest_window(self) -> u32 {
        1 << (self.low - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_wrap() {
        for bits in [16, 32] {
            let numbers = Numbers::new(bits, 10);
            let last = numbers.add(0, u32::MAX);
            assert_eq!(numbers.distance(last, numbers.add(last, 3)), 3);
            assert_eq!(numbers.distance(2, last), -3);
            assert!(numbers.is_after(2, last) && !numbers.is_after(last, 2) && !numbers.is_after(last, last));
            assert_eq!(numbers.epoch_after(last, 1), 0);
            assert_eq!(numbers.first(0x1_0fff), if bits == 16 { 0xc00 } else { 0x1_0c00 });
        }
    }
}
