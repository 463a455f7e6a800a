//! Switches: where to, and in which queue to wait.

use selvedge_telemetry::DropReason;
use selvedge_units::{HostId, SwitchId};
use selvedge_wire::{Ecn, Repr};

use super::pool::{NONE, Slot};
use super::port::Egress;
use crate::kernel::partition::Partition;
use crate::kernel::prefetch;

/// A switch. Its ports, lines and queues lie in its partition's tables.
pub(crate) struct Switch {
    /// Its global number, as `Routes` knows it.
    pub(crate) id: SwitchId,
    /// Its leaf number, if hosts hang on it.
    pub(crate) leaf: u32,
    pub(crate) first_port: u32,
    pub(crate) ports: u32,
    /// First of its queues.
    pub(crate) first_queue: u32,
    /// Inputs that have queues of their own: all ports with virtual output queues and round-robin, else
    /// one.
    pub(crate) inputs: u32,
    /// What ECMP multiplies with: odd, and different at every switch.
    pub(crate) salt: u64,
    /// Bytes in its shared buffer, without headroom.
    pub(crate) shared_used: u64,
    /// Bytes that all ports may share.
    pub(crate) shared_total: u64,
}

/// No leaf number.
pub(crate) const NOT_A_LEAF: u32 = u32::MAX;

/// A hash whose high bits choose among equal-cost paths: multiplication by the switch's own odd number
/// (multiply-shift, Dietzfelbinger et al.), so that switches choose independently.
#[inline]
fn ecmp_hash(entropy: u32, salt: u64) -> u32 {
    (u64::from(entropy).wrapping_mul(salt) >> 32) as u32
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// The local number of the port through which `switch` forwards; `None` without a path.
    #[inline]
    fn route(&self, switch: u32, dst: HostId, entropy: u32) -> Option<u32> {
        let switch = &self.switches[switch];
        let place = self.fabric.attachment[dst.index()];
        let port = if place.leaf == switch.leaf {
            u32::from(place.port)
        } else {
            self.forwarding.port(switch.id, place.leaf, || ecmp_hash(entropy, switch.salt))?
        };
        Some(switch.first_port + port)
    }

    /// Fetches what tells the way of a packet that will enter through port `at`, or the host there.
    #[inline]
    pub(crate) fn fetch_way(&self, at: u32, slot: Slot) {
        let port = &self.ingress[at];
        if port.is_host {
            return prefetch(&self.hosts, port.owner);
        }
        let dst = self.pool.get(slot).packet.dst;
        if let Some(place) = self.fabric.attachment.get(dst.index()) {
            self.forwarding.prefetch(self.switches[port.owner].id, place.leaf);
        }
    }

    /// Finds the way of a packet that will soon enter through port `at`, notes it in the packet's place
    /// (whose link is free while it is under way), and fetches what it leads to.
    #[inline]
    pub(crate) fn find_way(&mut self, at: u32, slot: Slot) {
        let port = &self.ingress[at];
        let packet = &self.pool.get(slot).packet;
        if port.is_host || matches!(packet.repr, Repr::Pause(_)) {
            return;
        }
        let (switch, class) = (port.owner, packet.class);
        if let Some(out) = self.route(switch, packet.dst, packet.entropy) {
            self.pool.get_mut(slot).next = out;
            prefetch(&self.egress, out);
            prefetch(&self.lines, out * self.classes + u32::from(class));
            prefetch(&self.queues, self.queue_of(switch, at, out, class));
        }
    }

    /// A packet has entered `switch` through port `at`.
    #[inline]
    pub(crate) fn arrive_at_switch(&mut self, switch: u32, at: u32, slot: Slot) {
        let packet = &self.pool.get(slot).packet;
        let (dst, entropy, frame, class) = (packet.dst, packet.entropy, u64::from(packet.frame), packet.class);
        let capable = packet.ecn == Ecn::Capable;
        let out = match self.pool.get(slot).next {
            NONE => match self.route(switch, dst, entropy) {
                Some(out) => out,
                None => return self.drop_packet(at, slot, DropReason::NoRoute),
            },
            found => found,
        };
        let port = &self.egress[out];
        // Nothing waits and nothing is in the way: straight through.
        if port.busy_until <= self.now && port.waiting == 0 && port.paused & (1 << class) == 0 && !port.free_pending {
            self.transmit(out, slot);
            return;
        }
        // A host that is cut off: to wait for it would stop the others.
        if port.paused == Egress::DOWN {
            return self.drop_packet(at, slot, DropReason::LinkDown);
        }
        if let Err(reason) = self.admit(switch, at, out, frame, class) {
            return self.drop_packet(at, slot, reason);
        }
        let queue = self.queue_of(switch, at, out, class);
        let line = &mut self.lines[out * self.classes + u32::from(class)];
        // Hosts send ECN-capable packets only where switches mark.
        if capable && self.extras[out].red.marks(line.bytes) {
            self.pool.get_mut(slot).packet.ecn = Ecn::Marked;
            self.tally.ecn_marks += 1;
        }
        self.pool.get_mut(slot).ingress = at;
        line.push(&mut self.queues, queue, &mut self.pool, slot, frame);
        self.egress[out].waiting |= 1 << class;
        if RECORDED {
            self.note_queued(at, out, slot);
        }
        self.kick(out);
    }

    /// The queue of packets of `class` from port `at` to port `out`.
    #[inline]
    pub(crate) fn queue_of(&self, switch: u32, at: u32, out: u32, class: u8) -> u32 {
        let switch = &self.switches[switch];
        let input = if switch.inputs == 1 { 0 } else { at - switch.first_port };
        let output = (out - switch.first_port) * self.classes + u32::from(class);
        switch.first_queue + output * switch.inputs + input
    }

    /// Sends the next packet of a free switch port: the highest class that may, then round-robin
    /// over inputs.
    #[inline]
    pub(crate) fn serve_switch(&mut self, at: u32) {
        let port = &mut self.egress[at];
        let ready = port.waiting & !port.paused;
        if ready == 0 {
            return;
        }
        let class = ready.ilog2();
        let line = &mut self.lines[at * self.classes + class];
        let slot = line.pop(&mut self.queues, &self.pool);
        if line.is_empty() {
            port.waiting &= !(1 << class);
        }
        let more = port.waiting & !port.paused != 0;
        let switch = port.owner;
        let held = self.pool.get(slot);
        let (ingress, frame) = (held.ingress, u64::from(held.packet.frame));
        let size = self.transmit(at, slot);
        self.release(switch, ingress, frame);
        if more {
            self.return_when_free(at, size);
        }
    }
}
