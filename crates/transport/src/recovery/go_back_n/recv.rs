//! The responder.

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::AckKind;

use super::{Acks, GoBackNConfig, Nacks};
use crate::on_chip::OnChip;
use crate::recovery::{Acceptance, Answer};
use crate::role::{Cx, Verdict};

/// The responder: takes packets in order and reports gaps.
#[derive(Clone, Debug)]
pub struct Recv {
    expected: Seq,
    /// Packets out of order are silently discarded before this instant. [`Instant::ZERO`]: a NACK would be due.
    silent_until: Instant,
    /// For how long one NACK silences its gap.
    nack_interval: Duration,
    /// One NACK silences other gaps, too.
    paced: bool,
    acks: bool,
}

impl Recv {
    /// A responder that expects the first packet.
    ///
    /// # Panics
    /// When the settings still say "auto".
    pub fn new(config: &GoBackNConfig) -> Self {
        assert!(config.acks != Acks::Auto, "acks still says \"auto\": resolve the configuration first");
        let nack_interval = match config.nack {
            Nacks::OncePerGap => Duration::MAX,
            Nacks::EveryPacket => Duration::ZERO,
            Nacks::Interval(interval) | Nacks::Paced(interval) => interval,
        };
        Self {
            expected: Seq::ZERO,
            silent_until: Instant::ZERO,
            nack_interval,
            paced: matches!(config.nack, Nacks::Paced(_)),
            acks: config.acks == Acks::PerPacket,
        }
    }
    /// The next `packets` will not come: an answer takes their places (InfiniBand's Reads, of which the request stands
    /// for as many packets as its answer has).
    pub fn skip(&mut self, packets: u64) {
        self.expected += packets;
    }
    #[inline]
    fn ack(&self) -> Option<AckKind> {
        self.acks.then_some(AckKind::Ack)
    }
    /// The packets that were expected have come.
    #[inline(always)]
    fn advance(&mut self, packets: u64) {
        self.expected += packets;
        if !self.paced {
            self.silent_until = Instant::ZERO;
        }
    }
}

impl Acceptance for Recv {
    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline(always)]
    fn takes_unanswered(&self) -> bool {
        !self.acks
    }

    #[inline(always)]
    fn take_unanswered(&mut self, packets: u64) {
        if packets > 0 {
            self.advance(packets);
        }
    }

    #[inline]
    fn on_data(&mut self, cx: &mut Cx<'_>, _: &mut OnChip, seq: Seq) -> Answer {
        if seq == self.expected {
            self.advance(1);
            return Answer::new(Verdict::Accepted(seq), self.ack());
        }
        if seq < self.expected {
            // The requester did not hear that it had arrived: say so again.
            return Answer::new(Verdict::Duplicate, self.ack());
        }
        cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
        let nack = cx.now >= self.silent_until;
        if nack {
            self.silent_until = cx.now.saturating_add(self.nack_interval);
        }
        Answer::new(Verdict::Refused, nack.then_some(AckKind::Nack))
    }
}
