//! Who is woken when.
//!
//! Lazy deadlines: each queue pair has at most a few entries in the heap. Moving a deadline later is
//! free: the entry is looked at when it comes up. Timers and pacing are armed separately, so that a paced
//! packet costs one entry and leaves that of a timer alone.

use core::cmp::Reverse;

use selvedge_transport::{Cx, Next};
use selvedge_units::Instant;

use super::{Nic, NicParams, find};
use crate::eqds::EQDS;
use crate::ndp::NDP;
use crate::rdma::REQUESTS;
use crate::tcp::TCP;

impl Nic {
    /// When [`Nic::handle_timeout`] wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets queue pairs act whose deadlines have come. Early or twice does nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while let Some(&Reverse((at, due, qp))) = self.deadlines.peek() {
            if at > cx.now {
                break;
            }
            self.deadlines.pop();
            let slot = due.slot();
            let Some(state) = find(&mut self.senders, slot, qp) else {
                if slot == REQUESTS {
                    self.on_verbs_deadline(cx, at);
                } else if (EQDS..TCP).contains(&slot) {
                    self.on_tunnel_deadline(cx, params, at, slot);
                } else if (NDP..EQDS).contains(&slot) {
                    self.on_ndp_deadline(cx, params, at, slot, qp);
                } else {
                    self.on_tcp_deadline(cx, at, slot, qp);
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
                state.sender.handle_timeout(cx, &mut self.chip);
                let timeouts = state.sender.stats().timeouts - before;
                self.stats.timeouts += u64::from(timeouts);
            }
            self.refresh(slot, cx.now);
        }
        self.hand_over(cx, params);
    }

    /// Puts a queue pair where its engine's wishes say, after anything happened to it.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: u32, now: Instant) {
        let Some(state) = self.senders[slot as usize].as_mut() else { return };
        // One that stands in the ring is asked when its turn comes.
        if !state.queued {
            match state.sender.next(now) {
                Next::Send(_) => {
                    state.queued = true;
                    self.ready.push_back(slot);
                }
                Next::Wait(until) if until < state.pacing_armed => {
                    state.pacing_armed = until;
                    self.deadlines.push(Reverse((until, Due::pacing(slot), state.qp)));
                }
                Next::Wait(_) | Next::Idle => {}
            }
        }
        let timer = state.sender.timers();
        if timer < state.timer_armed {
            state.timer_armed = timer;
            self.deadlines.push(Reverse((timer, Due::timer(slot), state.qp)));
        }
    }
}

/// What a deadline is for: a slot's timers, or its next packet.
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
