//! One end of a connection (RFC 9293).

use selvedge_units::{Bytes, Duration, Instant, Octet, Rate, TcpSeq};
use selvedge_wire::tcp::{Segment, SynOptions};

use super::congestion::{CongestionParams, Coupling};
use super::receiving::Receiving;
use super::sending::Sending;
use super::{Params, TcpStats};
use crate::role::{HoldReason, Limits};

mod input;
mod output;

/// One end of a connection.
///
/// ```
/// use selvedge_transport::Cx;
/// use selvedge_transport::tcp::{Connection, TcpConfig};
/// use selvedge_units::{Bytes, Duration, Instant, Setting, TcpSeq};
///
/// let mut config = TcpConfig { mss: Setting::Value(Bytes::new(1_000)), ..TcpConfig::default() };
/// # use selvedge_transport::Fabric;
/// # let fabric = Fabric { frame: Bytes::new(1_070), ..Fabric::IRN_PAPER };
/// config.resolve(&fabric, Bytes::new(1_000));
/// let params = config.params()?;
/// let (ours, theirs) = (TcpSeq::new(1), TcpSeq::new(2));
/// let mut one = Connection::established(&params, ours, theirs);
/// let mut other = Connection::established(&params, theirs, ours);
/// one.supply(1_500);
/// let mut cx = Cx::at(Instant::ZERO);
/// while let Some(sent) = one.poll_transmit(&mut cx) {
///     let arrival = other.handle_segment(&mut cx, &sent.segment, false);
///     other.read(arrival.in_order);
/// }
/// let ack = other.poll_transmit(&mut cx);
/// assert!(ack.is_none(), "1,500 octets are less than two full segments: the acknowledgement waits");
/// # Ok::<(), selvedge_transport::SettingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    phase: Phase,
    sending: Sending,
    receiving: Receiving,
    /// Features used by both ends; before the handshake, those offered by this end.
    agreed: Agreed,
    offers_syn: SynOptions,
    has_exact_echo: bool,
    /// Whether the other end's FIN arrived before this end's was sent.
    closes_second: bool,
    /// Whether both ends scale their windows.
    is_scaled: bool,
    time_wait: Duration,
    /// Time at which TIME-WAIT ends.
    forget_at: Instant,
    is_reset: bool,
}

/// Progress of the connection, except for FINs, whose state is in the two halves.
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
    /// Left shift of the other end's window fields.
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
    /// Whether the segment is sent as ECN-capable.
    pub ecn_capable: bool,
    /// Whether the segment carries octets that were sent before.
    pub is_again: bool,
}

/// Tick of the time stamp clock: RFC 7323 requires 1 ms to 1 s, fabrics need a finer clock.
pub(super) const TICK: Duration = Duration::from_us(1);

impl Connection {
    /// Creates an end of an existing connection: sequence numbers begin after `ours` and `theirs`, and the other end
    /// has equal settings.
    pub fn established(params: &Params, ours: TcpSeq, theirs: TcpSeq) -> Self {
        let mut end = Self::new(params, ours, Phase::Synchronised);
        let scale = params.scale.unwrap_or(0);
        end.sending.skip_handshake(params.buffer.min(u64::from(u16::MAX) << scale));
        end.receiving.scale = scale;
        end.receiving.begin(theirs);
        end.agreed.scale = scale;
        end.agree(params.mss);
        end
    }
    /// Creates the end that opens a connection.
    pub fn connect(params: &Params, ours: TcpSeq) -> Self {
        Self::new(params, ours, Phase::SynSent)
    }
    /// Creates the end that waits for a connection.
    pub fn listen(params: &Params, ours: TcpSeq) -> Self {
        Self::new(params, ours, Phase::Listen)
    }

    fn new(params: &Params, ours: TcpSeq, phase: Phase) -> Self {
        Self {
            phase,
            sending: Sending::new(params, ours),
            receiving: Receiving::new(params),
            agreed: Agreed { sack: params.sack, timestamps: params.timestamps, ecn: params.ecn, scale: 0 },
            offers_syn: SynOptions {
                mss: Some(params.announced_mss()),
                window_scale: params.scale,
                sack_permitted: params.sack,
            },
            has_exact_echo: matches!(params.congestion, CongestionParams::Dctcp(_)),
            closes_second: false,
            is_scaled: params.scale.is_some(),
            time_wait: params.time_wait,
            forget_at: Instant::NEVER,
            is_reset: false,
        }
    }

    /// Adds `octets` octets of the application to send. Not allowed after [`Connection::close`].
    pub fn supply(&mut self, octets: u64) {
        debug_assert!(!self.sending.is_closed, "supplied after the end");
        self.sending.supplied += octets;
    }
    /// Closes the sending direction: the application will supply no more.
    pub fn close(&mut self) {
        self.sending.is_closed = true;
    }
    /// Returns whether another full segment would be sent at once: a connection of several subflows supplies each no
    /// sooner.
    pub fn has_room(&self) -> bool {
        self.sending.has_room_for_more()
    }
    /// Returns whether the connection is open and has sent all it may: another subflow might send more.
    pub fn is_full(&self) -> bool {
        self.sending.is_full()
    }
    /// Returns the congestion window in octets and the smoothed round-trip time, for [`Coupling::of`].
    pub fn window_and_rtt(&self) -> (u64, Option<Duration>) {
        self.sending.window_and_rtt()
    }
    /// Sets the coupling with the other subflows of the same connection, after they changed.
    pub fn couple(&mut self, coupling: Coupling) {
        self.sending.coupling = coupling;
    }
    /// Records that the application has read `octets` of the octets in order.
    pub fn read(&mut self, octets: u64) {
        self.receiving.read(octets);
    }

    /// Returns whether everything supplied is acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.sending.acked >= self.sending.supplied
    }
    /// Returns the octets supplied and acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.sending.acked.min(self.sending.supplied).since(Octet::FIRST)
    }
    /// Returns the octets that the application has supplied so far.
    pub fn supplied(&self) -> u64 {
        self.sending.supplied.since(Octet::FIRST)
    }
    /// Returns the octets sent so far, without retransmissions.
    pub fn sent(&self) -> u64 {
        self.sending.next.min(self.sending.supplied).since(Octet::FIRST)
    }
    /// Returns the octets received in order so far.
    pub fn received(&self) -> u64 {
        self.receiving.next.since(Octet::FIRST) - u64::from(self.receiving.is_finished())
    }
    /// Returns the sequence number of the next segment in order.
    pub fn expected(&self) -> TcpSeq {
        self.receiving.next.to_seq(self.receiving.initial)
    }
    /// Returns the reason why the sending half does not send.
    pub fn hold(&self) -> HoldReason {
        if self.sending.next().is_some() {
            HoldReason::Link
        } else if let Some(until) = self.sending.is_paced_until() {
            HoldReason::Pacing(until)
        } else if self.sending.has_unsent() {
            HoldReason::Window
        } else {
            HoldReason::Acks
        }
    }
    /// Returns the limits of the sending half: the congestion window in octets of payload, the rate at which these are
    /// paced, and the full segments in flight.
    pub fn limits(&self) -> Limits {
        let (in_flight, window) = self.sending.in_flight();
        Limits { window: Bytes::new(window), rate: self.sending.pacing().unwrap_or(Rate::MAX), in_flight }
    }
    /// Returns whether the other end has reset the connection.
    pub fn is_reset(&self) -> bool {
        self.is_reset
    }
    /// Returns the counters so far.
    pub fn stats(&self) -> TcpStats {
        self.sending.stats()
    }
    /// Returns the smoothed round-trip time, after the first sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.sending.smoothed_rtt()
    }

    /// Returns the state by its name in RFC 9293.
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

/// Returns the time stamp clock of all connections at `now`.
pub fn clock(now: Instant) -> u32 {
    (now.as_ps() / TICK.as_ps()) as u32
}

/// Returns the time since the clock last showed `stamp`; the clock repeats after 71.6 minutes.
pub(super) fn age_of(stamp: u32, now: Instant) -> Duration {
    TICK * u64::from(clock(now).wrapping_sub(stamp))
}
