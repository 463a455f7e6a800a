//! A run: what happens between its windows, from the first flow to the record of the whole.

use std::sync::{Arc, Mutex};

use selvedge_switch::Change;
use selvedge_telemetry::{FlowRow, Observer, PortRow, RankRow, RunRecord, StuckRank};
use selvedge_units::{Bytes, Duration, Instant};

use super::build::{Built, build};
use super::deadlock::Watch;
use super::profile::Profiler;
use super::stall::StallLimits;
use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::kernel::nodes::Nodes;
use crate::kernel::rounds::{Conductor, Parallel, Round, WindowSlice, drive, exchange, lock};
use crate::kernel::schedule::WindowSchedule;
use crate::net::partition::Partition;
use crate::record::{Event, Focus, Recorder};
use crate::workload::schedule::Executor;

/// Runs `config` to its end.
///
/// # Errors
/// If the configuration cannot be built; nothing has run then.
pub fn run(
    config: &SimConfig,
    library: &dyn Library,
    parallel: Parallel,
    observer: &mut dyn Observer,
) -> Result<RunRecord, ConfigError> {
    let built = build(config, library, parallel)?;
    Ok(conduct::<false>(config, built, parallel, observer, &mut Nobody))
}

/// Runs `config` to its end, and tells `recorder` what happened to the flows and packets that `focus` names. The
/// results equal those of [`run`].
///
/// # Errors
/// If the configuration cannot be built; nothing has run then.
pub fn run_recorded(
    config: &SimConfig,
    library: &dyn Library,
    parallel: Parallel,
    observer: &mut dyn Observer,
    focus: &Focus,
    recorder: &mut dyn Recorder,
) -> Result<RunRecord, ConfigError> {
    let mut built = build(config, library, parallel)?;
    let focus = Arc::new(focus.clone());
    built
        .partitions
        .iter_mut()
        .for_each(|partition: &mut Partition<true>| partition.edge.log.focus = Arc::clone(&focus));
    Ok(conduct(config, built, parallel, observer, recorder))
}

fn conduct<const RECORDED: bool>(
    config: &SimConfig,
    built: Built<RECORDED>,
    parallel: Parallel,
    observer: &mut dyn Observer,
    recorder: &mut dyn Recorder,
) -> RunRecord {
    let Built { partitions, places, changes, schedule } = built;
    let partitions: Vec<Mutex<Partition<RECORDED>>> = partitions.into_iter().map(Mutex::new).collect();
    let mut run = Run::new(config, &partitions, places, changes, schedule, observer, recorder);
    drive(&partitions, parallel, &mut run);
    run.finish()
}

/// Number of events between two reports of what has been delivered: about a hundredth of a second of computing.
const TOLD_EVERY: u64 = 200_000;

/// Recorder of a run that is not recorded.
struct Nobody;

impl Recorder for Nobody {
    fn on_events(&mut self, _: &[Event]) {}
}

/// Returns the stall limits of a run, taking the queue pairs of its applications into account.
fn stall_limits<const RECORDED: bool>(config: &SimConfig, partitions: &[Mutex<Partition<RECORDED>>]) -> StallLimits {
    let mut limits = StallLimits::of(config);
    limits.timeout = limits.timeout.saturating_add(silence(config, partitions));
    limits
}

/// Returns how long queue pairs of applications may be silent in normal operation: twice their timeout.
fn silence<const RECORDED: bool>(config: &SimConfig, partitions: &[Mutex<Partition<RECORDED>>]) -> Duration {
    let partition = lock(&partitions[0]);
    let slowest = config.paths.slowest_host();
    let code = |posting| config.transport.connection_params(posting, slowest).timeout;
    let longest = partition.workload.postings.iter().map(code).max().unwrap_or(0);
    // The shift is limited: beyond a second, anything counts as silence.
    if longest == 0 { Duration::ZERO } else { Duration::from_ns(4_096 << longest.min(18)) * 2 }
}

/// Part of a run between windows, on one thread with access to the whole fabric.
struct Run<'a, const RECORDED: bool> {
    partitions: &'a [Mutex<Partition<RECORDED>>],
    /// Partition and local number of each port.
    places: Vec<(u16, u32)>,
    observer: &'a mut dyn Observer,
    recorder: &'a mut dyn Recorder,
    happened: Vec<Event>,
    schedule: WindowSchedule,
    /// First window that may still have something to do.
    from: u64,
    /// Other window of a pair, which runs before anything happens between windows.
    owed: Option<u64>,
    /// Time at which windows were last cut short.
    cut: Instant,
    /// Failures and repairs to come, latest first.
    changes: Vec<Change>,
    sample: Option<Duration>,
    next_sample: Instant,
    /// Number of samples so far.
    samples: u64,
    /// Number of events at the last sample.
    sampled: u64,
    /// Number of events after which the observer is next told how much has been delivered.
    next_told: u64,
    stop_at: Instant,
    stop_flows: u64,
    /// Flows that had begun before the last step between windows, and those that had finished.
    started: u64,
    finished: u64,
    /// Whether no flow is under way or still to begin.
    is_over: bool,
    /// Time before which everything has happened.
    now: Instant,
    /// Time after which nothing has happened.
    ahead: Instant,
    /// Time before which everything has happened on each side, if that is later than `now`.
    sides: [Instant; 2],
    watch: Watch,
    profiler: Option<Profiler>,
    flows: Vec<FlowRow>,
    ranks: Vec<RankRow>,
    /// Rows of the ports, by number. Kept from sample to sample to reuse its memory.
    ports: Vec<PortRow>,
    record: RunRecord,
}

impl<const RECORDED: bool> Conductor for Run<'_, RECORDED> {
    fn between_windows(&mut self) -> Option<Round> {
        if RECORDED {
            self.report_events(self.now);
        }
        if let Some(window) = self.owed.take() {
            return Some(Round { first: self.enter_window(window, Instant::NEVER), second: None });
        }
        if !self.report() {
            return None;
        }
        loop {
            // A window that was cut short continues after the event for which it was cut.
            let left = self.next_window(self.schedule.first_with(self.now.as_ps()));
            let next = left.filter(|&window| window >= self.from).or_else(|| self.next_window(self.from));
            // Where everything waits for a link to come back, the repair is next.
            let begin = left.map_or(self.next_change(), |window| Instant::from_ps(self.schedule.begin(window)));
            self.look_at_flows(begin);
            if begin.max(self.now) == Instant::NEVER {
                self.record.hopeless = true;
                return None;
            }
            if self.is_done() {
                self.is_over = true;
                // The nodes that are behind catch up.
                self.stop_at = self.stop_at.min(self.ahead.max(self.now));
            }
            // Time of the next event that concerns the whole fabric.
            let due = self.next_sample.min(self.next_change()).min(self.watch.next_check()).min(self.stop_at);
            if let Some(window) = next
                && self.schedule.begin(window) < due.as_ps()
            {
                return Some(self.enter(window, due));
            }
            if !self.do_what_is_due(due, begin.max(self.now)) {
                return None;
            }
        }
    }
}

impl<'a, const RECORDED: bool> Run<'a, RECORDED> {
    fn new(
        config: &SimConfig,
        partitions: &'a [Mutex<Partition<RECORDED>>],
        places: Vec<(u16, u32)>,
        changes: Vec<Change>,
        schedule: WindowSchedule,
        observer: &'a mut dyn Observer,
        recorder: &'a mut dyn Recorder,
    ) -> Self {
        Self {
            partitions,
            places,
            observer,
            recorder,
            happened: Vec::new(),
            schedule,
            from: 0,
            owed: None,
            cut: Instant::ZERO,
            changes,
            sample: config.sample,
            next_sample: config.sample.map_or(Instant::NEVER, |interval| Instant::ZERO + interval),
            samples: 0,
            sampled: 0,
            next_told: 0,
            stop_at: config
                .stop
                .time
                .map_or(Instant::HORIZON, |time| Instant::ZERO.saturating_add(time).min(Instant::HORIZON)),
            stop_flows: config.stop.flows.unwrap_or(u64::MAX),
            started: 0,
            finished: 0,
            is_over: false,
            now: Instant::ZERO,
            ahead: Instant::ZERO,
            sides: [Instant::ZERO; 2],
            profiler: Profiler::new(config.looks, config.seed, schedule.step()),
            watch: Watch::new(stall_limits(config, partitions)),
            flows: Vec::new(),
            ranks: Vec::new(),
            ports: Vec::new(),
            record: RunRecord::default(),
        }
    }

    /// Tells the observer what has happened, and the partitions whether more flows are wanted; returns whether the run
    /// is to go on.
    fn report(&mut self) -> bool {
        self.report_flows(self.now);
        let (mut started, mut finished) = (0, 0);
        for partition in self.partitions {
            let partition = lock(partition);
            started += partition.flows_started;
            finished += partition.flows_finished;
        }
        (self.started, self.finished) = (started, finished);
        if started >= self.stop_flows {
            // Streams of flows end by their number; flows that follow others end here.
            self.partitions.iter().for_each(|partition| lock(partition).closing = true);
        }
        if self.events() >= self.next_told {
            self.tell_delivered();
        }
        self.observer.on_progress(self.now, finished)
    }

    /// Tells the observer how much has been delivered. Rarely called, because it asks every host.
    #[cold]
    fn tell_delivered(&mut self) {
        let (mut delivered, mut hosts) = (0, 0);
        for partition in self.partitions {
            let partition = lock(partition);
            hosts += partition.edge.hosts.len() as u64;
            delivered += partition.edge.hosts.iter().map(|host| host.nic.stats().goodput).sum::<u64>();
        }
        self.next_told = self.events() + TOLD_EVERY.max(hosts * 16);
        self.observer.on_delivered(Bytes::new(delivered));
    }

    /// Returns the time at which a link next fails or comes back.
    fn next_change(&self) -> Instant {
        self.changes.last().map_or(Instant::NEVER, |change| change.at)
    }

    /// Returns a round with the rest of `window`, up to `due`, and the next window if the two are a pair.
    fn enter(&mut self, window: u64, due: Instant) -> Round {
        let first = self.enter_window(window, due);
        let whole = |window| WindowSlice {
            window,
            begin: Instant::from_ps(self.schedule.begin(window)),
            end: Instant::from_ps(self.schedule.end(window)),
        };
        let second = whole(window + 1);
        let are_pair = self.schedule.leads(window) && first == whole(window) && second.end <= due && !self.is_ending();
        if RECORDED {
            // All partitions have to learn which queue pairs are followed.
            self.owed = are_pair.then_some(window + 1);
            return Round { first, second: None };
        }
        Round { first, second: are_pair.then(|| self.enter_window(window + 1, due)) }
    }

    fn enter_window(&mut self, window: u64, due: Instant) -> WindowSlice {
        let begin = self.cut.max(Instant::from_ps(self.schedule.begin(window)));
        let end = due.min(Instant::from_ps(self.schedule.end(window)));
        self.from = window + 1;
        self.now = self.now.max(self.schedule.done(window, end));
        self.ahead = self.ahead.max(end);
        let side = if self.schedule.leader().is_some() { (window & 1) as usize } else { 0 };
        self.sides[side] = end;
        WindowSlice { window, begin, end }
    }

    /// Looks at the flows under way if a look is due; nothing happens before `begin`.
    fn look_at_flows(&mut self, begin: Instant) {
        let Some(profiler) = &mut self.profiler else { return };
        // Nothing may be left of the run.
        let begin =
            if begin == Instant::NEVER { self.now } else { begin.max(self.now).min(self.stop_at.max(self.now)) };
        let under_way = self.started - self.finished;
        if under_way == 0 {
            profiler.skip_to(begin, || self.partitions.iter().map(|partition| lock(partition).events()).sum());
        } else if profiler.next() < begin {
            let partitions: Vec<_> = self.partitions.iter().map(lock).collect();
            let times = self.sides.map(|side| side.max(self.now));
            profiler.look(times, begin, under_way, &partitions);
        }
    }

    /// Handles the events `due` that concern the whole fabric at that time; nothing else happens before `begin`.
    /// Returns whether the run goes on.
    fn do_what_is_due(&mut self, due: Instant, begin: Instant) -> bool {
        let (is_change, is_check) = (due == self.next_change(), due == self.watch.next_check());
        self.from = self.schedule.first_with(due.as_ps());
        self.cut = due;
        self.now = due;
        self.sides = [due; 2];
        if due == self.stop_at {
            return false;
        }
        if is_change {
            self.change_links();
        }
        if due == self.next_sample {
            if self.is_still() && (self.is_quiet() || self.is_far(begin)) {
                self.skip_samples(begin);
            } else {
                self.sample_ports();
            }
        }
        if is_check {
            let partitions: Vec<_> = self.partitions.iter().map(lock).collect();
            if let Some(verdict) = self.watch.check(self.now, &partitions, !self.changes.is_empty(), begin) {
                self.record.hopeless = verdict.deadlock.is_none();
                self.record.deadlock = verdict.deadlock;
                return false;
            }
        }
        true
    }

    /// Returns the next window, at `from` or later, in which something may happen.
    fn next_window(&self, from: u64) -> Option<u64> {
        self.partitions.iter().filter_map(|partition| lock(partition).next_window(from)).min()
    }

    /// Returns whether every flow has ended and none will begin: what is still under way does not matter.
    fn is_done(&self) -> bool {
        self.partitions.iter().all(|partition| !lock(partition).expects_arrivals()) && self.is_quiet()
    }

    /// Returns whether seven eighths of the configured number of flows have begun: each window may then be the last.
    fn is_ending(&self) -> bool {
        self.started >= self.stop_flows - self.stop_flows / 8
    }

    /// Returns whether every flow that has begun has ended at both ends.
    fn is_quiet(&self) -> bool {
        let (mut started, mut finished, mut closed) = (0, 0, 0);
        for partition in self.partitions {
            let partition = lock(partition);
            started += partition.flows_started;
            finished += partition.flows_finished;
            closed += partition.flows_closed;
        }
        started == finished && started == closed
    }

    /// Returns whether nothing has happened since the last sample.
    fn is_still(&self) -> bool {
        self.events() == self.sampled
    }

    /// Returns whether nothing will happen until `begin`, 1,000 samples away or more; after 20,000 samples, one sample
    /// is enough. Senders may wait for timeouts that have grown to seconds.
    fn is_far(&self, begin: Instant) -> bool {
        let many = if self.samples < 20_000 { 1_000 } else { 1 };
        self.sample.is_some_and(|interval| begin.since(self.now) > interval * many)
    }

    fn events(&self) -> u64 {
        self.partitions.iter().map(|partition| lock(partition).events()).sum()
    }

    /// Tells the recorder the events before `end`; later events may still be incomplete. The partitions' logs are in
    /// order, and all events of a node are in one of them.
    fn report_events(&mut self, end: Instant) {
        let mut fresh = Vec::new();
        for partition in self.partitions {
            let mut partition = lock(partition);
            self.happened.append(&mut partition.edge.log.events);
            fresh.append(&mut partition.edge.log.fresh);
        }
        if !fresh.is_empty() {
            self.partitions.iter().for_each(|partition| lock(partition).edge.log.followed.extend(&fresh));
        }
        self.happened.sort_by_key(|event| (event.at, event.node));
        let known = self.happened.partition_point(|event| event.at < end);
        if known > 0 {
            self.recorder.on_events(&self.happened[..known]);
        }
        self.happened.drain(..known);
    }

    /// Tells the observer which flows, and parts of schedules, have ended before `end`.
    fn report_flows(&mut self, end: Instant) {
        for partition in self.partitions {
            let mut partition = lock(partition);
            self.flows.append(&mut partition.rows);
            self.ranks.append(&mut partition.ranks);
        }
        self.ranks.sort_unstable_by_key(|row| (row.end, row.workload, row.group, row.begin));
        self.flows.sort_unstable_by_key(|row| (row.finish, row.workload, row.id, row.group));
        let ranks = self.ranks.partition_point(|row| row.end.is_none_or(|done| done < end));
        if ranks > 0 {
            self.observer.on_ranks(&self.ranks[..ranks]);
            self.ranks.drain(..ranks);
        }
        let flows = self.flows.partition_point(|row| row.finish.is_none_or(|finish| finish < end));
        if flows > 0 {
            self.observer.on_flows(&self.flows[..flows]);
            self.flows.drain(..flows);
        }
    }

    fn sample_ports(&mut self) {
        self.ports.resize(self.places.len(), PortRow::default());
        for partition in self.partitions {
            lock(partition).net.sample(self.now, &mut self.ports);
        }
        self.observer.on_ports(&self.ports);
        self.samples += 1;
        self.sampled = self.events();
        self.next_sample = self.next_sample.saturating_add(self.sample.unwrap_or(Duration::MAX));
    }

    /// Skips samples until `begin` where nothing happens for long: flow lists may begin seconds into the run, and lost
    /// flows may wait for minutes.
    fn skip_samples(&mut self, begin: Instant) {
        let Some(interval) = self.sample else { return };
        let skipped = begin.since(self.next_sample).as_ps() / interval.as_ps() + 1;
        self.next_sample = self.next_sample.saturating_add(interval * skipped);
    }

    fn change_links(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at == self.now) {
            for partition in self.partitions {
                let mut partition = lock(partition);
                partition.net.now = self.now;
                partition.net.set_forwarding(Arc::clone(&change.forwarding));
            }
            for (port, down) in change.ports {
                let (partition, at) = self.places[port.index()];
                lock(&self.partitions[partition as usize]).set_down(at, down);
            }
        }
        // A repaired port may have sent something at once.
        exchange(self.partitions);
    }

    /// Returns a rank that waits in a schedule although all messages have arrived, if there is one.
    fn stuck(&self) -> Option<StuckRank> {
        let partitions: Vec<_> = self.partitions.iter().map(lock).collect();
        let executors = partitions.first()?.workload.executors.len();
        (0..executors).find_map(|number| {
            let parts: Vec<_> = partitions.iter().map(|partition| &partition.workload.executors[number]).collect();
            Executor::stuck(&parts)
        })
    }

    /// Reports the remaining events and returns the record of the whole run.
    fn finish(mut self) -> RunRecord {
        self.now = self.now.max(self.ahead);
        if RECORDED {
            self.report_events(Instant::NEVER);
        }
        self.report_flows(Instant::NEVER);
        // The rest of the last interval is sampled, unless samples of it are skipped.
        if self.sample.is_some_and(|interval| !self.is_still() || self.now + interval > self.next_sample) {
            self.sample_ports();
        }
        let mut record = std::mem::take(&mut self.record);
        record.end = self.now;
        record.time = self.profiler.take().map(Profiler::finish).unwrap_or_default();
        for partition in self.partitions {
            let mut partition = lock(partition);
            self.ranks.extend(partition.workload.executors.iter().flat_map(|executor| executor.unfinished(self.now)));
            partition.add_to(self.now, &mut record);
            self.flows.extend(partition.unfinished_messages());
            self.flows.extend(partition.edge.hosts.iter_mut().flat_map(crate::net::host::Host::give_up));
        }
        let all_came = record.flows_started == record.flows_finished && record.flows_started < self.stop_flows;
        if all_came && (self.is_over || record.hopeless) {
            record.stuck = self.stuck();
            record.hopeless |= record.stuck.is_some();
        }
        self.flows.sort_unstable_by_key(|row| (row.workload, row.id, row.group));
        if !self.flows.is_empty() {
            self.observer.on_flows(&self.flows);
        }
        self.ranks.sort_unstable_by_key(|row| (row.workload, row.group, row.begin));
        if !self.ranks.is_empty() {
            self.observer.on_ranks(&self.ranks);
        }
        record.ports.sort_unstable_by_key(|port| port.id);
        record
    }
}
