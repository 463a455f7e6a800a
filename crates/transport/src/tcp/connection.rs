//! One end of a connection (RFC 9293).

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Bytes, Duration, Instant, Octet, Rate, TcpSeq};
use selvedge_wire::tcp::{Flags, Sacks, Segment, SynOptions, Timestamps};

use super::congestion::{CongestionConfig, Coupling};
use super::receiving::{Arrival, Echo, Receiving, Text};
use super::sending::{Heard, Piece, Reason, Sending, place};
use super::{TcpConfig, TcpStats};
use crate::role::{Cx, Hold, Limits};

/// One end of a connection.
///
/// ```
/// use selvedge_transport::Cx;
/// use selvedge_transport::tcp::{Connection, TcpConfig};
/// use selvedge_units::{Bytes, Duration, Instant, Setting, TcpSeq};
///
/// let mut config = TcpConfig { mss: Setting::Value(Bytes::new(1_000)), ..TcpConfig::default() };
/// # let rate = selvedge_units::Rate::from_gbps(40);
/// # let fabric = selvedge_transport::Fabric { pfc: false, line_rate: rate, bdp: Bytes::new(120_000),
/// #     frame: Bytes::new(1_070), gap: Bytes::new(20), base_rtt: Duration::from_us(24), links: 6,
/// #     congested_rtt: Duration::from_us(320), acks: false };
/// config.resolve(&fabric, Bytes::new(1_000));
/// let (ours, theirs) = (TcpSeq::new(1), TcpSeq::new(2));
/// let mut one = Connection::established(&config, ours, theirs);
/// let mut other = Connection::established(&config, theirs, ours);
/// one.supply(1_500);
/// let mut cx = Cx::at(Instant::ZERO);
/// while let Some(sent) = one.poll_transmit(&mut cx) {
///     let arrival = other.handle_segment(&mut cx, &sent.segment, false);
///     other.read(arrival.in_order);
/// }
/// let ack = other.poll_transmit(&mut cx);
/// assert!(ack.is_none(), "1,500 octets are less than two full segments: the acknowledgement waits");
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    phase: Phase,
    sending: Sending,
    receiving: Receiving,
    /// What both ends use; before the handshake what this one offers.
    agreed: Agreed,
    offers_syn: SynOptions,
    has_exact_echo: bool,
    /// The other end's FIN came before this end's went.
    closes_second: bool,
    /// Both ends scale their windows.
    is_scaled: bool,
    time_wait: Duration,
    /// When TIME-WAIT ends.
    forget_at: Instant,
    is_reset: bool,
}

/// How far the connection has come. What FINs add is in the two halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Synchronised,
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Agreed {
    sack: bool,
    timestamps: bool,
    ecn: bool,
    /// The other end's windows are shifted to the left by this.
    scale: u8,
}

/// The states of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the RFC describes them")]
pub enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The segment.
    pub segment: Segment,
    /// Whether it goes as ECN-capable.
    pub ecn_capable: bool,
    /// Whether it carries octets that were sent before.
    pub is_again: bool,
}

/// A clock's tick in time stamps: RFC 7323 wants one between 1 ms and 1 s, fabrics something finer.
const TICK: Duration = Duration::from_us(1);

impl Connection {
    /// An end of a connection that exists already: sequence numbers begin behind `ours` and
    /// `theirs`, and the other end has the same settings.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn established(config: &TcpConfig, ours: TcpSeq, theirs: TcpSeq) -> Self {
        let mut end = Self::new(config, ours, Phase::Synchronised);
        let scale = config.scale();
        end.sending.skip_handshake(config.buffer().min(u64::from(u16::MAX) << scale));
        end.receiving.scale = scale;
        end.receiving.begin(theirs);
        end.agreed.scale = scale;
        end.agree(config.mss());
        end
    }
    /// The end that opens a connection.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn connect(config: &TcpConfig, ours: TcpSeq) -> Self {
        Self::new(config, ours, Phase::SynSent)
    }
    /// The end that waits for one.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn listen(config: &TcpConfig, ours: TcpSeq) -> Self {
        Self::new(config, ours, Phase::Listen)
    }

    fn new(config: &TcpConfig, ours: TcpSeq, phase: Phase) -> Self {
        Self {
            phase,
            sending: Sending::new(config, ours),
            receiving: Receiving::new(config),
            agreed: Agreed { sack: config.sack, timestamps: config.timestamps, ecn: config.uses_ecn(), scale: 0 },
            offers_syn: SynOptions {
                mss: Some(config.announced_mss()),
                window_scale: config.window_scaling.then(|| config.scale()),
                sack_permitted: config.sack,
            },
            has_exact_echo: matches!(config.congestion, CongestionConfig::Dctcp(_)),
            closes_second: false,
            is_scaled: config.window_scaling,
            time_wait: config.time_wait,
            forget_at: Instant::NEVER,
            is_reset: false,
        }
    }

    /// The application has `octets` more to send. Nothing after [`Connection::close`].
    pub fn supply(&mut self, octets: u64) {
        debug_assert!(!self.sending.is_closed, "supplied after the end");
        self.sending.supplied += octets;
    }
    /// The application will supply no more.
    pub fn close(&mut self) {
        self.sending.is_closed = true;
    }
    /// Whether a full segment more would be sent at once: a connection of several subflows hands each its data
    /// no earlier.
    pub fn has_room(&self) -> bool {
        self.sending.has_room_for_more()
    }
    /// Whether it is open and has sent all it may: another subflow might do more.
    pub fn is_full(&self) -> bool {
        self.sending.is_full()
    }
    /// Congestion window in octets and smoothed round-trip time, for [`Coupling::of`].
    pub fn window_and_rtt(&self) -> (u64, Option<Duration>) {
        self.sending.window_and_rtt()
    }
    /// The other subflows of the same connection have changed.
    pub fn couple(&mut self, coupling: Coupling) {
        self.sending.coupling = coupling;
    }
    /// The application has read `octets` of what arrived in order.
    pub fn read(&mut self, octets: u64) {
        self.receiving.read(octets);
    }

    /// Whether everything supplied is acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.sending.acked >= self.sending.supplied
    }
    /// Octets supplied and acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.sending.acked.min(self.sending.supplied).since(Octet::FIRST)
    }
    /// Octets received in order so far.
    pub fn received(&self) -> u64 {
        self.receiving.next.since(Octet::FIRST) - u64::from(self.receiving.is_finished())
    }
    /// The sequence number that a segment in order would have.
    pub fn expected(&self) -> TcpSeq {
        self.receiving.next.to_seq(self.receiving.initial)
    }
    /// What the sending half waits for.
    pub fn hold(&self) -> Hold {
        if self.sending.next().is_some() {
            Hold::Link
        } else if self.sending.has_unsent() {
            Hold::Window
        } else {
            Hold::Acks
        }
    }
    /// What limits the sending half: the congestion window, which here counts payload, and full
    /// segments in flight.
    pub fn limits(&self) -> Limits {
        let (in_flight, window) = self.sending.in_flight();
        Limits { window: Bytes::new(window), rate: Rate::MAX, in_flight }
    }
    /// Whether the other end has reset the connection.
    pub fn is_reset(&self) -> bool {
        self.is_reset
    }
    /// What was done so far.
    pub fn stats(&self) -> TcpStats {
        self.sending.stats()
    }
    /// Smoothed round-trip time, once there was a sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.sending.smoothed_rtt()
    }

    /// The state by its name in the RFC.
    pub fn state(&self) -> State {
        let is_fin_sent = self.sending.is_fin_sent();
        let is_fin_acked = is_fin_sent && self.sending.flight() == 0;
        match self.phase {
            Phase::Listen => State::Listen,
            Phase::SynSent => State::SynSent,
            Phase::SynReceived => State::SynReceived,
            Phase::Closed => State::Closed,
            Phase::Synchronised => match (is_fin_sent, is_fin_acked, self.receiving.is_finished()) {
                (false, _, false) => State::Established,
                (false, _, true) => State::CloseWait,
                (true, false, false) => State::FinWait1,
                (true, true, false) => State::FinWait2,
                (true, false, true) if self.closes_second => State::LastAck,
                (true, false, true) => State::Closing,
                (true, true, true) => State::TimeWait,
            },
        }
    }
}

/// Input.
impl Connection {
    /// Takes a segment; `marked` says whether it arrived with congestion experienced. Poll for what
    /// there is to send afterwards.
    pub fn handle_segment(&mut self, cx: &mut Cx<'_>, segment: &Segment, marked: bool) -> Arrival {
        let arrival = match self.phase {
            Phase::Closed => Arrival::default(),
            Phase::Listen => {
                if segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST) {
                    self.take_syn(segment, Flags::ECE | Flags::CWR);
                    self.phase = Phase::SynReceived;
                }
                Arrival::default()
            }
            Phase::SynSent => {
                self.on_answer(cx, segment);
                Arrival::default()
            }
            Phase::SynReceived | Phase::Synchronised => self.on_segment(cx, segment, marked),
        };
        self.settle(cx.now);
        arrival
    }

    /// The other end's SYN (RFC 9293, section 3.10.7.2). With ECN it carries `setup` (RFC 3168,
    /// section 6.1.1).
    fn take_syn(&mut self, segment: &Segment, setup: Flags) {
        let scale = segment.syn.window_scale.zip(self.offers_syn.window_scale);
        // RFC 7323, section 2.3: more than 14 is taken for 14.
        self.is_scaled = scale.is_some();
        self.agreed.scale = scale.map_or(0, |(theirs, _)| theirs.min(14));
        self.receiving.scale = scale.map_or(0, |(_, ours)| ours);
        self.agreed.sack &= segment.syn.sack_permitted;
        self.agreed.timestamps &= segment.timestamps.is_some();
        self.agreed.ecn &= segment.flags.contains(setup);
        self.receiving.begin(segment.seq);
        if let Some(stamps) = segment.timestamps {
            let _ = self.receiving.is_outdated(stamps.value, Octet::SYN);
        }
        // RFC 9293, section 3.7.1: without the option, 536. It counts no options (RFC 6691).
        let theirs = u64::from(segment.syn.mss.unwrap_or(536));
        let options = if self.agreed.timestamps { TcpConfig::STAMP } else { 0 };
        self.agree(theirs.saturating_sub(options).max(1));
    }

    fn agree(&mut self, mss: u64) {
        self.sending.agree(mss, self.agreed.sack, self.agreed.timestamps);
        if self.agreed.ecn {
            self.sending.expect_marks();
            self.receiving.echo_marks(if self.has_exact_echo { Echo::Exact(false) } else { Echo::UntilReduced(false) });
        }
    }

    /// RFC 9293, section 3.10.7.3.
    fn on_answer(&mut self, cx: &mut Cx<'_>, segment: &Segment) {
        let has_ack = segment.flags.contains(Flags::ACK);
        if has_ack && segment.ack != Octet::FIRST.to_seq(self.sending.initial) {
            cx.trace(|| Trace::AckIgnored { sent: place(self.sending.next) });
            return;
        }
        if segment.flags.contains(Flags::RST) {
            self.reset(has_ack);
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        if has_ack {
            self.take_syn(segment, Flags::ECE);
            self.phase = Phase::Synchronised;
            self.receiving.hurry();
            self.take_ack(cx, segment, Octet::SYN);
        } else {
            // Both opened at once.
            self.take_syn(segment, Flags::ECE | Flags::CWR);
            self.phase = Phase::SynReceived;
            self.sending.repeat();
        }
    }

    /// RFC 9293, section 3.10.7.4; with the caution of RFC 5961.
    fn on_segment(&mut self, cx: &mut Cx<'_>, segment: &Segment, marked: bool) -> Arrival {
        let start = segment.seq.near(self.receiving.next, self.receiving.initial);
        let Some(start) = start else {
            self.receiving.hurry();
            return Arrival::default();
        };
        if segment.flags.contains(Flags::RST) {
            self.reset(start == self.receiving.next);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::SYN) {
            // Who opened at once with us acknowledges our SYN by his.
            if segment.flags.contains(Flags::ACK) {
                self.take_ack(cx, segment, start);
            }
            match self.phase {
                Phase::SynReceived => self.sending.repeat(),
                _ => self.receiving.hurry(),
            }
            return Arrival::default();
        }
        if self.agreed.timestamps {
            let Some(stamps) = segment.timestamps else { return Arrival::default() };
            if self.receiving.is_outdated(stamps.value, start) {
                self.receiving.hurry();
                return Arrival::default();
            }
        }
        if !segment.flags.contains(Flags::ACK) || !self.take_ack(cx, segment, start) {
            return Arrival::default();
        }
        if self.receiving.is_finished() && segment.flags.contains(Flags::FIN) && self.forget_at != Instant::NEVER {
            self.forget_at = cx.now.saturating_add(self.time_wait); // TIME-WAIT begins again
        }
        let text = Text {
            start,
            data: u64::from(segment.payload),
            fin: segment.flags.contains(Flags::FIN),
            marked: marked && self.agreed.ecn,
            cwr: segment.flags.contains(Flags::CWR),
        };
        self.receiving.on_text(cx, &text)
    }

    /// The acknowledgement of a segment that begins at `start`. Returns whether the rest counts.
    fn take_ack(&mut self, cx: &mut Cx<'_>, segment: &Segment, start: Octet) -> bool {
        let initial = self.sending.initial;
        let near = |seq: TcpSeq| seq.near(self.sending.next, initial);
        let Some(ack) = near(segment.ack).filter(|&ack| !self.sending.is_beyond(ack)) else {
            cx.trace(|| Trace::AckIgnored { sent: place(self.sending.next) });
            self.receiving.hurry();
            return false;
        };
        if self.phase == Phase::SynReceived && ack >= Octet::FIRST {
            self.phase = Phase::Synchronised;
        }
        if ack < self.sending.acked {
            return true;
        }
        let mut sacks: [Range<Octet>; Sacks::MOST] = core::array::from_fn(|_| Octet::SYN..Octet::SYN);
        for (block, (from, to)) in sacks.iter_mut().zip(segment.sacks.iter()) {
            *block = near(from).unwrap_or_default()..near(to).unwrap_or_default();
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let rtt = segment.timestamps.filter(|_| self.agreed.timestamps).map(|stamps| age_of(stamps.echo, cx.now));
        let heard = Heard {
            ack,
            seq: start,
            window: u64::from(segment.window) << if is_syn { 0 } else { self.agreed.scale },
            sacks: &sacks[..segment.sacks.len()],
            is_pure: segment.payload == 0 && !segment.flags.intersects(Flags::FIN | Flags::SYN),
            rtt,
            echo: self.agreed.ecn && !is_syn && segment.flags.contains(Flags::ECE),
        };
        self.sending.on_ack(cx, &heard);
        true
    }

    /// A reset: believed if it comes from where the other end is, else questioned (RFC 5961, section
    /// 3.2).
    fn reset(&mut self, is_believed: bool) {
        if is_believed {
            self.phase = Phase::Closed;
            self.is_reset = true;
        } else {
            self.receiving.hurry();
        }
    }

    /// Notices when both directions are closed.
    fn settle(&mut self, now: Instant) {
        if self.phase == Phase::Synchronised && self.state() == State::TimeWait {
            if self.closes_second {
                self.phase = Phase::Closed;
            } else if self.forget_at == Instant::NEVER {
                self.forget_at = now.saturating_add(self.time_wait);
            }
        }
    }
}

/// Output.
impl Connection {
    /// Whether [`Connection::poll_transmit`] would return a segment now.
    pub fn is_ready(&self) -> bool {
        self.next() != Step::Nothing
    }

    /// The segment to send now, if any.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Transmit> {
        self.sending.restart_after_idle(cx.now);
        match self.next() {
            Step::Acknowledge => Some(self.acknowledgement(cx.now)),
            Step::Send(piece) => Some(self.send(cx, &piece)),
            Step::Nothing => {
                self.sending.watch_window(cx.now);
                None
            }
        }
    }

    /// When to call [`Connection::handle_timeout`] next. Until then, if nothing is fed in,
    /// `poll_transmit` returns `None`. Assumes that it was polled until it did.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.phase == Phase::Closed {
            return None;
        }
        let earliest = self.sending.deadline().min(self.receiving.deadline()).min(self.forget_at);
        (earliest < Instant::NEVER).then_some(earliest)
    }

    /// Handles what is due at `cx.now`. Early or twice is a no-op.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.forget_at <= cx.now {
            self.phase = Phase::Closed;
        }
        if self.receiving.deadline() <= cx.now {
            self.receiving.on_timeout();
        }
        if self.sending.deadline() <= cx.now {
            self.sending.on_timeout(cx);
        }
    }

    /// The one decision behind [`Connection::is_ready`] and [`Connection::poll_transmit`].
    fn next(&self) -> Step {
        if matches!(self.phase, Phase::Listen | Phase::Closed) {
            return Step::Nothing;
        }
        if self.receiving.has_earlier() {
            return Step::Acknowledge;
        }
        match self.sending.next() {
            Some(piece) => Step::Send(piece),
            None if self.receiving.is_due() && self.phase != Phase::SynSent => Step::Acknowledge,
            None => Step::Nothing,
        }
    }

    fn send(&mut self, cx: &mut Cx<'_>, piece: &Piece) -> Transmit {
        let is_syn = piece.start == Octet::SYN;
        let cwr = self.sending.on_sent(cx, piece);
        if piece.fin {
            self.closes_second |= self.receiving.is_finished() && !piece.is_again();
        }
        let mut segment = self.blank(cx.now, is_syn);
        segment.seq = piece.start.to_seq(self.sending.initial);
        segment.payload = piece.data as u16;
        segment.flags |= Flags::SYN.when(is_syn)
            | Flags::FIN.when(piece.fin)
            | Flags::CWR.when(cwr)
            | Flags::PSH.when(piece.data > 0 && piece.start + piece.data == self.sending.supplied);
        if is_syn {
            self.offer(&mut segment);
        }
        // Only what is sent for the first time is ECN-capable (RFC 3168, section 6.1.5).
        let ecn_capable = self.agreed.ecn && piece.data > 0 && piece.reason == Reason::New;
        Transmit { segment, ecn_capable, is_again: piece.is_again() }
    }

    fn acknowledgement(&mut self, now: Instant) -> Transmit {
        let mut segment = self.blank(now, false);
        segment.seq = self.sending.next.to_seq(self.sending.initial);
        let room = if self.agreed.timestamps { Sacks::BESIDE_TIMESTAMPS } else { Sacks::MOST };
        if self.agreed.sack {
            segment.sacks = self.receiving.sacks(room);
        }
        Transmit { segment, ecn_capable: false, is_again: false }
    }

    /// A segment with all that speaks of the other direction.
    fn blank(&mut self, now: Instant, is_syn: bool) -> Segment {
        let (ack, window, echo) = self.receiving.acknowledge(is_syn);
        let is_first = self.phase == Phase::SynSent;
        let stamps = Timestamps { value: clock(now), echo: self.receiving.stamp() };
        Segment {
            ack: if is_first { TcpSeq::new(0) } else { ack },
            flags: if is_first { Flags::default() } else { Flags::ACK | echo },
            window,
            timestamps: self.agreed.timestamps.then_some(stamps),
            ..Segment::default()
        }
    }

    /// The options of a SYN, and ECN's setup.
    fn offer(&self, segment: &mut Segment) {
        segment.syn = self.offers_syn;
        let mut setup = Flags::ECE | Flags::CWR;
        if self.phase != Phase::SynSent {
            segment.syn.sack_permitted = self.agreed.sack;
            segment.syn.window_scale = self.offers_syn.window_scale.filter(|_| self.is_scaled);
            setup = Flags::ECE;
        }
        segment.flags |= setup.when(self.agreed.ecn);
    }
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Acknowledge,
    Send(Piece),
    Nothing,
}

/// The clock of the time stamps of all connections.
pub fn clock(now: Instant) -> u32 {
    (now.as_ps() / TICK.as_ps()) as u32
}

/// How long ago the clock showed `stamp`.
fn age_of(stamp: u32, now: Instant) -> Duration {
    TICK * u64::from(clock(now).wrapping_sub(stamp))
}
