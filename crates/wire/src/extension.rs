//! What Selvedge's datagrams carry beside RoCE's headers.
//!
//! | bytes | bits | field                                                                     |
//! |-------|------|---------------------------------------------------------------------------|
//! | 0-7   |      | time stamp: when the data packet left, in ps; acknowledgements echo it     |
//! | 8     | 7    | the packet was sent before                                                |
//! |       | 6    | three holes follow ([`crate::Hole`]): a NACK of MELO                      |
//! |       | 5..0 | reserved, 0                                                               |
//! | 9-11  |      | PSN that triggered an acknowledgement (IRN, section 3.1: the one-packet   |
//! |       |      | SACK of its NACK extension); 0 on data                                    |

use selvedge_units::{Instant, Psn};

use crate::error::{ParseError, take};

/// Selvedge's extension header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extension {
    /// When the data packet left its sender.
    pub sent_at: Instant,
    /// The packet was sent before. For counting only.
    pub retransmission: bool,
    /// Holes follow.
    pub holes: bool,
    /// The PSN that triggered an acknowledgement.
    pub sack: Psn,
}

impl Extension {
    /// Bytes of the header.
    pub const LENGTH: usize = 12;

    /// Reads the header; returns what follows, too.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&stamp, rest) = take::<8>(bytes)?;
        let (&[flags, s0, s1, s2], rest) = take::<4>(rest)?;
        if flags & 0x3f != 0 {
            return Err(ParseError::Reserved);
        }
        let extension = Self {
            sent_at: Instant::from_ps(u64::from_be_bytes(stamp)),
            retransmission: flags & 0x80 != 0,
            holes: flags & 0x40 != 0,
            sack: Psn::new(u32::from_be_bytes([0, s0, s1, s2])),
        };
        Ok((extension, rest))
    }

    /// The header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = self.sent_at.as_ps().to_be_bytes();
        let [_, s0, s1, s2] = self.sack.get().to_be_bytes();
        let flags = u8::from(self.retransmission) << 7 | u8::from(self.holes) << 6;
        [t0, t1, t2, t3, t4, t5, t6, t7, flags, s0, s1, s2]
    }
}
