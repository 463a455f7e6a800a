//! Visits to a switch: its events of a whole window.

use selvedge_prefetch::prefetch;
use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::forward::UNKNOWN;
use selvedge_switch::switch::SwitchFacts;
use selvedge_units::Instant;

use crate::kernel::nodes::Nodes;
use crate::net::order::Order;
use crate::net::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles the events of a switch that are earlier than `limit`.
    ///
    /// Arrivals go before departures at the same time, and both before timers.
    #[inline(never)]
    pub(crate) fn visit_switch(&mut self, index: u32, limit: u64) {
        let node = self.edge.hosts.len() as u32 + index;
        let inbox = self.edge.calendar.take_inbox(node);
        let mut order = self.order.take().unwrap_or_default();
        let facts = self.net.switches[index].facts;
        if self.may_be_independent(&facts, limit) && self.visit_by_output(&facts, &inbox, &mut order, limit) {
            self.edge.calendar.return_inbox(inbox);
            self.order = Some(order);
            return self.leave(node, self.net.switches[index].due(), limit);
        }
        self.prefetch_queue.fetch_some();
        let window = self.edge.calendar.end() - self.edge.calendar.begin();
        let ways = self.net.forwarding.ways_of(facts.routes);
        // Packets on the slow path are routed later.
        let way = |packet: &Descriptor| {
            if packet.takes_slow_path() {
                self.edge.pool.prefetch(packet.slot);
                self.net.prefetch_pause(facts.first_port + u32::from(packet.port));
                UNKNOWN
            } else {
                facts.route(ways, packet)
            }
        };
        if self.queues_exceed_cache() {
            let (first, per_port) =
                (self.net.egress[facts.first_port].first_queue, self.net.params.classes * facts.per_line);
            order.sort(&inbox, window, |packet| {
                let out = way(packet);
                // Queue of the first class: mostly there is no other.
                let queue = first.wrapping_add(out * per_port).wrapping_add(u32::from(packet.port) & facts.input_mask);
                prefetch(&self.net.queues, queue);
                out as u16
            });
        } else {
            order.sort(&inbox, window, |packet| way(packet) as u16);
        }
        if self.net.params.inputs_compete {
            order.break_ties(self.ties(index));
        }
        self.prefetch_queue.fetch_some();
        let (read, arrival) = self.visit_in_order(&facts, &inbox, &order, limit);
        let mut next = self.net.switches[index].due();
        if read < inbox.len() {
            next = next.min(arrival);
            self.edge.calendar.keep_rest(node, &inbox, (read..inbox.len()).map(|n| order.key(n).packet(&inbox)));
        }
        self.edge.calendar.return_inbox(inbox);
        self.order = Some(order);
        self.leave(node, next, limit);
    }

    /// Handles the events before `limit` in order of time; returns how many packets have been read, and when the next
    /// one arrives.
    #[inline(never)]
    pub(crate) fn visit_in_order(
        &mut self,
        facts: &SwitchFacts,
        inbox: &[Descriptor],
        order: &Order,
        limit: u64,
    ) -> (usize, u64) {
        let begin = self.edge.calendar.begin();
        let index = facts.switch;
        self.net.switches[index].busy_ports.put_in_order();
        self.net.switches[index].busy_ports.change_places(&mut self.net.scratch);
        let takes_turns = self.may_interleave(facts);
        let mut read = 0;
        let mut arrival = begin + order.key(0).time();
        loop {
            self.net.stop = limit.min(self.net.switches[index].timer_at().saturating_add(1));
            loop {
                if takes_turns {
                    self.prefetch_queue.fetch_some();
                    read = self.run_interleaved(facts, inbox, order, read);
                    arrival = begin + order.key(read).time();
                }
                let due = self.net.switches[index].busy_ports.first();
                if arrival <= due {
                    if arrival >= self.net.stop {
                        break;
                    }
                    self.net.now = Instant::from_ps(arrival);
                    let key = order.key(read);
                    read += 1;
                    arrival = begin + order.key(read).time();
                    self.net.on_arrival(&mut self.edge, facts, key.packet(inbox), order.output(key));
                } else {
                    if due >= self.net.stop {
                        break;
                    }
                    self.net.now = Instant::from_ps(due);
                    let port = self.net.switches[index].busy_ports.pop();
                    self.net.on_port_free(&mut self.edge, facts, facts.first_port + port);
                }
            }
            if self.net.switches[index].timer_at() >= limit {
                break;
            }
            self.net.fire(&mut self.edge, index);
        }
        self.net.switches[index].busy_ports.change_places(&mut self.net.scratch);
        self.net.events += read as u64;
        (read, arrival)
    }
}
