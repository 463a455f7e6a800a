//! The way out: packets of this host, and what leaves through the sockets.

use core::cmp::Reverse;

use selvedge_transport::eqds::Transmit as EngineTransmit;
use selvedge_units::Instant;
use selvedge_wire::eqds::v1::{
    Body, Capabilities, Common, Data, Flags, Next, Options, Packet, Report, Reset, ResetReason,
};
use selvedge_wire::eqds::{Control, Flags as EngineFlags};

use super::icmp::{self, Unreachable};
use super::inside::{self, Eqif, Facts, NOT_CAPABLE, VnetHeader};
use super::inward::{Last, is_cumulative};
use super::native::Outcome;
use super::outward::{Outgoing, Outward, Part};
use super::{Endpoint, Link, Message, Timer, Transmit, name, place};
use crate::config::Seal;
use crate::epoch::Epochs;

/// Most bytes of a batch: the kernel takes one IP packet.
const MOST_BYTES: usize = 65_000;
/// Bytes of a turn in the schedule of EQIFs.
const TURN: u32 = 65_536;
/// Padding of probes.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
/// ECN field of control packets: not capable.
const CONTROL_ECN: u8 = NOT_CAPABLE;

impl Message {
    /// Creates a message of an EQIF without flags.
    pub(super) fn new(peer: usize, eqif: u8, path: u16, body: Body) -> Self {
        Self { peer, eqif, path, flags: Flags::NONE, body, options: Options::NONE, padding: 0 }
    }

    /// Creates the message that says what an engine's control packet says. `last` is the datagram that it echoes.
    pub(super) fn report(now: Instant, peer: usize, eqif: u8, last: &Last, control: Control, busy: u32) -> Self {
        let Last { path, number, key_epoch, at } = *last;
        let body = if control.flags.any(EngineFlags::RST) {
            Body::Reset(Reset { seq: control.number, reason: ResetReason::NoTunnel })
        } else {
            let report = Report::of(&Control { busy, ..control });
            let delay = u16::try_from(now.since(at).as_ps() / 1_000_000).unwrap_or(Report::NO_ECHO);
            Body::Report(Report { echo: number, echo_epoch: key_epoch as u16, delay, ..report })
        };
        Self { flags: Flags::of_report(control.flags), ..Self::new(peer, eqif, path, body) }
    }
}

impl Endpoint {
    /// Handles a packet that this host sends: a `virtio_net_hdr` of [`Endpoint::VNET_HEADER`] bytes and an IP packet,
    /// which may be longer than an MTU (TSO, USO) and lack a checksum.
    pub fn handle_inside(&mut self, now: Instant, packet: &mut [u8]) {
        let Some((vnet, packet)) = packet.split_first_chunk_mut::<{ VnetHeader::LENGTH }>() else {
            self.drops.malformed += 1;
            return;
        };
        let vnet = VnetHeader::from_host(vnet);
        let Some(facts) = Facts::of(packet) else {
            self.drops.malformed += 1;
            return;
        };
        let Some(peer) = self.peer_of(facts.destination) else {
            // The kernel asks for routers and groups of its own accord, which is no error.
            self.drops.no_route += 1;
            self.send_icmp(now, icmp::unreachable(Unreachable::NoRoute, packet, &facts));
            return;
        };
        self.enqueue(now, peer, vnet, packet, &facts);
    }

    fn enqueue(&mut self, now: Instant, peer: usize, mut vnet: VnetHeader, packet: &mut [u8], facts: &Facts) {
        let (eqif, tunnel) = (facts.eqif(), name(peer, facts.eqif()));
        let Some(link) = &mut self.links[peer] else { return };
        let Link { sizes, tunnels, .. } = link;
        let outward = &mut tunnels[eqif as usize].outward;
        let length = packet.len() as u64;
        if outward.queue.waiting + length > outward.limits.queue {
            outward.counts.dropped += 1;
            self.drops.queue_full += 1;
            return;
        }
        if outward.queue.waiting > outward.limits.mark_above && facts.ecn != NOT_CAPABLE {
            outward.counts.marked += 1;
            inside::mark(packet);
        }
        if !vnet.has_segments() {
            if vnet.complete(packet).is_none() {
                self.drops.malformed += 1;
                return;
            }
            vnet = VnetHeader::default();
        }
        let room = usize::from(link.path_mtu.size()) - sizes.header - sizes.tag;
        let is_whole = !vnet.has_segments() && packet.len() <= room;
        let words = selvedge_wire::eqds::v1::Words::LENGTH;
        let header = vnet.to_peer();
        let (next, part, bytes) = if is_whole {
            (Next::Ip, room, [&packet[..], &[]])
        } else {
            (Next::Super, room - words, [&header[..], packet])
        };
        let ecn = Facts::of(packet).map_or(NOT_CAPABLE, |facts| facts.ecn);
        let about = Outgoing { tunnel, next, ecn, part: part as u32, ..Outgoing::default() };
        outward.counts.packets += 1;
        outward.counts.bytes += length;
        let credit = outward.queue.push(&mut self.packets, bytes, about, sizes);
        self.supply(now, tunnel, credit);
    }

    /// Tells the engine of a tunnel about a packet that was added to its queue.
    pub(super) fn supply(&mut self, now: Instant, tunnel: u32, credit: u64) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let outward = &mut link.tunnels[eqif].outward;
        let random = selvedge_units::mix64(self.random ^ u64::from(tunnel)) as u32;
        outward.sender.supply(&outward.params, now, credit, random);
        link.is_unreachable = false;
        link.used_at = now;
        if !std::mem::replace(&mut link.is_probing, true) {
            self.timers.push(Reverse((now, Timer::PathMtu(peer))));
        }
        self.settle(tunnel);
    }

    /// Writes the next datagrams to be sent into `buffer`, which is cleared first; to be called until it returns
    /// `None`.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        buffer.clear();
        if !self.is_stored {
            return None;
        }
        self.pull(now);
        if let Some((transmit, bytes)) = self.stash.pop_front() {
            buffer.extend_from_slice(&bytes);
            return Some(transmit);
        }
        while let Some(tunnel) = self.reports.pop_front() {
            let (peer, eqif) = place(tunnel);
            let Some(link) = &mut self.links[peer] else { continue };
            let inward = &mut link.tunnels[eqif].inward;
            let Some(control) = inward.take_pending() else { continue };
            let busy = self.pacer.busy_beside(inward.owed);
            let message = Message::report(now, peer, Eqif::ALL[eqif].id(), &inward.last, control, busy);
            if let Some(transmit) = self.write_message(&message, buffer) {
                return Some(transmit);
            }
        }
        while let Some(message) = self.messages.pop_front() {
            if let Some(transmit) = self.write_message(&message, buffer) {
                return Some(transmit);
            }
        }
        while let Some((_, tunnel)) = self.schedule.pop(TURN) {
            let transmit = self.write_batch(now, tunnel, buffer);
            self.settle(tunnel);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Grants the credit that is due.
    fn pull(&mut self, now: Instant) {
        while let Some(tunnel) = self.pacer.poll(now) {
            let (peer, eqif) = place(tunnel);
            let Some(link) = &mut self.links[peer] else { continue };
            if let Some(control) = link.tunnels[eqif].inward.grant(now, &mut self.pacer, tunnel) {
                self.push_report(now, tunnel, control);
            }
        }
    }

    /// Queues a report: joined to the pending one of its tunnel, if both are cumulative.
    pub(super) fn push_report(&mut self, now: Instant, tunnel: u32, control: Control) {
        let (peer, eqif) = place(tunnel);
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif].inward;
        if is_cumulative(&control) {
            if inward.join(control) {
                self.reports.push_back(tunnel);
            }
        } else {
            let busy = self.pacer.busy_beside(inward.owed);
            self.messages.push_back(Message::report(now, peer, Eqif::ALL[eqif].id(), &inward.last, control, busy));
        }
    }

    /// Writes what is queued for a peer, whose keys are about to be dropped.
    pub(super) fn write_messages_of(&mut self, peer: usize) {
        let messages = std::mem::take(&mut self.messages);
        for message in messages {
            let mut bytes = Vec::new();
            if message.peer != peer {
                self.messages.push_back(message);
            } else if let Some(transmit) = self.write_message(&message, &mut bytes) {
                self.stash.push_back((transmit, bytes));
            }
        }
    }

    fn write_message(&mut self, message: &Message, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let link = self.links[message.peer].as_mut()?;
        let Message { eqif, path, flags, body, mut options, padding, .. } = *message;
        if matches!(body, Body::Report(_)) && flags.any(Flags::SYN) {
            options = own_options(link, self.config.seal);
        }
        let packet = Packet { common: Common { flags, eqif, path, ..Common::default() }, body, options };
        let padding = usize::from(padding).saturating_sub(link.out.length(&packet, 0));
        // A tag counts, too.
        let padding = padding - link.sizes.tag.min(padding);
        append(link, &mut self.epochs, &packet, [&ZEROS[..padding], &[]], buffer)?;
        Some(Transmit {
            destination: link.peer.address,
            path: usize::from(path) % self.config.path_ports.len(),
            ecn: CONTROL_ECN,
            segment: buffer.len(),
        })
    }

    /// Writes data, or a request, of one tunnel, as many as one call of the system may send.
    fn write_batch(&mut self, now: Instant, tunnel: u32, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let (peer, eqif) = place(tunnel);
        let link = self.links[peer].as_mut()?;
        let outward = &mut link.tunnels[eqif].outward;
        outward.is_scheduled = false;
        let path = outward.choose_path(now);
        let mut batch: Option<Transmit> = None;
        for _ in 0..self.config.tunnel.batch {
            let link = self.links[peer].as_mut()?;
            let Outward { params, sender, queue, counts, .. } = &mut link.tunnels[eqif].outward;
            let head = queue.head(&self.packets, &link.sizes);
            let sent = sender.poll_transmit(params, now, head, || queue.take(&self.packets, &link.sizes));
            let Some(sent) = sent else { break };
            sender.note_path(params, sent.seq, path);
            counts.note(&sent);
            let start = buffer.len();
            // Without a key epoch the datagram counts as lost; those before it leave.
            let written = self.append_data(peer, eqif, path, &sent, buffer);
            let reliable = self.links[peer].as_ref()?.tunnels[eqif].outward.params.reliable;
            let over = sent.cargo.filter(|_| !reliable).and_then(|part| self.packets.release(part.slot));
            if let Some(about) = over {
                self.ports.tell(&about, Outcome::Sent, None);
            }
            let Some(ecn) = written else { break };
            let length = buffer.len() - start;
            self.schedule.charge(eqif as u8, length as u32);
            let link = self.links[peer].as_mut()?;
            let path = usize::from(path) % self.config.path_ports.len();
            let own = Transmit { destination: link.peer.address, path, ecn, segment: length };
            match batch {
                None => batch = Some(own),
                Some(first) if ecn == first.ecn && length <= first.segment && buffer.len() <= MOST_BYTES => {
                    if length < first.segment {
                        break;
                    }
                }
                Some(_) => {
                    self.stash.push_back((own, buffer.split_off(start)));
                    break;
                }
            }
        }
        batch
    }

    /// Appends the datagram of what an engine has sent; returns its ECN field.
    fn append_data(
        &mut self,
        peer: usize,
        eqif: usize,
        path: u16,
        sent: &EngineTransmit<Part>,
        buffer: &mut Vec<u8>,
    ) -> Option<u8> {
        let link = self.links[peer].as_mut()?;
        let content = sent.cargo.and_then(|part| part.content(&self.packets));
        let is_new = sent.flags.any(EngineFlags::SYN);
        let flags = Flags::SYN.when(is_new).with(Flags::ACK.when(sent.flags.any(EngineFlags::ACK)));
        let common = Common { flags, eqif: Eqif::ALL[eqif].id(), path, ..Common::default() };
        let service = Eqif::ALL[eqif].settings(&self.config.eqif).service.into();
        let data = Data { seq: sent.seq, pull_target: sent.pull_target, next: Next::Ip, priority: 0, service };
        match content {
            Some(content) => {
                let body = Body::Data(Data { next: content.about.next, ..data });
                let packet = Packet { common, body, options: Options::NONE };
                append(link, &mut self.epochs, &packet, content.payload(), buffer)?;
                Some(content.about.ecn)
            }
            None => {
                let options = if is_new { own_options(link, self.config.seal) } else { Options::NONE };
                let packet = Packet { common, body: Body::Request(data), options };
                append(link, &mut self.epochs, &packet, [&[], &[]], buffer)?;
                Some(CONTROL_ECN)
            }
        }
    }
}

/// Returns the options by which this host tells a new peer what it takes.
fn own_options(link: &Link, seal: Seal) -> Options {
    let sealed = if seal == Seal::Off { Capabilities::NONE } else { Capabilities::SEALED };
    let capabilities = Capabilities::SUPER.with(Capabilities::ECN).with(Capabilities::NATIVE).with(sealed);
    Options { mtu: Some(link.sizes.datagram), capabilities: Some(capabilities), ..Options::NONE }
}

/// Appends a datagram to `buffer`; `None` if there is no key epoch for it: it then counts as lost.
fn append(
    link: &mut Link,
    epochs: &mut Epochs,
    packet: &Packet,
    payload: [&[u8]; 2],
    buffer: &mut Vec<u8>,
) -> Option<()> {
    let start = buffer.len();
    let length = link.out.length(packet, payload[0].len() + payload[1].len());
    buffer.resize(start + length, 0);
    if link.out.write(packet, payload, epochs, &mut buffer[start..]).is_err() {
        buffer.truncate(start);
        return None;
    }
    Some(())
}
