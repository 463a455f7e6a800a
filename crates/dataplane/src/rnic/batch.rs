//! Batches of packets that are sent by one system call: the kernel cuts one long datagram into equal segments
//! (`UDP_SEGMENT`), the last of which may be shorter. A packet then costs a small fraction of a call of its own.

use std::net::Ipv6Addr;

use selvedge_wire::Icrc;

use super::invariant::{Ends, Invariant};

/// Most segments of a batch. Linux allows 64, later versions more.
const MOST_SEGMENTS: usize = 64;
/// Most bytes of a batch, which is one IP packet until the kernel cuts it.
const MOST_BYTES: usize = 65_000;
/// Size of the buffer in bytes. A packet longer than [`MOST_BYTES`] is sent alone.
const ROOM: usize = 1 << 16;

/// Properties that all packets of a batch share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    pub(super) ends: Ends,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
}

impl Flow {
    pub(super) fn local(&self) -> Ipv6Addr {
        self.ends.from
    }
}

/// A batch of packets to be sent.
#[derive(Debug)]
pub(super) struct Batch {
    flow: Option<Flow>,
    /// The part of the ICRC that packets like the last one share.
    invariant: Option<Invariant>,
    /// Bytes of each packet but the last.
    segment: usize,
    count: usize,
    /// Whether the last packet was shorter, so that none may follow.
    is_closed: bool,
    bytes: Box<[u8]>,
    /// Bytes of the buffer in use.
    used: usize,
    /// Most packets that may be sent together.
    most: usize,
}

impl Batch {
    /// Creates an empty batch; it takes one packet at most unless the system cuts datagrams (`segments`).
    pub(super) fn new(segments: bool) -> Self {
        let most = if segments { MOST_SEGMENTS } else { 1 };
        Self {
            flow: None,
            invariant: None,
            segment: 0,
            count: 0,
            is_closed: false,
            bytes: vec![0; ROOM].into(),
            used: 0,
            most,
        }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Returns whether a packet of `length` bytes can join the batch.
    pub(super) fn takes(&self, flow: &Flow, length: usize) -> bool {
        self.count == 0
            || (!self.is_closed
                && self.count < self.most
                && length <= self.segment
                && self.used + length <= MOST_BYTES
                && self.flow.as_ref() == Some(flow))
    }
    /// Adds a packet of `length` bytes and computes its ICRC. `write` must fill in all bytes but the ICRC: the buffer
    /// holds bytes of earlier packets. Returns what `write` returned: whether the packet was added.
    pub(super) fn add(&mut self, flow: &Flow, length: usize, write: impl FnOnce(&mut [u8]) -> bool) -> bool {
        debug_assert!(self.takes(flow, length), "a packet that does not fit");
        let Some(free) = self.bytes.get_mut(self.used..self.used + length) else { return false };
        let (packet, icrc) = free.split_at_mut(length - Icrc::LENGTH);
        if !write(packet) {
            return false;
        }
        if !self.invariant.as_ref().is_some_and(|invariant| invariant.is_of(&flow.ends, packet.len())) {
            self.invariant = None;
        }
        let invariant = self.invariant.get_or_insert_with(|| flow.ends.invariant(packet.len()));
        // The kernel counts the segments of a batch in the identification of their IPv4 headers.
        icrc.copy_from_slice(&invariant.icrc(self.count as u16, packet));
        if self.count == 0 {
            self.flow = Some(*flow);
            self.segment = length;
        }
        self.count += 1;
        self.used += length;
        self.is_closed = length < self.segment;
        true
    }
    /// Returns the batch's flow, the length of a segment, and all bytes; `None` if the batch is empty.
    pub(super) fn contents(&self) -> Option<(Flow, usize, &[u8])> {
        self.flow.filter(|_| self.count > 0).map(|flow| (flow, self.segment, &self.bytes[..self.used]))
    }
    /// Limits batches to one packet from now on, because the system does not cut datagrams.
    pub(super) fn leave_one_by_one(&mut self) {
        self.most = 1;
    }
    /// Rewrites each packet's ICRC for sending alone: with identification 0.
    pub(super) fn separate(&mut self) {
        let Some(flow) = self.flow else { return };
        for packet in self.bytes[..self.used].chunks_mut(self.segment.max(1)) {
            let (packet, icrc) = packet.split_at_mut(packet.len() - Icrc::LENGTH);
            icrc.copy_from_slice(&flow.ends.invariant(packet.len()).icrc(0, packet));
        }
    }
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.count = 0;
        self.is_closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> Flow {
        let address = Ipv6Addr::LOCALHOST;
        let ends = Ends { from: address, to: address, from_port: 4_791, to_port: port };
        Flow { ends, traffic_class: 0, hop_limit: 64 }
    }

    #[test]
    fn equal_packets_of_a_flow_leave_together_and_a_shorter_one_is_the_last() {
        let mut batch = Batch::new(true);
        for length in [100, 100, 60] {
            assert!(batch.takes(&flow(1), length) && batch.add(&flow(1), length, |_| true));
        }
        assert!(!batch.takes(&flow(1), 60), "behind a shorter one");
        assert_eq!(batch.contents().map(|(_, segment, bytes)| (segment, bytes.len())), Some((100, 260)));
        batch.clear();
        assert!(batch.add(&flow(1), 100, |_| true));
        assert!(!batch.takes(&flow(1), 104) && !batch.takes(&flow(2), 100) && batch.takes(&flow(1), 100));
        assert!(!batch.add(&flow(1), 100, |_| false));
        assert_eq!(
            batch.contents().map(|(_, _, bytes)| bytes.len()),
            Some(100),
            "what could not be written is not sent"
        );
    }
}
