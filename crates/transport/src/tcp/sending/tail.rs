//! Tail loss probes (RFC 8985, section 7): what makes a receiver answer when the end of a flight is lost.

use selvedge_units::{Duration, Instant, Octet};

use super::{Mode, Piece, Reason, Sending};
use crate::tcp::congestion::Control;
use crate::tcp::connection::TICK;

/// State of tail loss probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Time of the next probe.
    pub(super) at: Instant,
    /// Whether a probe is to be sent now.
    pub(super) is_due: bool,
    /// TLP.end_seq and TLP.is_retrans, of the probe in flight.
    probe: Option<(Octet, bool)>,
}

impl Default for Tail {
    fn default() -> Self {
        Self { at: Instant::NEVER, is_due: false, probe: None }
    }
}

/// Time before the first probe without a sample of the round-trip time (section 7.2).
const FIRST: Duration = Duration::from_ms(1_000);

impl Sending {
    /// Schedules a probe (section 7.2) two round trips from now, but not after the timer: while octets are in flight,
    /// none is SACKed, nothing is being recovered and no probe is in flight.
    pub(super) fn watch_tail(&mut self, now: Instant) {
        self.tail.at = Instant::NEVER;
        let is_calm = self.mode == Mode::Open && self.board.is_empty() && self.acked > Octet::SYN;
        let is_free = self.tail.probe.is_none() && !self.tail.is_due;
        if !self.settings.has_tail_loss_probe || !is_calm || !is_free || self.flight() == 0 {
            return;
        }
        let wait = self.rto.smoothed().map_or(FIRST, |srtt| {
            // The acknowledgement of so few segments may be delayed.
            let delay = if self.flight() < self.settings.ack_every { self.settings.ack_delay } else { Duration::ZERO };
            srtt.saturating_mul(2).max(TICK).saturating_add(delay)
        });
        self.tail.at = now.saturating_add(wait).min(self.timer);
    }

    /// Handles the time of a probe (section 7.3).
    pub(super) fn probe_tail(&mut self, now: Instant) {
        self.tail.at = Instant::NEVER;
        if self.flight() == 0 || self.mode != Mode::Open {
            return;
        }
        self.tail.is_due = true;
        self.start_timer(now);
    }

    /// Returns the probe: a new segment, whatever cwnd is, or the last one again.
    pub(super) fn next_tail(&self) -> Option<Piece> {
        let new = self.new_piece(0).filter(|piece| piece.reason == Reason::New);
        new.or_else(|| {
            let start = self.log.last().map_or(self.acked, |sent| sent.start).max(self.acked);
            // The last segment of those that left together.
            let before = self.next.since(start).div_ceil(self.window.mss).saturating_sub(1);
            self.again(start + before * self.window.mss..self.next, Reason::Tail)
        })
    }
    /// Records that the probe was sent.
    pub(super) fn on_tail_sent(&mut self, now: Instant, piece: &Piece) {
        self.stats.probes += 1;
        self.tail.probe = Some((self.next, piece.is_again()));
        self.tail.at = Instant::NEVER;
        self.start_timer(now);
    }

    /// Handles an acknowledgement of a probe (section 7.4): if a probe that was a retransmission repaired a loss, the
    /// window is reduced. `is_dsack` tells that the acknowledgement reports the probe as a duplicate,
    /// `is_pure_duplicate` that it tells nothing new.
    pub(super) fn on_tail_acked(&mut self, is_dsack: bool, is_pure_duplicate: bool) {
        let Some((end, is_again)) = self.tail.probe.filter(|(end, _)| self.acked >= *end) else { return };
        if is_again && !is_dsack && !is_pure_duplicate && self.acked == end {
            return; // it may yet be reported as a duplicate
        }
        self.tail.probe = None;
        if is_again && !is_dsack && self.acked > end && self.mode == Mode::Open {
            self.window.ssthresh = self.control.on_loss(&self.window, self.window.cwnd);
            if !self.control.owns_window() {
                self.window.set(self.window.ssthresh);
            }
            self.marked_until = self.next;
        }
    }
}
