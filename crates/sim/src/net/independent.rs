//! Visits to a switch whose ports do not affect each other.
//!
//! The packets that one output sends affect another output only through the buffers of inputs: they free space there,
//! and end pauses. Where no input can fill up with all that may arrive, events need not be handled in the order of
//! time: each [output](super::output) has its whole visit at once. Results are byte-identical. Without it, a
//! permutation over a fat-tree of 128 hosts takes 12 % more instructions with PFC, and 14 % more with IRN.

use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::forward::UNKNOWN;
use selvedge_switch::switch::SwitchFacts;
use selvedge_units::Instant;

use crate::net::order::{Order, Ties};
use crate::net::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Returns whether the ports may be visited one after the other in a visit until `limit`, as far as the arrivals do
    /// not matter. Recorded runs are recorded in order of time, so they may not.
    #[inline(always)]
    pub(super) fn may_be_independent(&self, facts: &SwitchFacts, limit: u64) -> bool {
        let state = &self.net.switches[facts.switch];
        let is_plain = !RECORDED
            && !facts.slow_path
            && !facts.has_arbiter
            && self.net.balancers.is_empty()
            && self.net.tors.is_empty();
        is_plain
            && limit == self.edge.calendar.end()
            && state.timer_at() >= limit
            && self.net.ports_of(state).all(|(output, input)| input.is_far_from_limits() && !output.pause_due())
    }

    /// Handles all events before `limit`, which is the end of the window, output by output. Returns whether that is
    /// possible; if not, nothing has happened.
    #[inline(never)]
    pub(super) fn visit_by_output(
        &mut self,
        facts: &SwitchFacts,
        inbox: &[Descriptor],
        order: &mut Order,
        limit: u64,
    ) -> bool {
        if !self.deal(facts, inbox, order) {
            return false;
        }
        let begin = self.edge.calendar.begin();
        let visit = Visit { facts, inbox, begin, length: limit - begin };
        self.net.events += inbox.len() as u64;
        self.net.switches[facts.switch].busy_ports.clear();
        for (port, keys) in (0..).zip(order.dealt()) {
            let at = facts.first_port + port;
            // Happens a few times in each visit.
            if port.is_multiple_of(8) {
                self.prefetch_queue.fetch_some();
            }
            if keys.is_empty() && !self.net.egress[at].free_pending || self.visit_output(&visit, at, keys) {
                continue;
            }
            // The output is visited again when it is free if it has something to send then. Where there is one class,
            // waiting packets count as such while the port is busy although the class may be paused, like in other
            // visits.
            let output = &mut self.net.egress[at];
            let is_busy = output.busy_until.as_ps() >= limit;
            output.free_pending =
                output.ready() != 0 || (self.net.params.classes == 1 && output.waiting != 0 && is_busy);
            if output.free_pending {
                self.net.switches[facts.switch].busy_ports.append(port, output.busy_until.as_ps());
            }
        }
        true
    }

    /// Deals out `inbox` to the outputs through which it leaves, and pause frames to the outputs that they concern.
    /// Returns whether the arrivals need not be handled in order of time.
    #[inline(always)]
    fn deal(&mut self, facts: &SwitchFacts, inbox: &[Descriptor], order: &mut Order) -> bool {
        // A port whose pause ends must have nothing else to do, so that it does not matter whether it has been waiting
        // for that.
        let no_pause_is_near = facts.has_lasting_pauses && self.net.params.classes == 1;
        let ways = self.net.forwarding.ways_of(facts.routes);
        let window = self.edge.calendar.end() - self.edge.calendar.begin();
        let is_dealt = order.deal(inbox, window, facts.ports, move |packet| {
            if packet.is_pause() {
                return if no_pause_is_near { packet.port.into() } else { UNKNOWN };
            }
            facts.route(ways, packet)
        });
        if is_dealt && self.net.params.inputs_compete {
            order.break_dealt_ties(self.ties(facts.switch));
        }
        is_dealt
    }

    /// Returns the order of packets that arrive at a switch at the same time, where inputs compete.
    pub(super) fn ties(&self, switch: u32) -> Ties {
        Ties { salt: self.net.switches[switch].ties, begin: self.edge.calendar.begin() }
    }
}

/// State that does not change during a visit.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) facts: &'a SwitchFacts,
    pub(super) inbox: &'a [Descriptor],
    /// Beginning of the visit's window, in picoseconds.
    begin: u64,
    /// End of the visit, in picoseconds after the beginning of the window.
    pub(super) length: u64,
}

impl<'a> Visit<'a> {
    /// Returns the packet at `place` of the inbox.
    ///
    /// # Panics
    /// If the inbox has no such place.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &'a Descriptor {
        &self.inbox[place as usize]
    }

    /// Returns the time `after` picoseconds after the beginning of the window.
    #[inline(always)]
    pub(super) fn instant(&self, after: u64) -> Instant {
        Instant::from_ps(self.begin + after)
    }

    /// Returns the picoseconds from the beginning of the window to `time`; zero if `time` is earlier.
    #[inline(always)]
    pub(super) fn since(&self, time: Instant) -> u64 {
        time.as_ps().saturating_sub(self.begin)
    }
}
