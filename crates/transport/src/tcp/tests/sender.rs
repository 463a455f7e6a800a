use super::*;

/// Returns a configuration without SACK: recovery by partial acknowledgements.
fn without_sack() -> TcpConfig {
    TcpConfig { sack: false, ..plain() }
}

#[test]
fn a_lost_segment_is_sent_again_after_three_duplicates() {
    sender(
        TcpConfig { initial_window: Setting::Value(8), ..plain() },
        20,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Ack(1)),
            (100, Sends("8 9")), // slow start
            (101, Sack(1, &[(2, 3)])),
            (101, Sends("10")), // limited transmit: one has left the network
            (102, Sack(1, &[(2, 4)])),
            (102, Sends("11")),
            // Eleven outstanding, two of them by limited transmit: half of nine.
            (103, Sack(1, &[(2, 5)])),
            (103, Cwnd(4_500)),
            (103, Sends("1r")),
            (104, Sack(1, &[(2, 6)])),
            (105, Sack(1, &[(2, 7)])),
            (106, Sack(1, &[(2, 8)])),
            (107, Sack(1, &[(2, 9)])),
            (107, Sends("")), // 9, 10, 11 and 1 again: four
            (108, Sack(1, &[(2, 10)])),
            (108, Sends("12")),
            (203, Ack(12)),
            (203, Cwnd(4_500)),
            (203, Sends("13 14 15")),
        ],
    );
}

#[test]
fn what_the_window_allows_is_no_limited_transmit() {
    sender(
        TcpConfig { initial_window: Setting::Value(8), ..plain() },
        4,
        &[
            (0, Sends("0 1 2 3")),
            (100, Sack(0, &[(1, 2)])),
            (100, Supply(4 * MSS)),
            (100, Sends("4 5 6 7")),
            (101, Sack(0, &[(1, 3)])),
            (102, Sack(0, &[(1, 4)])),
            // Eight outstanding, as the window allows: half of them.
            (102, Cwnd(4_000)),
        ],
    );
}

#[test]
fn several_losses_are_repaired_in_one_round_trip() {
    sender(
        TcpConfig { initial_window: Setting::Value(10), limited_transmit: false, ..plain() },
        10,
        &[
            (0, Sends("0 1 2 3 4 5 6 7 8 9")),
            (100, Sack(0, &[(1, 2)])),
            (101, Sack(0, &[(3, 4), (1, 2)])),
            (102, Sack(0, &[(5, 6), (3, 4), (1, 2)])),
            (102, Cwnd(5_000)),
            // 0 is lost at once; 2 and 4 are not lost yet, and pipe is 7 - 1 + 1.
            (102, Sends("0r")),
            (103, Sack(0, &[(5, 7), (3, 4), (1, 2)])),
            // Two segments and a separate one above 2: lost by octets (2,001 > 2,000).
            (104, Sack(0, &[(5, 8), (3, 4), (1, 2)])),
            (105, Sack(0, &[(5, 9), (3, 4), (1, 2)])),
            (105, Sends("2r 4r")),
            (106, Sack(0, &[(5, 10), (3, 4), (1, 2)])),
            (202, Sack(2, &[(5, 10), (3, 4)])),
            (203, Sack(4, &[(5, 10)])),
            (204, Ack(10)),
            (204, Rests),
        ],
    );
}

#[test]
fn a_lost_tail_is_rescued_once() {
    // RFC 6675, section 4, rule 4: 0 and 9 are lost; nothing is SACKed above 9.
    sender(
        TcpConfig { initial_window: Setting::Value(10), limited_transmit: false, ..plain() },
        10,
        &[
            (0, Sends("0 1 2 3 4 5 6 7 8 9")),
            (100, Sack(0, &[(1, 2)])),
            (101, Sack(0, &[(1, 3)])),
            (102, Sack(0, &[(1, 4)])),
            (102, Sends("0r")),
            (107, Sack(0, &[(1, 9)])),
            (107, Sends("")), // 0 was sent again only now: no rescue yet
            (202, Ack(9)),
            (202, Sends("9r")),
            (203, Sends("")),
            (302, Ack(10)),
            (302, Rests),
        ],
    );
}

#[test]
fn a_rescue_is_cut_where_segments_are_cut() {
    let mut end = sender(
        TcpConfig { initial_window: Setting::Value(10), limited_transmit: false, ..plain() },
        8,
        &[(0, Supply(300)), (0, Sends("0 1 2 3 4 5 6 7 8s")), (100, Sack(0, &[(1, 4)])), (100, Sends("0r"))],
    );
    let mut cx = Cx::at(at(200));
    let ack = Segment {
        seq: Octet::FIRST.to_seq(THEIRS),
        ack: octet(8).to_seq(OURS),
        flags: Flags::ACK,
        window: 60_000,
        ..Segment::default()
    };
    end.handle_segment(&mut cx, &ack, false);
    assert_eq!(sent(&mut end, &mut cx), "8sr");
}

#[test]
fn without_sack_partial_acknowledgements_lead_from_hole_to_hole() {
    // RFC 6582: 0 and 2 are lost.
    sender(
        TcpConfig { initial_window: Setting::Value(8), ..without_sack() },
        20,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Ack(0)),
            (100, Sends("8")), // limited transmit
            (101, Ack(0)),
            (101, Sends("9")),
            (102, Ack(0)),
            // ssthresh is half of eight, inflated by three.
            (102, Cwnd(7_000)),
            (102, Sends("0r")),
            (103, Ack(0)),
            (104, Ack(0)),
            (105, Ack(0)),
            (105, Sends("")),
            (106, Ack(0)),
            (106, Cwnd(11_000)),
            (106, Sends("10")),
            (202, Ack(2)), // partial: deflated by two, inflated by one
            (202, Cwnd(10_000)),
            (202, Waits(1_202)),
            (202, Sends("2r 11")),
            (302, Ack(11)), // full
            (302, Cwnd(2_000)),
            (302, Sends("12")),
        ],
    );
}

#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    sender(
        TcpConfig { initial_window: Setting::Value(8), limited_transmit: false, ..without_sack() },
        8,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Ack(0)),
            (101, Ack(0)),
            (102, Ack(0)),
            (102, Sends("0r")),
            (202, Ack(2)),
            (202, Waits(1_202)),
            // Each retransmission restarts it, too (RFC 6675, section 6).
            (203, Sends("2r")),
            (203, Waits(1_203)),
            (303, Ack(4)),
            (303, Waits(1_203)),
        ],
    );
}

#[test]
fn without_limited_transmit_duplicates_send_nothing_new() {
    for sack in [true, false] {
        sender(
            TcpConfig { sack, limited_transmit: false, ..plain() },
            9,
            &[
                (0, Sends("0 1 2 3")),
                (100, if sack { Sack(0, &[(1, 2)]) } else { Ack(0) }),
                (101, if sack { Sack(0, &[(1, 3)]) } else { Ack(0) }),
                (101, Sends("")),
            ],
        );
    }
}

#[test]
fn a_timeout_sends_everything_again_in_slow_start() {
    sender(
        TcpConfig { initial_window: Setting::Value(8), ..without_sack() },
        8,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (0, Waits(1_000)),
            (999, Wake),
            (999, Sends("")),
            (1_000, Wake),
            (1_000, Cwnd(1_000)),
            (1_000, Sends("0r")),
            (1_000, Waits(3_000)), // backed off
            (1_100, Ack(1)),
            (1_100, Sends("1r 2r")),
            (1_200, Ack(3)),
            (1_200, Cwnd(3_000)),
            (1_200, Sends("3r 4r 5r")),
            // Duplicates of what was sent before the timeout begin nothing (RFC 6582, section 3.2).
            (1_201, Ack(3)),
            (1_202, Ack(3)),
            (1_203, Ack(3)),
            (1_203, Sends("")),
            (1_300, Ack(8)),
            (1_300, Rests),
        ],
    );
}

#[test]
fn a_timeout_sends_again_what_is_not_sacked() {
    sender(
        TcpConfig { initial_window: Setting::Value(8), ..plain() },
        10,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Sack(0, &[(2, 4)])),
            (100, Sends("8 9")),
            (1_000, Wake),
            (1_000, Sends("0r")),
            (1_100, Sack(1, &[(2, 4)])),
            (1_100, Sends("1r 4r")),
            (1_200, Ack(4)),
            (1_200, Cwnd(3_000)),
            (1_200, Sends("5r 6r")),
            // No fast retransmit before everything from before the timeout has arrived.
            (1_201, Sack(4, &[(5, 8)])),
            (1_201, Sends("8r 9r")),
        ],
    );
}

#[test]
fn a_second_timeout_trusts_no_sack() {
    // RFC 2018, section 8: the receiver may have discarded SACKed octets.
    sender(
        plain(),
        4,
        &[
            (0, Sends("0 1 2 3")),
            (100, Sack(0, &[(1, 4)])),
            (100, Sends("0r")),
            (1_100, Wake),
            (1_100, Sends("0r")),
            (1_100, Waits(3_100)),
            (3_100, Wake),
            (3_100, Sends("0r")),
            (3_200, Ack(1)),
            (3_200, Sends("1r 2r")),
        ],
    );
}

#[test]
fn the_threshold_is_held_while_the_same_segment_times_out_again() {
    let end = sender(
        TcpConfig { initial_window: Setting::Value(10), ..plain() },
        10,
        &[
            (0, Sends("0 1 2 3 4 5 6 7 8 9")),
            (1_000, Wake),
            (1_000, Sends("0r")),
            (3_000, Wake),
            (3_000, Sends("0r")),
            (3_000, Waits(7_000)),
            (7_000, Wake),
            (7_000, Sends("0r")),
        ],
    );
    assert_eq!((end.stats().ssthresh, end.stats().timeouts), (5_000, 3));
}

#[test]
fn a_lost_retransmission_reduces_twice_from_what_was_in_the_network() {
    let end = sender(
        TcpConfig { initial_window: Setting::Value(8), limited_transmit: false, ..plain() },
        99,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (100, Sack(0, &[(1, 2)])),
            (101, Sack(0, &[(1, 3)])),
            (102, Sack(0, &[(1, 4)])),
            (102, Cwnd(4_000)),
            (102, Sends("0r")), // which is lost
            (107, Sack(0, &[(1, 8)])),
            (107, Sends("8 9 10")),
            (207, Sack(0, &[(1, 11)])),
            (207, Sends("11 12 13")),
            (307, Sack(0, &[(1, 14)])),
            (307, Sends("14 15 16")),
            (1_102, Wake),
            (1_102, Sends("0r")),
        ],
    );
    // Not half of the 17 that are outstanding.
    assert_eq!(end.stats().ssthresh, 2_000);
}

#[test]
fn without_time_stamps_retransmissions_are_no_samples() {
    let end = sender(
        plain(),
        9,
        &[
            (0, Sends("0 1 2 3")),
            (5, Ack(1)),
            (5, Sends("4 5")),
            // One sample per round trip: the next one times 4.
            (1_005, Wake),
            (1_005, Sends("1r")),
            (1_010, Ack(6)),
            // Karn: the acknowledgement is ambiguous; the back-off stays (RFC 6298, section 5).
            (1_010, Sends("6 7")),
            (1_010, Waits(3_010)),
        ],
    );
    assert_eq!(end.smoothed_rtt(), Some(Duration::from_us(5)));
}

#[test]
fn a_window_below_the_need_is_respected_and_probed() {
    sender(
        plain(),
        9,
        &[
            (0, Window(0, 2_500)),
            (0, Sends("0 1")), // not half a segment (RFC 9293, section 3.8.6.2.1)
            (100, Window(2, 0)),
            (100, Sends("")),
            (100, Waits(1_100)),
            (1_100, Wake),
            (1_100, Sends("2s")), // one octet
            (1_100, Waits(3_100)),
            (1_110, Window(2, 0)),
            (3_100, Wake),
            (3_100, Sends("2s")),
            (3_100, Waits(7_100)),
            (3_110, Window(2, 8_000)),
            (3_110, Sends("2 3 4 5 6")),
        ],
    );
}

#[test]
fn a_probe_that_is_taken_counts() {
    let mut end = sender(plain(), 2, &[(0, Window(0, 0)), (0, Sends("")), (1_000, Wake), (1_000, Sends("0s"))]);
    let ack = Segment {
        seq: Octet::FIRST.to_seq(THEIRS),
        ack: (Octet::FIRST + 1).to_seq(OURS),
        flags: Flags::ACK,
        window: 60_000,
        ..Segment::default()
    };
    let mut cx = Cx::at(at(1_010));
    end.handle_segment(&mut cx, &ack, false);
    assert_eq!(end.acknowledged(), 1);
    assert_eq!(sent(&mut end, &mut cx), "@1 @1001s");
}

#[test]
fn nagle_holds_a_short_segment_back_while_others_are_in_flight() {
    for (nagle, first, second) in [(true, "0 1", "2s"), (false, "0 1 2s", "")] {
        sender(
            TcpConfig { nagle, ..plain() },
            2,
            &[
                (0, Supply(100)),
                (0, Sends(first)),
                (100, Ack(1)),
                (100, Sends("")),
                (101, Ack(2)),
                (101, Sends(second)),
            ],
        );
    }
}

#[test]
fn who_was_silent_for_a_timeout_begins_again() {
    sender(
        TcpConfig { initial_window: Setting::Value(2), ..plain() },
        6,
        &[
            (0, Sends("0 1")),
            (10, Ack(2)),
            (10, Sends("2 3 4")),
            (20, Ack(5)),
            (20, Sends("5")),
            (30, Ack(6)),
            (2_000, Supply(9_000)),
            (2_000, Sends("6 7")),
        ],
    );
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_ignored() {
    sender(
        plain(),
        9,
        &[(0, Sends("0 1 2 3")), (10, Ack(5)), (10, Waits(1_000)), (11, Sack(0, &[(4, 9), (2, 2), (3, 2)]))],
    );
}

#[test]
fn a_partial_loss_at_the_end_of_recovery_is_noticed() {
    // The acknowledgement that ends one recovery reveals the next loss: 12 is lost, too.
    sender(
        TcpConfig { initial_window: Setting::Value(10), ..plain() },
        30,
        &[
            (0, Sends("0 1 2 3 4 5 6 7 8 9")),
            (100, Sack(0, &[(1, 2)])),
            (100, Sends("10")),
            (101, Sack(0, &[(1, 3)])),
            (101, Sends("11")),
            (102, Sack(0, &[(1, 4)])),
            (102, Sends("0r")),
            (107, Sack(0, &[(1, 10)])),
            (107, Sends("12 13")),
            (108, Sack(0, &[(1, 12)])),
            (108, Sends("14 15")),
            (203, Sack(12, &[(13, 16)])),
            (203, Sends("12r 16")),
        ],
    );
}
