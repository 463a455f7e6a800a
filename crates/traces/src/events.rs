//! Events at IRN's senders and receivers, in the format that the authors' hardware modules read.
//!
//! Data path:
//! 1. A recorded run reports every packet that chosen hosts send and receive, and the events of their timers.
//! 2. Each event is one line of its host: `receiveData`, `txFree`, `receiveAck` or `timeout`, by queue pair.
//! 3. Lines go to the host's two files, and `selvedge replay` and the modules in `rtl/` read them.
//!
//! Design notes.
//! 1. *Streams.* A stream of data from one host to another has a sender's context at one end and a receiver's at the
//!    other; the files call it a queue pair. The requests of an application's queue pair and its responses to Reads are
//!    two streams. Each file numbers its streams from 0, in the order in which they appear; a third file describes
//!    them.
//! 2. *txFree* is written for each packet that leaves. A call that sends nothing is written if the engine makes it: in
//!    its `hls` reading, when it searches for a hole before it sends that packet.
//! 3. *The count* in the first line is known at the end; until then space is reserved for it.
//! 4. *Files* are open only while something is written: fabrics have more hosts than a process may have files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use selvedge_sim::record::{Chosen, Event, Focus, Recorder, What};
use selvedge_sim::topology::{Graph, Node};
use selvedge_telemetry::{DropReason, Trace};
use selvedge_units::{HostId, QpNumber};
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::{AckKind, Packet, Repr};

use crate::fate::with_fates;
use crate::files::{TraceError, TraceStatus};
use crate::headers::opcode_of;
use crate::names::PortNames;

/// The hosts whose events are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventHosts {
    hosts: BTreeMap<HostId, String>,
    ports: BTreeSet<selvedge_units::PortId>,
}

impl EventHosts {
    /// Parses the user's choice: `irn` for all hosts of `graph`, `irn=h3` for one.
    ///
    /// # Errors
    /// Returns an error for a text of another form, or for a host that does not exist; the message lists those that do.
    pub fn new<S: AsRef<str>>(texts: &[S], graph: &Graph) -> Result<Self, String> {
        let mut chosen = BTreeSet::new();
        for text in texts {
            let text = text.as_ref();
            match text.split_once('=') {
                None if text == "irn" => chosen.extend(0..graph.hosts.len()),
                Some(("irn", name)) => drop(chosen.insert(host_called(name, graph)?)),
                _ => return Err(format!("\"{text}\" names no events: say irn (of all hosts) or irn=h3 (of host h3)")),
            }
        }
        let hosts: BTreeMap<HostId, String> =
            chosen.into_iter().map(|index| (HostId(index as u32), graph.hosts[index].name.clone())).collect();
        let names = PortNames::new(graph);
        let ports = (0..names.count() as u32).map(selvedge_units::PortId);
        let ports = ports.filter(|&port| matches!(names.owner(port), Node::Host(host) if hosts.contains_key(&host)));
        Ok(Self { ports: ports.collect(), hosts })
    }

    /// Returns the number of chosen hosts as a share of all hosts of `graph`, from 0 to 1.
    pub fn share(&self, graph: &Graph) -> f64 {
        self.hosts.len() as f64 / graph.hosts.len().max(1) as f64
    }

    /// Returns the paths of the files of a run whose names begin with `stem`, in `folder`.
    pub fn paths(&self, folder: &Path, stem: &str) -> Vec<PathBuf> {
        let names = self.hosts.iter().map(|(&host, name)| file_name(host, name));
        names.flat_map(|name| FILES.map(|what| folder.join(format!("{stem}-{name}-{what}")))).collect()
    }

    /// Returns the focus that the simulator must record.
    pub fn focus(&self) -> Focus {
        Focus {
            ports: Chosen::These(self.ports.clone()),
            engines: Chosen::These(self.hosts.keys().copied().collect()),
            ..Focus::default()
        }
    }
}

fn host_called(name: &str, graph: &Graph) -> Result<usize, String> {
    graph.hosts.iter().position(|host| host.name == name).ok_or_else(|| {
        let [first, .., last] = &graph.hosts[..] else { return format!("there is no host \"{name}\"") };
        format!("there is no host \"{name}\": hosts are called \"{}\" to \"{}\"", first.name, last.name)
    })
}

/// Last parts of the names of a host's three files, after the run's and the host's names.
const FILES: [&str; 3] = ["receiver.txt", "sender.txt", "queue-pairs.csv"];

/// Returns a host's name as a part of a file's name, with its number where the name alone is not unique.
fn file_name(HostId(host): HostId, name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.chars().all(is_plain) && name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST_NAME / 4).collect();
    format!("{plain}-{host}")
}

/// Longest name in bytes. Names of files have at most 255, of which a series' name takes up to 100.
const LONGEST_NAME: usize = 100;

/// Recorder that writes events of chosen hosts into files; [`finish`](Self::finish) is called after the run.
///
/// A recorder cannot fail, so the first error (such as a full disk) is kept until `finish`.
pub struct EventFiles {
    hosts: BTreeMap<HostId, HostFiles>,
    /// The peer of each application's queue pair.
    peers: BTreeMap<QueuePair, QueuePair>,
    failed: Option<TraceError>,
    status: TraceStatus,
}

type QueuePair = (HostId, QpNumber);

/// A stream of data packets, identified by the queue pair that sends them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Stream {
    sender: QueuePair,
    /// Whether the packets are responses to Reads, which have PSNs of their own.
    answers: bool,
}

/// The files of one host.
struct HostFiles {
    receiver: Lines,
    sender: Lines,
    streams: Lines,
    /// Stream of the packet that left last.
    sent: Option<Stream>,
}

impl HostFiles {
    fn all(&mut self) -> [&mut Lines; 3] {
        [&mut self.receiver, &mut self.sender, &mut self.streams]
    }
}

/// A file of lines that begins with their count, and the numbers of the streams in it.
struct Lines {
    path: PathBuf,
    text: String,
    count: u64,
    numbers: BTreeMap<Stream, u32>,
}

/// Number of bytes written at once.
const CHUNK: usize = 1 << 14;
/// Number of digits of the count.
const DIGITS: usize = 20;

impl EventFiles {
    /// Creates the files `<stem>-<host>-{receiver,sender}.txt` and `<stem>-<host>-queue-pairs.csv` in `folder` for each
    /// of `hosts`.
    ///
    /// # Errors
    /// Returns an error when one cannot be written.
    pub fn create(folder: &Path, stem: &str, hosts: &EventHosts) -> Result<Self, TraceError> {
        let status = TraceStatus::default();
        let mut files = BTreeMap::new();
        let mut paths = hosts.paths(folder, stem).into_iter();
        for &host in hosts.hosts.keys() {
            let mut next = |first: &str| Lines::create(paths.next().unwrap_or_default(), first, &status);
            let count = format!("{:DIGITS$}\n", 0);
            let [receiver, sender] = [next(&count)?, next(&count)?];
            let streams = next("file,number,from,queue_pair,answers\n")?;
            files.insert(host, HostFiles { receiver, sender, streams, sent: None });
        }
        Ok(Self { hosts: files, peers: BTreeMap::new(), failed: None, status })
    }

    /// Returns the status of the files, for an observer of the run.
    pub fn status(&self) -> TraceStatus {
        self.status.clone()
    }

    /// Completes the files.
    ///
    /// # Errors
    /// Returns the first error, of this call or of the run.
    pub fn finish(self) -> Result<(), TraceError> {
        let Self { hosts, failed, status, .. } = self;
        failed.map_or(Ok(()), Err)?;
        for mut files in hosts.into_values() {
            for lines in files.all() {
                lines.flush(&status)?;
            }
            files.receiver.write_count()?;
            files.sender.write_count()?;
        }
        Ok(())
    }

    fn note(&mut self, event: &Event, fate: Option<DropReason>) -> Result<(), TraceError> {
        if let What::FlowStarted { qp, peer: Some(peer), .. } = event.what {
            let Node::Host(host) = event.node else { return Ok(()) };
            self.peers.insert((host, qp), peer);
            self.peers.insert(peer, (host, qp));
            return Ok(());
        }
        let Node::Host(here) = event.node else { return Ok(()) };
        match &event.what {
            What::Sent { packet, headers, .. } if packet.src == here => self.on_sent(here, packet, headers.as_ref()),
            What::Arrived { packet, headers, .. } if packet.dst == here && fate.is_none() => {
                self.on_arrived(here, packet, headers.as_ref())
            }
            What::Engine { sender, qp, trace } if *sender == here => {
                let stream = Stream { sender: (here, *qp), answers: false };
                match trace {
                    Trace::TimedOut { quick, .. } => {
                        self.sender_line(here, stream, |number, text| writeln!(text, "{number} 2 {}", u8::from(*quick)))
                    }
                    Trace::TimeoutExtended { .. } => {
                        self.sender_line(here, stream, |number, text| writeln!(text, "{number} 2 1"))
                    }
                    // The search is reported after the packet that it led to.
                    Trace::Searched => {
                        let stream = self.hosts.get(&here).and_then(|files| files.sent).unwrap_or(stream);
                        self.sender_line(here, stream, |number, text| writeln!(text, "{number} 0"))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn on_sent(&mut self, here: HostId, packet: &Packet, headers: Option<&Headers>) -> Result<(), TraceError> {
        let Repr::Data(_) = packet.repr else { return Ok(()) };
        let stream = match headers {
            None => Some(Stream { sender: (here, packet.qp), answers: false }),
            Some(headers) => self.stream_to((packet.dst, packet.qp), is_answer(headers)),
        };
        let (Some(stream), Some(files)) = (stream, self.hosts.get_mut(&here)) else { return Ok(()) };
        files.sent = Some(stream);
        self.sender_line(here, stream, |number, text| writeln!(text, "{number} 0"))
    }

    fn on_arrived(&mut self, here: HostId, packet: &Packet, headers: Option<&Headers>) -> Result<(), TraceError> {
        match packet.repr {
            Repr::Data(data) if !data.trimmed => {
                let stream = match headers {
                    None => Some(Stream { sender: (packet.src, packet.qp), answers: false }),
                    Some(headers) => self.stream_to((here, packet.qp), is_answer(headers)),
                };
                let opcode = headers.map_or_else(|| opcode_of(&data), |headers| headers.bth.opcode);
                let (Some(stream), Some(files)) = (stream, self.hosts.get_mut(&here)) else { return Ok(()) };
                let number = files.receiver.number(stream, "receiver", &mut files.streams);
                let psn = data.psn.get();
                files.receiver.add(&self.status, |text| writeln!(text, "{number} {} {psn}", opcode & 0x1f))
            }
            Repr::Ack(ack) => {
                let answers = headers.is_some_and(|headers| headers.bth.opcode == op::READ_ACKNOWLEDGE);
                let stream = Stream { sender: (here, packet.qp), answers };
                let nack = u8::from(ack.kind == AckKind::Nack);
                self.sender_line(here, stream, |number, text| {
                    writeln!(text, "{number} 1 {} {} {nack}", ack.expected.get(), ack.sack.get())
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the stream whose packets go to `receiver`, an application's queue pair.
    fn stream_to(&self, receiver: QueuePair, answers: bool) -> Option<Stream> {
        self.peers.get(&receiver).map(|&sender| Stream { sender, answers })
    }

    fn sender_line(
        &mut self,
        here: HostId,
        stream: Stream,
        line: impl FnOnce(u32, &mut String) -> std::fmt::Result,
    ) -> Result<(), TraceError> {
        let Some(files) = self.hosts.get_mut(&here) else { return Ok(()) };
        let number = files.sender.number(stream, "sender", &mut files.streams);
        files.sender.add(&self.status, |text| line(number, text))
    }
}

impl Recorder for EventFiles {
    fn on_events(&mut self, events: &[Event]) {
        for (event, fate) in with_fates(events) {
            if self.failed.is_some() {
                return;
            }
            self.failed = self.note(event, fate).err();
            if self.failed.is_some() {
                self.status.fail();
            }
        }
    }
}

/// Returns whether a packet belongs to the response to a Read or an Atomic.
fn is_answer(headers: &Headers) -> bool {
    matches!(headers.bth.opcode, op::READ_RESPONSE_FIRST..=op::READ_RESPONSE_ONLY | op::ATOMIC_ACKNOWLEDGE)
}

impl Lines {
    fn create(path: PathBuf, first: &str, status: &TraceStatus) -> Result<Self, TraceError> {
        File::create(&path).map_err(|error| TraceError::new(&path, error))?;
        let mut lines = Self { path, text: first.to_owned(), count: 0, numbers: BTreeMap::new() };
        lines.flush(status)?;
        Ok(lines)
    }

    /// Returns the number of a stream; a new stream is described in `streams`.
    fn number(&mut self, stream: Stream, file: &str, streams: &mut Self) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(stream).or_insert_with(|| {
            let Stream { sender: (host, qp), answers } = stream;
            streams.text += &format!("{file},{next},{},{},{}\n", host.0, qp.0, u8::from(answers));
            next
        })
    }

    fn add(
        &mut self,
        status: &TraceStatus,
        line: impl FnOnce(&mut String) -> std::fmt::Result,
    ) -> Result<(), TraceError> {
        // Writing to a String cannot fail.
        let _ = line(&mut self.text);
        self.count += 1;
        if self.text.len() >= CHUNK { self.flush(status) } else { Ok(()) }
    }

    fn flush(&mut self, status: &TraceStatus) -> Result<(), TraceError> {
        let written = OpenOptions::new().append(true).open(&self.path).and_then(|mut file| {
            file.write_all(self.text.as_bytes())?;
            file.flush()
        });
        status.count(self.text.len() as u64);
        self.text.clear();
        written.map_err(|error| TraceError::new(&self.path, error))
    }

    fn write_count(&self) -> Result<(), TraceError> {
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).open(&self.path)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(format!("{:DIGITS$}", self.count).as_bytes())
        };
        write().map_err(|error| TraceError::new(&self.path, error))
    }
}
