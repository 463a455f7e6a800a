//! Settings of NDP.

use alloc::format;

use selvedge_units::{Chance, Duration, Setting};

use crate::bitmap::WIDEST_WINDOW;
use crate::endpoint::EndpointSettings;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};

/// NDP (Handley et al., SIGCOMM 2017). Needs switches that trim (`switch.buffer.trimming`).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct NdpConfig {
    /// Packets sent before the first pull, 1 to 4,194,304. "auto": those that the path carries in a base round-trip
    /// time, rounded up, plus those that a switch queue holds (section 3.2).
    pub initial_window: Setting<u32>,
    /// Paths over which a sender spreads its packets, in a new random order in each round: different hashes for ECMP,
    /// which may share links. 1 to 4,096; default: 128.
    pub paths: u32,
    /// Whether a path is skipped once for each packet trimmed on it (the path penalty of section 3.2.3, in the simpler
    /// form of htsim's EQDS). Default: false.
    pub path_penalty: bool,
    /// Rate of pulls, as a share of that of full packets on the hosts' links; above 0. Default: 1; htsim has 0.99.
    pub pull_rate: Chance,
    /// Time between two pulls of a host. "auto": from `pull-rate`.
    pub pull_interval: Setting<Duration>,
    /// Timeout after which an unanswered packet is retransmitted: its header was lost, too. "auto": five times the
    /// maximum round-trip time with all queues on the path full: headers of an incast may wait for each other, and
    /// spurious retransmissions are expensive.
    pub rto: Setting<Duration>,
}

impl Default for NdpConfig {
    fn default() -> Self {
        Self {
            initial_window: Setting::Auto,
            paths: 128,
            path_penalty: false,
            pull_rate: Chance::ALWAYS,
            pull_interval: Setting::Auto,
            rto: Setting::Auto,
        }
    }
}

impl NdpConfig {
    /// Full packets that a switch queue holds in the paper (section 3.1).
    const QUEUE: u64 = 8;
}

/// Parameters of NDP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NdpParams {
    pub(super) window: u64,
    pub(super) paths: u32,
    pub(super) path_penalty: bool,
    pub(super) pull_interval: Duration,
    pub(super) rto: Duration,
}

impl EndpointSettings for NdpConfig {
    type Params = NdpParams;

    fn resolve(&mut self, fabric: &Fabric) {
        let frame = fabric.frame + fabric.gap;
        let pipe = fabric.pipe().get().div_ceil(frame.get().max(1));
        resolve(&mut self.initial_window, || Some((pipe + Self::QUEUE).min(WIDEST_WINDOW) as u32));
        let share = self.pull_rate.as_f64().max(f64::MIN_POSITIVE);
        let ps = fabric.line_rate.time_for(frame).as_ps() as f64 / share;
        resolve(&mut self.pull_interval, || Some(Duration::from_ps(ps as u64)));
        resolve(&mut self.rto, || Some(fabric.congested_rtt.saturating_mul(5)));
    }

    fn params(&self) -> Result<NdpParams, SettingError> {
        let wrong = |key, message: alloc::string::String| Err(SettingError::new(key, message));
        let window = match known(self.initial_window, "initial-window")?.map(u64::from) {
            Some(packets @ 1..=WIDEST_WINDOW) => packets,
            Some(packets @ 1..) => {
                return wrong("initial-window", format!("{packets} packets; give 1 to {WIDEST_WINDOW}"));
            }
            _ => return wrong("initial-window", "nobody pulls what was never announced; give 1 packet or more".into()),
        };
        if !(1..=4_096).contains(&self.paths) {
            return wrong("paths", format!("{} is out of range: give 1 to 4096", self.paths));
        }
        if self.pull_rate.is_never() {
            return wrong("pull-rate", "nothing would ever be pulled; give more than 0, up to 1".into());
        }
        let Some(pull_interval) = known(self.pull_interval, "pull-interval")?.filter(|interval| !interval.is_zero())
        else {
            return wrong("pull-interval", "pulls without a pace overrun the link; give a time above zero".into());
        };
        let rto = known(self.rto, "rto")?.unwrap_or(Duration::ZERO);
        check_timeout("rto", rto)?;
        Ok(NdpParams { window, paths: self.paths, path_penalty: self.path_penalty, pull_interval, rto })
    }

    fn needs_trimming(&self) -> bool {
        true
    }

    fn chooses_paths(&self) -> bool {
        true
    }

    /// Returns 2: an acknowledgement and a pull.
    fn answers(&self) -> f64 {
        2.0
    }

    fn longest_timeout(&self) -> Duration {
        self.rto.resolve(|| None).unwrap_or(Duration::MAX)
    }

    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        Some(("rto", self.longest_timeout()))
    }

    fn slowest_pace(&self) -> Duration {
        self.pull_interval.resolve(|| None).unwrap_or(Duration::MAX)
    }

    fn receiver_pace(&self) -> Option<(&'static str, Duration, u64)> {
        let window = self.initial_window.resolve(|| None)?;
        Some(("pull-interval", self.slowest_pace(), u64::from(window)))
    }
}
