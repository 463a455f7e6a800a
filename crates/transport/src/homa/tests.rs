//! Hosts with Homa around one switch: each host's link is served by priority, and packets can be lost.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Rate, Setting};
use selvedge_wire::{Control, Packet, Repr};

use super::{GRANT, HomaConfig, Host, RESEND};
use crate::endpoint::{
    Completion, Context, Endpoint, EndpointConfig, EndpointSettings, Frames, Handled, Message, Port,
};
use crate::fabric::Fabric;
use crate::role::Cx;

const RATE: Rate = Rate::from_gbps(10);
/// Delay of each of the two links of a path.
const DELAY: Duration = Duration::from_us(1);
const FRAMES: Frames = Frames {
    mtu: 1_000,
    header: 60,
    ack_frame: 64,
    hole_nack_frame: 76,
    cnp_frame: 64,
    gap: 20,
    ack_class: 6,
    cnp_class: 6,
    classes: [0, 1, 2, 3, 4, 5, 6, 0],
    ecn_capable: false,
};

fn config() -> HomaConfig {
    let mut config = HomaConfig { rtt_bytes: Setting::Value(Bytes::new(10 * 1_080)), ..HomaConfig::default() };
    config.resolve(&Fabric::IRN_PAPER);
    config.check().expect("valid settings");
    config
}

/// A host, its endpoint, and what the NIC keeps of it.
struct Station {
    host: Host,
    port: Port,
    /// Times at which its two links, from and to it, are free.
    up: Instant,
    down: Instant,
    /// Packets that wait for the link to it, by class.
    queues: [VecDeque<Packet>; 8],
}

struct World {
    now: Instant,
    stations: Vec<Station>,
    settings: EndpointConfig,
    /// Packets on their way to the switch, and to their host.
    to_switch: Vec<(Instant, Packet)>,
    to_host: Vec<(Instant, Packet)>,
    /// Senders' entries by the slot in packets, and receivers' by sender and queue pair.
    receivers: BTreeMap<(HostId, QpNumber), u32>,
    next_qp: u32,
    /// Times of completion at receivers, by the caller's name; and names that senders know to be complete.
    received: BTreeMap<u32, Instant>,
    sent: Vec<u32>,
    /// Data packets on the wire, by message, index, class and whether sent again.
    log: Vec<(u32, u32, u8, bool)>,
    /// Control packets on the wire, by label, with their numbers.
    controls: Vec<Control>,
    /// Says which packets are lost on their way to the switch.
    lose: fn(&Packet, usize) -> bool,
    count: usize,
}

impl World {
    fn new(hosts: u32, config: &HomaConfig, lose: fn(&Packet, usize) -> bool) -> Self {
        let station = |host| Station {
            host: Host::new(&config.params().expect("valid settings")),
            port: Port::new(HostId(host), u32::MAX),
            up: Instant::ZERO,
            down: Instant::ZERO,
            queues: Default::default(),
        };
        Self {
            now: Instant::ZERO,
            stations: (0..hosts).map(station).collect(),
            settings: (*config).into(),
            to_switch: Vec::new(),
            to_host: Vec::new(),
            receivers: BTreeMap::new(),
            next_qp: 0,
            received: BTreeMap::new(),
            sent: Vec::new(),
            log: Vec::new(),
            controls: Vec::new(),
            lose,
            count: 0,
        }
    }

    /// Calls a host's endpoint.
    fn call<R>(&mut self, host: u32, call: impl FnOnce(&mut Host, &mut Context<'_, '_>) -> R) -> R {
        let Station { host, port, .. } = &mut self.stations[host as usize];
        let params = self.settings.params().expect("valid settings");
        call(host, &mut Context { cx: &mut Cx::at(self.now), params: &params, frames: &FRAMES, port, first: 0 })
    }

    /// Begins a message of `packets` packets, which is called `name`.
    fn send(&mut self, src: u32, dst: u32, packets: u64, name: u32) {
        let qp = QpNumber(self.next_qp);
        self.next_qp += 1;
        let size = Bytes::new(packets * 1_000);
        let message = Message { dst: HostId(dst), size, entropy: 0, class: 0, links: 2, context: name };
        self.call(src, |host, cx| host.open_sender(cx, qp, &message));
        let receiver = self.call(dst, |host, cx| host.open_receiver(cx, HostId(src), qp, size, name));
        self.receivers.insert((HostId(src), qp), receiver);
    }

    /// Runs until nothing is left to do, or until `end`.
    fn run(&mut self, end: Duration) {
        let end = Instant::ZERO + end;
        loop {
            self.serve();
            let links = self.stations.iter().flat_map(|station| {
                let waits = !station.port.answers.is_empty() || !station.port.ready.is_empty();
                let queued = station.queues.iter().any(|queue| !queue.is_empty());
                [waits.then_some(station.up), queued.then_some(station.down)]
            });
            let deadlines = self.stations.iter().map(|station| station.port.deadlines.next());
            let deadlines = deadlines.filter(|&at| at != Instant::NEVER);
            let packets = self.to_switch.iter().chain(&self.to_host).map(|&(at, _)| at);
            let Some(next) = links.flatten().chain(deadlines).chain(packets).filter(|&at| at > self.now).min() else {
                break;
            };
            if next > end {
                self.now = end;
                break;
            }
            self.now = next;
            self.arrive();
        }
    }

    /// Handles arrivals and deadlines of this instant.
    fn arrive(&mut self) {
        let now = self.now;
        let arrived: Vec<_> = self.to_switch.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, packet) in arrived {
            self.stations[packet.dst.index()].queues[usize::from(packet.class)].push_back(packet);
        }
        let arrived: Vec<_> = self.to_host.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, packet) in arrived {
            let to_receiver = match packet.repr {
                Repr::Data(_) => true,
                Repr::Control(control) => control.to_receiver,
                _ => false,
            };
            let entry = if to_receiver { self.receivers[&(packet.src, packet.qp)] } else { packet.slot };
            match self.call(packet.dst.0, |host, cx| host.handle_packet(cx, &packet, entry)) {
                Handled::Completed(Completion::Received { context, .. }) => _ = self.received.insert(context, now),
                Handled::Completed(Completion::Sent { context, .. }) => self.sent.push(context),
                Handled::Taken | Handled::Unknown => {}
            }
        }
        for host in 0..self.stations.len() as u32 {
            while self.stations[host as usize].port.deadlines.next() <= now
                && let Some((at, entry)) = self.stations[host as usize].port.deadlines.pop()
            {
                self.call(host, |host, cx| host.handle_timeout(cx, entry, at));
            }
        }
    }

    /// Lets links that are free begin to send.
    fn serve(&mut self) {
        for host in 0..self.stations.len() as u32 {
            let station = &mut self.stations[host as usize];
            let takes = |packet: &Packet| RATE.time_for(Bytes::new(u64::from(packet.frame) + u64::from(FRAMES.gap)));
            if station.down <= self.now
                && let Some(packet) = station.queues.iter_mut().rev().find_map(VecDeque::pop_front)
            {
                station.down = self.now + takes(&packet);
                self.to_host.push((station.down + DELAY, packet));
            }
            if station.up > self.now {
                continue;
            }
            let mut packet = Packet::BLANK;
            let mut is_found = station.port.answers.pop_front(&mut packet);
            while !is_found && let Some(entry) = self.stations[host as usize].port.ready.pop_front() {
                is_found = self.call(host, |host, cx| host.poll_transmit(cx, entry, &mut packet));
            }
            if !is_found {
                continue;
            }
            match packet.repr {
                Repr::Data(data) => {
                    self.log.push((packet.qp.0, data.psn.get(), packet.class, data.retransmission));
                }
                Repr::Control(control) => self.controls.push(control),
                _ => panic!("{packet:?}"),
            }
            let station = &mut self.stations[host as usize];
            station.up = self.now + takes(&packet);
            self.count += 1;
            if !(self.lose)(&packet, self.count) {
                self.to_switch.push((station.up + DELAY, packet));
            }
        }
    }
}

const NOTHING: fn(&Packet, usize) -> bool = |_, _| false;

#[test]
fn a_short_message_is_sent_at_once_and_acknowledged() {
    let mut world = World::new(2, &config(), NOTHING);
    world.send(0, 1, 3, 7);
    world.run(Duration::from_ms(1));
    // Three packets of 864 ns; the last waits at the switch for its whole length, and each link delays by 1 us.
    assert_eq!(world.received[&7], Instant::ZERO + Duration::from_ns(4 * 864 + 2_000));
    assert_eq!(world.sent, [7]);
    let labels: Vec<&str> = world.controls.iter().map(|control| control.label.name()).collect();
    assert_eq!(labels, ["ACK"]);
}

#[test]
fn a_long_message_is_granted_as_it_arrives() {
    let mut world = World::new(2, &config(), NOTHING);
    world.send(0, 1, 100, 0);
    world.run(Duration::from_ms(1));
    // The link is never idle: RTTbytes fill it.
    assert_eq!(world.received[&0], Instant::ZERO + Duration::from_ns(101 * 864 + 2_000));
    let grants: Vec<u32> =
        world.controls.iter().filter(|control| control.label == GRANT).map(|control| control.words[0]).collect();
    assert_eq!(grants, (11..=100).collect::<Vec<_>>(), "each arrival grants one more packet");
    let class = |index: u32| world.log.iter().find(|&&(_, at, ..)| at == index).map(|&(.., class, _)| class);
    assert!(class(9) > class(10), "unscheduled packets are above scheduled ones");
    assert_eq!(class(50), Some(0), "a message alone has the lowest priority");
}

#[test]
fn a_sender_sends_the_shortest_rest_first() {
    let mut world = World::new(3, &config(), NOTHING);
    world.send(0, 1, 10, 0);
    world.send(0, 2, 2, 1);
    world.run(Duration::from_ms(1));
    let order: Vec<u32> = world.log.iter().map(|&(qp, ..)| qp).collect();
    assert_eq!(order, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_receiver_serves_the_shortest_rest_first_though_it_grants_to_several() {
    let mut world = World::new(4, &config(), NOTHING);
    for (src, packets) in [(1, 300), (2, 200), (3, 100)] {
        world.send(src, 0, packets, src);
    }
    world.run(Duration::from_ms(2));
    let [long, middle, short] = [1, 2, 3].map(|name| world.received[&name]);
    assert!(short < middle && middle < long);
    // Of 600 packets, the shortest waits for the unscheduled ones of others only.
    let packets = |time: Instant| time.since(Instant::ZERO).as_ps() as f64 / Duration::from_ns(864).as_ps() as f64;
    assert!((100.0..125.0).contains(&packets(short)), "{}", packets(short));
    assert!((300.0..335.0).contains(&packets(middle)), "{}", packets(middle));
    assert!((600.0..610.0).contains(&packets(long)), "the receiver's link is never idle: {}", packets(long));
}

#[test]
fn another_sender_uses_the_link_of_a_receiver_whose_first_choice_is_silent() {
    // Host 1 sends to host 3 first, so that its grants from host 0 are not used: overcommitment lets host 2 send.
    let of = |overcommitment| {
        let mut world = World::new(4, &HomaConfig { overcommitment, ..config() }, NOTHING);
        world.send(1, 0, 150, 0);
        world.run(Duration::from_us(30));
        world.send(1, 3, 80, 1);
        world.send(2, 0, 160, 2);
        world.run(Duration::from_ms(2));
        world.received[&2]
    };
    let (one, several) = (of(Some(1)), of(None));
    assert!(several < one, "{several:?} {one:?}");
}

#[test]
fn lost_packets_are_asked_for() {
    // One packet of ten is lost, whatever it carries.
    for lose in [|_: &Packet, count: usize| count.is_multiple_of(10), |_: &Packet, count| count % 10 == 3] {
        let mut world = World::new(3, &config(), lose);
        for name in 0..20 {
            world.send(name % 2, 2, 1 + u64::from(name) * 7, name);
        }
        world.run(Duration::from_ms(500));
        assert_eq!(world.received.len(), 20);
        world.sent.sort_unstable();
        assert_eq!(world.sent, (0..20).collect::<Vec<_>>());
        assert!(world.controls.iter().any(|control| control.label == RESEND));
        assert!(world.stations.iter().all(|station| station.port.ready.is_empty()));
    }
}

#[test]
fn a_message_that_is_lost_whole_is_repeated() {
    let lose = |packet: &Packet, _: usize| {
        matches!(packet.repr, Repr::Data(data) if !data.retransmission) && packet.sent_at < Instant::ZERO + DELAY
    };
    let mut world = World::new(2, &config(), lose);
    world.send(0, 1, 1, 0);
    world.run(Duration::from_ms(100));
    assert_eq!(world.sent, [0]);
    assert_eq!(world.stations[0].port.stats.timeouts, 1);
    assert_eq!(world.stations[0].port.stats.retransmissions, 1);
}

#[test]
fn a_lost_acknowledgement_is_sent_again() {
    let lose = |packet: &Packet, count: usize| matches!(packet.repr, Repr::Control(_)) && count < 3;
    let mut world = World::new(2, &config(), lose);
    world.send(0, 1, 1, 0);
    world.run(Duration::from_ms(100));
    assert_eq!((world.sent.as_slice(), world.received.len()), (&[0][..], 1));
    assert_eq!(world.stations[1].port.stats.duplicates, 1);
}

/// Receivers learn sizes, and give messages below the median byte a higher priority.
#[test]
fn priorities_of_unscheduled_packets_follow_the_traffic() {
    let config = HomaConfig { cutoffs_after: 10, ..config() };
    let mut world = World::new(2, &config, NOTHING);
    for name in 0..40 {
        world.send(0, 1, if name % 2 == 0 { 1 } else { 9 }, name);
        world.run(Duration::from_us(20 * (u64::from(name) + 1)));
    }
    let class = |qp: u32| world.log.iter().find(|&&(of, ..)| of == qp).map(|&(.., class, _)| class);
    assert_eq!(class(38), Some(6), "short messages have the highest priority");
    assert!(class(39) < class(38));
    assert!(world.controls.iter().any(|control| control.label == super::CUTOFFS));
}

/// Whatever a peer sends, nothing fails, and no packet is granted beyond the end of a message.
#[test]
fn arbitrary_control_packets_are_survived() {
    let mut rng = selvedge_units::Rng::stream(1, selvedge_units::Domain::Impairment, 0);
    let mut world = World::new(2, &config(), NOTHING);
    for name in 0..50 {
        world.send(0, 1, 1 + rng.below(40), name);
    }
    for _ in 0..20_000 {
        let labels = [GRANT, RESEND, super::BUSY, super::CUTOFFS];
        let label = labels[rng.below(4) as usize];
        let mut word = || if rng.below(2) == 0 { rng.below(50) as u32 } else { rng.next_u64() as u32 };
        let control = Control { label, to_receiver: label == super::BUSY, words: [word(), word(), word()] };
        let (qp, entry) = (QpNumber(rng.below(50) as u32), rng.below(60) as u32);
        let packet =
            Packet { src: HostId(1), dst: HostId(0), qp, slot: entry, repr: Repr::Control(control), ..Packet::BLANK };
        world.call(0, |host, cx| host.handle_packet(cx, &packet, entry));
        let entry = world.stations[0].port.ready.pop_front();
        if let Some(entry) = entry {
            let mut packet = Packet::BLANK;
            world.call(0, |host, cx| host.poll_transmit(cx, entry, &mut packet));
            assert!(matches!(packet.repr, Repr::Data(data) if data.payload > 0) || packet == Packet::BLANK);
        }
    }
}
