//! The receiving end of a flow (NDP section 3.2): an answer to each packet, and a pull owed for it.

use selvedge_units::{Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data};

use crate::bitmap::{Bitmap, WIDEST_WINDOW};
use crate::role::{DataVerdict, Reply};

/// Arrival state of a flow.
#[derive(Clone, Debug)]
pub struct NdpReceiver {
    first: Psn,
    /// The lowest packet that has not arrived.
    expected: Seq,
    arrived: Bitmap,
    /// Pulls sent.
    pulls: u32,
}

impl NdpReceiver {
    /// Creates the receiver of a flow whose first packet is `first`.
    pub fn new(first: Psn) -> Self {
        Self { first, expected: Seq::new(0), arrived: Bitmap::default(), pulls: 0 }
    }

    /// Handles a packet or a trimmed header: acknowledges a whole packet, requests a trimmed one again. In either case
    /// a pull is owed, unless it would be useless.
    pub fn handle_data(&mut self, data: &Data, marked: bool) -> Reply {
        let seq = data.psn.near(self.expected, self.first);
        let Some(seq) = seq.filter(|&seq| seq < self.expected + WIDEST_WINDOW) else {
            return Reply { verdict: DataVerdict::Invalid, ack: None };
        };
        if data.trimmed {
            return Reply { verdict: DataVerdict::Refused, ack: Some(self.answer(data, AckKind::Nack, marked)) };
        }
        let is_fresh = seq >= self.expected && self.take(seq);
        let verdict = if is_fresh { DataVerdict::Accepted(seq) } else { DataVerdict::Duplicate };
        Reply { verdict, ack: Some(self.answer(data, AckKind::Ack, marked)) }
    }

    /// Returns the number of the next pull. Numbers are cumulative: a later pull compensates for one lost or late.
    pub fn pull(&mut self) -> u32 {
        self.pulls = self.pulls.wrapping_add(1);
        self.pulls
    }

    /// Returns the lowest packet that has not arrived.
    pub fn expected(&self) -> Psn {
        self.expected.to_psn(self.first)
    }

    /// Records an arrival; returns whether the packet is new.
    fn take(&mut self, seq: Seq) -> bool {
        if seq != self.expected {
            return self.arrived.insert(self.expected, seq);
        }
        self.expected = self.arrived.take_run(seq + 1);
        true
    }

    fn answer(&self, data: &Data, kind: AckKind, ecn_echo: bool) -> Ack {
        Ack { kind, ecn_echo, expected: self.expected(), sack: data.psn, msn: 0 }
    }
}
