//! A simulation that its caller drives: flows are injected and time advances on demand.
//!
//! One partition runs the windows of the fabric's schedule. An advance cuts windows short at its end, exactly as a
//! sample of ports cuts them in a run; results of flows therefore depend neither on the number of advances nor on their
//! ends.

use std::sync::Arc;

use selvedge_switch::Change;
use selvedge_telemetry::{FlowRow, RunRecord};
use selvedge_units::{Bytes, HostId, Instant};

use super::build::{Built, build_with};
use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::kernel::nodes::Nodes;
use crate::kernel::rounds::{Parallel, WindowSlice};
use crate::kernel::schedule::WindowSchedule;
use crate::net::partition::Partition;
use crate::workload::{FlowSpec, LARGEST_FLOW, Workload, WorkloadConfig};

/// Flow to inject into a [`Session`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Injection {
    /// Sender.
    pub src: HostId,
    /// Receiver, another host.
    pub dst: HostId,
    /// Payload in bytes, above zero and at most [`LARGEST_FLOW`].
    pub size: Bytes,
    /// Time at which the application hands the flow to the NIC; not before [`Session::now`].
    pub start: Instant,
}

/// Simulation that goes on when it is told to, for co-simulation and for learning: open, inject flows, advance, drain
/// what has completed.
///
/// Equal calls give equal results, bit by bit. Flows that are injected before their start complete as if they had been
/// in the scenario from the beginning, however the time is divided into advances. Samples of ports, the detection of
/// deadlocks and the end conditions of runs are not in use: a flow that never completes is one that is not drained.
///
/// ```
/// use selvedge_sim::topology::{FatTree, LinkConfig};
/// use selvedge_sim::{Injection, Session, Simulation, workload::Permutation};
/// use selvedge_units::{Bytes, Duration, HostId, Instant, Rate};
///
/// let link = LinkConfig { rate: Rate::from_gbps(100), delay: Duration::from_us(1) };
/// // The traffic of the builder is left out of the session.
/// let simulation = Simulation::builder(FatTree { k: 4, link }).workload(Permutation::of(Bytes::from_kb(1))).build()?;
/// let mut session = simulation.session(false)?;
/// let flow = Injection { src: HostId(0), dst: HostId(9), size: Bytes::from_kb(100), start: Instant::ZERO };
/// let number = session.inject(flow)?;
/// session.advance(Instant::ZERO + Duration::from_us(100))?;
/// let done = session.drain();
/// assert_eq!(done[0].id, number);
/// # Ok::<(), selvedge_sim::ConfigError>(())
/// ```
pub struct Session {
    partition: Partition<false>,
    places: Vec<(u16, u32)>,
    schedule: WindowSchedule,
    /// Failures and repairs to come, latest first.
    changes: Vec<Change>,
    hosts: u32,
    /// Number of the workload of injected flows.
    workload: u16,
    injected: u64,
    /// First window that may still have something to do.
    from: u64,
    /// Time at which windows were last cut short.
    cut: Instant,
    /// Time before which everything has happened.
    done: Instant,
    /// End of the last advance.
    now: Instant,
    /// Flows that have finished and are not drained.
    rows: Vec<FlowRow>,
}

impl Session {
    /// Opens a session on the fabric of `config`. With `background`, the configured traffic runs beside injected flows;
    /// else there are no other flows.
    ///
    /// # Errors
    /// A configuration that cannot be built.
    pub fn open(config: &SimConfig, library: &dyn Library, background: bool) -> Result<Self, ConfigError> {
        let graph = config.paths.graph();
        let own = match background {
            true => config.traffic(library)?,
            false => Workload::of_injected(),
        };
        let workload = u16::try_from(own.summaries.len())
            .map_err(|_| ConfigError::new("workload", "leave room for injected flows: at most 65,535 workloads"))?;
        let mut config = config.clone();
        if !background {
            (config.workload, config.beside) = (WorkloadConfig::default(), None);
        }
        let traffic = own.with_injected(graph);
        let Built { mut partitions, places, changes, schedule } =
            build_with(&config, traffic, library, Parallel::default())?;
        Ok(Self {
            partition: partitions.swap_remove(0),
            places,
            schedule,
            changes,
            hosts: graph.host_count(),
            workload,
            injected: 0,
            from: 0,
            cut: Instant::ZERO,
            done: Instant::ZERO,
            now: Instant::ZERO,
            rows: Vec::new(),
        })
    }

    /// Returns the time up to which the simulation has advanced; everything earlier has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of hosts; they are numbered from 0.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of the workload that injected flows have in rows: 0 without background traffic.
    pub fn workload(&self) -> u16 {
        self.workload
    }

    /// Injects a flow and returns its number, [`FlowRow::id`]: 0 for the first one, then in the order of calls.
    ///
    /// # Errors
    /// A host that does not exist, a flow to its own sender, a size out of range, or a start that has passed; nothing
    /// is injected then.
    pub fn inject(&mut self, flow: Injection) -> Result<u64, ConfigError> {
        self.check(&flow)?;
        let Injection { src, dst, size, start } = flow;
        let id = self.injected;
        self.partition.take_flow(FlowSpec {
            id,
            workload: self.workload,
            group: 0,
            src,
            dst,
            size,
            priority: None,
            start,
            measured: true,
            on_sent: None,
            on_received: None,
        });
        self.injected += 1;
        Ok(id)
    }

    /// Checks a flow without injecting it.
    ///
    /// # Errors
    /// Those of [`Session::inject`].
    pub fn check(&self, flow: &Injection) -> Result<(), ConfigError> {
        let &Injection { src, dst, size, start } = flow;
        for (end, host) in [("source", src), ("destination", dst)] {
            if host.0 >= self.hosts {
                let message =
                    format!("host {} does not exist: hosts are numbered from 0 to {}", host.0, self.hosts - 1);
                return Err(ConfigError::new(end, message));
            }
        }
        if src == dst {
            return Err(ConfigError::new("destination", format!("host {} would send to itself", src.0)));
        }
        if size.is_zero() || size > LARGEST_FLOW {
            let message = format!("{size}: a flow has at least one byte and at most {LARGEST_FLOW}");
            return Err(ConfigError::new("size", message));
        }
        if start < self.now || start >= Instant::HORIZON {
            let (now, last) = (self.now.as_ps(), Instant::HORIZON.as_ps());
            let message = format!("{} ps: give a time from {now} ps (now) to before {last} ps", start.as_ps());
            return Err(ConfigError::new("start", message));
        }
        Ok(())
    }

    /// Simulates everything that happens before `to`.
    ///
    /// # Errors
    /// A time that has passed, or one that no run reaches; nothing happens then.
    pub fn advance(&mut self, to: Instant) -> Result<(), ConfigError> {
        self.check_time(to)?;
        self.run(to, false);
        Ok(())
    }

    /// Simulates until some flow completes, but at most to `limit`, and returns the new time. That time is the end of
    /// a window of the fabric's schedule, at most twice the delay of its shortest link after the completion.
    ///
    /// # Errors
    /// Those of [`Session::advance`].
    pub fn advance_to_completion(&mut self, limit: Instant) -> Result<Instant, ConfigError> {
        self.check_time(limit)?;
        self.run(limit, true);
        Ok(self.now)
    }

    /// Returns the flows that have completed since the last call and before [`Session::now`], by time of completion.
    pub fn drain(&mut self) -> Vec<FlowRow> {
        self.rows.append(&mut self.partition.rows);
        self.rows.sort_unstable_by_key(|row| (row.finish, row.workload, row.id, row.group));
        let known = self.rows.partition_point(|row| row.finish.is_none_or(|finish| finish < self.now));
        self.rows.drain(..known).collect()
    }

    /// Returns the number of flows that have begun, and of those that are complete.
    pub fn flows(&self) -> (u64, u64) {
        (self.partition.flows_started, self.partition.flows_finished)
    }

    /// Returns the totals so far, as of a run that ends now.
    pub fn totals(&self) -> RunRecord {
        let mut record = RunRecord { end: self.now, ..RunRecord::default() };
        self.partition.add_to(self.now, &mut record);
        record.ports.sort_unstable_by_key(|port| port.id);
        record
    }

    fn check_time(&self, to: Instant) -> Result<(), ConfigError> {
        if to < self.now || to > Instant::HORIZON {
            let (now, last) = (self.now.as_ps(), Instant::HORIZON.as_ps());
            let message = format!("{} ps: give a time from {now} ps (now) to {last} ps", to.as_ps());
            return Err(ConfigError::new("to", message));
        }
        Ok(())
    }

    /// Runs windows up to `to`, or until a flow completes if `stops` is set.
    fn run(&mut self, to: Instant, stops: bool) {
        loop {
            let due = self.changes.last().map_or(to, |change| change.at.min(to));
            let left = self.partition.next_window(self.schedule.first_with(self.done.as_ps()));
            let next = left.filter(|&window| window >= self.from).or_else(|| self.partition.next_window(self.from));
            if let Some(window) = next.filter(|&window| self.schedule.begin(window) < due.as_ps()) {
                let before = self.partition.flows_finished;
                let slice = self.enter(window, due);
                self.partition.run_window(slice);
                if !stops || self.partition.flows_finished == before {
                    continue;
                }
                // The sides that take turns meet at the end of this window; what completes there is known then.
                return self.run(slice.end.max(self.done).min(to), false);
            }
            self.from = self.schedule.first_with(due.as_ps());
            (self.cut, self.done) = (due, due);
            self.change_links();
            if due == to {
                self.now = to;
                return;
            }
        }
    }

    fn enter(&mut self, window: u64, due: Instant) -> WindowSlice {
        let begin = self.cut.max(Instant::from_ps(self.schedule.begin(window)));
        let end = due.min(Instant::from_ps(self.schedule.end(window)));
        self.from = window + 1;
        self.done = self.done.max(self.schedule.done(window, end));
        WindowSlice { window, begin, end }
    }

    /// Makes the links fail or come back that do so now.
    fn change_links(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at == self.done) {
            self.partition.net.now = self.done;
            self.partition.net.set_forwarding(Arc::clone(&change.forwarding));
            for (port, down) in change.ports {
                let (_, at) = self.places[port.index()];
                self.partition.set_down(at, down);
            }
        }
    }
}
