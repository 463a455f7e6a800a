//! A ring of bits that records the packets of a window, one bit per packet.
//!
//! The bit of packet `seq` has index `seq mod capacity`, so advancing the window moves no bits; it only clears those
//! left behind. The ring is allocated when its first bit is set: a flow without loss allocates none. Bits outside the
//! owner's window are always clear.

use alloc::boxed::Box;
use alloc::vec;

use selvedge_units::Seq;

/// The widest window, in packets: a quarter of the PSN space. Window and PSN arithmetic would conflict from 2^23
/// packets on.
pub const WIDEST_WINDOW: u64 = 1 << 22;

const WORD: u64 = u64::BITS as u64;
/// The smallest ring, in words: 128 packets, like the IRN paper's 40 Gb/s hardware (section 6.1).
const SMALLEST: u64 = 2;

/// A ring of bits, addressed by sequence number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bitmap {
    /// The bits; the number of words is a power of two, or zero before the first [`Bitmap::insert`].
    words: Box<[u64]>,
}

impl Bitmap {
    /// Sets the bit of `seq` in a window that begins at `head`. Returns whether it was clear.
    #[inline]
    pub(crate) fn insert(&mut self, head: Seq, seq: Seq) -> bool {
        let span = seq - head + 1;
        if span > self.capacity() {
            self.grow(head, span);
        }
        let (word, bit) = self.position(seq);
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }
    /// Returns whether the bit of `seq`, which lies inside the window, is set.
    #[inline]
    pub(crate) fn contains(&self, seq: Seq) -> bool {
        !self.words.is_empty() && {
            let (word, bit) = self.position(seq);
            self.words[word] & bit != 0
        }
    }
    /// Returns whether the bit of `seq` is set, in a window of any length that begins at `head`.
    pub(crate) fn get(&self, head: Seq, seq: Seq) -> bool {
        seq.checked_since(head).is_some_and(|offset| offset < self.capacity()) && self.contains(seq)
    }
    /// Clears the unbroken run of set bits that begins at `from`; returns the first packet after it.
    #[inline]
    pub(crate) fn take_run(&mut self, from: Seq) -> Seq {
        let mut at = from.index();
        if self.words.is_empty() {
            return from;
        }
        loop {
            let offset = at % WORD;
            let word = self.word_mut(at);
            let ones = u64::from((*word >> offset).trailing_ones());
            *word &= !(low_bits(ones) << offset);
            at += ones;
            // A run that ends inside this word is complete.
            if offset + ones < WORD {
                return Seq::new(at);
            }
        }
    }
    /// Clears the bits from `from` to before `to`; returns how many were set.
    pub(crate) fn clear(&mut self, from: Seq, to: Seq) -> u64 {
        let mut at = from.index();
        // No bit is set beyond one turn of the ring.
        let end = to.index().min(at.saturating_add(self.capacity()));
        let mut cleared = 0;
        while at < end {
            let offset = at % WORD;
            let count = (WORD - offset).min(end - at);
            let mask = low_bits(count) << offset;
            let word = self.word_mut(at);
            cleared += u64::from((*word & mask).count_ones());
            *word &= !mask;
            at += count;
        }
        cleared
    }
    /// Sets the bits from `from` to before `to`, in a window that begins at `head`; returns how many were clear.
    pub(crate) fn fill(&mut self, head: Seq, from: Seq, to: Seq) -> u64 {
        if to > from && to - head > self.capacity() {
            self.grow(head, to - head);
        }
        let (mut at, mut filled) = (from.index(), 0);
        while at < to.index() {
            let offset = at % WORD;
            let count = (WORD - offset).min(to.index() - at);
            let mask = low_bits(count) << offset;
            let word = self.word_mut(at);
            filled += u64::from((mask & !*word).count_ones());
            *word |= mask;
            at += count;
        }
        filled
    }
    /// Returns whether any bit from `from` to before `to` is set.
    pub(crate) fn any(&self, from: Seq, to: Seq) -> bool {
        (from.index()..to.index()).any(|index| self.contains(Seq::new(index)))
    }
    /// Returns the first packet from `from` to before `end` whose bit is clear.
    pub(crate) fn first_clear(&self, from: Seq, end: Seq) -> Option<Seq> {
        if self.words.is_empty() {
            return (from < end).then_some(from);
        }
        let mut at = from.index();
        while at < end.index() {
            let offset = at % WORD;
            let ones = u64::from((self.words[self.word_index(at)] >> offset).trailing_ones());
            at += ones;
            if offset + ones < WORD {
                break;
            }
        }
        (at < end.index()).then_some(Seq::new(at))
    }
    /// Returns the number of packets that the ring can hold.
    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    #[inline]
    fn word_index(&self, at: u64) -> usize {
        (at / WORD) as usize & (self.words.len() - 1)
    }
    #[inline]
    fn word_mut(&mut self, at: u64) -> &mut u64 {
        &mut self.words[self.word_index(at)]
    }
    #[inline]
    fn position(&self, seq: Seq) -> (usize, u64) {
        (self.word_index(seq.index()), 1 << (seq.index() % WORD))
    }
    /// Enlarges the ring to at least `span` packets from `head` on, and copies the set bits.
    #[cold]
    fn grow(&mut self, head: Seq, span: u64) {
        assert!(span <= WIDEST_WINDOW, "a window of {span} packets would conflict with PSN arithmetic");
        let words = span.div_ceil(WORD).next_power_of_two().max(SMALLEST);
        let old = core::mem::replace(self, Self { words: vec![0; words as usize].into() });
        for index in head.index()..head.index() + old.capacity() {
            let seq = Seq::new(index);
            if old.contains(seq) {
                let (word, bit) = self.position(seq);
                self.words[word] |= bit;
            }
        }
    }
}

#[inline]
const fn low_bits(count: u64) -> u64 {
    if count >= WORD { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use selvedge_units::{Domain, Rng};

    #[test]
    fn behaves_like_a_set_of_numbers() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        let (mut bitmap, mut model, mut head) = (Bitmap::default(), BTreeSet::new(), 1_000u64);
        for step in 0..20_000 {
            // A widening window makes the ring grow during the test.
            let window = 100 + step / 50;
            let at = head + rng.below(window);
            match rng.below(9) {
                0 => {
                    let end = Seq::new(head + window);
                    let expected = (at..end.index()).find(|n| !model.contains(n)).map(Seq::new);
                    assert_eq!(bitmap.first_clear(Seq::new(at), end), expected);
                }
                1 => {
                    let end = (head..).find(|n| !model.contains(n)).expect("the model is finite");
                    assert_eq!(bitmap.take_run(Seq::new(head)), Seq::new(end));
                    model = model.split_off(&end);
                    head = end;
                }
                2 if rng.below(10) == 0 => {
                    let kept = model.split_off(&at);
                    assert_eq!(bitmap.clear(Seq::new(head), Seq::new(at)), model.len() as u64);
                    (model, head) = (kept, at);
                }
                3 => {
                    let end = (at + rng.below(100)).min(head + window);
                    let fresh = (at..end).filter(|&n| model.insert(n)).count();
                    assert_eq!(bitmap.fill(Seq::new(head), Seq::new(at), Seq::new(end)), fresh as u64);
                }
                _ => assert_eq!(bitmap.insert(Seq::new(head), Seq::new(at)), model.insert(at)),
            }
            assert_eq!(bitmap.contains(Seq::new(at)), model.contains(&at));
        }
        assert!(bitmap.capacity() >= 256, "the test reached growth");
    }

    #[test]
    fn a_full_ring_is_taken_in_one_run() {
        let mut bitmap = Bitmap::default();
        for index in 70..70 + 128 {
            assert!(bitmap.insert(Seq::new(70), Seq::new(index)));
        }
        assert_eq!(bitmap.take_run(Seq::new(70)), Seq::new(198));
        assert_eq!(bitmap, Bitmap { words: vec![0; 2].into() });
    }
}
