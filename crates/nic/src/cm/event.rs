//! Connection parameters and events for the application.

use alloc::vec::Vec;
use core::fmt;

use selvedge_units::{Psn, QpNumber};
use selvedge_wire::cm::{Reply, Request, SidrReply, SidrRequest};

use crate::verbs::Route;

/// Identifier of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ConnectionId(pub u32);

/// Parameters of one side of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// Queue pair of this side.
    pub qp: QpNumber,
    /// First PSN that this side expects and the other side sends.
    pub psn: Psn,
    /// Q_Key of the queue pair.
    pub qkey: u32,
    /// Maximum outstanding Reads and Atomics as responder.
    pub responder_resources: u8,
    /// Maximum outstanding Reads and Atomics as requester.
    pub initiator_depth: u8,
    /// Number of retries after a timeout, 0 to 7.
    pub retries: u8,
    /// Number of retries after a receiver was not ready, 0 to 7.
    pub not_ready_retries: u8,
    /// Timeout for an acknowledgement: 4.096 us times 2 to this power.
    pub ack_timeout: u8,
    /// Whether the queue pair has a shared receive queue.
    pub srq: bool,
    /// Private data of the application: 56 bytes in a request, 196 in a reply; longer data is cut off.
    pub private: Vec<u8>,
}

/// An event of a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum CmEvent {
    /// A peer's request for a connection, to be accepted or rejected.
    Requested {
        /// Identifier of the new connection.
        id: ConnectionId,
        /// Route to the peer; local is this side.
        route: Route,
        /// Content of the request.
        request: Request,
    },
    /// A peer's acceptance of a connection: prepare the queue pair of this side and call `ready`, or reject the reply.
    Replied {
        /// Identifier of the connection.
        id: ConnectionId,
        /// Content of the reply.
        reply: Reply,
    },
    /// Establishment of a connection that this side accepted.
    Established(ConnectionId),
    /// Rejection of a connection, which is removed.
    Rejected {
        /// Identifier of the connection.
        id: ConnectionId,
        /// Reason, see [`Reject`](selvedge_wire::cm::Reject); for a question about a queue pair, the status of the
        /// reply.
        reason: u16,
        /// Private data of the peer's application.
        private: Vec<u8>,
    },
    /// Failure to reach the peer, which never answered: the connection is removed.
    Unreachable(ConnectionId),
    /// End of a connection.
    Disconnected(ConnectionId),
    /// A peer's question which queue pair serves a service, to be answered.
    Asked {
        /// Identifier of the question.
        id: ConnectionId,
        /// Route to the peer; local is this side.
        route: Route,
        /// Content of the question.
        request: SidrRequest,
    },
    /// Answer to a question, with a queue pair.
    Resolved {
        /// Identifier of the question.
        id: ConnectionId,
        /// Content of the answer.
        reply: SidrReply,
    },
}

/// Reason for which a command was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmError {
    /// Service that is already in use (`EADDRINUSE`).
    InUse,
    /// Connection that does not exist, or whose state does not permit the command (`EINVAL`).
    NotThus,
}

impl fmt::Display for CmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "somebody listens there already",
            Self::NotThus => "the connection is not in a state for that, or there is none",
        })
    }
}
impl core::error::Error for CmError {}

/// Returns private data in a field of `N` bytes: padded with zeros, or cut off.
pub(super) fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let length = bytes.len().min(N);
    field[..length].copy_from_slice(&bytes[..length]);
    field
}
