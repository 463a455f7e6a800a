//! The queue of one destination in a TCP-compatible EQIF: drop-tail, and RED for ECN-capable packets (section 6).

use alloc::collections::VecDeque;

use super::config::{Red, TcpEqif};
use super::spacing::Spacing;

/// Packets that wait for one tunnel, with the bytes that each needs credit for.
#[derive(Clone, Debug)]
pub struct Queue<H> {
    packets: VecDeque<(H, u32)>,
    bytes: u64,
    /// RED's average length, in units of 2^-16 packets.
    average: u64,
    marks: Spacing,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// It may wait.
    Taken,
    /// It may wait, and carries a mark from now on.
    Marked,
    /// It is dropped.
    Dropped,
}

impl<H> Queue<H> {
    /// Nothing waits.
    pub const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0, average: 0, marks: Spacing(0) }
    }

    /// Packets that wait.
    #[inline]
    pub fn len(&self) -> u32 {
        self.packets.len() as u32
    }
    /// Whether none does.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Their bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The first.
    #[inline]
    pub fn first(&self) -> Option<&H> {
        self.packets.front().map(|(packet, _)| packet)
    }
    /// Bytes of the first.
    #[inline]
    pub fn head(&self) -> Option<u32> {
        self.packets.front().map(|(_, bytes)| *bytes)
    }

    /// What shall become of a packet that comes now; one that may wait is to be [`push`](Queue::push)ed.
    pub fn offer(&mut self, eqif: &TcpEqif, ecn_capable: bool) -> Offer {
        let marks = self.red(&eqif.red);
        if self.len() >= eqif.limit() {
            return Offer::Dropped;
        }
        match (marks, ecn_capable, eqif.red.drops) {
            (true, true, _) => Offer::Marked,
            (true, false, true) => Offer::Dropped,
            _ => Offer::Taken,
        }
    }

    /// Whether RED would tell the sender of a packet that finds what waits now (Floyd and Jacobson 1993, sections 4 and
    /// 7).
    fn red(&mut self, red: &Red) -> bool {
        let now = u64::from(self.len()) << 16;
        self.average = (self.average - (self.average >> red.weight)) + (now >> red.weight);
        if red.weight == 0 {
            self.average = now;
        }
        let (min, max) = red.ends();
        let (min, max) = (u64::from(min) << 16, u64::from(max) << 16);
        match self.average {
            average if average < min => {
                self.marks = Spacing::default();
                false
            }
            average if average >= max => true,
            average => self.marks.draw(red.probability, average - min, max - min),
        }
    }

    /// A packet waits.
    #[inline]
    pub fn push(&mut self, packet: H, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.packets.push_back((packet, bytes));
    }

    /// The first leaves.
    #[inline]
    pub fn pop(&mut self) -> Option<(H, u32)> {
        let first = self.packets.pop_front()?;
        self.bytes -= u64::from(first.1);
        Some(first)
    }
}

impl<H> Default for Queue<H> {
    fn default() -> Self {
        Self::new()
    }
}
