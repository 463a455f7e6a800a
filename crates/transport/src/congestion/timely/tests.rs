extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::expect_file;
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::{Control, TimelyConfig};
use crate::congestion::{Congestion, ReportBy, Signal, Tuning};
use crate::role::Cx;
use crate::rounds::{Rounds, acked, at, gbps, resolved};

const LINE: f64 = 40e9;
const SEGMENT: u64 = 16_000;

fn config() -> TimelyConfig {
    resolved(TimelyConfig::default())
}
/// Returns a control with an update every D_minRTT and a rate of `gbps`.
fn running_at(gbps: u64) -> Control {
    Control::new(
        &TimelyConfig { initial_rate: Setting::Value(Rate::from_gbps(gbps)), ..config() }
            .params()
            .expect("valid settings"),
    )
}
/// Passes segments with these RTTs to the control, 20 us apart.
fn hear(control: &mut Control, rtts: &[u64]) {
    let begin = control.next_update;
    for (&rtt, n) in rtts.iter().zip(0..) {
        control.on_signal(&mut Cx::at(begin + Duration::from_us(20) * n), acked(SEGMENT, rtt));
    }
}
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, not {expected}");
}

#[test]
fn a_flow_starts_at_line_rate() {
    assert_eq!(Control::new(&config().params().expect("valid settings")).rate(), Rate::MAX);
    assert_eq!(running_at(10).rate(), Rate::from_gbps(10));
}

#[test]
fn a_line_rate_below_the_link_s_limits() {
    let line_rate = Rate::from_gbps(25);
    let mut control = Control::new(
        &resolved(TimelyConfig { line_rate: Setting::Value(line_rate), ..TimelyConfig::default() })
            .params()
            .expect("valid settings"),
    );
    assert_eq!(control.rate(), line_rate);
    hear(&mut control, &[24; 10]);
    assert_eq!(control.rate(), line_rate, "it never rises above");
}

#[test]
fn losses_cut_the_rate_if_asked_to() {
    // IRN, section 4.3: "explicitly backing off on losses".
    for (loss_factor, left) in [(1.0, 10e9), (0.5, 2.5e9)] {
        let initial_rate = Setting::Value(Rate::from_gbps(10));
        let mut control =
            Control::new(&TimelyConfig { initial_rate, loss_factor, ..config() }.params().expect("valid settings"));
        for signal in [Signal::Lost, Signal::TimedOut] {
            control.on_signal(&mut Cx::at(at(1)), signal);
        }
        close(control.rate, left);
    }
}

#[test]
fn below_t_low_the_rate_rises_whatever_the_gradient() {
    let mut control = running_at(10);
    hear(&mut control, &[24, 30, 49]);
    close(control.rate, 10e9 + 3.0 * 10e6);
}

#[test]
fn above_t_high_the_rate_falls_whatever_the_gradient() {
    let mut control = running_at(10);
    hear(&mut control, &[1_000, 800]);
    close(control.rate, 10e9 * (1.0 - 0.8 * (1.0 - 500.0 / 1_000.0)) * (1.0 - 0.8 * (1.0 - 500.0 / 800.0)));
}

#[test]
fn a_rising_rtt_cuts_by_its_gradient() {
    let mut control = running_at(10);
    hear(&mut control, &[100, 104]);
    // The first sample has no gradient: one step up. Then 4 us of difference, smoothed, over 20 us.
    let gradient = 0.875 * 4.0 / 20.0;
    close(control.rate, (10e9 + 10e6) * (1.0 - 0.8 * gradient));
    hear(&mut control, &[104]);
    // An eighth of the difference remains when the RTT is constant.
    close(control.rate, (10e9 + 10e6) * (1.0 - 0.8 * gradient) * (1.0 - 0.8 * gradient / 8.0));
}

#[test]
fn five_steps_without_a_rise_make_the_increase_hyperactive() {
    let mut control = running_at(10);
    hear(&mut control, &[100, 98, 96, 94]);
    close(control.rate, 10e9 + 4.0 * 10e6);
    hear(&mut control, &[92, 90]);
    close(control.rate, 10e9 + 4.0 * 10e6 + 2.0 * 50e6);
    // A rise ends hyperactive increase.
    hear(&mut control, &[300]);
    assert_eq!(control.falling, 0);
}

#[test]
fn rates_stay_between_a_hundredth_and_all_of_the_line() {
    let mut control = running_at(40);
    hear(&mut control, &[24; 10]);
    assert_eq!(control.rate(), Rate::MAX);
    // A gradient above one would reduce the rate below zero.
    hear(&mut control, &[400]);
    close(control.rate, LINE / 100.0);
}

#[test]
fn a_sample_per_segment_and_at_most_one_per_min_rtt() {
    let mut control = running_at(10);
    // Ten packets make no segment.
    (0..10).for_each(|us| control.on_signal(&mut Cx::at(at(us)), acked(1_106, 24)));
    close(control.rate, 10e9);
    (10..20).for_each(|us| control.on_signal(&mut Cx::at(at(us)), acked(1_106, 24)));
    close(control.rate, 10e9 + 10e6);
    // The next segment is complete before D_minRTT has passed since the last step: no step yet.
    control.on_signal(&mut Cx::at(at(30)), acked(SEGMENT, 24));
    close(control.rate, 10e9 + 10e6);
    control.on_signal(&mut Cx::at(at(35)), acked(0, 24));
    close(control.rate, 10e9 + 20e6);
}

#[test]
fn an_acknowledgement_of_nothing_new_is_a_sample() {
    let mut control = running_at(10);
    control.on_signal(&mut Cx::at(at(5)), acked(1_106, 24));
    control.on_signal(&mut Cx::at(at(6)), acked(0, 1_000));
    close(control.rate, 10e9 * 0.6);
}

#[test]
fn losses_are_not_its_business() {
    let mut control = running_at(10);
    for signal in [Signal::Lost, Signal::TimedOut, Signal::Cnp] {
        control.on_signal(&mut Cx::at(at(1)), signal);
    }
    close(control.rate, 10e9);
}

/// Compares a queue that builds up, stays constant, and drains with the committed table.
#[test]
fn round_by_round() {
    let show = |control: &Control| -> String {
        let gradient = control.rtt_difference * control.params.per_min_rtt;
        format!("{}  {gradient:>12.9}  {:>2}", gbps(control.rate), control.falling)
    };
    let mut rounds = Rounds::new(
        Control::new(&config().params().expect("valid settings")),
        "rate, Gb/s        gradient  falling",
        &show,
    );
    let rtts =
        [24, 24, 40, 60, 90, 130, 200, 300, 420, 510, 600, 600, 540, 480, 400, 300, 220, 160, 110, 80, 60, 45, 30];
    for (&rtt, round) in rtts.iter().zip(1..) {
        rounds.signal(round * 24, &format!("RTT {rtt} us"), acked(SEGMENT, rtt));
    }
    for round in 24..32 {
        rounds.signal(round * 24, "RTT 60 us", acked(SEGMENT, 60));
    }
    rounds.expect(&expect_file!["snapshots/rounds.txt"]);
}

#[test]
fn auto_is_what_the_sources_have() {
    let config = config();
    assert_eq!((config.line_rate, config.initial_rate), (Setting::Value(Rate::from_gbps(40)), config.line_rate));
    assert_eq!(config.min_rate, Setting::Value(Rate::from_bps(400_000_000)));
    assert_eq!(config.update_interval, Setting::Value(Duration::from_us(20)));
    let needs = config.needs();
    assert_eq!((needs.marking, needs.cnp_interval, needs.acks), (None, None, false));
    let reports = needs.reports.expect("TIMELY needs RTT samples");
    assert_eq!((reports.every, reports.by), (Bytes::from_kb(16), ReportBy::Free));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let wrong = |change: &dyn Fn(&mut TimelyConfig)| {
        let mut config = config();
        change(&mut config);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(&|config| config.t_low = Duration::from_us(501)), "t-low");
    assert_eq!(wrong(&|config| config.min_rtt = Duration::ZERO), "min-rtt");
    assert_eq!(wrong(&|config| config.alpha = 0.0), "alpha");
    assert_eq!(wrong(&|config| config.beta = 1.1), "beta");
    assert_eq!(wrong(&|config| config.segment = Bytes::ZERO), "segment");
    assert_eq!(wrong(&|config| config.initial_rate = Setting::Value(Rate::from_gbps(41))), "initial-rate");
    assert_eq!(wrong(&|config| config.min_rate = Setting::Off), "min-rate");
}
