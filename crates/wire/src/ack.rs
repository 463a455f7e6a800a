//! The BTH and AETH of an acknowledgement (InfiniBand architecture, volume 1, chapter 9).
//!
//! On a NACK, the BTH's PSN is the one that the receiver expects; on an ACK it is the one before, the last that arrived
//! in order.

use selvedge_units::Psn;

use crate::aeth::{Aeth, Syndrome};
use crate::bth::{Bth, Opcode};
use crate::error::ParseError;
use crate::holes::Holes;
use crate::packet::{Ack, AckKind, HoleNack};

impl Ack {
    /// Returns the headers of the acknowledgement; the BTH lacks its destination and partition.
    pub fn headers(&self) -> (Bth, Aeth) {
        let (syndrome, psn) = match self.kind {
            AckKind::Ack => (Syndrome::NO_CREDITS, Psn::new(self.expected.get().wrapping_sub(1))),
            AckKind::Nack => (Syndrome::SEQUENCE_ERROR, self.expected),
        };
        let bth = Bth { opcode: Opcode::ACKNOWLEDGE, becn: self.ecn_echo, psn, ..Bth::default() };
        (bth, Aeth { syndrome, msn: self.msn })
    }

    /// Returns the acknowledgement in these headers; `sack` is the packet that triggered it.
    pub(crate) fn from_headers(bth: &Bth, aeth: &Aeth, sack: Psn) -> Result<Self, ParseError> {
        let (kind, expected) = match aeth.syndrome {
            Syndrome::Ack(_) => (AckKind::Ack, Psn::new(bth.psn.get() + 1)),
            Syndrome::SEQUENCE_ERROR => (AckKind::Nack, bth.psn),
            Syndrome::NotReady(_) | Syndrome::Nak(_) => return Err(ParseError::Syndrome(aeth.emit()[0])),
        };
        Ok(Self { kind, ecn_echo: bth.becn, expected, sack, msn: aeth.msn })
    }
}

impl HoleNack {
    /// Returns the packet that triggered the NACK.
    pub const fn sack(&self) -> Psn {
        let ahead = end(&self.holes).wrapping_add(self.behind).wrapping_sub(self.expected.get() as u16);
        Psn::new(self.expected.get().wrapping_add(ahead as u32))
    }
    /// Returns the acknowledgement without its holes, and with a zero MSN.
    pub const fn without_holes(&self) -> Ack {
        Ack { kind: AckKind::Nack, ecn_echo: self.ecn_echo, expected: self.expected, sack: self.sack(), msn: 0 }
    }
}

impl Ack {
    /// Returns a NACK with the fields of this one and `holes`.
    pub const fn with_holes(&self, holes: Holes) -> HoleNack {
        let behind = (self.sack.get() as u16).wrapping_sub(end(&holes));
        HoleNack { ecn_echo: self.ecn_echo, expected: self.expected, holes, behind }
    }
}

/// Returns the low 16 bits of the PSN after the newest hole.
const fn end(holes: &Holes) -> u16 {
    holes[0].start.wrapping_add(holes[0].length)
}
