//! One host's tunnels to and from its peers, pure: packets, datagrams and the time are arguments.
//!
//! ```text
//!   inside (TUN)                                                              outside (UDP)
//!   handle_inside ──> EQIF's queue ──> Sender ──> Outbound ──────────────────> poll_transmit
//!                                        ▲ report                                   ▲ PULL
//!   poll_inside <── assembly <── Receiver│<── Gate <── handle_datagram ──> Pacer ───┘
//!                                        └── timers: handle_timeout, poll_timeout
//! ```
//!
//! The way of the data:
//! 1. A packet from inside is classified, waits in the queue of its peer and EQIF, and is cut into parts that fit the
//!    path; credit numbers each part and keeps it until it has arrived.
//! 2. A datagram that the gate admits goes to the receiver of its tunnel, which puts parts in order; whole packets
//!    whose source belongs to the peer go inside.
//! 3. Native messages of programs wait in a queue of their own, and are put together for the program that has the port
//!    ([`Endpoint::send_message`], [`Endpoint::poll_message`]).
//! 4. Reports free what has arrived and renew credit; one pacer grants this host's link to all who send to it.

mod assembly;
mod egress;
mod icmp;
mod ingress;
mod inside;
mod inward;
mod native;
mod outward;
mod params;
mod path_mtu;
mod status;
mod store;
#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use selvedge_transport::eqds::eqif::{Schedule, Share};
use selvedge_transport::eqds::{Class, EqdsParams, Event, Interest, Pacer, Part, Pulls, Shares};
use selvedge_units::{Duration, Instant, mix64};
use selvedge_wire::eqds::v1::{Body, Close, Flags, Options, Probe};

use crate::config::{Config, Peer, Prefix, Seal};
use crate::epoch::{EpochError, Epochs, StoredEpochs};
use crate::gate::{Floor, Gate};
use crate::outbound::Outbound;
use icmp::Unreachable;
use inside::Eqif;
use inward::{Arrived, Inward};
use native::Ports;
use outward::{Outgoing, Outward};
use params::{Limits, Sizes};
use path_mtu::PathMtu;
use status::Drops;
use store::Store;

pub use native::{ANY_SOURCE, Incoming, Notice, Outcome, PortId, PortTaken, Reach, SendError, Sending};
pub(crate) use params::check;
pub use status::{PeerStatus, Status, TunnelStatus};

/// Datagrams to one peer over one path, ready to be sent by one system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Address and port of the peer.
    pub destination: SocketAddr,
    /// Index of the path: of the source port within [`Config::path_ports`].
    pub path: usize,
    /// ECN field of the IP header outside, two bits.
    pub ecn: u8,
    /// Bytes of each datagram but the last, which may be shorter.
    pub segment: usize,
}

/// One host's tunnels to and from its peers.
pub struct Endpoint {
    config: Config,
    random: u64,
    gate: Gate,
    epochs: Epochs,
    /// Own bound and floors that are on disk, or on their way there; `None` before the first.
    written: Option<StoredEpochs>,
    /// Whether `written` is on disk.
    is_stored: bool,
    /// Whether peers or their epochs have changed since `written`.
    has_news: bool,
    /// Stored floors of peers that are not in the settings, by key id: they may come back.
    absent: BTreeMap<u32, u32>,
    /// Peers by their index in the gate; `None` for those that were removed.
    links: Vec<Option<Link>>,
    /// Peers by the prefixes that they serve.
    by_prefix: BTreeMap<IpAddr, (Prefix, usize)>,
    packets: Store<Outgoing>,
    parts: Store<Arrived>,
    schedule: Schedule<{ Eqif::COUNT }>,
    pacer: Pacer,
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// Tunnels with a pending report.
    reports: VecDeque<u32>,
    messages: VecDeque<Message>,
    /// Datagrams that are written and not sent, because they did not fit the last batch.
    stash: VecDeque<(Transmit, Vec<u8>)>,
    /// Packets for this host, and memory for more.
    inside: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    current: Vec<u8>,
    ports: Ports,
    /// Memory for the slots that a report frees, or that a datagram delivers.
    slots: Vec<u32>,
    drops: Drops,
    /// ICMP messages that may be sent, and the time at which there were that many.
    icmp: (u32, Instant),
}

/// Deadline of a tunnel's end or of a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    Outward(u32),
    Inward(u32),
    PathMtu(usize),
}

/// A control packet that is sent as it is.
#[derive(Clone, Copy, Debug)]
struct Message {
    peer: usize,
    eqif: u8,
    path: u16,
    flags: Flags,
    body: Body,
    options: Options,
    /// Bytes of padding, of a probe.
    padding: u16,
}

/// A peer, and the tunnels to and from it.
struct Link {
    peer: Peer,
    params: EqdsParams,
    sizes: Sizes,
    out: Outbound,
    tunnels: [Tunnel; Eqif::COUNT],
    path_mtu: PathMtu,
    /// Whether anything has come from the peer since the last probe.
    answers: bool,
    /// Time of the last data to the peer.
    used_at: Instant,
    is_unreachable: bool,
    /// Whether the path MTU's deadline is in the heap.
    is_probing: bool,
}

/// Both ends, here, of the tunnels of one EQIF to and from a peer.
struct Tunnel {
    outward: Outward,
    inward: Inward,
}

/// Bytes that may wait for all peers together before no more is read from inside.
const MOST_WAITING: u64 = 64 << 20;
/// Timing of the pacer of a host without peers.
const NO_PULLS: Pulls = Pulls {
    interval: Duration::from_ms(1),
    control: Duration::ZERO,
    catch_up: Duration::ZERO,
    quanta: 1,
    measures: false,
};
/// ICMP messages per second, and at once.
const ICMP_RATE: u32 = 100;

/// Returns the shares of the EQIFs.
fn shares_of_kinds(config: &Config) -> [Share; Eqif::COUNT] {
    Eqif::ALL.map(|eqif| {
        let settings = eqif.settings(&config.eqif);
        Share { priority: settings.priority as u8, weight: settings.weight as u16 }
    })
}

/// Returns the name of a tunnel of `peer`.
fn name(peer: usize, eqif: Eqif) -> u32 {
    (peer * Eqif::COUNT + eqif as usize) as u32
}
/// Returns the peer of a tunnel, and the index of its EQIF.
fn place(name: u32) -> (usize, usize) {
    (name as usize / Eqif::COUNT, name as usize % Eqif::COUNT)
}

impl Endpoint {
    /// Bytes of the `virtio_net_hdr` before each packet from and to inside.
    pub const VNET_HEADER: usize = inside::VnetHeader::LENGTH;
    /// Most bytes of a packet from or to inside, `virtio_net_hdr` included.
    pub const LONGEST_INSIDE: usize = Self::VNET_HEADER + 65_535;
    /// Time after which [`Endpoint::rebase`] should be called: instants end after 213 days.
    pub const REBASE_AFTER: Duration = Duration::from_ms(20 * 24 * 3_600 * 1_000);

    /// Creates an endpoint without tunnels. `stored` is what [`crate::EpochFile`] had; `None` without a file. `clock`
    /// is the time in seconds since 1970, `random` seeds what need not be secret.
    ///
    /// # Errors
    /// If there are no key epochs left.
    pub fn new(config: Config, stored: Option<&StoredEpochs>, clock: u64, random: u64) -> Result<Self, EpochError> {
        let mut this = Self {
            random,
            gate: Gate::new(),
            epochs: Epochs::new(stored.map(|stored| stored.own), clock),
            written: None,
            is_stored: false,
            has_news: true,
            links: Vec::new(),
            absent: stored.map(|stored| stored.floors.iter().copied().collect()).unwrap_or_default(),
            by_prefix: BTreeMap::new(),
            packets: Store::default(),
            parts: Store::default(),
            schedule: Schedule::new(shares_of_kinds(&config)),
            pacer: Pacer::nested(NO_PULLS, Shares::new()),
            timers: BinaryHeap::new(),
            reports: VecDeque::new(),
            messages: VecDeque::new(),
            stash: VecDeque::new(),
            inside: VecDeque::new(),
            spare: Vec::new(),
            current: Vec::new(),
            ports: Ports::default(),
            slots: Vec::new(),
            drops: Drops::default(),
            icmp: (ICMP_RATE, Instant::ZERO),
            config: Config { peers: Vec::new(), ..config.clone() },
        };
        for peer in &config.peers {
            let id = peer.pair.inbound().id;
            let floor = stored.map_or(Floor::Unknown, |stored| stored.floor(id));
            this.add(&config, peer, floor)?;
        }
        this.config = config;
        this.index();
        Ok(this)
    }

    fn add(&mut self, config: &Config, peer: &Peer, floor: Floor) -> Result<(), EpochError> {
        // Nothing is sent before the numbers are on disk.
        self.epochs.stored(self.epochs.reserve());
        let sealed = config.seal != Seal::Off;
        let out = Outbound::new(peer.pair.outbound(), sealed, &mut self.epochs)?;
        let at = self.gate.add(peer.pair.inbound(), sealed, floor);
        let sizes = Sizes::of(config, peer);
        let params = params::of(config, peer);
        let link = Link {
            peer: peer.clone(),
            params,
            sizes,
            out,
            tunnels: Eqif::ALL.map(|eqif| Tunnel {
                outward: Outward::new(
                    params::serving(&params, eqif.settings(&config.eqif).service.into()),
                    Limits::of(config, &params, eqif),
                    mix64(self.random ^ u64::from(name(at, eqif))),
                ),
                inward: Inward::new(params),
            }),
            path_mtu: PathMtu::new(sizes.datagram),
            answers: false,
            used_at: Instant::ZERO,
            is_unreachable: false,
            is_probing: false,
        };
        self.has_news = true;
        self.absent.remove(&peer.pair.inbound().id);
        debug_assert_eq!(at, self.links.len(), "the gate counts peers as the links do");
        self.links.push(Some(link));
        Ok(())
    }

    /// Makes the index of prefixes and the classes anew, after peers have changed.
    fn index(&mut self) {
        self.by_prefix.clear();
        let mut shares = Shares::new();
        // In a class, the kinds of traffic of each priority; in these, hosts; in these, kinds by their weights.
        let kinds = shares_of_kinds(&self.config);
        let priorities: BTreeSet<u8> = kinds.iter().map(|kind| kind.priority).collect();
        let mut add = |part: Part| -> BTreeMap<u8, Class> {
            let class = shares.add(Shares::ROOT, part);
            let mut level = |priority| shares.add(class, Part { priority, weight: 1 });
            priorities.iter().map(|priority| (*priority, level(*priority))).collect()
        };
        let classes: Vec<_> = (self.config.classes.iter())
            .map(|class| add(Part { priority: class.priority, weight: class.weight }))
            .collect();
        let rest = add(Part::default());
        let mut members = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            let Some(link) = link else { continue };
            self.by_prefix.extend(link.peer.prefixes.iter().map(|prefix| (prefix.address, (*prefix, at))));
            let of_class = |class: &crate::config::Class| {
                link.peer.prefixes.iter().any(|own| class.prefixes.iter().any(|prefix| prefix.overlaps(*own)))
            };
            let levels = self.config.classes.iter().position(of_class).map_or(&rest, |class| &classes[class]);
            for (priority, level) in levels {
                let host = shares.add(*level, Part::default());
                for (eqif, kind) in Eqif::ALL.into_iter().zip(kinds).filter(|(_, kind)| kind.priority == *priority) {
                    let class = shares.add(host, Part { priority: 0, weight: kind.weight });
                    members.push((name(at, eqif), class));
                }
            }
        }
        // A quantum is an MTU; where peers differ, the largest keeps within the rate.
        let params = self.links.iter().flatten().map(|link| &link.params);
        let pulls = params.max_by_key(|params| params.quantum).map(|params| params.pulls(params.pull_interval));
        self.pacer = Pacer::nested(pulls.unwrap_or(NO_PULLS), shares);
        members.into_iter().for_each(|(tunnel, class)| self.pacer.assign(tunnel, class));
    }

    /// Returns what must be on disk before the endpoint goes on, if that has changed; [`Endpoint::stored`] confirms.
    /// Until the first confirmation nothing is sent.
    pub fn poll_store(&mut self) -> Option<StoredEpochs> {
        if !self.has_news && !self.epochs.is_low() {
            return None;
        }
        self.has_news = false;
        let own = match &self.written {
            Some(written) if !self.epochs.is_low() => written.own,
            _ => self.epochs.reserve(),
        };
        let present = (0..self.links.len()).filter(|at| self.links[*at].is_some()).map(|at| self.gate.floor(at));
        let now = StoredEpochs::with_floors(own, present, &self.absent);
        if self.written.as_ref() == Some(&now) {
            return None;
        }
        self.is_stored = false;
        self.written = Some(now.clone());
        Some(now)
    }
    /// Records that what [`Endpoint::poll_store`] returned last is on disk.
    pub fn stored(&mut self) {
        if let Some(written) = &self.written {
            self.epochs.stored(written.own);
            self.is_stored = true;
        }
    }

    /// Handles what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, timer))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            match timer {
                Timer::Outward(name) => self.on_outward_timer(now, at, name),
                Timer::Inward(name) => self.on_inward_timer(now, at, name),
                Timer::PathMtu(peer) => self.on_path_mtu_timer(now, peer),
            }
        }
    }

    /// Returns the time at which [`Endpoint::handle_timeout`] and [`Endpoint::poll_transmit`] are due;
    /// [`Instant::NEVER`] if nothing is awaited.
    pub fn poll_timeout(&self) -> Instant {
        let timer = self.timers.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        timer.min(self.pacer.poll_timeout())
    }

    fn on_outward_timer(&mut self, now: Instant, at: Instant, tunnel: u32) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let outward = &mut link.tunnels[eqif].outward;
        if outward.armed == at {
            outward.armed = Instant::NEVER;
        }
        outward.sender.handle_timeout(&outward.params, now);
        match outward.sender.poll_event() {
            Some(Event::PeerUnreachable) => self.give_up(now, peer),
            Some(Event::Idle) => self.close_outward(peer, eqif),
            None => {}
        }
        self.settle(tunnel);
    }

    /// Drops what waits for a peer that does not answer, and tells the stack.
    fn give_up(&mut self, now: Instant, peer: usize) {
        let Some(link) = &mut self.links[peer] else { return };
        link.is_unreachable = true;
        for tunnel in &mut link.tunnels {
            self.drops.unreachable += tunnel.outward.queue.unsent() as u64;
            tunnel.outward.clear();
        }
        let own = peer as u32;
        let is_own = |about: &Outgoing| about.tunnel / Eqif::COUNT as u32 == own;
        let refused: Vec<u32> = self.packets.slots(is_own).take(ICMP_RATE as usize).collect();
        for slot in refused {
            let Some((bytes, about)) = self.packets.get(slot) else { continue };
            let packet = bytes.get(outward::vnet_length(about.next)..).unwrap_or_default();
            let message =
                inside::Facts::of(packet).and_then(|facts| icmp::unreachable(Unreachable::Host, packet, &facts));
            self.send_icmp(now, message);
        }
        self.drop_packets(is_own, Outcome::Unreachable);
    }

    /// Drops packets of this host, and tells those who sent native messages.
    fn drop_packets(&mut self, are: impl Fn(&Outgoing) -> bool, outcome: Outcome) {
        let slots: Vec<u32> = self.packets.slots(are).collect();
        for slot in slots {
            if let Some(about) = self.packets.about(slot).copied() {
                self.ports.tell(&about, outcome, None);
            }
            self.packets.free(slot);
        }
    }

    /// Drops the native messages to a peer.
    fn give_up_messages(&mut self, peer: usize, outcome: Outcome) {
        let Some(link) = &mut self.links[peer] else { return };
        link.tunnels[Eqif::Native as usize].outward.clear();
        let tunnel = name(peer, Eqif::Native);
        self.drop_packets(|about| about.tunnel == tunnel, outcome);
    }

    /// Gives this host an ICMP message, unless there were too many.
    fn send_icmp(&mut self, now: Instant, message: Option<Vec<u8>>) {
        let Some(message) = message else { return };
        let each = Duration::from_ms(1_000) / u64::from(ICMP_RATE);
        let more = now.since(self.icmp.1).as_ps() / each.as_ps();
        if more > 0 {
            let full = u64::from(ICMP_RATE);
            self.icmp = ((u64::from(self.icmp.0) + more).min(full) as u32, now);
        }
        if self.icmp.0 > 0 {
            self.icmp.0 -= 1;
            self.inside.push_back(message);
        }
    }

    /// Drops the state of an idle tunnel, and tells its receiver.
    fn close_outward(&mut self, peer: usize, eqif: usize) {
        let Some(link) = &mut self.links[peer] else { return };
        let outward = &mut link.tunnels[eqif].outward;
        let Some(end) = outward.sender.close(&outward.params) else { return };
        let close = Close { number: end.seq, from_sender: true };
        self.messages.push_back(Message::new(peer, Eqif::ALL[eqif].id(), 0, Body::Close(close)));
    }

    fn on_inward_timer(&mut self, now: Instant, at: Instant, tunnel: u32) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif].inward;
        if inward.armed == at {
            inward.armed = Instant::NEVER;
        }
        let id = Eqif::ALL[eqif].id();
        let slots = &mut self.slots;
        inward.receiver.handle_timeout(&inward.params, now, |slot| slots.push(slot));
        while let Some(control) = inward.receiver.poll_missing(&inward.params, now) {
            let busy = self.pacer.busy_beside(inward.owed);
            let message = Message::report(now, peer, id, &inward.last, control, busy);
            self.messages.push_back(message);
        }
        let is_idle = inward.receiver.is_idle(&inward.params, now);
        if is_idle {
            let reset = inward.receiver.close(&inward.params, |slot| slots.push(slot));
            inward.account(now, &mut self.pacer, tunnel);
            if let Some(reset) = reset {
                let close = Close { number: reset.number, from_sender: false };
                self.messages.push_back(Message::new(peer, id, inward.last.path, Body::Close(close)));
            }
        }
        self.deliver_parked(now, peer, Eqif::ALL[eqif]);
        if let Some(link) = self.links[peer].as_mut().filter(|_| is_idle) {
            link.tunnels[eqif].inward.assembly.reset();
        }
        self.arm_inward(tunnel);
    }

    fn on_path_mtu_timer(&mut self, now: Instant, peer: usize) {
        let Some(link) = &mut self.links[peer] else { return };
        link.is_probing = false;
        // Probes cost bytes: only while there is traffic.
        if now.since(link.used_at) > link.params.life.idle.unwrap_or(Duration::MAX) {
            return;
        }
        let token = mix64(self.random ^ now.as_ps()) as u32;
        let (change, probe) = link.path_mtu.poll(now, token, link.answers);
        link.answers = false;
        if let Some((token, size)) = probe {
            let body = Body::Probe(Probe { token, size: 0 });
            let mut message = Message::new(peer, 0, (token % link.params.paths) as u16, body);
            message.padding = size;
            self.messages.push_back(message);
        }
        link.is_probing = true;
        let due = link.path_mtu.due().max(now + Duration::from_ms(1));
        self.timers.push(Reverse((due, Timer::PathMtu(peer))));
        if change == path_mtu::Change::Smaller {
            self.abandon(peer);
        }
    }

    /// Gives up all packets to a peer: they are too long for the path.
    fn abandon(&mut self, peer: usize) {
        let Some(link) = &mut self.links[peer] else { return };
        link.tunnels.iter_mut().for_each(|tunnel| tunnel.outward.clear());
        let own = peer as u32;
        self.drop_packets(|about| about.tunnel / Eqif::COUNT as u32 == own, Outcome::Lost);
    }

    /// Begins all tunnels to a peer anew, which has discarded what they sent, and repeats the reports.
    fn restart(&mut self, now: Instant, peer: usize) {
        for eqif in Eqif::ALL {
            let Some(link) = &mut self.links[peer] else { return };
            let Tunnel { outward, inward } = &mut link.tunnels[eqif as usize];
            outward.sender.restart(&outward.params, now);
            if eqif == Eqif::Native {
                self.packets.tear(name(peer, eqif));
            }
            if let Some(control) = inward.receiver.grant(&inward.params, 0) {
                self.push_report(now, name(peer, eqif), control);
            }
        }
        Eqif::ALL.into_iter().for_each(|eqif| self.settle(name(peer, eqif)));
    }

    /// Returns whether so much waits for peers that no more should be read from inside for now.
    pub fn is_full(&self) -> bool {
        self.packets.bytes() > MOST_WAITING
    }

    /// Takes over changed settings: peers and classes that are gone, new, or different. Addresses of this host, its
    /// ports, its key and its prefixes stay as they were.
    ///
    /// # Errors
    /// If there are no key epochs left for new peers.
    pub fn reload(&mut self, now: Instant, config: Config) -> Result<(), EpochError> {
        let kept = |link: &Link| {
            let same = config.peers.iter().find(|peer| peer.name == link.peer.name);
            let is_like = same.is_some_and(|peer| link.peer.is_like(peer));
            let services = |config: &Config| Eqif::ALL.map(|eqif| eqif.settings(&config.eqif).service);
            let is_behaviour = config.tunnel == self.config.tunnel && services(&config) == services(&self.config);
            is_like && is_behaviour && config.seal == self.config.seal
        };
        let gone: Vec<usize> = (self.links.iter().enumerate())
            .filter(|(_, link)| link.as_ref().is_some_and(|link| !kept(link)))
            .map(|(at, _)| at)
            .collect();
        for at in gone {
            self.remove(now, at);
        }
        for peer in &config.peers {
            if self.links.iter().flatten().all(|link| link.peer.name != peer.name) {
                let id = peer.pair.inbound().id;
                let floor = self.absent.get(&id).map_or(Floor::Known(0), |stored| StoredEpochs::floor_of(*stored));
                self.add(&config, peer, floor)?;
            }
        }
        self.config = config;
        self.schedule.set_shares(shares_of_kinds(&self.config));
        // Who waits for credit enters the lists of the new classes.
        self.index();
        for at in 0..self.links.len() {
            let Some(link) = &mut self.links[at] else { continue };
            for (eqif, tunnel) in Eqif::ALL.into_iter().zip(&mut link.tunnels) {
                tunnel.outward.limits = Limits::of(&self.config, &link.params, eqif);
                tunnel.inward.enlist(now, &mut self.pacer, name(at, eqif));
            }
        }
        Ok(())
    }

    fn remove(&mut self, now: Instant, peer: usize) {
        self.close_peer(now, peer);
        let (id, floor) = self.gate.floor(peer);
        self.has_news = true;
        self.absent.insert(id, StoredEpochs::number(floor));
        self.gate.remove(peer);
        self.abandon(peer);
        self.write_messages_of(peer);
        self.links[peer] = None;
    }

    /// Drops all tunnels; [`Endpoint::poll_transmit`] then has the messages that tell the peers.
    pub fn close(&mut self, now: Instant) {
        (0..self.links.len()).for_each(|peer| self.close_peer(now, peer));
    }

    fn close_peer(&mut self, now: Instant, peer: usize) {
        for (eqif, kind) in Eqif::ALL.into_iter().enumerate() {
            self.close_outward(peer, eqif);
            let Some(link) = &mut self.links[peer] else { return };
            let inward = &mut link.tunnels[eqif].inward;
            let slots = &mut self.slots;
            let Some(reset) = inward.receiver.close(&inward.params, |slot| slots.push(slot)) else { continue };
            inward.account(now, &mut self.pacer, name(peer, kind));
            let close = Close { number: reset.number, from_sender: false };
            self.messages.push_back(Message::new(peer, kind.id(), inward.last.path, Body::Close(close)));
            self.deliver_parked(now, peer, kind);
        }
    }

    /// Moves the origin of time by `by`, which has passed: instants count picoseconds and end after 213 days. The
    /// caller subtracts `by` from all later times.
    pub fn rebase(&mut self, by: Duration) {
        for link in self.links.iter_mut().flatten() {
            rebase(&mut link.used_at, by);
            link.path_mtu.rebase(by);
            for tunnel in &mut link.tunnels {
                tunnel.outward.rebase(by);
                tunnel.inward.rebase(by);
            }
        }
        self.pacer.rebase(by);
        rebase(&mut self.icmp.1, by);
        let timers = std::mem::take(&mut self.timers).into_iter();
        self.timers = timers
            .map(|Reverse((mut at, timer))| {
                rebase(&mut at, by);
                Reverse((at, timer))
            })
            .collect();
    }

    /// Returns the next packet for this host, `virtio_net_hdr` included; to be called until it returns `None`.
    pub fn poll_inside(&mut self) -> Option<&[u8]> {
        let next = self.inside.pop_front()?;
        let last = std::mem::replace(&mut self.current, next);
        self.recycle(last);
        Some(&self.current)
    }

    /// Keeps memory for another packet, unless it is that of a long message.
    fn recycle(&mut self, bytes: Vec<u8>) {
        if (1..=2 * Self::LONGEST_INSIDE).contains(&bytes.capacity()) {
            self.spare.push(bytes);
        }
    }

    /// Updates the schedule and the deadlines after a tunnel's state has changed.
    fn settle(&mut self, tunnel: u32) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let outward = &mut link.tunnels[eqif].outward;
        let head = outward.queue.head(&self.packets, &link.sizes);
        if !outward.is_scheduled && outward.sender.next(&outward.params, head) != Interest::Nothing {
            outward.is_scheduled = true;
            self.schedule.join(eqif as u8, tunnel);
        }
        let at = outward.sender.poll_timeout();
        if at < outward.armed {
            outward.armed = at;
            self.timers.push(Reverse((at, Timer::Outward(tunnel))));
        }
    }

    fn arm_inward(&mut self, tunnel: u32) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif].inward;
        let at = inward.receiver.poll_timeout(&inward.params).min(inward.receiver.idle_due(&inward.params));
        if at < inward.armed {
            inward.armed = at;
            self.timers.push(Reverse((at, Timer::Inward(tunnel))));
        }
    }

    /// Returns the peer that serves an address inside.
    fn peer_of(&self, address: IpAddr) -> Option<usize> {
        let (_, (prefix, peer)) = self.by_prefix.range(..=address).next_back()?;
        prefix.contains(address).then_some(*peer)
    }
}

/// Moves `at` by `by` towards the origin of time.
fn rebase(at: &mut Instant, by: Duration) {
    if *at != Instant::NEVER {
        *at = Instant::from_ps(at.as_ps().saturating_sub(by.as_ps()));
    }
}
