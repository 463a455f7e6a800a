//! Visits to a switch whose ports do not matter to each other.
//!
//! What one output sends matters to another through the buffers of inputs alone: it makes room there, and ends pauses.
//! Where no input can fill up with all that has come, ports need not take turns in the order of time. Each output has
//! its whole visit at once, and nobody has to tell which one is free next. Results are the same to the bit.

use selvedge_units::Instant;

use super::descriptor::Descriptor;
use super::forward::UNKNOWN;
use super::switch::Site;
use crate::kernel::order::Order;
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Whether a visit that lasts until `limit` may be calm, as far as mail does not matter. With less of it than
    /// ports, to look at all ports would take longer; and what is recorded is recorded in order.
    #[inline(always)]
    pub(super) fn may_be_calm(&self, site: &Site, mail: &[Descriptor], limit: u64) -> bool {
        let state = &self.switches[site.switch];
        let is_plain = !RECORDED && !site.looks_closely && self.balancers.is_empty() && self.tors.is_empty();
        let is_worth_it = limit == self.calendar.end() && mail.len() >= state.ports as usize;
        let is_calm = |at| {
            let input = &self.ingress[at];
            // One that wants to hear of packets that leave has a trough; one that is nearly full will not have room.
            input.trough == 0 && input.buffered <= input.brim - input.brim / 8 && !self.egress[at].pause_due
        };
        is_plain && is_worth_it && state.timer_at() >= limit && state.port_range().all(is_calm)
    }

    /// Looks up through which port each packet of `mail` will leave, and whether it is as calm as it may be.
    #[inline(always)]
    fn look_up_calmly(&mut self, site: &Site, mail: &[Descriptor], order: &mut Order) -> bool {
        let (mut ways, mut is_paused) = (0, false);
        order.look_up(mail, |packet| {
            let out = self.route(site, packet);
            ways |= out;
            is_paused |= packet.is_pause();
            self.ingress[site.first_port.wrapping_add(packet.port.into())].coming += u32::from(packet.frame);
            out as u16
        });
        let mut fits = true;
        for at in self.switches[site.switch].port_range() {
            let input = &mut self.ingress[at];
            let coming = std::mem::take(&mut input.coming);
            fits &= input.buffered + u64::from(coming) <= input.brim;
        }
        // If a way is unknown, all together are.
        fits && ways != UNKNOWN && !is_paused
    }

    /// Handles all that happens before `limit`, which is the end of the window, unless mail is in the way.
    #[inline(never)]
    pub(super) fn visit_calmly(&mut self, site: &Site, mail: &[Descriptor], order: &mut Order, limit: u64) -> bool {
        if !self.look_up_calmly(site, mail, order) {
            return false;
        }
        order.sort_by_output(mail, self.switches[site.switch].ports);
        let begin = self.calendar.begin();
        self.switches[site.switch].pending.clear();
        for (output, at) in (0..).zip(self.switches[site.switch].port_range()) {
            // We are there anyway.
            self.egress[at].free_pending = true;
            for key in order.of_output(output) {
                let time = Instant::from_ps(begin + key.time());
                self.catch_up(site, at, time);
                self.now = time;
                self.forward_calmly(site, at, key.packet(mail));
            }
            self.catch_up(site, at, Instant::from_ps(limit));
            let port = &mut self.egress[at];
            port.free_pending = port.ready() != 0;
            if port.free_pending {
                self.switches[site.switch].pending.append(output, port.busy_until.as_ps());
            }
        }
        self.events += mail.len() as u64;
        true
    }

    /// A packet comes in that leaves through port `out`.
    #[inline(always)]
    fn forward_calmly(&mut self, site: &Site, out: u32, packet: &Descriptor) {
        let port = &self.egress[out];
        let is_free = port.busy_until <= self.now;
        if is_free && port.is_open() {
            return self.transmit(out, packet);
        }
        // Those who may not leave do not keep others waiting.
        let begins = is_free && port.ready() == 0;
        self.line_up(site, site.first_port + u32::from(packet.port), out, packet);
        if begins {
            self.serve_switch(site, out);
        }
    }

    /// Sends what port `at` would have sent before `time`.
    #[inline(always)]
    fn catch_up(&mut self, site: &Site, at: u32, time: Instant) {
        loop {
            let port = &self.egress[at];
            let ready = port.ready();
            if ready == 0 || port.busy_until >= time {
                return;
            }
            self.now = port.busy_until;
            self.serve_class(site, at, ready.ilog2() as u8);
        }
    }
}
