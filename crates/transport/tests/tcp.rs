//! Whole TCP transfers in virtual time, under any loss, duplication and reordering, compared with a model that records
//! every octet; and connections with a peer that sends arbitrary segments.

use proptest::prelude::*;
use selvedge_testkit::{Fate, Impairment, Odds, TcpOutcome, TcpPair, TcpTransfer};
use selvedge_transport::Fabric;
use selvedge_transport::tcp::congestion::CongestionConfig;
use selvedge_transport::tcp::{Ecn, LossDetection, Params, TcpConfig};
use selvedge_units::{Bytes, Chance, Duration, Instant, Setting, TcpSeq};

#[allow(dead_code, reason = "the other engines have their own tests")]
mod support;

const FABRIC: Fabric = Fabric { frame: Bytes::new(1024 + 70), ..Fabric::IRN_PAPER };
/// Size of a segment. Segments are small because the model counts octets.
const MSS: u64 = 64;

fn resolved(mut config: TcpConfig) -> Params {
    config.mss = Setting::Value(Bytes::new(MSS));
    config.resolve(&FABRIC, Bytes::new(MSS));
    config.params().expect("valid settings")
}

fn transfer(config: TcpConfig, octets: u64) -> TcpTransfer {
    TcpTransfer {
        params: resolved(config),
        octets,
        initial: [TcpSeq::new(0), TcpSeq::new(u32::MAX)],
        delay: Duration::from_us(12),
        segment_time: Duration::from_ns(200),
        impairments: [Impairment::none(), Impairment::none()],
        marks: 0,
        reads_slowly: false,
        seed: 1,
    }
}

fn run(transfer: &TcpTransfer) -> TcpOutcome {
    let outcome = TcpPair::new(transfer.clone()).run();
    let whole = outcome.finished && outcome.fresh == transfer.octets && outcome.in_order == transfer.octets;
    assert!(whole, "{outcome:?} of {transfer:?}");
    outcome
}

/// Returns configurations that cover the relevant combinations of mechanisms.
fn variants() -> Vec<TcpConfig> {
    let base = TcpConfig::default();
    let mut all = vec![
        base,
        TcpConfig { sack: false, ..base },
        TcpConfig { loss_detection: LossDetection::Dupacks, ..base },
        TcpConfig { loss_detection: LossDetection::Dupacks, prr: false, eifel: false, ..base },
        TcpConfig { tail_loss_probe: false, prr: false, ..base },
        TcpConfig { sack: false, timestamps: false, limited_transmit: false, ..base },
        TcpConfig { timestamps: false, delayed_ack: Setting::Off, ..base },
        TcpConfig { handshake: true, fin: true, ..base },
        TcpConfig { handshake: true, fin: true, sack: false, timestamps: false, ..base },
        TcpConfig { receive_buffer: Setting::Value(Bytes::new(3 * MSS)), ..base },
        TcpConfig { initial_window: Setting::Value(1), dup_thresh: 1, nagle: true, ..base },
    ];
    all.extend(CongestionConfig::all().map(|congestion| TcpConfig { congestion, ecn: Ecn::On, ..base }));
    all
}

#[test]
fn an_idle_path_takes_what_the_formula_says() {
    // One window of ten segments: serialisation, and one propagation delay.
    let outcome = run(&transfer(TcpConfig::default(), 10 * MSS));
    assert_eq!(outcome.finish, Instant::ZERO + Duration::from_ns(10 * 200) + Duration::from_us(12));
    // With a handshake one round trip more.
    let outcome = run(&transfer(TcpConfig { handshake: true, ..TcpConfig::default() }, 10 * MSS));
    assert_eq!(outcome.finish, Instant::ZERO + Duration::from_ns(10 * 200) + Duration::from_us(36));
}

#[test]
fn every_pattern_of_loss_among_the_first_ten_segments_is_repaired() {
    for config in variants() {
        for pattern in 0u32..1 << 10 {
            let mut transfer = transfer(config, 12 * MSS);
            for index in (0..10).filter(|index| pattern >> index & 1 != 0) {
                transfer.impairments[0] = std::mem::take(&mut transfer.impairments[0]).with(index, Fate::Drop);
            }
            let outcome = run(&transfer);
            if pattern == 0 {
                assert_eq!(outcome.stats.retransmissions, 0);
            }
        }
    }
}

#[test]
fn acknowledgements_may_be_lost() {
    for config in variants() {
        for pattern in 0u32..1 << 8 {
            let mut transfer = transfer(config, 12 * MSS);
            for index in (0..8).filter(|index| pattern >> index & 1 != 0) {
                transfer.impairments[1] = std::mem::take(&mut transfer.impairments[1]).with(index, Fate::Drop);
            }
            run(&transfer);
        }
    }
}

#[test]
fn one_loss_in_a_window_costs_no_timeout() {
    for config in variants().into_iter().filter(|config| config.receive_buffer == Setting::Auto) {
        for lost in 10..40 {
            let mut transfer = transfer(config, 60 * MSS);
            transfer.impairments[0] = Impairment::none().with(lost, Fate::Drop);
            let outcome = run(&transfer);
            assert_eq!((outcome.stats.retransmissions, outcome.stats.timeouts), (1, 0), "{lost} {config:?}");
        }
    }
}

fn odds() -> impl Strategy<Value = Odds> {
    let percent = |most: u64| (0..=most).prop_map(|percent| Chance::ratio(percent, 100));
    (percent(30), percent(20), percent(30), 0u64..500).prop_map(|(drop, duplicate, late, us)| Odds {
        drop,
        duplicate,
        late,
        late_by: Duration::from_us(us),
    })
}

prop_compose! {
    fn config()(
        flags in any::<[bool; 14]>(), congestion in 0usize..6, window in 1u32..20, threshold in 1u32..5,
        buffer in 1u64..40, delay in 0u64..3, every in 1u32..4,
    ) -> TcpConfig {
        let [sack, timestamps, limited_transmit, nagle, handshake, fin, ecn, window_scaling, exact, rack, tail, prr, eifel, slow] = flags;
        TcpConfig {
            congestion: CongestionConfig::all().nth(congestion).expect("an index below 6"),
            initial_window: Setting::Value(window),
            slow_start_limit: if exact { Setting::Value(1) } else { Setting::Off },
            dup_thresh: threshold,
            loss_detection: if rack { LossDetection::Rack } else { LossDetection::Dupacks },
            tail_loss_probe: tail,
            hystart: if slow { Setting::Value(Duration::from_us(2)) } else { Setting::Auto },
            sack, prr, eifel, timestamps, limited_transmit, nagle, handshake, fin, window_scaling,
            delayed_ack: if delay == 0 { Setting::Off } else { Setting::Value(Duration::from_us(delay * 100)) },
            ack_every: every,
            receive_buffer: Setting::Value(Bytes::new(buffer * MSS)),
            ecn: if ecn || congestion == 2 { Ecn::On } else { Ecn::Off },
            initial_rto: Setting::Value(Duration::from_us(500)),
            max_rto: Duration::from_ms(50),
            // The time covers any number of lost acknowledgements of a FIN.
            time_wait: Duration::from_ms(60_000),
            ..TcpConfig::default()
        }
    }
}

prop_compose! {
    fn impaired()(
        config in config(), octets in 1u64..60 * MSS, ours in any::<u32>(), wraps in any::<bool>(),
        odds in [odds(), odds()], marks in 0u64..60, reads_slowly in any::<bool>(), seed in any::<u64>(),
    ) -> TcpTransfer {
        // Half of the cases wrap within the transfer.
        let ours = if wraps { u32::MAX - ours % (octets as u32 + 2) } else { ours };
        TcpTransfer {
            initial: [TcpSeq::new(ours), TcpSeq::new(!ours)],
            impairments: [Impairment::random(seed, 0, odds[0]), Impairment::random(seed, 1, odds[1])],
            marks,
            reads_slowly,
            seed,
            ..transfer(config, octets)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_octet_arrives_once_and_in_order(transfer in impaired()) {
        run(&transfer);
    }

    #[test]
    fn a_connection_withstands_any_peer(script in prop::collection::vec(any::<u8>(), 0..600)) {
        support::torment_connection(&script);
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/connection");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        support::torment_connection(&std::fs::read(entry.expect("readable corpus").path()).expect("readable corpus"));
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[test]
fn more_than_four_gigabytes_wrap_without_notice() {
    // In order and fast: the sequence numbers wrap twice.
    let mut config = TcpConfig { delayed_ack: Setting::Off, ..TcpConfig::default() };
    config.mss = Setting::Value(Bytes::new(9_000));
    config.receive_buffer = Setting::Value(Bytes::new(1 << 22));
    config.resolve(&FABRIC, Bytes::new(9_000));
    support::stream(&config.params().expect("valid settings"), 9 << 30);
}
