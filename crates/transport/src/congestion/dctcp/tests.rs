extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::expect_file;
use selvedge_units::{Bytes, Duration, Rate, Seq, Setting};

use super::{Control, DctcpConfig};
use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;
use crate::rounds::{Rounds, acked, at, resolved};

const FRAME: u64 = 1_106;
const G: f64 = 1.0 / 16.0;

fn config() -> DctcpConfig {
    resolved(DctcpConfig::default())
}
fn of_frames(frames: u64) -> DctcpConfig {
    let mut config = config();
    config.window.initial = Setting::Value(Bytes::new(FRAME * frames));
    config
}

/// A path that acknowledges packet by packet, always with a window's packets in flight.
struct Path {
    control: Control,
    acked: u64,
}

impl Path {
    fn new(config: &DctcpConfig) -> Self {
        Self { control: Control::new(&config.params().expect("valid settings")), acked: 0 }
    }
    fn frames(&self) -> f64 {
        self.control.window.bytes().get() as f64 / FRAME as f64
    }
    fn signal(&mut self, marked: bool) -> Signal {
        let Signal::Acked { bytes, rtt, in_flight, .. } = acked(FRAME, 24) else { unreachable!() };
        let sent = self.acked + self.control.window.bytes().get() / FRAME;
        self.acked += 1;
        Signal::Acked { bytes, rtt, in_flight, marked, acked: Seq::new(self.acked), sent: Seq::new(sent) }
    }
    fn hear(&mut self, marked: bool) {
        let signal = self.signal(marked);
        self.control.on_signal(&mut Cx::at(at(1)), signal);
    }
    /// Runs to the end of the present observation window, with `marked` packets marked.
    fn window(&mut self, marked: u64) {
        let end = self.control.end;
        for packet in 0.. {
            self.hear(packet < marked);
            if self.control.end != end {
                return;
            }
        }
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, not {expected}");
}

#[test]
fn a_flow_starts_at_line_rate() {
    let control = Control::new(&config().params().expect("valid settings"));
    assert_eq!(control.window(), Fabric::IRN_PAPER.line_rate.amount_in(Fabric::IRN_PAPER.base_rtt));
    assert_eq!((control.rate(), control.alpha), (Rate::MAX, 1.0));
}

#[test]
fn equation_1_alpha_follows_the_share_of_marked_bytes() {
    let mut path = Path::new(&of_frames(20));
    path.window(0);
    let mut alpha = path.control.alpha;
    for marked in [0, 5, 10, 3, 0, 0, 1] {
        let before = path.acked;
        path.window(marked);
        let share = marked as f64 / (path.acked - before) as f64;
        alpha = (1.0 - G) * alpha + G * share;
        close(path.control.alpha, alpha);
    }
}

#[test]
fn equation_2_a_mark_cuts_by_half_of_alpha_once_per_window() {
    let mut path = Path::new(&of_frames(20));
    path.window(0);
    let window = path.control.window.bytes().get() as f64;
    let expected = window * (1.0 - path.control.alpha / 2.0);
    path.hear(true);
    let sent = path.control.cut_until;
    let cut = |path: &Path| path.control.window.bytes().get() as f64;
    assert!((cut(&path) - expected).abs() < 2.0, "{}, not {expected}", cut(&path));
    while Seq::new(path.acked + 1) < sent {
        path.hear(true);
    }
    assert!((cut(&path) - expected).abs() < 2.0, "once per window");
    path.hear(true);
    assert!(cut(&path) < expected * 0.6, "and again in the next");
}

#[test]
fn without_marks_it_grows_as_tcp_and_alpha_is_forgotten() {
    let mut path = Path::new(&of_frames(10));
    path.window(0);
    for _ in 0..50 {
        let before = path.frames();
        path.window(0);
        let gained = path.frames() - before;
        assert!((0.8..1.2).contains(&gained), "{gained}");
    }
    assert!(path.control.alpha < 0.05);
}

#[test]
fn losses_halve_the_window() {
    let mut path = Path::new(&of_frames(40));
    path.control.on_signal(&mut Cx::at(at(1)), Signal::Lost);
    assert_eq!(path.frames(), 20.0);
    path.control.on_signal(&mut Cx::at(at(1)), Signal::TimedOut);
    assert_eq!(path.frames(), 10.0);
}

/// A NACK that carries a mark is told as an acknowledgement with a mark, then as a loss.
#[test]
fn marks_and_a_loss_in_one_window_cut_it_once_for_the_loss() {
    let lost = |path: &mut Path| path.control.on_signal(&mut Cx::at(at(1)), Signal::Lost);
    for between in [0, 3] {
        let mut path = Path::new(&of_frames(20));
        path.window(0);
        let (before, alpha) = (path.frames(), path.control.alpha);
        path.hear(true);
        close(path.frames(), (before * FRAME as f64 * (1.0 - alpha / 2.0)).floor() / FRAME as f64);
        let cut = path.frames();
        (0..between).for_each(|_| path.hear(false));
        let grown = path.frames() / cut;
        lost(&mut path);
        assert!((path.frames() / (before * grown) - 0.5).abs() < 1e-4, "{between}: {} of {before}", path.frames());
        // Later marks of the same window change nothing; a second loss and the next window's marks do.
        let cut = path.frames();
        let end = path.control.cut_until;
        while Seq::new(path.acked + 1) < end {
            path.hear(true);
        }
        assert_eq!(path.frames(), cut);
        path.hear(true);
        assert!(path.frames() < cut * 0.6);
        let cut = path.frames();
        lost(&mut path);
        lost(&mut path);
        assert!(path.frames() < cut * 0.6, "two losses");
    }
}

/// Compares observation windows with no, some and all packets marked with the committed table.
#[test]
fn round_by_round() {
    let show = |control: &Control| -> String { format!("{:>8}  {:.9}", control.window().get(), control.alpha) };
    let mut path = Path::new(&of_frames(16));
    let mut rounds = Rounds::new(path.control.clone(), "window, B  alpha", &show);
    for (marks, window) in [0, 0, 4, 4, 4, 0, 0, 16, 16, 0, 0, 0, 1, 1, 1].into_iter().zip(1..) {
        path.window(marks);
        rounds.control = path.control.clone();
        rounds.note(window * 24, &format!("window, {marks} marked"));
    }
    rounds.expect(&expect_file!["snapshots/rounds.txt"]);
}

#[test]
fn auto_is_what_the_sources_have() {
    let config = config();
    // Four fifths of C x RTT.
    assert_eq!(config.k, Setting::Value(Bytes::from_kb(96)));
    let needs = config.needs();
    let marking = needs.marking.expect("DCTCP needs marks");
    assert_eq!((marking.k_min, marking.k_max, needs.acks), (Bytes::from_kb(96), Bytes::from_kb(96), true));
    assert_eq!(marking.on(Rate::from_gbps(80)).k_min, Bytes::from_kb(192));
    // Another line rate changes the rate that K is given for, not K on a link of any rate.
    let half = resolved(DctcpConfig { line_rate: Setting::Value(Rate::from_gbps(20)), ..DctcpConfig::default() });
    assert_eq!(half.k, Setting::Value(Bytes::from_kb(48)));
    assert_eq!(half.needs().marking.map(|marking| marking.on(Rate::from_gbps(40)).k_min), Some(Bytes::from_kb(96)));

    // The paper's experiments: 65 packets of 1,500 bytes at 10 Gb/s with 100 us, 20 at 1 Gb/s.
    let testbed = |gbps: u64, buffer: u64| Fabric {
        line_rate: Rate::from_gbps(gbps),
        frame: Bytes::new(1_500),
        base_rtt: Duration::from_us(100),
        congested_rtt: Duration::from_us(100) + Rate::from_gbps(gbps).time_for(Bytes::from_kb(buffer)),
        inputs: 1,
        ..Fabric::IRN_PAPER
    };
    let k = |fabric: Fabric| fabric.dctcp_threshold(fabric.line_rate);
    assert_eq!(k(testbed(10, 1_000)).get() / 1_500, 66);
    assert_eq!(k(testbed(1, 1_000)), Bytes::new(20 * 1_500));
    // Half of the buffer, but at least the value of equation 13, C x RTT / 7.
    assert_eq!(k(testbed(10, 120)), Bytes::from_kb(60));
    assert_eq!(k(testbed(10, 20)), Bytes::new(125_000 / 7));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let wrong = |change: &dyn Fn(&mut DctcpConfig)| {
        let mut config = config();
        change(&mut config);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(&|config| config.g = 0.0), "g");
    assert_eq!(wrong(&|config| config.initial_alpha = -0.1), "initial-alpha");
    assert_eq!(wrong(&|config| config.decrease_factor = 1.0), "decrease-factor");
    assert_eq!(wrong(&|config| config.k = Setting::Off), "k");
    assert_eq!(wrong(&|config| config.window.min = Setting::Value(Bytes::ZERO)), "window.min");
}
