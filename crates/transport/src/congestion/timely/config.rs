//! Settings of TIMELY.

use selvedge_units::{Bytes, Duration, Rate, Setting};

use crate::congestion::{Needs, ReportBy, Reports, Tuning, pause};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// TIMELY. The defaults are the paper's (SIGCOMM'15), except for the start at line rate, which is the IRN paper's
/// (section 4.1).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct TimelyConfig {
    /// The rate that no flow exceeds. Default: "auto", the hosts' line rate.
    pub line_rate: Setting<Rate>,
    /// Whether the link is faster than the line rate, so that flows are paced at line rate, too; known once resolved.
    #[cfg_attr(feature = "config", serde(skip))]
    pub below_link: bool,
    /// The rate at which a flow starts. Default: "auto", the line rate. In the paper, flows start at a part of it that
    /// depends on the host's other flows.
    pub initial_rate: Setting<Rate>,
    /// The lowest rate. Default: "auto", a hundredth of the line rate.
    pub min_rate: Setting<Rate>,
    /// T_low: the RTT below which the rate only increases. Default: 50us.
    pub t_low: Duration,
    /// T_high: the RTT above which the rate only decreases. Default: 500us.
    pub t_high: Duration,
    /// D_minRTT: the unit of the RTT's gradient. Default: 20us.
    pub min_rtt: Duration,
    /// Delta: the step of additive increase. Default: 10Mbps.
    pub additive_increase: Rate,
    /// Beta: the weight of the gradient in decreases, above 0, at most 1. Default: 0.8.
    pub beta: f64,
    /// Alpha: the weight of the newest RTT difference, above 0, at most 1. Default: 0.875.
    pub alpha: f64,
    /// N: steps without a positive gradient before hyperactive increase begins. Default: 5.
    pub hyper_after: u32,
    /// The steps of hyperactive increase, in deltas. Default: 5.
    pub hyper_factor: u32,
    /// The bytes that arrive per RTT sample. Default: 16KB.
    pub segment: Bytes,
    /// The least time between two steps. Default: "auto", which is D_minRTT; "off" takes a step with each segment.
    pub update_interval: Setting<Duration>,
    /// The part of the rate that remains when a loss is found, above 0, at most 1: go-back-N "explicitly backing off on
    /// losses" (IRN, section 4.3, which does not say how). Default: 1, TIMELY has no such rule.
    pub loss_factor: f64,
    /// The transport of RTT samples to a sender whose loss recovery has no acknowledgements (RoCE with PFC). Default:
    /// free.
    pub feedback: ReportBy,
}

impl Default for TimelyConfig {
    fn default() -> Self {
        Self {
            line_rate: Setting::Auto,
            below_link: false,
            initial_rate: Setting::Auto,
            min_rate: Setting::Auto,
            t_low: Duration::from_us(50),
            t_high: Duration::from_us(500),
            min_rtt: Duration::from_us(20),
            additive_increase: Rate::from_bps(10_000_000),
            beta: 0.8,
            alpha: 0.875,
            hyper_after: 5,
            hyper_factor: 5,
            segment: Bytes::from_kb(16),
            update_interval: Setting::Auto,
            loss_factor: 1.0,
            feedback: ReportBy::Free,
        }
    }
}

/// Parameters of TIMELY. Rates are in bits per second, times in picoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimelyParams {
    pub(super) initial_rate: f64,
    pub(super) line_rate: f64,
    pub(super) min_rate: f64,
    pub(super) t_low: f64,
    pub(super) t_high: f64,
    /// 1 / D_minRTT, where D_minRTT is in picoseconds.
    pub(super) per_min_rtt: f64,
    pub(super) additive_increase: f64,
    pub(super) hyper_increase: f64,
    pub(super) beta: f64,
    pub(super) alpha: f64,
    pub(super) loss_factor: f64,
    pub(super) hyper_after: u32,
    pub(super) segment: u64,
    pub(super) update_interval: Duration,
    pub(super) below_link: bool,
}

impl Tuning for TimelyConfig {
    type Params = TimelyParams;

    fn resolve(&mut self, fabric: &Fabric) {
        let line_rate = resolve(&mut self.line_rate, || Some(fabric.line_rate));
        self.below_link = line_rate.is_some_and(|rate| rate < fabric.line_rate);
        resolve(&mut self.initial_rate, || line_rate);
        resolve(&mut self.min_rate, || line_rate.map(|rate| Rate::from_bps((rate.as_bps() / 100).max(1))));
        let min_rtt = self.min_rtt;
        resolve(&mut self.update_interval, || Some(min_rtt));
    }

    fn params(&self) -> Result<TimelyParams, SettingError> {
        let rate =
            |setting, key| known(setting, key)?.ok_or_else(|| SettingError::new(key, "give a rate, or \"auto\""));
        let line_rate = rate(self.line_rate, "line-rate")?;
        let within = |setting, key| {
            let value: Rate = rate(setting, key)?;
            if value.is_zero() || value > line_rate {
                let message = alloc::format!("{value} is out of range: above 0, at most the line rate, {line_rate}");
                return Err(SettingError::new(key, message));
            }
            Ok(value)
        };
        let min_rate = within(self.min_rate, "min-rate")?;
        let initial_rate = within(self.initial_rate, "initial-rate")?;
        if self.t_low > self.t_high {
            let message = alloc::format!("{} is more than t-high, {}; T_low is the lower one", self.t_low, self.t_high);
            return Err(SettingError::new("t-low", message));
        }
        if self.min_rtt.is_zero() {
            return Err(SettingError::new("min-rtt", "gradients are divided by it; give a time above zero"));
        }
        if self.segment.is_zero() {
            return Err(SettingError::new("segment", "give some bytes, as in \"16KB\""));
        }
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta), ("loss-factor", self.loss_factor)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(SettingError::new(key, alloc::format!("{value} is out of range: above 0, at most 1")));
            }
        }
        let bps = |rate: Rate| rate.as_bps() as f64;
        let ps = |time: Duration| time.as_ps() as f64;
        let delta = bps(self.additive_increase);
        Ok(TimelyParams {
            initial_rate: bps(initial_rate),
            line_rate: bps(line_rate),
            min_rate: bps(min_rate),
            t_low: ps(self.t_low),
            t_high: ps(self.t_high),
            per_min_rtt: 1.0 / ps(self.min_rtt),
            additive_increase: delta,
            hyper_increase: delta * f64::from(self.hyper_factor),
            beta: self.beta,
            alpha: self.alpha,
            loss_factor: self.loss_factor,
            hyper_after: self.hyper_after,
            segment: self.segment.get(),
            update_interval: known(self.update_interval, "update-interval")?.unwrap_or(Duration::ZERO),
            below_link: self.below_link,
        })
    }

    fn needs(&self) -> Needs {
        Needs { reports: Some(Reports { every: self.segment, by: self.feedback }), ..Needs::default() }
    }
    fn reads_acks(&self) -> bool {
        true
    }
    fn slowest_pace(&self, frame: Bytes, _round: Duration) -> Duration {
        pause(self.min_rate, frame)
    }
}
