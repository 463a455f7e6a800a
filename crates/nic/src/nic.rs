//! The NIC: queue pairs, arbiter, deadlines.
//!
//! Design notes.
//! 1. *Ready ring.* A queue pair stands in the ring at most once (`SendQp::queued`) and only while
//!    its engine wants to send now. It is served one packet (or [`NicParams::qp_burst`]) and goes to
//!    the back: round-robin, as the IRN paper's simulator polls its queue pairs (section 4.1).
//!    Where some classes are paused, others overtake them; whose turn it is does not depend on the class.
//! 2. *Answers first.* Acknowledgements and congestion notifications are made when data arrives and leave
//!    before the next data packet; they are short and hold up the other side.
//! 3. *Lazy deadlines.* Each queue pair has at most a few entries in the heap. Moving a deadline later is
//!    free: the entry is looked at when it comes up. Timers and pacing are armed separately, so that a paced
//!    packet costs one entry and leaves that of a timer alone.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_telemetry::Reordering;
use selvedge_transport::eqds::EqdsParams;
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::table::Table;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{
    Cx, Feedback, FeedbackConfig, Hold, Limits, Next, OnChip, Receiver, ReceiverConfig, Scheme, Sender, SenderConfig,
    Told, Verdict,
};
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber, Seq};
use selvedge_wire::{Ack, AckKind, Data, Ecn, HoleNack, Packet, Repr};

use crate::echo::Echo;
use crate::eqds::{EQDS, Tunnels};
use crate::eqif::{EDGE, Eqifs};
use crate::ndp::{self, NDP};
use crate::qp::{Completion, NicStats, Outgoing, RecvQp, Report, SendQp};
use crate::tcp::{Flows, TCP};

/// What a NIC needs to know about its world; shared by all NICs of a fabric.
#[derive(Clone, Debug)]
pub struct NicParams {
    /// Payload of a full packet.
    pub mtu: u16,
    /// Bytes of a data frame beside its payload.
    pub header: u16,
    /// Bytes of an acknowledgement frame.
    pub ack_frame: u16,
    /// Bytes of an acknowledgement frame that carries holes.
    pub hole_nack_frame: u16,
    /// Bytes of a congestion notification frame.
    pub cnp_frame: u16,
    /// Bytes that every frame takes on the wire beside itself.
    pub gap: u16,
    /// Packets that a queue pair sends before the next one's turn.
    pub qp_burst: u32,
    /// Bit per traffic class: data may have it.
    pub data_classes: u8,
    /// Traffic class of acknowledgements.
    pub ack_class: u8,
    /// Traffic class of congestion notifications.
    pub cnp_class: u8,
    /// Whether data is marked as ECN-capable.
    pub ecn_capable: bool,
    /// The engine at the sending end.
    pub sender: SenderConfig,
    /// The engine at the receiving end.
    pub receiver: ReceiverConfig,
    /// What the receiving end tells congestion control.
    pub feedback: FeedbackConfig,
    /// How flows speak TCP that do, every "auto" resolved.
    pub tcp: Option<TcpConfig>,
    /// Flows are messages in EQDS tunnels instead, unless `eqif` says that they have a stack.
    pub eqds: Option<EqdsParams>,
    /// Stacks whose packets go through tunnels.
    pub eqif: Option<EqifParams>,
    /// Flows speak NDP instead, every "auto" resolved.
    pub ndp: Option<NdpConfig>,
    /// Traffic class of TCP's acknowledgements.
    pub tcp_ack_class: u8,
}

impl NicParams {
    /// How native messages of EQDS are sent, where flows are such.
    pub(crate) fn native(&self) -> Option<&EqdsParams> {
        self.eqds.as_ref().filter(|_| self.eqif.as_ref().is_none_or(|eqif| eqif.has_native))
    }
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handled {
    /// It was taken in.
    Taken,
    /// It was taken in and finished something.
    Completed(Completion),
    /// No such queue pair here (any more): dropped.
    Unknown,
}

/// One host's NIC.
#[derive(Debug)]
pub struct Nic {
    pub(crate) id: HostId,
    senders: Vec<Option<SendQp>>,
    free_senders: Vec<u32>,
    receivers: Vec<Option<RecvQp>>,
    free_receivers: Vec<u32>,
    pub(crate) by_peer: Table<(HostId, QpNumber)>,
    next_qp: QpNumber,
    pub(crate) ready: VecDeque<u32>,
    /// Packets that the first of them has sent in its turn.
    turn: u32,
    /// Acknowledgements and congestion notifications that wait for the link.
    pub(crate) answers: VecDeque<Packet>,
    /// Reports that wait to be taken.
    reports: VecDeque<Report>,
    /// Telemetry that waits with them; none where no switch writes.
    pub(crate) echoes: VecDeque<Echo>,
    pub(crate) deadlines: BinaryHeap<Reverse<(Instant, Due, QpNumber)>>,
    /// What queue pairs share, lent to each for its call.
    chip: OnChip,
    pub(crate) stats: NicStats,
    pub(crate) tcp: Flows,
    pub(crate) tunnels: Tunnels,
    /// Where stacks send through tunnels.
    pub(crate) eqifs: Option<Box<Eqifs>>,
    pub(crate) ndp: ndp::Flows,
}

/// All queue pairs begin here; any value would do.
const FIRST_PSN: Psn = Psn::new(0);

impl Nic {
    /// The NIC of host `id`, without queue pairs.
    pub fn new(id: HostId, params: &NicParams) -> Self {
        Self {
            id,
            senders: Vec::new(),
            free_senders: Vec::new(),
            receivers: Vec::new(),
            free_receivers: Vec::new(),
            by_peer: Table::new(),
            next_qp: QpNumber(0),
            ready: VecDeque::new(),
            turn: 0,
            answers: VecDeque::new(),
            reports: VecDeque::new(),
            echoes: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            chip: params.receiver.recovery.on_chip(),
            stats: NicStats::default(),
            tcp: Flows::default(),
            tunnels: Tunnels::default(),
            eqifs: params.eqif.as_ref().map(|eqif| Box::new(Eqifs::new(eqif))),
            ndp: ndp::Flows::default(),
        }
    }

    /// What it has done so far.
    pub fn stats(&self) -> &NicStats {
        &self.stats
    }

    /// What it did with data out of order.
    pub fn reordering(&self) -> Reordering {
        let OnChip { receiving, sending, exhausted, middle, forgotten, .. } = &self.chip;
        Reordering {
            buffered: Bytes::new(self.stats.reordered),
            pool_blocks: receiving.blocks(),
            pool_peak: receiving.peak(),
            sender_pool_peak: sending.peak(),
            refused_full: *exhausted,
            refused_middle: *middle,
            forgotten: *forgotten,
            swaps: self.chip.swaps(),
        }
    }

    /// Opens a queue pair that sends one message; returns its number and its slot.
    pub fn open_sender(&mut self, cx: &Cx<'_>, params: &NicParams, message: &Outgoing) -> (QpNumber, u32) {
        let opened = self.open_any_sender(cx, params, message);
        self.hand_over(&mut Cx::at(cx.now), params);
        opened
    }

    fn open_any_sender(&mut self, cx: &Cx<'_>, params: &NicParams, message: &Outgoing) -> (QpNumber, u32) {
        if let Some(config) = params.tcp.as_ref().filter(|_| message.is_tcp) {
            return self.open_tcp_sender(cx, params, config, message);
        }
        if let Some(config) = &params.ndp {
            return self.open_ndp_sender(params, config, message);
        }
        if let Some(eqds) = params.native() {
            return self.open_message(cx, params, eqds, message);
        }
        let mtu = Bytes::new(u64::from(params.mtu));
        let packets = message.size.pieces(mtu);
        let mut sender = Sender::new(&params.sender, FIRST_PSN);
        sender.set_path(message.links);
        sender.supply(packets);
        let qp = self.name_qp();
        let state = SendQp {
            sender,
            qp,
            dst: message.dst,
            entropy: message.entropy,
            context: message.context,
            last: Seq::new(packets - 1),
            last_payload: (message.size - mtu * (packets - 1)).get() as u16,
            class: message.class,
            queued: false,
            timer_armed: Instant::NEVER,
            pacing_armed: Instant::NEVER,
        };
        let slot = put(&mut self.senders, &mut self.free_senders, state);
        self.refresh(slot, cx.now);
        (qp, slot)
    }

    /// A number that no queue pair had for long.
    pub(crate) fn name_qp(&mut self) -> QpNumber {
        let qp = self.next_qp;
        self.next_qp = QpNumber(qp.0.wrapping_add(1));
        qp
    }

    /// Forgets a sending queue pair, finished or not; returns what the caller named it.
    pub fn close_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        let Some(state) = find(&mut self.senders, slot, qp) else { return self.close_other_sender(slot, qp) };
        state.sender.release(&mut self.chip);
        let (queued, context) = (state.queued, state.context);
        self.senders[slot as usize] = None;
        // A slot that still stands in the ready ring is free when it comes up there: it must not
        // stand there twice.
        if !queued {
            self.free_senders.push(slot);
        }
        Some(context)
    }

    #[cold]
    fn close_other_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        if slot < TCP { self.close_ndp_sender(slot, qp) } else { self.close_tcp_sender(slot, qp) }
    }

    /// Expects a message of `size` from the queue pair `qp` of `src`.
    pub fn open_receiver(&mut self, params: &NicParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) {
        if let Some(config) = &params.ndp {
            let slot = self.open_ndp_receiver(params, config, size, context);
            return self.by_peer.insert((src, qp), slot);
        }
        if params.native().is_some() {
            return self.expect_message(params, src, qp, size, context);
        }
        let state = RecvQp {
            receiver: Receiver::new(&params.receiver, FIRST_PSN),
            feedback: Feedback::default(),
            context,
            duplicates: 0,
            missing: size.pieces(Bytes::new(u64::from(params.mtu))),
        };
        let slot = put(&mut self.receivers, &mut self.free_receivers, state);
        self.by_peer.insert((src, qp), slot);
    }

    /// Expects `size` bytes from the TCP flow `qp` of `src`. The NIC's parameters must say how TCP is spoken.
    pub fn open_tcp_receiver(&mut self, params: &NicParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) {
        let Some(config) = &params.tcp else { return };
        if config.subflows > 1 {
            return self.accept_bundle(params, config, src, qp, size, context);
        }
        let slot = self.accept_tcp(params, config, src, qp, size, context);
        self.by_peer.insert((src, qp), slot);
    }

    /// Forgets a receiving queue pair; returns what the caller named it, and its duplicates.
    pub fn close_receiver(&mut self, src: HostId, qp: QpNumber) -> Option<(u32, u32)> {
        let slot = self.by_peer.remove((src, qp))?;
        if slot >= TCP {
            return self.close_tcp_receiver(src, slot, qp);
        }
        if slot >= EQDS {
            return self.close_message(src, slot);
        }
        if slot >= NDP {
            return self.close_ndp_receiver(slot);
        }
        self.free_receivers.push(slot);
        let mut state = self.receivers[slot as usize].take()?;
        state.receiver.release(&mut self.chip);
        Some((state.context, state.duplicates))
    }

    /// What a sending queue pair waits for at `now`; `None` if there is none such.
    pub fn hold(&self, slot: u32, qp: QpNumber, now: Instant) -> Option<Hold> {
        let state = self.senders.get(slot as usize).and_then(Option::as_ref).filter(|state| state.qp == qp);
        state.map_or_else(
            || self.hold_tcp(slot, qp).or_else(|| self.hold_message(slot, qp)).or_else(|| self.hold_ndp(slot, qp)),
            |state| Some(state.sender.hold(now)),
        )
    }

    /// What limits a sending queue pair; `None` if there is none such.
    pub fn limits(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        let state = self.senders.get(slot as usize).and_then(Option::as_ref).filter(|state| state.qp == qp);
        state.map_or_else(
            || {
                self.limits_of_tcp(slot, qp)
                    .or_else(|| self.limits_of_message(slot, qp))
                    .or_else(|| self.limits_of_ndp(slot, qp))
            },
            |state| Some(state.sender.limits()),
        )
    }

    /// Takes in a packet that arrived.
    #[inline]
    pub fn handle_packet(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet) -> Handled {
        match &packet.repr {
            Repr::Data(data) => self.on_data(cx, params, packet, data),
            Repr::Ack(ack) => self.on_ack(cx, packet, ack),
            Repr::HoleNack(nack) => self.on_hole_nack(cx, packet, nack),
            Repr::Cnp => self.on_cnp(cx, packet),
            Repr::Pull(pull) => self.on_ndp_pull(cx, packet, pull),
            // The network's own business; the driver handles it before it gets here.
            Repr::Pause(_) | Repr::NetRt(_) => Handled::Unknown,
            Repr::Tcp(tcp) => self.on_tcp(cx, packet, tcp),
            Repr::EqdsData(_) | Repr::EqdsControl(_) => self.on_eqds(cx, params, packet),
        }
    }

    fn on_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, data: &Data) -> Handled {
        let Some(slot) = self.by_peer.get((packet.src, packet.qp)) else { return Handled::Unknown };
        let Some(state) = self.receivers.get_mut(slot as usize).and_then(Option::as_mut) else {
            return self.on_ndp_data(cx, params, packet, data, slot);
        };
        self.stats.data_received += 1;
        let marked = packet.ecn == Ecn::Marked;
        let mut reply = state.receiver.on_data(cx, &mut self.chip, data, marked);
        if !params.feedback.is_silent() {
            let frame = Bytes::new(u64::from(packet.frame) + u64::from(params.gap));
            let told = state.feedback.on_data(&params.feedback, cx.now, frame, marked, data.last);
            if told.ack && reply.verdict != Verdict::Invalid {
                reply.ack = reply.ack.or_else(|| Some(state.receiver.acknowledge(data, marked)));
            }
            tell(&told, &mut self.answers, &mut self.reports, self.id, params, packet);
        }
        if let Some(ack) = reply.ack {
            let holes = if ack.kind == AckKind::Nack { state.receiver.with_holes(&ack) } else { None };
            let (frame, repr) = match holes {
                None => (params.ack_frame, Repr::Ack(ack)),
                Some(nack) => (params.hole_nack_frame, Repr::HoleNack(nack)),
            };
            self.answers.push_back(Packet { frame, class: params.ack_class, repr, ..answer(self.id, packet) });
        }
        if let Verdict::Buffered(_) = reply.verdict {
            self.stats.reordered += u64::from(data.payload);
        }
        match reply.verdict {
            Verdict::Accepted(_) | Verdict::Buffered(_) | Verdict::Released { .. } => {
                self.stats.goodput += u64::from(data.payload);
                state.missing -= 1;
                if state.missing == 0 {
                    return Handled::Completed(Completion::Received {
                        src: packet.src,
                        qp: packet.qp,
                        context: state.context,
                        duplicates: state.duplicates,
                    });
                }
            }
            Verdict::Duplicate => {
                self.stats.duplicates += 1;
                state.duplicates += 1;
            }
            Verdict::Refused | Verdict::Invalid => {}
        }
        Handled::Taken
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: &Ack) -> Handled {
        let Some(state) = find(&mut self.senders, packet.slot, packet.qp) else {
            return self.on_ndp_ack(cx, packet, ack);
        };
        state.sender.on_ack(cx, &mut self.chip, ack, packet.sent_at);
        let done = state.sender.is_done().then_some(state.context);
        self.after_ack(cx, packet, done)
    }

    fn on_hole_nack(&mut self, cx: &mut Cx<'_>, packet: &Packet, nack: &HoleNack) -> Handled {
        let Some(state) = find(&mut self.senders, packet.slot, packet.qp) else { return Handled::Unknown };
        state.sender.on_hole_nack(cx, &mut self.chip, nack, packet.sent_at);
        let done = state.sender.is_done().then_some(state.context);
        self.after_ack(cx, packet, done)
    }

    /// A queue pair has heard an acknowledgement; if that was its last, `done` is what the caller named it.
    #[inline]
    fn after_ack(&mut self, cx: &Cx<'_>, packet: &Packet, done: Option<u32>) -> Handled {
        self.stats.acks_received += 1;
        let (slot, qp) = (packet.slot, packet.qp);
        let Some(context) = done else {
            self.refresh(slot, cx.now);
            return Handled::Taken;
        };
        self.close_sender(slot, qp);
        Handled::Completed(Completion::Sent { qp, context })
    }

    fn on_cnp(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Handled {
        let Some(state) = self.sender_at(packet.slot, packet.qp) else { return Handled::Unknown };
        state.sender.on_cnp(cx);
        self.refresh(packet.slot, cx.now);
        Handled::Taken
    }

    /// A report about the queue pair `qp` in `slot` has come, as the receiving NIC made it.
    pub fn handle_report(&mut self, cx: &mut Cx<'_>, params: &NicParams, report: &Report) {
        let Some(state) = self.sender_at(report.slot, report.qp) else { return };
        cx.about(report.qp);
        state.sender.on_report(cx, report.bytes, report.sent_at);
        self.refresh(report.slot, cx.now);
        self.hand_over(cx, params);
    }

    /// The next report that was made here, for the driver to bring to its receiver.
    #[inline]
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Whether something may be ready to send.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.answers.is_empty() || !self.ready.is_empty()
    }

    /// Writes the next packet for the link to `packet` and returns whether there is one; if not, `packet` stays
    /// as it is. Call while the link is free; bit `i` of `paused` forbids class `i`.
    #[inline]
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        if !self.answers.is_empty() && self.send_answer(params, paused, packet) {
            return true;
        }
        while let Some(slot) = self.next_ready(params, paused) {
            if self.send_data(cx, params, slot, packet) {
                return true;
            }
        }
        false
    }

    /// The queue pair whose turn it is, of those whose class may go.
    #[inline]
    fn next_ready(&mut self, params: &NicParams, paused: u8) -> Option<u32> {
        match paused & params.data_classes {
            0 => self.ready.pop_front(),
            some => self.next_unpaused(params, some),
        }
    }

    /// As [`Nic::next_ready`] where some classes are paused. Those that have to wait keep their places.
    #[cold]
    fn next_unpaused(&mut self, params: &NicParams, paused: u8) -> Option<u32> {
        if paused == params.data_classes {
            return None;
        }
        let waits = |slot: u32| match self.senders.get(slot as usize) {
            Some(place) => place.as_ref().is_some_and(|state| paused & (1 << state.class) != 0),
            None => {
                let class =
                    self.tcp.class_at(slot).or_else(|| self.tunnel_class(slot)).or_else(|| self.ndp.class_at(slot));
                class.is_some_and(|class| paused & (1 << class) != 0)
            }
        };
        let first = self.ready.iter().position(|&slot| !waits(slot))?;
        self.ready.remove(first)
    }

    /// Sends the first answer whose class may go.
    #[inline]
    fn send_answer(&mut self, params: &NicParams, paused: u8, packet: &mut Packet) -> bool {
        let next = if paused == 0 {
            self.answers.pop_front()
        } else if !paused & (params.data_classes | 1 << params.ack_class | 1 << params.cnp_class) == 0 {
            None
        } else {
            let first = self.answers.iter().position(|packet| paused & (1 << packet.class) == 0);
            first.and_then(|first| self.answers.remove(first))
        };
        let Some(next) = next else { return false };
        *packet = next;
        self.stats.count_answer(&packet.repr);
        true
    }

    /// Sends a packet of the queue pair in `slot`, which stood in the ready ring, if it still wants to.
    #[inline(always)]
    pub(crate) fn send_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        let Some(state) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else {
            return self.send_otherwise(cx, params, slot, packet);
        };
        state.queued = false;
        let (last, last_payload) = (state.last, state.last_payload);
        let payload = |seq| if seq == last { last_payload } else { params.mtu };
        let on_wire = |seq| Bytes::new(u64::from(payload(seq)) + u64::from(params.header) + u64::from(params.gap));
        let segment = state.sender.poll_transmit(cx, &mut self.chip, on_wire);
        if let Some(segment) = segment {
            let payload = payload(segment.seq);
            *packet = Packet {
                sent_at: cx.now,
                src: self.id,
                dst: state.dst,
                qp: state.qp,
                slot,
                entropy: state.entropy,
                frame: payload + params.header,
                class: state.class,
                ecn: if params.ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
                repr: Repr::Data(Data {
                    psn: segment.seq.to_psn(FIRST_PSN),
                    payload,
                    last: segment.seq == last,
                    retransmission: segment.retransmission,
                    trimmed: false,
                }),
            };
            self.stats.data_sent += 1;
            self.stats.retransmissions += u64::from(segment.retransmission);
        }
        self.refresh(slot, cx.now);
        if segment.is_some() && params.qp_burst > 1 {
            self.keep_turn(slot, params.qp_burst);
        }
        segment.is_some()
    }

    /// What stood in the ready ring with `slot` is no queue pair (any more): a flow of TCP or NDP or a tunnel may send.
    #[cold]
    fn send_otherwise(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32, packet: &mut Packet) -> bool {
        if slot < NDP {
            self.free_senders.push(slot); // closed while it stood in the ring
            return false;
        }
        if slot == EDGE {
            return self.serve_edge(cx, params, packet);
        }
        if (EQDS..TCP).contains(&slot) {
            let sent = params.eqds.as_ref().is_some_and(|eqds| self.serve_tunnel(cx, params, eqds, slot, packet));
            self.keep_turn(slot, params.qp_burst);
            return sent;
        }
        let segment = if slot < EQDS { self.serve_ndp(cx, params, slot) } else { self.serve_tcp(cx, slot) };
        let Some(segment) = segment else { return false };
        *packet = segment;
        self.keep_turn(slot, params.qp_burst);
        true
    }

    /// When [`Nic::handle_timeout`] wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets queue pairs act whose deadlines have come. Early or twice does nothing.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while let Some(&Reverse((at, due, qp))) = self.deadlines.peek() {
            if at > cx.now {
                break;
            }
            self.deadlines.pop();
            let slot = due.slot();
            let Some(state) = find(&mut self.senders, slot, qp) else {
                if (EQDS..TCP).contains(&slot) {
                    self.on_tunnel_deadline(cx, params, at, slot);
                } else if (NDP..EQDS).contains(&slot) {
                    self.on_ndp_deadline(cx, params, at, slot, qp);
                } else {
                    self.on_tcp_deadline(cx, at, slot, qp);
                }
                continue;
            };
            let armed = if due.is_pacing() { &mut state.pacing_armed } else { &mut state.timer_armed };
            if *armed != at {
                continue; // an earlier entry has taken its place
            }
            *armed = Instant::NEVER;
            cx.about(qp);
            if !due.is_pacing() {
                let before = state.sender.stats().timeouts;
                state.sender.handle_timeout(cx, &mut self.chip);
                let timeouts = state.sender.stats().timeouts - before;
                self.stats.timeouts += u64::from(timeouts);
            }
            self.refresh(slot, cx.now);
        }
        self.hand_over(cx, params);
    }

    /// A queue pair has sent a packet and stands at the back if it has more: puts it back to the front
    /// until it has sent `burst` in a row.
    fn keep_turn(&mut self, slot: u32, burst: u32) {
        self.turn += 1;
        if self.turn < burst && self.ready.back() == Some(&slot) {
            self.ready.rotate_right(1);
        } else {
            self.turn = 0;
        }
    }

    /// Where the state lies that handling `packet` will need, for drivers that fetch it ahead: of how many bytes
    /// it is, and its address, to which nothing may be done.
    #[inline]
    pub fn whereabouts(&self, packet: &Packet) -> (*const u8, usize) {
        match packet.repr {
            Repr::Data(_) => self.by_peer.whereabouts((packet.src, packet.qp)),
            Repr::EqdsData(_) | Repr::EqdsControl(_) => self.whereabouts_of_tunnel(packet),
            _ => (self.senders.as_ptr().wrapping_add(packet.slot as usize).cast(), size_of::<SendQp>()),
        }
    }

    #[inline]
    pub(crate) fn sender_at(&mut self, slot: u32, qp: QpNumber) -> Option<&mut SendQp> {
        find(&mut self.senders, slot, qp)
    }

    /// Puts a queue pair where its engine's wishes say, after anything happened to it.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: u32, now: Instant) {
        let Some(state) = self.senders[slot as usize].as_mut() else { return };
        // One that stands in the ring is asked when its turn comes.
        if !state.queued {
            match state.sender.next(now) {
                Next::Send(_) => {
                    state.queued = true;
                    self.ready.push_back(slot);
                }
                Next::Wait(until) if until < state.pacing_armed => {
                    state.pacing_armed = until;
                    self.deadlines.push(Reverse((until, Due::pacing(slot), state.qp)));
                }
                Next::Wait(_) | Next::Idle => {}
            }
        }
        let timer = state.sender.timers();
        if timer < state.timer_armed {
            state.timer_armed = timer;
            self.deadlines.push(Reverse((timer, Due::timer(slot), state.qp)));
        }
    }
}

/// What a deadline is for: a slot's timers, or its next packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due(u32);

impl Due {
    pub(crate) const fn timer(slot: u32) -> Self {
        Self(slot << 1)
    }
    const fn pacing(slot: u32) -> Self {
        Self(slot << 1 | 1)
    }
    const fn slot(self) -> u32 {
        self.0 >> 1
    }
    const fn is_pacing(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The queue pair `qp`, if it is what `slot` holds.
#[inline]
fn find(senders: &mut [Option<SendQp>], slot: u32, qp: QpNumber) -> Option<&mut SendQp> {
    senders.get_mut(slot as usize)?.as_mut().filter(|state| state.qp == qp)
}

/// An answer to the data packet `to`, but for what kind it is.
#[inline]
pub(crate) fn answer(from: HostId, to: &Packet) -> Packet {
    Packet { src: from, dst: to.src, entropy: !to.entropy, ecn: Ecn::NotCapable, ..*to }
}

/// Makes what the arrival of `packet` gives occasion to.
fn tell(
    told: &Told,
    answers: &mut VecDeque<Packet>,
    reports: &mut VecDeque<Report>,
    from: HostId,
    params: &NicParams,
    packet: &Packet,
) {
    if told.cnp {
        let (frame, class) = (params.cnp_frame, params.cnp_class);
        answers.push_back(Packet { frame, class, repr: Repr::Cnp, ..answer(from, packet) });
    }
    if let Some(bytes) = told.report {
        let Packet { src: to, qp, slot, sent_at, .. } = *packet;
        reports.push_back(Report { to, qp, slot, sent_at, bytes });
    }
}

/// Stores `state` in a free place.
pub(crate) fn put<T>(places: &mut Vec<Option<T>>, free: &mut Vec<u32>, state: T) -> u32 {
    match free.pop() {
        Some(slot) => {
            places[slot as usize] = Some(state);
            slot
        }
        None => {
            places.push(Some(state));
            (places.len() - 1) as u32
        }
    }
}
