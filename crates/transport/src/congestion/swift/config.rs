//! Settings of Swift.

use selvedge_units::{Bytes, Duration, Setting};

use crate::congestion::{Needs, Tuning};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// Swift. The defaults are the paper's (SIGCOMM'20) where it gives any, otherwise htsim's; flows start at line rate.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct SwiftConfig {
    /// Bytes on the wire that a flow may have in flight at first. Default: "auto", the amount that fills its empty
    /// path: the line rate, or a slower receiver's, times the round-trip time. Flows start at line rate.
    pub initial_window: Setting<Bytes>,
    /// The largest window. Default: "auto", the window of a flow that keeps the path's delay at its target, alone and
    /// at line rate.
    pub max_window: Setting<Bytes>,
    /// The smallest window, in packets; a packet per many round trips. Above 0. Default: 0.001.
    pub min_cwnd: f64,
    /// The unit of windows. Default: "auto", a full frame.
    pub packet: Setting<Bytes>,
    /// ai: growth of the window per round trip below the target delay, in packets. Default: 1.
    pub additive_increase: f64,
    /// Beta: the weight of the delay's excess in decreases, above 0, at most 1. Default: 0.8.
    pub beta: f64,
    /// max_mdf: the largest part of the window that one decrease takes, above 0, below 1. Default: 0.5.
    pub max_decrease: f64,
    /// base_target: the target delay of a path without links, and of a large window; sets the length of the queue.
    /// Default: "auto", the round-trip time of the empty path: a queue of one bandwidth-delay product.
    pub base_target: Setting<Duration>,
    /// h-bar: the part of the target that each link of a path adds (section 3.5, topology-based scaling). Default:
    /// "auto", its share of the round-trip time of the empty path; "off": nothing.
    pub per_link: Setting<Duration>,
    /// fs_range: the largest part of the target that small windows add (section 3.5, flow-based scaling). Default:
    /// "auto", five times the base target; "off": nothing.
    pub flow_scaling: Setting<Duration>,
    /// fs_min_cwnd: the window, in packets, up to which all of fs_range is added. Above 0. Default: 0.1.
    pub flow_scaling_from: f64,
    /// fs_max_cwnd: the window, in packets, from which on nothing is added. Default: 100.
    pub flow_scaling_to: f64,
    /// RETX_RESET_THRESHOLD: timeouts in a row that reset the window to the smallest. At least 1. Default: 5.
    pub reset_after: u32,
}

impl Default for SwiftConfig {
    fn default() -> Self {
        Self {
            initial_window: Setting::Auto,
            max_window: Setting::Auto,
            min_cwnd: 0.001,
            packet: Setting::Auto,
            additive_increase: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            base_target: Setting::Auto,
            per_link: Setting::Auto,
            flow_scaling: Setting::Auto,
            flow_scaling_from: 0.1,
            flow_scaling_to: 100.0,
            reset_after: 5,
        }
    }
}

/// Parameters of Swift. Windows are in packets, times in picoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SwiftParams {
    pub(super) initial: f64,
    pub(super) packet: f64,
    /// Packets per byte, to convert bytes into packets.
    pub(super) per_byte: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) additive_increase: f64,
    pub(super) beta: f64,
    pub(super) max_decrease: f64,
    pub(super) base_target: f64,
    pub(super) per_link: f64,
    /// Alpha of flow-based scaling.
    pub(super) scale: f64,
    /// Beta of flow-based scaling.
    pub(super) offset: f64,
    /// fs_range: the largest part of the target that flow-based scaling adds.
    pub(super) most: f64,
    pub(super) reset_after: u32,
}

impl Tuning for SwiftConfig {
    type Params = SwiftParams;

    fn resolve(&mut self, fabric: &Fabric) {
        let frame = fabric.frame + fabric.gap;
        let links = u64::from(fabric.links.max(1));
        resolve(&mut self.packet, || Some(frame));
        resolve(&mut self.initial_window, || Some(fabric.filling_window()));
        let per_link = resolve(&mut self.per_link, || Some(fabric.base_rtt / links)).unwrap_or(Duration::ZERO);
        let base_target = resolve(&mut self.base_target, || Some(fabric.base_rtt)).unwrap_or(Duration::ZERO);
        let target = base_target.saturating_add(per_link.saturating_mul(links));
        resolve(&mut self.max_window, || Some(fabric.line_rate.amount_in(target).max(frame)));
        resolve(&mut self.flow_scaling, || Some(base_target.saturating_mul(5)));
    }

    fn params(&self) -> Result<SwiftParams, SettingError> {
        let size = |setting, key| match known(setting, key)? {
            Some(bytes) if !Bytes::is_zero(bytes) => Ok(bytes),
            _ => Err(SettingError::new(key, "give some bytes, or \"auto\"")),
        };
        let initial = size(self.initial_window, "initial-window")?;
        let most = size(self.max_window, "max-window")?;
        let packet = size(self.packet, "packet")?;
        let range = |key, value: f64, from: f64, to: f64| {
            if value > from && value <= to {
                return Ok(());
            }
            let most = if to == f64::MAX { alloc::string::String::new() } else { alloc::format!(", at most {to}") };
            Err(SettingError::new(key, alloc::format!("{value} is out of range: above {from}{most}")))
        };
        range("min-cwnd", self.min_cwnd, 0.0, 1.0)?;
        if (most.get() as f64) < self.min_cwnd * packet.get() as f64 {
            let message =
                alloc::format!("{most} is less than the least window, min-cwnd ({}) of {packet}", self.min_cwnd);
            return Err(SettingError::new("max-window", alloc::format!("{message}; give more")));
        }
        range("additive-increase", self.additive_increase, 0.0, f64::MAX)?;
        range("beta", self.beta, 0.0, 1.0)?;
        range("max-decrease", self.max_decrease, 0.0, 0.999)?;
        range("flow-scaling-from", self.flow_scaling_from, 0.0, f64::MAX)?;
        range("flow-scaling-to", self.flow_scaling_to, self.flow_scaling_from, f64::MAX)?;
        let base_target = known(self.base_target, "base-target")?.unwrap_or(Duration::ZERO);
        if base_target.is_zero() {
            return Err(SettingError::new("base-target", "no path is that short; give a time above zero, or \"auto\""));
        }
        if self.reset_after == 0 {
            return Err(SettingError::new("reset-after", "give 1 or more timeouts"));
        }
        let ps = |time: Option<Duration>| time.map_or(0.0, |time| time.as_ps() as f64);
        let bytes = |bytes: Bytes| bytes.get() as f64;
        let scaling = ps(known(self.flow_scaling, "flow-scaling")?);
        let (low, high) = (1.0 / libm::sqrt(self.flow_scaling_from), 1.0 / libm::sqrt(self.flow_scaling_to));
        let scale = scaling / (low - high);
        Ok(SwiftParams {
            initial: bytes(initial) / bytes(packet),
            packet: bytes(packet),
            per_byte: 1.0 / bytes(packet),
            min: self.min_cwnd,
            max: bytes(most) / bytes(packet),
            additive_increase: self.additive_increase,
            beta: self.beta,
            max_decrease: self.max_decrease,
            base_target: ps(Some(base_target)),
            per_link: ps(known(self.per_link, "per-link")?),
            scale,
            offset: -scale * high,
            most: scaling,
            reset_after: self.reset_after,
        })
    }

    fn needs(&self) -> Needs {
        Needs { acks: true, ..Needs::default() }
    }
    fn reads_acks(&self) -> bool {
        true
    }
    fn slowest_pace(&self, _frame: Bytes, round: Duration) -> Duration {
        Duration::from_ps((round.as_ps() as f64 / self.min_cwnd.max(f64::MIN_POSITIVE)) as u64)
    }
}
