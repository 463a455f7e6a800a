//! Visits to a switch whose ports do not matter to each other.
//!
//! What one output sends matters to another through the buffers of inputs alone: it makes room there, and ends pauses.
//! Where no input can fill up with all that may come, ports need not take turns in the order of time: each
//! [output](super::output) has its whole visit at once. Results are the same to the bit.

use selvedge_units::Instant;

use super::descriptor::Descriptor;
use super::forward::UNKNOWN;
use super::switch::Site;
use crate::kernel::order::{Order, Ties};
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Whether ports need not take turns in a visit that lasts until `limit`, as far as mail does not matter. What is
    /// recorded is recorded in order.
    #[inline(always)]
    pub(super) fn may_be_calm(&self, site: &Site, limit: u64) -> bool {
        let state = &self.switches[site.switch];
        let is_plain =
            !RECORDED && !site.slow_path && !site.has_crossbar && self.balancers.is_empty() && self.tors.is_empty();
        let is_calm = |at| self.ingress[at].is_calm() && !self.egress[at].pause_due();
        is_plain && limit == self.calendar.end() && state.timer_at() >= limit && state.port_range().all(is_calm)
    }

    /// Handles all that happens before `limit`, which is the end of the window, output by output. Returns whether that
    /// is possible; if not, nothing has happened.
    #[inline(never)]
    pub(super) fn visit_calmly(&mut self, site: &Site, mail: &[Descriptor], order: &mut Order, limit: u64) -> bool {
        if !self.deal(site, mail, order) {
            return false;
        }
        let begin = self.calendar.begin();
        let visit = Visit { site, mail, begin, length: limit - begin };
        self.events += mail.len() as u64;
        self.switches[site.switch].pending.clear();
        for port in 0..self.switches[site.switch].ports {
            let (at, keys) = (site.first_port + port, order.dealt_to(port));
            // A few times in each visit.
            if port.is_multiple_of(8) {
                self.trickle.fetch_some();
            }
            if keys.is_empty() && !self.egress[at].free_pending || self.visit_output(&visit, at, keys) {
                continue;
            }
            // It will have another visit when it is free, if it has something to send then. Where there is one class,
            // what waits while the port is busy counts as that although it may be paused, as it does in other visits.
            let output = &mut self.egress[at];
            let is_busy = output.busy_until.as_ps() >= limit;
            output.free_pending = output.ready() != 0 || (self.classes == 1 && output.waiting != 0 && is_busy);
            if output.free_pending {
                self.switches[site.switch].pending.append(port, output.busy_until.as_ps());
            }
        }
        true
    }

    /// Deals out `mail` to the outputs through which it leaves, and pause frames to those that they are about. Returns
    /// whether it need not be handled in the order of time.
    #[inline(always)]
    fn deal(&mut self, site: &Site, mail: &[Descriptor], order: &mut Order) -> bool {
        // A port whose pause ends must have had nothing else to do, so that it does not matter whether it has been
        // waiting for that.
        let pauses_are_calm = site.has_lasting_pauses && self.classes == 1;
        let ways = self.forwarding.ways_of(site.routes);
        let window = self.calendar.end() - self.calendar.begin();
        let ports = self.switches[site.switch].ports;
        let is_dealt = order.deal(mail, window, ports, move |packet| {
            if packet.is_pause() {
                return if pauses_are_calm { packet.port.into() } else { UNKNOWN };
            }
            site.route(ways, packet)
        });
        if is_dealt && self.fabric.inputs_compete {
            order.break_dealt_ties(self.ties(site.switch), ports);
        }
        is_dealt
    }

    /// In which order packets that arrive at a switch at the same time come, where inputs compete.
    pub(super) fn ties(&self, switch: u32) -> Ties {
        Ties { salt: self.switches[switch].ties, begin: self.calendar.begin() }
    }
}

/// What does not change during a visit.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) site: &'a Site,
    pub(super) mail: &'a [Descriptor],
    /// When its window begins.
    begin: u64,
    /// When the visit ends, in picoseconds after that.
    pub(super) length: u64,
}

impl<'a> Visit<'a> {
    /// The packet at `place` of the mail.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &'a Descriptor {
        debug_assert!((place as usize) < self.mail.len(), "it is a place of this mail");
        // SAFETY: as the assertion says.
        unsafe { self.mail.get_unchecked(place as usize) }
    }

    /// What lies that much after the beginning of the window.
    #[inline(always)]
    pub(super) fn instant(&self, after: u64) -> Instant {
        Instant::from_ps(self.begin + after)
    }

    /// How much after the beginning of the window that is; nothing, if it is over.
    #[inline(always)]
    pub(super) fn since(&self, time: Instant) -> u64 {
        time.as_ps().saturating_sub(self.begin)
    }
}
