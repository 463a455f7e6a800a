//! Tunnels that begin here, and the messages that they carry.

use alloc::collections::VecDeque;

use selvedge_transport::endpoint::{Alarm, Completion, Context, Handled, Message};
use selvedge_transport::eqds::{EqdsParams, Event, Interest, Messages, Paths, Sender, State, Transmit};
use selvedge_transport::places::Places;
use selvedge_units::{HostId, Instant, QpNumber, mix64};
use selvedge_wire::eqds::{Control, Data};
use selvedge_wire::{Ecn, Packet, Repr};

use super::{Outward, TUNNEL, Tunnels, teardown};
use crate::eqif::NATIVE;

/// Sending end of a tunnel, with the queue of its messages.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) sender: Sender<Piece>,
    dst: HostId,
    paths: Paths,
    /// Messages with packets that were never sent, in the order of their turns.
    queue: VecDeque<u32>,
    /// Message that has sent last, to which requests for credit are attributed.
    last: QpNumber,
    /// Whether the tunnel waits for its turn at the link.
    pub(super) queued: bool,
    alarm: Alarm,
}

impl Outbound {
    /// Returns the bytes of the first waiting packet, if there is one.
    #[inline]
    fn head(&self, messages: &Places<Outgoing>, mtu: u16, header: u32) -> Option<u32> {
        Some(u32::from(self.first(messages)?.payload(mtu)) + header)
    }

    /// Returns the message whose turn it is.
    #[inline]
    pub(super) fn first<'a>(&self, messages: &'a Places<Outgoing>) -> Option<&'a Outgoing> {
        messages.get(*self.queue.front()?)
    }

    /// Updates the turn and the deadline of the tunnel, which is entry `entry`, after a change of its state.
    #[inline(always)]
    fn settle(&mut self, cx: &mut Context<'_, '_, EqdsParams>, messages: &Places<Outgoing>, entry: u32) {
        if !self.queued && !self.sender.is_out_of_credit(cx.params) {
            let head = self.head(messages, cx.frames.mtu, cx.params.header);
            if self.sender.next(cx.params, head) != Interest::Nothing {
                return self.stand(cx, entry);
            }
        }
        self.alarm.set_at(cx, entry, self.sender.poll_timeout());
    }

    /// Gives the tunnel a turn at the link.
    #[inline(always)]
    fn stand(&mut self, cx: &mut Context<'_, '_, EqdsParams>, entry: u32) {
        self.queued = true;
        cx.ready(entry);
        self.alarm.set_at(cx, entry, self.sender.poll_timeout());
    }
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
pub(super) struct Outgoing {
    pub(super) qp: QpNumber,
    context: u32,
    pub(super) tunnel: u32,
    pub(super) class: u8,
    /// Payload of the last packet in bytes.
    last_payload: u16,
    pub(super) packets: u32,
    /// Index of the first packet that was never sent.
    pub(super) next: u32,
    /// Packets that have not been acknowledged.
    pub(super) missing: u32,
}

impl Outgoing {
    /// Returns the payload in bytes of the packet whose turn it is.
    fn payload(&self, mtu: u16) -> u16 {
        if self.next + 1 == self.packets { self.last_payload } else { mtu }
    }
}

impl Tunnels {
    /// Gives a message to the tunnel to its destination, which is created if necessary; returns its place.
    pub(super) fn open(&mut self, cx: &mut Context<'_, '_, EqdsParams>, qp: QpNumber, message: &Message) -> u32 {
        let (eqds, packets) = (cx.params, cx.frames.packets(message.size));
        let tunnel = self.tunnel_to(message.dst, message.entropy);
        let place = self.messages.put(Outgoing {
            qp,
            context: message.context,
            tunnel,
            class: message.class,
            last_payload: cx.frames.payload(message.size, packets - 1),
            packets: packets as u32,
            next: 0,
            missing: packets as u32,
        });
        let state = &mut self.outbound[tunnel as usize];
        state.queue.push_back(place);
        let random = mix64(u64::from(cx.port.host.0) << 32 ^ u64::from(qp.0)) as u32;
        let bytes = message.size.get() + packets * u64::from(eqds.header);
        state.sender.supply(eqds, cx.now(), bytes, random);
        if eqds.life.most != u32::MAX {
            self.shed_outbound(cx, tunnel);
        }
        self.outbound[tunnel as usize].settle(cx, &self.messages, tunnel);
        place
    }

    /// Returns the tunnel to a host.
    fn tunnel_to(&mut self, dst: HostId, key: u32) -> u32 {
        if let Some(tunnel) = self.by_destination.get((dst, TUNNEL)) {
            return tunnel;
        }
        let tunnel = self.outbound.len() as u32;
        self.outbound.push(Outbound {
            sender: Sender::new(),
            dst,
            paths: Paths::new(key.into()),
            queue: VecDeque::new(),
            last: QpNumber(0),
            queued: false,
            alarm: Alarm::default(),
        });
        self.by_destination.insert((dst, TUNNEL), tunnel);
        tunnel
    }

    /// Writes the next packet of a tunnel, whose turn has come, to `packet`; returns whether there is one.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, cx: &mut Context<'_, '_, EqdsParams>, tunnel: u32, packet: &mut Packet) -> bool {
        let (eqds, frames, messages) = (cx.params, cx.frames, &mut self.messages);
        let Some(state) = self.outbound.get_mut(tunnel as usize) else { return false };
        state.queued = false;
        let head = state.head(messages, frames.mtu, eqds.header);
        let queue = &mut state.queue;
        let sent = state.sender.poll_transmit(eqds, cx.now(), head, || take_turn(queue, messages, frames.mtu, eqds));
        let Some(Transmit { cargo, seq, pull_target, flags, retransmission, another }) = sent else { return false };
        let message = cargo.and_then(|piece| messages.get(piece.message));
        let (index, payload) = cargo.map_or((0, 0), |piece| (piece.index, piece.payload));
        let class = message.or_else(|| state.first(messages)).map_or(frames.ack_class, |message| message.class);
        let (path, entropy) = state.paths.next(eqds.paths);
        state.sender.note_path(eqds, seq, path);
        state.last = message.map_or(state.last, |message| message.qp);
        *packet = Packet {
            sent_at: cx.now(),
            src: cx.port.host,
            dst: state.dst,
            qp: state.last,
            slot: cx.slot(tunnel),
            entropy,
            frame: if cargo.is_some() { payload + eqds.header as u16 } else { eqds.control_frame },
            class: message.map_or(frames.ack_class, |message| message.class),
            ecn: if frames.ecn_capable && cargo.is_some() { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::EqdsData(Data {
                seq,
                pull_target,
                index,
                payload,
                flags,
                eqif: NATIVE,
                class,
                retransmission,
                trimmed: false,
            }),
        };
        if cargo.is_some() {
            cx.port.stats.data_sent += 1;
            cx.port.stats.retransmissions += u64::from(retransmission);
        } else {
            cx.port.stats.acks_sent += 1;
        }
        if another {
            // The sender is known to have another packet.
            state.stand(cx, tunnel);
        } else {
            state.settle(cx, messages, tunnel);
        }
        true
    }

    /// Handles a control packet for a tunnel that begins here.
    #[inline(never)]
    pub(super) fn handle_control(
        &mut self,
        cx: &mut Context<'_, '_, EqdsParams>,
        packet: &Packet,
        control: &Control,
        tunnel: u32,
    ) -> Handled {
        self.note_control(cx);
        let Self { outbound, messages, completions, .. } = self;
        let Some(state) = outbound.get_mut(tunnel as usize).filter(|state| state.dst == packet.src) else {
            return Handled::Unknown;
        };
        cx.port.stats.acks_received += 1;
        state.sender.handle_control(cx.params, cx.now(), control, |piece| {
            let Some(message) = messages.get_mut(piece.message) else { return };
            message.missing -= 1;
            if message.missing == 0 {
                completions.push_back(Completion::Sent { qp: message.qp, context: message.context });
                messages.take(piece.message);
            }
        });
        state.settle(cx, messages, tunnel);
        Handled::Taken
    }

    pub(super) fn on_outbound_deadline(&mut self, cx: &mut Context<'_, '_, EqdsParams>, at: Instant, tunnel: u32) {
        let Some(state) = self.outbound.get_mut(tunnel as usize) else { return };
        if !state.alarm.take(at) {
            return;
        }
        cx.cx.about(state.last);
        if state.sender.handle_timeout(cx.params, cx.now()) {
            cx.port.stats.timeouts += 1;
        }
        match state.sender.poll_event() {
            None => {}
            Some(Event::Idle) => self.close_outbound(cx, tunnel),
            // Messages have no way to fail: their host is tried again.
            Some(Event::PeerUnreachable) => state.sender.retry(cx.params, cx.now()),
        }
        self.outbound[tunnel as usize].settle(cx, &self.messages, tunnel);
    }

    /// Closes a tunnel and tells its receiver.
    #[cold]
    fn close_outbound(&mut self, cx: &mut Context<'_, '_, EqdsParams>, tunnel: u32) {
        let state = &mut self.outbound[tunnel as usize];
        let to = Outward { dst: state.dst, slot: cx.slot(tunnel), eqif: NATIVE };
        let farewell = state.sender.close(cx.params).filter(|_| cx.params.life.tells);
        if let Some(end) = farewell {
            cx.port.answers.push_back(teardown(cx.port.host, cx.frames, cx.params, to, end));
        }
    }

    /// Closes the idle tunnel that has rested longest if more are open than settings allow, apart from `newest`.
    #[cold]
    fn shed_outbound(&mut self, cx: &mut Context<'_, '_, EqdsParams>, newest: u32) {
        let is_open = |state: &Outbound| !matches!(state.sender.state(), State::Closed(_));
        let outbound = &self.outbound;
        if outbound.iter().filter(|state| is_open(state)).count() <= cx.params.life.most as usize {
            return;
        }
        let others = (0..).zip(outbound).filter(|(place, _)| *place != newest);
        let idle = others.filter(|(_, state)| is_open(state) && state.sender.is_done());
        if let Some((oldest, _)) = idle.min_by_key(|(_, state)| state.sender.active_at()) {
            self.close_outbound(cx, oldest);
        }
    }
}

/// Takes the next packet of the message whose turn it is; the message goes to the back if it has more packets and
/// messages take turns.
fn take_turn(queue: &mut VecDeque<u32>, messages: &mut Places<Outgoing>, mtu: u16, eqds: &EqdsParams) -> (Piece, u32) {
    let number = *queue.front().expect("the tunnel asks only if a message waits");
    let message = messages.get_mut(number).expect("messages in the queue are not all sent");
    let piece = Piece { message: number, index: message.next, payload: message.payload(mtu) };
    message.next += 1;
    if message.next == message.packets {
        queue.pop_front();
    } else if queue.len() > 1 && eqds.messages == Messages::Turns {
        queue.rotate_left(1);
    }
    (piece, u32::from(piece.payload) + eqds.header)
}
