//! Arbitration: selects the next packet for the link.
//!
//! Design notes.
//! 1. *Ready ring.* A queue pair is in the ring at most once, and only while its engine has a packet to send now. It is
//!    served one packet (or [`NicParams::qp_burst`]) and goes to the back: round-robin, as the IRN paper's simulator
//!    polls its queue pairs (section 4.1). Where some classes are paused, queue pairs of other
//!    classes overtake; turns do not depend on the class otherwise.
//! 2. *Control packets first.* Acknowledgements and congestion notifications are made when data arrives and leave
//!    before the next data packet; they are short, and the other side waits for them.

use selvedge_transport::Cx;
use selvedge_transport::endpoint::Endpoint;
use selvedge_transport::queue_pairs::Train;
use selvedge_units::Instant;
use selvedge_wire::Packet;

use super::{FlowParams, Nic, NicParams, call, of_slot};
use crate::slot::{BESIDE, MESSAGES, Owner, QUEUE_PAIRS, TCP, TUNNELS};

impl Nic {
    /// Returns whether a packet may be ready to be sent.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.port.answers.is_empty() || !self.port.ready.is_empty()
    }

    /// Writes the next packet for the link to `packet` and returns whether there is one; if not, `packet` stays as it
    /// is. Call while the link is free; bit `i` of `paused` forbids class `i`.
    #[inline(always)]
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        (!self.port.answers.is_empty() && self.send_answer(params, paused, packet))
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
            0 => self.port.ready.front().copied(),
            some => self.next_unpaused(params, some),
        }
    }

    /// Like [`Nic::next_ready`], but where some classes are paused. Queue pairs that have to wait keep their places.
    #[cold]
    fn next_unpaused(&mut self, params: &NicParams, paused: u8) -> Option<u32> {
        if paused == params.data_classes {
            return None;
        }
        let waits = |slot: u32| self.class_of(params, slot).is_some_and(|class| paused & (1 << class) != 0);
        let place = self.port.ready.iter().position(|&slot| !waits(slot))?;
        let first = self.port.ready.remove(place)?;
        self.port.ready.push_front(first);
        Some(first)
    }

    /// Returns the traffic class of the next packet of a slot in the ready ring.
    fn class_of(&self, params: &NicParams, slot: u32) -> Option<u8> {
        let of_verbs = self.verbs_class(params, slot);
        of_verbs.or_else(|| of_slot!(self, slot, [] | endpoint, entry | endpoint.class(entry, &params.frames)))
    }

    /// Sends the first control packet whose class is not paused.
    #[inline(always)]
    pub(crate) fn send_answer(&mut self, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        if paused == 0 {
            if !self.port.answers.pop_front(packet) {
                return false;
            }
        } else {
            let Some(next) = self.next_unpaused_answer(params, paused) else { return false };
            *packet = next;
        }
        if let Some(eqifs) = &mut self.eqifs {
            eqifs.on_answer_left();
        }
        self.port.stats.count_answer(&packet.repr);
        true
    }

    /// Removes the first control packet whose class is not paused, where some classes are. The others keep their
    /// places.
    #[cold]
    fn next_unpaused_answer(&mut self, params: &NicParams, paused: u8) -> Option<Packet> {
        if !paused & (params.data_classes | 1 << params.frames.ack_class | 1 << params.frames.cnp_class) == 0 {
            return None;
        }
        let first = self.port.answers.iter().position(|packet| paused & (1 << packet.class) == 0)?;
        self.port.answers.remove(first)
    }

    /// Sends a packet of the owner of `slot`, which is at the front of the ready ring, if it still has one to send.
    #[inline(always)]
    pub(crate) fn send_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        self.port.ready.pop_front();
        let sent = match (&params.flows, &params.eqds) {
            (FlowParams::Rdma(own), _) if QUEUE_PAIRS.has(slot) => {
                self.queue_pairs.poll_transmit(&mut self.port.lend(cx, &params.frames, own, 0), slot, packet)
            }
            (_, Some(own)) if TUNNELS.has(slot) => {
                let context = &mut self.port.lend(cx, &params.frames, own, TUNNELS.slot(0));
                self.tunnels.transmit(context, TUNNELS.place(slot), packet)
            }
            _ => return self.send_another(cx, params, slot, packet),
        };
        if sent && params.qp_burst > 1 {
            self.keep_turn(slot, params.qp_burst);
        }
        sent
    }

    /// Serves an owner of `slot` that is no queue pair and no tunnel: for example a flow of TCP, or a message.
    #[cold]
    #[inline(never)]
    fn send_another(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        match Owner::of(slot) {
            Owner::Edge => return self.serve_edge(cx, params, packet),
            Owner::Requests => return self.serve_requests(cx, params, packet),
            Owner::Acks => return self.serve_acks(cx.now, packet),
            _ => {}
        }
        let sent = self.poll_endpoint(cx, params, slot, packet);
        if sent {
            self.keep_turn(slot, params.qp_burst);
        }
        sent
    }

    /// Writes the next packet of the endpoint that has `slot`, which is not in the ready ring any more, to `packet`;
    /// returns whether there is one.
    pub(crate) fn poll_endpoint(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        slot: u32,
        packet: &mut Packet,
    ) -> bool {
        let sent = call!(self, cx, params, slot, |endpoint, cx, entry| endpoint.poll_transmit(cx, entry, packet));
        sent.unwrap_or(false)
    }

    /// Returns the packets that repeated calls of [`Nic::poll_transmit`] would return if nothing else happened, where a
    /// single queue pair uses the link and has sent before. The last packet of its message is not included.
    #[inline]
    pub fn train(&mut self, params: &NicParams, paused: u8) -> Option<Train> {
        let ready = &self.port.ready;
        let &slot = ready.front().filter(|_| ready.len() == 1 && self.port.answers.is_empty())?;
        let FlowParams::Rdma(own) = &params.flows else { return None };
        if params.qp_burst != 1 || !params.mac_poll.is_zero() {
            return None;
        }
        let mut cx = Cx::at(Instant::ZERO);
        self.queue_pairs.train(&self.port.lend(&mut cx, &params.frames, own, 0), slot, paused)
    }

    /// Notes that `packets` packets of a [`train`](Nic::train) have left, the last before `now`.
    #[inline]
    pub fn end_train(&mut self, params: &NicParams, now: Instant, packets: u64) {
        let (Some(slot), FlowParams::Rdma(own)) = (self.port.ready.pop_front(), &params.flows) else { return };
        let mut cx = Cx::at(now);
        self.queue_pairs.end_train(&mut self.port.lend(&mut cx, &params.frames, own, 0), slot, packets);
    }

    /// Moves a queue pair that has sent a packet and is at the back of the ring to the front again, until it has sent
    /// `burst` packets.
    fn keep_turn(&mut self, slot: u32, burst: u32) {
        self.turn += 1;
        if self.turn < burst && self.port.ready.back() == Some(&slot) {
            self.port.ready.rotate_right(1);
        } else {
            self.turn = 0;
        }
    }
}
