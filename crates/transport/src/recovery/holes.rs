//! The three newest holes of a bitmap (MELO, section 3.2.4; IRN, if configured). The list is updated when packets
//! arrive, so that no NACK has to search the bitmap.

use selvedge_units::Seq;
use selvedge_wire::{Hole, Holes};

/// The newest holes, newest first; unused entries have length zero and come last.
///
/// A hole's start is the low 16 bits of the packet's number, like on the wire. Together with RCV.NXT they identify the
/// packet while a connection's bitmap covers fewer than 2^16 packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NewestHoles(Holes);

impl NewestHoles {
    /// Returns the holes in the form that a NACK carries.
    #[inline]
    pub(crate) fn as_sent(&self) -> Holes {
        self.0
    }

    /// Adds the hole of the missing packets from `start` to before `end`, all newer than any known hole. Drops the
    /// oldest hole if the list is full.
    pub(crate) fn add(&mut self, start: Seq, end: Seq) {
        self.insert(0, Hole { start: start.index() as u16, length: (end - start) as u16 });
    }

    /// Removes packet `seq`, which has arrived, from its hole, if it lies in one.
    pub(crate) fn fill(&mut self, seq: Seq) {
        let seq = seq.index() as u16;
        let Some(at) = self.0.iter().position(|hole| seq.wrapping_sub(hole.start) < hole.length) else { return };
        let Hole { start, length } = self.0[at];
        let before = seq.wrapping_sub(start);
        let (older, newer) =
            (Hole { start, length: before }, Hole { start: seq.wrapping_add(1), length: length - before - 1 });
        match (older.length, newer.length) {
            (0, 0) => self.remove(at),
            (_, 0) => self.0[at] = older,
            (0, _) => self.0[at] = newer,
            _ => {
                self.0[at] = newer;
                self.insert(at + 1, older);
            }
        }
    }

    /// Removes all holes.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn insert(&mut self, at: usize, hole: Hole) {
        if let Some(later) = self.0.get_mut(at..).filter(|later| !later.is_empty()) {
            later.rotate_right(1);
            later[0] = hole;
        }
    }
    fn remove(&mut self, at: usize) {
        self.0[at..].rotate_left(1);
        self.0[2] = Hole::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(expected: &[(u16, u16)]) -> Holes {
        let mut all = [Hole::NONE; 3];
        for (hole, &(start, length)) in all.iter_mut().zip(expected) {
            *hole = Hole { start, length };
        }
        all
    }

    #[test]
    fn the_newest_three_are_kept() {
        let mut list = NewestHoles::default();
        for (start, end) in [(1, 2), (5, 8), (10, 11), (20, 30)] {
            list.add(Seq::new(start), Seq::new(end));
        }
        assert_eq!(list.as_sent(), holes(&[(20, 10), (10, 1), (5, 3)]));
        list.fill(Seq::new(1));
        list.fill(Seq::new(10));
        assert_eq!(list.as_sent(), holes(&[(20, 10), (5, 3)]), "what was forgotten does not come back");
    }

    #[test]
    fn arrivals_shrink_and_split_holes() {
        let mut list = NewestHoles::default();
        list.add(Seq::new(65_530), Seq::new(65_540));
        list.fill(Seq::new(65_530));
        list.fill(Seq::new(65_539));
        assert_eq!(list.as_sent(), holes(&[(65_531, 8)]));
        list.fill(Seq::new(65_535));
        assert_eq!(list.as_sent(), holes(&[(0, 3), (65_531, 4)]), "starts have 16 bits");
        list.fill(Seq::new(65_537));
        assert_eq!(list.as_sent(), holes(&[(2, 1), (0, 1), (65_531, 4)]));
        list.fill(Seq::new(65_533));
        assert_eq!(list.as_sent(), holes(&[(2, 1), (0, 1), (65_534, 1)]), "a fourth one has no place");
        for seq in [65_538, 65_534, 65_536] {
            list.fill(Seq::new(seq));
        }
        assert_eq!(list.as_sent(), holes(&[]));
    }
}
