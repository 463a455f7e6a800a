//! A message that arrives at this host.

use selvedge_units::{Bytes, HostId, Instant, Seq};
use selvedge_wire::Packet;

use crate::bitmap::{Bitmap, WIDEST_WINDOW};

/// A message that arrives at this host, counted in packets.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) src: HostId,
    pub(super) size: Bytes,
    pub(super) context: u32,
    /// Packets of the message.
    pub(super) packets: u64,
    /// Packets that may have been sent: unscheduled and granted ones.
    pub(super) granted: u64,
    /// First packet that has not arrived, and which of those behind it have.
    expected: Seq,
    arrived: Bitmap,
    /// Packets that have arrived.
    pub(super) count: u64,
    pub(super) duplicates: u32,
    /// Newest packet of the message: answers return to its source. `None`: the receiver does not know of the message.
    pub(super) newest: Option<Packet>,
    /// Time of the last packet from the sender.
    pub(super) busy: Instant,
    /// Whether the message is among those whose silence is watched.
    pub(super) is_watched: bool,
}

impl Receiving {
    pub(super) fn new(src: HostId, size: Bytes, packets: u64, unscheduled: u64, context: u32) -> Self {
        Self {
            src,
            size,
            context,
            packets,
            granted: unscheduled.min(packets),
            expected: Seq::ZERO,
            arrived: Bitmap::default(),
            count: 0,
            duplicates: 0,
            newest: None,
            busy: Instant::ZERO,
            is_watched: false,
        }
    }

    /// Records the arrival of packet `seq`; returns whether it is new. `None`: no such packet was granted.
    pub(super) fn take(&mut self, seq: Seq) -> Option<bool> {
        if seq.index() >= self.granted || seq >= self.expected + WIDEST_WINDOW {
            return None;
        }
        let is_new = if seq == self.expected {
            self.expected = self.arrived.take_run(seq + 1);
            true
        } else {
            seq > self.expected && self.arrived.insert(self.expected, seq)
        };
        self.count += u64::from(is_new);
        Some(is_new)
    }

    /// Returns the first packet that has not arrived.
    pub(super) fn expected(&self) -> u64 {
        self.expected.index()
    }

    /// Returns the first `most` runs of packets that may have been sent and have not arrived: beginning and length of
    /// each.
    pub(super) fn gaps(&self, most: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut from = self.expected();
        let next = move || {
            let first = (from..self.granted).find(|&packet| !self.has(packet))?;
            from = (first..self.granted).find(|&packet| self.has(packet)).unwrap_or(self.granted);
            Some((first, from - first))
        };
        core::iter::from_fn(next).take(most)
    }

    fn has(&self, packet: u64) -> bool {
        self.arrived.get(self.expected, Seq::new(packet))
    }

    /// Returns the number of packets that have not arrived.
    pub(super) fn rest(&self) -> u64 {
        self.packets - self.count
    }
}
