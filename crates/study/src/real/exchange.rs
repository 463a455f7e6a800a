//! What the processes of a trial tell each other, a line of JSON each.

use std::io::{self, BufRead, Write};
use std::net::Ipv6Addr;

use selvedge_dataplane::trial::{Address, Done, Kind, Message, Terms};
use selvedge_nic::verbs::{Attached, Stats};
use selvedge_sim::workload::Verb;
use selvedge_transport::RecoveryConfig;
use selvedge_units::{Bytes, Duration};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What an end is to do.
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
    /// What it asks for, in order; nothing of the one that answers.
    pub(super) messages: Vec<(Verb, u64)>,
}

/// How an end is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    gid: Ipv6Addr,
    qp: u32,
    key: u32,
    memory: u64,
}

/// What an end says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// How it is reached.
    Hello(Hello),
    /// It is connected.
    Ready,
    /// A message is done: which, and when it began and ended, in picoseconds.
    Done(u64, u64, u64),
    /// All is done.
    End(Counted),
    /// It cannot go on.
    Failed(String),
}

/// What its RNIC has done; see [`Stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) sent: u64,
    pub(super) retransmissions: u64,
    pub(super) duplicates: u64,
    pub(super) goodput: u64,
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
        }
    }
    pub(super) fn messages(&self) -> Vec<Message> {
        let message = |&(verb, size): &(Verb, u64)| Message { kind: kind(verb), size: Bytes::new(size) };
        self.messages.iter().map(message).collect()
    }
}

fn kind(verb: Verb) -> Kind {
    match verb {
        Verb::Write => Kind::Write { immediate: false },
        Verb::WriteImmediate => Kind::Write { immediate: true },
        Verb::Read => Kind::Read,
        Verb::Send => Kind::Send(Attached::Nothing),
        Verb::SendImmediate => Kind::Send(Attached::Immediate([0; 4])),
        Verb::FetchAdd => Kind::FetchAdd,
        Verb::CompareSwap => Kind::CompareSwap,
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
    /// Real runs tell nothing of pools, hence nothing of what went through reorder buffers.
    fn from(stats: Stats) -> Self {
        let Stats { sent, retransmissions, duplicates, goodput, timeouts, reordered: _, contradictions: _ } = stats;
        Self { sent, retransmissions, duplicates, goodput, timeouts }
    }
}

/// A time that was told.
pub(super) const fn time(ps: u64) -> Duration {
    Duration::from_ps(ps)
}

/// Says something.
pub(super) fn say(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, what)?;
    to.write_all(b"\n")?;
    to.flush()
}

/// Hears something; an error at the end.
pub(super) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other process has gone"));
    }
    Ok(serde_json::from_str(&line)?)
}
