//! Settings of DCQCN.

use selvedge_units::{Bytes, Chance, Duration, Rate, Setting};

use crate::congestion::{Marking, Needs, Tuning, pause};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// DCQCN. Settings at "auto" have the values of `defaults`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct DcqcnConfig {
    /// The source of the values at "auto". Default: paper.
    pub defaults: Defaults,
    /// The rate at which flows start and which they never exceed; where it is the link's own, the link paces. Default:
    /// "auto", the hosts' line rate.
    pub line_rate: Setting<Rate>,
    /// Whether the link is faster than the line rate, so that flows are paced at line rate, too; known once resolved.
    #[cfg_attr(feature = "config", serde(skip))]
    pub below_link: bool,
    /// The least time between two CNPs that a receiver sends for one queue pair. "auto": 50us (paper), 4us (ConnectX,
    /// MIN_TIME_BETWEEN_CNPS).
    pub cnp_interval: Setting<Duration>,
    /// The events that update alpha. "auto": each CNP (paper), once per interval (ConnectX).
    pub alpha_update: AlphaUpdate,
    /// The time without a CNP after which alpha decreases. "auto": 55us (paper), 1us (ConnectX, DCE_TCP_RTT).
    pub alpha_interval: Setting<Duration>,
    /// g: the weight of alpha's updates, above 0, at most 1. "auto": 1/256 (paper), 5/1024 (ConnectX, DCE_TCP_G).
    pub g: Setting<f64>,
    /// Alpha at the first CNP, 0 to 1. "auto": 1 (paper), 1023/1024 (ConnectX, INITIAL_ALPHA_VALUE).
    pub initial_alpha: Setting<f64>,
    /// The least time between two decreases. "auto": off, every CNP decreases (paper), 4us (ConnectX,
    /// RATE_REDUCE_MONITOR_PERIOD).
    pub decrease_interval: Setting<Duration>,
    /// The least part of the rate that one decrease keeps, 0 to 1. "auto": 0.5 (paper: alpha is at most 1; ConnectX,
    /// RPG_MIN_DEC_FAC).
    pub min_decrease_factor: Setting<f64>,
    /// Decreases that make the current rate the target. "auto": always (paper), after-increase (ConnectX).
    pub clamp_target: ClampTarget,
    /// The rate after the first CNP. Default: "auto", which is off: a usual decrease (paper; ConnectX,
    /// RATE_TO_SET_ON_FIRST_CNP).
    pub rate_on_first_cnp: Setting<Rate>,
    /// Time between two increases. "auto": 55us (paper), 300us (ConnectX, RPG_TIME_RESET).
    pub increase_timer: Setting<Duration>,
    /// Bytes on the wire between two increases. "auto": 10MB (paper), 32767B (ConnectX,
    /// RPG_BYTE_RESET). "off": the timer alone.
    pub byte_counter: Setting<Bytes>,
    /// F: the number of increases of fast recovery. "auto": 5 (paper), 1 (ConnectX, RPG_THRESHOLD).
    pub fast_recovery_steps: Setting<u32>,
    /// R_AI, the step of additive increase. "auto": 40Mbps (paper), 5Mbps (ConnectX, RPG_AI_RATE).
    pub additive_increase: Setting<Rate>,
    /// R_HAI, the step of hyper increase. "auto": 200Mbps (the paper does not say; its authors'
    /// simulator), 50Mbps (ConnectX, RPG_HAI_RATE).
    pub hyper_increase: Setting<Rate>,
    /// The part of the rate that remains when a loss is found, above 0, at most 1: go-back-N "explicitly backing off on
    /// losses" (IRN, section 4.3, which does not say how). Default: "auto", which is off: DCQCN has no such rule.
    pub loss_factor: Setting<f64>,
    /// The lowest rate. "auto": 100Mbps (the paper does not say; its authors' simulator), 1Mbps (ConnectX,
    /// RPG_MIN_RATE).
    pub min_rate: Setting<Rate>,
}

/// The source of the values at "auto".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Defaults {
    /// The DCQCN paper's (SIGCOMM'15, sections 3 and 5).
    #[default]
    Paper,
    /// The firmware's values in Mellanox ConnectX-4 and later, from its manual and `mlxconfig`.
    ConnectX,
    /// The firmware's algorithm with the DCQCN paper's numbers and marking: alpha moves once per interval, the first
    /// decrease after an increase sets the target, and decreases are 4us apart at the least. IRN's simulator
    /// "implements DCQCN as implemented in the Mellanox ConnectX-4" with "the same congestion control parameters as
    /// specified in" the DCQCN paper (IRN, section 4.1).
    PaperOnConnectX,
}

/// The events that update alpha.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum AlphaUpdate {
    /// The value that `defaults` selects.
    #[default]
    Auto,
    /// Up with each CNP, down after each interval without one (paper, equations 1 and 2).
    PerCnp,
    /// Once per interval: up if a CNP arrived in it, otherwise down.
    PerInterval,
}

/// The decreases that make the current rate the target of the recovery that follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum ClampTarget {
    /// The value that `defaults` selects.
    #[default]
    Auto,
    /// Each decrease (paper, equation 1; ConnectX with CLAMP_TGT_RATE).
    Always,
    /// The first decrease after an increase (ConnectX with CLAMP_TGT_RATE_AFTER_TIME_INC).
    AfterIncrease,
}

/// A set of values for "auto".
struct Values {
    cnp_interval: Duration,
    alpha_update: AlphaUpdate,
    alpha_interval: Duration,
    g: f64,
    initial_alpha: f64,
    decrease_interval: Option<Duration>,
    min_decrease_factor: f64,
    clamp_target: ClampTarget,
    increase_timer: Duration,
    byte_counter: Bytes,
    fast_recovery_steps: u32,
    additive_increase: Rate,
    hyper_increase: Rate,
    min_rate: Rate,
}

const PAPER: Values = Values {
    cnp_interval: Duration::from_us(50),
    alpha_update: AlphaUpdate::PerCnp,
    alpha_interval: Duration::from_us(55),
    g: 1.0 / 256.0,
    initial_alpha: 1.0,
    decrease_interval: None,
    min_decrease_factor: 0.5,
    clamp_target: ClampTarget::Always,
    increase_timer: Duration::from_us(55),
    byte_counter: Bytes::from_kb(10_000),
    fast_recovery_steps: 5,
    additive_increase: Rate::from_bps(40_000_000),
    hyper_increase: Rate::from_bps(200_000_000),
    min_rate: Rate::from_bps(100_000_000),
};

const PAPER_ON_CONNECT_X: Values = Values {
    alpha_update: CONNECT_X.alpha_update,
    decrease_interval: CONNECT_X.decrease_interval,
    clamp_target: CONNECT_X.clamp_target,
    ..PAPER
};

const CONNECT_X: Values = Values {
    cnp_interval: Duration::from_us(4),
    alpha_update: AlphaUpdate::PerInterval,
    alpha_interval: Duration::from_us(1),
    g: 5.0 / 1024.0,
    initial_alpha: 1023.0 / 1024.0,
    decrease_interval: Some(Duration::from_us(4)),
    min_decrease_factor: 0.5,
    clamp_target: ClampTarget::AfterIncrease,
    increase_timer: Duration::from_us(300),
    byte_counter: Bytes::new(32_767),
    fast_recovery_steps: 1,
    additive_increase: Rate::from_bps(5_000_000),
    hyper_increase: Rate::from_bps(50_000_000),
    min_rate: Rate::from_bps(1_000_000),
};

/// The marking that HPCC (SIGCOMM'19, section 5.1) uses with DCQCN by vendors' advice: 100 and 400 KB for 25 Gb/s.
const VENDOR_MARKING: Marking = Marking {
    k_min: Bytes::from_kb(100),
    k_max: Bytes::from_kb(400),
    p_max: Chance::ratio(1, 5),
    rate: Rate::from_gbps(25),
};

/// Parameters of DCQCN's reaction point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DcqcnParams {
    pub(super) initial_alpha: f64,
    pub(super) rules: Rules,
}

/// The parameters that a flow keeps. Rates are in bits per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rules {
    pub(super) line_rate: f64,
    pub(super) min_rate: f64,
    pub(super) additive_increase: f32,
    pub(super) hyper_increase: f32,
    pub(super) g: f64,
    pub(super) min_decrease_factor: f64,
    pub(super) alpha_interval: Duration,
    pub(super) decrease_interval: Duration,
    pub(super) increase_timer: Duration,
    /// Bytes between two increases; [`u64::MAX`] when off.
    pub(super) byte_counter: u64,
    pub(super) rate_on_first_cnp: Rate,
    /// The part of the rate that remains after a loss; 1 where losses have no effect.
    pub(super) loss_factor: f64,
    pub(super) fast_recovery_steps: u32,
    pub(super) per_interval: bool,
    pub(super) below_link: bool,
    pub(super) clamp_always: bool,
}

impl Tuning for DcqcnConfig {
    type Params = DcqcnParams;

    fn hears_cnps(&self) -> bool {
        true
    }
    fn resolve(&mut self, fabric: &Fabric) {
        let values = match self.defaults {
            Defaults::Paper => PAPER,
            Defaults::ConnectX => CONNECT_X,
            Defaults::PaperOnConnectX => PAPER_ON_CONNECT_X,
        };
        let line_rate = resolve(&mut self.line_rate, || Some(fabric.line_rate));
        self.below_link = line_rate.is_some_and(|rate| rate < fabric.line_rate);
        resolve(&mut self.cnp_interval, || Some(values.cnp_interval));
        if self.alpha_update == AlphaUpdate::Auto {
            self.alpha_update = values.alpha_update;
        }
        resolve(&mut self.alpha_interval, || Some(values.alpha_interval));
        resolve(&mut self.g, || Some(values.g));
        resolve(&mut self.initial_alpha, || Some(values.initial_alpha));
        resolve(&mut self.decrease_interval, || values.decrease_interval);
        resolve(&mut self.min_decrease_factor, || Some(values.min_decrease_factor));
        if self.clamp_target == ClampTarget::Auto {
            self.clamp_target = values.clamp_target;
        }
        resolve(&mut self.rate_on_first_cnp, || None);
        resolve(&mut self.loss_factor, || None);
        resolve(&mut self.increase_timer, || Some(values.increase_timer));
        resolve(&mut self.byte_counter, || Some(values.byte_counter));
        resolve(&mut self.fast_recovery_steps, || Some(values.fast_recovery_steps));
        resolve(&mut self.additive_increase, || Some(values.additive_increase));
        resolve(&mut self.hyper_increase, || Some(values.hyper_increase));
        resolve(&mut self.min_rate, || Some(values.min_rate));
    }

    fn params(&self) -> Result<DcqcnParams, SettingError> {
        let line_rate = needed(self.line_rate, "line-rate")?;
        let min_rate = needed(self.min_rate, "min-rate")?;
        if min_rate.is_zero() || min_rate > line_rate {
            let message = alloc::format!("{min_rate} is out of range: above 0, at most the line rate, {line_rate}");
            return Err(SettingError::new("min-rate", message));
        }
        needed(self.cnp_interval, "cnp-interval")?;
        let timer = |setting, key| match needed(setting, key)? {
            Duration::ZERO => Err(SettingError::new(key, "a timer of zero never stops; give a time above zero")),
            interval => Ok(interval),
        };
        let alpha_interval = timer(self.alpha_interval, "alpha-interval")?;
        let increase_timer = timer(self.increase_timer, "increase-timer")?;
        let factor = known(self.loss_factor, "loss-factor")?.unwrap_or(1.0);
        if !(factor > 0.0 && factor <= 1.0) {
            let message = alloc::format!("{factor} is out of range: above 0, at most 1");
            return Err(SettingError::new("loss-factor", message));
        }
        if self.byte_counter == Setting::Value(Bytes::ZERO) {
            return Err(SettingError::new("byte-counter", "give some bytes, or \"off\" for the timer alone"));
        }
        let share = |setting, key| match needed(setting, key)? {
            value if (0.0..=1.0).contains(&value) && (key != "g" || value > 0.0) => Ok(value),
            value => Err(SettingError::new(key, alloc::format!("{value} is out of range: 0 to 1, and g above 0"))),
        };
        let bps = |rate: Rate| rate.as_bps() as f64;
        let g = share(self.g, "g")?;
        let initial_alpha = share(self.initial_alpha, "initial-alpha")?;
        let rules = Rules {
            line_rate: bps(line_rate),
            min_rate: bps(min_rate),
            g,
            min_decrease_factor: share(self.min_decrease_factor, "min-decrease-factor")?,
            additive_increase: bps(needed(self.additive_increase, "additive-increase")?) as f32,
            hyper_increase: bps(needed(self.hyper_increase, "hyper-increase")?) as f32,
            fast_recovery_steps: needed(self.fast_recovery_steps, "fast-recovery-steps")?,
            alpha_interval,
            decrease_interval: known(self.decrease_interval, "decrease-interval")?.unwrap_or(Duration::ZERO),
            increase_timer,
            byte_counter: known(self.byte_counter, "byte-counter")?.map_or(u64::MAX, Bytes::get),
            rate_on_first_cnp: known(self.rate_on_first_cnp, "rate-on-first-cnp")?.unwrap_or(Rate::MAX),
            loss_factor: factor,
            per_interval: match self.alpha_update {
                AlphaUpdate::Auto => return Err(SettingError::left_auto("alpha-update")),
                update => update == AlphaUpdate::PerInterval,
            },
            below_link: self.below_link,
            clamp_always: match self.clamp_target {
                ClampTarget::Auto => return Err(SettingError::left_auto("clamp-target")),
                target => target == ClampTarget::Always,
            },
        };
        Ok(DcqcnParams { initial_alpha, rules })
    }

    fn needs(&self) -> Needs {
        let marking = match self.defaults {
            Defaults::Paper | Defaults::PaperOnConnectX => Marking::DCQCN,
            Defaults::ConnectX => VENDOR_MARKING,
        };
        Needs { marking: Some(marking), cnp_interval: self.cnp_interval.resolve(|| None), ..Needs::default() }
    }
    fn slowest_pace(&self, frame: Bytes, _round: Duration) -> Duration {
        pause(self.min_rate, frame)
    }
}

/// Returns the value of a setting that cannot be off.
///
/// # Errors
/// When the setting is off.
fn needed<T: Copy>(setting: Setting<T>, key: &'static str) -> Result<T, SettingError> {
    known(setting, key)?.ok_or_else(|| SettingError::new(key, "there is no DCQCN without it; give a value or \"auto\""))
}
