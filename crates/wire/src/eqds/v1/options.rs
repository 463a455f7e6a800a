//! Options between the body of a header and its MAC, each padded with zeros to a multiple of 4 bytes.
//!
//! | kind | length | option                                                                                   |
//! |------|--------|------------------------------------------------------------------------------------------|
//! | 0    |        | end of options: a zero byte; the rest of the options is padding                          |
//! | 1    | 4      | MTU: bytes of the longest UDP payload that the sender of the option can receive          |
//! | 2    | 4      | capabilities of the sender of the option, see [`Capabilities`]                           |
//! | 3    | 6      | rate of the link of the sender of the option, in Mb/s                                    |
//! | 4    | 2 + 4n | SACK ranges: n times offset from the report's number (16 bits), packets (16 bits)        |
//! | 5    | 2 + 4n | NACK ranges, likewise                                                                    |
//! | 6    | 6      | floor: the greatest key epoch of the reset's addressee that its sender does not accept   |
//! | 7    | 10     | challenge, in a reset                                                                    |
//! | 8    | 10     | answer to a challenge, in data and requests with SYN                                     |
//!
//! The length counts kind, length and value, not the padding. Unknown options below 128 are skipped; a packet with an
//! unknown option from 128 on is refused. Of an option that occurs twice, the last counts.

use crate::error::ParseError;

/// Options that a peer supports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capabilities(u16);

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self(0);
    /// Sealed payloads are understood.
    pub const SEALED: Self = Self(0x0001);
    /// The network trims: a first window without credit is welcome.
    pub const TRIMMING: Self = Self(0x0002);
    /// SACK and NACK ranges are understood.
    pub const RANGES: Self = Self(0x0004);
    /// Super-packets are understood, see [`super::Next::Super`].
    pub const SUPER: Self = Self(0x0008);
    /// Native messages are understood.
    pub const NATIVE: Self = Self(0x0010);
    /// ECN marks are reported by ECN echo.
    pub const ECN: Self = Self(0x0020);

    /// Returns the union of both sets.
    #[inline]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
    /// Returns the intersection of both sets: what both peers can do.
    #[inline]
    pub const fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }
    /// Returns whether any capability of `of` is present.
    #[inline]
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }
    /// Returns the bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Creates capabilities from bits; unknown ones are kept.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// A range of packets, relative to the number of a report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Range {
    /// Distance of the range's first packet from the report's number.
    pub offset: u16,
    /// Packets of the range.
    pub packets: u16,
}

/// Ranges of packets, in the order of sending.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ranges {
    ranges: [Range; Self::MOST],
    count: u8,
}

impl Ranges {
    /// Most ranges in one option.
    pub const MOST: usize = 6;

    /// Appends a range; returns false if there is no room.
    pub const fn push(&mut self, range: Range) -> bool {
        let at = self.count as usize;
        if at == Self::MOST {
            return false;
        }
        self.ranges[at] = range;
        self.count += 1;
        true
    }
    /// Returns the ranges.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range> + '_ {
        self.ranges[..self.len()].iter().copied()
    }
    /// Returns the number of ranges.
    pub const fn len(&self) -> usize {
        self.count as usize
    }
    /// Returns whether there are no ranges.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes of the option with its padding; nothing if there are no ranges.
    const fn length(&self) -> usize {
        if self.is_empty() { 0 } else { (2 + 4 * self.len()).next_multiple_of(4) }
    }
}

/// Options of a header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// Bytes of the longest UDP payload that the sender of the option can receive.
    pub mtu: Option<u16>,
    /// Capabilities of the sender of the option.
    pub capabilities: Option<Capabilities>,
    /// Rate of the link of the sender of the option, in Mb/s.
    pub rate: Option<u32>,
    /// Packets that arrived behind a hole.
    pub sacks: Ranges,
    /// Packets that arrived without their payload, or are taken for lost.
    pub nacks: Ranges,
    /// Greatest key epoch of the reset's addressee that the sender of the reset does not accept.
    pub floor: Option<u32>,
    /// Challenge of a receiver that does not know whether a key epoch is old.
    pub challenge: Option<u64>,
    /// Answer to a challenge.
    pub answer: Option<u64>,
}

const END: u8 = 0;
const MTU: u8 = 1;
const CAPABILITIES: u8 = 2;
const RATE: u8 = 3;
const SACKS: u8 = 4;
const NACKS: u8 = 5;
const FLOOR: u8 = 6;
const CHALLENGE: u8 = 7;
const ANSWER: u8 = 8;
/// First of the kinds that a receiver must know.
const CRITICAL: u8 = 128;

impl Options {
    /// No options.
    pub const NONE: Self = Self {
        mtu: None,
        capabilities: None,
        rate: None,
        sacks: Ranges { ranges: [Range { offset: 0, packets: 0 }; Ranges::MOST], count: 0 },
        nacks: Ranges { ranges: [Range { offset: 0, packets: 0 }; Ranges::MOST], count: 0 },
        floor: None,
        challenge: None,
        answer: None,
    };
    /// Most bytes of options, with their padding.
    pub const LONGEST: usize = 104;

    /// Returns the bytes of the options, with their padding.
    pub const fn length(&self) -> usize {
        let mut length = self.sacks.length() + self.nacks.length();
        let sizes = [
            (self.mtu.is_some(), 4),
            (self.capabilities.is_some(), 4),
            (self.rate.is_some(), 8),
            (self.floor.is_some(), 8),
            (self.challenge.is_some(), 12),
            (self.answer.is_some(), 12),
        ];
        let mut at = 0;
        while at < sizes.len() {
            if sizes[at].0 {
                length += sizes[at].1;
            }
            at += 1;
        }
        length
    }

    /// Writes the options into `bytes`, whose length is that of [`Options::length`].
    pub(super) fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mut rest = bytes;
        let mut put = |kind: u8, value: &[u8]| {
            let length = 2 + value.len();
            let (now, later) = core::mem::take(&mut rest).split_at_mut(length.next_multiple_of(4));
            now[..2].copy_from_slice(&[kind, length as u8]);
            now[2..length].copy_from_slice(value);
            rest = later;
        };
        if let Some(mtu) = self.mtu {
            put(MTU, &mtu.to_be_bytes());
        }
        if let Some(capabilities) = self.capabilities {
            put(CAPABILITIES, &capabilities.0.to_be_bytes());
        }
        if let Some(rate) = self.rate {
            put(RATE, &rate.to_be_bytes());
        }
        for (kind, ranges) in [(SACKS, &self.sacks), (NACKS, &self.nacks)] {
            if !ranges.is_empty() {
                let mut value = [0; 4 * Ranges::MOST];
                for (place, range) in value.chunks_exact_mut(4).zip(ranges.iter()) {
                    place[..2].copy_from_slice(&range.offset.to_be_bytes());
                    place[2..].copy_from_slice(&range.packets.to_be_bytes());
                }
                put(kind, &value[..4 * ranges.len()]);
            }
        }
        if let Some(floor) = self.floor {
            put(FLOOR, &floor.to_be_bytes());
        }
        for (kind, value) in [(CHALLENGE, self.challenge), (ANSWER, self.answer)] {
            if let Some(value) = value {
                put(kind, &value.to_be_bytes());
            }
        }
    }

    /// Reads options to the end of `bytes`.
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, ParseError> {
        let mut options = Self::NONE;
        while let Some(&kind) = bytes.first() {
            if kind == END {
                break;
            }
            let length = bytes.get(1).map_or(0, |&length| usize::from(length));
            let value = bytes.get(2..length).ok_or(ParseError::Option(kind))?;
            bytes = bytes.get(length.next_multiple_of(4)..).ok_or(ParseError::Option(kind))?;
            options.read(kind, value)?;
        }
        Ok(options)
    }

    fn read(&mut self, kind: u8, value: &[u8]) -> Result<(), ParseError> {
        let short = || value.try_into().map(u16::from_be_bytes).map_err(|_| ParseError::Option(kind));
        let long = || value.try_into().map(u32::from_be_bytes).map_err(|_| ParseError::Option(kind));
        let wide = || value.try_into().map(u64::from_be_bytes).map_err(|_| ParseError::Option(kind));
        match kind {
            MTU => self.mtu = Some(short()?),
            CAPABILITIES => self.capabilities = Some(Capabilities(short()?)),
            RATE => self.rate = Some(long()?),
            SACKS => self.sacks = ranges(value).ok_or(ParseError::Option(kind))?,
            NACKS => self.nacks = ranges(value).ok_or(ParseError::Option(kind))?,
            FLOOR => self.floor = Some(long()?),
            CHALLENGE => self.challenge = Some(wide()?),
            ANSWER => self.answer = Some(wide()?),
            CRITICAL.. => return Err(ParseError::Option(kind)),
            _ => {}
        }
        Ok(())
    }
}

/// Reads the value of an option of ranges; `None` if the length is illegal.
fn ranges(value: &[u8]) -> Option<Ranges> {
    let (words, rest) = value.as_chunks::<4>();
    if !rest.is_empty() || words.len() > Ranges::MOST {
        return None;
    }
    let mut ranges = Ranges::default();
    for &[o1, o0, p1, p0] in words {
        ranges.push(Range { offset: u16::from_be_bytes([o1, o0]), packets: u16::from_be_bytes([p1, p0]) });
    }
    Some(ranges)
}
