//! RDMA as applications see it: queue pairs, work requests, completions, memory regions (InfiniBand architecture,
//! volume 1, chapters 9 to 11), over a configurable loss recovery.
//!
//! ```text
//!     post_send, post_recv, modify_qp, ...     commands
//!                    |
//!   handle_packet -> [ Rnic ] -> poll_transmit     until None
//!   handle_timeout ->   |     -> poll_timeout      the only thing to wait for
//!                       v
//!           poll_cq, poll_event
//! ```
//!
//! Like every engine, the NIC moves descriptors: which bytes of a packet go to which address ([`Memory`]), and from
//! which spans of memory a packet's payload is gathered. The owner of the NIC copies the bytes.
//!
//! Towards a standard RoCEv2 NIC, a reliable connection is go-back-N as in the InfiniBand specification. Two Selvedge
//! NICs recognise each other by bits that the standard reserves ([`Ours`](selvedge_wire::verbs::Ours)), and then use
//! the recovery that they were configured with, including all of IRN's section 5.

mod arrival;
mod attributes;
mod datagram;
mod error;
mod flush;
mod handshake;
mod memory;
mod message;
mod msn;
mod multicast;
mod notification;
mod paths;
mod qp;
mod queue;
mod receives;
mod region;
mod requester;
mod responder;
mod rnic;
mod selective;
mod shared;
mod srq;
mod transition;
mod transmit;
mod unreliable;
mod window;
mod work;

#[cfg(test)]
mod tests;

pub use attributes::{Capacities, QpChange, QpInit, QpOptions, QpState, Service};
pub use error::VerbsError;
pub use flush::Flush;
pub use handshake::Handshake;
pub use memory::{Fault, Memory, MemorySlice};
pub use multicast::{MULTICAST, is_group};
pub use queue::CqId;
pub use region::{Access, PdId, Region};
pub use rnic::{Limits, Rnic};
pub use shared::{Event, Stats};
pub use srq::{SrqAttributes, SrqId};
pub use transmit::Transmit;
pub use window::{Bind, WindowId, WindowKind};
pub use work::{
    Attached, Completion, CompletionKind, Data, Destination, Operation, Payload, ReceiveRequest, Remote, Route,
    SendRequest, Sge, Source, Span, Status,
};
