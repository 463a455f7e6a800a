//! A segment in the 24 bytes that a [`crate::Packet`] has for it.
//!
//! Three forms hold what the three kinds of segments need. Of an acknowledgement's SACK blocks the
//! edges are kept as distances from the acknowledged octet, in full segments. That is exact for a
//! stream that is cut into full segments but for its last, as in a simulation; else the edges are
//! rounded inwards, so that nothing is reported that has not arrived.

use selvedge_units::TcpSeq;

use super::options::{Sacks, SynOptions, Timestamps};
use super::segment::{Flags, Segment};

/// A segment, packed. The time stamp's own value is not in here: it is when the packet was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tcp {
    /// Data, or anything else that carries neither a SYN nor SACK blocks.
    Plain {
        /// See [`Segment::seq`].
        seq: TcpSeq,
        /// See [`Segment::ack`].
        ack: TcpSeq,
        /// See [`Timestamps::echo`].
        echo: u32,
        /// See [`Segment::window`].
        window: u16,
        /// See [`Segment::payload`].
        payload: u16,
        /// See [`Segment::flags`].
        flags: Flags,
        /// What else there is to know.
        notes: Notes,
    },
    /// The first segment of a direction.
    Syn {
        /// See [`Segment::seq`].
        seq: TcpSeq,
        /// See [`Segment::ack`].
        ack: TcpSeq,
        /// See [`Timestamps::echo`].
        echo: u32,
        /// See [`Segment::window`].
        window: u16,
        /// See [`SynOptions::mss`].
        mss: u16,
        /// See [`Segment::flags`].
        flags: Flags,
        /// See [`SynOptions::window_scale`].
        scale: u8,
        /// What else there is to know.
        notes: Notes,
    },
    /// A pure acknowledgement with SACK blocks. Its sequence number is the one that its taker
    /// expects.
    Sack {
        /// See [`Segment::ack`].
        ack: TcpSeq,
        /// See [`Timestamps::echo`]; without time stamps the fourth block.
        echo: u32,
        /// See [`Segment::window`].
        window: u16,
        /// First and last edge of each block, in full segments from `ack`; empty ones at the end.
        edges: [[u16; 2]; Sacks::BESIDE_TIMESTAMPS],
        /// What else there is to know.
        notes: Notes,
    },
}

/// Bits beside a packed segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notes(u8);

impl Notes {
    /// The time stamps option is there.
    const STAMPED: u8 = 0x01;
    /// From the end that was opened to the end that opened.
    const BACKWARD: u8 = 0x02;
    /// Octets that were sent before.
    const AGAIN: u8 = 0x04;
    /// Of a SYN: SACK is permitted; an MSS, a window scale is given.
    const SACK_PERMITTED: u8 = 0x08;
    const HAS_MSS: u8 = 0x10;
    const HAS_SCALE: u8 = 0x20;
    /// Of SACK blocks: the rightmost reaches the end of the stream.
    const TO_END: u8 = 0x08;
    const ECE: u8 = 0x10;
    const CWR: u8 = 0x20;
    /// A switch has cut its payload off.
    const TRIMMED: u8 = 0x40;

    const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
    const fn with(self, bit: u8, condition: bool) -> Self {
        if condition { Self(self.0 | bit) } else { self }
    }
}

/// What is known of a segment beside itself, when it is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// From the end that was opened to the end that opened.
    pub is_backward: bool,
    /// Whether it carries octets that were sent before. Never read by engines; for counting only.
    pub is_again: bool,
}

/// What both ends know of the stream that a segment acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Payload of its full segments.
    pub mss: u16,
    /// One past its last octet.
    pub end: TcpSeq,
}

impl Tcp {
    /// Packs a segment that acknowledges octets of `stream`. SACK blocks beside data are left out.
    pub fn pack(segment: &Segment, way: Way, stream: Stream) -> Self {
        let &Segment { seq, ack, flags, window, payload, syn, timestamps, sacks } = segment;
        let echo = timestamps.unwrap_or_default().echo;
        let notes = Notes::default()
            .with(Notes::STAMPED, timestamps.is_some())
            .with(Notes::BACKWARD, way.is_backward)
            .with(Notes::AGAIN, way.is_again);
        if flags.contains(Flags::SYN) {
            let notes = notes
                .with(Notes::SACK_PERMITTED, syn.sack_permitted)
                .with(Notes::HAS_MSS, syn.mss.is_some())
                .with(Notes::HAS_SCALE, syn.window_scale.is_some());
            let (mss, scale) = (syn.mss.unwrap_or_default(), syn.window_scale.unwrap_or_default());
            return Self::Syn { seq, ack, echo, window, mss, flags, scale, notes };
        }
        let is_pure = payload == 0 && !flags.intersects(Flags::FIN | Flags::RST);
        if sacks.is_empty() || !is_pure {
            return Self::Plain { seq, ack, echo, window, payload, flags, notes };
        }
        let mut all = [[0; 2]; Sacks::MOST];
        for (edges, block) in all.iter_mut().zip(sacks.iter()) {
            *edges = to_segments(block, ack, stream);
        }
        let [first, second, third, fourth] = all;
        let fourth = u32::from(fourth[0]) << 16 | u32::from(fourth[1]);
        let notes = notes
            .with(Notes::TO_END, sacks.iter().any(|(_, to)| to == stream.end))
            .with(Notes::ECE, flags.contains(Flags::ECE))
            .with(Notes::CWR, flags.contains(Flags::CWR));
        let echo = if timestamps.is_some() { echo } else { fourth };
        Self::Sack { ack, echo, window, edges: [first, second, third], notes }
    }

    /// The segment again, for a taker who expects `expected` next and sends `stream`; `clock` is the
    /// other end's when the packet left.
    pub fn unpack(&self, expected: TcpSeq, clock: u32, stream: Stream) -> Segment {
        let timestamps = |notes: Notes, echo| notes.has(Notes::STAMPED).then_some(Timestamps { value: clock, echo });
        match *self {
            Self::Plain { seq, ack, echo, window, payload, flags, notes } => {
                let timestamps = timestamps(notes, echo);
                Segment { seq, ack, flags, window, payload, timestamps, ..Segment::default() }
            }
            Self::Syn { seq, ack, echo, window, mss, flags, scale, notes } => {
                let syn = SynOptions {
                    mss: notes.has(Notes::HAS_MSS).then_some(mss),
                    window_scale: notes.has(Notes::HAS_SCALE).then_some(scale),
                    sack_permitted: notes.has(Notes::SACK_PERMITTED),
                };
                Segment { seq, ack, flags, window, syn, timestamps: timestamps(notes, echo), ..Segment::default() }
            }
            Self::Sack { ack, echo, window, edges: [first, second, third], notes } => {
                let fourth = if notes.has(Notes::STAMPED) { [0; 2] } else { [(echo >> 16) as u16, echo as u16] };
                let blocks = [first, second, third, fourth];
                let last = blocks.iter().map(|edges| edges[0]).max();
                let sacks = blocks.into_iter().filter(|&edges| edges != [0; 2]).map(|edges| {
                    let (from, to) = from_segments(edges, ack, stream);
                    (from, if notes.has(Notes::TO_END) && Some(edges[0]) == last { stream.end } else { to })
                });
                Segment {
                    seq: expected,
                    ack,
                    flags: Flags::ACK | Flags::ECE.when(notes.has(Notes::ECE)) | Flags::CWR.when(notes.has(Notes::CWR)),
                    window,
                    timestamps: timestamps(notes, echo),
                    sacks: sacks.collect(),
                    ..Segment::default()
                }
            }
        }
    }

    /// Octets of data.
    #[inline]
    pub const fn payload(&self) -> u16 {
        match self {
            Self::Plain { payload, .. } => *payload,
            Self::Syn { .. } | Self::Sack { .. } => 0,
        }
    }
    /// From the end that was opened to the end that opened.
    #[inline]
    pub const fn is_backward(&self) -> bool {
        self.notes().has(Notes::BACKWARD)
    }
    /// Whether it carries octets that were sent before.
    #[inline]
    pub const fn is_again(&self) -> bool {
        self.notes().has(Notes::AGAIN)
    }
    /// Whether a switch has cut its payload off.
    #[inline]
    pub const fn is_trimmed(&self) -> bool {
        self.notes().has(Notes::TRIMMED)
    }
    /// Says that its payload is missing.
    pub(crate) const fn mark_trimmed(&mut self) {
        match self {
            Self::Plain { notes, .. } | Self::Syn { notes, .. } | Self::Sack { notes, .. } => {
                *notes = notes.with(Notes::TRIMMED, true);
            }
        }
    }
    const fn notes(&self) -> Notes {
        match self {
            Self::Plain { notes, .. } | Self::Syn { notes, .. } | Self::Sack { notes, .. } => *notes,
        }
    }
}

/// A block's edges in full segments from `ack`, rounded inwards.
fn to_segments((from, to): (TcpSeq, TcpSeq), ack: TcpSeq, stream: Stream) -> [u16; 2] {
    let mss = u32::from(stream.mss.max(1));
    let distance = |edge: TcpSeq| edge.get().wrapping_sub(ack.get());
    let edge = |segments: u32| u16::try_from(segments).unwrap_or(u16::MAX);
    let (from, to) = (distance(from).div_ceil(mss), distance(to) / mss);
    [edge(from), edge(to.max(from))]
}

fn from_segments([from, to]: [u16; 2], ack: TcpSeq, stream: Stream) -> (TcpSeq, TcpSeq) {
    let edge = |segments: u16| TcpSeq::new(ack.get().wrapping_add(u32::from(segments) * u32::from(stream.mss)));
    (edge(from), edge(to))
}
