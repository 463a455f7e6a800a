//! Settings of DCTCP.

use selvedge_units::{Bytes, Chance, Rate, Setting};

use crate::congestion::growing::{Window, WindowConfig};
use crate::congestion::{Marking, Needs, Tuning};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// DCTCP, on a transport that acknowledges each packet.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct DctcpConfig {
    /// Settings of the window.
    pub window: WindowConfig,
    /// g: the weight of the newest window's fraction of marks, above 0, at most 1. Default: 1/16 (section 4).
    pub g: f64,
    /// Alpha before the first observation, 0 to 1. Default: 1 (RFC 8257, section 3.3).
    pub initial_alpha: f64,
    /// The part of the window that remains after a loss, from 0 to below 1. Default: 0.5.
    pub decrease_factor: f64,
    /// K: packets that find more than this before them are marked, on links of `line-rate`; the value of "auto" for
    /// `switch.ecn`. Default: "auto", four fifths of that rate times the round-trip time of the empty longest path, and
    /// at least 20 full frames, like in the paper's experiments (65 packets at 10 Gb/s with 100 us, 20 at 1 Gb/s).
    /// Where buffers are small, half of the buffer of an input, but never less than a seventh of rate times round-trip
    /// time (equation 13): that keeps the link busy, but unequal flows need not converge.
    pub k: Setting<Bytes>,
    /// The rate that `k` is for. Default: "auto", the hosts' line rate.
    pub line_rate: Setting<Rate>,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        Self {
            window: WindowConfig::default(),
            g: 1.0 / 16.0,
            initial_alpha: 1.0,
            decrease_factor: 0.5,
            k: Setting::Auto,
            line_rate: Setting::Auto,
        }
    }
}

/// Parameters of DCTCP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DctcpParams {
    pub(super) window: Window,
    pub(super) g: f64,
    pub(super) initial_alpha: f64,
    pub(super) decrease_factor: f64,
}

impl Tuning for DctcpConfig {
    type Params = DctcpParams;

    fn resolve(&mut self, fabric: &Fabric) {
        self.window.resolve(fabric);
        let line_rate = resolve(&mut self.line_rate, || Some(fabric.line_rate)).unwrap_or(fabric.line_rate);
        resolve(&mut self.k, || Some(fabric.dctcp_threshold(line_rate)));
    }
    fn params(&self) -> Result<DctcpParams, SettingError> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(SettingError::new("g", alloc::format!("{} is out of range: above 0, at most 1", self.g)));
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            let message = alloc::format!("{} is out of range: a share of marks is 0 to 1", self.initial_alpha);
            return Err(SettingError::new("initial-alpha", message));
        }
        if !(0.0..1.0).contains(&self.decrease_factor) {
            let message = alloc::format!("{} is out of range: from 0 to below 1", self.decrease_factor);
            return Err(SettingError::new("decrease-factor", message));
        }
        if known(self.k, "k")?.is_none() {
            return Err(SettingError::new("k", "DCTCP lives by marks; give a queue length, or \"auto\""));
        }
        if known(self.line_rate, "line-rate")?.is_none_or(Rate::is_zero) {
            return Err(SettingError::new("line-rate", "give a rate, or \"auto\""));
        }
        let Self { g, initial_alpha, decrease_factor, .. } = *self;
        Ok(DctcpParams { window: self.window.params()?, g, initial_alpha, decrease_factor })
    }
    fn needs(&self) -> Needs {
        let k = self.k.resolve(|| None).unwrap_or(Bytes::MAX);
        let rate = self.line_rate.resolve(|| None).unwrap_or(Rate::MAX);
        let marking = Some(Marking { k_min: k, k_max: k, p_max: Chance::ALWAYS, rate });
        Needs { marking, acks: true, ..Needs::default() }
    }
    fn reads_acks(&self) -> bool {
        true
    }
}
