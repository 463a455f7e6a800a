//! What a queue pair is made with, and what can be changed of it.

use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::{Bytes, Duration, Psn, QpNumber};
use selvedge_wire::Bth;

use super::paths::PathId;
use super::queue::CqId;
use super::region::{Access, PdId};
use super::srq::SrqId;
use super::work::Route;

/// Which service a queue pair gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Reliable connection.
    Reliable,
    /// Unreliable connection.
    Unreliable,
    /// Unreliable datagrams.
    Datagram,
}

/// How much queues hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacities {
    /// Requests in the send queue.
    pub send_requests: u32,
    /// Requests in the receive queue.
    pub receive_requests: u32,
    /// Pieces of memory of a send request.
    pub send_pieces: u32,
    /// Pieces of memory of a receive request.
    pub receive_pieces: u32,
    /// Bytes of data in a send request.
    pub inline: u32,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QpInit {
    /// Which service.
    pub service: Service,
    /// Its protection domain.
    pub pd: PdId,
    /// Where send requests complete.
    pub send_cq: CqId,
    /// Where receive requests complete.
    pub receive_cq: CqId,
    /// Where it takes receive requests from, if not from a queue of its own.
    pub srq: Option<SrqId>,
    /// How much its queues hold.
    pub capacities: Capacities,
    /// Each send request completes visibly.
    pub all_signaled: bool,
    /// The loss recovery between two of our own, resolved; towards others it is go-back-N.
    pub recovery: RecoveryConfig,
    /// Congestion control of its requests and, between two of our own, of its answers, resolved. A standard queue pair
    /// hears of congestion by notification packets and by losses, and does not control its answers.
    pub congestion: CongestionConfig,
    /// What surrounds the payload of a packet on the wire, gap included: congestion control counts it.
    pub overhead: Bytes,
    /// Packets that it may have in flight towards others: what their socket buffers or queues are sure to hold. 1 to
    /// 2^22.
    pub window: u32,
    /// Between two of our own, every so many-th packet asks for an acknowledgement, and the last behind which none is
    /// ready to be sent, and a few packets of requests may leave before one; 1 is every packet, and at once, as IRN has
    /// it. What arrives out of order, or late, is answered unasked. At least four of a full window ask in any case.
    pub ack_every: u32,
    /// Optional mechanisms of reliable connections.
    pub options: QpOptions,
}

/// Optional mechanisms of a reliable connection. Default: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QpOptions {
    /// End-to-end credits (InfiniBand architecture, volume 1, section 9.7.7.2; IRN, section 5.4). As responder it
    /// advertises how many receive requests wait in its own queue; as requester it begins no Send and no Write with an
    /// immediate beyond what the other side has advertised, but for one packet that asks for news. Without, it
    /// advertises nothing and sends whatever the other side can take: a receiver that is not ready says so.
    pub credits: bool,
    /// The fence that IRN, section 5.3.4, leaves to the driver: a request that could overwrite memory waits until all
    /// before it that read or write any of that memory, here or at the other side, have completed. Without, packets of
    /// an older request that are sent again may be placed last. Memory at the other side counts as one if addresses
    /// are equal, whatever the key; what a receive request names is not known.
    pub fence_overlaps: bool,
}

/// States of a queue pair (InfiniBand architecture, volume 1, section 10.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QpState {
    /// New: takes no requests.
    #[default]
    Reset,
    /// Takes receive requests.
    Initialised,
    /// Receives.
    ReadyToReceive,
    /// Sends, too.
    ReadyToSend,
    /// Sends nothing new: what was begun is finished.
    Draining,
    /// A send request has failed, of a queue pair that is not reliable.
    SendError,
    /// Has failed: requests are flushed.
    Error,
}

/// What of a queue pair can be changed, and asked for.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QpChange {
    /// The state that it is to take.
    pub state: Option<QpState>,
    /// The state that it is said to be in: refused if it is not.
    pub from: Option<QpState>,
    /// What the other side may do.
    pub access: Option<Access>,
    /// Q_Key of a datagram queue pair.
    pub qkey: Option<u32>,
    /// The way to the other side.
    pub route: Option<Route>,
    /// The queue pair on the other side.
    pub destination: Option<QpNumber>,
    /// Bytes of payload that a packet carries at most: 256, 512, 1024, 2048 or 4096.
    pub mtu: Option<u16>,
    /// PSN of the first request that is sent.
    pub send_psn: Option<Psn>,
    /// PSN of the first request that is expected.
    pub receive_psn: Option<Psn>,
    /// Reads and Atomics under way at a time that it asks for.
    pub reads_asked: Option<u8>,
    /// Reads and Atomics under way at a time that it answers.
    pub reads_answered: Option<u8>,
    /// How long to wait for an answer: 4.096 us times 2 to this power; 0 is for ever.
    pub timeout: Option<u8>,
    /// How often to try again after silence, 0 to 7.
    pub retries: Option<u8>,
    /// How often to try again after a receiver was not ready, 0 to 6; 7 is for ever.
    pub not_ready_retries: Option<u8>,
    /// The code of how long a sender is to wait when no receive request is ready, 0 to 31.
    pub not_ready_timer: Option<u8>,
    /// Tell when the send queue has drained.
    pub drained_event: Option<bool>,
    /// The index of its partition key.
    pub pkey_index: Option<u16>,
    /// Its port.
    pub port: Option<u8>,
}

/// What a queue pair and its other side have agreed upon, once it can receive.
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
    /// The way to the other side, where it has a congestion control of its own.
    pub(super) path: PathId,
}

impl Terms {
    /// From what was set so far; what was not is zero, which the checks of the state transitions make sure does not
    /// matter.
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
    /// The BTH of a packet to the other side.
    pub(super) fn bth(&self, operation: u8, psn: Psn) -> Bth {
        Bth { opcode: operation, partition: PARTITION, destination: self.destination, psn, ..Bth::default() }
    }
}

/// The default partition, of which all are full members.
pub(super) const PARTITION: u16 = 0xffff;

/// How long a sender is to wait by the code in an RNR NAK (InfiniBand architecture, volume 1, table 45).
pub(super) const fn not_ready_wait(code: u8) -> Duration {
    /// In units of 10 us.
    const WAITS: [u16; 32] = [
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
        4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    match code & 31 {
        0 => Duration::from_us(655_360),
        code => Duration::from_us(WAITS[code as usize] as u64 * 10),
    }
}
