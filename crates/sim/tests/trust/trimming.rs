//! Switches that cut packets to their headers.

use selvedge_sim::Beside;
use selvedge_sim::config::{BufferConfig, FlowQueues, Trimming};
use selvedge_sim::record::{Chosen, Event, Focus, What};
use selvedge_telemetry::DropReason;
use selvedge_transport::recovery::irn::{PartialAcks, RtoRestart};
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Chance, Duration, PortId, Setting};
use selvedge_wire::{Header, Packet};

use crate::determinism::ndp;
use crate::support::{Outcome, Scene, Series, drops, link, star};

/// Returns a scene in which eight hosts send to one at the same time, through a switch that trims.
fn incast(trimming: Trimming) -> Scene {
    let scene = Scene::new(star(&[link(40, 500); 9]), Series::Irn);
    let scene = scene.with(|config| config.switch.buffer = BufferConfig::Trimming(trimming));
    (0..8).fold(scene, |scene, src| scene.flow(src, 8, 50_000, Duration::ZERO))
}

/// Port of the switch towards the receiver.
const BOTTLENECK: PortId = PortId(17);

fn watched(trimming: Trimming) -> (Outcome, Vec<Event>) {
    incast(trimming).record(&Focus { ports: Chosen::All, ..Focus::default() })
}

fn trims(events: &[Event]) -> impl Iterator<Item = (usize, &Packet)> {
    events.iter().enumerate().filter_map(|(at, event)| match &event.what {
        What::Trimmed { packet, .. } => Some((at, packet)),
        _ => None,
    })
}

fn was_queued(events: &[Event], packet: &Packet) -> bool {
    let same = |other: &Packet| (other.src, other.qp, other.sent_at) == (packet.src, packet.qp, packet.sent_at);
    events.iter().any(|event| matches!(&event.what, What::Queued { packet, .. } if same(packet)))
}

#[test]
fn transports_that_want_no_headers_take_trims_for_losses() {
    let outcome = incast(Trimming::default()).finish();
    let record = &outcome.record;
    let dropped = drops(&record.data_drops, DropReason::Trimmed);
    let refused = drops(&record.data_drops, DropReason::BufferFull);
    assert!(record.trims > 100, "{}", record.trims);
    assert_eq!(record.trims, dropped + refused, "each header is dropped at the host, or where headers had no room");
    assert!(record.retransmissions >= record.trims);
}

#[test]
fn what_is_trimmed_and_then_dropped_is_known() {
    let headers = Setting::Value(Bytes::new(128));
    for hears_trims in [false, true] {
        let trimming = Trimming { packets: 2, headers, ..Trimming::default() };
        let scene = incast(trimming).with(|config| {
            if hears_trims {
                ndp(config);
                config.switch.buffer = BufferConfig::Trimming(trimming);
            }
        });
        let record = scene.finish().record;
        let refused = drops(&record.data_drops, DropReason::BufferFull);
        assert!(refused > 0, "two headers are not enough");
        let unwanted = drops(&record.data_drops, DropReason::Trimmed);
        assert_eq!((unwanted > 0, record.trimmed_drops), (!hears_trims, refused + unwanted), "{hears_trims}");
        assert!(record.trims >= record.trimmed_drops);
    }
}

#[test]
fn queues_stay_within_their_bounds() {
    let frame = Bytes::new(1_024 + 62);
    let headers = Bytes::new(640);
    for packets in [1, 4, 8] {
        let trimming = Trimming { packets, headers: Setting::Value(headers), ..Trimming::default() };
        let outcome = incast(trimming).finish();
        let peak = outcome.record.ports[BOTTLENECK.index()].egress_peak;
        assert!(peak <= frame * u64::from(packets) + headers, "{peak} with {packets} packets");
        assert!(peak > frame * u64::from(packets));
        assert!(drops(&outcome.record.data_drops, DropReason::BufferFull) > 0, "ten headers are not enough");
    }
}

/// The last packet is cut for one that is longer than all of the queue, and has to be removed as well: nothing waits
/// then.
#[test]
fn a_packet_may_be_longer_than_the_queue() {
    let trimming = Trimming { packets: 1, trim_last: Chance::ALWAYS, ..Trimming::default() };
    let pairs = (0..4).flat_map(|src| (0..4).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst);
    let outcome = |seed| {
        let scene = Scene::new(star(&[link(40, 500); 4]), Series::Irn).with(|config| {
            config.switch.buffer = BufferConfig::Trimming(trimming);
            (config.nic.mtu, config.nic.ack_frame) = (Bytes::new(64), Bytes::new(300));
        });
        // Senders with more spurious retransmissions fill queues more.
        let scene = scene.irn(|irn| (irn.partial_acks, irn.rto_restart) = (PartialAcks::Latest, RtoRestart::Progress));
        let scene = scene.with(|config| config.seed = seed);
        pairs.clone().fold(scene, |scene, (src, dst)| scene.flow(src, dst, 20_000, Duration::ZERO)).finish()
    };
    // The order of packets that arrive at once is drawn from the seed.
    let outcomes: Vec<_> = [1, 2, 3, 4, 5, 6, 7, 8].map(outcome).into();
    assert!(outcomes.iter().all(|outcome| outcome.record.trims > 0));
    assert!(outcomes.iter().any(|outcome| drops(&outcome.record.data_drops, DropReason::BufferFull) > 0));
}

/// TCP's headers are longer than RDMA's, and a queue of one packet must hold its segments.
#[test]
fn a_queue_of_one_packet_holds_a_segment_of_the_tcp_beside() {
    let one = Trimming { packets: 1, ..Trimming::default() };
    let scene = Scene::new(star(&[link(40, 500); 3]), Series::Irn).with(|config| {
        config.switch.buffer = BufferConfig::Trimming(one);
        config.beside = Some(Beside { workloads: vec!["flows".into()], class: None, tcp: TcpConfig::default() });
    });
    let scene = [0, 1].into_iter().fold(scene, |scene, src| scene.flow(src, 2, 50_000, Duration::ZERO));
    let (_, events) = scene.record(&Focus { ports: Chosen::All, ..Focus::default() });
    let full = |packet: &Packet| packet.frame == 1_024 + 70;
    assert!(events.iter().any(|event| matches!(&event.what, What::Queued { packet, .. } if full(packet))));
}

#[test]
fn the_coin_says_whether_the_last_or_the_newest_is_cut() {
    for (trim_last, expected) in [(Chance::NEVER, 0.0), (Chance::ratio(1, 2), 0.5), (Chance::ALWAYS, 1.0)] {
        let (outcome, events) = watched(Trimming { trim_last, ..Trimming::default() });
        let last = trims(&events).filter(|&(at, packet)| was_queued(&events[..at], packet)).count();
        let share = last as f64 / outcome.record.trims as f64;
        assert!((share - expected).abs() < 0.12, "{share} instead of {expected}");
    }
}

#[test]
fn headers_go_first_until_data_has_its_turn() {
    for turn in [1, 3, 10] {
        let trimming = Trimming { headers_per_data: Setting::Value(turn), ..Trimming::default() };
        let (_, events) = watched(trimming);
        let (mut in_a_row, mut most, mut data_waits) = (0, 0, false);
        for event in &events {
            match &event.what {
                What::Queued { port: BOTTLENECK, packet, .. } if !packet.is_trimmed() => data_waits = true,
                What::Sent { port: BOTTLENECK, packet, waiting, .. } if !packet.is_trimmed() => {
                    in_a_row = 0;
                    data_waits = !waiting.is_zero();
                }
                What::Sent { port: BOTTLENECK, .. } if data_waits => {
                    in_a_row += 1;
                    most = most.max(in_a_row);
                }
                _ => {}
            }
        }
        assert!(most <= turn, "{most} headers went before data that waited, not {turn}");
        assert!(turn > 3 || most == turn, "so many do where they can: {most}, {turn}");
    }
}

#[test]
fn a_trimmed_packet_is_its_headers_from_there_on() {
    let (_, events) = watched(Trimming::default());
    let header = Header::MINIMUM_FRAME.get() as u16;
    let whole = |packet: &Packet| packet.frame > header && !packet.is_trimmed();
    for event in &events {
        if let What::Trimmed { packet, class, .. } = &event.what {
            assert!(packet.is_trimmed() && packet.frame == header && packet.class > *class);
        }
        if let What::Sent { port: BOTTLENECK, packet, .. } = &event.what {
            assert!(whole(packet) || packet.frame == header);
        }
    }
    let at_host =
        |event: &&Event| matches!(&event.what, What::Arrived { port: PortId(8), packet, .. } if packet.is_trimmed());
    assert!(events.iter().filter(at_host).count() > 50);
}

/// Returns, for a flow at line rate and one of 20 short messages beside it, how many packets of each were cut, and the
/// longest that a short message took beyond its ideal time. Both have priority `short` and `long`.
fn long_beside_short(trimming: Trimming, weights: [u16; 8]) -> ([usize; 2], Duration) {
    let scene = Scene::new(star(&[link(40, 500), link(40, 500), link(10, 500)]), Series::Irn);
    let mut scene = scene.flow(0, 2, 400_000, Duration::ZERO).with(|config| {
        config.switch.buffer = BufferConfig::Trimming(trimming);
        config.switch.weights = weights;
    });
    for n in 0..20 {
        scene = scene.flow(1, 2, 900, Duration::from_us(5 + 15 * n));
    }
    let (outcome, events) = scene.record(&Focus { ports: Chosen::All, ..Focus::default() });
    let of = |src: u32| trims(&events).filter(|(_, packet)| packet.src.0 == src).count();
    let longest = (1..21).map(|id| outcome.delay(id)).max().expect("20 messages");
    ([of(0), of(1)], longest)
}

#[test]
fn flows_with_queues_of_their_own_are_not_cut_for_what_others_send() {
    let ndp = Trimming { packets: 8, ..Trimming::default() };
    let (together, _) = long_beside_short(ndp, [0; 8]);
    let (apart, longest) = long_beside_short(Trimming { flow_queues: Some(FlowQueues::default()), ..ndp }, [0; 8]);
    assert!(together[0] > 10 && together[1] > 0, "one queue for all: {together:?}");
    assert!(apart[0] > 5 && apart[1] == 0, "a queue for each: {apart:?}");
    assert!(longest < Duration::from_us(3), "one packet of the other flow goes first, or two: {longest}");
}

#[test]
fn a_queue_with_a_limit_of_its_own_is_cut_there() {
    let per_flow = Setting::Value(Bytes::new(2_500));
    let flows = FlowQueues { per_flow, ..FlowQueues::default() };
    let trimming = Trimming { packets: 50, flow_queues: Some(flows), ..Trimming::default() };
    let outcome = incast(trimming).finish();
    // Each flow has two packets in its queue, and one of them all stands at the port.
    let most = Bytes::new(8 * 2_500 + 2 * 1_086) + trimming.header_room(Bytes::new(1_086)).unwrap_or_default();
    assert!(outcome.record.ports[BOTTLENECK.0 as usize].egress_peak <= most);
    assert!(outcome.record.ports[BOTTLENECK.0 as usize].trims > 0, "there is room for 50 packets");
}
