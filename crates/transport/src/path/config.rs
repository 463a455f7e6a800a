//! Settings of a path's congestion control.

use alloc::format;
use selvedge_units::Duration;

use crate::fabric::SettingError;

/// Settings of [`Path`](super::Path). Windows count packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathConfig {
    /// The window of a path of which nothing is known.
    pub initial_window: u32,
    /// The smallest window. A path whose every packet is lost still asks with as many.
    pub min_window: u32,
    /// The largest window: what the other end's socket buffers or queues are sure to hold.
    pub max_window: u32,
    /// The queueing delay, beyond the shortest delay of the path, that the window is reduced to (Swift, section 3.3).
    pub target: Duration,
    /// The queueing delay from which on a loss counts as congestion. A loss below it counts as random.
    pub lossy: Duration,
    /// Swift's beta: how strongly the window follows the delay's excess. Above 0, at most 1.
    pub beta: f64,
    /// Swift's max_mdf: the largest part of the window that one reduction takes. Above 0, below 1.
    pub max_decrease: f64,
    /// The part of the window that a loss takes which counts as congestion. Above 0, below 1.
    pub loss_decrease: f64,
    /// DCQCN's g: the weight of a congestion notification in the estimate of how many packets are marked. Above 0, at
    /// most 1.
    pub gain: f64,
    /// The least time without acknowledgements after which all that is outstanding counts as lost, and up to where each
    /// such silence doubles it. Round-trip times may make it longer.
    pub silence: (Duration, Duration),
}

impl Default for PathConfig {
    /// For hosts of one data centre whose NICs are software: queues of some milliseconds, as threads cause them, are
    /// usual.
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
