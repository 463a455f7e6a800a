//! Tracks and events of a timeline.

use std::collections::BTreeMap;

/// Content of a timeline.
pub(crate) struct Timeline {
    /// Names of tracks with those of their parents, indexed by identity.
    tracks: BTreeMap<u64, String>,
    events: Vec<Event>,
}

struct Event {
    at: u64,
    kind: u64,
    track: u64,
    name: Option<String>,
    arrow: Option<u64>,
}

/// Value of a message's field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

impl Timeline {
    pub(crate) fn read(file: &[u8]) -> Self {
        let mut timeline = Self { tracks: BTreeMap::new(), events: Vec::new() };
        let mut names = BTreeMap::new();
        for (field, packet) in fields(file) {
            assert_eq!(field, 1, "a trace holds packets only");
            timeline.read_packet(packet.bytes(), &mut names);
        }
        timeline
    }

    fn read_packet(&mut self, packet: &[u8], names: &mut BTreeMap<u64, String>) {
        let mut at = None;
        for (field, value) in fields(packet) {
            match field {
                8 => at = Some(value.number()),
                11 => {
                    let event = read_event(at.expect("a time stamp before the event"), value.bytes(), names);
                    assert!(self.tracks.contains_key(&event.track), "tracks come before their events");
                    self.events.push(event);
                }
                12 => read_names(value.bytes(), names),
                60 => self.read_track(value.bytes()),
                _ => {}
            }
        }
    }

    fn read_track(&mut self, descriptor: &[u8]) {
        let (mut identity, mut name, mut parent) = (0, String::new(), None);
        for (field, value) in fields(descriptor) {
            match field {
                1 => identity = value.number(),
                2 => name = value.text(),
                5 => parent = Some(value.number()),
                _ => {}
            }
        }
        let name = parent.map_or(name.clone(), |parent| format!("{}/{name}", self.tracks[&parent]));
        assert!(self.tracks.insert(identity, name).is_none(), "each track is described once");
    }

    /// Checks the requirements of Perfetto on a timeline: slices of a track nest (those of Selvedge do not even
    /// overlap) and end, and slices and instants have names.
    pub(crate) fn check(&self) {
        let mut order: Vec<&Event> = self.events.iter().collect();
        order.sort_by_key(|event| event.at); // keeps the order of simultaneous ones, as Perfetto does
        let mut open: BTreeMap<u64, u32> = BTreeMap::new();
        for event in order {
            let track = &self.tracks[&event.track];
            let depth = open.entry(event.track).or_default();
            match event.kind {
                BEGIN => *depth += 1,
                END => *depth = depth.checked_sub(1).unwrap_or_else(|| panic!("{track}: an end without a beginning")),
                kind => assert!(kind == INSTANT || kind == COUNTER),
            }
            assert!(*depth <= 1, "{track}: slices overlap at {} ns", event.at);
            assert_eq!(event.name.is_some(), matches!(event.kind, BEGIN | INSTANT), "{track}");
        }
        for (track, depth) in open {
            assert_eq!(depth, 0, "{}: a slice does not end", self.tracks[&track]);
        }
    }

    pub(crate) fn tracks(&self) -> impl Iterator<Item = &str> {
        self.tracks.values().map(String::as_str)
    }
    /// Returns the names of slices and instants.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|event| event.name.as_deref())
    }
    pub(crate) fn events_on(&self, track: &str) -> usize {
        self.events.iter().filter(|event| self.tracks[&event.track] == track).count()
    }
    /// Returns the number of arrows that join at least two places.
    pub(crate) fn arrows(&self) -> usize {
        let mut places: BTreeMap<u64, u32> = BTreeMap::new();
        for arrow in self.events.iter().filter_map(|event| event.arrow) {
            *places.entry(arrow).or_default() += 1;
        }
        places.values().filter(|&&count| count >= 2).count()
    }
}

fn read_event(at: u64, event: &[u8], names: &BTreeMap<u64, String>) -> Event {
    let mut read = Event { at, kind: 0, track: 0, name: None, arrow: None };
    for (field, value) in fields(event) {
        match field {
            9 => read.kind = value.number(),
            10 => read.name = Some(names[&value.number()].clone()),
            11 => read.track = value.number(),
            47 | 48 => read.arrow = Some(value.number()),
            _ => {}
        }
    }
    read
}

/// Reads the interned names of events.
fn read_names(interned: &[u8], names: &mut BTreeMap<u64, String>) {
    for (_, entry) in fields(interned).into_iter().filter(|&(field, _)| field == 2) {
        let fields = fields(entry.bytes());
        names.insert(fields[0].1.number(), fields[1].1.text());
    }
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        if let Self::Number(number) = *self { number } else { panic!("a number was expected") }
    }
    fn bytes(&self) -> &'a [u8] {
        if let Self::Bytes(bytes) = *self { bytes } else { panic!("bytes were expected") }
    }
    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("UTF-8")
    }
}

/// Returns the fields of a message (protobuf.dev, "Encoding").
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(split(&mut bytes, 8).try_into().expect("eight bytes"))),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(split(&mut bytes, length))
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = split(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn split<'a>(bytes: &mut &'a [u8], at: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(at);
    *bytes = rest;
    first
}
