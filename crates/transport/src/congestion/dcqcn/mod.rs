//! DCQCN's reaction point.
//!
//! Design notes.
//! 1. *Released at line rate.* A flow at line rate has no limiter: it is not paced, counts no bytes and has no timer.
//!    The first CNP attaches a limiter; when the rate is back, the limiter is removed. Where the link is faster than
//!    the configured line rate, the flow stays paced, at the line rate.
//! 2. *Alpha is updated on demand*, for as many intervals as have passed: the values are those of a timer, without one.

use selvedge_units::{Bytes, Duration, Instant, Rate};

use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::DcqcnConfig as Config;
use config::Rules;
pub use config::{AlphaUpdate, ClampTarget, DcqcnConfig, DcqcnParams, Defaults};

/// The reaction point of one flow. Rates are in bits per second.
#[derive(Clone, Debug)]
pub struct Control {
    /// R_C: the current rate.
    rate: f64,
    /// R_T: the target rate.
    target: f64,
    alpha: f64,
    /// The beginning of the first alpha interval that is not accounted for.
    alpha_since: Instant,
    /// Whether a CNP arrived in that first interval.
    alpha_grows: bool,
    /// Whether any CNP has arrived.
    notified: bool,
    /// The time of the last decrease.
    decreased_at: Instant,
    /// The time of a pending decrease, which was requested too soon; [`Instant::NEVER`] without one.
    decrease_at: Instant,
    /// The time of the timer's next increase; [`Instant::NEVER`] at line rate.
    increase_at: Instant,
    /// Bytes since the last increase by the byte counter.
    bytes: u64,
    /// T: increases by the timer since the last decrease.
    timer_stage: u32,
    /// BC: increases by the byte counter since the last decrease.
    byte_stage: u32,
    rules: Rules,
}

impl Control {
    /// Creates the control of a flow at line rate.
    pub const fn new(params: &DcqcnParams) -> Self {
        Self {
            rate: params.rules.line_rate,
            target: params.rules.line_rate,
            alpha: params.initial_alpha,
            alpha_since: Instant::ZERO,
            alpha_grows: false,
            notified: false,
            decreased_at: Instant::ZERO,
            decrease_at: Instant::NEVER,
            increase_at: Instant::NEVER,
            bytes: 0,
            timer_stage: 0,
            byte_stage: 0,
            rules: params.rules,
        }
    }

    fn handle_cnp(&mut self, now: Instant) {
        let first = !self.notified;
        if first {
            self.notified = true;
            self.alpha_since = now;
        }
        self.move_alpha(now);
        // A decrease that comes too soon is delayed (ConnectX).
        let due = self.decreased_at.saturating_add(self.rules.decrease_interval);
        if first || now >= due {
            self.decrease(now);
        } else {
            self.decrease_at = due;
        }
        if first && self.rules.rate_on_first_cnp != Rate::MAX {
            self.rate = (self.rules.rate_on_first_cnp.as_bps() as f64).clamp(self.rules.min_rate, self.rate);
            self.target = self.rate;
        }
        if self.rules.per_interval {
            self.alpha_grows = true;
        } else {
            // Equation 1: alpha is updated after the decrease, which uses the previous alpha.
            self.alpha = (1.0 - self.rules.g) * self.alpha + self.rules.g;
            self.alpha_since = now;
        }
    }

    /// Cuts the rate by alpha and restarts recovery (equation 1).
    fn decrease(&mut self, now: Instant) {
        let increased = self.timer_stage > 0 || self.byte_stage > 0;
        if self.rules.clamp_always || increased {
            self.target = self.rate;
        }
        let factor = (1.0 - self.alpha / 2.0).max(self.rules.min_decrease_factor);
        self.cut(factor, now);
    }

    /// Cuts the rate to a part of it and restarts recovery.
    fn cut(&mut self, factor: f64, now: Instant) {
        self.rate = (self.rate * factor).max(self.rules.min_rate);
        (self.timer_stage, self.byte_stage, self.bytes) = (0, 0, 0);
        self.decreased_at = now;
        self.decrease_at = Instant::NEVER;
        self.increase_at = now.saturating_add(self.rules.increase_timer);
    }

    /// Updates alpha for each interval that has passed (equation 2); the first interval may have had a CNP.
    fn move_alpha(&mut self, now: Instant) {
        let interval = self.rules.alpha_interval.as_ps();
        let passed = now.since(self.alpha_since).as_ps() / interval;
        if passed == 0 {
            return;
        }
        self.alpha_since += Duration::from_ps(passed * interval);
        let mut decays = passed;
        if core::mem::take(&mut self.alpha_grows) {
            self.alpha = (1.0 - self.rules.g) * self.alpha + self.rules.g;
            decays -= 1;
        }
        self.alpha *= power(1.0 - self.rules.g, decays);
    }

    /// Increases the rate (section 3.1, "rate increase"): fast recovery halves the distance to the target, F times.
    /// Then the target increases, too, and faster once both counters have passed F.
    fn increase(&mut self) {
        let steps = self.rules.fast_recovery_steps;
        if self.timer_stage.max(self.byte_stage) >= steps {
            let hyper = self.timer_stage.min(self.byte_stage) > steps;
            let step = if hyper { self.rules.hyper_increase } else { self.rules.additive_increase };
            self.target = (self.target + f64::from(step)).min(self.rules.line_rate);
        }
        self.rate = (self.target + self.rate) / 2.0;
        if self.rate >= self.rules.line_rate - 1.0 {
            self.rate = self.rules.line_rate;
            self.increase_at = Instant::NEVER;
        }
    }

    fn on_sent(&mut self, bytes: Bytes) {
        if self.is_released() {
            return;
        }
        self.bytes += bytes.get();
        if self.bytes >= self.rules.byte_counter {
            self.bytes -= self.rules.byte_counter;
            self.increase();
            self.byte_stage += 1;
        }
    }

    fn is_released(&self) -> bool {
        self.increase_at == Instant::NEVER
    }
}

impl Congestion for Control {
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Cnp => self.handle_cnp(cx.now),
            Signal::Sent { bytes } => self.on_sent(bytes),
            // Losses do not change the rate unless the settings say otherwise.
            Signal::Lost | Signal::TimedOut if self.rules.loss_factor < 1.0 => {
                self.target = self.rate;
                self.cut(self.rules.loss_factor, cx.now);
            }
            Signal::Acked { .. } | Signal::Lost | Signal::TimedOut => {}
        }
    }
    #[inline]
    fn window(&self) -> Bytes {
        Bytes::MAX
    }
    #[inline]
    fn rate(&self) -> Rate {
        if self.is_released() && !self.rules.below_link { Rate::MAX } else { Rate::from_bps(self.rate as u64) }
    }
    #[inline]
    fn deadline(&self) -> Instant {
        self.increase_at.min(self.decrease_at)
    }
    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.decrease_at <= cx.now {
            self.move_alpha(cx.now);
            self.decrease(cx.now);
        }
        if self.increase_at <= cx.now {
            self.increase_at = cx.now.saturating_add(self.rules.increase_timer);
            self.increase();
            self.timer_stage += 1;
        }
    }
}

/// Returns `base` to the power of `exponent`, by squaring: multiplications alone give equal bits on every platform.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests;
