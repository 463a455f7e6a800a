//! The linked increases of MPTCP (RFC 6356): the subflows of a connection together take no more of a bottleneck than
//! one TCP would, and prefer the least congested paths.

use super::{Acked, Control, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// Linked increases. Without settings. A single subflow behaves as with NewReno.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(deny_unknown_fields, default))]
pub struct Config {}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        Ok(*self)
    }
}

/// Mutual influence of the windows of a connection's subflows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coupling {
    /// cwnd_total, in octets; zero without siblings.
    pub total: u64,
    /// alpha: aggressiveness of all subflows together (RFC 6356, section 3, equation 2).
    pub alpha: f64,
}

impl Coupling {
    /// Coupling of a connection without siblings.
    pub const ALONE: Self = Self { total: 0, alpha: 1.0 };

    /// Returns the coupling of subflows with these windows, in octets, and smoothed round-trip times, in picoseconds.
    /// Subflows without a sample contribute only their windows.
    pub fn of(subflows: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut total, mut best, mut sum) = (0, 0.0_f64, 0.0);
        for (cwnd, rtt) in subflows {
            total += cwnd;
            if rtt > 0 {
                let (cwnd, rtt) = (cwnd as f64, rtt as f64);
                best = best.max(cwnd / (rtt * rtt));
                sum += cwnd / rtt;
            }
        }
        let alpha = if sum > 0.0 { total as f64 * best / (sum * sum) } else { 1.0 };
        Self { total, alpha }
    }
}

/// Growth below a whole octet.
#[derive(Clone, Copy, Debug)]
pub struct State {
    remainder: f64,
}

impl State {
    /// Creates the control.
    pub fn new(_: &Config) -> Self {
        Self { remainder: 0.0 }
    }
}

// Losses affect only the subflow on which they occur (section 3).
impl Control for State {
    fn on_acked(&mut self, window: &mut Window, acked: Acked) {
        if window.is_slow_start() {
            return window.slow_start(acked.octets);
        }
        // RFC 6356, section 3, equation 1: never more than TCP alone.
        let Coupling { total, alpha } = acked.coupling;
        let (octets, mss) = (acked.octets as f64, window.mss as f64);
        let alone = octets * mss / window.cwnd as f64;
        let linked = alpha * octets * mss / total.max(window.cwnd) as f64;
        self.remainder += linked.min(alone);
        let whole = self.remainder as u64;
        self.remainder -= whole as f64;
        window.cwnd += whole;
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Duration, Instant, Octet};

    use super::*;

    const MSS: u64 = 1_000;

    /// Returns the growth of a window of `cwnd` octets when all of it is acknowledged once.
    fn growth(cwnd: u64, coupling: Coupling) -> u64 {
        let mut window = Window::new(cwnd, 1, MSS, MSS);
        let mut state = State::new(&Config {});
        for _ in 0..cwnd / MSS {
            let (acked, sent) = (Octet::FIRST, Octet::FIRST);
            let (now, srtt) = (Instant::ZERO, Duration::ZERO);
            let acked = Acked { octets: MSS, now, srtt, rtt: None, acked, sent, coupling };
            state.on_acked(&mut window, acked);
        }
        window.cwnd - cwnd
    }

    #[test]
    fn two_alike_grow_together_as_one() {
        // alpha = 2 w (w / r^2) / (2 w / r)^2 = 1/2: each grows by a quarter of a segment per round.
        let coupling = Coupling::of([(20_000, 10), (20_000, 10)].into_iter());
        assert_eq!(coupling, Coupling { total: 40_000, alpha: 0.5 });
        assert!((240..=250).contains(&growth(20_000, coupling)), "{}", growth(20_000, coupling));
    }

    #[test]
    fn nobody_grows_faster_than_tcp() {
        // A small window beside a large one with a short round-trip time: alpha is far above 1.
        let coupling = Coupling::of([(10_000, 1_000), (200_000, 10)].into_iter());
        let grown = growth(10_000, Coupling { alpha: 50.0, ..coupling });
        assert!((900..=MSS).contains(&grown), "{grown}");
        let alone = growth(10_000, Coupling::ALONE);
        assert!((900..=MSS).contains(&alone), "{alone}");
    }

    #[test]
    fn without_samples_windows_count() {
        assert_eq!(Coupling::of([(1_000, 0), (3_000, 0)].into_iter()), Coupling { total: 4_000, alpha: 1.0 });
    }
}
