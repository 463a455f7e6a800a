//! Switches: forwarding, and queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use selvedge_telemetry::DropReason;
use selvedge_units::{Instant, SwitchId};

use super::buffer::Queueing;
use super::descriptor::Descriptor;
use super::forward::{NextHops, UNKNOWN};
use super::netrt::TIMER;
use super::port::Egress;
use crate::kernel::busy_ports::{BusyPorts, NEVER};
use crate::kernel::order::Order;
use crate::kernel::partition::Partition;
use crate::kernel::prefetch;

/// Switch. Its ports, lines and queues are in its partition's tables.
pub(crate) struct Switch {
    /// Global number, as in `Routes`.
    pub(crate) id: SwitchId,
    pub(crate) facts: SwitchFacts,
    /// Bytes in the shared buffer, without headroom.
    pub(crate) shared_used: u64,
    /// Bytes of buffer that all ports share.
    pub(crate) shared_total: u64,
    /// Bytes in the headroom of all inputs.
    pub(crate) headroom_used: u64,
    /// Bytes of headroom that all inputs share.
    pub(crate) headroom_total: u64,
    /// Number from which the order of simultaneous arrivals is drawn.
    pub(crate) ties: u64,
    /// Times at which ports will be free, for ports where something waits for that.
    pub(crate) busy_ports: BusyPorts,
    /// Time of the first timer.
    timer_at: u64,
    /// Timers: time, and the port whose pause the timer is for, or NetRT's marker.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Place of a switch in its partition's tables: what forwarding reads. Constant during a visit, so that visits hold a
/// copy.
#[derive(Clone, Copy)]
pub(crate) struct SwitchFacts {
    /// Number of the switch in its partition.
    pub(crate) switch: u32,
    /// Leaf number, if hosts are attached.
    pub(crate) leaf: u32,
    pub(crate) first_port: u32,
    /// Number of ports.
    pub(crate) ports: u32,
    /// Index of the switch's first route.
    pub(crate) routes: u32,
    /// Queues per line: with virtual output queues one per input, else one.
    pub(crate) per_line: u32,
    /// Mask that turns an input's number into that of its queue; zero where all inputs share one.
    pub(crate) input_mask: u32,
    /// Multiplier of ECMP's hash: odd, and different at every switch.
    pub(crate) salt: u64,
    /// Whether arrivals at some of the ports take the slow path ([`Ingress::slow_path`]).
    ///
    /// [`Ingress::slow_path`]: super::port::Ingress::slow_path
    pub(crate) slow_path: bool,
    /// Whether an input feeds one output at a time: a [`Crossbar`](super::crossbar::Crossbar).
    pub(crate) has_crossbar: bool,
    /// Result of [`Partition::has_lasting_pauses`] for all ports.
    pub(crate) has_lasting_pauses: bool,
}

impl SwitchFacts {
    /// Returns the output port of a packet; see [`Partition::route`].
    #[inline(always)]
    pub(super) fn route(&self, ways: NextHops<'_>, packet: &Descriptor) -> u32 {
        if packet.leaf == self.leaf {
            return u32::from(packet.exit);
        }
        ways.port(packet.leaf, ecmp_hash(packet.entropy, self.salt))
    }

    /// Returns the queue of packets of `class` that entered through `input`, a port number of the switch, for output
    /// `port`.
    #[inline(always)]
    pub(crate) fn queue(&self, port: &Egress, class: u8, input: u16) -> u32 {
        port.first_queue + u32::from(class) * self.per_line + (u32::from(input) & self.input_mask)
    }
}

/// Marker of no leaf number.
pub(crate) const NOT_A_LEAF: u32 = u32::MAX;

/// Returns a hash whose high bits choose among equal-cost paths: multiplication by the switch's own odd number
/// (multiply-shift, Dietzfelbinger et al.), so that switches choose independently.
#[inline(always)]
fn ecmp_hash(entropy: u32, salt: u64) -> u32 {
    (u64::from(entropy).wrapping_mul(salt) >> 32) as u32
}

impl Switch {
    /// Creates a switch in its initial state; see [`Switch`] for the parameters.
    pub(crate) fn new(id: SwitchId, facts: SwitchFacts, shared: [u64; 2], ties: u64) -> Self {
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
    pub(super) fn timer_at(&self) -> u64 {
        self.timer_at
    }

    /// Returns the free bytes of the shared buffer.
    pub(crate) fn shared_free(&self) -> u64 {
        self.shared_total.saturating_sub(self.shared_used)
    }

    /// Returns the switch's ports, in its partition's numbering.
    #[inline]
    pub(crate) fn port_range(&self) -> Range<u32> {
        self.facts.first_port..self.facts.first_port + self.facts.ports
    }

    /// Returns the time of the next event other than an arrival.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.busy_ports.first().min(self.timer_at)
    }

    /// Removes the first timer; returns the port of a pause, or NetRT's marker.
    fn fired(&mut self) -> Option<u32> {
        let Reverse((_, at)) = self.timers.pop()?;
        self.timer_at = self.timers.peek().map_or(NEVER, |Reverse((time, _))| *time);
        Some(at)
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles the events of a switch that are earlier than `limit`.
    ///
    /// Arrivals go before departures at the same time, and both before timers.
    #[inline(never)]
    pub(crate) fn visit_switch(&mut self, index: u32, limit: u64) {
        let node = self.hosts.len() as u32 + index;
        let inbox = self.calendar.take_inbox(node);
        let mut order = self.order.take().unwrap_or_default();
        let facts = self.switches[index].facts;
        if self.may_be_independent(&facts, limit) && self.visit_by_output(&facts, &inbox, &mut order, limit) {
            self.calendar.return_inbox(inbox);
            self.order = Some(order);
            return self.leave(node, self.switches[index].due(), limit);
        }
        self.prefetch_queue.fetch_some();
        let window = self.calendar.end() - self.calendar.begin();
        let ways = self.forwarding.ways_of(facts.routes);
        // Packets on the slow path are routed later.
        let way = |packet: &Descriptor| {
            if packet.takes_slow_path() {
                self.prefetch_pause(facts.first_port + u32::from(packet.port), packet.slot);
                UNKNOWN
            } else {
                facts.route(ways, packet)
            }
        };
        if self.queues_exceed_cache() {
            let (first, per_port) = (self.egress[facts.first_port].first_queue, self.classes * facts.per_line);
            order.sort(&inbox, window, |packet| {
                let out = way(packet);
                // Queue of the first class: mostly there is no other.
                let queue = first.wrapping_add(out * per_port).wrapping_add(u32::from(packet.port) & facts.input_mask);
                prefetch(&self.queues, queue);
                out as u16
            });
        } else {
            order.sort(&inbox, window, |packet| way(packet) as u16);
        }
        if self.fabric.inputs_compete {
            order.break_ties(self.ties(index));
        }
        self.prefetch_queue.fetch_some();
        let (read, arrival) = self.visit_in_order(&facts, &inbox, &order, limit);
        let mut next = self.switches[index].due();
        if read < inbox.len() {
            next = next.min(arrival);
            self.calendar.keep_rest(node, &inbox, (read..inbox.len()).map(|n| order.key(n).packet(&inbox)));
        }
        self.calendar.return_inbox(inbox);
        self.order = Some(order);
        self.leave(node, next, limit);
    }

    /// Handles the events before `limit` in order of time; returns how many packets have been read, and when the next
    /// one arrives.
    #[inline(never)]
    pub(super) fn visit_in_order(
        &mut self,
        facts: &SwitchFacts,
        inbox: &[Descriptor],
        order: &Order,
        limit: u64,
    ) -> (usize, u64) {
        let begin = self.calendar.begin();
        let index = facts.switch;
        self.switches[index].busy_ports.put_in_order();
        self.switches[index].busy_ports.change_places(&mut self.scratch);
        let takes_turns = self.may_interleave(facts);
        let mut read = 0;
        let mut arrival = begin + order.key(0).time();
        loop {
            self.stop = limit.min(self.switches[index].timer_at.saturating_add(1));
            loop {
                if takes_turns {
                    self.prefetch_queue.fetch_some();
                    read = self.run_interleaved(facts, inbox, order, read);
                    arrival = begin + order.key(read).time();
                }
                let due = self.switches[index].busy_ports.first();
                if arrival <= due {
                    if arrival >= self.stop {
                        break;
                    }
                    self.now = Instant::from_ps(arrival);
                    let key = order.key(read);
                    read += 1;
                    arrival = begin + order.key(read).time();
                    self.on_arrival(facts, key.packet(inbox), order.output(key));
                } else {
                    if due >= self.stop {
                        break;
                    }
                    self.now = Instant::from_ps(due);
                    let port = self.switches[index].busy_ports.pop();
                    self.on_port_free(facts, facts.first_port + port);
                }
            }
            if self.switches[index].timer_at >= limit {
                break;
            }
            self.fire(index);
        }
        self.switches[index].busy_ports.change_places(&mut self.scratch);
        self.events += read as u64;
        (read, arrival)
    }

    /// Sets a timer of `switch`: for the pause of port `ports`, or NetRT's ([`TIMER`]).
    pub(crate) fn arm(&mut self, switch: u32, ports: u32, time: u64) {
        let state = &mut self.switches[switch];
        state.timers.push(Reverse((time, ports)));
        state.timer_at = state.timer_at.min(time);
        // A timer within the present visit fires during the visit.
        self.stop = self.stop.min(time.saturating_add(1));
    }

    /// Handles the first timer of `switch`.
    #[cold]
    fn fire(&mut self, switch: u32) {
        let state = &mut self.switches[switch];
        self.now = Instant::from_ps(state.timer_at);
        match state.fired() {
            Some(TIMER) => self.wake_tor(switch),
            Some(at) => self.on_pause_timer(at),
            None => {}
        }
    }

    /// Handles the arrival of a packet that leaves through the port numbered `out`.
    #[inline(always)]
    fn on_arrival(&mut self, facts: &SwitchFacts, packet: &Descriptor, out: u16) {
        let at = facts.first_port + u32::from(packet.port);
        if RECORDED {
            self.note_arrived(at, packet.slot);
        }
        if packet.takes_slow_path() {
            if self.enter_slow_path(at, packet) {
                self.forward_to(facts, at, packet, self.route(facts, packet));
            }
        } else if !facts.slow_path || self.enter_slow_path(at, packet) {
            self.forward_to(facts, at, packet, u32::from(out));
        }
    }

    /// Forwards a packet that entered through port `at`.
    pub(crate) fn forward(&mut self, switch: u32, at: u32, packet: &Descriptor) {
        let facts = self.switches[switch].facts;
        self.forward_to(&facts, at, packet, self.route(&facts, packet));
    }

    /// Forwards a packet that entered through port `at` and whose [`route`](Self::route) is `out`.
    #[inline(always)]
    fn forward_to(&mut self, facts: &SwitchFacts, at: u32, packet: &Descriptor, mut out: u32) {
        if out == UNKNOWN {
            match self.balance(facts.switch, packet) {
                Some(port) => out = port,
                None => return self.drop_packet(at, packet.slot, DropReason::NoRoute),
            }
        }
        let out = facts.first_port + out;
        let port = &self.egress[out];
        // Nothing waits, and nothing forbids to send: the packet goes straight through.
        let is_clear = port.busy_until <= self.now && port.is_clear();
        if is_clear && (!facts.has_crossbar || self.passes_crossbar(at, out, packet.frame)) {
            self.transmit(out, packet);
        } else {
            self.line_up(facts, at, out, packet);
        }
    }

    /// Forwards a packet to a host of this switch; the packet has a place in the buffer, but stands in no line yet.
    pub(crate) fn forward_buffered(&mut self, switch: u32, at: u32, packet: &Descriptor) {
        let facts = self.switches[switch].facts;
        let out = facts.first_port + u32::from(packet.exit);
        let port = &self.egress[out];
        if port.paused == Egress::DOWN {
            self.release(switch, at, u64::from(packet.frame), packet.class);
            self.drop_packet(at, packet.slot, DropReason::LinkDown);
        } else if port.busy_until <= self.now && port.is_clear() {
            self.release(switch, at, u64::from(packet.frame), packet.class);
            self.transmit(out, packet);
        } else if let Queueing::Fair(rules) = self.fabric.queueing
            && !self.lines[self.line_of(out, packet.class)].is_empty()
        {
            self.release(switch, at, u64::from(packet.frame), packet.class);
            self.join_flow(switch, at, out, packet, &rules);
        } else {
            self.wait(&facts, at, out, packet);
        }
    }

    /// Returns the number of the port through which a switch forwards a packet; [`UNKNOWN`] without a path, or where
    /// its [`Balancer`](super::balancing::Balancer) chooses among several.
    #[inline(always)]
    pub(super) fn route(&self, facts: &SwitchFacts, packet: &Descriptor) -> u32 {
        facts.route(self.forwarding.ways_of(facts.routes), packet)
    }

    /// Handles a packet that came through port `at` and has to wait for port `out`, or whose output is down.
    #[inline(always)]
    pub(super) fn line_up(&mut self, facts: &SwitchFacts, at: u32, out: u32, packet: &Descriptor) {
        // To wait for an output that is down would stop packets for others.
        if self.egress[out].paused == Egress::DOWN {
            return self.drop_packet(at, packet.slot, DropReason::LinkDown);
        }
        if let Err(reason) = self.find_room(facts.switch, at, out, packet) {
            return self.refuse(facts.switch, at, out, packet, reason);
        }
        self.wait(facts, at, out, packet);
    }

    /// Admits a packet that came through port `at` and will wait for port `out` to the buffer, or returns the reason
    /// for a drop.
    #[inline(always)]
    pub(super) fn find_room(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor) -> Result<(), DropReason> {
        let frame = u64::from(packet.frame);
        if !self.lines[self.line_of(out, packet.class)].has_room_for(frame) {
            return Err(DropReason::BufferFull);
        }
        self.admit(switch, at, out, frame, packet.class)
    }

    /// Adds a packet that came through port `at`, and has been admitted, to the queue for port `out`.
    #[inline(always)]
    pub(crate) fn wait(&mut self, facts: &SwitchFacts, at: u32, out: u32, packet: &Descriptor) {
        let class = packet.class;
        let line = self.line_of(out, class);
        let queue = facts.queue(&self.egress[out], class, packet.port);
        let line = &mut self.lines[line];
        let flags = self.extras[out].red.mark(packet, line.bytes, &mut self.pool, &mut self.tally);
        line.push(&mut self.queues, queue, &mut self.store, packet, flags);
        if RECORDED {
            self.note_queued(at, out, packet.slot);
        }
        let port = &mut self.egress[out];
        port.waiting |= 1 << class;
        if facts.has_crossbar {
            return self.wait_for_crossbar(facts, out);
        }
        if port.free_pending {
            return;
        }
        if port.busy_until > self.now {
            port.free_pending = true;
            self.switches[facts.switch].busy_ports.push(out - facts.first_port, port.busy_until.as_ps());
        } else if port.ready() != 0 {
            self.serve(out);
        }
    }

    /// Adds an admitted packet to the queue for port `out` of the switch numbered `switch`, like [`Partition::wait`].
    pub(crate) fn wait_there(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor) {
        let facts = self.switches[switch].facts;
        self.wait(&facts, at, out, packet);
    }

    /// Handles that port `at`, for which something waited, is free.
    #[inline(always)]
    fn on_port_free(&mut self, facts: &SwitchFacts, at: u32) {
        let port = &self.egress[at];
        if facts.has_crossbar && !(port.pause_due() && port.busy_until <= self.now) {
            return self.look_through_crossbar(facts, at);
        }
        if port.pause_due() {
            self.events += 1;
            self.send_pause(at);
        } else {
            self.serve_switch(facts, at);
        }
        // The port was marked as expected until here, so that it is inserted once.
        let port = &mut self.egress[at];
        port.free_pending = port.busy_until > self.now && (port.pause_due() || port.waiting & !port.paused != 0);
        if port.free_pending {
            self.switches[facts.switch].busy_ports.push(at - facts.first_port, port.busy_until.as_ps());
        }
    }

    /// Sends the next packet of a free switch port: of the highest class that may leave, round-robin over inputs.
    #[inline(always)]
    pub(super) fn serve_switch(&mut self, facts: &SwitchFacts, at: u32) {
        let ready = self.egress[at].ready();
        if ready != 0 {
            self.serve_class(facts, at, ready.ilog2() as u8);
        }
    }

    /// Sends the next packet of `class`, of which one waits for port `at`.
    #[inline(always)]
    pub(super) fn serve_class(&mut self, facts: &SwitchFacts, at: u32, class: u8) {
        self.events += 1;
        let port = &mut self.egress[at];
        let line = at * self.classes + u32::from(class);
        let line = &mut self.lines[line];
        let packet = line.pop(&mut self.queues, &mut self.store);
        let ingress = facts.first_port + u32::from(packet.port);
        if line.is_empty() {
            port.waiting &= !(1 << class);
        }
        self.transmit(at, &packet);
        self.release_sent(facts.switch, ingress, at, u64::from(packet.frame), packet.class);
    }

    /// Sends the next packet of a free switch port for which no return was scheduled, and schedules a return if more
    /// packets wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn serve_unexpected(&mut self, at: u32) {
        let port = &mut self.egress[at];
        let (switch, before) = (port.owner, port.frames);
        port.free_pending = true;
        let facts = self.switches[switch].facts;
        if facts.has_crossbar {
            self.switches[switch].busy_ports.put_in_order();
            return self.look_through_crossbar(&facts, at);
        }
        self.serve_switch(&facts, at);
        let port = &mut self.egress[at];
        port.free_pending = false;
        if port.frames != before && (port.pause_due() || port.waiting & !port.paused != 0) {
            self.return_when_free(at);
        }
    }
}
