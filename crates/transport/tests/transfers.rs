//! Whole transfers between two engines in virtual time: all patterns of loss for few packets, random impairments for
//! many.

use proptest::prelude::*;
use selvedge_testkit::{Fate, Impairment, Link, Odds, Transfer, World};
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{IrnConfig, Mode};
use selvedge_transport::recovery::melo::{MeloConfig, Resend};
use selvedge_transport::{Fabric, RecoveryConfig, Scheme, SenderParams};
use selvedge_units::{Chance, Duration, Psn, Setting};

/// Returns every recovery scheme with its main variants, resolved for a lossy fabric.
fn recoveries() -> Vec<RecoveryConfig> {
    let irn = IrnConfig::default();
    let go_back_n = GoBackNConfig::default();
    let mut all: Vec<RecoveryConfig> = vec![
        irn.into(),
        IrnConfig { mode: Mode::Hls, ..irn }.into(),
        IrnConfig { bdp_cap: Setting::Value(4), ..irn }.into(),
        IrnConfig { mode: Mode::Hls, bdp_cap: Setting::Value(4), ..irn }.into(),
        IrnConfig { bdp_cap: Setting::Off, nack_threshold: 3, ..irn }.into(),
        IrnConfig { retransmit_delay: Duration::from_us(2), ..irn }.into(),
        IrnConfig { time_stamps: true, ..irn }.into(),
        IrnConfig { time_stamps: true, holes: true, ..irn }.into(),
        IrnConfig { mode: Mode::Hls, retransmit_delay: Duration::from_us(2), ..irn }.into(),
        go_back_n.into(),
        GoBackNConfig { nack: Nacks::EveryPacket, ..go_back_n }.into(),
        GoBackNConfig { nack: Nacks::Interval(Duration::from_us(4)), ..go_back_n }.into(),
        GoBackNConfig { bdp_cap: Setting::Value(4), ..go_back_n }.into(),
        GoBackNConfig { acks: Acks::Coalesced, ack_every: 3, bdp_cap: Setting::Value(4), ..go_back_n }.into(),
        GoBackNConfig { acks: Acks::PerPacket, ..go_back_n }.into(),
        MeloConfig::default().into(),
        MeloConfig { pool_bits: 16, ..MeloConfig::default() }.into(),
        MeloConfig { reorder_buffer: Setting::Value(4), ..MeloConfig::default() }.into(),
    ];
    for recovery in &mut all {
        recovery.resolve(&Fabric::IRN_PAPER);
    }
    all
}

fn transfer(recovery: RecoveryConfig, packets: u64) -> Transfer {
    let recovery = recovery.params().expect("valid settings");
    Transfer::of_packets(packets, SenderParams { recovery, congestion: NoneConfig {}.into(), frame: Transfer::FRAME })
}

#[test]
fn auto_is_what_the_paper_has() {
    let baseline = GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() };
    let [mut irn, mut go_back_n] = [RecoveryConfig::Irn(IrnConfig::default()), baseline.into()];
    irn.resolve(&Fabric::IRN_PAPER);
    go_back_n.resolve(&Fabric::IRN_PAPER);
    let RecoveryConfig::Irn(config) = irn else { unreachable!("it was IRN") };
    // 120 KB in frames of 1,086 bytes: 111, like in the authors' hardware.
    assert_eq!((config.bdp_cap, config.rto_high), (Setting::Value(111), Setting::Value(Duration::from_us(320))));
    let mut lossless = baseline;
    lossless.resolve(&Fabric { pfc: true, ..Fabric::IRN_PAPER });
    assert_eq!((lossless.rto, lossless.acks), (Setting::Off, Acks::None));
    let RecoveryConfig::GoBackN(lossy) = go_back_n else { unreachable!("it was go-back-N") };
    assert_eq!((lossy.rto, lossy.acks), (Setting::Value(Duration::from_us(320)), Acks::PerPacket));
}

/// Tests all patterns of loss of the first transmissions of up to ten packets.
#[test]
fn every_pattern_of_lost_data_is_repaired() {
    for recovery in recoveries() {
        for packets in 1..=10u64 {
            for pattern in 0u32..1 << packets {
                let mut transfer = transfer(recovery, packets);
                transfer.first_psn = Psn::new(Psn::MODULUS - 5);
                let lost = (0..packets as u32).filter(|bit| pattern >> bit & 1 == 1);
                transfer.forward = Impairment::none().losing_first(lost.map(|bit| Psn::new(Psn::MODULUS - 5 + bit)));
                let payload = transfer.payload.clone();
                let outcome = Link::default().run(transfer);
                let case = (recovery, packets, pattern);
                outcome.assert_intact(&payload, &case);
                if let RecoveryConfig::Irn(IrnConfig { mode: Mode::Refined | Mode::Paper, nack_threshold: 1, .. }) =
                    recovery
                {
                    // Where paths keep order and no retransmission is lost, there are no spurious retransmissions.
                    assert_eq!(outcome.stats.retransmissions, u64::from(pattern.count_ones()), "{case:?}");
                    assert_eq!(outcome.duplicates, 0, "{case:?}");
                }
            }
        }
    }
}

/// Tests all patterns of loss of the first ten acknowledgements.
#[test]
fn every_pattern_of_lost_acknowledgements_is_survived() {
    for recovery in recoveries() {
        for pattern in 0u32..1 << 10 {
            let mut transfer = transfer(recovery, 10);
            for bit in (0..10).filter(|bit| pattern >> bit & 1 == 1) {
                transfer.backward = transfer.backward.with(bit, Fate::Drop);
            }
            let payload = transfer.payload.clone();
            let outcome = Link::default().run(transfer);
            outcome.assert_intact(&payload, &(recovery, pattern));
            // Acknowledgements are cumulative: only a timeout causes retransmissions.
            let stats = outcome.stats;
            assert_eq!(stats.retransmissions == 0, stats.timeouts == 0, "{recovery:?} {pattern}");
        }
    }
}

/// Tests all patterns of loss of the first five packets of each direction.
#[test]
fn every_pattern_of_losses_both_ways_is_repaired() {
    for recovery in recoveries() {
        for pattern in 0u32..1 << 10 {
            let mut transfer = transfer(recovery, 6);
            for bit in (0..5).filter(|bit| pattern >> bit & 1 == 1) {
                transfer.forward = transfer.forward.with(bit, Fate::Drop);
            }
            for bit in (0..5).filter(|bit| pattern >> (bit + 5) & 1 == 1) {
                transfer.backward = transfer.backward.with(bit, Fate::Drop);
            }
            let payload = transfer.payload.clone();
            Link::default().run(transfer).assert_intact(&payload, &(recovery, pattern));
        }
    }
}

#[test]
fn a_perfect_path_needs_no_timer_and_no_retransmission() {
    for recovery in recoveries() {
        let transfer = transfer(recovery, 5_000);
        let payload = transfer.payload.clone();
        let outcome = Link::default().run(transfer);
        outcome.assert_intact(&payload, &recovery);
        assert_eq!((outcome.stats.sent, outcome.stats.timeouts, outcome.duplicates), (5_000, 0, 0), "{recovery:?}");
    }
}

/// Tests that MELO repairs two lost packets of one window, any distance apart, without a timeout; where the second NACK
/// names the first hole, too, with one packet that arrives twice.
#[test]
fn melo_repairs_two_losses_of_a_window() {
    for (resend, most) in [(Resend::Once, 2), (Resend::AsNamed, 3)] {
        let mut melo: RecoveryConfig = MeloConfig { resend, ..MeloConfig::default() }.into();
        melo.resolve(&Fabric::IRN_PAPER);
        for first in 0..9 {
            for apart in 1..100 {
                let mut transfer = transfer(melo, 300);
                transfer.forward = Impairment::none().losing_first([20 + first, 20 + first + apart].map(Psn::new));
                let payload = transfer.payload.clone();
                let outcome = Link::default().run(transfer);
                outcome.assert_intact(&payload, &(first, apart));
                let retransmissions = outcome.stats.retransmissions;
                assert!((2..=most).contains(&retransmissions), "{first} {apart}: {retransmissions}");
                assert_eq!(outcome.stats.timeouts, 0, "{first} {apart}");
            }
        }
    }
}

/// Tests that a lost retransmission of MELO is repaired by the next NACK where holes are sent again as NACKs name them,
/// and by the timeout where each is sent once.
#[test]
fn melo_repairs_a_lost_retransmission_without_a_timeout_if_nacks_are_heeded() {
    let timeouts = |resend, lost: u64| {
        let mut melo: RecoveryConfig = MeloConfig { resend, ..MeloConfig::default() }.into();
        melo.resolve(&Fabric::IRN_PAPER);
        let mut transfer = transfer(melo, 1_000);
        // The later packet forms the hole whose NACK names that of the first, too.
        transfer.forward = Impairment::none().losing_first([20, 500].map(Psn::new)).with(lost, Fate::Drop);
        let payload = transfer.payload.clone();
        let outcome = Link::default().run(transfer);
        outcome.assert_intact(&payload, &(resend, lost));
        outcome.stats.timeouts
    };
    // One of these is the retransmission of packet 20; the others form one hole more.
    let sum = |resend| (21..400).map(|lost| timeouts(resend, lost)).sum::<u32>();
    assert_eq!((sum(Resend::Once), sum(Resend::AsNamed)), (1, 0));
}

/// Tests that senders do not give up after a thousand lost transmissions.
#[test]
fn silence_for_long_is_no_reason_to_give_up() {
    for recovery in recoveries() {
        let mut transfer = transfer(recovery, 1);
        for index in 0..1_000 {
            transfer.forward = transfer.forward.with(index, Fate::Drop);
        }
        let payload = transfer.payload.clone();
        let outcome = Link::default().run(transfer);
        outcome.assert_intact(&payload, &recovery);
        assert_eq!(outcome.stats.timeouts, 1_000);
    }
}

/// Tests go-back-N with the paper's settings for PFC: without acknowledgements, only a lost tail is not repaired.
#[test]
fn without_acknowledgements_only_a_lost_tail_is_lost() {
    let mut recovery: RecoveryConfig = GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }.into();
    recovery.resolve(&Fabric { pfc: true, ..Fabric::IRN_PAPER });
    for lost in 0..10 {
        let mut transfer = transfer(recovery, 10);
        transfer.forward = transfer.forward.with(lost, Fate::Drop);
        let payload = transfer.payload.clone();
        let outcome = Link::default().run(transfer);
        if lost == 9 {
            assert!(!outcome.finished, "nobody can know that the last packet is missing");
        } else {
            outcome.assert_intact(&payload, &lost);
        }
    }
}

fn odds() -> impl Strategy<Value = Odds> {
    let percent = |at_most: u64| (0..=at_most).prop_map(|percent| Chance::ratio(percent, 100));
    (percent(40), percent(20), percent(40), 0u64..100).prop_map(|(drop, duplicate, late, us)| Odds {
        drop,
        duplicate,
        late,
        late_by: Duration::from_us(us),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_loss_duplication_and_reordering_are_survived(
        recovery in prop::sample::select(recoveries()),
        packets in 1u64..300,
        first in prop_oneof![Just(0), Psn::MODULUS - 300..Psn::MODULUS],
        seed in any::<u64>(),
        data in odds(),
        acks in odds(),
    ) {
        let mut transfer = transfer(recovery, packets);
        transfer.first_psn = Psn::new(first);
        transfer.forward = Impairment::random(seed, 0, data);
        transfer.backward = Impairment::random(seed, 1, acks);
        let payload = transfer.payload.clone();
        Link::default().run(transfer).assert_intact(&payload, &"random impairments");
    }
}
