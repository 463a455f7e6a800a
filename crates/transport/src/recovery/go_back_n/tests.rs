use selvedge_units::{Duration, Instant, Seq, Setting};
use selvedge_wire::AckKind;

use super::{Acks, GoBackNConfig, Nacks, Recv};
use crate::dialogue::Say::{Ack, Done, Nack, Rests, Sends, Supply, Waits, Wake};
use crate::dialogue::{Answer, receiver, sender, with};
use crate::fabric::Fabric;
use crate::recovery::timer::RtoRestart;
use crate::recovery::{RecoveryReceiver, Scheme};
use crate::role::Cx;

/// Settings for RoCE without PFC.
const LOSSY: GoBackNConfig = GoBackNConfig {
    rto: Setting::Value(Duration::from_us(320)),
    rto_low: Setting::Off,
    rto_low_packets: 3,
    rto_restart: RtoRestart::Progress,
    nack_processing: Duration::ZERO,
    acks: Acks::PerPacket,
    ack_every: 256,
    ack_interval: Setting::Off,
    nack: Nacks::OncePerGap,
    bdp_cap: Setting::Off,
};
/// Settings without timeouts and acknowledgements: RoCE with PFC in IRN's paper.
const LOSSLESS: GoBackNConfig = GoBackNConfig { rto: Setting::Off, acks: Acks::None, ..LOSSY };

#[test]
fn a_nack_sends_everything_again_from_the_gap() {
    sender(
        with(LOSSY),
        5,
        &[
            (0, Sends("0 1 2 3 4")),
            (24, Ack(1)),
            (24, Ack(2)),
            // Packet 2 was lost; packet 3 triggered this NACK.
            (25, Nack(2, 3)),
            (25, Sends("2r 3r 4r")),
            (49, Ack(3)),
            (49, Ack(4)),
            (49, Ack(5)),
            (49, Done),
            (49, Rests),
            (60, Supply(1)),
            (60, Sends("5")),
        ],
    );
}

#[test]
fn acknowledgements_from_before_going_back_save_retransmissions() {
    // The packets had been reordered: the NACK is a false alarm.
    sender(
        with(LOSSY),
        4,
        &[(0, Sends("0 1 2 3")), (24, Nack(1, 2)), (24, Ack(3)), (24, Sends("3r")), (48, Ack(4)), (48, Done)],
    );
}

#[test]
fn an_old_nack_is_ignored() {
    sender(with(LOSSY), 4, &[(0, Sends("0 1 2 3")), (24, Ack(3)), (25, Nack(1, 2)), (25, Sends("")), (25, Waits(344))]);
}

#[test]
fn a_second_nack_for_the_packet_that_is_about_to_be_sent_changes_nothing() {
    sender(with(LOSSY), 3, &[(0, Sends("0 1 2")), (24, Nack(0, 1)), (25, Nack(0, 2)), (25, Sends("0r 1r 2r"))]);
}

#[test]
fn silence_sends_everything_again_after_the_timeout() {
    let sender = sender(
        with(LOSSY),
        2,
        &[
            (0, Sends("0 1")),
            (0, Waits(320)),
            (319, Wake),
            (319, Sends("")),
            (320, Wake),
            (320, Wake),
            (320, Sends("0r 1r")),
            (320, Waits(640)),
            // Each newly acknowledged packet restarts the timer.
            (344, Ack(1)),
            (344, Waits(664)),
            (664, Wake),
            (664, Sends("1r")),
            (690, Ack(2)),
            (690, Rests),
        ],
    );
    assert_eq!((sender.stats().sent, sender.stats().retransmissions, sender.stats().timeouts), (5, 3, 2));
}

#[test]
fn a_sender_takes_its_time_to_process_a_nack() {
    let slow = GoBackNConfig { nack_processing: Duration::from_us(10), ..LOSSY };
    sender(
        with(slow),
        5,
        &[
            (0, Sends("0 1 2 3 4")),
            (25, Nack(1, 2)),
            (25, Sends("")),
            (25, Waits(35)),
            (34, Wake),
            (34, Sends("")),
            (35, Wake),
            (35, Sends("1r 2r 3r 4r")),
        ],
    );
}

#[test]
fn answers_without_progress_restart_the_timer_if_asked_to() {
    let waits = |rto_restart| {
        let patient = GoBackNConfig { rto_restart, ..LOSSY };
        let until = if rto_restart == RtoRestart::AnyAck { 420 } else { 344 };
        // The second acknowledgement is that of a duplicate.
        sender(with(patient), 3, &[(0, Sends("0 1 2")), (24, Ack(1)), (100, Ack(1)), (100, Waits(until))]);
    };
    waits(RtoRestart::Progress);
    waits(RtoRestart::Retransmission);
    waits(RtoRestart::AnyAck);
}

#[test]
fn a_cap_limits_what_is_in_flight() {
    let capped = GoBackNConfig { bdp_cap: Setting::Value(2), ..LOSSY };
    sender(
        with(capped),
        4,
        &[(0, Sends("0 1")), (24, Ack(1)), (24, Sends("2")), (25, Nack(1, 2)), (25, Sends("1r 2r"))],
    );
}

#[test]
fn without_acknowledgements_a_sender_is_drained_but_never_done() {
    let sender = sender(
        with(LOSSLESS),
        3,
        &[(0, Sends("0 1 2")), (0, Rests), (25, Nack(1, 2)), (25, Sends("1r 2r")), (26, Sends("")), (26, Rests)],
    );
    assert!(sender.is_drained() && !sender.is_done());
}

#[test]
fn one_nack_per_gap_until_it_is_filled() {
    receiver(
        LOSSY,
        &[
            (0, 0, Answer::Ack("accepted", 1)),
            (1, 2, Answer::Nack("refused", 1)),
            (2, 3, Answer::Silence("refused")),
            // The retransmission was lost: packets behind it are refused without a NACK. Only the sender's timeout
            // repairs this.
            (40, 2, Answer::Silence("refused")),
            (400, 1, Answer::Ack("accepted", 2)),
            // A new gap is a new NACK.
            (401, 3, Answer::Nack("refused", 2)),
            (402, 0, Answer::Ack("duplicate", 2)),
            (403, 2, Answer::Ack("accepted", 3)),
        ],
    );
}

#[test]
fn a_nack_for_every_packet() {
    let config = GoBackNConfig { nack: Nacks::EveryPacket, ..LOSSY };
    receiver(
        config,
        &[(0, 1, Answer::Nack("refused", 0)), (0, 2, Answer::Nack("refused", 0)), (1, 0, Answer::Ack("accepted", 1))],
    );
}

#[test]
fn a_nack_per_interval() {
    let config = GoBackNConfig { nack: Nacks::Interval(Duration::from_us(4)), ..LOSSY };
    receiver(
        config,
        &[
            (10, 1, Answer::Nack("refused", 0)),
            (13, 2, Answer::Silence("refused")),
            (14, 3, Answer::Nack("refused", 0)),
            (15, 0, Answer::Ack("accepted", 1)),
            // Another gap does not wait for the interval of the one before.
            (16, 2, Answer::Nack("refused", 1)),
        ],
    );
}

#[test]
fn paced_nacks_wait_for_their_interval_whatever_the_gap() {
    let config = GoBackNConfig { nack: Nacks::Paced(Duration::from_us(4)), ..LOSSY };
    receiver(
        config,
        &[
            (10, 1, Answer::Nack("refused", 0)),
            (11, 0, Answer::Ack("accepted", 1)),
            (12, 2, Answer::Silence("refused")),
            (14, 3, Answer::Nack("refused", 1)),
        ],
    );
}

#[test]
fn without_acknowledgements_only_gaps_are_answered() {
    receiver(
        LOSSLESS,
        &[
            (0, 0, Answer::Silence("accepted")),
            (1, 2, Answer::Nack("refused", 1)),
            (2, 0, Answer::Silence("duplicate")),
        ],
    );
}

#[test]
fn coalesced_acknowledgements_come_by_count_and_by_time() {
    let config = GoBackNConfig {
        acks: Acks::Coalesced,
        ack_every: 3,
        ack_interval: Setting::Value(Duration::from_us(10)),
        ..LOSSY
    };
    receiver(
        config,
        &[
            (0, 0, Answer::Silence("accepted")),
            (1, 1, Answer::Silence("accepted")),
            // The third packet since the beginning.
            (2, 2, Answer::Ack("accepted", 3)),
            (3, 3, Answer::Silence("accepted")),
            // 10 us after the last acknowledgement.
            (12, 4, Answer::Ack("accepted", 5)),
            (13, 5, Answer::Silence("accepted")),
            (14, 2, Answer::Ack("duplicate", 6)),
            (15, 6, Answer::Silence("accepted")),
            (16, 7, Answer::Silence("accepted")),
            // A NACK acknowledges what came before.
            (17, 9, Answer::Nack("refused", 8)),
            (18, 8, Answer::Silence("accepted")),
            (19, 9, Answer::Silence("accepted")),
            (20, 10, Answer::Ack("accepted", 11)),
        ],
    );
}

#[test]
fn the_last_packet_of_a_message_is_acknowledged_at_once() {
    let config = GoBackNConfig { acks: Acks::Coalesced, ..LOSSY };
    let mut responder = Recv::new(&config.params().expect("valid settings"));
    let mut answer = |seq, last| responder.handle_data(&mut Cx::at(Instant::ZERO), &mut (), Seq::new(seq), last).ack;
    assert_eq!([answer(0, false), answer(1, true), answer(2, false)], [None, Some(AckKind::Ack), None]);
}

#[test]
fn what_is_taken_unanswered_is_what_would_have_been_answered_by_nothing() {
    let config = GoBackNConfig {
        acks: Acks::Coalesced,
        ack_every: 5,
        ack_interval: Setting::Value(Duration::from_us(10)),
        ..LOSSY
    };
    let at = |us| Cx::at(Instant::ZERO + Duration::from_us(us));
    let mut one_by_one = Recv::new(&config.params().expect("valid settings"));
    let mut in_a_row = one_by_one.clone();
    for (us, seq) in (0..200).map(|n| (n * n / 20, n)) {
        let limits = in_a_row.unanswered();
        let silent = one_by_one.handle_data(&mut at(us), &mut (), Seq::new(seq), false).ack.is_none();
        if limits.packets > 0 && at(us).now < limits.before {
            assert!(silent, "packet {seq}");
            in_a_row.take_unanswered(1);
        } else {
            let ack = in_a_row.handle_data(&mut at(us), &mut (), Seq::new(seq), false).ack;
            assert!(ack.is_none() == silent && (!silent || seq == 0), "packet {seq}");
        }
    }
}

#[test]
fn what_is_acknowledged_and_when_to_give_up_depend_on_pfc_and_congestion_control() {
    let resolved = |acks, pfc, needs_acks| {
        let mut config = GoBackNConfig { acks, ..GoBackNConfig::default() };
        config.resolve(&Fabric { pfc, acks: needs_acks, ..Fabric::IRN_PAPER });
        config.check().expect("valid settings");
        (config.acks, config.rto.resolve(|| None).map(|rto| rto.as_us_f64()))
    };
    let (high, code_14) = (Some(320.0), Some(67_108.864));
    assert_eq!(resolved(Acks::Auto, false, false), (Acks::Coalesced, high));
    assert_eq!(resolved(Acks::Auto, true, false), (Acks::Coalesced, code_14));
    assert_eq!(resolved(Acks::Auto, true, true), (Acks::PerPacket, code_14));
    let mut capped = GoBackNConfig { bdp_cap: Setting::Auto, ..GoBackNConfig::default() };
    capped.resolve(&Fabric::IRN_PAPER);
    assert_eq!(capped.acks, Acks::PerPacket, "whoever may send little needs to hear of each packet");
    assert_eq!(resolved(Acks::WithoutPfc, false, false), (Acks::PerPacket, high));
    assert_eq!(resolved(Acks::WithoutPfc, true, false), (Acks::None, None));
    assert_eq!(resolved(Acks::WithoutPfc, true, true), (Acks::PerPacket, code_14));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let timed = GoBackNConfig { rto: LOSSY.rto, ..LOSSLESS };
    assert_eq!(timed.check().expect_err("would time out for ever").key, "rto");
    let late = GoBackNConfig { acks: Acks::Coalesced, bdp_cap: Setting::Value(100), ..LOSSY };
    assert_eq!(late.check().expect_err("would stop before each acknowledgement").key, "ack-every");
    assert_eq!(GoBackNConfig { ack_every: 100, ..late }.check(), Ok(()));
    assert_eq!(GoBackNConfig { ack_every: 0, ..LOSSY }.check().expect_err("should be refused").key, "ack-every");
    let capped = GoBackNConfig { bdp_cap: Setting::Value(100), ..LOSSLESS };
    assert_eq!(capped.check().expect_err("would stop for ever").key, "bdp-cap");
    let hasty = GoBackNConfig { rto: Setting::Value(Duration::ZERO), ..LOSSY };
    assert_eq!(hasty.check().expect_err("would never wait").key, "rto");
    assert_eq!(LOSSY.check(), Ok(()));
    assert_eq!(LOSSLESS.check(), Ok(()));
}

#[test]
fn irn_with_go_back_n_keeps_the_low_timeout_for_few_packets() {
    let config = GoBackNConfig { rto_low: Setting::Value(Duration::from_us(100)), ..LOSSY };
    sender(with(config), 1, &[(0, Sends("0")), (0, Waits(100)), (100, Wake), (100, Sends("0r"))]);
    let many = [(0, Sends("0 1 2 3")), (0, Waits(100)), (100, Wake), (100, Sends("")), (320, Wake)];
    sender(with(config), 4, &[&many[..], &[(320, Sends("0r 1r 2r 3r"))]].concat());
    let inverted = GoBackNConfig { rto_low: Setting::Value(Duration::from_us(400)), ..LOSSY };
    assert_eq!(inverted.check().expect_err("should be refused").key, "rto-low");
}
