//! Toy nodes: the kernel without a network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Mutex;

use selvedge_units::{Duration, Instant, mix64};

use super::calendar::Calendar;
use super::nodes::{Exchange, Message, Nodes};
use super::rounds::{Conductor, Parallel, Round, WindowSlice, drive, lock};
use super::schedule::WindowSchedule;
use super::visit_order::VisitOrder;

/// Message with a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub(super) number: u32,
    pub(super) at: u32,
    pub(super) port: u16,
}

impl Message for Numbered {
    fn at(&self) -> u32 {
        self.at
    }
    fn port(&self) -> u16 {
        self.port
    }
    fn set_arrival(&mut self, at: u32, port: u16) {
        (self.at, self.port) = (at, port);
    }
}

/// Shortest delay of a message, in picoseconds: the length of a window.
const STEP: u64 = 1_000;
const NODES: u32 = 23;
/// Time after which nodes send nothing, in picoseconds.
const END: u64 = 200_000;

/// Returns what a node does with a message that arrives at `time`: the node's new digest, and the messages that it
/// sends with their destinations and times of arrival.
fn act(node: u32, digest: u64, time: u64, number: u32) -> (u64, Vec<(u32, u64, u32)>) {
    let digest = mix64(digest ^ mix64(time) ^ u64::from(number) << 1);
    let draw = mix64(u64::from(node) << 40 ^ time << 8 ^ u64::from(number));
    // Messages become neither many nor few: of four, one is not passed on, and one is doubled.
    let copies = if time > END { 0 } else { [0, 1, 1, 2][(draw >> 60 & 3) as usize] };
    let send = |copy: u64| {
        let draw = mix64(draw ^ copy);
        // Mostly the next windows, rarely far ones.
        let delay = STEP + draw % if draw >> 63 == 0 { 3 * STEP } else { 90 * STEP };
        ((draw >> 20) as u32 % NODES, time + delay, number.wrapping_mul(5).wrapping_add(copy as u32 + 1))
    };
    (digest, (0..copies).map(send).collect())
}

/// Messages with which everything begins: node, time, number.
fn first() -> impl Iterator<Item = (u32, u64, u32)> {
    (0..400).map(|number| (number % NODES, u64::from(number) * 77 + STEP, number))
}

/// Returns the digests of all nodes, and the number of messages, by one event after the other.
fn one_by_one() -> (Vec<u64>, u64) {
    let mut events: BinaryHeap<_> = first().map(|(node, time, number)| Reverse((time, node, number))).collect();
    let (mut digests, mut count) = (vec![0; NODES as usize], 0);
    while let Some(Reverse((time, node, number))) = events.pop() {
        let digest = &mut digests[node as usize];
        let (next, sent) = act(node, *digest, time, number);
        *digest = next;
        count += 1;
        events.extend(sent.into_iter().map(|(to, at, number)| Reverse((at, to, number))));
    }
    (digests, count)
}

/// Some of the toy nodes: those whose number modulo the number of partitions is `index`.
struct Toys {
    index: u32,
    partitions: u32,
    calendar: Calendar<Numbered>,
    /// Numbers here of the nodes of other partitions.
    remote: BTreeMap<u32, u32>,
    digests: Vec<u64>,
    outboxes: Vec<Letters>,
    postponed: Vec<u32>,
    events: u64,
}

/// Messages for another partition: node there, window, message.
#[derive(Default)]
struct Letters(Vec<(u32, u64, Numbered)>);

impl Exchange for Letters {
    fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Toys {
    fn new(index: u32, partitions: u32, schedule: WindowSchedule) -> Self {
        let own = (NODES - index).div_ceil(partitions);
        let mut calendar =
            Calendar::new(vec![0; own as usize], VisitOrder::by_number(own as usize), schedule, 5 * STEP);
        let others = (0..NODES).filter(|node| node % partitions != index);
        let remote =
            others.map(|node| (node, calendar.add_remote((node % partitions) as u16, node / partitions, 0))).collect();
        let mut toys = Self {
            index,
            partitions,
            calendar,
            remote,
            digests: vec![0; own as usize],
            outboxes: (0..partitions).map(|_| Letters::default()).collect(),
            postponed: Vec::new(),
            events: 0,
        };
        for (node, time, number) in first().filter(|(node, ..)| node % partitions == index) {
            toys.calendar.send_far(node / partitions, time, 0, &Numbered { number, at: 0, port: 0 });
        }
        toys
    }
}

impl Nodes for Toys {
    type Message = Numbered;
    type Outbox = Letters;

    const PREPARED: usize = 0;

    fn calendar(&self) -> &Calendar<Numbered> {
        &self.calendar
    }
    fn calendar_mut(&mut self) -> &mut Calendar<Numbered> {
        &mut self.calendar
    }
    fn postponed(&mut self) -> &mut Vec<u32> {
        &mut self.postponed
    }
    fn enter(&mut self, _part: Range<u64>) {}
    fn prepare(&mut self, _nodes: &[u32], _at: usize) {}
    fn visit(&mut self, node: u32, limit: u64) {
        let begin = self.calendar.begin();
        let inbox = self.calendar.take_inbox(node);
        let mut arrived: Vec<_> = inbox.iter().map(|message| (begin + u64::from(message.at), message.number)).collect();
        arrived.sort_unstable();
        let name = node * self.partitions + self.index;
        for &(time, number) in arrived.iter().take_while(|(time, _)| *time < limit) {
            let (digest, sent) = act(name, self.digests[node as usize], time, number);
            self.digests[node as usize] = digest;
            self.events += 1;
            for (to, at, number) in sent {
                let to = if to % self.partitions == self.index { to / self.partitions } else { self.remote[&to] };
                self.calendar.send_far(to, at, 0, &Numbered { number, at: 0, port: 0 });
            }
        }
        let next = arrived.iter().map(|&(time, _)| time).find(|&time| time >= limit);
        if next.is_some() {
            let rest = inbox.iter().filter(|message| begin + u64::from(message.at) >= limit);
            self.calendar.keep_rest(node, &inbox, rest);
        }
        self.calendar.return_inbox(inbox);
        self.leave(node, next.unwrap_or(u64::MAX), limit);
    }
    fn next_beginning(&self, _from: u64) -> Option<u64> {
        None
    }
    fn pack(&mut self) {
        while let Some(((partition, node), window, inbox)) = self.calendar.take_remote_inbox() {
            self.outboxes[usize::from(partition)].0.extend(inbox.iter().map(|&message| (node, window, message)));
            self.calendar.return_inbox(inbox);
        }
    }
    fn outboxes(&mut self) -> &mut [Letters] {
        &mut self.outboxes
    }
    fn deliver(&mut self, outbox: &mut Letters) {
        for (node, window, message) in outbox.0.drain(..) {
            self.calendar.take_in(node, window, [message].into_iter());
        }
    }
    fn events(&self) -> u64 {
        self.events
    }
}

/// Runs window after window. Where `cuts`, some windows are cut short at a time of their own and go on from there.
struct Conduct<'a> {
    partitions: &'a [Mutex<Toys>],
    schedule: WindowSchedule,
    from: u64,
    cut: u64,
    cuts: bool,
    unfinished: Option<u64>,
}

impl Conductor for Conduct<'_> {
    fn between_windows(&mut self) -> Option<Round> {
        let window = match self.unfinished.take() {
            Some(window) => window,
            None => self.partitions.iter().filter_map(|toys| lock(toys).next_window(self.from)).min()?,
        };
        let (first, last) = (self.schedule.begin(window), self.schedule.end(window));
        let begin = first.max(self.cut);
        let mut end = last;
        if self.cuts && begin == first && window.is_multiple_of(3) {
            end = begin + (last - begin) / 2;
            self.unfinished = Some(window);
        }
        (self.from, self.cut) = (window + 1, end);
        let first = WindowSlice { window, begin: Instant::from_ps(begin), end: Instant::from_ps(end) };
        Some(Round { first, second: None })
    }
}

#[test]
fn windows_give_what_one_event_after_the_other_gives() {
    let (expected, count) = one_by_one();
    assert!(count > 1_000, "the toys have something to do: {count}");
    for (partitions, threads) in [(1, 1), (2, 1), (3, 1), (3, 2), (5, 3)] {
        for cuts in [false, true] {
            let schedule = WindowSchedule::new(Duration::from_ps(STEP), None);
            let toys: Vec<_> =
                (0..partitions).map(|index| Mutex::new(Toys::new(index, partitions, schedule))).collect();
            let mut conduct = Conduct { partitions: &toys, schedule, from: 0, cut: 0, cuts, unfinished: None };
            let parallel = Parallel { threads, partitions: partitions as usize, shared_from: 0, in_turns: false };
            drive(&toys, parallel, &mut conduct);
            let digest = |node: u32| lock(&toys[(node % partitions) as usize]).digests[(node / partitions) as usize];
            let digests: Vec<u64> = (0..NODES).map(digest).collect();
            assert_eq!(digests, expected, "{partitions} partitions, {threads} threads, {cuts}");
            assert_eq!(toys.iter().map(|toys| lock(toys).events).sum::<u64>(), count);
        }
    }
}
