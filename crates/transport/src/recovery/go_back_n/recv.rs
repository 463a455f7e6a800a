//! The responder.

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::AckKind;

use super::{Acks, GoBackNConfig, Nacks};
use crate::fabric::resolved;
use crate::on_chip::OnChip;
use crate::recovery::{Acceptance, Answer, Unanswered};
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
    /// A packet in order is acknowledged when so many have come since the last acknowledgement: 1 for each, 0 for none.
    every: u16,
    /// Packets in order since the last acknowledgement.
    unacknowledged: u16,
    /// A packet in order is also acknowledged so long after the last acknowledgement, or the first packet.
    interval: Duration,
    /// When that is; [`Instant::ZERO`] before the first packet.
    ack_due: Instant,
}

impl Recv {
    /// A responder that expects the first packet.
    ///
    /// # Panics
    /// When the settings still say "auto".
    pub fn new(config: &GoBackNConfig) -> Self {
        let (every, interval) = match config.acks {
            Acks::Auto | Acks::WithoutPfc => {
                panic!("acks still says {:?}: resolve the configuration first", config.acks)
            }
            Acks::None => (0, Duration::MAX),
            Acks::PerPacket => (1, Duration::MAX),
            Acks::Coalesced => {
                let interval = resolved(config.ack_interval, "ack-interval").unwrap_or(Duration::MAX);
                (config.ack_every, interval)
            }
        };
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
            every,
            unacknowledged: 0,
            interval,
            ack_due: Instant::ZERO,
        }
    }
    /// The next `packets` will not come: an answer takes their places (InfiniBand's Reads, of which the request stands
    /// for as many packets as its answer has).
    pub fn skip(&mut self, packets: u64) {
        self.expected += packets;
    }
    /// The packets that were expected have come.
    #[inline(always)]
    fn advance(&mut self, packets: u64) {
        self.expected += packets;
        if !self.paced {
            self.silent_until = Instant::ZERO;
        }
    }
    /// Whether the packet that has just been taken in order is acknowledged.
    #[inline(always)]
    fn acknowledges(&mut self, now: Instant, last: bool) -> bool {
        if self.every <= 1 {
            return self.every == 1;
        }
        self.unacknowledged += 1;
        if self.ack_due == Instant::ZERO {
            self.ack_due = now.saturating_add(self.interval);
        }
        last || self.unacknowledged >= self.every || now >= self.ack_due
    }
    /// An acknowledgement is sent, or a NACK, which acknowledges all that came before.
    #[inline(always)]
    fn on_answer(&mut self, now: Instant) {
        if self.every > 1 {
            self.unacknowledged = 0;
            self.ack_due = now.saturating_add(self.interval);
        }
    }
}

impl Acceptance for Recv {
    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline(always)]
    fn unanswered(&self) -> Unanswered {
        match self.every {
            0 => Unanswered::ALL,
            // The first packet of all begins the time until the first acknowledgement.
            _ if self.ack_due == Instant::ZERO => Unanswered::NONE,
            every => Unanswered { packets: u64::from(every - 1 - self.unacknowledged), before: self.ack_due },
        }
    }

    #[inline(always)]
    fn take_unanswered(&mut self, packets: u64) {
        if packets > 0 {
            self.advance(packets);
            if self.every > 1 {
                self.unacknowledged += packets as u16;
            }
        }
    }

    #[inline]
    fn on_data(&mut self, cx: &mut Cx<'_>, _: &mut OnChip, seq: Seq, last: bool) -> Answer {
        let (verdict, ack) = if seq == self.expected {
            self.advance(1);
            (Verdict::Accepted(seq), self.acknowledges(cx.now, last).then_some(AckKind::Ack))
        } else if seq < self.expected {
            // The requester did not hear that it had arrived: say so again.
            (Verdict::Duplicate, (self.every > 0).then_some(AckKind::Ack))
        } else {
            cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
            let nack = cx.now >= self.silent_until;
            if nack {
                self.silent_until = cx.now.saturating_add(self.nack_interval);
            }
            (Verdict::Refused, nack.then_some(AckKind::Nack))
        };
        if ack.is_some() {
            self.on_answer(cx.now);
        }
        Answer::new(verdict, ack)
    }
}
