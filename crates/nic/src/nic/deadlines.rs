//! Deadlines of queue pairs, flows and tunnels.
//!
//! Deadlines are lazy: each queue pair has at most a few entries in the heap. Moving a deadline later is free, because
//! the entry is checked when it comes up. Timers and pacing have separate entries, so that a paced packet costs one
//! entry and leaves that of a timer alone.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};

use super::{Nic, NicParams, find};
use crate::eqds::{NATIVE_END, TUNNEL};
use crate::qp::SendQp;
use crate::slot::{Owner, PACER};

impl Nic {
    /// Returns when to call [`Nic::handle_timeout`].
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = self.deadlines.next();
        (at != Instant::NEVER).then_some(at)
    }

    /// Handles all deadlines that have passed. Early or repeated calls have no effect.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while self.deadlines.next() <= cx.now {
            if self.deadlines.take_pull() {
                self.pull(cx.now, params);
                continue;
            }
            let Some((at, due, qp)) = self.deadlines.pop() else { break };
            let slot = due.slot();
            let Some(state) = find(&mut self.senders, slot, qp) else {
                match Owner::of(slot) {
                    Owner::Requests => self.on_verbs_deadline(cx, at),
                    Owner::Tunnel => self.on_tunnel_deadline(cx, params, at, slot),
                    Owner::IngressTunnel(place) if qp == NATIVE_END => self.on_inbound_deadline(cx, params, at, place),
                    Owner::Message => self.on_message_deadline(cx, params, at, slot),
                    Owner::Tcp => self.on_tcp_deadline(cx, at, slot, qp),
                    other => self.on_tunnel_of_stack_deadline(cx, params, at, other),
                }
                continue;
            };
            let armed = if due.is_pacing() { &mut state.pacing_armed } else { &mut state.timer_armed };
            if *armed != at {
                continue; // an earlier entry has taken its place
            }
            *armed = Instant::NEVER;
            cx.about(qp);
            if !due.is_pacing() {
                let before = state.sender.stats().timeouts;
                state.sender.handle_timeout(cx, &mut self.pools);
                let timeouts = state.sender.stats().timeouts - before;
                self.stats.timeouts += u64::from(timeouts);
            }
            self.refresh(slot, cx.now);
        }
        self.hand_over(cx, params);
    }

    /// Updates the ready ring and the deadlines of a queue pair after a change of its state.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: u32, now: Instant) {
        let Some(state) = self.senders[slot as usize].as_mut() else { return };
        state.settle(slot, now, &mut self.ready, &mut self.deadlines);
    }
}

impl SendQp {
    /// Updates the ready ring and the deadlines of this queue pair, which is in `slot`, after a change of its state.
    #[inline(always)]
    pub(crate) fn settle(&mut self, slot: u32, now: Instant, ready: &mut VecDeque<u32>, deadlines: &mut Deadlines) {
        // A queue pair in the ring is asked when its turn comes.
        if self.queued {
            return self.arm_timer(self.sender.timers(), slot, deadlines);
        }
        if self.ask(slot, now, deadlines) {
            self.queued = true;
            ready.push_back(slot);
        }
    }

    /// Updates the ready ring and the deadlines after the queue pair's turn at the front: it goes to the back if it has
    /// more to send.
    #[inline(always)]
    pub(crate) fn end_turn(&mut self, slot: u32, now: Instant, ready: &mut VecDeque<u32>, deadlines: &mut Deadlines) {
        if !self.ask(slot, now, deadlines) {
            self.queued = false;
            ready.pop_front();
        } else if ready.len() > 1 {
            ready.pop_front();
            ready.push_back(slot);
        }
    }

    /// Returns whether the engine has a packet to send now. Sets deadlines for a later packet, and for timers.
    #[inline(always)]
    fn ask(&mut self, slot: u32, now: Instant, deadlines: &mut Deadlines) -> bool {
        let (sends_at, timers) = self.sender.next_times(now);
        self.arm_timer(timers, slot, deadlines);
        if sends_at > now && sends_at < self.pacing_armed {
            self.pacing_armed = sends_at;
            deadlines.push(sends_at, Due::pacing(slot), self.qp);
        }
        sends_at <= now
    }

    /// Sets a deadline for the timers.
    #[inline(always)]
    fn arm_timer(&mut self, timer: Instant, slot: u32, deadlines: &mut Deadlines) {
        if timer < self.timer_armed {
            self.timer_armed = timer;
            deadlines.push(timer, Due::timer(slot), self.qp);
        }
    }
}

/// The deadlines of one NIC.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Earliest of all deadlines, so that polls need no further look-up.
    next: Instant,
    /// Deadline of the first entry in the heap.
    first: Instant,
    /// Time at which EQDS's pacer gives credit. Each packet changes that time, so it has no entry in the heap.
    pull: Instant,
    heap: BinaryHeap<Reverse<Entry>>,
}

type Entry = (Instant, Due, QpNumber);

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self { next: Instant::NEVER, first: Instant::NEVER, pull: Instant::NEVER, heap: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, at: Instant, due: Due, qp: QpNumber) {
        self.first = self.first.min(at);
        self.next = self.next.min(at);
        self.heap.push(Reverse((at, due, qp)));
    }

    #[inline]
    pub(crate) fn set_pull(&mut self, at: Instant) {
        self.pull = at;
        self.next = self.first.min(at);
    }

    #[inline]
    fn next(&self) -> Instant {
        self.next
    }

    /// Takes the pacer's deadline if that is the next one.
    #[inline]
    fn take_pull(&mut self) -> bool {
        let pull = (self.pull, Due::timer(PACER), TUNNEL);
        let is_next = self.pull < self.first || self.heap.peek().is_none_or(|Reverse(entry)| pull < *entry);
        if is_next {
            self.set_pull(Instant::NEVER);
        }
        is_next
    }

    /// Takes the first entry of the heap.
    fn pop(&mut self) -> Option<Entry> {
        let Reverse(entry) = self.heap.pop()?;
        self.first = self.heap.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at);
        self.next = self.first.min(self.pull);
        Some(entry)
    }
}

/// Purpose of a deadline: a slot's timers, or its next packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due(u32);

impl Due {
    pub(crate) const fn timer(slot: u32) -> Self {
        Self(slot << 1)
    }
    const fn pacing(slot: u32) -> Self {
        Self(slot << 1 | 1)
    }
    const fn slot(self) -> u32 {
        self.0 >> 1
    }
    const fn is_pacing(self) -> bool {
        self.0 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::{TCP, TUNNELS};

    const QP: QpNumber = QpNumber(1);

    #[test]
    fn deadlines_come_in_their_order_pulls_among_them() {
        let at = Instant::from_ps;
        let tunnel = Due::timer(TUNNELS.slot(0));
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.next(), Instant::NEVER);
        deadlines.push(at(30), Due::timer(TCP.slot(0)), QP);
        deadlines.push(at(20), tunnel, TUNNEL);
        deadlines.set_pull(at(20));
        assert!(!deadlines.take_pull(), "tunnels come before the pacer at the same time");
        assert_eq!(deadlines.pop(), Some((at(20), tunnel, TUNNEL)));
        assert_eq!(deadlines.next(), at(20));
        assert!(deadlines.take_pull());
        assert_eq!(deadlines.next(), at(30));
        deadlines.set_pull(at(30));
        assert!(deadlines.take_pull(), "flows of TCP come behind it");
        assert_eq!(deadlines.pop(), Some((at(30), Due::timer(TCP.slot(0)), QP)));
        assert_eq!((deadlines.next(), deadlines.pop()), (Instant::NEVER, None));
    }
}
