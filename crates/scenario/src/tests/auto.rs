//! Tests of the values of "auto", except for windows and timeouts.

use std::sync::Arc;

use selvedge_sim::config::{BufferConfig, TransportConfig};
use selvedge_sim::topology::{FatTree, LinkConfig};
use selvedge_sim::workload::{Poisson, Sizes};
use selvedge_sim::{SimConfig, Simulation};
use selvedge_transport::CongestionConfig;
use selvedge_transport::recovery::RecoveryConfig;
use selvedge_transport::recovery::go_back_n::Acks;
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::{BASE, NO_SWITCH, extended, plan, with_sets};
use crate::{BUILT_IN, Changes, Plan};

#[test]
fn the_default_case_resolves_to_the_papers_numbers() {
    let plan = Plan::built_in(&Changes::default()).expect("the built-in study is valid");
    assert_eq!(plan.seeds, [1, 2, 3, 4, 5]);
    assert_eq!(plan.points().count(), 20);
    assert_eq!(plan.warnings, [""; 0]);
    let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["irn", "irn+pfc", "roce-baseline+pfc", "roce-baseline"]);
    assert_eq!(plan.in_one_line(), "54 hosts, fat-tree k = 6, 40 Gb/s, poisson at 70 % load");

    for series in &plan.series {
        let network = &series.network;
        assert_eq!(network.base_rtt(), Duration::from_us(24), "6 links of 2 us, both ways");
        assert_eq!(network.bdp().bytes, Bytes::from_kb(120));
        let BufferConfig::InputQueued(buffer) = series.scenario.switch.buffer else {
            panic!("expected input-queued buffers")
        };
        assert_eq!(buffer.per_port, Setting::Value(Bytes::from_kb(240)));
        // 20 KB of link, three frames of 1106 B, a pause frame of 84 B.
        assert_eq!(series.scenario.switch.pfc.headroom, Setting::Value(Bytes::new(20_000 + 3 * 1_106 + 84)));
        assert_eq!(series.scenario.switch.pfc.xon_gap, Setting::Value(Bytes::new(2 * 1_106)));
        assert_eq!(series.flows, Some(12_500));
    }

    // 24 us and six inputs of 240 KB at 40 Gb/s.
    let rto_high = Duration::from_us(312);
    let recovery = |index: usize| plan.series[index].scenario.transport.rdma().expect("queue pairs").recovery;
    let RecoveryConfig::Irn(irn) = recovery(0) else { panic!("expected IRN") };
    assert_eq!(irn.rto_high, Setting::Value(rto_high));
    assert_eq!(irn.bdp_cap, Setting::Value(111), "120,000 B in frames of 1086 B, rounded up");
    let RecoveryConfig::GoBackN(with_pfc) = recovery(2) else { panic!("expected go-back-N") };
    assert_eq!((with_pfc.rto, with_pfc.acks), (Setting::Off, Acks::None));
    let RecoveryConfig::GoBackN(without) = recovery(3) else { panic!("expected go-back-N") };
    assert_eq!((without.rto, without.acks), (Setting::Value(rto_high), Acks::PerPacket));
}

#[test]
fn the_resolved_scenario_resolves_to_itself() {
    let irn_and_more = format!(
        "stop = {{ time = '1ms' }}\n{BASE}\
         [[loss]]\nlink = 'all'\nmodel.random.rate = '0.1%'\n\
         [[failures]]\nlink = 'core0'\nat = '100us'\n\
         [[series]]\npreset = 'irn'\n\
         [[series]]\nname = 'leaf'\nset.loss = []\n\
         set.topology = {{ leaf-spine = {{ leaves = 2, spines = 2, hosts-per-leaf = 2, \
         host-link = {{ rate = '10Gbps', delay = '1us' }}, spine-link = {{ rate = '40Gbps', delay = '1us' }} }} }}\n\
         set.failures = []\n"
    );
    for text in [BUILT_IN, &irn_and_more] {
        let once = plan(text, &Changes::default()).expect("the scenario is valid");
        let written = once.to_toml();
        let twice = plan(&written, &Changes::default()).expect("a valid resolved scenario");
        assert_eq!(twice.to_toml(), written);
        assert_eq!(twice.fingerprint(), once.fingerprint());
        for (a, b) in once.series.iter().zip(&twice.series) {
            assert_eq!((&a.name, &a.scenario.transport), (&b.name, &b.scenario.transport));
            assert_eq!((&a.scenario.switch, &a.scenario.loss), (&b.scenario.switch, &b.scenario.loss));
            assert_eq!(a.scenario.topology, b.scenario.topology);
        }
    }
}

#[test]
fn each_host_has_what_fits_its_link() {
    let text = r#"title = "unlike"
stop = { flows = 10 }
[topology.explicit]
hosts = ["slow", "fast", "other"]
switches = ["s"]
links = [
    { between = ["slow", "s"], rate = "25Gbps", delay = "2us" },
    { between = ["fast", "s"], rate = "100Gbps", delay = "2us" },
    { between = ["other", "s"], rate = "100Gbps", delay = "2us" },
]
[workload.poisson]
load = 0.1
sizes = "cdf:web-search"
"#;
    let all = "irn,irn+hpcc,irn+swift,roce+dcqcn,roce+timely,melo+aimd,netrt,tcp,tcp+dctcp,mptcp,ndp,eqds,tcp+eqds";
    let once = plan(text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("the scenario is valid");
    let irn = &once.series[0];
    assert_eq!((irn.network.line_rate(), irn.network.bdp().bytes), (Rate::from_gbps(100), Bytes::from_kb(100)));
    // 100 KB and 25 KB of 1,086 bytes each, and the gap.
    let cap = |transport: &TransportConfig| match transport.rdma().expect("queue pairs").recovery {
        RecoveryConfig::Irn(irn) => irn.bdp_cap,
        other => panic!("{}", other.name()),
    };
    assert_eq!(cap(&irn.transport), Setting::Value(93));
    let [(rate, slow)] = &irn.transports[..] else { panic!("{:?}", irn.transports) };
    assert_eq!((*rate, cap(slow)), (Rate::from_gbps(25), Setting::Value(24)));
    assert_eq!(cap(&irn.scenario.transport), Setting::Auto);
    // A written value holds for all hosts.
    let said = plan(text, &with_sets(&["transport.recovery.irn.bdp-cap=50"])).expect("the scenario is valid");
    assert_eq!((cap(&said.series[0].transport), said.series[0].transports.len()), (Setting::Value(50), 0));

    let twice = plan(&once.to_toml(), &Changes::default()).expect("a valid resolved scenario");
    assert_eq!(twice.to_toml(), once.to_toml());
    for (a, b) in once.series.iter().zip(&twice.series) {
        assert_eq!((&a.name, a.transport, &a.transports), (&b.name, b.transport, &b.transports));
        assert_eq!(a.digest(), b.digest());
    }
}

#[test]
fn dctcp_marks_at_four_fifths_of_the_product_of_the_link_that_marks() {
    let text = "title = 'test'\n[topology.dumbbell]\nleft = 1\nright = 1\n\
        host-link = { rate = '100Gbps', delay = '10us' }\nbottleneck = { rate = '10Gbps', delay = '10us' }\n\
        [workload.closed-loop]\nclients = ['h0']\nservers = ['h1']\nflows-per-client = 1\nsizes = { fixed = '1MB' }\n";
    for series in ["irn+dctcp", "tcp+dctcp"] {
        let plan =
            plan(text, &Changes { series: Some(series.into()), ..Changes::default() }).expect("the scenario is valid");
        let ecn = &plan.series[0].scenario.switch.ecn;
        let (k, rate) = (ecn.k_min.resolve(|| None).unwrap(), ecn.at_rate.resolve(|| None).unwrap());
        // 60 us and some serialisation at 10 Gb/s, 75 KB and more: four fifths.
        let at_bottleneck = k.get() as f64 * 10e9 / rate.as_bps() as f64;
        assert!((60_000.0..64_500.0).contains(&at_bottleneck), "{series}: {at_bottleneck} B");
    }
}

/// Checks hosts back to back whose link holds a frame and a bit: T is the round trip, plus the time of one more frame.
#[test]
fn telemetry_is_counted_once_where_paths_hold_few_frames() {
    let text = NO_SWITCH.replace("100ms", "100ns");
    let plan =
        plan(&text, &Changes { series: Some("irn+hpcc".into()), ..Changes::default() }).expect("the scenario is valid");
    let CongestionConfig::Hpcc(hpcc) = plan.series[0].transport.rdma().expect("queue pairs").congestion else {
        panic!("expected HPCC")
    };
    let Setting::Value(base_rtt) = hpcc.base_rtt else { panic!("base-rtt is not resolved") };
    // A frame there, its answer, and a frame; each with 42 bytes of telemetry and a gap of 20.
    let rate = Rate::from_gbps(1);
    let [frame, answer] = [1_024 + 62 + 42 + 20, 62 + 4 + 42 + 20].map(|size| rate.time_for(Bytes::new(size)));
    let expected = Duration::from_ns(200) + frame * 2 + answer;
    assert!(base_rtt.as_ps().abs_diff(expected.as_ps()) < frame.as_ps() / 20, "{base_rtt}: {expected}");
}

#[test]
fn buffers_of_long_fast_links_last_while_a_pause_is_lifted() {
    // Two bandwidth-delay products at 25 Gb/s are 70 KB; a round trip of the link at 100 Gb/s carries 125 KB.
    let text = "title = 't'\n[topology.chain]\nswitches = 2\nhosts-per-end = 2\nhost-link = { rate = '25Gbps', delay = \
                '600ns' }\nswitch-link = { rate = '100Gbps', delay = '5us' }\n[workload.permutation]\nsize = '1MB'\n";
    let plan = plan(text, &Changes::default()).expect("the scenario is valid");
    let BufferConfig::InputQueued(buffer) = plan.series[0].scenario.switch.buffer else {
        panic!("expected input-queued buffers")
    };
    let (headroom, xon_gap) = (125_000 + 3 * 1_106 + 84, 2 * 1_106);
    assert_eq!(buffer.per_port, Setting::Value(Bytes::new(2 * headroom + xon_gap)));
}

#[test]
fn where_no_switch_can_pause_pfc_needs_no_headroom() {
    let changes = Changes { series: Some("roce+pfc,irn+pfc".into()), ..Changes::default() };
    let plan = plan(NO_SWITCH, &changes).expect("nothing needs headroom");
    assert_eq!(plan.warnings, [""; 0]);
}

#[test]
fn tunnels_between_slow_hosts_need_no_more_than_these_can_send() {
    let warnings = |far: &str| {
        let text = format!(
            "title = 'test'\nstop = {{ flows = 10 }}\n[topology.explicit]\nhosts = ['a', 'b', 'c', 'd']\nswitches = ['s']\nlinks = [\n\
             {{ between = ['a', 's'], rate = '400Gbps', delay = '1us' }}, {{ between = ['b', 's'], rate = '400Gbps', delay = '1us' }},\n\
             {{ between = ['c', 's'], rate = '{far}', delay = '50us' }}, {{ between = ['d', 's'], rate = '{far}', delay = '50us' }}]\n\
             [workload.poisson]\nload = 0.01\nsizes = 'cdf:irn-heavy-tailed'\n",
        );
        let changes = Changes { series: Some("eqds".into()), ..Changes::default() };
        plan(&text, &changes).expect("the scenario is valid").warnings
    };
    assert_eq!(warnings("10Gbps"), [""; 0]);
    let [fast] = &warnings("400Gbps")[..] else { panic!("expected one warning") };
    assert!(fast.contains("transport.eqds.reorder") && fast.contains("a path holds up to 9"), "{fast}");
}

#[test]
fn tcp_beside_rdma_keeps_its_tunnels() {
    let eqif_of = |more: &str| {
        let text = extended(&format!("[transport.eqds.eqif.tcp]\nlimit = 2\n{more}[[series]]\npreset = 'roce+eqds'\n"));
        let plan = plan(&text, &Changes::default()).expect("the scenario is valid");
        let tunnels = plan.series[0].scenario.transport.tunnels().copied().expect("tunnels");
        tunnels.eqif.tcp.map(|eqif| eqif.limit())
    };
    assert_eq!(eqif_of("[beside]\nworkloads = ['poisson']\n"), Some(2));
    // Without TCP, there is no such tunnel.
    assert_eq!(eqif_of(""), None);
}

#[test]
fn sampling_fits_the_time_that_flows_start_over() {
    let sample = |text: &str| plan(text, &Changes::default()).expect("the scenario is valid").series[0].scenario.sample;
    let with_stop = |stop: &str| format!("stop = {{ {stop} }}\n{BASE}");
    assert_eq!(sample(&with_stop("flows = 100")), Setting::Value(Duration::from_us(48)), "two round trips");
    assert_eq!(sample(&with_stop("time = '1s'")), Setting::Value(Duration::from_us(500)), "2,000 times");
    assert_eq!(sample(&format!("sample = '7us'\n{}", with_stop("flows = 9"))), Setting::Value(Duration::from_us(7)));
    assert_eq!(sample(&format!("sample = 'off'\n{}", with_stop("flows = 9"))), Setting::Off);
}

#[test]
fn a_scenario_that_says_nothing_is_a_simulation_that_is_told_nothing() {
    let text = "title = 'nothing'\nstop = { flows = 100 }\n\
        topology.fat-tree = { k = 4, link = { rate = '40Gbps', delay = '2us' } }\n\
        workload.poisson = { load = 0.5, sizes = { fixed = '10KB' } }\n";
    let plan = plan(text, &Changes::default()).unwrap();
    let Some(point) = plan.points().next() else { panic!("a plan has a run") };
    let by_file = plan.config(point);

    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };
    let sizes = Sizes::Fixed(Bytes::from_kb(10));
    let builder =
        Simulation::builder(FatTree { k: 4, link }).workload(Poisson::of("0.5".parse().expect("a load"), sizes));
    let simulation = builder.stop_after_flows(100).build().expect("a simulation");
    let by_builder = simulation.config();

    // Paths hold what was computed so far, which differs.
    assert_eq!(by_file.paths.graph(), by_builder.paths.graph());
    let rest = |config: &SimConfig| format!("{:?}", SimConfig { paths: Arc::clone(&by_file.paths), ..config.clone() });
    assert_eq!(rest(&by_file), rest(by_builder));
}
