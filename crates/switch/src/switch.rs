//! Switches: forwarding, and queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use selvedge_telemetry::DropReason;
use selvedge_units::{Instant, SwitchId, mix64};

use crate::busy_ports::{BusyPorts, NEVER};
use crate::descriptor::Descriptor;
use crate::environment::{Environment, Note};
use crate::forward::{NextHops, UNKNOWN};
use crate::netrt::TIMER;
use crate::port::Egress;
use crate::switches::{Switches, Way};

/// Switch. Its ports, lines and queues are in its partition's tables.
pub struct Switch {
    /// Global number, as in `Routes`.
    pub id: SwitchId,
    /// Place in the tables.
    pub facts: SwitchFacts,
    /// Bytes in the shared buffer, without headroom.
    pub shared_used: u64,
    /// Bytes of buffer that all ports share.
    pub shared_total: u64,
    /// Bytes in the headroom of all inputs.
    pub headroom_used: u64,
    /// Bytes of headroom that all inputs share.
    pub headroom_total: u64,
    /// Number from which the order of simultaneous arrivals is drawn.
    pub ties: u64,
    /// Times at which ports will be free, for ports where something waits for that.
    pub busy_ports: BusyPorts,
    /// Time of the first timer.
    timer_at: u64,
    /// Timers: time, and the port whose pause the timer is for, or NetRT's marker.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Place of a switch in its partition's tables: what forwarding reads. Constant during a visit, so that visits hold a
/// copy.
#[derive(Clone, Copy)]
pub struct SwitchFacts {
    /// Number of the switch in its partition.
    pub switch: u32,
    /// Leaf number, if hosts are attached.
    pub leaf: u32,
    /// First port; the others follow.
    pub first_port: u32,
    /// Number of ports.
    pub ports: u32,
    /// Index of the switch's first route.
    pub routes: u32,
    /// Queues per line: with virtual output queues one per input, else one.
    pub per_line: u32,
    /// Mask that turns an input's number into that of its queue; zero where all inputs share one.
    pub input_mask: u32,
    /// Multiplier of ECMP's hash: odd, and different at every switch.
    pub salt: u64,
    /// Whether arrivals at some of the ports take the slow path ([`Ingress::slow_path`]).
    ///
    /// [`Ingress::slow_path`]: super::port::Ingress::slow_path
    pub slow_path: bool,
    /// Whether an input feeds one output at a time: a [`Crossbar`](super::crossbar::Crossbar).
    pub has_crossbar: bool,
    /// Whether more is to be considered than which class is the highest that may leave: a crossbar, or
    /// [shares](super::shares).
    pub has_arbiter: bool,
    /// Result of [`Switches::has_lasting_pauses`] for all ports.
    pub has_lasting_pauses: bool,
}

impl SwitchFacts {
    /// Returns the output port of a packet; see [`Switches::route`].
    #[inline(always)]
    pub fn route(&self, ways: NextHops<'_>, packet: &Descriptor) -> u32 {
        if packet.leaf == self.leaf {
            return u32::from(packet.exit);
        }
        ways.port(packet.leaf, ecmp_hash(packet.entropy, self.salt))
    }

    /// Returns the queue of packets of `class` that entered through `input`, a port number of the switch, for output
    /// `port`.
    #[inline(always)]
    pub fn queue(&self, port: &Egress, class: u8, input: u16) -> u32 {
        port.first_queue + u32::from(class) * self.per_line + (u32::from(input) & self.input_mask)
    }
}

/// Marker of no leaf number.
pub const NOT_A_LEAF: u32 = u32::MAX;

/// Returns a hash whose high bits choose among equal-cost paths: multiplication by the switch's own odd number
/// (multiply-shift, Dietzfelbinger et al.), so that switches choose independently.
#[inline(always)]
fn ecmp_hash(entropy: u32, salt: u64) -> u32 {
    (u64::from(entropy).wrapping_mul(salt) >> 32) as u32
}

/// Returns the rank of a packet that enters through `port` among those that arrive at a switch at `time`, in
/// picoseconds. A draw from the switch's `salt` and the time, so that no port is ahead of another in the long run; of
/// equals, the lower port comes first.
#[inline]
pub fn tie(salt: u64, time: u64, port: u64) -> u64 {
    mix64(mix64(salt ^ time) ^ port)
}

impl Switch {
    /// Creates a switch in its initial state; see [`Switch`] for the parameters.
    pub fn new(id: SwitchId, facts: SwitchFacts, shared: [u64; 2], ties: u64) -> Self {
        let [shared_total, headroom_total] = shared;
        Self {
            id,
            facts,
            shared_used: 0,
            shared_total,
            headroom_used: 0,
            headroom_total,
            ties,
            busy_ports: BusyPorts::new(facts.ports),
            timer_at: NEVER,
            timers: BinaryHeap::new(),
        }
    }

    /// Returns the time of the first timer.
    pub fn timer_at(&self) -> u64 {
        self.timer_at
    }

    /// Returns the free bytes of the shared buffer.
    pub fn shared_free(&self) -> u64 {
        self.shared_total.saturating_sub(self.shared_used)
    }

    /// Returns the switch's ports, in its partition's numbering.
    #[inline]
    pub fn port_range(&self) -> Range<u32> {
        self.facts.first_port..self.facts.first_port + self.facts.ports
    }

    /// Returns the time of the next event other than an arrival.
    #[inline]
    pub fn due(&self) -> u64 {
        self.busy_ports.first().min(self.timer_at)
    }

    /// Removes the first timer; returns the port of a pause, or NetRT's marker.
    fn fired(&mut self) -> Option<u32> {
        let Reverse((_, at)) = self.timers.pop()?;
        self.timer_at = self.timers.peek().map_or(NEVER, |Reverse((time, _))| *time);
        Some(at)
    }
}

impl Switches {
    /// Sets a timer of `switch`: for the pause of port `ports`, or NetRT's ([`TIMER`]).
    pub fn arm(&mut self, switch: u32, ports: u32, time: u64) {
        let state = &mut self.switches[switch];
        state.timers.push(Reverse((time, ports)));
        state.timer_at = state.timer_at.min(time);
        // A timer within the present visit fires during the visit.
        self.stop = self.stop.min(time.saturating_add(1));
    }

    /// Handles the first timer of `switch`.
    #[cold]
    pub fn fire<E: Environment>(&mut self, env: &mut E, switch: u32) {
        let state = &mut self.switches[switch];
        self.now = Instant::from_ps(state.timer_at);
        match state.fired() {
            Some(TIMER) => self.wake_tor(env, switch),
            Some(at) => {
                self.on_pause_timer(env, at);
            }
            None => {}
        }
    }

    /// Handles the arrival of a packet that leaves through the port numbered `out`.
    #[inline(always)]
    pub fn on_arrival<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, packet: &Descriptor, out: u16) {
        let at = facts.first_port + u32::from(packet.port);
        if E::RECORDED {
            env.note(self, Note::Arrived { at, slot: packet.slot });
        }
        if packet.takes_slow_path() {
            if self.enter_slow_path(env, at, packet) {
                self.forward_to(env, facts, at, packet, self.route(facts, packet));
            }
        } else if !facts.slow_path || self.enter_slow_path(env, at, packet) {
            self.forward_to(env, facts, at, packet, u32::from(out));
        }
    }

    /// Forwards a packet that entered through port `at`.
    pub fn forward<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, packet: &Descriptor) {
        let facts = self.switches[switch].facts;
        self.forward_to(env, &facts, at, packet, self.route(&facts, packet));
    }

    /// Forwards a packet that entered through port `at` and whose [`route`](Self::route) is `out`.
    #[inline(always)]
    fn forward_to<E: Environment>(
        &mut self,
        env: &mut E,
        facts: &SwitchFacts,
        at: u32,
        packet: &Descriptor,
        mut out: u32,
    ) {
        if out == UNKNOWN {
            match self.balance(env, facts.switch, packet) {
                Some(port) => out = port,
                None => return self.drop_packet(env, at, packet.slot, DropReason::NoRoute),
            }
        }
        let out = facts.first_port + out;
        let port = &self.egress[out];
        // Nothing waits, and nothing forbids to send: the packet goes straight through.
        let is_clear = port.busy_until <= self.now && port.is_clear();
        if is_clear && (!facts.has_crossbar || self.passes_crossbar(at, out, packet.frame)) {
            self.transmit(env, out, packet);
        } else {
            self.line_up(env, facts, at, out, packet);
        }
    }

    /// Forwards a packet to a host of this switch; the packet has a place in the buffer, but stands in no line yet.
    pub fn forward_buffered<E: Environment>(&mut self, env: &mut E, switch: u32, at: u32, packet: &Descriptor) {
        let facts = self.switches[switch].facts;
        let out = facts.first_port + u32::from(packet.exit);
        let port = &self.egress[out];
        if port.paused == Egress::DOWN {
            self.release(env, switch, at, u64::from(packet.frame), packet.class);
            self.drop_packet(env, at, packet.slot, DropReason::LinkDown);
        } else if port.busy_until <= self.now && port.is_clear() {
            self.release(env, switch, at, u64::from(packet.frame), packet.class);
            self.transmit(env, out, packet);
        } else if let Some(&rules) = self.params.queueing.fair_for(packet.class)
            && !self.lines[self.line_of(out, packet.class)].is_empty()
        {
            self.release(env, switch, at, u64::from(packet.frame), packet.class);
            self.join_flow(env, Way { switch, at, out }, packet, &rules);
        } else {
            self.wait(env, &facts, at, out, packet);
        }
    }

    /// Returns the number of the port through which a switch forwards a packet; [`UNKNOWN`] without a path, or where
    /// its [`Balancer`](super::balancing::Balancer) chooses among several.
    #[inline(always)]
    pub fn route(&self, facts: &SwitchFacts, packet: &Descriptor) -> u32 {
        facts.route(self.forwarding.ways_of(facts.routes), packet)
    }

    /// Handles a packet that came through port `at` and has to wait for port `out`, or whose output is down.
    #[inline(always)]
    pub fn line_up<E: Environment>(
        &mut self,
        env: &mut E,
        facts: &SwitchFacts,
        at: u32,
        out: u32,
        packet: &Descriptor,
    ) {
        // To wait for an output that is down would stop packets for others.
        if self.egress[out].paused == Egress::DOWN {
            return self.drop_packet(env, at, packet.slot, DropReason::LinkDown);
        }
        let way = Way { switch: facts.switch, at, out };
        if let Err(reason) = self.find_room(env, way, packet) {
            return self.refuse(env, way, packet, reason);
        }
        self.wait(env, facts, at, out, packet);
    }

    /// Admits a packet that will wait for its output to the buffer, or returns the reason for a drop.
    #[inline(always)]
    pub fn find_room<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor) -> Result<(), DropReason> {
        let frame = u64::from(packet.frame);
        if !self.lines[self.line_of(way.out, packet.class)].has_room_for(frame) {
            return Err(DropReason::BufferFull);
        }
        self.admit(env, way, frame, packet.class)
    }

    /// Adds a packet that came through port `at`, and has been admitted, to the queue for port `out`.
    #[inline(always)]
    pub fn wait<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32, out: u32, packet: &Descriptor) {
        let class = packet.class;
        let line = self.line_of(out, class);
        let queue = facts.queue(&self.egress[out], class, packet.port);
        let line = &mut self.lines[line];
        let flags = self.extras[out].red.mark(packet, line.bytes, || env.mark(packet.slot));
        line.push(&mut self.queues, queue, &mut self.store, packet, flags);
        if E::RECORDED {
            env.note(self, Note::Queued { at, out, slot: packet.slot });
        }
        let port = &mut self.egress[out];
        port.waiting |= 1 << class;
        if facts.has_crossbar {
            return self.wait_for_crossbar(env, facts, out);
        }
        if port.free_pending {
            return;
        }
        if port.busy_until > self.now {
            port.free_pending = true;
            self.switches[facts.switch].busy_ports.push(out - facts.first_port, port.busy_until.as_ps());
        } else if port.ready() != 0 {
            self.serve(env, out);
        }
    }

    /// Adds an admitted packet to the queue for its output, like [`Switches::wait`].
    pub fn wait_there<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor) {
        let facts = self.switches[way.switch].facts;
        self.wait(env, &facts, way.at, way.out, packet);
    }

    /// Handles that port `at`, for which something waited, is free.
    #[inline(always)]
    pub fn on_port_free<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        let port = &self.egress[at];
        if facts.has_arbiter && !(port.pause_due() && port.busy_until <= self.now) {
            return self.arbitrate(env, facts, at);
        }
        if port.pause_due() {
            self.events += 1;
            self.send_pause(env, at);
        } else {
            self.serve_switch(env, facts, at);
        }
        self.expect_again(facts, at);
    }

    /// Handles that port `at` is free like [`Switches::on_port_free`], where an arbiter chooses what leaves.
    #[inline(never)]
    fn arbitrate<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        if facts.has_crossbar {
            return self.look_through_crossbar(env, facts, at);
        }
        self.serve_by_share(env, facts, at);
        self.expect_again(facts, at);
    }

    /// Schedules the next return to port `at`, which has been marked as expected until here, so that it is inserted
    /// once.
    #[inline(always)]
    fn expect_again(&mut self, facts: &SwitchFacts, at: u32) {
        let port = &mut self.egress[at];
        port.free_pending = port.busy_until > self.now && (port.pause_due() || port.waiting & !port.paused != 0);
        if port.free_pending {
            self.switches[facts.switch].busy_ports.push(at - facts.first_port, port.busy_until.as_ps());
        }
    }

    /// Sends the next packet of a free switch port: of the highest class that may leave, round-robin over inputs.
    #[inline(always)]
    pub fn serve_switch<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        let ready = self.egress[at].ready();
        if ready != 0 {
            self.serve_class(env, facts, at, ready.ilog2() as u8);
        }
    }

    /// Sends the next packet of `class`, of which one waits for port `at`.
    #[inline(always)]
    pub fn serve_class<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32, class: u8) {
        self.events += 1;
        let port = &mut self.egress[at];
        let line = at * self.params.classes + u32::from(class);
        let line = &mut self.lines[line];
        let packet = line.pop(&mut self.queues, &mut self.store);
        let ingress = facts.first_port + u32::from(packet.port);
        if line.is_empty() {
            port.waiting &= !(1 << class);
        }
        self.transmit(env, at, &packet);
        self.release_sent(env, facts.switch, ingress, at, u64::from(packet.frame), packet.class);
    }

    /// Sends the next packet of a free switch port for which no return was scheduled, and schedules a return if more
    /// packets wait.
    #[cold]
    #[inline(never)]
    pub fn serve_unexpected<E: Environment>(&mut self, env: &mut E, at: u32) {
        let port = &mut self.egress[at];
        let (switch, before) = (port.owner, port.frames);
        port.free_pending = true;
        let facts = self.switches[switch].facts;
        if facts.has_crossbar {
            self.switches[switch].busy_ports.put_in_order();
            return self.look_through_crossbar(env, &facts, at);
        }
        if facts.has_arbiter {
            self.serve_by_share(env, &facts, at);
        } else {
            self.serve_switch(env, &facts, at);
        }
        let port = &mut self.egress[at];
        port.free_pending = false;
        if port.frames != before && (port.pause_due() || port.waiting & !port.paused != 0) {
            self.return_when_free(at);
        }
    }
}
