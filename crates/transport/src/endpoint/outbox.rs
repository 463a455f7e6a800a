//! Requests of an endpoint to its NIC.

use alloc::vec::Vec;

use selvedge_units::{Instant, QpNumber};
use selvedge_wire::Packet;

/// Requests of an endpoint to its NIC, in the order of their making. The NIC carries them out after each call.
#[derive(Debug)]
pub struct Outbox {
    /// Number that entry 0 has as a slot of the NIC.
    first: u32,
    pub(super) answers: Vec<Packet>,
    ready: Vec<u32>,
    deadlines: Vec<(Instant, u32, QpNumber)>,
}

impl Outbox {
    /// The entry of the endpoint itself rather than of one of its flows: turns of all flows together, deadlines of a
    /// pacer. All other entries are smaller.
    pub const HOST: u32 = (1 << 27) - 1;

    /// Creates an outbox. `first` is the number of entry 0 among the NIC's slots, which [`Packet::slot`] holds.
    pub const fn new(first: u32) -> Self {
        Self { first, answers: Vec::new(), ready: Vec::new(), deadlines: Vec::new() }
    }

    /// Returns the slot of a sender's entry.
    pub(super) const fn slot(&self, entry: u32) -> u32 {
        self.first + entry
    }

    /// Gives an entry a turn at the link, behind those that have one already. An entry must not be given a second turn
    /// before [`poll_transmit`](super::Endpoint::poll_transmit) was called for the first.
    pub fn ready(&mut self, entry: u32) {
        self.ready.push(entry);
    }

    /// Removes and returns all control packets to send, in order.
    pub fn take_answers(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.answers.drain(..)
    }

    /// Removes and returns the entries that are to be given a turn, in order.
    pub fn take_ready(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.ready.drain(..)
    }

    /// Removes and returns the deadlines that were set: time, entry, and the entry's queue pair.
    pub fn take_deadlines(&mut self) -> impl Iterator<Item = (Instant, u32, QpNumber)> + '_ {
        self.deadlines.drain(..)
    }
}

/// Deadline of one entry. A deadline that moves to a later time costs nothing: the NIC calls at the earlier time, when
/// the entry sets its deadline anew.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    /// Earliest time for which the NIC has a deadline of this entry.
    armed: Instant,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { armed: Instant::NEVER }
    }
}

impl Alarm {
    /// Makes the NIC call [`handle_timeout`](super::Endpoint::handle_timeout) for `entry` at `at` or earlier; without a
    /// time, nothing changes. `qp` is the queue pair of the entry, if it is a flow's.
    pub fn set(&mut self, outbox: &mut Outbox, entry: u32, qp: QpNumber, at: Option<Instant>) {
        if let Some(at) = at
            && at < self.armed
        {
            self.armed = at;
            outbox.deadlines.push((at, entry, qp));
        }
    }

    /// Returns whether the deadline for `at` is the earliest one.
    pub fn is_for(&self, at: Instant) -> bool {
        self.armed == at
    }

    /// Returns whether the deadline for `at`, which has passed, is the earliest one; if so, it is over. If not, an
    /// earlier deadline has taken its place.
    pub fn take(&mut self, at: Instant) -> bool {
        let is_current = self.armed == at;
        if is_current {
            self.armed = Instant::NEVER;
        }
        is_current
    }
}
