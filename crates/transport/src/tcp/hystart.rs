//! HyStart++: slow start ends when round trips grow (RFC 9406).

use selvedge_units::{Duration, Octet};

use super::congestion::Window;

/// State of HyStart++ (section 4.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// MIN_RTT_THRESH; `None`: slow start ends only by losses and marks.
    least_rise: Option<Duration>,
    /// lastRoundMinRTT and currentRoundMinRTT; [`Duration::MAX`] for infinity.
    last: Duration,
    current: Duration,
    /// rttSampleCount.
    samples: u32,
    /// windowEnd.
    end: Octet,
    /// cssBaselineMinRtt and the rounds of conservative slow start so far.
    conservative: Option<(Duration, u32)>,
}

/// N_RTT_SAMPLE.
const SAMPLES: u32 = 8;
/// MIN_RTT_DIVISOR.
const DIVISOR: u64 = 8;
/// MAX_RTT_THRESH in units of MIN_RTT_THRESH: 16 ms to 4 ms.
const MOST_RISE: u64 = 4;
/// CSS_GROWTH_DIVISOR.
const GROWTH_DIVISOR: u64 = 4;
/// CSS_ROUNDS.
const ROUNDS: u32 = 5;

impl HyStart {
    pub(super) const fn new(least_rise: Option<Duration>) -> Self {
        let (last, current) = (Duration::MAX, Duration::MAX);
        Self { least_rise, last, current, samples: 0, end: Octet::SYN, conservative: None }
    }

    /// Handles an acknowledgement up to `acked` in the first slow start, before the window grows; octets up to `sent`
    /// were sent. Sets the divisor of the window's growth, or ssthresh.
    pub(super) fn on_acked(&mut self, window: &mut Window, rtt: Option<Duration>, acked: Octet, sent: Octet) {
        let Some(least_rise) = self.least_rise else { return };
        if window.ssthresh != u64::MAX {
            // Only the first slow start (section 4.3).
            (self.least_rise, window.divisor) = (None, 1);
            return;
        }
        if acked >= self.end {
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
                if *rounds > ROUNDS {
                    window.ssthresh = window.cwnd;
                }
            }
            (self.last, self.current, self.samples, self.end) = (self.current, Duration::MAX, 0, sent);
        }
        if let Some(rtt) = rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        if self.samples < SAMPLES {
            return;
        }
        match self.conservative {
            None if self.last < Duration::MAX => {
                let rise = (self.last / DIVISOR).clamp(least_rise, least_rise.saturating_mul(MOST_RISE));
                if self.current >= self.last.saturating_add(rise) {
                    (self.conservative, window.divisor) = (Some((self.current, 0)), GROWTH_DIVISOR);
                }
            }
            // The rise was none: slow start goes on.
            Some((baseline, _)) if self.current < baseline => (self.conservative, window.divisor) = (None, 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// Runs rounds of ten acknowledgements with these round-trip times, in ms; returns the window after each.
    fn rounds(least_rise: Option<Duration>, rtts_ms: &[u64]) -> (Vec<u64>, Window) {
        let mut window = Window::new(10 * MSS, u64::MAX, MSS, u64::MAX);
        let mut hystart = HyStart::new(least_rise);
        let (mut acked, mut windows) = (1, Vec::new());
        for &ms in rtts_ms {
            let (share, sent) = (window.cwnd / 10, acked + window.cwnd);
            for n in 0..10 {
                acked = if n == 9 { sent } else { acked + share };
                // What the first acknowledgement lets be sent is beyond this round.
                hystart.on_acked(&mut window, Some(Duration::from_ms(ms)), Octet::new(acked), Octet::new(sent + 1));
                window.slow_start(share);
            }
            windows.push(window.cwnd / MSS);
        }
        (windows, window)
    }
    use alloc::vec::Vec;

    #[test]
    fn a_rise_by_an_eighth_slows_growth_to_a_quarter_and_then_ends_it() {
        let mut rtts = Vec::from([40, 40, 46]);
        rtts.extend([46; 8]);
        let (windows, window) = rounds(Some(Duration::from_ms(4)), &rtts);
        assert_eq!(windows[..2], [20, 40]);
        assert!(windows[2] < 80, "the rise of 6 ms of 40 shows after eight samples: {windows:?}");
        for pair in windows[2..6].windows(2) {
            let growth = pair[1] as f64 / pair[0] as f64;
            assert!((1.2..1.3).contains(&growth), "a quarter per round: {windows:?}");
        }
        assert!(window.ssthresh < u64::MAX, "after five rounds congestion avoidance begins");
    }

    #[test]
    fn a_rise_that_vanishes_was_none() {
        let (windows, window) = rounds(Some(Duration::from_ms(4)), &[40, 40, 46, 40, 40, 40]);
        assert_eq!(window.ssthresh, u64::MAX);
        assert_eq!(windows[5], windows[4] * 2);
    }

    #[test]
    fn less_than_the_threshold_is_no_rise() {
        for (least, rtts) in [(Some(Duration::from_ms(4)), [10, 10, 13, 13]), (None, [40, 40, 90, 90])] {
            assert_eq!(rounds(least, &rtts).0, [20, 40, 80, 160]);
        }
    }
}
