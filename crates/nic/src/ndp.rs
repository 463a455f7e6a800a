//! NDP flows: connections that their receivers pull, in place of RDMA queue pairs.
//!
//! Like TCP flows ([`crate::tcp`]), NDP flows share the NIC's ready ring, its queue of control packets and its
//! deadlines, in slots beyond those of RDMA queue pairs. All flows that arrive here share one pacer of pulls.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_transport::ndp::{NdpConfig, NdpReceiver, NdpSegment, NdpSender, PullPacer};
use selvedge_transport::{Cx, DataVerdict, HoldReason, Limits};
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber, Rate};
use selvedge_wire::{Ack, Data, Ecn, Packet, Pull, Repr};

use crate::nic::{Due, Handled, Nic, NicParams, answer, put};
use crate::qp::{Completion, Outgoing};
use crate::slot::{NDP, NDP_PACER};
use crate::standing::Standing;

const FIRST: Psn = Psn::new(0);

/// The NDP flows of one NIC.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    senders: Vec<Option<Box<Sending>>>,
    free_senders: Vec<u32>,
    receivers: Vec<Option<Box<Receiving>>>,
    free_receivers: Vec<u32>,
    pacer: Option<PullPacer>,
    /// Earliest entry of the pacer in the heap of deadlines.
    pacer_armed: Option<Instant>,
}

#[derive(Debug)]
struct Sending {
    sender: NdpSender,
    qp: QpNumber,
    dst: HostId,
    class: u8,
    context: u32,
    /// Index of the last packet, which may be short.
    last: u64,
    last_payload: u16,
    /// Whether the flow is in the ready ring.
    queued: bool,
    /// Earliest entry of this flow in the heap of deadlines.
    armed: Instant,
}

#[derive(Debug)]
struct Receiving {
    receiver: NdpReceiver,
    context: u32,
    duplicates: u32,
    /// Packets that have not arrived yet.
    missing: u64,
    /// Newest packet: pulls return to its source.
    newest: Packet,
}

impl Flows {
    fn sending(&self, slot: u32, qp: QpNumber) -> Option<&Sending> {
        let place = self.senders.get(NDP.place(slot) as usize)?;
        place.as_deref().filter(|flow| flow.qp == qp)
    }
    fn sending_mut(&mut self, slot: u32, qp: QpNumber) -> Option<&mut Sending> {
        let place = self.senders.get_mut(NDP.place(slot) as usize)?;
        place.as_deref_mut().filter(|flow| flow.qp == qp)
    }
    /// Returns the traffic class of the flow in a slot.
    pub(crate) fn class_at(&self, slot: u32) -> Option<u8> {
        Some(self.senders.get(NDP.place(slot) as usize)?.as_deref()?.class)
    }
}

impl Nic {
    #[cold]
    pub(crate) fn open_ndp_sender(
        &mut self,
        params: &NicParams,
        config: &NdpConfig,
        message: &Outgoing,
    ) -> (QpNumber, u32) {
        let qp = self.name_qp();
        let mtu = Bytes::new(u64::from(params.mtu));
        let packets = message.size.pieces(mtu);
        let flow = Box::new(Sending {
            sender: NdpSender::new(config, FIRST, packets, message.entropy),
            qp,
            dst: message.dst,
            class: message.class,
            context: message.context,
            last: packets - 1,
            last_payload: (message.size - mtu * (packets - 1)).get() as u16,
            queued: false,
            armed: Instant::NEVER,
        });
        let slot = NDP.slot(put(&mut self.ndp.senders, &mut self.ndp.free_senders, flow));
        self.refresh_ndp(slot, qp);
        (qp, slot)
    }

    #[cold]
    pub(crate) fn open_ndp_receiver(
        &mut self,
        params: &NicParams,
        config: &NdpConfig,
        size: Bytes,
        context: u32,
    ) -> u32 {
        self.ndp.pacer.get_or_insert_with(|| PullPacer::new(config));
        let flow = Box::new(Receiving {
            receiver: NdpReceiver::new(FIRST),
            context,
            duplicates: 0,
            missing: size.pieces(Bytes::new(u64::from(params.mtu))),
            newest: Packet::BLANK,
        });
        NDP.slot(put(&mut self.ndp.receivers, &mut self.ndp.free_receivers, flow))
    }

    #[cold]
    pub(crate) fn close_ndp_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        let (queued, context) = self.ndp.sending(slot, qp).map(|flow| (flow.queued, flow.context))?;
        self.ndp.senders[NDP.place(slot) as usize] = None;
        // A slot that is in the ready ring becomes free when it comes up there.
        if !queued {
            self.ndp.free_senders.push(NDP.place(slot));
        }
        Some(context)
    }

    #[cold]
    pub(crate) fn close_ndp_receiver(&mut self, slot: u32) -> Option<(u32, u32)> {
        let at = NDP.place(slot);
        let flow = self.ndp.receivers.get_mut(at as usize)?.take()?;
        self.ndp.free_receivers.push(at);
        if let Some(pacer) = &mut self.ndp.pacer {
            pacer.forget(at);
        }
        Some((flow.context, flow.duplicates))
    }

    #[cold]
    pub(crate) fn hold_ndp(&self, slot: u32, qp: QpNumber) -> Option<HoldReason> {
        self.ndp.sending(slot, qp).map(|flow| flow.sender.hold())
    }

    /// Implements [`Nic::standing`] for NDP flows.
    #[cold]
    pub(crate) fn standing_of_ndp(&self, slot: u32, qp: QpNumber) -> Option<Standing> {
        let sender = &self.ndp.sending(slot, qp)?.sender;
        let (unsent, has_lost) = (sender.unsent(), sender.has_lost());
        let timeouts = u64::from(sender.timeouts());
        Some(Standing { hold: sender.hold(), sent: None, unsent, has_lost, timeouts, resent: 0 })
    }

    /// Returns the caller's name of the flow that arrives in `slot`, and the packets that have not arrived.
    #[cold]
    pub(crate) fn received_by_ndp(&self, slot: u32) -> Option<(u32, u64)> {
        let flow = self.ndp.receivers.get(NDP.place(slot) as usize)?.as_deref()?;
        Some((flow.context, flow.missing))
    }

    #[cold]
    pub(crate) fn limits_of_ndp(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        let in_flight = self.ndp.sending(slot, qp)?.sender.in_flight();
        Some(Limits { window: Bytes::MAX, rate: Rate::MAX, in_flight })
    }

    /// Handles data for the receiver at `slot`, possibly trimmed by a switch.
    #[inline(never)]
    pub(crate) fn on_ndp_data(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        data: &Data,
        slot: u32,
    ) -> Handled {
        let at = NDP.place(slot);
        let Some(flow) = self.ndp.receivers.get_mut(at as usize).and_then(Option::as_deref_mut) else {
            return Handled::Unknown;
        };
        self.stats.data_received += 1;
        flow.newest = *packet;
        let reply = flow.receiver.on_data(data, packet.ecn == Ecn::Marked);
        let Some(ack) = reply.ack else { return Handled::Taken };
        match reply.verdict {
            DataVerdict::Accepted(_) => {
                self.stats.goodput += u64::from(data.payload);
                flow.missing -= 1;
            }
            DataVerdict::Duplicate => {
                self.stats.duplicates += 1;
                flow.duplicates += 1;
            }
            // NDP places packets in the order of arrival.
            DataVerdict::Refused | DataVerdict::Invalid | DataVerdict::Buffered(_) | DataVerdict::Released { .. } => {}
        }
        let is_received = flow.missing == 0 && matches!(reply.verdict, DataVerdict::Accepted(_));
        let (is_missing_some, context, duplicates) = (flow.missing > 0, flow.context, flow.duplicates);
        let (frame, class) = (params.ack_frame, params.ack_class);
        self.answers.push_back(Packet { frame, class, repr: Repr::Ack(ack), ..answer(self.id, packet) });
        if let Some(pacer) = &mut self.ndp.pacer {
            if is_missing_some { pacer.owe(at) } else { pacer.forget(at) }
        }
        self.pull_ndp(cx, params);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp: packet.qp, context, duplicates });
        }
        Handled::Taken
    }

    pub(crate) fn on_ndp_ack(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: &Ack) -> Handled {
        let Some(flow) = self.ndp.sending_mut(packet.slot, packet.qp) else { return Handled::Unknown };
        flow.sender.on_ack(cx, ack);
        self.stats.acks_received += 1;
        self.after_ndp(packet)
    }

    #[inline(never)]
    pub(crate) fn on_ndp_pull(&mut self, cx: &Cx<'_>, packet: &Packet, pull: &Pull) -> Handled {
        let Some(flow) = self.ndp.sending_mut(packet.slot, packet.qp) else { return Handled::Unknown };
        flow.sender.on_pull(cx, pull.number, pull.expected);
        self.after_ndp(packet)
    }

    /// Updates the sender of `packet`'s flow after it has handled the packet.
    fn after_ndp(&mut self, packet: &Packet) -> Handled {
        let (slot, qp) = (packet.slot, packet.qp);
        if self.ndp.sending(slot, qp).is_some_and(|flow| flow.sender.is_done())
            && let Some(context) = self.close_ndp_sender(slot, qp)
        {
            return Handled::Completed(Completion::Sent { qp, context });
        }
        self.refresh_ndp(slot, qp);
        Handled::Taken
    }

    /// Returns the next packet of the flow at `slot`, which comes up in the ready ring.
    #[inline(never)]
    pub(crate) fn serve_ndp(&mut self, cx: &mut Cx<'_>, params: &NicParams, slot: u32) -> Option<Packet> {
        let Some(flow) = self.ndp.senders.get_mut(NDP.place(slot) as usize).and_then(Option::as_deref_mut) else {
            self.ndp.free_senders.push(NDP.place(slot)); // closed while it stood in the ring
            return None;
        };
        flow.queued = false;
        let NdpSegment { seq, retransmission, entropy } = flow.sender.poll_transmit(cx)?;
        let is_last = seq.index() == flow.last;
        let payload = if is_last { flow.last_payload } else { params.mtu };
        let data = Data { psn: seq.to_psn(FIRST), payload, last: is_last, retransmission, trimmed: false };
        let packet = Packet {
            sent_at: cx.now,
            src: self.id,
            dst: flow.dst,
            qp: flow.qp,
            slot,
            entropy,
            frame: payload + params.header,
            class: flow.class,
            ecn: if params.ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::Data(data),
        };
        self.stats.data_sent += 1;
        self.stats.retransmissions += u64::from(retransmission);
        self.refresh_ndp(slot, packet.qp);
        Some(packet)
    }

    /// Handles a deadline of the flow at `slot`, or of the pacer.
    #[cold]
    pub(crate) fn on_ndp_deadline(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        at: Instant,
        slot: u32,
        qp: QpNumber,
    ) {
        if slot == NDP_PACER {
            if self.ndp.pacer_armed == Some(at) {
                self.ndp.pacer_armed = None;
                self.pull_ndp(cx, params);
            }
            return;
        }
        let Some(flow) = self.ndp.sending_mut(slot, qp).filter(|flow| flow.armed == at) else { return };
        flow.armed = Instant::NEVER;
        cx.about(qp);
        let before = flow.sender.timeouts();
        flow.sender.handle_timeout(cx);
        self.stats.timeouts += u64::from(flow.sender.timeouts() - before);
        self.refresh_ndp(slot, qp);
    }

    /// Sends the pulls that are due.
    fn pull_ndp(&mut self, cx: &Cx<'_>, params: &NicParams) {
        let Some(pacer) = &mut self.ndp.pacer else { return };
        while let Some(at) = pacer.poll(cx.now) {
            let Some(flow) = self.ndp.receivers.get_mut(at as usize).and_then(Option::as_deref_mut) else { continue };
            let pull = Pull { number: flow.receiver.pull(), expected: flow.receiver.expected() };
            let (frame, class) = (params.ack_frame, params.ack_class);
            let pull =
                Packet { frame, class, sent_at: cx.now, repr: Repr::Pull(pull), ..answer(self.id, &flow.newest) };
            self.answers.push_back(pull);
        }
        if let Some(at) = pacer.poll_timeout()
            && self.ndp.pacer_armed.is_none_or(|armed| at < armed)
        {
            self.ndp.pacer_armed = Some(at);
            self.deadlines.push(at, Due::timer(NDP_PACER), QpNumber(0));
        }
    }

    /// Updates the ready ring and the deadlines of a flow after a change of its state.
    fn refresh_ndp(&mut self, slot: u32, qp: QpNumber) {
        let Some(flow) = self.ndp.sending_mut(slot, qp) else { return };
        let ready = !flow.queued && flow.sender.is_ready();
        flow.queued |= ready;
        if let Some(at) = flow.sender.poll_timeout()
            && at < flow.armed
        {
            flow.armed = at;
            self.deadlines.push(at, Due::timer(slot), qp);
        }
        if ready {
            self.ready.push_back(slot);
        }
    }
}
