//! One congestion control for all traffic from one host to another.
//!
//! ```text
//!     on_sent ──> time stamp, of one packet each ──> the packet's extension header ──> the other end
//!     on_echo <── time stamp, and how long the packet waited in the other end's host ──< acknowledgement
//!     is_open ──> whether one more packet may leave       on_mark, on_silence <── CNPs, no acknowledgements
//! ```
//!
//! Design notes.
//! 1. *Time stamps identify the packets in flight.* Each packet on the path has a time stamp of its own, whichever
//!    queue pair sends it. An acknowledgement echoes the time stamp of the packet that caused it: that packet, and all
//!    sent before it, are no longer in the network, as long as the path keeps order. They have arrived or are lost;
//!    either way a retransmission takes a place in the window like any other packet. So retransmissions cannot flood a
//!    path, and neither a lost acknowledgement nor a removed queue pair blocks the window.
//! 2. *Only network delay counts.* The time that a packet waits in a socket before its process runs is subtracted from
//!    round-trip times (Swift, section 3.2): a busy processor is not congestion.
//! 3. *Decisions are made once per round trip*, by the smallest delay of the round, which excludes the delays of single
//!    threads or batches.
//! 4. *A loss is congestion* if the delay shows a queue, or if more than one packet in eight is lost (`HEAVY`).
//!    Otherwise it is random: loss recovery is selective and needs no smaller window. Likewise for silence: the first
//!    may be a single lost acknowledgement.
//! 5. *An unused window does not grow* (RFC 7661): only a window that has held packets back since the last round began
//!    grows.

mod config;

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};

pub use self::config::PathConfig;
use crate::recovery::rto::RtoEstimator;

/// Loss ratio limit: a path that loses more than one packet in `HEAVY` is congested, whatever the delay.
const HEAVY: u64 = 8;
/// Packets per judgement of the loss ratio, over one or more round trips: so many that random losses rarely exceed the
/// limit.
const SAMPLE: u64 = 64;
/// Uncongested round trips after which the growth step doubles (TIMELY, section 4.3: hyperactive increase).
const CALM: u32 = 5;
/// Divisor of the window that gives the largest step.
const STEEPEST: f64 = 8.0;
/// Longest silence, whatever the round-trip times.
const LONGEST: Duration = Duration::from_ms(1_000);
/// Memory of the shortest delay: at least this, at most twice this.
const MEMORY: Duration = Duration::from_ms(10_000);

/// The congestion control of a path.
#[derive(Clone, Debug)]
pub struct Path {
    config: PathConfig,
    /// Window in packets.
    window: f64,
    /// Whether the window doubles each round trip, until the first sign of congestion.
    is_starting: bool,
    /// Packets in flight, oldest first.
    outstanding: VecDeque<Run>,
    in_flight: u64,
    /// The newest time stamp assigned.
    newest: Instant,
    /// The newest time stamp echoed.
    echoed: Instant,
    /// Start of the wait for an acknowledgement: the last acknowledgement, or the transmission of the first packet when
    /// none was in flight.
    waits_since: Instant,
    /// Time of the last silence, if no acknowledgement arrived since.
    silent: Option<Instant>,
    since_ask: u64,
    round: Round,
    /// Packets that left the network, and retransmissions, since losses were last judged.
    judged: Losses,
    /// Queueing delay of the last round trip.
    queue: Duration,
    shortest: Shortest,
    rto: RtoEstimator,
    /// Round trips without congestion since the last reduction.
    calm: u32,
    /// DCQCN's alpha: estimated fraction of marked packets.
    marked: f64,
    marked_at: Instant,
    /// Whether packets were held back in the previous round.
    was_full: bool,
}

/// Packets sent back to back, with consecutive time stamps one picosecond apart.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Instant,
    count: u64,
}

/// Counts of packets for the loss ratio.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Packets no longer in the network.
    departed: u64,
    /// Packets retransmitted.
    resent: u64,
}

/// Observations of the present round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// End of the round: the first echo of this or a later time stamp.
    end: Instant,
    losses: Losses,
    /// Smallest delay of the round.
    delay: Option<Duration>,
    /// Whether packets were held back.
    is_full: bool,
}

/// Shortest delay within the last one or two periods of [`MEMORY`].
#[derive(Clone, Copy, Debug)]
struct Shortest {
    since: Instant,
    now: Duration,
    before: Duration,
}

impl Shortest {
    fn learn(&mut self, now: Instant, delay: Duration) -> Duration {
        if now.since(self.since) >= MEMORY {
            *self = Self { since: now, now: delay, before: self.now };
        }
        self.now = self.now.min(delay);
        self.now.min(self.before)
    }
}

impl Path {
    /// Creates the control of a path without history.
    ///
    /// # Panics
    /// If the settings are out of range ([`PathConfig::check`]).
    pub fn new(config: PathConfig) -> Self {
        assert_eq!(config.check(), Ok(()), "settings of a path");
        let (least, most) = config.silence;
        Self {
            config,
            window: f64::from(config.initial_window),
            is_starting: true,
            outstanding: VecDeque::new(),
            in_flight: 0,
            newest: Instant::ZERO,
            echoed: Instant::ZERO,
            waits_since: Instant::ZERO,
            silent: None,
            since_ask: 0,
            round: Round::default(),
            judged: Losses::default(),
            queue: Duration::ZERO,
            shortest: Shortest { since: Instant::ZERO, now: Duration::MAX, before: Duration::MAX },
            rto: RtoEstimator::new(most, least, LONGEST),
            calm: 0,
            marked: 1.0,
            marked_at: Instant::ZERO,
            was_full: true,
        }
    }

    /// Returns the window: packets that may be in flight.
    #[inline]
    pub fn window(&self) -> u64 {
        self.window as u64
    }
    /// Returns the packets in flight.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Returns whether one more packet may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.in_flight < self.window()
    }
    /// Records that a packet is held back by the window.
    #[inline]
    pub fn on_held(&mut self) {
        self.round.is_full = true;
    }
    /// Returns the newest time stamp echoed: packets up to it are no longer in flight.
    #[inline]
    pub fn echoed(&self) -> Instant {
        self.echoed
    }

    /// Returns the time at which all packets in flight last counted as lost, if no acknowledgement arrived since.
    #[inline]
    pub fn silent(&self) -> Option<Instant> {
        self.silent
    }

    /// Records the transmission of `packets` packets, at least one; `again` for retransmissions. Returns the time stamp
    /// of the last of them, which is unique on this path, and whether that packet should request an acknowledgement:
    /// four per window do, and the last that the window admits.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, packets: u64, again: bool) -> (Instant, bool) {
        let first = now.max(self.newest + Duration::from_ps(1));
        match self.outstanding.back_mut() {
            Some(run) if run.first + Duration::from_ps(run.count) == first => run.count += packets,
            _ => {
                if self.outstanding.is_empty() {
                    self.waits_since = now;
                }
                self.outstanding.push_back(Run { first, count: packets });
            }
        }
        self.newest = first + Duration::from_ps(packets - 1);
        self.in_flight += packets;
        self.round.losses.resent += u64::from(again) * packets;
        self.since_ask += packets;
        let asks = !self.is_open() || self.since_ask * 4 >= self.window();
        if asks {
            self.since_ask = 0;
        }
        (self.newest, asks)
    }

    /// Handles an acknowledgement that echoes `stamp`. The packet that caused it, and the acknowledgement, `waited` in
    /// the two hosts; `None` if unknown. A time stamp that was never assigned is ignored.
    #[inline]
    pub fn on_echo(&mut self, now: Instant, stamp: Instant, waited: Option<Duration>) {
        if stamp > self.newest {
            return;
        }
        self.waits_since = now;
        self.silent = None;
        if stamp <= self.echoed {
            return;
        }
        self.echoed = stamp;
        let departed = self.forget(stamp);
        self.round.losses.departed += departed;
        let whole = now.since(stamp);
        self.rto.on_sample(whole);
        if let Some(waited) = waited {
            let delay = whole.saturating_sub(waited);
            self.round.delay = Some(self.round.delay.map_or(delay, |least| least.min(delay)));
        }
        if self.is_used() {
            self.grow(departed);
        }
        if stamp >= self.round.end {
            self.end_round(now);
        }
    }

    /// Removes packets up to this time stamp from those in flight; returns their number.
    fn forget(&mut self, stamp: Instant) -> u64 {
        let mut departed = 0;
        while let Some(run) = self.outstanding.front_mut()
            && run.first <= stamp
        {
            let gone = (stamp.since(run.first).as_ps() + 1).min(run.count);
            departed += gone;
            if gone < run.count {
                run.first += Duration::from_ps(gone);
                run.count -= gone;
                break;
            }
            self.outstanding.pop_front();
        }
        self.in_flight -= departed;
        departed
    }

    fn is_used(&self) -> bool {
        self.round.is_full || self.was_full
    }

    fn grow(&mut self, departed: u64) {
        let departed = departed as f64;
        let gain = if self.is_starting { departed } else { self.step() * departed / self.window };
        self.window = (self.window + gain).min(f64::from(self.config.max_window));
    }
    /// Returns the packets that a round trip adds to the window.
    fn step(&self) -> f64 {
        let doubled = 1_u32 << (self.calm / CALM).min(16);
        f64::from(doubled).min(self.window / STEEPEST).max(1.0)
    }

    fn end_round(&mut self, now: Instant) {
        let Round { losses, delay, .. } = self.round;
        let PathConfig { target, lossy, beta, max_decrease, loss_decrease, gain, .. } = self.config;
        let queue = delay.map_or(Duration::ZERO, |delay| delay.saturating_sub(self.shortest.learn(now, delay)));
        self.queue = queue;
        self.judged.departed += losses.departed;
        self.judged.resent += losses.resent;
        let is_heavy = self.judged.resent * HEAVY > self.judged.departed.max(SAMPLE);
        if is_heavy || self.judged.departed >= SAMPLE {
            self.judged = Losses::default();
        }
        let part = if is_heavy {
            max_decrease
        } else if losses.resent > 0 && queue >= lossy {
            loss_decrease
        } else if queue > target {
            let whole = delay.unwrap_or_default().as_ps().max(1) as f64;
            (beta * (queue - target).as_ps() as f64 / whole).min(max_decrease)
        } else {
            0.0
        };
        // As in HyStart, a standing queue ends the start before the queue overflows.
        if self.is_starting && queue > target / 2 {
            self.is_starting = false;
        }
        if part > 0.0 {
            self.reduce(part);
        } else if self.is_used() {
            self.calm += 1;
        }
        if self.marked_at <= self.round.end {
            self.marked *= 1.0 - gain;
        }
        self.was_full = self.round.is_full;
        self.round = Round { end: self.newest, ..Round::default() };
    }

    fn reduce(&mut self, part: f64) {
        self.is_starting = false;
        self.calm = 0;
        self.window = (self.window * (1.0 - part)).max(f64::from(self.config.min_window));
    }

    /// Handles a congestion notification: this host's packets arrive marked. Applies DCQCN's reduction (section 3.1,
    /// equation 1) to the window instead of a rate, at most once per round trip.
    pub fn on_mark(&mut self, now: Instant) {
        let is_first = self.marked_at <= self.round.end;
        self.marked_at = now.max(self.round.end + Duration::from_ps(1));
        if is_first {
            self.reduce(self.marked / 2.0);
            self.marked += (1.0 - self.marked) * self.config.gain;
        }
    }

    /// Returns the time at which [`Path::on_silence`] is due; [`Instant::NEVER`] while nothing is in flight.
    pub fn deadline(&self) -> Instant {
        if self.in_flight == 0 { Instant::NEVER } else { self.waits_since.saturating_add(self.rto.rto()) }
    }
    /// Handles the deadline: all packets in flight count as lost. The window is reduced if there was a queue in the
    /// last round trip, or if no acknowledgement arrived since the previous deadline: a single acknowledgement may
    /// cover all packets in flight, and may be lost at random, too. An early call has no effect.
    pub fn on_silence(&mut self, now: Instant) {
        if self.deadline() > now {
            return;
        }
        self.outstanding.clear();
        self.echoed = self.newest;
        (self.in_flight, self.since_ask) = (0, 0);
        if self.rto.rto() < self.config.silence.1 {
            self.rto.back_off();
        }
        if self.silent.is_some() || self.queue >= self.config.lossy {
            self.reduce(self.config.max_decrease);
        }
        self.waits_since = now;
        self.silent = Some(now);
        self.was_full = true;
        self.round = Round { end: self.newest, ..Round::default() };
    }
}

#[cfg(test)]
mod tests;
