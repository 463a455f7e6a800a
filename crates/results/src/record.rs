//! The observer of one run: rows to disk, sums and quantiles in bounded memory.

use std::collections::BTreeMap;

use selvedge_telemetry::{FlowRow, Observer, PortInfo, PortRow, PortTotals, RunRecord};
use selvedge_units::{Duration, Instant};

use crate::point::{
    Distribution, FlowSummary, PausedPort, Pauses, PointFiles, PointSummary, QueueTimes, RunTotals, SizeClass,
    TierPauses, TierQueues, WORST_PORTS, cdf_levels, tail_levels,
};
use crate::tables::{FlowWriter, PortWriter};
use crate::timeline::{Bin, Timeline};
use crate::{Quantiles, ResultsError, Tier};

/// Records one point of a plan; hand it to the run as its observer, then call
/// [`finish`](Self::finish).
///
/// An observer cannot fail, so the first error (a full disk) is kept: it stops the run at the next
/// progress report, and `finish` returns it.
pub struct PointRecorder {
    files: PointFiles,
    series: String,
    seed: u64,
    fabric: Fabric,
    flow_rows: FlowWriter,
    port_rows: PortWriter,
    flows: FlowAccumulator,
    ports: PortAccumulator,
    last_sample: Instant,
    failed: Option<ResultsError>,
}

impl PointRecorder {
    /// Creates the point's files; a summary left by an earlier run is removed. `ports` describes
    /// every port of the fabric, in any order.
    ///
    /// # Errors
    /// When the folder is missing or cannot be written.
    pub fn create(files: PointFiles, series: &str, seed: u64, ports: &[PortInfo]) -> Result<Self, ResultsError> {
        if files.summary.exists() {
            std::fs::remove_file(&files.summary)
                .map_err(|error| ResultsError::io(&files.summary, "replace it", &error))?;
        }
        let fabric = Fabric::new(ports);
        Ok(Self {
            flow_rows: FlowWriter::create(&files.flows, series, seed)?,
            port_rows: PortWriter::create(&files.ports, series, seed, ports)?,
            flows: FlowAccumulator::default(),
            ports: PortAccumulator::new(&fabric),
            files,
            series: series.into(),
            seed,
            fabric,
            last_sample: Instant::ZERO,
            failed: None,
        })
    }

    /// Says which workloads consist of groups, as incasts and collectives do. Beside others their flows
    /// count in no flow's completion time: each group has its own. Without, all flows are alike.
    pub fn with_groups(mut self, is_grouped: &[bool]) -> Self {
        let mixed = is_grouped.contains(&true) && is_grouped.contains(&false);
        self.flows.is_grouped = if mixed { is_grouped.to_vec() } else { Vec::new() };
        self
    }

    /// Completes the files and summarises the point; the summary is written last.
    ///
    /// # Errors
    /// The first thing that went wrong, now or during the run.
    pub fn finish(self, record: &RunRecord) -> Result<PointSummary, ResultsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.flow_rows.close()?;
        self.port_rows.close()?;
        let summary = PointSummary {
            series: self.series,
            seed: self.seed,
            run: RunTotals::new(record, self.fabric.host_utilisation(record)),
            flows: self.flows.finish(),
            queues: self.ports.queues(),
            pauses: self.ports.pauses(&self.fabric, &record.ports),
        };
        summary.save(&self.files.summary)?;
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
            self.flows.add(row);
            let pushed = self.flow_rows.push(row);
            self.keep_error(pushed);
        }
    }

    fn on_ports(&mut self, rows: &[PortRow]) {
        for rows in rows.chunk_by(|a, b| a.time == b.time) {
            let time = rows[0].time;
            let interval = time.since(self.last_sample);
            for row in rows {
                if self.failed.is_some() {
                    return;
                }
                let pushed = self.port_rows.push(row, interval);
                self.keep_error(pushed);
            }
            if !interval.is_zero() {
                self.ports.add(rows, time, interval, &self.fabric);
            }
            self.last_sample = time;
        }
    }

    fn on_progress(&mut self, _now: Instant, _finished: u64) -> bool {
        self.failed.is_none()
    }
}

/// The ports by number.
struct Fabric {
    ports: Vec<Option<PortInfo>>,
    /// Number of ports by tier.
    tiers: BTreeMap<Tier, u64>,
}

impl Fabric {
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

    fn host_utilisation(&self, record: &RunRecord) -> Option<f64> {
        // In bits times picoseconds per second.
        let (mut sent, mut possible) = (0.0, 0.0);
        for totals in &record.ports {
            if let Some(info) = self.port(totals.id.index()).filter(|info| Tier::from(info.kind) == Tier::Host) {
                sent += totals.bytes.get() as f64 * 8.0 * 1e12;
                possible += info.rate.as_bps() as f64 * record.end.as_ps() as f64;
            }
        }
        (possible > 0.0).then(|| sent / possible)
    }
}

/// Values that a size class keeps exactly: forty classes of them are small beside the totals.
const EXACT_PER_CLASS: usize = 1 << 14;

#[derive(Default)]
struct FlowAccumulator {
    /// By workload; empty where all flows count alike.
    is_grouped: Vec<bool>,
    measured: u64,
    unfinished: u64,
    fct_us: Quantiles,
    slowdown: Quantiles,
    single_packet_fct_us: Quantiles,
    /// By the power of two that the size does not exceed.
    by_size: BTreeMap<u32, ClassAccumulator>,
    /// Incasts and collectives by workload and repetition.
    groups: BTreeMap<(u16, u32), Group>,
}

struct ClassAccumulator {
    slowdown: Quantiles,
    fct_sum_us: f64,
}

#[derive(Clone, Copy)]
struct Group {
    start: Instant,
    /// `None` once a flow of it is known to be unfinished.
    finish: Option<Instant>,
}

impl FlowAccumulator {
    fn add(&mut self, row: &FlowRow) {
        if !row.measured {
            return;
        }
        let is_grouped = self.is_grouped.get(usize::from(row.workload)).copied();
        if is_grouped != Some(false) {
            self.groups
                .entry((row.workload, row.group))
                .and_modify(|group| {
                    group.start = group.start.min(row.start);
                    group.finish = group.finish.zip(row.finish).map(|(a, b)| a.max(b));
                })
                .or_insert(Group { start: row.start, finish: row.finish });
        }
        if is_grouped == Some(true) {
            return;
        }
        self.measured += 1;
        let (Some(fct), Some(slowdown)) = (row.fct(), row.slowdown()) else {
            self.unfinished += 1;
            return;
        };
        let fct_us = fct.as_us_f64();
        self.fct_us.add(fct_us);
        self.slowdown.add(slowdown);
        if row.packets == 1 {
            self.single_packet_fct_us.add(fct_us);
        }
        let class = self.by_size.entry(size_class(row.size.get())).or_insert_with(|| ClassAccumulator {
            slowdown: Quantiles::with_exact_limit(EXACT_PER_CLASS),
            fct_sum_us: 0.0,
        });
        class.slowdown.add(slowdown);
        class.fct_sum_us += fct_us;
    }

    fn finish(mut self) -> FlowSummary {
        let enough = |level: f64, count: u64| (1.0 - level) * count as f64 >= 1.0 - 1e-9;
        let single = &mut self.single_packet_fct_us;
        let messages = single.count();
        let known = tail_levels().into_iter().take_while(|&level| enough(level, messages));
        let single_packet_tail_us = known.filter_map(|level| single.at(level)).collect();
        let complete: Vec<f64> = self
            .groups
            .values()
            .filter_map(|group| group.finish.map(|finish| finish.since(group.start).as_us_f64()))
            .collect();
        FlowSummary {
            measured: self.measured,
            unfinished: self.unfinished,
            fct_cdf_us: cdf_levels().into_iter().filter_map(|level| self.fct_us.at(level)).collect(),
            fct_us: distribution(&mut self.fct_us),
            slowdown: distribution(&mut self.slowdown),
            single_packet_fct_us: distribution(&mut self.single_packet_fct_us),
            single_packet_tail_us,
            by_size: self
                .by_size
                .into_iter()
                .map(|(power, mut class)| SizeClass {
                    above: if power == 0 { 0 } else { 1 << (power - 1) },
                    up_to: 1_u64.checked_shl(power).unwrap_or(u64::MAX),
                    fct_mean_us: class.fct_sum_us / class.slowdown.count() as f64,
                    slowdown: distribution(&mut class.slowdown),
                })
                .collect(),
            group_completion_mean_us: (!complete.is_empty())
                .then(|| complete.iter().sum::<f64>() / complete.len() as f64),
        }
    }
}

/// The smallest power of two that `bytes` does not exceed.
fn size_class(bytes: u64) -> u32 {
    bytes.max(1).checked_next_power_of_two().map_or(64, u64::trailing_zeros)
}

fn distribution(values: &mut Quantiles) -> Distribution {
    Distribution {
        count: values.count(),
        mean: values.mean(),
        p50: values.at(0.5),
        p99: values.at(0.99),
        p999: values.at(0.999),
        max: values.max(),
    }
}

/// Bins of the queue plots, and of the map of pauses.
const QUEUE_BINS: usize = 256;
const PAUSE_BINS: usize = 128;

struct PortAccumulator {
    /// By tier; created at the first sample, whose interval is the first bin's width.
    queues: Option<Timeline<QueueBin>>,
    /// Paused picoseconds by port; only for ports that were ever paused.
    paused: BTreeMap<usize, Timeline<u64>>,
    first_interval: Duration,
    tiers: Vec<(Tier, u64)>,
    /// Depths of one tier at one time.
    scratch: Vec<Vec<u64>>,
}

/// One entry per tier.
#[derive(Clone, Default)]
struct QueueBin(Vec<TierBin>);

#[derive(Clone, Copy, Default)]
struct TierBin {
    samples: u64,
    max: u64,
    p99_sum: f64,
    mean_sum: f64,
}

impl Bin for QueueBin {
    fn absorb(&mut self, later: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&later.0);
            return;
        }
        for (mine, theirs) in self.0.iter_mut().zip(&later.0) {
            mine.samples += theirs.samples;
            mine.max = mine.max.max(theirs.max);
            mine.p99_sum += theirs.p99_sum;
            mine.mean_sum += theirs.mean_sum;
        }
    }
}

impl PortAccumulator {
    fn new(fabric: &Fabric) -> Self {
        let tiers: Vec<_> = fabric.tiers.iter().map(|(&tier, &ports)| (tier, ports)).collect();
        let scratch = vec![Vec::new(); tiers.len()];
        Self { queues: None, paused: BTreeMap::new(), first_interval: Duration::ZERO, tiers, scratch }
    }

    /// Takes in the samples of one time.
    fn add(&mut self, rows: &[PortRow], time: Instant, interval: Duration, fabric: &Fabric) {
        if self.queues.is_none() {
            self.first_interval = interval;
        }
        self.scratch.iter_mut().for_each(Vec::clear);
        for row in rows {
            let Some(info) = fabric.port(row.port.index()) else { continue };
            let tier = Tier::from(info.kind);
            if let Some(at) = self.tiers.iter().position(|&(known, _)| known == tier) {
                self.scratch[at].push(row.egress_queue.get());
            }
            if !row.paused.is_zero() {
                let line = self
                    .paused
                    .entry(row.port.index())
                    .or_insert_with(|| Timeline::new(PAUSE_BINS, self.first_interval));
                *line.at(time) += row.paused.as_ps();
            }
        }
        let bin = self.queues.get_or_insert_with(|| Timeline::new(QUEUE_BINS, interval)).at(time);
        bin.0.resize(self.tiers.len(), TierBin::default());
        for ((bin, depths), &(_, ports)) in bin.0.iter_mut().zip(&mut self.scratch).zip(&self.tiers) {
            // A port that was not sampled had nothing to say.
            depths.resize(ports.max(depths.len() as u64) as usize, 0);
            let Some(last) = depths.len().checked_sub(1) else { continue };
            let rank = (depths.len() * 99).div_ceil(100) - 1;
            let (_, &mut p99, _) = depths.select_nth_unstable(rank.min(last));
            bin.samples += 1;
            bin.max = bin.max.max(depths.iter().copied().max().unwrap_or(0));
            bin.p99_sum += p99 as f64;
            bin.mean_sum += depths.iter().sum::<u64>() as f64 / depths.len() as f64;
        }
    }

    fn queues(&self) -> QueueTimes {
        let Some(line) = &self.queues else { return QueueTimes::default() };
        let column = |at: usize, of: fn(&TierBin) -> f64| {
            line.bins().iter().map(|bin| bin.0.get(at).map_or(0.0, of).round()).collect()
        };
        let tiers = self.tiers.iter().enumerate().map(|(at, &(tier, ports))| TierQueues {
            tier,
            ports,
            max: column(at, |bin| bin.max as f64),
            p99: column(at, |bin| bin.p99_sum / bin.samples.max(1) as f64),
            mean: column(at, |bin| bin.mean_sum / bin.samples.max(1) as f64),
        });
        QueueTimes { bin_us: line.width().as_us_f64(), tiers: tiers.collect() }
    }

    fn pauses(&self, fabric: &Fabric, totals: &[PortTotals]) -> Pauses {
        let mut by_tier = BTreeMap::<(Tier, Tier), TierPauses>::new();
        let mut paused: Vec<(&PortTotals, &PortInfo)> = Vec::new();
        for port in totals {
            let Some(info) = fabric.port(port.id.index()) else { continue };
            let (by, stopped) = (info.peer_kind.into(), info.kind.into());
            let pair = by_tier.entry((by, stopped)).or_insert(TierPauses {
                by,
                paused: stopped,
                paused_us: 0.0,
                paused_ports: 0,
                ports: 0,
            });
            pair.ports += 1;
            if !port.paused.is_zero() {
                pair.paused_us += port.paused.as_us_f64();
                pair.paused_ports += 1;
                paused.push((port, info));
            }
        }
        let (width, bins) = self.pause_bins();
        let paused_ports = paused.len() as u64;
        paused.sort_by_key(|(port, _)| (std::cmp::Reverse(port.paused), port.id));
        paused.truncate(WORST_PORTS);
        let worst = paused.into_iter().map(|(port, info)| PausedPort {
            port: port.id.0,
            node: info.node.clone(),
            peer: info.peer.clone(),
            tier: info.kind.into(),
            peer_tier: info.peer_kind.into(),
            paused_us: port.paused.as_us_f64(),
            pauses: totals.iter().find(|peer| peer.id == info.peer_id).map_or(0, |peer| peer.pauses_sent),
            egress_peak: port.egress_peak.get(),
            share: self.shares(port.id.index(), width, bins),
        });
        Pauses {
            worst: worst.collect(),
            by_tier: by_tier.into_values().filter(|pair| pair.paused_ports > 0).collect(),
            paused_ports,
            ports: totals.len() as u64,
            bin_us: width.as_us_f64(),
        }
    }

    /// The narrowest width at which [`PAUSE_BINS`] bins cover all samples, and how many it takes.
    fn pause_bins(&self) -> (Duration, usize) {
        let Some(line) = &self.queues else { return (Duration::ZERO, 0) };
        let covered = line.width().as_ps() * line.bins().len() as u64;
        let mut width = line.width().as_ps();
        while covered.div_ceil(width) > PAUSE_BINS as u64 {
            width *= 2;
        }
        (Duration::from_ps(width), covered.div_ceil(width) as usize)
    }

    /// The share of each bin that a port was paused, to a thousandth.
    fn shares(&self, port: usize, width: Duration, bins: usize) -> Vec<f32> {
        let mut shares = vec![0.0; bins];
        if let Some(line) = self.paused.get(&port) {
            let mut line = line.clone();
            line.widen_to(width);
            for (share, &ps) in shares.iter_mut().zip(line.bins()) {
                let exact = ps as f64 / width.as_ps() as f64;
                *share = ((exact * 1000.0).round() / 1000.0).min(1.0) as f32;
            }
        }
        shares
    }
}
