//! Sets of octets that have arrived out of order: the receiver's queue, and the sender's record of SACK blocks.

use alloc::vec::Vec;
use core::ops::Range;

use selvedge_units::Octet;

/// Disjoint ranges in ascending order, none empty, none touching the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<Range<Octet>>);

impl Ranges {
    /// Adds `new`; returns the number of octets that are new.
    pub(super) fn insert(&mut self, new: Range<Octet>) -> u64 {
        if new.is_empty() {
            return 0;
        }
        // All ranges that overlap or touch `new` are merged with it.
        let first = self.0.partition_point(|range| range.end < new.start);
        let last = self.0.partition_point(|range| range.start <= new.end);
        if first == last {
            let fresh = new.end - new.start;
            self.0.insert(first, new);
            return fresh;
        }
        let known: u64 = self.0[first..last].iter().map(|range| range.end - range.start).sum();
        let start = self.0[first].start.min(new.start);
        let end = self.0[last - 1].end.max(new.end);
        self.0[first] = start..end;
        self.0.drain(first + 1..last);
        (end - start) - known
    }

    /// Removes the octets of `gone`.
    pub(super) fn remove(&mut self, gone: Range<Octet>) {
        let first = self.0.partition_point(|range| range.end <= gone.start);
        let last = self.0.partition_point(|range| range.start < gone.end);
        if first >= last || gone.is_empty() {
            return;
        }
        let (before, behind) = (self.0[first].start..gone.start, gone.end..self.0[last - 1].end);
        let left = [before, behind].into_iter().filter(|range| range.start < range.end);
        self.0.splice(first..last, left);
    }

    /// Removes all octets before `until`.
    pub(super) fn forget_before(&mut self, until: Octet) {
        let gone = self.0.partition_point(|range| range.end <= until);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(until);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    pub(super) fn first(&self) -> Option<&Range<Octet>> {
        self.0.first()
    }
    pub(super) fn last(&self) -> Option<&Range<Octet>> {
        self.0.last()
    }
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<Octet>> + ExactSizeIterator {
        self.0.iter()
    }

    /// Returns the range that contains `octet`.
    pub(super) fn around(&self, octet: Octet) -> Option<&Range<Octet>> {
        let at = self.0.partition_point(|range| range.end <= octet);
        self.0.get(at).filter(|range| range.start <= octet)
    }
    /// Returns whether adding `new` would add a separate range.
    pub(super) fn is_apart(&self, new: &Range<Octet>) -> bool {
        let at = self.0.partition_point(|range| range.end < new.start);
        self.0.get(at).is_none_or(|range| range.start > new.end)
    }
    /// Returns the first hole that ends after `from`: its start, not before `from`, and the start of the next range.
    /// `None` if no range follows.
    pub(super) fn hole_from(&self, from: Octet) -> Option<Range<Octet>> {
        let at = self.0.partition_point(|range| range.end <= from);
        let next = self.0.get(at)?;
        if from < next.start {
            return Some(from..next.start);
        }
        Some(next.end..self.0.get(at + 1)?.start)
    }
    /// Returns the number of octets before `until`.
    pub(super) fn octets_before(&self, until: Octet) -> u64 {
        let within = self.0.iter().take_while(|range| range.start < until);
        within.map(|range| range.end.min(until) - range.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn behaves_like_a_set_of_octets() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        for _ in 0..200 {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for _ in 0..60 {
                let from = rng.below(100);
                let range = Octet::new(from)..Octet::new(from + rng.below(9));
                if rng.below(10) == 0 {
                    ranges.forget_before(range.start);
                    model = model.split_off(&from);
                } else if rng.below(5) == 0 {
                    model.retain(|octet| !range.contains(&Octet::new(*octet)));
                    ranges.remove(range);
                } else {
                    let apart = !(from.saturating_sub(1)..=range.end.index()).any(|octet| model.contains(&octet));
                    assert!(range.is_empty() || ranges.is_apart(&range) == apart);
                    let fresh = (from..range.end.index()).filter(|&octet| model.insert(octet)).count();
                    assert_eq!(ranges.insert(range), fresh as u64);
                }
                check(&ranges, &model);
            }
        }
    }

    fn check(ranges: &Ranges, model: &BTreeSet<u64>) {
        assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start) && ranges.0.iter().all(|r| !r.is_empty()));
        assert!(ranges.iter().flat_map(|range| range.start.index()..range.end.index()).eq(model.iter().copied()));
        for octet in 0..110 {
            let place = Octet::new(octet);
            assert_eq!(ranges.octets_before(place), model.range(..octet).count() as u64);
            assert_eq!(ranges.around(place).is_some(), model.contains(&octet));
            let hole = (octet..110).find(|octet| !model.contains(octet) && model.range(octet..).next().is_some());
            assert_eq!(ranges.hole_from(place).map(|hole| hole.start.index()), hole);
            if let (Some(range), Some(from)) = (ranges.hole_from(place), hole) {
                assert_eq!(model.range(from..).next(), Some(&range.end.index()));
            }
        }
    }
}
