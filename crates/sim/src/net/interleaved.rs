//! Event loop of a switch in order of time, for its three frequent kinds of events.
//!
//! Where an input may fill up, or its pause may end, ports affect each other, and their events are handled in order of
//! time. Nearly all events are packets that pass, packets that begin to wait, and packets that leave. These three are
//! handled here as long as they have no consequence elsewhere; every other event is left to its own function. Results
//! are byte-identical.

use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::forward::UNKNOWN;
use selvedge_switch::port::Egress;
use selvedge_switch::switch::SwitchFacts;

use crate::net::edge::mark;
use crate::net::order::Order;
use crate::net::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Returns whether [turns](Self::run_interleaved) are possible at a switch: where nothing is recorded or counted by
    /// class.
    pub(super) fn may_interleave(&self, facts: &SwitchFacts) -> bool {
        !RECORDED
            && self.net.params.classes == 1
            && self.net.params.accounting.is_plain
            && !facts.slow_path
            && !facts.has_arbiter
    }

    /// Handles the events at a switch before `stop`, where `read` packets of its inbox have been read, up to the first
    /// rare event. Returns the number of packets that have been read then.
    #[inline(never)]
    pub(super) fn run_interleaved(
        &mut self,
        facts: &SwitchFacts,
        inbox: &[Descriptor],
        order: &Order,
        read: usize,
    ) -> usize {
        let mut keys = order.keys_from(read);
        let (begin, stop, gap) = (self.edge.calendar.begin(), self.net.stop, self.net.params.gap);
        let busy_ports = &mut self.net.switches[facts.switch].busy_ports;
        let ports = facts.ports;
        let outputs = self.net.egress.part_mut(facts.first_port, ports);
        let inputs = self.net.ingress.part_mut(facts.first_port, ports);
        let lines = self.net.lines.part_mut(facts.first_port, ports);
        let extras = self.net.extras.part_mut(facts.first_port, ports);
        let (queues, store, calendar) = (&mut self.net.queues, &mut self.net.store, &mut self.edge.calendar);
        let (pool, tally) = (&mut self.edge.pool, &mut self.edge.tally);
        let mut send = |port: &mut Egress, begins: u64, packet: &Descriptor| {
            let frame = u64::from(packet.frame);
            let ends = begins + (frame + gap) * port.ps_per_byte();
            port.add_frame(ends, frame);
            calendar.send(port.peer_node, ends + port.delay.as_ps(), port.peer_port, packet);
            ends
        };
        let prefetch_queue = &mut self.prefetch_queue;
        let mut served = 0;
        // Arrivals until then come next: before a port is free, and before the end of the loop.
        let mut until = busy_ports.first().min(stop - 1);
        loop {
            let key = keys.first();
            let arrival = begin + key.time();
            if arrival <= until {
                let out = usize::from(order.output(key));
                if out == UNKNOWN as usize {
                    break;
                }
                let (packet, port) = (key.packet(inbox), &mut outputs[out]);
                let busy_until = port.busy_until.as_ps();
                if busy_until <= arrival && port.is_plainly_clear() {
                    send(port, arrival, packet);
                } else {
                    let input = &mut inputs[usize::from(packet.port)];
                    let buffered = input.buffered + u64::from(packet.frame);
                    if buffered > input.slow_above || port.paused == Egress::DOWN {
                        break;
                    }
                    if busy_until <= arrival && port.takes_slow_path() && port.is_clear() {
                        break;
                    }
                    let begins = !port.free_pending && busy_until <= arrival && port.paused == 0;
                    debug_assert!(!begins, "a port that is free, and may send, keeps nobody waiting");
                    input.buffered = buffered;
                    let line = &mut lines[out];
                    let flags = extras[out].red.mark(packet, line.bytes, || mark(pool, tally, packet.slot));
                    let queue = facts.queue(port, 0, packet.port);
                    line.push(queues, queue, store, packet, flags);
                    port.waiting = 1;
                    if !port.free_pending && busy_until > arrival {
                        port.free_pending = true;
                        busy_ports.push(out as u32, busy_until);
                        until = until.min(busy_until);
                    }
                }
                keys.advance();
            } else {
                let due = busy_ports.first();
                if due >= stop {
                    break;
                }
                let out = busy_ports.first_port() as usize;
                let port = &mut outputs[out];
                if !port.is_plainly_due() {
                    break;
                }
                let line = &mut lines[out];
                let next = line.next(queues);
                let packet = store.at(next.place);
                let input = &mut inputs[usize::from(packet.port)];
                let buffered = input.buffered - u64::from(packet.frame);
                if buffered < input.slow_below {
                    break;
                }
                input.buffered = buffered;
                let ends = send(port, due, packet);
                line.remove_next(next, queues, store);
                served += 1;
                if line.is_empty() {
                    port.waiting = 0;
                    port.free_pending = false;
                    busy_ports.pop();
                    prefetch_queue.prefetch_some();
                } else {
                    busy_ports.postpone_first(out as u32, ends);
                }
                until = busy_ports.first().min(stop - 1);
            }
        }
        self.net.events += served;
        inbox.len() - keys.len()
    }
}
