//! The observer of one run: writes rows to disk and keeps sums and quantiles in bounded memory.

mod flows;
mod groups;
mod ports;
mod tiers;
mod values;

use std::collections::BTreeMap;
use std::iter;

use selvedge_telemetry::{FlowRow, GroupParts, Observer, PortInfo, PortRow, RankRow, RunRecord};
use selvedge_units::Instant;

use crate::point::{PartDigests, PointFiles, PointSummary, RunTotals};
use crate::tables::{FlowWriter, Labels, PortWriter, read_flows};
use crate::{ResultsError, Tier};
use flows::FlowAccumulator;
use ports::PortAccumulator;

/// Recorder of one point of a plan. A run takes the recorder as its observer; [`finish`](Self::finish) is called
/// afterwards.
///
/// An observer cannot fail, so the first error (such as a full disk) is kept: it stops the run at the next progress
/// report, and `finish` returns it.
pub struct PointRecorder {
    files: PointFiles,
    series: String,
    seed: u64,
    port_table: PortTable,
    flow_rows: FlowWriter,
    port_rows: PortWriter,
    flows: FlowAccumulator,
    /// Flows of each workload, if there are several workloads.
    workloads: Vec<(String, FlowAccumulator)>,
    ports: PortAccumulator,
    begin: Instant,
    last_sample: Instant,
    /// Time of the latest finish of a flow.
    last_finish: Instant,
    failed: Option<ResultsError>,
}

impl PointRecorder {
    /// Creates the point's files; a summary left by an earlier run is removed. `labels` distinguish the point's rows
    /// from others: a name alone in a study without cases. `ports` describes every port of the fabric, in any order.
    ///
    /// # Errors
    /// Returns an error when the folder is missing or cannot be written.
    pub fn create(
        files: PointFiles,
        labels: impl Into<Labels>,
        seed: u64,
        ports: &[PortInfo],
    ) -> Result<Self, ResultsError> {
        let labels = labels.into();
        if files.summary.exists() {
            std::fs::remove_file(&files.summary)
                .map_err(|error| ResultsError::io(&files.summary, "replace it", &error))?;
        }
        let port_table = PortTable::new(ports);
        Ok(Self {
            flow_rows: FlowWriter::create(&files.flows, &labels, seed, ports)?,
            port_rows: PortWriter::create(&files.ports, &labels, seed, ports)?,
            flows: FlowAccumulator::default(),
            workloads: Vec::new(),
            ports: PortAccumulator::new(&port_table),
            files,
            series: labels.name,
            seed,
            port_table,
            begin: Instant::ZERO,
            last_sample: Instant::ZERO,
            last_finish: Instant::ZERO,
            failed: None,
        })
    }

    /// Sets the earliest start of a flow, as for lists from ns-3, whose first flow starts after two seconds. Figures of
    /// the whole run then cover the time from `begin` on.
    pub fn with_begin(mut self, begin: Instant) -> Self {
        (self.begin, self.last_sample) = (begin, begin);
        self
    }

    /// Sets the workloads' names and the composition of their groups, if they have any, as incasts and collectives do.
    /// Beside other flows, those of groups count in no flow's completion time: each group has its own. Without this
    /// call, all flows count alike.
    pub fn with_workloads(mut self, workloads: &[(&str, Option<GroupParts>)]) -> Self {
        let groups_of: Vec<Option<GroupParts>> = workloads.iter().map(|&(_, parts)| parts).collect();
        self.flows = FlowAccumulator::of_all(&groups_of);
        if let [_, _, ..] = workloads {
            let own = |&(name, _): &(&str, _)| (name.to_owned(), FlowAccumulator::new(&groups_of));
            self.workloads = workloads.iter().map(own).collect();
        }
        self
    }

    /// Returns the accumulator of a workload, if workloads have their own.
    fn workload(&mut self, number: u16) -> Option<&mut FlowAccumulator> {
        self.workloads.get_mut(usize::from(number)).map(|(_, flows)| flows)
    }

    /// Completes the files and returns the point's summary, which is written last.
    ///
    /// # Errors
    /// Returns the first error, of this call or of the run.
    pub fn finish(mut self, record: &RunRecord) -> Result<PointSummary, ResultsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let parts = PartDigests { flows: self.flow_rows.close()?, ports: self.port_rows.close()? };
        let mut all = iter::once(&mut self.flows).chain(self.workloads.iter_mut().map(|(_, flows)| flows));
        // `fold` rather than `any`: `begin_again` must be called on every accumulator.
        if all.by_ref().fold(false, |again, flows| flows.begin_again() | again) {
            for row in read_flows(&self.files.flows)? {
                let row = row?.flow;
                self.flows.add_again(&row);
                if let Some((_, own)) = self.workloads.get_mut(usize::from(row.workload)) {
                    own.add_again(&row);
                }
            }
        }
        let mut run = RunTotals::new(
            record,
            self.begin,
            if record.flows_finished == record.flows_started { self.last_finish } else { record.end },
            self.port_table.host_utilisation(record, self.begin),
        );
        if let (Some(waits), Some(stuck)) = (&mut run.stuck, &record.stuck)
            && let Some((name, _)) = self.workloads.get(usize::from(stuck.workload))
        {
            *waits += &format!(", of {name}");
        }
        let time = self.flows.time_of_all(&record.time);
        let own = |at: usize| record.time.workloads.get(at).copied().unwrap_or_default();
        let workloads = self.workloads.into_iter().enumerate();
        let workloads = workloads.map(|(at, (name, flows))| (name, flows.finish(&own(at), record.end))).collect();
        let summary = PointSummary {
            series: self.series,
            seed: self.seed,
            run,
            flows: self.flows.finish(&time, record.end),
            workloads,
            queues: self.ports.queues(),
            utilisation: self.ports.utilisation(),
            pauses: self.ports.pauses(&self.port_table, &record.ports),
        };
        summary.save(parts, &self.files.summary)?;
        Ok(summary)
    }

    fn keep_error(&mut self, result: Result<(), ResultsError>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl Observer for PointRecorder {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        for row in rows {
            if self.failed.is_some() {
                return;
            }
            self.last_finish = self.last_finish.max(row.finish.unwrap_or(Instant::ZERO));
            self.flows.add(row);
            if let Some(own) = self.workload(row.workload) {
                own.add(row);
            }
            let pushed = self.flow_rows.push(row);
            self.keep_error(pushed);
        }
    }

    fn on_ranks(&mut self, rows: &[RankRow]) {
        for row in rows {
            self.flows.add_rank(row);
            if let Some(own) = self.workload(row.workload) {
                own.add_rank(row);
            }
        }
    }

    fn on_ports(&mut self, rows: &[PortRow]) {
        for rows in rows.chunk_by(|a, b| a.time == b.time) {
            let time = rows[0].time;
            let interval = time.since(self.last_sample);
            if self.failed.is_some() {
                return;
            }
            let added = self.port_rows.add(rows, interval);
            self.keep_error(added);
            if !interval.is_zero() {
                self.ports.add(rows, Instant::ZERO + time.since(self.begin), interval);
            }
            self.last_sample = time.max(self.begin);
        }
    }

    fn on_progress(&mut self, _now: Instant, _finished: u64) -> bool {
        self.failed.is_none()
    }
}

/// Descriptions of the ports, indexed by port.
struct PortTable {
    ports: Vec<Option<PortInfo>>,
    /// Number of ports of each tier.
    tiers: BTreeMap<Tier, u64>,
}

impl PortTable {
    fn new(infos: &[PortInfo]) -> Self {
        let len = infos.iter().map(|port| port.id.index() + 1).max().unwrap_or(0);
        let mut ports = vec![None; len];
        let mut tiers = BTreeMap::new();
        for info in infos {
            *tiers.entry(info.kind.into()).or_default() += 1;
            ports[info.id.index()] = Some(info.clone());
        }
        Self { ports, tiers }
    }

    fn port(&self, index: usize) -> Option<&PortInfo> {
        self.ports.get(index)?.as_ref()
    }

    fn host_utilisation(&self, record: &RunRecord, begin: Instant) -> Option<f64> {
        // Sums in bits times picoseconds per second.
        let (mut sent, mut possible) = (0.0, 0.0);
        for totals in &record.ports {
            if let Some(info) = self.port(totals.id.index()).filter(|info| Tier::from(info.kind) == Tier::Host) {
                let most = info.rate.as_bps() as f64 * record.end.since(begin).as_ps() as f64;
                // A frame in transmission at the end counts in full, hence the limit.
                sent += (totals.bytes.get() as f64 * 8.0 * 1e12).min(most);
                possible += most;
            }
        }
        (possible > 0.0).then(|| sent / possible)
    }
}
