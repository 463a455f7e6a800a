//! Headers of packets of applications' queue pairs, for as long as a tunnel keeps the packets.
//!
//! Headers are several times as large as a packet, and packets of other stacks have none. So the queues of tunnels keep
//! packets alone; the [`slot`](Packet::slot) of a packet with headers names their place.

use alloc::vec::Vec;

use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::slot::{HEADERS, REQUESTS};

/// Headers of packets that are in tunnels.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    headers: Vec<Headers>,
    free: Vec<u32>,
}

impl Shelf {
    /// Keeps the headers of a packet that goes to a queue; returns the packet as the queue keeps it.
    pub(super) fn put(&mut self, packet: &Packet, headers: &Headers) -> Packet {
        let place = match self.free.pop() {
            Some(place) => {
                self.headers[place as usize] = *headers;
                place
            }
            None => {
                self.headers.push(*headers);
                self.headers.len() as u32 - 1
            }
        };
        Packet { slot: HEADERS.slot(place), ..*packet }
    }

    /// Returns a kept packet as it was before, and its headers; `None` if the packet has none.
    pub(super) fn get(&self, kept: &Packet) -> Option<(Packet, &Headers)> {
        let place = HEADERS.has(kept.slot).then(|| HEADERS.place(kept.slot))?;
        Some((Packet { slot: REQUESTS, ..*kept }, &self.headers[place as usize]))
    }

    /// Drops the headers of a kept packet, if it has any. No other copy of the packet may be used afterwards.
    pub(super) fn drop_headers(&mut self, kept: &Packet) {
        if HEADERS.has(kept.slot) {
            self.free.push(HEADERS.place(kept.slot));
            debug_assert!(self.free.len() <= self.headers.len(), "headers are dropped once");
        }
    }

    /// Returns the number of packets whose headers are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.headers.len() - self.free.len()
    }
}
