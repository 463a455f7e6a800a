//! TCP flows: connections in place of RDMA queue pairs.
//!
//! TCP flows share the NIC's ready ring, its queue of acknowledgements and its deadlines. Their slots begin at [`TCP`],
//! beyond those of RDMA queue pairs, so that RDMA pays nothing for them: only lookups that find no queue pair come
//! here.

mod bundle;

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_transport::endpoint::{Completion, Handled, Message, NicStats, Standing};
use selvedge_transport::tcp::{Arrival, Connection, Params, State, Transmit, clock};
use selvedge_transport::{Cx, Limits};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, TcpSeq};
use selvedge_wire::tcp::{SegmentContext, Stream, Tcp};
use selvedge_wire::{Ecn, Header, Packet, Repr};

use crate::nic::{Due, Nic, TcpParams, put};
use crate::slot::TCP;

use bundle::Bundles;

/// The TCP flows of one NIC.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    places: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
    bundles: Bundles,
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
    /// Slot of the flow at the opener.
    opener_slot: u32,
    context: u32,
    /// Stream of octets. `missing` holds the number of octets that have not arrived here yet.
    stream: Stream,
    missing: u64,
    duplicates: u32,
    classes: Classes,
    /// Index of the bundle of which this flow is a subflow.
    bundle: Option<u32>,
    /// Whether the flow is in the ready ring.
    queued: bool,
    /// Earliest entry of this flow in the heap of deadlines.
    armed: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Classes {
    data: u8,
    ack: u8,
}

impl Flow {
    fn new(classes: Classes, config: &Params, is_opener: bool, qp: QpNumber, peer: HostId, size: Bytes) -> Box<Self> {
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
        Box::new(Self {
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
            armed: Instant::NEVER,
        })
    }

    /// Returns the next segment as a packet, if there is one to send.
    fn poll(&mut self, cx: &mut Cx<'_>, host: HostId) -> Option<Packet> {
        let Transmit { segment, ecn_capable, is_again } = self.connection.poll_transmit(cx)?;
        let way = SegmentContext { is_backward: !self.is_opener, is_again };
        let frame = Header::ETHERNET_IPV4.get() + segment.header() as u64 + u64::from(segment.payload);
        Some(Packet {
            sent_at: cx.now,
            src: host,
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

impl Flows {
    fn get(&self, slot: u32, qp: QpNumber) -> Option<&Flow> {
        let place = self.places.get(TCP.place(slot) as usize)?;
        place.as_deref().filter(|flow| flow.qp == qp)
    }
    fn get_mut(&mut self, slot: u32, qp: QpNumber) -> Option<&mut Flow> {
        let place = self.places.get_mut(TCP.place(slot) as usize)?;
        place.as_deref_mut().filter(|flow| flow.qp == qp)
    }
    /// Returns the traffic class of the flow in a slot.
    pub(crate) fn class_at(&self, slot: u32) -> Option<u8> {
        let flow = self.places.get(TCP.place(slot) as usize)?.as_deref()?;
        Some(if flow.is_opener { flow.classes.data } else { flow.classes.ack })
    }
    fn put(&mut self, flow: Box<Flow>) -> u32 {
        TCP.slot(put(&mut self.places, &mut self.free, flow))
    }
    /// Removes a flow. A slot that is in the ready ring becomes free when it comes up there.
    fn take(&mut self, slot: u32, qp: QpNumber) -> Option<Box<Flow>> {
        self.get(slot, qp)?;
        let flow = self.places[TCP.place(slot) as usize].take()?;
        if !flow.queued {
            self.free.push(TCP.place(slot));
        }
        Some(flow)
    }
}

/// In-order progress of a connection.
pub(crate) struct InOrder {
    /// Octets that have arrived in order.
    pub(crate) octets: u64,
    /// Next expected sequence number.
    pub(crate) next: TcpSeq,
    /// Stream of octets that `next` belongs to.
    pub(crate) stream: Stream,
}

impl Nic {
    #[cold]
    pub(crate) fn open_tcp_sender(&mut self, cx: &Cx<'_>, tcp: &TcpParams, message: &Message) -> (QpNumber, u32) {
        if tcp.config.subflows > 1 {
            return self.open_bundle(cx, tcp, message);
        }
        let qp = self.name_qp();
        let classes = Classes { data: message.class, ack: tcp.ack_class };
        let mut flow = Flow::new(classes, &tcp.config, true, qp, message.dst, message.size);
        (flow.entropy, flow.context) = (message.entropy, message.context);
        let slot = self.tcp.put(flow);
        if let Some(flow) = self.tcp.get_mut(slot, qp) {
            flow.opener_slot = slot;
        }
        self.refresh_tcp(&mut Cx::at(cx.now), slot, qp);
        (qp, slot)
    }

    #[cold]
    pub(crate) fn accept_tcp(&mut self, tcp: &TcpParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) -> u32 {
        let classes = Classes { data: tcp.ack_class, ack: tcp.ack_class };
        let mut flow = Flow::new(classes, &tcp.config, false, qp, src, size);
        flow.context = context;
        self.tcp.put(flow)
    }

    #[cold]
    pub(crate) fn close_tcp_sender(&mut self, slot: u32, qp: QpNumber) -> Option<u32> {
        match self.tcp.get(slot, qp)?.bundle {
            Some(bundle) => self.close_bundle(bundle).map(|ended| ended.context),
            None => self.tcp.take(slot, qp).map(|flow| flow.context),
        }
    }

    #[cold]
    pub(crate) fn close_tcp_receiver(&mut self, src: HostId, slot: u32, qp: QpNumber) -> Option<(u32, u32)> {
        match self.tcp.get(slot, qp)?.bundle {
            Some(bundle) => self.close_bundle_receiver(src, bundle),
            None => self.tcp.take(slot, qp).map(|flow| (flow.context, flow.duplicates)),
        }
    }

    /// Implements [`Nic::standing`] for TCP flows.
    #[cold]
    pub(crate) fn standing_of_tcp(&self, slot: u32, qp: QpNumber) -> Option<Standing> {
        let flow = self.tcp.get(slot, qp)?;
        let standing = |flow: &Flow| {
            let (stats, sent) = (flow.connection.stats(), flow.connection.sent());
            let (timeouts, resent) = (u64::from(stats.timeouts), stats.retransmissions);
            let unsent = flow.connection.supplied().saturating_sub(sent);
            Standing { hold: flow.connection.hold(), sent: Some(sent), unsent, has_lost: false, timeouts, resent }
        };
        let Some(at) = flow.bundle else { return Some(standing(flow)) };
        // Each subflow counts for itself.
        let none = Standing {
            hold: self.hold_bundle(at)?,
            sent: None,
            unsent: self.left_of_bundle(at)?.1,
            has_lost: false,
            timeouts: 0,
            resent: 0,
        };
        Some(self.subflows_of(at).map(standing).fold(none, |sum, one| Standing {
            unsent: sum.unsent + one.unsent,
            timeouts: sum.timeouts + one.timeouts,
            resent: sum.resent + one.resent,
            ..sum
        }))
    }

    /// Returns the progress of the flow that arrives in `slot`: the caller's name of the flow, the octets that have not
    /// arrived, and the in-order progress, which is `None` for several subflows, as each counts for itself.
    #[cold]
    pub(crate) fn received_by_tcp(&self, slot: u32, qp: QpNumber) -> Option<(u32, u64, Option<InOrder>)> {
        let flow = self.tcp.get(slot, qp)?;
        if let Some(at) = flow.bundle {
            return self.left_of_bundle(at).map(|(context, left)| (context, left, None));
        }
        let connection = &flow.connection;
        let in_order = InOrder { octets: connection.received(), next: connection.expected(), stream: flow.stream };
        Some((flow.context, flow.missing, Some(in_order)))
    }

    #[cold]
    pub(crate) fn limits_of_tcp(&self, slot: u32, qp: QpNumber) -> Option<Limits> {
        self.tcp.get(slot, qp).map(|flow| flow.connection.limits())
    }

    /// Handles a segment.
    #[inline(never)]
    pub(crate) fn on_tcp(&mut self, cx: &mut Cx<'_>, packet: &Packet, tcp: &Tcp) -> Handled {
        let qp = packet.qp;
        let slot = if tcp.is_backward() { Some(packet.slot) } else { self.by_peer.get((packet.src, qp)) };
        let Some((slot, flow)) = slot.and_then(|slot| self.tcp.get_mut(slot, qp).map(|flow| (slot, flow))) else {
            return Handled::Unknown;
        };
        if let Some(bundle) = flow.bundle {
            return self.on_subflow(cx, packet, tcp, slot, bundle);
        }
        let (arrival, has_data) = flow.take_in(cx, packet, tcp);
        count_arrival(&mut self.stats, &arrival, has_data);
        let was_missing = flow.missing > 0;
        flow.missing -= arrival.fresh.min(flow.missing);
        let (context, duplicates) = (flow.context, flow.duplicates);
        if flow.is_opener && flow.is_sent() {
            // The flow sends its last segments now.
            while let Some(last) = flow.poll(cx, self.id) {
                self.answers.push_back(last);
            }
            self.tcp.take(slot, qp);
            return Handled::Completed(Completion::Sent { qp, context });
        }
        let is_received = was_missing && flow.missing == 0;
        self.refresh_tcp(cx, slot, qp);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp, context, duplicates });
        }
        Handled::Taken
    }

    /// Returns the next packet of the flow at `slot`, which comes up in the ready ring.
    #[inline(never)]
    pub(crate) fn serve_tcp(&mut self, cx: &mut Cx<'_>, slot: u32) -> Option<Packet> {
        let Some(flow) = self.tcp.places.get_mut(TCP.place(slot) as usize).and_then(Option::as_deref_mut) else {
            self.tcp.free.push(TCP.place(slot)); // closed while it stood in the ring
            return None;
        };
        flow.queued = false;
        let qp = flow.qp;
        let packet = flow.poll(cx, self.id);
        if let Some(Packet { repr: Repr::Tcp(tcp), .. }) = &packet {
            self.stats.retransmissions += u64::from(tcp.is_again() && tcp.payload() > 0);
            if tcp.payload() > 0 {
                self.stats.data_sent += 1;
            } else {
                self.stats.acks_sent += 1;
            }
        }
        let bundle = self.tcp.get(slot, qp).and_then(|flow| flow.bundle);
        self.refresh_tcp(cx, slot, qp);
        if let Some(bundle) = bundle {
            self.hand_out(cx, bundle);
        }
        packet
    }

    /// Handles a deadline of the flow at `slot`.
    #[cold]
    pub(crate) fn on_tcp_deadline(&mut self, cx: &mut Cx<'_>, at: Instant, slot: u32, qp: QpNumber) {
        let Some(flow) = self.tcp.get_mut(slot, qp).filter(|flow| flow.armed == at) else { return };
        flow.armed = Instant::NEVER;
        if flow.is_opener {
            cx.about(qp);
        }
        let before = flow.connection.stats().timeouts;
        flow.connection.handle_timeout(cx);
        self.stats.timeouts += u64::from(flow.connection.stats().timeouts - before);
        self.refresh_tcp(cx, slot, qp);
    }

    /// Updates the ready ring and the deadlines of a flow after a change of its state. Segments of the end that did not
    /// open the flow are acknowledgements, which are sent first.
    fn refresh_tcp(&mut self, cx: &mut Cx<'_>, slot: u32, qp: QpNumber) {
        let Some(flow) = self.tcp.get_mut(slot, qp) else { return };
        if flow.is_opener {
            if !flow.queued && flow.connection.is_ready() {
                flow.queued = true;
                self.ready.push_back(slot);
            }
        } else {
            while let Some(ack) = flow.poll(cx, self.id) {
                self.answers.push_back(ack);
            }
        }
        if let Some(at) = flow.connection.poll_timeout()
            && at < flow.armed
        {
            flow.armed = at;
            self.deadlines.push(at, Due::timer(slot), qp);
        }
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

#[cfg(test)]
mod tests;
