//! Loss and failure: which packets are lost, and that transports recover.

use selvedge_sim::fault::{
    Affected, BitErrors, Bursty, Direction, DropList, GilbertElliott, LinkFailure, LinkSelector, LossConfig, LossModel,
    RandomLoss,
};
use selvedge_sim::topology::{Dumbbell, FatTree, LeafSpine};
use selvedge_sim::workload::{Many, Permutation};
use selvedge_sim::{Beside, SimConfig, port_infos};
use selvedge_telemetry::DropReason;
use selvedge_transport::congestion::swift::SwiftConfig;
use selvedge_transport::recovery::irn::Timeouts;
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Chance, Duration, Instant, Setting};

use crate::support::{Outcome, Scene, Series, drops, link, star};

fn random(numerator: u64, denominator: u64) -> LossModel {
    LossModel::Random(RandomLoss { rate: Chance::ratio(numerator, denominator) })
}

fn lose(packets: Affected, model: LossModel) -> impl FnOnce(&mut SimConfig) {
    move |config| config.loss.push(LossConfig { link: LinkSelector::All, direction: Direction::Both, packets, model })
}

/// Returns the numbers of the packets that the link from h0 loses, of single packets from h0 to h1, one every 10 us.
/// Nothing is retransmitted before all have been sent once.
fn lost_packets(series: Series, count: u64, model: &LossModel, packets: Affected) -> Vec<u64> {
    let late = Duration::from_ms(150);
    let scene = (0..count).fold(Scene::new(star(&[link(100, 500); 2]), series), |scene, n| {
        scene.flow(0, 1, 1_024, Duration::from_us(10) * n)
    });
    assert!(Duration::from_us(10) * count < late);
    let scene = scene.irn(|irn| {
        irn.rto_low = Setting::Value(late);
        irn.rto_high = Setting::Value(late);
    });
    let scene = scene.roce(|roce| roce.rto = if series.pfc() { Setting::Off } else { Setting::Value(late) });
    let (link, direction, model) = (LinkSelector::Index(0), Direction::Up, model.clone());
    let outcome = scene.with(|config| config.loss.push(LossConfig { link, direction, packets, model })).run();
    let hit = outcome.flows.iter().filter(|row| row.fct() != Some(row.ideal)).map(|row| row.id);
    let mut hit: Vec<u64> = hit.collect();
    hit.sort();
    hit
}

#[test]
fn the_nth_packet_fares_alike_in_every_series() {
    let model = random(1, 10);
    let fates: Vec<_> = Series::ALL.map(|series| lost_packets(series, 500, &model, Affected::All)).into();
    assert!((30..70).contains(&fates[0].len()), "{}", fates[0].len());
    assert!(fates.iter().all(|fate| *fate == fates[0]), "{fates:?}");
    // Whether acknowledgements are lost too makes no difference to data.
    assert_eq!(lost_packets(Series::Irn, 500, &model, Affected::Data), fates[0]);
}

#[test]
fn bursts_have_their_rate_and_length() {
    let model = LossModel::Bursty(Bursty { mean_burst: 4.0, rate: Chance::ratio(1, 20) });
    let count = 14_000;
    let lost = lost_packets(Series::Irn, count, &model, Affected::Data);
    let share = lost.len() as f64 / count as f64;
    let bursts = 1 + lost.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
    let length = lost.len() as f64 / bursts as f64;
    // Four standard deviations; losses in bursts spread 2.6 times as far as independent ones.
    assert!((share - 0.05).abs() < 4.0 * 2.6 * (0.05f64 * 0.95 / count as f64).sqrt(), "{share}");
    assert!((length - 4.0).abs() < 4.0 * 3.5 / (bursts as f64).sqrt(), "{length}");
}

#[test]
fn a_trace_drops_those_packets_and_no_others() {
    let model = LossModel::Trace(DropList::Drops(vec![17, 0, 3, 99]));
    for series in Series::ALL {
        assert_eq!(lost_packets(series, 120, &model, Affected::All), [0, 3, 17, 99], "{series:?}");
    }
}

#[test]
fn damaged_packets_are_discarded_where_they_arrive_long_ones_first() {
    // A frame of 1,086 bytes is damaged with probability 8.3 %, one of 66 bytes with 0.5 %.
    let bit_error_rate = Chance::ratio(1, 100_000);
    for series in [Series::Irn, Series::Roce] {
        let scene = Scene::new(star(&[link(100, 500); 2]), series).flow(0, 1, 20_000_000, Duration::ZERO);
        let outcome = scene.with(lose(Affected::All, LossModel::Corrupt(BitErrors { bit_error_rate }))).finish();
        let record = &outcome.record;
        for (dropped, sent, bits) in
            [(&record.data_drops, record.data_sent, 1_086 * 8), (&record.ack_drops, record.acks_sent, 66 * 8)]
        {
            assert_eq!(dropped.total(), drops(dropped, DropReason::Corrupt) + drops(dropped, DropReason::UnknownQp));
            // Two links.
            let expected = 1.0 - (1.0 - bit_error_rate.as_f64()).powi(2 * bits);
            let share = drops(dropped, DropReason::Corrupt) as f64 / sent as f64;
            let deviation = (expected / sent as f64).sqrt();
            assert!((share - expected).abs() < 4.0 * deviation, "{series:?}: {share}, not {expected}");
        }
    }
}

#[test]
fn irn_sends_again_what_was_lost_and_go_back_n_what_followed_too() {
    let scene = |series| {
        let model = LossModel::Trace(DropList::Drops(vec![5, 60]));
        let scene =
            Scene::new(star(&[link(40, 1_000); 2]), series).buffer(None).flow(0, 1, 100 * 1_024, Duration::ZERO);
        let scene = scene.irn(|irn| irn.bdp_cap = Setting::Value(40));
        let (link, direction, packets) = (LinkSelector::Index(0), Direction::Up, Affected::Data);
        scene.with(|config| config.loss.push(LossConfig { link, direction, packets, model })).finish()
    };
    let (irn, roce) = (scene(Series::Irn), scene(Series::Roce));
    assert_eq!((irn.record.data_drops.total(), irn.record.retransmissions), (2, 2));
    assert_eq!((irn.record.timeouts, irn.record.spurious_retransmissions), (0, 0));
    assert_eq!(roce.record.data_drops.total(), 2);
    // The retransmissions are the packets in flight when each NACK comes: about a round trip, 19 packets.
    assert!((20..60).contains(&roce.record.retransmissions), "{}", roce.record.retransmissions);
    assert_eq!(roce.record.nacks_sent, 2, "one for each gap");
}

#[test]
fn everything_arrives_however_much_is_lost() {
    let graph = FatTree { k: 4, link: link(40, 1_000) }.build().unwrap();
    for series in [Series::Irn, Series::Roce] {
        for (rate, packets) in [(1, Affected::All), (10, Affected::All), (10, Affected::Data), (20, Affected::Ack)] {
            let permutation = Permutation {
                size: Bytes::new(40_000),
                repeat: 3,
                hosts: None,
                start: Duration::ZERO,
                jitter: Duration::ZERO,
            };
            let scene = Scene::new(graph.clone(), series).with(lose(packets, random(rate, 100)));
            let outcome = scene.with(|config| config.workload.permutation = Many::from(permutation)).finish();
            assert_eq!(outcome.record.flows_finished, 48);
            assert!(drops(&outcome.record.data_drops, DropReason::LinkLoss) > 0 || packets == Affected::Ack);
            assert_eq!(drops(&outcome.record.ack_drops, DropReason::LinkLoss) > 0, packets != Affected::Data);
        }
    }
}

fn fail(link: &str, at_us: u64, until_us: Option<u64>) -> impl FnOnce(&mut SimConfig) {
    let failure = LinkFailure {
        link: link.parse().unwrap(),
        at: Duration::from_us(at_us),
        until: until_us.map(Duration::from_us),
    };
    move |config| config.failures.push(failure)
}

#[test]
fn flows_take_another_way_when_a_link_fails() {
    let (host_link, spine_link) = (link(40, 1_000), link(40, 1_000));
    let graph = LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 4, host_link, spine_link, parallel_links: 1 };
    let graph = graph.build().unwrap();
    for series in [Series::Irn, Series::Roce] {
        let scene = |until| {
            let scene = Scene::new(graph.clone(), series);
            let scene = (0..4).fold(scene, |scene, n| scene.flow(n, 4 + n, 2_000_000, Duration::ZERO));
            scene.with(fail("leaf0 - spine0", 100, until)).finish()
        };
        let infos = port_infos(&graph);
        let port = infos.iter().position(|info| &*info.node == "leaf0" && &*info.peer == "spine0").unwrap();
        let (forever, repaired) = (scene(None), scene(Some(200)));
        for outcome in [&forever, &repaired] {
            assert!(drops(&outcome.record.data_drops, DropReason::LinkDown) > 0, "packets under way are lost");
        }
        let used = |outcome: &Outcome| outcome.record.ports[port].bytes.get();
        // 100 us at 40 Gb/s are 500 KB at most.
        assert!(used(&forever) <= 500_000, "{} bytes after the failure", used(&forever));
        assert!(used(&repaired) > 1_000_000, "the link is used again");
    }
}

#[test]
fn flows_wait_for_a_repair_where_there_is_no_other_way() {
    let host_link = link(40, 1_000);
    let graph = Dumbbell { left: 2, right: 2, host_link, bottleneck: host_link }.build().unwrap();
    for series in [Series::Irn, Series::Roce] {
        let scene = Scene::new(graph.clone(), series)
            .flow(0, 2, 500_000, Duration::ZERO)
            .flow(1, 3, 500_000, Duration::from_us(500))
            .with(fail("left - right", 50, Some(2_000)));
        let outcome = scene.finish();
        for row in &outcome.flows {
            assert!(row.finish > Some(Instant::ZERO + Duration::from_ms(2)), "{series:?}");
            assert!(row.finish < Some(Instant::ZERO + Duration::from_ms(10)), "{series:?}: {row:?}");
        }
        let gone = [DropReason::LinkDown, DropReason::NoRoute].map(|reason| drops(&outcome.record.data_drops, reason));
        assert!(gone.iter().all(|&count| count > 0), "{gone:?}");
    }
}

#[test]
fn a_host_waits_for_its_own_link_to_be_repaired() {
    for series in Series::ALL {
        for repair_ms in [5, 1_000] {
            let scene = Scene::new(star(&[link(40, 1_000); 2]), series)
                .flow(0, 1, 5_000, Duration::from_us(10))
                .with(fail("h0", 0, Some(repair_ms * 1_000)));
            let outcome = scene.finish();
            let (begin, row) = (Instant::ZERO + Duration::from_ms(repair_ms), outcome.flow(0));
            assert_eq!(row.finish, Some(begin + row.ideal), "nothing left the host before, {series:?}");
        }
    }
}

#[test]
fn a_run_knows_whether_more_time_would_help() {
    let hopeless = |repair: Option<u64>, end: Option<Duration>| {
        let scene = Scene::new(star(&[link(40, 1_000); 2]), Series::RocePfc).flow(0, 1, 500_000, Duration::ZERO);
        let outcome = scene.with(fail("h1", 50, repair)).with(|config| config.stop.time = end).run();
        (outcome.flow(0).finish.is_some(), outcome.record.hopeless)
    };
    assert_eq!(hopeless(None, None), (false, true), "the link is gone");
    assert_eq!(hopeless(None, Some(Duration::from_us(60))), (false, false), "nobody knows yet");
    assert_eq!(hopeless(Some(500), None), (false, true), "the tail is lost, and with PFC nobody has a timeout");
}

/// TCP's timeouts double up to a minute, while IRN retransmits every 100 us.
#[test]
fn tcp_beside_rdma_does_not_keep_a_run_that_is_over() {
    let scene = Scene::new(star(&[link(40, 1_000); 3]), Series::Irn).flow(0, 1, 500_000, Duration::ZERO);
    let outcome = scene.with(fail("h1", 50, None)).with(|config| {
        let (hosts, start, jitter) = (None, Duration::ZERO, Duration::ZERO);
        config.workload.permutation =
            Many::from(Permutation { size: Bytes::new(500_000), repeat: 1, hosts, start, jitter });
        config.beside = Some(Beside { workloads: vec!["permutation".into()], class: None, tcp: TcpConfig::default() });
    });
    let record = outcome.run().record;
    assert!(record.hopeless && record.flows_finished < record.flows_started);
    assert!(record.end < Instant::ZERO + Duration::from_ms(1_000), "{}", record.end);
}

#[test]
fn a_packet_that_is_lost_with_a_burst_is_sent_again_until_that_is_over() {
    // Bursts count packets: each single retransmission after a timeout meets the rest of the burst.
    let late = Duration::from_ms(100);
    for seed in 0..30 {
        let bursts = LossModel::Bursty(Bursty { mean_burst: 10.0, rate: Chance::ratio(1, 3) });
        let scene = Scene::new(star(&[link(40, 1_000); 2]), Series::Irn).flow(0, 1, 5_000, Duration::ZERO).irn(|irn| {
            irn.rto_low = Setting::Value(late);
            irn.rto_high = Setting::Value(late);
        });
        let outcome = scene.with(lose(Affected::Data, bursts)).with(|config| config.seed = seed).run();
        assert!(outcome.flow(0).finish.is_some() && !outcome.record.hopeless, "seed {seed}");
    }
}

/// A burst ends by itself, however long it is: the run is not considered stuck. Many more timeouts may pass in a row
/// than without a burst (200).
#[test]
fn a_burst_of_thousands_of_packets_is_no_end_of_a_run() {
    let bursty =
        |mean_burst: f64, percent: u64| LossModel::Bursty(Bursty { mean_burst, rate: Chance::ratio(percent, 100) });
    let two_states = |bad_to_good: f64, loss_in_bad: f64| {
        LossModel::GilbertElliott(GilbertElliott {
            good_to_bad: Chance::from_f64(1e-4).expect("a valid probability"),
            bad_to_good: Chance::from_f64(bad_to_good).expect("a valid probability"),
            loss_in_good: Chance::NEVER,
            loss_in_bad: Chance::from_f64(loss_in_bad).expect("a valid probability"),
        })
    };
    let tcp = |config: &mut SimConfig| {
        config.transport = TcpConfig::default().into();
    };
    // TCP waits up to a minute between two packets: a few bursts of 5,000 are longer than any run may last (53 days).
    let models = [
        (bursty(1_000.0, 30), true),
        (bursty(5_000.0, 50), false),
        (bursty(20_000.0, 50), false),
        (two_states(2e-4, 1.0), false),
        (two_states(1e-4, 0.99), false),
    ];
    for ((model, has_tcp), packets) in models.iter().flat_map(|model| [(model, Affected::Data), (model, Affected::All)])
    {
        let mut longest = 0;
        for seed in 1..=4 {
            for series in [Some(Series::Irn), Some(Series::Roce), None] {
                if series.is_none() && !has_tcp {
                    continue;
                }
                let graph = star(&[link(100, 1_000); 2]);
                let scene = Scene::new(graph, series.unwrap_or(Series::Irn)).flow(0, 1, 5_000_000, Duration::ZERO);
                let scene = if series.is_some() { scene } else { scene.with(tcp) };
                let scene = scene.with(lose(packets, model.clone())).with(|config| config.seed = seed);
                let record = scene.run().record;
                let what = format!("{model:?}, {packets:?}, {series:?}, seed {seed}");
                assert!(record.flows_finished == 1 && !record.hopeless, "{what}: ended at {}", record.end);
                longest = longest.max(record.timeouts);
            }
        }
        assert!(longest > 500, "{model:?}, {packets:?}: at most {longest} timeouts, so nothing is shown");
    }
}

/// A run ends when a loss model will never let a packet pass again, and when a host has failed behind a link on which
/// bursts come and go.
#[test]
fn a_burst_without_end_or_a_dead_host_behind_one_ends_a_run() {
    let forever = GilbertElliott {
        good_to_bad: Chance::ratio(1, 100),
        bad_to_good: Chance::NEVER,
        loss_in_good: Chance::NEVER,
        loss_in_bad: Chance::ALWAYS,
    };
    let always = LossModel::Random(RandomLoss { rate: Chance::ALWAYS });
    for model in [LossModel::GilbertElliott(forever), always] {
        let scene = Scene::new(star(&[link(100, 1_000); 2]), Series::Irn).flow(0, 1, 5_000_000, Duration::ZERO);
        let record = scene.with(lose(Affected::Data, model)).run().record;
        assert!(record.hopeless && record.end < Instant::ZERO + Duration::from_ms(1_000), "{}", record.end);
    }
    let bursts = LossModel::Bursty(Bursty { mean_burst: 20.0, rate: Chance::ratio(1, 2) });
    let scene = Scene::new(star(&[link(100, 1_000); 2]), Series::Irn).flow(0, 1, 5_000_000, Duration::ZERO);
    let record = scene.with(lose(Affected::Data, bursts)).with(fail("h1", 50, None)).run().record;
    assert!(record.hopeless && record.end < Instant::ZERO + Duration::from_ms(10_000), "{}", record.end);
}

#[test]
fn what_every_link_on_the_way_is_told_to_lose_is_sent_again_until_it_arrives() {
    // Thirteen attempts are lost on each of the two links, and as many acknowledgements.
    let late = Duration::from_ms(100);
    let listed = LossModel::Trace(DropList::Drops((0..13).collect()));
    for series in [Series::Irn, Series::Roce] {
        let scene = Scene::new(star(&[link(40, 1_000); 2]), series).flow(0, 1, 1_000, Duration::ZERO);
        let scene = scene.irn(|irn| {
            irn.rto_low = Setting::Value(late);
            irn.rto_high = Setting::Value(late);
        });
        let scene = scene.roce(|roce| roce.rto = Setting::Value(late));
        let outcome = scene.with(lose(Affected::Data, listed.clone())).run();
        assert_eq!(outcome.record.timeouts, 26, "{series:?}");
        assert!(outcome.flow(0).finish.is_some(), "{series:?}");
    }
}

#[test]
fn a_flow_whose_packets_are_far_apart_is_waited_for() {
    // After some timeouts in a row, Swift sends a packet in a thousand round trips; one of two is lost.
    let swift = |config: &mut SimConfig| {
        config.transport.rdma_mut().expect("queue pairs").congestion = SwiftConfig::default().into();
        config.nic.mtu = Bytes::new(64);
    };
    for seed in 0..10 {
        let scene = Scene::new(star(&[link(40, 100_000); 2]), Series::Roce).flow(0, 1, 4_000, Duration::ZERO);
        let scene = scene.with(swift).with(lose(Affected::All, random(3, 10)));
        let outcome = scene.with(|config| config.seed = seed).run();
        assert!(outcome.flow(0).finish.is_some() && !outcome.record.hopeless, "seed {seed}");
    }
}

#[test]
fn a_dead_host_does_not_jam_the_others() {
    for series in Series::ALL {
        let scene = Scene::new(star(&[link(40, 1_000); 3]), series)
            .irn(|irn| irn.timeouts = Timeouts::On)
            .flow(0, 2, 2_000_000, Duration::ZERO)
            .flow(0, 1, 2_000_000, Duration::ZERO)
            .with(fail("h2", 50, None));
        let outcome = scene.run();
        assert_eq!(outcome.flow(0).finish, None, "nobody is there");
        assert!(outcome.flow(1).finish.is_some(), "{series:?}");
        assert!(drops(&outcome.record.data_drops, DropReason::LinkDown) > 0);
    }
}
