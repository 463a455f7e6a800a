//! What "auto" makes of windows, timeouts and buffers.

use super::*;

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
        let plan = plan(text, &Changes { series, ..with_sets(&["measure.middle=1"]) }).expect("a plan");
        let [irn, go_back_n] = [0, 1].map(|at| plan.series[at].transport.recovery);
        let (RecoveryConfig::Irn(irn), RecoveryConfig::GoBackN(other)) = (irn, go_back_n) else { panic!("{text}") };
        assert_eq!(irn.rto_low_packets, other.rto_low_packets);
        ([irn.rto_low, irn.rto_high], [other.rto_low, other.rto])
    };
    let (irn, go_back_n) = timeouts(&extended("").replace("k = 4", "k = 6"), "");
    assert_eq!(go_back_n, irn);
    assert_eq!(irn[0], Setting::Value(Duration::from_us(100)), "the paper's");
    let (irn, go_back_n) = timeouts(one_switch, "");
    assert_eq!(go_back_n, irn);
    let Setting::Value(low) = irn[0] else { panic!("there are timeouts") };
    assert!(low < Duration::from_us(100) && irn[0] == irn[1], "{irn:?}");
    let (irn, go_back_n) = timeouts(&one_switch.replace("1us", "100us"), "");
    assert_eq!(go_back_n, irn);
    let Setting::Value(low) = irn[0] else { panic!("there are timeouts") };
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
        let plan = plan(&text, &Changes { series: Some("irn".into()), ..Changes::default() }).expect("a plan");
        let series = &plan.series[0];
        let RecoveryConfig::Irn(irn) = series.transport.recovery else { panic!("irn") };
        let BufferConfig::InputQueued(selvedge_sim::config::InputQueued { per_port: Setting::Value(room), .. }) =
            series.scenario.switch.buffer
        else {
            panic!("a buffer at each input")
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

/// Of parallel ways, the slower one has the longer round trip, and the faster one the longer propagation.
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
        let plan = plan(&text, &Changes { series: Some("irn".into()), ..Changes::default() }).expect("a plan");
        let RecoveryConfig::Irn(irn) = plan.series[0].transport.recovery else { panic!("irn") };
        let value = |setting: Setting<Duration>| setting.resolve(|| None).expect("there are timeouts");
        (value(irn.rto_low), value(irn.rto_high), irn.bdp_cap)
    };
    let (low, high, cap) = planned("10Gbps");
    assert_eq!((low, cap), (high, Setting::Value(16)));
    // 1,106 bytes and their answer of 84 take 952 us at 10 Mb/s: half more.
    let (slow_low, slow_high, slow_cap) = planned("10Mbps");
    assert!(slow_low > Duration::from_us(1_428) && slow_low < Duration::from_us(1_500), "{slow_low}");
    assert!(slow_high > high && slow_high > slow_low, "{slow_high}");
    // The faster way there, and 67 us back on the slower one, hold 93 packets; the slower one both ways holds two.
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
        plan(&text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("a plan")
    };
    let [first, last] = ["'c', 'a', 'b'", "'a', 'b', 'c'"].map(planned);
    for (first, last) in first.series.iter().zip(&last.series) {
        assert_eq!((first.transport, &first.transports), (last.transport, &last.transports), "{}", first.name);
    }
    let irn = &last.series[0];
    let cap = |transport: &TransportConfig| match transport.recovery {
        RecoveryConfig::Irn(irn) => irn.bdp_cap,
        other => panic!("{}", other.name()),
    };
    // The slow host's window covers its own round trip, 13.6 us, of which propagation is 4; the fast hosts' knows
    // nothing of it.
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
        let plan = plan(&text(slow, delay), &Changes { series, sets, ..Changes::default() }).expect("a plan");
        for series in &plan.series {
            let network = &series.network;
            let beside = series.scenario.beside.as_ref().map(|beside| (network.slowest_line_rate(), beside.tcp));
            let own = [(network.line_rate(), series.transport)].into_iter().chain(series.transports.iter().copied());
            let stacks = own.filter_map(|(rate, transport)| Some((rate, transport.tcp?)));
            let stacks: Vec<_> = if series.transport.tcp.is_some() { stacks.collect() } else { Vec::from_iter(beside) };
            let value = |setting: Setting<Duration>| setting.resolve(|| None).expect("it is resolved");
            let delay = stacks.iter().map(|(_, tcp)| value(tcp.delayed_ack)).max().expect("TCP");
            // Through tunnels that do not burst, both wait for credit.
            let trips = if series.transport.eqds.is_some() { 3 } else { 1 };
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
        plan(NO_SWITCH, &changes).expect("a study may want it").warnings
    };
    assert_eq!(warnings("irn,irn+pfc,roce,tcp", &[]), [""; 0], "\"auto\" knows better");
    let [warning] = &warnings("irn", &["transport.recovery.irn.rto-low=100us"])[..] else { panic!("one warning") };
    let text = "transport.recovery.irn.rto-low: 100us is less than the longest round trip of the empty network, 200009.536us: what";
    assert!(warning.contains(text), "{warning}");
    assert_eq!(warnings("irn", &["transport.recovery.irn.rto-low=201ms"]), [""; 0]);
    let [warning] = &warnings("roce", &["transport.recovery.go-back-n.rto=1ms"])[..] else { panic!("one warning") };
    assert!(warning.contains("rto: 1ms is less than"), "{warning}");
}
