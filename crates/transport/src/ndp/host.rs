//! NDP on one host: its flows, and the pacer of pulls that all arriving flows share.

use alloc::boxed::Box;

use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber, Rate};
use selvedge_wire::{Control, Data, Ecn, Label, Packet, Repr};

use super::config::NdpParams;
use super::pacer::PullPacer;
use super::receiver::NdpReceiver;
use super::sender::{NdpSegment, NdpSender};
use crate::endpoint::{
    Alarm, Closed, Completion, Context, Endpoint, EndpointParams, Expected, Frames, HOST, Handled, Message, Received,
    Standing,
};
use crate::places::Places;
use crate::role::{DataVerdict, HoldReason, Limits};

/// First PSN of all flows; any value would do.
const FIRST: Psn = Psn::new(0);
/// A pull: its number, and the expected PSN.
const PULL: Label = Label::new("pull");

/// All NDP flows of one host.
#[derive(Debug)]
pub struct Host {
    params: NdpParams,
    senders: Places<Box<Sending>>,
    receivers: Places<Box<Receiving>>,
    pacer: PullPacer,
    /// Deadline of the pacer.
    alarm: Alarm,
}

#[derive(Debug)]
struct Sending {
    sender: NdpSender,
    message: Message,
    qp: QpNumber,
    /// Whether the flow waits for its turn at the link.
    queued: bool,
    alarm: Alarm,
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

impl Sending {
    fn hold(&self) -> HoldReason {
        self.sender.hold()
    }

    /// Updates the flow's turn and deadline after a change of its state.
    fn refresh(&mut self, cx: &mut Context<'_, '_>, entry: u32) {
        if !self.queued && self.sender.is_ready() {
            self.queued = true;
            cx.ready(entry);
        }
        self.alarm.set(cx, entry, self.sender.poll_timeout());
    }
}

impl Host {
    /// Creates the state of a host without flows.
    pub fn new(params: &NdpParams) -> Self {
        Self {
            params: *params,
            senders: Places::default(),
            receivers: Places::default(),
            pacer: PullPacer::new(params),
            alarm: Alarm::default(),
        }
    }

    fn sending(&self, entry: u32, qp: QpNumber) -> Option<&Sending> {
        self.senders.get(entry).map(|flow| &**flow).filter(|flow| flow.qp == qp)
    }

    fn sending_mut(&mut self, entry: u32, qp: QpNumber) -> Option<&mut Sending> {
        self.senders.get_mut(entry).map(|flow| &mut **flow).filter(|flow| flow.qp == qp)
    }

    /// Handles data, possibly trimmed by a switch.
    fn handle_data(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, data: &Data, entry: u32) -> Handled {
        let Some(flow) = self.receivers.get_mut(entry) else { return Handled::Unknown };
        cx.port.stats.data_received += 1;
        flow.newest = *packet;
        let reply = flow.receiver.handle_data(data, packet.ecn == Ecn::Marked);
        let Some(ack) = reply.ack else { return Handled::Taken };
        match reply.verdict {
            DataVerdict::Accepted(_) => {
                cx.port.stats.goodput += u64::from(data.payload);
                flow.missing -= 1;
            }
            DataVerdict::Duplicate => {
                cx.port.stats.duplicates += 1;
                flow.duplicates += 1;
            }
            // NDP places packets in the order of arrival.
            DataVerdict::Refused | DataVerdict::Invalid | DataVerdict::Buffered(_) | DataVerdict::Released { .. } => {}
        }
        let is_received = flow.missing == 0 && matches!(reply.verdict, DataVerdict::Accepted(_));
        let (context, duplicates) = (flow.context, flow.duplicates);
        cx.echo(packet, Repr::Ack(ack));
        if flow.missing > 0 {
            self.pacer.owe(entry)
        } else {
            self.pacer.forget(entry)
        }
        self.pull(cx);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp: packet.qp, context, duplicates });
        }
        Handled::Taken
    }

    /// Updates the sender of `packet`'s flow after it has handled the packet.
    fn after(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled {
        let qp = packet.qp;
        if self.sending(entry, qp).is_some_and(|flow| flow.sender.is_done())
            && let Some(context) = self.close_sender(entry, qp)
        {
            return Handled::Completed(Completion::Sent { qp, context });
        }
        if let Some(flow) = self.sending_mut(entry, qp) {
            flow.refresh(cx, entry);
        }
        Handled::Taken
    }

    /// Sends the pulls that are due.
    fn pull(&mut self, cx: &mut Context<'_, '_>) {
        while let Some(entry) = self.pacer.poll(cx.now()) {
            let Some(flow) = self.receivers.get_mut(entry) else { continue };
            let words = [flow.receiver.pull(), flow.receiver.expected().get(), 0];
            let newest = flow.newest;
            cx.answer(&newest, Repr::Control(Control { label: PULL, to_receiver: false, words }));
        }
        self.alarm.set(cx, HOST, self.pacer.poll_timeout());
    }
}

impl Endpoint for Host {
    type Params = EndpointParams;

    #[cold]
    fn open_sender(&mut self, cx: &mut Context<'_, '_>, qp: QpNumber, message: &Message) -> u32 {
        let params = cx.params.try_into().unwrap_or(&self.params);
        let sender = NdpSender::new(params, FIRST, cx.frames.packets(message.size), message.entropy);
        let flow = Sending { sender, message: *message, qp, queued: false, alarm: Alarm::default() };
        let entry = self.senders.put(Box::new(flow));
        if let Some(flow) = self.senders.get_mut(entry) {
            flow.refresh(cx, entry);
        }
        entry
    }

    #[cold]
    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_>,
        _src: HostId,
        _qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        let (receiver, missing) = (NdpReceiver::new(FIRST), cx.frames.packets(size));
        self.receivers.put(Box::new(Receiving { receiver, context, duplicates: 0, missing, newest: Packet::BLANK }))
    }

    #[cold]
    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        let queued = self.sending(entry, qp)?.queued;
        // An entry that waits for its turn becomes free when its turn comes.
        let flow = if queued { self.senders.take_and_keep(entry) } else { self.senders.take(entry) };
        flow.map(|flow| flow.message.context)
    }

    #[cold]
    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        let flow = self.receivers.take(entry)?;
        self.pacer.forget(entry);
        Some(Closed { context: flow.context, duplicates: flow.duplicates })
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled {
        if let Repr::Data(data) = &packet.repr {
            return self.handle_data(cx, packet, data, entry);
        }
        let Some(flow) = self.sending_mut(entry, packet.qp) else { return Handled::Unknown };
        match &packet.repr {
            Repr::Ack(ack) => {
                flow.sender.handle_ack(cx.cx, ack);
                cx.port.stats.acks_received += 1;
            }
            Repr::Control(Control { label: PULL, words: [number, expected, _], .. }) => {
                flow.sender.handle_pull(cx.cx, *number, Psn::new(expected % Psn::MODULUS));
            }
            _ => return Handled::Unknown,
        }
        self.after(cx, packet, entry)
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, entry: u32, packet: &mut Packet) -> bool {
        let Some(flow) = self.senders.get_mut(entry) else {
            self.senders.free(entry); // closed while it waited for its turn
            return false;
        };
        flow.queued = false;
        let Some(NdpSegment { seq, retransmission, entropy }) = flow.sender.poll_transmit(cx.cx) else { return false };
        *packet = Packet { entropy, ..cx.data(entry, &flow.message, flow.qp, seq.index(), retransmission) };
        flow.refresh(cx, entry);
        true
    }

    #[cold]
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>, entry: u32, at: Instant) {
        if entry == HOST {
            if self.alarm.take(at) {
                self.pull(cx);
            }
            return;
        }
        let Some(flow) = self.senders.get_mut(entry) else { return };
        if !flow.alarm.take(at) {
            return;
        }
        cx.cx.about(flow.qp);
        let before = flow.sender.timeouts();
        flow.sender.handle_timeout(cx.cx);
        cx.port.stats.timeouts += u64::from(flow.sender.timeouts() - before);
        flow.refresh(cx, entry);
    }

    fn class(&self, entry: u32, _frames: &Frames) -> Option<u8> {
        self.senders.get(entry).map(|flow| flow.message.class)
    }

    #[cold]
    fn standing(&self, entry: u32, qp: QpNumber, _now: Instant) -> Option<Standing> {
        let flow = self.sending(entry, qp)?;
        let (unsent, has_lost) = (flow.sender.unsent(), flow.sender.has_lost());
        let timeouts = u64::from(flow.sender.timeouts());
        Some(Standing { hold: flow.hold(), sent: None, unsent, has_lost, timeouts, resent: 0 })
    }

    #[cold]
    fn received(&self, entry: u32) -> Option<Received> {
        let flow = self.receivers.get(entry)?;
        Some(Received { context: flow.context, count: None, missing: flow.missing, next: Expected::Any })
    }

    #[cold]
    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        let in_flight = self.sending(entry, qp)?.sender.in_flight();
        Some(Limits { window: Bytes::MAX, rate: Rate::MAX, in_flight })
    }
}
