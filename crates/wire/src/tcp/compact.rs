//! A segment in the 24 bytes available in a [`crate::Packet`].
//!
//! There are three forms for the three kinds of segments. The edges of an acknowledgement's SACK blocks are stored as
//! distances from the acknowledged octet, in full segments. The distances are exact for a stream that is cut into full
//! segments except for its last, as in a simulation; otherwise the edges are rounded inwards, so that only arrived
//! octets are reported. A block before the acknowledged octet, a duplicate (RFC 2883), has its edges in reverse.

use selvedge_units::TcpSeq;

use super::options::{Sacks, SynOptions, Timestamps};
use super::segment::{Flags, Segment};

/// A packed segment. The time stamp's own value is not stored: it equals the time at which the packet was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tcp {
    /// Data, or any other segment that carries neither a SYN nor SACK blocks.
    Plain {
        /// Sequence number, see [`Segment::seq`].
        seq: TcpSeq,
        /// Acknowledgement number, see [`Segment::ack`].
        ack: TcpSeq,
        /// Echoed time stamp, see [`Timestamps::echo`].
        echo: u32,
        /// Window, see [`Segment::window`].
        window: u16,
        /// Octets of data, see [`Segment::payload`].
        payload: u16,
        /// Control bits, see [`Segment::flags`].
        flags: Flags,
        /// Further bits.
        notes: Notes,
    },
    /// The first segment of a direction.
    Syn {
        /// Sequence number, see [`Segment::seq`].
        seq: TcpSeq,
        /// Acknowledgement number, see [`Segment::ack`].
        ack: TcpSeq,
        /// Echoed time stamp, see [`Timestamps::echo`].
        echo: u32,
        /// Window, see [`Segment::window`].
        window: u16,
        /// Maximum segment size, see [`SynOptions::mss`].
        mss: u16,
        /// Control bits, see [`Segment::flags`].
        flags: Flags,
        /// Window scale, see [`SynOptions::window_scale`].
        scale: u8,
        /// Further bits.
        notes: Notes,
    },
    /// A pure acknowledgement with SACK blocks. Its sequence number is the one that its receiver expects.
    Sack {
        /// Acknowledgement number, see [`Segment::ack`].
        ack: TcpSeq,
        /// Echoed time stamp, see [`Timestamps::echo`]; without time stamps, the fourth block.
        echo: u32,
        /// Window, see [`Segment::window`].
        window: u16,
        /// First and last edge of each block, in full segments from `ack`; unused ones are empty and last.
        edges: [[u16; 2]; Sacks::BESIDE_TIMESTAMPS],
        /// Further bits.
        notes: Notes,
    },
}

/// Further bits of a packed segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notes(u8);

impl Notes {
    /// Set if the segment has a time stamps option.
    const STAMPED: u8 = 0x01;
    /// Set if the segment goes from the passive opener to the active opener.
    const BACKWARD: u8 = 0x02;
    /// Set if the segment carries octets sent before.
    const AGAIN: u8 = 0x04;
    /// Set if a SYN permits SACK; the next two bits: has an MSS, has a window scale.
    const SACK_PERMITTED: u8 = 0x08;
    const HAS_MSS: u8 = 0x10;
    const HAS_SCALE: u8 = 0x20;
    /// Set if the rightmost SACK block reaches the end of the stream.
    const TO_END: u8 = 0x08;
    const ECE: u8 = 0x10;
    const CWR: u8 = 0x20;
    /// Set if a switch has trimmed the payload.
    const TRIMMED: u8 = 0x40;

    const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
    const fn with(self, bit: u8, condition: bool) -> Self {
        if condition { Self(self.0 | bit) } else { self }
    }
}

/// Properties of a segment that its header does not contain, needed to pack it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentContext {
    /// Whether the segment goes from the passive opener to the active opener.
    pub is_backward: bool,
    /// Whether the segment carries octets sent before. For counting only; never read by engines.
    pub is_again: bool,
}

/// Properties, known to both ends, of the stream that a segment acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Payload of full segments.
    pub mss: u16,
    /// Sequence number after the last octet.
    pub end: TcpSeq,
}

impl Tcp {
    /// Packs a segment that acknowledges octets of `stream`. SACK blocks of a segment with data are omitted.
    pub fn pack(segment: &Segment, way: SegmentContext, stream: Stream) -> Self {
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
            .with(Notes::TO_END, ack != stream.end && sacks.iter().any(|(_, to)| to == stream.end))
            .with(Notes::ECE, flags.contains(Flags::ECE))
            .with(Notes::CWR, flags.contains(Flags::CWR));
        let echo = if timestamps.is_some() { echo } else { fourth };
        Self::Sack { ack, echo, window, edges: [first, second, third], notes }
    }

    /// Unpacks the segment for a receiver that expects `expected` next and sends `stream`; `clock` is the other end's
    /// time stamp clock when the packet was sent.
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
                let last = blocks.iter().filter(|[from, to]| from <= to).map(|edges| edges[0]).max();
                let sacks = blocks.into_iter().filter(|&edges| edges != [0; 2]).map(|edges| {
                    let (from, to) = from_segments(edges, ack, stream);
                    (
                        from,
                        if notes.has(Notes::TO_END) && edges[0] <= edges[1] && Some(edges[0]) == last {
                            stream.end
                        } else {
                            to
                        },
                    )
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

    /// Returns the octets of data.
    #[inline]
    pub const fn payload(&self) -> u16 {
        match self {
            Self::Plain { payload, .. } => *payload,
            Self::Syn { .. } | Self::Sack { .. } => 0,
        }
    }
    /// Returns whether the segment goes from the passive opener to the active opener.
    #[inline]
    pub const fn is_backward(&self) -> bool {
        self.notes().has(Notes::BACKWARD)
    }
    /// Returns whether the segment carries octets sent before.
    #[inline]
    pub const fn is_again(&self) -> bool {
        self.notes().has(Notes::AGAIN)
    }
    /// Returns whether a switch has trimmed the payload.
    #[inline]
    pub const fn is_trimmed(&self) -> bool {
        self.notes().has(Notes::TRIMMED)
    }
    /// Marks the payload as trimmed.
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

/// Returns a block's edges in full segments from `ack`, rounded inwards.
fn to_segments((from, to): (TcpSeq, TcpSeq), ack: TcpSeq, stream: Stream) -> [u16; 2] {
    let mss = u32::from(stream.mss.max(1));
    let distance = |edge: TcpSeq| edge.get().wrapping_sub(ack.get());
    let edge = |segments: u32| u16::try_from(segments).unwrap_or(u16::MAX);
    if (distance(to) as i32) <= 0 {
        let back = |edge: TcpSeq| ack.get().wrapping_sub(edge.get());
        return [edge(back(from) / mss), edge(back(to).div_ceil(mss))];
    }
    let (from, to) = (distance(from).div_ceil(mss), distance(to) / mss);
    [edge(from), edge(to.max(from))]
}

fn from_segments([from, to]: [u16; 2], ack: TcpSeq, stream: Stream) -> (TcpSeq, TcpSeq) {
    let octets = |segments: u16| u32::from(segments) * u32::from(stream.mss);
    let edge = |segments: u16| match from > to {
        true => TcpSeq::new(ack.get().wrapping_sub(octets(segments))),
        false => TcpSeq::new(ack.get().wrapping_add(octets(segments))),
    };
    (edge(from), edge(to))
}
