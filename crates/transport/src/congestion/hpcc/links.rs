//! The links of a flow's path: each is compared with itself, one acknowledgement ago (L in algorithm 1).
//!
//! Design note. Processors divide two numbers in the time of one, and are bad at guessing which link is the fullest. So U is
//! computed for all links, two at a time, and the fullest is kept, without a branch.

use selvedge_wire::{HopPair, PathRecord};
use wide::f64x2;

/// What the acknowledgement before told of the links.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Links {
    way: u64,
    pairs: [HopPair; PathRecord::PAIRS],
}

/// T, in ps, and its reciprocal.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseRtt {
    pub ps: f64,
    pub per_ps: f64,
}

impl Links {
    /// Of no path.
    pub(super) const UNKNOWN: Self = Self { way: 0, pairs: [HopPair::ZERO; PathRecord::PAIRS] };

    /// Algorithm 1, `MeasureInflight`: U after it has heard of the fullest link (equation 2); remembers all. Nothing if
    /// there is nothing to compare with: for the first acknowledgement, and for one from another path.
    #[inline]
    pub(super) fn measure(&mut self, path: &PathRecord, utilisation: f64, base_rtt: BaseRtt) -> Option<f64> {
        if self.way != path.way() {
            self.meet(path);
            return None;
        }
        let (mut fullest, mut lasted) = (f64x2::ZERO, f64x2::ZERO);
        for (link, hop) in self.pairs.iter_mut().zip(path.pairs()) {
            // In next to no time: what is told late, which then says that less than nothing was sent.
            let passed = (hop.at_ps - link.at_ps).fast_max(f64x2::splat(1e-9));
            let busy = hop.busy_ps - link.busy_ps;
            let queue = hop.queue_ps.fast_min(link.queue_ps);
            *link = *hop;
            let load = queue * base_rtt.per_ps + busy / passed;
            lasted = load.simd_gt(fullest).select(passed, lasted);
            fullest = load.fast_max(fullest);
        }
        let ([a, b], [first, second]) = (fullest.to_array(), lasted.to_array());
        let (load, passed) = if b > a { (b, second) } else { (a, first) };
        let weight = smaller(passed, base_rtt.ps) * base_rtt.per_ps;
        Some(utilisation + weight * (load - utilisation))
    }

    #[cold]
    fn meet(&mut self, path: &PathRecord) {
        self.way = path.way();
        self.pairs.iter_mut().zip(path.pairs()).for_each(|(link, hop)| *link = *hop);
    }
}

// One instruction each, as `f64::min` and `f64::max`, which look for NaN, are not.
#[inline]
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}
#[inline]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The nearest whole number, of one from 0 to 2^51. In two instructions, as `as`, which looks for what does not fit, is not.
#[inline]
pub(super) fn whole(of: f64) -> u64 {
    const ONES: f64 = (1_u64 << 52) as f64;
    (of + ONES).to_bits() - ONES.to_bits()
}
