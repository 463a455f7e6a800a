//! The sender of one flow: any loss recovery, any congestion control, and pacing.

use core::ops::Range;

use selvedge_units::{Bytes, Instant, Psn, Rate, Seq};
use selvedge_wire::{Ack, HoleNack, Holes, PathRecord};

use crate::congestion::{AnyCongestion, Congestion, CongestionConfig, CongestionParams, Signal, Tuning};
use crate::fabric::{Fabric, SettingError};
use crate::pacing::Pacing;
use crate::recovery::{AckOutcome, AnyRecovery, Recovery, RecoveryConfig, RecoveryParams, Scheme};
use crate::role::{Cx, HoldReason, Limits, Next, Segment};

/// Parameters of a sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SenderParams {
    /// Loss recovery.
    pub recovery: RecoveryParams,
    /// Congestion control.
    pub congestion: CongestionParams,
    /// Size of a full data packet on the wire: MTU, headers and gap. The unit of congestion windows.
    pub frame: Bytes,
}

impl SenderParams {
    /// Returns the parameters of a sender on `fabric`: every "auto" is replaced by its value.
    ///
    /// # Errors
    /// When a setting cannot work.
    pub fn resolve(
        recovery: impl Into<RecoveryConfig>,
        congestion: impl Into<CongestionConfig>,
        fabric: &Fabric,
    ) -> Result<Self, SettingError> {
        let (mut recovery, mut congestion) = (recovery.into(), congestion.into());
        congestion.resolve(fabric);
        recovery.resolve(&Fabric { acks: congestion.needs().acks, ..*fabric });
        let (recovery, congestion) = (recovery.params()?, congestion.params()?);
        Ok(Self { recovery, congestion, frame: fabric.frame + fabric.gap })
    }
}

/// Counters of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderStats {
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Data packets retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
}

/// The sender of one flow.
///
/// ```
/// use selvedge_transport::congestion::none::NoneConfig;
/// use selvedge_transport::recovery::irn::IrnConfig;
/// use selvedge_transport::{Cx, Fabric, SchemeParams, Segment, Sender, SenderParams};
/// use selvedge_units::{Instant, Psn, Seq};
///
/// let params = SenderParams::resolve(IrnConfig::default(), NoneConfig::default(), &Fabric::IRN_PAPER)?;
/// let mut sender = Sender::new(&params, Psn::new(0));
/// let mut shared = params.recovery.shared();
/// sender.supply(1);
/// let first = sender.poll_transmit(&mut Cx::at(Instant::ZERO), &mut shared, |_| params.frame);
/// assert_eq!(first, Some(Segment { seq: Seq::ZERO, retransmission: false }));
/// assert_eq!(sender.poll_transmit(&mut Cx::at(Instant::ZERO), &mut shared, |_| params.frame), None);
/// # Ok::<(), selvedge_transport::SettingError>(())
/// ```
///
/// Fields that every flow uses come first; congestion control, which many flows do not have, comes last.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender<R = AnyRecovery, C = AnyCongestion> {
    pacing: Pacing,
    /// Congestion control's window, updated whenever it may have changed.
    window: Bytes,
    /// One past the last packet that the application has supplied.
    supplied: Seq,
    /// The time of the latest call.
    seen: Instant,
    stats: SenderStats,
    frame: u32,
    first_psn: Psn,
    recovery: R,
    congestion: C,
}

impl Sender {
    /// Returns how many bytes from the beginning of a sender the handling of packets touches; for drivers that prefetch
    /// them.
    pub fn busy_bytes(params: &SenderParams) -> usize {
        match params.congestion {
            // Only the tag of congestion control is read.
            CongestionParams::None(_) => core::mem::offset_of!(Self, congestion) + 1,
            _ => size_of::<Self>(),
        }
    }

    /// Creates a sender whose first packet will carry `first_psn`.
    ///
    /// # Panics
    /// When a frame exceeds 4 GB.
    pub fn new(params: &SenderParams, first_psn: Psn) -> Self {
        let recovery = AnyRecovery::from(&params.recovery);
        let congestion = AnyCongestion::from(&params.congestion);
        Self::with(recovery, congestion, params.frame, first_psn)
    }
}

impl<R: Recovery, C: Congestion> Sender<R, C> {
    /// Creates a sender around `recovery` and `congestion`; see [`SenderParams`] and [`Sender::new`].
    ///
    /// # Panics
    /// When a frame exceeds 4 GB.
    pub fn with(recovery: R, congestion: C, frame: Bytes, first_psn: Psn) -> Self {
        let frame = u32::try_from(frame.get()).expect("a frame is smaller than 4 GB");
        let (pacing, window) = (Pacing::at(congestion.rate()), congestion.window());
        Self {
            recovery,
            congestion,
            pacing,
            window,
            supplied: Seq::ZERO,
            seen: Instant::ZERO,
            stats: SenderStats::default(),
            frame,
            first_psn,
        }
    }

    /// Sets the number of links on the flow's path, if it is known. Must be called before the first packet is sent.
    pub fn set_path(&mut self, links: u32) {
        self.congestion.on_path(links);
    }

    /// Adds `packets` packets that the application wants to send.
    #[inline]
    pub fn supply(&mut self, packets: u64) {
        self.supplied += packets;
    }

    /// Returns the sender's decision at `now`, on which [`Sender::poll_transmit`] and [`Sender::poll_timeout`] are
    /// based.
    ///
    /// Retransmissions of a selective scheme ignore a closed window: they replace a packet that is counted as in
    /// flight. Pacing applies to every packet.
    #[inline(always)]
    pub fn next(&self, now: Instant) -> Next {
        match self.recovery.next(now, self.supplied, self.is_window_open()) {
            Next::Send(_) if now < self.pacing.ready() => Next::Wait(self.pacing.ready()),
            next => next,
        }
    }

    /// Returns when the sender will send if no input arrives, which is `now` or later, and [`Sender::timers`]. For
    /// callers that do not need the packet itself, which [`Sender::next`] returns.
    #[inline(always)]
    pub fn next_times(&self, now: Instant) -> (Instant, Instant) {
        let (sends_at, deadline) = self.recovery.next_times(now, self.supplied, self.is_window_open());
        (sends_at.max(self.pacing.ready()), deadline.min(self.congestion.deadline()))
    }

    /// Returns the reason behind [`Sender::next`]: what the sender waits for at `now`.
    pub fn hold(&self, now: Instant) -> HoldReason {
        match self.next(now) {
            Next::Send(_) => return HoldReason::Link,
            Next::Wait(until) if self.pacing.ready() == until => return HoldReason::Pacing(until),
            Next::Wait(until) => return HoldReason::Recovery(until),
            Next::Idle => {}
        }
        match self.recovery.next(now, self.supplied, true) {
            Next::Idle if self.recovery.sent() < self.supplied || self.recovery.has_lost() => HoldReason::Cap,
            Next::Idle => HoldReason::Acks,
            Next::Send(_) | Next::Wait(_) => HoldReason::Window,
        }
    }

    /// Returns the packet to send now, if any; to be called while the link is free. `frame` returns a packet's size on
    /// the wire, headers and gap included, and is called only when sizes matter. `shared` is the state that all senders
    /// of a NIC share, built by [`SchemeParams::shared`](crate::SchemeParams::shared).
    #[inline(always)]
    pub fn poll_transmit(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut R::Shared,
        frame: impl FnOnce(Seq) -> Bytes,
    ) -> Option<Segment> {
        self.seen = cx.now;
        let window_open = self.is_window_open();
        let segment = self.recovery.send(cx, shared, self.supplied, window_open, self.pacing.ready())?;
        if let Some(bytes) = self.pacing.on_sent(cx.now, || frame(segment.seq)) {
            self.tell(cx, Signal::Sent { bytes });
        }
        self.stats.sent += 1;
        self.stats.retransmissions += u64::from(segment.retransmission);
        Some(segment)
    }

    /// Returns the packets that repeated calls of [`Sender::poll_transmit`] will return if no other input arrives: all
    /// of them new, and available at any time, while timers run. May be shorter than that, down to empty.
    #[inline]
    pub fn train(&self) -> Range<Seq> {
        let sent = self.recovery.sent();
        let unlimited = self.window == Bytes::MAX && self.pacing.rate() == Rate::MAX;
        sent..if unlimited { sent + self.recovery.train(self.supplied) } else { sent }
    }

    /// Handles the sending of the next `packets` of a [`train`](Sender::train), the last of which left before `now`;
    /// replaces calls of [`Sender::poll_transmit`].
    #[inline]
    pub fn on_train_sent(&mut self, now: Instant, packets: u64) {
        self.seen = now;
        self.stats.sent += packets;
        self.recovery.on_train_sent(packets);
    }

    /// Handles an acknowledgement triggered by a packet that left at `sent_at` (the time stamp that the acknowledgement
    /// echoes). An acknowledgement of packets never sent is ignored.
    #[inline(always)]
    pub fn handle_ack(&mut self, cx: &mut Cx<'_>, shared: &mut R::Shared, ack: &Ack, sent_at: Instant) {
        self.seen = cx.now;
        let heard = self.recovery.process_ack(cx, shared, ack, self.first_psn, sent_at);
        if let Some(outcome) = heard {
            self.on_outcome(cx, outcome, ack, sent_at);
        }
    }

    /// Handles a NACK that carries holes; otherwise like [`Sender::handle_ack`].
    pub fn handle_hole_nack(&mut self, cx: &mut Cx<'_>, shared: &mut R::Shared, nack: &HoleNack, sent_at: Instant) {
        self.on_nack_and_holes(cx, shared, &nack.without_holes(), nack.holes, sent_at);
    }
    /// Handles a NACK that carries holes and also names the packet that triggered it; otherwise like
    /// [`Sender::handle_ack`].
    pub fn on_nack_and_holes(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut R::Shared,
        ack: &Ack,
        holes: Holes,
        sent_at: Instant,
    ) {
        self.seen = cx.now;
        let Some(heard) = self.recovery.expand(cx, ack, self.first_psn, sent_at) else { return };
        let holes = holes.map(|hole| hole.packets(heard.expected, self.first_psn));
        let outcome = self.recovery.handle_holes(cx, shared, heard, &holes);
        self.on_outcome(cx, outcome, ack, sent_at);
    }

    /// Passes the outcome of an acknowledgement to congestion control, if it listens.
    #[inline(always)]
    fn on_outcome(&mut self, cx: &mut Cx<'_>, outcome: AckOutcome, ack: &Ack, sent_at: Instant) {
        if !self.congestion.listens() {
            return;
        }
        let bytes = Bytes::new(outcome.delivered * u64::from(self.frame));
        self.on_feedback(cx, bytes, sent_at, ack.ecn_echo);
        if outcome.loss {
            self.tell(cx, Signal::Lost);
        }
    }

    /// Handles a congestion notification packet.
    pub fn handle_cnp(&mut self, cx: &mut Cx<'_>) {
        self.seen = cx.now;
        self.tell(cx, Signal::Cnp);
    }

    /// Handles the telemetry that switches wrote on a packet, returned by an acknowledgement that was handled just
    /// before.
    pub fn handle_telemetry(&mut self, now: Instant, path: &PathRecord) {
        self.congestion.handle_telemetry(path);
        self.keep_to_limits(now);
    }

    /// Handles a report, where the loss recovery has no acknowledgements: `bytes` on the wire have reached the
    /// receiver, the last of them with a packet that left at `sent_at`.
    pub fn handle_report(&mut self, cx: &mut Cx<'_>, bytes: Bytes, sent_at: Instant) {
        self.seen = cx.now;
        self.on_feedback(cx, bytes, sent_at, false);
    }

    /// Returns when to call [`Sender::handle_timeout`] next, and [`Sender::poll_transmit`] after it: the earliest of
    /// the retransmission timeout, congestion control's timers, pacing, and the release of a packet that is being
    /// fetched. Until then, `poll_transmit` returns `None` if no input arrives. Assumes that `poll_transmit` was called
    /// until it returned `None`.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline(self.next(self.seen))
    }

    /// Returns the result of [`Sender::poll_timeout`], for a caller that already has the result `next` of
    /// [`Sender::next`].
    #[inline]
    pub fn deadline(&self, next: Next) -> Option<Instant> {
        let earliest = match next {
            Next::Wait(until) => until.min(self.timers()),
            Next::Send(_) | Next::Idle => self.timers(),
        };
        (earliest < Instant::NEVER).then_some(earliest)
    }

    /// Returns the earlier of the retransmission timeout and congestion control's timers, which
    /// [`Sender::handle_timeout`] handles; [`Instant::NEVER`] without any.
    #[inline]
    pub fn timers(&self) -> Instant {
        self.recovery.deadline().min(self.congestion.deadline())
    }

    /// Handles the timers that are due at `cx.now`. Early or repeated calls have no effect.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>, shared: &mut R::Shared) {
        self.seen = cx.now;
        if self.recovery.deadline() <= cx.now && self.recovery.handle_timeout(cx, shared) {
            self.stats.timeouts += 1;
            self.tell(cx, Signal::TimedOut);
        }
        if self.congestion.deadline() <= cx.now {
            self.congestion.handle_timeout(cx);
            self.keep_to_limits(cx.now);
        }
    }

    /// Handles the notice that the receiver was not ready for the first unacknowledged packet and has dropped it: the
    /// packet is retransmitted. Congestion control is not told.
    pub fn handle_not_ready(&mut self, cx: &mut Cx<'_>, shared: &mut R::Shared) {
        self.seen = cx.now;
        self.recovery.handle_not_ready(cx, shared);
    }

    /// Releases the flow's part of the chip's memory, before the sender is dropped.
    pub fn release(&mut self, shared: &mut R::Shared) {
        self.recovery.release(shared);
    }

    /// Returns the first packet not yet acknowledged.
    #[inline]
    pub fn acked(&self) -> Seq {
        self.recovery.acked()
    }
    /// Returns one past the last packet that was ever sent.
    #[inline]
    pub fn sent(&self) -> Seq {
        self.recovery.sent()
    }
    /// Returns one past the last packet that the application has supplied.
    #[inline]
    pub fn supplied(&self) -> Seq {
        self.supplied
    }
    /// Returns whether every supplied packet is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.recovery.acked() == self.supplied
    }
    /// Returns whether every supplied packet was sent and none waits for retransmission: the only criterion when the
    /// receiver does not acknowledge. A later NACK can make it false again.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.recovery.sent() == self.supplied && !self.recovery.has_lost()
    }
    /// Returns the sender's present limits, for diagnosis.
    pub fn limits(&self) -> Limits {
        Limits { window: self.window, rate: self.congestion.rate(), in_flight: self.recovery.in_flight() }
    }
    /// Returns how many packets congestion control allows in flight at present: at least one.
    #[inline]
    pub fn window(&self) -> u64 {
        if self.window == Bytes::MAX { u64::MAX } else { (self.window.get() / u64::from(self.frame)).max(1) }
    }
    /// Returns the sender's counters.
    pub fn stats(&self) -> SenderStats {
        self.stats
    }

    #[inline]
    fn on_feedback(&mut self, cx: &mut Cx<'_>, bytes: Bytes, sent_at: Instant, marked: bool) {
        let (acked, sent) = (self.recovery.acked(), self.recovery.sent());
        let in_flight = Bytes::new(self.recovery.in_flight() * u64::from(self.frame));
        self.tell(cx, Signal::Acked { bytes, rtt: cx.now.since(sent_at), in_flight, marked, acked, sent });
    }
    /// Passes a signal to congestion control, and applies its new window and rate.
    #[inline]
    fn tell(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.congestion.on_signal(cx, signal);
        self.keep_to_limits(cx.now);
    }
    #[inline]
    fn keep_to_limits(&mut self, now: Instant) {
        self.window = self.congestion.window();
        let rate = self.congestion.rate();
        if rate != self.pacing.rate() {
            self.pacing.change(now, rate);
        }
    }
    #[inline]
    fn is_window_open(&self) -> bool {
        self.window == Bytes::MAX || {
            let in_flight = self.recovery.in_flight();
            in_flight == 0 || (in_flight + 1) * u64::from(self.frame) <= self.window.get()
        }
    }
}

const _: () = assert!(size_of::<Sender>() <= 448, "a sender fits seven cache lines, of which no flow uses all");

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use selvedge_telemetry::{Probe, Trace};
    use selvedge_units::{Duration, Setting};
    use selvedge_wire::AckKind;

    use super::*;
    use crate::recovery::irn::{self, IrnConfig, Timeouts};

    const FRAME: Bytes = Bytes::new(1_000);

    /// A congestion control that records signals.
    #[derive(Default)]
    struct Recorder(Vec<Signal>);

    impl Congestion for Recorder {
        fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
            self.0.push(signal);
        }
        fn window(&self) -> Bytes {
            Bytes::MAX
        }
        fn rate(&self) -> Rate {
            Rate::MAX
        }
        fn deadline(&self) -> Instant {
            Instant::NEVER
        }
        fn handle_timeout(&mut self, _: &mut Cx<'_>) {}
    }

    /// A probe that records events.
    struct Listener(Vec<(Instant, Trace)>);

    impl Probe for Listener {
        fn on_trace(&mut self, at: Instant, event: &Trace) {
            self.0.push((at, *event));
        }
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn irn() -> irn::Send {
        let config = IrnConfig {
            timeouts: Timeouts::On,
            rto_low: Setting::Value(Duration::from_us(100)),
            rto_high: Setting::Value(Duration::from_us(320)),
            bdp_cap: Setting::Value(10),
            ..IrnConfig::default()
        };
        irn::Send::new(&config.params().expect("valid settings"))
    }

    fn ack(kind: AckKind, expected: u32, sack: u32, ecn_echo: bool) -> Ack {
        Ack { kind, ecn_echo, expected: Psn::new(expected), sack: Psn::new(sack), msn: 0 }
    }

    #[test]
    fn congestion_control_hears_what_happens() {
        let mut sender = Sender::with(irn(), Recorder::default(), FRAME, Psn::new(0));
        sender.supply(5);
        while sender.poll_transmit(&mut Cx::at(at(0)), &mut (), |_| FRAME).is_some() {}
        sender.handle_ack(&mut Cx::at(at(24)), &mut (), &ack(AckKind::Ack, 1, 0, true), at(0));
        sender.handle_ack(&mut Cx::at(at(25)), &mut (), &ack(AckKind::Nack, 1, 3, false), at(1));
        // No new delivery, and no second loss of one episode.
        sender.handle_ack(&mut Cx::at(at(26)), &mut (), &ack(AckKind::Nack, 1, 3, false), at(1));
        // Packet 3 is counted already.
        sender.handle_ack(&mut Cx::at(at(27)), &mut (), &ack(AckKind::Ack, 4, 1, false), at(1));
        sender.handle_timeout(&mut Cx::at(at(127)), &mut ());
        let heard = |frames, us, in_flight, marked, acked| Signal::Acked {
            bytes: FRAME * frames,
            rtt: Duration::from_us(us),
            in_flight: FRAME * in_flight,
            marked,
            acked: Seq::new(acked),
            sent: Seq::new(5),
        };
        sender.handle_cnp(&mut Cx::at(at(128)));
        sender.handle_report(&mut Cx::at(at(130)), FRAME * 7, at(100));
        let expected = [
            heard(1, 24, 4, true, 1),
            heard(1, 24, 3, false, 1),
            Signal::Lost,
            heard(0, 25, 3, false, 1),
            heard(2, 26, 1, false, 4),
            Signal::TimedOut,
            Signal::Cnp,
            heard(7, 30, 1, false, 4),
        ];
        assert_eq!(sender.congestion.0, expected);
    }

    #[test]
    fn a_probe_is_told_what_happens() {
        let mut listener = Listener(Vec::new());
        let mut sender = Sender::with(irn(), Recorder::default(), FRAME, Psn::new(0));
        sender.supply(5);
        let mut cx = Cx { now: at(0), probe: Some(&mut listener) };
        while sender.poll_transmit(&mut cx, &mut (), |_| FRAME).is_some() {}
        cx.now = at(24);
        sender.handle_ack(&mut cx, &mut (), &ack(AckKind::Nack, 1, 2, false), at(0));
        while sender.poll_transmit(&mut cx, &mut (), |_| FRAME).is_some() {}
        sender.handle_ack(&mut cx, &mut (), &ack(AckKind::Ack, 99, 0, false), at(0));
        cx.now = at(124);
        sender.handle_timeout(&mut cx, &mut ());
        cx.now = at(344);
        sender.handle_timeout(&mut cx, &mut ());
        sender.handle_ack(&mut cx, &mut (), &ack(AckKind::Ack, 5, 0, false), at(0));
        let acked = Seq::new(1);
        assert_eq!(
            listener.0,
            [
                (at(24), Trace::RecoveryEntered { acked, by_timeout: false }),
                (at(24), Trace::Retransmitted { seq: acked }),
                (at(24), Trace::AckIgnored { sent: Seq::new(5) }),
                (at(124), Trace::TimeoutExtended { until: at(344) }),
                (at(344), Trace::TimedOut { acked, quick: false }),
                (at(344), Trace::RecoveryEntered { acked, by_timeout: true }),
                (at(344), Trace::RecoveryLeft { acked: Seq::new(5) }),
            ]
        );
    }
}
