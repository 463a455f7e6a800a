//! Flows of a transport of messages ([`Endpoint`]): the NIC lends it what it needs, and carries out its requests.

use alloc::boxed::Box;

use selvedge_transport::Cx;
use selvedge_transport::endpoint::{AnyEndpoint, Context, Endpoint, EndpointParams, Outbox};
use selvedge_transport::endpoint::{Handled, Message};
use selvedge_units::{Bytes, HostId, Instant, QpNumber};
use selvedge_wire::Packet;

use crate::nic::{Due, Nic, NicParams};
use crate::slot::MESSAGES;

/// The transport of messages of one NIC.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) endpoint: AnyEndpoint,
    outbox: Outbox,
}

impl Messages {
    pub(crate) fn new(params: &EndpointParams) -> Box<Self> {
        Box::new(Self { endpoint: params.into(), outbox: Outbox::new(MESSAGES.slot(0)) })
    }
}

impl Nic {
    /// Calls the transport of messages, if there is one, and carries out what it asks for.
    fn call<R>(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        call: impl FnOnce(&mut AnyEndpoint, &mut Context<'_, '_>) -> R,
    ) -> Option<R> {
        let Messages { endpoint, outbox } = self.messages.as_deref_mut()?;
        let (host, frames, stats) = (self.id, &params.frames, &mut self.stats);
        let result = call(endpoint, &mut Context { cx, host, frames, outbox, stats });
        outbox.take_answers().for_each(|packet| self.answers.push_back(packet));
        self.ready.extend(outbox.take_ready().map(|entry| MESSAGES.slot(entry)));
        for (at, entry, qp) in outbox.take_deadlines() {
            self.deadlines.push(at, Due::timer(MESSAGES.slot(entry)), qp);
        }
        Some(result)
    }

    #[cold]
    pub(crate) fn begin_message(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        settings: &EndpointParams,
        message: &Message,
    ) -> (QpNumber, u32) {
        let qp = self.name_qp();
        let cx = &mut Cx::at(cx.now);
        let entry = self.call(cx, params, |endpoint, cx| endpoint.open_sender(cx, settings, qp, message));
        (qp, MESSAGES.slot(entry.unwrap_or_default()))
    }

    #[cold]
    pub(crate) fn await_message(
        &mut self,
        params: &NicParams,
        src: HostId,
        qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        let cx = &mut Cx::at(Instant::ZERO);
        let entry = self.call(cx, params, |endpoint, cx| endpoint.open_receiver(cx, src, qp, size, context));
        MESSAGES.slot(entry.unwrap_or_default())
    }

    /// Handles a packet for the sender or the receiver in `slot`.
    #[inline(never)]
    pub(crate) fn on_message(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        slot: Option<u32>,
    ) -> Handled {
        let Some(slot) = slot.filter(|&slot| MESSAGES.has(slot)) else { return Handled::Unknown };
        let handled = self.call(cx, params, |endpoint, cx| endpoint.handle_packet(cx, packet, MESSAGES.place(slot)));
        handled.unwrap_or(Handled::Unknown)
    }

    /// Writes the next packet of the entry in `slot` to `packet`; returns whether there is one.
    #[inline(never)]
    pub(crate) fn serve_message(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        slot: u32,
        packet: &mut Packet,
    ) -> bool {
        let sent = self.call(cx, params, |endpoint, cx| endpoint.poll_transmit(cx, MESSAGES.place(slot), packet));
        sent.unwrap_or(false)
    }

    #[cold]
    pub(crate) fn on_message_deadline(&mut self, cx: &mut Cx<'_>, params: &NicParams, at: Instant, slot: u32) {
        self.call(cx, params, |endpoint, cx| endpoint.handle_timeout(cx, MESSAGES.place(slot), at));
    }

    /// Returns the traffic class of the next packet of the entry in `slot`.
    pub(crate) fn message_class(&self, params: &NicParams, slot: u32) -> Option<u8> {
        let (endpoint, entry) = self.message_at(slot)?;
        endpoint.class(entry, &params.frames)
    }

    /// Returns the transport of messages and the entry in `slot`, if that is one of its.
    pub(crate) fn message_at(&self, slot: u32) -> Option<(&AnyEndpoint, u32)> {
        let messages = self.messages.as_deref()?;
        MESSAGES.has(slot).then(|| (&messages.endpoint, MESSAGES.place(slot)))
    }
}
