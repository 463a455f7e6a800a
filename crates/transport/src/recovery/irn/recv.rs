//! The receiver: keeps what arrives out of order, answers every packet.

use selvedge_telemetry::Trace;
use selvedge_units::Seq;
use selvedge_wire::AckKind;

use super::IrnConfig;
use crate::bitmap::Bitmap;
use crate::on_chip::OnChip;
use crate::recovery::{Acceptance, Answer};
use crate::role::{Cx, Verdict};

/// The receiver (section 3.1; the `receiveData` module of section 6.2).
#[derive(Clone, Debug)]
pub struct Recv {
    expected: Seq,
    /// One past the highest packet that arrived out of order. Nothing is held unless it lies
    /// beyond `expected`.
    end: Seq,
    /// Which packets between `expected` and `end` have arrived.
    arrived: Bitmap,
    /// BDP-FC bounds what an honest sender has in flight, and with it how far ahead a packet may be
    /// (section 3.2).
    window: u64,
}

impl Recv {
    /// A receiver that expects the first packet.
    ///
    /// # Panics
    /// When the settings still say "auto".
    pub fn new(config: &IrnConfig) -> Self {
        Self { expected: Seq::ZERO, end: Seq::ZERO, arrived: Bitmap::default(), window: config.window() }
    }
}

impl Acceptance for Recv {
    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline]
    fn on_data(&mut self, cx: &mut Cx<'_>, _: &mut OnChip, seq: Seq) -> Answer {
        let Some(ahead) = seq.checked_since(self.expected) else {
            return Answer::new(Verdict::Duplicate, Some(AckKind::Ack));
        };
        if ahead == 0 {
            self.expected += 1;
            if self.end > self.expected {
                self.expected = self.arrived.take_run(self.expected);
            }
            return Answer::new(Verdict::Accepted(seq), Some(AckKind::Ack));
        }
        if ahead >= self.window {
            return Answer::new(Verdict::Invalid, None);
        }
        cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
        self.end = self.end.max(seq + 1);
        // Every out-of-order packet is answered with a NACK, a repeated one too (section 3.1).
        let fresh = self.arrived.insert(self.expected, seq);
        let verdict = if fresh { Verdict::Accepted(seq) } else { Verdict::Duplicate };
        Answer::new(verdict, Some(AckKind::Nack))
    }
}
