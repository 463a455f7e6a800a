//! Measurements at the sending end of a tunnel: round trips, in all and per path, and losses per path.
//!
//! A packet is *overtaken* if one sent later on the same path has arrived (RACK, RFC 8985, per path). Packets of one
//! path keep their order, unlike those of a sprayed tunnel, so an overtaken packet is lost once the margin for
//! reordering has passed.

use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};

use super::clock::rebase;
use super::config::EqdsParams;
use super::numbers::Numbers;
use super::round_trips::RoundTrips;
use super::window::Notice;

/// Least measured credit of a tunnel, in quanta ("typically 10 to 30 packets", section 5).
const LEAST_SPAN: u64 = 10;
/// Least measured number of packets in flight (section 8.5).
const LEAST_ROOM: u32 = 50;

/// Statistics of one path of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathReport {
    /// Round trips of packets sent once.
    pub round_trips: RoundTrips,
    /// Packets that have arrived.
    pub arrived: u64,
    /// Packets declared lost or reported as trimmed.
    pub lost: u64,
    /// The packet sent last among those that have arrived: its time and number. [`Instant::NEVER`]: none has.
    newest: (Instant, u32),
    /// Round-trip time of that packet.
    newest_took: Duration,
}

impl PathReport {
    const NEW: Self = Self {
        round_trips: RoundTrips {
            samples: 0,
            latest: Duration::ZERO,
            least: Duration::ZERO,
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
        },
        arrived: 0,
        lost: 0,
        newest: (Instant::NEVER, 0),
        newest_took: Duration::ZERO,
    };
}

/// Measurements of one tunnel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Measured {
    pub(super) round_trips: RoundTrips,
    paths: Vec<PathReport>,
    /// The packet sent last among those that the present control packet acknowledges: path and round-trip time, and
    /// the time at which it was sent.
    candidate: Option<(u16, Duration, Instant)>,
    /// Whether the present control packet acknowledges a retransmission.
    again: bool,
    /// Timeouts in a row without a sample: each doubles the timeout (RFC 6298, rule 5.5; Karn's rule).
    back_off: u32,
}

impl Measured {
    /// Returns the statistics of each path used so far, in the order of path ids.
    pub(super) fn paths(&self) -> &[PathReport] {
        &self.paths
    }

    fn path(&mut self, path: u16) -> &mut PathReport {
        let place = usize::from(path);
        if self.paths.len() <= place {
            self.paths.resize(place + 1, PathReport::NEW);
        }
        &mut self.paths[place]
    }

    /// Records the arrival of a packet.
    pub(super) fn note_arrived<H>(&mut self, numbers: Numbers, now: Instant, notice: &Notice<H>) {
        let took = now.since(notice.sent_at);
        // The acknowledgement of a retransmission may be that of the first copy if it comes this early (RFC 8985,
        // section 6.2, step 2).
        let is_plain = !notice.again || (self.round_trips.samples > 0 && took >= self.round_trips.least);
        self.again |= notice.again;
        let path = self.path(notice.path);
        path.arrived += 1;
        let (at, number) = path.newest;
        let is_newer = at == Instant::NEVER
            || notice.sent_at > at
            || (notice.sent_at == at && numbers.is_after(notice.seq, number));
        if is_plain && is_newer {
            (path.newest, path.newest_took) = ((notice.sent_at, notice.seq), took);
        }
        if !notice.again && self.candidate.is_none_or(|(.., sent_at)| sent_at <= notice.sent_at) {
            self.candidate = Some((notice.path, took, notice.sent_at));
        }
    }

    /// Records the loss of a packet.
    pub(super) fn note_lost(&mut self, path: u16) {
        self.path(path).lost += 1;
    }

    /// Ends the handling of a control packet: takes at most one sample, since others of the same control packet were
    /// acknowledged late. Returns whether the control packet acknowledged a retransmission.
    pub(super) fn take_sample(&mut self) -> bool {
        if let Some((path, took, _)) = self.candidate.take() {
            self.round_trips.add(took);
            self.path(path).round_trips.add(took);
            self.back_off = 0;
        }
        core::mem::take(&mut self.again)
    }

    /// Returns the time from which a packet is lost because it was overtaken; `None` if it was not.
    pub(super) fn lost_from<H>(&self, numbers: Numbers, packet: &Notice<H>, margin: Duration) -> Option<Instant> {
        let path = self.paths.get(usize::from(packet.path))?;
        let (at, number) = path.newest;
        if at == Instant::NEVER {
            return None;
        }
        let before =
            packet.sent_at < at || (packet.sent_at == at && !packet.again && numbers.is_after(number, packet.seq));
        before.then(|| packet.sent_at.saturating_add(path.newest_took).saturating_add(margin))
    }

    /// Returns the credit in bytes that a round trip needs at the rate of pulls, and the packets that may be in flight:
    /// twice as many, no fewer than [`LEAST_ROOM`]. Neither exceeds the settings, and the credit is no less than
    /// [`LEAST_SPAN`] quanta, which keeps a tunnel with an optimistic sample alive.
    pub(super) fn bounds(&self, params: &EqdsParams) -> (u32, u32) {
        let Some(trip) = self.round_trips.bound() else { return (params.window, params.reorder) };
        let most = u64::from((params.window / params.quantum).max(1));
        let quanta = trip.as_ps() / params.pull_interval.as_ps().max(1) + 1;
        let quanta = quanta.max(LEAST_SPAN).min(most) as u32;
        (quanta * params.quantum, quanta.saturating_mul(2).max(LEAST_ROOM).min(params.reorder))
    }

    /// Returns the retransmission timeout within `bounds`; `initial` before the first sample.
    pub(super) fn timeout(&self, initial: Duration, (floor, ceiling): (Duration, Duration)) -> Duration {
        let timeout = self.round_trips.bound().unwrap_or(initial).max(floor);
        timeout.saturating_mul(1 << self.back_off.min(super::MOST_DOUBLINGS)).min(ceiling)
    }

    /// Moves the times at which packets were sent.
    pub(super) fn rebase(&mut self, by: Duration) {
        for path in &mut self.paths {
            rebase(&mut path.newest.0, by);
        }
    }

    /// Records that packets were lost by timeout.
    pub(super) fn note_timeout(&mut self) {
        self.back_off = self.back_off.saturating_add(1);
    }
}
