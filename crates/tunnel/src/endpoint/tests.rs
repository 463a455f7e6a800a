//! Endpoints joined by a network in memory that delays, loses, repeats and reorders, in virtual time.

use core::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use proptest::prelude::*;
use selvedge_units::{Duration, Instant, mix64};
use selvedge_wire::eqds::v1::{self, Next, Packet};

use super::inside::tests::udp;
use super::inside::{Facts, VnetHeader};
use super::*;
use crate::outbound::Outbound;

const US: Duration = Duration::from_us(1);
const MS: Duration = Duration::from_ms(1);

/// Faults of the network, each in parts of 1000 datagrams.
#[derive(Clone, Copy, Default)]
struct Torment {
    loss: u64,
    repeats: u64,
    late: u64,
    /// Datagrams longer than this are lost; zero: none is.
    limit: usize,
}

struct Datagram {
    to: usize,
    from: SocketAddr,
    ecn: u8,
    bytes: Vec<u8>,
}

/// Hosts, each with an endpoint, and the network between them.
struct Net {
    hosts: Vec<Host>,
    now: Instant,
    /// By time of arrival, then in the order of sending.
    under_way: BTreeMap<(Instant, u64), Datagram>,
    torment: Torment,
    random: u64,
    sent: u64,
    copies: u64,
    /// Whether datagrams are marked with congestion experienced.
    marks: bool,
}

struct Host {
    endpoint: Endpoint,
    stored: Option<StoredEpochs>,
    delivered: Vec<Vec<u8>>,
}

fn inner(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 80, host as u8 + 1, 1)
}

fn config(own: usize, hosts: usize, extra: &str) -> Config {
    let mut text = format!(
        "name = \"h{own}\"\naddresses = [\"192.0.2.{0}\"]\nlink-rate = \"1Gbps\"\nprefixes = [\"10.80.{0}.0/24\"]\n\
         inner-addresses = [\"10.80.{0}.1/24\"]\npaths = 4\n{extra}\n",
        own + 1
    );
    for peer in (0..hosts).filter(|peer| *peer != own) {
        let key = crate::base64::encode(&[7; 32]);
        text += &format!(
            "[[peer]]\nname = \"h{peer}\"\naddress = \"192.0.2.{0}\"\nprefixes = [\"10.80.{0}.0/24\"]\nshared-key = \
             \"{key}\"\n",
            peer + 1
        );
    }
    Config::parse(Path::new("/nowhere/eqds.toml"), &text).unwrap_or_else(|error| panic!("{error}"))
}

const CLOCK: u64 = 1_800_000_000;

impl Net {
    fn new(hosts: usize, torment: Torment, extra: &str) -> Self {
        let mut net = Self {
            hosts: Vec::new(),
            now: Instant::ZERO,
            under_way: BTreeMap::new(),
            torment,
            random: 1,
            sent: 0,
            copies: 0,
            marks: false,
        };
        for own in 0..hosts {
            // All hosts have met, so that nobody is challenged.
            let stored = StoredEpochs::default();
            let endpoint = Endpoint::new(config(own, hosts, extra), Some(&stored), CLOCK, own as u64).expect("epochs");
            net.hosts.push(Host { endpoint, stored: None, delivered: Vec::new() });
        }
        net
    }

    fn chance(&mut self, parts: u64) -> bool {
        self.random = mix64(self.random);
        self.random % 1_000 < parts
    }

    /// Starts a host's endpoint anew, as after kill -9; `with_disk` tells whether it finds its file.
    fn restart(&mut self, host: usize, with_disk: bool, extra: &str) {
        let stored = self.hosts[host].stored.clone().filter(|_| with_disk);
        self.random = mix64(self.random);
        let clock = CLOCK + self.now.as_ps() / 1_000_000_000_000 + 1;
        let config = config(host, self.hosts.len(), extra);
        let mut endpoint = Endpoint::new(config, stored.as_ref(), clock, self.random).expect("epochs");
        // The clock of the new process begins at zero, that of this test goes on.
        endpoint.handle_timeout(self.now);
        self.hosts[host].endpoint = endpoint;
    }

    fn send(&mut self, from: usize, packet: &[u8]) {
        let mut bytes = [&[0; VnetHeader::LENGTH], packet].concat();
        self.hosts[from].endpoint.handle_inside(self.now, &mut bytes);
    }

    /// Lets all hosts do what they can at this moment.
    fn flush(&mut self) {
        let mut buffer = Vec::new();
        for from in 0..self.hosts.len() {
            if let Some(stored) = self.hosts[from].endpoint.poll_store() {
                self.hosts[from].stored = Some(stored);
                self.hosts[from].endpoint.stored();
            }
            self.hosts[from].endpoint.handle_timeout(self.now);
            while let Some(transmit) = self.hosts[from].endpoint.poll_transmit(self.now, &mut buffer) {
                assert!(transmit.segment <= 1_472 && buffer.len() <= 65_000, "{transmit:?}");
                for bytes in buffer.chunks(transmit.segment) {
                    self.carry(from, &transmit, bytes);
                }
            }
            while let Some(packet) = self.hosts[from].endpoint.poll_inside() {
                let packet = packet.to_vec();
                self.hosts[from].delivered.push(packet);
            }
        }
    }

    fn carry(&mut self, from: usize, transmit: &Transmit, bytes: &[u8]) {
        self.sent += 1;
        let std::net::IpAddr::V4(to) = transmit.destination.ip() else { panic!("IPv4") };
        let limit = self.torment.limit;
        if self.chance(self.torment.loss) || (limit > 0 && bytes.len() > limit) {
            return;
        }
        let copies = 1 + u32::from(self.chance(self.torment.repeats));
        for _ in 0..copies {
            self.copies += 1;
            let late = self.chance(self.torment.late);
            let delay = US * if late { 400 } else { 50 };
            let at = (self.now + delay, self.copies);
            let datagram = Datagram {
                to: usize::from(to.octets()[3]) - 1,
                from: SocketAddr::new(Ipv4Addr::new(192, 0, 2, from as u8 + 1).into(), 49_152 + transmit.path as u16),
                ecn: if self.marks { 3 } else { transmit.ecn },
                bytes: bytes.to_vec(),
            };
            self.under_way.insert(at, datagram);
        }
    }

    /// Runs until `end`.
    fn run(&mut self, end: Instant) {
        loop {
            self.flush();
            let arrival = self.under_way.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
            let timers = self.hosts.iter().map(|host| host.endpoint.poll_timeout());
            let next = timers.min().unwrap_or(Instant::NEVER).min(arrival).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = if next == self.now { self.now + US } else { next };
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let mut datagram = entry.remove();
                let endpoint = &mut self.hosts[datagram.to].endpoint;
                endpoint.handle_datagram(self.now, datagram.from, datagram.ecn, &mut datagram.bytes);
            }
        }
    }

    fn run_for(&mut self, span: Duration) {
        self.run(self.now + span);
    }

    fn status(&self, host: usize) -> Status {
        self.hosts[host].endpoint.status(self.now)
    }

    /// Returns the payloads of the packets that `host` was given.
    fn payloads(&self, host: usize) -> Vec<Vec<u8>> {
        self.hosts[host].delivered.iter().map(|packet| packet[VnetHeader::LENGTH + 28..].to_vec()).collect()
    }
}

fn numbered(count: u32, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| [&number.to_be_bytes()[..], &vec![number as u8; length - 4]].concat()).collect()
}

#[test]
fn the_first_packet_arrives_after_one_way() {
    let mut net = Net::new(2, Torment::default(), "");
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"hello"));
    net.run_for(US * 60);
    assert_eq!(net.payloads(1), [b"hello"]);
    net.run_for(MS);
    let status = net.status(0);
    assert!(status.peers[0].established && status.peers[0].round_trip_us.is_some_and(|us| us >= 100.0), "{status:?}");
    assert_eq!(net.hosts[0].endpoint.packets.bytes(), 0, "nothing is kept of what has arrived");
}

#[test]
fn hosts_that_never_met_ask_each_other_first_and_lose_no_time_by_it() {
    let mut net = Net::new(2, Torment::default(), "");
    for host in [0, 1] {
        net.hosts[host].stored = None;
        net.restart(host, true, "");
    }
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"hello"));
    net.run_for(US * 500);
    assert_eq!(net.payloads(1), [b"hello"], "{:#?} {:#?}", net.status(0), net.status(1));
}

#[test]
fn long_packets_cross_in_parts_and_in_order() {
    let mut net = Net::new(2, Torment::default(), "");
    let sent = numbered(40, 20_000);
    for payload in &sent {
        net.send(0, &udp(inner(0), inner(1), 53, 0, payload));
    }
    net.run_for(MS * 100);
    // Six windows of 250 KB may wait.
    let arrived = net.payloads(1);
    assert!(arrived == sent, "{}", arrived.len());
}

#[test]
fn every_packet_arrives_once_and_in_order_whatever_the_network_does() {
    for seed in 0..20 {
        let torment = Torment { loss: 20, repeats: 20, late: 100, limit: 0 };
        let mut net = Net::new(2, torment, "");
        net.random = mix64(seed + 1);
        let sent = numbered(400, 3_000);
        for payloads in sent.chunks(10) {
            for payload in payloads {
                net.send(0, &udp(inner(0), inner(1), 53, 0, payload));
                net.send(1, &udp(inner(1), inner(0), 4_791, 0, payload));
            }
            net.run_for(MS);
        }
        net.run_for(MS * 3_000);
        for host in [0, 1] {
            let arrived = net.payloads(host);
            assert_eq!(arrived.len(), sent.len(), "seed {seed}: {:#?}", net.status(1 - host));
            assert!(arrived == sent, "seed {seed}: in another order");
        }
    }
}

#[test]
fn a_restart_loses_only_what_was_under_way() {
    for with_disk in [true, false] {
        for host in [0, 1] {
            let mut net = Net::new(2, Torment::default(), "");
            for round in 0..6 {
                for payload in numbered(10, 1_000) {
                    net.send(0, &udp(inner(0), inner(1), 53, 0, &payload));
                    net.send(1, &udp(inner(1), inner(0), 53, 0, &payload));
                }
                // Without its disk, a host must not start twice in one second.
                net.run_for(MS * 1_100);
                for at in [0, 1] {
                    let arrived = net.hosts[at].delivered.len();
                    let states = [net.status(0), net.status(1)];
                    assert_eq!(arrived, 10, "host {at}, round {round}, with disk: {with_disk}: {states:#?}");
                    net.hosts[at].delivered.clear();
                }
                net.restart(host, with_disk, "");
            }
        }
    }
}

#[test]
fn a_peer_that_does_not_answer_is_given_up_and_the_stack_is_told() {
    let mut net = Net::new(2, Torment { loss: 1_000, ..Torment::default() }, "");
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"hello"));
    net.run_for(MS * 20_000);
    let told = &net.hosts[0].delivered;
    assert!(!told.is_empty() && told.iter().all(|icmp| Facts::of(&icmp[VnetHeader::LENGTH..]).unwrap().protocol == 1));
    assert!(net.status(0).peers[0].unreachable);
    assert_eq!(
        (net.hosts[0].endpoint.packets.bytes(), net.hosts[0].endpoint.poll_timeout() < Instant::NEVER),
        (0, true)
    );
    net.torment = Torment::default();
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"again"));
    net.run_for(MS * 2_000);
    assert_eq!(net.payloads(1), [b"again"]);
}

#[test]
fn an_address_that_nobody_serves_is_answered_by_icmp() {
    let mut net = Net::new(2, Torment::default(), "");
    net.send(0, &udp(inner(0), Ipv4Addr::new(10, 81, 0, 1), 53, 0, b"hello"));
    net.run_for(MS);
    assert_eq!((net.hosts[0].delivered.len(), net.status(0).dropped["no-route"]), (1, 1));
}

#[test]
fn packets_from_addresses_of_others_are_dropped() {
    let mut net = Net::new(3, Torment::default(), "");
    net.send(0, &udp(inner(2), inner(1), 53, 0, b"not mine"));
    net.run_for(MS);
    assert_eq!((net.hosts[1].delivered.len(), net.status(1).dropped["foreign"]), (0, 1));
}

#[test]
fn marks_outside_are_carried_inside() {
    let mut net = Net::new(2, Torment::default(), "");
    net.marks = true;
    net.send(0, &udp(inner(0), inner(1), 53, 2, b"capable"));
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"not capable"));
    net.run_for(MS);
    assert_eq!(net.payloads(1), [b"capable"]);
    let facts = Facts::of(&net.hosts[1].delivered[0][VnetHeader::LENGTH..]).expect("a packet");
    assert_eq!((facts.ecn, net.status(1).dropped["congested"]), (3, 1));
}

#[test]
fn long_queues_are_marked_where_packets_know_ecn() {
    let mut net = Net::new(2, Torment::default(), "");
    for payload in numbered(900, 1_000) {
        net.send(0, &udp(inner(0), inner(1), 53, 1, &payload));
    }
    assert!(net.status(0).peers[0].tunnels[2].marked > 50, "{:?}", net.status(0).peers[0].tunnels[2]);
}

#[test]
fn rdma_is_marked_and_never_dropped() {
    let mut net = Net::new(2, Torment::default(), "");
    for payload in numbered(3_000, 1_000) {
        net.send(0, &udp(inner(0), inner(1), 4_791, 2, &payload));
        net.send(0, &udp(inner(0), inner(1), 53, 2, &payload));
    }
    let tunnels = &net.status(0).peers[0].tunnels;
    assert!(tunnels[1].dropped == 0 && tunnels[1].marked > 2_000, "{:?}", tunnels[1]);
    assert!(tunnels[2].dropped > 1_000, "others are: {:?}", tunnels[2]);
}

#[test]
fn a_path_that_loses_long_datagrams_is_found_out() {
    let mut net = Net::new(2, Torment { limit: 1_300, ..Torment::default() }, "");
    for _ in 0..200 {
        net.send(0, &udp(inner(0), inner(1), 53, 0, &[1; 1_400]));
        net.send(0, &udp(inner(0), inner(1), 53, 0, b"short"));
        net.run_for(MS * 50);
    }
    let mtu = net.status(0).peers[0].path_mtu;
    assert!((1_280..=1_300).contains(&mtu), "{mtu}");
    net.hosts[1].delivered.clear();
    net.send(0, &udp(inner(0), inner(1), 53, 0, &[2; 1_400]));
    net.run_for(MS * 50);
    assert_eq!(net.payloads(1), [[2; 1_400]]);
}

#[test]
fn idle_tunnels_are_dropped_at_both_ends() {
    let mut net = Net::new(2, Torment::default(), "[tunnel]\nidle-timeout = \"100ms\"");
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"hello"));
    net.run_for(MS * 500);
    assert!((0..2).all(|host| !net.status(host).peers[0].established), "{:?}", net.status(0));
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"again"));
    net.run_for(MS * 50);
    assert_eq!(net.payloads(1).len(), 2);
}

#[test]
fn an_incast_is_shared_alike_and_within_the_rate() {
    let mut net = Net::new(5, Torment::default(), "");
    let end = MS * 200;
    while net.now < Instant::ZERO + end {
        for from in 1..5 {
            (0..4).for_each(|_| net.send(from, &udp(inner(from), inner(0), 53, 0, &[from as u8; 20_000])));
        }
        net.run_for(MS);
    }
    let of = |from: u8| net.payloads(0).iter().filter(|payload| payload[0] == from).count() * 20_000;
    let shares: Vec<usize> = (1..5).map(of).collect();
    let total: usize = shares.iter().sum();
    let most = 1_000_000_000 / 8 / 5;
    assert!(total < most && total > most * 8 / 10, "{total} of {most}");
    assert!(shares.iter().all(|share| share.abs_diff(total / 4) < total / 20), "{shares:?}");
}

#[test]
fn the_origin_of_time_moves_without_a_trace() {
    let mut net = Net::new(2, Torment { loss: 50, ..Torment::default() }, "");
    let sent = numbered(300, 2_000);
    let mut moved = Duration::ZERO;
    for (turn, payloads) in sent.chunks(10).enumerate() {
        for payload in payloads {
            net.send(0, &udp(inner(0), inner(1), 53, 0, payload));
        }
        net.run_for(MS * 20);
        if turn % 5 == 4 {
            let by = net.now.since(Instant::ZERO) - MS;
            moved += by;
            net.now = Instant::ZERO + MS;
            net.hosts.iter_mut().for_each(|host| host.endpoint.rebase(by));
            let under_way = std::mem::take(&mut net.under_way).into_iter();
            net.under_way = under_way
                .map(|((at, order), datagram)| {
                    ((Instant::from_ps(at.as_ps().saturating_sub(by.as_ps())), order), datagram)
                })
                .collect();
        }
    }
    net.run_for(MS * 3_000);
    assert!(moved > MS * 100 && net.payloads(1) == sent);
}

#[test]
fn peers_come_and_go_by_reload() {
    let mut net = Net::new(3, Torment::default(), "");
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"one"));
    net.send(0, &udp(inner(0), inner(2), 53, 0, b"two"));
    net.run_for(MS);
    let mut fewer = config(0, 3, "");
    fewer.peers.retain(|peer| peer.name == "h1");
    let now = net.now;
    net.hosts[0].endpoint.reload(now, fewer).expect("epochs");
    net.run_for(MS * 10);
    net.send(0, &udp(inner(0), inner(1), 53, 0, b"three"));
    net.send(0, &udp(inner(0), inner(2), 53, 0, b"four"));
    net.send(2, &udp(inner(2), inner(0), 53, 0, b"five"));
    net.run_for(MS * 10);
    assert_eq!((net.payloads(1).len(), net.payloads(2).len()), (2, 1));
    assert!(net.status(0).datagrams["strangers"] > 0, "its key is gone");
    // The epochs of a peer that went are remembered: its packets of before are no use when it comes back.
    let id = config(0, 3, "").peers[1].pair.inbound().id;
    let stored = net.hosts[0].stored.clone().expect("a file");
    assert!(matches!(stored.floor(id), Floor::Known(1..)), "{stored:?}");
    let now = net.now;
    net.hosts[0].endpoint.reload(now, config(0, 3, "")).expect("epochs");
    net.hosts[0].delivered.clear();
    net.send(0, &udp(inner(0), inner(2), 53, 0, b"six"));
    net.run_for(MS * 3_000);
    assert_eq!((net.payloads(2).len(), net.payloads(0)), (2, vec![b"five".to_vec()]));
}

/// A peer that has its keys and says what it likes.
struct Liar {
    out: Outbound,
    epochs: Epochs,
}

impl Liar {
    /// Takes the place of `host`, a peer of `victim`.
    fn new(host: usize, victim: usize) -> Self {
        let config = config(host, victim.max(host) + 1, "");
        let mut epochs = Epochs::new(None, CLOCK + 5);
        epochs.stored(epochs.reserve() + 1_000);
        let pair = &config.peers.iter().find(|peer| peer.name == format!("h{victim}")).expect("a peer").pair;
        Self { out: Outbound::new(pair.outbound(), true, &mut epochs).expect("epochs"), epochs }
    }

    fn say(&mut self, net: &mut Net, from: usize, victim: usize, packet: &Packet, payload: &[u8]) {
        let mut buffer = [0; 4_000];
        let bytes = self.out.write(packet, [payload, &[]], &mut self.epochs, &mut buffer).expect("epochs");
        let source = SocketAddr::new(Ipv4Addr::new(192, 0, 2, from as u8 + 1).into(), 50_000);
        net.hosts[victim].endpoint.handle_datagram(net.now, source, 0, &mut bytes.to_vec());
    }
}

/// Returns a packet of any content; numbers are often near those in use.
fn anything() -> impl Strategy<Value = (Packet, Vec<u8>)> {
    let number = || prop_oneof![0..2_100_u32, any::<u32>(), Just(u32::MAX), (0..40_u32).prop_map(|n| n << 14)];
    let next = prop_oneof![Just(Next::Ip), Just(Next::Super), any::<u8>().prop_map(Next::from_code)];
    let service = (0..4_u8).prop_map(v1::Service::from_code);
    let data = (number(), number(), next, 0..8_u8, service);
    let body = (0..9_u8, data, number(), any::<[u32; 3]>()).prop_map(|(kind, data, number, rest)| {
        let (seq, pull_target, next, priority, service) = data;
        let data = v1::Data { seq, pull_target, next, priority, service };
        match kind {
            0..=2 => Body::Data(data),
            3 => Body::Request(data),
            4 | 5 => Body::Report(v1::Report { number, pull: rest[0] % 4_000, busy: rest[1], ..v1::Report::default() }),
            6 => Body::Reset(v1::Reset { seq: number, reason: v1::ResetReason::from_code((rest[0] % 5) as u8) }),
            7 => Body::Close(Close { number, from_sender: rest[0] % 2 == 0 }),
            _ => Body::Probe(Probe { token: number, size: rest[0] as u16 }),
        }
    });
    let words = (0..3_u32, 0..50_u32, 0..3_000_u32);
    (body, any::<u8>(), 0..5_u8, any::<u16>(), words, 0..1_300_usize, any::<Option<u32>>()).prop_map(
        |(body, flags, eqif, path, (message, offset, length), payload, floor)| {
            let common = v1::Common { flags: Flags::from_bits(flags), eqif, path, ..v1::Common::default() };
            let options = Options { floor, challenge: floor.map(u64::from), mtu: Some(path), ..Options::NONE };
            let words = v1::Words { message, offset, length }.emit();
            let payload =
                if matches!(body, Body::Data(_)) { [&words[..], &vec![0x45; payload]].concat() } else { Vec::new() };
            (Packet { common, body, options }, payload)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_peer_that_lies_harms_nobody_else(said in prop::collection::vec((anything(), 0..3_000_u64), 1..120)) {
        let mut net = Net::new(3, Torment::default(), "");
        let mut liar = Liar::new(2, 0);
        let honest = numbered(40, 2_000);
        for (turn, ((packet, payload), pause)) in said.iter().enumerate() {
            liar.say(&mut net, 2, 0, packet, payload);
            if let Some(payload) = honest.get(turn) {
                net.send(1, &udp(inner(1), inner(0), 53, 0, payload));
                net.send(0, &udp(inner(0), inner(2), 53, 0, payload));
            }
            net.run_for(US * *pause);
        }
        net.run_for(MS * 200);
        let count = said.len().min(honest.len());
        let own: Vec<Vec<u8>> = net.payloads(0).into_iter().filter(|payload| payload.len() == 2_000).collect();
        prop_assert_eq!(&own[..], &honest[..count]);
        // What waits for the liar is bounded by the queue, and what waits from it by the reorder queues.
        prop_assert!(net.hosts[0].endpoint.packets.bytes() < 2 << 20);
        prop_assert!(net.hosts[0].endpoint.parts.bytes() < 3 * 4_096 * 1_500);
    }
}

/// Returns the payload with a number: of a length, and with bytes, that follow from it.
fn recognisable(number: u32) -> Vec<u8> {
    let random = mix64(u64::from(number) + 1);
    let length = if random.is_multiple_of(8) { 4 + random as usize % 20_000 } else { 4 + random as usize % 1_300 };
    let bytes = (0..length as u64 - 4).map(|at| mix64(random ^ (at / 8)).to_le_bytes()[(at % 8) as usize]);
    number.to_be_bytes().into_iter().chain(bytes).collect()
}

/// Numbers of the packets between two hosts.
#[derive(Default)]
struct Flow {
    sent: u32,
    expected: u32,
    /// First number that was sent after the last restart.
    after_restart: u32,
    refused: u64,
}

impl Flow {
    /// Checks what has arrived at `to`; with `gaps`, packets may be lost or come again.
    fn check(&mut self, net: &mut Net, to: usize, seed: u64, gaps: bool) {
        for payload in net.payloads(to) {
            let number = u32::from_be_bytes(payload[..4].try_into().expect("a number"));
            assert!(payload == recognisable(number), "host {to}, seed {seed}: damaged");
            // What waited behind a hole when its sender restarted is delivered when the sender's next tunnel begins.
            if !gaps && number >= self.after_restart {
                assert_eq!(number, self.expected, "host {to}, seed {seed}: lost, repeated or reordered");
                self.expected += 1;
            }
        }
        if gaps {
            (self.expected, self.after_restart) = (self.sent, self.sent);
        }
        net.hosts[to].delivered.clear();
    }
}

/// Sends `datagrams` or more through loss, repetition, reordering and restarts at random moments. Whatever arrives is
/// whole; between restarts all of it arrives, once and in order.
fn soak(datagrams: u64, seed: u64) {
    let mut net = Net::new(2, Torment { loss: 10, repeats: 10, late: 50, limit: 0 }, "");
    net.random = mix64(seed + 1);
    let mut flows: [Flow; 2] = Default::default();
    let mut restarts = 0;
    while net.sent < datagrams {
        for _ in 0..200 {
            for (from, flow) in flows.iter_mut().enumerate() {
                for _ in 0..net.random % 4 {
                    net.send(from, &udp(inner(from), inner(1 - from), 53, 0, &recognisable(flow.sent)));
                    // What the queue refuses is not to be expected.
                    let refused = net.hosts[from].endpoint.drops.queue_full;
                    flow.sent += u32::from(refused == flow.refused);
                    flow.refused = refused;
                }
            }
            net.random = mix64(net.random);
            net.run_for(US * (net.random % 300));
            flows.iter_mut().enumerate().for_each(|(from, flow)| flow.check(&mut net, 1 - from, seed, false));
        }
        let host = (net.random % 2) as usize;
        restarts += 1;
        net.restart(host, restarts % 3 > 0, "");
        flows[host].refused = 0;
        // Until nothing is under way: with losses on top, the timeout doubles a few times.
        for _ in 0..20 {
            net.run_for(MS * 1_100);
            if net.hosts.iter().all(|host| host.endpoint.packets.bytes() == 0) {
                break;
            }
        }
        assert!(net.hosts.iter().all(|host| host.endpoint.packets.bytes() == 0), "seed {seed}: stuck");
        // A host that loses its disk must not have started more often than its clock allows.
        net.run_for(MS * 1_000 * u64::from(Epochs::BLOCK));
        flows.iter_mut().enumerate().for_each(|(from, flow)| flow.check(&mut net, 1 - from, seed, true));
    }
    assert!(restarts > 0);
}

/// Sends 80,000 datagrams, or `SELVEDGE_SOAK` ones.
#[test]
fn contents_survive_loss_repetition_reordering_and_restarts() {
    let wanted = std::env::var("SELVEDGE_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(80_000);
    (0..4).for_each(|seed| soak(wanted / 4, seed));
}

/// After a restart, message ids begin anew, and parts from before may still wait at the receiver.
#[test]
fn parts_from_before_a_restart_are_not_joined_with_new_ones() {
    let mut net = Net::new(2, Torment { loss: 100, late: 100, ..Torment::default() }, "");
    for round in 0..200 {
        for number in 0..12 {
            // Of lengths that differ from round to round for each id.
            let length = 3_000 + (round * 7 + number * 13) % 40 * 400;
            net.send(0, &udp(inner(0), inner(1), 53, 0, &vec![round as u8; length]));
        }
        net.run_for(US * (300 + round as u64 % 7 * 100));
        net.restart(0, true, "");
        net.send(0, &udp(inner(0), inner(1), 53, 0, b"short"));
        net.run_for(MS * 20);
    }
    assert_eq!(net.hosts[1].endpoint.drops.broken, 0);
    let whole = |payload: &Vec<u8>| payload == b"short" || payload.iter().all(|byte| *byte == payload[0]);
    let came = net.payloads(1);
    assert!(came.len() > 400 && came.iter().all(whole), "{} packets", came.len());
}

/// Returns the settings by which other packets than TCP's and RDMA's get a service.
fn served(service: &str) -> String {
    format!("[eqif.other]\nservice = \"{service}\"")
}

#[test]
fn unordered_packets_arrive_once_each_and_do_not_wait_for_others() {
    let torment = Torment { loss: 20, repeats: 20, late: 100, limit: 0 };
    // The receiver's own settings say something else: the sender chooses.
    let mut net = Net::new(2, torment, &served("unordered"));
    net.restart(1, true, "");
    let sent = numbered(400, 3_000);
    for payloads in sent.chunks(10) {
        payloads.iter().for_each(|payload| net.send(0, &udp(inner(0), inner(1), 53, 0, payload)));
        net.run_for(MS);
    }
    net.run_for(MS * 3_000);
    let mut arrived = net.payloads(1);
    assert_eq!(arrived.len(), sent.len(), "{:#?}", net.status(0));
    assert!(arrived != sent, "some were late or lost, and others overtook them");
    arrived.sort();
    assert!(arrived == sent);
}

#[test]
fn unreliable_packets_are_sent_once_and_losses_stop_nothing() {
    let torment = Torment { loss: 50, repeats: 20, late: 100, limit: 0 };
    let mut net = Net::new(2, torment, &served("unreliable"));
    let sent = numbered(4_000, 1_000);
    for payloads in sent.chunks(40) {
        payloads.iter().for_each(|payload| net.send(0, &udp(inner(0), inner(1), 53, 0, payload)));
        net.run_for(MS);
    }
    net.run_for(MS * 3_000);
    let mut arrived = net.payloads(1);
    let tunnel = &net.status(0).peers[0].tunnels[Eqif::Other as usize];
    assert_eq!((tunnel.retransmissions, tunnel.waiting, tunnel.in_flight), (0, 0, 0));
    assert_eq!(net.hosts[0].endpoint.packets.bytes(), 0, "nothing is kept of what is lost");
    arrived.sort();
    let count = arrived.len();
    arrived.dedup();
    assert_eq!(arrived.len(), count, "none arrives twice");
    assert!((3_600..3_950).contains(&count), "{count} of 4000 at 5 % loss");
}

/// Lets three hosts send TCP and other packets to one; returns the bytes of each kind that have arrived by `at`.
fn arrived_by_kind(extra: &str, at: Duration) -> (usize, usize) {
    let mut net = Net::new(4, Torment::default(), extra);
    for payload in numbered(400, 1_300) {
        for host in [0, 1, 2] {
            let other = udp(inner(host), inner(3), 53, 0, &payload);
            let mut tcp = other.clone();
            tcp[9] = 6;
            net.send(host, &other);
            net.send(host, &tcp);
        }
    }
    net.run_for(at);
    let packets = net.hosts[3].delivered.iter().map(|packet| &packet[VnetHeader::LENGTH..]);
    let (tcp, other): (Vec<&[u8]>, Vec<&[u8]>) = packets.partition(|packet| packet[9] == 6);
    (tcp.iter().map(|packet| packet.len()).sum(), other.iter().map(|packet| packet.len()).sum())
}

#[test]
fn kinds_of_traffic_share_credit_by_priority_and_weight() {
    // 3 * 800 packets at 1 Gb/s take 27 ms.
    let (tcp, other) = arrived_by_kind("", MS * 15);
    assert!(tcp.abs_diff(other) < (tcp + other) / 10, "{tcp} {other}");
    let (tcp, other) = arrived_by_kind("[eqif.tcp]\nweight = 3", MS * 15);
    assert!((2.5..3.5).contains(&(tcp as f64 / other as f64)), "{tcp} {other}");
    let (tcp, other) = arrived_by_kind("[eqif.other]\npriority = 2", MS * 15);
    assert!(other > 9 * tcp, "{tcp} {other}");
}

#[test]
fn each_kind_of_traffic_has_a_queue_of_its_own() {
    let mut net = Net::new(2, Torment::default(), "[eqif.other]\nqueue = \"64KiB\"\n[eqif.tcp]\nmark-above = \"1KB\"");
    for payload in numbered(100, 1_300) {
        let other = udp(inner(0), inner(1), 53, 2, &payload);
        let mut tcp = other.clone();
        tcp[9] = 6;
        net.send(0, &other);
        net.send(0, &tcp);
    }
    let tunnels = &net.status(0).peers[0].tunnels;
    assert_eq!((tunnels[0].dropped, tunnels[2].dropped), (0, 100 - 65_536 / 1_328));
    assert_eq!((tunnels[0].marked, tunnels[2].marked), (99, 65_536 / 1_328 - 32_768 / 1_328 - 1));
}

/// Ports, addresses and messages of the tests of native messages.
const SERVER: u16 = 7_000;

fn at(host: usize, port: u16) -> SocketAddr {
    SocketAddr::new(inner(host).into(), port)
}

fn sending(to: SocketAddr, tag: u32) -> Sending {
    Sending { source: ANY_SOURCE, destination: to, tag, wants_notice: true }
}

impl Net {
    fn open(&mut self, host: usize, port: u16) -> PortId {
        self.hosts[host].endpoint.open_port(port, None).expect("a free port")
    }
    fn message(&mut self, host: usize, id: PortId, to: SocketAddr, tag: u32, bytes: &[u8]) -> Result<(), SendError> {
        self.hosts[host].endpoint.send_message(self.now, id, &sending(to, tag), [bytes, &[]])
    }
    /// Returns the contents of the messages that a port has unread, and drops them.
    fn messages(&mut self, host: usize, id: PortId) -> Vec<Vec<u8>> {
        let endpoint = &mut self.hosts[host].endpoint;
        let mut all = Vec::new();
        while let Some(message) = endpoint.poll_message(id) {
            all.push(message.content().to_vec());
            endpoint.drop_message(id);
        }
        all
    }
    fn notices(&mut self, host: usize, id: PortId) -> Vec<Notice> {
        let endpoint = &mut self.hosts[host].endpoint;
        let mut all = Vec::new();
        while let Some(notice) = endpoint.poll_notice(id) {
            all.push(*notice);
            endpoint.drop_notice(id);
        }
        all
    }
    fn outcomes(&mut self, host: usize, id: PortId) -> Vec<(u32, Outcome)> {
        self.notices(host, id).iter().map(|notice| (notice.tag, notice.outcome)).collect()
    }
}

fn native(service: &str) -> String {
    format!("[eqif.native]\nservice = \"{service}\"")
}

#[test]
fn a_message_arrives_after_one_way_and_its_sender_is_told() {
    let mut net = Net::new(2, Torment::default(), "");
    let (client, server) = (net.open(0, 0), net.open(1, SERVER));
    let number = net.hosts[0].endpoint.port_number(client).expect("open");
    assert_eq!(net.message(0, client, at(1, SERVER), 5, b"hello"), Ok(()));
    net.run_for(US * 60);
    assert_eq!(net.hosts[1].endpoint.poll_port(), Some(server));
    let message = net.hosts[1].endpoint.poll_message(server).expect("a message");
    assert_eq!((message.source, message.destination), (at(0, number), at(1, SERVER)));
    assert_eq!(net.messages(1, server), [b"hello"]);
    net.run_for(MS);
    let notices = net.notices(0, client);
    assert_eq!((notices.len(), notices[0].tag, notices[0].outcome), (1, 5, Outcome::Arrived));
    assert!(notices[0].round_trip.is_some_and(|trip| trip >= US * 100 && trip < MS), "{notices:?}");
    assert_eq!(net.hosts[0].endpoint.packets.bytes(), 0);
    let reach = net.hosts[0].endpoint.reach(net.now, inner(1).into()).expect("a peer");
    let trips = reach.tunnel.round_trips.expect("measured");
    assert!(trips.samples == 1 && trips.latest == notices[0].round_trip.unwrap(), "{reach:?}");
    assert_eq!((reach.tunnel.waiting, reach.tunnel.in_flight, reach.queued), (0, 0, 0));
    assert_eq!(net.hosts[0].endpoint.reach(net.now, Ipv4Addr::LOCALHOST.into()), None);
}

#[test]
fn messages_of_any_size_arrive_once_each_by_every_reliable_service() {
    for (service, seed) in ["ordered", "unordered"].into_iter().flat_map(|service| (0..4).map(move |s| (service, s))) {
        let mut net = Net::new(2, Torment { loss: 20, repeats: 20, late: 100, limit: 0 }, &native(service));
        net.random = mix64(seed + 1);
        let (client, server) = (net.open(0, 0), net.open(1, SERVER));
        let mut sent: Vec<Vec<u8>> = (0..120).map(recognisable).collect();
        sent.push(Vec::new());
        sent.push((0..Endpoint::LONGEST_MESSAGE).map(|at| (at / 1_000) as u8).collect());
        let (mut arrived, mut outcomes) = (Vec::new(), Vec::new());
        for (tag, bytes) in sent.iter().enumerate() {
            while let Err(error) = net.message(0, client, at(1, SERVER), tag as u32, bytes) {
                assert_eq!(error, SendError::Full);
                net.run_for(MS);
            }
            net.run_for(US * 100);
            arrived.extend(net.messages(1, server));
        }
        net.run_for(MS * 3_000);
        arrived.extend(net.messages(1, server));
        outcomes.extend(net.outcomes(0, client));
        outcomes.sort_by_key(|(tag, _)| *tag);
        let all: Vec<(u32, Outcome)> = (0..sent.len() as u32).map(|tag| (tag, Outcome::Arrived)).collect();
        assert!(outcomes == all, "{service}, seed {seed}: {outcomes:?}");
        if service == "unordered" {
            arrived.sort();
            sent.sort();
        }
        assert!(arrived == sent, "{service}, seed {seed}: {} arrived", arrived.len());
    }
}

#[test]
fn unreliable_messages_are_told_to_be_sent_and_some_are_lost() {
    let mut net = Net::new(2, Torment { loss: 100, ..Torment::default() }, &native("unreliable"));
    let (client, server) = (net.open(0, 0), net.open(1, SERVER));
    for tag in 0..400 {
        assert_eq!(net.message(0, client, at(1, SERVER), tag, &[7; 1_000]), Ok(()));
        net.run_for(MS / 5);
    }
    net.run_for(MS * 1_000);
    let count = net.messages(1, server).len();
    assert!((300..395).contains(&count), "{count} of 400 at 10 % loss");
    let outcomes = net.outcomes(0, client);
    assert!(outcomes.len() == 400 && outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Sent), "{outcomes:?}");
}

#[test]
fn a_full_queue_makes_the_sender_wait() {
    let mut net = Net::new(2, Torment::default(), "");
    let (client, server) = (net.open(0, 0), net.open(1, SERVER));
    let mut sent = 0;
    while net.message(0, client, at(1, SERVER), sent, &[1; 100_000]).is_ok() {
        sent += 1;
    }
    assert!((2..40).contains(&sent), "{sent}");
    assert!(net.hosts[0].endpoint.packets.bytes() < 4 << 20);
    assert_eq!(net.message(0, client, at(1, SERVER), 0, b"short, too"), Ok(()), "while it fits");
    net.run_for(MS * 50);
    assert_eq!(net.messages(1, server).len() as u32, sent + 1);
    assert_eq!(net.message(0, client, at(1, SERVER), sent, &[1; 100_000]), Ok(()));
}

#[test]
fn a_program_that_does_not_read_is_no_burden_to_others() {
    let mut net = Net::new(2, Torment::default(), "");
    let (client, lazy, other) = (net.open(0, 0), net.open(1, SERVER), net.open(1, SERVER + 1));
    let mut outcomes = Vec::new();
    for tag in 0..60 {
        assert_eq!(net.message(0, client, at(1, SERVER), tag, &[1; 100_000]), Ok(()));
        net.run_for(MS * 5);
        outcomes.extend(net.outcomes(0, client));
    }
    assert_eq!(net.message(0, client, at(1, SERVER + 1), 99, b"urgent"), Ok(()));
    net.run_for(MS);
    assert_eq!(net.messages(1, other), [b"urgent"]);
    let refused = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Full).count();
    assert_eq!(refused, 60 - (4 << 20) / 100_276, "{outcomes:?}");
    assert_eq!((net.messages(1, lazy).len(), net.status(1).dropped["port-full"]), (60 - refused, refused as u64));
    // Notices that nobody reads hold the sender back.
    net.hosts[1].endpoint.close_port(other);
    let told = (0..5_000).map(|tag| {
        let told = net.message(0, client, at(1, SERVER + 1), tag, b"x");
        if tag % 100 == 0 {
            net.run_for(MS);
        }
        told
    });
    let unread = told.filter(|told| *told == Err(SendError::Unread)).count();
    assert!(unread > 500 && net.status(0).dropped["unheard"] == 0, "{unread}: {:?}", net.status(0).dropped);
}

#[test]
fn senders_hear_why_a_message_does_not_arrive() {
    let mut net = Net::new(3, Torment::default(), "");
    let client = net.open(0, 0);
    assert_eq!(net.message(0, client, at(1, SERVER), 1, b"nobody"), Ok(()));
    net.run_for(MS);
    let outcomes = net.outcomes(0, client);
    assert_eq!(outcomes, [(1, Outcome::Arrived), (1, Outcome::NoListener)]);
    assert_eq!(net.message(0, client, at(8, SERVER), 2, b""), Err(SendError::NoRoute));
    assert_eq!(net.message(0, client, at(1, SERVER), 2, &[0; Endpoint::LONGEST_MESSAGE + 1]), Err(SendError::TooLong));
    let foreign = Sending { source: inner(2).into(), ..sending(at(1, SERVER), 3) };
    let told = net.hosts[0].endpoint.send_message(net.now, client, &foreign, [b"", b""]);
    assert_eq!(told, Err(SendError::WrongSource));
    net.torment.loss = 1_000;
    assert_eq!(net.message(0, client, at(1, SERVER), 4, b"nobody"), Ok(()));
    net.run_for(MS * 20_000);
    assert_eq!(net.outcomes(0, client), [(4, Outcome::Unreachable)]);
    assert_eq!(net.hosts[0].endpoint.packets.bytes(), 0);
    // A peer that leaves the settings takes its messages along.
    assert_eq!(net.message(0, client, at(1, SERVER), 5, b"gone"), Ok(()));
    let mut fewer = config(0, 3, "");
    fewer.peers.retain(|peer| peer.name == "h2");
    let now = net.now;
    net.hosts[0].endpoint.reload(now, fewer).expect("epochs");
    assert_eq!(net.outcomes(0, client), [(5, Outcome::Lost)]);
    net.hosts[0].endpoint.close_port(client);
    assert_eq!(net.message(0, client, at(1, SERVER), 6, b""), Err(SendError::Closed));
}

#[test]
fn connected_ports_come_before_those_for_all() {
    let mut net = Net::new(3, Torment::default(), "");
    let (client, other, server) = (net.open(0, 4_000), net.open(2, 4_000), net.open(1, SERVER));
    assert_eq!(net.hosts[1].endpoint.open_port(SERVER, None), Err(PortTaken));
    net.hosts[1].endpoint.connect_port(server, Some(at(0, 4_000))).expect("free");
    let second = net.open(1, SERVER);
    assert_eq!(net.hosts[1].endpoint.connect_port(second, Some(at(0, 4_000))), Err(PortTaken));
    net.message(0, client, at(1, SERVER), 1, b"connected").expect("room");
    net.message(2, other, at(1, SERVER), 1, b"another").expect("room");
    net.run_for(MS);
    assert_eq!(
        (net.messages(1, server), net.messages(1, second)),
        (vec![b"connected".to_vec()], vec![b"another".to_vec()])
    );
    net.hosts[1].endpoint.close_port(server);
    net.message(0, client, at(1, SERVER), 1, b"again").expect("room");
    net.run_for(MS);
    assert_eq!(net.messages(1, second), [b"again"]);
}

#[test]
fn a_restart_of_the_receiver_is_no_silent_loss() {
    for with_disk in [true, false] {
        let mut net = Net::new(2, Torment::default(), "");
        let client = net.open(0, 0);
        let (mut seen, mut lost) = (0, 0);
        for round in 0..5_u32 {
            let server = net.open(1, SERVER);
            for tag in 0..4 {
                net.message(0, client, at(1, SERVER), 4 * round + tag, &[1; 200_000]).expect("room");
            }
            // In the middle of the second message.
            net.run_for(MS * 2 + US * u64::from(200 * round));
            seen += net.messages(1, server).len();
            net.restart(1, with_disk, "");
            let server = net.open(1, SERVER);
            net.run_for(MS * 3_000);
            let after = net.messages(1, server);
            assert!(after.iter().all(|bytes| *bytes == [1; 200_000]));
            seen += after.len();
            let outcomes = net.outcomes(0, client);
            assert_eq!(outcomes.len(), 4, "{outcomes:?}");
            lost += outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Lost).count();
            net.hosts[1].endpoint.close_port(server);
        }
        // One that is told to be lost may have arrived all the same; none is lost and told to have arrived.
        assert!(seen + lost >= 20 && lost >= 3, "{seen} seen, {lost} lost, disk: {with_disk}");
    }
}

#[test]
fn a_peer_without_native_messages_is_told_apart() {
    let mut net = Net::new(2, Torment::default(), "");
    let client = net.open(0, 0);
    net.message(0, client, at(1, SERVER), 3, b"?").expect("room");
    let mut liar = Liar::new(1, 0);
    let common = v1::Common { eqif: 0, ..v1::Common::default() };
    let body = Body::Reset(v1::Reset { seq: 0, reason: v1::ResetReason::Refused });
    liar.say(&mut net, 1, 0, &Packet { common, body, options: Options::NONE }, &[]);
    assert_eq!(net.outcomes(0, client), [(3, Outcome::Unsupported)]);
    assert_eq!(net.hosts[0].endpoint.packets.bytes(), 0);
}

#[test]
fn floods_for_ports_without_a_program_are_bounded() {
    let mut net = Net::new(2, Torment::default(), "");
    let open = net.open(0, SERVER);
    let mut liar = Liar::new(1, 0);
    for seq in 0..60_000_u32 {
        let port = if seq % 7 == 0 { SERVER } else { seq as u16 };
        let refusal = (seq % 5 == 0).then_some(v1::Refusal::Full);
        let head = v1::Head { refusal, source: at(1, 1), destination: at(0, port), tag: seq };
        let mut buffer = [0; v1::Head::LONGEST];
        let head = head.emit(&mut buffer).expect("IPv4");
        let words = v1::Words { message: seq, offset: 0, length: head.len() as u32 }.emit();
        let flags = Flags::SYN.when(seq == 0);
        let common = v1::Common { flags, eqif: 0, ..v1::Common::default() };
        let data = v1::Data { seq: (5 << 14) + seq % (1 << 14), next: Next::Native, ..v1::Data::default() };
        liar.say(
            &mut net,
            1,
            0,
            &Packet { common, body: Body::Data(data), options: Options::NONE },
            &[&words[..], head].concat(),
        );
    }
    let dropped = net.status(0).dropped;
    assert!(dropped["no-listener"] > 1_000, "{dropped:?}");
    assert!(net.hosts[0].endpoint.packets.bytes() < 4 << 20);
    assert!(net.messages(0, open).len() + net.notices(0, open).len() < 60_000);
}
