//! A NIC's port: the part that the endpoints of one host share.

use alloc::collections::VecDeque;

use selvedge_units::{HostId, Instant, QpNumber};

use super::{Answers, Context, Deadlines, Frames, NicStats};
use crate::role::Cx;
use crate::table::Table;

/// The part of a NIC that its endpoints share: the queue of control packets, the ring of turns at the link, the
/// deadlines, and the counters. Turns and deadlines name their owners by slots, which are numbers of the NIC's: the
/// number of an endpoint's first entry plus the entry.
#[derive(Debug)]
#[repr(C)]
pub struct Port {
    /// Slots of receivers, by the host and the queue pair that send to them.
    pub by_peer: Table<(HostId, QpNumber)>,
    /// Deadlines of all slots.
    pub deadlines: Deadlines,
    /// Slots with a packet to send, in the order of their turns. A slot is in the ring at most once.
    pub ready: VecDeque<u32>,
    /// Acknowledgements and congestion notifications that wait for the link.
    pub answers: Answers,
    /// The host.
    pub host: HostId,
    /// Counters. Those of sent control packets are the NIC's alone.
    pub stats: NicStats,
}

impl Port {
    /// Creates the port of `host`; nothing waits. `pacer` is the slot whose deadline [`Deadlines::set_pacer`] sets.
    pub fn new(host: HostId, pacer: u32) -> Self {
        Self {
            by_peer: Table::new(),
            deadlines: Deadlines::new(pacer),
            ready: VecDeque::new(),
            answers: Answers::new(),
            host,
            stats: NicStats::default(),
        }
    }

    /// Lends an endpoint what it needs for one call. `first` is the slot of its entry 0.
    #[inline(always)]
    pub fn lend<'a, 'p, P: ?Sized>(
        &'a mut self,
        cx: &'a mut Cx<'p>,
        frames: &'a Frames,
        params: &'a P,
        first: u32,
    ) -> Context<'a, 'p, P> {
        Context { cx, params, frames, port: self, first }
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
    /// time, nothing changes.
    #[inline]
    pub fn set<P: ?Sized>(&mut self, cx: &mut Context<'_, '_, P>, entry: u32, at: Option<Instant>) {
        self.set_at(cx, entry, at.unwrap_or(Instant::NEVER));
    }

    /// Like [`Alarm::set`]; [`Instant::NEVER`] is no time.
    #[inline(always)]
    pub fn set_at<P: ?Sized>(&mut self, cx: &mut Context<'_, '_, P>, entry: u32, at: Instant) {
        if at < self.armed {
            self.armed = at;
            let slot = cx.slot(entry);
            cx.port.deadlines.push(at, slot);
        }
    }

    /// Returns whether the deadline for `at`, which has passed, is the earliest one; if so, it is over. If not, an
    /// earlier deadline has taken its place.
    #[inline]
    pub fn take(&mut self, at: Instant) -> bool {
        let is_current = self.armed == at;
        if is_current {
            self.armed = Instant::NEVER;
        }
        is_current
    }
}
