extern crate std;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect_file;
use selvedge_units::{Bytes, Duration, Instant, Rate, Seq, Setting, SwitchId};
use selvedge_wire::{Hop, PathRecord};

use super::{Control, HpccConfig};
use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;
use crate::rounds::{Rounds, acked, at, gbps, resolved};

/// The largest window in bytes: 40 Gb/s times 24 us.
const MOST: f64 = 120_000.0;
const W_AI: f64 = 60.0;
const LINE: Rate = Rate::from_gbps(40);

fn config() -> HpccConfig {
    resolved(HpccConfig::default())
}
fn close(found: impl Into<f64>, expected: f64) {
    let found = found.into();
    // Telemetry is rounded to ticks: T has 93,750 of them.
    assert!((found - expected).abs() <= 5e-5 * expected.abs(), "{found}, not {expected}");
}

/// A path of 40 Gb/s links that acknowledges a window's worth in each round trip.
struct Path {
    control: Control,
    /// Number of the path's first switch; the others follow in order.
    first: u32,
    now: Duration,
    sent: Vec<f64>,
    acked: u64,
}

impl Path {
    fn new(config: &HpccConfig, links: usize) -> Self {
        let mut path = Self {
            control: Control::new(&config.params().expect("valid settings")),
            first: 1,
            now: Duration::from_us(100),
            sent: vec![0.0; links],
            acked: 0,
        };
        path.hear(Duration::ZERO, 0, &vec![(0.0, 0); links]);
        path
    }
    /// Passes an acknowledgement of `packets` packets to the control, `after` the last one, with a window of a hundred.
    /// Each of `links` has the part of that time that the link was busy, and the bytes in its queue.
    fn hear(&mut self, after: Duration, packets: u64, links: &[(f64, u32)]) {
        self.now += after;
        self.acked += packets;
        for (sent, (busy, _)) in self.sent.iter_mut().zip(links) {
            *sent += (LINE.amount_in(after).get() as f64 * busy).floor();
        }
        let mut record = PathRecord::EMPTY;
        for ((switch, &sent), &(_, queue)) in (0..).zip(&self.sent).zip(links) {
            let time_for = |bytes: f64| Duration::from_ps((bytes * 200.0) as u64);
            let hop = Hop { at: Instant::ZERO + self.now, busy: time_for(sent), queue: time_for(f64::from(queue)) };
            record.push(SwitchId(self.first + switch), hop);
        }
        let Signal::Acked { bytes, rtt, in_flight, marked, .. } = acked(1_106, 24) else { unreachable!() };
        let (acked, sent) = (Seq::new(self.acked), Seq::new(self.acked + 100));
        let signal = Signal::Acked { bytes, rtt, in_flight, marked, acked, sent };
        self.control.on_signal(&mut Cx::at(at(1)), signal);
        self.control.handle_telemetry(&record);
    }
    /// Acknowledges all of the last window after T.
    fn round(&mut self, links: &[(f64, u32)]) {
        self.hear(Duration::from_us(24), 101, links);
    }
}

#[test]
fn a_flow_starts_at_line_rate() {
    let path = Path::new(&config(), 3);
    assert_eq!(path.control.window(), Fabric::IRN_PAPER.line_rate.amount_in(Fabric::IRN_PAPER.base_rtt));
    assert_eq!(path.control.rate(), Rate::MAX);
}

#[test]
fn a_line_rate_below_the_link_s_limits() {
    let line_rate = Rate::from_gbps(25);
    let config = resolved(HpccConfig { line_rate: Setting::Value(line_rate), ..HpccConfig::default() });
    let mut path = Path::new(&config, 1);
    let initial = path.control.window();
    assert_eq!(path.control.rate(), line_rate);
    for _ in 0..10 {
        path.round(&[(0.1, 0)]);
        assert_eq!((path.control.window(), path.control.rate()), (initial, line_rate));
    }
}

#[test]
fn utilisation_is_that_of_the_fullest_link_queue_and_rate() {
    let mut path = Path::new(&config(), 3);
    path.round(&[(0.3, 0), (0.8, 0), (0.5, 12_000)]);
    // The third link's queue counts only where it is present at both times.
    close(path.control.utilisation, 0.8);
    path.round(&[(0.3, 0), (0.8, 0), (0.75, 18_000)]);
    close(path.control.utilisation, 0.75 + 12_000.0 / MOST);
    // Equation 1 of section 3.3's filter: a quarter of T moves it by a quarter.
    let before = f64::from(path.control.utilisation);
    path.hear(Duration::from_us(6), 1, &[(0.0, 0), (0.4, 0), (0.0, 0)]);
    close(path.control.utilisation, 0.75 * before + 0.25 * 0.4);
    // More than T counts as T.
    path.hear(Duration::from_us(240), 1, &[(0.1, 0); 3]);
    close(path.control.utilisation, 0.1);
}

#[test]
fn above_eta_the_window_follows_the_utilisation() {
    let mut path = Path::new(&config(), 1);
    path.round(&[(1.0, 0)]);
    let expected = MOST / (1.0 / 0.95) + W_AI;
    close(path.control.window, expected);
    close(path.control.reference, expected);
    // A second acknowledgement within the round trip: the reference is unchanged, so it is not cut twice.
    path.hear(Duration::from_us(24), 1, &[(1.0, 0)]);
    close(path.control.window, expected / (1.0 / 0.95) + W_AI);
    close(path.control.reference, expected);
    assert_eq!(path.control.rate(), Rate::from_bps((path.control.window * 8.0 / 24e-6) as u64));
}

#[test]
fn below_eta_it_adds_for_max_stage_round_trips_and_then_follows() {
    let mut path = Path::new(&config(), 1);
    path.round(&[(2.0, 0)]);
    let mut window = MOST / (2.0 / 0.95) + W_AI;
    for stage in 1..=5 {
        path.round(&[(0.5, 0)]);
        window += W_AI;
        close(path.control.window, window);
        assert_eq!(path.control.stage, stage);
    }
    path.round(&[(0.5, 0)]);
    close(path.control.window, window * 0.95 / 0.5 + W_AI);
    assert_eq!(path.control.stage, 0);
}

#[test]
fn windows_stay_between_the_least_rate_and_what_fills_the_path() {
    let mut path = Path::new(&config(), 1);
    (0..12).for_each(|_| path.round(&[(0.1, 0)]));
    close(path.control.window, MOST);
    assert_eq!(path.control.rate(), Rate::MAX);
    path.round(&[(1.0, 200_000)]);
    (0..200).for_each(|_| path.round(&[(1.0, 2_000_000)]));
    assert_eq!(path.control.rate(), Rate::from_bps(100_000_000));
}

#[test]
fn another_path_is_met_anew() {
    let mut path = Path::new(&config(), 2);
    path.round(&[(0.9, 0), (0.9, 0)]);
    let window = path.control.window;
    // Paths with another number of switches, and with other switches.
    path.sent.push(77.0);
    path.round(&[(1.0, 50_000); 3]);
    path.first = 8;
    path.round(&[(1.0, 50_000); 3]);
    close(path.control.window, window);
    path.round(&[(1.0, 50_000); 3]);
    assert!(path.control.window < window);
}

/// Tests that times which may have wrapped around are not compared.
#[test]
fn after_a_long_silence_there_is_nothing_to_compare_with() {
    let mut path = Path::new(&config(), 2);
    path.round(&[(0.9, 0), (0.9, 0)]);
    let before = f64::from(path.control.utilisation);
    path.hear(PathRecord::MEMORY, 101, &[(1.0, 50_000); 2]);
    close(path.control.utilisation, before);
    path.hear(PathRecord::MEMORY - PathRecord::TICK, 101, &[(0.5, 0); 2]);
    close(path.control.utilisation, 0.5);
}

/// Tests an acknowledgement that others have overtaken, which reports an earlier time.
#[test]
fn what_is_told_late_changes_nothing() {
    let mut path = Path::new(&config(), 2);
    path.round(&[(0.9, 0), (0.8, 0)]);
    let before = f64::from(path.control.utilisation);
    path.now -= Duration::from_us(2);
    path.sent.iter_mut().for_each(|sent| *sent -= 8_000.0);
    path.hear(Duration::ZERO, 0, &[(0.0, 30_000); 2]);
    close(path.control.utilisation, before);
    path.hear(Duration::ZERO, 0, &[(0.0, 30_000); 2]);
    close(path.control.utilisation, before);
}

#[test]
fn losses_are_not_its_business() {
    let mut control = Control::new(&config().params().expect("valid settings"));
    for signal in [Signal::Lost, Signal::TimedOut, Signal::Cnp] {
        control.on_signal(&mut Cx::at(at(1)), signal);
    }
    close(control.window, MOST);
}

/// Compares an incast that fills the last of three links, and its end, with the committed table.
#[test]
fn round_by_round() {
    let show = |control: &Control| -> String {
        let Control { window, reference, utilisation, stage, .. } = control;
        let rate = if control.rate == Rate::MAX { "-".into() } else { gbps(control.rate.as_bps() as f64) };
        format!("{window:>15.6}  {reference:>15.6}  {utilisation:.9}  {stage}  {rate:>13}")
    };
    let mut path = Path::new(&config(), 3);
    let mut rounds =
        Rounds::new(path.control.clone(), "W, bytes         W_c, bytes       U            stage  rate, Gb/s", &show);
    let queues = [0, 40_000, 120_000, 150_000, 120_000, 60_000, 20_000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (queue, round) in queues.into_iter().zip(1..) {
        let busy = if round < 9 { 1.0 } else { 0.6 };
        // Two halves of a round trip.
        for (half, packets) in [(0, 50), (1, 51)] {
            path.hear(Duration::from_us(12), packets, &[(0.4, 0), (0.6, 0), (busy, queue)]);
            rounds.control = path.control.clone();
            rounds.note(round * 24 + half * 12 - 12, &format!("{busy} busy, {queue} B"));
        }
    }
    rounds.expect(&expect_file!["snapshots/rounds.txt"]);
}

#[test]
fn auto_is_what_the_paper_has() {
    // Section 5.1: 100 Gb/s, T of 13 us, 80 bytes.
    let mut paper = HpccConfig {
        line_rate: Setting::Value(Rate::from_gbps(100)),
        base_rtt: Setting::Value(Duration::from_us(13)),
        ..HpccConfig::default()
    };
    paper.resolve(&Fabric::IRN_PAPER);
    assert_eq!(paper.additive_increase, Setting::Value(Bytes::new(81)));
    assert_eq!(paper.extra_header(), Bytes::new(42));
    assert!(paper.needs().telemetry && paper.needs().acks);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let wrong = |change: &dyn Fn(&mut HpccConfig)| {
        let mut config = config();
        change(&mut config);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(&|config| config.line_rate = Setting::Off), "line-rate");
    assert_eq!(wrong(&|config| config.base_rtt = Setting::Value(Duration::ZERO)), "base-rtt");
    assert_eq!(wrong(&|config| config.target_utilisation = 1.1), "target-utilisation");
    assert_eq!(wrong(&|config| config.additive_increase = Setting::Off), "additive-increase");
    assert_eq!(wrong(&|config| config.flows = 0), "flows");
    assert_eq!(wrong(&|config| config.min_rate = Rate::from_gbps(41)), "min-rate");
}
