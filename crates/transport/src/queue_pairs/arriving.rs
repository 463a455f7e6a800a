//! Handling of arriving packets.

use alloc::collections::VecDeque;

use selvedge_units::{Bytes, QpNumber};
use selvedge_wire::{Ack, AckKind, Data, Ecn, HoleNack, Packet, PathRecord, Repr};

use super::state::{RecvQp, Report};
use super::{QueuePairs, RdmaParams, SendQp};
use crate::endpoint::{Completion, Context, Endpoint, Frames, Handled, Port, reply};
use crate::feedback::FeedbackDue;
use crate::places::Places;
use crate::receiver::Receiver;
use crate::role::DataVerdict;

impl QueuePairs {
    /// Handles data for the receiver `entry`.
    #[inline(always)]
    pub fn handle_data(
        &mut self,
        cx: &mut Context<'_, '_, RdmaParams>,
        packet: &Packet,
        data: &Data,
        entry: u32,
    ) -> Handled {
        let Some(state) = self.receivers.get_mut(entry) else {
            return Handled::Unknown;
        };
        cx.port.stats.data_received += 1;
        let marked = packet.ecn == Ecn::Marked;
        let mut reply = state.receiver.handle_data(cx.cx, &mut self.shared, data, marked);
        if !cx.params.feedback.is_silent() {
            let frame = Bytes::new(u64::from(packet.frame) + u64::from(cx.frames.gap));
            let told = state.feedback.handle_data(&cx.params.feedback, cx.now(), frame, marked, data.last);
            if told.ack && reply.verdict != DataVerdict::Invalid {
                reply.ack = reply.ack.or_else(|| Some(state.receiver.acknowledge(data, marked)));
            }
            tell(&told, cx.port, cx.frames, &mut self.reports, packet);
        }
        if let Some(ack) = reply.ack {
            cx.echo(packet, Repr::Ack(ack));
            if ack.kind == AckKind::Nack {
                name_holes(&state.receiver, cx.port.answers.last_mut(), cx.frames);
            }
        }
        if reply.verdict.accepted().is_none() {
            if reply.verdict == DataVerdict::Duplicate {
                cx.port.stats.duplicates += 1;
                state.duplicates += 1;
            }
            return Handled::Taken;
        }
        if let DataVerdict::Buffered(_) = reply.verdict {
            cx.port.stats.reordered += u64::from(data.payload);
        }
        cx.port.stats.goodput += u64::from(data.payload);
        state.missing -= 1;
        if state.missing > 0 {
            return Handled::Taken;
        }
        let RecvQp { context, duplicates, .. } = *state;
        Handled::Completed(Completion::Received { src: packet.src, qp: packet.qp, context, duplicates })
    }

    /// Handles an acknowledgement for the sender `entry`.
    #[inline(always)]
    pub fn handle_ack(
        &mut self,
        cx: &mut Context<'_, '_, RdmaParams>,
        packet: &Packet,
        ack: &Ack,
        entry: u32,
    ) -> Handled {
        let Some(state) = find(&mut self.senders, entry, packet.qp) else { return Handled::Unknown };
        state.sender.handle_ack(cx.cx, &mut self.shared, ack, packet.sent_at);
        let done = state.sender.is_done();
        if !done {
            state.settle(cx, entry);
        }
        self.after_ack(cx, entry, packet.qp, done)
    }

    #[inline(never)]
    pub(super) fn handle_hole_nack(
        &mut self,
        cx: &mut Context<'_, '_, RdmaParams>,
        packet: &Packet,
        nack: &HoleNack,
        entry: u32,
    ) -> Handled {
        let Some(state) = find(&mut self.senders, entry, packet.qp) else { return Handled::Unknown };
        state.sender.handle_hole_nack(cx.cx, &mut self.shared, nack, packet.sent_at);
        let done = state.sender.is_done();
        if !done {
            state.settle(cx, entry);
        }
        self.after_ack(cx, entry, packet.qp, done)
    }

    /// Updates a queue pair after an acknowledgement, which may have been its last.
    #[inline(always)]
    fn after_ack(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, qp: QpNumber, done: bool) -> Handled {
        cx.port.stats.acks_received += 1;
        let closed = if done { self.close_sender(entry, qp) } else { None };
        closed.map_or(Handled::Taken, |context| Handled::Completed(Completion::Sent { qp, context }))
    }

    /// Handles a congestion notification for the queue pair `qp`, which sends as `entry`.
    #[inline(never)]
    pub fn handle_cnp(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, qp: QpNumber) -> Handled {
        let Some(state) = find(&mut self.senders, entry, qp) else { return Handled::Unknown };
        state.sender.handle_cnp(cx.cx);
        state.settle(cx, entry);
        Handled::Taken
    }

    /// Handles a report about the queue pair that sends as `entry`, as made by the receiving host.
    pub fn handle_report(&mut self, cx: &mut Context<'_, '_, RdmaParams>, report: &Report, entry: u32) {
        let Some(state) = find(&mut self.senders, entry, report.qp) else { return };
        cx.cx.about(report.qp);
        state.sender.handle_report(cx.cx, report.bytes, report.sent_at);
        state.settle(cx, entry);
    }

    /// Handles the telemetry that switches wrote on data, returned by an acknowledgement to `entry` that was handled
    /// just before.
    pub fn handle_telemetry(
        &mut self,
        cx: &mut Context<'_, '_, RdmaParams>,
        entry: u32,
        qp: QpNumber,
        path: &PathRecord,
    ) {
        let Some(state) = find(&mut self.senders, entry, qp) else { return };
        state.sender.handle_telemetry(cx.now(), path);
        state.settle(cx, entry);
    }
}

/// Returns the queue pair `qp`, if it is the one that sends as `entry`.
#[inline]
fn find(senders: &mut Places<SendQp>, entry: u32, qp: QpNumber) -> Option<&mut SendQp> {
    senders.get_mut(entry).filter(|state| state.qp == qp)
}

/// Adds the holes that `receiver` sees to the NACK that it has just made, if the scheme's NACKs carry holes.
#[inline(never)]
fn name_holes(receiver: &Receiver, answer: Option<&mut Packet>, frames: &Frames) {
    if let Some(Packet { repr, frame, .. }) = answer
        && let Repr::Ack(ack) = repr
        && let Some(nack) = receiver.with_holes(ack)
    {
        (*repr, *frame) = (Repr::HoleNack(nack), frames.hole_nack_frame);
    }
}

/// Sends the feedback that the arrival of `packet` requires: a congestion notification or a report.
#[inline(never)]
fn tell(told: &FeedbackDue, port: &mut Port, frames: &Frames, reports: &mut VecDeque<Report>, packet: &Packet) {
    if told.cnp {
        let (frame, class) = (frames.cnp_frame, frames.cnp_class);
        port.answers.push_back(Packet { frame, class, repr: Repr::Cnp, ..reply(port.host, frames, packet) });
    }
    if let Some(bytes) = told.report {
        let Packet { src: to, qp, slot, sent_at, .. } = *packet;
        reports.push_back(Report { to, qp, slot, sent_at, bytes });
    }
}
