//! Flows that had not finished when the run ended: the events that they waited for, and the split of their time.

use selvedge_explain::{Awaited, Cause, Stop};
use selvedge_sim::record::FlowKey;
use selvedge_telemetry::TimePart;
use selvedge_testkit::texts::ring;
use selvedge_units::{Duration, Instant};

use crate::support::{
    Explained, FAT_TREE, START, dumbbell, explain_flows, explain_point, fraction, losing, parts, plan, series,
};

/// Runs a ring in which each host sends two switches further, in the same direction: a PFC deadlock.
fn deadlocked(preset: &str) -> Explained {
    let flows: Vec<_> = (0..10).map(|host| (host, (host + 4) % 10, 2_000_000, START)).collect();
    explain_flows(&(ring() + &series(preset)), &["switch.buffer.input-queued.per-port=50KB"], &flows)
}

#[test]
fn a_deadlock_is_named_with_what_stands_in_it() {
    for preset in ["roce+pfc", "irn+pfc"] {
        let run = deadlocked(preset);
        let cycle = run.cycle.as_ref().expect("a deadlock");
        let ports: Vec<String> = cycle.ports.iter().map(|stuck| run.names.port(stuck.port)).collect();
        assert_eq!(ports, ["s0 -> s1", "s1 -> s2", "s2 -> s3", "s3 -> s4", "s4 -> s0"], "{preset}");
        for (n, stuck) in (0..).zip(&cycle.ports) {
            let paused = stuck.paused.expect("the port is paused");
            assert!(paused < cycle.since && cycle.since < cycle.at, "{preset}: {cycle:?}");
            // All frames are equal: headers of 62 bytes.
            assert_eq!(stuck.waiting.get(), stuck.packets * 1_086, "{preset}: {stuck:?}");
            assert_eq!(stuck.packets, stuck.flows.iter().map(|held| held.packets).sum::<u64>(), "{preset}");
            // Flows of the switch's own hosts, and of the hosts of the switch before.
            let mut flows: Vec<u64> = stuck.flows.iter().filter_map(|held| held.flow.map(|flow| flow.id)).collect();
            flows.sort_unstable();
            let mut expected = [2 * n, 2 * n + 1, (2 * n + 8) % 10, (2 * n + 9) % 10];
            expected.sort_unstable();
            assert_eq!(flows, expected, "{preset}");
            assert!(stuck.flows.iter().all(|held| held.since < paused), "{preset}: {stuck:?}");
            let own = stuck.flows.iter().find(|held| held.flow == Some(FlowKey { workload: 0, id: 2 * n }));
            let ends = own.map(|held| (u64::from(held.src.0), u64::from(held.dst.0)));
            assert_eq!(ends, Some((2 * n, (2 * n + 4) % 10)));
        }
    }
}

#[test]
fn flows_in_a_deadlock_wait_for_pauses_that_come_round_to_themselves() {
    for preset in ["roce+pfc", "irn+pfc"] {
        let run = deadlocked(preset);
        assert_eq!(run.flows.len(), 10);
        for id in 0..10 {
            let flow = run.flow(id);
            assert!(fraction(flow, TimePart::Pause) > 0.98, "{preset}: {flow:?}");
            // The flow's oldest packet has left the switch of its host, and waits at the next.
            let Some(Awaited::Port { port, since, stop: Some(Stop::Paused(paused)) }) = flow.awaited else {
                panic!("{preset}: {:?}", flow.awaited)
            };
            let next = (id / 2 + 1) % 5;
            assert_eq!(run.names.port(port), format!("s{next} -> s{}", (next + 1) % 5), "{preset}");
            assert!(since < paused && paused < Instant::ZERO + Duration::from_us(100), "{preset}");
            assert_eq!(flow.last.last().map(|hop| (hop.port, hop.from)), Some((port, since)));
            let [tree] = &flow.pauses[..] else { panic!("{preset}: {:?}", flow.pauses) };
            assert_eq!(tree.port, port, "{preset}");
            let mut chain = vec![tree.port];
            let mut causes: &[Cause] = &tree.causes;
            while let [only] = causes {
                assert_eq!((only.time, only.congested), (tree.time, Duration::ZERO), "{preset}");
                chain.push(only.port);
                causes = &only.causes;
            }
            assert_eq!((chain.len(), chain[5]), (6, chain[0]), "{preset}: five ports, and the first again");
        }
    }
}

/// Explains a run that ends at this time.
fn until(text: &str, us: u64, more: &[&str], flows: &[(u32, u32, u64, Duration)]) -> Explained {
    let stop = format!("stop.time={us}us");
    explain_flows(text, &[&[stop.as_str()], more].concat(), flows)
}

#[test]
fn the_time_until_the_run_ends_is_split_like_a_completion_time() {
    // Two flows into one host, half of the first of which has arrived.
    for preset in ["irn", "roce"] {
        let text = dumbbell("100Gbps") + &series(preset);
        let sets = ["switch.buffer.input-queued.per-port=4MB"];
        let run = until(&text, 203, &sets, &[(0, 4, 1_000_000, START), (1, 4, 1_000_000, START)]);
        for flow in [run.flow(0), run.flow(1)] {
            assert_eq!(flow.parts.total(), Duration::from_us(200), "{preset}");
            assert!((0.42..0.60).contains(&fraction(flow, TimePart::Serialisation)), "{preset}: {flow:?}");
            assert!((0.36..0.50).contains(&fraction(flow, TimePart::Queueing)), "{preset}: {flow:?}");
            let Some(Awaited::Port { port, stop: None, .. } | Awaited::Link { port }) = flow.awaited else {
                panic!("{preset}: {:?}", flow.awaited)
            };
            assert_eq!(run.names.port(port), "right -> h4", "{preset}");
        }
    }
}

#[test]
fn a_packet_on_its_way_is_waited_for_there() {
    let run = until(&(FAT_TREE.to_owned() + &series("irn")), 8, &[], &[(0, 15, 1_000, START)]);
    let flow = run.flow(0);
    // Two links of 2.2 us, and 0.6 us of the third.
    assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation], "{flow:?}");
    assert!(matches!(flow.awaited, Some(Awaited::Link { .. })), "{flow:?}");
    assert_eq!((flow.last.len(), flow.parts.total()), (3, Duration::from_us(5)));
}

#[test]
fn who_has_lost_its_last_packet_waits_for_news_or_a_timeout() {
    for preset in ["irn", "roce", "tcp"] {
        let run = until(&losing(preset, "9"), 90, &[], &[(0, 15, 10_240, START)]);
        let flow = run.flow(0);
        let Some(Awaited::Sender { part: TimePart::Recovery, since }) = flow.awaited else {
            panic!("{preset}: {:?}", flow.awaited)
        };
        assert!(since < Instant::ZERO + Duration::from_us(40), "{preset}: {since}");
        assert!(fraction(flow, TimePart::Recovery) > 0.6, "{preset}: {flow:?}");
        assert!(flow.last.is_empty() && flow.timeouts == 0, "{preset}: {flow:?}");
    }
}

#[test]
fn who_has_never_sent_waits_at_its_own_port() {
    // Three flows into one host: pauses reach the hosts. A flow that begins then has to wait, too.
    let text = dumbbell("100Gbps") + &series("roce+pfc");
    let early = [0, 1, 2].map(|src| (src, 4, 2_000_000, START));
    let flows = [&early[..], &[(0, 5, 1_000, Duration::from_us(400))]].concat();
    let run = (0..40).map(|us| until(&text, 401 + us, &[], &flows)).find(|run| run.flow(3).sent == 0);
    let run = run.expect("a time just after a flow began that its host may not send");
    let flow = run.flow(3);
    let Some(Awaited::Port { port, since, .. }) = flow.awaited else { panic!("{:?}", flow.awaited) };
    assert_eq!((run.names.port(port).as_str(), since), ("h0 -> left", flow.flow.start));
    assert!(parts(flow).iter().all(|part| [TimePart::Pause, TimePart::Nic].contains(part)), "{flow:?}");
    assert!(flow.parts[TimePart::Pause] > Duration::ZERO, "{flow:?}");
}

#[test]
fn who_stands_behind_a_link_that_is_down_says_so() {
    let down = "[[failures]]\nlink = \"h0\"\nat = \"50us\"\n";
    let text = format!("{FAT_TREE}{down}[transport.recovery.irn]\nbdp-cap = \"off\"\n{}", series("irn"));
    let run = until(&text, 300, &[], &[(0, 15, 1_000_000, START)]);
    let flow = run.flow(0);
    let Some(Awaited::Port { port, stop: Some(Stop::Down(since)), .. }) = flow.awaited else {
        panic!("{:?}", flow.awaited)
    };
    assert_eq!((run.names.port(port).as_str(), since), ("h0 -> pod0-edge0", Instant::ZERO + Duration::from_us(50)));
    assert!(fraction(flow, TimePart::Outage) > 0.7, "{flow:?}");
}

#[test]
fn parts_add_up_for_every_transport_wherever_the_run_ends() {
    let presets = [
        "irn",
        "irn+pfc",
        "roce",
        "roce+pfc",
        "tcp",
        "tcp+dctcp",
        "mptcp+cubic+spray",
        "netrt+spray",
        "melo+dcqcn",
        "ndp",
        "eqds",
        "eqds+rts",
        "irn+hpcc+flowlet",
        "roce+dcqcn+pfc",
    ];
    let all: String = presets.iter().map(|preset| series(preset)).collect();
    for us in [7, 150, 600] {
        let text = format!(
            "title = \"Cut short\"\nseeds = 1\nstop = {{ time = \"{us}us\" }}\n{FAT_TREE}\
             [workload.poisson]\nload = 0.8\nsizes = \"cdf:irn-heavy-tailed\"\n\
             [[workload.incast]]\nsize = \"150KB\"\nsenders = 6\njitter = \"1us\"\n{all}"
        );
        let plan = plan(&text, &[]);
        for point in plan.points() {
            let run = explain_point(&plan, point);
            let open = run.flows.iter().filter(|flow| flow.awaited.is_some()).count();
            assert!(open > 0, "{}", plan.series[point.series].name);
        }
    }
}
