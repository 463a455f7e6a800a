//! Work requests that applications post, and the completions that they receive.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_units::QpNumber;

use super::flush::Flush;
use super::window::Bind;

/// A contiguous piece of memory of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First address, in the process that owns the NIC.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Location of a packet's payload: spans of memory, or bytes held inline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    /// Pieces of memory that hold the payload, in order.
    pub spans: Vec<Span>,
    /// Payload bytes held here instead of in memory.
    pub inline: Vec<u8>,
}

impl Payload {
    /// Empties the payload.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.inline.clear();
    }
}

/// A piece of registered memory, as work requests name it (a scatter/gather element).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sge {
    /// First address, in the address space of its region.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// Local key of the region.
    pub key: u32,
}

/// A work request for a send queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendRequest {
    /// The application's identifier of the request, returned in its completion.
    pub id: u64,
    /// Operation to perform.
    pub operation: Operation,
    /// Location of the data to send, or of the buffer that receives data.
    pub data: Data,
    /// Whether the request generates a completion even if the queue pair does not signal all requests.
    pub signaled: bool,
    /// Whether the message raises an event at a receiver whose completion queue waits for solicited completions.
    pub solicited: bool,
    /// Whether the request begins only after all earlier Reads and Atomics are complete.
    pub fence: bool,
    /// Destination of a datagram; `None` on a connection.
    pub destination: Option<Destination>,
}

/// Location of a request's data: the source of a message, or the destination of a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// Data in registered memory.
    Gather(Vec<Sge>),
    /// A copy of the data, so that the application may change its buffer at once.
    Inline(Vec<u8>),
}

/// Operation of a send request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A Send: delivers a message into the next receive request of the responder.
    Send(Attached),
    /// A Write into the responder's memory.
    Write {
        /// Destination in the responder's memory.
        remote: Remote,
        /// Immediate data; if present, the Write also completes a receive request at the responder.
        immediate: Option<[u8; 4]>,
    },
    /// A Read of the responder's memory.
    Read(Remote),
    /// A compare-and-swap: replaces 8 bytes at the responder if they equal the expected value, and returns the old
    /// value.
    CompareSwap {
        /// Address of the 8 bytes.
        remote: Remote,
        /// Expected value.
        compare: u64,
        /// Value to write if the expected one is found.
        swap: u64,
    },
    /// A fetch-and-add: adds to 8 bytes at the responder, and returns the old value.
    FetchAdd {
        /// Address of the 8 bytes.
        remote: Remote,
        /// Number to add.
        add: u64,
    },
    /// An atomic write of 8 bytes at the responder, after all earlier requests are done.
    AtomicWrite(Remote),
    /// A flush: makes earlier writes to the responder's memory visible or persistent.
    Flush(Flush),
    /// An invalidation of a memory window of this side, by its key.
    LocalInvalidate(u32),
    /// A binding of a memory window.
    Bind(Bind),
}

/// Extra information that a Send carries in addition to its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attached {
    /// No extra information.
    #[default]
    Nothing,
    /// Four bytes of immediate data, in wire order.
    Immediate([u8; 4]),
    /// The key of a memory window that the responder is to invalidate.
    Invalidate(u32),
}

/// A location in the responder's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remote {
    /// Address in the address space of its region.
    pub address: u64,
    /// Remote key of the region.
    pub key: u32,
}

/// Destination of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Addresses and IP header fields of its packets.
    pub route: Route,
    /// Destination queue pair.
    pub qp: QpNumber,
    /// Q_Key of the destination; if its highest bit is set, the sending queue pair's own Q_Key is used instead.
    pub qkey: u32,
}

/// Addresses and IP header fields for packets to another NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Address of this side (IPv4 as `::ffff:a.b.c.d`).
    pub local: Ipv6Addr,
    /// Address of the other side.
    pub remote: Ipv6Addr,
    /// Type of service (IPv4) or traffic class (IPv6).
    pub traffic_class: u8,
    /// Time to live (IPv4) or hop limit (IPv6).
    pub hop_limit: u8,
    /// Source of the flow's entropy, for example of its UDP source port.
    pub flow_label: u32,
}

impl Route {
    /// A route that is not set yet.
    pub const NOWHERE: Self = Self {
        local: Ipv6Addr::UNSPECIFIED,
        remote: Ipv6Addr::UNSPECIFIED,
        traffic_class: 0,
        hop_limit: 0,
        flow_label: 0,
    };
}

/// A work request for a receive queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiveRequest {
    /// The application's identifier of the request, returned in its completion.
    pub id: u64,
    /// Memory that receives the message. A datagram is preceded by 40 bytes of its network header.
    pub scatter: Vec<Sge>,
}

/// The outcome of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The application's identifier of the request.
    pub id: u64,
    /// Success or cause of failure.
    pub status: Status,
    /// Kind of the request. Meaningless if the request failed.
    pub kind: CompletionKind,
    /// Bytes received or read.
    pub length: u32,
    /// Extra information that the message carried in addition to its data.
    pub attached: Attached,
    /// Queue pair of the request.
    pub qp: QpNumber,
    /// Sender of the message, for datagrams.
    pub source: Option<Source>,
    /// Whether the sender solicited an event.
    pub solicited: bool,
}

/// The sender of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Queue pair of the sender.
    pub qp: QpNumber,
    /// Route back to the sender.
    pub route: Route,
}

/// Kinds of completed requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionKind {
    /// A Send.
    Send,
    /// A Write.
    Write,
    /// A Read.
    Read,
    /// A compare-and-swap.
    CompareSwap,
    /// A fetch-and-add.
    FetchAdd,
    /// An atomic write.
    AtomicWrite,
    /// A flush of earlier writes.
    Flush,
    /// An invalidation of a memory window of this side.
    LocalInvalidate,
    /// A binding of a memory window.
    Bind,
    /// A received message.
    Receive,
    /// A received Write with an immediate.
    ReceiveWrite,
}

/// Outcome of a request (InfiniBand architecture, volume 1, section 11.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    Success,
    /// Message longer than the buffer that was to take it.
    LocalLength,
    /// Operation that the queue pair does not support.
    LocalOperation,
    /// Access that a local key does not permit.
    LocalProtection,
    /// Request flushed because the queue pair had failed before.
    Flushed,
    /// Binding of a memory window that is not permitted.
    WindowBind,
    /// Malformed response from the responder.
    BadResponse,
    /// Failure to write the memory of a receive request.
    LocalAccess,
    /// Request that the responder found malformed or too long.
    RemoteInvalidRequest,
    /// Access that the responder does not permit.
    RemoteAccess,
    /// Operation that the responder could not perform.
    RemoteOperation,
    /// No response within the permitted number of retries.
    RetriesExceeded,
    /// Responder not ready within the permitted number of retries.
    NotReadyRetriesExceeded,
}
