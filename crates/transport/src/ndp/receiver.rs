//! The receiving end of a flow (NDP section 3.2): an answer to each packet, and a pull owed for it.

use selvedge_units::{Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data};

use crate::bitmap::{Bitmap, WIDEST_WINDOW};
use crate::role::{Reply, Verdict};

/// What has arrived.
#[derive(Clone, Debug)]
pub struct NdpReceiver {
    first: Psn,
    /// Everything before it has arrived.
    expected: Seq,
    arrived: Bitmap,
    /// Pulls sent.
    pulls: u32,
}

impl NdpReceiver {
    /// Expects a flow whose first packet is `first`.
    pub fn new(first: Psn) -> Self {
        Self { first, expected: Seq::new(0), arrived: Bitmap::default(), pulls: 0 }
    }

    /// A packet has arrived, or what is left of it: acknowledged where it is whole, and else asked for again. In either
    /// case a pull is owed, unless it makes no sense.
    pub fn on_data(&mut self, data: &Data, marked: bool) -> Reply {
        let seq = data.psn.near(self.expected, self.first);
        let Some(seq) = seq.filter(|&seq| seq < self.expected + WIDEST_WINDOW) else {
            return Reply { verdict: Verdict::Invalid, ack: None };
        };
        if data.trimmed {
            return Reply { verdict: Verdict::Refused, ack: Some(self.answer(data, AckKind::Nack, marked)) };
        }
        let is_fresh = seq >= self.expected && self.take(seq);
        let verdict = if is_fresh { Verdict::Accepted(seq) } else { Verdict::Duplicate };
        Reply { verdict, ack: Some(self.answer(data, AckKind::Ack, marked)) }
    }

    /// The number of the next pull: a pull that is lost, or late, is made good by the one after it.
    pub fn pull(&mut self) -> u32 {
        self.pulls = self.pulls.wrapping_add(1);
        self.pulls
    }

    /// Everything before it has arrived.
    pub fn expected(&self) -> Psn {
        self.expected.to_psn(self.first)
    }

    /// Whether this packet arrives for the first time.
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
