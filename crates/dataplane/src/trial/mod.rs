//! Trials: messages between two processes, each with an RNIC of its own, and their completion times.
//!
//! One process posts requests, the other responds. Whoever started them exchanges their [`Address`]es; then the
//! requester keeps its queue full until all messages are done. The results can be compared with a simulation of such a
//! connection.

mod peer;

use core::net::Ipv6Addr;

use selvedge_nic::verbs::Attached;
use selvedge_transport::RecoveryConfig;
use selvedge_units::{Bytes, Duration};

pub use peer::Peer;

/// Parameters of both ends of the connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// The loss recovery, resolved.
    pub recovery: RecoveryConfig,
    /// Packets in flight with go-back-N, 1 to 2^22.
    pub window: u32,
    /// Largest payload of a packet in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Requests outstanding at a time, at least 1.
    pub depth: u32,
    /// Receive requests posted at a time, at least 1.
    pub receives: u32,
    /// Reads and Atomics outstanding at a time, 1 to 128.
    pub reads: u8,
    /// Code of the acknowledgement timeout, 0 to 31.
    pub timeout: u8,
    /// Retries after a timeout, 0 to 7.
    pub retries: u8,
    /// Whether Sends wait for advertised receive requests (end-to-end credits).
    pub credits: bool,
    /// Length of the longest message in bytes.
    pub longest: u32,
    /// DSCP and ECN field of all packets: the byte behind the version in an IPv4 header.
    pub traffic_class: u8,
}

/// The address of a process: its device, queue pair and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// GID of the process's device.
    pub gid: Ipv6Addr,
    /// Number of the process's queue pair.
    pub qp: u32,
    /// Remote key of the process's memory.
    pub key: u32,
    /// Address at which the process's memory begins.
    pub memory: u64,
}

/// Operations of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// An RDMA Write, with an immediate or without.
    Write {
        /// Whether the Write has an immediate.
        immediate: bool,
    },
    /// An RDMA Read.
    Read,
    /// A Send.
    Send(Attached),
    /// A Fetch-and-Add of 1.
    FetchAdd,
    /// A Compare-and-Swap that raises the word by 1 if it still has its last known value.
    CompareSwap,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The operation.
    pub kind: MessageKind,
    /// The message's size; 8 bytes for Atomics.
    pub size: Bytes,
}

/// A completed message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Number of the message, counted from 0.
    pub number: u64,
    /// Time from the first post to the post of this message.
    pub begin: Duration,
    /// Time from the first post to the completion of this message.
    pub end: Duration,
}
