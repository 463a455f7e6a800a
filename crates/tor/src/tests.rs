//! Two switches, a host at each, and a fabric between them that loses what a test says.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use selvedge_transport::netrt::{self, NetRtConfig};
use selvedge_units::{Bytes, Duration, Instant, Psn, QpNumber, Rate, Setting};
use selvedge_wire::amend::{mark, set_dscp};
use selvedge_wire::verbs::opcode::operation;
use selvedge_wire::{Aeth, Bth, Ecn, Envelope, Extended, Opcode, Reth, Roce, Syndrome, Udp};

use crate::packet::{Address, Headers, emit_message};
use crate::{Outgoing, Port, Settings, Tor};

const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)];
const HOSTS_6: [Ipv6Addr; 2] = [Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2)];
const DELAY: Duration = Duration::from_us(10);
const QP: QpNumber = QpNumber(17);

fn netrt(change: impl FnOnce(&mut NetRtConfig)) -> netrt::Settings {
    let mut config = NetRtConfig {
        enabled: true,
        pool: Setting::Value(Bytes::from_kb(128)),
        buffer: Setting::Value(Bytes::from_kb(128)),
        interval: Setting::Value(Duration::from_us(40)),
        quiet: Setting::Value(Duration::from_us(30)),
        lifetime: Setting::Value(Duration::from_us(160)),
        ..NetRtConfig::default()
    };
    change(&mut config);
    netrt::Settings::from(&config).restarting()
}

fn settings(end: usize) -> Settings {
    Settings {
        netrt: Some(netrt(|_| {})),
        hosts: vec![vec![HOSTS[end].into(), HOSTS_6[end].into()]],
        rate: None,
        line_rate: Rate::from_gbps(1),
        queue: Bytes::from_kb(100),
        mark_above: None,
        dscp: Settings::DSCP,
        path_mtu: 1_024,
    }
}

struct Pair<L> {
    now: Instant,
    tors: [Tor; 2],
    /// Packets in the fabric: time of arrival, and switch.
    fabric: VecDeque<(Instant, usize, Vec<u8>)>,
    /// Packets that came to each host.
    came: [Vec<Vec<u8>>; 2],
    loses: L,
}

impl<L: FnMut(&mut Vec<u8>) -> bool> Pair<L> {
    fn new(loses: L) -> Self {
        Self::with([0, 1].map(settings), loses)
    }
    fn with(settings: [Settings; 2], loses: L) -> Self {
        let now = Instant::ZERO;
        Self { now, tors: settings.map(Tor::new), fabric: VecDeque::new(), came: Default::default(), loses }
    }
    fn send(&mut self, end: usize, packet: &[u8]) {
        self.tors[end].handle_packet(self.now, Port::Host(0), packet);
        self.drain();
    }
    fn drain(&mut self) {
        for end in 0..2 {
            while let Some(Outgoing { port, at, packet }) = self.tors[end].poll_transmit(self.now) {
                match port {
                    Port::Host(_) => self.came[end].push(packet),
                    Port::Fabric => {
                        let mut packet = packet;
                        if !(self.loses)(&mut packet) {
                            self.fabric.push_back((at + DELAY, 1 - end, packet));
                        }
                    }
                }
            }
        }
    }
    /// Lets time pass until nothing happens any more, for a second at most.
    fn run(&mut self) {
        let end = self.now + Duration::from_ms(1_000);
        while self.step(end) {}
    }
    /// Lets time pass until something happens, and returns whether it does before `end`.
    fn step(&mut self, end: Instant) -> bool {
        let timers = self.tors.iter().filter_map(Tor::poll_timeout).min();
        let arrival = self.fabric.iter().map(|(at, ..)| *at).min();
        let Some(next) = timers.into_iter().chain(arrival).min().filter(|at| *at < end) else { return false };
        self.now = self.now.max(next);
        while let Some(at) = self.fabric.iter().position(|(at, ..)| *at <= self.now) {
            let (_, to, packet) = self.fabric.remove(at).expect("its place was just found");
            self.tors[to].handle_packet(self.now, Port::Fabric, &packet);
            self.drain();
        }
        self.tors.iter_mut().for_each(|tor| tor.handle_timeout(self.now));
        self.drain();
        true
    }
    /// Returns the PSNs that came to the second host, in order.
    fn psns(&self) -> Vec<u32> {
        self.came[1].iter().map(|packet| headers(packet).bth.psn.get()).collect()
    }
}

fn headers(packet: &[u8]) -> Headers {
    Headers::parse(packet).expect("a RoCE packet")
}

/// Returns a packet from the first host to the second.
fn packet(opcode: u8, psn: u32, extended: Extended, payload: &[u8]) -> Vec<u8> {
    let envelope =
        Envelope { source: HOSTS[0], destination: HOSTS[1], dscp: 26, ecn: Ecn::Capable, identification: 0, ttl: 64 };
    let bth = Bth { opcode, destination: QP, psn: Psn::new(psn), partition: 0xffff, ..Bth::default() };
    let roce = Roce { envelope, port: 50_000, bth, extended };
    let mut buffer = vec![0; roce.length(payload.len())];
    roce.emit(payload, &mut buffer);
    buffer
}

fn data(psn: u32) -> Vec<u8> {
    packet(Opcode::SEND_MIDDLE, psn, Extended::None, &[psn as u8; 1_024])
}

/// Returns the packet over IPv6.
fn over_ipv6(packet: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let to = Address { source: HOSTS_6[0].into(), destination: HOSTS_6[1].into(), qp: QP, dscp: 26 };
    let psn = selvedge_wire::netrt::Message::Unfulfilled(Psn::new(0));
    emit_message(&to, &psn, &mut message);
    // IP and UDP headers from there, the rest from here; the ICRC anew.
    let datagram = &packet[28..packet.len() - 4];
    let length = (8 + datagram.len() + 4) as u16;
    let mut longer = message[..48].to_vec();
    longer[4..6].copy_from_slice(&length.to_be_bytes());
    longer[44..46].copy_from_slice(&length.to_be_bytes());
    longer[46..48].fill(0);
    longer.extend_from_slice(datagram);
    let mut crc = selvedge_wire::Icrc::begin_ipv6(
        *longer.first_chunk().expect("a header"),
        *longer[40..].first_chunk().expect("a header"),
        *longer[48..].first_chunk().expect("a header"),
    );
    crc.update(&longer[60..]);
    longer.extend_from_slice(&crc.finish());
    longer[46..48].copy_from_slice(&0xbeef_u16.to_be_bytes());
    longer
}

fn psn_of(packet: &[u8]) -> Option<u32> {
    Headers::parse(packet).filter(|headers| headers.bth.opcode != Opcode::NETRT).map(|headers| headers.bth.psn.get())
}

fn is_message(packet: &[u8]) -> bool {
    Headers::parse(packet).is_some_and(|headers| headers.bth.opcode == Opcode::NETRT)
}

#[test]
fn without_loss_hosts_receive_what_was_sent_byte_for_byte() {
    let mut pair = Pair::new(|packet| {
        assert!(!is_message(packet));
        false
    });
    let mut sent: Vec<_> = (0..300).map(data).collect();
    sent.push(over_ipv6(&data(5)));
    sent.push(vec![0x45; 3]);
    sent.push(Vec::new());
    sent.iter().for_each(|packet| pair.send(0, packet));
    pair.run();
    // What is no packet for an address here goes to all hosts.
    assert!(pair.came[1] == sent);
    assert_eq!(pair.tors[1].stats().messages, 0);
}

#[test]
fn a_lost_packet_is_repaired_before_the_host_sees_a_gap() {
    for version in [4, 6] {
        let mut lost = false;
        let mut pair = Pair::new(|packet: &mut Vec<u8>| {
            let hit = psn_of(packet) == Some(7) && !lost;
            lost |= hit;
            hit
        });
        let sent: Vec<_> = (0..20).map(data).map(|p| if version == 6 { over_ipv6(&p) } else { p }).collect();
        for packet in &sent {
            pair.send(0, packet);
            pair.now += Duration::from_us(2);
        }
        pair.run();
        assert!(pair.came[1] == sent, "in order, the copy's DSCP restored");
        assert!(pair.came[0].is_empty(), "no message comes to a host");
        let [src, dst] = [pair.tors[0].stats(), pair.tors[1].stats()];
        assert_eq!((src.source.retransmissions, src.source.unfulfilled, dst.destination.given_up), (1, 0, 0));
        assert_eq!((dst.messages, pair.tors[1].kept()), (1, 0));
    }
}

#[test]
fn a_damaged_packet_is_a_lost_one() {
    let mut damaged = false;
    let mut pair = Pair::new(|packet: &mut Vec<u8>| {
        if psn_of(packet) == Some(7) && !damaged {
            damaged = true;
            packet[60] ^= 1;
        }
        false
    });
    (0..20).for_each(|psn| pair.send(0, &data(psn)));
    pair.run();
    // The host drops the damaged one itself.
    let intact: Vec<_> = pair.came[1].iter().filter(|packet| headers(packet).is_intact(packet)).cloned().collect();
    assert!(intact == (0..20).map(data).collect::<Vec<_>>());
    assert_eq!((pair.came[1].len(), pair.tors[1].stats().damaged), (21, 1));
}

#[test]
fn messages_from_hosts_and_malformed_ones_are_refused() {
    let mut pair = Pair::new(|_| false);
    let to = Address { source: HOSTS[0].into(), destination: HOSTS[1].into(), qp: QP, dscp: 48 };
    let mut forged = Vec::new();
    emit_message(&to, &selvedge_wire::netrt::Message::Unfulfilled(Psn::new(3)), &mut forged);
    pair.send(0, &forged);
    assert_eq!(pair.tors[0].stats().refused, 1);
    let mut wrong = forged.clone();
    wrong[45] ^= 0x40;
    pair.tors[1].handle_packet(pair.now, Port::Fabric, &wrong);
    let strangers = Address { destination: Ipv4Addr::new(10, 0, 0, 9).into(), ..to };
    let mut lost = Vec::new();
    emit_message(&strangers, &selvedge_wire::netrt::Message::Unfulfilled(Psn::new(3)), &mut lost);
    pair.tors[1].handle_packet(pair.now, Port::Fabric, &lost);
    pair.run();
    assert_eq!(pair.tors[1].stats().refused, 2);
    assert!(pair.came.iter().all(Vec::is_empty));
}

#[test]
fn what_is_not_a_request_of_a_reliable_connection_passes_in_any_order() {
    let mut pair = Pair::new(|packet: &mut Vec<u8>| is_message(packet));
    let aeth = || Extended::Aeth(Aeth { syndrome: Syndrome::Ack(0), msn: 0 });
    let sent: Vec<_> = [9, 3, 70, 4]
        .into_iter()
        .flat_map(|psn| {
            [
                packet(Opcode::ACKNOWLEDGE, psn, aeth(), &[]),
                packet(operation::SEND_ONLY | 0x60, psn, Extended::None, &[1; 100]),
                packet(operation::SEND_ONLY | 0x20, psn, Extended::None, &[1; 100]),
                packet(operation::READ_RESPONSE_MIDDLE, psn, Extended::None, &[1; 100]),
                packet(Opcode::CONGESTION_NOTIFICATION, psn, Extended::Cnp, &[]),
            ]
        })
        .collect();
    sent.iter().for_each(|packet| pair.send(0, packet));
    pair.run();
    assert!(pair.came[1] == sent);
    assert_eq!(pair.tors[1].stats().destination.held, 0);
}

#[test]
fn read_requests_take_the_numbers_of_their_answers() {
    let read =
        |psn, length| packet(operation::READ_REQUEST, psn, Extended::Reth(Reth { length, ..Reth::default() }), &[]);
    let sent = [data(0), read(1, 64 * 1_024), data(65), read(66, 100), data(67)];
    let mut pair = Pair::new(|_| false);
    sent.iter().for_each(|packet| pair.send(0, packet));
    pair.run();
    assert_eq!((pair.psns(), pair.tors[1].stats().messages), (vec![0, 1, 65, 66, 67], 0));
}

#[test]
fn without_copies_recovery_is_left_to_the_nics() {
    let without_pool = Settings { netrt: Some(netrt(|config| config.pool = Setting::Off)), ..settings(0) };
    let mut lost = false;
    let mut pair = Pair::with([without_pool, settings(1)], |packet: &mut Vec<u8>| {
        let hit = psn_of(packet) == Some(7) && !lost;
        lost |= hit;
        hit
    });
    (0..10).for_each(|psn| pair.send(0, &data(psn)));
    pair.run();
    assert_eq!(pair.psns(), [0, 1, 2, 3, 4, 5, 6, 8], "the NIC asks for 7");
    (7..12).for_each(|psn| pair.send(0, &data(psn)));
    pair.run();
    assert_eq!(pair.psns()[8..], [7, 8, 9, 10, 11]);
    assert_eq!((pair.tors[0].stats().source.unfulfilled, pair.tors[1].kept()), (1, 0));
}

#[test]
fn a_full_queue_loses_packets_before_their_order_is_checked() {
    let slow = Settings { rate: Some(Rate::from_bps(100_000_000)), queue: Bytes::new(20_000), ..settings(1) };
    let mut pair = Pair::with([settings(0), slow], |_| false);
    for psn in 0..60 {
        pair.send(0, &data(psn));
        pair.now += Duration::from_us(40);
        pair.run_until_now();
    }
    pair.run();
    assert!(pair.tors[1].stats().full > 0);
    // Of the last ones, none that came tells that others are missing.
    let came = pair.psns();
    assert!(came.len() > 50 && came.iter().copied().eq(0..came.len() as u32), "what found no place is requested");
}

impl<L: FnMut(&mut Vec<u8>) -> bool> Pair<L> {
    fn run_until_now(&mut self) {
        while let Some(at) = self.fabric.iter().position(|(at, ..)| *at <= self.now) {
            let (_, to, packet) = self.fabric.remove(at).expect("its place was just found");
            self.tors[to].handle_packet(self.now, Port::Fabric, &packet);
        }
        self.tors.iter_mut().for_each(|tor| tor.handle_timeout(self.now));
        self.drain();
    }
}

#[test]
fn long_queues_mark_what_can_be_marked_and_the_header_stays_right() {
    let settings =
        Settings { rate: Some(Rate::from_bps(100_000_000)), mark_above: Some(Bytes::new(3_000)), ..settings(0) };
    let mut tor = Tor::new(settings);
    (0..10).for_each(|psn| tor.handle_packet(Instant::ZERO, Port::Host(0), &data(psn)));
    let out: Vec<_> = std::iter::from_fn(|| {
        let at = tor.poll_timeout()?;
        tor.poll_transmit(at)
    })
    .take(10)
    .collect();
    let marked = out.iter().filter(|out| out.packet[1] & 0b11 == 0b11).count() as u64;
    assert_eq!((marked, tor.stats().marked), (7, 7));
    assert!(out.iter().all(|out| headers(&out.packet).is_intact(&out.packet)), "the IP header's checksum is right");
}

#[test]
fn dscp_and_marks_are_set_and_taken_back_in_both_versions() {
    for original in [data(1), over_ipv6(&data(1))] {
        let mut packet = original.clone();
        set_dscp(&mut packet, 48);
        assert_eq!((headers(&packet).dscp, headers(&packet).is_intact(&packet)), (48, true));
        set_dscp(&mut packet, 26);
        assert_eq!(packet, original);
    }
    let mut packet = data(1);
    assert!(mark(&mut packet) && !mark(&mut packet));
    // Neither marked nor mistaken for anything: the switch forwards it as it is.
    assert!(!mark(&mut [0x45, 0]) && !mark(&mut []));
}

#[test]
fn a_host_that_uses_the_dscp_of_copies_is_forwarded_and_not_repaired() {
    let mut pair = Pair::new(|_| false);
    let sent: Vec<_> = [0, 1, 3, 2, 2]
        .map(|psn| {
            let mut packet = data(psn);
            set_dscp(&mut packet, Settings::DSCP);
            packet
        })
        .into();
    sent.iter().for_each(|packet| pair.send(0, packet));
    pair.run();
    assert!(pair.came[1] == sent);
    assert_eq!((pair.tors[0].stats().reserved_dscp, pair.tors[1].stats().messages), (5, 0));
}

proptest! {
    #[test]
    fn any_loss_is_repaired_or_left_to_the_nic_and_no_packet_is_kept_for_ever(
        seed in any::<u64>(), loss in 0.0..0.4, first in 0_u32..1 << 24,
    ) {
        let mut state = seed | 1;
        let mut chance = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut pair = Pair::new(move |_: &mut Vec<u8>| chance() < loss);
        let sent: Vec<_> = (0..200).map(|n| data(Psn::new(first).plus(n).get())).collect();
        for packet in &sent {
            pair.send(0, packet);
            pair.now += Duration::from_us(1);
            pair.run_until_now();
        }
        pair.run();
        prop_assert!(pair.came[0].is_empty());
        // Each packet that came was sent, and byte for byte.
        prop_assert!(pair.came[1].iter().all(|packet| sent.contains(packet)));
        // Without giving up, all that came are in order and once.
        let stats = pair.tors[1].stats();
        if stats.destination.given_up == 0 && stats.destination.restarts == 0 {
            let places: Vec<_> = pair.came[1].iter().map(|packet| sent.iter().position(|one| one == packet)).collect();
            prop_assert!(places.windows(2).all(|two| two[0] < two[1]), "{places:?}");
        }
        prop_assert_eq!(pair.tors[1].occupancy()[1], 0, "nothing is held for ever");
    }

    #[test]
    fn any_bytes_are_forwarded_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0_usize..90, byte in any::<u8>(),
    ) {
        let mut pair = Pair::new(|_| false);
        let mut almost = data(3)[..90].to_vec();
        almost[at] = byte;
        for packet in [&bytes, &almost] {
            for port in [Port::Host(0), Port::Fabric] {
                pair.tors[0].handle_packet(Instant::ZERO, port, packet);
            }
        }
        pair.run();
    }
}

#[test]
fn two_software_nics_of_one_host_are_two_flows() {
    let mut other = data(5);
    other[22..24].copy_from_slice(&(Udp::ROCE + 3).to_be_bytes());
    assert_ne!(headers(&other).queue_pair(), headers(&data(5)).queue_pair());
    let _: IpAddr = headers(&other).source;
}

#[test]
fn a_host_is_paused_while_its_copies_are_sent_slowly() {
    // 60 packets of 1,076 bytes are lost together: above K_l = 20 KB.
    let rated = |end| Settings { rate: Some(Rate::from_gbps(1)), ..settings(end) };
    let mut sent = 0;
    let mut pair = Pair::with([0, 1].map(rated), |packet: &mut Vec<u8>| {
        let psn = psn_of(packet);
        let is_first = psn.is_some_and(|psn| psn >= sent);
        sent = sent.max(psn.map_or(0, |psn| psn + 1));
        is_first && psn.is_some_and(|psn| (10..70).contains(&psn))
    });
    for psn in 0..80 {
        pair.send(0, &data(psn));
    }
    let mut pauses = Vec::new();
    let end = pair.now + Duration::from_ms(1_000);
    while pair.step(end) {
        while let Some((port, is_paused)) = pair.tors[0].poll_pause(pair.now) {
            assert_eq!(port, 0);
            pauses.push((pair.now, is_paused));
            if is_paused {
                pair.send(0, &data(80));
            }
        }
    }
    let [(from, true), (to, false)] = pauses[..] else { panic!("one pause: {pauses:?}") };
    let stats = pair.tors[0].stats();
    assert_eq!((stats.source.pauses, stats.paused, stats.headroom), (1, to - from, data(80).len() as u64));
    assert!(stats.paused > Duration::from_us(500), "60 copies at half of the rate and less: {:?}", stats.paused);
    assert_eq!(pair.psns(), (0..=80).collect::<Vec<_>>());
    assert_eq!(pair.tors[1].poll_pause(pair.now), None);
}
