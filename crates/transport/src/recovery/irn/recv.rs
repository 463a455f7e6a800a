//! IRN's receiver: keeps packets that arrive out of order, and answers every packet.

use alloc::boxed::Box;

use selvedge_telemetry::Trace;
use selvedge_units::Seq;
use selvedge_wire::{AckKind, Holes};

use super::IrnParams;
use super::config::{WIDEST_WITH_HOLES, window};
use crate::bitmap::Bitmap;
use crate::recovery::holes::NewestHoles;
use crate::recovery::{Answer, RecoveryReceiver, SchemeParams};
use crate::role::{Cx, DataVerdict};

/// IRN's receiver (section 3.1; the `receiveData` module of section 6.2).
#[derive(Clone, Debug)]
pub struct Recv {
    expected: Seq,
    /// One past the highest packet that arrived out of order. No packet is held unless `end` lies beyond `expected`.
    end: Seq,
    /// The packets between `expected` and `end` that have arrived.
    arrived: Bitmap,
    /// The farthest that a packet may lie ahead, because BDP-FC limits what an honest sender has in flight (section
    /// 3.2).
    window: u64,
    /// The newest holes, where NACKs carry them. Boxed: few flows have them.
    holes: Option<Box<NewestHoles>>,
}

impl Recv {
    /// Creates a receiver that expects the first packet.
    pub fn new(params: &IrnParams) -> Self {
        Self::with_window(window(params.bdp_cap()), params.holes)
    }
    /// Creates a receiver that takes packets up to `window` ahead, and whose NACKs carry `holes` or not.
    pub(crate) fn with_window(window: u64, holes: bool) -> Self {
        let holes = holes.then(Box::default);
        let widest = if holes.is_some() { WIDEST_WITH_HOLES } else { u64::MAX };
        Self { expected: Seq::ZERO, end: Seq::ZERO, arrived: Bitmap::default(), window: window.min(widest), holes }
    }

    /// Returns whether packet `seq`, which lies at or beyond the expected one, has arrived.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        seq < self.end && self.arrived.get(self.expected, seq)
    }

    /// Updates the holes after the first arrival of packet `seq`.
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

impl RecoveryReceiver for Recv {
    type Shared = ();

    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline(always)]
    fn handle_data(&mut self, cx: &mut Cx<'_>, _: &mut (), seq: Seq, _: bool) -> Answer {
        // Fast path of most packets: in order, and no packet is held.
        if seq == self.expected && self.end <= seq {
            self.expected += 1;
            return Answer::new(DataVerdict::Accepted(seq), Some(AckKind::Ack));
        }
        // Rebuilt from its parts, so that only this answer is read from memory.
        let Answer { verdict, ack } = self.on_disorder(cx, seq);
        Answer { verdict, ack }
    }

    #[inline]
    fn holes(&self) -> Option<Holes> {
        self.holes.as_ref().map(|holes| holes.as_sent())
    }
}

impl Recv {
    /// Handles an out-of-order packet, or one that fills the first gap.
    #[inline(never)]
    fn on_disorder(&mut self, cx: &mut Cx<'_>, seq: Seq) -> Answer {
        let Some(ahead) = seq.checked_since(self.expected) else {
            return Answer::new(DataVerdict::Duplicate, Some(AckKind::Ack));
        };
        if ahead == 0 {
            self.note(seq);
            self.expected = self.arrived.take_run(seq + 1);
            return Answer::new(DataVerdict::Accepted(seq), Some(AckKind::Ack));
        }
        if ahead >= self.window {
            return Answer::new(DataVerdict::Invalid, None);
        }
        cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
        // Every out-of-order packet is answered with a NACK, including a repeated one (section 3.1).
        let fresh = self.arrived.insert(self.expected, seq);
        if fresh {
            self.note(seq);
        }
        self.end = self.end.max(seq + 1);
        let verdict = if fresh { DataVerdict::Accepted(seq) } else { DataVerdict::Duplicate };
        Answer::new(verdict, Some(AckKind::Nack))
    }
}
