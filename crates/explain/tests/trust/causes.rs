//! Flows that are slow for known reasons.

use selvedge_telemetry::TimePart;
use selvedge_units::Duration;

use crate::support::{FAT_TREE, START, dumbbell, explain_flows, explain_in_servers, fraction, losing, parts, series};

#[test]
fn who_meets_nobody_has_serialisation_and_propagation_only() {
    for preset in ["irn", "roce+pfc", "roce"] {
        for size in [1, 1_000, 1_024, 1_500, 40_000, 1_000_000] {
            // As fast as the hosts' links, faster, and slower.
            for bottleneck in ["40Gbps", "100Gbps", "25Gbps", "12Gbps"] {
                let text = dumbbell(bottleneck) + &series(preset);
                let sets = ["switch.buffer.input-queued.per-port=2MB"];
                let run = explain_flows(&text, &sets, &[(0, 4, size, START)]);
                let alone = run.flow(0);
                let place = format!("{preset}, {size} bytes, {bottleneck}: {alone:?}");
                // BDP-FC counts propagation alone (IRN section 3.2), which is a little less than a round trip takes:
                // it costs a flow a few per cent.
                let cap = alone.parts[TimePart::Cap];
                assert!(cap.is_zero() || (preset == "irn" && fraction(alone, TimePart::Cap) < 0.03), "{place}");
                assert_eq!(alone.parts[TimePart::Propagation], Duration::from_us(7), "{place}");
                assert_eq!(
                    alone.parts[TimePart::Serialisation] + Duration::from_us(7) + cap,
                    alone.parts.total(),
                    "{place}"
                );
                assert_eq!(alone.parts.total() - cap, alone.flow.ideal, "{place}");
            }
        }
    }
}

#[test]
fn who_shares_a_bottleneck_queues() {
    // Two flows into one host: each delays the other for as long as it takes itself.
    for preset in ["irn", "roce"] {
        let sets = ["switch.buffer.input-queued.per-port=4MB"];
        let text = dumbbell("100Gbps") + &series(preset);
        let run = explain_flows(&text, &sets, &[(0, 4, 1_000_000, START), (1, 4, 1_000_000, START)]);
        for flow in [run.flow(0), run.flow(1)] {
            assert!((0.45..0.55).contains(&fraction(flow, TimePart::Serialisation)), "{preset}: {flow:?}");
            assert!((0.42..0.50).contains(&fraction(flow, TimePart::Queueing)), "{preset}: {flow:?}");
            assert_eq!(run.names.port(flow.places[0].port), "right -> h4", "{preset}");
        }
    }
}

#[test]
fn who_shares_a_nic_waits_for_it() {
    let text = FAT_TREE.to_owned() + &series("roce+pfc");
    let run = explain_flows(&text, &[], &[(0, 15, 1_000_000, START), (0, 8, 1_000_000, START)]);
    for flow in [run.flow(0), run.flow(1)] {
        assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation, TimePart::Nic]);
        assert!((0.47..0.5).contains(&fraction(flow, TimePart::Nic)), "{flow:?}");
    }
}

#[test]
fn flows_through_the_second_nic_of_a_host_are_not_those_of_its_first() {
    // Both NICs number their queue pairs alike.
    for preset in ["irn", "roce+pfc", "tcp", "eqds", "ndp"] {
        let flows = [(0, 1, 100_000, START), (0, 2, 100_000, START), (0, 1, 100_000, START)];
        let run = explain_in_servers(preset, &flows);
        let ways = [["h0-inner -> left", "left -> h1-inner"], ["h0 -> fabric", "fabric -> h2"]];
        for (id, way) in [(0, ways[0]), (1, ways[1]), (2, ways[0])] {
            let flow = run.flow(id);
            let hops: Vec<String> = flow.last.iter().map(|hop| run.names.port(hop.port)).collect();
            assert_eq!(
                (hops.iter().map(String::as_str).collect::<Vec<_>>(), flow.sent),
                (way.to_vec(), flow.flow.packets),
                "{preset}"
            );
        }
        assert!(
            run.flow(0).parts[TimePart::Nic] + run.flow(2).parts[TimePart::Nic] > Duration::ZERO,
            "{preset}: they share a link"
        );
        assert_eq!(run.flow(1).parts[TimePart::Nic], Duration::ZERO, "{preset}: it shares none");
    }
}

#[test]
fn who_is_paused_knows_by_whom() {
    // Three flows into one host fill the input of its switch, which pauses the other switch; that one's
    // inputs fill too, and it pauses the hosts.
    let text = dumbbell("100Gbps") + &series("roce+pfc");
    let run = explain_flows(&text, &[], &[0, 1, 2].map(|src| (src, 4, 2_000_000, START)));
    let slow = run.flow(0);
    assert!(fraction(slow, TimePart::Pause) > 0.4, "{slow:?}");
    let name = |port| run.names.port(port);
    let at_host = slow.pauses.iter().find(|tree| name(tree.port) == "h0 -> left").expect("the host was paused");
    let [left] = at_host.causes.as_slice() else { panic!("one way: {at_host:?}") };
    let [right] = left.causes.as_slice() else { panic!("one way: {at_host:?}") };
    assert_eq!((name(left.port).as_str(), name(right.port).as_str()), ("left -> right", "right -> h4"));
    assert_eq!((left.time, right.causes.len()), (at_host.time, 0), "all of it is explained");
    assert_eq!(right.congested, right.time, "nobody pauses the port to a host");
    assert_eq!(left.congested + right.time, left.time);
    assert!(left.congested < left.time / 2, "the pause comes from the end: {at_host:?}");
    assert_eq!(right.inputs, 1);
}

#[test]
fn who_loses_the_last_packet_times_out() {
    for (preset, rto_us) in [("irn", 100.0), ("roce-baseline", 216.0)] {
        let run = explain_flows(&losing(preset, "9"), &[], &[(0, 15, 10_240, START)]);
        let flow = run.flow(0);
        assert_eq!((flow.timeouts, flow.drops.len(), flow.again), (1, 1, 1), "{preset}: {flow:?}");
        // The timer restarts with each acknowledgement, the last of which arrives a round trip late.
        let timeout = flow.parts[TimePart::Timeout].as_us_f64() - rto_us;
        assert!((20.0..26.0).contains(&timeout), "{preset}: {timeout}");
        assert_eq!(
            parts(flow),
            [TimePart::Serialisation, TimePart::Propagation, TimePart::Recovery, TimePart::Timeout]
        );
    }
}

#[test]
fn who_loses_one_before_the_end_waits_a_round_trip_for_the_news() {
    let run = explain_flows(&losing("irn", "8"), &[], &[(0, 15, 10_240, START)]);
    let flow = run.flow(0);
    assert_eq!((flow.timeouts, flow.drops.len(), flow.again), (0, 1, 1));
    assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation, TimePart::Recovery]);
    // Twelve links of two microseconds.
    let recovery = flow.parts[TimePart::Recovery].as_us_f64();
    assert!((24.0..26.0).contains(&recovery), "{recovery}");
}

#[test]
fn who_goes_back_sends_again() {
    let run = explain_flows(&losing("roce", "0"), &[], &[(0, 15, 1_024_000, START)]);
    let flow = run.flow(0);
    assert!(flow.again > 50, "{flow:?}");
    // Each retransmitted packet takes its serialisation time again.
    let again = flow.parts[TimePart::Serialisation] * flow.again / flow.flow.packets;
    let difference = flow.parts[TimePart::Recovery].as_us_f64() - again.as_us_f64();
    assert!(difference.abs() < 1.0, "{difference}: {flow:?}");
}

#[test]
fn limits_of_the_sender_have_names() {
    let fixed = |what: &str| {
        format!("{FAT_TREE}[transport.recovery.irn]\nbdp-cap = \"off\"\n[transport.congestion.fixed]\n{what}\n")
    };
    let cap = FAT_TREE.to_owned() + "[transport.recovery.irn]\nbdp-cap = 20\n";
    for (text, part) in [
        (fixed("rate = \"10Gbps\""), TimePart::Pacing),
        (fixed("window = \"20KB\""), TimePart::Window),
        (cap, TimePart::Cap),
    ] {
        let run = explain_flows(&text, &[], &[(0, 15, 1_000_000, START)]);
        let flow = run.flow(0);
        assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation, part], "{flow:?}");
        assert!(fraction(flow, part) > 0.7, "{flow:?}");
        // The short last packet does not catch up with the one before it.
        let ideal = flow.parts[TimePart::Serialisation] + flow.parts[TimePart::Propagation];
        assert!(flow.flow.ideal.as_us_f64() - ideal.as_us_f64() < 1.0, "{flow:?}");
    }
}

#[test]
fn slow_start_and_handshakes_are_waits_for_the_window() {
    let tcp = |keys: &str| format!("{FAT_TREE}[transport.tcp]\ndelayed-ack = \"off\"\n{keys}\n");
    let window = |keys: &str| {
        let run = explain_flows(&tcp(keys), &[], &[(0, 15, 70 * 1_024, START)]);
        let flow = run.flow(0);
        assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation, TimePart::Window], "{keys}: {flow:?}");
        flow.parts[TimePart::Window].as_us_f64()
    };
    // A round trip of 25.5 us, less the 2.2 and 4.5 that 10 and 20 segments take; the last 40 wait for nothing.
    let rounds = window("initial-window = 10");
    assert!((43.0..46.0).contains(&rounds), "after 10 and 20 segments: {rounds}");
    let one = window("initial-window = 40");
    assert!((16.0..18.0).contains(&one), "after 40: {one}");
    let shake = window("initial-window = 40\nhandshake = true") - one;
    assert!((24.0..25.0).contains(&shake), "a round trip more: {shake}");
}

#[test]
fn who_loses_a_segment_of_tcp_waits_for_news_or_a_timeout() {
    let lossy = |drops: &str| losing("tcp", drops);
    let run = explain_flows(&lossy("2"), &[], &[(0, 15, 10_240, START)]);
    let flow = run.flow(0);
    assert_eq!((flow.timeouts, flow.drops.len(), flow.again), (0, 1, 1), "{flow:?}");
    assert_eq!(parts(flow), [TimePart::Serialisation, TimePart::Propagation, TimePart::Recovery], "{flow:?}");
    let run = explain_flows(&lossy("9"), &[], &[(0, 15, 10_240, START)]);
    let flow = run.flow(0);
    assert_eq!((flow.timeouts, flow.drops.len(), flow.again), (1, 1, 1), "{flow:?}");
    assert!(fraction(flow, TimePart::Timeout) > 0.5, "{flow:?}");
    // A probe after two round trips repairs the end of a flow before the timer: its sender has waited for news.
    let probing = lossy("9").replace("tail-loss-probe' = false", "tail-loss-probe' = true");
    let run = explain_flows(&probing, &[], &[(0, 15, 10_240, START)]);
    let flow = run.flow(0);
    assert_eq!((flow.timeouts, flow.drops.len(), flow.again), (0, 1, 1), "{flow:?}");
    assert!(fraction(flow, TimePart::Recovery) > 0.5, "{flow:?}");
}
