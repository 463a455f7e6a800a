//! The NIC: queue pairs, and the state that they share.
//!
//! `arriving.rs` handles arriving packets, `arbiter.rs` (or `polling.rs`) selects the next packet for the link, and
//! `deadlines.rs` keeps deadlines.

mod answers;
mod arbiter;
mod arriving;
mod deadlines;
mod polling;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_prefetch::PrefetchRange;
use selvedge_telemetry::Reordering;
use selvedge_transport::endpoint::{Endpoint, EndpointParams, Frames, Message, NicStats};
use selvedge_transport::eqds::EqdsParams;
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::table::Table;
use selvedge_transport::tcp;
use selvedge_transport::{
    Cx, Feedback, FeedbackConfig, HoldReason, Limits, Receiver, RecoveryParams, SchemeParams, Sender, SenderParams,
    SharedPools,
};
use selvedge_units::{Bytes, Duration, HostId, Instant, Psn, QpNumber, Seq};
use selvedge_wire::{Packet, Repr};

use answers::Answers;
pub use arbiter::Train;
pub use arriving::Incoming;

pub(crate) use deadlines::{Deadlines, Due};

use crate::echo::Echo;
use crate::eqds::Tunnels;
use crate::eqif::EqifSet;
use crate::messages::Messages;
use crate::qp::{Carrier, RecvQp, Report, SendQp};
use crate::rdma::{Rdma, VerbsParams};
use crate::slot::{MESSAGES, Owner, TCP};
use crate::tcp::Flows;

/// Parameters of a NIC; shared by all NICs of a fabric.
#[derive(Clone, Debug)]
pub struct NicParams {
    /// Lengths and classes of packets.
    pub frames: Frames,
    /// Length of an acknowledgement frame that carries holes in bytes.
    pub hole_nack_frame: u16,
    /// Length of a congestion notification frame in bytes.
    pub cnp_frame: u16,
    /// Packets that a queue pair sends before the next one's turn.
    pub qp_burst: u32,
    /// Interval at which one of the NIC's own queue pairs with a packet to send polls the link; zero if queue pairs
    /// take turns instead.
    pub mac_poll: Duration,
    /// Whether the polling times of queue pairs are drawn anew for each packet that the NIC sends.
    pub polls_at_random: bool,
    /// Bit per traffic class that data may have.
    pub data_classes: u8,
    /// Traffic class of congestion notifications.
    pub cnp_class: u8,
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

/// RDMA queue pairs.
#[derive(Clone, Copy, Debug)]
pub struct RdmaParams {
    /// Configuration of the engine at the sending end.
    pub sender: SenderParams,
    /// Configuration of the engine at the receiving end.
    pub receiver: RecoveryParams,
    /// Feedback that the receiving end gives to congestion control.
    pub feedback: FeedbackConfig,
}

/// TCP of flows.
#[derive(Clone, Copy, Debug)]
pub struct TcpParams {
    /// Parameters of both ends.
    pub config: tcp::Params,
    /// Traffic class of acknowledgements.
    pub ack_class: u8,
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

    /// Returns the parameters of queue pairs, if flows are queue pairs.
    #[inline]
    pub const fn rdma(&self) -> Option<&RdmaParams> {
        if let FlowParams::Rdma(rdma) = &self.flows { Some(rdma) } else { None }
    }

    /// Returns whether receivers leave expected packets without an answer ([`Nic::incoming`]).
    pub fn takes_unanswered(&self) -> bool {
        self.rdma().is_some_and(|rdma| rdma.feedback.is_silent() && !rdma.receiver.acknowledges_each())
    }
}

/// The NIC of one host. State that every packet of RoCE touches comes first, followed by that of tunnels.
#[derive(Debug)]
#[repr(C)]
pub struct Nic {
    senders: Vec<Option<SendQp>>,
    receivers: Vec<Option<RecvQp>>,
    pub(crate) by_peer: Table<(HostId, QpNumber)>,
    pub(crate) deadlines: Deadlines,
    pub(crate) ready: VecDeque<u32>,
    /// Acknowledgements and congestion notifications waiting for the link.
    pub(crate) answers: Answers,
    pub(crate) id: HostId,
    next_qp: QpNumber,
    /// Number of bytes of a sending queue pair that packets touch.
    busy_sender: u32,
    /// Packets that the first entry of the ready ring has sent in its turn.
    pub(crate) turn: u32,
    /// EQIFs, if stacks send through tunnels.
    pub(crate) eqifs: Option<Box<EqifSet>>,
    pub(crate) stats: NicStats,
    pub(crate) tunnels: Tunnels,
    /// Reports waiting to be taken.
    reports: VecDeque<Report>,
    /// On-chip memory that queue pairs share, lent to each for its call.
    pools: SharedPools,
    /// Telemetry waiting for its acknowledgements; empty where no switch writes telemetry.
    pub(crate) echoes: VecDeque<Echo>,
    free_senders: Vec<u32>,
    free_receivers: Vec<u32>,
    /// RNIC of applications, if there is one.
    pub(crate) rdma: Option<Box<Rdma>>,
    pub(crate) tcp: Flows,
    pub(crate) messages: Option<Box<Messages>>,
    /// Next time at which the NIC is woken because a queue pair polls the link, if that is in the future.
    polls_at: Instant,
}

/// Returns the shortage and use of on-chip memory.
fn reordering_on(pools: &SharedPools) -> Reordering {
    let SharedPools { receiving, sending, exhausted, middle, forgotten, .. } = pools;
    Reordering {
        buffered: Bytes::ZERO,
        pool_blocks: receiving.blocks(),
        pool_peak: receiving.peak(),
        sender_pool_peak: sending.peak(),
        refused_full: *exhausted,
        refused_middle: *middle,
        forgotten: *forgotten,
        swaps: pools.swaps(),
    }
}

/// First PSN of all queue pairs; any value would do.
const FIRST_PSN: Psn = Psn::new(0);

impl Nic {
    /// Creates the NIC of host `id`, without queue pairs.
    pub fn new(id: HostId, params: &NicParams) -> Self {
        let rdma = params.rdma();
        let busy_engine = rdma.map_or(0, |rdma| Sender::busy_bytes(&rdma.sender));
        let busy_sender = core::mem::offset_of!(SendQp, sender) + busy_engine;
        Self {
            id,
            senders: Vec::new(),
            free_senders: Vec::new(),
            receivers: Vec::new(),
            free_receivers: Vec::new(),
            by_peer: Table::new(),
            next_qp: QpNumber(0),
            busy_sender: busy_sender as u32,
            ready: VecDeque::new(),
            turn: 0,
            answers: Answers::new(),
            reports: VecDeque::new(),
            echoes: VecDeque::new(),
            deadlines: Deadlines::new(),
            pools: rdma.map(|rdma| rdma.receiver.shared_pools()).unwrap_or_default(),
            stats: NicStats::default(),
            tcp: Flows::default(),
            tunnels: Tunnels::default(),
            eqifs: params.eqif.as_ref().map(|eqif| Box::new(EqifSet::new(eqif))),
            messages: if let FlowParams::Messages(config) = &params.flows { Some(Messages::new(config)) } else { None },
            rdma: None,
            polls_at: Instant::ZERO,
        }
    }

    /// Returns the counters of this NIC.
    pub fn stats(&self) -> &NicStats {
        &self.stats
    }

    /// Returns the counters of out-of-order data.
    pub fn reordering(&self) -> Reordering {
        let mut sum = Reordering { buffered: Bytes::new(self.stats.reordered), ..reordering_on(&self.pools) };
        if let Some(rdma) = &self.rdma {
            sum.add(&reordering_on(rdma.rnic.pools()));
        }
        sum
    }

    /// Opens a queue pair that sends one message; returns its number and its slot.
    pub fn open_sender(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        carrier: Carrier,
        message: &Message,
    ) -> (QpNumber, u32) {
        let opened = match (carrier, &params.flows, &params.eqds) {
            (Carrier::Beside, _, _) if let Some(tcp) = &params.beside => self.open_tcp_sender(cx, tcp, message),
            (_, FlowParams::Rdma(rdma), _) => self.open_queue_pair(cx, params, rdma, message),
            (_, FlowParams::Tcp(tcp), _) => self.open_tcp_sender(cx, tcp, message),
            (_, FlowParams::Eqds, Some(eqds)) => self.open_message(cx, params, eqds, message),
            (_, FlowParams::Eqds, None) => unreachable!("EQDS's messages without tunnels"),
            (_, FlowParams::Messages(own), _) => self.begin_message(cx, params, own, message),
        };
        self.hand_over(&mut Cx::at(cx.now), params);
        opened
    }

    fn open_queue_pair(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        rdma: &RdmaParams,
        message: &Message,
    ) -> (QpNumber, u32) {
        let mtu = Bytes::new(u64::from(params.frames.mtu));
        let packets = message.size.pieces(mtu);
        let mut sender = Sender::new(&rdma.sender, FIRST_PSN);
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

    /// Returns a queue pair number that was not in use for a long time.
    pub(crate) fn name_qp(&mut self) -> QpNumber {
        let qp = self.next_qp;
        self.next_qp = QpNumber(qp.0.wrapping_add(1));
        qp
    }

    /// Closes a sending queue pair, finished or not; returns the caller's name of it.
    pub fn close_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        let Some(state) = find(&mut self.senders, slot, qp) else { return self.close_other_sender(slot, qp) };
        state.sender.release(&mut self.pools);
        let (queued, context) = (state.queued, state.context);
        self.senders[slot as usize] = None;
        // A slot that is still in the ready ring becomes free when it comes up there: no slot may be in the ring twice.
        if !queued {
            self.free_senders.push(slot);
        }
        Some(context)
    }

    #[cold]
    fn close_other_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        if TCP.has(slot) {
            return self.close_tcp_sender(slot, qp);
        }
        let entry = MESSAGES.has(slot).then(|| MESSAGES.place(slot))?;
        self.messages.as_mut()?.endpoint.close_sender(entry, qp)
    }

    /// Expects a message of `size` from the queue pair `qp` of `src`.
    pub fn open_receiver(&mut self, params: &NicParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) {
        let rdma = match &params.flows {
            FlowParams::Rdma(rdma) => rdma,
            FlowParams::Tcp(tcp) => return self.open_tcp_receiver(tcp, src, qp, size, context),
            FlowParams::Eqds => return self.expect_message(params, src, qp, size, context),
            FlowParams::Messages(_) => {
                let slot = self.await_message(params, src, qp, size, context);
                return self.by_peer.insert((src, qp), slot);
            }
        };
        let state = RecvQp {
            receiver: Receiver::new(&rdma.receiver, FIRST_PSN),
            feedback: Feedback::default(),
            context,
            duplicates: 0,
            missing: size.pieces(Bytes::new(u64::from(params.frames.mtu))),
        };
        let slot = put(&mut self.receivers, &mut self.free_receivers, state);
        self.by_peer.insert((src, qp), slot);
    }

    /// Expects `size` bytes from the TCP flow `qp` of `src`.
    pub fn open_tcp_receiver(&mut self, tcp: &TcpParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) {
        if tcp.config.subflows > 1 {
            return self.accept_bundle(tcp, src, qp, size, context);
        }
        let slot = self.accept_tcp(tcp, src, qp, size, context);
        self.by_peer.insert((src, qp), slot);
    }

    /// Closes a receiving queue pair; returns the caller's name of it, and its number of duplicates.
    pub fn close_receiver(&mut self, src: HostId, qp: QpNumber) -> Option<(u32, u32)> {
        let slot = self.by_peer.remove((src, qp))?;
        match Owner::of(slot) {
            Owner::QueuePair => {}
            Owner::Tcp => return self.close_tcp_receiver(src, slot, qp),
            Owner::Message => return self.messages.as_mut()?.endpoint.close_receiver(MESSAGES.place(slot)),
            _ => return self.close_message(src, slot),
        }
        self.free_receivers.push(slot);
        let mut state = self.receivers[slot as usize].take()?;
        state.receiver.release(&mut self.pools);
        Some((state.context, state.duplicates))
    }

    /// Returns the cause for which a sending queue pair waits at `now`; `None` if the queue pair does not exist.
    pub fn hold(&self, slot: u32, qp: QpNumber, now: Instant) -> Option<HoldReason> {
        self.standing(slot, qp, now).map(|standing| standing.hold)
    }

    /// Returns the engine of a sending RDMA queue pair; `None` if the queue pair does not exist.
    pub(crate) fn sender_of(&self, slot: u32, qp: QpNumber) -> Option<&Sender> {
        let state = self.senders.get(slot as usize).and_then(Option::as_ref).filter(|state| state.qp == qp);
        state.map(|state| &state.sender)
    }

    /// Returns the caller's name of the RDMA queue pair that receives in `slot`, the number of packets that have not
    /// arrived, and the engine.
    pub(crate) fn receiver_at(&self, slot: u32) -> Option<(u32, u64, &Receiver)> {
        let state = self.receivers.get(slot as usize).and_then(Option::as_ref);
        state.map(|state| (state.context, state.missing, &state.receiver))
    }

    /// Returns the number of consecutive queue pairs of a flow, named by the first: several if the flow has subflows.
    pub fn queue_pairs(&self, slot: u32, qp: QpNumber) -> u32 {
        self.subflows(slot, qp).unwrap_or(1)
    }

    /// Returns the limits of a sending queue pair; `None` if the queue pair does not exist.
    pub fn limits(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        let state = self.senders.get(slot as usize).and_then(Option::as_ref).filter(|state| state.qp == qp);
        state.map_or_else(
            || {
                self.limits_of_tcp(slot, qp)
                    .or_else(|| self.limits_of_message(slot, qp))
                    .or_else(|| self.message_at(slot).and_then(|(endpoint, entry)| endpoint.limits(entry, qp)))
            },
            |state| Some(state.sender.limits()),
        )
    }

    /// Returns the next report made here, for the driver to deliver to its receiver.
    #[inline]
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns whether the NIC has further results after a packet: a report, or completions in addition to the returned
    /// one.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.reports.is_empty() || !self.tunnels.completions.is_empty()
    }

    /// Returns how many bytes from the NIC's beginning packets touch; for drivers that prefetch them.
    pub fn busy_bytes(params: &NicParams) -> usize {
        let is_other = matches!(params.flows, FlowParams::Tcp(_) | FlowParams::Messages(_));
        if is_other || params.beside.is_some() || params.verbs.is_some() {
            size_of::<Self>()
        } else if params.eqds.is_some() {
            core::mem::offset_of!(Self, pools)
        } else {
            // Timeouts, the last counter, are rare.
            core::mem::offset_of!(Self, stats) + core::mem::offset_of!(NicStats, timeouts)
        }
    }

    /// Returns the first packets and slots that wait to be sent, a cache line each, for drivers that prefetch them.
    #[inline]
    pub fn state_of_waiting(&self) -> [PrefetchRange; 2] {
        [PrefetchRange::of_entry(self.ready.as_slices().0, 0, 1), PrefetchRange::of_entry(&self.answers, 0, 1)]
    }

    /// Returns the state that handling `packet` will touch first, for drivers that prefetch it.
    #[inline]
    pub fn state_of(&self, packet: &Packet) -> PrefetchRange {
        match packet.repr {
            Repr::Data(_) => self.by_peer.state_of((packet.src, packet.qp)),
            Repr::EqdsData(_) | Repr::EqdsControl(_) => self.tunnels.state_of(packet),
            _ => PrefetchRange::of_entry(&self.senders, packet.slot as usize, self.busy_sender as usize),
        }
    }

    /// Returns the state of the queue pair behind [`Nic::state_of`], which must be in the cache already, for drivers
    /// that prefetch it.
    #[inline]
    pub fn state_behind(&self, packet: &Packet) -> PrefetchRange {
        let slot = if let Repr::Data(_) = packet.repr { self.by_peer.get((packet.src, packet.qp)) } else { None };
        let place = slot.and_then(|slot| self.receivers.get(slot as usize));
        place.map_or(PrefetchRange::EMPTY, |place| PrefetchRange::of(core::slice::from_ref(place)))
    }

    /// Returns a lower bound of the number of queue pairs.
    #[inline]
    pub fn queue_pairs_at_least(&self) -> usize {
        self.receivers.len().max(self.ready.len())
    }

    /// Returns what packets touch of the queue pair that sends after `others` others, for drivers that prefetch it.
    #[inline]
    pub fn state_to_send(&self, others: usize) -> Option<PrefetchRange> {
        let place = self.senders.get(*self.ready.get(others)? as usize)?;
        Some(PrefetchRange::beginning_of(place, self.busy_sender as usize))
    }

    /// Returns all state behind the NIC itself, for drivers that prefetch it. Where that is little, drivers need not
    /// call [`state_of`](Nic::state_of) for each packet.
    #[inline]
    pub fn state(&self, params: &NicParams) -> [PrefetchRange; 6] {
        // Without tunnels, their state lies far behind the rest, and is not touched.
        let nothing = [PrefetchRange::EMPTY; 3];
        let [outbound, inbound, by_source] = if params.eqds.is_some() { self.tunnels.state() } else { nothing };
        // Packets do not touch the rest of the last queue pair.
        let rest = size_of::<SendQp>() - self.busy_sender as usize;
        let senders = PrefetchRange::of(&self.senders).without_last(rest);
        [senders, PrefetchRange::of(&self.receivers), self.by_peer.state(), outbound, inbound, by_source]
    }

    #[inline]
    pub(crate) fn sender_at(&mut self, slot: u32, qp: QpNumber) -> Option<&mut SendQp> {
        find(&mut self.senders, slot, qp)
    }
}

/// Returns the queue pair `qp`, if it is the one in `slot`.
#[inline]
fn find(senders: &mut [Option<SendQp>], slot: u32, qp: QpNumber) -> Option<&mut SendQp> {
    senders.get_mut(slot as usize)?.as_mut().filter(|state| state.qp == qp)
}

/// Stores `state` in a free place; returns its index.
pub(crate) fn put<T>(places: &mut Vec<Option<T>>, free: &mut Vec<u32>, state: T) -> u32 {
    match free.pop() {
        Some(slot) => {
            places[slot as usize] = Some(state);
            slot
        }
        None => {
            if places.is_empty() {
                // Most NICs have one; a vector would begin with space for four.
                places.reserve_exact(1);
            }
            places.push(Some(state));
            (places.len() - 1) as u32
        }
    }
}
