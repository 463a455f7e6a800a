//! Queue pairs: an engine and the NIC's state of its flow.

use selvedge_transport::{Feedback, Receiver, Sender};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, Seq};

/// Carrier of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The transport that the NIC is configured for ([`crate::NicParams::flows`]).
    Transport,
    /// TCP beside that transport, configured by [`crate::NicParams::beside`].
    Beside,
}

/// Feedback for the sending end of a queue pair that travels outside the fabric: an RTT sample where data is not
/// acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Host of the sending end.
    pub to: HostId,
    /// Queue pair at the sending end.
    pub qp: QpNumber,
    /// Slot of the queue pair at the sending end.
    pub slot: u32,
    /// Sending time of the packet that has just arrived.
    pub sent_at: Instant,
    /// Bytes on the wire that have arrived since the previous report.
    pub bytes: Bytes,
}

/// Sending end of a queue pair. State that every packet touches comes first, as in its engine.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendQp {
    pub(crate) qp: QpNumber,
    pub(crate) dst: HostId,
    pub(crate) entropy: u32,
    pub(crate) context: u32,
    /// Index of the last packet, whose payload may be short.
    pub(crate) last: Seq,
    pub(crate) last_payload: u16,
    /// Traffic class of the data.
    pub(crate) class: u8,
    /// Whether the queue pair is in the ready ring.
    pub(crate) queued: bool,
    /// Earliest timer entry of this queue pair in the heap of deadlines. `pacing_armed` holds that of its next packet.
    pub(crate) timer_armed: Instant,
    pub(crate) pacing_armed: Instant,
    pub(crate) sender: Sender,
}

/// Receiving end of a queue pair.
#[derive(Debug)]
pub(crate) struct RecvQp {
    pub(crate) receiver: Receiver,
    pub(crate) feedback: Feedback,
    pub(crate) context: u32,
    pub(crate) duplicates: u32,
    /// Packets that have not arrived yet.
    pub(crate) missing: u64,
}
