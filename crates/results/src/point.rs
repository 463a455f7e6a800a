//! What one run (one series, one seed) amounts to: small enough to keep in memory for a whole study
//! and to write as JSON, so that an interrupted study resumes.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use selvedge_telemetry::{DropReason, Drops, PacketKind, Reordering, RunRecord};
use selvedge_units::{Instant, PortId};
use serde::{Deserialize, Serialize};

use crate::eqif::EqifReport;
use crate::netrt::NetRtReport;
use crate::tables::{Digest, check_part};
use crate::{ResultsError, Table, Tier};

/// The files of one point, inside a folder of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointFiles {
    /// Its flows, Parquet.
    pub flows: PathBuf,
    /// Its port samples, Parquet.
    pub ports: PathBuf,
    /// Its [`PointSummary`], JSON; written last, so that its presence means "complete".
    pub summary: PathBuf,
}

impl PointFiles {
    /// Files in `folder` for the series at position `series` of its plan.
    pub fn new(folder: &Path, series: usize, seed: u64) -> Self {
        let file = |what| folder.join(format!("{series:03}-seed-{seed}.{what}"));
        Self { flows: file("flows.parquet"), ports: file("ports.parquet"), summary: file("summary.json") }
    }

    /// The point, if an earlier run completed it: all three files are there, as it wrote them, and about this series
    /// and seed.
    ///
    /// # Errors
    /// Otherwise it is to be run again; says which file is wrong, and how.
    pub fn completed(&self, series: &str, seed: u64) -> Result<PointSummary, ResultsError> {
        let (point, parts) = Saved::load(&self.summary)?;
        if point.series != series || point.seed != seed {
            let what = format!("about series \"{}\", seed {}, not \"{series}\", seed {seed}", point.series, point.seed);
            return Err(ResultsError::damaged(&self.summary, what));
        }
        check_part(&self.flows, Table::Flows, parts.flows)?;
        check_part(&self.ports, Table::Ports, parts.ports)?;
        Ok(point)
    }
}

/// One run, summarised.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointSummary {
    /// Name of its series.
    pub series: String,
    /// Its seed.
    pub seed: u64,
    /// Counters of the whole run.
    pub run: RunTotals,
    /// Its measured flows.
    pub flows: FlowSummary,
    /// Those of each workload by its key, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<(String, FlowSummary)>,
    /// Egress queues over time, in bytes.
    pub queues: PortTimes,
    /// How much of the time ports were transmitting, 0 to 1, over time.
    pub utilisation: PortTimes,
    /// Who paused whom.
    pub pauses: Pauses,
}

impl PointSummary {
    /// Each workload's flows where there are several, else all, of a workload without a name. Beside other traffic
    /// `flows` leaves those of incasts and collectives out.
    pub(crate) fn flows_by_workload(&self) -> impl Iterator<Item = (&str, &FlowSummary)> {
        let all = self.workloads.is_empty().then_some(("", &self.flows));
        all.into_iter().chain(self.workloads.iter().map(|(name, flows)| (name.as_str(), flows)))
    }

    /// How many flows or groups of all workloads never finished; `of` has their number first.
    pub(crate) fn unfinished(&self, of: fn(&FlowSummary) -> (u64, u64)) -> u64 {
        self.flows_by_workload().map(|(_, flows)| of(flows).0).sum()
    }

    /// Writes it as JSON, with what its parts are known by; the file appears when it is complete.
    pub(crate) fn save(&self, parts: PartDigests, path: &Path) -> Result<(), ResultsError> {
        let partial = path.with_extension("json.partial");
        let saved = Saved { parts, digest: self.digest(), point: Cow::Borrowed(self) };
        let text = serde_json::to_vec(&saved).expect(TEXT_KEYS);
        fs::write(&partial, text).map_err(|error| ResultsError::io(&partial, "write it", &error))?;
        fs::rename(&partial, path).map_err(|error| ResultsError::io(path, "put it in place", &error))
    }

    /// Reads it back.
    ///
    /// # Errors
    /// When the file is missing, damaged, or by another version.
    pub fn load(path: &Path) -> Result<Self, ResultsError> {
        Saved::load(path).map(|(point, _)| point)
    }

    /// Numbers survive being written and read, so that this does, too.
    fn digest(&self) -> u64 {
        Digest::of(&serde_json::to_vec(self).expect(TEXT_KEYS))
    }
}

/// What the files of rows are known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PartDigests {
    pub(crate) flows: u64,
    pub(crate) ports: u64,
}

/// What is in the file of a summary.
#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    parts: PartDigests,
    /// [`PointSummary::digest`].
    digest: u64,
    point: Cow<'a, PointSummary>,
}

impl Saved<'_> {
    fn load(path: &Path) -> Result<(PointSummary, PartDigests), ResultsError> {
        let text = fs::read(path).map_err(|error| ResultsError::io(path, "read it", &error))?;
        let saved: Self = serde_json::from_slice(&text).map_err(|error| {
            let what = format!("not the summary of a point by this version: {error}");
            ResultsError::damaged(path, what)
        })?;
        let point = saved.point.into_owned();
        if point.digest() != saved.digest {
            return Err(ResultsError::damaged(path, "not as it was written: it is damaged"));
        }
        Ok((point, saved.parts))
    }
}

const TEXT_KEYS: &str = "a point has text keys only";

/// Counters of a run; see [`RunRecord`] for their meaning.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names and meanings are RunRecord's")]
pub struct RunTotals {
    /// 16 hexadecimal digits.
    pub fingerprint: String,
    /// No flow could start before this.
    pub begin_us: f64,
    pub end_us: f64,
    /// From the beginning until the last flow finished, if all have; else until the end. Where all have, the end is a
    /// little later: runs end between the simulator's windows.
    pub delivery_us: f64,
    pub hopeless: bool,
    pub packet_hops: u64,
    pub events: u64,
    pub flows_started: u64,
    pub flows_finished: u64,
    pub data_sent: u64,
    pub retransmissions: u64,
    pub data_delivered: u64,
    pub spurious_retransmissions: u64,
    pub goodput_bytes: u64,
    pub timeouts: u64,
    pub nacks_sent: u64,
    pub ecn_marks: u64,
    pub path_switches: Option<u64>,
    pub trims: u64,
    pub trimmed_drops: u64,
    pub acks_sent: u64,
    pub acks_delivered: u64,
    pub cnps_sent: u64,
    pub cnps_delivered: u64,
    pub pause_frames: u64,
    pub data_drops: DropCounts,
    pub ack_drops: DropCounts,
    pub pause_drops: DropCounts,
    pub cnp_drops: DropCounts,
    pub reordering: ReorderingTotals,
    /// In the order of [`PacketKind::ALL`].
    pub in_flight: [u64; PacketKind::ALL.len()],
    pub netrt: NetRtReport,
    pub eqif: EqifReport,
    pub paused_us: f64,
    /// Bytes that hosts sent over what their links could have carried from `begin_us` until the end, 0 to 1;
    /// headers count, gaps do not.
    pub utilisation: Option<f64>,
    pub deadlock: Option<DeadlockReport>,
    /// Who waits for what, and of which workload, if there are several.
    pub stuck: Option<String>,
    pub cpu_s: f64,
    pub wall_s: f64,
}

impl RunTotals {
    /// Data packets that hosts sent, and what NetRT's switches sent of them again: all that can be dropped.
    pub fn data_put_on_the_wire(&self) -> u64 {
        self.data_sent + self.netrt.retransmissions
    }
}

impl RunTotals {
    /// From when the first flow could start until the end.
    pub fn span_us(&self) -> f64 {
        (self.end_us - self.begin_us).max(0.0)
    }

    pub(crate) fn new(record: &RunRecord, begin: Instant, delivered: Instant, utilisation: Option<f64>) -> Self {
        Self {
            fingerprint: format!("{:016x}", record.fingerprint),
            begin_us: begin.as_us_f64(),
            end_us: record.end.as_us_f64(),
            delivery_us: delivered.since(begin).as_us_f64(),
            hopeless: record.hopeless,
            packet_hops: record.packet_hops,
            events: record.events,
            flows_started: record.flows_started,
            flows_finished: record.flows_finished,
            data_sent: record.data_sent,
            retransmissions: record.retransmissions,
            data_delivered: record.data_delivered,
            spurious_retransmissions: record.spurious_retransmissions,
            goodput_bytes: record.goodput.get(),
            timeouts: record.timeouts,
            nacks_sent: record.nacks_sent,
            ecn_marks: record.ecn_marks,
            path_switches: record.path_switches,
            trims: record.trims,
            trimmed_drops: record.trimmed_drops,
            acks_sent: record.acks_sent,
            acks_delivered: record.acks_delivered,
            cnps_sent: record.cnps_sent,
            cnps_delivered: record.cnps_delivered,
            pause_frames: record.pause_frames,
            data_drops: (&record.data_drops).into(),
            ack_drops: (&record.ack_drops).into(),
            pause_drops: (&record.pause_drops).into(),
            cnp_drops: (&record.cnp_drops).into(),
            reordering: record.reordering.into(),
            in_flight: PacketKind::ALL.map(|kind| record.in_flight[kind]),
            netrt: (&record.netrt).into(),
            eqif: (&record.eqif).into(),
            paused_us: record.paused.as_us_f64(),
            utilisation,
            deadlock: record.deadlock.as_ref().map(|deadlock| DeadlockReport {
                at_us: deadlock.at.as_us_f64(),
                since_us: deadlock.since.as_us_f64(),
                cycle: deadlock
                    .cycle
                    .iter()
                    .map(|hop| DeadlockHop {
                        port: hop.port.0,
                        node: hop.node.clone(),
                        paused_by: hop.paused_by.clone(),
                        waiting_bytes: hop.waiting.get(),
                    })
                    .collect(),
            }),
            stuck: record.stuck.as_ref().map(|stuck| stuck.waits.clone()),
            cpu_s: record.cpu_s,
            wall_s: record.wall_s,
        }
    }
}

/// What receivers did with data out of order; see [`Reordering`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReorderingTotals {
    pub buffered_bytes: u64,
    pub pool_blocks: u32,
    pub pool_peak: u32,
    pub sender_pool_peak: u32,
    pub refused_full: u64,
    pub refused_middle: u64,
    pub forgotten: u64,
    pub swaps: u64,
}

impl From<Reordering> for ReorderingTotals {
    fn from(reordering: Reordering) -> Self {
        Self {
            buffered_bytes: reordering.buffered.get(),
            pool_blocks: reordering.pool_blocks,
            pool_peak: reordering.pool_peak,
            sender_pool_peak: reordering.sender_pool_peak,
            refused_full: reordering.refused_full,
            refused_middle: reordering.refused_middle,
            forgotten: reordering.forgotten,
            swaps: reordering.swaps,
        }
    }
}

/// Dropped packets by reason; see [`DropReason`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names and meanings are DropReason's")]
pub struct DropCounts {
    pub buffer_full: u64,
    pub headroom_full: u64,
    pub link_loss: u64,
    pub link_down: u64,
    pub no_route: u64,
    pub unknown_qp: u64,
    pub corrupt: u64,
    pub trimmed: u64,
    pub surplus: u64,
}

impl DropCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|&(_, count)| count).sum()
    }

    /// Each reason's name and count, in the order of [`DropReason::ALL`].
    pub fn by_reason(&self) -> [(&'static str, u64); DropReason::ALL.len()] {
        let counts = [
            self.buffer_full,
            self.headroom_full,
            self.link_loss,
            self.link_down,
            self.no_route,
            self.unknown_qp,
            self.corrupt,
            self.trimmed,
            self.surplus,
        ];
        std::array::from_fn(|at| (DropReason::ALL[at].name(), counts[at]))
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.buffer_full += other.buffer_full;
        self.headroom_full += other.headroom_full;
        self.link_loss += other.link_loss;
        self.link_down += other.link_down;
        self.no_route += other.no_route;
        self.unknown_qp += other.unknown_qp;
        self.corrupt += other.corrupt;
        self.trimmed += other.trimmed;
        self.surplus += other.surplus;
    }
}

impl From<&Drops> for DropCounts {
    fn from(drops: &Drops) -> Self {
        let of = |reason: DropReason| drops.by_reason[reason as usize];
        Self {
            buffer_full: of(DropReason::BufferFull),
            headroom_full: of(DropReason::HeadroomFull),
            link_loss: of(DropReason::LinkLoss),
            link_down: of(DropReason::LinkDown),
            no_route: of(DropReason::NoRoute),
            unknown_qp: of(DropReason::UnknownQp),
            corrupt: of(DropReason::Corrupt),
            trimmed: of(DropReason::Trimmed),
            surplus: of(DropReason::Surplus),
        }
    }
}

/// A PFC deadlock, for files and people.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockReport {
    /// When it was found, microseconds.
    pub at_us: f64,
    /// Since when nothing moved, microseconds.
    pub since_us: f64,
    /// The cycle; each hop is paused by the node of the next.
    pub cycle: Vec<DeadlockHop>,
}

impl DeadlockReport {
    /// The ports of the cycle.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.cycle.iter().map(|hop| PortId(hop.port))
    }
}

/// One port of a deadlock's cycle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockHop {
    /// The paused port.
    pub port: u32,
    /// Its node.
    pub node: String,
    /// The node that pauses it.
    pub paused_by: String,
    /// Bytes waiting behind it.
    pub waiting_bytes: u64,
}

/// The measured flows of a run. Times in microseconds; distributions are over finished flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Flows that arrived in the measured interval.
    pub measured: u64,
    /// Of these, how many never finished.
    pub unfinished: u64,
    /// Flow completion times.
    pub fct_us: Distribution,
    /// Completion times over the ideal ones.
    pub slowdown: Distribution,
    /// Completion times of messages of one packet.
    pub single_packet_fct_us: Distribution,
    /// FCT at the levels of [`cdf_levels`].
    pub fct_cdf_us: Vec<f64>,
    /// FCT of single-packet messages at the levels of [`tail_levels`]; shorter where there are too
    /// few messages to know.
    pub single_packet_tail_us: Vec<f64>,
    /// Jain's index of what flows had of the network: size over completion time, of those that finished.
    #[serde(default)]
    pub throughput_jain: Option<f64>,
    /// By flow size, smallest first; empty classes are left out.
    pub by_size: Vec<SizeClass>,
    /// Repetitions of incasts, all-to-alls and jobs (workload, group) that began in the measured interval.
    pub groups: u64,
    /// Of these, how many were not complete at the end: flows or ranks had not finished, or not begun.
    pub unfinished_groups: u64,
    /// Mean over those that were: from the first start to the last finish.
    pub group_completion_mean_us: Option<f64>,
}

/// A few numbers about many.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Distribution {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Flows of similar size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SizeClass {
    /// Sizes above this many bytes ...
    pub above: u64,
    /// ... up to this many: twice as many.
    pub up_to: u64,
    /// Mean of their sizes, in bytes.
    pub size_mean: f64,
    /// Their slowdown.
    pub slowdown: Distribution,
    /// Mean completion time.
    pub fct_mean_us: f64,
}

/// A quantity of all ports over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PortTimes {
    /// Width of a bin, microseconds.
    pub bin_us: f64,
    /// By tier, hosts first.
    pub tiers: Vec<TierTimes>,
}

/// A quantity of the ports of one tier, bin by bin.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierTimes {
    /// Which.
    pub tier: Tier,
    /// How many ports it has.
    pub ports: u64,
    /// The largest value of any port at any sample of the bin.
    pub max: Vec<f64>,
    /// The 99th percentile over ports, averaged over the bin's samples.
    pub p99: Vec<f64>,
    /// The mean over ports and samples.
    pub mean: Vec<f64>,
}

/// Where pauses went.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pauses {
    /// Paused time by tiers, summed over ports; pairs without pauses are left out.
    pub by_tier: Vec<TierPauses>,
    /// How many ports were paused at all.
    pub paused_ports: u64,
    /// How many ports there are.
    pub ports: u64,
    /// Width of a bin of [`PausedPort::share`], microseconds.
    pub bin_us: f64,
    /// The ports that were paused longest, worst first; at most [`WORST_PORTS`].
    pub worst: Vec<PausedPort>,
}

/// Paused time between two tiers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierPauses {
    /// Who sent the pauses.
    pub by: Tier,
    /// Who had to stop.
    pub paused: Tier,
    /// For how long, summed over ports, microseconds.
    pub paused_us: f64,
    /// Ports that were paused / that there are.
    pub paused_ports: u64,
    /// See `paused_ports`.
    pub ports: u64,
}

/// A port that was paused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PausedPort {
    /// Its number.
    pub port: u32,
    /// Its node.
    pub node: String,
    /// The node that paused it.
    pub peer: String,
    /// Its tier.
    pub tier: Tier,
    /// The tier of the node that paused it.
    pub peer_tier: Tier,
    /// For how long, microseconds.
    pub paused_us: f64,
    /// Pause frames (X-OFF) that its peer sent to it.
    pub pauses: u64,
    /// The deepest its queue was, bytes.
    pub egress_peak: u64,
    /// The share of each bin that it was paused, 0 to 1.
    pub share: Vec<f32>,
}

/// How many of the longest paused ports a [`PointSummary`] keeps.
pub const WORST_PORTS: usize = 48;

/// The levels at which completion times are kept for plots: every half per cent, and beyond.
pub fn cdf_levels() -> Vec<f64> {
    let body = (0..200).map(|step| f64::from(step) / 200.0);
    body.chain([0.9975, 0.999, 0.9995, 0.9999, 1.0]).collect()
}

/// The levels at which tails are kept for plots, from 90 % to 99.99 %, evenly in log(1 - level).
pub fn tail_levels() -> Vec<f64> {
    (0..=60).map(|step| 1.0 - 10_f64.powf(-1.0 - f64::from(step) / 20.0)).collect()
}
