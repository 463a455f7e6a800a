//! Tunnels that begin here, and the messages that they carry.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_transport::endpoint::{self, Completion, Handled};
use selvedge_transport::eqds::{EqdsParams, Event, Interest, Messages, Paths, Sender, State, Transmit};
use selvedge_transport::{Cx, HoldReason, Limits};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, Rate, mix64};
use selvedge_wire::eqds::{Control, Data};
use selvedge_wire::{Ecn, Packet, Repr};

use super::{Outward, TUNNEL, teardown};
use crate::eqif::{EqifSet, NATIVE};
use crate::nic::{Deadlines, Nic, NicParams, put};
use crate::slot::TUNNELS;

/// Sending end of a tunnel, with the queue of its messages.
#[derive(Debug)]
pub(super) struct Outbound {
    sender: Sender<Piece>,
    dst: HostId,
    paths: Paths,
    /// Messages with packets that were never sent, in the order of their turns.
    queue: VecDeque<u32>,
    /// Message that has sent last, to which requests for credit are attributed.
    last: QpNumber,
    /// Whether the tunnel is in the ready ring.
    queued: bool,
    /// Earliest entry of this tunnel in the heap of deadlines.
    armed: Instant,
}

impl Outbound {
    /// Returns the bytes of the first waiting packet, if there is one.
    #[inline]
    fn head(&self, messages: &[Option<Message>], mtu: u16, header: u32) -> Option<u32> {
        Some(u32::from(self.first(messages)?.payload(mtu)) + header)
    }

    /// Returns the message whose turn it is.
    #[inline]
    fn first<'a>(&self, messages: &'a [Option<Message>]) -> Option<&'a Message> {
        messages[*self.queue.front()? as usize].as_ref()
    }

    /// Updates the ready ring and the deadlines of the tunnel, which is in `slot`, after a change of its state.
    #[inline(always)]
    fn settle(&mut self, slot: u32, messages: &[Option<Message>], mtu: u16, eqds: &EqdsParams, to: Turns<'_>) {
        if !self.queued && !self.sender.is_out_of_credit(eqds) {
            let head = self.head(messages, mtu, eqds.header);
            if self.sender.next(eqds, head) != Interest::Nothing {
                return self.stand(slot, to);
            }
        }
        self.arm(slot, to.deadlines);
    }

    /// Adds the tunnel to the ready ring.
    #[inline(always)]
    fn stand(&mut self, slot: u32, to: Turns<'_>) {
        self.queued = true;
        match to.eqifs {
            None => to.ready.push_back(slot),
            Some(eqifs) => eqifs.join(to.ready, NATIVE, TUNNELS.place(slot)),
        }
        self.arm(slot, to.deadlines);
    }

    #[inline(always)]
    fn arm(&mut self, slot: u32, deadlines: &mut Deadlines) {
        let at = self.sender.poll_timeout();
        if at < self.armed {
            self.armed = at;
            super::arm(deadlines, at, slot);
        }
    }
}

/// State of a NIC in which the turns of tunnels are kept.
struct Turns<'a> {
    ready: &'a mut VecDeque<u32>,
    eqifs: &'a mut Option<Box<EqifSet>>,
    deadlines: &'a mut Deadlines,
}

/// A packet of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    message: u32,
    index: u32,
    payload: u16,
}

/// A message being sent.
#[derive(Debug)]
pub(super) struct Message {
    qp: QpNumber,
    context: u32,
    tunnel: u32,
    class: u8,
    /// Payload of the last packet in bytes.
    last_payload: u16,
    packets: u32,
    /// Index of the first packet that was never sent.
    next: u32,
    /// Packets that have not been acknowledged.
    missing: u32,
}

impl Message {
    /// Returns the payload in bytes of the packet whose turn it is.
    fn payload(&self, mtu: u16) -> u16 {
        if self.next + 1 == self.packets { self.last_payload } else { mtu }
    }
}

impl Nic {
    /// Gives a message to the tunnel to its destination, which is created if necessary.
    #[cold]
    pub(crate) fn open_message(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        eqds: &EqdsParams,
        outgoing: &endpoint::Message,
    ) -> (QpNumber, u32) {
        let mtu = Bytes::new(u64::from(params.frames.mtu));
        let packets = outgoing.size.pieces(mtu);
        let qp = self.name_qp();
        let tunnel = self.tunnel_to(outgoing.dst, outgoing.entropy);
        let message = Message {
            qp,
            context: outgoing.context,
            tunnel,
            class: outgoing.class,
            last_payload: (outgoing.size - mtu * (packets - 1)).get() as u16,
            packets: packets as u32,
            next: 0,
            missing: packets as u32,
        };
        let slot = put(&mut self.tunnels.messages, &mut self.tunnels.free_messages, message);
        let state = &mut self.tunnels.outbound[tunnel as usize];
        state.queue.push_back(slot);
        let random = mix64(u64::from(self.id.0) << 32 ^ u64::from(qp.0)) as u32;
        let bytes = outgoing.size.get() + packets * u64::from(eqds.header);
        state.sender.supply(eqds, cx.now, bytes, random);
        if eqds.life.most != u32::MAX {
            self.shed_outbound(params, eqds, tunnel);
        }
        self.refresh_tunnel(params.frames.mtu, eqds, tunnel);
        (qp, TUNNELS.slot(slot))
    }

    /// Returns the tunnel to a host.
    fn tunnel_to(&mut self, dst: HostId, key: u32) -> u32 {
        if let Some(tunnel) = self.tunnels.by_destination.get((dst, TUNNEL)) {
            return tunnel;
        }
        let tunnel = self.tunnels.outbound.len() as u32;
        self.tunnels.outbound.push(Outbound {
            sender: Sender::new(),
            dst,
            paths: Paths::new(key.into()),
            queue: VecDeque::new(),
            last: QpNumber(0),
            queued: false,
            armed: Instant::NEVER,
        });
        self.tunnels.by_destination.insert((dst, TUNNEL), tunnel);
        tunnel
    }

    /// Returns the next packet of the tunnel at `slot`, which comes up in the ready ring.
    #[inline(never)]
    pub(crate) fn serve_tunnel(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        eqds: &EqdsParams,
        slot: u32,
        packet: &mut Packet,
    ) -> bool {
        let tunnel = TUNNELS.place(slot);
        let (messages, mtu) = (&mut self.tunnels.messages, params.frames.mtu);
        let state = &mut self.tunnels.outbound[tunnel as usize];
        state.queued = false;
        let head = state.head(messages, mtu, eqds.header);
        let queue = &mut state.queue;
        let sent = state.sender.poll_transmit(eqds, cx.now, head, || take_turn(queue, messages, mtu, eqds));
        let Some(Transmit { cargo, seq, pull_target, flags, retransmission, another }) = sent else { return false };
        let message = cargo.and_then(|piece| messages[piece.message as usize].as_ref());
        let (index, payload) = cargo.map_or((0, 0), |piece| (piece.index, piece.payload));
        let class = message.or_else(|| state.first(messages)).map_or(params.frames.ack_class, |message| message.class);
        let (path, entropy) = state.paths.next(eqds.paths);
        state.sender.note_path(eqds, seq, path);
        state.last = message.map_or(state.last, |message| message.qp);
        *packet = Packet {
            sent_at: cx.now,
            src: self.id,
            dst: state.dst,
            qp: state.last,
            slot,
            entropy,
            frame: if cargo.is_some() { payload + eqds.header as u16 } else { eqds.control_frame },
            class: message.map_or(params.frames.ack_class, |message| message.class),
            ecn: if params.frames.ecn_capable && cargo.is_some() { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::EqdsData(Data {
                seq,
                pull_target,
                index,
                payload,
                flags,
                eqif: 0,
                class,
                retransmission,
                trimmed: false,
            }),
        };
        if cargo.is_some() {
            self.stats.data_sent += 1;
            self.stats.retransmissions += u64::from(retransmission);
        } else {
            self.stats.acks_sent += 1;
        }
        let turns = Turns { ready: &mut self.ready, eqifs: &mut self.eqifs, deadlines: &mut self.deadlines };
        if another {
            // The sender is known to have another packet.
            state.stand(slot, turns);
        } else {
            state.settle(slot, messages, mtu, eqds, turns);
        }
        true
    }

    /// Handles a control packet for a tunnel that begins here.
    #[inline(never)]
    pub(crate) fn on_eqds_control(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        control: &Control,
    ) -> Handled {
        let Some(eqds) = &params.eqds else { return Handled::Unknown };
        if let Some(pacer) = &mut self.tunnels.pacer {
            pacer.note_control(cx.now);
            self.deadlines.set_pull(pacer.poll_timeout());
        }
        let tunnel = TUNNELS.place(packet.slot);
        let (messages, free) = (&mut self.tunnels.messages, &mut self.tunnels.free_messages);
        let completions = &mut self.tunnels.completions;
        let Some(state) = self.tunnels.outbound.get_mut(tunnel as usize).filter(|state| state.dst == packet.src) else {
            return self.on_carrier_control(cx, params, packet, control);
        };
        self.stats.acks_received += 1;
        state.sender.handle_control(eqds, cx.now, control, |piece| {
            let place = &mut messages[piece.message as usize];
            let Some(message) = place else { return };
            message.missing -= 1;
            if message.missing == 0 {
                completions.push_back(Completion::Sent { qp: message.qp, context: message.context });
                *place = None;
                free.push(piece.message);
            }
        });
        let turns = Turns { ready: &mut self.ready, eqifs: &mut self.eqifs, deadlines: &mut self.deadlines };
        state.settle(packet.slot, messages, params.frames.mtu, eqds, turns);
        Handled::Taken
    }

    pub(super) fn on_outbound_deadline(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        eqds: &EqdsParams,
        at: Instant,
        tunnel: u32,
    ) {
        let state = &mut self.tunnels.outbound[tunnel as usize];
        if state.armed != at {
            return;
        }
        state.armed = Instant::NEVER;
        cx.about(state.last);
        if state.sender.handle_timeout(eqds, cx.now) {
            self.stats.timeouts += 1;
        }
        match state.sender.poll_event() {
            None => {}
            Some(Event::Idle) => self.close_outbound(params, eqds, tunnel),
            // Messages have no way to fail: their host is tried again.
            Some(Event::PeerUnreachable) => state.sender.retry(eqds, cx.now),
        }
        self.refresh_tunnel(params.frames.mtu, eqds, tunnel);
    }

    /// Closes a tunnel and tells its receiver.
    #[cold]
    fn close_outbound(&mut self, params: &NicParams, eqds: &EqdsParams, tunnel: u32) {
        let state = &mut self.tunnels.outbound[tunnel as usize];
        let to = Outward { dst: state.dst, slot: TUNNELS.slot(tunnel), eqif: NATIVE };
        let farewell = state.sender.close(eqds).filter(|_| eqds.life.tells);
        if let Some(end) = farewell {
            self.answers.push_back(teardown(self.id, params, eqds, to, end));
        }
    }

    /// Closes the idle tunnel that has rested longest if more are open than settings allow, apart from `newest`.
    #[cold]
    fn shed_outbound(&mut self, params: &NicParams, eqds: &EqdsParams, newest: u32) {
        let is_open = |state: &Outbound| !matches!(state.sender.state(), State::Closed(_));
        let outbound = &self.tunnels.outbound;
        if outbound.iter().filter(|state| is_open(state)).count() <= eqds.life.most as usize {
            return;
        }
        let others = (0..).zip(outbound).filter(|(place, _)| *place != newest);
        let idle = others.filter(|(_, state)| is_open(state) && state.sender.is_done());
        if let Some((oldest, _)) = idle.min_by_key(|(_, state)| state.sender.active_at()) {
            self.close_outbound(params, eqds, oldest);
        }
    }

    /// Updates the ready ring and the deadlines of a tunnel after a change of its state.
    fn refresh_tunnel(&mut self, mtu: u16, eqds: &EqdsParams, tunnel: u32) {
        let state = &mut self.tunnels.outbound[tunnel as usize];
        let turns = Turns { ready: &mut self.ready, eqifs: &mut self.eqifs, deadlines: &mut self.deadlines };
        state.settle(TUNNELS.slot(tunnel), &self.tunnels.messages, mtu, eqds, turns);
    }

    #[cold]
    pub(crate) fn hold_message(&self, slot: u32, qp: QpNumber) -> Option<HoldReason> {
        let message = self.message(slot, qp)?;
        let state = &self.tunnels.outbound[message.tunnel as usize];
        Some(match () {
            () if state.queued => HoldReason::Link,
            () if state.sender.demand() > 0 => HoldReason::Window,
            () => HoldReason::Acks,
        })
    }

    /// Returns whether the message's tunnel waits to retransmit, and the message's packets that were never sent.
    #[cold]
    pub(crate) fn standing_of_message(&self, slot: u32, qp: QpNumber) -> Option<(bool, u64)> {
        let message = self.message(slot, qp)?;
        let has_lost = self.tunnels.outbound[message.tunnel as usize].sender.has_lost();
        Some((has_lost, u64::from(message.packets - message.next)))
    }

    #[cold]
    pub(crate) fn limits_of_message(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        let message = self.message(slot, qp)?;
        let sender = &self.tunnels.outbound[message.tunnel as usize].sender;
        Some(Limits {
            window: Bytes::new(sender.credit().into()),
            rate: Rate::MAX,
            in_flight: u64::from(message.missing - (message.packets - message.next)),
        })
    }

    fn message(&self, slot: u32, qp: QpNumber) -> Option<&Message> {
        let place = self.tunnels.messages.get(TUNNELS.place(slot) as usize)?;
        place.as_ref().filter(|message| message.qp == qp)
    }

    /// Returns the traffic class of the next packet of the tunnel in a slot.
    pub(crate) fn tunnel_class(&self, slot: u32) -> Option<u8> {
        let state = self.tunnels.outbound.get(TUNNELS.place(slot) as usize)?;
        let message = state.queue.front().and_then(|message| self.tunnels.messages[*message as usize].as_ref())?;
        Some(message.class)
    }
}

/// Takes the next packet of the message whose turn it is; the message goes to the back if it has more packets and
/// messages take turns.
fn take_turn(queue: &mut VecDeque<u32>, messages: &mut [Option<Message>], mtu: u16, eqds: &EqdsParams) -> (Piece, u32) {
    let number = *queue.front().expect("the tunnel asks only if a message waits");
    let message = messages[number as usize].as_mut().expect("messages in the queue are not all sent");
    let piece = Piece { message: number, index: message.next, payload: message.payload(mtu) };
    message.next += 1;
    if message.next == message.packets {
        queue.pop_front();
    } else if queue.len() > 1 && eqds.messages == Messages::Turns {
        queue.rotate_left(1);
    }
    (piece, u32::from(piece.payload) + eqds.header)
}
