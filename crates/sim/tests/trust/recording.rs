//! Recorded events: complete, in one order, and without effect on the run.

use std::collections::BTreeSet;

use selvedge_sim::fault::LinkFailure;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_transport::HoldReason;
use selvedge_units::{Duration, HostId, Instant, PortId};
use selvedge_wire::Repr;

use crate::determinism::scenarios;
use crate::support::{Scene, Series, link, star};

fn everything() -> Focus {
    Focus { flows: Chosen::All, ports: Chosen::All, pauses: true, ..Focus::default() }
}

/// Returns the flows with these numbers in the first workload.
fn flows(ids: &[u64]) -> Chosen<FlowKey> {
    Chosen::These(ids.iter().map(|&id| FlowKey { workload: 0, id }).collect())
}

fn count(events: &[Event], is: impl Fn(&What) -> bool) -> u64 {
    events.iter().filter(|event| is(&event.what)).count() as u64
}

#[test]
fn threads_and_partitions_change_no_event() {
    for (name, scene) in scenarios() {
        let some = Focus { flows: flows(&[0, 3, 7]), pauses: true, ..Focus::default() };
        for focus in [everything(), some] {
            let (_, alone) = scene.record(&focus);
            for (threads, partitions) in [(1, 2), (2, 8)] {
                let (_, events) = scene.clone().parallel(threads, partitions).record(&focus);
                assert!(events == alone, "{name}: {threads} threads, {partitions} partitions");
            }
        }
    }
}

#[test]
fn events_add_up_to_the_record() {
    for (name, scene) in scenarios() {
        let (outcome, events) = scene.record(&everything());
        let record = &outcome.record;
        let data = |packet: &selvedge_wire::Packet| match packet.repr {
            Repr::Data(_) => true,
            Repr::Tcp(segment) => segment.payload() > 0,
            Repr::EqdsData(data) => data.payload > 0,
            Repr::Ack(_)
            | Repr::HoleNack(_)
            | Repr::Cnp
            | Repr::Control(_)
            | Repr::Pause(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => false,
        };
        let at_host = |event: &&Event| matches!(event.node, Node::Host(_));
        let hosts: Vec<Event> = events.iter().filter(at_host).copied().collect();
        let hops = count(&events, |what| matches!(what, What::Sent { .. }));
        let sent = count(&hosts, |what| matches!(what, What::Sent { packet, .. } if data(packet)));
        let dropped = count(&events, |what| matches!(what, What::Dropped { packet, .. } if data(packet)));
        let started = count(&events, |what| matches!(what, What::FlowStarted { .. }));
        let finished = count(&events, |what| matches!(what, What::FlowFinished { .. }));
        assert_eq!(hops, record.packet_hops, "{name}");
        assert_eq!(sent, record.data_sent, "{name}");
        assert_eq!(dropped, record.data_drops.total(), "{name}");
        assert_eq!(count(&events, |what| matches!(what, What::Trimmed { .. })), record.trims, "{name}");
        assert_eq!((started, finished), (record.flows_started, record.flows_finished), "{name}");
        assert!(events.is_sorted_by_key(|event| (event.at, event.node)), "{name}: in order");
    }
}

#[test]
fn a_focus_is_a_part_of_everything() {
    for (name, scene) in scenarios().into_iter().take(4) {
        let (_, all) = scene.record(&everything());
        let port = PortId(20);
        let until = Instant::ZERO + Duration::from_us(200);
        let ports = Chosen::These(BTreeSet::from([port]));
        let (_, some) = scene.record(&Focus { ports, until: Some(until), ..Focus::default() });
        let touches = |event: &&Event| {
            event.at < until
                && match event.what {
                    What::Sent { port: at, .. }
                    | What::Arrived { port: at, .. }
                    | What::Dropped { port: at, .. }
                    | What::Paused { port: at, .. }
                    | What::Filled { port: at, .. }
                    | What::Link { port: at, .. } => at == port,
                    What::Queued { port: at, ingress, .. } => at == port || ingress == port,
                    // Starts of flows tell whose packets the others are.
                    What::FlowStarted { .. } => true,
                    _ => false,
                }
        };
        let expected: Vec<Event> = all.iter().filter(touches).copied().collect();
        assert!(!expected.is_empty());
        assert!(some == expected, "{name}");
    }
}

#[test]
fn a_flow_alone_tells_its_story_in_order() {
    let scene = Scene::new(star(&[link(40, 2_000); 2]), Series::Irn).flow(0, 1, 1_500, Duration::from_us(3));
    let (_, events) = scene.record(&Focus { flows: flows(&[0]), ..Focus::default() });
    let story: Vec<String> = events.iter().map(line).collect();
    assert_eq!(
        story,
        [
            "3.000 h0 begins",
            "3.000 h0 waits: Link",
            "3.000 h0 sends data",
            "3.000 h0 waits: Link",
            "3.221 h0 sends data",
            "3.221 h0 waits: Acks",
            "5.221 s0 gets data",
            "5.221 s0 sends data",
            "5.333 s0 gets data",
            "5.333 s0 queues data behind 0B",
            "5.442 s0 sends data",
            "7.442 h1 gets data",
            "7.442 h1 sends ack",
            "7.554 h1 gets data",
            "7.554 h1 has it",
            "7.554 h1 sends ack",
            "9.460 s0 gets ack",
            "9.460 s0 sends ack",
            "9.571 s0 gets ack",
            "9.571 s0 sends ack",
            "11.477 h0 gets ack",
            "11.477 h0 waits: Acks",
            "11.588 h0 gets ack",
        ]
    );
}

fn line(event: &Event) -> String {
    let node = match event.node {
        Node::Host(HostId(n)) => format!("h{n}"),
        Node::Switch(switch) => format!("{switch:?}"),
    };
    let kind = |packet: &selvedge_wire::Packet| if matches!(packet.repr, Repr::Data(_)) { "data" } else { "ack" };
    let what = match &event.what {
        What::FlowStarted { .. } => "begins".to_owned(),
        What::FlowFinished { .. } => "has it".to_owned(),
        What::Sent { packet, .. } => format!("sends {}", kind(packet)),
        What::Arrived { packet, .. } => format!("gets {}", kind(packet)),
        What::Queued { packet, ahead, .. } => format!("queues {} behind {ahead}", kind(packet)),
        What::Held { hold, .. } => format!("waits: {hold:?}"),
        other => format!("{other:?}"),
    };
    assert!(!matches!(&event.what, What::Held { hold: HoldReason::Cap | HoldReason::Window, .. }), "the flow is short");
    format!("{:.3} {node} {what}", event.at.as_us_f64())
}

#[test]
fn what_comes_just_when_a_repaired_port_is_free_does_not_wait() {
    // Frames follow each other without a gap: the next one comes when the one that was on the wire has left.
    let scene = Scene::new(star(&[link(40, 500); 2]), Series::Irn).flow(0, 1, 100_000, Duration::ZERO);
    for at in (3_000..3_250).step_by(10).map(Duration::from_ns) {
        let link = "h1".parse().expect("a valid link selector");
        let failure = LinkFailure { link, at, until: Some(at + Duration::from_ns(1)) };
        scene.clone().with(|config| config.failures.push(failure)).record(&Focus::default());
    }
}
