use super::*;
use crate::tcp::congestion::{cubic, dctcp};

#[test]
fn slow_start_counts_acknowledgements_or_octets() {
    // Two segments per acknowledgement: RFC 5681 adds one, RFC 3465 two.
    for (limit, after) in [(Setting::Value(1), 5_000), (Setting::Value(2), 6_000), (Setting::Off, 6_000)] {
        let config = TcpConfig { slow_start_limit: limit, ..plain() };
        sender(config, 20, &[(0, Sends("0 1 2 3")), (10, Ack(2)), (10, Cwnd(after))]);
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_per_window() {
    let config = TcpConfig { initial_ssthresh: Setting::Value(Bytes::new(4_000)), ..plain() };
    sender(
        config,
        20,
        &[
            (0, Sends("0 1 2 3")),
            (10, Ack(2)),
            (10, Cwnd(4_000)),
            (10, Sends("4 5")),
            (11, Ack(4)),
            (11, Cwnd(5_000)),
            (11, Sends("6 7 8")),
        ],
    );
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    sender(
        TcpConfig { initial_window: Setting::Value(10), ..plain() },
        2,
        &[(0, Sends("0 1")), (10, Ack(1)), (10, Cwnd(10_000)), (10, Ack(2)), (10, Cwnd(10_000))],
    );
}

#[test]
fn the_initial_window_is_ten_segments_or_that_of_rfc_6928() {
    for (mss, segments) in [(536, 10), (1_024, 10), (1_460, 10), (4_096, 3), (9_000, 2)] {
        let (mss, initial_window) = (Setting::Value(Bytes::new(mss)), Setting::Auto);
        let config = resolved(TcpConfig { mss, initial_window, ..plain() });
        assert_eq!(config.initial_window, Setting::Value(10), "{mss:?}");
        let config = resolved(TcpConfig { mss, initial_window, initial_window_cap: Setting::Auto, ..plain() });
        assert_eq!(config.initial_window, Setting::Value(segments), "{mss:?}");
    }
}

/// Runs a sender with `window` segments in flight, all acknowledged every `rtt_us`, for `rounds` rounds.
fn rounds(config: TcpConfig, rtt_us: u64, rounds: u64, mut event: impl FnMut(u64, &mut Segment)) -> Vec<u64> {
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(1 << 40);
    let mut windows = Vec::new();
    let mut highest = Octet::FIRST;
    for round in 0..rounds {
        let mut cx = Cx::at(at(round * rtt_us));
        while let Some(sent) = end.poll_transmit(&mut cx) {
            let start = sent.segment.seq.near(highest, OURS).expect("behind the SYN");
            highest = highest.max(start + u64::from(sent.segment.payload));
        }
        windows.push(end.stats().cwnd / MSS);
        let mut ack = Segment {
            seq: Octet::FIRST.to_seq(THEIRS),
            ack: highest.to_seq(OURS),
            flags: Flags::ACK,
            window: u16::MAX,
            ..Segment::default()
        };
        event(round, &mut ack);
        end.handle_segment(&mut Cx::at(at((round + 1) * rtt_us)), &ack, false);
    }
    windows
}

fn wide(config: TcpConfig) -> TcpConfig {
    TcpConfig {
        receive_buffer: Setting::Value(Bytes::new(1 << 30)),
        min_rto: Setting::Value(Duration::from_ms(1_000)),
        ecn: Ecn::On,
        ..config
    }
}

#[test]
fn cubic_follows_its_curve() {
    // A mark at 100 segments, then 100 ms per round trip: back at 100 after K = cbrt(30 / 0.4) = 4.2 s,
    // before Reno would be.
    let cubic = cubic::Config { fast_convergence: true, ..cubic::Config::default() };
    let config = TcpConfig { congestion: cubic.into(), initial_window: Setting::Value(100), ..wide(plain()) };
    let windows = rounds(config, 100_000, 55, |round, ack| {
        if round == 0 {
            ack.flags |= Flags::ECE;
        }
    });
    assert_eq!(windows[1], 70, "beta");
    let k = libm::cbrt(0.3 * 100.0 / 0.4);
    for (round, &window) in windows.iter().enumerate().skip(2) {
        // The window aims at where the curve is one round trip later.
        let t = (round - 1) as f64 * 0.1;
        let curve = 0.4 * (t - k).powi(3) + 100.0;
        assert!((window as f64 - curve).abs() < 2.5, "round {round}: {window}, the curve is at {curve}");
    }
}

#[test]
fn cubic_is_no_slower_than_reno_at_short_round_trips() {
    // RFC 9438, section 4.3: alpha = 3 * 0.3 / 1.7 segments per round trip.
    let config =
        TcpConfig { congestion: cubic::Config::default().into(), initial_window: Setting::Value(50), ..wide(plain()) };
    let windows = rounds(config, 100, 30, |round, ack| {
        if round == 0 {
            ack.flags |= Flags::ECE;
        }
    });
    assert_eq!(windows[1], 35);
    let expected = 35.0 + 28.0 * 3.0 * 0.3 / 1.7;
    assert!((windows[29] as f64 - expected).abs() < 1.5, "{windows:?}");
}

#[test]
fn dctcp_reduces_by_the_share_of_marks() {
    let dctcp = dctcp::Config { initial_alpha: 0.0, ..dctcp::Config::default() };
    let config = TcpConfig { congestion: dctcp.into(), initial_window: Setting::Value(100), ..wide(plain()) };
    let config = TcpConfig { initial_ssthresh: Setting::Value(Bytes::new(1_000)), ..config };
    let windows = rounds(config, 100, 12, |round, ack| {
        if round == 4 {
            ack.flags |= Flags::ECE;
        }
    });
    // One window of marks: alpha = 1/16, the window loses 1/32.
    assert_eq!(windows[..5], [100, 101, 102, 103, 104]);
    assert_eq!(windows[5], 101, "105 - 105/32");
    assert_eq!(windows[11], 106);
}

#[test]
fn a_mark_halves_the_window_once_per_window() {
    let config = TcpConfig { initial_window: Setting::Value(40), ..wide(plain()) };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(1 << 30);
    let mut cx = Cx::at(at(0));
    while end.poll_transmit(&mut cx).is_some() {}
    for ack in [1, 2, 3] {
        let ack = Segment {
            seq: Octet::FIRST.to_seq(THEIRS),
            ack: octet(ack).to_seq(OURS),
            flags: Flags::ACK | Flags::ECE,
            window: u16::MAX,
            ..Segment::default()
        };
        end.handle_segment(&mut cx, &ack, false);
    }
    assert_eq!(end.stats().cwnd, 20_000, "half of 40 outstanding");
}
