//! Settings by which the ends of a tunnel detect lost packets. Where switches trim, receivers report what was trimmed,
//! and little is lost; elsewhere each loss costs a timeout unless one of the faster ways is chosen.

use alloc::format;

use selvedge_units::{Duration, Setting};

use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};

/// Detection of lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct LossConfig {
    /// Origin of the retransmission timeout. Default: fixed.
    pub timeout: Source,
    /// Smallest measured timeout, 10ns or more. Default: 1ms.
    pub rto_floor: Duration,
    /// Largest measured timeout, back-off included, not below `rto-floor`. Default: 1s.
    pub rto_ceiling: Duration,
    /// Reordering that a path may cause: a packet is lost if one sent later on the same path has arrived, and the round
    /// trip of that one plus this margin has passed (RACK, RFC 8985, per path). "auto": a quarter of the round-trip
    /// time of an idle path. Default: "off", only timeouts and reports of trimming count.
    pub path_margin: Setting<Duration>,
    /// Time for which the reorder queue has a gap before the receiver reports the missing packets as lost, once each.
    /// "auto": the round-trip time of an idle path. Default: "off", receivers report trimmed packets only.
    pub gap_wait: Setting<Duration>,
}

/// Origin of a bound: settings, or what the tunnel has measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Source {
    /// The setting, always.
    #[default]
    Fixed,
    /// The measurement; the setting before there is one.
    Measured,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            timeout: Source::Fixed,
            rto_floor: Duration::from_ms(1),
            rto_ceiling: Duration::from_ms(1_000),
            path_margin: Setting::Off,
            gap_wait: Setting::Off,
        }
    }
}

impl LossConfig {
    /// Replaces every "auto".
    pub(super) fn resolve(&mut self, fabric: &Fabric) {
        resolve(&mut self.path_margin, || Some(fabric.base_rtt / 4));
        resolve(&mut self.gap_wait, || Some(fabric.base_rtt));
    }

    /// Checks the resolved settings, and returns the parameters that they make.
    pub(super) fn params(&self) -> Result<Loss, SettingError> {
        check_timeout("loss.rto-floor", self.rto_floor)?;
        if self.rto_ceiling < self.rto_floor {
            let (ceiling, floor) = (self.rto_ceiling, self.rto_floor);
            let message = format!("{ceiling} is less than `rto-floor`, {floor}; give that or more");
            return Err(SettingError::new("loss.rto-ceiling", message));
        }
        let gap_wait = known(self.gap_wait, "loss.gap-wait")?;
        gap_wait.map_or(Ok(()), |wait| check_timeout("loss.gap-wait", wait))?;
        Ok(Loss {
            measured: (self.timeout == Source::Measured).then_some((self.rto_floor, self.rto_ceiling)),
            path_margin: known(self.path_margin, "loss.path-margin")?,
            gap_wait,
        })
    }
}

/// Detection of lost packets, resolved, see [`LossConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Floor and ceiling of a timeout measured from round trips; `None`: the timeout is fixed.
    pub measured: Option<(Duration, Duration)>,
    /// Reordering margin of a path; `None`: later packets on a path prove nothing.
    pub path_margin: Option<Duration>,
    /// Age of a gap that the receiver reports; `None`: it reports none.
    pub gap_wait: Option<Duration>,
}

impl Loss {
    /// Detection by a fixed timeout and by reports of trimmed packets only.
    pub const BY_TIMEOUT: Self = Self { measured: None, path_margin: None, gap_wait: None };
}
