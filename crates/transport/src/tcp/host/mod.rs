//! TCP on one host: a connection per flow, or several ([`bundle`]).
//!
//! Both ends have an entry for each connection. Segments of the end that did not open a flow are acknowledgements,
//! which leave before data.

mod bundle;

use alloc::boxed::Box;

use selvedge_units::{Bytes, HostId, Instant, QpNumber, TcpSeq};
use selvedge_wire::tcp::{SegmentContext, Stream, Tcp};
use selvedge_wire::{Ecn, Header, Packet, Repr};

use super::{Arrival, Connection, Params, State, Transmit, clock};
use crate::endpoint::{
    Alarm, Closed, Completion, Context, Endpoint, Expected, Frames, Handled, Message, NicStats, Received, Standing,
};
use crate::places::Places;
use crate::role::{Cx, Limits};

use bundle::Bundle;

/// TCP of flows.
#[derive(Clone, Copy, Debug)]
pub struct TcpParams {
    /// Parameters of both ends.
    pub config: Params,
    /// Traffic class of acknowledgements.
    pub ack_class: u8,
}

/// All TCP flows of one host.
#[derive(Debug, Default)]
pub struct Host {
    flows: Places<Box<Flow>>,
    bundles: Places<Box<Bundle>>,
}

/// An end of a TCP flow.
#[derive(Debug)]
struct Flow {
    connection: Connection,
    /// Whether this end opened the flow, and sends.
    is_opener: bool,
    /// Whether the flow ends with FINs.
    has_fin: bool,
    qp: QpNumber,
    peer: HostId,
    /// Input of the ECMP hash on the path to the peer.
    entropy: u32,
    /// Slot of the flow at the opener, which packets of both ends name.
    opener_slot: u32,
    context: u32,
    /// Stream of octets. `missing` holds the number of octets that have not arrived here yet.
    stream: Stream,
    missing: u64,
    duplicates: u32,
    classes: Classes,
    /// Index of the bundle of which this flow is a subflow.
    bundle: Option<u32>,
    /// Whether the flow waits for its turn at the link.
    queued: bool,
    alarm: Alarm,
}

#[derive(Clone, Copy, Debug)]
struct Classes {
    data: u8,
    ack: u8,
}

impl Flow {
    fn new(classes: Classes, config: &Params, is_opener: bool, qp: QpNumber, peer: HostId, size: Bytes) -> Self {
        let (opener, opened) = initial(qp);
        let (ours, theirs) = if is_opener { (opener, opened) } else { (opened, opener) };
        let mut connection = match (config.handshake, is_opener) {
            (false, _) => Connection::established(config, ours, theirs),
            (true, true) => Connection::connect(config, ours),
            (true, false) => Connection::listen(config, ours),
        };
        if is_opener {
            connection.supply(size.get());
            if config.fin {
                connection.close();
            }
        }
        Self {
            connection,
            is_opener,
            has_fin: config.fin,
            qp,
            peer,
            entropy: 0,
            opener_slot: 0,
            context: 0,
            // Data begins one sequence number behind the SYN.
            stream: Stream {
                mss: config.mss as u16,
                end: TcpSeq::new(opener.get().wrapping_add(1).wrapping_add(size.get() as u32)),
            },
            missing: if is_opener { 0 } else { size.get() },
            duplicates: 0,
            classes,
            bundle: None,
            queued: false,
            alarm: Alarm::default(),
        }
    }

    /// Returns the next segment as a packet, if there is one to send.
    fn poll(&mut self, cx: &mut Context<'_, '_, TcpParams>) -> Option<Packet> {
        let Transmit { segment, ecn_capable, is_again } = self.connection.poll_transmit(cx.cx)?;
        let way = SegmentContext { is_backward: !self.is_opener, is_again };
        let frame = Header::ETHERNET_IPV4.get() + segment.header() as u64 + u64::from(segment.payload);
        Some(Packet {
            sent_at: cx.now(),
            src: cx.port.host,
            dst: self.peer,
            qp: self.qp,
            slot: self.opener_slot,
            entropy: self.entropy,
            frame: frame.max(Header::MINIMUM_FRAME.get()) as u16,
            class: if self.is_opener { self.classes.data } else { self.classes.ack },
            ecn: if ecn_capable { Ecn::Capable } else { Ecn::NotCapable },
            repr: Repr::Tcp(Tcp::pack(&segment, way, self.stream)),
        })
    }

    /// Handles a segment; returns the arrival, and whether the segment carried data.
    fn take_in(&mut self, cx: &mut Cx<'_>, packet: &Packet, tcp: &Tcp) -> (Arrival, bool) {
        if !self.is_opener {
            (self.opener_slot, self.entropy) = (packet.slot, !packet.entropy);
        }
        let segment = tcp.unpack(self.connection.expected(), clock(packet.sent_at), self.stream);
        let arrival = self.connection.handle_segment(cx, &segment, packet.ecn == Ecn::Marked);
        self.connection.read(arrival.in_order);
        self.duplicates += u32::from(arrival.is_duplicate);
        if !self.is_opener && self.connection.state() == State::CloseWait {
            self.connection.close();
        }
        (arrival, segment.payload > 0)
    }

    /// Sends all segments that are ready, without waiting for a turn at the link.
    fn answer(&mut self, cx: &mut Context<'_, '_, TcpParams>) {
        while let Some(segment) = self.poll(cx) {
            cx.port.answers.push_back(segment);
        }
    }

    /// Updates the turn and the deadline of the flow, which is entry `entry`, after a change of its state.
    fn refresh(&mut self, cx: &mut Context<'_, '_, TcpParams>, entry: u32) {
        if !self.is_opener {
            self.answer(cx);
        } else if !self.queued && self.connection.is_ready() {
            self.queued = true;
            cx.ready(entry);
        }
        self.alarm.set(cx, entry, self.connection.poll_timeout());
    }

    /// Returns the progress of the connection at its sender.
    fn standing(&self) -> Standing {
        let (stats, sent) = (self.connection.stats(), self.connection.sent());
        Standing {
            hold: self.connection.hold(),
            sent: Some(sent),
            unsent: self.connection.supplied().saturating_sub(sent),
            has_lost: false,
            timeouts: u64::from(stats.timeouts),
            resent: stats.retransmissions,
        }
    }

    /// Returns whether the opener has nothing left to do.
    fn is_sent(&self) -> bool {
        let is_closed = matches!(self.connection.state(), State::TimeWait | State::Closed);
        self.connection.is_acknowledged() && (!self.has_fin || is_closed)
    }
}

/// Returns the initial sequence numbers of both ends, derived from the queue pair number so that both know them; they
/// are spread over the whole range, as in real TCP.
fn initial(qp: QpNumber) -> (TcpSeq, TcpSeq) {
    let hash = selvedge_units::mix64(u64::from(qp.0) + 1);
    (TcpSeq::new(hash as u32), TcpSeq::new((hash >> 32) as u32))
}

impl Host {
    fn flow(&self, entry: u32, qp: QpNumber) -> Option<&Flow> {
        self.flows.get(entry).map(|flow| &**flow).filter(|flow| flow.qp == qp)
    }
    fn flow_mut(&mut self, entry: u32, qp: QpNumber) -> Option<&mut Flow> {
        self.flows.get_mut(entry).map(|flow| &mut **flow).filter(|flow| flow.qp == qp)
    }

    /// Adds a flow; returns its entry.
    fn put(&mut self, cx: &Context<'_, '_, TcpParams>, flow: Flow) -> u32 {
        let entry = self.flows.put(Box::new(flow));
        if let Some(flow) = self.flows.get_mut(entry).map(|flow| &mut **flow).filter(|flow| flow.is_opener) {
            flow.opener_slot = cx.slot(entry);
        }
        entry
    }

    /// Removes a flow. An entry that waits for its turn at the link becomes free when its turn comes.
    fn take(&mut self, entry: u32, qp: QpNumber) -> Option<Flow> {
        let queued = self.flow(entry, qp)?.queued;
        let flow = if queued { self.flows.take_and_keep(entry) } else { self.flows.take(entry) };
        flow.map(|flow| *flow)
    }

    fn refresh(&mut self, cx: &mut Context<'_, '_, TcpParams>, entry: u32) {
        if let Some(flow) = self.flows.get_mut(entry) {
            flow.refresh(cx, entry);
        }
    }
}

impl Endpoint for Host {
    type Params = TcpParams;

    fn numbers(params: &TcpParams) -> u32 {
        u32::from(params.config.subflows.max(1))
    }

    #[cold]
    fn open_sender(&mut self, cx: &mut Context<'_, '_, TcpParams>, qp: QpNumber, message: &Message) -> u32 {
        if cx.params.config.subflows > 1 {
            return self.open_bundle(cx, qp, message);
        }
        let classes = Classes { data: message.class, ack: cx.params.ack_class };
        let flow = Flow::new(classes, &cx.params.config, true, qp, message.dst, message.size);
        let entry = self.put(cx, Flow { entropy: message.entropy, context: message.context, ..flow });
        self.refresh(cx, entry);
        entry
    }

    #[cold]
    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_, TcpParams>,
        src: HostId,
        qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        if cx.params.config.subflows > 1 {
            return self.accept_bundle(cx, Bundle::new(cx.params, qp, src, size, context));
        }
        let classes = Classes { data: cx.params.ack_class, ack: cx.params.ack_class };
        self.put(cx, Flow { context, ..Flow::new(classes, &cx.params.config, false, qp, src, size) })
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_, TcpParams>, packet: &Packet, entry: u32) -> Handled {
        let (Repr::Tcp(tcp), Some(flow)) = (&packet.repr, self.flows.get_mut(entry)) else { return Handled::Unknown };
        if let Some(bundle) = flow.bundle {
            return self.handle_subflow(cx, packet, tcp, entry, bundle);
        }
        let qp = packet.qp;
        if flow.qp != qp {
            return Handled::Unknown;
        }
        let (arrival, has_data) = flow.take_in(cx.cx, packet, tcp);
        count_arrival(&mut cx.port.stats, &arrival, has_data);
        let was_missing = flow.missing > 0;
        flow.missing -= arrival.fresh.min(flow.missing);
        let (context, duplicates) = (flow.context, flow.duplicates);
        if flow.is_opener && flow.is_sent() {
            flow.answer(cx); // its last segments
            self.take(entry, qp);
            return Handled::Completed(Completion::Sent { qp, context });
        }
        let is_received = was_missing && flow.missing == 0;
        flow.refresh(cx, entry);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp, context, duplicates });
        }
        Handled::Taken
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, TcpParams>, entry: u32, packet: &mut Packet) -> bool {
        let Some(flow) = self.flows.get_mut(entry) else {
            self.flows.free(entry); // closed while it waited for its turn
            return false;
        };
        flow.queued = false;
        let segment = flow.poll(cx);
        if let Some(segment) = segment
            && let Repr::Tcp(tcp) = segment.repr
        {
            let is_data = tcp.payload() > 0;
            cx.port.stats.retransmissions += u64::from(tcp.is_again() && is_data);
            cx.port.stats.data_sent += u64::from(is_data);
            cx.port.stats.acks_sent += u64::from(!is_data);
            *packet = segment;
        }
        let bundle = flow.bundle;
        flow.refresh(cx, entry);
        if let Some(bundle) = bundle {
            self.hand_out(cx, bundle);
        }
        segment.is_some()
    }

    #[cold]
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, TcpParams>, entry: u32, at: Instant) {
        let Some(flow) = self.flows.get_mut(entry) else { return };
        if !flow.alarm.take(at) {
            return;
        }
        if flow.is_opener {
            cx.cx.about(flow.qp);
        }
        let before = flow.connection.stats().timeouts;
        flow.connection.handle_timeout(cx.cx);
        cx.port.stats.timeouts += u64::from(flow.connection.stats().timeouts - before);
        flow.refresh(cx, entry);
    }

    fn class(&self, entry: u32, _frames: &Frames) -> Option<u8> {
        self.flows.get(entry).map(|flow| if flow.is_opener { flow.classes.data } else { flow.classes.ack })
    }

    #[cold]
    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        match self.flow(entry, qp)?.bundle {
            Some(bundle) => self.close_bundle(bundle).map(|closed| closed.context),
            None => self.take(entry, qp).map(|flow| flow.context),
        }
    }

    #[cold]
    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        let flow = self.flows.get(entry)?;
        match flow.bundle {
            Some(bundle) => self.close_bundle(bundle),
            None => {
                let Flow { context, duplicates, .. } = self.take(entry, flow.qp)?;
                Some(Closed { context, duplicates })
            }
        }
    }

    #[cold]
    fn standing(&self, entry: u32, qp: QpNumber, _now: Instant) -> Option<Standing> {
        let flow = self.flow(entry, qp)?;
        flow.bundle.map_or_else(|| Some(flow.standing()), |bundle| self.standing_of_bundle(bundle))
    }

    #[cold]
    fn received(&self, entry: u32) -> Option<Received> {
        let flow = self.flows.get(entry)?;
        if let Some(bundle) = flow.bundle {
            let Bundle { context, left: missing, .. } = **self.bundles.get(bundle)?;
            return Some(Received { context, count: None, missing, next: Expected::Any });
        }
        let connection = &flow.connection;
        Some(Received {
            context: flow.context,
            count: Some(connection.received()),
            missing: flow.missing,
            next: Expected::Octet(connection.expected(), flow.stream),
        })
    }

    #[cold]
    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        self.flow(entry, qp).map(|flow| flow.connection.limits())
    }

    fn queue_pairs(&self, entry: u32, qp: QpNumber) -> u32 {
        let bundle = self.flow(entry, qp).and_then(|flow| self.bundles.get(flow.bundle?));
        bundle.map_or(1, |bundle| u32::from(bundle.config.subflows))
    }
}

/// Counts a segment that has arrived.
fn count_arrival(stats: &mut NicStats, arrival: &Arrival, has_data: bool) {
    stats.goodput += arrival.fresh;
    stats.duplicates += u64::from(arrival.is_duplicate);
    if has_data {
        stats.data_received += 1;
    } else {
        stats.acks_received += 1;
    }
}
