//! Switches joined by links, event by event.
//!
//! ```text
//! host ──handle_packet──> [its link's queue, by class] ──> switch ──> switch ──> ... ──poll_transmit──> host
//!                              pauses hold it              arrivals, busy ports and timers, in order of time
//! ```
//!
//! The network carries packets in the order of time, one event after the other, and asks for nothing but the time. The
//! simulator visits each switch for a whole window of time instead, with the same results: its tests compare them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use selvedge_telemetry::{ByKind, DropReason, Drops, PacketKind, PortRow};
use selvedge_transport::netrt::Flow;
use selvedge_units::{Instant, PortId};
use selvedge_wire::Pause;
use selvedge_wire::netrt::Message;

use crate::busy_ports::NEVER;
use crate::descriptor::{Attachment, Descriptor, Slot};
use crate::environment::{Environment, NetRtPacket, Note, Packets, Trimmed};
use crate::forward::Forwarding;
use crate::loss::LaneLoss;
use crate::observer::FabricObserver;
use crate::port::Egress;
use crate::switch::tie;
use crate::switches::Switches;

/// Switches joined by links, and the links to their hosts. `P` is the memory of packets, `O` an observer.
///
/// Time never goes back: each call with a time first handles everything that happens before it.
pub struct Fabric<P, O = ()> {
    switches: Switches,
    world: World<P, O>,
    hosts: Vec<Host>,
    /// Time for which each switch is in the agenda; [`NEVER`] if it is not.
    booked: Vec<u64>,
    /// Packets that have reached their hosts.
    delivered: VecDeque<Delivery>,
    /// Failures and repairs of links to come, latest first.
    changes: Vec<Change>,
}

/// Parts of a fabric: its switches, and the links between them and to hosts.
///
/// Ports are numbered as in results: hosts' ports first, by host, then those of switches.
pub struct Parts {
    /// Switches and ports.
    pub switches: Switches,
    /// Loss of the links into each port, by port.
    pub losses: Vec<Option<Box<LaneLoss>>>,
    /// Place of each host, by number.
    pub attachments: Vec<Attachment>,
    /// Class of each priority, 0 to 7. Priorities that nothing in the network knows have the class of data.
    pub class_of: [u8; 8],
    /// Failures and repairs of links, latest first.
    pub changes: Vec<Change>,
}

/// Failures and repairs of links at one time.
#[derive(Clone)]
pub struct Change {
    /// Time.
    pub at: Instant,
    /// Ports at both ends of each link, and whether they are down from now on.
    pub ports: Vec<(PortId, bool)>,
    /// Routes from now on.
    pub forwarding: Arc<Forwarding>,
}

/// Packet that has reached its host.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Host.
    pub host: u32,
    /// Time at which the last bit arrived.
    pub at: Instant,
    /// Packet.
    pub packet: Descriptor,
}

/// Host's end of its link.
struct Host {
    port: u32,
    /// Packets that wait for the link, by class.
    waiting: [VecDeque<Descriptor>; 8],
    /// Bit per class of which packets wait.
    classes: u8,
    /// Bytes that wait.
    backlog: u64,
    /// Whether a return is in the agenda for when the link is free.
    is_booked: bool,
}

/// Packets, links, and the agenda.
struct World<P, O> {
    packets: P,
    observer: O,
    /// Loss of the links into each port.
    losses: Vec<Option<Box<LaneLoss>>>,
    /// Salt of the draws among simultaneous arrivals at the switch of each port; `None` where their order is that of
    /// ports.
    ties: Vec<Option<u64>>,
    agenda: BinaryHeap<Reverse<Entry>>,
    /// Number of entries so far: of equals, the earlier one comes first.
    entries: u64,
    drops: ByKind<Drops>,
    marks: u64,
}

/// Event to come. The order of the fields is that in which simultaneous events happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    what: What,
    /// Draw among simultaneous arrivals at one switch.
    tie: u64,
    port: u32,
    number: u64,
    /// Of an arrival, the packet.
    packet: Parcel,
}

/// Kind of an event: arrivals go before departures and timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Arrival at a port.
    Arrival,
    /// Something is due at a switch: a port is free, or a timer has expired.
    Switch(u32),
    /// The link of a host is free.
    HostFree(u32),
    /// The pause timer of a host's port has expired.
    HostTimer(u32),
}

/// Packet of an entry, which has no part in the order.
#[derive(Clone, Copy)]
struct Parcel(Descriptor);

impl PartialEq for Parcel {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Parcel {}
impl PartialOrd for Parcel {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Parcel {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<P: Packets> Fabric<P> {
    /// Creates a fabric of these parts, in which nothing has happened before time zero.
    pub fn new(parts: Parts, packets: P) -> Self {
        Self::observed(parts, packets, ())
    }
}

impl<P: Packets, O: FabricObserver<P>> Fabric<P, O> {
    /// Creates a fabric like [`Fabric::new`], with an observer.
    pub fn observed(parts: Parts, packets: P, observer: O) -> Self {
        let Parts { mut switches, losses, changes, .. } = parts;
        let ports = (0..).zip(switches.egress.iter()).take_while(|(_, port)| port.is_host);
        let hosts = ports.map(|(port, _)| Host::new(port)).collect();
        switches.stop = NEVER;
        let competes = switches.params.inputs_compete;
        let salt = |port: &Egress| (competes && !port.is_host).then(|| switches.switches[port.owner].ties);
        let ties = switches.egress.iter().map(salt).collect();
        Self {
            booked: vec![NEVER; switches.switches.len()],
            switches,
            world: World {
                packets,
                observer,
                losses,
                ties,
                agenda: BinaryHeap::new(),
                entries: 0,
                drops: ByKind::default(),
                marks: 0,
            },
            hosts,
            delivered: VecDeque::new(),
            changes,
        }
    }

    /// Takes a packet that `host` sends. It waits for the host's link if that is busy or paused.
    pub fn handle_packet(&mut self, now: Instant, host: u32, packet: &Descriptor) {
        self.handle_timeout(now);
        if O::LISTENS {
            let World { packets, observer, .. } = &mut self.world;
            observer.on_entered(packets, &self.switches, self.hosts[host as usize].port, packet);
        }
        self.hosts[host as usize].push(packet);
        self.serve_host(host);
    }

    /// Returns the bytes that wait for the link of `host`.
    pub fn backlog(&self, host: u32) -> u64 {
        self.hosts[host as usize].backlog
    }

    /// Returns the next packet that has reached its host. It is the caller's from then on.
    pub fn poll_transmit(&mut self) -> Option<Delivery> {
        self.delivered.pop_front()
    }

    /// Returns the time of the next event; `None`: nothing happens until a host sends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let change = self.changes.last().map(|change| change.at);
        let event = self.world.agenda.peek().map(|Reverse(entry)| Instant::from_ps(entry.time));
        [change, event].into_iter().flatten().min()
    }

    /// Handles everything that happens until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now, now.as_ps().saturating_add(1));
    }

    /// Handles everything that happens before `end`, up to `now`.
    fn advance(&mut self, now: Instant, end: u64) {
        while let Some(change) = self.changes.pop_if(|change| change.at.as_ps() < end) {
            self.handle_events(change.at, change.at.as_ps());
            self.switches.set_forwarding(change.forwarding);
            change.ports.iter().for_each(|&(port, down)| self.set_down(port.0, down));
        }
        self.handle_events(now, end);
    }

    fn handle_events(&mut self, now: Instant, end: u64) {
        while let Some(Reverse(entry)) = self.world.agenda.peek()
            && entry.time < end
            && let Some(Reverse(entry)) = self.world.agenda.pop()
        {
            self.switches.now = Instant::from_ps(entry.time);
            self.handle(entry);
        }
        self.switches.now = self.switches.now.max(now);
    }

    /// Takes the link at port `at` down, or up again, now. Both ends of a link are to be told.
    pub fn set_down(&mut self, at: u32, down: bool) {
        if self.switches.extras[at].down == down {
            return;
        }
        let is_lossy = self.world.losses[at as usize].is_some();
        self.switches.set_down(&mut self.world, at, down, is_lossy);
        let port = &self.switches.egress[at];
        if port.is_host { self.serve_host(port.owner) } else { self.book(port.owner) }
    }

    /// Replaces the failures and repairs of links to come; latest first, none of them before now.
    pub fn set_changes(&mut self, changes: Vec<Change>) {
        self.changes = changes;
    }

    /// Writes one row per port, at the port's number in `rows`, for the interval between the last call and `now`.
    pub fn sample(&mut self, now: Instant, rows: &mut Vec<PortRow>) {
        self.handle_timeout(now);
        rows.resize(self.switches.egress.len(), PortRow::default());
        self.switches.sample(now, rows);
    }

    /// Returns the switches, with the counters of their ports.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Returns the memory of packets.
    pub fn packets(&self) -> &P {
        &self.world.packets
    }

    /// Returns the memory of packets, to be changed: of packets that wait in the network, nothing that their
    /// descriptors tell.
    pub fn packets_mut(&mut self) -> &mut P {
        &mut self.world.packets
    }

    /// Returns the observer, to be told what happens outside.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.world.observer
    }

    /// Returns the packets that were dropped, by kind and reason.
    pub fn drops(&self) -> &ByKind<Drops> {
        &self.world.drops
    }

    /// Returns the number of packets that were marked.
    pub fn marks(&self) -> u64 {
        self.world.marks
    }

    fn handle(&mut self, Entry { time, what, port, packet: Parcel(packet), .. }: Entry) {
        match what {
            What::Arrival => self.arrive(port, &packet),
            What::Switch(switch) if self.booked[switch as usize] == time => {
                self.booked[switch as usize] = NEVER;
                self.attend(switch, time);
            }
            // What the switch was booked for has been done, or cancelled.
            What::Switch(_) => {}
            What::HostFree(host) => {
                self.hosts[host as usize].is_booked = false;
                self.serve_host(host);
            }
            What::HostTimer(host) => {
                if self.switches.on_pause_timer(&mut self.world, self.hosts[host as usize].port) {
                    self.serve_host(host);
                }
            }
        }
    }

    /// Handles the arrival of a packet at port `at`.
    fn arrive(&mut self, at: u32, packet: &Descriptor) {
        let port = &self.switches.egress[at];
        if port.is_host {
            return self.arrive_at_host(port.owner, at, packet);
        }
        let switch = port.owner;
        let facts = self.switches.switches[switch].facts;
        let out = self.switches.route(&facts, packet);
        self.switches.events += 1;
        self.switches.on_arrival(&mut self.world, &facts, packet, out as u16);
        self.book(switch);
    }

    fn arrive_at_host(&mut self, host: u32, at: u32, packet: &Descriptor) {
        if O::LISTENS {
            self.world.note(&self.switches, Note::Arrived { at, slot: packet.slot });
        }
        if self.switches.ingress[at].slow_path && self.switches.is_lost(&mut self.world, at, packet) {
            return;
        }
        if !packet.is_pause() {
            self.delivered.push_back(Delivery { host, at: self.switches.now, packet: *packet });
        } else if self.switches.take_pause(&mut self.world, at, packet.slot) {
            self.serve_host(host);
        }
    }

    /// Handles what is due at a switch: the first of its ports that is free, or else its first timer.
    fn attend(&mut self, switch: u32, time: u64) {
        let state = &mut self.switches.switches[switch];
        if state.busy_ports.first() <= time {
            let facts = state.facts;
            let port = facts.first_port + state.busy_ports.pop();
            self.switches.on_port_free(&mut self.world, &facts, port);
        } else if state.timer_at() <= time {
            self.switches.fire(&mut self.world, switch);
        }
        self.book(switch);
    }

    /// Books a switch for its next event.
    fn book(&mut self, switch: u32) {
        let due = self.switches.switches[switch].due();
        let booked = &mut self.booked[switch as usize];
        if due < *booked {
            *booked = due;
            self.world.add(due, What::Switch(switch));
        }
    }

    /// Sends the next packet of a host, if there is one that may leave now, and books its return.
    fn serve_host(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        let port = &self.switches.egress[state.port];
        if state.is_booked || state.classes & !port.paused == 0 {
            return;
        }
        if port.busy_until <= self.switches.now {
            let packet = state.pop(port.paused);
            self.switches.transmit(&mut self.world, state.port, &packet);
        }
        let port = &self.switches.egress[state.port];
        if state.classes != 0 {
            state.is_booked = true;
            self.world.add(port.busy_until.as_ps(), What::HostFree(host));
        }
    }
}

impl Host {
    fn new(port: u32) -> Self {
        Self { port, waiting: Default::default(), classes: 0, backlog: 0, is_booked: false }
    }

    fn push(&mut self, packet: &Descriptor) {
        self.waiting[usize::from(packet.class & 7)].push_back(*packet);
        self.classes |= 1 << (packet.class & 7);
        self.backlog += u64::from(packet.frame);
    }

    /// Removes the first packet of the highest class that is not `paused`, of which there is one, and returns it.
    fn pop(&mut self, paused: u8) -> Descriptor {
        let class = (self.classes & !paused).ilog2() as usize;
        let waiting = &mut self.waiting[class];
        let packet = waiting.pop_front().expect("the class has its bit because a packet waits");
        if waiting.is_empty() {
            self.classes &= !(1 << class);
        }
        self.backlog -= u64::from(packet.frame);
        packet
    }
}

impl<P, O> World<P, O> {
    fn add(&mut self, time: u64, what: What) {
        self.put(Entry { time, what, tie: 0, port: 0, number: 0, packet: Parcel(Descriptor::EMPTY) });
    }

    fn put(&mut self, entry: Entry) {
        self.entries += 1;
        self.agenda.push(Reverse(Entry { number: self.entries, ..entry }));
    }
}

impl<P: Packets, O: FabricObserver<P>> Environment for World<P, O> {
    const RECORDED: bool = O::LISTENS;

    fn send(&mut self, port: &Egress, arrival: Instant, packet: &Descriptor) {
        let (time, packet) = (arrival.as_ps(), Descriptor { port: port.peer_port, ..*packet });
        let tie = self.ties[port.peer as usize].map_or(0, |salt| tie(salt, time, port.peer_port.into()));
        self.put(Entry { time, what: What::Arrival, tie, port: port.peer, number: 0, packet: Parcel(packet) });
    }

    fn leave_slowly(&mut self, _: &Switches, _: u32, _: &Descriptor) {}

    fn lost(&mut self, now: Instant, at: u32, packet: &Descriptor) -> Option<DropReason> {
        let loss = self.losses.get_mut(at as usize)?.as_mut()?;
        loss.lost(now, self.packets.kind(packet.slot), u64::from(packet.frame))
    }

    fn drop(&mut self, switches: &Switches, at: u32, slot: Slot, reason: DropReason) {
        if O::LISTENS {
            self.observer.on_dropped(&self.packets, switches, at, slot, reason);
        }
        self.drops[self.packets.kind(slot)].count(reason);
        self.packets.discard(slot);
    }

    fn set_host_timer(&mut self, host: u32, time: u64) {
        self.add(time, What::HostTimer(host));
    }

    fn note(&mut self, switches: &Switches, event: Note<'_>) {
        self.observer.on_note(&self.packets, switches, event);
    }
}

impl<P: Packets, O: FabricObserver<P>> World<P, O> {
    /// Tells the observer of a packet that a switch has made, and returns the packet.
    fn made(&mut self, packet: Descriptor, copy: Option<u32>) -> Descriptor {
        if O::LISTENS {
            self.observer.on_made(&packet, copy);
        }
        packet
    }
}

impl<P: Packets, O: FabricObserver<P>> Packets for World<P, O> {
    fn name(&self, slot: Slot) -> u64 {
        self.packets.name(slot)
    }
    fn kind(&self, slot: Slot) -> PacketKind {
        self.packets.kind(slot)
    }
    fn flow_hash(&self, slot: Slot) -> u64 {
        self.packets.flow_hash(slot)
    }
    fn has_payload(&self, slot: Slot) -> bool {
        self.packets.has_payload(slot)
    }
    fn discard(&mut self, slot: Slot) {
        self.packets.discard(slot);
    }
    fn mark(&mut self, slot: Slot) {
        self.marks += 1;
        if O::LISTENS {
            self.observer.on_marked(slot);
        }
        self.packets.mark(slot);
    }
    fn set_class(&mut self, slot: Slot, class: u8) {
        if O::LISTENS {
            self.observer.on_class(slot, class);
        }
        self.packets.set_class(slot, class);
    }
    fn trim(&mut self, slot: Slot, class: u8) -> Trimmed {
        let trimmed = self.packets.trim(slot, class);
        if O::LISTENS && !matches!(trimmed, Trimmed::Impossible) {
            self.observer.on_class(slot, class);
        }
        trimmed
    }
    fn take_pause(&mut self, slot: Slot) -> Option<Pause> {
        self.packets.take_pause(slot)
    }
    fn put_pause(&mut self, now: Instant, pause: Pause) -> Descriptor {
        let packet = self.packets.put_pause(now, pause);
        self.made(packet, None)
    }
    fn netrt(&self, slot: Slot) -> NetRtPacket {
        self.packets.netrt(slot)
    }
    fn keep(&mut self, slot: Slot) -> u32 {
        let copy = self.packets.keep(slot);
        if O::LISTENS {
            self.observer.on_kept(slot, copy);
        }
        copy
    }
    fn forget(&mut self, copy: u32) {
        self.packets.forget(copy);
    }
    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor {
        let packet = self.packets.put_copy(copy, class);
        self.made(packet, Some(copy))
    }
    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)> {
        self.packets.take_message(slot)
    }
    fn put_message(&mut self, now: Instant, flow: Flow, message: Message, class: u8) -> Descriptor {
        let packet = self.packets.put_message(now, flow, message, class);
        self.made(packet, None)
    }
}
