//! Tests of many queue pairs between two hosts that share one bottleneck queue.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::path::PathConfig;
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Mode, PartialAcks, Rto, RtoRestart, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{Cx, Fabric, FeedbackConfig, RecoveryConfig, Scheme};
use selvedge_units::{Bytes, Domain, Duration, Instant, Psn, QpNumber, Rng, Setting};
use selvedge_wire::Bth;
use selvedge_wire::verbs::Headers;

use super::world::{ALL, BASE, go_back_n, request, write_to};
use crate::verbs::*;

const MTU: u16 = 1_024;
/// Bytes of a packet in addition to its payload.
const HEADERS: u64 = 100;
/// Length of a message in bytes.
const MESSAGE: u32 = 64 * 1_024;

/// Returns IRN with the settings of the software RNIC.
fn irn() -> RecoveryConfig {
    let most = Duration::from_ms(20);
    RecoveryConfig::Irn(IrnConfig {
        timeouts: Timeouts::On,
        rto_high: Setting::Value(most),
        rto: Rto::Dynamic(DynamicRto { initial: Setting::Value(most), min: Duration::from_ms(4), max: most }),
        time_stamps: true,
        holes: true,
        probes: 16,
        bdp_cap: Setting::Value(2_048),
        ..IrnConfig::default()
    })
}
fn melo() -> RecoveryConfig {
    RecoveryConfig::Melo(MeloConfig {
        pool_bits: 2_048,
        reorder_buffer: Setting::Value(2_048),
        rto: Setting::Value(Duration::from_ms(20)),
        bdp_cap: Setting::Value(1_024),
        ..MeloConfig::default()
    })
}

/// Memory whose content is irrelevant.
struct Nothing;

impl Memory for Nothing {
    fn place(&mut self, _: u64, _: u32, _: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn keep(&self, _: &mut Vec<u8>) {}
    fn place_kept(&mut self, _: &[u8], _: u64, _: u32, _: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn place_network_header(&mut self, _: u64, _: u32, _: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn fetch_add(&mut self, _: u64, _: u64) -> Result<u64, Fault> {
        Ok(0)
    }
    fn compare_swap(&mut self, _: u64, _: u64, _: u64) -> Result<u64, Fault> {
        Ok(0)
    }
    fn word(&self) -> Option<u64> {
        None
    }
    fn replace(&mut self, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }
    fn flush(&mut self, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }
    fn store(&mut self, _: u64, _: u64) -> Result<(), Fault> {
        Ok(())
    }
}

struct Host {
    rnic: Rnic,
    cq: CqId,
    key: u32,
    qps: Vec<QpNumber>,
    address: Ipv6Addr,
}

/// One direction of the link.
struct Lane {
    /// Times at which the packets in the queue leave.
    queue: VecDeque<Instant>,
    longest: usize,
    carried: u64,
    dropped: u64,
}

struct World {
    hosts: [Host; 2],
    lanes: [Lane; 2],
    now: Instant,
    /// Rate in bits per microsecond.
    mbps: u64,
    limit: usize,
    delay: Duration,
    /// Loss probability per thousand.
    loss: u64,
    rng: Rng,
    in_flight: BTreeMap<(Instant, u64), (usize, Route, Headers, u32)>,
    number: u64,
    completed: Vec<u64>,
    failed: Vec<(u64, Status)>,
    /// Operation that each queue pair posts again after each completion.
    what: Option<fn(u64, u32) -> Operation>,
    /// Time before which hosts handle no events.
    asleep_until: Instant,
}

fn write(_: u64, key: u32) -> Operation {
    write_to(BASE, key)
}
fn read(_: u64, key: u32) -> Operation {
    Operation::Read(Remote { address: BASE, key })
}

impl World {
    fn new(recovery: RecoveryConfig, qps: usize, paths: Option<PathConfig>) -> Self {
        let hosts = [1_u16, 2].map(|n| {
            let mut rnic = Rnic::new(0, u32::from(n) * 1_000);
            rnic.control_paths(paths);
            rnic.set_waited(Some(Duration::ZERO));
            let pd = rnic.alloc_pd();
            let region = Region { pd, address: BASE, start: BASE, length: 1 << 24, access: ALL };
            let key = rnic.reg_mr(region, 0x1000 + u32::from(n)).expect("all arguments are in range");
            let cq = rnic.create_cq(100_000).expect("all arguments are in range");
            let capacities = Capacities { send_requests: 64, send_pieces: 1, ..Capacities::default() };
            let init = QpInit {
                service: Service::Reliable,
                pd,
                send_cq: cq,
                receive_cq: cq,
                srq: None,
                capacities,
                all_signaled: true,
                recovery: recovery.params().expect("valid settings"),
                congestion: NoneConfig {}.into(),
                feedback: FeedbackConfig::default(),
                overhead: Bytes::ZERO,
                window: 256,
                ack_every: 512,
                options: QpOptions::default(),
            };
            let qps = (0..qps).map(|_| rnic.create_qp(init).expect("all arguments are in range")).collect();
            let address = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, n);
            Host { rnic, cq, key, qps, address }
        });
        let lane = || Lane { queue: VecDeque::new(), longest: 0, carried: 0, dropped: 0 };
        let mut world = Self {
            hosts,
            lanes: [lane(), lane()],
            now: Instant::ZERO + Duration::from_ms(1),
            mbps: 100,
            limit: 290,
            delay: Duration::from_us(50),
            loss: 0,
            rng: Rng::stream(7, Domain::Impairment, 0),
            in_flight: BTreeMap::new(),
            number: 0,
            completed: vec![0; qps],
            failed: Vec::new(),
            what: None,
            asleep_until: Instant::ZERO,
        };
        for at in 0..2 {
            for n in 0..qps {
                world.connect(at, n);
            }
        }
        world
    }

    fn connect(&mut self, at: usize, n: usize) {
        let route = Route {
            local: self.hosts[at].address,
            remote: self.hosts[1 - at].address,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        };
        let handshake = Handshake {
            access: ALL,
            route,
            destination: self.hosts[1 - at].qps[n],
            mtu: MTU,
            send_psn: Psn::new(0),
            receive_psn: Psn::new(0),
            reads: 16,
            // A timeout of 67 ms, eight times: the setting of perftest and most programs.
            timeout: 14,
            retries: 7,
            not_ready_timer: 1,
        };
        let (now, host) = (self.now, &mut self.hosts[at]);
        for step in handshake.steps() {
            host.rnic.modify_qp(&mut Cx::at(now), host.qps[n], &step).expect("the transition is permitted");
        }
    }

    fn post(&mut self, n: usize) {
        let Some(what) = self.what else { return };
        let (key, now, host) = (self.hosts[1].key, self.now, &mut self.hosts[0]);
        let data = vec![Sge { address: BASE, length: MESSAGE, key: host.key }];
        let post = request(n as u64, what(n as u64, key), data);
        host.rnic.post_send(&mut Cx::at(now), host.qps[n], post).expect("the send queue has room");
    }
    /// Posts `depth` requests on each queue pair of the first host; after each completion another one follows.
    fn begin(&mut self, depth: usize, what: fn(u64, u32) -> Operation) {
        self.what = Some(what);
        for n in 0..self.completed.len() {
            (0..depth).for_each(|_| self.post(n));
        }
    }

    fn transmit(&mut self, at: usize) {
        let (mut payload, mut transmit) = (Payload::default(), Transmit::default());
        while self.hosts[at].rnic.poll_transmit(&mut Cx::at(self.now), &mut payload, &mut transmit) {
            let lane = &mut self.lanes[at];
            while lane.queue.front().is_some_and(|&left| left <= self.now) {
                lane.queue.pop_front();
            }
            if lane.queue.len() >= self.limit {
                lane.dropped += 1;
                continue;
            }
            let bits = (u64::from(transmit.payload) + HEADERS) * 8;
            let service = Duration::from_ps(bits * 1_000_000 / self.mbps);
            let leaves = lane.queue.back().copied().unwrap_or(self.now).max(self.now) + service;
            lane.queue.push_back(leaves);
            lane.longest = lane.longest.max(lane.queue.len());
            lane.carried += 1;
            if self.rng.below(1_000) < self.loss {
                continue;
            }
            self.number += 1;
            let packet = (1 - at, transmit.route, transmit.headers, transmit.payload);
            self.in_flight.insert((leaves + self.delay, self.number), packet);
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_ms(ms);
        loop {
            for at in 0..2 {
                self.transmit(at);
            }
            let arrival = self.in_flight.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at);
            let wakes = [0, 1].map(|at| self.hosts[at].rnic.poll_timeout().unwrap_or(Instant::NEVER));
            let next = arrival.min(wakes[0]).min(wakes[1]).max(self.asleep_until);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while let Some(first) = self.in_flight.first_entry()
                && first.key().0 <= self.now
            {
                let (to, route, headers, payload) = first.remove();
                let back = Route { local: route.remote, remote: route.local, ..route };
                self.hosts[to].rnic.handle_packet(&mut Cx::at(self.now), &mut Nothing, &back, &headers, payload);
            }
            for host in &mut self.hosts {
                host.rnic.handle_timeout(&mut Cx::at(self.now));
            }
            while let Some(completion) = self.hosts[0].rnic.poll_cq(self.hosts[0].cq) {
                if completion.status == Status::Success {
                    self.completed[completion.id as usize] += 1;
                    self.post(completion.id as usize);
                } else {
                    self.failed.push((completion.id, completion.status));
                }
            }
        }
    }

    /// Returns the share of the link's capacity that is payload of messages completed within `ms` milliseconds.
    fn share(&mut self, ms: u64) -> f64 {
        let before: u64 = self.completed.iter().sum();
        self.run(ms);
        let messages = self.completed.iter().sum::<u64>() - before;
        (messages * u64::from(MESSAGE) * 8) as f64 / (self.mbps * 1_000 * ms) as f64
    }
}

fn controlled(recovery: RecoveryConfig, qps: usize) -> World {
    World::new(recovery, qps, Some(PathConfig { max_window: 4_096, ..PathConfig::default() }))
}

#[test]
fn many_queue_pairs_on_a_slow_link_break_no_connection() {
    for recovery in [irn(), melo(), go_back_n()] {
        for what in [write, read] {
            for qps in [1, 16, 64] {
                let mut world = controlled(recovery, qps);
                world.begin(4, what);
                world.run(1_000);
                let share = world.share(4_000);
                assert_eq!(world.failed, [], "{recovery:?}, {qps} queue pairs");
                assert!(share > 0.8, "{recovery:?}, {qps} queue pairs: {share}");
                for lane in &world.lanes {
                    assert!(lane.dropped * 50 < lane.carried, "{} of {}", lane.dropped, lane.carried);
                }
            }
        }
    }
}

#[test]
fn without_a_control_of_the_path_they_do() {
    let mut world = World::new(irn(), 16, None);
    world.begin(4, write);
    world.run(5_000);
    let [lane, _] = &world.lanes;
    assert!(!world.failed.is_empty() || lane.dropped * 4 > lane.carried, "{} of {}", lane.dropped, lane.carried);
}

#[test]
fn queue_pairs_have_equal_shares_and_none_starves() {
    let mut world = controlled(irn(), 32);
    world.begin(8, write);
    world.run(2_000);
    let before = world.completed.clone();
    world.run(10_000);
    let each: Vec<u64> = world.completed.iter().zip(before).map(|(after, before)| after - before).collect();
    let (least, most) = (each.iter().min().copied().unwrap_or(0), each.iter().max().copied().unwrap_or(0));
    assert!(least > 0 && least * 10 >= most * 8, "{each:?}");
    assert!(world.lanes[0].longest < 290, "{}", world.lanes[0].longest);
}

#[test]
fn random_losses_leave_most_of_the_link() {
    for recovery in [irn(), melo()] {
        for (loss, least) in [(10, 0.85), (50, 0.7)] {
            let mut world = controlled(recovery, 8);
            (world.mbps, world.limit, world.loss) = (1_000, 1_000, loss);
            world.begin(4, write);
            world.run(500);
            let share = world.share(2_000);
            assert_eq!(world.failed, [], "{recovery:?}");
            let least = if matches!(recovery, RecoveryConfig::Melo(_)) { 0.1 } else { least };
            assert!(share > least, "{recovery:?}, {loss} in 1,000: {share}");
        }
    }
}

/// With IRN's own timeouts, RTO_low for few packets in flight becomes RTO_high for many without any retransmission, and
/// RTO_high has to be handled afterwards.
#[test]
fn no_lost_packet_waits_for_ever_with_the_timeouts_of_the_paper() {
    for rto_restart in [RtoRestart::Progress, RtoRestart::AnyAck] {
        let mut paper = IrnConfig { mode: Mode::Paper, timeouts: Timeouts::On, rto_restart, ..IrnConfig::default() };
        paper.partial_acks = PartialAcks::default();
        let mut recovery = RecoveryConfig::Irn(paper);
        recovery.resolve(&Fabric::IRN_PAPER);
        for what in [write, read] {
            let mut world = controlled(recovery, 1);
            (world.mbps, world.limit, world.loss) = (1_000, 1_000, 50);
            world.begin(1, what);
            for _ in 0..20 {
                let share = world.share(500);
                assert!(share > 0.01, "{rto_restart:?}: {share}, failed: {:?}", world.failed);
            }
        }
    }
}

#[test]
fn a_host_that_is_gone_is_noticed_as_early_as_without_a_control() {
    let mut world = controlled(irn(), 16);
    world.begin(4, write);
    world.run(500);
    assert_eq!(world.failed, []);
    world.loss = 1_000;
    world.run(800);
    let mut broken: Vec<u64> = world.failed.iter().map(|&(id, _)| id).collect();
    broken.dedup();
    broken.sort_unstable();
    broken.dedup();
    assert_eq!(broken.len(), 16, "8 times 67 ms are over");
}

#[test]
fn one_queue_pair_whose_other_end_is_gone_breaks_while_others_go_on() {
    for what in [write, read] {
        let mut world = controlled(irn(), 8);
        world.begin(4, what);
        world.run(500);
        let gone = world.hosts[1].qps[3];
        world.hosts[1].rnic.destroy_qp(gone).expect("the queue pair exists");
        world.run(10_000);
        let broken: Vec<u64> = world.failed.iter().map(|&(id, _)| id).collect();
        assert!(!broken.is_empty() && broken.iter().all(|&id| id == 3), "{broken:?}");
        let before = world.completed[2];
        world.run(500);
        assert!(world.completed[2] > before);
    }
}

#[test]
fn a_queue_pair_that_is_reset_or_destroyed_in_line_holds_nobody_up() {
    let mut world = controlled(irn(), 16);
    world.begin(8, write);
    world.run(300);
    let qps = world.hosts[0].qps.clone();
    for qp in &qps[..8] {
        world.hosts[0].rnic.destroy_qp(*qp).expect("the queue pair exists");
    }
    let change = QpChange { state: Some(QpState::Reset), ..QpChange::default() };
    for qp in &qps[8..12] {
        world.hosts[0].rnic.modify_qp(&mut Cx::at(world.now), *qp, &change).expect("the transition is permitted");
    }
    let before = world.completed.clone();
    world.run(500);
    let goes_on = world.completed.iter().zip(&before).skip(12).all(|(after, before)| after > before);
    assert!(goes_on, "{:?}, before {before:?}", world.completed);
    for qp in &qps[8..] {
        world.hosts[0].rnic.destroy_qp(*qp).expect("the queue pair exists");
    }
    assert_eq!(world.hosts[0].rnic.shared.paths.windows(), []);
}

#[test]
fn answers_share_the_window_with_requests() {
    let mut world = controlled(irn(), 16);
    world.begin(4, |n, key| if n.is_multiple_of(2) { read(n, key) } else { write(n, key) });
    world.run(1_000);
    for (host, lane) in world.hosts.iter().zip(&world.lanes) {
        assert_eq!(host.rnic.shared.paths.windows().len(), 1);
        assert!(lane.longest < 290 && lane.dropped == 0, "{}", lane.longest);
    }
    assert!(world.completed.iter().all(|&completed| completed > 0), "{:?}", world.completed);
}

#[test]
fn marks_slow_the_whole_path_down() {
    let mut world = controlled(irn(), 4);
    (world.mbps, world.limit) = (10_000, 100_000);
    world.begin(8, write);
    world.run(200);
    let before = world.hosts[0].rnic.shared.paths.windows()[0].0;
    let [first, second] = &world.hosts;
    let route = Route { local: first.address, remote: second.address, ..Route::NOWHERE };
    let bth = Bth { opcode: 0x81, destination: first.qps[0], becn: true, ..Bth::default() };
    let headers = Headers { bth, ..Headers::default() };
    let now = world.now;
    world.hosts[0].rnic.handle_packet(&mut Cx::at(now), &mut Nothing, &route, &headers, 0);
    let after = world.hosts[0].rnic.shared.paths.windows()[0].0;
    assert!(after < before, "{before}: {after}");
}

#[test]
fn who_was_asleep_has_lost_nothing() {
    let mut world = controlled(irn(), 16);
    world.begin(4, write);
    world.run(500);
    for _ in 0..20 {
        // Acknowledgements that arrive within these 50 ms are not handled.
        world.asleep_until = world.now + Duration::from_ms(50);
        world.run(100);
    }
    assert_eq!(world.failed, []);
}
