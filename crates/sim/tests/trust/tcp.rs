//! TCP flows: closed forms and invariants.

use selvedge_sim::config::{BufferConfig, Trimming, TunnelledConfig};
use selvedge_sim::fault::{Affected, LinkFailure};
use selvedge_sim::topology::{FatTree, Graph, LeafSpine};
use selvedge_sim::workload::{Fraction, HostRef, Hosts, Incast, Many, Pairs, Poisson, Senders, Sizes};
use selvedge_sim::{Beside, SimConfig};
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::eqif::{EqifConfig, TcpEqif};
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::tcp::congestion::{CongestionConfig, lia};
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Setting, Toggle};

use crate::support::{Scene, Series, link, lose, pair, star};

/// Returns the scene with TCP as its transport.
fn speaking(scene: Scene, tcp: TcpConfig) -> Scene {
    scene.with(|config| config.transport = tcp.into())
}

/// Returns every combination of mechanisms worth distinguishing.
fn variants() -> Vec<TcpConfig> {
    let base = TcpConfig::default();
    let mut all = vec![
        TcpConfig { sack: false, timestamps: false, delayed_ack: Setting::Off, ..base },
        TcpConfig { handshake: true, fin: true, ..base },
        TcpConfig { receive_buffer: Setting::Value(Bytes::from_kb(20)), nagle: true, ..base },
    ];
    all.extend(CongestionConfig::all().map(|congestion| TcpConfig { congestion, ..base }));
    all
}

#[test]
fn an_idle_path_takes_the_ideal_time_if_the_window_lets_it() {
    let wide = TcpConfig { initial_window: Setting::Value(10_000), ..TcpConfig::default() };
    let mut scene = speaking(Scene::new(star(&[link(25, 10), link(40, 3_000)]), Series::Irn), wide).buffer(None);
    for (n, size) in (0..).zip([1, 1_023, 1_024, 1_025, 10_241, 300_000]) {
        scene = scene.flow(0, 1, size, Duration::from_ms(n));
    }
    let outcome = scene.finish();
    for row in &outcome.flows {
        assert_eq!(row.fct(), Some(row.ideal), "{}", row.size);
    }
    assert_eq!(outcome.record.data_sent, outcome.flows.iter().map(|row| row.packets).sum::<u64>());
}

#[test]
fn a_segment_by_hand() {
    // Ethernet 14, IPv4 20, TCP 20, time stamps 12, FCS 4, gap 20: 90 bytes beside 1,024.
    let scene = speaking(Scene::new(pair(link(100, 1_000)), Series::Irn), TcpConfig::default());
    let outcome = scene.flow(0, 1, 1_024, Duration::ZERO).finish();
    assert_eq!(outcome.flow(0).fct(), Some(Duration::from_ps((1_024 + 90) * 80 + 1_000_000)));
}

#[test]
fn the_shortest_frame_counts_in_the_ideal() {
    // Without time stamps a byte has 59 bytes in its frame, which is padded to 64 and has a gap of 20.
    let tcp = TcpConfig { timestamps: false, ..TcpConfig::default() };
    let scene = speaking(Scene::new(star(&[link(100, 500), link(100, 500)]), Series::Irn), tcp);
    let outcome = scene.flow(0, 1, 1, Duration::ZERO).finish();
    let expected = Duration::from_ps(2 * (84 * 80 + 500_000));
    assert_eq!((outcome.flow(0).fct(), outcome.flow(0).ideal), (Some(expected), expected));
}

#[test]
fn a_handshake_takes_a_round_trip() {
    let shake = |handshake| {
        let tcp = TcpConfig { handshake, fin: handshake, ..TcpConfig::default() };
        let scene = speaking(Scene::new(pair(link(100, 1_000)), Series::Irn), tcp);
        scene.flow(0, 1, 5_000, Duration::ZERO).finish().flow(0).fct().unwrap()
    };
    // A SYN of 78 bytes and its answer of as many; then an acknowledgement goes before the data. Its 90
    // bytes on the wire are the same as those of the SYNs less their options of eight.
    let syn = Duration::from_ps((78 + 20) * 80) + Duration::from_us(1);
    assert_eq!(shake(true) - shake(false), syn * 2);
}

#[test]
fn slow_start_takes_the_rounds_that_it_takes() {
    // 10, 20 and 40 segments in three rounds of 20 us and little more, acknowledging each segment.
    let tcp = TcpConfig { delayed_ack: Setting::Off, ..TcpConfig::default() };
    let scene = speaking(Scene::new(pair(link(100, 10_000)), Series::Irn), tcp);
    let outcome = scene.flow(0, 1, 70 * 1_024, Duration::ZERO).finish();
    let fct = outcome.flow(0).fct().unwrap().as_us_f64();
    assert!((50.0..55.0).contains(&fct), "{fct} us");
}

/// Each settings' initial window shows in the time of its flow: that of the flow beside the transport, and the others'.
#[test]
fn tcp_beside_tcp_keeps_settings_of_its_own() {
    let [narrow, wide] =
        [2, 1_000].map(|packets| TcpConfig { initial_window: Setting::Value(packets), ..TcpConfig::default() });
    let times = |own: TcpConfig, beside: Option<TcpConfig>, named: &str| {
        let scene = speaking(Scene::new(star(&[link(100, 10_000); 3]), Series::Irn), own).with(|config| {
            config.workload.incast = Many::from(Incast {
                receiver: Some(HostRef::Number(2)),
                ..Incast::of(Bytes::new(100_000), Senders::Hosts(Hosts(vec![HostRef::Number(1)])))
            });
            config.beside = beside.map(|tcp| Beside { workloads: vec![named.into()], class: Some(1), tcp });
        });
        let outcome = scene.flow(0, 2, 200_000, Duration::from_ms(1)).finish();
        let time_of = |size| outcome.flows.iter().find(|row| row.size.get() == size).and_then(|row| row.fct()).unwrap();
        [time_of(100_000), time_of(200_000)]
    };
    let ([n0, n1], [w0, w1]) = (times(narrow, None, ""), times(wide, None, ""));
    assert!(w0 < n0 && w1 < n1);
    assert_eq!(times(narrow, Some(wide), "incast"), [w0, n1]);
    assert_eq!(times(wide, Some(narrow), "incast"), [n0, w1]);
    assert_eq!(times(narrow, Some(wide), "flows"), [n0, w1]);
    assert_eq!(times(wide, Some(narrow), "flows"), [w0, n1]);
}

/// Many flows whose timeouts have grown send in turn, a few at a time, for hours.
#[test]
fn silences_between_the_timeouts_of_many_flows_are_not_sampled_for_ever() {
    let scene = speaking(Scene::new(pair(link(100, 1_000)), Series::Irn), TcpConfig::default()).with(|config| {
        lose(config, Affected::All, Chance::from_f64(1.0).unwrap());
        config.sample = Some(Duration::from_us(10));
    });
    let at = |n: u32| Duration::from_us(3_000) * u64::from(n);
    let outcome = (0..100).fold(scene, |scene, n| scene.flow(0, 1, 5_000, at(n))).run();
    let samples = outcome.ports.len() as u64 / outcome.record.ports.len() as u64;
    assert!(samples < 20_000 + outcome.record.events, "{samples} samples of {} events", outcome.record.events);
    let drops: u64 = outcome.ports.iter().map(|row| u64::from(row.drops)).sum();
    assert_eq!(drops, outcome.record.data_drops.total(), "each loss is in some sample");
}

/// Timeouts grow to minutes, and no flow makes progress; the run ends, and takes samples only when events happen.
#[test]
fn hours_of_silence_are_not_sampled() {
    let scene = speaking(Scene::new(pair(link(100, 1_000)), Series::Irn), TcpConfig::default()).with(|config| {
        lose(config, Affected::All, Chance::from_f64(1.0).unwrap());
        config.sample = Some(Duration::from_us(10));
    });
    let outcome = scene.flow(0, 1, 5_000, Duration::ZERO).run();
    assert_eq!((outcome.record.flows_started, outcome.record.flows_finished), (1, 0));
    assert!(outcome.record.end > Instant::ZERO + TcpConfig::default().max_rto, "{}", outcome.record.end);
    assert!(outcome.ports.len() < 10_000, "{} samples", outcome.ports.len());
    let drops: u64 = outcome.ports.iter().map(|row| u64::from(row.drops)).sum();
    assert_eq!(drops, outcome.record.data_drops.total(), "each loss is in some sample");
}

#[test]
fn nothing_appears_or_vanishes() {
    for series in [Series::Irn, Series::IrnPfc] {
        for tcp in variants() {
            let graph = FatTree { k: 4, link: link(40, 2_000) }.build().unwrap();
            let scene = speaking(Scene::new(graph, series), tcp).with(|config| {
                config.workload.poisson = Many::from(Poisson {
                    load: Fraction::new(0.6).unwrap(),
                    sizes: Sizes::Uniform([Bytes::new(1), Bytes::new(100_000)]),
                    hosts: None,
                    pairs: Pairs::Uniform,
                    flows: Some(100),
                    start: Duration::ZERO,
                    until: None,
                });
                config.workload.incast = Many::from(Incast {
                    size: Bytes::new(1_000_000),
                    senders: Senders::Count(12),
                    receiver: None,
                    start: Duration::from_us(20),
                    stagger: Duration::ZERO,
                    jitter: Duration::ZERO,
                    repeat: 1,
                    interval: None,
                    connections: 1,
                });
                config.switch.ecn.enabled = true.into();
                lose(config, Affected::All, Chance::ratio(1, 100));
            });
            let whole = scene.clone().finish();
            assert!(whole.record.retransmissions > 0);
            assert_eq!(scene.parallel(2, 4).finish(), whole, "{tcp:?}");
        }
    }
}

#[test]
fn goodput_under_random_loss_is_what_the_square_root_formula_says() {
    // Mathis et al. (CCR 1997), figure 2: MSS / RTT * 1.31 / sqrt(p) for random losses and every segment
    // acknowledged.
    for p in [300, 1_000, 3_000] {
        let tcp = TcpConfig { delayed_ack: Setting::Off, ..TcpConfig::default() };
        let mut total = 0.0;
        for seed in 1..=3 {
            let scene = speaking(Scene::new(pair(link(100, 100_000)), Series::Irn), tcp).buffer(None).with(|config| {
                config.seed = seed;
                lose(config, Affected::All, Chance::ratio(1, p));
                config.loss[0].packets = Affected::Data;
            });
            let outcome = scene.flow(0, 1, 1_000 * p * 64, Duration::ZERO).finish();
            total += (1_000 * p * 64) as f64 / outcome.flow(0).fct().unwrap().as_secs_f64() / 3.0;
        }
        let rtt = Duration::from_us(200).as_secs_f64() + Rate::from_gbps(100).time_for(Bytes::new(1_204)).as_secs_f64();
        let formula = 1_024.0 / rtt * 1.31 * (p as f64).sqrt();
        assert!((total / formula - 1.0).abs() < 0.1, "p = 1/{p}: {total:.0} B/s, the formula says {formula:.0}");
    }
}

fn multipath(subflows: u8) -> TcpConfig {
    TcpConfig { subflows, congestion: lia::Config {}.into(), ..TcpConfig::default() }
}

/// Returns two hosts, and `paths` switches each of which is on one path from one leaf to the other.
fn parallel(paths: u32) -> Graph {
    let (host_link, spine_link) = (link(40, 1_000), link(10, 1_000));
    LeafSpine { leaves: 2, spines: paths, hosts_per_leaf: 2, host_link, spine_link, parallel_links: 1 }.build().unwrap()
}

#[test]
fn subflows_fill_paths_that_one_connection_cannot() {
    let size = 20_000_000;
    let time = |tcp: TcpConfig| {
        let scene = speaking(Scene::new(parallel(4), Series::Irn), tcp).flow(0, 2, size, Duration::ZERO);
        // The ideal time is that on one path.
        scene.run_unchecked().flow(0).fct().unwrap().as_us_f64()
    };
    let (one, eight) = (time(TcpConfig::default()), time(multipath(8)));
    // Of eight subflows, at least three paths of 10 Gb/s out of four are used.
    let ideal = size as f64 * 8.0 / 10e3;
    assert!(one > ideal, "{one} us on one path, which takes {ideal} us at least");
    assert!(eight < ideal / 2.0, "{eight} us on several paths");
}

#[test]
fn subflows_of_all_kinds_deliver_everything() {
    let opened = TcpConfig { handshake: true, fin: true, ..multipath(8) };
    for tcp in [multipath(2), opened, TcpConfig { sack: false, ..multipath(8) }] {
        let mut scene = speaking(Scene::new(parallel(4), Series::Irn), tcp).buffer(Some(100_000));
        scene = scene.with(|config| lose(config, Affected::All, Chance::ratio(1, 100)));
        for (n, size) in (0..).zip([1, 5_000, 100_001, 3_000_000]) {
            scene = scene.flow(n % 2, 2 + n % 2, size, Duration::from_us(u64::from(n)));
            scene = scene.flow(2 + n % 2, n % 2, size, Duration::from_us(u64::from(n)));
        }
        let record = scene.run_unchecked().record;
        assert_eq!((record.flows_started, record.flows_finished), (8, 8));
    }
}

/// Time stamps tick each microsecond: after an outage of 36 to 71 minutes all new segments look old (RFC 7323, section
/// 5.5), and ends that answer each other's answers do so for ever.
#[test]
fn an_outage_of_any_length_ends_and_flows_go_on() {
    let base = TcpConfig::default();
    let tunnelled = |config: &mut SimConfig| {
        let eqif = EqifConfig { tcp: Some(TcpEqif::default()), ..EqifConfig::default() };
        let rto = Setting::Value(Duration::from_us(100));
        let tunnels = EqdsConfig { burst: Toggle::Auto, rto, eqif, ..EqdsConfig::default() };
        config.transport = TunnelledConfig::new(tunnels, *config.transport.tcp().expect("TCP")).into();
        config.switch.buffer = BufferConfig::Trimming(Trimming::default());
        config.nic.ack_class = Trimming::default().header_class;
    };
    for minutes in [1, 35, 36, 50, 71, 72, 110] {
        for (name, tcp) in [("tcp", base), ("mptcp", multipath(4)), ("fin", TcpConfig { fin: true, ..base })] {
            for (tunnels, both) in [(false, false), (false, true), (true, true)] {
                if tunnels && (name != "tcp" || minutes > 50) {
                    continue;
                }
                let outage = LinkFailure {
                    link: "h0:s0".parse().expect("a valid link selector"),
                    at: Duration::from_us(300),
                    until: Some(Duration::from_ms(minutes * 60_000)),
                };
                let scene = speaking(Scene::new(star(&[link(100, 1_000); 2]), Series::Irn), tcp);
                let scene = scene.flow(0, 1, 10_000_000, Duration::ZERO).with(|config| config.failures.push(outage));
                let scene = if both { scene.flow(1, 0, 10_000_000, Duration::ZERO) } else { scene };
                // A timeout is a minute at most.
                let end = Duration::from_ms((minutes + 2) * 60_000);
                let scene = scene.with(|config| config.stop.time = Some(end));
                let outcome = if tunnels { scene.with(tunnelled) } else { scene }.finish();
                let least = Instant::ZERO + Duration::from_ms(minutes * 60_000);
                assert!(outcome.finish(0) > least, "{name}: the outage is in the midst of it");
                let record = &outcome.record;
                let (data, acks) = (record.data_sent, record.acks_sent);
                // Tunnels retransmit all the time.
                assert!(
                    tunnels || data + acks < 50_000,
                    "{name}, {minutes} min: {data} segments, {acks} acknowledgements"
                );
            }
        }
    }
}
