//! Settings of HPCC.

use selvedge_units::{Bytes, Duration, Rate, Setting};
use selvedge_wire::PathRecord;

use crate::congestion::{Needs, Tuning, pause};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// HPCC. The defaults are the paper's (SIGCOMM'19, sections 3.3 and 5.1).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct HpccConfig {
    /// The rate at which flows start and which they never exceed (B_NIC). Default: "auto", the hosts' line
    /// rate.
    pub line_rate: Setting<Rate>,
    /// Whether the link is faster than the line rate, so that flows are paced at line rate, too; known once resolved.
    #[cfg_attr(feature = "config", serde(skip))]
    pub below_link: bool,
    /// T: the round-trip time of the empty fabric. Default: "auto", that of the flow's path, serialisation included, or
    /// with `auto = "longest-path"` of the longest; where the path holds fewer than 8 frames, longer by the time of one
    /// frame on the slowest link.
    pub base_rtt: Setting<Duration>,
    /// Eta: the utilisation that links are kept at, above 0, at most 1. Default: 0.95.
    pub target_utilisation: f64,
    /// maxStage: round trips of additive increase before the window follows the utilisation even below its target.
    /// Default: 5.
    pub max_stage: u32,
    /// W_AI: bytes that the window grows by. Default: "auto", the capacity above the target, shared among `flows`:
    /// B_NIC x T x (1 - eta) / N (section 3.3).
    pub additive_increase: Setting<Bytes>,
    /// N: flows that a link is expected to carry at most, at least 1. Default: 100, which gives the paper's 80 bytes at
    /// its 100 Gb/s and 13 us.
    pub flows: u32,
    /// The lowest rate. The paper does not say; default: 100Mbps, like in its authors' simulator.
    pub min_rate: Rate,
    /// The bytes that INT adds to each data packet and each acknowledgement on the wire: 2 bytes, and 8 per switch.
    /// Default: 42B, the paper's, for up to 5 switches.
    pub header: Bytes,
}

impl Default for HpccConfig {
    fn default() -> Self {
        Self {
            line_rate: Setting::Auto,
            below_link: false,
            base_rtt: Setting::Auto,
            target_utilisation: 0.95,
            max_stage: 5,
            additive_increase: Setting::Auto,
            flows: 100,
            min_rate: Rate::from_bps(100_000_000),
            header: PathRecord::LENGTH,
        }
    }
}

/// Parameters of HPCC.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HpccParams {
    /// 1 / T, where T is in ticks of the links.
    pub(super) per_tick: f32,
    /// Bits per second per byte of window: 8 bits / T.
    pub(super) bps_per_byte: f64,
    pub(super) eta: f64,
    pub(super) max_stage: u32,
    pub(super) additive_increase: f64,
    /// The largest window, W_init: the bytes that fill the empty path.
    pub(super) most: f64,
    /// The rate at the largest window: B_NIC, or no limit where the link's own rate paces.
    pub(super) full_rate: Rate,
    pub(super) least: f64,
}

const BYTE_PS: f64 = 8e12;

/// The number of frames on a path from which on one more frame is negligible.
const MANY: u64 = 8;

/// Returns T: the round-trip time of the path, plus the time of one frame on its slowest link where the path holds few
/// frames. A window is whole frames, and a frame that waits is a large part of T: otherwise a lone flow would leave
/// more capacity unused than eta says.
fn time_constant(fabric: &Fabric) -> Duration {
    let (pipe, frame) = (fabric.pipe().get().max(1), (fabric.frame + fabric.gap).get());
    if pipe >= frame * MANY {
        return fabric.base_rtt;
    }
    let ps = u128::from(fabric.base_rtt.as_ps()) * u128::from(pipe + frame) / u128::from(pipe);
    Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

impl Tuning for HpccConfig {
    type Params = HpccParams;

    fn resolve(&mut self, fabric: &Fabric) {
        let line_rate = resolve(&mut self.line_rate, || Some(fabric.line_rate));
        self.below_link = line_rate.is_some_and(|rate| rate < fabric.line_rate);
        let line_rate = line_rate.unwrap_or(Rate::ZERO);
        let base_rtt = resolve(&mut self.base_rtt, || Some(time_constant(fabric))).unwrap_or(Duration::ZERO);
        let room = line_rate.amount_in(base_rtt).get() as f64 * (1.0 - self.target_utilisation);
        let flows = f64::from(self.flows.max(1));
        resolve(&mut self.additive_increase, || Some(Bytes::new((room / flows).max(1.0) as u64)));
    }

    fn params(&self) -> Result<HpccParams, SettingError> {
        let line_rate = known(self.line_rate, "line-rate")?.unwrap_or(Rate::ZERO);
        if line_rate.is_zero() {
            return Err(SettingError::new("line-rate", "give a rate, or \"auto\""));
        }
        let base_rtt = known(self.base_rtt, "base-rtt")?.unwrap_or(Duration::ZERO);
        if base_rtt.is_zero() {
            return Err(SettingError::new(
                "base-rtt",
                "windows are rates times it; give a time above zero, or \"auto\"",
            ));
        }
        let Some(additive_increase) = known(self.additive_increase, "additive-increase")? else {
            let message = "without it flows do not become fair; give some bytes, or \"auto\"";
            return Err(SettingError::new("additive-increase", message));
        };
        let eta = self.target_utilisation;
        if !(eta > 0.0 && eta <= 1.0) {
            return Err(SettingError::new(
                "target-utilisation",
                alloc::format!("{eta} is out of range: above 0, at most 1"),
            ));
        }
        if self.flows == 0 {
            return Err(SettingError::new("flows", "give 1 or more"));
        }
        if self.min_rate.is_zero() || self.min_rate > line_rate {
            let message =
                alloc::format!("{} is out of range: above 0, at most the line rate, {line_rate}", self.min_rate);
            return Err(SettingError::new("min-rate", message));
        }
        if self.header > Bytes::new(1_000) {
            return Err(SettingError::new("header", alloc::format!("{} is out of range: at most 1000B", self.header)));
        }
        let ps = base_rtt.as_ps() as f64;
        Ok(HpccParams {
            per_tick: (PathRecord::TICK.as_ps() as f64 / ps) as f32,
            bps_per_byte: BYTE_PS / ps,
            eta,
            max_stage: self.max_stage,
            additive_increase: additive_increase.get() as f64,
            most: line_rate.amount_in(base_rtt).get() as f64,
            full_rate: if self.below_link { line_rate } else { Rate::MAX },
            least: self.min_rate.as_bps() as f64 * ps / BYTE_PS,
        })
    }

    fn needs(&self) -> Needs {
        Needs { acks: true, telemetry: true, ..Needs::default() }
    }

    fn extra_header(&self) -> Bytes {
        self.header
    }
    fn slowest_pace(&self, frame: Bytes, _round: Duration) -> Duration {
        pause(Setting::Value(self.min_rate), frame)
    }
}
