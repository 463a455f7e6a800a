//! File of a recording: ports as lines of text, then events of 40 bytes.
//!
//! ```text
//! selvedge events 1 <snaplen>
//! <node> <peer> <peer's port> <rate in bit/s> <kind> <kind>    one line for each port; kinds of node and peer: h, a
//!                                                              host, or the tier of a switch
//! (empty line)
//! time 8 | packet 8 | port 4 | kind 1 | class 1 | frame 2 | a 8 | b 8      little-endian; `Entered` is followed by the
//!                                                                        frame's first bytes
//! ```
//!
//! A file whose last event is cut off, because its writer was killed, ends before that event.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use selvedge_telemetry::{DropReason, FabricEvent, FabricStep, MadePacket, PortInfo, PortKind, RecordingStop};
use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, Rate};

use crate::files::TraceError;
use crate::names::names_of;

/// First words of the file.
const HEAD: &str = "selvedge events 1 ";
/// Bytes of an event.
const EVENT: usize = 40;
/// Number of the kind of each event.
mod kind {
    pub(super) const ENTERED: u8 = 0;
    pub(super) const COPY: u8 = 1;
    pub(super) const PAUSE: u8 = 2;
    pub(super) const NETRT: u8 = 3;
    pub(super) const SENT: u8 = 4;
    pub(super) const ARRIVED: u8 = 5;
    pub(super) const QUEUED: u8 = 6;
    pub(super) const MARKED: u8 = 7;
    pub(super) const TRIMMED: u8 = 8;
    pub(super) const DROPPED: u8 = 9;
    pub(super) const DELIVERED: u8 = 10;
    pub(super) const PAUSED: u8 = 11;
    pub(super) const LINK: u8 = 12;
    pub(super) const FILLED: u8 = 13;
    pub(super) const STOPPED: u8 = 14;
}

/// Writer of a recording.
pub struct RecordWriter {
    path: PathBuf,
    out: BufWriter<File>,
    snaplen: usize,
    /// Bytes that the file may have.
    limit: u64,
    written: u64,
    last: Instant,
}

impl RecordWriter {
    /// Creates the file of a recording that keeps `snaplen` bytes of each frame, and has at most about `limit` bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn create(path: &Path, ports: &[PortInfo], snaplen: usize, limit: Bytes) -> Result<Self, TraceError> {
        let word = |kind| match kind {
            PortKind::Host => "h".to_owned(),
            PortKind::Switch { tier } => tier.to_string(),
        };
        let mut head = format!("{HEAD}{snaplen}\n");
        for PortInfo { node, peer, peer_id, kind, peer_kind, rate, .. } in ports {
            let (kind, peer_kind) = (word(*kind), word(*peer_kind));
            head += &format!("{node} {peer} {} {} {kind} {peer_kind}\n", peer_id.0, rate.as_bps());
        }
        head.push('\n');
        let create = || {
            let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
            out.write_all(head.as_bytes())?;
            Ok(out)
        };
        let out = create().map_err(|error| TraceError::new(path, error))?;
        let (limit, written) = (limit.get(), head.len() as u64);
        Ok(Self { path: path.into(), out, snaplen, limit, written, last: Instant::ZERO })
    }

    /// Adds events, with the first bytes of the frames that entered. Returns whether the file takes more: it ends with
    /// [`FabricStep::Stopped`] when its limit is reached.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn add(&mut self, events: &[FabricEvent], captured: &[u8]) -> Result<bool, TraceError> {
        self.try_add(events, captured).map_err(|error| TraceError::new(&self.path, error))
    }

    fn try_add(&mut self, events: &[FabricEvent], mut captured: &[u8]) -> io::Result<bool> {
        for event in events {
            self.out.write_all(&encode(event))?;
            self.written += EVENT as u64;
            self.last = event.at;
            if let FabricStep::Entered { length, .. } = event.what {
                let (bytes, rest) = captured.split_at(usize::from(length).min(self.snaplen).min(captured.len()));
                self.out.write_all(bytes)?;
                self.written += bytes.len() as u64;
                captured = rest;
            }
        }
        if self.written < self.limit {
            return Ok(true);
        }
        let what = FabricStep::Stopped { why: RecordingStop::Limit };
        self.out.write_all(&encode(&FabricEvent { at: self.last, packet: 0, port: PortId(0), what }))?;
        Ok(false)
    }

    /// Flushes everything to the operating system.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.out.flush().map_err(|error| TraceError::new(&self.path, error))
    }
}

/// Reader of a recording.
pub struct RecordReader {
    path: PathBuf,
    input: BufReader<File>,
    snaplen: usize,
    ports: Vec<PortInfo>,
    /// Number of events so far, and time of the last one.
    count: u64,
    last: Instant,
}

/// Event of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The event.
    pub event: FabricEvent,
    /// First bytes of a frame that entered; otherwise empty.
    pub captured: Vec<u8>,
}

/// Reason why a recording cannot be read, or nothing be made of it.
#[derive(Debug)]
pub enum RecordError {
    /// The file cannot be read: path and cause.
    Read(PathBuf, io::Error),
    /// The file is no recording, or damaged: path, place and what was found.
    Malformed(PathBuf, String),
    /// A file cannot be written.
    Write(TraceError),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "{}: cannot read: {error}", path.display()),
            Self::Malformed(path, what) => {
                write!(f, "{}:{what}; a recording of `selvedge lab --trace-dir` was expected", path.display())
            }
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

impl RecordReader {
    /// Opens a recording.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is no recording.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let unreadable = |error| RecordError::Read(path.into(), error);
        let file = File::open(path).map_err(unreadable)?;
        let mut input = BufReader::with_capacity(1 << 18, file);
        let mut number = 0;
        let mut line = || -> Result<String, RecordError> {
            number += 1;
            let mut line = Vec::new();
            // A file of something else may have no line at all.
            input.by_ref().take(4_096).read_until(b'\n', &mut line).map_err(unreadable)?;
            let text = String::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n').map(str::to_owned));
            text.ok_or_else(|| RecordError::Malformed(path.into(), format!("{number}: not a line of text")))
        };
        let head = line()?;
        let snaplen = head.strip_prefix(HEAD).and_then(|snaplen| snaplen.parse().ok());
        let snaplen = snaplen
            .ok_or_else(|| RecordError::Malformed(path.into(), format!("1: it does not begin with \"{HEAD}\"")))?;
        let mut ports = Vec::new();
        loop {
            let text = line()?;
            if text.is_empty() {
                break;
            }
            let id = PortId(ports.len() as u32);
            let port = port_of(id, &text).ok_or_else(|| {
                RecordError::Malformed(path.into(), format!("{}: \"{text}\" describes no port", ports.len() + 2))
            })?;
            ports.push(port);
        }
        if let Some(wrong) = ports.iter().position(|port| port.peer_id.index() >= ports.len()) {
            return Err(RecordError::Malformed(path.into(), format!("{}: the peer is no port", wrong + 2)));
        }
        Ok(Self { path: path.into(), input, snaplen, ports, count: 0, last: Instant::ZERO })
    }

    /// Returns the ports, by number.
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Returns the names of the ports, by number: `leaf0:spine1`, and of the second of parallel links `leaf0:spine1.2`.
    pub fn port_names(&self) -> Vec<String> {
        names_of(&self.ports)
    }

    /// Returns the bytes that are kept of each frame, at most.
    pub fn snaplen(&self) -> usize {
        self.snaplen
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is damaged.
    pub fn next_event(&mut self) -> Result<Option<Recorded>, RecordError> {
        let unreadable = |error| RecordError::Read(self.path.clone(), error);
        let mut bytes = [0; EVENT];
        if !is_filled(&mut self.input, &mut bytes).map_err(unreadable)? {
            return Ok(None);
        }
        self.count += 1;
        let event = self
            .checked(decode(&bytes))
            .map_err(|what| RecordError::Malformed(self.path.clone(), format!(" event {}: {what}", self.count)))?;
        self.last = event.at;
        let mut captured = Vec::new();
        if let FabricStep::Entered { length, .. } = event.what {
            captured.resize(usize::from(length).min(self.snaplen), 0);
            if !is_filled(&mut self.input, &mut captured).map_err(unreadable)? {
                return Ok(None);
            }
        }
        Ok(Some(Recorded { event, captured }))
    }
}

impl RecordReader {
    /// Returns an event that is possible, or what is wrong with it.
    fn checked(&self, event: Option<FabricEvent>) -> Result<FabricEvent, &'static str> {
        let event = event.ok_or("an event of no known kind")?;
        let is_host = |port: usize| self.ports.get(port).is_some_and(|port| port.kind == PortKind::Host);
        let is_possible = match event.what {
            FabricStep::Entered { to, .. } => is_host(event.port.index()) && is_host(to.index()),
            _ => event.port.index() < self.ports.len(),
        };
        if !is_possible {
            return Err("an event at a port that does not exist");
        }
        if event.at < self.last { Err("an event that is earlier than the one before") } else { Ok(event) }
    }
}

/// Reads as many bytes as `place` has; returns whether there were so many.
fn is_filled(input: &mut impl Read, place: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(place) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn port_of(id: PortId, text: &str) -> Option<PortInfo> {
    let fields: Vec<&str> = text.split(' ').collect();
    let &[node, peer, peer_id, rate, kind, peer_kind] = fields.as_slice() else { return None };
    let kind_of = |word: &str| match word {
        "h" => Some(PortKind::Host),
        tier => tier.parse().ok().map(|tier| PortKind::Switch { tier }),
    };
    Some(PortInfo {
        id,
        node: node.into(),
        peer: peer.into(),
        peer_id: PortId(peer_id.parse().ok()?),
        kind: kind_of(kind)?,
        peer_kind: kind_of(peer_kind)?,
        rate: Rate::from_bps(rate.parse().ok()?),
    })
}

fn encode(event: &FabricEvent) -> [u8; EVENT] {
    let (kind, class, frame, a, b) = match event.what {
        FabricStep::Entered { to, class, frame, length } => (kind::ENTERED, class, frame, to.0.into(), length.into()),
        FabricStep::Made { class, frame, made } => match made {
            MadePacket::Copy { of } => (kind::COPY, class, frame, of, 0),
            MadePacket::Pause { classes, quanta } => (kind::PAUSE, class, frame, classes.into(), quanta.into()),
            MadePacket::NetRt { is_request, psn } => (kind::NETRT, class, frame, is_request.into(), psn.into()),
        },
        FabricStep::Sent { serialisation, waiting } => (kind::SENT, 0, 0, serialisation.as_ps(), waiting.get()),
        FabricStep::Arrived => (kind::ARRIVED, 0, 0, 0, 0),
        FabricStep::Queued { ingress, ahead } => (kind::QUEUED, 0, 0, ingress.0.into(), ahead.get()),
        FabricStep::Marked => (kind::MARKED, 0, 0, 0, 0),
        FabricStep::Trimmed { frame, waiting } => (kind::TRIMMED, 0, frame, 0, waiting.get()),
        FabricStep::Dropped { reason } => (kind::DROPPED, 0, 0, reason as u64, 0),
        FabricStep::Delivered { late } => (kind::DELIVERED, 0, 0, late.as_ps(), 0),
        FabricStep::Paused { classes } => (kind::PAUSED, classes, 0, 0, 0),
        FabricStep::Link { up } => (kind::LINK, 0, 0, up.into(), 0),
        FabricStep::Filled { output } => (kind::FILLED, 0, 0, output.0.into(), 0),
        FabricStep::Stopped { why } => (kind::STOPPED, 0, 0, (why == RecordingStop::Slow).into(), 0),
    };
    let mut bytes = [0; EVENT];
    bytes[..8].copy_from_slice(&event.at.as_ps().to_le_bytes());
    bytes[8..16].copy_from_slice(&event.packet.to_le_bytes());
    bytes[16..20].copy_from_slice(&event.port.0.to_le_bytes());
    (bytes[20], bytes[21]) = (kind, class);
    bytes[22..24].copy_from_slice(&frame.to_le_bytes());
    bytes[24..32].copy_from_slice(&a.to_le_bytes());
    bytes[32..].copy_from_slice(&b.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; EVENT]) -> Option<FabricEvent> {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let (middle, a, b) = (word(16), word(24), word(32));
    let (port, kind, class, frame) = (middle as u32, bytes[20], bytes[21], (middle >> 48) as u16);
    let made = |made| FabricStep::Made { class, frame, made };
    let what = match kind {
        kind::ENTERED => FabricStep::Entered { to: HostId(a as u32), class, frame, length: b as u16 },
        kind::COPY => made(MadePacket::Copy { of: a }),
        kind::PAUSE => made(MadePacket::Pause { classes: a as u8, quanta: b as u16 }),
        kind::NETRT => made(MadePacket::NetRt { is_request: a == 1, psn: b as u32 }),
        kind::SENT => FabricStep::Sent { serialisation: Duration::from_ps(a), waiting: Bytes::new(b) },
        kind::ARRIVED => FabricStep::Arrived,
        kind::QUEUED => FabricStep::Queued { ingress: PortId(a as u32), ahead: Bytes::new(b) },
        kind::MARKED => FabricStep::Marked,
        kind::TRIMMED => FabricStep::Trimmed { frame, waiting: Bytes::new(b) },
        kind::DROPPED => {
            FabricStep::Dropped { reason: DropReason::ALL.into_iter().find(|reason| *reason as u64 == a)? }
        }
        kind::DELIVERED => FabricStep::Delivered { late: Duration::from_ps(a) },
        kind::PAUSED => FabricStep::Paused { classes: class },
        kind::LINK => FabricStep::Link { up: a == 1 },
        kind::FILLED => FabricStep::Filled { output: PortId(a as u32) },
        kind::STOPPED => FabricStep::Stopped { why: if a == 1 { RecordingStop::Slow } else { RecordingStop::Limit } },
        _ => return None,
    };
    Some(FabricEvent { at: Instant::from_ps(word(0)), packet: word(8), port: PortId(port), what })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use selvedge_testkit::Scratch;

    use super::*;

    fn ports() -> Vec<PortInfo> {
        let kinds = [PortKind::Host, PortKind::Switch { tier: 1 }];
        let port = |(id, [node, peer]): (u32, [&str; 2])| PortInfo {
            id: PortId(id),
            node: node.into(),
            peer: peer.into(),
            peer_id: PortId(1 - id),
            kind: kinds[id as usize],
            peer_kind: kinds[1 - id as usize],
            rate: Rate::from_gbps(10),
        };
        (0..).zip([["h0", "s0"], ["s0", "h0"]]).map(port).collect()
    }

    /// Returns the entry of a frame of 100 bytes, and what follows it.
    fn some(packet: u64) -> [FabricEvent; 2] {
        let entered = FabricStep::Entered { to: HostId(0), class: 0, frame: 104, length: 100 };
        let event = |at, what| FabricEvent { at: Instant::from_ps(at), packet, port: PortId(0), what };
        [event(10 * packet, entered), event(10 * packet + 1, FabricStep::Arrived)]
    }

    fn read(path: &Path) -> Vec<Recorded> {
        let mut reader = RecordReader::open(path).expect("a recording");
        std::iter::from_fn(|| reader.next_event().expect("no damage")).collect()
    }

    #[test]
    fn a_recording_is_read_as_far_as_it_was_written() {
        let folder = Scratch::new("record");
        let path = folder.path().join("lab.events");
        let mut writer = RecordWriter::create(&path, &ports(), 64, Bytes::from_kb(1_000)).expect("a file");
        for packet in 1..=3 {
            assert!(writer.add(&some(packet), &[packet as u8; 64]).expect("it can be written"));
        }
        writer.finish().expect("it can be written");
        let whole = read(&path);
        let events: Vec<FabricEvent> = whole.iter().map(|recorded| recorded.event).collect();
        assert_eq!(events, [some(1), some(2), some(3)].concat());
        assert_eq!((whole[2].captured.as_slice(), whole[3].captured.len()), (&[2; 64][..], 0));
        let reader = RecordReader::open(&path).expect("a recording");
        assert_eq!(
            (reader.ports(), reader.port_names(), reader.snaplen()),
            (&ports()[..], vec!["h0:s0".into(), "s0:h0".into()], 64)
        );
        // Of a writer that was killed.
        let bytes = fs::read(&path).expect("a file");
        for cut in 1..EVENT {
            fs::write(&path, &bytes[..bytes.len() - cut]).expect("it can be written");
            assert_eq!(read(&path), whole[..5]);
        }
        for (at, byte, message) in [
            (16, 2, "an event at a port that does not exist"),
            (20, 99, "an event of no known kind"),
            (0, 0, "an event that is earlier than the one before"),
        ] {
            let mut damaged = bytes.clone();
            damaged[bytes.len() - EVENT + at] = byte;
            fs::write(&path, &damaged).expect("it can be written");
            let mut reader = RecordReader::open(&path).expect("a recording");
            let error = std::iter::from_fn(|| reader.next_event().transpose()).find_map(Result::err).expect("damage");
            assert!(error.to_string().contains(&format!("lab.events: event 6: {message}")), "{error}");
        }
        for (text, message) in [
            ("", "lab.events:1: not a line of text"),
            ("something\n", "lab.events:1: it does not begin with"),
            ("selvedge events 1 64\nh0 s0 1\n\n", "lab.events:2: \"h0 s0 1\" describes no port"),
            ("selvedge events 1 64\nh0 s0 7 8 h 0\n\n", "lab.events:2: the peer is no port"),
        ] {
            fs::write(&path, text).expect("it can be written");
            let error = RecordReader::open(&path).err().expect("no recording").to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_recording_that_has_reached_its_limit_says_so_at_its_end() {
        let folder = Scratch::new("record-limit");
        let path = folder.path().join("lab.events");
        let mut writer = RecordWriter::create(&path, &ports(), 64, Bytes::new(400)).expect("a file");
        let taken = (1..).take_while(|packet| writer.add(&some(*packet), &[0; 64]).expect("it can be written")).count();
        writer.finish().expect("it can be written");
        let all = read(&path);
        assert_eq!(all.len(), 2 * (taken + 1) + 1);
        assert_eq!(all.last().expect("an event").event.what, FabricStep::Stopped { why: RecordingStop::Limit });
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let made = |made| FabricStep::Made { class: 3, frame: 64, made };
        let all = [
            FabricStep::Entered { to: HostId(7), class: 2, frame: 1_518, length: 1_514 },
            made(MadePacket::Copy { of: 1 << 40 }),
            made(MadePacket::Pause { classes: 0x81, quanta: 0xffff }),
            made(MadePacket::NetRt { is_request: true, psn: 0xff_ffff }),
            made(MadePacket::NetRt { is_request: false, psn: 0 }),
            FabricStep::Sent { serialisation: Duration::from_ps(u64::MAX), waiting: Bytes::new(1) },
            FabricStep::Arrived,
            FabricStep::Queued { ingress: PortId(9), ahead: Bytes::new(1 << 33) },
            FabricStep::Marked,
            FabricStep::Trimmed { frame: 68, waiting: Bytes::new(9) },
            FabricStep::Delivered { late: Duration::from_us(3) },
            FabricStep::Paused { classes: 0xff },
            FabricStep::Link { up: true },
            FabricStep::Link { up: false },
            FabricStep::Filled { output: PortId(3) },
            FabricStep::Stopped { why: RecordingStop::Slow },
            FabricStep::Stopped { why: RecordingStop::Limit },
        ];
        let drops = DropReason::ALL.into_iter().map(|reason| FabricStep::Dropped { reason });
        for (packet, what) in (1 << 35..).zip(all.into_iter().chain(drops)) {
            let event = FabricEvent { at: Instant::from_ps(u64::MAX - packet), packet, port: PortId(77), what };
            assert_eq!(decode(&encode(&event)), Some(event));
        }
        let mut unknown = [0; EVENT];
        unknown[20] = 200;
        assert_eq!(decode(&unknown), None);
    }
}
