//! Message sequence numbers (IRN, section 5.3.3; InfiniBand architecture, volume 1, section 9.7.5.1).

/// A message sequence number: messages that a responder has completed, modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Msn(u32);

impl Msn {
    const MASK: u32 = 0xff_ffff;

    /// Returns the number in the low 24 bits of an AETH's field.
    pub(super) const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }
    /// Returns the number after one more message.
    pub(super) const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }
    /// Returns whether this number counts all messages that `other` counts; the two are less than 2^23 messages apart.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) & Self::MASK < 1 << 23
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_behind_the_last() {
        let last = Msn::new(0xff_ffff);
        assert_eq!(last.next(), Msn::default());
        assert!(last.next().covers(last) && last.covers(last));
        assert!(!last.covers(last.next()));
    }
}
