//! What the sender knows of the octets in flight (RFC 6675, sections 3 and 4).
//!
//! An octet is lost when enough above it has arrived, so the lost ones are all that are not SACKed
//! before some octet: one number answers `IsLost` and makes `SetPipe` a subtraction.

use core::ops::Range;

use selvedge_units::Octet;

use super::ranges::Ranges;

/// The scoreboard.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Ranges,
    /// Whatever is not SACKed before it is lost, to judge by what is.
    lost_before: Octet,
    /// What was sent before a timeout is lost, too.
    timed_out_before: Octet,
}

impl Scoreboard {
    /// `Update`: a block that an acknowledgement reported. Returns how many of its octets are news.
    pub(super) fn update(&mut self, block: Range<Octet>) -> u64 {
        self.sacked.insert(block)
    }
    /// Decides anew what is lost: octets above which `threshold` separate ranges are SACKed, or more
    /// than `threshold - 1` segments' worth (`IsLost`).
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
    /// Everything in flight is lost: a timeout.
    pub(super) fn lose_all(&mut self, sent: Octet) {
        (self.lost_before, self.timed_out_before) = (sent, sent);
    }
    /// SACKed octets before `acked`.
    pub(super) fn sacked_before(&self, acked: Octet) -> u64 {
        self.sacked.octets_before(acked)
    }
    /// Everything before `acked` has arrived.
    pub(super) fn forget_before(&mut self, acked: Octet) {
        self.sacked.forget_before(acked);
    }
    /// Nothing that was reported can be relied on.
    pub(super) fn forget_all(&mut self) {
        self.sacked.clear();
    }

    /// `IsLost`, for an octet that is not SACKed.
    pub(super) fn is_lost(&self, octet: Octet) -> bool {
        octet < self.lost_before
    }
    /// Whether an octet is SACKed.
    pub(super) fn is_sacked(&self, octet: Octet) -> bool {
        self.sacked.around(octet).is_some()
    }
    /// Whether anything is SACKed.
    pub(super) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }
    /// One past the highest SACKed octet.
    pub(super) fn highest(&self) -> Option<Octet> {
        self.sacked.last().map(|range| range.end)
    }
    /// The first octets from `from` on that are neither SACKed nor behind `until`.
    pub(super) fn hole(&self, from: Octet, until: Octet) -> Option<Range<Octet>> {
        let hole = match self.sacked.hole_from(from) {
            Some(hole) => hole.start..hole.end.min(until),
            None => from.max(self.highest().unwrap_or(from))..until,
        };
        (!hole.is_empty()).then_some(hole)
    }
    /// The last octets before `until` that are not SACKed.
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
    /// `SetPipe`: octets believed to be in the network, when those from `acked` to `resent` were sent
    /// again, and nothing from `sent` on was sent.
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

    /// The definitions of RFC 6675, octet by octet.
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
