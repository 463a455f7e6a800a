//! Tests of NICs whose stacks send through tunnels, over links that lose, duplicate and delay packets.

mod verbs;

use alloc::vec::Vec;

use selvedge_transport::endpoint::Completion;
use selvedge_transport::eqds::eqif::{EqifConfig, RdmaEqif, Share, TcpEqif};
use selvedge_transport::eqds::{EqdsConfig, EqdsParams, LifeConfig, LossConfig, Memory, Service, Source};
use selvedge_transport::recovery::go_back_n::GoBackNConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{Cx, Fabric, Scheme};
use selvedge_units::{Bytes, Duration, HostId, Instant, Rate, Setting, Toggle, mix64};
use selvedge_wire::eqds::{Control, Flags};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Packet, Repr};

use super::EqifSet;
use crate::tests::{params, queue_pairs};
use crate::{Carrier, FlowParams, Message, Nic, NicParams, TcpParams};

/// Rate of each NIC's link.
const RATE: Rate = Rate::from_gbps(10);
const DELAY: Duration = Duration::from_us(3);
const MTU: Bytes = Bytes::new(1_024);

/// Parameters of NICs that send TCP, go-back-N and native messages through tunnels, each if it has a share.
fn speaking(tcp: Option<Share>, rdma: Option<Share>, native: Option<Share>) -> NicParams {
    speaking_with(tcp, rdma, native, |_| {})
}

/// Returns the parameters of [`speaking`] with other settings.
fn speaking_with(
    tcp: Option<Share>,
    rdma: Option<Share>,
    native: Option<Share>,
    change: impl FnOnce(&mut EqdsConfig),
) -> NicParams {
    let fabric = Fabric { line_rate: RATE, ..Fabric::IRN_PAPER };
    let eqif = EqifConfig {
        tcp: tcp.map(|share| TcpEqif { share, ..TcpEqif::default() }),
        rdma: rdma.map(|share| RdmaEqif { share, ..RdmaEqif::default() }),
        native: native.unwrap_or_default(),
        ..EqifConfig::default()
    };
    let mut eqds =
        EqdsConfig { burst: Toggle::On, rto: Setting::Value(Duration::from_us(200)), eqif, ..EqdsConfig::default() };
    change(&mut eqds);
    let frame = MTU + Bytes::new(70) + eqds.encapsulation();
    eqds.resolve(&fabric, frame, true, false);
    let own: EqdsParams = eqds.params(frame, Bytes::new(20)).expect("valid settings");
    let mut speaks = TcpConfig::default();
    speaks.resolve(&fabric, MTU);
    let speaks = speaks.params().expect("valid settings");
    let mut roce = GoBackNConfig { rto: Setting::Value(Duration::from_ms(5)), ..GoBackNConfig::default() };
    roce.resolve(&fabric);
    NicParams {
        beside: Some(TcpParams { config: speaks, ack_class: 0 }),
        eqif: eqds.eqif_params(&own, native.is_some()).expect("valid settings"),
        eqds: Some(own),
        flows: if native.is_some() { FlowParams::Eqds } else { queue_pairs(roce.into()) },
        ..params(1)
    }
}

/// Packet that another carries, and its headers if it is of an application's queue pair.
type Cargo = (Option<Packet>, Option<Headers>);

/// NICs, each with its own link to all others.
struct World {
    params: NicParams,
    nics: Vec<Nic>,
    free_at: Vec<Instant>,
    under_way: Vec<(Instant, u64, Packet, Cargo)>,
    sent: u64,
    /// Lost, duplicated and delayed packets, each per thousand.
    faults: u64,
    completions: usize,
    now: Instant,
    /// Resets by receivers, ends told by senders, and refusals of lesser epochs, sent by all.
    resets: u32,
    ends: u32,
    refusals: u32,
    /// Retransmissions of the tunnels of each EQIF.
    again: [u32; 3],
}

impl World {
    fn new(params: NicParams, hosts: u32, faults: u64) -> Self {
        Self {
            nics: (0..hosts).map(|host| Nic::new(HostId(host), &params)).collect(),
            params,
            free_at: alloc::vec![Instant::ZERO; hosts as usize],
            under_way: Vec::new(),
            sent: 0,
            faults,
            completions: 0,
            now: Instant::ZERO,
            resets: 0,
            ends: 0,
            refusals: 0,
            again: [0; 3],
        }
    }

    fn flow(&mut self, src: u32, dst: u32, size: Bytes, is_tcp: bool) {
        let cx = Cx::at(self.now);
        let carrier = if is_tcp { Carrier::Beside } else { Carrier::Transport };
        let message = Message { dst: HostId(dst), size, entropy: 1, links: 2, class: 0, context: 0 };
        let (qp, _) = self.nics[src as usize].open_sender(&cx, &self.params, carrier, &message);
        self.nics[dst as usize].open_receiver(&self.params, carrier, HostId(src), qp, size, 0);
    }

    /// Runs until no event is left, or until `end`.
    fn run(&mut self, end: Instant) {
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = next;
            self.take_in();
            for host in 0..self.nics.len() {
                let nic = &mut self.nics[host];
                nic.handle_timeout(&mut Cx::at(self.now), &self.params);
                self.note_completions(host);
                self.send(host);
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let arrivals = self.under_way.iter().map(|(at, ..)| *at);
        let timers = self.nics.iter().filter_map(Nic::poll_timeout).map(|at| at.max(self.now));
        let links = self.nics.iter().zip(&self.free_at).filter(|(nic, _)| nic.is_ready()).map(|(_, at)| *at);
        arrivals.chain(timers).chain(links).min().map(|at| at.max(self.now))
    }

    fn take_in(&mut self) {
        while let Some(place) = self.under_way.iter().position(|(at, ..)| *at <= self.now) {
            let (_, _, packet, (cargo, headers)) = self.under_way.remove(place);
            let host = packet.dst.index();
            self.nics[host].handle_carrier(&mut Cx::at(self.now), &self.params, &packet, cargo, headers.as_ref());
            self.note_completions(host);
        }
    }

    fn note_completions(&mut self, host: usize) {
        while let Some(completion) = self.nics[host].poll_completion() {
            self.completions += usize::from(matches!(completion, Completion::Received { .. }));
        }
    }

    fn send(&mut self, host: usize) {
        let mut packet = Packet::BLANK;
        let nic = &mut self.nics[host];
        if self.free_at[host] > self.now || !nic.poll_transmit(&mut Cx::at(self.now), &self.params, 0, &mut packet) {
            return;
        }
        let (cargo, headers) = (nic.poll_cargo(), nic.poll_headers());
        assert!(matches!(packet.repr, Repr::EqdsData(_) | Repr::EqdsControl(_)), "{packet:?} is in no tunnel");
        self.free_at[host] = self.now + RATE.time_for(Bytes::new(u64::from(packet.frame) + 20));
        self.sent += 1;
        match &packet.repr {
            Repr::EqdsData(data) => {
                self.ends += u32::from(data.flags.any(Flags::RST));
                self.again[usize::from(data.eqif)] += u32::from(data.retransmission);
            }
            Repr::EqdsControl(control) => {
                self.resets += u32::from(control.flags.any(Flags::RST));
                self.refusals += u32::from(control.flags == Flags::SYN.with(Flags::ACK));
            }
            _ => {}
        }
        let (fate, copies) = match mix64(self.sent) % 1_000 {
            draw if draw < self.faults => (Duration::ZERO, 0),
            draw if draw < 2 * self.faults => (Duration::ZERO, 2),
            draw if draw < 3 * self.faults => (Duration::from_us(20), 1),
            _ => (Duration::ZERO, 1),
        };
        for _ in 0..copies {
            self.under_way.push((self.free_at[host] + DELAY + fate, self.sent, packet, (cargo, headers)));
        }
        self.under_way.sort_by_key(|(at, sent, ..)| (*at, *sent));
    }

    fn goodput(&self, host: usize) -> u64 {
        self.nics[host].stats().goodput
    }
}

const SHARE: Option<Share> = Some(Share { priority: 0, weight: 1 });
const END: Instant = Instant::from_ps(Duration::from_ms(200).as_ps());

#[test]
fn whatever_links_do_every_octet_comes_out_once() {
    for faults in [0, 5, 40] {
        for (tcp, rdma) in [(SHARE, None), (None, SHARE), (SHARE, SHARE)] {
            let mut world = World::new(speaking(tcp, rdma, None), 3, faults);
            let size = Bytes::new(300_000);
            for (src, dst) in [(0, 1), (0, 2), (2, 1), (1, 0)] {
                tcp.iter().for_each(|_| world.flow(src, dst, size, true));
                rdma.iter().for_each(|_| world.flow(src, dst, size, false));
            }
            world.run(END);
            let flows = 4 * [tcp, rdma].iter().flatten().count();
            assert_eq!(world.completions, flows, "{faults} of 1000, {tcp:?}, {rdma:?}");
            let goodput: u64 = (0..3).map(|host| world.goodput(host)).sum();
            assert_eq!(goodput, flows as u64 * size.get());
            for nic in &world.nics {
                let EqifSet { in_flight, stats, .. } = nic.eqifs.as_deref().expect("stacks with tunnels");
                assert_eq!(*in_flight, 0);
                assert!((1..3 * 300_000).contains(&stats.in_flight.get()), "{stats:?}");
                assert!(faults > 0 || stats.reordering == 0, "{stats:?}");
            }
        }
    }
}

/// Lets one host send to two others, to the first by TCP and to the second by RDMA or native messages, each with credit
/// for the whole link. Returns the goodput of both.
fn shares(shares: [Option<Share>; 2], second_is_native: bool) -> [u64; 2] {
    let [tcp, other] = shares;
    let params = if second_is_native { speaking(tcp, None, other) } else { speaking(tcp, other, None) };
    let mut world = World::new(params, 3, 0);
    world.flow(0, 1, Bytes::new(1 << 30), true);
    world.flow(0, 2, Bytes::new(1 << 30), false);
    world.run(Instant::ZERO + Duration::from_ms(5));
    [world.goodput(1), world.goodput(2)]
}

#[test]
fn eqifs_share_the_uplink_as_they_are_told() {
    let share = |priority, weight| Some(Share { priority, weight });
    for second_is_native in [false, true] {
        let [tcp, other] = shares([share(0, 1), share(0, 1)], second_is_native);
        assert!(tcp.abs_diff(other) < (tcp + other) / 20, "{tcp} and {other} are alike");
        let [tcp, other] = shares([share(0, 1), share(0, 3)], second_is_native);
        assert!((3 * tcp).abs_diff(other) < (tcp + other) / 15, "{tcp} and {other} are one to three");
        let [tcp, other] = shares([share(0, 1), share(5, 1)], second_is_native);
        assert!(tcp * 20 < other, "{tcp} gets what {other} leaves");
    }
}

#[test]
fn a_turn_at_the_engine_may_be_a_burst_and_goes_through_tunnels() {
    // The first queue pair is opened before the second, and hands over a packet.
    for (qp_burst, expected) in [(1, [0, 0, 1, 0, 1, 0, 1, 1, 1, 1]), (3, [0, 0, 0, 1, 1, 1, 0, 1, 1, 1])] {
        let params = NicParams { qp_burst, ..speaking(None, SHARE, None) };
        let mut world = World::new(params.clone(), 2, 0);
        world.flow(0, 1, MTU * 4, false);
        world.flow(0, 1, MTU * 6, false);
        let mut carried = Vec::new();
        for us in 0..20 {
            let (nic, mut packet) = (&mut world.nics[0], Packet::BLANK);
            let mut cx = Cx::at(Instant::ZERO + Duration::from_us(us));
            nic.handle_timeout(&mut cx, &params);
            while nic.poll_transmit(&mut cx, &params, 0, &mut packet) {
                carried.extend(nic.poll_cargo().map(|cargo| cargo.qp.0));
            }
        }
        assert_eq!(carried, expected);
    }
    for qp_burst in [2, 7] {
        let mut world = World::new(NicParams { qp_burst, ..speaking(SHARE, SHARE, None) }, 3, 5);
        for (src, dst, is_tcp) in [(0, 1, true), (0, 1, false), (0, 2, false), (2, 1, false), (1, 0, false)] {
            world.flow(src, dst, Bytes::new(300_000), is_tcp);
        }
        world.run(END);
        assert_eq!(world.completions, 5);
    }
}

#[test]
fn a_paused_engine_goes_on_and_its_answers_wait_with_it() {
    let mut world = World::new(speaking(None, SHARE, None), 3, 0);
    // Both hosts send to one: each gets half the rate, so that queues grow until engines are paused.
    world.flow(0, 2, Bytes::new(4_000_000), false);
    world.flow(1, 2, Bytes::new(4_000_000), false);
    world.run(END);
    assert_eq!(world.completions, 2);
    let totals = world.nics[0].eqif_totals().expect("EQIFs");
    assert!(totals.pauses > 0 && totals.dropped == 0 && totals.peak < Bytes::new(584_000 + 1_200), "{totals:?}");
    assert_eq!(world.nics[0].stats().timeouts, 0);
}

/// The engine hands over for as long as a PAUSE takes to arrive, and resumes as much later.
#[test]
fn a_pause_takes_effect_after_a_delay() {
    let run = |delay: Duration| {
        let change = |eqds: &mut EqdsConfig| eqds.eqif.rdma.as_mut().expect("an RDMA EQIF").delay = delay;
        let mut world = World::new(speaking_with(None, SHARE, None, change), 3, 0);
        world.flow(0, 2, Bytes::new(4_000_000), false);
        world.flow(1, 2, Bytes::new(4_000_000), false);
        world.run(END);
        assert_eq!((world.completions, world.nics[0].stats().timeouts), (2, 0), "{delay}");
        *world.nics[0].eqif_totals().expect("EQIFs")
    };
    let at_once = run(Duration::ZERO);
    for us in [5, 20] {
        let delay = Duration::from_us(us);
        let totals = run(delay);
        assert!(totals.pauses > 0 && totals.dropped == 0, "{totals:?}");
        // Half of the link's rate leaves meanwhile, on average.
        let (more, most) = (totals.peak - at_once.peak, RATE.amount_in(delay));
        assert!(more * 4 >= most && more <= most + Bytes::new(1_200), "{delay}: {more} of {most}");
    }
}

/// However many control packets of tunnels wait, a further one costs the same.
#[test]
fn answers_of_tunnels_that_wait_are_looked_at_once() {
    let params = NicParams { data_classes: 0b11, ..speaking(SHARE, SHARE, None) };
    let mut nic = Nic::new(HostId(0), &params);
    let control = Control { flags: Flags::NONE, number: 0, pull: 0, busy: 0, eqif: 0 };
    let mut expected = Vec::new();
    let mut packet = Packet::BLANK;
    for turn in 0..2_000u32 {
        let random = mix64(turn.into());
        let of_tunnel = !random.is_multiple_of(3);
        let repr = if of_tunnel { Repr::EqdsControl(control) } else { Repr::Cnp };
        let class = (random >> 8) as u8 % 2;
        let answer = Packet { dst: HostId(1), entropy: turn, class, repr, ..Packet::BLANK };
        nic.port.answers.push_back(answer);
        if of_tunnel {
            expected.push((turn, class));
        }
        // Other packets may arrive before stacks hand over.
        if !(random >> 16).is_multiple_of(4) {
            nic.hand_over(&mut Cx::at(Instant::ZERO), &params);
            let left: Vec<_> = nic.port.answers.iter().map(|answer| (answer.entropy, answer.class)).collect();
            assert_eq!(left, expected, "turn {turn}");
            assert_eq!(nic.eqifs.as_ref().map(|eqifs| eqifs.staying), Some(left.len()), "turn {turn}");
        }
        if (random >> 24).is_multiple_of(4) && nic.port.answers.len() == expected.len() {
            let paused = (random >> 32) as u8 % 2;
            let first = expected.iter().position(|(_, class)| paused & (1 << class) == 0);
            let leaves = first.map(|first| expected.remove(first).0);
            let sent = !nic.port.answers.is_empty() && nic.send_answer(&params, paused, &mut packet);
            assert_eq!(sent.then_some(packet.entropy), leaves, "turn {turn}");
        }
    }
    assert!(expected.len() > 500, "{} wait", expected.len());
}

/// Sends flows of all stacks with pauses between them; returns the world.
fn run_with_pauses(params: NicParams, faults: u64, rounds: u64, natives: bool) -> World {
    let mut world = World::new(params, 4, faults);
    let size = Bytes::new(30_000);
    for round in 0..rounds {
        let (src, dst) = ((round % 4) as u32, ((round + 1 + round / 4 % 3) % 4) as u32);
        world.flow(src, dst, size, true);
        world.flow(dst, src, size, false);
        let end = world.now.max(Instant::ZERO + Duration::from_us(1_700 * (round + 1)));
        world.run(end);
        world.now = end;
    }
    world.run(world.now + Duration::from_ms(400));
    assert_eq!(world.completions, 2 * rounds as usize, "{faults} faults, native: {natives}");
    let goodput: u64 = (0..4).map(|host| world.goodput(host)).sum();
    assert_eq!(goodput, 2 * rounds * size.get(), "every octet comes out once");
    world
}

#[test]
fn tunnels_that_end_and_begin_again_lose_nothing() {
    for (tells, memory) in [(true, Memory::Number), (false, Memory::Nothing), (true, Memory::Nothing)] {
        for (faults, natives) in [(0, false), (0, true), (20, false), (20, true)] {
            let life = LifeConfig {
                idle_timeout: Setting::Value(Duration::from_us(900)),
                tells,
                memory,
                ..LifeConfig::default()
            };
            let change = |eqds: &mut EqdsConfig| eqds.life = life;
            let params = match natives {
                true => speaking_with(SHARE, None, SHARE, change),
                false => speaking_with(SHARE, SHARE, None, change),
            };
            let world = run_with_pauses(params, faults, 24, natives);
            assert_eq!(world.ends > 0, tells, "senders tell if they are to");
            assert!(faults > 0 || tells || world.refusals > 0, "epochs chosen at random meet those of the past");
            for nic in &world.nics {
                let eqifs = nic.eqifs.as_ref().expect("EQIFs");
                assert!(eqifs.outbound.iter().all(|state| state.is_closed()), "no tunnel lives for ever");
                assert!(eqifs.inbound.iter().all(|state| state.is_closed()));
            }
        }
    }
}

#[test]
fn a_host_keeps_no_more_tunnels_than_it_may() {
    for natives in [false, true] {
        for faults in [0, 20] {
            let life = LifeConfig { most_tunnels: Setting::Value(1), ..LifeConfig::default() };
            let change = |eqds: &mut EqdsConfig| eqds.life = life;
            let params = match natives {
                true => speaking_with(SHARE, None, SHARE, change),
                false => speaking_with(SHARE, SHARE, None, change),
            };
            let world = run_with_pauses(params, faults, 24, natives);
            assert!(world.resets > 0 && world.ends > 0, "either end drops tunnels: {} {}", world.resets, world.ends);
        }
    }
}

#[test]
fn losses_are_found_in_each_way_that_settings_offer() {
    let ways = |path_margin, gap_wait, timeout| LossConfig {
        path_margin,
        gap_wait,
        timeout,
        rto_floor: Duration::from_us(50),
        ..LossConfig::default()
    };
    let (margin, wait) = (Setting::Value(Duration::from_us(30)), Setting::Value(Duration::from_us(40)));
    for loss in [
        ways(margin, Setting::Off, Source::Fixed),
        ways(Setting::Off, wait, Source::Fixed),
        ways(margin, wait, Source::Measured),
    ] {
        for natives in [false, true] {
            let change = |eqds: &mut EqdsConfig| {
                (eqds.loss, eqds.paths, eqds.bounds) = (loss, 4, loss.timeout);
            };
            let params = match natives {
                true => speaking_with(SHARE, None, SHARE, change),
                false => speaking_with(SHARE, SHARE, None, change),
            };
            run_with_pauses(params, 20, 24, natives);
        }
    }
}

#[test]
fn a_stack_may_have_its_tunnels_unreliable() {
    let change = |eqds: &mut EqdsConfig| {
        if let Some(tcp) = &mut eqds.eqif.tcp {
            tcp.service = Service::Unreliable;
        }
    };
    let run = |params| {
        let mut world = World::new(params, 2, 20);
        world.flow(0, 1, Bytes::new(300_000), true);
        world.flow(0, 1, Bytes::new(300_000), false);
        world.run(Instant::ZERO + Duration::from_ms(4_000));
        assert_eq!(world.completions, 2, "TCP sends again what its tunnel does not");
        world.again
    };
    let (reliable, unreliable) = (run(speaking(SHARE, SHARE, None)), run(speaking_with(SHARE, SHARE, None, change)));
    assert!(reliable[1] > 0 && reliable[2] > 0, "{reliable:?}");
    assert!(unreliable[1] == 0 && unreliable[2] > 0, "{unreliable:?}");
}

#[test]
fn packets_to_a_host_that_does_not_answer_are_dropped_in_the_end() {
    let life = LifeConfig { unreachable_after: Setting::Value(Duration::from_ms(5)), ..LifeConfig::default() };
    let mut world = World::new(speaking_with(SHARE, None, None, |eqds| eqds.life = life), 2, 1_000);
    world.flow(0, 1, Bytes::new(300_000), true);
    world.run(Instant::ZERO + Duration::from_ms(40));
    let totals = world.nics[0].eqif_totals().expect("EQIFs");
    assert!(totals.dropped > 0, "TCP learns that they are lost");
}
