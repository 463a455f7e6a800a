//! The queue of a port: two priorities, a limit in bytes, congestion marks, and the rate of its link.

use std::collections::VecDeque;

use selvedge_units::{Bytes, Instant, Rate};
use selvedge_wire::amend;

/// Packets that wait for a link.
#[derive(Debug)]
pub(crate) struct Egress {
    high: VecDeque<Vec<u8>>,
    regular: VecDeque<Vec<u8>>,
    /// Bytes of waiting packets.
    bytes: u64,
    /// Bytes of packets that are held elsewhere, and have a place here.
    reserved: u64,
    rate: Option<Rate>,
    limit: u64,
    mark_above: u64,
    /// Time at which the link is free.
    free_at: Instant,
    /// Packets that were marked.
    pub(crate) marked: u64,
}

impl Egress {
    pub(crate) fn new(rate: Option<Rate>, limit: Bytes, mark_above: Option<Bytes>) -> Self {
        Self {
            high: VecDeque::new(),
            regular: VecDeque::new(),
            bytes: 0,
            reserved: 0,
            rate,
            limit: limit.get(),
            mark_above: mark_above.map_or(u64::MAX, Bytes::get),
            free_at: Instant::ZERO,
            marked: 0,
        }
    }

    /// Returns whether there is a place for a packet of so many bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + self.reserved + bytes as u64 <= self.limit
    }
    /// Reserves the place of a packet that is held elsewhere.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.reserved += bytes as u64;
    }
    /// Gives up a reserved place.
    pub(crate) fn unreserve(&mut self, bytes: usize) {
        self.reserved -= bytes as u64;
    }

    /// Adds a packet, for which there is a place; marks it if the queue is long.
    pub(crate) fn push(&mut self, now: Instant, mut bytes: Vec<u8>, is_high: bool) {
        if self.is_empty() {
            self.free_at = self.free_at.max(now);
        }
        if self.bytes > self.mark_above && amend::mark(&mut bytes) {
            self.marked += 1;
        }
        self.bytes += bytes.len() as u64;
        if is_high { self.high.push_back(bytes) } else { self.regular.push_back(bytes) }
    }

    /// Returns the next packet if the link is free, and the time at which its last bit has left.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Vec<u8>, Instant)> {
        if self.free_at > now {
            return None;
        }
        let packet = self.high.pop_front().or_else(|| self.regular.pop_front())?;
        let bytes = Bytes::new(packet.len() as u64);
        self.bytes -= bytes.get();
        // A link that was busy since is not slower because it is served late.
        let Some(rate) = self.rate else { return Some((packet, now)) };
        self.free_at += rate.time_for(bytes);
        Some((packet, self.free_at))
    }

    /// Returns the time at which the next packet can leave, if one waits.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.free_at)
    }

    fn is_empty(&self) -> bool {
        self.high.is_empty() && self.regular.is_empty()
    }
}
