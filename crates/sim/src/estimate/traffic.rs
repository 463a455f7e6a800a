//! Estimate of what workloads will send.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use selvedge_units::{Duration, HostId, Instant};

use super::stack::Stack;
use super::{seconds, stop_s};
use crate::config::SimConfig;
use crate::topology::Paths;
use crate::workload::{Extent, FlowSpec, Generator, Verb, Workload};

/// Most flows that are examined one by one, for each way in which flows begin.
pub(super) const MOST: u64 = 300_000;
/// Most flows of a client or connection that are examined: later ones resemble them.
const MOST_OF_ONE: u64 = 1_024;

/// Sum of what is sent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Total {
    pub(super) flows: f64,
    /// Payload, in bytes.
    pub(super) payload: f64,
    /// Data packets.
    pub(super) packets: f64,
    /// Packets times links crossed, answers included.
    pub(super) hops: f64,
}

/// Traffic of a host's link in one direction.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    total: Total,
    /// Bytes on the wire.
    wire: f64,
}

/// Traffic that hosts send and receive, indexed by host.
#[derive(Clone)]
struct Sums {
    sent: Vec<Share>,
    received: Vec<Share>,
}

/// Traffic of a run.
pub(super) struct Traffic {
    pub(super) total: Total,
    /// Most bytes of memory of flows that are open together.
    pub(super) open_bytes: f64,
    /// Packets that open flows may have in flight, where all are limited.
    pub(super) window: Option<f64>,
    /// Whether a stop time ends flows that have not been carried.
    pub(super) is_cut: bool,
}

/// Sums of the traffic of a run, while they are collected.
struct Counting<'a> {
    config: &'a SimConfig,
    paths: &'a Paths,
    stacks: &'a [Stack],
    stop_s: Option<f64>,
    sums: Sums,
    /// Flows that wait for others.
    waiting: f64,
    open_bytes: f64,
    window: Option<f64>,
    is_cut: bool,
}

impl Traffic {
    pub(super) fn of(config: &SimConfig, workload: &Workload, stacks: &[Stack]) -> Self {
        let mut counting = Counting {
            config,
            paths: &config.paths,
            stacks,
            stop_s: stop_s(config),
            sums: Sums::new(config.paths.graph().hosts.len()),
            waiting: 0.0,
            open_bytes: 0.0,
            window: Some(0.0),
            is_cut: false,
        };
        counting.add_streams(workload);
        counting.add_triggered(workload);
        counting.add_repetitions(workload);
        counting.add_schedules(workload);
        counting.add_loops(workload);
        counting.add_postings(workload);
        counting.finish()
    }
}

impl Counting<'_> {
    /// Adds flows that begin at a time of their own.
    fn add_streams(&mut self, workload: &Workload) {
        let mut stream = workload.stream.clone();
        let extent = stream.extent();
        let end = self.config.stop.time.map_or(Instant::NEVER, |time| Instant::ZERO.saturating_add(time));
        let (mut sums, mut open) = (self.nothing(), Open::default());
        let (mut count, mut last, mut is_over) = (0_u64, Instant::ZERO, true);
        while let Some(flow) = stream.next_flow() {
            if flow.start >= end {
                break;
            }
            if count == MOST {
                is_over = false;
                break;
            }
            (count, last) = (count + 1, flow.start);
            let verb = workload.postings.iter().find_map(|posting| posting.verb_of(flow.workload));
            self.add(&mut sums, &flow, verb, 1.0);
            if verb.is_none() {
                let stack = self.stack(&flow);
                open.add(flow.start, self.alone(&flow).saturating_mul(SLOWDOWN), stack);
            }
        }
        if !is_over {
            let of_number = extent.known().map(|all| all as f64 / count as f64);
            let elapsed = seconds(last.since(Instant::ZERO)).max(f64::MIN_POSITIVE);
            let durations = workload.summaries.iter().filter_map(|summary| summary.duration.or(summary.last));
            let until = self.stop_s.or_else(|| durations.max().map(seconds));
            let of_time = until.map(|end| end / elapsed).filter(|_| last > Instant::ZERO);
            let scale = of_number.into_iter().chain(of_time).reduce(f64::min).unwrap_or(1.0);
            sums.scale(scale.max(1.0));
        }
        self.open_also(open.most, open.most_bytes, open.window);
        self.sums.add(&sums);
    }

    /// Adds flows that wait for others.
    fn add_triggered(&mut self, workload: &Workload) {
        let mut sums = self.nothing();
        for (flow, weight) in workload.triggers.sampled(MOST) {
            self.add(&mut sums, &flow, None, weight);
        }
        self.sums.add(&sums);
        self.waits(&sums);
        for flow in workload.triggers.together() {
            let stack = self.stacks[usize::from(flow.0)];
            self.open_also(flow.1, flow.1 * stack.memory as f64, stack.window.map(|window| window * flow.1));
        }
    }

    /// Adds repetitions that begin when the one before is received completely, as many as there can be until a stop
    /// time.
    fn add_repetitions(&mut self, workload: &Workload) {
        for (repetitions, next) in workload.triggers.recurring() {
            let of_one = u64::from(repetitions.count).max(1);
            let mut number = f64::from(repetitions.repeat - next);
            let step = ((number as u64) * of_one).div_ceil(MOST).max(1) as usize;
            let chosen = (next..repetitions.repeat).step_by(step);
            let (mut sums, mut count, mut time) = (self.nothing(), 0.0, 0.0);
            for flows in chosen.map(|number| (repetitions.make)(number)) {
                time += self.duration_s(&flows);
                count += 1.0;
                flows.iter().for_each(|(_, flow)| self.add(&mut sums, flow, None, 1.0));
            }
            if count == 0.0 {
                continue;
            }
            if let Some(stop) = self.stop_s {
                let first = workload.summaries[usize::from(repetitions.workload)].first;
                let earlier = f64::from(next);
                let possible = (stop - seconds(first)).max(0.0) / (time / count).max(1e-12);
                if possible - earlier < number {
                    (number, self.is_cut) = ((possible - earlier).max(0.0), true);
                }
            }
            sums.scale(number / count);
            self.sums.add(&sums);
            self.waits(&sums);
        }
    }

    /// Returns the least time that flows take together, in seconds: that of the longest, and that of what a receiver's
    /// link carries.
    fn duration_s(&self, flows: &[(Duration, FlowSpec)]) -> f64 {
        let mut wire = BTreeMap::<HostId, f64>::new();
        for (_, flow) in flows {
            let framing = self.stack(flow).framing;
            let packets = flow.size.pieces(framing.mtu) as f64;
            *wire.entry(flow.dst).or_default() += flow.size.get() as f64 + packets * framing.overhead.get() as f64;
        }
        let rate = |host| self.paths.host_rate(host).as_bps() as f64 / 8.0;
        let links = wire.into_iter().map(|(host, bytes)| bytes / rate(host));
        let longest = flows.iter().map(|(delay, flow)| seconds(*delay) + seconds(self.alone(flow)));
        links.chain(longest).fold(0.0, f64::max)
    }

    /// Adds messages of schedules.
    fn add_schedules(&mut self, workload: &Workload) {
        for executor in &workload.executors {
            let all = executor.flows();
            let (mut sums, mut count) = (self.nothing(), 0);
            for (src, dst, size) in executor.messages(MOST) {
                let flow = FlowSpec { src, dst, size, workload: executor.workload(), ..NO_FLOW };
                self.add(&mut sums, &flow, None, 1.0);
                count += 1;
            }
            sums.scale(all as f64 / f64::max(1.0, f64::from(count)));
            self.sums.add(&sums);
            self.waits(&sums);
            let (open, stack) = (executor.open_at_once() as f64, self.stacks[usize::from(executor.workload())]);
            self.open_also(open, open * stack.memory as f64, stack.window.map(|window| window * open));
        }
    }

    /// Adds clients whose flows follow each other.
    fn add_loops(&mut self, workload: &Workload) {
        let clients: usize = workload.loops.iter().map(|closed| closed.clients().len()).sum();
        for closed in &workload.loops {
            let mut closed = closed.clone();
            let own: Vec<HostId> = closed.clients().collect();
            let (at_once, think) = (closed.outstanding(), closed.think());
            let limit = self.limit_of_one(closed.extent(), own.len(), clients, at_once);
            let each = limit.map_or(MOST_OF_ONE, |limit| limit.min(MOST_OF_ONE)).max(1);
            let step = (own.len() as u64 * each).div_ceil(MOST).max(1) as usize;
            let mut sums = self.nothing();
            for &client in own.iter().step_by(step) {
                let begun = closed.begin(client);
                let first = begun.first().map_or(Instant::ZERO, |flow| flow.start);
                let more = std::iter::from_fn(|| closed.next(client, Instant::ZERO));
                let flows: Vec<FlowSpec> = begun.into_iter().chain(more).take(each as usize).collect();
                let flows: Vec<(FlowSpec, Option<Verb>)> = flows.into_iter().map(|flow| (flow, None)).collect();
                self.add_chain(&mut sums, &flows, limit, at_once, first, think);
            }
            sums.scale(own.len() as f64 / own.iter().step_by(step).count().max(1) as f64);
            self.sums.add(&sums);
            let stack = self.stacks[usize::from(closed.workload())];
            let open = (own.len() as u64 * limit.map_or(at_once, |limit| limit.min(at_once))) as f64;
            self.open_also(open, open * stack.memory as f64, stack.window.map(|window| window * open));
        }
    }

    /// Adds work requests of queue pairs whose requests follow each other.
    fn add_postings(&mut self, workload: &Workload) {
        let all: usize = workload.postings.iter().map(|posting| posting.connections().len()).sum();
        for posting in &workload.postings {
            let mut posting = posting.clone();
            let own = posting.connections().len();
            let at_once = u64::from(posting.limits().depth);
            let stack = self.stacks[usize::from(posting.first())];
            let open_bytes = own as f64 * (QUEUE_PAIR + at_once * WORK_REQUEST) as f64;
            self.open_also(own as f64, open_bytes, stack.window.map(|window| window * own as f64));
            if posting.extent() == Extent::Known(0) {
                continue;
            }
            let limit = self.limit_of_one(posting.extent(), own, all, at_once);
            let each = limit.map_or(MOST_OF_ONE, |limit| limit.min(MOST_OF_ONE)).max(1);
            let step = (own as u64 * each).div_ceil(MOST).max(1) as usize;
            let mut sums = self.nothing();
            for connection in (0..own).step_by(step) {
                let think = posting.think();
                let flows: Vec<FlowSpec> = (0..each).map_while(|_| posting.message(connection)).collect();
                let first = flows.first().map_or(Instant::ZERO, |flow| flow.start);
                let flows: Vec<(FlowSpec, Option<Verb>)> =
                    flows.into_iter().map(|flow| (flow, posting.verb_of(flow.workload))).collect();
                self.add_chain(&mut sums, &flows, limit, at_once, first, think);
            }
            sums.scale(own as f64 / (0..own).step_by(step).count().max(1) as f64);
            self.sums.add(&sums);
        }
    }

    /// Returns how many flows one of `own` clients has, if that is limited: by the workload, or by the number that all
    /// `clients` may have together.
    fn limit_of_one(&self, extent: Extent, own: usize, clients: usize, at_once: u64) -> Option<u64> {
        let of_its_own = extent.known().map(|all| all / own.max(1) as u64);
        let of_all = self.config.stop.flows.map(|flows| flows.div_ceil(clients.max(1) as u64).max(at_once));
        of_its_own.into_iter().chain(of_all).min()
    }

    /// Adds the `flows` of one client, of up to `limit`: `at_once` outstanding, each `think` after an earlier one, the
    /// first at `first`.
    fn add_chain(
        &mut self,
        sums: &mut Sums,
        flows: &[(FlowSpec, Option<Verb>)],
        limit: Option<u64>,
        at_once: u64,
        first: Instant,
        think: Duration,
    ) {
        if flows.is_empty() {
            return;
        }
        let count = flows.len() as f64;
        let mut number = limit.map_or(f64::INFINITY, |limit| limit as f64);
        if let Some(stop) = self.stop_s {
            let alone: f64 = flows.iter().map(|(flow, _)| seconds(self.alone(flow))).sum::<f64>() / count;
            let time = (stop - seconds(first.since(Instant::ZERO))).max(0.0);
            let possible = at_once as f64 * (time / (alone + seconds(think)).max(1e-12)).max(1.0);
            if possible < number {
                (number, self.is_cut) = (possible, true);
            }
        }
        if number.is_infinite() {
            number = count;
        }
        flows.iter().for_each(|(flow, verb)| self.add(sums, flow, *verb, number / count));
    }

    /// Adds a flow, `weight` times.
    fn add(&self, sums: &mut Sums, flow: &FlowSpec, verb: Option<Verb>, weight: f64) {
        let Stack { framing, answers, per_flow, .. } = self.stack(flow);
        let Some(links) = self.paths.links(flow.src, flow.dst).map(Iterator::count) else { return };
        let size = flow.size.get() as f64;
        let (packets, requests) = match verb {
            Some(verb) if verb.is_atomic() => (1.0, 1.0),
            Some(Verb::Read) => (flow.size.pieces(framing.mtu) as f64, 1.0),
            _ => (flow.size.pieces(framing.mtu) as f64, 0.0),
        };
        let hops = links as f64 * ((packets + requests) * (1.0 + answers) + per_flow);
        let total = Total { flows: weight, payload: size * weight, packets: packets * weight, hops: hops * weight };
        let wire = (size + packets * framing.overhead.get() as f64) * weight;
        let is_answered = verb.is_some_and(|verb| !verb.carries());
        let (from, to) = if is_answered { (flow.dst, flow.src) } else { (flow.src, flow.dst) };
        sums.sent[from.index()].add(total, wire);
        sums.received[to.index()].add(total, wire);
    }

    /// Returns how long a flow takes in an empty network.
    fn alone(&self, flow: &FlowSpec) -> Duration {
        let framing = self.stack(flow).framing;
        self.paths.ideal_fct(flow.src, flow.dst, flow.size, framing).unwrap_or(Duration::ZERO)
    }

    fn stack(&self, flow: &FlowSpec) -> Stack {
        self.stacks[usize::from(flow.workload)]
    }

    fn open_also(&mut self, flows: f64, bytes: f64, window: Option<f64>) {
        self.open_bytes += bytes;
        self.window = self.window.zip(window.or((flows == 0.0).then_some(0.0))).map(|(all, one)| all + one);
    }

    /// Notes that the flows of `sums` wait for others.
    fn waits(&mut self, sums: &Sums) {
        self.waiting += sums.total().flows;
    }

    fn nothing(&self) -> Sums {
        Sums::new(self.sums.sent.len())
    }

    /// Returns the collected traffic, cut at the stop time.
    fn finish(mut self) -> Traffic {
        let all = self.sums.total();
        if let Some(most) = self.config.stop.flows
            && all.flows > most as f64
        {
            self.sums.scale(most as f64 / all.flows);
        }
        let mut total = self.sums.total();
        if let Some(stop) = self.stop_s {
            let rate = |host: usize| self.paths.host_rate(HostId(host as u32)).as_bps() as f64 / 8.0;
            let cut = |shares: &[Share]| {
                shares.iter().enumerate().fold(Total::default(), |mut sum, (host, share)| {
                    sum.add(share.total, (rate(host) * stop / share.wire).min(1.0));
                    sum
                })
            };
            for carried in [cut(&self.sums.sent), cut(&self.sums.received)] {
                if carried.hops < total.hops {
                    // Flows begin at their times whatever is carried, unless they wait for others.
                    let never = (1.0 - carried.hops / total.hops) * self.waiting.min(total.flows);
                    self.waiting -= never;
                    (total, self.is_cut) = (Total { flows: total.flows - never, ..carried }, true);
                }
            }
        }
        let Self { open_bytes, window, is_cut, .. } = self;
        Traffic { total, open_bytes, window, is_cut }
    }
}

/// Number of open flows, counted while flows begin in the order of time.
#[derive(Default)]
struct Open {
    ends: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    bytes: u64,
    most: f64,
    most_bytes: f64,
    window: Option<f64>,
}

impl Open {
    fn add(&mut self, start: Instant, lasts: Duration, stack: Stack) {
        while let Some(&Reverse((end, bytes, _))) = self.ends.peek()
            && end <= start
        {
            self.ends.pop();
            self.bytes -= bytes;
        }
        self.ends.push(Reverse((start.saturating_add(lasts), stack.memory, 0)));
        self.bytes += stack.memory;
        self.most = self.most.max(self.ends.len() as f64);
        self.most_bytes = self.most_bytes.max(self.bytes as f64);
        self.window = stack.window.map(|window| window * self.most);
    }
}

impl Sums {
    fn new(hosts: usize) -> Self {
        Self { sent: vec![Share::default(); hosts], received: vec![Share::default(); hosts] }
    }
    fn all(&mut self) -> impl Iterator<Item = &mut Share> {
        self.sent.iter_mut().chain(&mut self.received)
    }
    fn scale(&mut self, factor: f64) {
        self.all().for_each(|share| {
            let Share { total, wire } = *share;
            *share = Share::default();
            share.total.add(total, factor);
            share.wire = wire * factor;
        });
    }
    fn add(&mut self, other: &Self) {
        for (share, more) in self.all().zip(other.sent.iter().chain(&other.received)) {
            share.add(more.total, more.wire);
        }
    }
    fn total(&self) -> Total {
        self.sent.iter().fold(Total::default(), |mut sum, share| {
            sum.add(share.total, 1.0);
            sum
        })
    }
}

impl Share {
    fn add(&mut self, total: Total, wire: f64) {
        self.total.add(total, 1.0);
        self.wire += wire;
    }
}

impl Total {
    /// Adds `factor` times `other`, or nothing where `other` has no flows.
    fn add(&mut self, other: Self, factor: f64) {
        if other.flows > 0.0 {
            self.flows += other.flows * factor;
            self.payload += other.payload * factor;
            self.packets += other.packets * factor;
            self.hops += other.hops * factor;
        }
    }
}

/// Flow with all fields zero or absent.
const NO_FLOW: FlowSpec = FlowSpec {
    id: 0,
    workload: 0,
    group: 0,
    src: HostId(0),
    dst: HostId(0),
    size: selvedge_units::Bytes::ZERO,
    priority: None,
    start: Instant::ZERO,
    measured: true,
    on_sent: None,
    on_received: None,
};

/// Assumed slowdown of open flows, relative to an empty network.
const SLOWDOWN: u64 = 4;
/// Bytes of a connected queue pair of an application at both ends together.
const QUEUE_PAIR: u64 = 4_000;
/// Bytes of a work request, until it completes.
const WORK_REQUEST: u64 = 200;
