//! Settings of NetRT.

use alloc::format;

use selvedge_units::{Bytes, Duration, Rate, Setting};

use crate::fabric::{Fabric, SettingError, resolve, resolved};

/// NetRT in top-of-rack switches: selective retransmission between them, behind the NICs' backs.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct NetRtConfig {
    /// Whether top-of-rack switches do it.
    pub enabled: bool,
    /// Duplicates that a source ToR keeps of what entered through each host's port. "auto": one
    /// bandwidth-delay product (section III-C1), with the time that frames take on links, and two frames more, from
    /// the second of which a loss is known; "off": none, every request remains unfulfilled.
    pub pool: Setting<Bytes>,
    /// Early packets that a destination ToR holds for each host's port. "auto": one bandwidth-delay product
    /// (section III-D1), counted as for `pool`; "off": none, nothing is recovered.
    pub buffer: Setting<Bytes>,
    /// What is missing is asked for again each time this long has passed. "auto": the base round-trip time of the
    /// longest path; the paper says "at time intervals".
    pub interval: Setting<Duration>,
    /// A duplicate that a source ToR has sent is not sent again for so long, whoever asks. "auto": three quarters of
    /// `interval`, as long as it takes to get there, and a request to come back, on paths of up to eight links: of
    /// these an interval has all, and this the six between ToRs. "off": each request is answered, as in the paper.
    pub quiet: Setting<Duration>,
    /// What is older than this goes first when a pool is full, whoever asked for how much of its flow. "auto": four
    /// intervals; "off": only the flow that was asked for least counts, as in the paper (section III-C1), and
    /// duplicates of flows that were asked for and have ended stay for ever.
    pub lifetime: Setting<Duration>,
    /// A gap is asked for when it has lasted this long. Default: at once, as in the paper.
    pub patience: Duration,
    /// Below this many requested bytes of a host, duplicates are sent at its line rate (section IV: 20 KB).
    pub k_low: Bytes,
    /// From this many on, at the lowest rate (section IV: 100 KB). More than `k-low`.
    pub k_high: Bytes,
    /// Share of the line rate just above `k-low`, above 0 and at most 1 (section IV: 0.5).
    pub max_rate: f64,
    /// Share of the line rate from `k-high` on, above 0 and at most `max-rate` (section IV: 0.01).
    pub min_rate: f64,
    /// Whether a sender is paused (PFC, on its own link only) while its duplicates are sent at less than line
    /// rate. Default: true.
    pub pause: bool,
    /// 802.1p priority of requests, answers and duplicates, 0 to 7. Default: 6.
    pub priority: u8,
    /// Flows that a ToR keeps state of, in each direction, at least 1 (section III-D1: 10,000). What is more
    /// passes untouched.
    pub flows: u32,
    /// State of a flow that was silent for this long may be given to another.
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
    /// Replaces every "auto" by what `fabric` makes of it.
    pub fn resolve(&mut self, fabric: &Fabric) {
        // The paper's round trip of 5 us is propagation; where frames take as long, a duplicate would be gone before
        // anybody can ask for it.
        let until_asked = fabric.pipe() + (fabric.frame + fabric.gap) * 2;
        resolve(&mut self.pool, || Some(fabric.bdp.max(until_asked)));
        resolve(&mut self.buffer, || Some(fabric.bdp.max(until_asked)));
        resolve(&mut self.interval, || Some(fabric.base_rtt));
        let interval = resolved(self.interval, "interval");
        resolve(&mut self.quiet, || interval.map(|interval| interval.saturating_mul(3) / 4));
        resolve(&mut self.lifetime, || interval.map(|interval| interval.saturating_mul(4)));
    }

    /// Whether the values can work.
    ///
    /// # Errors
    /// Names the key and says what would be right.
    pub fn check(&self) -> Result<(), SettingError> {
        if matches!(self.interval, Setting::Off | Setting::Value(Duration::ZERO)) {
            return Err(SettingError::new(
                "interval",
                "a lost request would never be repeated; give a time above zero",
            ));
        }
        if self.lifetime == Setting::Value(Duration::ZERO) {
            let message = "duplicates would be worthless at once; give a time above zero, or \"off\"";
            return Err(SettingError::new("lifetime", message));
        }
        let (low, high) = (self.k_low, self.k_high);
        if high <= low {
            // Of the two, the one that somebody wrote.
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
        Ok(())
    }
}

/// The same, with nothing left open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    pub(super) pool: u64,
    pub(super) buffer: u64,
    pub(super) interval: Duration,
    /// A duplicate that has been sent is not sent again for so long.
    pub(super) quiet: Duration,
    /// How long a duplicate is of use.
    pub(super) lifetime: Option<Duration>,
    pub(super) patience: Duration,
    pub(super) pause: bool,
    pub(super) flows: usize,
    pub(super) idle: Duration,
    k_low: u64,
    k_high: u64,
    max_rate: f64,
    min_rate: f64,
}

impl From<&NetRtConfig> for Settings {
    /// # Panics
    /// When something still says "auto".
    fn from(config: &NetRtConfig) -> Self {
        let bytes = |setting, key| resolved(setting, key).unwrap_or(Bytes::ZERO).get();
        Self {
            pool: bytes(config.pool, "pool"),
            buffer: bytes(config.buffer, "buffer"),
            interval: resolved(config.interval, "interval").unwrap_or(config.idle),
            quiet: resolved(config.quiet, "quiet").unwrap_or_default(),
            lifetime: resolved(config.lifetime, "lifetime"),
            patience: config.patience,
            pause: config.pause,
            flows: config.flows as usize,
            idle: config.idle,
            k_low: config.k_low.get(),
            k_high: config.k_high.get(),
            max_rate: config.max_rate,
            min_rate: config.min_rate,
        }
    }
}

impl Settings {
    /// The rate of duplicates when `requested` bytes of them wait and the host's line rate is `line`; and
    /// whether that is congestion (section III-C3, figure 5). Discontinuous at `k_low`, as written.
    pub(super) fn rate(&self, requested: u64, line: Rate) -> (Rate, bool) {
        if requested < self.k_low || requested == 0 {
            return (line, false);
        }
        let beyond = (requested - self.k_low) as f64 / (self.k_high - self.k_low) as f64;
        let share = (self.max_rate - beyond * (self.max_rate - self.min_rate)).max(self.min_rate);
        (Rate::from_bps(((line.as_bps() as f64 * share) as u64).max(1)), true)
    }
}
