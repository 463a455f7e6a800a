//! The sending half of a connection: the choice of the next segment, and the handling of acknowledgements.
//!
//! Design notes.
//! 1. *Three modes of loss recovery.* `Mode::Open`: nothing is missing. `Mode::Fast`: fast recovery, by the scoreboard
//!    (RFC 6675) or by partial acknowledgements (RFC 6582). `Mode::Slow`: after a timeout, everything that was in
//!    flight and is not SACKed is retransmitted in slow start.
//! 2. *One pointer for retransmissions.* `resent` is HighRxt of RFC 6675; after a timeout it corresponds to SND.NXT of
//!    RFC 9293. `next` is HighData and never decreases.
//! 3. *One timer* for retransmission and for probing a closed window: the former while octets are outstanding, else the
//!    latter if octets wait. Beside it, deadlines of RACK's reordering window, of a tail loss probe, and of pacing.
//! 4. *RACK in place of numbers.* With RACK, `lost_before` of the scoreboard moves by the times of first transmissions,
//!    which are in the order of octets; retransmissions that are lost again are a set of their own. `resent` survives a
//!    recovery, because retransmissions may still be in flight at its end.

use core::ops::Range;

use selvedge_units::{Duration, Instant, Octet, Rate, Seq, TcpSeq};

use super::congestion::{AnyControl, Control, Coupling, Window};
use super::hystart::HyStart;
use super::prr::Prr;
use super::rack::Rack;
use super::rate::Delivery;
use super::rto::RetransmissionTimeout;
use super::scoreboard::Scoreboard;
use super::sent::Log;
use super::{Params, TcpStats};

mod detect;
mod heard;
mod next;
mod tail;
mod timer;

/// Data segments that leave without pacing when a connection begins: an initial window, as in Linux.
const UNPACED: u8 = 10;

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// ISS, the initial send sequence number.
    pub(super) initial: TcpSeq,
    /// SND.UNA, the lowest unacknowledged octet.
    pub(super) acked: Octet,
    /// SND.NXT, one past the highest octet sent.
    pub(super) next: Octet,
    /// End of the octets supplied by the application; a FIN takes this position.
    pub(super) supplied: Octet,
    /// Whether the application will supply no more.
    pub(super) is_closed: bool,

    // The other end's window.
    /// Right edge of the other end's window: SND.UNA + SND.WND.
    window_end: Octet,
    /// The largest window ever offered.
    largest_window: u64,
    /// SND.WL1 and SND.WL2: sequence and acknowledgement number of the last window update.
    window_from: (Octet, Octet),

    // Loss recovery.
    board: Scoreboard,
    mode: Mode,
    /// RecoveryPoint: recovery ends when everything before it is acknowledged.
    recover: Octet,
    /// HighRxt: end of the retransmitted octets.
    resent: Octet,
    /// RescueRxt: limit of the rescue retransmission.
    rescue: Octet,
    /// Whether the first outstanding octet is to be retransmitted regardless of the window.
    must_resend: bool,
    /// Whether this fast recovery has seen a partial acknowledgement.
    was_partial: bool,
    duplicates: u32,
    /// Octets sent by limited transmit beyond the window: excluded from the flight that determines ssthresh (RFC 5681,
    /// section 3.2).
    limited: u64,
    /// SND.UNA at the last timeout.
    timed_out_at: Octet,
    rack: Rack,
    /// Transmissions in flight, if RACK or the congestion control needs their times.
    log: Log,
    prr: Prr,
    /// State before the last reduction, until it is known whether that was spurious.
    undo: Option<Undo>,
    /// End of everything ever retransmitted.
    resent_ever: Octet,
    tail: tail::Tail,

    // Congestion.
    window: Window,
    control: AnyControl,
    /// Influence of the other subflows on this one's window growth.
    pub(super) coupling: Coupling,
    /// End of the window of data in which marks cause no further reduction.
    marked_until: Octet,
    /// Whether the next new segment carries CWR.
    reduced: bool,
    hystart: HyStart,
    delivery: Delivery,
    /// Data segments sent before pacing begins.
    unpaced: u8,
    /// Time before which pacing allows no segment; [`Instant::NEVER`] while it allows one.
    paced_until: Instant,
    /// Time at which pacing allows the next segment, or allowed it.
    pace_at: Instant,

    // Time.
    rto: RetransmissionTimeout,
    timer: Instant,
    /// End of RACK's reordering window.
    reorder_at: Instant,
    /// The octet whose acknowledgement ends a round-trip sample, and the time at which it was sent (Karn's algorithm).
    timed: Option<(Octet, Instant)>,
    last_sent: Instant,
    /// Whether the closed window is to be probed now; `probed` is the end of the octets probed with.
    must_probe: bool,
    probed: Octet,

    settings: Settings,
    stats: TcpStats,
}

/// Constant settings of a sending half.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Settings {
    pub(super) threshold: u32,
    pub(super) has_limited_transmit: bool,
    pub(super) has_nagle: bool,
    pub(super) initial_window: u64,
    pub(super) initial_rto: Duration,
    pub(super) has_sack: bool,
    pub(super) has_timestamps: bool,
    pub(super) has_ecn: bool,
    /// Whether RACK detects losses; as configured, before SACK was agreed upon.
    pub(super) has_rack: bool,
    pub(super) has_tail_loss_probe: bool,
    pub(super) has_prr: bool,
    pub(super) has_eifel: bool,
    /// Longest delay of an acknowledgement, and octets that are acknowledged at once.
    pub(super) ack_delay: Duration,
    pub(super) ack_every: u64,
}

/// State of the window before a reduction.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cwnd: u64,
    ssthresh: u64,
    /// Time of the first retransmission since.
    resent_at: Option<Instant>,
}

/// Mode of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Open,
    Fast,
    Slow,
}

/// The octets of one segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The first octet; a SYN is sent alone.
    pub(super) start: Octet,
    /// Octets of data.
    pub(super) data: u64,
    /// Whether a FIN follows.
    pub(super) fin: bool,
    /// Reason for the transmission.
    pub(super) reason: Reason,
}

/// Reason for sending octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    New,
    /// Retransmission of lost octets.
    Again,
    /// Rescue retransmission (RFC 6675, `NextSeg`, rule 4).
    Rescue,
    /// Retransmission of the last segment, as a tail loss probe.
    Tail,
    /// Probe beyond the other end's window.
    Probe,
}

impl Piece {
    /// Returns the position after the last octet.
    pub(super) fn end(&self) -> Octet {
        let syn = u64::from(self.start == Octet::SYN);
        self.start + (syn + self.data + u64::from(self.fin))
    }
    pub(super) fn is_again(&self) -> bool {
        matches!(self.reason, Reason::Again | Reason::Rescue | Reason::Tail)
    }
}

/// An acknowledgement, with its numbers expanded.
pub(super) struct Acknowledgement<'a> {
    pub(super) ack: Octet,
    /// Position of the segment that carries the acknowledgement, for window updates.
    pub(super) seq: Octet,
    /// The window in octets, after scaling.
    pub(super) window: u64,
    pub(super) sacks: &'a [Range<Octet>],
    /// Whether the segment carries nothing but the acknowledgement.
    pub(super) is_pure: bool,
    /// Age of the echoed time stamp.
    pub(super) rtt: Option<Duration>,
    /// Whether the segment echoes a congestion mark.
    pub(super) echo: bool,
}

impl Acknowledgement<'_> {
    /// Returns the octets that the acknowledgement reports to have arrived twice (RFC 2883, section 4): a first block
    /// that is acknowledged, or inside the second.
    fn dsack(&self) -> Option<Range<Octet>> {
        let first = self.sacks.first().filter(|block| block.start < block.end)?;
        let holds_first = |other: &Range<Octet>| other.start <= first.start && first.end <= other.end;
        (first.end <= self.ack || self.sacks.get(1).is_some_and(holds_first)).then(|| first.clone())
    }
}

impl Sending {
    /// Creates a half that has sent nothing, not even a SYN.
    pub(super) fn new(params: &Params, initial: TcpSeq) -> Self {
        let mut control = AnyControl::from(&params.congestion);
        control.seed(u64::from(initial.get()));
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
            rack: Rack::new(),
            log: Log::default(),
            prr: Prr::default(),
            undo: None,
            resent_ever: Octet::SYN,
            tail: tail::Tail::default(),
            window: params.window,
            control,
            coupling: Coupling::ALONE,
            marked_until: Octet::SYN,
            reduced: false,
            hystart: HyStart::new(params.hystart),
            delivery: Delivery::new(),
            unpaced: UNPACED,
            paced_until: Instant::NEVER,
            pace_at: Instant::ZERO,
            rto: params.rto,
            timer: Instant::NEVER,
            reorder_at: Instant::NEVER,
            timed: None,
            last_sent: Instant::ZERO,
            must_probe: false,
            probed: Octet::SYN,
            settings: params.settings,
            stats: TcpStats::default(),
        }
    }

    /// Skips the handshake: the SYN counts as sent and acknowledged.
    pub(super) fn skip_handshake(&mut self, window: u64) {
        (self.acked, self.next, self.resent) = (Octet::FIRST, Octet::FIRST, Octet::FIRST);
        self.offer(Octet::FIRST, window);
    }
    /// Applies the settings agreed upon in the handshake.
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
        self.settings.has_rack &= has_sack;
        self.settings.has_tail_loss_probe &= self.settings.has_rack;
        self.settings.has_prr &= has_sack && !self.control.owns_window();
        self.settings.has_eifel &= has_timestamps;
    }

    /// Returns the state to return to if the reduction that follows turns out to be spurious. Octets retransmitted
    /// before must not be in flight: their acknowledgement would seem to be that of a first transmission.
    fn state_to_undo(&self) -> Option<Undo> {
        let Window { cwnd, ssthresh, .. } = self.window;
        (self.mode == Mode::Open && self.acked >= self.resent_ever).then_some(Undo { cwnd, ssthresh, resent_at: None })
    }
    /// Returns FlightSize: octets sent and not acknowledged.
    pub(super) fn flight(&self) -> u64 {
        self.next - self.acked
    }
    /// Returns the flight from which a reduction starts, given `flight` outstanding octets: at most what may be in the
    /// network. While a hole stays open, octets SACKed beyond it are outstanding, too, and may amount to many windows;
    /// and a sender that loses a retransmission reduces twice (RFC 5681, section 4.3).
    fn in_network(&self, flight: u64) -> u64 {
        let is_inflated = self.mode == Mode::Fast && !self.settings.has_sack;
        flight.min(if is_inflated { self.window.ssthresh } else { self.window.cwnd })
    }
    /// Returns the full segments believed to be in the network, and the octets allowed there.
    pub(super) fn in_flight(&self) -> (u64, u64) {
        (self.pipe().div_ceil(self.window.mss), self.window.cwnd)
    }
    /// Returns the congestion window in octets and the smoothed round-trip time, if sampled.
    pub(super) fn window_and_rtt(&self) -> (u64, Option<Duration>) {
        (self.window.cwnd, self.rto.smoothed())
    }
    /// Returns whether another full segment would be sent at once.
    pub(super) fn has_room_for_more(&self) -> bool {
        let is_free = !self.must_resend && self.paced_until == Instant::NEVER && !self.has_lost();
        let is_open = self.acked > Octet::SYN && is_free && !self.has_unsent();
        let pipe = self.pipe();
        let fits = match self.mode {
            Mode::Fast if self.settings.has_sack => self.window.cwnd.saturating_sub(pipe) >= self.window.mss,
            _ => self.has_room(pipe, self.window.mss),
        };
        is_open && fits && self.window_end.since(self.next) >= self.window.mss
    }
    /// Returns whether all supplied octets were sent and no more could be.
    pub(super) fn is_full(&self) -> bool {
        self.acked > Octet::SYN && !self.has_unsent() && !self.has_room_for_more()
    }
    /// Returns whether the application has supplied octets that were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.supplied > self.next
    }
    /// Returns whether a FIN was sent.
    pub(super) fn is_fin_sent(&self) -> bool {
        self.next > self.supplied
    }
    pub(super) fn deadline(&self) -> Instant {
        self.timer.min(self.reorder_at).min(self.tail.at).min(self.paced_until)
    }
    /// Returns the time at which pacing allows the next segment, if it does not now.
    pub(super) fn is_paced_until(&self) -> Option<Instant> {
        (self.paced_until < Instant::NEVER).then_some(self.paced_until)
    }
    /// Returns the rate of pacing.
    pub(super) fn pacing(&self) -> Option<Rate> {
        self.control.pacing()
    }
    /// Returns whether the times of transmissions are needed.
    fn is_logging(&self) -> bool {
        self.settings.has_rack || self.control.owns_window()
    }
    pub(super) fn stats(&self) -> TcpStats {
        TcpStats { cwnd: self.window.cwnd, ssthresh: self.window.ssthresh, ..self.stats }
    }
    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rto.smoothed()
    }
}

/// Converts an octet to the sequence type of traces, which count octets for TCP and packets for RDMA engines.
pub(super) fn place(octet: Octet) -> Seq {
    Seq::new(octet.index())
}
