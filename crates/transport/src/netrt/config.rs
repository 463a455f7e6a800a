//! Settings of NetRT.

use alloc::format;

use selvedge_units::{Bytes, Duration, Rate, Setting};

use crate::fabric::{Fabric, SettingError, known, resolve};

/// NetRT in top-of-rack switches: selective retransmission between them, invisible to NICs.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct NetRtConfig {
    /// Whether top-of-rack switches run NetRT.
    pub enabled: bool,
    /// Duplicates that a source ToR keeps per host port. "auto": one bandwidth-delay product (section III-C1),
    /// including serialisation on links, and two more frames, the second of which reveals a loss; "off": none, every
    /// request remains unfulfilled.
    pub pool: Setting<Bytes>,
    /// Early packets that a destination ToR holds per host port. "auto": one bandwidth-delay product (section III-D1),
    /// as for `pool`; "off": none, nothing is recovered.
    pub buffer: Setting<Bytes>,
    /// Interval at which a request is repeated. "auto": the base round-trip time of the longest path; the paper says
    /// "at time intervals".
    pub interval: Setting<Duration>,
    /// Time for which a source ToR does not retransmit a duplicate again, regardless of requests. "auto": three
    /// quarters of `interval`, the time for the copy to arrive and a request to return, on paths of up to eight links:
    /// `interval` covers all eight, `quiet` the six between ToRs. "off": each request is answered, as in the paper.
    pub quiet: Setting<Duration>,
    /// Age above which duplicates are evicted first when a pool is full, regardless of requests. "auto": four
    /// intervals; "off": only the number of requests counts, as in the paper (section III-C1), and duplicates of flows
    /// that were requested and have ended stay forever.
    pub lifetime: Setting<Duration>,
    /// Time that a gap must last before it is requested. Default: zero, as in the paper.
    pub patience: Duration,
    /// Requested bytes of a host up to which duplicates are sent at its line rate (section IV: 20 KB).
    pub k_low: Bytes,
    /// Requested bytes from which the lowest rate applies (section IV: 100 KB). More than `k-low`.
    pub k_high: Bytes,
    /// Share of the line rate just above `k-low`, above 0 and at most 1 (section IV: 0.5).
    pub max_rate: f64,
    /// Share of the line rate from `k-high` on, above 0 and at most `max-rate` (section IV: 0.01).
    pub min_rate: f64,
    /// Whether a sender is paused (PFC, on its own link only) while its duplicates are sent below line rate. Default:
    /// true.
    pub pause: bool,
    /// 802.1p priority of requests, answers and duplicates, 0 to 7. Default: 6.
    pub priority: u8,
    /// Flows with state in a ToR, in each direction, at least 1 (section III-D1: 10,000). Further flows pass untouched.
    pub flows: u32,
    /// Silence after which a flow's state may be reused for another.
    pub idle: Duration,
}

impl Default for NetRtConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            pool: Setting::Auto,
            buffer: Setting::Auto,
            interval: Setting::Auto,
            quiet: Setting::Auto,
            lifetime: Setting::Auto,
            patience: Duration::ZERO,
            k_low: Bytes::from_kb(20),
            k_high: Bytes::from_kb(100),
            max_rate: 0.5,
            min_rate: 0.01,
            pause: true,
            priority: 6,
            flows: 10_000,
            idle: Duration::from_ms(10),
        }
    }
}

impl NetRtConfig {
    /// Replaces every "auto" by the value for `fabric`.
    pub fn resolve(&mut self, fabric: &Fabric) {
        // The paper's round trip of 5 us is propagation; with serialisation times of that order, a duplicate would be
        // evicted before it could be requested.
        let until_asked = fabric.pipe() + (fabric.frame + fabric.gap) * 2;
        resolve(&mut self.pool, || Some(fabric.bdp.max(until_asked)));
        resolve(&mut self.buffer, || Some(fabric.bdp.max(until_asked)));
        let interval = resolve(&mut self.interval, || Some(fabric.base_rtt));
        resolve(&mut self.quiet, || interval.map(|interval| interval.saturating_mul(3) / 4));
        resolve(&mut self.lifetime, || interval.map(|interval| interval.saturating_mul(4)));
    }

    /// Checks the resolved settings.
    ///
    /// # Errors
    /// Those of [`NetRtConfig::params`].
    pub fn check(&self) -> Result<(), SettingError> {
        self.params().map(drop)
    }

    /// Checks the resolved settings, and returns the parameters that they make.
    ///
    /// # Errors
    /// Names the key that is invalid, or still says "auto", and the valid values.
    pub fn params(&self) -> Result<Settings, SettingError> {
        let interval = known(self.interval, "interval")?.unwrap_or(Duration::ZERO);
        if interval.is_zero() {
            return Err(SettingError::new(
                "interval",
                "a lost request would never be repeated; give a time above zero",
            ));
        }
        let lifetime = known(self.lifetime, "lifetime")?;
        if lifetime == Some(Duration::ZERO) {
            let message = "duplicates would be worthless at once; give a time above zero, or \"off\"";
            return Err(SettingError::new("lifetime", message));
        }
        let (low, high) = (self.k_low, self.k_high);
        if high <= low {
            // Blames the setting that was given explicitly.
            return Err(if high == Self::default().k_high {
                SettingError::new("k-low", format!("{low} must be less than k-high, {high}"))
            } else {
                SettingError::new("k-high", format!("{high} must be more than k-low, {low}"))
            });
        }
        if !(self.max_rate > 0.0 && self.max_rate <= 1.0) {
            return Err(SettingError::new(
                "max-rate",
                format!("{} is out of range: above 0, at most 1", self.max_rate),
            ));
        }
        if !(self.min_rate > 0.0 && self.min_rate <= self.max_rate) {
            let message = format!("{} is out of range: above 0, at most max-rate, {}", self.min_rate, self.max_rate);
            return Err(SettingError::new("min-rate", message));
        }
        if self.priority > 7 {
            return Err(SettingError::new("priority", format!("{} is not a priority: they are 0 to 7", self.priority)));
        }
        if self.flows == 0 {
            return Err(SettingError::new("flows", "a ToR without state recovers nothing; give at least 1"));
        }
        if self.idle.is_zero() {
            return Err(SettingError::new("idle", "flows would be forgotten at once; give a time above zero"));
        }
        Ok(Settings {
            pool: known(self.pool, "pool")?.map_or(0, Bytes::get),
            buffer: known(self.buffer, "buffer")?.map_or(0, Bytes::get),
            interval,
            quiet: known(self.quiet, "quiet")?.unwrap_or(Duration::ZERO),
            lifetime,
            patience: self.patience,
            pause: self.pause,
            flows: self.flows as usize,
            idle: self.idle,
            restarts: false,
            k_low: low.get(),
            k_high: high.get(),
            max_rate: self.max_rate,
            min_rate: self.min_rate,
        })
    }
}

/// Parameters of NetRT.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    pub(super) pool: u64,
    pub(super) buffer: u64,
    pub(super) interval: Duration,
    /// Time for which a duplicate is not retransmitted again.
    pub(super) quiet: Duration,
    /// Useful life of a duplicate; `None`: unlimited.
    pub(super) lifetime: Option<Duration>,
    pub(super) patience: Duration,
    pub(super) pause: bool,
    pub(super) flows: usize,
    pub(super) idle: Duration,
    /// Whether a jump beyond the window begins a flow anew.
    pub(super) restarts: bool,
    k_low: u64,
    k_high: u64,
    max_rate: f64,
    min_rate: f64,
}

impl Settings {
    /// Lets a jump of PSNs beyond the window, in either direction, begin a flow anew: for networks where the ToR does
    /// not see when queue pairs are set up and reused. Otherwise such a packet is forwarded, and recovery of its flow
    /// left to the NICs.
    #[must_use]
    pub fn restarting(self) -> Self {
        Self { restarts: true, ..self }
    }

    /// Returns the rate of duplicates when `requested` bytes of them wait and the host's line rate is `line`; and
    /// whether that is congestion (section III-C3, figure 5). Discontinuous at `k_low`, as in the paper.
    pub(super) fn rate(&self, requested: u64, line: Rate) -> (Rate, bool) {
        if requested < self.k_low || requested == 0 {
            return (line, false);
        }
        let beyond = (requested - self.k_low) as f64 / (self.k_high - self.k_low) as f64;
        let share = (self.max_rate - beyond * (self.max_rate - self.min_rate)).max(self.min_rate);
        (Rate::from_bps(((line.as_bps() as f64 * share) as u64).max(1)), true)
    }
}
