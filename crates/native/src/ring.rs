//! A ring of descriptors with an area of data, in memory that two processes share: one pushes, the other takes.
//!
//! ```text
//!   words  0..8    head, data head    written by the producer
//!          8..16   tail               written by the consumer
//!         16..24   bell, wants room   by both
//!         24..32   lock               between threads and processes of one side
//!         32..     descriptors, 8 words each
//!          ...     data
//! ```
//!
//! All positions count up and never wrap; places follow from them by a mask. Nothing here is unsafe, and no index comes
//! from memory unmasked: a process that writes nonsense into its ring harms itself alone. Positions of the side that
//! does not trust the other are its own ([`Cursor`]); a descriptor is copied before it is checked.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

use Ordering::{Acquire, Relaxed, SeqCst};

/// Words of a descriptor.
const DESCRIPTOR: usize = 8;
/// Words before the descriptors.
const CONTROL: usize = 32;
const HEAD: usize = 0;
const DATA_HEAD: usize = 1;
const TAIL: usize = 8;
const BELL: usize = 16;
const WANTS_ROOM: usize = 17;
const LOCK: usize = 24;

/// Size of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Descriptors, a power of two.
    pub(crate) descriptors: usize,
    /// Words of data, a power of two; 0: descriptors alone.
    pub(crate) data: usize,
}

impl Shape {
    /// Returns the words that the ring takes.
    pub(crate) const fn words(self) -> usize {
        CONTROL + self.descriptors * DESCRIPTOR + self.data
    }
}

/// Position of a producer: the number of descriptors pushed, and of words of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cursor {
    head: u64,
    data: u64,
}

/// A descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Descriptor {
    /// Bytes of data.
    pub(crate) length: u32,
    /// Whatever the two sides agree on.
    pub(crate) facts: [u64; 6],
    /// Position of the data in words.
    start: u64,
}

/// Reason why a ring does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// There is no room.
    Full,
    /// The other side has written what no program of ours writes.
    Broken,
}

/// A ring in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'a> {
    control: &'a [AtomicU64],
    descriptors: &'a [AtomicU64],
    data: &'a [AtomicU64],
}

impl<'a> Ring<'a> {
    /// Returns the ring in `words`, of which there are [`Shape::words`].
    pub(crate) fn new(words: &'a [AtomicU64], shape: Shape) -> Self {
        debug_assert!(shape.descriptors.is_power_of_two() && (shape.data == 0 || shape.data.is_power_of_two()));
        let (control, rest) = words.split_at(CONTROL);
        let (descriptors, data) = rest.split_at(shape.descriptors * DESCRIPTOR);
        Self { control, descriptors, data: &data[..shape.data] }
    }

    fn count(&self) -> u64 {
        (self.descriptors.len() / DESCRIPTOR) as u64
    }

    fn place(&self, at: u64) -> &'a [AtomicU64] {
        let start = (at & (self.count() - 1)) as usize * DESCRIPTOR;
        &self.descriptors[start..start + DESCRIPTOR]
    }

    /// Returns the position of a producer that keeps it in the ring, under its lock.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor { head: self.control[HEAD].load(Relaxed), data: self.control[DATA_HEAD].load(Relaxed) }
    }
    /// Returns the position of a consumer that keeps it in the ring, under its lock.
    pub(crate) fn tail(&self) -> u64 {
        self.control[TAIL].load(Relaxed)
    }

    /// Pushes a descriptor with its data, whose length it has.
    pub(crate) fn push(&self, cursor: &mut Cursor, facts: [u64; 6], content: [&[u8]; 2]) -> Result<(), Fault> {
        let length = content[0].len() + content[1].len();
        let words = length.div_ceil(8) as u64;
        let tail = self.control[TAIL].load(SeqCst);
        let used = cursor.head.wrapping_sub(tail);
        if used > self.count() {
            return Err(Fault::Broken);
        }
        let data_used = self.data_used(cursor, tail);
        if used == self.count() || words.saturating_add(data_used) > self.data.len() as u64 {
            return Err(Fault::Full);
        }
        let mut writer = Writer { data: self.data, at: cursor.data, word: [0; 8], filled: 0 };
        content.into_iter().for_each(|piece| writer.write(piece));
        writer.end();
        let place = self.place(cursor.head);
        place[0].store(length as u64, Relaxed);
        place[1].store(cursor.data, Relaxed);
        place[2..].iter().zip(facts).for_each(|(word, fact)| word.store(fact, Relaxed));
        cursor.head += 1;
        cursor.data = cursor.data.wrapping_add(words);
        self.control[DATA_HEAD].store(cursor.data, Relaxed);
        self.control[HEAD].store(cursor.head, SeqCst);
        Ok(())
    }

    /// Returns the words of data between the consumer and the producer. A wrong value lets data be overwritten that
    /// the consumer, who has caused it, did not read.
    fn data_used(&self, cursor: &Cursor, tail: u64) -> u64 {
        if cursor.head == tail {
            return 0;
        }
        cursor.data.wrapping_sub(self.place(tail)[1].load(Relaxed))
    }

    /// Returns a copy of the oldest descriptor for a consumer at `tail`.
    pub(crate) fn peek(&self, tail: u64) -> Result<Option<Descriptor>, Fault> {
        let waiting = self.control[HEAD].load(Acquire).wrapping_sub(tail);
        if waiting > self.count() {
            return Err(Fault::Broken);
        }
        if waiting == 0 {
            return Ok(None);
        }
        let place = self.place(tail);
        let length = place[0].load(Relaxed);
        if length > 8 * self.data.len() as u64 {
            return Err(Fault::Broken);
        }
        let facts = std::array::from_fn(|at| place[2 + at].load(Relaxed));
        Ok(Some(Descriptor { length: length as u32, facts, start: place[1].load(Relaxed) }))
    }

    /// Copies the beginning of a descriptor's data; returns the number of bytes copied.
    pub(crate) fn copy(&self, descriptor: &Descriptor, to: &mut [u8]) -> usize {
        let length = to.len().min(descriptor.length as usize);
        let to = &mut to[..length];
        if self.data.is_empty() {
            return 0;
        }
        let start = (descriptor.start & (self.data.len() as u64 - 1)) as usize;
        let (before, after) = self.data.split_at(start);
        for (bytes, word) in to.chunks_mut(8).zip(after.iter().chain(before)) {
            let word = word.load(Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        length
    }

    /// Moves the consumer's position behind the oldest descriptor.
    pub(crate) fn pop(&self, tail: &mut u64) {
        *tail += 1;
        self.control[TAIL].store(*tail, SeqCst);
    }

    /// Returns whether the producer waits for room and has it now; to be called by the consumer after
    /// [`Ring::pop`].
    pub(crate) fn owes_room(&self, tail: u64) -> bool {
        if self.control[WANTS_ROOM].load(SeqCst) == 0 {
            return false;
        }
        let head = self.control[HEAD].load(Relaxed);
        let data_head = self.control[DATA_HEAD].load(Relaxed);
        let used = self.data_used(&Cursor { head, data: data_head }, tail);
        let is_half_empty = head.wrapping_sub(tail) <= self.count() / 2 && used <= self.data.len() as u64 / 2;
        is_half_empty && self.control[WANTS_ROOM].swap(0, SeqCst) != 0
    }
    /// Asks the consumer to tell when there is room; the producer then tries once more before it waits.
    pub(crate) fn want_room(&self) {
        self.control[WANTS_ROOM].store(1, SeqCst);
    }

    /// Returns whether there is room for a descriptor with `length` bytes.
    pub(crate) fn has_room(&self, cursor: &Cursor, length: usize) -> bool {
        let tail = self.control[TAIL].load(SeqCst);
        let words = length.div_ceil(8) as u64;
        cursor.head.wrapping_sub(tail) < self.count()
            && words.saturating_add(self.data_used(cursor, tail)) <= self.data.len() as u64
    }

    /// Returns whether the consumer has not taken all that the producer at `cursor` has pushed.
    pub(crate) fn has_unread(&self, cursor: &Cursor) -> bool {
        self.control[TAIL].load(SeqCst) != cursor.head
    }

    /// Returns whether the consumer must be woken, after [`Ring::push`].
    pub(crate) fn rings(&self) -> bool {
        self.control[BELL].swap(1, SeqCst) == 0
    }
    /// Lets the producer wake this consumer from now on; whoever calls it looks for descriptors again before it waits.
    pub(crate) fn hush(&self) {
        self.control[BELL].store(0, SeqCst);
    }

    /// Returns the lock between threads, and between processes that share a socket since a fork.
    #[cfg(not(loom))]
    pub(crate) fn lock(&self) -> &'a AtomicU64 {
        &self.control[LOCK]
    }
}

/// Writes bytes into words of data.
struct Writer<'a> {
    data: &'a [AtomicU64],
    at: u64,
    word: [u8; 8],
    filled: usize,
}

impl Writer<'_> {
    fn put(&mut self, word: u64) {
        self.data[(self.at & (self.data.len() as u64 - 1)) as usize].store(word, Relaxed);
        self.at = self.at.wrapping_add(1);
    }

    fn write(&mut self, mut bytes: &[u8]) {
        if self.filled > 0 {
            let (first, rest) = bytes.split_at(bytes.len().min(8 - self.filled));
            self.word[self.filled..self.filled + first.len()].copy_from_slice(first);
            self.filled += first.len();
            bytes = rest;
            if self.filled < 8 {
                return;
            }
            self.put(u64::from_ne_bytes(self.word));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.put(u64::from_ne_bytes(*word)));
        self.word = [0; 8];
        self.word[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    fn end(mut self) {
        if self.filled > 0 {
            self.put(u64::from_ne_bytes(self.word));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { descriptors: 4, data: 16 };

    fn memory(shape: Shape) -> Vec<AtomicU64> {
        (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
    }

    fn content(number: u64) -> Vec<u8> {
        (0..number * 7 % 41).map(|at| (number + at) as u8).collect()
    }

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let memory = memory(SHAPE);
        let ring = Ring::new(&memory, SHAPE);
        let (mut cursor, mut tail, mut pushed, mut taken) = (Cursor::default(), 0, 0, 0);
        for step in 0..200_u64 {
            let bytes = content(pushed);
            let (first, second) = bytes.split_at(bytes.len() * (step % 5) as usize / 4);
            if ring.push(&mut cursor, [pushed; 6], [first, second]).is_ok() {
                pushed += 1;
            } else {
                assert!(pushed > taken);
            }
            if step % 3 > 0
                && let Some(descriptor) = ring.peek(tail).expect("sound")
            {
                let mut bytes = vec![0; descriptor.length as usize];
                assert_eq!(ring.copy(&descriptor, &mut bytes), bytes.len());
                assert_eq!((descriptor.facts, bytes), ([taken; 6], content(taken)));
                ring.pop(&mut tail);
                taken += 1;
            }
        }
        assert!(taken > 100 && pushed - taken <= 4);
        assert_eq!(ring.cursor(), cursor);
        assert_eq!(ring.tail(), tail);
    }

    #[test]
    fn a_full_ring_refuses_and_tells_when_there_is_room() {
        let memory = memory(SHAPE);
        let ring = Ring::new(&memory, SHAPE);
        let mut cursor = Cursor::default();
        assert!(ring.has_room(&cursor, 128) && !ring.has_room(&cursor, 129));
        assert_eq!(ring.push(&mut cursor, [0; 6], [&[1; 128], &[]]), Ok(()));
        assert!(ring.has_room(&cursor, 0) && !ring.has_room(&cursor, 1));
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"x", b""]), Err(Fault::Full), "no data left");
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"", b""]), Ok(()));
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"", b""]), Ok(()));
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"", b""]), Ok(()));
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"", b""]), Err(Fault::Full), "no descriptor left");
        assert!(!ring.has_room(&cursor, 0));
        let mut tail = 0;
        ring.pop(&mut tail);
        assert!(!ring.owes_room(tail), "nobody has asked");
        ring.want_room();
        assert!(!ring.owes_room(tail), "three of four are there");
        ring.pop(&mut tail);
        assert!(ring.owes_room(tail) && !ring.owes_room(tail), "told once");
    }

    #[test]
    fn nonsense_of_the_other_side_is_found_or_harmless() {
        let memory = memory(SHAPE);
        let ring = Ring::new(&memory, SHAPE);
        let mut cursor = Cursor::default();
        for number in [5, 1 << 40, 1 << 63] {
            memory[TAIL].store(number, Relaxed);
            assert_eq!(ring.push(&mut cursor, [0; 6], [b"x", b""]), Err(Fault::Broken));
            memory[TAIL].store(0, Relaxed);
            memory[HEAD].store(number, Relaxed);
            assert_eq!(ring.peek(0), Err(Fault::Broken));
            memory[HEAD].store(0, Relaxed);
        }
        assert_eq!(ring.push(&mut cursor, [0; 6], [b"12345678", b"9"]), Ok(()));
        for length in [129, u64::from(u32::MAX) + 1, u64::MAX] {
            memory[CONTROL].store(length, Relaxed);
            assert_eq!(ring.peek(0), Err(Fault::Broken));
        }
        memory[CONTROL].store(128, Relaxed);
        for start in [0, 15, 16, u64::MAX, 1 << 40] {
            memory[CONTROL + 1].store(start, Relaxed);
            let descriptor = ring.peek(0).expect("a length that fits").expect("one is there");
            let mut bytes = [0; 128];
            assert_eq!(ring.copy(&descriptor, &mut bytes), 128);
            let _ = ring.push(&mut cursor, [0; 6], [&[7; 100], &[]]);
            let _ = ring.owes_room(0);
        }
    }

    #[test]
    fn threads_pass_messages_and_none_sleeps_for_ever() {
        const COUNT: u64 = if cfg!(miri) { 60 } else { 20_000 };
        let memory = memory(SHAPE);
        let (bell, room) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let memory = &memory;
            scope.spawn(move || {
                let ring = Ring::new(memory, SHAPE);
                let mut cursor = Cursor::default();
                for number in 0..COUNT {
                    let bytes = content(number);
                    while ring.push(&mut cursor, [number; 6], [&bytes, &[]]) == Err(Fault::Full) {
                        ring.want_room();
                        match ring.push(&mut cursor, [number; 6], [&bytes, &[]]) {
                            Ok(()) => break,
                            Err(_) => room.1.recv().expect("the consumer lives"),
                        }
                    }
                    if ring.rings() {
                        bell.0.send(()).expect("the consumer lives");
                    }
                }
            });
            let ring = Ring::new(memory, SHAPE);
            let (mut tail, mut number) = (0, 0);
            while number < COUNT {
                let Some(descriptor) = ring.peek(tail).expect("sound") else {
                    ring.hush();
                    if ring.peek(tail).expect("sound").is_none() {
                        bell.1.recv().expect("the producer lives");
                    }
                    continue;
                };
                let mut bytes = vec![0; descriptor.length as usize];
                ring.copy(&descriptor, &mut bytes);
                assert_eq!((descriptor.facts[5], bytes), (number, content(number)));
                ring.pop(&mut tail);
                number += 1;
                if ring.owes_room(tail) {
                    let _ = room.0.send(());
                }
            }
        });
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;

    use super::*;

    /// Whatever the interleaving: a consumer that finds nothing after it has hushed the bell is rung, and what it reads
    /// is complete.
    #[test]
    fn loom_no_wake_up_is_lost() {
        loom::model(|| {
            let shape = Shape { descriptors: 2, data: 2 };
            let memory: Arc<Vec<AtomicU64>> = Arc::new((0..shape.words()).map(|_| AtomicU64::new(0)).collect());
            let rung = Arc::new(AtomicBool::new(false));
            let (theirs, bell) = (Arc::clone(&memory), Arc::clone(&rung));
            let producer = loom::thread::spawn(move || {
                let ring = Ring::new(&theirs, shape);
                ring.push(&mut Cursor::default(), [7; 6], [b"abc", b""]).expect("room");
                if ring.rings() {
                    bell.store(true, SeqCst);
                }
            });
            let ring = Ring::new(&memory, shape);
            ring.hush();
            let seen = ring.peek(0).expect("sound");
            if let Some(descriptor) = seen {
                let mut bytes = [0; 3];
                ring.copy(&descriptor, &mut bytes);
                assert_eq!((descriptor.facts, &bytes), ([7; 6], b"abc"));
            }
            producer.join().expect("the producer ends");
            assert!(seen.is_some() || rung.load(SeqCst));
        });
    }
}
