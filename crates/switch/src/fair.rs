//! Fair queueing at outputs: deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
//!
//! Design notes.
//! 1. *Queues.* Each output and class has a bounded number of queues; the hash of a flow determines the queue of its
//!    packets, so that flows may share one (stochastic fairness, McKenney, INFOCOM 1990).
//! 2. *Rounds.* A queue may send a quantum of bytes per round; what is left of the quantum and does not suffice for the
//!    next packet is saved for the next round.
//! 3. *Drops.* Where an output is full, the first packet of its longest queue is dropped: this affects the flow that
//!    takes most, and its sender learns of it soonest. Where a flow has a limit of its own, its newest packet is
//!    dropped. Switches that trim cut the newest packet of the longest queue instead
//!    ([`trimming`](crate::trimming), design note 4).
//! 4. *Marks* depend on the length of a packet's own queue, not on packets of other flows.
//! 5. *The next packet* stands in the port's ordinary line, which is all that serving a port reads, so other fabrics
//!    pay nothing for fair queueing. The other packets wait here.

use std::collections::VecDeque;

use selvedge_telemetry::DropReason;
use selvedge_units::mix64;

use crate::descriptor::Descriptor;
use crate::environment::{Environment, Note};
use crate::queue::{NONE, Store};
use crate::switches::{Switches, Way};

/// Parameters of fair queueing that hold at all ports, in bytes.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Bytes of each class that may wait for one output. Without limit where switches trim, whose lines have one.
    pub per_port: u64,
    /// Bytes of one queue that may wait for one output.
    pub per_flow: u64,
    /// Bytes that a queue may send in its turn, at least 1.
    pub quantum: u64,
    /// Queues per output and class, at least 1.
    pub queues: u64,
}

/// Packets of one class that wait for one output, except for the next packet.
#[derive(Default)]
pub struct FairLine {
    /// Queues; empty before the first packet has to wait.
    queues: Vec<FairQueue>,
    /// Indices of the queues that hold packets, the next one first.
    ring: VecDeque<u32>,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct FairQueue {
    head: u32,
    tail: u32,
    bytes: u64,
    /// Bytes that the queue may still send in this round.
    deficit: u64,
    /// Whether the queue has received its quantum of this round.
    begun: bool,
}

impl Rules {
    /// Returns the queue of the flow with hash `flow`.
    pub fn queue_of(&self, flow: u64) -> u32 {
        (mix64(flow) % self.queues) as u32
    }
}

impl FairQueue {
    const EMPTY: Self = Self { head: NONE, tail: NONE, bytes: 0, deficit: 0, begun: false };

    fn pop(&mut self, store: &mut Store) -> Descriptor {
        let packet = store.take(self.head);
        self.head = packet.at;
        self.bytes -= u64::from(packet.frame);
        packet
    }
}

impl FairLine {
    fn push(&mut self, at: u32, store: &mut Store, packet: &Descriptor, flags: u8) {
        let place = store.put(packet, flags);
        let queue = &mut self.queues[at as usize];
        if queue.head == NONE {
            *queue = FairQueue { head: place, ..FairQueue::EMPTY };
            self.ring.push_back(at);
        } else {
            store.link(queue.tail, place);
        }
        queue.tail = place;
        queue.bytes += u64::from(packet.frame);
        self.bytes += u64::from(packet.frame);
    }

    /// Shows all packets that wait here.
    pub fn for_each_place(&self, store: &Store, mut see: impl FnMut(&Descriptor)) {
        self.ring.iter().for_each(|&at| store.for_each_from(self.queues[at as usize].head, &mut see));
    }

    /// Removes the packet whose turn it is and returns it.
    fn pop(&mut self, quantum: u64, store: &mut Store) -> Option<Descriptor> {
        loop {
            let at = *self.ring.front()?;
            let queue = &mut self.queues[at as usize];
            if !queue.begun {
                queue.begun = true;
                queue.deficit += quantum;
            }
            let frame = store.frame(queue.head);
            if frame > queue.deficit {
                queue.begun = false;
                self.ring.rotate_left(1);
                continue;
            }
            queue.deficit -= frame;
            self.bytes -= frame;
            let packet = queue.pop(store);
            if queue.head == NONE {
                self.ring.pop_front();
            }
            return Some(packet);
        }
    }

    /// Returns the bytes that wait in queue `at`.
    pub fn bytes_of(&self, at: u32) -> u64 {
        self.queues.get(at as usize).map_or(0, |queue| queue.bytes)
    }

    /// Returns the place in the ring of the longest queue; of several longest queues, that of the first in the ring.
    fn longest_place(&self) -> Option<usize> {
        let longest = |&(_, &at): &(usize, &u32)| self.queues[at as usize].bytes;
        self.ring.iter().enumerate().rev().max_by_key(longest).map(|(place, _)| place)
    }

    /// Returns the longest queue; of several longest queues, the first in the ring.
    pub fn longest(&self) -> Option<u32> {
        self.longest_place().map(|place| self.ring[place])
    }

    /// Removes the last packet of queue `at` and returns it.
    pub fn take_last(&mut self, at: u32, store: &mut Store) -> Option<Descriptor> {
        let queue = self.queues.get_mut(at as usize).filter(|queue| queue.head != NONE)?;
        let (mut before, mut place) = (NONE, queue.head);
        while place != queue.tail {
            (before, place) = (place, store.at(place).at);
        }
        if before == NONE {
            queue.head = NONE;
            self.ring.retain(|&other| other != at);
        } else {
            store.link(before, NONE);
            queue.tail = before;
        }
        let packet = store.take(place);
        queue.bytes -= u64::from(packet.frame);
        self.bytes -= u64::from(packet.frame);
        Some(packet)
    }

    /// Removes the first packet of the longest queue and returns it.
    fn drop_longest(&mut self, store: &mut Store) -> Option<Descriptor> {
        let place = self.longest_place()?;
        let queue = &mut self.queues[self.ring[place] as usize];
        let packet = queue.pop(store);
        if queue.head == NONE {
            self.ring.remove(place);
        }
        self.bytes -= u64::from(packet.frame);
        Some(packet)
    }
}

impl Switches {
    /// Lets a packet wait with those of its flow for its output, whose next packet is known, or drops it where its flow
    /// has reached its limit.
    pub fn wait_fairly<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor, rules: &Rules) {
        if self.has_fair_room(env, way.out, packet, rules) {
            self.join_flow(env, way, packet, rules);
        } else {
            self.drop_packet(env, way.at, packet.slot, DropReason::BufferFull);
        }
    }

    /// Returns whether the limits of its flow, and of the output where switches trim, let a packet wait for port `out`.
    pub fn has_fair_room<E: Environment>(&self, env: &E, out: u32, packet: &Descriptor, rules: &Rules) -> bool {
        let (line, frame) = (self.line_of(out, packet.class), u64::from(packet.frame));
        let waiting = self.fair[line].bytes_of(rules.queue_of(env.flow_hash(packet.slot)));
        waiting + frame <= rules.per_flow && self.lines[line].has_room_for(frame)
    }

    /// Adds a packet to those of its flow that wait for its output, whose next packet is known. If the output holds too
    /// much then, the first packets of its longest queue are dropped.
    pub fn join_flow<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor, rules: &Rules) {
        let Way { switch, at, out } = way;
        let line = self.line_of(out, packet.class);
        let queue = rules.queue_of(env.flow_hash(packet.slot));
        let fair = &mut self.fair[line];
        if fair.queues.is_empty() {
            fair.queues = vec![FairQueue::EMPTY; rules.queues as usize];
        }
        let frame = u64::from(packet.frame);
        let waiting = fair.queues[queue as usize].bytes;
        let flags = self.extras[out].red.mark(packet, waiting, || env.mark(packet.slot));
        fair.push(queue, &mut self.store, packet, flags);
        self.lines[line].add(frame);
        self.hold(switch, at, frame, packet.class);
        if E::RECORDED {
            env.note(self, Note::Queued { at, out, slot: packet.slot });
        }
        while self.fair[line].bytes > rules.per_port
            && let Some(dropped) = self.fair[line].drop_longest(&mut self.store)
        {
            let (frame, ingress) =
                (u64::from(dropped.frame), self.switches[switch].facts.first_port + u32::from(dropped.port));
            self.lines[line].remove(frame);
            self.release(env, switch, ingress, frame, dropped.class);
            self.drop_packet(env, ingress, dropped.slot, DropReason::BufferFull);
        }
    }

    /// Chooses the next packet of `class` for port `out`, after one has left.
    pub fn stage(&mut self, switch: u32, out: u32, class: u8, rules: &Rules) {
        let line = self.line_of(out, class);
        let store = &mut self.store;
        let Some(next) = self.fair[line].pop(rules.quantum, store) else { return };
        let facts = &self.switches[switch].facts;
        let queue = facts.queue(&self.egress[out], class, 0);
        self.lines[line].remove(u64::from(next.frame));
        self.lines[line].push(&mut self.queues, queue, &mut self.store, &next, next.flags);
        self.egress[out].waiting |= 1 << class;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: u16, slot: u32) -> Descriptor {
        Descriptor { frame, slot, ..Descriptor::EMPTY }
    }

    fn line(queues: usize) -> (FairLine, Store) {
        (FairLine { queues: vec![FairQueue::EMPTY; queues], ..FairLine::default() }, Store::new())
    }

    #[test]
    fn queues_share_by_bytes_not_by_packets() {
        let (mut line, mut store) = line(2);
        for n in 0..1_500 {
            line.push(0, &mut store, &packet(100, n), 0);
            if n < 100 {
                line.push(1, &mut store, &packet(1_500, n), 0);
            }
        }
        let mut sent = [0; 2];
        while sent[1] < 60_000 {
            let next = line.pop(500, &mut store).expect("packets are left in the line");
            sent[usize::from(next.frame == 1_500)] += u64::from(next.frame);
        }
        assert!(sent[0].abs_diff(sent[1]) <= 2_000, "{sent:?}");
    }

    #[test]
    fn packets_of_one_queue_stay_in_order_and_none_is_lost() {
        let (mut line, mut store) = line(7);
        let mut expected: Vec<VecDeque<u32>> = vec![VecDeque::new(); 7];
        for n in 0..1_000u32 {
            let at = n.wrapping_mul(2_654_435_761) % 7;
            line.push(at, &mut store, &Descriptor { port: at as u16, ..packet(64 + (n % 900) as u16, n) }, 0);
            expected[at as usize].push_back(n);
        }
        while let Some(next) = line.pop(1_000, &mut store) {
            assert_eq!(expected[usize::from(next.port)].pop_front(), Some(next.slot));
        }
        assert!(expected.iter().all(VecDeque::is_empty));
        assert_eq!((line.bytes, line.ring.len()), (0, 0));
    }

    #[test]
    fn the_longest_queue_loses_its_first_packet() {
        let (mut line, mut store) = line(3);
        for (at, slot) in [(0, 0), (1, 1), (1, 2), (2, 3)] {
            line.push(at, &mut store, &packet(100, slot), 0);
        }
        let mut dropped = || line.drop_longest(&mut store).expect("packets are left in the line").slot;
        assert_eq!([dropped(), dropped()], [1, 0], "the longest, then the first of those alike");
        assert_eq!(line.bytes, 200);
    }

    #[test]
    fn a_queue_can_lose_its_last_packet() {
        let (mut line, mut store) = line(3);
        for (at, slot) in [(0, 0), (1, 1), (1, 2), (2, 3)] {
            line.push(at, &mut store, &packet(100, slot), 0);
        }
        let mut last = |at| line.take_last(at, &mut store).map(|packet| packet.slot);
        assert_eq!([last(1), last(1), last(1), last(0)], [Some(2), Some(1), None, Some(0)]);
        assert_eq!((line.longest(), line.bytes_of(1), line.bytes), (Some(2), 0, 100));
        line.push(1, &mut store, &packet(50, 4), 0);
        let left = std::iter::from_fn(|| line.pop(1_000, &mut store)).map(|packet| packet.slot);
        assert_eq!(left.collect::<Vec<_>>(), [3, 4], "queues that were emptied are used again");
    }
}
