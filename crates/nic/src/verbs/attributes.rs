//! Attributes of a queue pair: those set at creation and those that can change.

use selvedge_transport::{CongestionParams, FeedbackConfig, RecoveryParams};
use selvedge_units::{Bytes, Duration, Psn, QpNumber};
use selvedge_wire::Bth;

use super::paths::PathId;
use super::queue::CqId;
use super::region::{Access, PdId};
use super::srq::SrqId;
use super::work::Route;

/// Transport service of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Reliable connection.
    Reliable,
    /// Unreliable connection.
    Unreliable,
    /// Unreliable datagrams.
    Datagram,
}

/// Capacities of a queue pair's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacities {
    /// Number of requests in the send queue.
    pub send_requests: u32,
    /// Number of requests in the receive queue.
    pub receive_requests: u32,
    /// Number of scatter/gather elements of a send request.
    pub send_pieces: u32,
    /// Number of scatter/gather elements of a receive request.
    pub receive_pieces: u32,
    /// Bytes of inline data in a send request.
    pub inline: u32,
}

/// Attributes of a queue pair that are set at its creation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QpInit {
    /// Transport service.
    pub service: Service,
    /// Protection domain.
    pub pd: PdId,
    /// Completion queue of send requests.
    pub send_cq: CqId,
    /// Completion queue of receive requests.
    pub receive_cq: CqId,
    /// Shared receive queue; `None` if the queue pair has its own receive queue.
    pub srq: Option<SrqId>,
    /// Capacities of the queues.
    pub capacities: Capacities,
    /// Whether every send request generates a completion.
    pub all_signaled: bool,
    /// Loss recovery between two Selvedge NICs; towards standard peers it is go-back-N.
    pub recovery: RecoveryParams,
    /// Congestion control of requests and, between two Selvedge NICs, of responses. Towards a standard peer, congestion
    /// is signalled by notification packets and losses, and responses are not controlled.
    pub congestion: CongestionParams,
    /// Notifications for the other end's congestion control, which is the same; all other feedback is in
    /// acknowledgements.
    pub feedback: FeedbackConfig,
    /// Bytes around the payload of a packet on the wire, inter-packet gap included: congestion control counts them.
    pub overhead: Bytes,
    /// Maximum number of packets in flight towards standard peers: as many as their socket buffers or queues are sure
    /// to hold. 1 to 2^22.
    pub window: u32,
    /// Acknowledgement interval in packets between two Selvedge NICs: every `ack_every`-th packet requests an
    /// acknowledgement, as does a packet behind which no other is ready to be sent. A few packets of requests may leave
    /// before an acknowledgement. With 1, every packet is acknowledged at once, as in IRN. Packets that are out of
    /// order or late are acknowledged unrequested. At least four packets of a full window request an acknowledgement in
    /// any case.
    pub ack_every: u32,
    /// Optional mechanisms of reliable connections.
    pub options: QpOptions,
}

/// Optional mechanisms of a reliable connection. Default: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QpOptions {
    /// End-to-end credits (InfiniBand architecture, volume 1, section 9.7.7.2; IRN, section 5.4). As responder, the
    /// queue pair advertises how many receive requests wait in its own queue. As requester, it begins no Send and no
    /// Write with an immediate beyond the other side's advertised limit, except for one packet that asks for new
    /// credits. Without credits, it advertises nothing and sends without a limit: a receiver that is not ready answers
    /// with an RNR NAK.
    pub credits: bool,
    /// The fence that IRN, section 5.3.4, leaves to the driver: a request that could overwrite memory waits until all
    /// earlier requests that read or write any of that memory, at either side, have completed. Without the fence,
    /// retransmitted packets of an older request may be placed last. Memory of the other side counts as the same if
    /// addresses are equal, whatever the key; the memory of receive requests is not known.
    pub fence_overlaps: bool,
}

/// States of a queue pair (InfiniBand architecture, volume 1, section 10.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QpState {
    /// The initial state: accepts no requests.
    #[default]
    Reset,
    /// Accepts receive requests.
    Initialised,
    /// Receives packets.
    ReadyToReceive,
    /// Sends and receives packets.
    ReadyToSend,
    /// Begins no new send requests; requests that have begun are finished.
    Draining,
    /// A send request has failed, on a queue pair whose service is not reliable.
    SendError,
    /// The queue pair has failed: requests are flushed.
    Error,
}

/// Attributes of a queue pair that can be changed and queried.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QpChange {
    /// State to change to.
    pub state: Option<QpState>,
    /// Expected present state; the change is rejected in any other state.
    pub from: Option<QpState>,
    /// Access rights of the other side.
    pub access: Option<Access>,
    /// Q_Key of a datagram queue pair.
    pub qkey: Option<u32>,
    /// Route to the other side.
    pub route: Option<Route>,
    /// Queue pair of the other side.
    pub destination: Option<QpNumber>,
    /// Maximum payload of a packet in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: Option<u16>,
    /// PSN of the first request to send.
    pub send_psn: Option<Psn>,
    /// PSN of the first request expected.
    pub receive_psn: Option<Psn>,
    /// Maximum outstanding Reads and Atomics as requester.
    pub reads_asked: Option<u8>,
    /// Maximum outstanding Reads and Atomics as responder.
    pub reads_answered: Option<u8>,
    /// Retransmission timeout: 4.096 us times 2 to this power; 0 means no timeout.
    pub timeout: Option<u8>,
    /// Number of retries after a timeout, 0 to 7.
    pub retries: Option<u8>,
    /// Number of retries after a receiver was not ready, 0 to 6; 7 means unlimited.
    pub not_ready_retries: Option<u8>,
    /// RNR timer code, 0 to 31: how long a sender waits when no receive request is ready.
    pub not_ready_timer: Option<u8>,
    /// Whether to raise an event when the send queue has drained.
    pub drained_event: Option<bool>,
    /// Index of the partition key.
    pub pkey_index: Option<u16>,
    /// Port of the NIC.
    pub port: Option<u8>,
}

/// Parameters that a queue pair and its peer have agreed upon, once the queue pair can receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) number: QpNumber,
    pub(super) init: QpInit,
    pub(super) access: Access,
    pub(super) qkey: u32,
    pub(super) route: Route,
    pub(super) destination: QpNumber,
    pub(super) mtu: u32,
    pub(super) send_psn: Psn,
    pub(super) receive_psn: Psn,
    pub(super) reads_asked: u8,
    pub(super) reads_answered: u8,
    pub(super) timeout: Option<Duration>,
    pub(super) retries: u8,
    pub(super) not_ready_retries: Option<u8>,
    pub(super) not_ready_timer: u8,
    /// Path to the other side, if paths have their own congestion control.
    pub(super) path: PathId,
}

impl Terms {
    /// Creates the terms from the attributes set so far. Attributes that were not set are zero; the checks of state
    /// transitions make sure that those are not used.
    pub(super) fn of(number: QpNumber, init: QpInit, set: &QpChange) -> Self {
        Self {
            number,
            init,
            access: set.access.unwrap_or_default(),
            qkey: set.qkey.unwrap_or_default(),
            route: set.route.unwrap_or(Route::NOWHERE),
            destination: set.destination.unwrap_or_default(),
            mtu: u32::from(set.mtu.unwrap_or(1_024)),
            send_psn: set.send_psn.unwrap_or_default(),
            receive_psn: set.receive_psn.unwrap_or_default(),
            reads_asked: set.reads_asked.unwrap_or_default(),
            reads_answered: set.reads_answered.unwrap_or_default(),
            timeout: set.timeout.filter(|&code| code > 0).map(|code| Duration::from_ns(4_096) * (1 << (code & 31))),
            retries: set.retries.unwrap_or_default(),
            not_ready_retries: set.not_ready_retries.filter(|&retries| retries < 7),
            not_ready_timer: set.not_ready_timer.unwrap_or_default(),
            path: PathId::NONE,
        }
    }
    /// Returns the BTH of a packet to the other side.
    pub(super) fn bth(&self, operation: u8, psn: Psn) -> Bth {
        Bth { opcode: operation, partition: PARTITION, destination: self.destination, psn, ..Bth::default() }
    }
}

/// The default partition, of which every queue pair is a full member.
pub(super) const PARTITION: u16 = 0xffff;

/// Returns how long a sender waits for a code in an RNR NAK (InfiniBand architecture, volume 1, table 45).
pub(super) const fn not_ready_wait(code: u8) -> Duration {
    /// Waiting times by code, in units of 10 us.
    const WAITS: [u16; 32] = [
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
        4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    match code & 31 {
        0 => Duration::from_us(655_360),
        code => Duration::from_us(WAITS[code as usize] as u64 * 10),
    }
}
