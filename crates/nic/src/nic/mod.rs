//! The NIC of one host: its endpoints, arbiter and deadlines.
//!
//! Functions that take [`NicParams`] must always receive the same.

mod arbiter;
mod arriving;
mod deadlines;
mod polling;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_prefetch::PrefetchRange;
use selvedge_telemetry::Reordering;
use selvedge_transport::endpoint::{
    AnyEndpoint, Endpoint, EndpointParams, Frames, Message, NicStats, Port, Received, Standing,
};
use selvedge_transport::eqds::EqdsParams;
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::queue_pairs::{QueuePairs, RdmaParams, Report};
use selvedge_transport::tcp::{self, TcpParams};
use selvedge_transport::{Cx, HoldReason, Limits, SharedPart};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber};
use selvedge_wire::{Packet, Repr};

use crate::echo::Echo;
use crate::eqds::Tunnels;
use crate::eqif::EqifSet;
use crate::rdma::{Rdma, VerbsParams};
use crate::slot::{BESIDE, MESSAGES, Owner, PACER, QUEUE_PAIRS, SlotRange, TCP, TUNNELS};

/// Parameters of a NIC; shared by all NICs of a fabric.
#[derive(Clone, Debug)]
pub struct NicParams {
    /// Lengths and classes of packets.
    pub frames: Frames,
    /// Packets that a queue pair sends before the next one's turn.
    pub qp_burst: u32,
    /// Interval at which one of the NIC's own queue pairs with a packet to send polls the link; zero if queue pairs
    /// take turns instead.
    pub mac_poll: Duration,
    /// Whether the polling times of queue pairs are drawn anew for each packet that the NIC sends.
    pub polls_at_random: bool,
    /// Bit per traffic class that data may have.
    pub data_classes: u8,
    /// Transport of flows.
    pub flows: FlowParams,
    /// TCP of flows beside those of the transport, if there are any.
    pub beside: Option<TcpParams>,
    /// Configuration of EQDS tunnels, where there are any.
    pub eqds: Option<EqdsParams>,
    /// Configuration of stacks whose packets go through tunnels.
    pub eqif: Option<EqifParams>,
    /// Parameters of applications' queue pairs, where there are any. Then `data_classes` includes the class of
    /// acknowledgements, too.
    pub verbs: Option<VerbsParams>,
}

/// Transport of a NIC's flows.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "one for all NICs of a fabric")]
pub enum FlowParams {
    /// RDMA queue pairs, with one message each.
    Rdma(RdmaParams),
    /// TCP connections.
    Tcp(TcpParams),
    /// Native messages in EQDS tunnels, which [`NicParams::eqds`] configures.
    Eqds,
    /// A transport of messages, every "auto" resolved.
    Messages(EndpointParams),
}

impl NicParams {
    /// Returns TCP's parameters, if it is TCP that `carrier` stands for.
    #[inline]
    pub fn tcp_of(&self, carrier: Carrier) -> Option<&TcpParams> {
        match (carrier, &self.flows) {
            (Carrier::Beside, _) => self.beside.as_ref(),
            (Carrier::Transport, FlowParams::Tcp(tcp)) => Some(tcp),
            (Carrier::Transport, _) => None,
        }
    }

    /// Returns the slots of flows that `carrier` carries.
    fn slots_of(&self, carrier: Carrier) -> SlotRange {
        match (carrier, &self.flows) {
            (Carrier::Beside, _) if self.beside.is_some() => BESIDE,
            (_, FlowParams::Rdma(_)) => QUEUE_PAIRS,
            (_, FlowParams::Tcp(_)) => TCP,
            (_, FlowParams::Eqds) => TUNNELS,
            (_, FlowParams::Messages(_)) => MESSAGES,
        }
    }

    /// Returns the parameters of queue pairs, if flows are queue pairs.
    #[inline]
    pub const fn rdma(&self) -> Option<&RdmaParams> {
        if let FlowParams::Rdma(rdma) = &self.flows { Some(rdma) } else { None }
    }

    /// Returns whether receivers leave expected packets without an answer ([`Nic::incoming`]).
    pub fn takes_unanswered(&self) -> bool {
        self.rdma().is_some_and(RdmaParams::takes_unanswered)
    }
}

/// Carrier of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The transport that the NIC is configured for ([`NicParams::flows`]).
    Transport,
    /// TCP beside that transport, configured by [`NicParams::beside`].
    Beside,
}

/// The NIC of one host. State that every packet of RoCE touches comes first, followed by that of tunnels.
#[derive(Debug)]
#[repr(C)]
pub struct Nic {
    pub(crate) port: Port,
    /// Packets that the first entry of the ready ring has sent in its turn.
    pub(crate) turn: u32,
    next_qp: QpNumber,
    /// EQIFs, if stacks send through tunnels.
    pub(crate) eqifs: Option<Box<EqifSet>>,
    pub(crate) queue_pairs: QueuePairs,
    pub(crate) tunnels: Tunnels,
    /// RNIC of applications, if there is one.
    pub(crate) rdma: Option<Box<Rdma>>,
    pub(crate) messages: Option<Box<AnyEndpoint>>,
    pub(crate) tcp: tcp::Host,
    /// TCP beside the transport.
    pub(crate) beside: tcp::Host,
    /// Telemetry waiting for its acknowledgements; empty where no switch writes telemetry.
    pub(crate) echoes: VecDeque<Echo>,
    /// Next time at which the NIC is woken because a queue pair polls the link, if that is in the future.
    polls_at: Instant,
}

/// Evaluates `$call` with the endpoint that has `$slot`, the context that it is lent, and its entry: for calls that may
/// change its turn and its deadlines. `None` if no endpoint has the slot.
macro_rules! call {
    ($nic:ident, $cx:expr, $params:expr, $slot:expr, |$endpoint:ident, $context:ident, $entry:ident| $call:expr) => {{
        let (slot, NicParams { frames, flows, eqds, beside, .. }) = ($slot, $params);
        macro_rules! with {
            ($place:expr, $range:expr, $own:expr) => {{
                let ($endpoint, $entry) = ($place, $range.place(slot));
                let $context = &mut $nic.port.lend($cx, frames, $own, $range.slot(0));
                Some($call)
            }};
        }
        match (Owner::of(slot), flows) {
            (Owner::QueuePair, FlowParams::Rdma(own)) => with!(&mut $nic.queue_pairs, QUEUE_PAIRS, own),
            (Owner::Tunnel, _) if let Some(own) = eqds => with!(&mut $nic.tunnels, TUNNELS, own),
            (Owner::Tcp, FlowParams::Tcp(own)) => with!(&mut $nic.tcp, TCP, own),
            (Owner::Beside, _) if let Some(own) = beside => with!(&mut $nic.beside, BESIDE, own),
            (Owner::Message, FlowParams::Messages(own)) if let Some(messages) = $nic.messages.as_deref_mut() => {
                with!(messages, MESSAGES, own)
            }
            _ => None,
        }
    }};
}
pub(crate) use call;

/// Evaluates `$call` with the endpoint that has `$slot`, and its entry: for calls that need no context. `None` if no
/// endpoint has the slot.
macro_rules! of_slot {
    ($nic:ident, $slot:expr, [$($mut:tt)?] |$endpoint:ident, $entry:ident| $call:expr) => {{
        let slot = $slot;
        macro_rules! with {
            ($place:expr, $range:expr) => {{
                let ($endpoint, $entry) = ($place, $range.place(slot));
                $call
            }};
        }
        match Owner::of(slot) {
            Owner::QueuePair => with!(& $($mut)? $nic.queue_pairs, QUEUE_PAIRS),
            Owner::Tunnel => with!(& $($mut)? $nic.tunnels, TUNNELS),
            Owner::Tcp => with!(& $($mut)? $nic.tcp, TCP),
            Owner::Beside => with!(& $($mut)? $nic.beside, BESIDE),
            Owner::Message if let Some(messages) = & $($mut)? $nic.messages => with!(messages, MESSAGES),
            _ => None,
        }
    }};
}
pub(crate) use of_slot;

/// Returns how many queue pair numbers a flow of an endpoint takes.
fn numbers<E: Endpoint>(_: &E, params: &E::Params) -> u32 {
    E::numbers(params)
}

impl Nic {
    /// Creates the NIC of host `id`, without queue pairs.
    pub fn new(id: HostId, params: &NicParams) -> Self {
        Self {
            port: Port::new(id, PACER),
            turn: 0,
            next_qp: QpNumber(0),
            eqifs: params.eqif.as_ref().map(|eqif| Box::new(EqifSet::new(eqif))),
            queue_pairs: params.rdma().map(QueuePairs::new).unwrap_or_default(),
            tunnels: Tunnels::default(),
            rdma: None,
            messages: match &params.flows {
                FlowParams::Messages(config) => Some(Box::new(config.into())),
                _ => None,
            },
            tcp: tcp::Host::default(),
            beside: tcp::Host::default(),
            echoes: VecDeque::new(),
            polls_at: Instant::ZERO,
        }
    }

    /// Returns the counters of this NIC.
    pub fn stats(&self) -> &NicStats {
        &self.port.stats
    }

    /// Returns the counters of out-of-order data.
    pub fn reordering(&self) -> Reordering {
        let buffered = Bytes::new(self.port.stats.reordered);
        let mut sum = Reordering { buffered, ..self.queue_pairs.shared().reordering() };
        if let Some(rdma) = &self.rdma {
            sum.add(&rdma.rnic.pools().reordering());
        }
        sum
    }

    /// Opens a queue pair that sends one message; returns its number and its slot.
    #[inline(never)]
    pub fn open_sender(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        carrier: Carrier,
        message: &Message,
    ) -> (QpNumber, u32) {
        let (qp, range) = (self.next_qp, params.slots_of(carrier));
        let cx = &mut Cx::at(cx.now);
        let opened = call!(self, cx, params, range.slot(0), |endpoint, cx, _entry| {
            (endpoint.open_sender(cx, qp, message), numbers(endpoint, cx.params))
        });
        let (entry, numbers) = opened.expect("flows have a transport");
        self.next_qp = QpNumber(qp.0.wrapping_add(numbers));
        self.join_tunnels();
        self.hand_over(cx, params);
        (qp, range.slot(entry))
    }

    /// Closes a queue pair that sends, finished or not; returns the caller's name of it.
    pub fn close_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        of_slot!(self, slot, [mut] |endpoint, entry| endpoint.close_sender(entry, qp))
    }

    /// Expects a message of `size` from the queue pair `qp` of `src`.
    #[inline(never)]
    pub fn open_receiver(
        &mut self,
        params: &NicParams,
        carrier: Carrier,
        src: HostId,
        qp: QpNumber,
        size: Bytes,
        context: u32,
    ) {
        let range = params.slots_of(carrier);
        let cx = &mut Cx::at(Instant::ZERO);
        let opened = call!(self, cx, params, range.slot(0), |endpoint, cx, _entry| {
            (endpoint.open_receiver(cx, src, qp, size, context), numbers(endpoint, cx.params))
        });
        let (entry, numbers) = opened.expect("flows have a transport");
        for number in 0..numbers {
            self.port.by_peer.insert((src, QpNumber(qp.0.wrapping_add(number))), range.slot(entry));
        }
    }

    /// Closes a queue pair that receives; returns the caller's name of it, and its number of duplicates.
    pub fn close_receiver(&mut self, src: HostId, qp: QpNumber) -> Option<(u32, u32)> {
        let slot = self.port.by_peer.get((src, qp))?;
        let numbers = self.queue_pairs(slot, qp);
        for number in 0..numbers {
            self.port.by_peer.remove((src, QpNumber(qp.0.wrapping_add(number))));
        }
        let closed = of_slot!(self, slot, [mut] |endpoint, entry| endpoint.close_receiver(entry))?;
        Some((closed.context, closed.duplicates))
    }

    /// Returns the cause for which a sending queue pair waits at `now`; `None` if the queue pair does not exist.
    pub fn hold(&self, slot: u32, qp: QpNumber, now: Instant) -> Option<HoldReason> {
        self.standing(slot, qp, now).map(|standing| standing.hold)
    }

    /// Returns the progress of a flow at its sender, named by its slot and queue pair; `None` if it does not exist or
    /// has ended.
    pub fn standing(&self, slot: u32, qp: QpNumber, now: Instant) -> Option<Standing> {
        of_slot!(self, slot, [] | endpoint, entry | endpoint.standing(entry, qp, now))
    }

    /// Returns the progress of the flow that the queue pair `qp` of `src` sends; `None` if no flow is expected from
    /// there.
    pub fn received(&self, src: HostId, qp: QpNumber) -> Option<Received> {
        of_slot!(self, self.port.by_peer.get((src, qp))?, [] | endpoint, entry | endpoint.received(entry))
    }

    /// Returns the number of consecutive queue pairs of a flow, named by the first: several if the flow has subflows.
    pub fn queue_pairs(&self, slot: u32, qp: QpNumber) -> u32 {
        of_slot!(self, slot, [] | endpoint, entry | Some(endpoint.queue_pairs(entry, qp))).unwrap_or(1)
    }

    /// Returns the limits of a sending queue pair; `None` if the queue pair does not exist.
    pub fn limits(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        of_slot!(self, slot, [] | endpoint, entry | endpoint.limits(entry, qp))
    }

    /// Returns the acknowledgements and congestion notifications that wait for the link.
    pub fn waiting_answers(&self) -> &[Packet] {
        &self.port.answers
    }

    /// Returns the next report made here, for the driver to deliver to its receiver.
    #[inline]
    pub fn poll_report(&mut self) -> Option<Report> {
        self.queue_pairs.poll_report()
    }

    /// Returns whether the NIC has further results after a packet: a report, or completions in addition to the returned
    /// one.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.queue_pairs.has_report() || !self.tunnels.completions.is_empty()
    }

    /// Returns how many bytes from the NIC's beginning packets touch; for drivers that prefetch them.
    pub fn busy_bytes(params: &NicParams) -> usize {
        let is_other = matches!(params.flows, FlowParams::Tcp(_) | FlowParams::Messages(_));
        if is_other || params.beside.is_some() || params.verbs.is_some() {
            size_of::<Self>()
        } else if params.eqds.is_some() {
            core::mem::offset_of!(Self, rdma)
        } else {
            core::mem::offset_of!(Self, queue_pairs) + QueuePairs::busy_bytes()
        }
    }

    /// Returns the first packets and slots that wait to be sent, a cache line each, for drivers that prefetch them.
    #[inline]
    pub fn state_of_waiting(&self) -> [PrefetchRange; 2] {
        let Port { ready, answers, .. } = &self.port;
        [PrefetchRange::of_entry(ready.as_slices().0, 0, 1), PrefetchRange::of_entry(answers, 0, 1)]
    }

    /// Returns the state that handling `packet` will touch first, for drivers that prefetch it.
    #[inline]
    pub fn state_of(&self, packet: &Packet) -> PrefetchRange {
        match packet.repr {
            Repr::Data(_) => self.port.by_peer.state_of((packet.src, packet.qp)),
            Repr::EqdsData(_) | Repr::EqdsControl(_) => self.tunnels.state_of(packet),
            _ => self.queue_pairs.state_of_sender(packet.slot),
        }
    }

    /// Returns the state of the queue pair behind [`Nic::state_of`], which must be in the cache already, for drivers
    /// that prefetch it.
    #[inline]
    pub fn state_behind(&self, packet: &Packet) -> PrefetchRange {
        let slot = if let Repr::Data(_) = packet.repr { self.port.by_peer.get((packet.src, packet.qp)) } else { None };
        slot.map_or(PrefetchRange::EMPTY, |slot| self.queue_pairs.state_of_receiver(slot))
    }

    /// Returns a lower bound of the number of queue pairs.
    #[inline]
    pub fn queue_pairs_at_least(&self) -> usize {
        self.queue_pairs.receivers().max(self.port.ready.len())
    }

    /// Returns what packets touch of the queue pair that sends after `others` others, for drivers that prefetch it.
    #[inline]
    pub fn state_to_send(&self, others: usize) -> Option<PrefetchRange> {
        self.queue_pairs.state_to_send(*self.port.ready.get(others)?)
    }

    /// Returns all state behind the NIC itself, for drivers that prefetch it. Where that is little, drivers need not
    /// call [`state_of`](Nic::state_of) for each packet.
    #[inline]
    pub fn state(&self, params: &NicParams) -> [PrefetchRange; 6] {
        // Without tunnels, their state lies far behind the rest, and is not touched.
        let nothing = [PrefetchRange::EMPTY; 3];
        let [outbound, inbound, by_source] = if params.eqds.is_some() { self.tunnels.state() } else { nothing };
        let [senders, receivers] = self.queue_pairs.state();
        [senders, receivers, self.port.by_peer.state(), outbound, inbound, by_source]
    }
}
