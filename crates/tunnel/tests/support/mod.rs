//! Function that the fuzz target `endpoint` calls, so that `cargo test` can replay its corpus.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use selvedge_testkit::Script;
use selvedge_tunnel::config::Config;
use selvedge_tunnel::endpoint::{Endpoint, Sending};
use selvedge_tunnel::{Epochs, Outbound, StoredEpochs, base64};
use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::v1::{
    Body, Close, Common, Data, Flags, Next, Options, Packet, Probe, Report, Reset, ResetReason, Service, Words,
};

/// Returns mostly a number close to those in use, sometimes an arbitrary one.
fn near(script: &mut Script<'_>) -> u32 {
    match script.byte() {
        small @ 0..=0x7f => u32::from(small),
        // The first packet of an epoch of tunnels.
        epoch @ 0x80..=0xdf => u32::from(epoch - 0x80) << 14,
        _ => u32::from(script.short()) << 16 | u32::from(script.short()),
    }
}

const CLOCK: u64 = 1_800_000_000;
/// Bytes of the `virtio_net_hdr` before each packet inside.
const VNET: usize = 10;
/// Number in the payloads of the honest host, and bytes before it: headers of IPv4 and UDP.
const BEFORE: usize = VNET + 28;

fn config(own: u8) -> Config {
    let key = base64::encode(&[7; 32]);
    let mut text = format!(
        "name = \"h{own}\"\naddresses = [\"192.0.2.{own}\"]\nlink-rate = \"1Gbps\"\nprefixes = [\"10.80.{own}.0/24\"]\n\
         inner-addresses = [\"10.80.{own}.1/24\"]\npaths = 4\n"
    );
    for peer in (1..=3).filter(|peer| *peer != own) {
        text += &format!(
            "[[peer]]\nname = \"h{peer}\"\naddress = \"192.0.2.{peer}\"\nprefixes = [\"10.80.{peer}.0/24\"]\n\
             shared-key = \"{key}\"\n"
        );
    }
    Config::parse(Path::new("/nowhere/eqds.toml"), &text).expect("right settings")
}

/// Returns an IPv4 packet with UDP, as a TUN device gives it.
fn udp(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; VNET];
    let length = 28 + payload.len() as u16;
    let head = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0, 10, 80, from, 1, 10, 80, to, 1]];
    packet.extend(head.concat());
    let sum: u32 = packet[VNET..].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[VNET + 10..VNET + 12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([&[0, 7, 0, 7][..], &(length - 20).to_be_bytes(), &[0, 0]].concat());
    packet.extend(payload);
    packet
}

fn outside(host: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, host), port).into()
}

/// Two hosts, 1 and 2, and a third one that has its keys and says what the script wants.
struct World {
    now: Instant,
    endpoints: [Endpoint; 2],
    /// Datagrams under way: to which host, from where, with which ECN field.
    under_way: VecDeque<(u8, SocketAddr, u8, Vec<u8>)>,
    liar: Outbound,
    epochs: Epochs,
    sent: u32,
    arrived: u32,
}

impl World {
    fn new() -> Self {
        let endpoints = [1, 2].map(|own| {
            // All hosts have met, so that nobody is challenged.
            let stored = StoredEpochs::default();
            Endpoint::new(config(own), Some(&stored), CLOCK, u64::from(own)).expect("epochs")
        });
        let settings = config(3);
        let mut epochs = Epochs::new(None, CLOCK + 5);
        epochs.stored(epochs.reserve() + 100_000);
        let pair = &settings.peers.iter().find(|peer| peer.name == "h1").expect("a peer").pair;
        let liar = Outbound::new(pair.outbound(), true, &mut epochs).expect("epochs");
        Self { now: Instant::ZERO, endpoints, under_way: VecDeque::new(), liar, epochs, sent: 0, arrived: 0 }
    }

    /// Returns a packet of the liar, and its payload.
    fn lie(script: &mut Script<'_>) -> (Packet, Vec<u8>) {
        let common = Common {
            flags: Flags::from_bits(script.byte()),
            eqif: script.byte() % 5,
            path: u16::from(script.byte()),
            ..Common::default()
        };
        let kind = script.byte();
        let data = Data {
            seq: near(script),
            pull_target: near(script),
            next: Next::from_code(script.byte()),
            priority: script.byte() & 7,
            service: Service::from_code(script.byte() & 3),
        };
        let number = near(script);
        let body = match kind % 9 {
            0..=2 => Body::Data(data),
            3 => Body::Request(data),
            4 | 5 => Body::Report(Report { number, pull: near(script), busy: near(script), ..Report::default() }),
            6 => Body::Reset(Reset { seq: number, reason: ResetReason::from_code(script.byte() % 5) }),
            7 => Body::Close(Close { number, from_sender: script.byte() & 1 == 1 }),
            _ => Body::Probe(Probe { token: number, size: script.short() }),
        };
        let mut options = Options::NONE;
        if kind & 0x40 != 0 {
            options.floor = Some(near(script));
        }
        if kind & 0x80 != 0 {
            options.mtu = Some(script.short());
        }
        let mut payload = Vec::new();
        if matches!(body, Body::Data(_)) {
            let words = [script.byte(), script.byte(), script.byte()].map(u32::from);
            payload.extend(Words { message: words[0] % 4, offset: words[1], length: words[2] * 16 }.emit());
            let length = usize::from(script.byte());
            payload.extend(script.bytes(length));
        }
        (Packet { common, body, options }, payload)
    }

    /// Lets both hosts do what they can, and takes what they hand on. `drops`: parts of 256 of what is lost.
    fn flush(&mut self, script: &mut Script<'_>, drops: u8) {
        let mut buffer = Vec::new();
        for own in [1_u8, 2] {
            let endpoint = &mut self.endpoints[usize::from(own) - 1];
            if endpoint.poll_store().is_some() {
                endpoint.stored();
            }
            endpoint.handle_timeout(self.now);
            while let Some(transmit) = endpoint.poll_transmit(self.now, &mut buffer) {
                assert!(transmit.segment > 0 && !buffer.is_empty() && buffer.len() <= 65_535, "{transmit:?}");
                let SocketAddr::V4(to) = transmit.destination else { panic!("no host has an address of IPv6") };
                for bytes in buffer.chunks(transmit.segment) {
                    if to.ip().octets()[3] < 3 && (drops == 0 || script.byte() >= drops) {
                        let from = outside(own, 49_152 + transmit.path as u16);
                        self.under_way.push_back((to.ip().octets()[3], from, transmit.ecn, bytes.to_vec()));
                    }
                }
            }
            while let Some(packet) = endpoint.poll_inside() {
                assert!(packet.len() >= VNET + 20, "an IP packet at least");
                let ip = &packet[VNET..];
                if own == 2 || ip[0] >> 4 != 4 || ip[9] != 17 {
                    continue; // what the first host says, or what ICMP says to it
                }
                assert!(ip[16..19] == [10, 80, 1] && ip[12..14] == [10, 80], "addresses of others: {ip:?}");
                if ip[14] == 2 {
                    let number = u32::from_be_bytes(packet[BEFORE..BEFORE + 4].try_into().expect("four bytes"));
                    assert_eq!(number, self.arrived, "of the honest host, lost, repeated or reordered");
                    self.arrived += 1;
                }
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((to, from, ecn, mut bytes)) = self.under_way.pop_front() {
            self.endpoints[usize::from(to) - 1].handle_datagram(self.now, from, ecn, &mut bytes);
        }
    }

    /// Lets time pass until `end`.
    fn run(&mut self, end: Instant, script: &mut Script<'_>, drops: u8) {
        loop {
            self.flush(script, drops);
            if self.under_way.is_empty() {
                let next = self.endpoints.iter().map(Endpoint::poll_timeout).min().unwrap_or(Instant::NEVER);
                if next > end {
                    self.now = end;
                    return;
                }
                self.now = next.max(self.now + Duration::from_us(1));
            } else {
                self.now = self.now.max((self.now + Duration::from_us(20)).min(end));
                self.deliver();
            }
        }
    }
}

/// Lets a peer say arbitrary things to a host that at the same time exchanges packets with another peer, over a network
/// that loses some: whatever the liar says, what the other peer sends arrives complete and in order, nothing is taken
/// from or given to addresses of others, and memory is bounded.
pub(crate) fn torment_endpoint(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut world = World::new();
    let drops = script.byte() % 32;
    let port = world.endpoints[0].open_port(7, None).expect("no other program has it");
    for _ in 0..5_000 {
        if script.left() == 0 {
            break;
        }
        match script.byte() % 8 {
            0..=2 => {
                let (packet, payload) = World::lie(&mut script);
                let mut buffer = [0; 4_000];
                let World { liar, epochs, .. } = &mut world;
                if let Ok(datagram) = liar.write(&packet, [&payload, &[]], epochs, &mut buffer) {
                    world.under_way.push_back((1, outside(3, 50_000), script.left() as u8 & 3, datagram.to_vec()));
                }
            }
            3 => {
                // No key: of anybody, also in the name of the honest host.
                let length = usize::from(script.byte());
                let garbage = script.bytes(length);
                world.under_way.push_back((1, outside(script.byte() % 4, 49_152), 0, garbage));
            }
            4 => {
                let length = 4 + usize::from(script.short() % 3_000);
                let payload = [&world.sent.to_be_bytes()[..], &vec![0x5a; length - 4]].concat();
                // A full queue drops packets: not these.
                if world.endpoints[1].is_full() || world.sent - world.arrived > 50 {
                    continue;
                }
                world.endpoints[1].handle_inside(world.now, &mut udp(2, 1, &payload));
                world.sent += 1;
            }
            5 => {
                // Of the host's own stack: to the liar, to the honest host, and nonsense.
                let length = usize::from(script.byte());
                let mut packet = udp(1, 2 + (script.byte() & 1), &script.bytes(length));
                if script.byte() & 3 == 0 {
                    let at = usize::from(script.byte()) % packet.len();
                    packet[at] = script.byte();
                }
                world.endpoints[0].handle_inside(world.now, &mut packet);
            }
            6 => {
                let to = SocketAddr::from((Ipv4Addr::new(10, 80, 2 + (script.byte() & 1), 1), 7));
                let sending =
                    Sending { source: Ipv4Addr::UNSPECIFIED.into(), destination: to, tag: 1, wants_notice: true };
                let length = usize::from(script.short());
                let _ = world.endpoints[0].send_message(world.now, port, &sending, [&vec![1; length], &[]]);
                while world.endpoints[0].poll_message(port).is_some() {
                    world.endpoints[0].drop_message(port);
                }
                while world.endpoints[0].poll_notice(port).is_some() {
                    world.endpoints[0].drop_notice(port);
                }
            }
            _ => {
                let pause = Duration::from_us(u64::from(script.byte()) * u64::from(script.byte()));
                world.run(world.now + pause, &mut script, drops);
            }
        }
    }
    // Retransmission timeouts double a few times.
    world.run(world.now + Duration::from_ms(3_000), &mut Script::new(&[]), 0);
    assert_eq!(world.arrived, world.sent, "what the honest host has sent arrives");
    let status = world.endpoints[0].status(world.now);
    let waiting: u64 = status.peers.iter().flat_map(|peer| &peer.tunnels).map(|tunnel| tunnel.waiting).sum();
    assert!(waiting < 8 << 20, "{waiting} bytes wait");
}
