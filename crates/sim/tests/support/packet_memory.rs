//! Memory of packets, for switches without the simulator's kernel.

use selvedge_switch::descriptor::{Attachment, Descriptor, Slot};
use selvedge_switch::{NetRtPacket, Packets, Trimmed};
use selvedge_telemetry::PacketKind;
use selvedge_transport::netrt::Flow;
use selvedge_units::{Bytes, HostId, Instant, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::{Ecn, Header, Packet, Pause, Repr};

/// Memory of packets as engines see them.
pub(crate) struct Memory {
    packets: Vec<Packet>,
    free: Vec<Slot>,
    copies: Vec<Packet>,
    attachments: Vec<Attachment>,
}

impl Memory {
    /// Creates an empty memory, for hosts at these places.
    pub(crate) fn new(attachments: Vec<Attachment>) -> Self {
        Self { packets: Vec::new(), free: Vec::new(), copies: Vec::new(), attachments }
    }

    /// Returns the number of packets.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Adds a packet; returns its descriptor, as if it came from the port of its source.
    pub(crate) fn put(&mut self, packet: Packet) -> Descriptor {
        let slot = self.free.pop().unwrap_or(self.packets.len() as Slot);
        if slot as usize == self.packets.len() {
            self.packets.push(packet);
        }
        self.packets[slot as usize] = packet;
        let at = |host: HostId| self.attachments.get(host.index()).copied().unwrap_or(Attachment::NONE);
        Descriptor { port: at(packet.src).port, ..Descriptor::of(&packet, slot, at(packet.dst)) }
    }

    /// Returns a packet.
    #[allow(dead_code, reason = "only one of the programs that share this file looks at packets")]
    pub(crate) fn get(&self, slot: Slot) -> Packet {
        self.packets[slot as usize]
    }

    /// Removes a packet, and returns it.
    pub(crate) fn take(&mut self, slot: Slot) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    fn at(&self, slot: Slot) -> &Packet {
        &self.packets[slot as usize]
    }

    fn at_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.packets[slot as usize]
    }
}

fn flow_of(packet: &Packet) -> Flow {
    Flow { src: packet.src, dst: packet.dst, qp: packet.qp }
}

impl Packets for Memory {
    fn name(&self, slot: Slot) -> u64 {
        self.at(slot).sent_at.as_ps()
    }
    fn kind(&self, slot: Slot) -> PacketKind {
        match self.at(slot).repr {
            Repr::Data(_) => PacketKind::Data,
            Repr::Pause(_) => PacketKind::Pause,
            Repr::NetRt(_) => PacketKind::NetRt,
            Repr::Cnp => PacketKind::Cnp,
            _ => PacketKind::Ack,
        }
    }
    fn flow_hash(&self, slot: Slot) -> u64 {
        let packet = self.at(slot);
        mix64(u64::from(packet.src.0) << 32 | u64::from(packet.qp.0)) ^ u64::from(packet.dst.0)
    }
    fn has_payload(&self, slot: Slot) -> bool {
        self.kind(slot) == PacketKind::Data
    }
    fn discard(&mut self, slot: Slot) {
        self.take(slot);
    }
    fn mark(&mut self, slot: Slot) {
        self.at_mut(slot).ecn = Ecn::Marked;
    }
    fn set_class(&mut self, slot: Slot, class: u8) {
        self.at_mut(slot).class = class;
    }
    fn trim(&mut self, slot: Slot, class: u8) -> Trimmed {
        let packet = self.at_mut(slot);
        packet.class = class;
        if packet.trim() { Trimmed::To(packet.frame) } else { Trimmed::Whole }
    }
    fn take_pause(&mut self, slot: Slot) -> Option<Pause> {
        if let Repr::Pause(pause) = self.take(slot).repr { Some(pause) } else { None }
    }
    fn put_pause(&mut self, now: Instant, pause: Pause) -> Descriptor {
        let nobody = HostId(u32::MAX);
        let frame = Header::MINIMUM_FRAME.get() as u16;
        self.put(Packet { sent_at: now, src: nobody, dst: nobody, frame, repr: Repr::Pause(pause), ..Packet::BLANK })
    }
    fn netrt(&self, slot: Slot) -> NetRtPacket {
        let packet = self.at(slot);
        let from = self.attachments[packet.src.index()].leaf;
        match packet.repr {
            Repr::Data(data) if !data.trimmed => {
                NetRtPacket::Data { flow: flow_of(packet), psn: data.psn, psns: Some(1), from }
            }
            Repr::NetRt(_) => NetRtPacket::Message { from },
            _ => NetRtPacket::Other,
        }
    }
    fn keep(&mut self, slot: Slot) -> u32 {
        self.copies.push(*self.at(slot));
        self.copies.len() as u32 - 1
    }
    fn forget(&mut self, _: u32) {}
    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor {
        let mut packet = Packet { class, ..self.copies[copy as usize] };
        if let Repr::Data(data) = &mut packet.repr {
            data.retransmission = true;
        }
        self.put(packet)
    }
    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)> {
        let packet = self.take(slot);
        if let Repr::NetRt(message) = packet.repr { Some((flow_of(&packet), message.message())) } else { None }
    }
    fn put_message(&mut self, now: Instant, flow: Flow, message: Message, class: u8) -> Descriptor {
        let frame = (Header::ROCE + Bytes::new(message.length() as u64)).get() as u16;
        let entropy = mix64(u64::from(flow.src.0) << 32 | u64::from(flow.qp.0)) as u32;
        let Flow { src, dst, qp } = flow;
        self.put(Packet {
            sent_at: now,
            src,
            dst,
            qp,
            entropy,
            frame,
            class,
            repr: Repr::NetRt(message.into()),
            ..Packet::BLANK
        })
    }
}
