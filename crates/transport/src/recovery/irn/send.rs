//! IRN's sender: one of two state machines, with the timer and the fetch delay.

use alloc::boxed::Box;
use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::AckKind;

use super::config::window;
use super::hls::Hls;
use super::paper::Paper;
use super::{IrnParams, Mode};
use crate::recovery::rto::RtoEstimator;
use crate::recovery::timer::Timer;
use crate::recovery::{AckOutcome, ParsedAck, Recovery, SchemeParams};
use crate::role::{Cx, Next};

/// The sender: one of two state machines, with the timer and the fetch delay.
#[derive(Clone, Debug)]
pub struct Send {
    machine: Machine,
    timer: Timer,
    /// The estimator, where timeouts follow round-trip times. Boxed: few flows have one.
    estimator: Option<Box<RtoEstimator>>,
    /// Limit on packets in flight (BDP-FC).
    cap: u64,
    /// The time at which the next lost packet has been fetched from the host (section 6.3).
    fetched: Instant,
    fetch_delay: Duration,
}

#[derive(Clone, Debug)]
enum Machine {
    Paper(Paper),
    Hls(Hls),
}

impl Send {
    /// Creates a sender that has sent nothing.
    pub fn new(params: &IrnParams) -> Self {
        let cap = window(params.bdp_cap());
        Self {
            machine: match params.mode {
                Mode::Refined | Mode::Paper => Machine::Paper(Paper::new(params)),
                Mode::Hls => Machine::Hls(Hls::new(cap, params.rto_low_packets)),
            },
            timer: params.timer,
            estimator: params.estimator.map(Box::new),
            cap,
            fetched: Instant::ZERO,
            fetch_delay: params.retransmit_delay,
        }
    }
    #[inline]
    fn lost(&self) -> Option<Seq> {
        match &self.machine {
            Machine::Paper(paper) => paper.lost(),
            Machine::Hls(hls) => hls.lost(),
        }
    }
    /// Starts the fetch of a lost packet if that packet was just detected: when recovery begins, or at the look-ahead
    /// that follows the retransmission before it.
    #[inline]
    fn note_lost(&mut self, now: Instant, before: Option<Seq>) {
        if !self.fetch_delay.is_zero() && self.lost() != before {
            self.fetched = now.saturating_add(self.fetch_delay);
        }
    }
    /// Returns the decision to retransmit `seq`, once the packet has been fetched.
    #[inline]
    fn resend(&self, now: Instant, seq: Seq) -> Next {
        if now >= self.fetched { Next::packet(seq, true) } else { Next::Wait(self.fetched) }
    }
    /// Handles an acknowledgement, with holes if there are any.
    #[inline(always)]
    fn process_ack(&mut self, cx: &mut Cx<'_>, heard: ParsedAck, holes: Option<&[Range<Seq>; 3]>) -> AckOutcome {
        let before = self.lost();
        let nack = heard.kind == AckKind::Nack;
        let (outcome, advanced) = match &mut self.machine {
            Machine::Paper(paper) => {
                let effect = paper.handle_ack(cx, heard.expected, nack.then_some(heard.sack), holes, heard.rtt);
                (AckOutcome { delivered: effect.delivered, loss: effect.entered }, effect.advanced)
            }
            Machine::Hls(hls) => {
                let outcome = hear_in_hardware(hls, heard);
                (outcome, outcome.delivered > 0)
            }
        };
        self.note_lost(cx.now, before);
        if self.estimator.is_some() {
            self.estimate(heard.rtt, advanced);
        }
        if advanced {
            if self.outstanding() == 0 {
                self.timer.stop();
            } else {
                self.timer.restart(cx.now);
            }
        } else {
            self.timer.on_answer(cx.now);
        }
        outcome
    }
    /// Passes a round-trip time to the estimator; `advanced` says whether the cumulative acknowledgement moved.
    #[inline(never)]
    fn estimate(&mut self, rtt: Duration, advanced: bool) {
        let Some(estimator) = &mut self.estimator else { return };
        estimator.on_sample(rtt);
        // A running timer keeps its timeout (RFC 6298, rule 5.3): the new one may have passed already.
        if advanced {
            self.timer.set(estimator.rto());
        }
    }
    #[inline]
    fn outstanding(&self) -> u64 {
        self.sent() - self.acked()
    }
}

/// Passes an acknowledgement to the hardware's state machine, and returns the effect.
#[inline(never)]
fn hear_in_hardware(hls: &mut Hls, heard: ParsedAck) -> AckOutcome {
    let (acked, was_pending) = (hls.acked(), hls.has_pending());
    // The hardware does not check acknowledgements; a SACK without meaning is treated like an ACK.
    let nack = heard.kind == AckKind::Nack && heard.sack > heard.expected.max(acked) && heard.sack < hls.next();
    let was_in_recovery = hls.columns().in_recovery;
    hls.receive_ack(heard.expected, heard.sack, nack);
    let delivered = hls.acked() - acked;
    let loss = !was_in_recovery && !was_pending && hls.has_pending();
    AckOutcome { delivered, loss }
}

/// Makes the hardware's state machine send `seq`, which it has announced.
#[inline(never)]
fn send_in_hardware(hls: &mut Hls, cx: &mut Cx<'_>, seq: Seq) {
    let is_new = seq == hls.next();
    let limit = if is_new { seq + 1 } else { seq };
    // A hole that was not searched for yet takes two calls; the first call has nothing to send.
    let sent = hls.tx_free(limit).or_else(|| {
        cx.trace(|| Trace::Searched);
        hls.tx_free(limit)
    });
    debug_assert_eq!(sent, Some(seq), "the hardware sends what was announced");
    if !is_new {
        cx.trace(|| Trace::Retransmitted { seq });
    }
}

impl Recovery for Send {
    type Shared = ();

    #[inline]
    fn acked(&self) -> Seq {
        match &self.machine {
            Machine::Paper(paper) => paper.acked(),
            Machine::Hls(hls) => hls.acked(),
        }
    }
    #[inline]
    fn sent(&self) -> Seq {
        match &self.machine {
            Machine::Paper(paper) => paper.next(),
            Machine::Hls(hls) => hls.next(),
        }
    }
    #[inline]
    fn in_flight(&self) -> u64 {
        match &self.machine {
            Machine::Paper(paper) => self.outstanding() - paper.sacked(),
            // The hardware does not subtract selectively acknowledged packets.
            Machine::Hls(hls) => hls.in_flight(),
        }
    }
    #[inline]
    fn has_lost(&self) -> bool {
        self.lost().is_some()
    }

    #[inline(always)]
    fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next {
        match &self.machine {
            Machine::Paper(paper) => match paper.lost() {
                Some(seq) if now >= self.fetched => Next::packet(seq, true),
                // New packets use the link while a lost packet is fetched.
                _ if window_open && paper.next() < supplied && self.outstanding() < self.cap => {
                    Next::packet(paper.next(), false)
                }
                Some(_) => Next::Wait(self.fetched),
                None => Next::Idle,
            },
            // The hardware has no fetch delay: a pending retransmission delays new packets, too.
            Machine::Hls(hls) => match hls.lost() {
                Some(seq) if hls.has_pending() => self.resend(now, seq),
                _ if window_open && hls.offers_new(supplied) => Next::packet(hls.next(), false),
                Some(seq) => self.resend(now, seq),
                None => Next::Idle,
            },
        }
    }

    #[inline(always)]
    fn on_sent(&mut self, cx: &mut Cx<'_>, _: &mut (), seq: Seq) {
        let before = self.lost();
        match &mut self.machine {
            Machine::Paper(paper) => paper.on_sent(cx, seq),
            Machine::Hls(hls) => send_in_hardware(hls, cx, seq),
        }
        self.note_lost(cx.now, before);
        if seq == self.acked() {
            self.timer.on_oldest_sent(cx.now);
        }
        self.timer.ensure_running(cx.now);
    }

    #[inline(always)]
    fn handle_ack(&mut self, cx: &mut Cx<'_>, _: &mut (), heard: ParsedAck) -> AckOutcome {
        self.process_ack(cx, heard, None)
    }
    #[inline(never)]
    fn handle_holes(&mut self, cx: &mut Cx<'_>, _: &mut (), heard: ParsedAck, holes: &[Range<Seq>; 3]) -> AckOutcome {
        self.process_ack(cx, heard, Some(holes))
    }

    #[inline]
    fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>, _: &mut ()) -> bool {
        let before = self.lost();
        let is_too_soon = self.timer.is_quick()
            && match &mut self.machine {
                Machine::Paper(paper) => !self.timer.is_few(paper.next() - paper.acked()),
                Machine::Hls(hls) => hls.timeout(true, 1),
            };
        if is_too_soon {
            let until = self.timer.extend();
            // RTO_high may have passed as well, if this call comes late.
            if until > cx.now {
                cx.trace(|| Trace::TimeoutExtended { until });
                return false;
            }
        }
        cx.trace(|| Trace::TimedOut { acked: self.acked(), quick: self.timer.is_quick() });
        match &mut self.machine {
            Machine::Paper(paper) => paper.handle_timeout(cx),
            // The same packet is marked again if RTO_low marked it before.
            Machine::Hls(hls) => {
                hls.timeout(false, 1);
            }
        }
        if let Some(estimator) = &mut self.estimator {
            estimator.back_off();
            self.timer.set(estimator.rto());
        }
        self.timer.restart(cx.now);
        self.note_lost(cx.now, before);
        true
    }
    fn handle_not_ready(&mut self, cx: &mut Cx<'_>, _: &mut ()) {
        if self.outstanding() == 0 {
            return;
        }
        let before = self.lost();
        match &mut self.machine {
            Machine::Paper(paper) => paper.handle_not_ready(cx),
            // The reaction to a timeout is the same.
            Machine::Hls(hls) => {
                hls.timeout(false, 1);
            }
        }
        self.timer.restart(cx.now);
        self.note_lost(cx.now, before);
    }
}
