//! The links of a flow's path: each is compared with itself, one acknowledgement ago (L in algorithm 1).
//!
//! Design note. Processors divide two numbers in the time of one, and are bad at guessing which link is the fullest. So U is
//! computed for all links, two at a time, and that of the fullest is kept, without a branch.

use selvedge_wire::{HopPair, Pair, PathRecord};

/// What the acknowledgement before told of the links.
#[derive(Clone, Debug)]
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
        let mut fullest = Pair([0.0; 2]);
        let mut measured = Pair([utilisation; 2]);
        for (link, hop) in self.pairs.iter_mut().zip(path.pairs()) {
            let passed = both(hop.at_ps, link.at_ps, |now, then| now - then);
            let busy = both(hop.busy_ps, link.busy_ps, |now, then| now - then);
            let queue = both(hop.queue_ps, link.queue_ps, smaller);
            // Not a number where no time has passed: such a load is above no other.
            let rate = both(busy, passed, |busy, passed| busy / passed);
            let load = both(queue, rate, |queue, rate| queue * base_rtt.per_ps + rate);
            // What is told late has no weight.
            let weight = both(passed, passed, |passed, _| larger(smaller(passed, base_rtt.ps), 0.0) * base_rtt.per_ps);
            let moved = both(weight, load, |weight, load| (1.0 - weight) * utilisation + weight * load);
            measured = where_larger(load, fullest, moved, measured);
            fullest = both(load, fullest, larger);
            *link = HopPair { at_ps: hop.at_ps, busy_ps: hop.busy_ps, queue_ps: hop.queue_ps };
        }
        let ([first, second], [a, b]) = (fullest.0, measured.0);
        Some(if second > first { b } else { a })
    }

    #[cold]
    fn meet(&mut self, path: &PathRecord) {
        self.way = path.way();
        self.pairs.iter_mut().zip(path.pairs()).for_each(|(link, hop)| *link = *hop);
    }
}

#[inline]
fn both(a: Pair, b: Pair, of: impl Fn(f64, f64) -> f64) -> Pair {
    Pair([of(a.0[0], b.0[0]), of(a.0[1], b.0[1])])
}

/// `then` where `a` is larger than `b`, else `otherwise`. By masks, since compilers make a long shuffle of the plain form.
#[inline]
fn where_larger(a: Pair, b: Pair, then: Pair, otherwise: Pair) -> Pair {
    let one = |lane: usize| {
        let mask = if a.0[lane] > b.0[lane] { u64::MAX } else { 0 };
        f64::from_bits(mask & then.0[lane].to_bits() | !mask & otherwise.0[lane].to_bits())
    };
    Pair([one(0), one(1)])
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
