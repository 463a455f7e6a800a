//! ECN marking.

use selvedge_transport::Marking;
use selvedge_units::Rng;

use crate::descriptor::Descriptor;

/// RED on the instantaneous queue of one output (DCQCN section 3.1, figure 5).
pub struct Red {
    k_min: u64,
    k_max: u64,
    p_max: f64,
    rng: Rng,
}

impl Red {
    /// Creates the marking of an output along `curve`; `None`: never marks.
    pub fn new(curve: Option<Marking>, rng: Rng) -> Self {
        match curve {
            Some(curve) => {
                Self { k_min: curve.k_min.get(), k_max: curve.k_max.get(), p_max: curve.p_max.as_f64(), rng }
            }
            None => Self { k_min: u64::MAX, k_max: u64::MAX, p_max: 0.0, rng },
        }
    }

    /// Decides whether a packet that finds `waiting` bytes before it is marked, which it must permit; if so, calls
    /// `mark`. Returns the flags with which the packet waits.
    #[inline(always)]
    pub fn mark(&mut self, packet: &Descriptor, waiting: u64, mark: impl FnOnce()) -> u8 {
        if !packet.is_markable() || waiting <= self.k_min {
            return packet.flags;
        }
        self.mark_on_curve(packet, waiting, mark)
    }

    #[inline(never)]
    fn mark_on_curve(&mut self, packet: &Descriptor, waiting: u64, mark: impl FnOnce()) -> u8 {
        if !self.marks(waiting) {
            return packet.flags;
        }
        mark();
        packet.flags_when_marked()
    }

    /// Returns whether a packet that finds `waiting` bytes before it is marked.
    #[inline]
    fn marks(&mut self, waiting: u64) -> bool {
        if waiting <= self.k_min {
            return false;
        }
        if waiting > self.k_max {
            return true;
        }
        let p = (self.p_max * (waiting - self.k_min) as f64) / (self.k_max - self.k_min) as f64;
        self.rng.unit_f64() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_units::{Bytes, Chance, Domain, Rate};

    #[test]
    fn the_curve_rises_linearly_between_its_ends() {
        let curve = Marking {
            k_min: Bytes::from_kb(10),
            k_max: Bytes::from_kb(110),
            p_max: Chance::ratio(1, 2),
            rate: Rate::from_gbps(40),
        };
        let mut red = Red::new(Some(curve), Rng::stream(1, Domain::EcnMark, 0));
        let mut share = |waiting| (0..20_000).filter(|_| red.marks(waiting)).count() as f64 / 20_000.0;
        assert_eq!(share(10_000), 0.0);
        assert_eq!(share(110_001), 1.0);
        for (waiting, expected) in [(30_000, 0.1), (60_000, 0.25), (110_000, 0.5)] {
            assert!((share(waiting) - expected).abs() < 0.015, "{waiting}");
        }
    }

    #[test]
    fn without_a_curve_nothing_is_marked() {
        let mut red = Red::new(None, Rng::stream(1, Domain::EcnMark, 0));
        assert!(!red.marks(u64::MAX));
    }
}
