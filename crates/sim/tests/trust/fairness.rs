//! Fairness where all senders are alike: nothing but chance tells them apart.

use selvedge_sim::SimConfig;
use selvedge_sim::config::{BufferConfig, FairQueued, SharedBuffer, Trimming};
use selvedge_sim::topology::LinkConfig;
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::tcp::congestion::dctcp as dctcp_of_tcp;
use selvedge_units::{Bytes, Duration, Instant, PortId, Setting, Skew};

use crate::support::{Outcome, Scene, Series, link, star};

/// Returns Jain's index: 1 if all have equal shares, 1/n if one of n has everything.
fn index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / squares / shares.len() as f64
}

/// Returns a scene of senders with these links, which send to one host as fast as they can through a switch whose
/// buffer is full all the time.
fn crowd(links: &[LinkConfig], series: Series, alpha: f64) -> Scene {
    let senders = links.len() as u32;
    let mut all = links.to_vec();
    all.push(links[0]);
    let shared = SharedBuffer { total: Bytes::from_kb(1_000), egress_alpha: alpha, ..SharedBuffer::default() };
    let scene = Scene::new(star(&all), series).irn(|irn| irn.bdp_cap = Setting::Off);
    let scene = scene.with(|config| config.switch.buffer = BufferConfig::SharedBuffer(shared));
    (0..senders).fold(scene, |scene, src| scene.flow(src, senders, 5_200_000, Duration::ZERO))
}

/// Returns the rate of each sender, by its completion time.
fn rates(outcome: &Outcome, senders: u32) -> Vec<f64> {
    (0..senders).map(|id| 1.0 / outcome.flow(id.into()).fct().expect("the flow finished").as_us_f64()).collect()
}

/// Packets that arrive at a full buffer at the same time come in random order: no sender is ahead of another in the
/// long run. (If the lowest port came first, all its packets would find room, and its sender would have everything.)
#[test]
fn of_equal_senders_at_a_full_buffer_none_is_ahead() {
    for (senders, gbps) in [(2, 100), (3, 25), (4, 100), (4, 400), (8, 40)] {
        for (series, alpha, bytes) in
            [(Series::Irn, 8.0, 5_200_000), (Series::Irn, 1.0, 5_200_000), (Series::Roce, 8.0, 1_300_000)]
        {
            let links = vec![link(gbps, 1_000); senders as usize];
            let seeds = 8;
            let mut sums = vec![0.0; senders as usize];
            let mut firsts = vec![0; senders as usize];
            for seed in 1..=seeds {
                let mut scene = crowd(&links, series, alpha).with(|config| config.seed = seed);
                scene.list.flows.iter_mut().for_each(|flow| flow.size = Bytes::new(bytes));
                let rates = rates(&scene.finish(), senders);
                let first = (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).expect("there are senders");
                firsts[first] += 1;
                sums.iter_mut().zip(&rates).for_each(|(sum, rate)| *sum += rate);
            }
            // Over all seeds, no sender has a tenth more or less than the others; and none is always first, which has a
            // probability of one in 128 for two senders, and far less for more.
            let what = format!("{senders} at {gbps} Gb/s, {series:?}, alpha {alpha}: first {firsts:?}, {sums:?}");
            println!("{what} {}", index(&sums));
            assert!(index(&sums) > 0.98, "{what}");
            assert!(firsts.iter().all(|&first| first < seeds), "{what}");
        }
    }
}

#[test]
fn the_same_seed_breaks_ties_alike_and_another_one_does_not() {
    let run = |seed, partitions| {
        let scene = crowd(&[link(100, 1_000); 4], Series::Irn, 8.0).with(|config| config.seed = seed);
        scene.parallel(partitions, partitions).finish().record.fingerprint
    };
    assert_eq!(run(1, 1), run(1, 2));
    assert_ne!(run(1, 1), run(2, 1));
}

/// In any kind of buffer, of packets that arrive together none always comes first.
#[test]
fn ties_are_broken_alike_in_every_kind_of_buffer() {
    let trimming = BufferConfig::Trimming(Trimming::default());
    let fair =
        BufferConfig::FairQueued(FairQueued { per_port: Setting::Value(Bytes::from_kb(100)), ..FairQueued::default() });
    for buffer in [trimming, fair] {
        let mut sums = [0.0; 4];
        for seed in 1..=8 {
            let scene = crowd(&[link(100, 1_000); 4], Series::Irn, 1.0).with(|config| {
                config.seed = seed;
                config.switch.buffer = buffer;
            });
            let rates = rates(&scene.finish(), 4);
            sums.iter_mut().zip(&rates).for_each(|(sum, rate)| *sum += rate);
        }
        assert!(index(&sums) > 0.99, "{buffer:?}: {sums:?}");
    }
}

/// Two senders whose packets come at different times of each slot: as long as both send, the one whose packet comes
/// first when there is room again has all of it. Clocks that differ as much as IEEE 802.3 allows reverse that several
/// times a run.
#[test]
fn clocks_that_differ_take_turns_at_being_first() {
    let shares = |skew: Skew, ns: u64| {
        let mut sums = [0.0; 2];
        for seed in 1..=6 {
            let links = [link(100, 1_000), LinkConfig { delay: Duration::from_ns(ns), ..link(100, 1_000) }];
            let mut scene = crowd(&links, Series::Irn, 8.0).with(|config| {
                config.seed = seed;
                config.nic.clock_skew = skew;
            });
            scene.list.flows.iter_mut().for_each(|flow| flow.size = Bytes::new(40_000_000));
            let rates = rates(&scene.run_unchecked(), 2);
            sums.iter_mut().zip(&rates).for_each(|(sum, rate)| *sum += rate);
        }
        sums
    };
    for ns in [1_013, 1_030, 1_060] {
        let (locked, free) = (shares(Skew::ZERO, ns), shares(Skew::from_ppm(100), ns));
        // One sender is done when the other begins: the latter has half of the rate that it would have had alone.
        assert!(index(&locked) < 0.92, "{ns} ns: {locked:?}, so nothing is shown");
        assert!(index(&free) > 0.96, "{ns} ns: {free:?}");
    }
}

/// NICs with skewed clocks and jitter send no more than their links carry, and transmit all of their flows.
#[test]
fn clocks_and_jitter_lose_nothing_and_cost_what_they_say() {
    let fct = |change: &dyn Fn(&mut SimConfig)| {
        let scene = Scene::new(star(&[link(100, 1_000); 2]), Series::RocePfc).flow(0, 1, 10_000_000, Duration::ZERO);
        scene.with(change).run_unchecked().flow(0).fct().expect("the flow finished").as_us_f64()
    };
    let plain = fct(&|_| {});
    let off = |seed| {
        fct(&move |config: &mut SimConfig| {
            (config.seed, config.nic.clock_skew) = (seed, Skew::from_ppm(100));
        }) / plain
            - 1.0
    };
    let all: Vec<f64> = (1..=20).map(off).collect();
    // A sender that is fast waits for the receiver's link, whose other end is a switch.
    assert!(all.iter().all(|off| (-1e-6..101e-6).contains(off)), "{all:?}");
    assert!(all.iter().any(|&off| off > 80e-6) && all.iter().any(|&off| off < 1e-6), "{all:?}");
    // For one flow without a pause, only the first packet is late.
    let late = fct(&|config: &mut SimConfig| config.nic.jitter = Duration::from_us(2)) - plain;
    assert!((0.0..=2.0).contains(&late) && late > 0.0, "{late} us");
}

/// Returns the shares of two long flows, the second of which joins at 5 ms, in the last third of a run.
fn late_joiner(links: [LinkConfig; 2], series: &str, ms: u64, change: impl Fn(&mut SimConfig)) -> [f64; 2] {
    let [rate, delay] = [links[0].rate.as_bps() / 1_000_000_000, 1_000];
    let graph = star(&[links[0], links[1], link(rate, delay)]);
    let every = Duration::from_us(100);
    let scene = Scene::new(graph, Series::Irn).with(|config| {
        config.transport.rdma_mut().expect("queue pairs").congestion = DctcpConfig::default().into();
        if series == "tcp" {
            let tcp = TcpConfig { congestion: dctcp_of_tcp::Config::default().into(), ..TcpConfig::default() };
            config.transport = tcp.into();
        }
        config.stop.time = Some(Duration::from_ms(ms));
        config.sample = Some(every);
    });
    let scene = scene.flow(0, 2, 1_000_000_000_000, Duration::ZERO);
    let scene = scene.flow(1, 2, 1_000_000_000_000, Duration::from_ms(5)).with(change);
    let outcome = scene.run_unchecked();
    let from = Instant::ZERO + Duration::from_ms(ms) / 3 * 2;
    let busy = |host| {
        let rows = outcome.ports.iter().filter(|row| row.port == PortId(host) && row.time > from);
        let (busy, count) = rows.fold((0.0, 0), |(busy, n), row| (busy + row.busy.as_us_f64(), n + 1));
        busy / f64::from(count) / every.as_us_f64()
    };
    [busy(0), busy(1)]
}

/// DCTCP with its default K, at all rates and delays. Shares between 0.45 and 0.55 are an index above 0.99.
#[test]
fn a_flow_that_joins_late_gets_its_half_from_dctcp() {
    for (gbps, ns) in [
        (100, 1_000),
        (100, 1_300),
        (100, 1_305),
        (100, 1_310),
        (100, 1_330),
        (40, 1_000),
        (40, 1_040),
        (25, 1_000),
        (400, 1_000),
        (400, 1_111),
    ] {
        for series in ["irn", "tcp"] {
            let other = LinkConfig { delay: Duration::from_ns(ns), ..link(gbps, 1_000) };
            let shares = late_joiner([link(gbps, 1_000), other], series, 30, |_| {});
            let sum = shares[0] + shares[1];
            assert!(sum > 0.98, "{series} at {gbps} Gb/s, {ns} ns: {shares:?} leaves the link idle");
            assert!(index(&shares) > 0.99, "{series} at {gbps} Gb/s, {ns} ns: {shares:?}");
        }
    }
}

/// DCTCP with K at a seventh of the product (equation 13 of its paper): flows keep their positions in each round trip,
/// unless NICs take a little longer now and then.
#[test]
fn jitter_lets_flows_change_places_that_they_would_keep() {
    let k = |config: &mut SimConfig| {
        let dctcp = DctcpConfig { k: Setting::Value(Bytes::new(7_100)), ..DctcpConfig::default() };
        config.transport.rdma_mut().expect("queue pairs").congestion = dctcp.into();
    };
    let shares = |ns: u64, jitter: u64| {
        let other = LinkConfig { delay: Duration::from_ns(ns), ..link(100, 1_000) };
        late_joiner([link(100, 1_000), other], "irn", 60, |config| {
            k(config);
            config.nic.jitter = Duration::from_ns(jitter);
        })
    };
    for ns in [1_000, 1_300, 1_305] {
        let locked = shares(ns, 0);
        assert!(index(&locked) < 0.98, "{ns} ns: {locked:?}, so nothing is shown");
        // A frame takes 88 ns.
        for jitter in [100, 200, 500] {
            let free = shares(ns, jitter);
            assert!(index(&free) > 0.99, "{ns} ns, up to {jitter} ns late: {free:?}");
            assert!(free[0] + free[1] > 0.98, "{ns} ns, up to {jitter} ns late: {free:?} leaves the link idle");
        }
    }
}
