//! The trace format of Perfetto (`protos/perfetto/trace/track_event` in its repository): tracks in a tree, and on
//! them slices, instants, counters, and arrows between slices.
//!
//! Design notes.
//! 1. *Nanoseconds.* Perfetto counts nanoseconds; the simulator counts picoseconds. Both ends of a slice are rounded
//!    down, so that adjacent slices remain adjacent.
//! 2. *Names are interned*: written once, then numbered. This reduces a file to a third.
//! 3. Slices of one track must nest. Their ends may be written ahead: Perfetto sorts by time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use selvedge_units::Instant;

use super::proto::Message;

/// A timeline file in construction.
pub(crate) struct File<W> {
    out: W,
    tracks: u64,
    names: BTreeMap<String, u64>,
    keys: BTreeMap<&'static str, u64>,
    /// Names and keys first used by the present packet.
    interned: Message,
    packet: Message,
    event: Message,
}

/// A row of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Track(u64);

/// The content of a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TrackKind {
    /// Slices and instants, or only other tracks.
    Events,
    /// Bytes over time.
    Bytes,
    /// Another number over time, with its unit.
    Count(&'static str),
}

/// The connection of a slice to others with the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrow {
    /// An arrow leads to the slice and continues from it.
    Through(u64),
    /// An arrow ends at the slice.
    End(u64),
}

/// A detail shown when a slice or an instant is selected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Detail<'a> {
    Number(&'static str, u64),
    Text(&'static str, &'a str),
}

/// Fields of `perfetto.protos.TracePacket`.
mod packet {
    pub(super) const IN_TRACE: u32 = 1;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED_DATA: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// Fields of `TrackDescriptor` and its `CounterDescriptor`.
mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const RANK: u32 = 12;
    pub(super) const COUNTER_UNIT: u32 = 3;
    pub(super) const COUNTER_UNIT_NAME: u32 = 6;
    /// Value of `ChildTracksOrdering`.
    pub(super) const EXPLICIT: u64 = 3;
    /// Value of `CounterDescriptor.Unit`.
    pub(super) const SIZE_BYTES: u64 = 3;
}

/// Fields of `TrackEvent`.
mod event {
    pub(super) const DETAIL: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW: u32 = 47;
    pub(super) const LAST_FLOW: u32 = 48;
    /// Values of `TrackEvent.Type`.
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
    pub(super) const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod detail {
    pub(super) const NAME: u32 = 1;
    pub(super) const UINT: u32 = 3;
    pub(super) const STRING: u32 = 6;
}

/// Fields of `InternedData` and its entries.
mod interned {
    pub(super) const EVENT_NAME: u32 = 2;
    pub(super) const DETAIL_NAME: u32 = 3;
    pub(super) const NUMBER: u32 = 1;
    pub(super) const TEXT: u32 = 2;
}

/// Number of the single sequence of packets, which is never interrupted.
const SEQUENCE: u64 = 1;
/// Values of `TracePacket.SequenceFlags`.
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

impl<W: Write> File<W> {
    /// Begins a timeline.
    pub(crate) fn begin(out: W) -> io::Result<Self> {
        let mut file = Self {
            out,
            tracks: 0,
            names: BTreeMap::new(),
            keys: BTreeMap::new(),
            interned: Message::default(),
            packet: Message::default(),
            event: Message::default(),
        };
        file.packet.uint(packet::SEQUENCE, SEQUENCE).uint(packet::SEQUENCE_FLAGS, STATE_CLEARED);
        file.write()?;
        Ok(file)
    }

    /// Adds a track below `parent`; `rank` orders it among its siblings.
    pub(crate) fn track(&mut self, name: &str, parent: Option<Track>, rank: u32, kind: TrackKind) -> io::Result<Track> {
        self.tracks += 1;
        let track = Track(self.tracks);
        let mut about = Message::default();
        about.uint(descriptor::UUID, track.0).text(descriptor::NAME, name);
        if let Some(parent) = parent {
            about.uint(descriptor::PARENT, parent.0);
        }
        about.uint(descriptor::CHILD_ORDERING, descriptor::EXPLICIT).uint(descriptor::RANK, u64::from(rank));
        let mut counter = Message::default();
        match kind {
            TrackKind::Events => {}
            TrackKind::Bytes => {
                counter.uint(descriptor::COUNTER_UNIT, descriptor::SIZE_BYTES);
                about.message(descriptor::COUNTER, &counter);
            }
            TrackKind::Count(unit) => {
                counter.text(descriptor::COUNTER_UNIT_NAME, unit);
                about.message(descriptor::COUNTER, &counter);
            }
        }
        self.packet.uint(packet::SEQUENCE, SEQUENCE).message(packet::TRACK_DESCRIPTOR, &about);
        self.write()?;
        Ok(track)
    }

    /// Begins a slice.
    pub(crate) fn begin_slice(
        &mut self,
        track: Track,
        at: Instant,
        name: &str,
        arrow: Option<Arrow>,
        details: &[Detail<'_>],
    ) -> io::Result<()> {
        self.on(track, event::BEGIN);
        self.name(name);
        self.arrow(arrow);
        self.details(details);
        self.write_event(at)
    }

    /// Ends the slice that began last on this track.
    pub(crate) fn end_slice(&mut self, track: Track, at: Instant) -> io::Result<()> {
        self.on(track, event::END);
        self.write_event(at)
    }

    /// Adds an instant.
    pub(crate) fn instant(
        &mut self,
        track: Track,
        at: Instant,
        name: &str,
        arrow: Option<Arrow>,
        details: &[Detail<'_>],
    ) -> io::Result<()> {
        self.on(track, event::INSTANT);
        self.name(name);
        self.arrow(arrow);
        self.details(details);
        self.write_event(at)
    }

    /// Adds a value of a counter.
    pub(crate) fn count(&mut self, track: Track, at: Instant, value: u64) -> io::Result<()> {
        self.on(track, event::COUNTER);
        self.event.int(event::COUNTER_VALUE, i64::try_from(value).unwrap_or(i64::MAX));
        self.write_event(at)
    }

    /// Flushes everything to the operating system.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn on(&mut self, track: Track, kind: u64) {
        self.event.uint(event::TYPE, kind).uint(event::TRACK, track.0);
    }

    fn name(&mut self, name: &str) {
        let number = match self.names.get(name) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u64 + 1;
                self.names.insert(name.to_owned(), number);
                entry(&mut self.interned, interned::EVENT_NAME, number, name);
                number
            }
        };
        self.event.uint(event::NAME, number);
    }

    fn arrow(&mut self, arrow: Option<Arrow>) {
        match arrow {
            None => {}
            Some(Arrow::Through(number)) => drop(self.event.fixed64(event::FLOW, number)),
            Some(Arrow::End(number)) => drop(self.event.fixed64(event::LAST_FLOW, number)),
        }
    }

    fn details(&mut self, details: &[Detail<'_>]) {
        for detail in details {
            let (Detail::Number(key, _) | Detail::Text(key, _)) = *detail;
            let next = self.keys.len() as u64 + 1;
            let interned = &mut self.interned;
            let number = *self.keys.entry(key).or_insert_with(|| {
                entry(interned, interned::DETAIL_NAME, next, key);
                next
            });
            let mut message = Message::default();
            message.uint(detail::NAME, number);
            match *detail {
                Detail::Number(_, value) => message.uint(detail::UINT, value),
                Detail::Text(_, value) => message.text(detail::STRING, value),
            };
            self.event.message(event::DETAIL, &message);
        }
    }

    fn write_event(&mut self, at: Instant) -> io::Result<()> {
        self.packet.uint(packet::TIMESTAMP, at.as_ps() / 1_000).uint(packet::SEQUENCE, SEQUENCE);
        self.packet.uint(packet::SEQUENCE_FLAGS, NEEDS_STATE);
        if !self.interned.as_bytes().is_empty() {
            self.packet.message(packet::INTERNED_DATA, &self.interned);
            self.interned.clear();
        }
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.event.clear();
        self.write()
    }

    /// Writes the packet as one field of the trace.
    fn write(&mut self) -> io::Result<()> {
        let mut trace = Message::default();
        trace.message(packet::IN_TRACE, &self.packet);
        self.packet.clear();
        self.out.write_all(trace.as_bytes())
    }
}

/// Adds a numbered text to interned data.
fn entry(interned: &mut Message, field: u32, number: u64, text: &str) {
    let mut entry = Message::default();
    entry.uint(interned::NUMBER, number).text(interned::TEXT, text);
    interned.message(field, &entry);
}
