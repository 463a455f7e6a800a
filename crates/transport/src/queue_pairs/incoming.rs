//! Runs of packets that require no answer.

use selvedge_units::{HostId, Instant, Psn, QpNumber};
use selvedge_wire::{Packet, Repr};

use super::QueuePairs;
use super::state::RecvQp;
use crate::endpoint::NicStats;

impl QueuePairs {
    /// Returns the receiver `entry` for a run of data packets from the queue pair that has sent `packet`; `None` if
    /// there is no such receiver. `stats` are the counters of the NIC.
    ///
    /// Useful only where [`RdmaParams::takes_unanswered`](super::RdmaParams::takes_unanswered) holds.
    #[inline(always)]
    pub fn incoming<'a>(&'a mut self, packet: &Packet, entry: u32, stats: &'a mut NicStats) -> Option<Incoming<'a>> {
        let state = self.receivers.get_mut(entry)?;
        let (expected, limits) = state.receiver.unanswered()?;
        // The last packet of a message completes it; no packet is expected behind it.
        let most = limits.packets.min(state.missing.checked_sub(1)?);
        let (from, before) = ((packet.src, packet.qp), limits.before);
        Some(Incoming { from, expected, most, before, count: 0, payload: 0, state, stats })
    }
}

/// A run of data packets of one queue pair. The counters of the NIC are updated at the [end](Incoming::end).
#[must_use]
#[derive(Debug)]
pub struct Incoming<'a> {
    from: (HostId, QpNumber),
    expected: Psn,
    /// Maximum number of packets to take.
    most: u64,
    /// Time before which a packet must arrive to be taken.
    before: Instant,
    /// Number of packets taken. `payload` holds their bytes.
    count: u64,
    payload: u64,
    state: &'a mut RecvQp,
    stats: &'a mut NicStats,
}

impl Incoming<'_> {
    /// Takes a data packet that arrives at `at`: the `nth` packet of its train behind `first`. The effect is that of
    /// [`Endpoint::handle_packet`](crate::endpoint::Endpoint::handle_packet). Returns false, without effect, unless the
    /// packet is the expected one, requires no answer and completes nothing.
    #[inline(always)]
    pub fn take(&mut self, at: Instant, first: &Packet, nth: u32) -> bool {
        let Repr::Data(data) = &first.repr else { return false };
        let is_ours = (first.src, first.qp) == self.from;
        if !is_ours || data.psn.plus(nth) != self.expected || self.count == self.most || at >= self.before {
            return false;
        }
        self.expected = self.expected.next();
        self.count += 1;
        self.payload += u64::from(data.payload);
        true
    }

    /// Updates the counters of the NIC; returns the number of packets taken.
    #[inline(always)]
    pub fn end(self) -> u64 {
        let Self { count, payload, state, stats, .. } = self;
        state.receiver.take_unanswered(count);
        state.missing -= count;
        stats.data_received += count;
        stats.goodput += payload;
        count
    }
}
