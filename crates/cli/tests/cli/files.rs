//! Tests with files of other simulators.

use std::fs;
use std::process::Command;

use crate::{FLOWS, SMALL, Scratch, TOPOLOGY, parsed};

/// Checks goodput over the time until delivery. The end of a run depends on links that carry nothing, too: it comes
/// with a step of the simulator.
#[test]
fn goodput_goes_by_what_was_delivered_and_when() {
    let topology = |delay: &str| format!("4 1 3\n0\n0 1 100Gbps 10us 0\n0 2 100Gbps 10us 0\n0 3 100Gbps {delay} 0\n");
    let scratch = Scratch::new("goodput")
        .with("near.txt", &topology("1us"))
        .with("far.txt", &topology("10us"))
        .with("flow.txt", "1\n1 2 3 100 100000 0\n");
    for series in ["roce+pfc", "irn"] {
        for topology in ["near.txt", "far.txt"] {
            let study = ["run", "--topology", topology, "--flows", "flow.txt", "--series", series, "--seeds", "1"];
            let (out, _) = scratch.expect(0, &[&study[..], &["--json"]].concat());
            let metrics = parsed(&out)["series"][0]["metrics"].clone();
            let mean = |name: &str| metrics[name]["mean"].as_f64().expect("a number");
            let exact = 100_000.0 * 8.0 / (mean("fct_mean_us") * 1e3);
            assert!((mean("goodput_gbps") / exact - 1.0).abs() < 1e-9, "{series}, {topology}: {metrics}");
        }
    }
}

#[test]
fn slow_hosts_hold_up_nobody_else() {
    let topology =
        |rate: &str| format!("5 1 4\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 {rate} 1us 0\n0 4 100Gbps 1us 0\n");
    let scratch = Scratch::new("slow")
        .with("alike.txt", &topology("100Gbps"))
        .with("unlike.txt", &topology("10Gbps"))
        .with("flow.txt", "2\n1 2 3 100 3000000 0.001\n2 4 3 100 3000000 0.002\n");
    let series = "irn,irn+hpcc,irn+swift,roce+dcqcn+pfc,melo,eqds,ndp";
    let slowdowns = |topology: &str| {
        let arguments = ["run", "--topology", topology, "--flows", "flow.txt", "--series", series, "--seeds", "1"];
        let (out, _) = scratch.expect(0, &[&arguments[..], &["--json"]].concat());
        let series = parsed(&out)["series"].as_array().unwrap().clone();
        series.iter().map(|one| one["metrics"]["slowdown_mean"]["mean"].as_f64().expect("a number")).collect::<Vec<_>>()
    };
    let unlike = slowdowns("unlike.txt");
    assert_eq!(unlike, slowdowns("alike.txt"));
    assert!(unlike.iter().all(|&slowdown| slowdown < 1.1), "{unlike:?}");
}

#[test]
fn a_slow_receiver_keeps_what_a_fast_sender_has_under_way() {
    // Because of an equal host, the sender may have more in flight than the receiver's link carries.
    let topology = "4 1 3\n0\n0 1 100Gbps 2us 0\n0 2 10Gbps 2us 0\n0 3 100Gbps 2us 0\n";
    let lost = "loss=[{link='1 - 0',direction='a-to-b',packets='data',model={trace={drops=[10]}}}]";
    let scratch = Scratch::new("reach").with("topology.txt", topology).with("flow.txt", "1\n1 2 3 100 50000 0\n");
    let study = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--series", "irn,irn+hls,melo"];
    let sets = ["--seeds", "1", "--set", "auto=longest-path", "--set", lost, "--json"];
    let (out, _) = scratch.expect(0, &[&study[..], &sets].concat());
    for series in parsed(&out)["series"].as_array().unwrap() {
        let mean = |metric: &str| series["metrics"][metric]["mean"].as_f64().expect("a number");
        assert_eq!(mean("retransmissions"), 1.0, "{}", series["name"]);
        assert!(mean("slowdown_mean") < 1.1, "{}", series["name"]);
    }
}

#[test]
fn timeouts_count_the_queues_of_all_priorities() {
    let topology = "4 1 3\n0\n0 1 33Gbps 1us 0\n0 2 33Gbps 1.037us 0\n0 3 33Gbps 1.074us 0\n";
    let scratch = Scratch::new("queues")
        .with("topology.txt", topology)
        .with("flow.txt", "2\n2 1 3 100 1000000 0.001\n3 1 5 100 1000000 0.001\n");
    // Priority 5 goes first and has three quarters of the credit.
    let weighted = "transport.eqds.policy={weighted=[1,1,1,1,1,3,1,1]}";
    let run = |out: &str, more: &[&str]| {
        let study = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--series", "eqds", "--seeds", "1"];
        let (summary, _) = scratch.expect(0, &[&study[..], &["--json", "--out", out], more].concat());
        let metrics = parsed(&summary)["series"][0]["metrics"].clone();
        let mean = |name: &str| metrics[name]["mean"].as_f64().expect("a number");
        let scenario = fs::read_to_string(scratch.join(out).join("scenario.toml")).expect("a scenario");
        let rto = scenario.lines().find_map(|line| line.strip_prefix("rto = ")).expect("a timeout").to_owned();
        (mean("spurious_retransmissions"), mean("trims"), rto)
    };
    let (spurious, trims, _) = run("weighted", &["--set", weighted]);
    assert!(spurious == 0.0 && trims > 0.0, "{spurious} packets twice, {trims} trims");
    // A queue of few headers has a shorter waiting time than data.
    let few_headers = ["--set", "switch.buffer.trimming.headers=4KB"];
    let (.., both) = run("both", &few_headers);
    let (.., one) = run("one", &[&few_headers[..], &["--set", "workload.flows.priorities=nic"]].concat());
    let ns = |rto: &str| -> f64 { rto.trim_matches(['"', 'n', 's']).parse().expect(rto) };
    // Eight more frames of 1,094 B, and the gaps after them, at the one switch of 33 Gb/s.
    let more = ns(&both) - ns(&one);
    assert!((more - 8.0 * 1_114.0 * 8.0 / 33.0).abs() < 1.0, "{both} and {one}");
}

#[test]
fn files_of_other_simulators_run_and_give_an_fct_txt() {
    let scratch = Scratch::new("files").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let arguments = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--series", "irn,roce+pfc"];
    scratch.expect(0, &[&arguments[..], &["--out", "out", "--seeds", "1"]].concat());
    let fct = fs::read_to_string(scratch.join("out/fct.txt")).expect("fct.txt was written");
    let lines: Vec<&str> = fct.lines().collect();
    assert_eq!(lines.len(), 2);
    // 10,000 B in ten packets of 82 B overhead each at 10 Gb/s, one packet of forwarding, 2 us of links.
    assert!(lines[0].starts_with("0b000101 0b000201 10000 100 10000 1000000 "), "{fct}");
    assert!(scratch.join("out/fct-roce+pfc.txt").exists());

    // The resolved scenario names the files wherever it lies.
    fs::create_dir(scratch.join("elsewhere")).expect("writable");
    fs::copy(scratch.join("out/scenario.toml"), scratch.join("elsewhere/scenario.toml")).expect("writable");
    scratch.expect(0, &["run", "elsewhere", "--out", "again", "-q"]);
    assert_eq!(fs::read_to_string(scratch.join("again/fct.txt")).expect("fct.txt was written"), fct);
}

#[test]
fn schedules_are_found_from_the_folder_of_results() {
    let schedule = |bytes: u32| {
        format!("num_ranks 2\nrank 0 {{\nl1: send {bytes}b to 1\n}}\nrank 1 {{\nl1: recv {bytes}b from 0\n}}\n")
    };
    let cases = "[[case]]\nname = \"one\"\n[[case]]\nname = \"two\"\nset.'workload.goal.path' = \"two.goal\"\n";
    let scenario = SMALL
        .replace("[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }", "[workload.goal]\npath = \"one.goal\"");
    let scratch = Scratch::new("schedules")
        .with("one.goal", &schedule(1_000))
        .with("two.goal", &schedule(2_000))
        .with("s.toml", &(scenario + cases));
    let (first, _) = scratch.expect(0, &["run", "s.toml", "--seeds", "1", "--out", "out", "--json"]);
    let (again, _) = scratch.expect(0, &["run", "out/scenario.toml", "--json"]);
    assert_eq!(parsed(&again)["series"], parsed(&first)["series"]);
    let (out, _) = scratch.expect(0, &["explain", "out", "--series", "two: irn", "--flow", "0"]);
    assert!(out.contains("h0 -> h1, 2KB, 2 packets"), "{out}");
}

#[test]
fn messages_without_a_partner_are_told_by_their_line() {
    let schedule =
        |zero: &str, one: &str| format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n// waits\n{one}\n}}\n");
    let scenario = SMALL
        .replace("[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }", "[workload.goal]\npath = \"x.goal\"");
    let sent = "send 1b to 1 tag 1\nsend 1b to 1 tag 2";
    let scratch =
        Scratch::new("partners").with("s.toml", &scenario).with("x.goal", &schedule(sent, "recv 1b from 0 tag 1"));
    let (_, said) = scratch.expect(0, &["workload", "s.toml"]);
    assert!(said.contains("warning: x.goal:4: 1 message is sent that nobody receives"), "{said}");
    fs::write(scratch.join("x.goal"), schedule("calc 1", "recv 1b from 0 tag 1")).expect("writable");
    let (_, said) = scratch.expect(2, &["workload", "s.toml"]);
    assert!(
        said.contains("workload.goal.path: x.goal:7:1: rank 1 waits for a message from rank 0 with tag 1"),
        "{said}"
    );
}

#[test]
fn flows_that_share_an_id_are_told_apart() {
    let matrix = "Nodes 3\nConnections 3\n0->1 id 7 msg start 0 size 2000\n0->1 id 7 msg start 0 size 5000\n\
        0->2 id 8 start 0 size 1000\n";
    let list = "3\n7 1 2 3 100 2000 0\n7 1 2 3 100 5000 0\n8 1 3 3 100 1000 0\n";
    let matrix_topology =
        TOPOLOGY.replace("4 1 3\n0\n", "4 1 3\n3\n").replace("0 3", "2 3").replace("0 2", "1 3").replace("0 1", "0 3");
    let scratch = Scratch::new("alike")
        .with("matrix.txt", &matrix_topology)
        .with("list.txt", TOPOLOGY)
        .with("x.cm", matrix)
        .with("flow.txt", list);
    for (topology, flows, place) in [("matrix.txt", "x.cm", "x.cm:4"), ("list.txt", "flow.txt", "flow.txt:3")] {
        let study = ["run", "--topology", topology, "--flows", flows, "--series", "irn", "--seeds", "1", "--force"];
        let (_, error) = scratch.expect(0, &[&study[..], &["--out", "out"]].concat());
        assert!(error.contains(&format!("{place}: flow id 7 is that of line")), "{error}");
        let (out, _) = scratch.expect(0, &["explain", "out", "--flow", "1"]);
        assert!(out.contains("5KB, 5 packets"), "{out}");
        scratch.expect(0, &["explain", "out", "--worst", "3"]);
    }
    fs::write(scratch.join("x.cm"), matrix.replace("id 7 msg", "").replace("id 8", "id 1")).expect("writable");
    let (_, error) = scratch.expect(0, &["run", "--topology", "matrix.txt", "--flows", "x.cm", "--series", "irn"]);
    assert!(error.contains("x.cm:4: this flow has no id, and others have"), "{error}");
}

#[test]
fn priorities_and_queues_of_files_count() {
    let topology = "Nodes 4\nTiers 2\nPodsize 4\n\n\
        Tier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\nRadix_Up 2\nQueue_Up 60000\nQueue_Down 50000\n\n\
        Tier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\nQueue_Down 70000\n";
    let matrix = "Nodes 4\nConnections 4\n0->2 start 0 size 200000 prio 5\n1->2 start 0 size 200000\n\
        3->2 start 0 size 200000 prio 2000000\n0->3 start 0 size 200000 prio 9\n";
    let scratch = Scratch::new("prio")
        .with("own.topo", topology)
        .with("alike.topo", &topology.replace("60000", "50000").replace("70000", "50000"))
        .with("some.topo", &topology.replace("Queue_Up 60000\n", ""))
        .with("small.topo", &topology.replace("50000", "9000"))
        .with("x.cm", matrix)
        .with("large.cm", &matrix.replace("Nodes 4", "Nodes 8"));
    let run = |topology: &str, out: &str, more: &[&str]| {
        let study = ["run", "--topology", topology, "--flows", "x.cm", "--series", "roce+pfc", "--seeds", "1"];
        let (_, error) = scratch.expect(0, &[&study[..], &["--out", out], more].concat());
        let fct = fs::read_to_string(scratch.join(out).join("fct.txt")).expect("fct.txt was written");
        (fct, fs::read_to_string(scratch.join(out).join("scenario.toml")).expect("a scenario"), error)
    };
    let (fct, scenario, said) = run("own.topo", "own", &[]);
    assert!(said.contains("x.cm:6: prio 9 is none of the priorities 0 to 7"), "{said}");
    assert!(scenario.contains("per-port = \"auto\""), "each port keeps its own: {scenario}");
    let (_, scenario, _) = run("alike.topo", "alike", &[]);
    assert!(scenario.contains("per-port = \"50KB\""), "{scenario}");
    let (_, scenario, said) = run("some.topo", "some", &[]);
    assert!(said.contains("Queue_Up and Queue_Down are not used, because some tiers lack them"), "{said}");
    assert!(scenario.contains("per-port = \"200KB\""), "twice the BDP: {scenario}");
    let (all_alike, ..) = run("own.topo", "nic", &["--set", "workload.flows.priorities=nic"]);
    // The flow of priority 5 goes first everywhere, unless priorities do not count.
    let times = |fct: &str| -> Vec<u64> {
        fct.lines().map(|line| line.split(' ').nth(6).and_then(|ns| ns.parse().ok()).expect("a time")).collect()
    };
    let (first, alike) = (times(&fct)[0], times(&all_alike)[0]);
    assert!(first + 10_000 < alike, "{first} ns with priority, {alike} ns without");
    // A configuration that htsim refuses.
    let (_, said) = scratch.expect(0, &["run", "--topology", "own.topo", "--flows", "large.cm", "--series", "irn"]);
    assert!(said.contains("large.cm:1: Nodes is 8, but the topology has 4 hosts: htsim would not run this"), "{said}");
    // A flow list that does not fit the topology.
    let (_, error) = scratch.expect(2, &["run", "--topology", "small.topo", "--flows", "x.cm", "--series", "irn+pfc"]);
    assert!(error.contains("leaves nothing of the 9KB buffer"), "{error}");
}

#[test]
fn what_a_list_offers_counts_from_its_first_flow() {
    // 1 and 3 send 125,000 bytes each to 2 within 100 us: 20 Gb/s, and headers, where 10 Gb/s fit.
    let flows = "4\n1 2 3 100 62500 2\n3 2 3 100 62500 2.00001\n1 2 3 100 62500 2.00002\n3 2 3 100 62500 2.00004786\n";
    let scratch = Scratch::new("offers").with("topology.txt", TOPOLOGY).with("flow.txt", flows);
    let study = ["workload", "--topology", "topology.txt", "--flows", "flow.txt", "--series", "irn"];
    let (out, _) = scratch.expect(0, &[&study[..], &["--json"]].concat());
    let facts = parsed(&out);
    let load = facts["workloads"][0]["load"].as_f64().expect("a load");
    assert!((load - 1.0).abs() < 0.05, "{load}");
    let (link, load) = (&facts["worst_link"][0], facts["worst_link"][1].as_f64().expect("a load"));
    assert!(link == "0 -> 2" && (load - 2.1).abs() < 0.1, "{link} {load}");
    let (out, _) = scratch.expect(0, &study);
    assert!(out.contains("for 47.9 us") && out.contains("fullest link      0 -> 2"), "{out}");
}

#[test]
fn the_failed_links_of_a_matrix_are_those_that_fail_in_htsim() {
    // Four pods of two aggregation switches; htsim wires the second of a pod to core 1 and core 3, by two links each.
    let topology = "Nodes 32\nTiers 3\nPodsize 8\n\n\
        Tier 0\nDownlink_speed_Gbps 40\nDownlink_Latency_ns 500\nOversubscribed 2\nRadix_Down 4\nRadix_Up 2\n\n\
        Tier 1\nDownlink_speed_Gbps 40\nDownlink_Latency_ns 1000\nRadix_Down 2\nRadix_Up 2\n\n\
        Tier 2\nDownlink_speed_Gbps 40\nDownlink_Latency_ns 2000\nRadix_Down 4\n";
    let bundled = topology.replace("Radix_Down 2\nRadix_Up 2", "Radix_Down 2\nRadix_Up 4") + "Bundle 2\n";
    let failing = |link: u32| {
        format!(
            "Nodes 32\nConnections 1\nFailures 1\n0->31 start 0 size 1000\n\
             failure switch_type AGG switch_id 1 link_id {link}\n"
        )
    };
    let scratch = Scratch::new("failures")
        .with("one.topo", topology)
        .with("two.topo", &bundled)
        .with("x.cm", &failing(1))
        .with("wrong.cm", &failing(0))
        .with("tier.cm", &failing(1).replace("AGG", "TOR"))
        .with("switch.cm", &failing(1).replace("switch_id 1", "switch_id 99"));
    let failed = |topology: &str, out: &str| {
        scratch.expect(0, &["run", "--topology", topology, "--flows", "x.cm", "--series", "irn", "--out", out]);
        let scenario = fs::read_to_string(scratch.join(out).join("scenario.toml")).expect("a scenario");
        scenario.lines().find(|line| line.starts_with("link = ")).expect("a failed link").to_owned()
    };
    assert_eq!(failed("one.topo", "one"), "link = \"agg1 - core3\"");
    // htsim fails the first link of a bundle: behind 32 links of hosts, 16 of ToRs, four of agg0 and two of agg1 to
    // core1.
    assert_eq!(failed("two.topo", "two"), "link = 54");
    let (_, error) = scratch.expect(2, &["run", "--topology", "one.topo", "--flows", "wrong.cm", "--series", "irn"]);
    assert!(error.contains("wrong.cm:5:37: htsim takes link 0 of AGG switch 1 for one to core2"), "{error}");
    assert!(error.contains("can fail: 1 (to core3)"), "{error}");
    for (file, said) in [
        ("tier.cm", "tier.cm:5:21: found TOR, but htsim fails links from AGG to core alone"),
        ("switch.cm", "switch.cm:5:35: there is no AGG switch 99: they are 0 to 7"),
    ] {
        let (_, error) = scratch.expect(2, &["run", "--topology", "one.topo", "--flows", file, "--series", "irn"]);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_gpus_of_a_simai_server_talk_through_its_nvswitch() {
    let topology = "7 2 2 1 8 A100\n4 5\n6\n0 4 2400Gbps 0.000025ms 0\n0 6 100Gbps 0.0005ms 0\n\
        1 4 2400Gbps 0.000025ms 0\n1 6 100Gbps 0.0005ms 0\n2 5 2400Gbps 0.000025ms 0\n2 6 100Gbps 0.0005ms 0\n\
        3 5 2400Gbps 0.000025ms 0\n3 6 100Gbps 0.0005ms 0\n";
    let flows = "2\n0 1 3 100 1000 0\n1 2 3 100 1000 0\n";
    let scratch = Scratch::new("simai").with("topology", topology).with("flow.txt", flows);
    let (out, error) = scratch.expect(0, &["topology", "--topology", "topology", "--json"]);
    assert_eq!((parsed(&out)["hosts"].as_u64(), error), (Some(4), String::new()));
    let study = ["run", "--topology", "topology", "--flows", "flow.txt", "--series", "irn", "--seeds", "1"];
    scratch.expect(0, &[&study[..], &["--out", "out"]].concat());
    let fct = fs::read_to_string(scratch.join("out/fct.txt")).expect("fct.txt was written");
    // 1,082 bytes over two links of 2.4 Tb/s and 25 ns, and of 100 Gb/s and 500 ns.
    let lines: Vec<&str> = fct.lines().collect();
    assert!(lines[0].starts_with("0b000001 0b000101 10000 100 1000 0 57 "), "{fct}");
    assert!(lines[1].starts_with("0b000101 0b000201 10001 100 1000 0 1173 "), "{fct}");
}

#[test]
fn tunnels_inside_servers_fill_the_paths_there() {
    let topology = "7 2 2 1 8 A100\n4 5\n6\n0 4 1600Gbps 0.0005ms 0\n0 6 100Gbps 0.001ms 0\n\
        1 4 1600Gbps 0.0005ms 0\n1 6 100Gbps 0.001ms 0\n2 5 1600Gbps 0.0005ms 0\n2 6 100Gbps 0.001ms 0\n\
        3 5 1600Gbps 0.0005ms 0\n3 6 100Gbps 0.001ms 0\n";
    let inside = "0 1 3 100 1000000 0\n";
    let outside = "1 2 3 100 1000000 0.001\n";
    let scratch = Scratch::new("tunnels")
        .with("topology", topology)
        .with("both", &format!("2\n{inside}{outside}"))
        .with("alone.txt", "4 1 3\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n")
        .with("flow.txt", "1\n1 2 3 100 1000000 0.001\n");
    let times = |topology: &str, flows: &str| -> Vec<(f64, f64)> {
        let study = ["run", "--topology", topology, "--flows", flows, "--series", "eqds", "--seeds", "1", "--out"];
        let out = format!("out-{flows}");
        scratch.expect(0, &[&study[..], &[&out]].concat());
        let fct = fs::read_to_string(scratch.join(&out).join("fct.txt")).expect("fct.txt was written");
        let number = |field: Option<&str>| field.expect("a field").parse().expect("a number");
        fct.lines().map(|line| line.split(' ')).map(|mut line| (number(line.nth(6)), number(line.next()))).collect()
    };
    let both = times("topology", "both");
    assert!(both.iter().all(|(fct, ideal)| *fct < 1.2 * ideal), "{both:?}");
    // Flows outside of servers have the same credit as before.
    assert_eq!(both[1], times("alone.txt", "flow.txt")[0]);
}

/// Checks ports, by which HPCC's `fct_analysis.py` tells incasts from other traffic.
#[test]
fn an_fct_txt_has_the_ports_of_its_flows() {
    let six = "4\n1 2 3 100 1000 0\n1 2 3 200 1000 0.001\n3 2 3 200 1000 0.002\n1 2 3 65535 1000 0.003\n";
    let seven = "2\n9 1 2 3 200 1000 0\n4 3 2 3 100 1000 0.001\n";
    let five = "1\n1 2 3 1000 0\n";
    let scratch = Scratch::new("ports").with("topology.txt", TOPOLOGY);
    let scratch = scratch.with("six", six).with("seven", seven).with("five", five);
    for (name, expected) in
        [("six", &["100", "200", "200", "65535"][..]), ("seven", &["200", "100"]), ("five", &["100"])]
    {
        let study = ["run", "--topology", "topology.txt", "--flows", name, "--series", "irn", "--seeds", "1"];
        scratch.expect(0, &[&study[..], &["--out", &format!("out-{name}")]].concat());
        let fct = fs::read_to_string(scratch.join(&format!("out-{name}/fct.txt"))).expect("fct.txt was written");
        let ports: Vec<&str> = fct.lines().filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(ports, expected, "{name}: {fct}");
    }
}

#[test]
fn a_list_may_begin_seconds_into_the_run() {
    let flows =
        |start: &str| format!("3\n1 2 3 100 300000 {start}\n3 2 3 100 300000 {start}\n2 1 3 100 1000 {start}005\n");
    let scratch = Scratch::new("late")
        .with("topology.txt", TOPOLOGY)
        .with("early.txt", &flows("0.000"))
        .with("late.txt", &flows("2.000"));
    let study = ["run", "--topology", "topology.txt", "--series", "irn,roce+pfc", "--seeds", "1", "--flows"];
    let series = |flows: &str, out: &str| {
        let (json, _) = scratch.expect(0, &[&study[..], &[flows, "--out", out, "--json"]].concat());
        let report = fs::read_to_string(scratch.join(out).join("report.html")).expect("a report");
        let mut series = parsed(&json)["series"].clone();
        for one in series.as_array_mut().into_iter().flatten() {
            // Where time goes is sampled, at other moments of these runs.
            one["metrics"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("time_"));
        }
        (series, report.matches("class=\"curve").count(), report.contains("since the first flow"))
    };
    let (early, late) = (series("early.txt", "early"), series("late.txt", "late"));
    assert!(early.0[0]["metrics"]["goodput_gbps"]["mean"].as_f64().expect("a number") > 1.0, "{}", early.0);
    assert_eq!((late.0, late.1), (early.0, early.1));
    assert!(late.2 && !early.2, "the report says from when it counts");

    let refused = |set: &str, said: &str| {
        let (_, error) = scratch.expect(2, &[&study[..], &["late.txt", "--set", set]].concat());
        assert!(error.contains(said) && error.contains("no flow starts before 2s: give a later time"), "{error}");
    };
    refused("stop.time=1ms", "the run ends at 1ms");
    refused("measure={ window = { to = '1ms' } }", "what is measured ends at 1ms");
}

/// Checks files that can be read once, as `--flows <(generate)` in a shell, and an interruption of the run.
#[cfg(unix)]
#[test]
fn files_may_come_through_pipes() {
    let scratch = Scratch::new("pipes").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let pipes = [("t", TOPOLOGY), ("f", FLOWS)].map(|(name, content)| (scratch.join(name), content));
    for (path, _) in &pipes {
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo exists").success());
    }
    let study = ["--series", "irn,roce+pfc", "--threads", "1", "--seeds"];
    let (_, seeds) = scratch.interrupt("-INT", 500, |seeds| {
        for (path, content) in pipes.clone() {
            std::thread::spawn(move || fs::write(path, content));
        }
        let mut command = scratch.command(&["run", "--topology", "t", "--flows", "f", "--out", "out"]);
        command.args(study).arg(seeds);
        command
    });

    // Input from pipes is kept, so that the study can be continued, and repeated elsewhere.
    let (piped, _) = scratch.expect(0, &["run", "--resume", "out", "--json"]);
    let files = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--json"];
    let (read, _) = scratch.expect(0, &[&files[..], &study, &[&seeds.to_string()]].concat());
    assert_eq!(parsed(&piped)["series"], parsed(&read)["series"]);
    let kept = fs::read_dir(scratch.join("out/inputs")).expect("the folder is readable").count();
    assert_eq!(kept, 2);
    let (again, _) = scratch.expect(0, &["run", "out/scenario.toml", "--json"]);
    assert_eq!(parsed(&again)["series"], parsed(&read)["series"]);
}

#[test]
fn starts_of_a_matrix_have_the_unit_that_is_said() {
    let matrix = "Nodes 16\nConnections 1\n0->2 start 100 size 1000\n";
    let scenario = SMALL
        .replace("[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }", "[workload.flows]\npath = \"x.cm\"");
    let scratch = Scratch::new("units").with("x.cm", matrix).with("s.toml", &scenario).with("flow.txt", FLOWS);
    let (out, error) = scratch.expect(0, &["workload", "s.toml"]);
    assert!(out.contains("100.000 us  h0 -> h2"), "{out}");
    let warning = "x.cm:3: starts are taken as microseconds, because all are below 1000000; set workload.flows.start-unit to \"ps\"";
    assert!(error.contains(warning), "{error}");
    let (out, error) = scratch.expect(0, &["workload", "s.toml", "--set", "workload.flows.start-unit=ns"]);
    assert!(out.contains("0.100 us  h0 -> h2") && error.is_empty(), "{out}{error}");
    let ns3 = ["workload", "s.toml", "--set", "workload.flows={path='flow.txt',start-unit='ps'}"];
    let (_, error) = scratch.expect(2, &ns3);
    assert!(error.contains("workload.flows.start-unit: flow.txt is") && error.contains("leave this out"), "{error}");
}

#[test]
fn lists_of_lost_packets_may_begin_with_a_byte_order_mark() {
    let scenario = format!("{SMALL}[[loss]]\nlink = \"all\"\nmodel.trace.path = \"lost.txt\"\n");
    let scratch = Scratch::new("bom").with("lost.txt", "\u{feff}0 # the first\n7\n").with("s.toml", &scenario);
    scratch.expect(0, &["workload", "s.toml"]);
}

#[test]
fn oversubscription_counts_all_tiers() {
    // Two pods of two ToRs; 2 : 1 above the ToRs, and again above the aggregation switches.
    let mut links = String::new();
    let mut link = |a: &str, b: &str| {
        links.push_str(&format!("{{ between = [\"{a}\", \"{b}\"], rate = \"100Gbps\", delay = \"1us\" }},"));
    };
    for tor in 0..4 {
        link(&format!("h{}", 2 * tor), &format!("tor{tor}"));
        link(&format!("h{}", 2 * tor + 1), &format!("tor{tor}"));
        link(&format!("tor{tor}"), &format!("agg{}", tor / 2));
    }
    link("agg0", "core");
    link("agg1", "core");
    let hosts = (0..8).map(|host| format!("\"h{host}\"")).collect::<Vec<_>>().join(",");
    let switches = "\"tor0\",\"tor1\",\"tor2\",\"tor3\",\"agg0\",\"agg1\",\"core\"";
    let topology = format!("[topology.explicit]\nhosts = [{hosts}]\nswitches = [{switches}]\nlinks = [{links}]");
    let scenario =
        SMALL.replace("[topology.fat-tree]\nk = 4\nlink = { rate = \"40Gbps\", delay = \"2us\" }", &topology);
    assert_ne!(scenario, SMALL);
    let scratch = Scratch::new("oversubscription").with("s.toml", &scenario);
    let (out, _) = scratch.expect(0, &["topology", "s.toml"]);
    assert!(out.contains("4.00 : 1"), "{out}");
}

#[test]
fn what_is_cut_off_or_more_than_a_host_can_have_is_said() {
    let links = "0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n";
    let scratch = Scratch::new("dialects")
        .with("flow.txt", "2\n0 2 3 100 100000 0\n1 3 3 100 100000 0\n")
        // Headers of PowerTCP, and of ABM.
        .with("powertcp.txt", &format!("6 2 2 5\n4 5\n{links}4 5 25000000000.0 1us 0\n"))
        .with("abm.txt", &format!("6 2 2 5 100 25\n4 5\n{links}4 5 25000000000.0 1us 0\n"))
        .with("cut.txt", &format!("6 2 5\n4 5\n{links}"))
        .with("torn.txt", &format!("6 2 5\n4 5\n{links}4 5 25Gbp"))
        .with("switches.txt", "4 2 0 2 8 H100\n2 3\n0 2 900Gbps 1us 0\n0 3 900Gbps 1us 0\n1 2 900Gbps 1us 0\n1 3 900Gbps 1us 0\n")
        .with("nvlinks.txt", "4 2 2 0 4 H100\n2 3\n0 2 900Gbps 1us 0\n0 3 900Gbps 1us 0\n1 2 900Gbps 1us 0\n1 3 900Gbps 1us 0\n")
        .with("rails.txt", "6 2 6\n4 5\n0 4 400Gbps 1us 0\n1 4 400Gbps 1us 0\n0 5 400Gbps 1us 0\n1 5 400Gbps 1us 0\n2 4 400Gbps 1us 0\n3 5 400Gbps 1us 0\n");
    for topology in ["powertcp.txt", "abm.txt"] {
        let study = ["run", "--topology", topology, "--flows", "flow.txt", "--series", "irn", "--seeds", "1", "--json"];
        let (out, _) = scratch.expect(0, &study);
        assert_eq!(parsed(&out)["series"][0]["metrics"]["measured_flows"]["mean"], 2.0, "{topology}");
    }
    for (topology, message) in [
        ("cut.txt", "(cut.txt:1: the header says 5 links, the file has 4: 1 is missing, and those found are taken)"),
        ("torn.txt", "the file ends with this line: of the 5 links that the header says, 1 is missing"),
        ("nvlinks.txt", "a GPU has one link to NVSwitches here: give each server one NVSwitch"),
        ("switches.txt", "but a host has one NIC with one link: put a switch in between"),
        ("rails.txt", "rails.txt:5:1: node 0 is a host and has a link already (line 3), but a host has one NIC"),
    ] {
        let (_, error) = scratch.expect(2, &["run", "--topology", topology, "--flows", "flow.txt"]);
        assert!(error.contains(message), "{topology}: {error}");
    }
    let (_, error) = scratch.expect(2, &["run", "powertcp.txt"]);
    let remedy = "powertcp.txt: this is an ns-3 RDMA topology, not a scenario: give it as --topology powertcp.txt";
    assert!(error.contains(remedy), "{error}");
}

#[test]
fn a_second_nic_of_a_goal_schedule_is_warned_about_once_by_its_line() {
    let schedule = "num_ranks 2\nrank 0 {\nl1: send 100000b to 1 tag 5 cpu 0nic 3\nl2: send 100000b to 1 tag 6 nic 4\n}\n\
                    rank 1 {\nl1: recv 100000b from 0 tag 5 nic 1\nl2: recv 100000b from 0 tag 6 nic 2\n}\n";
    let scratch = Scratch::new("goal-nic")
        .with("nic.goal", schedule)
        .with("star.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
    std::fs::write(scratch.join("cut.bin"), [2342u64.to_le_bytes(), [0; 8]].concat()).expect("writable");
    let study = ["run", "--topology", "star.txt", "--flows", "nic.goal", "--series", "irn,roce", "--seeds", "1"];
    let (out, error) = scratch.expect(0, &study);
    let warning = "nic.goal:3: \"nic 3\" names another NIC than a rank's first, as 3 more messages do";
    assert_eq!(error.matches(warning).count(), 1, "{error}");
    assert!(out.replace("\n  ", " ").contains(warning), "{out}");
    let (_, error) = scratch.expect(2, &["run", "--topology", "star.txt", "--flows", "cut.bin"]);
    assert!(error.contains("cut.bin:1:1: found a binary GOAL schedule that is marked invalid"), "{error}");
}

#[test]
fn runs_of_a_few_round_trips_are_warned_about() {
    let scratch = Scratch::new("short").with("small.toml", SMALL);
    let (out, _) = scratch.expect(0, &["run", "small.toml", "--seeds", "1", "--set", "stop.time=8us", "-q"]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("Runs of all series are over within 8.0 us, less than 10 round trips of "), "{out}");
    let (out, _) = scratch.expect(0, &["run", "small.toml", "--seeds", "1", "-q", "--set", "stop.flows=3000"]);
    assert!(!out.contains("round trips"), "{out}");
}
