//! The switch.

use std::collections::BTreeMap;
use std::net::IpAddr;

use selvedge_transport::netrt::{
    DstTor, DstTorStats, Flow, ForwardingDecision, Occupancy, Passing, SrcTor, SrcTorStats, Tracked,
};
use selvedge_units::{Duration, Instant};
use selvedge_wire::Opcode;
use selvedge_wire::amend;
use selvedge_wire::netrt::Message;

use crate::Settings;
use crate::egress::Egress;
use crate::names::Names;
use crate::packet::{self, Address, Headers};
use crate::store::Store;

/// A port of the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Port {
    /// Port of a host, by its place in [`Settings::hosts`].
    Host(u16),
    /// Towards the other switches.
    Fabric,
}

/// A packet that leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Port by which it leaves.
    pub port: Port,
    /// Time at which its last bit has left.
    pub at: Instant,
    /// The packet, from its IP header on.
    pub packet: Vec<u8>,
}

/// Counters of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets that were forwarded, copies and messages of this switch not included.
    pub forwarded: u64,
    /// Packets that found no place in a queue.
    pub full: u64,
    /// RoCE packets with a wrong ICRC, which were forwarded.
    pub damaged: u64,
    /// Unneeded packets, which were dropped: copies of what has arrived.
    pub dropped: u64,
    /// Messages of NetRT that were refused: from hosts, for no host of this switch, or malformed.
    pub refused: u64,
    /// Packets of hosts with the DSCP of copies, which NetRT does not repair.
    pub reserved_dscp: u64,
    /// Packets that were marked for congestion.
    pub marked: u64,
    /// Messages sent.
    pub messages: u64,
    /// Time for which hosts were paused, each of its own; pauses that have ended.
    pub paused: Duration,
    /// Greatest number of bytes that came from a host during one pause: what a switch has to have room for.
    pub headroom: u64,
    /// Counters of the source ToR.
    pub source: SrcTorStats,
    /// Counters of the destination ToR.
    pub destination: DstTorStats,
    /// Greatest number of bytes that copies took.
    pub pool_peak: u64,
    /// Mean number of bytes that copies took, while there were any.
    pub pool_mean: u64,
    /// Greatest number of bytes that held packets took.
    pub buffer_peak: u64,
    /// Mean number of bytes that held packets took, while there were any.
    pub buffer_mean: u64,
}

impl Stats {
    /// Returns the names and values of all counters.
    pub const fn named(&self) -> [(&'static str, u64); 24] {
        let (source, destination) = (&self.source, &self.destination);
        [
            ("forwarded", self.forwarded),
            ("full", self.full),
            ("damaged", self.damaged),
            ("dropped", self.dropped),
            ("refused", self.refused),
            ("reserved_dscp", self.reserved_dscp),
            ("marked", self.marked),
            ("messages", self.messages),
            ("requests_received", source.requests),
            ("unfulfilled", source.unfulfilled),
            ("copies_sent", source.retransmissions),
            ("requests_sent", destination.requests),
            ("held", destination.held),
            ("given_up", destination.given_up),
            ("surplus", destination.surplus),
            ("untracked", destination.untracked),
            ("restarts", destination.restarts),
            ("pauses", source.pauses),
            ("paused_us", self.paused.as_ps() / 1_000_000),
            ("headroom", self.headroom),
            ("pool_peak", self.pool_peak),
            ("pool_mean", self.pool_mean),
            ("buffer_peak", self.buffer_peak),
            ("buffer_mean", self.buffer_mean),
        ]
    }
}

/// A top-of-rack switch.
#[derive(Debug)]
pub struct Tor {
    settings: Settings,
    /// Port of each host.
    hosts: BTreeMap<IpAddr, u16>,
    names: Names,
    engines: Option<Engines>,
    store: Store,
    /// Queues of the hosts' ports, in order, and of the fabric.
    queues: Vec<Egress>,
    path_mtu: u32,
    /// Pauses of the hosts, in the order of their ports.
    pauses: Vec<Option<Pause>>,
    stats: Stats,
}

/// A pause of a host.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    /// Bytes that came from the host since.
    came: u64,
}

/// Both engines; their handles are slots of the store.
#[derive(Debug)]
struct Engines {
    src: SrcTor<u32>,
    dst: DstTor<u32>,
}

impl Tor {
    /// Creates a switch.
    pub fn new(settings: Settings) -> Self {
        let ports = settings.hosts.len();
        let rates = std::iter::repeat_n(settings.rate.unwrap_or(settings.line_rate), ports);
        let engines =
            settings.netrt.map(|netrt| Engines { src: SrcTor::new(netrt, rates), dst: DstTor::new(netrt, ports) });
        let hosts = (0..).zip(&settings.hosts);
        Self {
            hosts: hosts.flat_map(|(port, addresses)| addresses.iter().map(move |address| (*address, port))).collect(),
            names: Names::default(),
            engines,
            store: Store::default(),
            queues: (0..=ports).map(|_| Egress::new(settings.rate, settings.queue, settings.mark_above)).collect(),
            path_mtu: settings.path_mtu,
            pauses: vec![None; ports],
            stats: Stats::default(),
            settings,
        }
    }

    /// Handles a packet that arrives, from its IP header on.
    pub fn handle_packet(&mut self, now: Instant, from: Port, bytes: &[u8]) {
        let headers = self.engines.is_some().then(|| Headers::parse(bytes)).flatten();
        let to = match &headers {
            Some(headers) => self.hosts.get(&headers.destination).copied(),
            None => destination(bytes).and_then(|address| self.hosts.get(&address).copied()),
        };
        let packet = self.store.buffer(bytes);
        if let Port::Host(port) = from
            && let Some(pause) = &mut self.pauses[usize::from(port)]
        {
            pause.came += bytes.len() as u64;
            self.stats.headroom = self.stats.headroom.max(pause.came);
        }
        match (from, to, headers) {
            (_, _, Some(headers)) if headers.bth.opcode == Opcode::NETRT => {
                self.take_message(now, from, &headers, packet)
            }
            (Port::Host(port), None, Some(headers)) => {
                self.duplicate(now, port, &headers, &packet);
                self.forward(now, Port::Fabric, packet);
            }
            (Port::Fabric, Some(port), Some(headers)) => self.check_order(now, port, &headers, packet),
            (Port::Host(_), None, None) => self.forward(now, Port::Fabric, packet),
            (_, Some(port), _) => self.forward(now, Port::Host(port), packet),
            // From the fabric for an address that is not known here, such as multicast: the hosts decide.
            (Port::Fabric, None, _) => (0..self.settings.hosts.len() as u16).for_each(|port| {
                let packet = self.store.buffer(&packet);
                self.forward(now, Port::Host(port), packet);
            }),
        }
        self.serve(now);
    }

    /// Handles that time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(engines) = &mut self.engines {
            engines.dst.handle_timeout(now);
        }
        self.serve(now);
    }

    /// Returns the time at which [`Tor::handle_timeout`] or [`Tor::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let engines = self.engines.iter().flat_map(|engines| [engines.src.poll_timeout(), engines.dst.poll_timeout()]);
        engines.chain(self.queues.iter().map(Egress::poll_timeout)).flatten().min()
    }

    /// Returns the next packet that leaves by `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        let fabric = self.queues.len() - 1;
        let (at, (packet, left)) = (0..).zip(&mut self.queues).find_map(|(at, queue)| Some((at, queue.pop(now)?)))?;
        let port = if at == fabric { Port::Fabric } else { Port::Host(at as u16) };
        Some(Outgoing { port, at: left, packet })
    }

    /// Returns a host's port whose link is to be paused (`true`) or resumed (`false`), while its copies are sent below
    /// line rate; to be called after every other call until `None`. Where nobody asks, hosts go on.
    pub fn poll_pause(&mut self, now: Instant) -> Option<(u16, bool)> {
        let (port, is_paused) = self.engines.as_mut()?.src.poll_pause()?;
        let pause = &mut self.pauses[usize::from(port)];
        match pause.take() {
            Some(Pause { since, .. }) if !is_paused => self.stats.paused += now - since,
            _ => *pause = is_paused.then_some(Pause { since: now, came: 0 }),
        }
        Some((port, is_paused))
    }

    /// Takes back the memory of a packet that has left.
    pub fn reuse(&mut self, packet: Vec<u8>) {
        self.store.reuse(packet);
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { marked: self.queues.iter().map(|queue| queue.marked).sum(), ..self.stats };
        if let Some(Engines { src, dst }) = &self.engines {
            (stats.source, stats.destination) = (*src.stats(), *dst.stats());
            stats.pool_peak = src.occupancy().map(Occupancy::peak).sum();
            stats.pool_mean = src.occupancy().map(Occupancy::mean).sum();
            stats.buffer_peak = dst.occupancy().iter().map(Occupancy::peak).sum();
            stats.buffer_mean = dst.occupancy().iter().map(Occupancy::mean).sum();
        }
        stats
    }
    /// Returns the bytes of all copies, and of all held packets, at present.
    pub fn occupancy(&self) -> [u64; 2] {
        let Some(Engines { src, dst }) = &self.engines else { return [0; 2] };
        [src.kept(), dst.occupancy().iter().map(Occupancy::bytes).sum()]
    }

    /// Returns the number of packets in memory: copies and held ones.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.store.kept()
    }

    /// Keeps a copy of a packet from a host's port into the fabric.
    fn duplicate(&mut self, now: Instant, port: u16, headers: &Headers, packet: &[u8]) {
        self.learn(headers, packet);
        let Some(psns) = headers.psns(packet, self.path_mtu) else { return };
        if headers.dscp == self.settings.dscp {
            self.stats.reserved_dscp += 1;
            return;
        }
        if !headers.is_intact(packet) {
            self.stats.damaged += 1;
            return;
        }
        let Some(flow) = self.flow_of(headers) else { return };
        let Self { engines: Some(Engines { src, .. }), store, .. } = self else { return };
        let copy = store.buffer(packet);
        let handle = store.keep(copy);
        let passing = passing(headers, handle, packet.len(), port, psns);
        src.on_data(now, flow, headers.bth.psn, &passing, &mut |handle| store.drop(handle));
    }

    /// Checks the order of a packet from the fabric for a host.
    fn check_order(&mut self, now: Instant, port: u16, headers: &Headers, mut packet: Vec<u8>) {
        self.learn(headers, &packet);
        let Some(psns) = headers.psns(&packet, self.path_mtu) else {
            return self.forward(now, Port::Host(port), packet);
        };
        if !headers.is_intact(&packet) {
            self.stats.damaged += 1;
            return self.forward(now, Port::Host(port), packet);
        }
        let Some(flow) = self.flow_of(headers) else { return self.forward(now, Port::Host(port), packet) };
        let bytes = packet.len();
        if !self.queues[usize::from(port)].has_room(bytes) {
            self.stats.full += 1;
            return self.store.reuse(packet);
        }
        let Self { engines: Some(Engines { dst, .. }), store, settings, queues, stats, .. } = self else { return };
        let is_high = headers.dscp == settings.dscp;
        let class = dst.class_of(flow);
        let is_copy = is_high && class.is_some();
        let queue = &mut queues[usize::from(port)];
        if is_high && class.is_none() {
            // A flow that has this DSCP by itself, or one that was forgotten.
            stats.forwarded += 1;
            return queue.push(now, packet, false);
        }
        if let (true, Some(class)) = (is_copy, class) {
            amend::set_dscp(&mut packet, class);
        }
        let handle = store.keep(packet);
        let passing = passing(headers, handle, bytes, port, psns);
        match dst.on_data(now, flow, headers.bth.psn, passing, is_copy) {
            ForwardingDecision::Forward => {
                stats.forwarded += 1;
                queue.push(now, store.take(handle), false);
            }
            ForwardingDecision::Held => queue.reserve(bytes),
            ForwardingDecision::Drop => {
                stats.dropped += 1;
                store.drop(handle);
            }
        }
    }

    /// Handles a message of another switch; none goes on to a host, or comes from one.
    fn take_message(&mut self, now: Instant, from: Port, headers: &Headers, packet: Vec<u8>) {
        let message = match from {
            Port::Fabric if headers.is_intact(&packet) => headers.message(&packet),
            _ => None,
        };
        self.store.reuse(packet);
        let port = self.hosts.get(&headers.destination).copied();
        let flow = self.flow_of(headers);
        let (Some(message), Some(port), Some(flow), Some(engines)) = (message, port, flow, &mut self.engines) else {
            self.stats.refused += 1;
            return;
        };
        match message {
            Message::Request(request) => {
                // The message comes from the flow's receiver.
                let flow = Flow { src: flow.dst, dst: flow.src, qp: flow.qp };
                if let Some(psn) = engines.src.on_request(now, flow, port, &request) {
                    self.send_message(now, flow, Message::Unfulfilled(psn));
                }
            }
            Message::Unfulfilled(psn) => engines.dst.on_unfulfilled(now, flow, psn),
        }
    }

    /// Executes what the engines request.
    fn serve(&mut self, now: Instant) {
        while let Some(output) = self.engines.as_mut().and_then(|engines| engines.dst.poll_output()) {
            match output {
                Tracked::Release(handle) => {
                    let packet = self.release(handle);
                    self.stats.forwarded += 1;
                    let port = destination(&packet).and_then(|address| self.hosts.get(&address).copied());
                    if let Some(port) = port {
                        self.queues[usize::from(port)].push(now, packet, false);
                    }
                }
                Tracked::Discard(handle) => {
                    let packet = self.release(handle);
                    self.stats.dropped += 1;
                    self.store.reuse(packet);
                }
                Tracked::Request(flow, request) => self.send_message(now, flow, Message::Request(request)),
            }
        }
        while let Some((_, handle)) = self.engines.as_mut().and_then(|engines| engines.src.poll_transmit(now)) {
            let mut copy = self.store.copy(handle);
            amend::set_dscp(&mut copy, self.settings.dscp);
            self.send_high(now, copy);
        }
    }

    /// Takes a held packet out of the store, and its place out of the queue.
    fn release(&mut self, handle: u32) -> Vec<u8> {
        let packet = self.store.take(handle);
        if let Some(port) = destination(&packet).and_then(|address| self.hosts.get(&address)) {
            self.queues[usize::from(*port)].unreserve(packet.len());
        }
        packet
    }

    /// Sends a message about a flow to the switch at its other end.
    fn send_message(&mut self, now: Instant, flow: Flow, message: Message) {
        let (source, destination) = match message {
            Message::Request(_) => (flow.dst, flow.src),
            Message::Unfulfilled(_) => (flow.src, flow.dst),
        };
        let (Some(source), Some(destination)) = (self.names.address(source), self.names.address(destination)) else {
            return;
        };
        let to = Address { source, destination, qp: flow.qp, dscp: self.settings.dscp };
        let mut packet = self.store.buffer(&[]);
        packet::emit_message(&to, &message, &mut packet);
        self.stats.messages += 1;
        self.send_high(now, packet);
    }

    fn send_high(&mut self, now: Instant, packet: Vec<u8>) {
        let fabric = self.queues.len() - 1;
        if self.queues[fabric].has_room(packet.len()) {
            self.queues[fabric].push(now, packet, true);
        } else {
            self.stats.full += 1;
            self.store.reuse(packet);
        }
    }

    /// Forwards a packet, if its queue has a place.
    fn forward(&mut self, now: Instant, to: Port, packet: Vec<u8>) {
        let at = match to {
            Port::Host(port) => usize::from(port),
            Port::Fabric => self.queues.len() - 1,
        };
        if self.queues[at].has_room(packet.len()) {
            self.stats.forwarded += 1;
            self.queues[at].push(now, packet, false);
        } else {
            self.stats.full += 1;
            self.store.reuse(packet);
        }
    }

    /// Learns the path MTU from a packet.
    fn learn(&mut self, headers: &Headers, packet: &[u8]) {
        if let Some(mtu) = headers.path_mtu(packet) {
            self.path_mtu = mtu;
        }
    }

    fn flow_of(&mut self, headers: &Headers) -> Option<Flow> {
        let (src, dst) = (self.names.number(headers.source)?, self.names.number(headers.destination)?);
        Some(Flow { src, dst, qp: headers.queue_pair() })
    }
}

fn passing(headers: &Headers, handle: u32, bytes: usize, port: u16, psns: u32) -> Passing<u32> {
    let (class, first) = (headers.dscp, headers.bth.psn);
    Passing { handle, bytes: bytes as u32, class, port, room: u64::MAX, first, psns }
}

/// Returns the destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..20)?.first_chunk::<4>().map(|&address| address.into()),
        6 => packet.get(24..40)?.first_chunk::<16>().map(|&address| address.into()),
        _ => None,
    }
}
