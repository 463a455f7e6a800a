//! CUBIC (RFC 9438).
//!
//! Windows are in segments here, as in the RFC.

use selvedge_units::Instant;

use super::{Acked, Control, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// CUBIC's constants.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Config {
    /// Growth speed C of the window, in segments per cubic second. Default: 0.4 (section 5.1).
    pub c: f64,
    /// Factor beta of the window after a loss. Default: 0.7 (section 4.6).
    pub beta: f64,
    /// Whether a flow whose window shrinks reduces it further in favour of new flows (section 4.7). Default: true.
    pub fast_convergence: bool,
    /// Whether a flow whose Reno-like window is back where the last loss was grows as fast as Reno (alpha = 1; section
    /// 4.3), which RFC 8312 and Linux do not have. Default: true.
    pub raise_alpha: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { c: 0.4, beta: 0.7, fast_convergence: true, raise_alpha: true }
    }
}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        if !(self.c > 0.0 && self.c.is_finite()) {
            return Err(SettingError::new("congestion.cubic.c", "the window never grows; give a number above 0"));
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(SettingError::new("congestion.cubic.beta", "give a number between 0 and 1, both excluded"));
        }
        Ok(*self)
    }
}

/// CUBIC's state.
#[derive(Clone, Copy, Debug)]
pub struct State {
    config: Config,
    /// W_max: the window before the last reduction.
    w_max: f64,
    /// cwnd before the last reduction.
    prior: f64,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
    /// Growth below a whole octet, in octets.
    fraction: f64,
    /// W_max, prior cwnd and stage before the last reduction, in case that it was spurious.
    before: Option<(f64, f64, Option<Epoch>)>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    begin: Instant,
    /// K: time until the plateau of the curve, in seconds.
    k: f64,
    /// Window at the plateau of the curve.
    origin: f64,
    /// W_est: the window that Reno would have.
    reno: f64,
}

impl State {
    /// Creates the state before any loss.
    pub fn new(config: &Config) -> Self {
        Self { config: *config, w_max: 0.0, prior: 0.0, epoch: None, fraction: 0.0, before: None }
    }

    /// Begins a stage: the curve passes `cwnd` now and has its plateau at W_max; if `cwnd` is above W_max, the curve
    /// begins at its plateau (section 4.2; section 4.8 for the first stage after a timeout).
    fn begin(&self, cwnd: f64, now: Instant) -> Epoch {
        let origin = self.w_max.max(cwnd);
        Epoch { begin: now, k: libm::cbrt((origin - cwnd) / self.config.c), origin, reno: cwnd }
    }

    fn reduce(&mut self, window: &Window, flight: u64) -> u64 {
        let cwnd = in_segments(window);
        let beta = self.config.beta;
        self.before = Some((self.w_max, self.prior, self.epoch));
        let yields = self.config.fast_convergence && cwnd < self.w_max;
        self.w_max = if yields { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.epoch = None;
        ((flight as f64 * beta) as u64).max(2 * window.mss)
    }
}

impl Control for State {
    fn on_acked(&mut self, window: &mut Window, acked: Acked) {
        if window.is_slow_start() {
            return window.slow_start(acked.octets);
        }
        let cwnd = in_segments(window);
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(cwnd, acked.now));
        let Config { c, beta, raise_alpha, .. } = self.config;
        let curve = |seconds: f64| {
            let distance = seconds - epoch.k;
            c * distance * distance * distance + epoch.origin
        };
        let elapsed = acked.now.since(epoch.begin).as_secs_f64();
        let share = acked.octets as f64 / window.cwnd as f64;

        // Section 4.3: the additive increase that, with reduction by beta, is as fast as Reno's.
        let alpha = if epoch.reno < self.prior || !raise_alpha { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.reno += alpha * share;
        let wanted = if curve(elapsed) < epoch.reno {
            epoch.reno
        } else {
            // Sections 4.4 and 4.5: the target is the curve one round-trip time ahead.
            let target = curve(elapsed + acked.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * share
        };
        let growth = (wanted - cwnd).max(0.0) * window.mss as f64 + self.fraction;
        window.cwnd += growth as u64;
        self.fraction = growth - (growth as u64) as f64;
        self.epoch = Some(epoch);
    }
    fn on_loss(&mut self, window: &Window, flight: u64) -> u64 {
        self.reduce(window, flight)
    }
    fn handle_timeout(&mut self, window: &Window, flight: u64) -> u64 {
        let ssthresh = self.reduce(window, flight);
        self.w_max = 0.0; // section 4.8
        ssthresh
    }
    fn on_mark(&mut self, window: &Window, flight: u64) -> u64 {
        self.reduce(window, flight)
    }
    // Section 4.9.
    fn on_undo(&mut self) {
        if let Some(before) = self.before.take() {
            (self.w_max, self.prior, self.epoch) = before;
        }
    }
}

fn in_segments(window: &Window) -> f64 {
    window.cwnd as f64 / window.mss as f64
}
