//! Settings of a path's congestion control.

use alloc::format;
use selvedge_units::Duration;

use crate::fabric::SettingError;

/// Settings of [`Path`](super::Path). Windows count packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathConfig {
    /// Initial window of a path without history.
    pub initial_window: u32,
    /// Smallest window. A path that loses every packet still sends as many.
    pub min_window: u32,
    /// Largest window: the packets that the other end's socket buffers or queues are certain to hold.
    pub max_window: u32,
    /// Target of the queueing delay, beyond the path's shortest delay (Swift, section 3.3).
    pub target: Duration,
    /// Queueing delay from which a loss counts as congestion. A loss below it counts as random.
    pub lossy: Duration,
    /// Swift's beta: reduction per relative excess of the delay. Above 0, at most 1.
    pub beta: f64,
    /// Swift's max_mdf: the largest fraction of the window that one reduction removes. Above 0, below 1.
    pub max_decrease: f64,
    /// Fraction of the window that a congestion loss removes. Above 0, below 1.
    pub loss_decrease: f64,
    /// DCQCN's g: weight of a congestion notification in the estimated fraction of marked packets. Above 0, at most 1.
    pub gain: f64,
    /// Shortest time without acknowledgements after which all packets in flight count as lost, and the limit up to
    /// which each such silence doubles that time. Round-trip times may make it longer.
    pub silence: (Duration, Duration),
}

impl Default for PathConfig {
    /// Returns the settings for hosts of one data centre with software NICs: queues of some milliseconds, caused by
    /// threads, are normal.
    fn default() -> Self {
        Self {
            initial_window: 32,
            min_window: 16,
            max_window: 2_048,
            target: Duration::from_ms(4),
            lossy: Duration::from_ms(1),
            beta: 0.8,
            max_decrease: 0.5,
            loss_decrease: 0.3,
            gain: 1.0 / 16.0,
            silence: (Duration::from_ms(4), Duration::from_ms(20)),
        }
    }
}

impl PathConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let Self { initial_window, min_window, max_window, .. } = *self;
        if min_window == 0 || !(min_window..=max_window).contains(&initial_window) {
            let message =
                format!("{initial_window} packets; give min-window ({min_window}, at least 1) to {max_window}");
            return Err(SettingError::new("initial-window", message));
        }
        for (key, part, most) in [
            ("beta", self.beta, 1.0),
            ("max-decrease", self.max_decrease, 0.999),
            ("loss-decrease", self.loss_decrease, 0.999),
            ("gain", self.gain, 1.0),
        ] {
            if !(part > 0.0 && part <= most) {
                return Err(SettingError::new(key, format!("{part} is out of range: above 0, at most {most}")));
            }
        }
        if self.target.is_zero() || self.lossy > self.target {
            return Err(SettingError::new(
                "lossy",
                format!("{}; give at most the target, {}", self.lossy, self.target),
            ));
        }
        if self.silence.0.is_zero() || self.silence.0 > self.silence.1 {
            let message = format!("{} to {}; give a time above zero, then one as long", self.silence.0, self.silence.1);
            return Err(SettingError::new("silence", message));
        }
        Ok(())
    }
}
