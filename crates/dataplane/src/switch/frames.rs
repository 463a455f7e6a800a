//! Memory of the frames that are in the fabric.

use selvedge_switch::descriptor::{Attachment, Descriptor, Slot};
use selvedge_switch::{NetRtPacket, Packets, Trimmed};
use selvedge_telemetry::PacketKind;
use selvedge_transport::netrt::Flow;
use selvedge_units::{HostId, Instant, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::{Ecn, Ethernet, Header, Opcode, Pause};

use super::frame::{Facts, mark};
use super::roce::Headers;
use super::trim::trim;

/// Bytes on a link of the shortest frame, which a pause has.
pub(super) const SHORTEST: u16 = Ethernet::MINIMUM as u16 + 4;
/// Buffers that wait to be reused, at most.
const SPARE: usize = 4_096;

/// Frames, each in a slot. No frame allocates once as many were kept at a time.
///
/// Frames keep their bytes until they reach a host, but for marks and cuts: the class in which a frame travels is that
/// of its descriptor, and messages between switches have no bytes.
#[derive(Debug)]
pub struct Frames {
    slots: Vec<Held>,
    free: Vec<Slot>,
    spare: Vec<Vec<u8>>,
    /// Number of frames so far.
    count: u64,
    /// Copies that NetRT's switches keep, and places of others.
    copies: Vec<Option<Frame>>,
    free_copies: Vec<u32>,
    /// Place of each host.
    attachments: Vec<Attachment>,
    /// Whether switches run NetRT.
    has_netrt: bool,
    /// Path MTU of each host's queue pairs in bytes, as its last full packet has shown it: from it follows how many
    /// numbers the answer to a Read takes.
    path_mtus: Vec<u32>,
}

#[derive(Debug)]
enum Held {
    Nothing,
    Frame(Frame),
    Pause(Pause),
    Message(Flow, Message),
}

#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    facts: Facts,
    /// Hosts at both ends, and the number of the frame.
    from: u32,
    to: u32,
    number: u64,
}

/// Packet of a slot, for recordings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// No packet, or a copy of none.
    Nothing,
    /// Frame of a host: its receiver, its bytes, and their number on a link.
    Frame { to: HostId, bytes: &'a [u8], frame: u16 },
    /// PFC frame.
    Pause(Pause),
    /// Message of NetRT's switches.
    Message(Message),
}

/// Path MTU of hosts that have sent no full packet, in bytes: usual where Ethernet carries 1,500.
const PATH_MTU: u32 = 1_024;

impl Frames {
    /// Creates an empty memory, for hosts at these places; `has_netrt` says whether switches run NetRT.
    pub(super) fn new(attachments: Vec<Attachment>, has_netrt: bool) -> Self {
        Self {
            path_mtus: vec![PATH_MTU; attachments.len()],
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            count: 0,
            copies: Vec::new(),
            free_copies: Vec::new(),
            attachments,
            has_netrt,
        }
    }

    /// Adds a frame from one host to another that travels as `class`; returns its descriptor. `None`: it pretends to be
    /// a message of NetRT's switches.
    pub(super) fn put(&mut self, [from, to]: [u32; 2], frame: &[u8], facts: &Facts, class: u8) -> Option<Descriptor> {
        if self.has_netrt
            && let Some(headers) = roce(frame, facts)
        {
            if headers.bth.opcode == Opcode::NETRT {
                return None;
            }
            let packet = &frame[usize::from(facts.payload_at)..];
            if let Some(mtu) = headers.path_mtu(packet) {
                self.path_mtus[from as usize] = mtu;
            }
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(frame);
        self.count += 1;
        Some(self.add(Frame { bytes, facts: *facts, from, to, number: self.count }, class))
    }

    fn add(&mut self, frame: Frame, class: u8) -> Descriptor {
        let Frame { facts, to, .. } = frame;
        let slot = self.hold(Held::Frame(frame));
        let is_markable = facts.ecn == Ecn::Capable;
        Descriptor::new(slot, self.attachments[to as usize], class, facts.flow, facts.bytes, is_markable)
    }

    /// Removes a frame and returns its bytes, to be given back ([`Frames::reuse`]). `None`: the slot has none.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Vec<u8>> {
        if let Held::Frame(frame) = self.remove(slot) { Some(frame.bytes) } else { None }
    }

    /// Adds a pause.
    pub(super) fn pause(&mut self, pause: Pause) -> Descriptor {
        Descriptor::pause(self.hold(Held::Pause(pause)), SHORTEST)
    }

    /// Takes back a buffer.
    pub(super) fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Returns the packet in `slot`, for recordings.
    pub(super) fn content(&self, slot: Slot) -> Content<'_> {
        match &self.slots[slot as usize] {
            Held::Frame(frame) => {
                Content::Frame { to: HostId(frame.to), bytes: &frame.bytes, frame: frame.facts.bytes }
            }
            Held::Pause(pause) => Content::Pause(*pause),
            Held::Message(_, message) => Content::Message(*message),
            Held::Nothing => Content::Nothing,
        }
    }

    fn hold(&mut self, held: Held) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = held;
                slot
            }
            None => {
                self.slots.push(held);
                self.slots.len() as Slot - 1
            }
        }
    }

    fn remove(&mut self, slot: Slot) -> Held {
        self.free.push(slot);
        std::mem::replace(&mut self.slots[slot as usize], Held::Nothing)
    }
}

/// Reads the headers of a whole RoCEv2 packet.
fn roce(frame: &[u8], facts: &Facts) -> Option<Headers> {
    facts.ip.and_then(|_| Headers::parse(frame.get(usize::from(facts.payload_at)..)?))
}

impl Packets for Frames {
    fn name(&self, slot: Slot) -> u64 {
        if let Held::Frame(frame) = &self.slots[slot as usize] { frame.number } else { 0 }
    }

    fn kind(&self, slot: Slot) -> PacketKind {
        match &self.slots[slot as usize] {
            Held::Frame(frame) if frame.facts.has_data => PacketKind::Data,
            Held::Frame(_) | Held::Nothing => PacketKind::Ack,
            Held::Pause(_) => PacketKind::Pause,
            Held::Message(..) => PacketKind::NetRt,
        }
    }

    fn flow_hash(&self, slot: Slot) -> u64 {
        if let Held::Frame(frame) = &self.slots[slot as usize] { frame.facts.flow.into() } else { 0 }
    }

    fn has_payload(&self, slot: Slot) -> bool {
        self.kind(slot) == PacketKind::Data
    }

    fn discard(&mut self, slot: Slot) {
        if let Some(buffer) = self.take(slot) {
            self.reuse(buffer);
        }
    }

    fn mark(&mut self, slot: Slot) {
        if let Held::Frame(Frame { bytes, facts, .. }) = &mut self.slots[slot as usize] {
            mark(bytes, facts);
        }
    }

    fn set_class(&mut self, _: Slot, _: u8) {
        // The class is the descriptor's; the frame keeps the DSCP with which it was sent.
    }

    fn trim(&mut self, slot: Slot, _: u8) -> Trimmed {
        match &mut self.slots[slot as usize] {
            Held::Frame(Frame { bytes, facts, .. }) if facts.has_data => {
                if !trim(bytes, facts) {
                    return Trimmed::Impossible;
                }
                facts.has_data = false;
                facts.bytes = bytes.len().max(Ethernet::MINIMUM) as u16 + 4;
                Trimmed::To(facts.bytes)
            }
            Held::Frame(_) | Held::Pause(_) | Held::Message(..) | Held::Nothing => Trimmed::Whole,
        }
    }

    fn take_pause(&mut self, slot: Slot) -> Option<Pause> {
        if let Held::Pause(pause) = self.remove(slot) { Some(pause) } else { None }
    }

    fn put_pause(&mut self, _: Instant, pause: Pause) -> Descriptor {
        self.pause(pause)
    }

    /// Returns what a frame is to NetRT's switches. One with a wrong ICRC is a lost one: it passes, and its NIC drops
    /// it.
    fn netrt(&self, slot: Slot) -> NetRtPacket {
        match &self.slots[slot as usize] {
            Held::Frame(Frame { bytes, facts, from, to, .. }) => {
                let packet = bytes.get(usize::from(facts.payload_at)..).unwrap_or_default();
                let Some(headers) = roce(bytes, facts) else { return NetRtPacket::Other };
                let psns = headers.psns(packet, self.path_mtus[*from as usize]);
                if psns.is_none() || !headers.is_intact(packet) {
                    return NetRtPacket::Other;
                }
                let flow = Flow { src: HostId(*from), dst: HostId(*to), qp: headers.queue_pair() };
                let from = self.attachments[*from as usize].leaf;
                NetRtPacket::Data { flow, psn: headers.bth.psn, psns, from }
            }
            Held::Message(flow, _) => NetRtPacket::Message { from: self.attachments[flow.src.index()].leaf },
            Held::Pause(_) | Held::Nothing => NetRtPacket::Other,
        }
    }

    fn keep(&mut self, slot: Slot) -> u32 {
        let copy = match &self.slots[slot as usize] {
            Held::Frame(frame) => {
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.extend_from_slice(&frame.bytes);
                Some(Frame { bytes, ..*frame })
            }
            Held::Pause(_) | Held::Message(..) | Held::Nothing => None,
        };
        if let Some(place) = self.free_copies.pop() {
            self.copies[place as usize] = copy;
            return place;
        }
        self.copies.push(copy);
        self.copies.len() as u32 - 1
    }

    fn forget(&mut self, copy: u32) {
        if let Some(frame) = self.copies[copy as usize].take() {
            self.free_copies.push(copy);
            self.reuse(frame.bytes);
        }
    }

    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor {
        let mut bytes = self.spare.pop().unwrap_or_default();
        match &self.copies[copy as usize] {
            Some(frame) => {
                bytes.extend_from_slice(&frame.bytes);
                self.add(Frame { bytes, ..*frame }, class)
            }
            // Of pauses and messages no copies are kept; such a packet has no effect where it arrives.
            None => Descriptor::pause(self.hold(Held::Nothing), SHORTEST),
        }
    }

    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)> {
        if let Held::Message(flow, message) = self.remove(slot) { Some((flow, message)) } else { None }
    }

    fn put_message(&mut self, _: Instant, flow: Flow, message: Message, class: u8) -> Descriptor {
        let frame = (Header::ROCE.get() as usize + message.length()) as u16;
        let entropy = mix64(u64::from(flow.src.0) << 32 | u64::from(flow.qp.0)) as u32;
        let [from, to] = [flow.src, flow.dst].map(|host| self.attachments[host.index()]);
        let slot = self.hold(Held::Message(flow, message));
        Descriptor { port: from.port, ..Descriptor::new(slot, to, class, entropy, frame, false) }
    }
}
