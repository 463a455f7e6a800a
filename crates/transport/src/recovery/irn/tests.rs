use selvedge_units::{Bytes, Duration, Setting};

use super::{DynamicRto, IrnConfig, Mode, PartialAcks, Rto, RtoRestart, Timeouts};
use crate::congestion::fixed::FixedConfig;
use crate::dialogue::Say::{Ack, Done, Echo, Nack, Rests, Sends, Waits, Wake};
use crate::dialogue::{Answer, FRAME, receiver, sender, with};
use crate::recovery::Scheme;
use crate::{SenderParams, Tuning};

/// Settings of IRN without PFC (section 4.1), with a cap of ten packets.
const IRN: IrnConfig = IrnConfig {
    mode: Mode::Paper,
    timeouts: Timeouts::On,
    rto_low: Setting::Value(Duration::from_us(100)),
    rto_low_packets: 3,
    rto_high: Setting::Value(Duration::from_us(320)),
    bdp_cap: Setting::Value(10),
    rto_restart: RtoRestart::Progress,
    retransmit_delay: Duration::ZERO,
    rto: Rto::Static,
    sack: true,
    extra_header: Bytes::ZERO,
    nack_threshold: 1,
    partial_acks: PartialAcks::Latest,
    time_stamps: false,
    holes: false,
    probes: 1,
};
const HLS: IrnConfig = IrnConfig { mode: Mode::Hls, ..IRN };

mod receiving {
    use super::*;

    #[test]
    fn every_packet_out_of_order_is_kept_and_answered_with_a_nack() {
        receiver(
            IRN,
            &[
                (0, 0, Answer::Ack("accepted", 1)),
                (1, 2, Answer::Nack("accepted", 1)),
                (2, 4, Answer::Nack("accepted", 1)),
                // A repeated out-of-order packet is NACKed again.
                (3, 4, Answer::Nack("duplicate", 1)),
                (4, 1, Answer::Ack("accepted", 3)),
                (5, 1, Answer::Ack("duplicate", 3)),
                (6, 3, Answer::Ack("accepted", 5)),
                (7, 5, Answer::Ack("accepted", 6)),
            ],
        );
    }

    #[test]
    fn a_packet_beyond_the_window_is_invalid() {
        receiver(
            IRN,
            &[
                (0, 9, Answer::Nack("accepted", 0)),
                (1, 10, Answer::Silence("invalid")),
                (2, 1 << 22, Answer::Silence("invalid")),
                (3, 0, Answer::Ack("accepted", 1)),
                (4, 10, Answer::Nack("accepted", 1)),
            ],
        );
    }
}

mod paper {
    use super::*;

    #[test]
    fn only_what_is_lost_is_sent_again() {
        sender(
            with(IRN),
            8,
            &[
                (0, Sends("0 1 2 3 4 5 6 7")),
                (24, Ack(1)),
                // 1 and 3 are lost.
                (25, Nack(1, 2)),
                // The packet at the cumulative acknowledgement comes first; packet 3 is not known to be lost yet.
                (25, Sends("1r")),
                (26, Nack(1, 4)),
                (26, Sends("3r")),
                (27, Nack(1, 5)),
                (28, Nack(1, 6)),
                (29, Nack(1, 7)),
                (29, Sends("")),
                (49, Ack(3)),
                (49, Sends("")),
                (50, Ack(8)),
                (50, Done),
                (50, Rests),
            ],
        );
    }

    #[test]
    fn losses_go_first_and_new_packets_follow_during_recovery() {
        sender(
            with(IRN),
            20,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Ack(3)),
                (24, Sends("10 11 12")),
                (25, Nack(4, 5)),
                // Packet 4 is retransmitted; the cap leaves room for one new packet.
                (25, Sends("4r 13")),
                (26, Nack(4, 7)),
                // Packet 6 is known to be lost now. Retransmissions ignore the cap.
                (26, Sends("6r")),
            ],
        );
    }

    #[test]
    fn a_partial_acknowledgement_is_proof_of_loss() {
        sender(
            with(IRN),
            6,
            &[
                (0, Sends("0 1 2 3 4 5")),
                // Packets 0, 2, 4 and 5 are lost; no SACK shows the loss of 4 and 5.
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 3)),
                (25, Sends("2r")),
                // Packet 2 was retransmitted already.
                (48, Ack(2)),
                (48, Sends("")),
                // Packet 4 was sent before the retransmission of 2, and is still missing.
                (49, Ack(4)),
                (49, Sends("4r")),
                (73, Ack(5)),
                (73, Sends("5r")),
                (97, Ack(6)),
                (97, Done),
            ],
        );
    }

    #[test]
    fn a_partial_acknowledgement_of_an_earlier_retransmission_proves_nothing() {
        // Selectively acknowledged packets make room in this window of four packets.
        let fixed = FixedConfig { window: Setting::Value(FRAME * 4), ..FixedConfig::default() };
        for partial_acks in [PartialAcks::Latest, PartialAcks::First, PartialAcks::None] {
            let guesses = partial_acks == PartialAcks::Latest;
            sender(
                SenderParams {
                    congestion: fixed.params().expect("valid settings").into(),
                    ..with(IrnConfig { partial_acks, ..IRN })
                },
                9,
                &[
                    (0, Sends("0 1 2 3")),
                    // Packet 0 is lost, and so is the NACK that packet 2 has triggered.
                    (24, Nack(0, 1)),
                    (24, Sends("0r 4")),
                    (26, Nack(0, 3)),
                    (26, Sends("2r 5")),
                    // Triggered by the retransmission of packet 0, which left before 4 and 5.
                    (48, Ack(4)),
                    (48, Sends(if guesses { "4r 6 7" } else { "6 7" })),
                    (48, Ack(5)),
                    (48, Sends(if guesses { "5r 8" } else { "8" })),
                    // Triggered by the spurious retransmission of packet 2.
                    (50, Ack(5)),
                    (50, Ack(6)),
                    (50, Sends(if guesses { "6r" } else { "" })),
                    (72, Ack(9)),
                    (72, Done),
                ],
            );
        }
    }

    #[test]
    fn what_is_missing_since_the_first_retransmission_is_lost() {
        sender(
            with(IrnConfig { partial_acks: PartialAcks::First, ..IRN }),
            6,
            &[
                (0, Sends("0 1 2 3 4 5")),
                // Packets 0, 2, 4 and 5 are lost; no SACK shows the loss of 4 and 5.
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 3)),
                (25, Sends("2r")),
                (48, Ack(2)),
                (48, Sends("")),
                (49, Ack(4)),
                (49, Sends("4r")),
                (73, Ack(5)),
                (73, Sends("5r")),
                (97, Ack(6)),
                (97, Done),
            ],
        );
    }

    #[test]
    fn to_the_letter_only_sacks_and_timeouts_tell_of_losses() {
        sender(
            with(IrnConfig { partial_acks: PartialAcks::None, ..IRN }),
            6,
            &[
                (0, Sends("0 1 2 3 4 5")),
                // Packets 0, 2, 4 and 5 are lost; no SACK shows the loss of 4 and 5.
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 3)),
                (25, Sends("2r")),
                (48, Ack(2)),
                (48, Sends("")),
                (49, Ack(4)),
                (49, Sends("")),
                (49, Waits(149)),
                (149, Wake),
                (149, Sends("4r")),
                // A packet sent before the timeout counts as lost only with a SACK above it.
                (173, Ack(5)),
                (173, Sends("")),
                (273, Wake),
                (273, Sends("5r")),
                (297, Ack(6)),
                (297, Done),
            ],
        );
    }

    #[test]
    fn recovery_ends_beyond_the_latest_retransmission() {
        sender(
            with(IRN),
            12,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Nack(1, 2)),
                (24, Sends("1r 10")),
                (25, Nack(1, 4)),
                // Recovery now lasts until 10 is acknowledged.
                (25, Sends("3r")),
                (48, Ack(9)),
                (48, Sends("9r 11")),
                // 11 was sent after the last retransmission.
                (72, Ack(11)),
                (72, Sends("")),
                (72, Waits(172)),
            ],
        );
    }

    #[test]
    fn a_nack_that_advances_also_begins_recovery() {
        sender(with(IRN), 4, &[(0, Sends("0 1 2 3")), (24, Nack(2, 3)), (24, Sends("2r"))]);
    }

    #[test]
    fn a_nack_beyond_the_recovery_sequence_begins_the_next_recovery() {
        sender(
            with(IrnConfig { bdp_cap: Setting::Value(4), ..IRN }),
            12,
            &[
                (0, Sends("0 1 2 3")),
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (48, Ack(4)),
                (48, Sends("4 5 6 7")),
                (72, Nack(5, 6)),
                (72, Sends("5r 8")),
            ],
        );
    }

    #[test]
    fn reordering_noticed_before_anything_is_sent_again_ends_recovery() {
        sender(with(IRN), 4, &[(0, Sends("0 1 2 3")), (24, Nack(0, 1)), (24, Ack(2)), (24, Sends(""))]);
        // Recovery continues if a SACK still shows a hole.
        sender(
            with(IRN),
            4,
            &[(0, Sends("0 1 2 3")), (24, Nack(0, 1)), (24, Nack(0, 3)), (24, Ack(2)), (24, Sends("2r"))],
        );
    }

    #[test]
    fn a_hole_reported_during_the_last_recovery_is_not_forgotten() {
        sender(
            with(IRN),
            8,
            &[
                (0, Sends("0 1 2 3 4 5 6 7")),
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 7)),
                // The look-ahead found packet 2; before it is sent, an acknowledgement shows that all up to 6 have
                // arrived.
                (25, Ack(6)),
                (25, Sends("6r")),
                (49, Ack(8)),
                (49, Done),
            ],
        );
    }

    #[test]
    fn a_lost_retransmission_waits_for_the_timeout() {
        sender(
            with(IRN),
            5,
            &[
                (0, Sends("0 1 2 3 4")),
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 3)),
                (25, Sends("2r")),
                (26, Nack(0, 4)),
                // Both are lost again. Without acknowledgements, the timer runs since 0 us, and five packets in flight
                // are too many for RTO_low.
                (26, Waits(100)),
                (100, Wake),
                (100, Sends("")),
                (100, Waits(320)),
                (320, Wake),
                // Only holes are retransmitted: the SACKs were kept.
                (320, Sends("0r 2r")),
                (320, Waits(420)),
                (344, Ack(2)),
                (344, Waits(444)),
                (344, Ack(5)),
                (344, Rests),
            ],
        );
    }

    #[test]
    fn what_restarts_the_timer_is_a_setting() {
        let waits = |rto_restart, after_sending, after_answers| {
            sender(
                with(IrnConfig { rto_restart, ..IRN }),
                5,
                &[
                    (0, Sends("0 1 2 3 4")),
                    (0, Waits(100)),
                    (24, Nack(0, 1)),
                    (24, Sends("0r")),
                    (24, Waits(after_sending)),
                    // Packet 2 is not the oldest.
                    (40, Nack(0, 3)),
                    (40, Sends("2r")),
                    (40, Waits(after_answers)),
                    (48, Ack(2)),
                    (48, Waits(148)),
                    (64, Ack(5)),
                    (64, Rests),
                    // Nothing is in flight: a late answer starts no timer.
                    (70, Ack(5)),
                    (70, Rests),
                ],
            );
        };
        waits(RtoRestart::Progress, 100, 100);
        waits(RtoRestart::Retransmission, 124, 124);
        waits(RtoRestart::AnyAck, 124, 140);
        // An answer ends the extension to RTO_high, like progress.
        sender(
            with(IrnConfig { rto_restart: RtoRestart::AnyAck, ..IRN }),
            6,
            &[(0, Sends("0 1 2 3 4 5")), (100, Wake), (100, Waits(320)), (150, Nack(0, 5)), (150, Waits(250))],
        );
    }

    #[test]
    fn few_packets_in_flight_wait_for_rto_low_only() {
        let sender = sender(
            with(IRN),
            3,
            &[
                (0, Sends("0 1 2")),
                (99, Wake),
                (99, Sends("")),
                (100, Wake),
                (100, Wake),
                // Only the first packet: no SACK shows the loss of the others.
                (100, Sends("0r")),
                (100, Waits(200)),
                (124, Ack(1)),
                // A partial acknowledgement.
                (124, Sends("1r")),
                (124, Waits(224)),
                (148, Ack(3)),
                (148, Rests),
            ],
        );
        assert_eq!(sender.stats().timeouts, 1);
    }

    #[test]
    fn the_extension_ends_with_progress() {
        sender(
            with(IRN),
            5,
            &[
                (0, Sends("0 1 2 3 4")),
                (100, Wake),
                (100, Waits(320)),
                (150, Ack(1)),
                (150, Waits(250)),
                (250, Wake),
                (250, Waits(470)),
            ],
        );
    }

    #[test]
    fn a_wake_so_late_that_both_timeouts_have_passed_does_not_extend() {
        sender(with(IRN), 5, &[(0, Sends("0 1 2 3 4")), (400, Wake), (400, Sends("0r")), (400, Waits(500))]);
        sender(with(HLS), 5, &[(0, Sends("0 1 2 3 4")), (400, Wake), (400, Sends("0r")), (400, Waits(500))]);
    }

    #[test]
    fn without_timeouts_nothing_wakes_it() {
        let config = IrnConfig { timeouts: Timeouts::Off, ..IRN };
        sender(with(config), 5, &[(0, Sends("0 1 2 3 4")), (0, Rests), (9_999, Wake), (9_999, Sends(""))]);
    }

    #[test]
    fn a_lost_packet_is_fetched_first() {
        let config = IrnConfig { retransmit_delay: Duration::from_us(2), ..IRN };
        sender(
            with(config),
            12,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Ack(1)),
                (24, Nack(1, 2)),
                (24, Nack(1, 4)),
                // New packets use the link meanwhile.
                (24, Sends("10")),
                (24, Waits(26)),
                (26, Sends("1r")),
                // The look-ahead after that retransmission found the next hole, whose fetch takes as long.
                (26, Waits(28)),
                (28, Sends("3r")),
                (28, Waits(124)),
            ],
        );
    }

    #[test]
    fn a_threshold_of_nacks_tolerates_reordering() {
        let config = IrnConfig { nack_threshold: 3, ..IRN };
        sender(
            with(config),
            10,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Nack(0, 1)),
                (24, Nack(0, 2)),
                (24, Sends("")),
                // The packet was only late: the count of NACKs begins again.
                (25, Ack(3)),
                (26, Nack(3, 4)),
                (26, Nack(3, 5)),
                (26, Sends("")),
                (26, Nack(3, 7)),
                (26, Sends("3r 6r")),
            ],
        );
    }

    #[test]
    fn acknowledgements_that_make_no_sense_are_ignored() {
        sender(
            with(IRN),
            4,
            &[
                (0, Sends("0 1 2 3")),
                // An acknowledgement of packets never sent.
                (10, Ack(5)),
                (10, Ack(1 << 23)),
                // NACKs whose SACK was never sent, is the expected packet, or lies far away.
                (10, Nack(1, 4)),
                (10, Nack(1, 1)),
                (10, Nack(1, (1 << 23) - 1)),
                (10, Sends("")),
                (10, Waits(110)),
                (24, Ack(4)),
                (24, Done),
            ],
        );
    }
}

mod hls {
    use super::*;

    #[test]
    fn a_nack_that_advances_waits_for_the_next() {
        sender(
            with(HLS),
            5,
            &[(0, Sends("0 1 2 3 4")), (24, Nack(2, 3)), (24, Sends("")), (25, Nack(2, 4)), (25, Sends("2r"))],
        );
    }

    #[test]
    fn a_new_packet_goes_before_a_hole_that_was_not_searched_for() {
        sender(
            with(HLS),
            12,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Ack(1)),
                (24, Sends("10")),
                (25, Ack(2)),
                (25, Nack(2, 3)),
                (25, Sends("2r 11")),
                (26, Nack(2, 5)),
                // No new packet is left; the search finds packet 4 nevertheless.
                (26, Sends("4r")),
            ],
        );
    }

    #[test]
    fn hls_extends_rto_low_to_rto_high_as_the_text_does() {
        sender(
            with(HLS),
            5,
            &[
                (0, Sends("0 1 2 3 4")),
                (100, Wake),
                (100, Sends("")),
                (100, Waits(320)),
                (320, Wake),
                (320, Sends("0r")),
                (344, Ack(5)),
                (344, Done),
                (344, Rests),
            ],
        );
    }

    #[test]
    fn a_pending_retransmission_is_fetched_before_anything_else() {
        let config = IrnConfig { retransmit_delay: Duration::from_us(2), bdp_cap: Setting::Value(6), ..HLS };
        sender(
            with(config),
            12,
            &[
                (0, Sends("0 1 2 3 4 5")),
                (24, Ack(1)),
                (24, Nack(1, 2)),
                (24, Sends("")),
                (24, Waits(26)),
                (26, Sends("1r 6")),
            ],
        );
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let key = |config: IrnConfig| config.check().expect_err("should be refused").key;
    assert_eq!(key(IrnConfig { rto_low: Setting::Value(Duration::ZERO), ..IRN }), "rto-low");
    let zero = Setting::Value(Duration::ZERO);
    assert_eq!(key(IrnConfig { rto_high: zero, ..IRN }), "rto-high");
    assert_eq!(key(IrnConfig { rto_high: zero, rto_low: zero, ..IRN }), "rto-high");
    assert_eq!(key(IrnConfig { rto_high: Setting::Value(Duration::from_us(99)), ..IRN }), "rto-high");
    assert_eq!(key(IrnConfig { rto_high: Setting::Off, ..IRN }), "rto-high");
    assert_eq!(key(IrnConfig { bdp_cap: Setting::Value(0), ..IRN }), "bdp-cap");
    assert_eq!(key(IrnConfig { bdp_cap: Setting::Value(1 << 23), ..IRN }), "bdp-cap");
    assert_eq!(key(IrnConfig { nack_threshold: 0, ..IRN }), "nack-threshold");
    assert_eq!(key(IrnConfig { nack_threshold: 2, ..HLS }), "nack-threshold");
    assert_eq!(key(IrnConfig { partial_acks: PartialAcks::First, ..HLS }), "partial-acks");
    assert_eq!(key(IrnConfig { partial_acks: PartialAcks::First, time_stamps: true, ..IRN }), "partial-acks");
    assert_eq!(key(IrnConfig { time_stamps: true, ..HLS }), "time-stamps");
    assert_eq!(key(IrnConfig { holes: true, bdp_cap: Setting::Off, ..IRN }), "holes");
    assert_eq!(key(IrnConfig { time_stamps: true, sack: false, ..IRN }), "time-stamps");
    assert_eq!(IRN.check(), Ok(()));
}

/// Tests of the detection of losses by echoed time stamps.
mod stamps {
    use super::*;

    const STAMPS: IrnConfig = IrnConfig { time_stamps: true, ..IRN };

    #[test]
    fn a_retransmission_that_is_overtaken_is_sent_again_at_once() {
        sender(
            with(STAMPS),
            20,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Echo(0)),
                (24, Ack(1)),
                (24, Nack(1, 2)),
                (24, Nack(1, 4)),
                (24, Sends("1r 3r 10")),
                // NACKs of packets that were sent before.
                (25, Nack(1, 5)),
                (25, Nack(1, 6)),
                (25, Nack(1, 7)),
                (25, Nack(1, 8)),
                (25, Sends("")),
                // 9 is lost; 1 is lost again, 3 arrives.
                (48, Echo(24)),
                (48, Nack(1, 3)),
                (48, Sends("1r 9r")),
                (48, Nack(1, 10)),
                (48, Sends("")),
                (72, Echo(48)),
                (72, Ack(11)),
                (72, Sends("11 12 13 14 15 16 17 18 19")),
            ],
        );
    }

    #[test]
    fn when_a_retransmission_was_sent_is_known_of_the_oldest_only() {
        sender(
            with(STAMPS),
            20,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Echo(0)),
                (24, Nack(0, 1)),
                (24, Sends("0r")),
                (25, Nack(0, 3)),
                (25, Sends("2r")),
                // Packet 2 is lost again. Its retransmission was sent no later than at 25 us.
                (48, Echo(24)),
                (48, Ack(2)),
                (48, Sends("10 11")),
                (49, Echo(25)),
                (49, Nack(2, 9)),
                (49, Sends("2r 4r 5r 6r 7r 8r")),
            ],
        );
    }

    #[test]
    fn a_timeout_that_was_too_soon_costs_one_packet() {
        let until_timeout = [(0, Sends("0 1 2 3 4 5 6 7 8 9")), (100, Wake), (320, Wake), (320, Sends("0r"))];
        // Late acknowledgements show no losses behind them.
        let late = [(330, Echo(0)), (330, Ack(1)), (330, Sends("10")), (331, Ack(5)), (331, Sends("11 12 13 14"))];
        sender(with(STAMPS), 15, &[&until_timeout[..], &late[..]].concat());
        let guessed = [(330, Ack(1)), (330, Sends("1r 10"))];
        sender(with(IRN), 15, &[&until_timeout[..], &guessed[..]].concat());
    }

    #[test]
    fn all_that_a_retransmission_finds_missing_is_sent_again() {
        sender(
            with(STAMPS),
            12,
            &[
                (0, Sends("0 1 2 3 4 5 6 7 8 9")),
                (24, Echo(0)),
                (24, Ack(2)),
                (24, Sends("10 11")),
                // All packets from 2 on are lost.
                (344, Wake),
                (344, Sends("2r")),
                (368, Echo(344)),
                (368, Ack(3)),
                (368, Sends("3r 4r 5r 6r 7r 8r 9r 10r 11r")),
                (392, Echo(368)),
                (392, Ack(12)),
                (392, Done),
                (392, Rests),
            ],
        );
    }
}

/// Tests of the alternatives of section 4.3.
mod variants {
    use super::*;

    #[test]
    fn without_sacks_each_round_trip_repairs_one_loss() {
        let config = IrnConfig { sack: false, ..IRN };
        sender(
            with(config),
            6,
            &[
                (0, Sends("0 1 2 3 4 5")),
                (24, Ack(1)),
                // Packets 1 and 3 are lost; with SACKs, 3 would be sent as soon as 4 is known to have arrived.
                (25, Nack(1, 2)),
                (25, Sends("1r")),
                (26, Nack(1, 4)),
                (26, Sends("")),
                (27, Nack(1, 5)),
                (27, Sends("")),
                // A partial acknowledgement shows the second loss.
                (49, Ack(3)),
                (49, Sends("3r")),
                (73, Ack(6)),
                (73, Done),
            ],
        );
    }

    #[test]
    fn a_dynamic_timeout_begins_with_its_initial_value_and_backs_off() {
        let dynamic = DynamicRto {
            initial: Setting::Value(Duration::from_us(320)),
            min: Duration::from_us(50),
            max: Duration::from_us(1_000),
        };
        let config = IrnConfig { rto: Rto::Dynamic(dynamic), ..IRN };
        sender(
            with(config),
            2,
            &[
                (0, Sends("0 1")),
                (0, Waits(320)),
                (320, Wake),
                (320, Sends("0r")),
                (320, Waits(960)),
                // A sample ends the back-off; a round-trip time of zero leaves the minimum timeout.
                (400, Ack(1)),
                (400, Waits(450)),
            ],
        );
    }

    #[test]
    fn impossible_variants_are_refused() {
        let dynamic =
            |dynamic| IrnConfig { rto: Rto::Dynamic(dynamic), ..IRN }.check().expect_err("should be refused").key;
        let initial = Setting::Value(Duration::from_us(320));
        assert_eq!(dynamic(DynamicRto { initial: Setting::Off, ..DynamicRto::default() }), "rto.dynamic.initial");
        assert_eq!(dynamic(DynamicRto { initial, min: Duration::ZERO, ..DynamicRto::default() }), "rto.dynamic.min");
        assert_eq!(
            dynamic(DynamicRto { initial, max: Duration::from_us(200), ..DynamicRto::default() }),
            "rto.dynamic.max"
        );
        assert_eq!(IrnConfig { sack: false, ..HLS }.check().expect_err("should be refused").key, "sack");
    }
}
