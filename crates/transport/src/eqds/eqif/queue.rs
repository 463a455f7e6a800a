//! The queue of one destination in a TCP-compatible EQIF: drop-tail, and RED for ECN-capable packets (section 6).

use alloc::collections::VecDeque;

use selvedge_units::{Bytes, Duration, Instant};

use super::super::clock::rebase;
use super::config::TcpEqifParams;
use super::spacing::Spacing;

/// Packets waiting for one tunnel, with the bytes of credit that each needs.
#[derive(Clone, Debug)]
pub struct Queue<H> {
    packets: VecDeque<(H, u32)>,
    bytes: u64,
    /// Super-packets that the packets form, where they do.
    units: VecDeque<Unit>,
    /// RED's average length, in units of 2^-16 packets.
    average: u64,
    /// Start of the current idle period, while the queue is empty.
    idle_since: Instant,
    marks: Spacing,
}

/// A super-packet.
#[derive(Clone, Copy, Debug)]
struct Unit {
    flow: Option<u32>,
    /// Packets that have not left.
    packets: u32,
    /// Bytes of all packets that have joined.
    bytes: u64,
    is_marked: bool,
}

/// A packet that a stack hands over.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Connection whose data the packet carries; `None` if it carries none.
    pub flow: Option<u32>,
    /// Length in bytes.
    pub bytes: u32,
    /// Whether the packet may be marked.
    pub ecn_capable: bool,
}

/// The verdict on an offered packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// The packet is queued.
    Taken,
    /// The packet is queued with an ECN mark.
    Marked,
    /// The packet is dropped.
    Dropped,
}

impl<H> Queue<H> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            units: VecDeque::new(),
            average: 0,
            idle_since: Instant::ZERO,
            marks: Spacing(0),
        }
    }

    /// Returns the number of waiting packets, or of super-packets where packets form some.
    #[inline]
    pub fn len(&self) -> u32 {
        if self.units.is_empty() { self.packets.len() as u32 } else { self.units.len() as u32 }
    }
    /// Returns whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Returns the total bytes of the waiting packets.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Returns the first packet.
    #[inline]
    pub fn first(&self) -> Option<&H> {
        self.packets.front().map(|(packet, _)| packet)
    }
    /// Returns the bytes of the first packet.
    #[inline]
    pub fn head(&self) -> Option<u32> {
        self.packets.front().map(|(_, bytes)| *bytes)
    }

    /// Decides the fate of an arriving packet; the caller must [`push`](Queue::push) one that is queued. One packet
    /// leaves per `interval` while any wait.
    pub fn offer(&mut self, eqif: &TcpEqifParams, now: Instant, interval: Duration, packet: Offered) -> Offer {
        if let Some(offer) = eqif.super_packet.and_then(|most| self.join(most, packet)) {
            return offer;
        }
        if self.is_empty() {
            self.age(eqif, now, interval);
        }
        let marks = self.red(eqif);
        if self.len() >= eqif.limit {
            return Offer::Dropped;
        }
        let offer = match (marks, packet.ecn_capable, eqif.drops) {
            (true, true, _) => Offer::Marked,
            (true, false, true) => return Offer::Dropped,
            _ => Offer::Taken,
        };
        if eqif.super_packet.is_some() {
            let Offered { flow, bytes, .. } = packet;
            self.units.push_back(Unit { flow, packets: 1, bytes: bytes.into(), is_marked: offer == Offer::Marked });
        }
        offer
    }

    /// Adds a packet to the last super-packet, if that is of the same connection and has room within `most` bytes. The
    /// super-packet was taken as a whole, and its mark is that of all its packets.
    fn join(&mut self, most: Bytes, packet: Offered) -> Option<Offer> {
        let joined = |unit: &Unit| unit.bytes + u64::from(packet.bytes);
        let fits = |unit: &&mut Unit| unit.flow == packet.flow && joined(unit) <= most.get();
        let unit = self.units.back_mut().filter(|unit| packet.flow.is_some() && fits(unit))?;
        (unit.packets, unit.bytes) = (unit.packets + 1, joined(unit));
        Some(if unit.is_marked && packet.ecn_capable { Offer::Marked } else { Offer::Taken })
    }

    /// Ages the average over an idle period: as if packets had arrived throughout and found an empty queue (Floyd and
    /// Jacobson 1993, section 4).
    fn age(&mut self, red: &TcpEqifParams, now: Instant, interval: Duration) {
        let mut packets = now.since(self.idle_since).as_ps() / interval.as_ps().max(1);
        self.idle_since = now;
        // (1 - 2^-weight)^packets, by repeated squaring; in units of 2^-32.
        let mut left = (1 << 32) - (1u64 << 32 >> red.weight);
        while packets > 0 && self.average > 0 {
            if packets & 1 == 1 {
                self.average = ((u128::from(self.average) * u128::from(left)) >> 32) as u64;
            }
            left = (left * left) >> 32;
            packets >>= 1;
        }
    }

    /// Returns whether RED marks or drops a packet that finds the present queue (Floyd and Jacobson 1993, sections 4
    /// and 7).
    fn red(&mut self, red: &TcpEqifParams) -> bool {
        let now = u64::from(self.len()) << 16;
        self.average = (self.average - (self.average >> red.weight)) + (now >> red.weight);
        if red.weight == 0 {
            self.average = now;
        }
        let (min, max) = (red.min, red.max);
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

    /// Moves the origin of time by `by`, see `clock.rs` of the parent module.
    pub fn rebase(&mut self, by: Duration) {
        rebase(&mut self.idle_since, by);
    }

    /// Removes and returns all packets.
    pub fn drain(&mut self) -> impl Iterator<Item = (H, u32)> {
        self.bytes = 0;
        self.units.clear();
        core::mem::take(&mut self.packets).into_iter()
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: H, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.packets.push_back((packet, bytes));
    }

    /// Removes the first packet.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<(H, u32)> {
        let first = self.packets.pop_front()?;
        self.bytes -= u64::from(first.1);
        if let Some(unit) = self.units.front_mut() {
            unit.packets -= 1;
            if unit.packets == 0 {
                self.units.pop_front();
            }
        }
        self.idle_since = now;
        Some(first)
    }
}

impl<H> Default for Queue<H> {
    fn default() -> Self {
        Self::new()
    }
}
