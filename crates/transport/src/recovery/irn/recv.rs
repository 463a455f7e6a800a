//! The receiver: keeps what arrives out of order, answers every packet.

use alloc::boxed::Box;

use selvedge_telemetry::Trace;
use selvedge_units::Seq;
use selvedge_wire::{AckKind, Holes};

use super::IrnConfig;
use super::config::WIDEST_WITH_HOLES;
use crate::bitmap::Bitmap;
use crate::on_chip::OnChip;
use crate::recovery::holes::NewestHoles;
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
    /// Where NACKs carry them. Boxed: few flows have them.
    holes: Option<Box<NewestHoles>>,
}

impl Recv {
    /// A receiver that expects the first packet.
    ///
    /// # Panics
    /// When the settings still say "auto".
    pub fn new(config: &IrnConfig) -> Self {
        let holes = config.holes.then(Box::default);
        let widest = if holes.is_some() { WIDEST_WITH_HOLES } else { u64::MAX };
        let window = config.window().min(widest);
        Self { expected: Seq::ZERO, end: Seq::ZERO, arrived: Bitmap::default(), window, holes }
    }

    /// Whether packet `seq`, which lies at or beyond the expected one, has arrived.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        seq < self.end && self.arrived.get(self.expected, seq)
    }

    /// Packet `seq` has arrived, which was missing.
    fn note(&mut self, seq: Seq) {
        let Some(holes) = &mut self.holes else { return };
        let high = self.end.max(self.expected);
        if seq > high {
            holes.add(high, seq);
        } else if seq < high {
            holes.fill(seq);
        }
    }
}

impl Acceptance for Recv {
    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline(always)]
    fn on_data(&mut self, cx: &mut Cx<'_>, _: &mut OnChip, seq: Seq, _: bool) -> Answer {
        // In order, and nothing waits: most packets touch no more than this.
        if seq == self.expected && self.end <= seq {
            self.expected += 1;
            return Answer::new(Verdict::Accepted(seq), Some(AckKind::Ack));
        }
        // Taken apart, so that only this one comes from memory.
        let Answer { verdict, ack } = self.on_disorder(cx, seq);
        Answer { verdict, ack }
    }

    #[inline]
    fn holes(&self) -> Option<Holes> {
        self.holes.as_ref().map(|holes| holes.as_sent())
    }
}

impl Recv {
    /// A packet out of order, or one that others wait for.
    #[inline(never)]
    fn on_disorder(&mut self, cx: &mut Cx<'_>, seq: Seq) -> Answer {
        let Some(ahead) = seq.checked_since(self.expected) else {
            return Answer::new(Verdict::Duplicate, Some(AckKind::Ack));
        };
        if ahead == 0 {
            self.note(seq);
            self.expected = self.arrived.take_run(seq + 1);
            return Answer::new(Verdict::Accepted(seq), Some(AckKind::Ack));
        }
        if ahead >= self.window {
            return Answer::new(Verdict::Invalid, None);
        }
        cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
        // Every out-of-order packet is answered with a NACK, a repeated one too (section 3.1).
        let fresh = self.arrived.insert(self.expected, seq);
        if fresh {
            self.note(seq);
        }
        self.end = self.end.max(seq + 1);
        let verdict = if fresh { Verdict::Accepted(seq) } else { Verdict::Duplicate };
        Answer::new(verdict, Some(AckKind::Nack))
    }
}
