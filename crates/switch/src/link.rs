//! Ends of links: packets that leave, packets that arrive in rare cases, drops, and returns to busy ports.

use selvedge_telemetry::DropReason;

use crate::descriptor::{Descriptor, Slot};
use crate::environment::{Environment, Note};
use crate::switches::Switches;

impl Switches {
    /// Sends a packet through port `at` of a switch, which is free.
    #[inline(always)]
    pub fn transmit<E: Environment>(&mut self, env: &mut E, at: u32, packet: &Descriptor) {
        debug_assert!(self.egress[at].busy_until <= self.now, "one packet at a time");
        if self.egress[at].takes_slow_path() {
            return self.transmit_slow(env, at, packet);
        }
        let frame = u64::from(packet.frame);
        if E::RECORDED {
            let serialisation = self.egress[at].plain_serialisation(frame + self.params.gap);
            env.note(self, Note::Sent { at, slot: packet.slot, serialisation });
        }
        let port = &mut self.egress[at];
        let serialisation = port.plain_serialisation(frame + self.params.gap);
        let arrival = port.begin_frame(self.now, serialisation, frame);
        env.send(port, arrival, packet);
    }

    /// Sends a packet like [`Switches::transmit`], but through a port with a slow path.
    #[cold]
    #[inline(never)]
    fn transmit_slow<E: Environment>(&mut self, env: &mut E, at: u32, packet: &Descriptor) {
        env.leave_slowly(self, at, packet);
        let frame = u64::from(packet.frame);
        let serialisation = self.egress[at].serialisation(frame + self.params.gap, || self.extras[at].rate);
        if E::RECORDED {
            env.note(self, Note::Sent { at, slot: packet.slot, serialisation });
        }
        let port = &mut self.egress[at];
        let arrival = port.begin_frame(self.now, serialisation, frame);
        env.send(port, arrival, packet);
    }

    /// Handles a packet that enters a switch with one of the rare cases of the slow path; returns whether the packet
    /// goes on.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_slow_path<E: Environment>(&mut self, env: &mut E, at: u32, packet: &Descriptor) -> bool {
        if self.ingress[at].slow_path && self.is_lost(env, at, packet) {
            return false;
        }
        if packet.is_pause() {
            self.take_pause(env, at, packet.slot);
            return false;
        }
        self.tors.is_empty() || self.pass_tor(env, at, packet)
    }

    /// Returns whether a packet is lost on the link that ends at port `at`, which takes the slow path: because of the
    /// link's loss, or because the link is down. A lost packet is dropped here.
    pub fn is_lost<E: Environment>(&mut self, env: &mut E, at: u32, packet: &Descriptor) -> bool {
        let lost = env.lost(self.now, at, packet);
        let reason = if self.extras[at].down { Some(DropReason::LinkDown) } else { lost };
        if let Some(reason) = reason {
            self.drop_packet(env, at, packet.slot, reason);
        }
        reason.is_some()
    }

    /// Drops a packet that entered through port `at`.
    #[cold]
    pub fn drop_packet<E: Environment>(&mut self, env: &mut E, at: u32, slot: Slot, reason: DropReason) {
        let name = env.name(slot);
        env.drop(self, at, slot, reason);
        let extra = &mut self.extras[at];
        extra.drops += 1;
        extra.note_loss(name, 1 + reason as u64);
    }

    /// Schedules a return to port `at` of a switch for the time when the frame that it has just begun to send has left.
    #[inline]
    pub(crate) fn return_when_free(&mut self, at: u32) {
        let port = &mut self.egress[at];
        if port.free_pending {
            return;
        }
        port.free_pending = true;
        let (owner, free_at) = (port.owner, port.busy_until.as_ps());
        let switch = &mut self.switches[owner];
        switch.busy_ports.put_in_order();
        switch.busy_ports.push(at - switch.facts.first_port, free_at);
    }

    /// Schedules a return to port `at` of a switch for the time when it is free, if something is left to do there.
    pub(crate) fn return_to_do_more(&mut self, at: u32) {
        let port = &self.egress[at];
        if port.pause_due() || port.waiting != 0 {
            self.return_when_free(at);
        }
    }

    /// Cancels the return to port `at` if it belongs to a switch and nothing is left to do there: a packet that arrives
    /// just when the port is free then goes straight through, like at a port where no packet ever waited.
    pub(crate) fn forget_idle(&mut self, at: u32) {
        let port = &mut self.egress[at];
        if port.free_pending && !port.is_host && !port.pause_due() && port.waiting == 0 {
            let switch = &mut self.switches[port.owner];
            // The port that is being served is marked as one to return to, but has no entry in the list.
            if switch.busy_ports.forget(at - switch.facts.first_port) {
                port.free_pending = false;
            }
        }
    }

    /// Makes port `at` of a switch serve what waits: now if the port is free, else when it will be.
    #[inline]
    pub(crate) fn kick<E: Environment>(&mut self, env: &mut E, at: u32) {
        let port = &self.egress[at];
        if port.free_pending {
            return;
        }
        if port.busy_until > self.now {
            self.return_to_do_more(at);
        } else {
            self.serve(env, at);
        }
    }

    /// Serves a free port of a switch: sends the next packet, if there is one, and schedules a return if more wait.
    pub(crate) fn serve<E: Environment>(&mut self, env: &mut E, at: u32) {
        if self.egress[at].pause_due() {
            self.send_pause(env, at);
        } else {
            self.serve_unexpected(env, at);
        }
    }
}
