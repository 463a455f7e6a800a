//! Counters and results, for tables.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, Rate};

use crate::eqif::EqifTotals;
use crate::kind::ByKind;
use crate::time::TimeProfile;

/// One flow, reported when its last byte reaches the receiver (or at the end of the run, unfinished).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRow {
    /// The flow's number in its workload: input order for lists, arrival order for generators.
    pub id: u64,
    /// Index of the flow's workload in the scenario, from 0.
    pub workload: u16,
    /// Index of the repetition of an incast or collective to which the flow belongs, from 0.
    pub group: u32,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload of the flow.
    pub size: Bytes,
    /// Data packets that carry the payload.
    pub packets: u64,
    /// Time at which the application handed the flow to the NIC.
    pub start: Instant,
    /// Time at which the receiver had the last byte; `None` if never.
    pub finish: Option<Instant>,
    /// Ideal value of `finish - start`, in an empty network: the flow at line rate, store and forward, on the single
    /// path that is best for its size. A flow whose packets use several paths that are slower than its host's link can
    /// be faster.
    pub ideal: Duration,
    /// Spurious arrivals at the receiver: data already accepted, before the flow finished or the run ended, by spurious
    /// retransmissions or duplication in the network. Zero for messages of queue pairs that verbs share.
    pub spurious: u32,
    /// Whether the flow began inside the measured interval.
    pub measured: bool,
}

impl FlowRow {
    /// Returns the flow completion time.
    pub fn fct(&self) -> Option<Duration> {
        self.finish.map(|finish| finish.since(self.start))
    }
    /// Returns the completion time divided by the ideal one; at least 1 up to rounding where a flow uses a single path.
    pub fn slowdown(&self) -> Option<f64> {
        self.fct().map(|fct| fct.as_ps() as f64 / self.ideal.as_ps().max(1) as f64)
    }
}

/// The parts of a repetition of an incast or a schedule; it is complete when all parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupParts {
    /// Number of flows.
    Flows(u64),
    /// Number of ranks, which compute besides their flows.
    Ranks(u64),
}

/// One rank's part in a repetition of a schedule, reported at its end (or at the end of the run, unfinished).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankRow {
    /// Index of the workload in the scenario, from 0.
    pub workload: u16,
    /// Index of the repetition, like [`FlowRow::group`].
    pub group: u32,
    /// Time at which the rank began its part.
    pub begin: Instant,
    /// Time at which the rank's last step ended; `None` if never.
    pub end: Option<Instant>,
    /// Whether the part began inside the measured interval.
    pub measured: bool,
}

/// State and counters of one port over one sampling interval. The last interval of a run may be shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortRow {
    /// End of the interval.
    pub time: Instant,
    /// The port.
    pub port: PortId,
    /// Bytes in the egress queue at `time`.
    pub egress_queue: Bytes,
    /// Bytes that entered through the port and are still in the switch's buffer, at `time`.
    pub ingress_buffer: Bytes,
    /// Time for which the port was paused by its peer during the interval.
    pub paused: Duration,
    /// Time for which the port was transmitting during the interval.
    pub busy: Duration,
    /// Packets dropped on entry through the port during the interval: data, acknowledgements, and others.
    pub drops: u32,
    /// Packets trimmed to their headers in the egress queue during the interval.
    pub trims: u32,
}

/// Kind of the node to which a port belongs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortKind {
    /// A host's NIC.
    Host,
    /// A switch's port; tier 0 contains the switches to which hosts are attached.
    Switch {
        /// Distance from the hosts, 0 for a top-of-rack switch.
        tier: u8,
    },
}

/// Static properties of a port, reported once per run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// The port.
    pub id: PortId,
    /// Name of the node in the topology. All ports of a node can share one string.
    pub node: Arc<str>,
    /// The node at the other end.
    pub peer: Arc<str>,
    /// The port at the other end.
    pub peer_id: PortId,
    /// Kind of the port's node.
    pub kind: PortKind,
    /// Kind of the peer's node.
    pub peer_kind: PortKind,
    /// Link rate.
    pub rate: Rate,
}

/// Totals of one port over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortTotals {
    /// The port.
    pub id: PortId,
    /// Frames sent, pause frames included.
    pub frames: u64,
    /// Bytes sent, headers included, gaps not.
    pub bytes: Bytes,
    /// Time for which the port was paused by its peer (any class).
    pub paused: Duration,
    /// Pause frames (X-OFF) sent to the peer.
    pub pauses_sent: u64,
    /// Largest length of the egress queue.
    pub egress_peak: Bytes,
    /// Packets dropped on entry through the port: data, acknowledgements, and others.
    pub drops: u64,
    /// Packets trimmed to their headers in the egress queue.
    pub trims: u64,
}

/// Reason for which a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// No room in the switch's buffer.
    BufferFull,
    /// PFC was on and its headroom too small: a drop that a lossless network must not make.
    HeadroomFull,
    /// Lost on a link, by the scenario's loss process.
    LinkLoss,
    /// The link was down while the packet was in flight or queued.
    LinkDown,
    /// No path to the destination.
    NoRoute,
    /// The host has no such queue pair (any more): usually a spurious retransmission that arrived after its flow had
    /// ended. Not a loss of the network.
    UnknownQp,
    /// Damaged on a link: the FCS or ICRC was wrong on arrival.
    Corrupt,
    /// Trimmed by a switch, and of a transport that does not use trimmed packets.
    Trimmed,
    /// Not needed by NetRT's switches: a copy of a packet that has arrived, or is held after a gap that stays.
    Surplus,
}

impl DropReason {
    /// All reasons, in the order of [`Drops::by_reason`].
    pub const ALL: [Self; 9] = [
        Self::BufferFull,
        Self::HeadroomFull,
        Self::LinkLoss,
        Self::LinkDown,
        Self::NoRoute,
        Self::UnknownQp,
        Self::Corrupt,
        Self::Trimmed,
        Self::Surplus,
    ];

    /// Returns the reason's name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BufferFull => "buffer-full",
            Self::HeadroomFull => "headroom-full",
            Self::LinkLoss => "link-loss",
            Self::Corrupt => "corrupt",
            Self::LinkDown => "link-down",
            Self::NoRoute => "no-route",
            Self::UnknownQp => "unknown-qp",
            Self::Trimmed => "trimmed",
            Self::Surplus => "surplus",
        }
    }
}

/// Dropped packets of one kind, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops {
    /// Counts, in the order of [`DropReason::ALL`].
    pub by_reason: [u64; DropReason::ALL.len()],
}

impl Drops {
    /// Returns the total of all reasons.
    pub fn total(&self) -> u64 {
        self.by_reason.iter().sum()
    }
    /// Counts one drop.
    pub fn count(&mut self, reason: DropReason) {
        self.by_reason[reason as usize] += 1;
    }
    /// Adds the drops of another part of the fabric.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.by_reason.iter_mut().zip(other.by_reason) {
            *mine += theirs;
        }
    }
}

/// One step in a cycle of ports that wait for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PausedHop {
    /// The paused port.
    pub port: PortId,
    /// Name of the paused port's node.
    pub node: String,
    /// Name of the node that pauses the port.
    pub paused_by: String,
    /// Bytes waiting behind the paused port.
    pub waiting: Bytes,
}

/// A PFC deadlock: a cycle of paused ports, each of which waits for the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// Time at which the deadlock was detected.
    pub at: Instant,
    /// Time since which no port of the cycle has sent a packet.
    pub since: Instant,
    /// Ports of the cycle; each is paused by the node of the next.
    pub cycle: Vec<PausedHop>,
}

/// A rank of a schedule that waits for a message although all have arrived: another receive, from any rank or with any
/// tag, has taken it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckRank {
    /// Index of the workload in the scenario, from 0.
    pub workload: u16,
    /// Description of the waiting rank, its step and the awaited message.
    pub waits: String,
}

/// Counters of receivers that keep data out of order apart from the application's memory and record it in bitmaps
/// shared by a NIC's queue pairs (MELO); otherwise zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reordering {
    /// Payload that went through reorder buffers, and was copied from them.
    pub buffered: Bytes,
    /// Blocks in each NIC's pool.
    pub pool_blocks: u32,
    /// Largest number of blocks held by receivers at any NIC.
    pub pool_peak: u32,
    /// Largest number of blocks held by senders at any NIC.
    pub sender_pool_peak: u32,
    /// Data refused for lack of room for its bits or its payload.
    pub refused_full: u64,
    /// Data refused because its bits could not be reached.
    pub refused_middle: u64,
    /// NACKs dropped because a sender had no room for them.
    pub forgotten: u64,
    /// Connections evicted from a NIC's chip by others.
    pub swaps: u64,
}

impl Reordering {
    /// Adds the counters of another NIC.
    pub fn add(&mut self, other: &Self) {
        self.buffered += other.buffered;
        self.pool_blocks = self.pool_blocks.max(other.pool_blocks);
        self.pool_peak = self.pool_peak.max(other.pool_peak);
        self.sender_pool_peak = self.sender_pool_peak.max(other.sender_pool_peak);
        self.refused_full += other.refused_full;
        self.refused_middle += other.refused_middle;
        self.forgotten += other.forgotten;
        self.swaps += other.swaps;
    }
}

/// Results of a whole run, except for its rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunRecord {
    /// Hash of the arrivals at hosts, with their times and order, and of the losses; equal for equal scenario and seed,
    /// regardless of threads, partitions and build.
    pub fingerprint: u64,
    /// Simulated time when the run ended.
    pub end: Instant,
    /// Whether the run ended because no further data would have arrived: no events were left, or only retries without
    /// effect.
    pub hopeless: bool,
    /// Sum over packets of the links crossed, acknowledgements and pause frames included.
    pub packet_hops: u64,
    /// Number of events handled.
    pub events: u64,
    /// Flows that began.
    pub flows_started: u64,
    /// Flows that finished.
    pub flows_finished: u64,
    /// Data packets sent by hosts, retransmissions included.
    pub data_sent: u64,
    /// Data packets sent by hosts that had been sent before. Where stacks send through EQDS tunnels, both the stacks'
    /// and the tunnels' retransmissions count; as packets dropped or held in a tunnel's queue are never sent, the
    /// number may exceed `data_sent` there.
    pub retransmissions: u64,
    /// Data packets that arrived at their host.
    pub data_delivered: u64,
    /// Data packets that arrived at their host with data that the receiver already had.
    pub spurious_retransmissions: u64,
    /// Payload bytes that receivers accepted for the first time.
    pub goodput: Bytes,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Negative acknowledgements sent.
    pub nacks_sent: u64,
    /// Packets marked with ECN.
    pub ecn_marks: u64,
    /// Data packets that a switch sent to a different port than the flow's previous packet; zero with ECMP. `None`
    /// where not counted: if senders choose the paths, packets do not identify their flow.
    pub path_switches: Option<u64>,
    /// Packets trimmed to their headers by switches.
    pub trims: u64,
    /// Trimmed packets that were dropped afterwards: for lack of room for headers, on links, or by hosts that do not
    /// use trimmed packets. Included in `data_drops`. Those that arrived after their flow had ended
    /// ([`DropReason::UnknownQp`]) do not count.
    pub trimmed_drops: u64,
    /// Acknowledgements sent.
    pub acks_sent: u64,
    /// Acknowledgements delivered.
    pub acks_delivered: u64,
    /// Congestion notification packets sent.
    pub cnps_sent: u64,
    /// Congestion notification packets delivered.
    pub cnps_delivered: u64,
    /// Pause and resume frames sent.
    pub pause_frames: u64,
    /// Pause and resume frames delivered.
    pub pauses_delivered: u64,
    /// Data packets that were dropped.
    pub data_drops: Drops,
    /// Acknowledgements that were dropped.
    pub ack_drops: Drops,
    /// Pause frames that were dropped.
    pub pause_drops: Drops,
    /// Congestion notification packets that were dropped.
    pub cnp_drops: Drops,
    /// Handling of data out of order by receivers that keep it apart.
    pub reordering: Reordering,
    /// Packets still in the fabric when the run ended, those held by NetRT's switches included.
    pub in_flight: ByKind<u64>,
    /// Counters of NetRT's switches.
    pub netrt: NetRtTotals,
    /// Counters of EQIFs.
    pub eqif: EqifTotals,
    /// Paused time, summed over ports.
    pub paused: Duration,
    /// Composition of the completion time of the measured flows.
    pub time: TimeProfile,
    /// Totals of each port.
    pub ports: Vec<PortTotals>,
    /// The deadlock that ended the run early, if any.
    pub deadlock: Option<Deadlock>,
    /// The rank that blocks a schedule although all messages have arrived, if any.
    pub stuck: Option<StuckRank>,
    /// Processor time of the run in seconds. Not part of the fingerprint.
    pub cpu_s: f64,
    /// Wall time of the run in seconds. Not part of the fingerprint.
    pub wall_s: f64,
}

/// Counters of NetRT's top-of-rack switches, summed over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetRtTotals {
    /// Requests sent by destination ToRs, repetitions included.
    pub requests: u64,
    /// Requests answered "unfulfilled" by source ToRs.
    pub unfulfilled: u64,
    /// Duplicates sent by source ToRs.
    pub retransmissions: u64,
    /// Packets held by destination ToRs.
    pub held: u64,
    /// Number of times that a destination ToR left recovery to the NICs.
    pub given_up: u64,
    /// Number of times that a source ToR paused a sender.
    pub pauses: u64,
    /// Messages between ToRs sent.
    pub messages: u64,
    /// Messages between ToRs delivered.
    pub messages_delivered: u64,
    /// Messages between ToRs dropped.
    pub message_drops: Drops,
    /// Occupancy of the duplicate pools of all ports.
    pub pool: Fill,
    /// Occupancy of the reordering buffers of all ports.
    pub buffer: Fill,
}

/// Occupancy of a set of buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fill {
    /// Largest occupancy of a single buffer.
    pub peak: Bytes,
    /// Integral of the occupancy in bytes times picoseconds, summed.
    pub area: u128,
    /// Time for which a buffer was not empty, summed.
    pub used: Duration,
}

impl Fill {
    /// Adds another buffer.
    pub fn add(&mut self, peak: Bytes, area: u128, used: Duration) {
        self.peak = self.peak.max(peak);
        self.area += area;
        self.used += used;
    }
    /// Returns the mean occupancy in bytes of a buffer while it was not empty.
    pub fn mean(&self) -> Option<f64> {
        (!self.used.is_zero()).then(|| self.area as f64 / self.used.as_ps() as f64)
    }
}

/// Receiver of a run's results. Rows arrive in a fixed order, regardless of threads.
pub trait Observer {
    /// Handles the flows that ended since the last call, ordered by finish time, then number.
    fn on_flows(&mut self, rows: &[FlowRow]);
    /// Handles the ranks that finished a part since the last call; at the end, those that have not.
    fn on_ranks(&mut self, rows: &[RankRow]) {
        let _ = rows;
    }
    /// Handles the samples of all ports at one time, in the order of their numbers.
    fn on_ports(&mut self, rows: &[PortRow]);
    /// Handles the total `payload` accepted by receivers so far, each byte counted once. Called every few hundred
    /// thousand events.
    fn on_delivered(&mut self, payload: Bytes) {
        let _ = payload;
    }
    /// Handles the progress: simulated time has reached `now`, and `finished` flows are done. Returns whether to
    /// continue.
    fn on_progress(&mut self, now: Instant, finished: u64) -> bool {
        let _ = (now, finished);
        true
    }
}
