extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::expect_file;
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::{Control, SwiftConfig};
use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;
use crate::rounds::{Rounds, acked, at, gbps, resolved};

const FRAME: u64 = 1_106;
const LINKS: u32 = 6;

fn config() -> SwiftConfig {
    resolved(SwiftConfig::default())
}
/// Returns settings with a window of `packets` packets, and a target that does not depend on the window.
fn of_packets(packets: u64) -> SwiftConfig {
    SwiftConfig {
        initial_window: Setting::Value(Bytes::new(FRAME * packets)),
        base_target: Setting::Value(Duration::from_us(25)),
        flow_scaling: Setting::Off,
        ..config()
    }
}
/// Returns a control on the longest path, whose target is 49 us: 25 us plus 24 us.
fn running(config: &SwiftConfig) -> Control {
    let mut control = Control::new(&config.params().expect("valid settings"));
    control.on_path(LINKS);
    control
}
fn hear(control: &mut Control, us: u64, signal: Signal) {
    control.on_signal(&mut Cx::at(at(us)), signal);
}
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, not {expected}");
}

#[test]
fn a_flow_starts_at_line_rate() {
    let control = running(&config());
    assert_eq!(control.window(), Fabric::IRN_PAPER.line_rate.amount_in(Fabric::IRN_PAPER.base_rtt));
    assert_eq!(control.rate(), Rate::MAX);
}

#[test]
fn below_the_target_a_window_acknowledged_is_a_packet_gained() {
    let mut control = running(&of_packets(10));
    (0..10).for_each(|us| hear(&mut control, us, acked(FRAME, 48)));
    assert!((10.9..=11.0).contains(&control.cwnd), "{}", control.cwnd);
    // Algorithm 1: while the window is less than a packet, each acknowledged packet adds ai.
    control.set(0.5);
    hear(&mut control, 20, acked(FRAME, 30));
    close(control.cwnd, 1.5);
}

#[test]
fn above_the_target_the_window_follows_the_excess_once_per_round_trip() {
    let mut control = running(&of_packets(100));
    hear(&mut control, 100, acked(FRAME, 70));
    let expected = 100.0 * (1.0 - 0.8 * (70.0 - 49.0) / 70.0);
    close(control.cwnd, expected);
    hear(&mut control, 169, acked(FRAME, 70));
    close(control.cwnd, expected);
    // The delay is far above the target: no decrease takes more than max_mdf.
    hear(&mut control, 800, acked(FRAME, 700));
    close(control.cwnd, expected * 0.5);
}

#[test]
fn the_target_is_the_papers_formula() {
    let mut control = Control::new(
        &SwiftConfig {
            base_target: Setting::Value(Duration::from_us(25)),
            flow_scaling: Setting::Value(Duration::from_us(125)),
            ..config()
        }
        .params()
        .expect("valid settings"),
    );
    let target_us = |control: &Control| control.target() / 1e6;
    // Section 3.5: alpha / sqrt(fcwnd) + beta, 0 at 100 packets, fs_range at 0.1.
    let alpha = 125.0 / (1.0 / 0.1f64.sqrt() - 0.1);
    for (cwnd, scaled) in [(0.01, 125.0), (0.1, 125.0), (1.0, alpha * 0.9), (25.0, alpha * 0.1), (100.0, 0.0)] {
        control.set(cwnd);
        control.on_path(0);
        close(target_us(&control), 25.0 + scaled);
        control.on_path(2);
        close(target_us(&control), 25.0 + 8.0 + scaled);
    }
}

#[test]
fn windows_below_a_packet_are_paced() {
    let mut control = running(&of_packets(1));
    hear(&mut control, 100, acked(FRAME, 100));
    // A packet per 100 us / cwnd.
    let expected = control.cwnd * (FRAME * 8) as f64 / 100e-6;
    assert!(control.cwnd < 1.0);
    assert_eq!(control.rate(), Rate::from_bps(expected as u64));
    hear(&mut control, 150, acked(FRAME, 30));
    assert_eq!(control.rate(), Rate::MAX);
}

#[test]
fn losses_and_timeouts_cut_once_per_round_trip_and_at_last_to_the_least() {
    let mut control = running(&of_packets(64));
    hear(&mut control, 10, acked(FRAME, 40));
    let begin = control.cwnd;
    hear(&mut control, 20, Signal::Lost);
    hear(&mut control, 21, Signal::TimedOut);
    close(control.cwnd, begin / 2.0);
    (1..=3).for_each(|timeout| hear(&mut control, 20 + 100 * timeout, Signal::TimedOut));
    close(control.cwnd, begin / 16.0);
    hear(&mut control, 321, Signal::TimedOut);
    close(control.cwnd, 0.001);
    // An acknowledgement ends the row of timeouts.
    hear(&mut control, 400, acked(FRAME, 40));
    hear(&mut control, 500, Signal::TimedOut);
    close(control.cwnd, 1.001 / 2.0);
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let mut control = running(&of_packets(64));
    let Signal::Acked { bytes, rtt, marked, acked, sent, .. } = acked(FRAME, 24) else { unreachable!() };
    hear(&mut control, 1, Signal::Acked { bytes, rtt, marked, acked, sent, in_flight: bytes * 61 });
    close(control.cwnd, 64.0);
}

/// Compares a queue that builds up, stays at the target, and drains with the committed table.
#[test]
fn round_by_round() {
    let show = |control: &Control| -> String {
        let rate = if control.rate == Rate::MAX { "-".into() } else { gbps(control.rate.as_bps() as f64) };
        format!("{:>13.9}  {:>13.9}  {rate:>13}", control.cwnd, control.target() / 1e6)
    };
    let control = running(&SwiftConfig { initial_window: Setting::Value(Bytes::new(FRAME * 100)), ..config() });
    let mut rounds = Rounds::new(control, "cwnd, packets  target, us     rate, Gb/s", &show);
    let rtts = [24, 24, 30, 40, 60, 90, 140, 220, 300, 300, 280, 240, 200, 160, 120, 90, 70, 60, 50, 40, 30, 24, 24];
    let mut us = 0;
    for rtt in rtts {
        us += rtt;
        let bytes = rounds.control.window().get().max(FRAME);
        rounds.signal(us, &format!("RTT {rtt} us"), acked(bytes, rtt));
    }
    for (after, event, signal) in [(30, "loss", Signal::Lost), (100, "timeout", Signal::TimedOut)] {
        us += after;
        rounds.signal(us, event, signal);
    }
    rounds.expect(&expect_file!["snapshots/rounds.txt"]);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let sound = config();
    assert_eq!(sound.per_link, Setting::Value(Duration::from_us(4)));
    assert_eq!(sound.base_target, Setting::Value(Duration::from_us(24)));
    assert_eq!(sound.flow_scaling, Setting::Value(Duration::from_us(120)));
    assert_eq!(sound.max_window, Setting::Value(Bytes::new(240_000)), "48 us at 40 Gb/s");
    assert!(sound.needs().acks);
    let wrong = |change: &dyn Fn(&mut SwiftConfig)| {
        let mut config = sound;
        change(&mut config);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(&|config| config.initial_window = Setting::Off), "initial-window");
    assert_eq!(wrong(&|config| config.min_cwnd = 0.0), "min-cwnd");
    assert_eq!(wrong(&|config| config.max_window = Setting::Value(Bytes::new(1))), "max-window");
    assert_eq!(wrong(&|config| config.packet = Setting::Value(Bytes::new(1 << 50))), "max-window");
    assert_eq!(wrong(&|config| config.beta = 1.1), "beta");
    assert_eq!(wrong(&|config| config.max_decrease = 1.0), "max-decrease");
    assert_eq!(wrong(&|config| config.flow_scaling_to = 0.1), "flow-scaling-to");
    assert_eq!(wrong(&|config| config.base_target = Setting::Value(Duration::ZERO)), "base-target");
    assert_eq!(wrong(&|config| config.reset_after = 0), "reset-after");
}
