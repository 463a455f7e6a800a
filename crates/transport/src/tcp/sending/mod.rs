//! The sending half of a connection: what to send next, and what an acknowledgement means.
//!
//! Design notes.
//! 1. *Three ways to repair.* `Mode::Open`: nothing is missing. `Mode::Fast`: fast recovery, by the
//!    scoreboard (RFC 6675) or by partial acknowledgements (RFC 6582). `Mode::Slow`: after a
//!    timeout, everything that was in flight and is not SACKed goes again, in slow start.
//! 2. *One pointer for retransmissions.* `resent` is HighRxt of RFC 6675; after a timeout it is what
//!    SND.NXT is in RFC 9293. `next` is HighData and never goes back.
//! 3. *One timer* for retransmission and for probing a closed window: while octets are outstanding
//!    it is the former, else, if some wait, the latter.

use core::ops::Range;

use selvedge_units::{Duration, Instant, Octet, Seq, TcpSeq};

use super::congestion::{AnyControl, Coupling, Window};
use super::rto::RetransmissionTimeout;
use super::scoreboard::Scoreboard;
use super::{TcpConfig, TcpStats};
use crate::fabric::resolved;

mod heard;
mod next;
mod timer;

/// The sending half.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// ISS.
    pub(super) initial: TcpSeq,
    /// SND.UNA.
    pub(super) acked: Octet,
    /// SND.NXT, one past the highest octet sent.
    pub(super) next: Octet,
    /// One past the last octet that the application has supplied; a FIN stands there.
    pub(super) supplied: Octet,
    /// The application will supply no more.
    pub(super) is_closed: bool,

    // The other end's window.
    /// SND.UNA + SND.WND.
    window_end: Octet,
    /// The largest window ever offered.
    largest_window: u64,
    /// SND.WL1 and SND.WL2.
    window_from: (Octet, Octet),

    // Repair.
    board: Scoreboard,
    mode: Mode,
    /// RecoveryPoint: recovery is over when everything before it is acknowledged.
    recover: Octet,
    /// HighRxt.
    resent: Octet,
    /// RescueRxt.
    rescue: Octet,
    /// The first octet outstanding goes again, whatever the window says.
    must_resend: bool,
    /// This fast recovery has seen a partial acknowledgement.
    was_partial: bool,
    duplicates: u32,
    /// Octets that limited transmit has sent, beyond the window: they are no flight that ssthresh is computed from (RFC
    /// 5681, section 3.2).
    limited: u64,
    /// SND.UNA at the last timeout.
    timed_out_at: Octet,

    // Congestion.
    window: Window,
    control: AnyControl,
    /// What other subflows make of its window.
    pub(super) coupling: Coupling,
    /// No further reduction for marks before this is acknowledged.
    marked_until: Octet,
    /// CWR goes out with the next new segment.
    reduced: bool,

    // Time.
    rto: RetransmissionTimeout,
    timer: Instant,
    /// Karn: an octet whose acknowledgement ends a sample, and when it was sent.
    timed: Option<(Octet, Instant)>,
    last_sent: Instant,
    /// A closed window is probed now; how far it was.
    must_probe: bool,
    probed: Octet,

    settings: Settings,
    stats: TcpStats,
}

/// What does not change.
#[derive(Clone, Copy, Debug)]
struct Settings {
    threshold: u32,
    has_limited_transmit: bool,
    has_nagle: bool,
    initial_window: u64,
    initial_rto: Duration,
    has_sack: bool,
    has_timestamps: bool,
    has_ecn: bool,
}

/// How losses are being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Open,
    Fast,
    Slow,
}

/// Octets to send as one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The first octet; the SYN stands alone.
    pub(super) start: Octet,
    /// Octets of data.
    pub(super) data: u64,
    /// Whether a FIN follows.
    pub(super) fin: bool,
    /// Why.
    pub(super) reason: Reason,
}

/// Why octets are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    New,
    /// Sent before, and lost.
    Again,
    /// Sent before; the last resort of RFC 6675, rule 4 of `NextSeg`.
    Rescue,
    /// Beyond the other end's window, to hear of it.
    Probe,
}

impl Piece {
    /// One past its last octet.
    pub(super) fn end(&self) -> Octet {
        let syn = u64::from(self.start == Octet::SYN);
        self.start + (syn + self.data + u64::from(self.fin))
    }
    pub(super) fn is_again(&self) -> bool {
        matches!(self.reason, Reason::Again | Reason::Rescue)
    }
}

/// What an acknowledgement says, its numbers expanded.
pub(super) struct Heard<'a> {
    pub(super) ack: Octet,
    /// The place of the segment that carries it, for the window.
    pub(super) seq: Octet,
    /// The window, unscaled.
    pub(super) window: u64,
    pub(super) sacks: &'a [Range<Octet>],
    /// It carries nothing else.
    pub(super) is_pure: bool,
    /// Age of the time stamp that it echoes.
    pub(super) rtt: Option<Duration>,
    /// It echoes a mark.
    pub(super) echo: bool,
}

impl Sending {
    /// A half that has sent nothing, not even a SYN.
    pub(super) fn new(config: &TcpConfig, initial: TcpSeq) -> Self {
        let mss = config.mss();
        let segments = |setting, key| resolved(setting, key).map_or(u64::MAX, |count| u64::from(count) * mss);
        let initial_window = segments(config.initial_window, "initial-window");
        let ssthresh = resolved(config.initial_ssthresh, "initial-ssthresh").map_or(u64::MAX, |bytes| bytes.get());
        let limit = segments(config.slow_start_limit, "slow-start-limit");
        Self {
            initial,
            acked: Octet::SYN,
            next: Octet::SYN,
            supplied: Octet::FIRST,
            is_closed: false,
            window_end: Octet::FIRST,
            largest_window: 0,
            window_from: (Octet::SYN, Octet::SYN),
            board: Scoreboard::default(),
            mode: Mode::Open,
            recover: Octet::SYN,
            resent: Octet::SYN,
            rescue: Octet::SYN,
            must_resend: false,
            was_partial: false,
            duplicates: 0,
            limited: 0,
            timed_out_at: Octet::SYN,
            window: Window::new(initial_window, ssthresh, mss, limit),
            control: AnyControl::from(&config.congestion),
            coupling: Coupling::ALONE,
            marked_until: Octet::SYN,
            reduced: false,
            rto: RetransmissionTimeout::new(config.initial_rto(), config.min_rto(), config.max_rto),
            timer: Instant::NEVER,
            timed: None,
            last_sent: Instant::ZERO,
            must_probe: false,
            probed: Octet::SYN,
            settings: Settings {
                threshold: config.dup_thresh,
                has_limited_transmit: config.limited_transmit,
                has_nagle: config.nagle,
                initial_window,
                initial_rto: config.initial_rto(),
                has_sack: false,
                has_timestamps: false,
                has_ecn: false,
            },
            stats: TcpStats::default(),
        }
    }

    /// The SYN has been sent and acknowledged already.
    pub(super) fn skip_handshake(&mut self, window: u64) {
        (self.acked, self.next, self.resent) = (Octet::FIRST, Octet::FIRST, Octet::FIRST);
        self.offer(Octet::FIRST, window);
    }
    /// What both ends agreed upon.
    pub(super) fn agree(&mut self, mss: u64, has_sack: bool, has_timestamps: bool) {
        if mss < self.window.mss {
            let segments = |octets: u64| if octets == u64::MAX { octets } else { octets / self.window.mss * mss };
            self.settings.initial_window = segments(self.settings.initial_window);
            let limit = self.window.scaled_limit(mss);
            let cwnd = segments(self.window.cwnd);
            self.window = Window::new(cwnd, self.window.ssthresh, mss, limit);
        }
        self.settings.has_sack = has_sack;
        self.settings.has_timestamps = has_timestamps;
    }

    /// Octets sent and not acknowledged: FlightSize.
    pub(super) fn flight(&self) -> u64 {
        self.next - self.acked
    }
    /// What a reduction begins from, with `flight` octets outstanding: no more than may be in the network.
    /// While a hole stays open, what was SACKed behind it is outstanding, too, and may be many windows;
    /// and who loses a retransmission reduces twice (RFC 5681, section 4.3).
    fn in_network(&self, flight: u64) -> u64 {
        let is_inflated = self.mode == Mode::Fast && !self.settings.has_sack;
        flight.min(if is_inflated { self.window.ssthresh } else { self.window.cwnd })
    }
    /// Full segments believed to be in the network, and the octets that may be.
    pub(super) fn in_flight(&self) -> (u64, u64) {
        (self.pipe().div_ceil(self.window.mss), self.window.cwnd)
    }
    /// Congestion window in octets and smoothed round-trip time, if there is one.
    pub(super) fn window_and_rtt(&self) -> (u64, Option<Duration>) {
        (self.window.cwnd, self.rto.smoothed())
    }
    /// Whether a full segment more would be sent at once.
    pub(super) fn has_room_for_more(&self) -> bool {
        let is_open = self.acked > Octet::SYN && !self.must_resend && !self.has_unsent();
        let pipe = self.pipe();
        let fits = match self.mode {
            Mode::Fast if self.settings.has_sack => self.window.cwnd.saturating_sub(pipe) >= self.window.mss,
            _ => self.has_room(pipe, self.window.mss),
        };
        is_open && fits && self.window_end.since(self.next) >= self.window.mss
    }
    /// Whether all was sent and nothing more could be.
    pub(super) fn is_full(&self) -> bool {
        self.acked > Octet::SYN && !self.has_unsent() && !self.has_room_for_more()
    }
    /// Whether the application has supplied octets that were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.supplied > self.next
    }
    /// Whether a FIN was sent.
    pub(super) fn is_fin_sent(&self) -> bool {
        self.next > self.supplied
    }
    pub(super) fn deadline(&self) -> Instant {
        self.timer
    }
    pub(super) fn stats(&self) -> TcpStats {
        TcpStats { cwnd: self.window.cwnd, ssthresh: self.window.ssthresh, ..self.stats }
    }
    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rto.smoothed()
    }
}

/// Traces count packets where engines of RDMA speak, octets here.
pub(super) fn place(octet: Octet) -> Seq {
    Seq::new(octet.index())
}
