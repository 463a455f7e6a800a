//! The sender's scoreboard of the octets in flight (RFC 6675, sections 3 and 4).
//!
//! An octet is lost when enough octets above it have arrived, so the lost octets are all those below some octet that
//! are not SACKed: one number answers `IsLost` and makes `SetPipe` a subtraction.

use core::ops::Range;

use selvedge_units::Octet;

use super::ranges::Ranges;

/// The scoreboard of RFC 6675.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Ranges,
    /// Octet below which everything not SACKed is lost, judging by the SACKed octets.
    lost_before: Octet,
    /// Octet below which everything not SACKed is lost, by a timeout.
    timed_out_before: Octet,
}

impl Scoreboard {
    /// `Update`: adds a block reported by an acknowledgement. Returns the number of its newly SACKed octets.
    pub(super) fn update(&mut self, block: Range<Octet>) -> u64 {
        self.sacked.insert(block)
    }
    /// Recomputes which octets are lost: those above which `threshold` separate ranges are SACKed, or more than
    /// `threshold - 1` segments' worth (`IsLost`).
    pub(super) fn judge(&mut self, threshold: u32, mss: u64) {
        let (mut ranges, mut octets) = (0, 0);
        self.lost_before = self.timed_out_before;
        for range in self.sacked.iter().rev() {
            ranges += 1;
            octets += range.end - range.start;
            if ranges >= threshold || octets > u64::from(threshold - 1) * mss {
                self.lost_before = self.lost_before.max(range.start);
                return;
            }
        }
    }
    /// Marks all octets up to `sent` as lost, after a timeout.
    pub(super) fn lose_all(&mut self, sent: Octet) {
        (self.lost_before, self.timed_out_before) = (sent, sent);
    }
    /// Returns the number of SACKed octets before `acked`.
    pub(super) fn sacked_before(&self, acked: Octet) -> u64 {
        self.sacked.octets_before(acked)
    }
    /// Drops the state of everything before `acked`, which has arrived.
    pub(super) fn forget_before(&mut self, acked: Octet) {
        self.sacked.forget_before(acked);
    }
    /// Drops all reported blocks, as after reneging.
    pub(super) fn forget_all(&mut self) {
        self.sacked.clear();
    }

    /// `IsLost`: returns whether an octet that is not SACKed is lost.
    pub(super) fn is_lost(&self, octet: Octet) -> bool {
        octet < self.lost_before
    }
    /// Returns whether an octet is SACKed.
    pub(super) fn is_sacked(&self, octet: Octet) -> bool {
        self.sacked.around(octet).is_some()
    }
    /// Returns whether no octet is SACKed.
    pub(super) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }
    /// Returns the position after the highest SACKed octet.
    pub(super) fn highest(&self) -> Option<Octet> {
        self.sacked.last().map(|range| range.end)
    }
    /// Returns the first range from `from` on that is not SACKed, up to `until`.
    pub(super) fn hole(&self, from: Octet, until: Octet) -> Option<Range<Octet>> {
        let hole = match self.sacked.hole_from(from) {
            Some(hole) => hole.start..hole.end.min(until),
            None => from.max(self.highest().unwrap_or(from))..until,
        };
        (!hole.is_empty()).then_some(hole)
    }
    /// Returns the last range before `until` that is not SACKed.
    pub(super) fn last_hole(&self, from: Octet, until: Octet) -> Option<Range<Octet>> {
        let mut end = until;
        for range in self.sacked.iter().rev() {
            if range.end < end {
                return Some(range.end..end);
            }
            end = range.start;
        }
        (from < end).then_some(from..end)
    }
    /// `SetPipe`: returns the octets believed to be in the network, if those from `acked` to `resent` were
    /// retransmitted, and those from `sent` on were never sent.
    pub(super) fn pipe(&self, acked: Octet, resent: Octet, sent: Octet) -> u64 {
        let lost_before = self.lost_before.max(acked).min(sent);
        if self.sacked.is_empty() {
            return (sent - lost_before) + (resent - acked);
        }
        let not_sacked =
            |from: Octet, to: Octet| (to - from) - (self.sacked.octets_before(to) - self.sacked.octets_before(from));
        not_sacked(lost_before, sent) + not_sacked(acked, resent)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use selvedge_units::{Domain, Rng};

    use super::*;

    const MSS: u64 = 3;
    const THRESHOLD: u32 = 3;

    /// Reference implementation of RFC 6675's definitions, octet by octet.
    struct Naive {
        sacked: BTreeSet<u64>,
    }

    impl Naive {
        fn is_lost(&self, octet: u64) -> bool {
            let above: Vec<u64> = self.sacked.range(octet..).copied().collect();
            let ranges = above.iter().filter(|&&octet| !self.sacked.contains(&(octet - 1))).count();
            ranges >= THRESHOLD as usize || above.len() as u64 > u64::from(THRESHOLD - 1) * MSS
        }
        fn pipe(&self, acked: u64, resent: u64, sent: u64) -> u64 {
            let in_network = |octet: u64| u64::from(!self.is_lost(octet)) + u64::from(octet < resent);
            (acked..sent).filter(|octet| !self.sacked.contains(octet)).map(in_network).sum()
        }
    }

    #[test]
    fn does_what_the_definitions_say() {
        let mut rng = Rng::stream(2, Domain::Impairment, 0);
        for _ in 0..400 {
            let (mut board, mut naive) = (Scoreboard::default(), Naive { sacked: BTreeSet::new() });
            let (acked, sent) = (5, 60);
            for _ in 0..8 {
                let from = acked + 1 + rng.below(sent - acked - 1);
                let to = (from + 1 + rng.below(5)).min(sent);
                let news = (from..to).filter(|&octet| naive.sacked.insert(octet)).count() as u64;
                assert_eq!(board.update(Octet::new(from)..Octet::new(to)), news);
                board.judge(THRESHOLD, MSS);
                let resent = acked + rng.below(sent - acked);
                for octet in (acked..sent).filter(|octet| !naive.sacked.contains(octet)) {
                    assert_eq!(board.is_lost(Octet::new(octet)), naive.is_lost(octet), "{octet} of {:?}", naive.sacked);
                }
                let place = Octet::new;
                assert_eq!(board.pipe(place(acked), place(resent), place(sent)), naive.pipe(acked, resent, sent));
                let hole = (resent..sent).find(|octet| !naive.sacked.contains(octet));
                assert_eq!(board.hole(place(resent), place(sent)).map(|hole| hole.start.index()), hole);
                let last = (acked..sent).rev().find(|octet| !naive.sacked.contains(octet));
                assert_eq!(board.last_hole(place(acked), place(sent)).map(|hole| hole.end.index() - 1), last);
            }
        }
    }
}
