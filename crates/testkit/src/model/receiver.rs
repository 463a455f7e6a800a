//! What any receiver must do, from its definition.

use std::collections::BTreeSet;

use selvedge_transport::Verdict;
use selvedge_transport::recovery::Answer;
use selvedge_units::Seq;
use selvedge_wire::AckKind;

/// A receiver that remembers every packet it ever accepted.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    accepted: BTreeSet<Seq>,
    /// Packets from the expected one on that it keeps out of order; 1 keeps none (go-back-N, with
    /// a NACK for every packet it refuses).
    window: u64,
}

impl Receiver {
    /// IRN's, with this window.
    pub fn irn(window: u64) -> Self {
        Self { window, ..Self::default() }
    }
    /// Go-back-N's, with a NACK for every packet out of order.
    pub fn go_back_n() -> Self {
        Self { window: 1, ..Self::default() }
    }
    /// The first packet that it has not accepted.
    pub fn expected(&self) -> Seq {
        (0..).map(Seq::new).find(|seq| !self.accepted.contains(seq)).expect("it has not accepted everything")
    }
    /// Takes packet `seq`.
    pub fn on_data(&mut self, seq: Seq) -> Answer {
        let expected = self.expected();
        let (verdict, ack) = if seq < expected {
            (Verdict::Duplicate, Some(AckKind::Ack))
        } else if seq == expected {
            (Verdict::Accepted(seq), Some(AckKind::Ack))
        } else if self.window == 1 {
            (Verdict::Refused, Some(AckKind::Nack))
        } else if seq - expected >= self.window {
            (Verdict::Invalid, None)
        } else if self.accepted.contains(&seq) {
            (Verdict::Duplicate, Some(AckKind::Nack))
        } else {
            (Verdict::Accepted(seq), Some(AckKind::Nack))
        };
        if let Verdict::Accepted(seq) = verdict {
            self.accepted.insert(seq);
        }
        Answer { verdict, ack }
    }
}
