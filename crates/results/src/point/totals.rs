//! Counters of a whole run.

use schemars::JsonSchema;
use selvedge_telemetry::{DropReason, Drops, PacketKind, Reordering, RunRecord};
use selvedge_units::Instant;
use serde::{Deserialize, Serialize};

use super::deadlock::DeadlockReport;
use crate::eqif::EqifReport;
use crate::netrt::NetRtReport;

/// Counters of a run; see [`RunRecord`] for their meaning.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names and meanings are RunRecord's")]
pub struct RunTotals {
    /// Fingerprint of the run, 16 hexadecimal digits.
    pub fingerprint: String,
    /// Earliest time at which a flow could start.
    pub begin_us: f64,
    pub end_us: f64,
    /// Time from the beginning until the last flow finished, if all have, else until the end. The end is a little later
    /// than the last finish: runs end between the simulator's windows.
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
    /// Largest number of bytes in the queue of one switch output; 0 in points that were written before it was counted.
    #[serde(default)]
    pub queue_peak_bytes: u64,
    pub data_drops: DropCounts,
    pub ack_drops: DropCounts,
    pub pause_drops: DropCounts,
    pub cnp_drops: DropCounts,
    pub reordering: ReorderingTotals,
    /// Packets in flight at the end, in the order of [`PacketKind::ALL`].
    pub in_flight: [u64; PacketKind::ALL.len()],
    pub netrt: NetRtReport,
    pub eqif: EqifReport,
    pub paused_us: f64,
    /// Bytes that hosts sent over the capacity of their links from `begin_us` until the end, 0 to 1; headers count,
    /// inter-frame gaps do not.
    pub utilisation: Option<f64>,
    pub deadlock: Option<DeadlockReport>,
    /// Flows or ranks that wait forever, what they wait for, and their workload if there are several.
    pub stuck: Option<String>,
    pub cpu_s: f64,
    pub wall_s: f64,
}

impl RunTotals {
    /// Returns the data packets that hosts sent and NetRT's switches retransmitted: all that can be dropped.
    pub fn data_put_on_the_wire(&self) -> u64 {
        self.data_sent + self.netrt.retransmissions
    }

    /// Returns the time from when the first flow could start until the end, in microseconds.
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
            queue_peak_bytes: record.ports.iter().map(|port| port.egress_peak.get()).max().unwrap_or(0),
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
            deadlock: record.deadlock.as_ref().map(DeadlockReport::from),
            stuck: record.stuck.as_ref().map(|stuck| stuck.waits.clone()),
            cpu_s: record.cpu_s,
            wall_s: record.wall_s,
        }
    }
}

/// Counters of out-of-order data at receivers; see [`Reordering`].
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
    /// Returns the number of dropped packets for all reasons together.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|&(_, count)| count).sum()
    }

    /// Returns each reason's name and count, in the order of [`DropReason::ALL`].
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

    /// Adds the counts of another run.
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
