//! One end of a connection (RFC 9293).

use selvedge_units::{Bytes, Duration, Instant, Octet, Rate, TcpSeq};
use selvedge_wire::tcp::{Segment, SynOptions};

use super::congestion::{CongestionConfig, Coupling};
use super::receiving::Receiving;
use super::sending::Sending;
use super::{TcpConfig, TcpStats};
use crate::role::{Hold, Limits};

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
pub(super) const TICK: Duration = Duration::from_us(1);

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
    /// Octets that the application has supplied so far.
    pub fn supplied(&self) -> u64 {
        self.sending.supplied.since(Octet::FIRST)
    }
    /// Octets sent so far, each once.
    pub fn sent(&self) -> u64 {
        self.sending.next.min(self.sending.supplied).since(Octet::FIRST)
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

/// The clock of the time stamps of all connections.
pub fn clock(now: Instant) -> u32 {
    (now.as_ps() / TICK.as_ps()) as u32
}

/// How long ago the clock showed `stamp` last; it shows the same again after 71.6 minutes.
pub(super) fn age_of(stamp: u32, now: Instant) -> Duration {
    TICK * u64::from(clock(now).wrapping_sub(stamp))
}
