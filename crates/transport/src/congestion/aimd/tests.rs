extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::expect_file;
use selvedge_units::{Bytes, Rate, Setting};

use super::{AimdConfig, Control, OnTimeout};
use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;
use crate::rounds::{Rounds, acked, at, resolved};

const FRAME: u64 = 1_106;

fn config() -> AimdConfig {
    resolved(AimdConfig::default())
}
/// Returns settings with a window of `frames` frames.
fn of_frames(frames: u64) -> AimdConfig {
    let mut config = config();
    config.window.initial = Setting::Value(Bytes::new(FRAME * frames));
    config
}
fn hear(control: &mut Control, signal: Signal) {
    control.on_signal(&mut Cx::at(at(1)), signal);
}
fn frames(control: &Control) -> f64 {
    control.window.bytes().get() as f64 / FRAME as f64
}

#[test]
fn a_flow_starts_at_line_rate() {
    let control = Control::new(&config().params().expect("valid settings"));
    assert_eq!(control.window(), Fabric::IRN_PAPER.line_rate.amount_in(Fabric::IRN_PAPER.base_rtt));
    assert_eq!(control.rate(), Rate::MAX);
}

#[test]
fn a_window_acknowledged_is_a_frame_gained() {
    let mut control = Control::new(&of_frames(10).params().expect("valid settings"));
    for round in 0..20 {
        let before = frames(&control);
        (0..10 + round).for_each(|_| hear(&mut control, acked(FRAME, 24)));
        let gained = frames(&control) - before;
        // The gain is less than a frame, because the window grew in the meantime.
        assert!((0.9..=1.0).contains(&gained), "round {round}: {gained}");
    }
}

#[test]
fn a_loss_halves_the_window() {
    let mut control = Control::new(&of_frames(64).params().expect("valid settings"));
    hear(&mut control, Signal::Lost);
    assert_eq!(frames(&control), 32.0);
    hear(&mut control, Signal::TimedOut);
    assert_eq!(frames(&control), 16.0);
    (0..20).for_each(|_| hear(&mut control, Signal::Lost));
    assert_eq!(control.window(), Bytes::new(FRAME), "a frame is the least");
}

#[test]
fn a_timeout_may_start_over() {
    let mut control =
        Control::new(&AimdConfig { on_timeout: OnTimeout::Restart, ..of_frames(64) }.params().expect("valid settings"));
    hear(&mut control, Signal::TimedOut);
    assert_eq!(control.window(), Bytes::new(FRAME));
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let mut control = Control::new(&of_frames(64).params().expect("valid settings"));
    let Signal::Acked { bytes, rtt, marked, acked, sent, .. } = acked(FRAME, 24) else { unreachable!() };
    hear(&mut control, Signal::Acked { bytes, rtt, marked, acked, sent, in_flight: bytes * 61 });
    assert_eq!(frames(&control), 64.0);
    hear(&mut control, Signal::Acked { bytes, rtt, marked, acked, sent, in_flight: bytes * 63 });
    assert!(frames(&control) > 64.0);
}

#[test]
fn slow_start_doubles_until_the_first_loss() {
    let mut config = of_frames(2);
    config.window.slow_start = true;
    let mut control = Control::new(&config.params().expect("valid settings"));
    for expected in [4.0, 8.0, 16.0] {
        let count = frames(&control) as u64;
        (0..count).for_each(|_| hear(&mut control, acked(FRAME, 24)));
        assert_eq!(frames(&control), expected);
    }
    hear(&mut control, Signal::Lost);
    hear(&mut control, acked(FRAME, 24));
    assert!(frames(&control) < 8.2);
}

/// Compares round trips with and without a loss (a sawtooth) with the committed table.
#[test]
fn round_by_round() {
    let show = |control: &Control| -> String { format!("{:>8}", control.window().get()) };
    let mut rounds = Rounds::new(Control::new(&of_frames(16).params().expect("valid settings")), "window, B", &show);
    for round in 1..=24 {
        let window = rounds.control.window().get();
        rounds.signal(round * 24, &format!("{window} B acknowledged"), acked(window, 24));
        if round % 10 == 0 {
            rounds.signal(round * 24, "loss", Signal::Lost);
        }
    }
    rounds.signal(25 * 24, "timeout", Signal::TimedOut);
    rounds.expect(&expect_file!["snapshots/rounds.txt"]);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let mut config = config();
    assert_eq!(config.window.step, Setting::Value(Bytes::new(FRAME)));
    assert!(config.needs().acks);
    config.decrease_factor = 1.0;
    assert_eq!(config.check().expect_err("never decreases").key, "decrease-factor");
    config.decrease_factor = 0.0;
    config.window.initial = Setting::Off;
    assert_eq!(config.check().expect_err("should be refused").key, "window.initial");
}
