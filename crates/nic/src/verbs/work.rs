//! What applications ask for, and what they hear back.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_units::QpNumber;

use super::flush::Flush;
use super::window::Bind;

/// A piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Where it begins: an address in the process that owns the NIC.
    pub address: u64,
    /// Bytes.
    pub length: u32,
}

/// Where the payload of a packet stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    /// In these pieces of memory, one after the other.
    pub spans: Vec<Span>,
    /// Or here.
    pub inline: Vec<u8>,
}

impl Payload {
    /// Nothing.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.inline.clear();
    }
}

/// A piece of registered memory, as work requests name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sge {
    /// Where it begins, by the addresses of its region.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// The local key of its region.
    pub key: u32,
}

/// What a send queue is asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendRequest {
    /// The application's name for it; comes back in its completion.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// Where the data is, or goes.
    pub data: Data,
    /// Complete visibly even if the queue pair does not ask that of all.
    pub signaled: bool,
    /// Raise an event at the receiver if its queue waits for solicited ones.
    pub solicited: bool,
    /// Begin only when all earlier Reads and Atomics are complete.
    pub fence: bool,
    /// Where a datagram goes; `None` on a connection.
    pub destination: Option<Destination>,
}

/// Where data is that is to be sent, or where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// In registered memory.
    Gather(Vec<Sge>),
    /// Here: the application may change its copy at once.
    Inline(Vec<u8>),
}

/// What a send request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Delivers a message into the next receive request.
    Send(Attached),
    /// Writes into the responder's memory.
    Write {
        /// Where.
        remote: Remote,
        /// With an immediate it completes a receive request there, too.
        immediate: Option<[u8; 4]>,
    },
    /// Reads the responder's memory.
    Read(Remote),
    /// Replaces 8 bytes at the responder if they are what is expected; returns what they were.
    CompareSwap {
        /// Where.
        remote: Remote,
        /// What is expected there.
        compare: u64,
        /// What to put there then.
        swap: u64,
    },
    /// Adds to 8 bytes at the responder; returns what they were.
    FetchAdd {
        /// Where.
        remote: Remote,
        /// How much.
        add: u64,
    },
    /// Writes 8 bytes at the responder at one stroke, once everything before is done.
    AtomicWrite(Remote),
    /// Makes sure of what was written before.
    Flush(Flush),
    /// Closes a window of one's own, by its key.
    LocalInvalidate(u32),
    /// Binds a memory window.
    Bind(Bind),
}

/// What a Send carries beside its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attached {
    /// Nothing.
    #[default]
    Nothing,
    /// Four bytes, in the order of the wire.
    Immediate([u8; 4]),
    /// The key of a window of the responder's that it is to close.
    Invalidate(u32),
}

/// A place in the responder's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remote {
    /// By the addresses of its region.
    pub address: u64,
    /// The remote key of its region.
    pub key: u32,
}

/// Where a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Which way.
    pub route: Route,
    /// The queue pair there.
    pub qp: QpNumber,
    /// Its Q_Key; with the highest bit set, the sending queue pair's own is used instead.
    pub qkey: u32,
}

/// How to reach another NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The address that this side uses (IPv4 as `::ffff:a.b.c.d`).
    pub local: Ipv6Addr,
    /// The address of the other side.
    pub remote: Ipv6Addr,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// For what distinguishes flows (the UDP source port).
    pub flow_label: u32,
}

impl Route {
    /// What is not set yet.
    pub const NOWHERE: Self = Self {
        local: Ipv6Addr::UNSPECIFIED,
        remote: Ipv6Addr::UNSPECIFIED,
        traffic_class: 0,
        hop_limit: 0,
        flow_label: 0,
    };
}

/// What a receive queue holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiveRequest {
    /// The application's name for it; comes back in its completion.
    pub id: u64,
    /// Where the message goes. A datagram is preceded by 40 bytes of its network header.
    pub scatter: Vec<Sge>,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The application's name for it.
    pub id: u64,
    /// How it ended.
    pub status: Status,
    /// Which kind it was. Means nothing if it failed.
    pub kind: CompletionKind,
    /// Bytes received or read.
    pub length: u32,
    /// What the message carried beside its data.
    pub attached: Attached,
    /// Whose request.
    pub qp: QpNumber,
    /// Who sent it, of a datagram.
    pub source: Option<Source>,
    /// The sender asked for an event.
    pub solicited: bool,
}

/// Who sent a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The queue pair there.
    pub qp: QpNumber,
    /// The way back.
    pub route: Route,
}

/// Kinds of requests that complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompletionKind {
    /// A Send was sent.
    Send,
    /// A Write was written.
    Write,
    /// A Read was read.
    Read,
    /// A compare-and-swap was done.
    CompareSwap,
    /// A fetch-and-add was done.
    FetchAdd,
    /// An atomic write was done.
    AtomicWrite,
    /// What was written before was made sure of.
    Flush,
    /// A window was closed.
    LocalInvalidate,
    /// A window was bound.
    Bind,
    /// A message was received.
    Receive,
    /// A Write with an immediate was received.
    ReceiveWrite,
}

/// How a request ended (InfiniBand architecture, volume 1, section 11.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Well.
    Success,
    /// A message was longer than what was to take it.
    LocalLength,
    /// The queue pair cannot do that.
    LocalOperation,
    /// A local key does not allow it.
    LocalProtection,
    /// The queue pair had failed before.
    Flushed,
    /// The window may not be bound so.
    WindowBind,
    /// The responder's answer makes no sense.
    BadResponse,
    /// A receive request's memory could not be written.
    LocalAccess,
    /// The responder found the request malformed, or too long.
    RemoteInvalidRequest,
    /// The responder does not allow the access.
    RemoteAccess,
    /// The responder could not do it.
    RemoteOperation,
    /// Nothing was heard, retry after retry.
    RetriesExceeded,
    /// The responder was not ready, retry after retry.
    NotReadyRetriesExceeded,
}
