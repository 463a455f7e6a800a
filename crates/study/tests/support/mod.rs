//! Switches with NetRT that carry real frames, for tests and the fuzz target `netrt`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::OnceLock;

use selvedge_dataplane::switch::{Bridge, Directory, Engine, FabricEngine};
use selvedge_scenario::Rack;
use selvedge_testkit::Script;
use selvedge_units::{Bytes, Duration, Instant, Psn, QpNumber};
use selvedge_wire::{
    Bth, Ecn, Envelope, EtherType, Ethernet, Extended, Icrc, Ipv4, Ipv6, MacAddress, Opcode, Reth, Roce, Udp,
};

/// Bytes on a link of the longest frame.
const LONGEST: Bytes = Bytes::new(1_518);
/// Queue pair of most packets.
pub(crate) const QP: QpNumber = QpNumber(17);
/// DSCP of data, and one whose priority is that of copies and messages.
pub(crate) const DSCP: u8 = 26;
pub(crate) const OF_COPIES: u8 = 48;

/// Two leaf switches of a dumbbell, with two hosts at the first one and one at the second.
pub(crate) const RACK: &str = r#"
[topology.dumbbell]
left = 2
right = 1
host-link = { rate = "1Gbps", delay = "1us" }
bottleneck = { rate = "1Gbps", delay = "10us" }

[switch.buffer.input-queued]
per-port = "1MB"

[switch.netrt]
enabled = true
pool = "128KB"
buffer = "128KB"
interval = "60us"
quiet = "45us"
lifetime = "240us"
"#;

/// Number of the host at the second switch.
pub(crate) const RECEIVER: usize = 2;

/// Reads a rack.
pub(crate) fn rack(text: &str) -> Rack {
    Rack::from_text("rack.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the address of a host's interface.
pub(crate) fn station(host: usize) -> MacAddress {
    MacAddress::local(host as u32 + 1)
}
/// Returns the IPv4 address of a host.
pub(crate) fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host as u8 + 1)
}
/// Returns the IPv6 address of a host.
fn address6(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host as u16 + 1)
}

/// Switches, and the frames that reach their hosts.
pub(crate) struct World {
    pub(crate) now: Instant,
    bridge: Bridge<FabricEngine>,
    /// Frames that came to each host.
    pub(crate) came: Vec<Vec<Vec<u8>>>,
}

impl World {
    /// Creates the network of a rack.
    pub(crate) fn new(rack: &Rack) -> Self {
        let (parts, names) = rack.fabric(LONGEST, &[]).unwrap_or_else(|error| panic!("{error}"));
        let hosts = rack.network.graph().hosts.len();
        let mut directory = Directory::new(hosts);
        for host in 0..hosts {
            let addresses: [IpAddr; 2] = [address(host).into(), address6(host).into()];
            directory.add(host, station(host), addresses);
        }
        let bridge = Bridge::new(FabricEngine::new(parts, names), directory);
        Self { now: Instant::ZERO, bridge, came: vec![Vec::new(); hosts] }
    }

    /// Lets a host send a frame.
    pub(crate) fn send(&mut self, host: usize, frame: &[u8]) {
        self.bridge.handle_frame(self.now, host, frame);
        self.take();
    }

    /// Lets so much time pass.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.bridge.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(next);
            self.bridge.handle_timeout(self.now);
            self.take();
        }
        self.now = end;
    }

    fn take(&mut self) {
        while let Some(leaving) = self.bridge.poll_transmit(self.now) {
            let (port, frame) = (leaving.port, leaving.frame.to_vec());
            self.came[port].push(frame);
        }
    }

    /// Returns the sum of a counter over places whose name begins with `place`; "" for the network's own.
    pub(crate) fn count(&self, place: &str, name: &str) -> u64 {
        let mut sum = 0;
        self.bridge.engine.visit_counts(&mut |at, what, count| {
            if what == name && if place.is_empty() { at.is_empty() } else { at.starts_with(place) } {
                sum += count;
            }
        });
        sum
    }

    /// Returns the bytes that wait in all queues and buffers, those of held packets included.
    pub(crate) fn waiting(&mut self) -> u64 {
        let mut rows = Vec::new();
        self.bridge.engine.sample(self.now, &mut rows);
        rows.iter().map(|row| row.egress_queue.get() + row.ingress_buffer.get()).sum()
    }

    /// Returns the PSNs of RoCEv2 packets over IPv4 that came to a host, in order.
    pub(crate) fn psns(&self, host: usize) -> Vec<u32> {
        self.came[host].iter().map(|frame| psn(frame)).collect()
    }
}

/// Returns the PSN of a frame with a RoCEv2 packet over IPv4.
pub(crate) fn psn(frame: &[u8]) -> u32 {
    let at = Ethernet::LENGTH + Ipv4::LENGTH + Udp::LENGTH;
    frame.get(at..).and_then(|bytes| Bth::parse(bytes).ok()).map_or(u32::MAX, |(bth, _)| bth.psn.get())
}

/// A RoCEv2 packet to be made.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) dscp: u8,
    pub(crate) qp: QpNumber,
    pub(crate) opcode: u8,
    pub(crate) psn: u32,
    pub(crate) extended: Extended,
}

impl Spec {
    /// Returns a Send in the middle of a message, from the first host to the receiver.
    pub(crate) fn data(psn: u32) -> Self {
        let (dscp, qp, opcode) = (DSCP, QP, Opcode::SEND_MIDDLE);
        Self { from: 0, to: RECEIVER, dscp, qp, opcode, psn, extended: Extended::None }
    }

    /// Returns the packet in a frame.
    pub(crate) fn frame(self, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (address(self.from), address(self.to));
        let envelope = Envelope { source, destination, dscp: self.dscp, ecn: Ecn::Capable, identification: 0, ttl: 64 };
        let bth = Bth {
            opcode: self.opcode,
            destination: self.qp,
            psn: Psn::new(self.psn & 0xff_ffff),
            partition: 0xffff,
            ..Bth::default()
        };
        let roce = Roce { envelope, port: 50_000, bth, extended: self.extended };
        let mut packet = vec![0; roce.length(payload.len())];
        roce.emit(payload, &mut packet);
        framed(self.from, self.to, EtherType::IPV4, &packet)
    }
}

/// Returns a frame from one host to another.
pub(crate) fn framed(from: usize, to: usize, kind: u16, content: &[u8]) -> Vec<u8> {
    [&Ethernet { destination: station(to), source: station(from), kind }.emit()[..], content].concat()
}

/// Returns a frame with 1,024 bytes of data from the first host to the receiver.
pub(crate) fn data(psn: u32) -> Vec<u8> {
    Spec::data(psn).frame(&[psn as u8; 1_024])
}

/// Returns the packet of a frame over IPv6.
pub(crate) fn over_ipv6(frame: &[u8]) -> Vec<u8> {
    let content = &frame[Ethernet::LENGTH + Ipv4::LENGTH + Udp::LENGTH..frame.len() - Icrc::LENGTH];
    let length = (Udp::LENGTH + content.len() + Icrc::LENGTH) as u16;
    let (source, destination) = (address6(0), address6(RECEIVER));
    let (dscp, ecn, hop_limit) = (DSCP, Ecn::Capable, 64);
    let ip = Ipv6 { dscp, ecn, flow_label: 5, length, protocol: Ipv4::UDP, hop_limit, source, destination }.emit();
    let mut udp = Udp { source: 50_000, destination: Udp::ROCE, length, checksum: 0 }.emit();
    let mut crc = Icrc::begin_ipv6(ip, udp, *content.first_chunk().expect("a BTH"));
    crc.update(&content[Bth::LENGTH..]);
    udp[6..].copy_from_slice(&0xbeef_u16.to_be_bytes());
    framed(0, RECEIVER, EtherType::IPV6, &[&ip[..], &udp, content, &crc.finish()].concat())
}

/// Returns a RoCEv2 packet with a right ICRC, of any opcode, near the numbers in use.
fn any_roce(script: &mut Script<'_>, from: usize, to: usize, psn: u32) -> Vec<u8> {
    let opcode = script.byte();
    // Mostly Writes and Sends: what switches repair.
    let opcode = if opcode < 0xb0 { opcode % 12 } else { opcode };
    let dscp = if script.byte() & 15 == 0 { OF_COPIES } else { DSCP };
    let qp = QpNumber(u32::from(script.byte() % 3));
    let reth = Reth { length: u32::from(script.byte()) << 4, ..Reth::default() };
    let extended = if opcode == 12 { Extended::Reth(reth) } else { Extended::None };
    let payload = usize::from(script.byte());
    let payload = script.bytes(payload);
    Spec { from, to, dscp, qp, opcode, psn, extended }.frame(&payload)
}

/// Lets hosts send any frames through switches with NetRT, over a link that loses data and messages. Hosts receive only
/// what was sent to them, byte for byte, and no message of NetRT; copies stay within their bounds, and no packet is
/// held for ever.
pub(crate) fn torment_netrt(bytes: &[u8]) {
    const LOSS: &str = "\n[[loss]]\nlink = \"left - right\"\nmodel.random.rate = 0.05\n";
    static RACKS: OnceLock<[Rack; 2]> = OnceLock::new();
    let racks = RACKS.get_or_init(|| {
        let small = RACK.replace("per-port = \"1MB\"", "per-port = \"30KB\"");
        [rack(&[RACK, LOSS].concat()), rack(&[&small, LOSS].concat())]
    });
    let mut script = Script::new(bytes);
    let mut world = World::new(&racks[usize::from(script.byte() & 1)]);
    let hosts = world.came.len();
    let mut sent: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut seen = vec![0; hosts];
    let mut psns = vec![0_u32; hosts];
    for _ in 0..3_000 {
        if script.left() == 0 {
            break;
        }
        let what = script.byte();
        let from = usize::from(what & 15) % hosts;
        // Mostly to the other switch.
        let to = match script.byte() & 7 {
            0 => (from + 1) % hosts,
            _ if from == RECEIVER => usize::from(what >> 4 & 1),
            _ => RECEIVER,
        };
        let frame = match what >> 4 {
            0..=9 => {
                let next = &mut psns[from];
                // Sometimes back, sometimes far ahead, as after the reuse of a queue pair.
                *next = match script.byte() {
                    0..=9 => next.wrapping_sub(u32::from(script.byte())),
                    10 => u32::from(script.byte()) << 16,
                    _ => next.wrapping_add(1),
                } & 0xff_ffff;
                let psn = *next;
                let mut frame = any_roce(&mut script, from, to, psn);
                if script.byte() < 8 {
                    // Damaged before the first switch.
                    let at = Ethernet::LENGTH + usize::from(script.byte()) % (frame.len() - Ethernet::LENGTH);
                    frame[at] ^= 1 | script.byte();
                }
                frame
            }
            10 => {
                let length = usize::from(script.byte());
                framed(from, to, EtherType::IPV4, &script.bytes(length))
            }
            _ => {
                world.wait(Duration::from_us(u64::from(script.byte())));
                continue;
            }
        };
        sent.insert(frame.clone());
        world.send(from, &frame);
        check(&world, &sent, &mut seen);
    }
    world.wait(Duration::from_ms(1_000));
    check(&world, &sent, &mut seen);
    assert_eq!(world.waiting(), 0, "a packet is held for ever");
    for switch in ["left", "right"] {
        // A pool for each port.
        assert!(world.count(switch, "pool_peak") <= 3 * 128_000);
    }
}

/// Checks the frames that have come since the last check.
fn check(world: &World, sent: &BTreeSet<Vec<u8>>, seen: &mut [usize]) {
    for (host, (came, seen)) in world.came.iter().zip(seen).enumerate() {
        for frame in &came[*seen..] {
            assert!(sent.contains(frame), "nobody has sent {frame:?}");
            assert_eq!(frame[..6], station(host).0, "it is another host's");
            let opcode_at = Ethernet::LENGTH + Ipv4::LENGTH + Udp::LENGTH;
            let is_whole = Roce::parse(&frame[Ethernet::LENGTH..]).is_ok();
            assert!(!is_whole || frame[opcode_at] != Opcode::NETRT, "a message reaches a host: {frame:?}");
        }
        *seen = came.len();
    }
}
