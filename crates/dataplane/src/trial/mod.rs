//! A trial: messages between two processes, each with an RNIC of its own, and what came of them.
//!
//! One process asks, the other answers. They find out about each other by whoever started them ([`Address`]); then the
//! asking one keeps its queue full until all messages are done. What a simulator says of such a connection can be held
//! against it.

mod peer;

use core::net::Ipv6Addr;

use selvedge_nic::verbs::Attached;
use selvedge_transport::RecoveryConfig;
use selvedge_units::{Bytes, Duration};

pub use peer::Peer;

/// How both ends of the connection are made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// Loss recovery, resolved.
    pub recovery: RecoveryConfig,
    /// Packets in flight with go-back-N, 1 to 2^22.
    pub window: u32,
    /// Bytes of payload that a packet carries at most: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Requests outstanding, at least 1.
    pub depth: u32,
    /// Receive requests that wait, at least 1.
    pub receives: u32,
    /// Reads and Atomics under way, 1 to 128.
    pub reads: u8,
    /// Code of the timeout, 0 to 31.
    pub timeout: u8,
    /// How often to try again after silence, 0 to 7.
    pub retries: u8,
    /// Whether Sends wait for advertised receive requests (end-to-end credits).
    pub credits: bool,
    /// The longest message in bytes.
    pub longest: u32,
}

/// How a process is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The address of its device.
    pub gid: Ipv6Addr,
    /// Its queue pair.
    pub qp: u32,
    /// The key of its memory, and where that begins.
    pub key: u32,
    /// See `key`.
    pub memory: u64,
}

/// What a message asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// To write, with an immediate or without.
    Write {
        /// Whether it has an immediate.
        immediate: bool,
    },
    /// To read.
    Read,
    /// To receive.
    Send(Attached),
    /// To add 1 to a word.
    FetchAdd,
    /// To raise a word by 1 if it is what it last was.
    CompareSwap,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// What it asks for.
    pub kind: Kind,
    /// Its size; 8 bytes of Atomics.
    pub size: Bytes,
}

/// A message that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Which, counted from 0.
    pub number: u64,
    /// When it was posted, and when it was complete: since the first.
    pub begin: Duration,
    /// See `begin`.
    pub end: Duration,
}
