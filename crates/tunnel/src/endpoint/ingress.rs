//! The way in: datagrams of peers, and packets for this host.

use core::net::SocketAddr;

use selvedge_transport::eqds::Disposition;
use selvedge_units::Instant;
use selvedge_wire::eqds::v1::{
    Body, Capabilities, Close, Common, Data, Flags, Next, Options, Packet, Probe, Report, Reset, ResetReason,
};
use selvedge_wire::eqds::{Control, Data as EngineData, Flags as EngineFlags};

use super::assembly::Added;
use super::inside::{self, CONGESTED, Eqif, Facts, NOT_CAPABLE, VnetHeader};
use super::inward::{Arrived, Last};
use super::native::Outcome;
use super::path_mtu::Change;
use super::{Endpoint, Message, name, params};
use crate::config::Seal;
use crate::gate::{Accepted, Notice, Refused};

impl Endpoint {
    /// Handles the payload of one UDP datagram, which is decrypted in place; `ecn` is the ECN field of its IP header.
    pub fn handle_datagram(&mut self, now: Instant, source: SocketAddr, ecn: u8, datagram: &mut [u8]) {
        let length = datagram.len();
        match self.gate.handle(now.as_ps() / 1_000, source.ip(), datagram) {
            Ok(Accepted { peer, packet, payload, sent_payload, new_epoch }) => {
                self.has_news |= new_epoch;
                if let Some(link) = &mut self.links[peer] {
                    (link.answers, link.is_unreachable) = (true, false);
                }
                let arrival = Arrival { now, peer, payload, sent_payload, length, is_marked: ecn == CONGESTED };
                self.on_packet(&arrival, &packet);
            }
            Err(Refused::Stale { peer, seq, answer, notice }) => {
                if let Some(answer) = answer {
                    let (body, options) = answer.reset(seq);
                    self.messages.push_back(Message { options, ..Message::new(peer, 0, 0, body) });
                }
                if let Some(notice) = notice {
                    self.obey(now, peer, notice);
                }
            }
            // Counted by the gate.
            Err(_) => {}
        }
    }

    fn on_packet(&mut self, arrival: &Arrival<'_>, packet: &Packet) {
        let (now, peer, common) = (arrival.now, arrival.peer, &packet.common);
        self.check_agreement(peer, &packet.options);
        if let Some(notice) = Notice::of(packet) {
            return self.obey(now, peer, notice);
        }
        if let Body::Probe(probe) = packet.body {
            return self.on_probe(arrival, common, probe);
        }
        let Some(eqif) = Eqif::from_id(common.eqif) else {
            self.drops.unknown_eqif += 1;
            if let Some(seq) = packet.seq() {
                let reset = Body::Reset(Reset { seq, reason: ResetReason::Refused });
                self.messages.push_back(Message::new(peer, common.eqif, common.path, reset));
            }
            return;
        };
        match packet.body {
            Body::Data(data) => self.handle_data(arrival, common, eqif, &data, EngineFlags::NONE),
            Body::Request(data) => self.handle_data(arrival, common, eqif, &data, EngineFlags::RTS),
            Body::Report(report) => self.handle_report(now, peer, eqif, &report, common.flags),
            Body::Close(Close { number, from_sender: true }) => {
                let data = Data { seq: number, ..Data::default() };
                self.handle_data(arrival, common, eqif, &data, EngineFlags::RST);
            }
            Body::Reset(Reset { seq: number, .. }) | Body::Close(Close { number, .. }) => {
                self.on_control(
                    now,
                    peer,
                    eqif,
                    &Control { flags: EngineFlags::RST, number, pull: 0, busy: 0, eqif: 0 },
                );
            }
            Body::Probe(_) => {}
        }
        if matches!(packet.body, Body::Reset(Reset { reason: ResetReason::Refused, .. })) && eqif == Eqif::Native {
            // A peer that knows no native messages: whoever waits for them would wait for ever.
            self.give_up_messages(peer, Outcome::Unsupported);
        }
    }

    /// Counts a peer whose settings differ: its datagrams would be lost, or its tunnels count in other units.
    fn check_agreement(&mut self, peer: usize, options: &Options) {
        let Some(link) = &self.links[peer] else { return };
        let differs = options.mtu.is_some_and(|mtu| mtu != link.sizes.datagram);
        let needed = if self.config.tunnel.offload { Capabilities::SUPER } else { Capabilities::NONE };
        let sealed = if self.config.seal == Seal::Off { Capabilities::NONE } else { Capabilities::SEALED };
        let needed = needed.with(sealed);
        let lacks = options.capabilities.is_some_and(|its| its.common(needed) != needed);
        self.drops.disagreements += u64::from(differs || lacks);
    }

    /// Does what a peer wants of the key epoch.
    fn obey(&mut self, now: Instant, peer: usize, notice: Notice) {
        let Some(link) = &mut self.links[peer] else { return };
        let before = link.out.epoch();
        let obeyed = match notice {
            Notice::Exceed(floor) => link.out.exceed(floor, &mut self.epochs),
            Notice::Answer(challenge) => link.out.answer(challenge, &mut self.epochs),
        };
        if obeyed.is_err() {
            self.drops.lies += 1;
        } else if self.links[peer].as_ref().is_some_and(|link| link.out.epoch() != before) {
            self.restart(now, peer);
        }
    }

    fn on_probe(&mut self, arrival: &Arrival<'_>, common: &Common, probe: Probe) {
        let peer = arrival.peer;
        let Some(link) = &mut self.links[peer] else { return };
        if !common.flags.any(Flags::ACK) {
            let size = u16::try_from(arrival.length).unwrap_or(u16::MAX);
            let body = Body::Probe(Probe { size, ..probe });
            let message = Message { flags: Flags::ACK, ..Message::new(peer, 0, common.path, body) };
            return self.messages.push_back(message);
        }
        if link.path_mtu.on_answer(arrival.now, probe.token, probe.size) == Change::Smaller {
            self.abandon(peer);
        }
    }

    fn handle_data(&mut self, arrival: &Arrival<'_>, common: &Common, eqif: Eqif, data: &Data, of_type: EngineFlags) {
        let Arrival { now, peer, payload, sent_payload, is_marked, .. } = *arrival;
        let tunnel = name(peer, eqif);
        let is_request = of_type != EngineFlags::NONE;
        let is_new = common.flags.any(Flags::SYN);
        if is_new {
            self.note_restart(now, peer, eqif, common.key_epoch);
        }
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif as usize].inward;
        let slots = &mut self.slots;
        if is_new && inward.receiver.epoch().is_none() {
            inward.params = params::serving(&inward.params, data.service);
        }
        inward.last = Last { path: common.path, number: common.packet_number, key_epoch: common.key_epoch, at: now };
        let arrived = Arrived { next: data.next, is_marked };
        let own = self.parts.put([&[], &[]], arrived);
        let flags = common.flags.for_engine();
        let engine_data = EngineData {
            seq: data.seq,
            pull_target: data.pull_target,
            index: 0,
            payload: u16::try_from(sent_payload).unwrap_or(u16::MAX),
            flags: EngineFlags::SYN.when(is_new).with(EngineFlags::ACK.when(flags.any(EngineFlags::ACK))).with(of_type),
            eqif: common.eqif,
            class: 0,
            retransmission: false,
            trimmed: payload.is_none(),
        };
        let trimmed = payload.is_none() && !is_request;
        let (disposition, control) =
            inward.receiver.handle_data(&inward.params, now, &engine_data, trimmed, own, |slot| slots.push(slot));
        inward.account(now, &mut self.pacer, tunnel);
        match disposition {
            Disposition::Stray => self.drops.stray += 1,
            Disposition::Duplicate => self.drops.duplicates += 1,
            Disposition::Taken | Disposition::Empty | Disposition::Closed => {}
        }
        let delivered = std::mem::take(&mut self.slots);
        let mut is_parked = disposition == Disposition::Taken;
        for &slot in &delivered {
            if slot == own {
                is_parked = false;
                self.add_part(now, peer, eqif, arrived, payload.unwrap_or_default());
            } else {
                self.add_parked(now, peer, eqif, slot);
            }
        }
        self.slots = delivered;
        self.slots.clear();
        match payload {
            Some(payload) if is_parked => self.parts.append(own, payload),
            _ => self.parts.free(own),
        }
        if let Some(control) = control {
            let echo = EngineFlags::ECN_ECHO.when(is_marked);
            self.push_report(now, tunnel, Control { flags: control.flags.with(echo), ..control });
        }
        self.arm_inward(tunnel);
    }

    /// Closes a peer's tunnel if its sender has restarted since: a new tunnel replaces it, whatever its number.
    fn note_restart(&mut self, now: Instant, peer: usize, eqif: Eqif, key_epoch: u32) {
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif as usize].inward;
        if key_epoch <= inward.key_epoch {
            return;
        }
        let slots = &mut self.slots;
        inward.receiver.close(&inward.params, |slot| slots.push(slot));
        inward.key_epoch = key_epoch;
        // What has arrived is handed on before it is forgotten which parts belong together: message ids begin anew.
        self.deliver_parked(now, peer, eqif);
        if let Some(link) = &mut self.links[peer] {
            link.tunnels[eqif as usize].inward.assembly.reset();
        }
    }

    /// Delivers what a receiver has put into `slots` on another occasion than a datagram.
    pub(super) fn deliver_parked(&mut self, now: Instant, peer: usize, eqif: Eqif) {
        let delivered = std::mem::take(&mut self.slots);
        for &slot in &delivered {
            self.add_parked(now, peer, eqif, slot);
        }
        self.slots = delivered;
        self.slots.clear();
    }

    fn add_parked(&mut self, now: Instant, peer: usize, eqif: Eqif, slot: u32) {
        let parts = std::mem::take(&mut self.parts);
        if let Some((bytes, arrived)) = parts.get(slot) {
            self.add_part(now, peer, eqif, *arrived, bytes);
        }
        self.parts = parts;
        self.parts.free(slot);
    }

    /// Handles a part that the receiver hands on.
    fn add_part(&mut self, now: Instant, peer: usize, eqif: Eqif, arrived: Arrived, payload: &[u8]) {
        if (arrived.next == Next::Native) != (eqif == Eqif::Native) {
            self.drops.broken += 1;
            return;
        }
        let Some(link) = &mut self.links[peer] else { return };
        let inward = &mut link.tunnels[eqif as usize].inward;
        let is_marked = match inward.assembly.add(arrived.next, payload, arrived.is_marked) {
            Added::Whole { is_marked } => is_marked,
            Added::Incomplete => return,
            Added::Broken => {
                self.drops.broken += 1;
                return;
            }
        };
        let bytes = inward.assembly.packet();
        if eqif == Eqif::Native {
            inward.packets += 1;
            inward.bytes += bytes.len() as u64;
            let spare = self.spare.pop().unwrap_or_default();
            let message = std::mem::replace(bytes, spare);
            return self.on_message(now, peer, message);
        }
        let packet = bytes.get_mut(VnetHeader::LENGTH..).unwrap_or_default();
        let Some(facts) = Facts::of(packet) else {
            self.drops.broken += 1;
            return;
        };
        let is_own = self.config.prefixes.iter().any(|prefix| prefix.contains(facts.destination));
        if !is_own || !link.peer.serves(facts.source) {
            self.drops.foreign += 1;
            return;
        }
        if is_marked && facts.ecn == NOT_CAPABLE {
            self.drops.congested += 1;
            return;
        }
        if is_marked {
            inside::mark(packet);
        }
        inward.packets += 1;
        inward.bytes += packet.len() as u64;
        let spare = self.spare.pop().unwrap_or_default();
        self.inside.push_back(std::mem::replace(bytes, spare));
    }

    fn handle_report(&mut self, now: Instant, peer: usize, eqif: Eqif, report: &Report, flags: Flags) {
        self.pacer.note_control(now);
        self.on_control(now, peer, eqif, &report.control(flags));
    }

    fn on_control(&mut self, now: Instant, peer: usize, eqif: Eqif, control: &Control) {
        let Some(link) = &mut self.links[peer] else { return };
        let (outward, packets) = (&mut link.tunnels[eqif as usize].outward, &mut self.packets);
        let (reliable, ports) = (outward.params.reliable, &mut self.ports);
        let concerns = outward.sender.handle_control_with(&outward.params, now, control, |delivered| {
            // Of an unreliable tunnel, they are free since they were sent.
            let over = if reliable { packets.release(delivered.cargo.slot) } else { None };
            if let Some(about) = over {
                ports.tell(&about, Outcome::Arrived, delivered.round_trip);
            }
        });
        if concerns && control.flags.any(EngineFlags::RST) && eqif == Eqif::Native {
            self.packets.tear(name(peer, eqif));
        }
        self.settle(name(peer, eqif));
    }
}

/// A datagram that the gate has admitted.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    now: Instant,
    peer: usize,
    /// The payload; `None` if it was cut off or damaged.
    payload: Option<&'a [u8]>,
    /// Bytes of the payload as it was sent.
    sent_payload: usize,
    /// Bytes of the datagram.
    length: usize,
    /// Whether the datagram carried a mark of congestion.
    is_marked: bool,
}
