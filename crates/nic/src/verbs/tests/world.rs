//! Two NICs, a wire that loses, delays and duplicates packets, and two memories.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::go_back_n::GoBackNConfig;
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{Cx, Fabric, FeedbackConfig, RecoveryConfig, Scheme};
use selvedge_units::{Bytes, Chance, Channel, Domain, Duration, Instant, Psn, QpNumber, Rng, Setting, TwoStates};
use selvedge_wire::verbs::Headers;

use crate::verbs::*;

/// First address of a host's memory.
pub(crate) const BASE: u64 = 0x7000_0000;
/// Size of a host's memory in bytes.
pub(crate) const SIZE: usize = 1 << 20;
pub(crate) const MTU: u16 = 256;
/// Q_Key of all datagram queue pairs.
pub(crate) const QKEY: u32 = 0x1111_1111;

pub(crate) const ALL: Access = Access::ALL;

/// Returns IRN with timeouts for a round trip of 20 us.
pub(crate) fn irn() -> RecoveryConfig {
    RecoveryConfig::Irn(IrnConfig {
        timeouts: Timeouts::On,
        rto_low: Setting::Off,
        rto_high: Setting::Value(Duration::from_us(320)),
        bdp_cap: Setting::Value(64),
        ..IrnConfig::default()
    })
}
/// Returns MELO with timeouts similar to those of [`irn`].
pub(crate) fn melo() -> RecoveryConfig {
    RecoveryConfig::Melo(MeloConfig {
        reorder_buffer: Setting::Value(256),
        rto: Setting::Value(Duration::from_us(320)),
        bdp_cap: Setting::Value(64),
        ..MeloConfig::default()
    })
}
pub(crate) fn go_back_n() -> RecoveryConfig {
    let mut go_back_n = RecoveryConfig::GoBackN(GoBackNConfig::default());
    go_back_n.resolve(&Fabric::IRN_PAPER);
    go_back_n
}

pub(crate) struct Host {
    pub(crate) rnic: Rnic,
    pub(crate) memory: Vec<u8>,
    pub(crate) pd: PdId,
    pub(crate) key: u32,
    pub(crate) cq: CqId,
    pub(crate) qp: QpNumber,
    pub(crate) address: Ipv6Addr,
}

/// Impairments of a wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wire {
    /// Lost packets per thousand. `duplicates` counts duplicated ones.
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    /// Packets per thousand that take 50 us longer.
    pub(crate) late: u64,
    /// Maximum additional delay of a packet, in microseconds.
    pub(crate) jitter_us: u64,
    /// Interval in microseconds at which packets arrive in batches; 0 means no batches.
    pub(crate) batch_us: u64,
}

pub(crate) struct World {
    pub(crate) hosts: [Host; 2],
    pub(crate) now: Instant,
    pub(crate) wire: Wire,
    rng: Rng,
    in_flight: BTreeMap<(Instant, u64), (usize, Route, Vec<u8>)>,
    sent: u64,
    /// Channels that lose packets in bursts, one in each direction.
    channels: [Option<Channel>; 2],
    /// Packets in Selvedge's format that the wire has lost, indexed by sending host.
    pub(crate) lost: [u64; 2],
    /// Maximum number of outstanding Reads and Atomics.
    reads: u8,
    /// Headers of all packets sent, each with its sending host.
    pub(crate) log: Vec<(usize, Headers)>,
    /// Function that changes the headers of sent packets, before they are logged.
    pub(crate) tamper: fn(usize, u64, &mut Headers),
}

impl Host {
    fn new(n: u16, recovery: RecoveryConfig, service: Service, window: u32) -> Self {
        let mut rnic = Rnic::new(0, u32::from(n) * 100);
        let pd = rnic.alloc_pd();
        let region = Region { pd, address: BASE, start: BASE, length: SIZE as u64, access: ALL };
        let key = rnic.reg_mr(region, 0x1000 + u32::from(n)).expect("a valid region");
        let cq = rnic.create_cq(1_000).expect("a valid depth");
        let capacities =
            Capacities { send_requests: 64, receive_requests: 64, send_pieces: 4, receive_pieces: 4, inline: 64 };
        let init = QpInit {
            service,
            pd,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            capacities,
            all_signaled: false,
            recovery: recovery.params().expect("valid settings"),
            congestion: NoneConfig {}.into(),
            feedback: FeedbackConfig::default(),
            overhead: Bytes::ZERO,
            window,
            ack_every: 8,
            options: QpOptions::default(),
        };
        let qp = rnic.create_qp(init).expect("a valid configuration");
        let memory = (0..SIZE).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ n as u8).collect();
        let address = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, n);
        Self { rnic, memory, pd, key, cq, qp, address }
    }
    pub(crate) fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { address: BASE + offset, length, key: self.key }
    }
    pub(crate) fn poll(&mut self) -> Vec<Completion> {
        core::iter::from_fn(|| self.rnic.poll_cq(self.cq)).collect()
    }
}

impl World {
    /// Creates two hosts with a queue pair each, connected and ready.
    pub(crate) fn connected(recovery: [RecoveryConfig; 2], wire: Wire, seed: u64) -> Self {
        Self::limited(recovery, wire, seed, 32, 4)
    }
    /// Like [`World::connected`], but with at most `window` packets in flight and `reads` outstanding Reads.
    pub(crate) fn limited(recovery: [RecoveryConfig; 2], wire: Wire, seed: u64, window: u32, reads: u8) -> Self {
        let mut world = Self::new(recovery, wire, seed, Service::Reliable);
        world.hosts = [1, 2].map(|n| Host::new(n, recovery[usize::from(n) - 1], Service::Reliable, window));
        world.reads = reads;
        world.connect(0, |_| {});
        world.connect(1, |_| {});
        world
    }
    pub(crate) fn new(recovery: [RecoveryConfig; 2], wire: Wire, seed: u64, service: Service) -> Self {
        Self {
            hosts: [1, 2].map(|n| Host::new(n, recovery[usize::from(n) - 1], service, 32)),
            now: Instant::ZERO,
            wire,
            rng: Rng::stream(seed, Domain::Impairment, 0),
            in_flight: BTreeMap::new(),
            sent: 0,
            channels: [None, None],
            lost: [0; 2],
            reads: 4,
            log: Vec::new(),
            tamper: |_, _, _| {},
        }
    }
    /// Gives each host a queue pair with these options, connected and ready, in place of its present one.
    pub(crate) fn choose(&mut self, options: [QpOptions; 2], adapt: impl Fn(&mut QpChange)) {
        for (host, options) in self.hosts.iter_mut().zip(options) {
            let (_, init) = host.rnic.query_qp(host.qp).expect("the queue pair exists");
            host.qp = host.rnic.create_qp(QpInit { options, ..init }).expect("options of a reliable queue pair");
        }
        self.connect(0, &adapt);
        self.connect(1, &adapt);
    }
    /// Gives host `at` a shared receive queue for ten requests, and a queue pair that receives from it, not connected
    /// yet, in place of its present one.
    pub(crate) fn share_receives(&mut self, at: usize) -> SrqId {
        let host = &mut self.hosts[at];
        let attributes = SrqAttributes { requests: 10, pieces: 1, limit: 0 };
        let srq = host.rnic.create_srq(host.pd, attributes).expect("ten requests are within limits");
        let (_, init) = host.rnic.query_qp(host.qp).expect("the queue pair exists");
        host.qp = host.rnic.create_qp(QpInit { srq: Some(srq), ..init }).expect("the queue is in its domain");
        srq
    }
    /// Informs both hosts that the other one is a Selvedge NIC.
    pub(crate) fn agree(&mut self) {
        for host in &mut self.hosts {
            host.rnic.agree(host.qp).expect("the queue pair exists");
        }
    }
    /// Adds losses in bursts of `mean` packets on average, `rate` packets per thousand, in both directions from now on.
    pub(crate) fn lose_bursts(&mut self, mean: f64, rate: u64, seed: u64) {
        let rate = Chance::from_f64(rate as f64 / 1_000.0).expect("a probability");
        let states = TwoStates::bursts(mean, rate).expect("a valid length and rate");
        self.channels = [0, 1].map(|at| Some(Channel::new(states, Rng::stream(seed, Domain::LinkLoss, at))));
    }
    pub(crate) fn route(&self, from: usize) -> Route {
        let (local, remote) = (self.hosts[from].address, self.hosts[1 - from].address);
        Route { local, remote, traffic_class: 0, hop_limit: 64, flow_label: 0 }
    }
    /// Takes a host's queue pair from Reset to ReadyToSend; `adapt` changes the parameters of each step.
    pub(crate) fn connect(&mut self, at: usize, adapt: impl Fn(&mut QpChange)) {
        let destination = self.hosts[1 - at].qp;
        let route = self.route(at);
        // The PSNs of host 0 begin shortly before they wrap around.
        let psn = [Psn::new(0xff_fff0), Psn::new(0x12)];
        let handshake = Handshake {
            access: ALL,
            route,
            destination,
            mtu: MTU,
            send_psn: psn[at],
            receive_psn: psn[1 - at],
            reads: self.reads,
            timeout: 7,
            retries: 7,
            not_ready_timer: 1,
        };
        let now = self.now;
        let host = &mut self.hosts[at];
        for mut step in handshake.steps() {
            adapt(&mut step);
            host.rnic.modify_qp(&mut Cx::at(now), host.qp, &step).expect("the transition is permitted");
        }
    }
    /// Takes a host's datagram queue pair from Reset to ReadyToSend.
    pub(crate) fn begin_datagrams(&mut self, at: usize) {
        self.connect(at, |step| (step.qkey, step.access) = (Some(QKEY), None));
    }
    pub(crate) fn post(&mut self, at: usize, request: SendRequest) {
        let (now, host) = (self.now, &mut self.hosts[at]);
        host.rnic.post_send(&mut Cx::at(now), host.qp, request).expect("a valid request, and room in the queue");
    }
    pub(crate) fn receive(&mut self, at: usize, id: u64, offset: u64, length: u32) {
        let host = &mut self.hosts[at];
        let request = ReceiveRequest { id, scatter: vec![host.sge(offset, length)] };
        host.rnic.post_recv(host.qp, request).expect("the receive queue has room");
    }

    fn transmit(&mut self, at: usize) {
        let (mut payload, mut transmit) = (Payload::default(), Transmit::default());
        while self.hosts[at].rnic.poll_transmit(&mut Cx::at(self.now), &mut payload, &mut transmit) {
            (self.tamper)(at, self.log.len() as u64, &mut transmit.headers);
            self.log.push((at, transmit.headers));
            let mut bytes = payload.inline.clone();
            for span in &payload.spans {
                let from = (span.address - BASE) as usize;
                bytes.extend_from_slice(&self.hosts[at].memory[from..][..span.length as usize]);
            }
            assert_eq!(bytes.len(), transmit.payload as usize);
            let mut packet = vec![0; Headers::LONGEST];
            let length = transmit.headers.emit(bytes.len(), &mut packet);
            packet.truncate(length);
            packet.extend_from_slice(&bytes);
            packet.resize(length + bytes.len().next_multiple_of(4), 0);
            let in_burst = self.channels[at].as_mut().is_some_and(Channel::loses);
            if in_burst || self.rng.below(1_000) < self.wire.loss {
                self.lost[at] += u64::from(transmit.headers.extension.is_some());
                continue;
            }
            let copies = 1 + u64::from(self.rng.below(1_000) < self.wire.duplicates);
            for _ in 0..copies {
                self.sent += 1;
                let late = if self.wire.late > 0 && self.rng.below(1_000) < self.wire.late { 50 } else { 0 };
                let jitter = Duration::from_us(late + self.rng.below(self.wire.jitter_us + 1));
                let arrival = together(self.now + Duration::from_us(10) + jitter, self.wire.batch_us);
                self.in_flight.insert((arrival, self.sent), (1 - at, transmit.route, packet.clone()));
            }
        }
    }

    /// Delivers a packet to a host.
    pub(crate) fn deliver(&mut self, to: usize, route: Route, packet: &[u8]) {
        let back = Route { local: route.remote, remote: route.local, ..route };
        let Ok((headers, payload)) = Headers::parse(packet) else { return };
        let host = &mut self.hosts[to];
        let mut view = MemorySlice { base: BASE, bytes: &mut host.memory, payload, network_header: [0x45; 40] };
        host.rnic.handle_packet(&mut Cx::at(self.now), &mut view, &back, &headers, payload.len() as u32);
    }

    /// Lets time pass until no event is left, or until `limit_us` microseconds have passed.
    pub(crate) fn run(&mut self, limit_us: u64) {
        let end = self.now + Duration::from_us(limit_us);
        loop {
            for at in 0..2 {
                self.transmit(at);
            }
            let arrival = self.in_flight.first_key_value().map(|(&(at, _), _)| at);
            let wakes = [0, 1].map(|at| self.hosts[at].rnic.poll_timeout().unwrap_or(Instant::NEVER));
            let next = arrival.unwrap_or(Instant::NEVER).min(wakes[0]).min(wakes[1]);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while let Some(first) = self.in_flight.first_entry()
                && first.key().0 == self.now
            {
                let (to, route, packet) = first.remove();
                self.deliver(to, route, &packet);
            }
            for host in &mut self.hosts {
                host.rnic.handle_timeout(&mut Cx::at(self.now));
            }
        }
    }
}

/// Returns the time at which the batch of a packet arrives that would arrive at `at` by itself.
fn together(at: Instant, batch_us: u64) -> Instant {
    match Duration::from_us(batch_us).as_ps() {
        0 => at,
        batch => Instant::from_ps(at.as_ps().next_multiple_of(batch)),
    }
}

/// Returns a request that generates a completion.
pub(crate) fn request(id: u64, operation: Operation, data: Vec<Sge>) -> SendRequest {
    SendRequest {
        id,
        operation,
        data: Data::Gather(data),
        signaled: true,
        solicited: false,
        fence: false,
        destination: None,
    }
}

/// Runs a test on a standard connection and on a selective one.
pub(crate) fn each(test: impl Fn(World)) {
    for recovery in [go_back_n(), irn()] {
        let mut world = World::connected([recovery, recovery], Wire::default(), 1);
        // Both sides learn the kind of the other.
        let key = world.hosts[1].key;
        let data = vec![world.hosts[0].sge(0, 8)];
        world.post(0, request(0, write_to(BASE, key), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(0, Status::Success)]);
        test(world);
    }
}

/// Returns a Write without an immediate.
pub(crate) fn write_to(address: u64, key: u32) -> Operation {
    Operation::Write { remote: Remote { address, key }, immediate: None }
}
/// Returns the identifiers and statuses of a host's new completions.
pub(crate) fn statuses(world: &mut World, at: usize) -> Vec<(u64, Status)> {
    world.hosts[at].poll().into_iter().map(|completion| (completion.id, completion.status)).collect()
}
