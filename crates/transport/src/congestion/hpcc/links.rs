//! The links of a flow's path: each is compared with itself, one acknowledgement ago (L in algorithm 1).

use selvedge_wire::{Hop, PathRecord};

use super::MOST_SWITCHES;

/// What the acknowledgement before told of the links.
#[derive(Clone, Debug)]
pub(super) struct Links {
    way: (u32, u32),
    links: [Hop; MOST_SWITCHES],
}

/// What an acknowledgement tells of the fullest link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fullest {
    /// Its utilisation (u): queues count as bytes of one T.
    pub load: f64,
    /// Since when (tau), in ps.
    pub passed: f64,
}

impl Links {
    /// Of no path.
    pub(super) const UNKNOWN: Self = Self { way: (0, 0), links: [Hop::ZERO; MOST_SWITCHES] };

    /// Equation 2, for the fullest link; remembers all. Nothing if there is nothing to compare with: for the first
    /// acknowledgement, and for one from another path.
    #[inline]
    pub(super) fn renew(&mut self, path: &PathRecord, per_base_rtt: f64) -> Option<Fullest> {
        let is_same = self.way == path.way();
        self.way = path.way();
        let mut fullest = Fullest { load: 0.0, passed: 0.0 };
        for (link, hop) in self.links.iter_mut().zip(path.hops()) {
            let passed = hop.at_ps - link.at_ps;
            let queue = smaller(hop.queue, link.queue);
            // Not a number where no time has passed: such a load is above no other.
            let load = (queue * per_base_rtt + (hop.sent - link.sent) / passed) * hop.ps_per_byte;
            fullest = if load > fullest.load { Fullest { load, passed } } else { fullest };
            (link.at_ps, link.sent, link.queue) = (hop.at_ps, hop.sent, hop.queue);
        }
        is_same.then_some(fullest)
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
