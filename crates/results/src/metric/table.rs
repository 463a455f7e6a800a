//! Every metric: its name, its meaning, and its source in a point's summary.

use super::names::{
    EQIF_DROPS, GROUP_COMPLETION, GROUPS, MEASURED, TIME_SAMPLES, TIMES, UNFINISHED, UNFINISHED_GROUPS,
};
use super::{Metric, Unit};
use crate::point::ReorderingTotals;
use crate::{PointSummary, SizeClass, TimePart};

/// All metrics; the seven of the tables come first.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "slowdown_mean",
        title: "average slowdown",
        unit: Unit::Plain,
        meaning: "completion time over that in an empty network, mean over measured flows; of a flow that had not finished when the run \
                  ended, its age: at least so much",
        of: |point| point.flows.slowdown.mean,
    },
    Metric {
        name: "fct_mean_us",
        title: "average FCT",
        unit: Unit::Us,
        meaning: "flow completion time, mean over measured flows; of a flow that had not finished when the run ended, its age: at least so \
                  much",
        of: |point| point.flows.fct_us.mean,
    },
    Metric {
        name: "fct_p99_us",
        title: "99th percentile FCT",
        unit: Unit::Us,
        meaning: "the time within which 99 % of the measured flows completed",
        of: |point| point.flows.fct_us.p99,
    },
    Metric {
        name: "drop_rate",
        title: "drop rate",
        unit: Unit::Share,
        meaning: "data packets dropped / data packets sent, by hosts and by NetRT's switches, retransmissions included in \
                  both; copies that come when their flow is over are dropped by the host (unknown-qp)",
        of: |point| {
            let sent = point.run.data_put_on_the_wire();
            (sent > 0).then(|| share(point.run.data_drops.total(), sent))
        },
    },
    Metric {
        name: "pause_time_us",
        title: "pause time, all ports",
        unit: Unit::Us,
        meaning: "how long ports were paused by their peers, summed over ports",
        of: |point| Some(point.run.paused_us),
    },
    Metric {
        name: "retransmissions",
        title: "retransmissions",
        unit: Unit::Count,
        meaning: "data packets sent again; through EQDS's tunnels, what stacks and what tunnels send again together",
        of: |point| Some(point.run.retransmissions as f64),
    },
    Metric {
        name: "spurious_retransmissions",
        title: "spurious retransmissions",
        unit: Unit::Count,
        meaning: "data packets that arrived although the receiver had them already",
        of: |point| Some(point.run.spurious_retransmissions as f64),
    },
    Metric {
        name: "retransmissions_per_loss",
        title: "retransmissions per loss",
        unit: Unit::Plain,
        meaning: "data packets sent again / data packets dropped or trimmed, by EQIFs too, each once; copies that come \
                  when their flow is over (unknown-qp) left out",
        of: |point| {
            let (drops, run) = (&point.run.data_drops, &point.run);
            // The loss of a trimmed packet is already counted when its header is dropped.
            let lost = drops.total() - drops.unknown_qp - run.trimmed_drops + run.trims + run.eqif.dropped;
            (lost > 0).then(|| point.run.retransmissions as f64 / lost as f64)
        },
    },
    Metric {
        name: "slowdown_p50",
        title: "median slowdown",
        unit: Unit::Plain,
        meaning: "the slowdown that half of the measured flows do not exceed",
        of: |point| point.flows.slowdown.p50,
    },
    Metric {
        name: "slowdown_p99",
        title: "99th percentile slowdown",
        unit: Unit::Plain,
        meaning: "the slowdown that 99 % of the measured flows do not exceed",
        of: |point| point.flows.slowdown.p99,
    },
    Metric {
        name: "fct_p50_us",
        title: "median FCT",
        unit: Unit::Us,
        meaning: "the time within which half of the measured flows completed",
        of: |point| point.flows.fct_us.p50,
    },
    Metric {
        name: "fct_p999_us",
        title: "99.9th percentile FCT",
        unit: Unit::Us,
        meaning: "the time within which 99.9 % of the measured flows completed",
        of: |point| point.flows.fct_us.p999,
    },
    Metric {
        name: "short_fct_mean_us",
        title: "mean FCT of short flows",
        unit: Unit::Us,
        meaning: "mean flow completion time of flows of up to 128 KiB",
        of: |point| mean_fct(point, 0, SHORT),
    },
    Metric {
        name: "long_fct_mean_us",
        title: "mean FCT of long flows",
        unit: Unit::Us,
        meaning: "mean flow completion time of flows of more than 1 MiB",
        of: |point| mean_fct(point, LONG, u64::MAX),
    },
    Metric {
        name: "single_packet_fct_p50_us",
        title: "single-packet median FCT",
        unit: Unit::Us,
        meaning: "median completion time of messages of one packet",
        of: |point| point.flows.single_packet_fct_us.p50,
    },
    Metric {
        name: "single_packet_fct_p90_us",
        title: "single-packet 90th percentile FCT",
        unit: Unit::Us,
        meaning: "90th percentile completion time of messages of one packet",
        of: |point| point.flows.single_packet_tail_us.first().copied(),
    },
    Metric {
        name: "single_packet_fct_p99_us",
        title: "single-packet 99th percentile FCT",
        unit: Unit::Us,
        meaning: "99th percentile completion time of messages of one packet",
        of: |point| point.flows.single_packet_fct_us.p99,
    },
    Metric {
        name: "single_packet_fct_p999_us",
        title: "single-packet 99.9th percentile FCT",
        unit: Unit::Us,
        meaning: "99.9th percentile completion time of messages of one packet",
        of: |point| point.flows.single_packet_fct_us.p999,
    },
    Metric {
        name: "throughput_jain",
        title: "evenness of throughputs",
        unit: Unit::Index,
        meaning: "Jain's index of flows' mean throughputs, size over completion time: 1 where all are alike, 1/n where one of \
                  n has everything; not known where a measured flow had not finished",
        of: |point| point.flows.throughput_jain,
    },
    Metric {
        name: GROUP_COMPLETION,
        title: "incast or job completion",
        unit: Unit::Us,
        meaning: "from the first start to the last finish of a repetition (workload, group), computations of schedules \
                  included: job completion time; mean over measured repetitions, each that is not complete with its age when the run \
                  ends: at least so long; beside other traffic its flows count here alone",
        of: |point| point.flows.group_completion_mean_us,
    },
    Metric {
        name: GROUPS,
        title: "measured incasts or jobs",
        unit: Unit::Count,
        meaning: "repetitions of incasts, all-to-alls and jobs that began in the measured interval",
        of: |point| of_groups(point, point.flows.groups),
    },
    Metric {
        name: UNFINISHED_GROUPS,
        title: "unfinished incasts or jobs",
        unit: Unit::Count,
        meaning: "measured repetitions of which a flow had not finished or begun when the run ended, or a rank was not done; \
                  they count in their completion time with their age",
        of: |point| of_groups(point, point.flows.unfinished_groups),
    },
    Metric {
        name: MEASURED,
        title: "measured flows",
        unit: Unit::Count,
        meaning: "flows that began in the measured interval; beside other traffic without those of incasts and collectives",
        of: |point| Some(point.flows.measured as f64),
    },
    Metric {
        name: UNFINISHED,
        title: "unfinished flows",
        unit: Unit::Count,
        meaning: "measured flows that had not finished when the run ended; they count in completion times with their age; beside \
                  other traffic, flows of incasts and collectives count as their workload's alone",
        of: |point| Some(point.flows.unfinished as f64),
    },
    Metric {
        name: "timeouts",
        title: "timeouts",
        unit: Unit::Count,
        meaning: "retransmission timers that expired",
        of: |point| Some(point.run.timeouts as f64),
    },
    Metric {
        name: "nacks",
        title: "NACKs",
        unit: Unit::Count,
        meaning: "negative acknowledgements sent; where stacks send through tunnels, the tunnels'",
        of: |point| Some(point.run.nacks_sent as f64),
    },
    Metric {
        name: "ecn_marks",
        title: "ECN marks",
        unit: Unit::Count,
        meaning: "packets marked for congestion",
        of: |point| Some(point.run.ecn_marks as f64),
    },
    Metric {
        name: "path_switches_per_100kb",
        title: "path switches per 100 KB",
        unit: Unit::Count,
        meaning: "data packets that a switch sent another way than the packet of their flow (or MPTCP's subflow) before, per \
                  100 KB accepted; none where senders choose the ways (EQDS, NDP)",
        of: |point| per_100kb(point.run.path_switches?, point),
    },
    Metric {
        name: "trims",
        title: "trimmed packets",
        unit: Unit::Count,
        meaning: "packets that switches cut to their headers",
        of: |point| Some(point.run.trims as f64),
    },
    Metric {
        name: "nacks_per_100kb",
        title: "NACKs per 100 KB",
        unit: Unit::Plain,
        meaning: "negative acknowledgements sent per 100 KB accepted (as NACKs); with go-back-N, each makes a sender go back",
        of: |point| per_100kb(point.run.nacks_sent, point),
    },
    Metric {
        name: "netrt_requests",
        title: "NetRT requests",
        unit: Unit::Count,
        meaning: "requests that destination ToRs sent, repetitions included",
        of: |point| Some(point.run.netrt.requests as f64),
    },
    Metric {
        name: "netrt_unfulfilled",
        title: "NetRT requests unfulfilled",
        unit: Unit::Count,
        meaning: "requests for which source ToRs had no duplicate",
        of: |point| Some(point.run.netrt.unfulfilled as f64),
    },
    Metric {
        name: "netrt_retransmissions",
        title: "NetRT retransmissions",
        unit: Unit::Count,
        meaning: "duplicates that source ToRs sent",
        of: |point| Some(point.run.netrt.retransmissions as f64),
    },
    Metric {
        name: "netrt_held",
        title: "NetRT packets held",
        unit: Unit::Count,
        meaning: "packets that destination ToRs held back because an earlier one was missing",
        of: |point| Some(point.run.netrt.held as f64),
    },
    Metric {
        name: "netrt_given_up",
        title: "NetRT recoveries given up",
        unit: Unit::Count,
        meaning: "gaps that destination ToRs left to the NICs: no duplicate, no buffer, beyond the window, or silence",
        of: |point| Some(point.run.netrt.given_up as f64),
    },
    Metric {
        name: "netrt_pauses",
        title: "NetRT pauses",
        unit: Unit::Count,
        meaning: "times that a source ToR paused its host while duplicates waited",
        of: |point| Some(point.run.netrt.pauses as f64),
    },
    Metric {
        name: "netrt_pool_mean_kb",
        title: "NetRT duplicate pool, mean",
        unit: Unit::Kb,
        meaning: "KB in a port's duplicate pool on average, while there was something in it",
        of: |point| point.run.netrt.pool_mean_bytes.map(|bytes| bytes / 1e3),
    },
    Metric {
        name: "netrt_pool_peak_kb",
        title: "NetRT duplicate pool, peak",
        unit: Unit::Kb,
        meaning: "KB in a port's duplicate pool at most",
        of: |point| Some(point.run.netrt.pool_peak_bytes as f64 / 1e3),
    },
    Metric {
        name: "netrt_buffer_mean_kb",
        title: "NetRT reordering buffer, mean",
        unit: Unit::Kb,
        meaning: "KB held for a port on average, while there was something held",
        of: |point| point.run.netrt.buffer_mean_bytes.map(|bytes| bytes / 1e3),
    },
    Metric {
        name: "netrt_buffer_peak_kb",
        title: "NetRT reordering buffer, peak",
        unit: Unit::Kb,
        meaning: "KB held for a port at most",
        of: |point| Some(point.run.netrt.buffer_peak_bytes as f64 / 1e3),
    },
    Metric {
        name: EQIF_DROPS,
        title: "EQIF drops",
        unit: Unit::Count,
        meaning: "packets that EQIFs dropped: their queues were full, or RED said so (EQDS)",
        of: |point| Some(point.run.eqif.dropped as f64),
    },
    Metric {
        name: "eqif_marks",
        title: "EQIF marks",
        unit: Unit::Count,
        meaning: "packets that EQIFs marked (EQDS)",
        of: |point| Some(point.run.eqif.marked as f64),
    },
    Metric {
        name: "eqif_cnps",
        title: "EQIF CNPs",
        unit: Unit::Count,
        meaning: "CNPs from EQIFs to queue pairs of their own host (EQDS)",
        of: |point| Some(point.run.eqif.cnps as f64),
    },
    Metric {
        name: "eqif_pauses",
        title: "EQIF pauses",
        unit: Unit::Count,
        meaning: "how often EQIFs paused RDMA engines (EQDS)",
        of: |point| Some(point.run.eqif.pauses as f64),
    },
    Metric {
        name: "eqif_wait_us",
        title: "wait in EQIFs, mean",
        unit: Unit::Us,
        meaning: "mean time that packets of stacks waited in EQIFs for their tunnels (EQDS)",
        of: |point| point.run.eqif.wait_mean_us,
    },
    Metric {
        name: "eqif_peak_kb",
        title: "EQIF queue, peak",
        unit: Unit::Kb,
        meaning: "KB that waited in an EQIF for one destination at most (EQDS)",
        of: |point| Some(point.run.eqif.peak_bytes as f64 / 1e3),
    },
    Metric {
        name: "eqif_in_flight_kb",
        title: "in flight in tunnels, peak",
        unit: Unit::Kb,
        meaning: "KB that one host had in flight at most, in all tunnels of its stacks (EQDS)",
        of: |point| Some(point.run.eqif.in_flight_bytes as f64 / 1e3),
    },
    Metric {
        name: "eqif_reordering",
        title: "reorder queue, peak",
        unit: Unit::Count,
        meaning: "packets in the reorder queue of one tunnel at most, where stacks send through tunnels (EQDS)",
        of: |point| Some(point.run.eqif.reordering as f64),
    },
    Metric {
        name: "cnps",
        title: "CNPs",
        unit: Unit::Count,
        meaning: "congestion notification packets sent",
        of: |point| Some(point.run.cnps_sent as f64),
    },
    Metric {
        name: "pause_frames",
        title: "pause frames",
        unit: Unit::Count,
        meaning: "pause and resume frames put on the wire",
        of: |point| Some(point.run.pause_frames as f64),
    },
    Metric {
        name: "queue_peak_kb",
        title: "longest queue",
        unit: Unit::Kb,
        meaning: "the most bytes that waited before one output of a switch at any time",
        of: |point| Some(point.run.queue_peak_bytes as f64 / 1e3),
    },
    Metric {
        name: "goodput_gbps",
        title: "goodput, all hosts",
        unit: Unit::Gbps,
        meaning: "payload accepted for the first time over the time from the first start to the last flow's finish, or to the end of the run where flows are unfinished, summed over hosts",
        of: |point| {
            let ns = point.run.delivery_us * 1e3;
            (ns > 0.0).then(|| point.run.goodput_bytes as f64 * 8.0 / ns)
        },
    },
    Metric {
        name: "utilisation",
        title: "host link utilisation",
        unit: Unit::Share,
        meaning: "bytes that hosts sent, headers included, over what their links could have carried",
        of: |point| point.run.utilisation,
    },
    Metric {
        name: "pool_peak",
        title: "bits pool, peak use",
        unit: Unit::Share,
        meaning: "the most blocks of a NIC's bits pool that receivers held at any time, at the NIC where that was most; \
                  of all its blocks (MELO)",
        of: |point| {
            let pool = &point.run.reordering;
            (pool.pool_blocks > 0).then(|| share(pool.pool_peak.into(), pool.pool_blocks.into()))
        },
    },
    Metric {
        name: "reordered",
        title: "copied from reorder buffers",
        unit: Unit::Share,
        meaning: "payload that arrived out of order and waited in a reorder buffer, of all payload (MELO)",
        of: |point| {
            let run = &point.run;
            // Real runs do not report pools.
            let has_buffers = run.reordering.pool_blocks > 0 || run.reordering.buffered_bytes > 0;
            (has_buffers && run.goodput_bytes > 0).then(|| share(run.reordering.buffered_bytes, run.goodput_bytes))
        },
    },
    Metric {
        name: "melo_refused_full",
        title: "refused for want of room",
        unit: Unit::Count,
        meaning: "data packets that receivers dropped as there was no room for their bits, or their payload (MELO)",
        of: |point| of_pools(point, |pools| pools.refused_full),
    },
    Metric {
        name: "melo_refused_middle",
        title: "refused in the middle",
        unit: Unit::Count,
        meaning: "data packets that receivers dropped as their bits lay in the middle of a connection's blocks, which are \
                  reached from both ends only (MELO)",
        of: |point| of_pools(point, |pools| pools.refused_middle),
    },
    Metric {
        name: "melo_forgotten_nacks",
        title: "NACKs forgotten",
        unit: Unit::Count,
        meaning: "NACKs that senders had no room in their pool to remember (MELO)",
        of: |point| of_pools(point, |pools| pools.forgotten),
    },
    Metric {
        name: "melo_swaps",
        title: "connections swapped out",
        unit: Unit::Count,
        meaning: "connections whose state left a NIC's chip for others (MELO, `on-chip`)",
        of: |point| of_pools(point, |pools| pools.swaps),
    },
    Metric {
        name: TIMES[TimePart::Serialisation as usize],
        title: "time: serialisation",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average on sending, for the first time, on the slowest link; the last packet's time on the wire of all",
        of: |point| point.flows.time_us(TimePart::Serialisation),
    },
    Metric {
        name: TIMES[TimePart::Propagation as usize],
        title: "time: propagation",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average on the last packet on its way over links",
        of: |point| point.flows.time_us(TimePart::Propagation),
    },
    Metric {
        name: TIMES[TimePart::Queueing as usize],
        title: "time: queueing",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average behind data in switches, on the way there or of acknowledgements back",
        of: |point| point.flows.time_us(TimePart::Queueing),
    },
    Metric {
        name: TIMES[TimePart::Acks as usize],
        title: "time: acknowledgements",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average behind acknowledgements and congestion notifications, in switches or at the sender's NIC",
        of: |point| point.flows.time_us(TimePart::Acks),
    },
    Metric {
        name: TIMES[TimePart::Pause as usize],
        title: "time: pause",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average for the end of a pause (PFC), at the sender's port or on the way",
        of: |point| point.flows.time_us(TimePart::Pause),
    },
    Metric {
        name: TIMES[TimePart::Nic as usize],
        title: "time: NIC",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average behind other queue pairs at the sender's NIC",
        of: |point| point.flows.time_us(TimePart::Nic),
    },
    Metric {
        name: TIMES[TimePart::Pacing as usize],
        title: "time: pacing",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average because congestion control spaced packets",
        of: |point| point.flows.time_us(TimePart::Pacing),
    },
    Metric {
        name: TIMES[TimePart::Window as usize],
        title: "time: window",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average because congestion control's window was smaller than an undisturbed round trip asks for",
        of: |point| point.flows.time_us(TimePart::Window),
    },
    Metric {
        name: TIMES[TimePart::Cap as usize],
        title: "time: BDP cap",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average because the loss recovery's limit on packets in flight (BDP-FC) was",
        of: |point| point.flows.time_us(TimePart::Cap),
    },
    Metric {
        name: TIMES[TimePart::Recovery as usize],
        title: "time: recovery",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average for news of a loss, while packets were sent again, and for what that set right",
        of: |point| point.flows.time_us(TimePart::Recovery),
    },
    Metric {
        name: TIMES[TimePart::Timeout as usize],
        title: "time: timeout",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average for a retransmission timeout",
        of: |point| point.flows.time_us(TimePart::Timeout),
    },
    Metric {
        name: TIMES[TimePart::Outage as usize],
        title: "time: outage",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average for a link that was down",
        of: |point| point.flows.time_us(TimePart::Outage),
    },
    Metric {
        name: TIMES[TimePart::Other as usize],
        title: "time: other",
        unit: Unit::Us,
        meaning: "what a measured flow spent on average for what could not be told: messages that share a queue pair, packets in tunnels",
        of: |point| point.flows.time_us(TimePart::Other),
    },
    Metric {
        name: TIME_SAMPLES,
        title: "looks at flows",
        unit: Unit::Count,
        meaning: "how many flows under way were looked at to tell where time goes, each as often as it was",
        of: |point| point.flows.time.as_ref().map(|time| time.samples as f64),
    },
];

/// Returns a counter of bits pools; `None` without pools.
fn of_pools(point: &PointSummary, count: impl FnOnce(&ReorderingTotals) -> u64) -> Option<f64> {
    let pools = &point.run.reordering;
    (pools.pool_blocks > 0).then(|| count(pools) as f64)
}

/// Returns the mean completion time of flows of more than `above` and at most `up_to` bytes.
fn mean_fct(point: &PointSummary, above: u64, up_to: u64) -> Option<f64> {
    let classes = || of_size(point, above, up_to);
    let count: u64 = classes().map(|class| class.slowdown.count).sum();
    let sum: f64 = classes().map(|class| class.fct_mean_us * class.slowdown.count as f64).sum();
    (count > 0).then(|| sum / count as f64)
}

/// Returns the size classes of flows of more than `above` and at most `up_to` bytes.
pub(super) fn of_size(point: &PointSummary, above: u64, up_to: u64) -> impl Iterator<Item = &SizeClass> {
    point.flows.by_size.iter().filter(move |class| class.above >= above && class.up_to <= up_to)
}

/// Largest size of a short flow, in bytes.
pub(super) const SHORT: u64 = 1 << 17;
/// Size in bytes above which a flow is long.
pub(super) const LONG: u64 = 1 << 20;

/// Returns a count of repetitions; `None` if the run has no groups.
fn of_groups(point: &PointSummary, count: u64) -> Option<f64> {
    (point.flows.groups > 0).then_some(count as f64)
}

/// Returns a count per 100 KB of payload that receivers accepted.
fn per_100kb(count: u64, point: &PointSummary) -> Option<f64> {
    (point.run.goodput_bytes > 0).then(|| count as f64 * 1e5 / point.run.goodput_bytes as f64)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
