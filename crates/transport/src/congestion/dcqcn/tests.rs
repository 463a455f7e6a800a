extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::expect_file;
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Setting};

use super::{Control, DcqcnConfig, Defaults};
use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;
use crate::rounds::{Rounds, at, gbps, resolved};

const LINE: f64 = 40e9;
const G: f64 = 1.0 / 256.0;

fn paper() -> DcqcnConfig {
    resolved(DcqcnConfig::default())
}
fn connect_x() -> DcqcnConfig {
    resolved(DcqcnConfig { defaults: Defaults::ConnectX, ..DcqcnConfig::default() })
}
fn paper_on_connect_x() -> DcqcnConfig {
    resolved(DcqcnConfig { defaults: Defaults::PaperOnConnectX, ..DcqcnConfig::default() })
}
fn cnp(control: &mut Control, us: u64) {
    control.on_signal(&mut Cx::at(at(us)), Signal::Cnp);
}
/// Lets the timer fire `times` times.
fn fire(control: &mut Control, times: u32) {
    for _ in 0..times {
        let now = control.deadline();
        control.handle_timeout(&mut Cx::at(now));
    }
}
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found}, not {expected}");
}

const HEADER: &str = "R_C, Gb/s      R_T, Gb/s      alpha        T  BC";
fn show(control: &Control) -> String {
    let Control { rate, target, alpha, timer_stage, byte_stage, .. } = control;
    format!("{}  {}  {alpha:.9}  {timer_stage:>2}  {byte_stage:>2}", gbps(*rate), gbps(*target))
}

#[test]
fn a_flow_starts_at_line_rate_and_keeps_it_until_a_cnp_comes() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    assert_eq!((control.rate(), control.window(), control.deadline()), (Rate::MAX, Bytes::MAX, Instant::NEVER));
    for signal in [Signal::Lost, Signal::TimedOut] {
        control.on_signal(&mut Cx::at(at(1)), signal);
    }
    assert_eq!(control.rate(), Rate::MAX);
}

#[test]
fn a_line_rate_below_the_link_s_limits() {
    let line_rate = Rate::from_gbps(25);
    let mut control = Control::new(
        &resolved(DcqcnConfig { line_rate: Setting::Value(line_rate), ..DcqcnConfig::default() })
            .params()
            .expect("valid settings"),
    );
    assert_eq!((control.rate(), control.deadline()), (line_rate, Instant::NEVER));
    // Without a CNP there is no recovery: no counter increases.
    control.on_signal(&mut Cx::at(at(1)), Signal::Sent { bytes: Bytes::from_kb(25_000) });
    assert_eq!((control.byte_stage, control.bytes), (0, 0));
    cnp(&mut control, 2);
    assert!(control.rate() < line_rate);
    while control.deadline() < Instant::NEVER {
        fire(&mut control, 1);
    }
    assert_eq!(control.rate(), line_rate, "recovered");
    // At the link's own rate, or above it, the link paces.
    for gbps in [40, 100] {
        let line_rate = Setting::Value(Rate::from_gbps(gbps));
        let control = Control::new(
            &resolved(DcqcnConfig { line_rate, ..DcqcnConfig::default() }).params().expect("valid settings"),
        );
        assert_eq!(control.rate(), Rate::MAX);
    }
}

#[test]
fn equation_1_each_cnp_cuts_by_half_of_alpha() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    let (mut rate, mut alpha) = (LINE, 1.0);
    for round in 0..8 {
        // CNPs precede the decay of alpha and the timer's increases.
        cnp(&mut control, round * 50);
        rate *= 1.0 - alpha / 2.0;
        alpha = (1.0 - G) * alpha + G;
        close(control.alpha, alpha);
        close(control.rate, rate.max(100e6));
    }
    assert_eq!(control.rate(), Rate::from_bps((LINE / 256.0) as u64), "eight halvings");
}

#[test]
fn the_firmware_s_algorithm_takes_the_paper_s_numbers() {
    let config = paper_on_connect_x();
    assert_eq!((config.needs(), config.increase_timer), (paper().needs(), paper().increase_timer));
    let mut control = Control::new(&config.params().expect("valid settings"));
    cnp(&mut control, 0);
    close(control.rate, LINE / 2.0);
    // One decrease in 4 us. The second decrease keeps the target of the first: no increase came between them.
    cnp(&mut control, 1);
    close(control.rate, LINE / 2.0);
    cnp(&mut control, 5);
    close(control.target, LINE);
    // Alpha is updated once in 55 us, for any number of CNPs.
    control.move_alpha(at(54));
    close(control.alpha, 1.0);
}

#[test]
fn equation_2_alpha_decays_by_g_per_interval_of_silence() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    // Ten intervals of 55 us have passed; the eleventh has not.
    let expected = (0..10).fold(1.0, |alpha, _| alpha * (1.0 - G));
    control.move_alpha(at(604));
    close(control.alpha, expected);
    // A CNP uses alpha, raises it, and begins a new interval.
    let rate = control.rate;
    cnp(&mut control, 604);
    close(control.rate, rate * (1.0 - expected / 2.0));
    close(control.alpha, (1.0 - G) * expected + G);
    assert_eq!(control.alpha_since, at(604));
}

#[test]
fn fast_recovery_halves_the_distance_five_times() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    for step in 1..=5 {
        assert_eq!(control.deadline(), at(55 * step));
        fire(&mut control, 1);
        close(control.rate, LINE - LINE / 2.0 / f64::from(1u32 << step));
        close(control.target, LINE);
    }
}

#[test]
fn then_the_target_rises_by_r_ai() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    cnp(&mut control, 1);
    // The second cut's target is the rate of the first.
    close(control.target, LINE / 2.0);
    fire(&mut control, 5);
    let rate = control.rate;
    fire(&mut control, 1);
    close(control.target, LINE / 2.0 + 40e6);
    close(control.rate, f64::midpoint(LINE / 2.0 + 40e6, rate));
    fire(&mut control, 3);
    close(control.target, LINE / 2.0 + 4.0 * 40e6);
}

#[test]
fn bytes_increase_like_time() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    let sent = |control: &mut Control, bytes| {
        control.on_signal(&mut Cx::at(at(1)), Signal::Sent { bytes: Bytes::new(bytes) });
    };
    sent(&mut control, 9_999_000);
    close(control.rate, LINE / 2.0);
    sent(&mut control, 1_500);
    close(control.rate, LINE * 0.75);
    assert_eq!((control.byte_stage, control.bytes), (1, 500));
    // Both counters beyond F: hyper increase.
    cnp(&mut control, 2);
    (0..6).for_each(|_| sent(&mut control, 10_000_000));
    fire(&mut control, 5);
    let target = control.target;
    fire(&mut control, 1);
    close(control.target, target + 40e6);
    sent(&mut control, 10_000_000);
    close(control.target, target + 40e6 + 200e6);
}

#[test]
fn a_cnp_starts_recovery_over() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    fire(&mut control, 3);
    cnp(&mut control, 200);
    assert_eq!((control.timer_stage, control.byte_stage, control.bytes, control.deadline()), (0, 0, 0, at(255)));
}

#[test]
fn back_at_line_rate_the_limiter_is_gone() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    cnp(&mut control, 0);
    while control.deadline() < Instant::NEVER {
        fire(&mut control, 1);
    }
    assert_eq!((control.rate(), control.rate), (Rate::MAX, LINE));
}

#[test]
fn no_rate_is_below_the_least() {
    let mut control = Control::new(&paper().params().expect("valid settings"));
    (0..100).for_each(|us| cnp(&mut control, us));
    assert_eq!(control.rate(), Rate::from_bps(100_000_000));
}

#[test]
fn connect_x_decreases_once_per_period() {
    let mut control = Control::new(&connect_x().params().expect("valid settings"));
    cnp(&mut control, 10);
    let first = LINE * (1.0 - 1023.0 / 2048.0);
    close(control.rate, first);
    // Two more CNPs within the period cause one decrease, at its end.
    cnp(&mut control, 11);
    cnp(&mut control, 13);
    close(control.rate, first);
    assert_eq!(control.deadline(), at(14));
    fire(&mut control, 1);
    assert!(control.rate < first);
    // No increase since the first decrease: the target is unchanged.
    close(control.target, LINE);
    assert_eq!(control.deadline(), at(314));
}

#[test]
fn connect_x_moves_alpha_once_per_interval() {
    let mut control = Control::new(&connect_x().params().expect("valid settings"));
    let g = 5.0 / 1024.0;
    let before = control.alpha;
    cnp(&mut control, 10);
    cnp(&mut control, 10);
    close(control.alpha, before);
    // The interval of the CNPs, and two without.
    control.move_alpha(at(13));
    close(control.alpha, ((1.0 - g) * before + g) * (1.0 - g) * (1.0 - g));
}

#[test]
fn a_first_cnp_may_set_the_rate() {
    let rate = Rate::from_gbps(3);
    let mut control = Control::new(
        &DcqcnConfig { rate_on_first_cnp: Setting::Value(rate), ..paper() }.params().expect("valid settings"),
    );
    cnp(&mut control, 0);
    assert_eq!(control.rate(), rate);
    cnp(&mut control, 100);
    assert!(control.rate() < rate);
}

#[test]
fn losses_cut_the_rate_if_asked_to() {
    // IRN, section 4.3: "explicitly backing off on losses". Recovery restarts, alpha is unchanged.
    let mut control =
        Control::new(&DcqcnConfig { loss_factor: Setting::Value(0.5), ..paper() }.params().expect("valid settings"));
    control.on_signal(&mut Cx::at(at(10)), Signal::Lost);
    close(control.rate, LINE / 2.0);
    control.on_signal(&mut Cx::at(at(20)), Signal::TimedOut);
    close(control.rate, LINE / 4.0);
    assert_eq!((control.alpha, control.deadline()), (1.0, at(20) + Duration::from_us(55)));
    fire(&mut control, 1);
    close(control.rate, (LINE / 2.0 + LINE / 4.0) / 2.0);
}

/// Compares a burst of CNPs, recovery, a late CNP, and additive increase with the committed tables.
#[test]
fn round_by_round() {
    for (config, committed, until) in [
        (paper(), expect_file!["snapshots/paper.txt"], 1_600),
        (connect_x(), expect_file!["snapshots/connect-x.txt"], 3_600),
    ] {
        let mut rounds = Rounds::new(Control::new(&config.params().expect("valid settings")), HEADER, &show);
        for us in [0, 50, 100, 150] {
            rounds.signal(us, "CNP", Signal::Cnp);
        }
        rounds.until(600);
        rounds.signal(601, "CNP", Signal::Cnp);
        rounds.signal(700, "10 MB sent", Signal::Sent { bytes: Bytes::from_kb(10_000) });
        rounds.until(until);
        rounds.expect(&committed);
    }
}

#[test]
fn auto_is_what_the_sources_have() {
    let paper = paper();
    assert_eq!(paper.cnp_interval, Setting::Value(Duration::from_us(50)));
    assert_eq!(paper.line_rate, Setting::Value(Fabric::IRN_PAPER.line_rate));
    let needs = paper.needs();
    let marking = needs.marking.expect("marks required");
    assert_eq!((marking.k_min, marking.k_max), (Bytes::from_kb(5), Bytes::from_kb(200)));
    assert_eq!((marking.p_max, marking.rate), (Chance::ratio(1, 100), Rate::from_gbps(40)));
    assert_eq!(marking.on(Rate::from_gbps(100)).k_max, Bytes::from_kb(500));
    assert_eq!(needs.cnp_interval, Some(Duration::from_us(50)));
    let connect_x = connect_x();
    assert_eq!(connect_x.needs().cnp_interval, Some(Duration::from_us(4)));
    assert_eq!(connect_x.needs().marking.expect("marks required").on(Rate::from_gbps(100)).k_min, Bytes::from_kb(400));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let wrong = |change: &dyn Fn(&mut DcqcnConfig)| {
        let mut config = paper();
        change(&mut config);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(&|config| config.g = Setting::Value(0.0)), "g");
    assert_eq!(wrong(&|config| config.loss_factor = Setting::Value(0.0)), "loss-factor");
    assert_eq!(wrong(&|config| config.g = Setting::Value(f64::NAN)), "g");
    assert_eq!(wrong(&|config| config.initial_alpha = Setting::Value(1.5)), "initial-alpha");
    assert_eq!(wrong(&|config| config.min_rate = Setting::Value(Rate::from_gbps(50))), "min-rate");
    assert_eq!(wrong(&|config| config.min_rate = Setting::Value(Rate::ZERO)), "min-rate");
    assert_eq!(wrong(&|config| config.increase_timer = Setting::Off), "increase-timer");
    assert_eq!(wrong(&|config| config.alpha_interval = Setting::Value(Duration::ZERO)), "alpha-interval");
    assert_eq!(wrong(&|config| config.byte_counter = Setting::Value(Bytes::ZERO)), "byte-counter");
    let without_bytes = DcqcnConfig { byte_counter: Setting::Off, ..paper() };
    assert_eq!(without_bytes.check(), Ok(()));
}
