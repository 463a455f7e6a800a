//! What is counted, for tables.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, Rate};

use crate::eqif::EqifTotals;
use crate::kind::ByKind;
use crate::time::TimeProfile;

/// One flow, reported when the receiver has its last byte (or at the end of the run, unfinished).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRow {
    /// The flow's number in its workload: input order for lists, arrival order for generators.
    pub id: u64,
    /// Which workload of the scenario it belongs to, from 0.
    pub workload: u16,
    /// Repetition of an incast or collective it belongs to, from 0.
    pub group: u32,
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// Payload.
    pub size: Bytes,
    /// Data packets that carry it.
    pub packets: u64,
    /// When the application handed it to the NIC.
    pub start: Instant,
    /// When the receiver had the last byte; `None` if it never did.
    pub finish: Option<Instant>,
    /// What `finish - start` would be in an empty network: the flow at line rate, store and forward, on the one path
    /// that is best for its size. Where packets of a flow spread over several paths that are slower than its host's
    /// link, it can take less.
    pub ideal: Duration,
    /// Arrivals at the receiver of data it had already accepted, before the flow finished or the run ended:
    /// retransmissions nobody needed, and duplicates made by the network. Zero for messages of queue pairs that verbs
    /// share.
    pub spurious: u32,
    /// Whether it arrived inside the measured interval.
    pub measured: bool,
}

impl FlowRow {
    /// Flow completion time.
    pub fn fct(&self) -> Option<Duration> {
        self.finish.map(|finish| finish.since(self.start))
    }
    /// Completion time over the ideal one; at least 1 up to rounding where a flow keeps to one path.
    pub fn slowdown(&self) -> Option<f64> {
        self.fct().map(|fct| fct.as_ps() as f64 / self.ideal.as_ps().max(1) as f64)
    }
}

/// What a repetition of an incast or a schedule consists of; it is complete when all of that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupParts {
    /// So many flows.
    Flows(u64),
    /// The parts of so many ranks, which compute beside their flows.
    Ranks(u64),
}

/// One rank's part in a repetition of a schedule, reported when it is done (or at the end of the run, unfinished).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankRow {
    /// Which workload of the scenario it belongs to, from 0.
    pub workload: u16,
    /// The repetition, as [`FlowRow::group`].
    pub group: u32,
    /// When the rank began it.
    pub begin: Instant,
    /// When its last step ended; `None` if it never did.
    pub end: Option<Instant>,
    /// Whether it began inside the measured interval.
    pub measured: bool,
}

/// What one port did during one sampling interval. The last interval of a run may be shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortRow {
    /// End of the interval.
    pub time: Instant,
    /// The port.
    pub port: PortId,
    /// Bytes waiting to leave through it, at `time`.
    pub egress_queue: Bytes,
    /// Bytes that entered through it and are still in the switch's buffer, at `time`.
    pub ingress_buffer: Bytes,
    /// How long it was paused by its peer during the interval.
    pub paused: Duration,
    /// How long it was transmitting during the interval.
    pub busy: Duration,
    /// Packets of any kind dropped on entry through it during the interval: data, acknowledgements, and others.
    pub drops: u32,
    /// Packets cut to their headers while they waited to leave through it, during the interval.
    pub trims: u32,
}

/// What kind of node a port belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortKind {
    /// A host's NIC.
    Host,
    /// A switch's port; tier 0 is the switches that hosts are attached to.
    Switch {
        /// Distance from the hosts, 0 for a top-of-rack switch.
        tier: u8,
    },
}

/// What a port is, once per run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortInfo {
    /// The port.
    pub id: PortId,
    /// The node it belongs to, by its name in the topology. All its ports can share one.
    pub node: Arc<str>,
    /// The node at the other end.
    pub peer: Arc<str>,
    /// The port at the other end.
    pub peer_id: PortId,
    /// What it belongs to.
    pub kind: PortKind,
    /// What its peer belongs to.
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
    /// How long it was paused by its peer (any class).
    pub paused: Duration,
    /// Pause frames (X-OFF) it sent to its peer.
    pub pauses_sent: u64,
    /// The deepest its egress queue was.
    pub egress_peak: Bytes,
    /// Packets that were dropped on entry through it, of any kind: data, acknowledgements, and others.
    pub drops: u64,
    /// Packets that were cut to their headers while they waited to leave through it.
    pub trims: u64,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// No room in the switch's buffer.
    BufferFull,
    /// PFC was on and its headroom too small: the drop that a lossless network promises not to make.
    HeadroomFull,
    /// Lost on a link, by the scenario's loss process.
    LinkLoss,
    /// On a link that was down, or queued for it.
    LinkDown,
    /// No path to the destination.
    NoRoute,
    /// The host knew no such queue pair (any more): mostly a copy, sent in vain, that came when its flow was over. The
    /// network has not lost it.
    UnknownQp,
    /// Damaged on a link: its FCS or ICRC was wrong where it arrived.
    Corrupt,
    /// A switch had cut its payload off, and its transport has no use for headers alone.
    Trimmed,
    /// NetRT's switches had no use for it: a copy of what has arrived, or held behind a gap that stays.
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

    /// Its name in tables.
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
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_reason.iter().sum()
    }
    /// One more.
    pub fn count(&mut self, reason: DropReason) {
        self.by_reason[reason as usize] += 1;
    }
    /// Adds those of another part of the fabric.
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
    /// Its node.
    pub node: String,
    /// The node that pauses it.
    pub paused_by: String,
    /// Bytes that wait behind it.
    pub waiting: Bytes,
}

/// A PFC deadlock: a cycle in which every port is paused until the next one moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// When it was found.
    pub at: Instant,
    /// Since when no port of the cycle has sent a packet.
    pub since: Instant,
    /// The cycle; each hop is paused by the node of the next.
    pub cycle: Vec<PausedHop>,
}

/// A rank of a schedule that waits for a message although all have come: another receive, from any rank or with any
/// tag, has taken it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckRank {
    /// Which workload of the scenario it belongs to, from 0.
    pub workload: u16,
    /// Which rank waits for what, in which of its steps.
    pub waits: String,
}

/// What receivers did with data out of order, where they keep it beside the application's memory and remember it in
/// bits that a NIC's queue pairs share (MELO); nothing elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reordering {
    /// Payload that went through reorder buffers, and was copied from there.
    pub buffered: Bytes,
    /// Blocks in each NIC's pool.
    pub pool_blocks: u32,
    /// The most of them that receivers held at any NIC at any time.
    pub pool_peak: u32,
    /// The same of senders.
    pub sender_pool_peak: u32,
    /// Data refused because there was no room for its bits or its payload.
    pub refused_full: u64,
    /// Data refused because its bits could not be reached.
    pub refused_middle: u64,
    /// NACKs that a sender had no room to remember.
    pub forgotten: u64,
    /// Connections that left a NIC's chip for others.
    pub swaps: u64,
}

impl Reordering {
    /// Adds what happened at another NIC.
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

/// What a whole run amounts to, apart from its rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunRecord {
    /// Hash of what arrived at hosts, when, and in which order, and of what was lost on the way; equal for equal
    /// scenario and seed, whatever the threads, partitions and build.
    pub fingerprint: u64,
    /// Simulated time when the run ended.
    pub end: Instant,
    /// Whether it ended because nothing more would have arrived: nothing was left to happen, or only attempts in vain.
    pub hopeless: bool,
    /// Packets times links crossed, acknowledgements and pause frames included.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Flows that began, and that finished.
    pub flows_started: u64,
    /// See `flows_started`.
    pub flows_finished: u64,
    /// Data packets that hosts put on the wire, retransmissions included.
    pub data_sent: u64,
    /// Of these, how many had been sent before. Where stacks send through EQDS's tunnels, what they hand over again
    /// counts, and what tunnels send again, too; what a tunnel's queue drops or still holds was never on the wire, so
    /// that there it can be more than `data_sent`.
    pub retransmissions: u64,
    /// Data packets that arrived at their host.
    pub data_delivered: u64,
    /// Of these, how many carried data that the receiver already had.
    pub spurious_retransmissions: u64,
    /// Payload bytes that receivers accepted for the first time.
    pub goodput: Bytes,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Negative acknowledgements sent.
    pub nacks_sent: u64,
    /// Packets that were ECN-marked.
    pub ecn_marks: u64,
    /// Data packets that a switch sent another way than the packet of their flow before; none with ECMP. `None` where
    /// it is not counted: where senders choose the ways, packets do not say what flow they are of.
    pub path_switches: Option<u64>,
    /// Packets that switches cut to their headers.
    pub trims: u64,
    /// Of these, how many were dropped afterwards: where headers had no room, on links, or by hosts that want none.
    /// They are among `data_drops`. Those that came when their flow was over ([`DropReason::UnknownQp`]) do not count.
    pub trimmed_drops: u64,
    /// Acknowledgements put on the wire, and delivered.
    pub acks_sent: u64,
    /// See `acks_sent`.
    pub acks_delivered: u64,
    /// Congestion notification packets put on the wire, and delivered.
    pub cnps_sent: u64,
    /// See `cnps_sent`.
    pub cnps_delivered: u64,
    /// Pause and resume frames put on the wire, and delivered.
    pub pause_frames: u64,
    /// See `pause_frames`.
    pub pauses_delivered: u64,
    /// Data packets that were dropped.
    pub data_drops: Drops,
    /// Acknowledgements that were dropped.
    pub ack_drops: Drops,
    /// Pause frames that were dropped.
    pub pause_drops: Drops,
    /// Congestion notification packets that were dropped.
    pub cnp_drops: Drops,
    /// What receivers did with data out of order, where they keep it apart.
    pub reordering: Reordering,
    /// Packets still in the fabric when the run ended. What NetRT's switches hold counts as in the fabric.
    pub in_flight: ByKind<u64>,
    /// What NetRT's switches did.
    pub netrt: NetRtTotals,
    /// What EQIFs did.
    pub eqif: EqifTotals,
    /// Paused time, summed over ports.
    pub paused: Duration,
    /// Where the completion time of its measured flows went.
    pub time: TimeProfile,
    /// Totals by port.
    pub ports: Vec<PortTotals>,
    /// Why the run ended early, if it did.
    pub deadlock: Option<Deadlock>,
    /// Who waits in a schedule that cannot go on although all messages have come.
    pub stuck: Option<StuckRank>,
    /// Seconds of processor time that the run took, and of wall time. Not part of the fingerprint.
    pub cpu_s: f64,
    /// See `cpu_s`.
    pub wall_s: f64,
}

/// What NetRT's top-of-rack switches did, summed over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetRtTotals {
    /// Requests that destination ToRs sent, repetitions included.
    pub requests: u64,
    /// Requests that source ToRs answered with "unfulfilled".
    pub unfulfilled: u64,
    /// Duplicates that source ToRs sent.
    pub retransmissions: u64,
    /// Packets that destination ToRs held.
    pub held: u64,
    /// Times that a destination ToR left recovery to the NICs.
    pub given_up: u64,
    /// Times that a source ToR paused a sender.
    pub pauses: u64,
    /// Messages put on the wire, and delivered.
    pub messages: u64,
    /// See `messages`.
    pub messages_delivered: u64,
    /// Messages that were dropped.
    pub message_drops: Drops,
    /// Duplicate pools, of all ports.
    pub pool: Fill,
    /// Reordering buffers, of all ports.
    pub buffer: Fill,
}

/// How full some buffers were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fill {
    /// The most in any of them.
    pub peak: Bytes,
    /// Bytes times picoseconds, summed.
    pub area: u128,
    /// How long there was something in them, summed.
    pub used: Duration,
}

impl Fill {
    /// Adds another buffer.
    pub fn add(&mut self, peak: Bytes, area: u128, used: Duration) {
        self.peak = self.peak.max(peak);
        self.area += area;
        self.used += used;
    }
    /// Bytes in one of them on average, while there was something in it.
    pub fn mean(&self) -> Option<f64> {
        (!self.used.is_zero()).then(|| self.area as f64 / self.used.as_ps() as f64)
    }
}

/// Who is told while a run goes on. Rows arrive in a fixed order, whatever the threads.
pub trait Observer {
    /// Flows that ended since the last call, by finish time, then number.
    fn on_flows(&mut self, rows: &[FlowRow]);
    /// Ranks that have finished their part in a repetition since the last call; at the end, those that have not.
    fn on_ranks(&mut self, rows: &[RankRow]) {
        let _ = rows;
    }
    /// Samples of all ports at one time, by their numbers.
    fn on_ports(&mut self, rows: &[PortRow]);
    /// Receivers have accepted `payload` bytes so far, each counted once. Told every few hundred thousand events.
    fn on_delivered(&mut self, payload: Bytes) {
        let _ = payload;
    }
    /// Simulated time has reached `now`, and `finished` flows are done. Returns whether to go on.
    fn on_progress(&mut self, now: Instant, finished: u64) -> bool {
        let _ = (now, finished);
        true
    }
}
