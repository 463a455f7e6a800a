//! Switches: where to, and in which queue to wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use selvedge_telemetry::DropReason;
use selvedge_units::{Instant, SwitchId};
use selvedge_wire::Ecn;

use super::descriptor::Descriptor;
use super::port::Egress;
use super::queue::Store;
use crate::kernel::earliest::{Earliest, NEVER};
use crate::kernel::partition::Partition;

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
    /// What waits in its queues.
    pub(crate) store: Store,
    /// When its ports are free, where something waits for that; behind the last port, when the first
    /// pause timer fires.
    pub(crate) agenda: Earliest,
    /// Pause timers: when, and of which port.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
}

/// What a switch is built from; see [`Switch`].
pub(crate) struct SwitchPlan {
    pub(crate) id: SwitchId,
    pub(crate) leaf: u32,
    pub(crate) first_port: u32,
    pub(crate) ports: u32,
    pub(crate) first_queue: u32,
    pub(crate) inputs: u32,
    pub(crate) salt: u64,
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

impl Switch {
    /// A switch that has seen nothing yet.
    pub(crate) fn new(plan: SwitchPlan) -> Self {
        Self {
            id: plan.id,
            leaf: plan.leaf,
            first_port: plan.first_port,
            ports: plan.ports,
            first_queue: plan.first_queue,
            inputs: plan.inputs,
            salt: plan.salt,
            shared_used: 0,
            shared_total: plan.shared_total,
            store: Store::new(),
            agenda: Earliest::new(plan.ports + 1),
            timers: BinaryHeap::new(),
        }
    }

    /// What is free of its shared buffer.
    pub(crate) fn shared_free(&self) -> u64 {
        self.shared_total.saturating_sub(self.shared_used)
    }

    /// Its ports, in its partition's numbering.
    #[inline]
    pub(crate) fn port_range(&self) -> Range<u32> {
        self.first_port..self.first_port + self.ports
    }

    /// When it has something to do beside its mail.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.agenda.first().0
    }

    /// Sets a pause timer of port `at`.
    pub(crate) fn arm(&mut self, at: u32, time: u64) {
        self.timers.push(Reverse((time, at)));
        if time < self.agenda.get(self.ports) {
            self.agenda.set(self.ports, time);
        }
    }

    /// The port whose pause timer fires at `now`.
    fn fired(&mut self) -> Option<u32> {
        let Reverse((_, at)) = self.timers.pop()?;
        self.agenda.set(self.ports, self.timers.peek().map_or(NEVER, |Reverse((time, _))| *time));
        Some(at)
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles the events of a switch that are earlier than `limit`.
    pub(crate) fn visit_switch(&mut self, index: u32, limit: u64) {
        let node = self.hosts.len() as u32 + index;
        let begin = self.calendar.begin();
        let mail = self.calendar.take_mail(node);
        let mut order = std::mem::take(&mut self.order);
        Self::sort_mail(&mail, &mut order);
        let (first_port, ports) = (self.switches[index].first_port, self.switches[index].ports);
        let mut unread = order.iter();
        let time_of = |key: Option<&u64>| key.map_or(NEVER, |key| begin + (key >> 32));
        let mut arrival = time_of(unread.as_slice().first());
        let next = loop {
            let (due, port) = self.switches[index].agenda.first();
            let next = arrival.min(due);
            if next >= limit {
                break next;
            }
            self.now = Instant::from_ps(next);
            // What comes in goes before what goes out, and both before timers.
            if arrival <= due {
                let Some(packet) = unread.next().and_then(|key| mail.get(*key as u16 as usize)) else { break NEVER };
                arrival = time_of(unread.as_slice().first());
                let at = first_port + u32::from(packet.port);
                if self.enter(at, packet) {
                    self.arrive_at_switch(index, at, packet);
                }
            } else if port < ports {
                self.on_port_free(index, port, first_port + port);
            } else if let Some(at) = self.switches[index].fired() {
                self.on_pause_timer(at);
            }
        };
        if unread.as_slice().is_empty() {
            self.calendar.return_mail(node, mail);
        } else {
            let rest = unread.map(|&key| mail[key as u16 as usize]).collect();
            self.calendar.keep_mail(node, rest);
        }
        self.order = order;
        self.leave(node, next, limit);
    }

    /// A port whose node wanted to come back is free.
    #[inline]
    fn on_port_free(&mut self, switch: u32, port: u32, at: u32) {
        self.events += 1;
        self.serve(at);
        // The port counts as expected back until here, so that its time changes once.
        let state = &mut self.egress[at];
        let more = state.pause_due || state.waiting & !state.paused != 0;
        state.free_pending = more && state.busy_until > self.now;
        let next = if state.free_pending { state.busy_until.as_ps() } else { NEVER };
        self.switches[switch].agenda.set(port, next);
    }

    /// The port through which `switch` forwards a packet, numbered within the switch; `None` without a
    /// path.
    #[inline]
    fn route(&self, switch: u32, packet: &Descriptor) -> Option<u32> {
        let switch = &self.switches[switch];
        if packet.leaf == switch.leaf {
            return Some(u32::from(packet.exit));
        }
        self.forwarding.port(switch.id, packet.leaf, || ecmp_hash(packet.entropy, switch.salt))
    }

    /// A packet has entered `switch` through port `at`.
    #[inline]
    fn arrive_at_switch(&mut self, switch: u32, at: u32, packet: &Descriptor) {
        let Some(out) = self.route(switch, packet) else {
            return self.drop_packet(at, packet.slot, DropReason::NoRoute);
        };
        let out = self.switches[switch].first_port + out;
        let class = packet.class;
        let port = &self.egress[out];
        // Nothing waits and nothing is in the way: straight through.
        if port.busy_until <= self.now && port.waiting == 0 && port.paused & (1 << class) == 0 && !port.free_pending {
            return self.transmit(out, packet);
        }
        // A host that is cut off: to wait for it would stop the others.
        if port.paused == Egress::DOWN {
            return self.drop_packet(at, packet.slot, DropReason::LinkDown);
        }
        if let Err(reason) = self.admit(switch, at, out, u64::from(packet.frame), class) {
            return self.drop_packet(at, packet.slot, reason);
        }
        let queue = self.queue_of(switch, at, out, class);
        let line = &mut self.lines[out * self.classes + u32::from(class)];
        let mut flags = packet.flags;
        // Hosts send ECN-capable packets only where switches mark.
        if packet.is_markable() && self.extras[out].red.marks(line.bytes) {
            flags = packet.flags_when_marked();
            self.pool.get_mut(packet.slot).ecn = Ecn::Marked;
            self.tally.ecn_marks += 1;
        }
        let packet = Descriptor { flags, ..*packet };
        let slot = packet.slot;
        line.push(&mut self.queues, queue, &mut self.switches[switch].store, packet);
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
        let switch = port.owner;
        let state = &mut self.switches[switch];
        let line = &mut self.lines[at * self.classes + class];
        let packet = line.pop(&mut self.queues, &mut state.store);
        let ingress = state.first_port + u32::from(packet.port);
        if line.is_empty() {
            port.waiting &= !(1 << class);
        }
        let more = port.waiting & !port.paused != 0;
        line.prefetch_packet(&self.queues, &state.store);
        self.transmit(at, &packet);
        if more {
            self.return_when_free(at);
        }
        self.release(switch, ingress, u64::from(packet.frame), packet.class);
    }
}
