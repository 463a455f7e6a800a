//! Settings by which tunnels end. Their state is soft: either end may drop it at any time, and a tunnel is set up again
//! by the next packet (section 5, tunnel setup and teardown).

use alloc::format;

use selvedge_units::{Duration, Setting};

use super::sender::Memory;
use crate::fabric::{SettingError, check_timeout, known, resolve};

/// End of tunnels: after a pause, for lack of memory, or because the other host does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct LifeConfig {
    /// Pause after which either end of a tunnel drops its state. Default: "off", never; "auto" is "off".
    pub idle_timeout: Setting<Duration>,
    /// Tunnels that a host may have open in each direction, 1 or more: beyond that, the one among the idle that has
    /// paused longest is dropped. Default: "off", any number; "auto" is "off".
    pub most_tunnels: Setting<u32>,
    /// Memory of a sender that has dropped a tunnel. Default: number.
    pub memory: Memory,
    /// Whether the other end is told (section 5: "each will inform the other"). Default: true.
    pub tells: bool,
    /// Silence after which a host with packets to send gives the other host up, counted from the first timeout. A
    /// stack's packets that wait are dropped then; native messages are tried again. Meanwhile the timeout doubles up to
    /// 64-fold, and re-establishing the tunnel does not reset it. Default: "off", never; "auto" is "off".
    pub unreachable_after: Setting<Duration>,
}

impl Default for LifeConfig {
    fn default() -> Self {
        Self {
            idle_timeout: Setting::Off,
            most_tunnels: Setting::Off,
            memory: Memory::Number,
            tells: true,
            unreachable_after: Setting::Off,
        }
    }
}

impl LifeConfig {
    /// Replaces every "auto".
    pub(super) fn resolve(&mut self) {
        resolve(&mut self.idle_timeout, || None);
        resolve(&mut self.most_tunnels, || None);
        resolve(&mut self.unreachable_after, || None);
    }

    /// Checks the resolved settings, and returns the parameters that they make.
    pub(super) fn params(&self) -> Result<Life, SettingError> {
        let timeout = |setting, key| {
            let time = known(setting, key)?;
            time.map_or(Ok(()), |time| check_timeout(key, time)).map(|()| time)
        };
        let idle = timeout(self.idle_timeout, "life.idle-timeout")?;
        let unreachable = timeout(self.unreachable_after, "life.unreachable-after")?;
        let most = known(self.most_tunnels, "life.most-tunnels")?.unwrap_or(u32::MAX);
        if most == 0 {
            return Err(SettingError::new("life.most-tunnels", format!("{} would carry nothing; give 1 or more", 0)));
        }
        Ok(Life { idle, most, memory: self.memory, tells: self.tells, unreachable })
    }
}

/// End of tunnels, resolved, see [`LifeConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Pause that ends a tunnel; `None`: none does.
    pub idle: Option<Duration>,
    /// Tunnels that a host may have open in each direction.
    pub most: u32,
    /// Memory of a sender that has dropped a tunnel.
    pub memory: Memory,
    /// Whether the other end is told.
    pub tells: bool,
    /// Silence after which the other host is given up; `None`: it never is.
    pub unreachable: Option<Duration>,
}

impl Life {
    /// Tunnels that never end.
    pub const FOR_EVER: Self =
        Self { idle: None, most: u32::MAX, memory: Memory::Number, tells: true, unreachable: None };
}
