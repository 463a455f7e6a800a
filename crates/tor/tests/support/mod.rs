//! Function that the fuzz target `tor` calls, so that `cargo test` can replay its corpus.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use selvedge_testkit::Script;
use selvedge_tor::{Outgoing, Port, Settings, Tor};
use selvedge_transport::netrt;
use selvedge_units::{Bytes, Duration, Instant, Psn, QpNumber, Rate};
use selvedge_wire::{Bth, Ecn, Envelope, Extended, Opcode, Reth, Roce};

/// Hosts: two at the first switch, one at the second.
const HOSTS: [&[Ipv4Addr]; 2] =
    [&[Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 3)], &[Ipv4Addr::new(10, 78, 0, 2)]];
const DELAY: Duration = Duration::from_us(20);
/// Offset of a RoCE packet's opcode over IPv4.
const OPCODE_AT: usize = 28;

fn settings(end: usize) -> Settings {
    let config = Settings::netrt_for(Rate::from_gbps(1), Duration::from_us(50));
    Settings {
        netrt: Some(netrt::Settings::from(&config).restarting()),
        hosts: HOSTS[end].iter().map(|address| vec![(*address).into()]).collect(),
        rate: (end == 1).then_some(Rate::from_gbps(1)),
        line_rate: Rate::from_gbps(1),
        queue: Bytes::from_kb(30),
        mark_above: None,
        dscp: Settings::DSCP,
        path_mtu: 256,
    }
}

/// Returns a RoCE packet with a right ICRC, of any opcode, near the numbers in use.
fn roce(script: &mut Script<'_>, from: Ipv4Addr, to: Ipv4Addr, psn: u32) -> Vec<u8> {
    let opcode = script.byte();
    // Mostly Writes and Sends: what switches repair.
    let opcode = if opcode < 0xb0 { opcode % 12 } else { opcode };
    let class = if script.byte() & 15 == 0 { Settings::DSCP } else { 26 };
    let envelope =
        Envelope { source: from, destination: to, dscp: class, ecn: Ecn::Capable, identification: 0, ttl: 64 };
    let qp = QpNumber(u32::from(script.byte() % 3));
    let bth = Bth { opcode, destination: qp, psn: Psn::new(psn), partition: 0xffff, ..Bth::default() };
    let reth = Reth { length: u32::from(script.byte()) << 4, ..Reth::default() };
    let extended = if opcode == 12 { Extended::Reth(reth) } else { Extended::None };
    let payload = usize::from(script.byte());
    let payload = script.bytes(payload);
    let packet = Roce { envelope, port: 50_000, bth, extended };
    let mut buffer = vec![0; packet.length(payload.len())];
    packet.emit(&payload, &mut buffer);
    buffer
}

/// Returns a packet without its DSCP and the checksum over it: where a host gives some packets of a flow the DSCP of
/// copies, all arrive with one DSCP.
fn plain(mut packet: Vec<u8>) -> Vec<u8> {
    if let [0x45, class, _, _, _, _, _, _, _, _, c0, c1, ..] = &mut packet[..] {
        (*class, *c0, *c1) = (0, 0, 0);
    }
    packet
}

struct World {
    now: Instant,
    tors: [Tor; 2],
    /// Packets in the fabric: switch, and time of arrival.
    fabric: VecDeque<(usize, Instant, Vec<u8>)>,
    /// Whatever anybody has sent, without garbage.
    sent: BTreeSet<Vec<u8>>,
    /// Garbage, and what was damaged on its way: headers, too, so that hosts will refuse it.
    damaged: BTreeSet<Vec<u8>>,
}

impl World {
    fn hand(&mut self, end: usize, from: Port, packet: Vec<u8>) {
        self.tors[end].handle_packet(self.now, from, &packet);
        self.sent.insert(plain(packet));
    }

    /// Lets both switches send what they can; `fate` decides what the fabric loses, repeats and damages.
    fn drain(&mut self, script: &mut Script<'_>, faults: u8) {
        for end in 0..2 {
            self.tors[end].handle_timeout(self.now);
            while let Some(Outgoing { port, at, packet }) = self.tors[end].poll_transmit(self.now) {
                if port != Port::Fabric {
                    let packet = plain(packet);
                    if !self.damaged.contains(&packet) {
                        assert!(self.sent.contains(&packet), "nobody has sent {packet:?}");
                        assert!(packet.get(OPCODE_AT) != Some(&Opcode::NETRT), "a message reaches a host: {packet:?}");
                    }
                    continue;
                }
                let fate = if faults > 0 { script.byte() } else { 255 };
                let late = if fate & 1 == 0 { DELAY * 4 } else { DELAY };
                match fate {
                    fate if fate < faults => {}
                    fate if fate < faults.saturating_mul(2) && !packet.is_empty() => {
                        let mut damaged = packet;
                        let place = usize::from(script.byte()) % damaged.len();
                        damaged[place] ^= 1 | script.byte();
                        self.damaged.insert(plain(damaged.clone()));
                        self.fabric.push_back((1 - end, at + late, damaged));
                    }
                    fate if fate < faults.saturating_mul(3) => {
                        self.fabric.push_back((1 - end, at + DELAY, packet.clone()));
                        self.fabric.push_back((1 - end, at + late, packet));
                    }
                    _ => self.fabric.push_back((1 - end, at + late, packet)),
                }
            }
        }
    }

    fn run(&mut self, end: Instant, script: &mut Script<'_>, faults: u8) {
        loop {
            self.drain(script, faults);
            let timers = self.tors.iter().filter_map(Tor::poll_timeout);
            let next = timers.chain(self.fabric.iter().map(|(_, at, _)| *at)).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(place) = self.fabric.iter().position(|(_, at, _)| *at <= self.now) {
                let (to, _, packet) = self.fabric.remove(place).expect("its place was just found");
                self.tors[to].handle_packet(self.now, Port::Fabric, &packet);
            }
        }
    }
}

/// Lets hosts send any packets through two switches with NetRT, over a fabric that loses, damages, repeats and delays,
/// and where strangers send, too: hosts receive only what somebody has sent, byte for byte, and no message of NetRT;
/// copies and held packets stay within their bounds.
pub(crate) fn torment_tor(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let tors = [0, 1].map(|end| Tor::new(settings(end)));
    let (sent, damaged) = (BTreeSet::new(), BTreeSet::new());
    let mut world = World { now: Instant::ZERO, tors, fabric: VecDeque::new(), sent, damaged };
    let faults = script.byte() % 40;
    let mut psns = [0_u32; 3];
    for _ in 0..3_000 {
        if script.left() == 0 {
            break;
        }
        let what = script.byte();
        let end = usize::from(what & 1);
        let port = if end == 0 { what >> 1 & 1 } else { 0 };
        let from = HOSTS[end][usize::from(port)];
        let to = HOSTS[1 - end][usize::from(what >> 2 & 1) % HOSTS[1 - end].len()];
        match what >> 4 {
            0..=9 => {
                let next = &mut psns[end + usize::from(port)];
                // Sometimes back, sometimes far ahead, as after the reuse of a queue pair.
                *next = match script.byte() {
                    0..=9 => next.wrapping_sub(u32::from(script.byte())),
                    10 => u32::from(script.byte()) << 16,
                    _ => next.wrapping_add(1),
                } & 0xff_ffff;
                let packet = roce(&mut script, from, to, *next);
                world.hand(end, Port::Host(port.into()), packet);
            }
            10 => {
                let length = usize::from(script.byte());
                let garbage = script.bytes(length);
                let port = if script.byte() & 1 == 0 { Port::Fabric } else { Port::Host(port.into()) };
                world.damaged.insert(plain(garbage.clone()));
                world.hand(end, port, garbage);
            }
            11 => {
                // A stranger in the fabric, with a right ICRC: a message that is none, or an early packet.
                let psn = u32::from(script.byte());
                let packet = roce(&mut script, to, from, psn);
                world.hand(end, Port::Fabric, packet);
            }
            _ => {
                let pause = Duration::from_us(u64::from(script.byte()));
                world.run(world.now + pause, &mut script, faults);
            }
        }
        let bounds = [128_000, 2 * 128_000];
        for tor in &world.tors {
            let held = tor.occupancy();
            assert!(held[0] <= 2 * bounds[0] && held[1] <= bounds[1], "{held:?} bytes of copies, and of held packets");
        }
    }
    world.run(world.now + Duration::from_ms(1_000), &mut Script::new(&[]), 0);
    assert!(world.tors.iter().all(|tor| tor.occupancy()[1] == 0), "a packet is held for ever");
}
