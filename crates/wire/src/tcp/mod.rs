//! The TCP header (RFC 9293, section 3.1) and its options.
//!
//! | bytes | bits    | field                                                              |
//! |-------|---------|--------------------------------------------------------------------|
//! | 0-1   |         | source port                                                        |
//! | 2-3   |         | destination port                                                   |
//! | 4-7   |         | sequence number                                                    |
//! | 8-11  |         | acknowledgement number                                             |
//! | 12    | 7..4    | data offset, in words of 4 bytes                                   |
//! |       | 3..0    | reserved; ignored, sent as 0                                       |
//! | 13    | 7..0    | CWR ECE URG ACK PSH RST SYN FIN                                    |
//! | 14-15 |         | window                                                             |
//! | 16-17 |         | checksum, over IP addresses, too: see [`TcpDatagram`]              |
//! | 18-19 |         | urgent pointer; ignored, sent as 0                                 |
//! | 20-59 |         | options                                                            |

mod compact;
mod datagram;
mod options;
mod segment;

pub use compact::{Notes, SegmentContext, Stream, Tcp};
pub use datagram::TcpDatagram;
pub use options::{Sacks, SynOptions, Timestamps};
pub use segment::{Flags, Segment};

use crate::error::{ParseError, take};
use selvedge_units::TcpSeq;

/// A TCP header, with the length of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// All other fields.
    pub segment: Segment,
}

impl Header {
    /// Bytes of a header without options.
    pub const SHORTEST: usize = 20;
    /// Bytes of a header with the most options.
    pub const LONGEST: usize = 60;

    /// Reads the header; also returns the payload. Options that are unknown, or not allowed (MSS, window scale and
    /// SACK-permitted without SYN, SACK with SYN), are ignored.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (fixed, _) = take::<{ Self::SHORTEST }>(bytes)?;
        let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let length = usize::from(fixed[12] >> 4) * 4;
        if length < Self::SHORTEST {
            return Err(ParseError::DataOffset(fixed[12] >> 4));
        }
        let (header, payload) =
            bytes.split_at_checked(length).ok_or(ParseError::Truncated { found: bytes.len(), needed: length })?;
        let mut segment = Segment {
            seq: TcpSeq::new(long(4)),
            ack: TcpSeq::new(long(8)),
            flags: Flags::from_bits(fixed[13]),
            window: short(14),
            payload: u16::try_from(payload.len()).map_err(|_| ParseError::Oversized(payload.len()))?,
            ..Segment::default()
        };
        options::parse(&header[Self::SHORTEST..], &mut segment)?;
        Ok((Self { source: short(0), destination: short(2), segment }, payload))
    }

    /// Writes the header into `buffer`; returns its bytes.
    pub fn emit<'a>(&self, buffer: &'a mut [u8; Self::LONGEST]) -> &'a [u8] {
        let segment = &self.segment;
        let length = segment.header();
        buffer.fill(0);
        buffer[0..2].copy_from_slice(&self.source.to_be_bytes());
        buffer[2..4].copy_from_slice(&self.destination.to_be_bytes());
        buffer[4..8].copy_from_slice(&segment.seq.get().to_be_bytes());
        buffer[8..12].copy_from_slice(&segment.ack.get().to_be_bytes());
        buffer[12] = (length as u8 / 4) << 4;
        buffer[13] = segment.flags.bits();
        buffer[14..16].copy_from_slice(&segment.window.to_be_bytes());
        options::emit(segment, &mut buffer[Self::SHORTEST..length]);
        &buffer[..length]
    }
}
