//! Tests of the values of "auto" for windows, timeouts and buffers.

use selvedge_sim::config::{BufferConfig, TransportConfig};
use selvedge_transport::CongestionConfig;
use selvedge_transport::endpoint::EndpointConfig;
use selvedge_transport::recovery::RecoveryConfig;
use selvedge_transport::recovery::irn::Rto;
use selvedge_units::{Bytes, Duration, HostId, Rate, Setting};

use super::{BASE, NO_SWITCH, extended, plan, with_sets};
use crate::Changes;

#[test]
fn irn_with_go_back_n_keeps_irns_timeouts() {
    let one_switch = r#"title = "small"
[topology.explicit]
hosts = ["a", "b"]
switches = ["s"]
links = [
    { between = ["a", "s"], rate = "100Gbps", delay = "1us" },
    { between = ["s", "b"], rate = "100Gbps", delay = "1us" },
]
[workload.incast]
senders = ["a"]
receiver = "b"
size = "100KB"
"#;
    let timeouts = |text: &str, modifier: &str| {
        let series = Some(format!("irn{modifier},irn+go-back-n{modifier}"));
        let plan = plan(text, &Changes { series, ..with_sets(&["measure.middle=1"]) }).expect("the scenario is valid");
        let [irn, go_back_n] = [0, 1].map(|at| plan.series[at].transport.rdma().expect("queue pairs").recovery);
        let (RecoveryConfig::Irn(irn), RecoveryConfig::GoBackN(other)) = (irn, go_back_n) else { panic!("{text}") };
        assert_eq!(irn.rto_low_packets, other.rto_low_packets);
        ([irn.rto_low, irn.rto_high], [other.rto_low, other.rto])
    };
    let (irn, go_back_n) = timeouts(&extended("").replace("k = 4", "k = 6"), "");
    assert_eq!(go_back_n, irn);
    assert_eq!(irn[0], Setting::Value(Duration::from_us(100)), "the paper's");
    let (irn, go_back_n) = timeouts(one_switch, "");
    assert_eq!(go_back_n, irn);
    let Setting::Value(low) = irn[0] else { panic!("expected a timeout") };
    assert!(low < Duration::from_us(100) && irn[0] == irn[1], "{irn:?}");
    let (irn, go_back_n) = timeouts(&one_switch.replace("1us", "100us"), "");
    assert_eq!(go_back_n, irn);
    let Setting::Value(low) = irn[0] else { panic!("expected a timeout") };
    assert!(low > Duration::from_us(600) && irn[0] != irn[1], "half more than a round trip: {irn:?}");
    let (_, go_back_n) = timeouts(one_switch, "+pfc");
    assert_eq!(go_back_n, [Setting::Off; 2]);
}

#[test]
fn windows_and_buffers_go_by_the_slowest_link_of_a_path() {
    let planned = |left| {
        let text = format!(
            r#"title = "a slow link in the middle"
stop = {{ flows = 10 }}
[topology.dumbbell]
left = {left}
right = 1
host-link = {{ rate = "100Gbps", delay = "1us" }}
bottleneck = {{ rate = "1Gbps", delay = "10us" }}
[workload.permutation]
size = "1MB"
"#
        );
        let plan =
            plan(&text, &Changes { series: Some("irn".into()), ..Changes::default() }).expect("the scenario is valid");
        let series = &plan.series[0];
        let RecoveryConfig::Irn(irn) = series.transport.rdma().expect("queue pairs").recovery else {
            panic!("expected IRN")
        };
        let BufferConfig::InputQueued(selvedge_sim::config::InputQueued { per_port: Setting::Value(room), .. }) =
            series.scenario.switch.buffer
        else {
            panic!("expected input-queued buffers")
        };
        (series.network.bdp().bytes, irn.bdp_cap, room)
    };
    // 24 us, and three packets of 1,106 bytes and their answers on links one of which takes 8.8 us for it.
    let (bdp, cap, room) = planned(1);
    assert_eq!((bdp, cap), (Bytes::new(3_000), Setting::Value(4)));
    assert!(room < Bytes::from_kb(100), "what PFC needs: {room}");
    // Neighbours have 100 Gb/s x 4 us.
    let (bdp, cap, room) = planned(2);
    assert_eq!((bdp, room), (Bytes::from_kb(50), Bytes::from_kb(100)));
    assert_eq!(cap, Setting::Value(47), "50 KB of 1,086 bytes each");
}

/// Checks parallel paths: the slower one has the longer round trip, and the faster one the longer propagation.
#[test]
fn timeouts_and_windows_go_by_the_worst_of_parallel_ways() {
    let planned = |slow: &str| {
        let text = format!(
            r#"title = "parallel"
stop = {{ flows = 10 }}
[topology.explicit]
hosts = ["a", "b"]
switches = ["left", "x", "y", "right"]
links = [
    {{ between = ["a", "left"], rate = "10Gbps", delay = "1us" }},
    {{ between = ["left", "x"], rate = "10Gbps", delay = "2us" }},
    {{ between = ["left", "y"], rate = "{slow}", delay = "1us" }},
    {{ between = ["x", "right"], rate = "10Gbps", delay = "1us" }},
    {{ between = ["y", "right"], rate = "10Gbps", delay = "1us" }},
    {{ between = ["right", "b"], rate = "10Gbps", delay = "1us" }},
]
[workload.permutation]
size = "1MB"
"#
        );
        let plan =
            plan(&text, &Changes { series: Some("irn".into()), ..Changes::default() }).expect("the scenario is valid");
        let RecoveryConfig::Irn(irn) = plan.series[0].transport.rdma().expect("queue pairs").recovery else {
            panic!("expected IRN")
        };
        let value = |setting: Setting<Duration>| setting.resolve(|| None).expect("a resolved timeout");
        (value(irn.rto_low), value(irn.rto_high), irn.bdp_cap)
    };
    let (low, high, cap) = planned("10Gbps");
    assert_eq!((low, cap), (high, Setting::Value(16)));
    // 1,106 bytes and their answer of 84 take 952 us at 10 Mb/s: half more.
    let (slow_low, slow_high, slow_cap) = planned("10Mbps");
    assert!(slow_low > Duration::from_us(1_428) && slow_low < Duration::from_us(1_500), "{slow_low}");
    assert!(slow_high > high && slow_high > slow_low, "{slow_high}");
    // The faster path there, and 67 us back on the slower one, hold 93 packets; the slower one both ways holds two.
    assert_eq!(slow_cap, Setting::Value(93));
}

#[test]
fn windows_and_timeouts_do_not_depend_on_the_order_of_hosts() {
    let planned = |hosts: &str| {
        let text = format!(
            r#"title = "orders"
stop = {{ flows = 10 }}
[topology.explicit]
hosts = [{hosts}]
switches = ["s"]
links = [
    {{ between = ["a", "s"], rate = "100Gbps", delay = "1us" }},
    {{ between = ["b", "s"], rate = "100Gbps", delay = "1us" }},
    {{ between = ["c", "s"], rate = "1Gbps", delay = "1us" }},
]
[workload.poisson]
load = 0.001
sizes = "cdf:web-search"
"#
        );
        let all = "irn,irn+hpcc,irn+swift,roce+dcqcn,melo+aimd,tcp,tcp+dctcp,ndp,eqds";
        plan(&text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("the scenario is valid")
    };
    let [first, last] = ["'c', 'a', 'b'", "'a', 'b', 'c'"].map(planned);
    for (first, last) in first.series.iter().zip(&last.series) {
        assert_eq!((first.transport, &first.transports), (last.transport, &last.transports), "{}", first.name);
    }
    let irn = &last.series[0];
    let cap = |transport: &TransportConfig| match transport.rdma().expect("queue pairs").recovery {
        RecoveryConfig::Irn(irn) => irn.bdp_cap,
        other => panic!("{}", other.name()),
    };
    // The slow host's window covers its own round trip, 13.6 us, of which propagation is 4; the fast hosts' window does
    // not depend on it.
    assert_eq!(cap(&irn.transports[0].1), Setting::Value(2));
    assert_eq!(cap(&irn.transport), Setting::Value(47));
}

#[test]
fn a_lone_segment_is_acknowledged_before_any_senders_timeout() {
    let text = |slow: &str, delay: &str| {
        format!(
            r#"title = "hosts that differ"
[topology.explicit]
hosts = ["a", "b", "c"]
switches = ["s"]
links = [
    {{ between = ["a", "s"], rate = "400Gbps", delay = "{delay}" }},
    {{ between = ["b", "s"], rate = "50Gbps", delay = "1us" }},
    {{ between = ["c", "s"], rate = "{slow}", delay = "1us" }},
]
[workload.incast]
senders = ["a"]
receiver = "b"
size = "100KB"
[switch.buffer.input-queued]
per-port = "60KB"
[beside]
workloads = ["incast"]
"#
        )
    };
    let all = [("10Gbps", "50us"), ("10Mbps", "1us"), ("400Gbps", "50us")];
    for (slow, delay) in all {
        let series = Some("tcp,mptcp,tcp+eqds,irn".to_owned());
        let sets = ["transport.eqds.burst=false", "measure.middle=1"].map(str::to_owned).to_vec();
        let plan =
            plan(&text(slow, delay), &Changes { series, sets, ..Changes::default() }).expect("the scenario is valid");
        for series in &plan.series {
            let network = &series.network;
            let beside = series.scenario.beside.as_ref().map(|beside| (network.slowest_line_rate(), beside.tcp));
            let own = [(network.line_rate(), series.transport)].into_iter().chain(series.transports.iter().copied());
            let stacks = own.filter_map(|(rate, transport)| Some((rate, *transport.tcp()?)));
            let stacks: Vec<_> =
                if series.transport.tcp().copied().is_some() { stacks.collect() } else { Vec::from_iter(beside) };
            let value = |setting: Setting<Duration>| setting.resolve(|| None).expect("a resolved setting");
            let delay = stacks.iter().map(|(_, tcp)| value(tcp.delayed_ack)).max().expect("TCP");
            // Through tunnels that do not burst, both wait for credit.
            let trips = if series.transport.tunnels().copied().is_some() { 3 } else { 1 };
            for (rate, tcp) in stacks {
                let [packet, answer] = [1_000 + 78 + 20, 78 + 20].map(Bytes::new);
                let rtt = network.longest_rtt_from(rate, packet, answer) * trips;
                let name = &series.name;
                assert!(rtt + delay < value(tcp.min_rto), "{name}, {slow}, {delay}: {rate}: {rtt} and {delay}");
            }
        }
    }
}

#[test]
fn timeouts_shorter_than_the_round_trip_are_warned_about() {
    let warnings = |series: &str, sets: &[&str]| {
        let sets = sets.iter().map(|&set| set.to_owned()).collect();
        let changes = Changes { series: Some(series.into()), sets, ..Changes::default() };
        plan(NO_SWITCH, &changes).expect("the scenario is valid").warnings
    };
    assert_eq!(warnings("irn,irn+pfc,roce,tcp", &[]), [""; 0], "\"auto\" knows better");
    let [warning] = &warnings("irn", &["transport.recovery.irn.rto-low=100us"])[..] else {
        panic!("expected one warning")
    };
    let text = "transport.recovery.irn.rto-low: 100us is less than the longest round trip of the empty network, 200009.536us: what";
    assert!(warning.contains(text), "{warning}");
    assert_eq!(warnings("irn", &["transport.recovery.irn.rto-low=201ms"]), [""; 0]);
    let [warning] = &warnings("roce", &["transport.recovery.go-back-n.rto=1ms"])[..] else {
        panic!("expected one warning")
    };
    assert!(warning.contains("rto: 1ms is less than"), "{warning}");
}

#[test]
fn windows_of_short_links_count_serialisation() {
    // The paper's case: 120 KB of propagation. An idle path holds 115 packets: 12 x 2 us, 6 packets of 221.2 ns, 6
    // answers.
    let paper = BASE.replace("k = 4", "k = 6");
    let short = paper.replace("2us", "100ns");
    let round_trip = Duration::from_ns(12 * 100 + 6 * 221);
    let behind_tunnels = 3;
    for (text, series, expected) in [
        (&paper, "irn", 111),
        (&short, "irn", Rate::from_gbps(40).amount_in(round_trip).get() / 1_106 + 1),
        (&paper, "irn+eqds", behind_tunnels * 120_000 / 1_086 + 1),
        // Frames are 16 B longer, with HPCC another 42.
        (&paper, "irn+overheads", 120_000 / 1_102 + 1),
        (&paper, "irn+overheads+hpcc", 120_000 / 1_144 + 1),
    ] {
        let plan = plan(text, &Changes { series: Some(series.into()), ..with_sets(&["stop.flows=10"]) })
            .expect("the scenario is valid");
        let RecoveryConfig::Irn(irn) = plan.series[0].transport.rdma().expect("queue pairs").recovery else {
            panic!("{series}")
        };
        assert_eq!(irn.bdp_cap, Setting::Value(expected as u32), "{series}");
    }
}

/// Checks a receiver that is slower and farther away than all others.
#[test]
fn windows_and_targets_reach_slower_receivers() {
    let text = r#"title = "far"
stop = { flows = 10 }
[topology.explicit]
hosts = ["a", "b", "c"]
switches = ["s"]
links = [
    { between = ["a", "s"], rate = "40Gbps", delay = "1us" },
    { between = ["b", "s"], rate = "40Gbps", delay = "1us" },
    { between = ["c", "s"], rate = "25Gbps", delay = "100us" },
]
[workload.poisson]
load = 0.01
sizes = "cdf:web-search"
"#;
    let all = "irn+swift,irn+hpcc,irn+aimd,irn+dctcp,ndp,eqds";
    let plan = plan(text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("the scenario is valid");
    let value = |transport: &TransportConfig, key: &str| -> String {
        let table = toml::Table::try_from(transport).expect("a table").into();
        let found = key.split('.').fold(&table, |table: &toml::Value, key| &table[key]);
        found.as_str().map_or_else(|| found.to_string(), str::to_owned)
    };
    let (rtt, held) = (Duration::from_us(202), Rate::from_gbps(25).amount_in(Duration::from_us(202)));
    let bytes = |text: &str| text.parse::<Bytes>().expect("a size");
    let time = |text: &str| text.parse::<Duration>().expect("a time");
    for series in &plan.series {
        let transport = &series.transport;
        match &*series.name {
            "irn+swift" => {
                assert!(time(&value(transport, "congestion.swift.base-target")) > rtt);
                assert!(bytes(&value(transport, "congestion.swift.initial-window")) > held);
            }
            "irn+hpcc" => {
                // T is a time, independent of the receiver's rate.
                assert!(time(&value(transport, "congestion.hpcc.base-rtt")) > rtt);
            }
            "irn+aimd" => assert!(bytes(&value(transport, "congestion.aimd.window.initial")) > held),
            "irn+dctcp" => assert!(bytes(&value(transport, "congestion.dctcp.window.initial")) > held),
            "ndp" => {
                let packets: u64 = value(transport, "ndp.initial-window").parse().expect("a number");
                assert!(packets > held.pieces(Bytes::new(1_106)));
            }
            "eqds" => assert!(bytes(&value(transport, "eqds.window")) > held),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn timeouts_of_tcp_count_what_waits_in_eqifs() {
    let min_rto = |limit: &str| {
        let changes = Changes { series: Some("tcp+eqds".into()), ..with_sets(&[limit]) };
        let plan = plan(&extended(""), &changes).expect("a valid scenario");
        let tcp = plan.series[0].transport.tcp().copied().expect("a TCP transport");
        tcp.min_rto.resolve(|| None).expect("a resolved timeout")
    };
    let of = |limit: u32| min_rto(&format!("transport.eqds.eqif.tcp.limit={limit}"));
    // Packets of 1094 B at 40 Gb/s, in each of as many EQIFs as a switch of k = 4 has links.
    assert_eq!(of(101) - of(1), Duration::from_ps(100 * 4 * 1_094 * 200));
}

#[test]
fn timeouts_have_an_end_where_buffers_have_none() {
    let rto_high = |series: &str, sets: &[&str]| {
        let plan =
            plan(&extended(""), &Changes { series: Some(series.into()), ..with_sets(sets) }).expect("a valid scenario");
        match plan.series[0].transport.rdma().expect("queue pairs").recovery {
            RecoveryConfig::Irn(irn) => irn.rto_high.resolve(|| None).expect("a time"),
            _ => panic!("expected IRN"),
        }
    };
    // 64 MB at 40 Gb/s, and the empty network's round trip.
    let endless = rto_high("irn", &["switch.buffer.input-queued.per-port='off'"]);
    assert_eq!(endless, Duration::from_us(12_800 + 24));
    assert_eq!(rto_high("irn", &["switch.buffer.fair-queued.per-port='off'"]), endless);
}

#[test]
fn timeouts_are_longer_than_the_round_trip_where_nothing_waits_in_switches() {
    let changes = Changes { series: Some("irn,roce,melo".into()), ..Changes::default() };
    let plan = plan(NO_SWITCH, &changes).expect("a valid scenario");
    for series in &plan.series {
        let rto = match series.transport.rdma().expect("queue pairs").recovery {
            RecoveryConfig::Irn(irn) => irn.rto_high,
            RecoveryConfig::GoBackN(go_back_n) => go_back_n.rto,
            RecoveryConfig::Melo(melo) => melo.rto,
        };
        // Two frames of 1106 B, for the answer waits behind one, and an acknowledgement of 86 B.
        let frames = Duration::from_ns(8 * (2 * 1_106 + 86));
        assert_eq!(rto, Setting::Value(Duration::from_ms(200) + frames), "{}", series.name);
    }
}

#[test]
fn a_dynamic_timeout_begins_within_its_own_limits() {
    let rto_high = |value: &str| format!("transport.recovery.irn.rto-high={value}");
    let with = |high: &str| {
        let changes =
            Changes { series: Some("irn+dynamic-rto".into()), sets: vec![rto_high(high)], ..Changes::default() };
        let planned = plan(&extended(""), &changes).expect("the scenario is valid");
        let RecoveryConfig::Irn(irn) = planned.series[0].transport.rdma().expect("queue pairs").recovery else {
            panic!("expected IRN")
        };
        let Rto::Dynamic(dynamic) = irn.rto else { panic!("expected a dynamic RTO") };
        (dynamic.initial, dynamic.max)
    };
    let ms = |ms: u64| Duration::from_us(ms * 1_000);
    assert_eq!(with("5ms"), (Setting::Value(ms(5)), ms(10)));
    assert_eq!(with("20ms"), (Setting::Value(ms(10)), ms(10)));
}

/// Scenario of two racks 100 us apart, each with hosts that are 1 us from their switch.
const FAR_APART: &str = r#"title = "far apart"
stop = { flows = 10 }
[topology.explicit]
hosts = ["a", "b", "far", "slow"]
switches = ["here", "there"]
links = [
    { between = ["a", "here"], rate = "100Gbps", delay = "1us" },
    { between = ["b", "here"], rate = "100Gbps", delay = "1us" },
    { between = ["here", "there"], rate = "100Gbps", delay = "100us" },
    { between = ["far", "there"], rate = "100Gbps", delay = "1us" },
    { between = ["slow", "there"], rate = "10Gbps", delay = "1us" },
]
[workload.poisson]
load = 0.001
sizes = "cdf:web-search"
"#;

/// Returns the transport of flows from one host to another.
fn between(series: &crate::PlannedSeries, src: u32, dst: u32) -> TransportConfig {
    let paths = series.network.paths();
    let class = paths.class_of(HostId(src), HostId(dst)).expect("a path between the hosts");
    let of_paths = &series.path_transports;
    let of_host = || {
        let rate = paths.host_rate(HostId(src));
        series.transports.iter().find(|(of, _)| *of == rate).map_or(series.transport, |(_, own)| *own)
    };
    of_paths.by_class.get(class).map_or_else(of_host, |&number| of_paths.distinct[number as usize])
}

#[test]
fn neighbours_know_nothing_of_a_long_link_elsewhere() {
    let planned = |sets: &[&str], series: &str| {
        let changes = Changes { series: Some(series.into()), ..with_sets(sets) };
        plan(FAR_APART, &changes).expect("the scenario is valid").series.remove(0)
    };
    let cap = |transport: TransportConfig| match transport.rdma().expect("queue pairs").recovery {
        RecoveryConfig::Irn(irn) => irn.bdp_cap.resolve(|| None).expect("a cap"),
        other => panic!("{}", other.name()),
    };
    let irn = planned(&[], "irn");
    // 100 Gb/s x 4 us in frames of 1,086 bytes, and x 204 us; to the slow host, with what serialisation adds.
    let [near, far, slow] = [(0, 1), (0, 2), (0, 3)].map(|(src, dst)| cap(between(&irn, src, dst)));
    assert_eq!((near, far), (47, 2_349));
    assert!((230..260).contains(&slow), "10 Gb/s x 204 us: {slow}");
    assert_eq!(cap(between(&irn, 2, 0)), far, "the way back is alike");
    // One static configuration for each NIC.
    let irn = planned(&["auto='longest-path'"], "irn");
    assert_eq!([(0, 1), (0, 2), (0, 3)].map(|(src, dst)| cap(between(&irn, src, dst))), [2_349; 3]);
    let hpcc = planned(&[], "irn+hpcc");
    let base_rtt = |transport: TransportConfig| match transport.rdma().expect("queue pairs").congestion {
        CongestionConfig::Hpcc(hpcc) => hpcc.base_rtt.resolve(|| None).expect("a time"),
        other => panic!("{}", other.name()),
    };
    let [near, far] = [(0, 1), (0, 2)].map(|(src, dst)| base_rtt(between(&hpcc, src, dst)));
    assert!(near > Duration::from_us(4) && near < Duration::from_us(5), "{near}");
    assert!(far > Duration::from_us(204) && far < Duration::from_us(205), "{far}");
    let tcp = planned(&[], "tcp");
    let [near, far] = [(0, 1), (0, 2)].map(|(src, dst)| *between(&tcp, src, dst).tcp().expect("TCP"));
    assert_eq!(near.receive_buffer, Setting::Value(Bytes::from_kb(400)));
    assert_eq!(far.receive_buffer, Setting::Value(Bytes::from_kb(8 * 2_550)));
    let ndp = planned(&[], "ndp");
    let window = |transport: TransportConfig| {
        let Some(EndpointConfig::Ndp(ndp)) = transport.messages() else { panic!("{transport:?}") };
        ndp.initial_window.resolve(|| None)
    };
    let [near, far] = [(0, 1), (0, 2)].map(|(src, dst)| window(between(&ndp, src, dst)).expect("a window"));
    assert!(near < 70 && far > 2_300, "{near} {far}");
}

#[test]
fn the_resolved_scenario_says_which_values_paths_have() {
    let text = |sets: &[&str]| {
        let changes = Changes { series: Some("irn".into()), ..with_sets(sets) };
        plan(FAR_APART, &changes).expect("the scenario is valid").to_toml()
    };
    let written = text(&[]);
    for expected in ["auto = \"per-path\"", "bdp-cap = \"auto\"", "# transport.recovery.irn.bdp-cap: 6 to 2349 (irn)"] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
    let again = plan(&written, &Changes::default()).expect("a valid resolved scenario");
    assert_eq!(again.to_toml(), written);
    let longest = text(&["auto='longest-path'"]);
    assert!(longest.contains("auto = \"longest-path\""), "{longest}");
}
