//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., "BBR: Congestion-Based Congestion
//! Control", ACM Queue 14(5), 2016): a model of the path's rate and round trip paces segments and bounds those in
//! flight.
//!
//! Windows are in octets, rates in octets per second. Where Linux's BBR differs from the draft, Linux's rule holds: 1 %
//! less is paced than measured, and fast recovery keeps its packet conservation for one round trip. Not here, unlike
//! Linux: the sampling behind policers (`lt_bw`), and the allowance for aggregated acknowledgements (`extra_acked`).

use selvedge_units::{Duration, Instant, Rate};

use super::{Acked, Control, RateSample, Recovery, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// BBR's constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Config {
    /// Time for which a minimum of the round-trip time holds; then the path is emptied to measure it anew. Default: 10s
    /// (section 4.1.2.3).
    pub min_rtt_window: Duration,
    /// Time for which the path stays empty then, at least. Default: 200ms (section 4.3.5).
    pub probe_rtt: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { min_rtt_window: Duration::from_ms(10_000), probe_rtt: Duration::from_ms(200) }
    }
}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        if self.min_rtt_window <= self.probe_rtt {
            let message = "the path would be emptied all the time; give more than probe-rtt";
            return Err(SettingError::new("congestion.bbr.min-rtt-window", message));
        }
        Ok(*self)
    }
}

/// BBRHighGain: 2 / ln 2, the least gain that doubles the rate each round trip (section 4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Gain of cwnd over the estimated BDP beyond startup (section 4.2.3.2).
const CWND_GAIN: f64 = 2.0;
/// Gains of ProbeBW's cycle (section 4.3.4.1).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Rounds over which the rate is maximal (section 4.1.1.3).
const ROUNDS: usize = 10;
/// Growth that a round of startup must show, and rounds without it after which the pipe is full (section 4.3.2.2).
const GROWTH: f64 = 1.25;
const FLAT_ROUNDS: u32 = 3;
/// BBRMinPipeCwnd, in segments (section 4.2.3.2).
const LEAST_CWND: u64 = 4;
/// Share of the measured rate that is paced.
const MARGIN: f64 = 0.99;

/// Mode of operation (section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    /// Index into the cycle of gains, and the time at which this phase began.
    ProbeBw(usize, Instant),
    /// Time at which the path has been empty for long enough, once it is empty.
    ProbeRtt(Option<Instant>),
}

/// BBR's state.
#[derive(Clone, Copy, Debug)]
pub struct State {
    config: Config,
    mode: Mode,
    /// State of the generator of ProbeBW's first phases.
    seed: u64,

    /// BtlBwFilter: the greatest rate of each of the last rounds, with the number of the round.
    rates: [(u64, f64); ROUNDS],
    /// BtlBw.
    bandwidth: f64,
    /// RTprop, and the time of that sample.
    min_rtt: Option<(Duration, Instant)>,

    /// round_count, and next_round_delivered.
    round: u64,
    round_end: u64,
    is_round_start: bool,

    /// full_bw and full_bw_count.
    full: f64,
    flat_rounds: u32,
    is_full: bool,

    pacing_gain: f64,
    cwnd_gain: f64,
    /// Pacing rate; zero before the first sample: an initial window is not paced, as in Linux.
    rate: f64,
    has_rtt: bool,
    initial_window: u64,

    /// Whether a round trip has passed with the path empty.
    is_round_done: bool,
    prior_cwnd: u64,
    recovery: Recovery,
    conserves: bool,
    is_restarting: bool,
}

impl State {
    /// Creates the state before the first sample.
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            mode: Mode::Startup,
            seed: 0,
            rates: [(0, 0.0); ROUNDS],
            bandwidth: 0.0,
            min_rtt: None,
            round: 0,
            round_end: 0,
            is_round_start: false,
            full: 0.0,
            flat_rounds: 0,
            is_full: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            rate: 0.0,
            has_rtt: false,
            initial_window: 0,
            is_round_done: false,
            prior_cwnd: 0,
            recovery: Recovery::None,
            conserves: false,
            is_restarting: false,
        }
    }

    /// Counts rounds, and takes the greatest rate of the last ten (sections 4.1.1.2 to 4.1.1.5).
    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.is_round_start = false;
        if sample.interval.is_zero() {
            return;
        }
        if sample.prior_delivered >= self.round_end {
            self.round_end = sample.total;
            self.round += 1;
            self.is_round_start = true;
            self.conserves = false;
        }
        let rate = sample.delivered as f64 / sample.interval.as_secs_f64();
        if rate >= self.bandwidth || !sample.is_app_limited {
            let slot = &mut self.rates[(self.round % ROUNDS as u64) as usize];
            *slot = if slot.0 == self.round { (self.round, slot.1.max(rate)) } else { (self.round, rate) };
            let recent = self.rates.iter().filter(|(round, _)| self.round - round < ROUNDS as u64);
            self.bandwidth = recent.fold(0.0, |most, &(_, rate)| most.max(rate));
        }
    }

    /// Advances the cycle of gains (section 4.3.4.3).
    fn update_phase(&mut self, window: &Window, sample: &RateSample) {
        let Mode::ProbeBw(phase, begin) = self.mode else { return };
        let is_long_enough = sample.now.since(begin) > self.min_rtt.map_or(Duration::MAX, |(least, _)| least);
        let gain = CYCLE[phase];
        let is_over = if gain > 1.0 {
            is_long_enough && (sample.lost > 0 || sample.prior_in_flight >= self.inflight(window, gain))
        } else if gain < 1.0 {
            is_long_enough || sample.prior_in_flight <= self.inflight(window, 1.0)
        } else {
            is_long_enough
        };
        if is_over {
            self.mode = Mode::ProbeBw((phase + 1) % CYCLE.len(), sample.now);
        }
    }
    /// Begins ProbeBW in any phase but that which drains (section 4.3.4.3).
    fn probe_bandwidth(&mut self, now: Instant) {
        self.seed = selvedge_units::mix64(self.seed.wrapping_add(1));
        let skipped = (self.seed % (CYCLE.len() as u64 - 1)) as usize;
        self.mode = Mode::ProbeBw((CYCLE.len() - skipped) % CYCLE.len(), now);
    }

    /// Notices that the rate has ceased to grow (section 4.3.2.2).
    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.is_round_start || sample.is_app_limited {
            return;
        }
        if self.bandwidth >= self.full * GROWTH {
            (self.full, self.flat_rounds) = (self.bandwidth, 0);
        } else {
            self.flat_rounds += 1;
            self.is_full = self.flat_rounds >= FLAT_ROUNDS;
        }
    }
    /// Leaves startup for draining the queue, and draining once it is empty (section 4.3.3).
    fn check_drain(&mut self, window: &mut Window, sample: &RateSample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(window, 1.0);
        }
        if self.mode == Mode::Drain && sample.in_flight <= self.inflight(window, 1.0) {
            self.probe_bandwidth(sample.now);
        }
    }

    /// Takes the least round-trip time, and empties the path when it is too old (sections 4.1.2.3 and 4.3.5). Returns
    /// whether the path is being emptied.
    fn update_min_rtt(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        let now = sample.now;
        let is_old = self.min_rtt.is_some_and(|(_, at)| now.since(at) > self.config.min_rtt_window);
        if let Some(rtt) = sample.rtt
            && self.min_rtt.is_none_or(|(least, _)| rtt < least || (is_old && !sample.is_maybe_delayed))
        {
            self.min_rtt = Some((rtt, now));
        }
        if is_old && !self.is_restarting && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save(window);
            self.mode = Mode::ProbeRtt(None);
        }
        let is_probing = matches!(self.mode, Mode::ProbeRtt(_));
        match self.mode {
            Mode::ProbeRtt(None) if sample.in_flight <= LEAST_CWND * window.mss => {
                self.mode = Mode::ProbeRtt(Some(now.saturating_add(self.config.probe_rtt)));
                (self.is_round_done, self.round_end) = (false, sample.total);
            }
            Mode::ProbeRtt(Some(until)) => {
                self.is_round_done |= self.is_round_start;
                if self.is_round_done && now > until {
                    if let Some((_, at)) = &mut self.min_rtt {
                        *at = now;
                    }
                    window.set(window.cwnd.max(self.prior_cwnd));
                    self.mode = Mode::Startup;
                    if self.is_full {
                        self.probe_bandwidth(now);
                    }
                }
            }
            _ => {}
        }
        self.is_restarting &= sample.acked == 0;
        is_probing
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBw(phase, _) => (CYCLE[phase], CWND_GAIN),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        };
    }

    /// Sets the pacing rate (sections 4.2.1 and 4.3.1).
    fn set_rate(&mut self, gain: f64, srtt: Option<Duration>) {
        if let Some(srtt) = srtt.filter(|_| !self.has_rtt) {
            self.has_rtt = true;
            self.rate = MARGIN * HIGH_GAIN * self.initial_window as f64 / srtt.as_secs_f64().max(1e-9);
        }
        let rate = MARGIN * gain * self.bandwidth;
        if self.is_full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Returns the octets in flight that `gain` times the estimated BDP needs (sections 4.2.2 and 4.2.3.2).
    fn inflight(&self, window: &Window, gain: f64) -> u64 {
        let Some((least, _)) = self.min_rtt else { return self.initial_window };
        let bdp = libm::ceil(self.bandwidth * least.as_secs_f64() * gain) as u64;
        let mss = window.mss;
        // BBR.send_quantum: about a millisecond's segments.
        let quantum = match self.rate {
            rate if rate < 150_000.0 => mss,
            rate if rate < 3_000_000.0 => 2 * mss,
            rate => ((rate / 1_000.0) as u64).min(64_000).max(2 * mss),
        };
        let probe = if matches!(self.mode, Mode::ProbeBw(0, _)) { 2 * mss } else { 0 };
        (bdp + 3 * quantum).next_multiple_of(2 * mss) + probe
    }

    /// Sets cwnd (section 4.2.3).
    fn set_cwnd(&mut self, window: &mut Window, sample: &RateSample) {
        let mut cwnd = window.cwnd;
        if sample.acked > 0 {
            cwnd = cwnd.saturating_sub(sample.lost).max(window.mss);
            let before = core::mem::replace(&mut self.recovery, sample.recovery);
            if sample.recovery == Recovery::Fast && before != Recovery::Fast {
                // Packet conservation for a round trip.
                (self.conserves, self.round_end) = (true, sample.total);
                cwnd = sample.in_flight + sample.acked;
            } else if sample.recovery == Recovery::None && before != Recovery::None {
                cwnd = cwnd.max(self.prior_cwnd);
                self.conserves = false;
            }
            if self.conserves {
                cwnd = cwnd.max(sample.in_flight + sample.acked);
            } else {
                let target = self.inflight(window, self.cwnd_gain);
                if self.is_full {
                    cwnd = (cwnd + sample.acked).min(target);
                } else if cwnd < target || sample.total < self.initial_window {
                    cwnd += sample.acked;
                }
                cwnd = cwnd.max(LEAST_CWND * window.mss);
            }
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            cwnd = cwnd.min(LEAST_CWND * window.mss);
        }
        window.set(cwnd);
    }

    /// Remembers cwnd before a reduction that is not the model's (section 4.2.3.4).
    fn save(&mut self, window: &Window) {
        let is_whole = self.recovery == Recovery::None && !matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_cwnd = if is_whole { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }
}

impl Control for State {
    fn on_acked(&mut self, _: &mut Window, _: Acked) {}
    fn on_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        if self.initial_window == 0 {
            self.initial_window = window.cwnd;
        }
        self.update_bandwidth(sample);
        self.update_phase(window, sample);
        self.check_full(sample);
        self.check_drain(window, sample);
        let is_probing = self.update_min_rtt(window, sample);
        self.update_gains();
        self.set_rate(self.pacing_gain, sample.srtt);
        self.set_cwnd(window, sample);
        is_probing
    }
    fn owns_window(&self) -> bool {
        true
    }
    fn pacing(&self) -> Option<Rate> {
        let bits = self.rate * 8.0;
        (self.rate > 0.0).then(|| Rate::from_bps((bits as u64).max(1)))
    }
    fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }
    fn on_restart(&mut self) {
        // Section 4.3.4.4: what waits after a silence goes at the estimated rate.
        self.is_restarting = true;
        if matches!(self.mode, Mode::ProbeBw(..)) {
            self.set_rate(1.0, None);
        }
    }
    fn on_loss(&mut self, window: &Window, _: u64) -> u64 {
        self.save(window);
        window.ssthresh
    }
    fn handle_timeout(&mut self, window: &Window, _: u64) -> u64 {
        self.save(window);
        (self.recovery, self.full, self.is_round_start) = (Recovery::Timeout, 0.0, true);
        window.ssthresh
    }
    fn on_mark(&mut self, window: &Window, _: u64) -> u64 {
        window.ssthresh
    }
    fn on_undo(&mut self) {
        // The rate may have been too low for a while: no sign of a full pipe.
        (self.full, self.flat_rounds) = (0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MSS: u64 = 1_000;

    /// A path of a rate, in octets per us, and a round trip, in us, with an endless queue: the model's environment, in
    /// which each acknowledgement tells of one segment.
    struct Path {
        state: State,
        window: Window,
        rate: u64,
        rtt: u64,
        /// Time in us; octets sent, delivered, and in flight with the time of their acknowledgement and what had been
        /// delivered when they left.
        now: u64,
        total: u64,
        flying: alloc::collections::VecDeque<(u64, u64, u64, u64)>,
        free_at: u64,
        pace_at: u64,
        phases: Vec<Mode>,
    }

    impl Path {
        fn new(rate: u64, rtt: u64) -> Self {
            let window = Window::new(10 * MSS, u64::MAX, MSS, u64::MAX);
            let state = State::new(&Config::default());
            let (now, total, free_at, pace_at) = (0, 0, 0, 0);
            Self {
                state,
                window,
                rate,
                rtt,
                now,
                total,
                flying: Default::default(),
                free_at,
                pace_at,
                phases: Vec::new(),
            }
        }
        fn in_flight(&self) -> u64 {
            self.flying.len() as u64 * MSS
        }
        /// Runs until `until` us.
        fn run(&mut self, until: u64) {
            while self.now < until {
                let may_send = self.in_flight() + MSS <= self.window.cwnd;
                let arrival = self.flying.front().map_or(u64::MAX, |flying| flying.0);
                let send = if may_send { self.pace_at.max(self.now) } else { u64::MAX };
                if send <= arrival {
                    self.now = send;
                    self.free_at = self.free_at.max(self.now) + MSS / self.rate;
                    self.flying.push_back((self.free_at + self.rtt, self.now, self.total, self.now));
                    let pace = self.state.pacing().map_or(0, |rate| MSS * 8_000_000 / rate.as_bps());
                    self.pace_at = self.now + pace;
                    continue;
                }
                let (at, sent_at, delivered, _) = self.flying.pop_front().expect("an arrival");
                let prior_in_flight = self.in_flight() + MSS;
                self.now = at;
                self.total += MSS;
                let rtt = Duration::from_us(at - sent_at);
                let sample = RateSample {
                    now: Instant::ZERO + Duration::from_us(at),
                    acked: MSS,
                    total: self.total,
                    delivered: self.total - delivered,
                    interval: rtt,
                    prior_delivered: delivered,
                    is_app_limited: false,
                    rtt: Some(rtt),
                    is_maybe_delayed: false,
                    srtt: Some(rtt),
                    prior_in_flight,
                    in_flight: self.in_flight(),
                    lost: 0,
                    recovery: Recovery::None,
                };
                self.state.on_sample(&mut self.window, &sample);
                if self.phases.last() != Some(&self.state.mode) {
                    self.phases.push(self.state.mode);
                }
            }
        }
    }

    #[test]
    fn startup_finds_the_rate_and_drain_empties_the_queue() {
        // 100 octets per us for 10 ms: a BDP of 1,000 segments.
        let mut path = Path::new(100, 10_000);
        path.run(400_000);
        assert!(matches!(path.phases[..3], [Mode::Startup, Mode::Drain, Mode::ProbeBw(..)]), "{:?}", path.phases);
        let share = path.state.bandwidth / 100e6;
        assert!((0.99..1.01).contains(&share), "{share} of the rate");
        assert!(path.state.min_rtt.unwrap().0 <= Duration::from_us(10_020));
        // In the probing phase a quarter of a BDP more is in flight, else little more than one.
        assert!(path.in_flight() <= 1_400 * MSS, "{}", path.in_flight());
        assert!(path.window.cwnd >= 2_000 * MSS && path.window.cwnd <= 2_250 * MSS, "{}", path.window.cwnd);
    }

    #[test]
    fn the_cycle_has_eight_phases_of_a_round_trip() {
        let mut path = Path::new(100, 10_000);
        path.run(300_000);
        path.phases.clear();
        path.run(300_000 + 8 * 8 * 10_500);
        let up = path.phases.iter().filter(|mode| matches!(mode, Mode::ProbeBw(0, _))).count();
        let all = path.phases.len();
        assert!((6..=9).contains(&up) && (50..=72).contains(&all), "{up} of {all}");
        let follows = |pair: &[Mode]| match pair {
            [Mode::ProbeBw(one, _), Mode::ProbeBw(next, _)] => *next == (one + 1) % 8,
            _ => false,
        };
        assert!(path.phases.windows(2).all(follows));
    }

    #[test]
    fn the_round_trip_is_measured_anew_after_ten_seconds() {
        let mut path = Path::new(10, 20_000);
        path.run(9_900_000);
        path.phases.clear();
        path.run(10_800_000);
        assert!(path.phases.iter().any(|mode| matches!(mode, Mode::ProbeRtt(Some(_)))), "{:?}", path.phases);
        assert!(matches!(path.state.mode, Mode::ProbeBw(..)), "and then the rate again");
        let least = path.phases.iter().position(|mode| matches!(mode, Mode::ProbeRtt(_)));
        assert!(least.is_some() && path.window.cwnd > 2 * 200 * MSS, "cwnd is restored: {}", path.window.cwnd);
    }

    #[test]
    fn a_slower_path_is_noticed_within_ten_rounds() {
        let mut path = Path::new(100, 10_000);
        path.run(400_000);
        path.rate = 50;
        path.run(1_400_000);
        let share = path.state.bandwidth / 50e6;
        assert!((0.98..1.05).contains(&share), "{share}");
    }

    #[test]
    fn the_seed_chooses_the_first_phase_and_never_that_which_drains() {
        let mut seen = [0; 8];
        for seed in 0..700 {
            let mut state = State::new(&Config::default());
            state.seed(seed);
            state.probe_bandwidth(Instant::ZERO);
            let Mode::ProbeBw(phase, _) = state.mode else { panic!("{:?}", state.mode) };
            seen[phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().enumerate().all(|(phase, &count)| phase == 1 || (60..150).contains(&count)), "{seen:?}");
    }
}
