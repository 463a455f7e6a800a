//! Tests of dialects, spellings, warnings and wiring that the samples do not contain, on small files.

use expect_test::expect;
use selvedge_formats::cdf::{self, SizeUnit};
use selvedge_formats::htsim_cm::{self, Message, Start, StartUnit, SwitchTier, TriggerKind};
use selvedge_formats::htsim_topo::{self, Node};
use selvedge_formats::irn_trace::{self, SenderEvent, SenderEventKind};
use selvedge_formats::ns3_flow::{self, Options};
use selvedge_formats::ns3_topology::{self, SwitchKind};
use selvedge_formats::{Dialect, Warning, detect};
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate};

fn messages(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| format!("{}: {}", warning.line, warning.message)).collect()
}

/// Returns the warnings, one per line.
fn told(warnings: &[Warning]) -> String {
    messages(warnings).iter().map(|message| format!("{message}\n")).collect()
}

#[test]
fn rates_and_delays_in_the_units_of_ns3() {
    for (text, rate) in [
        ("100Gbps", 100_000_000_000),
        ("100Gb/s", 100_000_000_000),
        ("12.5GB/s", 100_000_000_000),
        ("1.6Tbps", 1_600_000_000_000),
        ("2.5e3Mbps", 2_500_000_000),
        ("1Kib/s", 1024),
        ("9600", 9600),
    ] {
        let file = format!("2 0 1\n0 1 {text} 1us 0.001");
        let link = ns3_topology::read(file.as_bytes(), "f").unwrap().value.links[0];
        assert_eq!((link.rate, link.loss), (Rate::from_bps(rate), Chance::ratio(1, 1000)), "{text}");
    }
    for (text, ps) in [("1000ns", 1_000_000), ("0.001ms", 1_000_000), ("0.000025ms", 25_000), ("1e-6", 1_000_000)] {
        let file = format!("2 0 1\n0 1 1Gbps {text} 1");
        let link = ns3_topology::read(file.as_bytes(), "f").unwrap().value.links[0];
        assert_eq!((link.delay, link.loss), (Duration::from_ps(ps), Chance::ALWAYS), "{text}");
    }
}

#[test]
fn a_simai_topology_has_nvswitches() {
    let file = b"6 2 2 1 6 A100\n4 5\n3\n0 4 2880Gbps 0.000025ms 0\n0 3 100Gbps 0.0005ms 0\n\
        1 4 2880Gbps 0.000025ms 0\n1 3 100Gbps 0.0005ms 0\n2 5 2880Gbps 0.000025ms 0\n2 3 100Gbps 0.0005ms 0\n";
    assert_eq!(detect(file, "f"), Ok(Dialect::SimAiTopology));
    let parsed = ns3_topology::read(&file[..], "f").unwrap();
    assert_eq!((parsed.dialect, parsed.warnings), (Dialect::SimAiTopology, vec![]));
    let topology = parsed.value;
    assert!(topology.hosts().eq([0, 1, 2]) && !topology.is_host(4) && !topology.is_host(9));
    let kinds: Vec<_> = topology.switches.into_iter().collect();
    assert_eq!(kinds, [(3, SwitchKind::Ethernet), (4, SwitchKind::NvSwitch), (5, SwitchKind::NvSwitch)]);
    let servers = topology.servers.unwrap();
    assert_eq!((servers.gpus_per_server, &*servers.gpu_type), (2, "A100"));
}

#[test]
fn stale_counts_of_a_topology_are_warned_about() {
    let parsed = ns3_topology::read(&b"5 1 9\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"[..], "f").unwrap();
    assert_eq!((parsed.value.switches.len(), parsed.value.links.len()), (2, 2));
    expect![[r#"
        1: the header says 1 switch id, the list has 2: all of them are taken
        1: the header says 9 links, the file has 2: 7 are missing, and those found are taken
        1: 1 node without a link, the first of them node 4: left out
    "#]]
    .assert_eq(&told(&parsed.warnings));
    let parsed = ns3_topology::read(&b"3 1 1\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n"[..], "f").unwrap();
    assert_eq!(parsed.value.links.len(), 2);
    expect![[r#"
        1: the header says 1 link, the file has 2: all of them are taken
    "#]]
    .assert_eq(&told(&parsed.warnings));
}

#[test]
fn topologies_of_the_powertcp_family_count_racks_and_may_name_rates() {
    let body = "8 9 10 11\n0 8 25000000000.0 1us 0\n1 8 25000000000.0 1us 0\n4 9 25000000000.0 1us 0\n8 10 100000000000.0 1us 0\n\
                8 11 100000000000.0 1us 0\n9 10 100000000000.0 1us 0\n9 11 100000000000.0 1us 0\n";
    for header in ["12 4 2 7", "12 4 2 7 25 100", "12 4 2 7 25 100.0"] {
        let file = format!("{header}\n{body}");
        assert_eq!(detect(file.as_bytes(), "f"), Ok(Dialect::Ns3Topology), "{header}");
        let parsed = ns3_topology::read(file.as_bytes(), "f").unwrap();
        assert_eq!(parsed.dialect, Dialect::Ns3Topology);
        assert!(parsed.value.switches.keys().eq(&[8, 9, 10, 11]) && parsed.value.servers.is_none());
        assert_eq!(parsed.value.links.len(), 7);
        assert_eq!(parsed.value.links[0].rate, Rate::from_gbps(25));
    }
    // Ids of switches may stand in several lines, and lists of flows without a count begin with six numbers, too.
    let split = format!("12 4 2 7 25 100\n{}", body.replace("8 9 10 11", "8 9\n10 11"));
    assert_eq!(detect(split.as_bytes(), "f"), Ok(Dialect::Ns3Topology));
    let flows = b"5 3 3 100 2000 2.0\n2 1 3 100 200000 2.1\n";
    assert_eq!(detect(flows, "f"), Ok(Dialect::Ns3Flows6));
}

#[test]
fn notes_end_a_list_after_a_blank_line_only() {
    let parsed =
        ns3_flow::read(&b"9\n1 2 3 9 2\n\nFirst line: # of flows\n\xff\n"[..], "f", Options::default()).unwrap();
    assert_eq!(parsed.value.flows.len(), 1);
    expect![[r#"
        1: the first line says 9 flows, the file has 1 above the notes from line 4 on: 8 are missing, and those found are taken
    "#]]
    .assert_eq(&told(&parsed.warnings));
    // A stale count that is too small must not turn a mistake in the middle into the beginning of notes.
    for file in ["1\n1 2 3 9 2\n1 2 3 9 2\nx 2 3 9 2\n1 2 3 9 2\n", "9\n1 2 3 9 2\nx 2 3 9 2\n"] {
        let error = ns3_flow::read(file.as_bytes(), "f", Options::default()).unwrap_err();
        assert_eq!(error.message, "found \"x\", expected a node id");
    }
    let parsed =
        ns3_topology::read(&b"3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\nsrc dst rate delay\n"[..], "f").unwrap();
    assert_eq!((parsed.value.links.len(), parsed.warnings), (2, vec![]));
    // Below a stray line, as many as were announced have been read.
    let said = |after: &str| {
        format!(
            "3: a line that begins with no number: it and all below are taken for notes, though line 5 looks like a {after}"
        )
    };
    for last in ["1 2 3 9 2", "1 2 3 9 tow"] {
        let file = format!("1\n1 2 3 9 2\njunk\n\n{last}\n");
        let parsed = ns3_flow::read(file.as_bytes(), "f", Options::default()).unwrap();
        assert_eq!((parsed.value.flows.len(), messages(&parsed.warnings)), (1, vec![said("flow")]));
    }
    let links = "0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
    let file = format!("3 1 2\n2\n{links}\nsrc dst rate delay\n{links}");
    let parsed = ns3_topology::read(file.as_bytes(), "f").unwrap();
    assert_eq!(messages(&parsed.warnings), [said("link").replace("3:", "6:").replace("line 5", "line 7")]);
}

#[test]
fn flow_lists_of_five_six_and_seven_columns() {
    let read = |file: &'static str| ns3_flow::read(file.as_bytes(), "f", Options::default()).unwrap();
    // A byte order mark, CRLF, tabs, trailing blanks, comments, and no newline at the end.
    let five = read("\u{feff}1\r\n# made by hand\r\n\t7 4 3\t7094 2.000028356  # the first\r\n \r\n");
    assert_eq!((five.dialect, &five.warnings), (Dialect::Ns3Flows5, &vec![]));
    let flow = five.value.flows[0];
    assert_eq!((flow.line, flow.src, flow.dst, flow.priority), (3, 7, 4, 3));
    assert_eq!((flow.size, flow.start), (Bytes::new(7094), Instant::from_ps(2_000_028_356_000)));
    assert_eq!((flow.id, flow.dst_port), (None, None));

    let seven = read("1\n9 7 4 3 100 7094 2");
    assert_eq!((seven.dialect, seven.warnings), (Dialect::Ns3Flows7, vec![]));
    assert_eq!((seven.value.flows[0].id, seven.value.flows[0].dst_port), (Some(9), Some(100)));
    assert_eq!(detect(b"1\n9 7 4 3 100 7094 2", "f"), Ok(Dialect::Ns3Flows7));
}

#[test]
fn a_flow_list_is_sorted_and_counted() {
    let parsed = ns3_flow::read(&b"72\n1 2 3 9 2.5\n2 3 3 8 2\n3 4 3 7 2.5\n"[..], "f", Options::default()).unwrap();
    let order: Vec<u32> = parsed.value.flows.iter().map(|flow| flow.src).collect();
    assert_eq!(order, [2, 1, 3]);
    expect![[r#"
        3: starts at 2s, before the flow above it: the list is not sorted
        1: the first line says 72 flows, the file has 3: 69 are missing, and those found are taken
    "#]]
    .assert_eq(&told(&parsed.warnings));
    let parsed = ns3_flow::read(&b"1 2 3 9 2.5\n"[..], "f", Options::default()).unwrap();
    assert_eq!(parsed.value.flows.len(), 1);
    expect![[r#"
        1: the first line is a flow, not the number of flows
    "#]]
    .assert_eq(&told(&parsed.warnings));
}

#[test]
fn sizes_in_packets_on_request() {
    let options = Options { size_unit: ns3_flow::SizeUnit::Packets(Bytes::new(1000)) };
    let parsed = ns3_flow::read(&b"1\n0 1 3 100 7 2\n"[..], "f", options).unwrap();
    assert_eq!(parsed.value.flows[0].size, Bytes::new(7000));
}

#[test]
fn a_long_flow_list_streams() {
    /// Reader that makes lines as they are read, so that the list is never in memory.
    struct Made(u32, std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Made {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.1.position() == self.1.get_ref().len() as u64 && self.0 < 200_000 {
                self.1 = std::io::Cursor::new(format!("0 1 3 100 1000 2.{:09}\n", self.0).into_bytes());
                self.0 += 1;
            }
            self.1.read(buffer)
        }
    }
    let made = std::io::BufReader::new(Made(0, std::io::Cursor::new(b"200000\n".to_vec())));
    let mut flows = ns3_flow::Flows::new(made, "f", Options::default());
    let last = flows.by_ref().map(Result::unwrap).last().unwrap();
    assert_eq!(last.start, Instant::from_ps(2_000_199_999_000));
    assert_eq!((flows.declared(), flows.unsorted_at(), flows.warnings()), (Some(200_000), None, &[][..]));
}

#[test]
fn a_matrix_with_triggers_messages_and_failures() {
    let file = b"Nodes 16\nConnections 6\nTriggers 3\nFailures 1\n\
        2->10 id 1 start 0 size 1000000 send_done_trigger 1 # comments, here too\n\
        10->0 id 2 trigger 1 size 1000000 recv_done_trigger 2 prio 7\n\
        0->14 id 3 trigger 2 size 5000000000 addon recv_done_trigger 3\n\
        0->1 id 4 msg start 0 size 4086 send_done_trigger 3\n\
        0->1 id 4 msg 9 start 0 size 4086\n\
        5->6 id 5 trigger 3 size 1\n\
        trigger id 1 oneshot\ntrigger id 2 multishot\ntrigger id 3 barrier count 2\n\
        failure switch_type AGG switch_id 3 link_id 1\n";
    assert_eq!(detect(file, "f"), Ok(Dialect::HtsimMatrix));
    let parsed = htsim_cm::read(&file[..], "f", StartUnit::Auto).unwrap();
    assert_eq!((parsed.dialect, parsed.warnings), (Dialect::HtsimMatrix, vec![]));
    let matrix = parsed.value;
    let starts: Vec<_> = matrix.flows.iter().map(|flow| flow.start).collect();
    let now = Start::At(Instant::ZERO);
    assert_eq!(starts, [now, Start::Trigger(1), Start::Trigger(2), now, now, Start::Trigger(3)]);
    let second = matrix.flows[1];
    assert_eq!((second.id, second.on_sent, second.on_received, second.priority), (Some(2), None, Some(2), Some(7)));
    assert!(matrix.flows[2].is_add_on && matrix.flows[2].size == Bytes::new(5_000_000_000));
    assert_eq!(matrix.flows[3].message, Some(Message { id: None }));
    assert_eq!(matrix.flows[4].message, Some(Message { id: Some(9) }));
    let kinds: Vec<_> = matrix.triggers.values().map(|trigger| trigger.kind).collect();
    assert_eq!(kinds, [TriggerKind::OneShot, TriggerKind::MultiShot, TriggerKind::Barrier(2)]);
    let failure = matrix.failures[0];
    assert_eq!((failure.tier, failure.switch, failure.link), (SwitchTier::Agg, 3, 1));
}

#[test]
fn a_matrix_that_will_not_run_as_meant_is_warned_about() {
    let file = b"Nodes 9\nConnections 7\n0->1 id 1 trigger 1 size 1\n0->2 id 1 trigger 2 size 1\n\
        0->3 id 3 trigger 2 size 1\n0->4 id 4 start 0 size 1 send_done_trigger 2 recv_done_trigger 3\n\
        0->5 id 5 trigger 3 size 1\ntrigger id 1 oneshot\ntrigger id 2 multishot\ntrigger id 3 barrier count 2\n";
    let parsed = htsim_cm::read(&file[..], "f", StartUnit::Auto).unwrap();
    expect![[r#"
        2: "Connections 7", but the file has 5 flows: all are taken
        1: the header has no "Triggers 3", which htsim needs
        8: trigger 1 is activated by nobody: none of its 1 flow will start
        9: trigger 2 is activated 1 time and needs 2: not all of its 2 flows will start
        10: trigger 3 is activated 1 time and needs 2: none of its 1 flow will start
    "#]]
    .assert_eq(&told(&parsed.warnings));
}

#[test]
fn starts_of_a_matrix_have_a_unit() {
    let start = |number: &str, unit| {
        let file = format!("Nodes 2\nConnections 1\n0->1 start {number} size 1\n");
        let parsed = htsim_cm::read(file.as_bytes(), "f", unit).unwrap();
        let Start::At(start) = parsed.value.flows[0].start else { panic!("{number}") };
        (start.as_ps(), parsed.value.start_unit, parsed.value.guessed_at)
    };
    // Exactly, where a 32-bit float would be off by up to 32 ps.
    assert_eq!(start("1000000001", StartUnit::Auto), (1_000_000_001, StartUnit::Picoseconds, Some(3)));
    assert_eq!(start("12.5", StartUnit::Auto), (12_500_000, StartUnit::Microseconds, Some(3)));
    assert_eq!(start("0", StartUnit::Auto), (0, StartUnit::Picoseconds, None));
    assert_eq!(start("1000000", StartUnit::Microseconds), (1_000_000_000_000, StartUnit::Microseconds, None));
    assert_eq!(start("7", StartUnit::Nanoseconds), (7_000, StartUnit::Nanoseconds, None));
}

#[test]
fn a_small_tree_is_wired_as_htsim_wires_it() {
    // csg-htsim's test.topo: two pods, bundles of two to the cores, which are half as fast.
    let file = b"nodes 8\nTIERS 3\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\n\
        Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 1000\n\
        Bundle 1\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 2000\nBundle 2\n\
        Switch_Latency_ns 7\nQueue_Down 90000";
    let parsed = htsim_topo::read(&file[..], "f").unwrap();
    assert_eq!((parsed.dialect, parsed.warnings), (Dialect::HtsimTopology, vec![]));
    let tree = parsed.value;
    assert_eq!((tree.pods, tree.tors(), tree.aggs(), tree.cores, tree.switches()), (2, 4, 4, 4, 12));
    assert_eq!(
        (tree.tiers[2].switch_delay, tree.tiers[2].queue_down),
        (Duration::from_ns(7), Some(Bytes::new(90_000)))
    );
    assert_eq!((tree.pod_of(Node::Agg(2)), tree.pod_of(Node::Core(2))), (Some(1), None));

    let links: Vec<String> = tree.links().map(|link| format!("{}-{}", link.lower, link.upper)).collect();
    assert_eq!(links[..8].join(" "), "h0-tor0 h1-tor0 h2-tor1 h3-tor1 h4-tor2 h5-tor2 h6-tor3 h7-tor3");
    assert_eq!(
        links[8..16].join(" "),
        "tor0-agg0 tor0-agg1 tor1-agg0 tor1-agg1 tor2-agg2 tor2-agg3 tor3-agg2 tor3-agg3"
    );
    assert_eq!(
        links[16..].join(" "),
        "agg0-core0 agg0-core0 agg0-core2 agg0-core2 agg1-core1 agg1-core1 agg1-core3 agg1-core3 \
         agg2-core0 agg2-core0 agg2-core2 agg2-core2 agg3-core1 agg3-core1 agg3-core3 agg3-core3"
    );
    let top = tree.links().last().unwrap();
    assert_eq!((top.rate, top.delay), (Rate::from_gbps(100), Duration::from_us(2)));
}

#[test]
fn a_radix_that_htsim_does_not_wire_is_warned_about() {
    // Faster uplinks: htsim counts ports where it should count capacity, and wires every ToR to every spine.
    let file = b"Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1\nRadix_Down 4\n\
        Radix_Up 1\nOversubscribed 4\nTier 1\nDownlink_speed_Gbps 200\nDownlink_Latency_ns 1\nRadix_Down 4\n";
    let parsed = htsim_topo::read(&file[..], "f").unwrap();
    assert_eq!((parsed.value.aggs_per_pod, parsed.value.links().count()), (1, 32 + 8));
    expect![[r#"
        13: Radix_Down is 4, but htsim connects 8 ports: those are taken
    "#]]
    .assert_eq(&told(&parsed.warnings));
}

#[test]
fn distributions_in_every_dialect_are_the_same_distribution() {
    let expected = vec![(Bytes::new(1460), 1 << 62), (Bytes::new(2920), 1 << 63), (Bytes::new(14_600), u64::MAX)];
    for (file, unit, dialect, warning) in [
        ("1460 25\n2920 50\n14600 100\n", SizeUnit::Auto, Dialect::CdfPercent, None),
        ("1460 0.25\n2920 .5\n14600 1.0\n", SizeUnit::Auto, Dialect::CdfFraction, None),
        (
            "1 1 0.25\n2 1 0.5\n10 1 1\n",
            SizeUnit::Auto,
            Dialect::CdfPackets,
            Some(
                "1: three columns: sizes are taken as packets of 1460 bytes; if they are not, write two, bytes and share",
            ),
        ),
        (
            "1460 1 0.25\n2920 1 0.5\n14600 1 1\n",
            SizeUnit::Auto,
            Dialect::CdfNs2,
            Some("1: three columns: sizes are taken as bytes; if they are not, write two, bytes and share"),
        ),
        ("1460 1 0.25\n2920 1 0.5\n14600 1 1\n", SizeUnit::Bytes, Dialect::CdfNs2, None),
        ("1 0.25\n2 0.5\n10 1\n", SizeUnit::Packets(cdf::YAPS_PAYLOAD), Dialect::CdfPackets, None),
    ] {
        let parsed = cdf::read(file.as_bytes(), "f", unit).unwrap();
        assert_eq!((parsed.value.points, parsed.dialect), (expected.clone(), dialect), "{file}");
        assert_eq!(messages(&parsed.warnings), Vec::from_iter(warning), "{file}");
    }
}

#[test]
fn the_mean_counts_steps_and_the_first_point() {
    let mean = |file: &'static str| cdf::read(file.as_bytes(), "f", SizeUnit::Auto).unwrap().value.mean().get();
    assert_eq!(mean("1000 1\n"), 1000);
    assert_eq!(mean("0 0\n1000 1\n"), 500);
    assert_eq!(mean("100 0.5\n100 0.75\n300 0.75\n300 1\n"), 150);
}

#[test]
fn distributions_known_by_name_are_distributions() {
    assert!(cdf::NAMES.is_sorted());
    for name in cdf::NAMES {
        let points = cdf::known(name).unwrap().points;
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1), "{name}");
        assert_eq!(points.last().unwrap().1, u64::MAX, "{name}");
        assert!(points[0].1 == 0 && points.iter().all(|&(size, share)| !size.is_zero() || share == 0), "{name}");
    }
    assert_eq!(cdf::known("hadoop"), None);
}

#[test]
fn half_of_irns_flows_are_single_packets() {
    let cdf = cdf::known("irn-heavy-tailed").unwrap();
    assert_eq!(cdf.points[..2], [(Bytes::new(32), 0), (Bytes::new(1000), 1 << 63)]);
    assert_eq!(cdf.points[2], (Bytes::new(1460), 1 << 63));
    assert_eq!(cdf.mean(), Bytes::new(194_885));
}

#[test]
fn sender_traces_have_three_kinds_of_events() {
    let mut events = irn_trace::sender_events(&b"4\n7 0\n7 1 5 6 1\n7 2 0\n"[..], "f");
    let kinds: Vec<_> = events.by_ref().map(Result::unwrap).collect();
    let event = |kind| SenderEvent { qp: 7, kind };
    assert_eq!(
        kinds,
        [
            event(SenderEventKind::TxFree),
            event(SenderEventKind::Ack { cum: 5, sack: 6, nack: true }),
            event(SenderEventKind::Timeout { quick: false }),
        ]
    );
    let warning = events.warning().unwrap();
    expect![[r#"
        1: the first line says 4 events, the file has 3: all are taken
    "#]]
    .assert_eq(&told(&[warning]));
}
