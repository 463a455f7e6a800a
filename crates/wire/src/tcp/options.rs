//! TCP options.
//!
//! | kind | length | option                                  |
//! |------|--------|-----------------------------------------|
//! | 0    |        | end of options                          |
//! | 1    |        | no operation                            |
//! | 2    | 4      | maximum segment size (RFC 9293, 3.7.1)  |
//! | 3    | 3      | window scale (RFC 7323, 2.2)            |
//! | 4    | 2      | SACK permitted (RFC 2018, 2)            |
//! | 5    | 2 + 8n | SACK (RFC 2018, 3)                      |
//! | 8    | 10     | time stamps (RFC 7323, 3.2)             |
//!
//! Options are emitted as in common stacks: each aligned to 4 bytes by preceding NOPs, with SACK-permitted in the place
//! of the NOPs of the time stamps.

use selvedge_units::TcpSeq;

use super::segment::{Flags, Segment};
use crate::error::ParseError;

/// Options of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SynOptions {
    /// Largest segment that the sender accepts.
    pub mss: Option<u16>,
    /// Left shift of the sender's windows, valid if the other end offers a shift, too.
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK.
    pub sack_permitted: bool,
}

/// The time stamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the other end's clock, echoed.
    pub echo: u32,
}

/// SACK blocks, received out of order: first octet, and the position after the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sacks {
    blocks: [(TcpSeq, TcpSeq); Self::MOST],
    count: u8,
}

impl Sacks {
    /// Most blocks without time stamps.
    pub const MOST: usize = 4;
    /// Most blocks together with time stamps.
    pub const BESIDE_TIMESTAMPS: usize = 3;

    /// Appends a block; ignored if there is no room.
    pub const fn push(&mut self, from: TcpSeq, to: TcpSeq) {
        if (self.count as usize) < Self::MOST {
            self.blocks[self.count as usize] = (from, to);
            self.count += 1;
        }
    }
    /// Returns the blocks, most recent first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TcpSeq, TcpSeq)> + '_ {
        self.blocks[..self.len()].iter().copied()
    }
    /// Returns the number of blocks.
    pub const fn len(&self) -> usize {
        self.count as usize
    }
    /// Returns whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl FromIterator<(TcpSeq, TcpSeq)> for Sacks {
    fn from_iter<I: IntoIterator<Item = (TcpSeq, TcpSeq)>>(blocks: I) -> Self {
        let mut sacks = Self::default();
        for (from, to) in blocks {
            sacks.push(from, to);
        }
        sacks
    }
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Returns the bytes of a segment's options.
pub(super) const fn length(segment: &Segment) -> usize {
    let timestamps = if segment.timestamps.is_some() { 12 } else { 0 };
    if segment.flags.contains(Flags::SYN) {
        let syn = &segment.syn;
        let permitted = if syn.sack_permitted && timestamps == 0 { 4 } else { 0 };
        let mss = if syn.mss.is_some() { 4 } else { 0 };
        let scale = if syn.window_scale.is_some() { 4 } else { 0 };
        return mss + permitted + timestamps + scale;
    }
    let sacks = if segment.sacks.is_empty() { 0 } else { 4 + 8 * room_for(segment) };
    timestamps + sacks
}

/// Returns the number of SACK blocks that fit the segment.
const fn room_for(segment: &Segment) -> usize {
    let most = if segment.timestamps.is_some() { Sacks::BESIDE_TIMESTAMPS } else { Sacks::MOST };
    if segment.sacks.len() < most { segment.sacks.len() } else { most }
}

/// Writes a segment's options into `bytes`, whose length is that of [`length`].
pub(super) fn emit(segment: &Segment, bytes: &mut [u8]) {
    let mut rest = bytes;
    let mut put = |part: &[u8]| {
        let (now, later) = core::mem::take(&mut rest).split_at_mut(part.len());
        now.copy_from_slice(part);
        rest = later;
    };
    let is_syn = segment.flags.contains(Flags::SYN);
    let syn = if is_syn { segment.syn } else { SynOptions::default() };
    if let Some(mss) = syn.mss {
        put(&[MSS, 4]);
        put(&mss.to_be_bytes());
    }
    if syn.sack_permitted {
        put(&[SACK_PERMITTED, 2]);
    } else if segment.timestamps.is_some() {
        put(&[NOP, NOP]);
    }
    match segment.timestamps {
        Some(Timestamps { value, echo }) => {
            put(&[TIMESTAMPS, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        None if syn.sack_permitted => put(&[NOP, NOP]),
        None => {}
    }
    if let Some(shift) = syn.window_scale {
        put(&[NOP, WINDOW_SCALE, 3, shift]);
    }
    if !is_syn && !segment.sacks.is_empty() {
        let count = room_for(segment);
        put(&[NOP, NOP, SACK, 2 + 8 * count as u8]);
        for (from, to) in segment.sacks.iter().take(count) {
            put(&from.get().to_be_bytes());
            put(&to.get().to_be_bytes());
        }
    }
}

/// Reads options into `segment`, whose flags are set. Illegal lengths are errors (RFC 9293, MUST-7).
pub(super) fn parse(mut bytes: &[u8], segment: &mut Segment) -> Result<(), ParseError> {
    let is_syn = segment.flags.contains(Flags::SYN);
    while let Some((&kind, rest)) = bytes.split_first() {
        if kind == END {
            break;
        }
        if kind == NOP {
            bytes = rest;
            continue;
        }
        let length = usize::from(*rest.first().ok_or(ParseError::TcpOption(kind))?);
        let body = bytes.get(2..length).ok_or(ParseError::TcpOption(kind))?;
        bytes = &bytes[length..];
        read(kind, body, is_syn, segment)?;
    }
    Ok(())
}

fn read(kind: u8, body: &[u8], is_syn: bool, segment: &mut Segment) -> Result<(), ParseError> {
    let long = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    match (kind, body) {
        (MSS, &[high, low]) if is_syn => segment.syn.mss = Some(u16::from_be_bytes([high, low])),
        (WINDOW_SCALE, &[shift]) if is_syn => segment.syn.window_scale = Some(shift),
        (SACK_PERMITTED, []) if is_syn => segment.syn.sack_permitted = true,
        (TIMESTAMPS, body) if body.len() == 8 => {
            segment.timestamps = Some(Timestamps { value: long(body), echo: long(&body[4..]) });
        }
        (SACK, body) if !is_syn && body.len().is_multiple_of(8) => {
            let block = |edges: &[u8]| (TcpSeq::new(long(edges)), TcpSeq::new(long(&edges[4..])));
            segment.sacks = body.chunks_exact(8).map(block).collect();
        }
        (MSS, [_, _]) | (WINDOW_SCALE, [_]) | (SACK_PERMITTED, []) => {}
        (SACK, body) if is_syn && body.len().is_multiple_of(8) => {}
        (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => return Err(ParseError::TcpOption(kind)),
        _ => {}
    }
    Ok(())
}
