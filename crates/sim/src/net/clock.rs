//! Clocks of NICs that differ from the nominal time.

use selvedge_units::{Domain, Duration, HostId, Rng};

use crate::config::NicConfig;

/// Clock of one NIC, with the jitter of its transmissions.
pub(crate) struct NicClock {
    /// Relative duration of its transmissions beyond the nominal one, in parts of [`ONE`]; negative if its clock is
    /// fast.
    stretch: i64,
    /// Fraction of a picosecond by which frames have taken longer so far, in parts of [`ONE`].
    left: i128,
    /// Largest delay with which a transmission begins, in picoseconds.
    jitter: u64,
    rng: Rng,
}

/// Binary logarithm of the number of parts of a whole: parts are small enough for clocks that differ by one in 10^12.
const ONE: u32 = 60;

impl NicClock {
    /// Returns the clock of the NIC of `host`; `None` if it keeps the nominal time and has no jitter.
    pub(crate) fn of(config: &NicConfig, seed: u64, host: HostId) -> Option<Self> {
        let (skew, jitter) = (config.clock_skew, config.jitter);
        if skew.is_zero() && jitter.is_zero() {
            return None;
        }
        let mut rng = Rng::stream(seed, Domain::NicClock, u64::from(host.0));
        let most = (u128::from(skew.as_ppb()) << ONE) / 1_000_000_000;
        let stretch = rng.below(2 * most as u64 + 1) as i64 - most as i64;
        Some(Self { stretch, left: 0, jitter: jitter.as_ps(), rng })
    }

    /// Returns how long a frame keeps the link busy from now on that nominally takes `serialisation`; `was_idle`: no
    /// frame was sent just before.
    pub(crate) fn send(&mut self, serialisation: Duration, was_idle: bool) -> Duration {
        let more = self.left + i128::from(self.stretch) * i128::from(serialisation.as_ps());
        let whole = more >> ONE;
        self.left = more - (whole << ONE);
        let late = if was_idle && self.jitter > 0 { self.rng.below(self.jitter + 1) } else { 0 };
        // Clocks differ by a hundredth at most.
        Duration::from_ps((i128::from(serialisation.as_ps()) + whole).max(0) as u64 + late)
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Skew;

    use super::*;

    fn clock(host: u32, skew: Skew, jitter: Duration) -> NicClock {
        let config = NicConfig { clock_skew: skew, jitter, ..NicConfig::default() };
        NicClock::of(&config, 1, HostId(host)).expect("a clock of its own")
    }

    #[test]
    fn a_nic_that_keeps_time_has_no_clock_of_its_own() {
        assert!(NicClock::of(&NicConfig::default(), 1, HostId(0)).is_none());
    }

    #[test]
    fn clocks_lie_anywhere_within_their_skew_and_keep_their_rate() {
        let frame = Duration::from_ps(88_480);
        let frames = 1_000_000;
        let off = |host| {
            let mut clock = clock(host, Skew::from_ppm(100), Duration::ZERO);
            let taken: u64 = (0..frames).map(|_| clock.send(frame, false).as_ps()).sum();
            (taken as f64 / (frame.as_ps() * frames) as f64 - 1.0) * 1e6
        };
        let mut all: Vec<f64> = (0..200).map(off).collect();
        all.sort_by(f64::total_cmp);
        assert!(all[0] >= -100.0 && all[199] <= 100.0, "{all:?}");
        assert!(all[0] < -80.0 && all[199] > 80.0 && all[100].abs() < 30.0, "spread evenly: {all:?}");
        assert!(all.windows(2).all(|two| two[0] < two[1]), "no two are alike, although frames are whole picoseconds");
    }

    #[test]
    fn jitter_delays_what_follows_a_pause_alone() {
        let mut clock = clock(3, Skew::ZERO, Duration::from_ns(50));
        let frame = Duration::from_ns(80);
        let late: Vec<u64> = (0..1_000).map(|_| (clock.send(frame, true) - frame).as_ps()).collect();
        let mean = late.iter().sum::<u64>() / 1_000;
        assert!(late.iter().all(|&late| late <= 50_000) && (23_000..27_000).contains(&mean), "{mean}");
        assert!((0..1_000).all(|_| clock.send(frame, false) == frame));
    }
}
