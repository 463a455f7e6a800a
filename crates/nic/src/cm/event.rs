//! What an application says about connections, and hears.

use alloc::vec::Vec;
use core::fmt;

use selvedge_units::{Psn, QpNumber};
use selvedge_wire::cm::{Reply, Request, SidrReply, SidrRequest};

use crate::verbs::Route;

/// A connection that is being made, or stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ConnectionId(pub u32);

/// One side's part in a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// Its queue pair.
    pub qp: QpNumber,
    /// The first PSN that it expects, and the other side sends.
    pub psn: Psn,
    /// Its Q_Key.
    pub qkey: u32,
    /// Reads and Atomics that it answers at a time.
    pub responder_resources: u8,
    /// Reads and Atomics that it asks for at a time.
    pub initiator_depth: u8,
    /// How often it tries again after silence, 0 to 7.
    pub retries: u8,
    /// How often it tries again when a receiver is not ready, 0 to 7.
    pub not_ready_retries: u8,
    /// How long it waits for an acknowledgement: 4.096 us times 2 to this power.
    pub ack_timeout: u8,
    /// It has a shared receive queue.
    pub srq: bool,
    /// What its application says: 56 bytes when it asks, 196 when it grants; more are cut off.
    pub private: Vec<u8>,
}

/// What has happened.
#[derive(Clone, PartialEq, Debug)]
pub enum CmEvent {
    /// Somebody asks for a connection: accept or reject.
    Requested {
        /// Our name for it.
        id: ConnectionId,
        /// Where from; local is this side.
        route: Route,
        /// All that was said.
        request: Request,
    },
    /// A connection was granted: get one's queue pair ready, then say so, or reject.
    Replied {
        /// Which.
        id: ConnectionId,
        /// All that was said.
        reply: Reply,
    },
    /// A connection that we granted stands.
    Established(ConnectionId),
    /// A connection was refused, and is forgotten.
    Rejected {
        /// Which.
        id: ConnectionId,
        /// Why: see [`Reject`](selvedge_wire::cm::Reject); of a question for a queue pair, its status.
        reason: u16,
        /// What the application said.
        private: Vec<u8>,
    },
    /// Nobody answers: the connection is forgotten.
    Unreachable(ConnectionId),
    /// A connection has ended.
    Disconnected(ConnectionId),
    /// Somebody asks which queue pair serves something: answer.
    Asked {
        /// Our name for the question.
        id: ConnectionId,
        /// Where from; local is this side.
        route: Route,
        /// All that was said.
        request: SidrRequest,
    },
    /// The queue pair that was asked for.
    Resolved {
        /// Which question.
        id: ConnectionId,
        /// All that was said.
        reply: SidrReply,
    },
}

/// Why a command was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmError {
    /// Somebody listens there already (`EADDRINUSE`).
    InUse,
    /// The connection is not in a state for that, or there is none (`EINVAL`).
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

/// Private data in a field of so many bytes.
pub(super) fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let length = bytes.len().min(N);
    field[..length].copy_from_slice(&bytes[..length]);
    field
}
