//! A reference model of packet receivers, by definition.

use std::collections::BTreeSet;

use selvedge_transport::DataVerdict;
use selvedge_transport::recovery::Answer;
use selvedge_units::Seq;
use selvedge_wire::AckKind;

/// A receiver that records every accepted packet.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    accepted: BTreeSet<Seq>,
    /// Size of the window from the expected packet on, within which packets are kept out of order; 1 keeps none
    /// (go-back-N, with a NACK for every refused packet).
    window: u64,
}

impl Receiver {
    /// Creates IRN's receiver with this window.
    pub fn irn(window: u64) -> Self {
        Self { window, ..Self::default() }
    }
    /// Creates go-back-N's receiver, with a NACK for every packet out of order.
    pub fn go_back_n() -> Self {
        Self { window: 1, ..Self::default() }
    }
    /// Returns the first packet not accepted yet.
    pub fn expected(&self) -> Seq {
        (0..).map(Seq::new).find(|seq| !self.accepted.contains(seq)).expect("some packet is not accepted yet")
    }
    /// Handles packet `seq`; returns the answer.
    pub fn handle_data(&mut self, seq: Seq) -> Answer {
        let expected = self.expected();
        let (verdict, ack) = if seq < expected {
            (DataVerdict::Duplicate, Some(AckKind::Ack))
        } else if seq == expected {
            (DataVerdict::Accepted(seq), Some(AckKind::Ack))
        } else if self.window == 1 {
            (DataVerdict::Refused, Some(AckKind::Nack))
        } else if seq - expected >= self.window {
            (DataVerdict::Invalid, None)
        } else if self.accepted.contains(&seq) {
            (DataVerdict::Duplicate, Some(AckKind::Nack))
        } else {
            (DataVerdict::Accepted(seq), Some(AckKind::Nack))
        };
        if let DataVerdict::Accepted(seq) = verdict {
            self.accepted.insert(seq);
        }
        Answer { verdict, ack }
    }
}
