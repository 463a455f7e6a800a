//! Messages between the processes of a trial: one line of JSON each.

use std::io::{self, BufRead, Write};
use std::net::Ipv6Addr;

use selvedge_dataplane::trial::{Address, Done, Message, MessageKind, Terms};
use selvedge_nic::verbs::{Attached, Stats};
use selvedge_sim::workload::Verb;
use selvedge_transport::RecoveryConfig;
use selvedge_units::{Bytes, Duration};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Instructions for one end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) recovery: RecoveryConfig,
    pub(super) window: u32,
    pub(super) mtu: u16,
    pub(super) depth: u32,
    pub(super) receives: u32,
    pub(super) reads: u8,
    pub(super) timeout: u8,
    pub(super) retries: u8,
    pub(super) credits: bool,
    pub(super) longest: u32,
    pub(super) traffic_class: u8,
    /// Messages that the end requests, in order; empty for the responder.
    pub(super) messages: Vec<(Verb, u64)>,
}

/// Address of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    gid: Ipv6Addr,
    qp: u32,
    key: u32,
    memory: u64,
}

/// A message from an end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// Address of the end.
    Hello(Hello),
    /// The end is connected.
    Ready,
    /// A message is complete: its number, and its begin and end in picoseconds.
    Done(u64, u64, u64),
    /// All messages are complete; counters of the end.
    End(Counted),
    /// The end failed, for the given reason.
    Failed(String),
}

/// Counters of an end's RNIC; see [`Stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) sent: u64,
    pub(super) retransmissions: u64,
    pub(super) duplicates: u64,
    pub(super) goodput: u64,
    pub(super) reordered: u64,
    pub(super) timeouts: u64,
}

impl Setup {
    pub(super) fn terms(&self) -> Terms {
        Terms {
            recovery: self.recovery,
            window: self.window,
            mtu: self.mtu,
            depth: self.depth,
            receives: self.receives,
            reads: self.reads,
            timeout: self.timeout,
            retries: self.retries,
            credits: self.credits,
            longest: self.longest,
            traffic_class: self.traffic_class,
        }
    }
    pub(super) fn messages(&self) -> Vec<Message> {
        let message = |&(verb, size): &(Verb, u64)| Message { kind: kind(verb), size: Bytes::new(size) };
        self.messages.iter().map(message).collect()
    }
}

fn kind(verb: Verb) -> MessageKind {
    match verb {
        Verb::Write => MessageKind::Write { immediate: false },
        Verb::WriteImmediate => MessageKind::Write { immediate: true },
        Verb::Read => MessageKind::Read,
        Verb::Send => MessageKind::Send(Attached::Nothing),
        Verb::SendImmediate => MessageKind::Send(Attached::Immediate([0; 4])),
        Verb::FetchAdd => MessageKind::FetchAdd,
        Verb::CompareSwap => MessageKind::CompareSwap,
    }
}

impl From<Address> for Hello {
    fn from(Address { gid, qp, key, memory }: Address) -> Self {
        Self { gid, qp, key, memory }
    }
}
impl From<Hello> for Address {
    fn from(Hello { gid, qp, key, memory }: Hello) -> Self {
        Self { gid, qp, key, memory }
    }
}
impl From<Done> for Said {
    fn from(Done { number, begin, end }: Done) -> Self {
        Self::Done(number, begin.as_ps(), end.as_ps())
    }
}
impl From<Stats> for Counted {
    /// Converts without the counter of contradictions, which no row of a run has.
    fn from(stats: Stats) -> Self {
        let Stats { sent, retransmissions, duplicates, goodput, reordered, timeouts, contradictions: _ } = stats;
        Self { sent, retransmissions, duplicates, goodput, reordered, timeouts }
    }
}

/// Returns the duration of a number of picoseconds in a message.
pub(super) const fn time(ps: u64) -> Duration {
    Duration::from_ps(ps)
}

/// Sends a message.
pub(super) fn say(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, what)?;
    to.write_all(b"\n")?;
    to.flush()
}

/// Receives a message; returns an error at the end of the input.
pub(super) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other process has gone"));
    }
    Ok(serde_json::from_str(&line)?)
}
