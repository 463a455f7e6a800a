//! RACK-TLP, PRR, Eifel and pacing.

use selvedge_wire::tcp::Timestamps;

use super::*;
use crate::tcp::congestion::bbr;

/// Returns the defaults, but no time stamps, every segment acknowledged, RTO 1 ms.
fn modern() -> TcpConfig {
    TcpConfig { loss_detection: LossDetection::Rack, prr: true, ..plain() }
}

#[test]
fn as_many_segments_as_duplicates_count_show_a_loss_at_once_and_a_lost_retransmission_is_noticed() {
    let end = sender(
        TcpConfig { initial_window: Setting::Value(8), ..modern() },
        30,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Sack(0, &[(1, 2)])),
            (100, Sends("8")),
            (101, Sack(0, &[(1, 3)])),
            (101, Sends("9")),
            (102, Sack(0, &[(1, 4)])),
            // RFC 9937: ssthresh is 4, eight were in the network; the fast retransmit goes whatever the share.
            (102, Sends("0r")),
            (103, Sack(0, &[(1, 5)])),
            (104, Sack(0, &[(1, 6)])),
            (105, Sack(0, &[(1, 7)])),
            (105, Sends("")), // half as much as is delivered, down to ssthresh: 0 again, 7, 8 and 9
            (106, Sack(0, &[(1, 8)])),
            (106, Sends("10")),
            (200, Sack(0, &[(1, 9)])),
            (200, Sends("11")),
            (201, Sack(0, &[(1, 10)])),
            (201, Sends("12")),
            // 10 was sent 4 us later than 0 again, and arrived: RFC 8985, section 6.2, step 5.
            (206, Sack(0, &[(1, 11)])),
            (206, Sends("0r 13")),
            (306, Ack(13)),
        ],
    );
    let stats = end.stats();
    assert_eq!((stats.retransmissions, stats.timeouts, stats.recoveries), (2, 0, 1));
    assert_eq!(stats.cwnd, stats.ssthresh, "where the recovery ends");
}

#[test]
fn few_segments_show_a_loss_after_the_reordering_window() {
    // A quarter of the round trip of 100 us (step 4).
    sender(
        modern(),
        4,
        &[
            (0, Sends("0 1 2 3")),
            (100, Sack(0, &[(1, 2)])),
            (100, Waits(125)),
            (124, Wake),
            (124, Sends("")),
            (125, Wake),
            (125, Sends("0r")),
        ],
    );
}

#[test]
fn once_seen_reordering_is_waited_for() {
    sender(
        TcpConfig { initial_window: Setting::Value(10), ..modern() },
        10,
        &[
            (0, Sends("0 1 2 3 4 5 6 7 8 9")),
            (100, Sack(0, &[(1, 2)])),
            (101, Ack(2)), // 0 arrives behind 1, and was sent once
            (102, Sack(2, &[(3, 4)])),
            (103, Sack(2, &[(3, 5)])),
            (104, Sack(2, &[(3, 6)])),
            (105, Sack(2, &[(3, 7)])),
            (105, Sends("")),
            (105, Waits(130)), // 105 us, the newest round trip, and a quarter of 100
            (110, Ack(7)),
        ],
    );
}

#[test]
fn the_tail_is_probed_after_two_round_trips() {
    let end = sender(
        modern(),
        4,
        &[
            (0, Sends("0 1 2 3")),
            (100, Ack(2)),
            (100, Waits(300)),
            (300, Wake),
            (300, Sends("3r")), // the last one again (RFC 8985, section 7.3)
            (300, Waits(1_300)),
            (400, Sack(2, &[(3, 4)])), // 2 was sent long before
            (400, Sends("2r")),
            (500, Ack(4)),
            (500, Rests),
        ],
    );
    assert_eq!((end.stats().probes, end.stats().timeouts, end.stats().retransmissions), (1, 0, 2));
}

#[test]
fn a_probe_is_a_new_segment_if_there_is_one() {
    sender(
        modern(),
        6,
        // Without a sample the probe goes where the timer would have expired.
        &[(0, Sends("0 1 2 3")), (1_000, Wake), (1_000, Sends("4")), (1_000, Waits(2_000))],
    );
}

#[test]
fn a_probe_that_repairs_a_loss_halves_the_window() {
    // RFC 8985, section 7.4: with a duplicate reported nothing was lost; else the window is reduced.
    let lines = |last| {
        [
            (0, Sends("0 1 2 3")),
            (100, Ack(3)),
            (300, Wake),
            (300, Sends("3r")),
            (350, Supply(MSS)),
            (350, Sends("4")),
            (400, last),
            (450, Ack(5)),
        ]
    };
    let lost = sender(modern(), 4, &lines(Ack(4)));
    let spurious = sender(modern(), 4, &lines(Sack(4, &[(3, 4)])));
    assert!(lost.stats().ssthresh < u64::MAX, "{:?}", lost.stats());
    assert_eq!(spurious.stats().ssthresh, u64::MAX);
}

#[test]
fn what_was_sent_less_than_a_round_trip_before_a_timeout_is_not_sent_again() {
    // RFC 8985, section 6.3: 4 is in flight when the timer expires.
    sender(
        TcpConfig { tail_loss_probe: false, ..modern() },
        5,
        &[
            (0, Sends("0 1 2 3")),
            (100, Ack(1)),
            (990, Sends("4")),
            (1_100, Wake),
            (1_100, Sends("1r")),
            (1_200, Ack(2)),
            (1_200, Sends("2r 3r")),
            (1_300, Ack(5)),
            (1_300, Rests),
        ],
    );
}

/// Passes an acknowledgement that echoes the stamp of what was sent at `echo` us.
fn hear(end: &mut Connection, us: u64, ack: u64, sacks: &[(u64, u64)], echo: u32) {
    let seq = |segment: u64| octet(segment).to_seq(OURS);
    let segment = Segment {
        seq: Octet::FIRST.to_seq(THEIRS),
        ack: seq(ack),
        flags: Flags::ACK,
        window: u16::MAX,
        timestamps: Some(Timestamps { value: us as u32, echo }),
        sacks: sacks.iter().map(|&(from, to)| (seq(from), seq(to))).collect(),
        ..Segment::default()
    };
    end.handle_segment(&mut Cx::at(at(us)), &segment, false);
}

#[test]
fn a_timeout_is_taken_back_if_the_original_is_acknowledged() {
    for sack in [true, false] {
        for (echo, is_spurious) in [(0, true), (1_000, false)] {
            let config = TcpConfig { timestamps: true, sack, tail_loss_probe: false, ..modern() };
            let mut end = Connection::established(&params(config), OURS, THEIRS);
            end.supply(20 * MSS);
            assert_eq!(sent(&mut end, &mut Cx::at(at(0))), "0 1 2 3");
            end.handle_timeout(&mut Cx::at(at(1_000)));
            assert_eq!(sent(&mut end, &mut Cx::at(at(1_000))), "0r");
            assert_eq!(end.stats().cwnd, MSS);
            hear(&mut end, 1_100, 1, &[], echo);
            let now = sent(&mut end, &mut Cx::at(at(1_100)));
            if is_spurious {
                assert_eq!(now, "4 5", "new segments, in the old window");
                assert_eq!((end.stats().undone, end.stats().ssthresh), (1, u64::MAX));
                assert!(end.poll_timeout() >= Some(at(1_100 + 1_100)), "the timeout is longer than what took so long");
            } else {
                assert_eq!((now.as_str(), end.stats().undone), ("1r 2r", 0));
            }
        }
    }
}

#[test]
fn a_recovery_is_taken_back_if_a_segment_was_only_overtaken() {
    let config = TcpConfig { initial_window: Setting::Value(8), timestamps: true, ..modern() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(40 * MSS);
    assert_eq!(sent(&mut end, &mut Cx::at(at(0))), "0 1 2 3 4 5 6 7");
    hear(&mut end, 100, 0, &[(1, 5)], 0);
    assert_eq!(sent(&mut end, &mut Cx::at(at(100))), "0r");
    assert_eq!(end.stats().ssthresh, 4 * MSS);
    // The receiver has had 0 before it was sent again.
    hear(&mut end, 105, 5, &[], 0);
    assert_eq!((end.stats().undone, end.stats().ssthresh), (1, u64::MAX));
    assert!(end.stats().cwnd >= 8 * MSS);
    // From now on overtaken segments are waited for.
    assert!(sent(&mut end, &mut Cx::at(at(105))).starts_with("8 9 10 11 12"));
    hear(&mut end, 205, 8, &[(9, 13)], 105);
    assert!(!sent(&mut end, &mut Cx::at(at(205))).contains('r'));
}

#[test]
fn what_is_retransmitted_in_one_recovery_is_no_original_in_the_next() {
    let config = TcpConfig { initial_window: Setting::Value(8), timestamps: true, ..modern() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(40 * MSS);
    assert_eq!(sent(&mut end, &mut Cx::at(at(0))), "0 1 2 3 4 5 6 7");
    let mut turn = |us, ack, sacks: &[(u64, u64)], echo, expected| {
        hear(&mut end, us, ack, sacks, echo);
        assert_eq!(sent(&mut end, &mut Cx::at(at(us))), expected, "{us} us");
    };
    turn(100, 0, &[(1, 5)], 0, "0r"); // lost, and so is 8
    turn(101, 0, &[(1, 8)], 0, "8 9 10");
    turn(201, 0, &[(9, 10), (1, 8)], 0, "0r 8r 11"); // 11 is lost, and 8 will be late
    turn(202, 0, &[(9, 11), (1, 8)], 0, "12");
    turn(301, 8, &[(9, 11)], 201, "13"); // the recovery ends
    turn(302, 8, &[(12, 13), (9, 11)], 201, "8r"); // and the next one begins
    hear(&mut end, 310, 11, &[(12, 13)], 201);
    assert_eq!(end.stats().undone, 0, "8 was sent before this recovery, but not for the first time");
}

#[test]
fn bbr_is_paced_once_it_knows_a_rate() {
    let config = TcpConfig { congestion: bbr::Config::default().into(), ..modern() };
    let config = TcpConfig { initial_window: Setting::Value(10), ..config };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(100 * MSS);
    assert_eq!(sent(&mut end, &mut Cx::at(at(0))), "0 1 2 3 4 5 6 7 8 9");
    hear(&mut end, 1_000, 10, &[], 0);
    // 10 segments in 1 ms, times 2.885, less a hundredth: one in 35 us.
    let mut times = Vec::new();
    let mut now = at(1_000);
    while times.len() < 10 {
        end.handle_timeout(&mut Cx::at(now));
        assert_eq!(sent(&mut end, &mut Cx::at(now)).split_whitespace().count(), 1);
        times.push(now);
        now = end.poll_timeout().expect("pacing");
    }
    let gap = (times[9] - times[0]).as_us_f64() / 9.0;
    assert!((gap - 1_000.0 / 10.0 / 2.885 / 0.99).abs() < 0.1, "{gap}");
}
