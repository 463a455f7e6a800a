//! Handling of arriving packets.

use alloc::collections::VecDeque;

use selvedge_transport::endpoint::{Completion, Handled, NicStats};
use selvedge_transport::{Cx, DataVerdict, FeedbackDue, Receiver};
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber};
use selvedge_wire::{Ack, AckKind, Control, Data, Ecn, HoleNack, Packet, Repr};

use super::answers::Answers;
use super::{Nic, NicParams, RdmaParams, find};
use crate::qp::{RecvQp, Report};

impl Nic {
    /// Handles an arriving packet.
    #[inline(always)]
    pub fn handle_packet(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet) -> Handled {
        match &packet.repr {
            Repr::Data(data) => self.handle_data(cx, params, packet, data),
            Repr::Ack(ack) => self.handle_ack(cx, params, packet, ack),
            Repr::HoleNack(nack) => self.handle_hole_nack(cx, packet, nack),
            Repr::Cnp => self.handle_cnp(cx, packet),
            Repr::Control(control) => self.on_control(cx, params, packet, control),
            // The network handles these packets before they get here.
            Repr::Pause(_) | Repr::NetRt(_) => Handled::Unknown,
            Repr::Tcp(tcp) => self.on_tcp(cx, packet, tcp),
            Repr::EqdsData(data) => self.on_eqds_data(cx, params, packet, data),
            Repr::EqdsControl(control) => self.on_eqds_control(cx, params, packet, control),
        }
    }

    /// Returns the receiver for a run of data packets from the queue pair that has sent `packet`; `None` if that queue
    /// pair has no receiver here.
    ///
    /// Useful only where [`NicParams::takes_unanswered`] holds.
    #[inline(always)]
    pub fn incoming(&mut self, packet: &Packet) -> Option<Incoming<'_>> {
        let from = (packet.src, packet.qp);
        let slot = self.by_peer.get(from)?;
        let state = self.receivers.get_mut(slot as usize).and_then(Option::as_mut)?;
        let (expected, limits) = state.receiver.unanswered()?;
        // The last packet of a message completes it; no packet is expected behind it.
        let most = limits.packets.min(state.missing.checked_sub(1)?);
        let before = limits.before;
        Some(Incoming { from, expected, most, before, count: 0, payload: 0, state, stats: &mut self.stats })
    }

    /// Handles a control packet of a transport of messages.
    #[inline(never)]
    fn on_control(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, control: &Control) -> Handled {
        let to = if control.to_receiver { self.by_peer.get((packet.src, packet.qp)) } else { Some(packet.slot) };
        self.on_message(cx, params, packet, to)
    }

    #[inline(never)]
    fn handle_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, data: &Data) -> Handled {
        let Some(slot) = self.by_peer.get((packet.src, packet.qp)) else { return Handled::Unknown };
        let Some(state) = self.receivers.get_mut(slot as usize).and_then(Option::as_mut) else {
            return self.on_message(cx, params, packet, Some(slot));
        };
        self.stats.data_received += 1;
        let marked = packet.ecn == Ecn::Marked;
        let mut reply = state.receiver.handle_data(cx, &mut self.pools, data, marked);
        if let Some(RdmaParams { feedback, .. }) = params.rdma()
            && !feedback.is_silent()
        {
            let frame = Bytes::new(u64::from(packet.frame) + u64::from(params.frames.gap));
            let told = state.feedback.handle_data(feedback, cx.now, frame, marked, data.last);
            if told.ack && reply.verdict != DataVerdict::Invalid {
                reply.ack = reply.ack.or_else(|| Some(state.receiver.acknowledge(data, marked)));
            }
            tell(&told, &mut self.answers, &mut self.reports, self.id, params, packet);
        }
        if let Some(ack) = reply.ack {
            let (frame, class) = (params.frames.ack_frame, params.frames.ack_class);
            self.answers.push_back(Packet { frame, class, repr: Repr::Ack(ack), ..answer(self.id, packet) });
            if ack.kind == AckKind::Nack {
                name_holes(&state.receiver, params, self.answers.last_mut());
            }
        }
        if reply.verdict.accepted().is_none() {
            if reply.verdict == DataVerdict::Duplicate {
                self.stats.duplicates += 1;
                state.duplicates += 1;
            }
            return Handled::Taken;
        }
        if let DataVerdict::Buffered(_) = reply.verdict {
            self.stats.reordered += u64::from(data.payload);
        }
        self.stats.goodput += u64::from(data.payload);
        state.missing -= 1;
        if state.missing > 0 {
            return Handled::Taken;
        }
        let (context, duplicates) = (state.context, state.duplicates);
        Handled::Completed(Completion::Received { src: packet.src, qp: packet.qp, context, duplicates })
    }

    #[inline(never)]
    fn handle_ack(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, ack: &Ack) -> Handled {
        let Some(state) = find(&mut self.senders, packet.slot, packet.qp) else {
            return self.on_message(cx, params, packet, Some(packet.slot));
        };
        state.sender.handle_ack(cx, &mut self.pools, ack, packet.sent_at);
        let done = state.sender.is_done();
        if !done {
            state.settle(packet.slot, cx.now, &mut self.ready, &mut self.deadlines);
        }
        self.after_ack(packet, done)
    }

    #[inline(never)]
    fn handle_hole_nack(&mut self, cx: &mut Cx<'_>, packet: &Packet, nack: &HoleNack) -> Handled {
        let Some(state) = find(&mut self.senders, packet.slot, packet.qp) else { return Handled::Unknown };
        state.sender.handle_hole_nack(cx, &mut self.pools, nack, packet.sent_at);
        let done = state.sender.is_done();
        if !done {
            state.settle(packet.slot, cx.now, &mut self.ready, &mut self.deadlines);
        }
        self.after_ack(packet, done)
    }

    /// Updates a queue pair after an acknowledgement, which may have been its last.
    #[inline]
    fn after_ack(&mut self, packet: &Packet, done: bool) -> Handled {
        self.stats.acks_received += 1;
        let (slot, qp) = (packet.slot, packet.qp);
        let closed = if done { self.close_sender(slot, qp) } else { None };
        closed.map_or(Handled::Taken, |context| Handled::Completed(Completion::Sent { qp, context }))
    }

    #[inline(never)]
    fn handle_cnp(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Handled {
        let Some(state) = self.sender_at(packet.slot, packet.qp) else { return Handled::Unknown };
        state.sender.handle_cnp(cx);
        self.refresh(packet.slot, cx.now);
        Handled::Taken
    }

    /// Handles a report about the queue pair `qp` in `slot`, as made by the receiving NIC.
    pub fn handle_report(&mut self, cx: &mut Cx<'_>, params: &NicParams, report: &Report) {
        let Some(state) = self.sender_at(report.slot, report.qp) else { return };
        cx.about(report.qp);
        state.sender.handle_report(cx, report.bytes, report.sent_at);
        self.refresh(report.slot, cx.now);
        self.hand_over(cx, params);
    }
}

/// Returns a control packet in response to the data packet `to`, whose kind is still to be set.
#[inline]
fn answer(from: HostId, to: &Packet) -> Packet {
    Packet { src: from, dst: to.src, entropy: !to.entropy, ecn: Ecn::NotCapable, ..*to }
}

/// Adds the holes that `receiver` sees to the NACK that it has just made, if the scheme's NACKs carry holes.
#[inline(never)]
fn name_holes(receiver: &Receiver, params: &NicParams, answer: Option<&mut Packet>) {
    if let Some(Packet { repr, frame, .. }) = answer
        && let Repr::Ack(ack) = repr
        && let Some(nack) = receiver.with_holes(ack)
    {
        (*repr, *frame) = (Repr::HoleNack(nack), params.hole_nack_frame);
    }
}

/// Sends the feedback that the arrival of `packet` requires: a congestion notification or a report.
#[inline(never)]
fn tell(
    told: &FeedbackDue,
    answers: &mut Answers,
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

/// A run of data packets of one queue pair. The counters of the NIC are updated at the [end](Incoming::end).
#[must_use]
#[derive(Debug)]
pub struct Incoming<'a> {
    from: (HostId, QpNumber),
    expected: Psn,
    /// Maximum number of packets to take.
    most: u64,
    /// Time before which a packet must arrive to be taken.
    before: Instant,
    /// Number of packets taken. `payload` holds their bytes.
    count: u64,
    payload: u64,
    state: &'a mut RecvQp,
    stats: &'a mut NicStats,
}

impl Incoming<'_> {
    /// Takes a data packet that arrives at `at`: the `nth` packet of its train behind `first`. The effect is that of
    /// [`Nic::handle_packet`]. Returns false, without effect, unless the packet is the expected one, requires no answer
    /// and completes nothing.
    #[inline(always)]
    pub fn take(&mut self, at: Instant, first: &Packet, nth: u32) -> bool {
        let Repr::Data(data) = &first.repr else { return false };
        let is_ours = (first.src, first.qp) == self.from;
        if !is_ours || data.psn.plus(nth) != self.expected || self.count == self.most || at >= self.before {
            return false;
        }
        self.expected = self.expected.next();
        self.count += 1;
        self.payload += u64::from(data.payload);
        true
    }

    /// Updates the counters of the NIC; returns the number of packets taken.
    #[inline(always)]
    pub fn end(self) -> u64 {
        let Self { count, payload, state, stats, .. } = self;
        state.receiver.take_unanswered(count);
        state.missing -= count;
        stats.data_received += count;
        stats.goodput += payload;
        count
    }
}
