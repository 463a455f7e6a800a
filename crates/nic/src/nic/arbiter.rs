//! Arbitration: selects the next packet for the link.
//!
//! Design notes.
//! 1. *Ready ring.* A queue pair is in the ring at most once (`SendQp::queued`) and only while its engine has a packet
//!    to send now. It is served one packet (or [`NicParams::qp_burst`]) and goes to the back: round-robin, as the IRN
//!    paper's simulator polls its queue pairs (section 4.1). Where some classes are paused, queue pairs of other
//!    classes overtake; turns do not depend on the class otherwise.
//! 2. *Control packets first.* Acknowledgements and congestion notifications are made when data arrives and leave
//!    before the next data packet; they are short, and the other side waits for them.

use selvedge_transport::Cx;
use selvedge_units::{Bytes, HostId, Instant};
use selvedge_wire::{Data, Ecn, Packet, Repr};

use super::{FIRST_PSN, Nic, NicParams};
use crate::qp::SendQp;
use crate::slot::{Owner, TUNNELS};

impl Nic {
    /// Returns whether a packet may be ready to be sent.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.answers.is_empty() || !self.ready.is_empty()
    }

    /// Writes the next packet for the link to `packet` and returns whether there is one; if not, `packet` stays as it
    /// is. Call while the link is free; bit `i` of `paused` forbids class `i`.
    #[inline(always)]
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        (!self.answers.is_empty() && self.send_answer(params, paused, packet))
            || self.send_next(cx, params, paused, packet)
    }

    /// Sends a packet of the queue pair that is next in turn, if any has a packet to send.
    #[inline(always)]
    fn send_next(&mut self, cx: &mut Cx<'_>, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        if !params.mac_poll.is_zero() {
            return self.send_polled(cx, params, paused, packet);
        }
        loop {
            let Some(slot) = self.next_ready(params, paused) else { return false };
            if self.send_data(cx, params, slot, packet) {
                return true;
            }
        }
    }

    /// Returns the next queue pair in turn whose class is not paused, and moves it to the front of the ring.
    #[inline]
    fn next_ready(&mut self, params: &NicParams, paused: u8) -> Option<u32> {
        match paused & params.data_classes {
            0 => self.ready.front().copied(),
            some => self.next_unpaused(params, some),
        }
    }

    /// Like [`Nic::next_ready`], but where some classes are paused. Queue pairs that have to wait keep their places.
    #[cold]
    fn next_unpaused(&mut self, params: &NicParams, paused: u8) -> Option<u32> {
        if paused == params.data_classes {
            return None;
        }
        let waits = |slot: u32| match self.senders.get(slot as usize) {
            Some(place) => place.as_ref().is_some_and(|state| paused & (1 << state.class) != 0),
            None => {
                let class = self.verbs_class(params, slot);
                let class = class.or_else(|| self.tcp.class_at(slot)).or_else(|| self.tunnel_class(slot));
                let class = class.or_else(|| self.message_class(params, slot));
                class.is_some_and(|class| paused & (1 << class) != 0)
            }
        };
        let place = self.ready.iter().position(|&slot| !waits(slot))?;
        let first = self.ready.remove(place)?;
        self.ready.push_front(first);
        Some(first)
    }

    /// Sends the first control packet whose class is not paused.
    #[inline(always)]
    pub(crate) fn send_answer(&mut self, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        if paused == 0 {
            if !self.answers.pop_front(packet) {
                return false;
            }
        } else {
            let Some(next) = self.next_unpaused_answer(params, paused) else { return false };
            *packet = next;
        }
        if let Some(eqifs) = &mut self.eqifs {
            eqifs.on_answer_left();
        }
        self.stats.count_answer(&packet.repr);
        true
    }

    /// Removes the first control packet whose class is not paused, where some classes are. The others keep their
    /// places.
    #[cold]
    fn next_unpaused_answer(&mut self, params: &NicParams, paused: u8) -> Option<Packet> {
        if !paused & (params.data_classes | 1 << params.frames.ack_class | 1 << params.cnp_class) == 0 {
            return None;
        }
        let first = self.answers.iter().position(|packet| paused & (1 << packet.class) == 0)?;
        self.answers.remove(first)
    }

    /// Sends a packet of the queue pair in `slot`, which is at the front of the ready ring, if it still has one to
    /// send.
    #[inline(always)]
    pub(crate) fn send_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        let Some(state) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else {
            return self.send_another(cx, params, slot, packet);
        };
        let (last, last_payload) = (state.last, state.last_payload);
        let payload = |seq| if seq == last { last_payload } else { params.frames.mtu };
        let on_wire =
            |seq| Bytes::new(u64::from(payload(seq)) + u64::from(params.frames.header) + u64::from(params.frames.gap));
        let segment = state.sender.poll_transmit(cx, &mut self.pools, on_wire);
        if let Some(segment) = segment {
            let payload = payload(segment.seq);
            let data = Data {
                psn: segment.seq.to_psn(FIRST_PSN),
                payload,
                last: segment.seq == last,
                retransmission: segment.retransmission,
                trimmed: false,
            };
            *packet = state.packet(cx.now, self.id, slot, params, data);
            self.stats.data_sent += 1;
            self.stats.retransmissions += u64::from(segment.retransmission);
        }
        state.end_turn(slot, cx.now, &mut self.ready, &mut self.deadlines);
        if segment.is_some() && params.qp_burst > 1 {
            self.keep_turn(slot, params.qp_burst);
        }
        segment.is_some()
    }

    /// Returns the packets that repeated calls of [`Nic::poll_transmit`] would return if nothing else happened, where a
    /// single queue pair uses the link and has sent before. The last packet of its message is not included.
    #[inline]
    pub fn train(&self, params: &NicParams, paused: u8) -> Option<Train> {
        let &slot = self.ready.front().filter(|_| self.ready.len() == 1 && self.answers.is_empty())?;
        let state = self.senders.get(slot as usize).and_then(Option::as_ref)?;
        if params.qp_burst != 1 || !params.mac_poll.is_zero() || paused & (1 << state.class) != 0 {
            return None;
        }
        let packets = state.sender.train();
        let count = packets.end.min(state.last).checked_since(packets.start)?;
        let data = Data {
            psn: packets.start.to_psn(FIRST_PSN),
            payload: params.frames.mtu,
            last: false,
            retransmission: false,
            trimmed: false,
        };
        Some(Train { first: state.packet(Instant::ZERO, self.id, slot, params, data), count })
    }

    /// Notes that `packets` packets of a [`train`](Nic::train) have left, the last before `now`.
    #[inline]
    pub fn end_train(&mut self, now: Instant, packets: u64) {
        let Some(&slot) = self.ready.front() else { return };
        let Some(state) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        state.sender.on_train_sent(now, packets);
        self.stats.data_sent += packets;
        state.end_turn(slot, now, &mut self.ready, &mut self.deadlines);
    }

    /// Serves an owner of `slot`, at the front of the ready ring, that is not a queue pair (any more): tunnels first.
    #[inline(never)]
    fn send_another(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        self.ready.pop_front();
        match &params.eqds {
            // The most frequent case: packets of tunnels. Nothing is left to do after the call.
            Some(eqds) if TUNNELS.has(slot) && params.qp_burst == 1 => {
                self.serve_tunnel(cx, params, eqds, slot, packet)
            }
            _ => self.send_otherwise(cx, params, slot, packet),
        }
    }

    /// Serves an owner of `slot` that is no tunnel, or that sends several packets in its turn: for example a flow of
    /// TCP, or a message.
    #[cold]
    #[inline(never)]
    fn send_otherwise(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        let segment = match Owner::of(slot) {
            Owner::QueuePair => {
                self.free_senders.push(slot); // closed while it stood in the ring
                return false;
            }
            Owner::Tunnel => {
                let Some(eqds) = &params.eqds else { return false };
                let sent = self.serve_tunnel(cx, params, eqds, slot, packet);
                self.keep_turn(slot, params.qp_burst);
                return sent;
            }
            Owner::Edge => return self.serve_edge(cx, params, packet),
            Owner::Requests => return self.serve_requests(cx, params, packet),
            Owner::Acks => return self.serve_acks(cx.now, packet),
            Owner::Message => {
                let sent = self.serve_message(cx, params, slot, packet);
                if sent {
                    self.keep_turn(slot, params.qp_burst);
                }
                return sent;
            }
            Owner::Tcp => self.serve_tcp(cx, slot),
            // These are in the ring together as one entry, or not at all.
            Owner::EgressTunnel(_)
            | Owner::IngressTunnel(_)
            | Owner::Poll
            | Owner::Engine
            | Owner::Pacer
            | Owner::Headers => return false,
        };
        let Some(segment) = segment else { return false };
        *packet = segment;
        self.keep_turn(slot, params.qp_burst);
        true
    }

    /// Moves a queue pair that has sent a packet and is at the back of the ring to the front again, until it has sent
    /// `burst` packets.
    fn keep_turn(&mut self, slot: u32, burst: u32) {
        self.turn += 1;
        if self.turn < burst && self.ready.back() == Some(&slot) {
            self.ready.rotate_right(1);
        } else {
            self.turn = 0;
        }
    }
}

impl SendQp {
    /// Creates a packet of the queue pair in `slot` of host `src`.
    #[inline(always)]
    fn packet(&self, sent_at: Instant, src: HostId, slot: u32, params: &NicParams, data: Data) -> Packet {
        Packet {
            sent_at,
            src,
            dst: self.dst,
            qp: self.qp,
            slot,
            entropy: self.entropy,
            frame: data.payload + params.frames.header,
            class: self.class,
            ecn: if params.frames.ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::Data(data),
        }
    }
}

/// A train: full-size packets of one flow back to back.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// First packet of the train, without its sending time.
    pub first: Packet,
    /// Number of packets.
    pub count: u64,
}

impl Train {
    /// Writes to `packet` the packet of the train that `before` others precede and that leaves at `now`.
    #[inline(always)]
    pub fn write(&self, before: u64, now: Instant, packet: &mut Packet) {
        *packet = self.first;
        packet.sent_at = now;
        if let Repr::Data(data) = &mut packet.repr {
            data.psn = data.psn.plus(before as u32);
        }
    }
}
