//! TIMELY: the rate follows the gradient of the round-trip time.

use selvedge_units::{Bytes, Instant, Rate};

use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{TimelyConfig, TimelyConfig as Config, TimelyParams};

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
    params: TimelyParams,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    pub const fn new(params: &TimelyParams) -> Self {
        Self {
            rate: params.initial_rate,
            unsampled: 0,
            next_update: Instant::ZERO,
            previous_rtt: 0.0,
            rtt_difference: 0.0,
            falling: 0,
            params: *params,
        }
    }

    /// Updates the rate after a segment, whose last packet was sent `rtt` ago: algorithm 1.
    fn update(&mut self, rtt: f64) {
        let TimelyParams { t_low, t_high, beta, alpha, .. } = self.params;
        // The first sample has no previous RTT.
        let difference = if self.previous_rtt > 0.0 { rtt - self.previous_rtt } else { 0.0 };
        self.previous_rtt = rtt;
        self.rtt_difference = (1.0 - alpha) * self.rtt_difference + alpha * difference;
        let gradient = self.rtt_difference * self.params.per_min_rtt;
        self.falling = if gradient <= 0.0 { self.falling.saturating_add(1) } else { 0 };
        let rate = if rtt < t_low {
            self.rate + self.params.additive_increase
        } else if rtt > t_high {
            self.rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else if gradient <= 0.0 {
            let hyper = self.falling >= self.params.hyper_after;
            self.rate + if hyper { self.params.hyper_increase } else { self.params.additive_increase }
        } else {
            self.rate * (1.0 - beta * gradient)
        };
        self.rate = rate.clamp(self.params.min_rate, self.params.line_rate);
    }
}

impl Congestion for Control {
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if matches!(signal, Signal::Lost | Signal::TimedOut) {
            // Losses do not change the rate unless the settings say otherwise.
            self.rate = (self.rate * self.params.loss_factor).max(self.params.min_rate);
        }
        let Signal::Acked { bytes, rtt, .. } = signal else { return };
        self.unsampled += bytes.get();
        // An acknowledgement of no new bytes (go-back-N after a loss) completes no segment, but has an RTT.
        let complete = self.unsampled >= self.params.segment || bytes.is_zero();
        if complete && cx.now >= self.next_update {
            self.unsampled = 0;
            self.next_update = cx.now.saturating_add(self.params.update_interval);
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
        if self.rate >= self.params.line_rate && !self.params.below_link {
            Rate::MAX
        } else {
            Rate::from_bps(self.rate as u64)
        }
    }
}

#[cfg(test)]
mod tests;
