//! Edge of a partition: hosts, the packets in the fabric, and the links that carry them between switches.

use std::sync::Arc;

use selvedge_memory::Table;
use selvedge_nic::REQUESTS;
use selvedge_switch::descriptor::{Attachment, Descriptor, Slot};
use selvedge_switch::loss::LaneLoss;
use selvedge_switch::port::Egress;
use selvedge_switch::{Environment, NetRtPacket, Note, Packets, Switches, Trimmed};
use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_transport::netrt::Flow;
use selvedge_units::{Bytes, HostId, Instant, QpNumber, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::psns;
use selvedge_wire::{Ecn, Header, Packet, Pause, Repr};

use super::fabric::FabricParams;
use super::log::Log;
use super::tally::{Tally, kind_of};
use crate::kernel;
use crate::kernel::calendar::Calendar;
use crate::kernel::inbox::WriteMessage;
use crate::net::host::Host;
use crate::net::places::Places;
use crate::net::pool::Pool;
use crate::net::records::{Record, Records};

/// Edge of a partition's switches. Code that `RECORDED` guards is compiled separately and costs other runs nothing.
pub(crate) struct Edge<const RECORDED: bool> {
    pub(crate) fabric: Arc<FabricParams>,
    pub(crate) calendar: Calendar<Descriptor>,
    pub(crate) pool: Pool,
    pub(crate) records: Records,
    pub(crate) hosts: Table<Host>,
    /// Loss processes of the links into the partition's ports, indexed by port.
    pub(crate) losses: Vec<Option<Box<LaneLoss>>>,
    /// Copies of packets that NetRT's switches keep.
    copies: Places<Copied>,
    pub(crate) tally: Tally,
    /// Events since the last window; stays empty unless `RECORDED`.
    pub(crate) log: Log,
}

/// Copy of a packet.
struct Copied {
    packet: Packet,
    /// Headers of a packet of an application.
    headers: Option<Headers>,
}

impl<const RECORDED: bool> Edge<RECORDED> {
    /// Creates the edge of a partition, without hosts.
    pub(crate) fn new(fabric: Arc<FabricParams>, calendar: Calendar<Descriptor>) -> Self {
        Self {
            fabric,
            calendar,
            pool: Pool::new(),
            records: Records::default(),
            hosts: Table::new(),
            losses: Vec::new(),
            copies: Places::NEW,
            tally: Tally::default(),
            log: Log::default(),
        }
    }

    /// Adds a packet that a switch has made; returns its descriptor, as if it came from the port of its source.
    fn put(&mut self, packet: &Packet, headers: Option<Headers>) -> Descriptor {
        let slot = self.pool.put(*packet);
        self.records.take_in(slot, None, headers);
        if !self.records.is_empty() {
            self.records.put(slot, Record::Nothing);
        }
        let port = self.fabric.attachment[packet.src.index()].port;
        Descriptor { port, ..Descriptor::of(packet, slot, self.fabric.attachment[packet.dst.index()]) }
    }

    fn leaf_of(&self, host: HostId) -> u32 {
        self.fabric.attachment[host.index()].leaf
    }
}

impl<const RECORDED: bool> Packets for Edge<RECORDED> {
    fn name(&self, slot: Slot) -> u64 {
        let packet = self.pool.get(slot);
        mix64(packet.sent_at.as_ps() ^ u64::from(packet.src.0) << 40)
    }

    fn kind(&self, slot: Slot) -> PacketKind {
        kind_of(self.pool.first(slot).0)
    }

    fn flow_hash(&self, slot: Slot) -> u64 {
        let packet = self.pool.first(slot).0;
        mix64(u64::from(packet.src.0) << 32 | u64::from(packet.qp.0)) ^ u64::from(packet.dst.0)
    }

    fn has_payload(&self, slot: Slot) -> bool {
        match self.pool.first(slot).0.repr {
            Repr::Data(_) => true,
            Repr::Tcp(tcp) => tcp.payload() > 0,
            _ => false,
        }
    }

    fn discard(&mut self, slot: Slot) {
        self.pool.release(slot);
    }

    fn mark(&mut self, slot: Slot) {
        mark(&mut self.pool, &mut self.tally, slot);
    }

    fn set_class(&mut self, slot: Slot, class: u8) {
        self.pool.get_mut(slot).class = class;
    }

    fn trim(&mut self, slot: Slot, class: u8) -> Trimmed {
        let packet = self.pool.get_mut(slot);
        packet.class = class;
        if packet.trim() { Trimmed::To(packet.frame) } else { Trimmed::Whole }
    }

    fn take_pause(&mut self, slot: Slot) -> Option<Pause> {
        let Repr::Pause(pause) = self.pool.take(slot).repr else { return None };
        self.tally.delivered[PacketKind::Pause] += 1;
        Some(pause)
    }

    fn put_pause(&mut self, now: Instant, pause: Pause) -> Descriptor {
        let packet = Packet {
            sent_at: now,
            src: HostId(u32::MAX),
            dst: HostId(u32::MAX),
            qp: QpNumber(0),
            slot: 0,
            entropy: 0,
            frame: Header::MINIMUM_FRAME.get() as u16,
            class: 0,
            ecn: Ecn::NotCapable,
            repr: Repr::Pause(pause),
        };
        let slot = self.pool.put(packet);
        Descriptor::of(&packet, slot, Attachment::NONE)
    }

    fn netrt(&self, slot: Slot) -> NetRtPacket {
        let packet = self.pool.get(slot);
        let from = self.leaf_of(packet.src);
        match packet.repr {
            Repr::Data(data) if !data.trimmed => {
                let psns = if packet.slot == REQUESTS {
                    let headers = self.records.headers(slot);
                    let length = headers.reth.map_or(0, |reth| reth.length);
                    psns(headers.bth.opcode, length, u32::from(self.fabric.nic.frames.mtu))
                } else {
                    Some(1)
                };
                NetRtPacket::Data { flow: flow_of(&packet), psn: data.psn, psns, from }
            }
            Repr::NetRt(_) => NetRtPacket::Message { from },
            _ => NetRtPacket::Other,
        }
    }

    fn keep(&mut self, slot: Slot) -> u32 {
        let packet = self.pool.get(slot);
        let headers = (packet.slot == REQUESTS).then(|| self.records.headers(slot));
        self.copies.put(Copied { packet, headers })
    }

    fn forget(&mut self, copy: u32) {
        self.copies.take(copy);
    }

    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor {
        let &mut Copied { mut packet, headers } = self.copies.get_mut(copy);
        packet.class = class;
        if let Repr::Data(data) = &mut packet.repr {
            data.retransmission = true;
        }
        self.put(&packet, headers)
    }

    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)> {
        let packet = self.pool.take(slot);
        let Repr::NetRt(message) = packet.repr else { return None };
        self.tally.delivered[PacketKind::NetRt] += 1;
        Some((flow_of(&packet), message.message()))
    }

    fn put_message(&mut self, now: Instant, flow: Flow, message: Message, class: u8) -> Descriptor {
        let frame = Header::ROCE + Bytes::new(message.length() as u64);
        let packet = Packet {
            sent_at: now,
            src: flow.src,
            dst: flow.dst,
            qp: flow.qp,
            slot: 0,
            entropy: mix64(u64::from(flow.src.0) << 32 | u64::from(flow.qp.0)) as u32,
            frame: frame.get() as u16,
            class,
            ecn: Ecn::NotCapable,
            repr: Repr::NetRt(message.into()),
        };
        self.put(&packet, None)
    }
}

impl<const RECORDED: bool> Environment for Edge<RECORDED> {
    const RECORDED: bool = RECORDED;

    #[inline(always)]
    fn send(&mut self, port: &Egress, arrival: Instant, packet: &Descriptor) {
        self.calendar.send(port.peer_node, arrival.as_ps(), port.peer_port, packet);
    }

    fn leave_slowly(&mut self, switches: &Switches, at: u32, packet: &Descriptor) {
        self.write_records(switches, at, packet);
    }

    fn lost(&mut self, now: Instant, at: u32, packet: &Descriptor) -> Option<DropReason> {
        let loss = self.losses.get_mut(at as usize)?.as_mut()?;
        loss.lost(now, kind_of(self.pool.first(packet.slot).0), u64::from(packet.frame))
    }

    fn drop(&mut self, switches: &Switches, at: u32, slot: Slot, reason: DropReason) {
        let packet = self.pool.take(slot);
        if RECORDED {
            self.note_dropped(switches, at, &packet, reason);
        }
        self.tally.drops[kind_of(&packet)].count(reason);
        self.tally.trimmed_drops += u64::from(packet.is_trimmed());
    }

    fn set_host_timer(&mut self, host: u32, time: u64) {
        self.hosts[host].timer_at = time;
    }

    #[cold]
    fn note(&mut self, switches: &Switches, event: Note<'_>) {
        match event {
            Note::Sent { at, slot, serialisation } => self.note_sent(switches, at, slot, serialisation),
            Note::Arrived { at, slot } => self.note_arrived(switches, at, slot),
            Note::Queued { at, out, slot } => self.note_queued(switches, at, out, slot),
            Note::Trimmed { at, out, before } => self.note_trimmed(switches, at, out, before),
            Note::Paused { at } => self.note_paused(switches, at),
            Note::Link { at, up } => self.note_link(switches, at, up),
            Note::Filled { at, out, frame } => self.note_filled(switches, at, out, frame),
        }
    }
}

/// Marks a packet: congestion experienced.
pub(crate) fn mark(pool: &mut Pool, tally: &mut Tally, slot: Slot) {
    pool.get_mut(slot).ecn = Ecn::Marked;
    tally.ecn_marks += 1;
}

fn flow_of(packet: &Packet) -> Flow {
    Flow { src: packet.src, dst: packet.dst, qp: packet.qp }
}

impl kernel::nodes::Message for Descriptor {
    #[inline(always)]
    fn at(&self) -> u32 {
        self.at
    }
    #[inline(always)]
    fn port(&self) -> u16 {
        self.port
    }
    #[inline(always)]
    fn set_arrival(&mut self, at: u32, port: u16) {
        (self.at, self.port) = (at, port);
    }
}

/// Descriptor that lies somewhere else, as a whole.
impl WriteMessage<Descriptor> for &Descriptor {
    #[inline(always)]
    unsafe fn write(self, place: *mut Descriptor) {
        // SAFETY: the caller passes a place in a block of an inbox.
        unsafe { place.write(*self) };
    }
    #[inline(always)]
    fn show<R>(self, see: impl FnOnce(&Descriptor) -> R) -> R {
        see(self)
    }
}
