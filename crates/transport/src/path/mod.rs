//! One congestion control for all that a host has on its way to another host.
//!
//! ```text
//!     on_sent ──> time stamp, of one packet each ──> the packet's extension header ──> the other end
//!     on_echo <── time stamp, and how long the packet waited in the other end's host ──< acknowledgement
//!     is_open ──> whether one more packet may leave       on_mark, on_silence <── CNPs, no acknowledgements
//! ```
//!
//! Design notes.
//! 1. *What is outstanding is known by time stamps.* Each packet on the path has a time stamp of its own, whichever
//!    queue pair sends it. An acknowledgement echoes the time stamp of the packet that caused it: that packet, and all
//!    that left before it, are no longer in the network, as long as the path keeps order. They have arrived or are
//!    lost; either way a retransmission takes a place in the window like any other packet. So retransmissions cannot
//!    flood a path, and one acknowledgement lost, or a queue pair that is gone, holds nothing back.
//! 2. *Delays are the network's.* The time that a packet waits in a socket before its process runs is taken out of
//!    round-trip times (Swift, section 3.2): a busy processor is not congestion.
//! 3. *Decisions are made once per round trip*, with the smallest delay of the round: what one thread or batch adds is
//!    not in it.
//! 4. *A loss is congestion* where the delay shows a queue, or where more than one packet in eight is lost (`HEAVY`).
//!    Else it is random: loss recovery is selective, and needs no smaller window. The same goes for silence: the first
//!    may be one acknowledgement that was lost.
//! 5. *Nothing grows that is not used* (RFC 7661): only a window that has held packets back since the last round began
//!    grows.

mod config;

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};

pub use self::config::PathConfig;
use crate::recovery::rto::RtoEstimator;

/// A path that loses more than one packet in so many is congested, whatever the delay.
const HEAVY: u64 = 8;
/// Packets after which that is judged, in one round trip or several: few packets lose so many by chance.
const SAMPLE: u64 = 64;
/// Round trips of growth by one step, before the step doubles (TIMELY, section 4.3: hyperactive increase).
const CALM: u32 = 5;
/// The step is at most the window divided by this.
const STEEPEST: f64 = 8.0;
/// The longest silence, whatever round-trip times are.
const LONGEST: Duration = Duration::from_ms(1_000);
/// How long the shortest delay is remembered: once, and at most twice this.
const MEMORY: Duration = Duration::from_ms(10_000);

/// The congestion control of a path.
#[derive(Clone, Debug)]
pub struct Path {
    config: PathConfig,
    /// In packets.
    window: f64,
    /// The window doubles each round trip until the first sign of congestion.
    is_starting: bool,
    /// Packets outstanding, oldest first.
    outstanding: VecDeque<Run>,
    in_flight: u64,
    /// The newest time stamp.
    newest: Instant,
    /// The newest time stamp that was echoed.
    echoed: Instant,
    /// When waiting for an acknowledgement began: when one was heard last, or when the first packet left after none was
    /// outstanding.
    waits_since: Instant,
    /// When it was found silent last, if no acknowledgement was heard since.
    silent: Option<Instant>,
    since_ask: u64,
    round: Round,
    /// Packets that are outstanding no longer, and that were sent again, since losses were judged last.
    judged: Losses,
    /// The queueing delay of the last round trip.
    queue: Duration,
    shortest: Shortest,
    rto: RtoEstimator,
    /// Round trips without congestion since the last reduction.
    calm: u32,
    /// DCQCN's alpha.
    marked: f64,
    marked_at: Instant,
    /// Packets were held back in the round before.
    was_full: bool,
}

/// Packets that left one behind the other, whose time stamps are a picosecond apart.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Instant,
    count: u64,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// They are outstanding no longer.
    departed: u64,
    /// They were sent again.
    resent: u64,
}

/// What a round trip has brought so far.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// It ends when this or a later time stamp is echoed.
    end: Instant,
    losses: Losses,
    /// The smallest delay.
    delay: Option<Duration>,
    /// Packets were held back.
    is_full: bool,
}

/// The shortest delay of the last one or two [`MEMORY`].
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
    /// A path of which nothing is known.
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

    /// Packets that may be outstanding.
    #[inline]
    pub fn window(&self) -> u64 {
        self.window as u64
    }
    /// Packets that are outstanding.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Whether one more packet may leave.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.in_flight < self.window()
    }
    /// A packet has to wait because of the window.
    #[inline]
    pub fn on_held(&mut self) {
        self.round.is_full = true;
    }
    /// The newest time stamp that was echoed: packets up to it are outstanding no longer.
    #[inline]
    pub fn echoed(&self) -> Instant {
        self.echoed
    }

    /// When all that was outstanding counted as lost last, if no acknowledgement was heard since.
    #[inline]
    pub fn silent(&self) -> Option<Instant> {
        self.silent
    }

    /// So many packets leave, at least one, `again` or for the first time. Returns the time stamp of the last of them,
    /// which is of no other packet of this path, and whether that packet should ask for an acknowledgement: four do
    /// in a window, and the last that it lets go.
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

    /// An acknowledgement has arrived that echoes this time stamp. The packet that caused it, and the acknowledgement,
    /// `waited` in the two hosts; `None` if that is not known. A time stamp that was never given is ignored.
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

    /// Packets up to this time stamp are outstanding no longer; returns how many there were.
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
    /// Packets that a round trip adds to the window.
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
        // HyStart's idea: a queue that begins to stand ends the start before it overflows.
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

    /// A congestion notification has arrived: packets of ours arrive with marks. DCQCN's reduction (section 3.1,
    /// equation 1), of the window instead of a rate, at most once per round trip.
    pub fn on_mark(&mut self, now: Instant) {
        let is_first = self.marked_at <= self.round.end;
        self.marked_at = now.max(self.round.end + Duration::from_ps(1));
        if is_first {
            self.reduce(self.marked / 2.0);
            self.marked += (1.0 - self.marked) * self.config.gain;
        }
    }

    /// When to call [`Path::on_silence`]; [`Instant::NEVER`] while nothing is outstanding.
    pub fn deadline(&self) -> Instant {
        if self.in_flight == 0 { Instant::NEVER } else { self.waits_since.saturating_add(self.rto.rto()) }
    }
    /// The deadline has passed: all that is outstanding counts as lost. The window becomes smaller if there was a queue
    /// in the last round trip, or if this is not the first deadline without an acknowledgement between: one
    /// acknowledgement may speak for all that is outstanding, and is lost by chance, too. Early is a no-op.
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
