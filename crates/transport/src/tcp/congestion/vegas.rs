//! Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8),
//! 1995), as Linux has it: the congestion window follows the number of segments that wait in queues.
//!
//! Once per round trip, the window is compared with what it would have to be without queues: Diff = (Expected - Actual)
//! BaseRTT. Differences from the paper, as in Linux: Diff counts segments rather than a rate; slow start doubles the
//! window every round trip, not every other; the paper's finer retransmission timer is RACK's business here.

use selvedge_units::{Duration, Octet};

use super::{Acked, Control, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// Vegas's thresholds, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Config {
    /// Segments in queues below which the window grows. Default: 2, as in Linux; the paper has 1 to 2.
    pub alpha: u32,
    /// Segments in queues above which the window shrinks. Default: 4, as in Linux; the paper has 3 to 4.
    pub beta: u32,
    /// Segments in queues above which slow start ends. Default: 1.
    pub gamma: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 2, beta: 4, gamma: 1 }
    }
}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        if self.alpha > self.beta {
            return Err(SettingError::new(
                "congestion.vegas.alpha",
                "the window grows below alpha and shrinks above beta: \
                give at most beta",
            ));
        }
        Ok(*self)
    }
}

/// Vegas's state.
#[derive(Clone, Copy, Debug)]
pub struct State {
    config: Config,
    /// BaseRTT: the least round-trip time ever; [`Duration::MAX`] before the first sample.
    base: Duration,
    /// The least round-trip time of this round.
    least: Duration,
    /// Samples in this round.
    samples: u32,
    /// End of this round.
    end: Octet,
}

/// Samples that a round must have: two may be of delayed acknowledgements alone.
const SAMPLES: u32 = 3;

impl State {
    /// Creates the state before the first sample.
    pub fn new(config: &Config) -> Self {
        Self { config: *config, base: Duration::MAX, least: Duration::MAX, samples: 0, end: Octet::FIRST }
    }

    /// Adjusts the window once per round trip.
    fn adjust(&self, window: &mut Window) {
        let (base, rtt) = (self.base.as_ps().max(1), self.least.as_ps().max(1));
        let scaled = |octets: u64, by: u64, of: u64| {
            u64::try_from(u128::from(octets) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
        };
        // The window that would have the present rate without queues, and the octets in queues.
        let target = scaled(window.cwnd, base, rtt);
        let queued = scaled(window.cwnd, rtt - base.min(rtt), base);
        let Config { alpha, beta, gamma } = self.config;
        let above = |segments: u32| queued > u64::from(segments) * window.mss;
        if window.is_slow_start() && !above(gamma) {
            return;
        }
        let cwnd = if window.is_slow_start() {
            window.cwnd.min(target + window.mss)
        } else if above(beta) {
            window.cwnd - window.mss
        } else if queued < u64::from(alpha) * window.mss {
            window.cwnd + window.mss
        } else {
            window.cwnd
        };
        let leaves = window.is_slow_start() || above(beta);
        window.set(cwnd.max(2 * window.mss));
        if leaves {
            window.ssthresh = window.ssthresh.min(window.cwnd - window.mss).max(2 * window.mss);
        }
    }
}

impl Control for State {
    fn on_acked(&mut self, window: &mut Window, acked: Acked) {
        if let Some(rtt) = acked.rtt {
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        let is_round_over = acked.acked >= self.end;
        if is_round_over && self.samples >= SAMPLES {
            self.adjust(window);
        } else if is_round_over && !window.is_slow_start() {
            // Too few samples to judge by: as Reno, a segment per round trip.
            window.set(window.cwnd + window.mss);
        }
        if is_round_over {
            (self.least, self.samples, self.end) = (Duration::MAX, 0, acked.sent);
        }
        if window.is_slow_start() {
            window.slow_start(acked.octets);
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Instant;

    use super::super::Coupling;
    use super::*;

    const MSS: u64 = 1_000;

    /// Runs rounds on a path of this many segments without queues: the round trip of a window is that of its octets.
    fn rounds(window: &mut Window, config: Config, path: u64, rounds: u64) -> Vec<u64> {
        let mut state = State::new(&config);
        let (mut acked, mut windows) = (1, Vec::new());
        for _ in 0..rounds {
            let cwnd = window.cwnd;
            for n in 0..4 {
                acked += if n == 3 { cwnd - cwnd / 4 * 3 } else { cwnd / 4 };
                // A round trip of 1 ms, or of what the bottleneck takes for the window.
                let rtt = Duration::from_ns(1_000_000 * cwnd.max(path * MSS) / (path * MSS));
                let (now, srtt, sent) = (Instant::ZERO, rtt, Octet::new(acked + cwnd));
                let octets = cwnd / 4;
                let (rtt, acked) = (Some(rtt), Octet::new(acked));
                state.on_acked(window, Acked { octets, now, srtt, rtt, acked, sent, coupling: Coupling::ALONE });
            }
            windows.push(window.cwnd / MSS);
        }
        windows
    }
    use alloc::vec::Vec;

    #[test]
    fn the_window_settles_with_two_to_four_segments_queued() {
        for begin in [20, 80] {
            let mut window = Window::new(begin * MSS, 2 * MSS, MSS, u64::MAX);
            let windows = rounds(&mut window, Config::default(), 50, 60);
            if begin < 50 {
                let last = windows[59];
                assert!((52..=54).contains(&last), "{begin}: {windows:?}");
                assert_eq!(windows[1] - windows[0], 1, "a segment per round");
            } else {
                // Who begins on a full queue takes its delay for the path's, as the paper warns.
                assert!(windows[59] >= 80, "{windows:?}");
            }
        }
    }

    #[test]
    fn slow_start_ends_when_a_segment_is_queued() {
        let mut window = Window::new(10 * MSS, u64::MAX, MSS, u64::MAX);
        let windows = rounds(&mut window, Config::default(), 50, 90);
        assert_eq!(windows[..4], [20, 40, 80, 160], "the queue of the third round shows in the fourth: {windows:?}");
        // The window that the third round's rate needs, and then a segment less each round.
        assert!(windows[4] <= 101 && window.ssthresh < u64::MAX && (52..=54).contains(&windows[89]), "{windows:?}");
    }
}
