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
    /// Octet below which everything not SACKed is lost, by a timeout or by RACK.
    timed_out_before: Octet,
    /// Octets retransmitted and lost again, by RACK.
    lost_again: Ranges,
}

impl Scoreboard {
    /// `Update`: adds a block reported by an acknowledgement. Returns the number of its newly SACKed octets.
    pub(super) fn update(&mut self, block: Range<Octet>) -> u64 {
        if !self.lost_again.is_empty() {
            self.lost_again.remove(block.clone());
        }
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
    /// Marks all octets up to `until` as lost, after a timeout or by RACK.
    pub(super) fn lose_before(&mut self, until: Octet) {
        self.timed_out_before = self.timed_out_before.max(until);
        self.lost_before = self.lost_before.max(until);
    }
    /// Marks retransmitted octets that are not SACKed as lost again.
    pub(super) fn lose_again(&mut self, octets: Range<Octet>) {
        let mut from = octets.start;
        while let Some(hole) = self.hole(from, octets.end) {
            from = hole.end;
            self.lost_again.insert(hole);
        }
    }
    /// Returns the first octets that were lost again and not sent since.
    pub(super) fn first_lost_again(&self) -> Option<Range<Octet>> {
        self.lost_again.first().cloned()
    }
    /// Records that octets which were lost again are retransmitted; returns whether they were lost again.
    pub(super) fn resend(&mut self, octets: Range<Octet>) -> bool {
        let is_third = self.lost_again.around(octets.start).is_some();
        if is_third {
            self.lost_again.remove(octets);
        }
        is_third
    }
    /// Takes back all losses: they were spurious, or everything is judged anew.
    pub(super) fn lose_nothing(&mut self) {
        (self.lost_before, self.timed_out_before) = (Octet::SYN, Octet::SYN);
        self.lost_again.clear();
    }
    /// Returns the number of SACKed octets before `acked`.
    pub(super) fn sacked_before(&self, acked: Octet) -> u64 {
        self.sacked.octets_before(acked)
    }
    /// Drops the state of everything before `acked`, which has arrived.
    pub(super) fn forget_before(&mut self, acked: Octet) {
        self.sacked.forget_before(acked);
        self.lost_again.forget_before(acked);
    }
    /// Drops all reported blocks, as after reneging.
    pub(super) fn forget_all(&mut self) {
        self.sacked.clear();
    }

    /// `IsLost`: returns whether an octet that is not SACKed is lost.
    pub(super) fn is_lost(&self, octet: Octet) -> bool {
        octet < self.lost_before
    }
    /// Returns the octet before which everything that is not SACKed is lost.
    pub(super) fn lost_before(&self) -> Octet {
        self.lost_before
    }
    /// Returns the octets from `from` to `to` that are not SACKed.
    pub(super) fn not_sacked(&self, from: Octet, to: Octet) -> u64 {
        if self.sacked.is_empty() {
            return to.since(from);
        }
        to.since(from).saturating_sub(self.sacked.octets_before(to) - self.sacked.octets_before(from.min(to)))
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
    /// Returns the position after the last octet from `from` to `until` that is not SACKed.
    pub(super) fn last_missing(&self, from: Octet, until: Octet) -> Option<Octet> {
        if until <= from {
            return None;
        }
        let end = self.sacked.around(Octet::new(until.index() - 1)).map_or(until, |range| range.start);
        (end > from).then_some(end)
    }
    /// Returns the last range before `until`, the end of the octets sent, that is not SACKed.
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
        let again = self.lost_again.octets_before(sent);
        (self.not_sacked(lost_before, sent) + self.not_sacked(acked, resent)).saturating_sub(again)
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
                let until = acked + rng.below(sent - acked);
                let missing = (resent..until).rev().find(|octet| !naive.sacked.contains(octet));
                assert_eq!(board.last_missing(place(resent), place(until)), missing.map(|octet| place(octet + 1)));
                let last = (acked..sent).rev().find(|octet| !naive.sacked.contains(octet));
                assert_eq!(board.last_hole(place(acked), place(sent)).map(|hole| hole.end.index() - 1), last);
            }
        }
    }
}
