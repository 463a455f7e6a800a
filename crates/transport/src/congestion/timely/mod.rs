//! TIMELY: the rate follows the gradient of the round-trip time.

use selvedge_units::{Bytes, Duration, Instant, Rate};

use super::{Congestion, Signal};
use crate::fabric::resolved;
use crate::role::Cx;

mod config;

pub use config::{TimelyConfig, TimelyConfig as Config};

/// The rate of one flow. Rates are in bits per second, times in picoseconds.
#[derive(Clone, Debug)]
pub struct Control {
    rate: f64,
    /// Bytes reported since the last sample.
    unsampled: u64,
    /// The earliest time of the next step.
    next_update: Instant,
    /// The RTT of the previous step; zero before the first.
    previous_rtt: f64,
    /// Smoothed difference of consecutive RTTs.
    rtt_difference: f64,
    /// Steps in a row without a positive gradient.
    falling: u32,
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    line_rate: f64,
    min_rate: f64,
    t_low: f64,
    t_high: f64,
    /// 1 / D_minRTT, where D_minRTT is in picoseconds.
    per_min_rtt: f64,
    additive_increase: f64,
    hyper_increase: f64,
    beta: f64,
    alpha: f64,
    loss_factor: f64,
    hyper_after: u32,
    segment: u64,
    update_interval: Duration,
    below_link: bool,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn new(config: &TimelyConfig) -> Self {
        let bps = |rate, key| resolved(rate, key).map_or(0.0, |rate: Rate| rate.as_bps() as f64);
        let ps = |time: Duration| time.as_ps() as f64;
        let delta = config.additive_increase.as_bps() as f64;
        Self {
            rate: bps(config.initial_rate, "initial-rate"),
            unsampled: 0,
            next_update: Instant::ZERO,
            previous_rtt: 0.0,
            rtt_difference: 0.0,
            falling: 0,
            settings: Settings {
                line_rate: bps(config.line_rate, "line-rate"),
                min_rate: bps(config.min_rate, "min-rate"),
                t_low: ps(config.t_low),
                t_high: ps(config.t_high),
                per_min_rtt: 1.0 / ps(config.min_rtt),
                additive_increase: delta,
                hyper_increase: delta * f64::from(config.hyper_factor),
                beta: config.beta,
                alpha: config.alpha,
                loss_factor: config.loss_factor,
                hyper_after: config.hyper_after,
                segment: config.segment.get(),
                update_interval: resolved(config.update_interval, "update-interval").unwrap_or(Duration::ZERO),
                below_link: config.below_link,
            },
        }
    }

    /// Updates the rate after a segment, whose last packet was sent `rtt` ago: algorithm 1.
    fn update(&mut self, rtt: f64) {
        let Settings { t_low, t_high, beta, alpha, .. } = self.settings;
        // The first sample has no previous RTT.
        let difference = if self.previous_rtt > 0.0 { rtt - self.previous_rtt } else { 0.0 };
        self.previous_rtt = rtt;
        self.rtt_difference = (1.0 - alpha) * self.rtt_difference + alpha * difference;
        let gradient = self.rtt_difference * self.settings.per_min_rtt;
        self.falling = if gradient <= 0.0 { self.falling.saturating_add(1) } else { 0 };
        let rate = if rtt < t_low {
            self.rate + self.settings.additive_increase
        } else if rtt > t_high {
            self.rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else if gradient <= 0.0 {
            let hyper = self.falling >= self.settings.hyper_after;
            self.rate + if hyper { self.settings.hyper_increase } else { self.settings.additive_increase }
        } else {
            self.rate * (1.0 - beta * gradient)
        };
        self.rate = rate.clamp(self.settings.min_rate, self.settings.line_rate);
    }
}

impl Congestion for Control {
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if matches!(signal, Signal::Lost | Signal::TimedOut) {
            // Losses do not change the rate unless the settings say otherwise.
            self.rate = (self.rate * self.settings.loss_factor).max(self.settings.min_rate);
        }
        let Signal::Acked { bytes, rtt, .. } = signal else { return };
        self.unsampled += bytes.get();
        // An acknowledgement of no new bytes (go-back-N after a loss) completes no segment, but has an RTT.
        let complete = self.unsampled >= self.settings.segment || bytes.is_zero();
        if complete && cx.now >= self.next_update {
            self.unsampled = 0;
            self.next_update = cx.now.saturating_add(self.settings.update_interval);
            self.update(rtt.as_ps() as f64);
        }
    }
    #[inline]
    fn window(&self) -> Bytes {
        Bytes::MAX
    }
    #[inline]
    fn rate(&self) -> Rate {
        // At line rate the link itself paces, unless it is faster than the line rate.
        if self.rate >= self.settings.line_rate && !self.settings.below_link {
            Rate::MAX
        } else {
            Rate::from_bps(self.rate as u64)
        }
    }
}

#[cfg(test)]
mod tests;
