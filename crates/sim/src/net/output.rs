//! Whole visit of one output: everything that it sends in a window in which no other port affects it.
//!
//! Times are in picoseconds after the beginning of the window.

use std::mem::MaybeUninit;

use selvedge_memory::Table;
use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::marking::Red;
use selvedge_switch::port::{Egress, Ingress};
use selvedge_switch::queue::{Line, Queue, Store};
use selvedge_switch::switch::SwitchFacts;

use super::independent::Visit;
use super::pool::Pool;
use super::transient::{Lists, TransientQueue};
use crate::kernel::calendar::InboxWriter;
use crate::net::edge::mark;
use crate::net::order::Key;
use crate::net::partition::Partition;
use crate::net::tally::Tally;

/// Number of packets for an output that have arrived, and whether the last of them waits; all others have left.
#[derive(Clone, Copy)]
struct Passed {
    count: usize,
    one_waits: bool,
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles all events of a visit at output `at`; `keys` are the arrivals. Returns whether nothing waits there
    /// afterwards, and no rare case occurred.
    #[inline(always)]
    pub(super) fn visit_output(&mut self, visit: &Visit<'_>, at: u32, keys: &[Key]) -> bool {
        let port = &self.net.egress[at];
        let mut passed = Passed { count: 0, one_waits: false };
        // Where switches trim, most packets have to wait.
        if port.is_plainly_clear() && self.net.trimmers.is_empty() {
            passed = self.pass(visit, at, keys);
            if passed.count == keys.len() && !passed.one_waits {
                return true;
            }
        }
        self.serve_output(visit, at, keys, passed);
        false
    }

    /// Lets packets pass output `at`, for which nothing waits, until more than one has to wait, or a rare case occurs.
    /// Without it, a permutation with IRN over a fat-tree of 128 hosts takes 5 % more instructions.
    #[inline(always)]
    fn pass(&mut self, visit: &Visit<'_>, at: u32, keys: &[Key]) -> Passed {
        let port = &mut self.net.egress[at];
        let mut outlet = self.edge.calendar.outlet(port.peer_node, port.peer_port);
        let lines = self.net.lines.part_mut(at * self.net.params.classes, self.net.params.classes);
        let (gap, schedule, delay) = (self.net.params.gap, port.ps_per_byte(), port.delay.as_ps());
        let mut busy = visit.since(port.busy_until);
        let (mut count, mut bytes) = (0, 0);
        let mut waiting: Option<&Descriptor> = None;
        loop {
            let key = keys.get(count);
            let time = key.map_or(visit.length, |key| key.time());
            let (packet, begins);
            if let Some(first) = waiting {
                if busy >= time {
                    break;
                }
                (packet, begins) = (first, busy);
                waiting = None;
                self.net.events += 1;
            } else {
                let Some(key) = key else { break };
                (packet, begins) = (key.packet(visit.inbox), time);
                if packet.is_pause() {
                    break;
                }
                if busy > time {
                    if !lines[usize::from(packet.class)].holds_for_a_while(packet) {
                        break;
                    }
                    waiting = Some(packet);
                    count += 1;
                    continue;
                }
                count += 1;
            }
            let frame = u64::from(packet.frame);
            busy = begins + (frame + gap) * schedule;
            bytes += frame;
            outlet.send(busy + delay, packet);
        }
        let one_waits = waiting.is_some();
        if bytes > 0 {
            port.add_frames(visit.instant(busy), count as u64 - u64::from(one_waits), bytes);
        }
        Passed { count, one_waits }
    }

    /// Handles the events that are left once something waits at output `at`, or a rare case has occurred.
    #[inline(always)]
    fn serve_output(&mut self, visit: &Visit<'_>, at: u32, keys: &[Key], passed: Passed) {
        // Prevents others from scheduling a return to the port, which is being visited.
        self.net.egress[at].free_pending = true;
        if self.net.egress[at].takes_slow_path() {
            return self.serve_slow(visit, at, keys);
        }
        let (before, mut keys) = keys.split_at(passed.count);
        let mut first = before.last().copied().filter(|_| passed.one_waits);
        let mut from = 0;
        loop {
            keys = self.run(visit, at, first.take(), from, keys);
            let Some((key, rest)) = keys.split_first() else { return };
            keys = rest;
            from = key.time();
            self.forward_alone(visit, at, *key);
        }
    }

    /// Handles the events of a visit at output `at`, like [`Partition::serve_output`], but where all packets that leave
    /// take the slow path.
    #[inline(never)]
    fn serve_slow(&mut self, visit: &Visit<'_>, at: u32, keys: &[Key]) {
        for key in keys {
            self.catch_up(visit, at, key.time());
            self.forward_alone(visit, at, *key);
            // A pause may have ended.
            if key.packet(visit.inbox).is_pause() && self.net.egress[at].busy_until < self.net.now {
                self.net.serve_switch(&mut self.edge, visit.facts, at);
            }
        }
        self.catch_up(visit, at, visit.length);
    }

    /// Handles the events at output `at` after `from`; `keys` are the arrivals, and `first` waits without a place in a
    /// queue. Returns the remaining keys, the first of which the caller has to handle.
    #[inline(always)]
    fn run<'k>(&mut self, visit: &Visit<'_>, at: u32, first: Option<Key>, from: u64, keys: &'k [Key]) -> &'k [Key] {
        let port = &mut self.net.egress[at];
        let line = at * self.net.params.classes;
        let buffer = Buffer {
            lines: self.net.lines.part_mut(line, self.net.params.classes),
            queues: &mut self.net.queues,
            first_queue: port.first_queue,
            store: &mut self.net.store,
            inputs: self.net.ingress.part_mut(visit.facts.first_port, visit.facts.ports),
        };
        let (gap, events) = (self.net.params.gap, &mut self.net.events);
        let outlet = self.edge.calendar.outlet(port.peer_node, port.peer_port);
        let mut output = Output { port, passed: 0, served: 0, bytes: 0, gap, outlet, events };
        if let Some(rules) = &self.net.params.queueing.trims {
            debug_assert!(first.is_none(), "nobody asks whether packets can pass where switches trim");
            let lists = Lists::of(&mut self.listed, self.net.params.classes, keys.len());
            let mut listed =
                TransientQueue { buffer, lists, turns: rules.turns(), trimmer: &mut self.net.trimmers[at] };
            let before = output.port.waiting;
            listed.take_out(before);
            let rest = output.run(visit, &mut listed, from, keys);
            listed.put_back(before, output.port.waiting, visit);
            return rest;
        }
        let SwitchFacts { per_line, input_mask, .. } = *visit.facts;
        let (red, pool, tally) = (&mut self.net.extras[at].red, &mut self.edge.pool, &mut self.edge.tally);
        if self.net.params.classes == 1 {
            let queued = Queued::<true> { buffer, per_line, input_mask, red, pool, tally };
            output.run_queued(visit, queued, first, from, keys)
        } else {
            let queued = Queued::<false> { buffer, per_line, input_mask, red, pool, tally };
            output.run_queued(visit, queued, first, from, keys)
        }
    }

    /// Handles the arrival of a packet that leaves through port `out`, or of a pause frame for that port.
    #[inline(never)]
    fn forward_alone(&mut self, visit: &Visit<'_>, out: u32, key: Key) {
        let packet = key.packet(visit.inbox);
        self.net.now = visit.instant(key.time());
        if packet.is_pause() {
            self.net.take_pause(&mut self.edge, out, packet.slot);
            return;
        }
        let port = &self.net.egress[out];
        let is_free = port.busy_until <= self.net.now;
        if is_free && port.is_open() {
            return self.net.transmit(&mut self.edge, out, packet);
        }
        // Packets of paused classes do not keep others waiting.
        let begins = is_free && port.ready() == 0;
        self.net.line_up(&mut self.edge, visit.facts, visit.facts.first_port + u32::from(packet.port), out, packet);
        if begins {
            self.net.serve_switch(&mut self.edge, visit.facts, out);
        }
    }

    /// Sends the packets that port `at` would have sent before `time`.
    fn catch_up(&mut self, visit: &Visit<'_>, at: u32, time: u64) {
        loop {
            let port = &self.net.egress[at];
            let ready = port.ready();
            if ready == 0 || port.busy_until >= visit.instant(time) {
                return;
            }
            self.net.now = port.busy_until;
            self.net.serve_class(&mut self.edge, visit.facts, at, ready.ilog2() as u8);
        }
    }
}

/// Packets that wait in a switch for one output, and the inputs through which they came.
pub(super) struct Buffer<'a> {
    /// Lines, indexed by class.
    pub(super) lines: &'a mut [Line],
    pub(super) queues: &'a mut Table<Queue>,
    /// Index of the first queue of the first line.
    pub(super) first_queue: u32,
    pub(super) store: &'a mut Store,
    /// Inputs, indexed by port.
    pub(super) inputs: &'a mut [Ingress],
}

/// Method by which packets wait for an output during its visit.
pub(super) trait Waiting {
    /// Returns the class that is served first of those whose bits are set; at least one is.
    fn first(ready: u8) -> u8;
    /// Returns whether a packet that has arrived may wait here. If it may not, or if it is a pause frame, the caller
    /// has to handle it.
    fn takes(&self, packet: &Descriptor) -> bool;
    /// Adds a packet that is [taken](Waiting::takes) to those that wait for `port`.
    fn put(&mut self, port: &mut Egress, key: Key, packet: &Descriptor);
    /// Removes the next packet of `class`, of which some wait for `port`, and returns it. It is copied to `place` if it
    /// cannot stay where it is.
    fn pop<'p>(
        &mut self,
        visit: &Visit<'p>,
        port: &mut Egress,
        class: u8,
        place: &'p mut MaybeUninit<Descriptor>,
    ) -> &'p Descriptor;
}

/// Output during its visit.
struct Output<'a> {
    port: &'a mut Egress,
    /// Packets that have left at once, other packets that have left, and bytes of both.
    passed: u64,
    served: u64,
    bytes: u64,
    /// Bytes that every frame takes on the wire in addition to its own.
    gap: u64,
    outlet: InboxWriter<'a, Descriptor>,
    events: &'a mut u64,
}

impl Output<'_> {
    /// Handles the events of a visit after `from`; `keys` are the arrivals. Returns the remaining keys, the first of
    /// which the caller has to handle.
    #[inline(always)]
    fn run<'k>(&mut self, visit: &Visit<'_>, waiting: &mut impl Waiting, from: u64, keys: &'k [Key]) -> &'k [Key] {
        if self.port.paused == Egress::DOWN {
            return keys;
        }
        let mut busy = visit.since(self.port.busy_until);
        // Where a pause has ended, a packet leaves before the next arrival.
        if busy < from && self.port.ready() != 0 {
            busy = self.serve_until(visit, waiting, from, from + 1);
        }
        let mut keys = keys.iter();
        let is_over = loop {
            let Some(&key) = keys.as_slice().first() else { break true };
            let (packet, time) = (key.packet(visit.inbox), key.time());
            busy = self.serve_until(visit, waiting, busy, time);
            if busy <= time && self.port.is_open() && !packet.is_pause() {
                self.passed += 1;
                busy = self.send(time, packet);
            } else {
                if !waiting.takes(packet) {
                    break false;
                }
                // Packets of paused classes do not keep others waiting.
                let begins = busy <= time && self.port.ready() == 0;
                waiting.put(self.port, key, packet);
                if begins {
                    busy = self.serve_until(visit, waiting, time, time + 1);
                }
            }
            keys.next();
        };
        if is_over {
            busy = self.serve_until(visit, waiting, busy, visit.length);
        }
        *self.events += self.served;
        if self.bytes > 0 {
            self.port.add_frames(visit.instant(busy), self.served + self.passed, self.bytes);
        }
        keys.as_slice()
    }

    /// Handles the events of a visit, like [`Output::run`], but with queues, and with a packet `first` that waits and
    /// has no place in one.
    #[inline(always)]
    fn run_queued<'k, const ONE_CLASS: bool>(
        mut self,
        visit: &Visit<'_>,
        mut queued: Queued<'_, ONE_CLASS>,
        first: Option<Key>,
        from: u64,
        keys: &'k [Key],
    ) -> &'k [Key] {
        if let Some(first) = first {
            queued.put(self.port, first, first.packet(visit.inbox));
        }
        self.run(visit, &mut queued, from, keys)
    }

    /// Sends packets that wait and may leave, from `busy` on, as long as they begin before `time`; returns when the
    /// last one ends.
    #[inline(always)]
    fn serve_until(&mut self, visit: &Visit<'_>, waiting: &mut impl Waiting, mut busy: u64, time: u64) -> u64 {
        while busy < time {
            let ready = self.port.ready();
            if ready == 0 {
                break;
            }
            busy = self.serve(visit, waiting, ready, busy);
        }
        busy
    }

    /// Sends the next packet of the classes in `ready`, from `begins` on; returns when it ends.
    #[inline(always)]
    fn serve<W: Waiting>(&mut self, visit: &Visit<'_>, waiting: &mut W, ready: u8, begins: u64) -> u64 {
        self.served += 1;
        let mut place = MaybeUninit::uninit();
        let packet = waiting.pop(visit, self.port, W::first(ready), &mut place);
        self.send(begins, packet)
    }

    /// Sends a packet from `begins` on; returns when it ends.
    #[inline(always)]
    fn send(&mut self, begins: u64, packet: &Descriptor) -> u64 {
        let frame = u64::from(packet.frame);
        let ends = begins + (frame + self.gap) * self.port.ps_per_byte();
        self.bytes += frame;
        self.outlet.send(ends + self.port.delay.as_ps(), packet);
        ends
    }
}

/// Packets in queues, where they stay from visit to visit. `ONE_CLASS`: all packets are of one class.
struct Queued<'a, const ONE_CLASS: bool> {
    buffer: Buffer<'a>,
    per_line: u32,
    input_mask: u32,
    red: &'a mut Red,
    pool: &'a mut Pool,
    tally: &'a mut Tally,
}

impl<const ONE_CLASS: bool> Waiting for Queued<'_, ONE_CLASS> {
    #[inline(always)]
    fn first(ready: u8) -> u8 {
        if ONE_CLASS { 0 } else { ready.ilog2() as u8 }
    }

    #[inline(always)]
    fn takes(&self, packet: &Descriptor) -> bool {
        let class = if ONE_CLASS { 0 } else { packet.class };
        !packet.is_pause() && self.buffer.lines[usize::from(class)].has_room_for(packet.frame.into())
    }

    #[inline(always)]
    fn put(&mut self, port: &mut Egress, _: Key, packet: &Descriptor) {
        let Self { buffer, per_line, input_mask, red, pool, tally } = self;
        let class = if ONE_CLASS { 0 } else { packet.class };
        let line = &mut buffer.lines[usize::from(class)];
        let flags = red.mark(packet, line.bytes, || mark(pool, tally, packet.slot));
        let queue = buffer.first_queue + u32::from(class) * *per_line + (u32::from(packet.port) & *input_mask);
        line.push(buffer.queues, queue, buffer.store, packet, flags);
        port.waiting |= 1 << class;
        buffer.inputs[usize::from(packet.port)].buffered += u64::from(packet.frame);
    }

    #[inline(always)]
    fn pop<'p>(
        &mut self,
        _: &Visit<'p>,
        port: &mut Egress,
        class: u8,
        place: &'p mut MaybeUninit<Descriptor>,
    ) -> &'p Descriptor {
        let buffer = &mut self.buffer;
        let line = &mut buffer.lines[usize::from(class)];
        let packet = place.write(line.pop(buffer.queues, buffer.store));
        if line.is_empty() {
            port.waiting &= !(1 << class);
        }
        buffer.inputs[usize::from(packet.port)].buffered -= u64::from(packet.frame);
        packet
    }
}
