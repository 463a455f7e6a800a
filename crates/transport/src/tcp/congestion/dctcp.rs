//! DCTCP (RFC 8257).

use selvedge_units::Octet;

use super::{Acked, Control, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// DCTCP's constants.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Config {
    /// Weight g of the newest window's fraction of marks, above 0 up to 1. Default: 1/16 (section 4.2).
    pub gain: f64,
    /// Initial alpha, 0 to 1. Default: 1 (section 3.3).
    pub initial_alpha: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { gain: 1.0 / 16.0, initial_alpha: 1.0 }
    }
}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        if !(self.gain > 0.0 && self.gain <= 1.0) {
            return Err(SettingError::new("congestion.dctcp.gain", "give a number above 0, up to 1"));
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            return Err(SettingError::new("congestion.dctcp.initial-alpha", "a share of marks lies between 0 and 1"));
        }
        Ok(*self)
    }
}

/// DCTCP's state (section 3.3).
#[derive(Clone, Copy, Debug)]
pub struct State {
    gain: f64,
    /// DCTCP.Alpha: the smoothed fraction of marked octets.
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked of this observation window.
    acked: u64,
    marked: u64,
    /// DCTCP.WindowEnd.
    end: Octet,
}

impl State {
    /// Creates the state of a new connection.
    pub fn new(config: &Config) -> Self {
        Self { gain: config.gain, alpha: config.initial_alpha, acked: 0, marked: 0, end: Octet::FIRST }
    }
    /// Returns DCTCP.Alpha.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Control for State {
    fn on_acked(&mut self, window: &mut Window, acked: Acked) {
        if window.is_slow_start() {
            window.slow_start(acked.octets);
        } else {
            window.avoid_congestion(acked.octets);
        }
    }
    fn on_echo(&mut self, octets: u64, echo: bool, acked: Octet, sent: Octet) {
        self.acked += octets;
        self.marked += if echo { octets } else { 0 };
        if acked > self.end {
            let share = self.marked as f64 / self.acked.max(1) as f64;
            self.alpha = self.alpha * (1.0 - self.gain) + self.gain * share;
            (self.acked, self.marked, self.end) = (0, 0, sent);
        }
    }
    // Losses are handled as in any TCP (section 3.5).
    fn on_mark(&mut self, window: &Window, _: u64) -> u64 {
        let reduced = (window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64;
        reduced.max(2 * window.mss)
    }
}
