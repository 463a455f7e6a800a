//! The queue of one destination in a TCP-compatible EQIF: drop-tail, and RED for ECN-capable packets (section 6).

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};

use super::config::{Red, TcpEqif};
use super::spacing::Spacing;

/// Packets that wait for one tunnel, with the bytes that each needs credit for.
#[derive(Clone, Debug)]
pub struct Queue<H> {
    packets: VecDeque<(H, u32)>,
    bytes: u64,
    /// RED's average length, in units of 2^-16 packets.
    average: u64,
    /// Since when nothing waits, where nothing does.
    idle_since: Instant,
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
        Self { packets: VecDeque::new(), bytes: 0, average: 0, idle_since: Instant::ZERO, marks: Spacing(0) }
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

    /// What shall become of a packet that comes now; one that may wait is to be [`push`](Queue::push)ed. A packet
    /// leaves in each `interval` while any wait.
    pub fn offer(&mut self, eqif: &TcpEqif, now: Instant, interval: Duration, ecn_capable: bool) -> Offer {
        if self.is_empty() {
            self.age(&eqif.red, now, interval);
        }
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

    /// Nothing waited: the average is what it would be had packets come all the time and found that (Floyd and Jacobson
    /// 1993, section 4).
    fn age(&mut self, red: &Red, now: Instant, interval: Duration) {
        let mut packets = now.since(self.idle_since).as_ps() / interval.as_ps().max(1);
        self.idle_since = now;
        // (1 - 2^-weight)^packets, by squares; in units of 2^-32.
        let mut left = (1 << 32) - (1u64 << 32 >> red.weight);
        while packets > 0 && self.average > 0 {
            if packets & 1 == 1 {
                self.average = ((u128::from(self.average) * u128::from(left)) >> 32) as u64;
            }
            left = (left * left) >> 32;
            packets >>= 1;
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
    pub fn pop(&mut self, now: Instant) -> Option<(H, u32)> {
        let first = self.packets.pop_front()?;
        self.bytes -= u64::from(first.1);
        self.idle_since = now;
        Some(first)
    }
}

impl<H> Default for Queue<H> {
    fn default() -> Self {
        Self::new()
    }
}
