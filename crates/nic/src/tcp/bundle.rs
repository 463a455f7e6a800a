//! Flows over several TCP connections: MPTCP.
//!
//! Octets of the flow are given to the subflows that can send a segment at once, in turn; if none can, a further
//! subflow is opened. Each subflow has its own path, and its own queue pair number: the numbers that follow the flow's.
//! Windows are coupled by the congestion control ([`Coupling`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_transport::endpoint::{Completion, Handled, Message};
use selvedge_transport::tcp::Params;
use selvedge_transport::tcp::congestion::Coupling;
use selvedge_transport::{Cx, HoldReason};
use selvedge_units::{Bytes, HostId, QpNumber, mix64};
use selvedge_wire::{Packet, Tcp};

use super::{Classes, Flow, count_arrival};
use crate::nic::{Nic, TcpParams, put};

/// Flows of one NIC that have several subflows.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    places: Vec<Option<Box<Bundle>>>,
    free: Vec<u32>,
}

/// An end of a flow with several subflows.
#[derive(Debug)]
struct Bundle {
    config: Params,
    is_opener: bool,
    /// Queue pair number of the flow, and of its first subflow.
    qp: QpNumber,
    peer: HostId,
    entropy: u32,
    classes: Classes,
    context: u32,
    /// Octets not yet given to a subflow (opener), or that have not arrived.
    left: u64,
    duplicates: u32,
    /// Slots of the subflows.
    subflows: Vec<u32>,
    /// Index of the subflow whose turn it is.
    turn: usize,
}

/// Results of a flow that has ended.
pub(super) struct Ended {
    pub(super) context: u32,
    duplicates: u32,
    qp: QpNumber,
    subflows: u32,
}

impl Bundle {
    fn subflow_qp(&self, number: usize) -> QpNumber {
        QpNumber(self.qp.0.wrapping_add(number as u32))
    }
    /// Returns the slots and numbers of the subflows.
    fn subflows(&self) -> impl Iterator<Item = (u32, QpNumber)> + '_ {
        self.subflows.iter().enumerate().map(|(number, &slot)| (slot, self.subflow_qp(number)))
    }
}

impl Bundles {
    fn get(&mut self, at: u32) -> Option<&mut Bundle> {
        self.places.get_mut(at as usize)?.as_deref_mut()
    }
}

impl Nic {
    #[cold]
    pub(super) fn open_bundle(&mut self, cx: &Cx<'_>, tcp: &TcpParams, message: &Message) -> (QpNumber, u32) {
        let qp = self.name_qp();
        for _ in 1..tcp.config.subflows {
            self.name_qp();
        }
        let bundle = Bundle {
            config: tcp.config,
            is_opener: true,
            qp,
            peer: message.dst,
            entropy: message.entropy,
            classes: Classes { data: message.class, ack: tcp.ack_class },
            context: message.context,
            left: message.size.get(),
            duplicates: 0,
            subflows: Vec::new(),
            turn: 0,
        };
        let at = put(&mut self.tcp.bundles.places, &mut self.tcp.bundles.free, Box::new(bundle));
        let slot = self.add_subflow(at);
        self.hand_out(&mut Cx::at(cx.now), at);
        self.refresh_tcp(&mut Cx::at(cx.now), slot, qp);
        (qp, slot)
    }

    #[cold]
    pub(crate) fn accept_bundle(&mut self, tcp: &TcpParams, src: HostId, qp: QpNumber, size: Bytes, context: u32) {
        let bundle = Bundle {
            config: tcp.config,
            is_opener: false,
            qp,
            peer: src,
            entropy: 0,
            classes: Classes { data: tcp.ack_class, ack: tcp.ack_class },
            context,
            left: size.get(),
            duplicates: 0,
            subflows: Vec::new(),
            turn: 0,
        };
        let at = put(&mut self.tcp.bundles.places, &mut self.tcp.bundles.free, Box::new(bundle));
        for number in 0..u32::from(tcp.config.subflows) {
            let slot = self.add_subflow(at);
            self.by_peer.insert((src, QpNumber(qp.0.wrapping_add(number))), slot);
        }
    }

    /// Adds a subflow; returns its slot.
    fn add_subflow(&mut self, at: u32) -> u32 {
        let Some(bundle) = self.tcp.bundles.get(at) else { return u32::MAX };
        let number = bundle.subflows.len();
        // The subflow is closed with the flow, not when it has sent its octets.
        let mut config = bundle.config;
        config.fin = false;
        let mut flow =
            Flow::new(bundle.classes, &config, bundle.is_opener, bundle.subflow_qp(number), bundle.peer, Bytes::ZERO);
        flow.has_fin = bundle.config.fin;
        flow.entropy = mix64(u64::from(bundle.entropy) + number as u64) as u32;
        flow.bundle = Some(at);
        let slot = self.tcp.put(flow);
        if let Some(bundle) = self.tcp.bundles.get(at) {
            bundle.subflows.push(slot);
            let qp = bundle.subflow_qp(number);
            if let Some(flow) = self.tcp.get_mut(slot, qp).filter(|flow| flow.is_opener) {
                flow.opener_slot = slot;
            }
        }
        slot
    }

    /// Gives octets to subflows that can send them now.
    pub(super) fn hand_out(&mut self, cx: &mut Cx<'_>, at: u32) {
        loop {
            let Some(bundle) = self.tcp.bundles.get(at).filter(|bundle| bundle.is_opener) else { return };
            if bundle.left == 0 {
                return self.finish_subflows(cx, at);
            }
            let share = bundle.left.min(bundle.config.mss);
            let (count, turn) = (bundle.subflows.len(), bundle.turn);
            let can_grow = count < usize::from(bundle.config.subflows);
            let in_turn = (0..count).map(|n| (turn + n) % count);
            let in_turn: Vec<(usize, u32, QpNumber)> =
                in_turn.map(|number| (number, bundle.subflows[number], bundle.subflow_qp(number))).collect();
            let has_room = |&&(_, slot, qp): &&(usize, u32, QpNumber)| {
                self.tcp.get(slot, qp).is_some_and(|flow| flow.connection.has_room())
            };
            match in_turn.iter().find(has_room) {
                Some(&(number, slot, qp)) => {
                    if let Some(flow) = self.tcp.get_mut(slot, qp) {
                        flow.connection.supply(share);
                    }
                    if let Some(bundle) = self.tcp.bundles.get(at) {
                        bundle.left -= share;
                        bundle.turn = (number + 1) % count;
                    }
                    self.refresh_tcp(cx, slot, qp);
                }
                // Another subflow joins when the newest is established and full.
                None if can_grow && self.is_newest_full(at) => {
                    let slot = self.add_subflow(at);
                    let Some(bundle) = self.tcp.bundles.get(at) else { return };
                    let qp = bundle.subflow_qp(count);
                    self.refresh_tcp(cx, slot, qp);
                }
                None => return,
            }
        }
    }

    /// Returns whether the newest subflow is established and has a full window in flight.
    fn is_newest_full(&mut self, at: u32) -> bool {
        let Some(bundle) = self.tcp.bundles.get(at) else { return false };
        let Some((slot, qp)) = bundle.subflows().last() else { return false };
        self.tcp.get(slot, qp).is_some_and(|flow| flow.connection.is_full())
    }

    /// Closes all subflows, after they have sent their octets.
    fn finish_subflows(&mut self, cx: &mut Cx<'_>, at: u32) {
        let Some(bundle) = self.tcp.bundles.get(at).filter(|bundle| bundle.config.fin) else { return };
        bundle.config.fin = false;
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        for (slot, qp) in all {
            if let Some(flow) = self.tcp.get_mut(slot, qp) {
                flow.connection.close();
            }
            self.refresh_tcp(cx, slot, qp);
        }
    }

    /// Returns the coupling of the subflows' windows.
    fn coupling(&mut self, at: u32) -> Coupling {
        let Some(bundle) = self.tcp.bundles.get(at) else { return Coupling::ALONE };
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        let state = |(slot, qp)| {
            let (cwnd, rtt) = self.tcp.get(slot, qp)?.connection.window_and_rtt();
            Some((cwnd, rtt.unwrap_or_default().as_ps()))
        };
        Coupling::of(all.into_iter().filter_map(state))
    }

    /// Returns the cause for which a flow waits: that of the subflow nearest to sending.
    pub(super) fn hold_bundle(&self, at: u32) -> Option<HoldReason> {
        let bundle = self.tcp.bundles.places.get(at as usize)?.as_deref()?;
        let all = bundle.subflows().filter_map(|(slot, qp)| self.tcp.get(slot, qp));
        all.map(|flow| flow.connection.hold()).min_by_key(|hold| match hold {
            HoldReason::Link => 0,
            HoldReason::Pacing(_) => 1,
            HoldReason::Window | HoldReason::Cap => 2,
            HoldReason::Recovery(_) => 3,
            HoldReason::Acks => 4,
        })
    }

    /// Returns the subflows of a flow.
    pub(super) fn subflows_of(&self, at: u32) -> impl Iterator<Item = &Flow> {
        let bundle = self.tcp.bundles.places.get(at as usize).and_then(Option::as_deref);
        let all = bundle.into_iter().flat_map(Bundle::subflows);
        all.filter_map(|(slot, qp)| self.tcp.get(slot, qp))
    }

    /// Returns the caller's name of a flow, and the octets not yet given to a subflow, or that have not arrived.
    pub(super) fn left_of_bundle(&self, at: u32) -> Option<(u32, u64)> {
        let bundle = self.tcp.bundles.places.get(at as usize)?.as_deref()?;
        Some((bundle.context, bundle.left))
    }

    /// Returns the maximum number of subflows of the flow with this first subflow; `None` for any other flow.
    pub(crate) fn subflows(&self, slot: u32, qp: QpNumber) -> Option<u32> {
        let bundle = self.tcp.bundles.places.get(self.tcp.get(slot, qp)?.bundle? as usize)?.as_deref()?;
        Some(u32::from(bundle.config.subflows))
    }

    /// Handles a segment of a subflow.
    pub(super) fn on_subflow(&mut self, cx: &mut Cx<'_>, packet: &Packet, tcp: &Tcp, slot: u32, at: u32) -> Handled {
        let coupling = self.coupling(at);
        let Some(flow) = self.tcp.get_mut(slot, packet.qp) else { return Handled::Unknown };
        flow.connection.couple(coupling);
        let (arrival, has_data) = flow.take_in(cx, packet, tcp);
        count_arrival(&mut self.stats, &arrival, has_data);
        let Some(bundle) = self.tcp.bundles.get(at) else { return Handled::Unknown };
        let (qp, context) = (bundle.qp, bundle.context);
        if bundle.is_opener {
            self.refresh_tcp(cx, slot, packet.qp);
            self.hand_out(cx, at);
            if self.is_bundle_sent(at) {
                self.say_last(cx, at);
                self.close_bundle(at);
                return Handled::Completed(Completion::Sent { qp, context });
            }
            return Handled::Taken;
        }
        let was_missing = bundle.left > 0;
        bundle.left -= arrival.fresh.min(bundle.left);
        bundle.duplicates += u32::from(arrival.is_duplicate);
        let (is_received, duplicates) = (was_missing && bundle.left == 0, bundle.duplicates);
        self.refresh_tcp(cx, slot, packet.qp);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp, context, duplicates });
        }
        Handled::Taken
    }

    /// Returns whether the flow has nothing left to do.
    fn is_bundle_sent(&mut self, at: u32) -> bool {
        let Some(bundle) = self.tcp.bundles.get(at) else { return false };
        let (left, all) = (bundle.left, bundle.subflows().collect::<Vec<_>>());
        left == 0 && all.into_iter().all(|(slot, qp)| self.tcp.get(slot, qp).is_none_or(Flow::is_sent))
    }

    /// Sends the last segments of all subflows.
    fn say_last(&mut self, cx: &mut Cx<'_>, at: u32) {
        let Some(bundle) = self.tcp.bundles.get(at) else { return };
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        for (slot, qp) in all {
            let host = self.id;
            let Some(flow) = self.tcp.get_mut(slot, qp) else { continue };
            while let Some(last) = flow.poll(cx, host) {
                self.answers.push_back(last);
            }
        }
    }

    /// Removes a flow and its subflows.
    #[cold]
    pub(super) fn close_bundle(&mut self, at: u32) -> Option<Ended> {
        let bundle = self.tcp.bundles.places.get_mut(at as usize)?.take()?;
        self.tcp.bundles.free.push(at);
        for (slot, qp) in bundle.subflows() {
            self.tcp.take(slot, qp);
        }
        let Bundle { context, duplicates, qp, ref subflows, .. } = *bundle;
        Some(Ended { context, duplicates, qp, subflows: subflows.len() as u32 })
    }

    #[cold]
    pub(super) fn close_bundle_receiver(&mut self, src: HostId, at: u32) -> Option<(u32, u32)> {
        let ended = self.close_bundle(at)?;
        for number in 0..ended.subflows {
            self.by_peer.remove((src, QpNumber(ended.qp.0.wrapping_add(number))));
        }
        Some((ended.context, ended.duplicates))
    }
}
