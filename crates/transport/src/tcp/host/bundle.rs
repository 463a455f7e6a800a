//! Flows over several TCP connections: MPTCP.
//!
//! Octets of the flow are given to the subflows that can send a segment at once, in turn; if none can, a further
//! subflow is opened. Each subflow has its own path, and its own queue pair number: the numbers that follow the flow's.
//! Windows are coupled by the congestion control ([`Coupling`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_units::{Bytes, HostId, QpNumber, mix64};
use selvedge_wire::{Packet, Tcp};

use super::{Classes, Flow, Host, TcpParams, count_arrival};
use crate::endpoint::{Closed, Completion, Context, Handled, Message, Standing};
use crate::role::HoldReason;
use crate::tcp::Params;
use crate::tcp::congestion::Coupling;

/// An end of a flow with several subflows.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) config: Params,
    is_opener: bool,
    /// Queue pair number of the flow, and of its first subflow.
    qp: QpNumber,
    peer: HostId,
    entropy: u32,
    classes: Classes,
    pub(super) context: u32,
    /// Octets not yet given to a subflow (opener), or that have not arrived.
    pub(super) left: u64,
    duplicates: u32,
    /// Entries of the subflows.
    subflows: Vec<u32>,
    /// Index of the subflow whose turn it is.
    turn: usize,
}

impl Bundle {
    /// Creates the end that receives `size` bytes from `peer`.
    pub(super) fn new(params: &TcpParams, qp: QpNumber, peer: HostId, size: Bytes, context: u32) -> Self {
        Self {
            config: params.config,
            is_opener: false,
            qp,
            peer,
            entropy: 0,
            classes: Classes { data: params.ack_class, ack: params.ack_class },
            context,
            left: size.get(),
            duplicates: 0,
            subflows: Vec::new(),
            turn: 0,
        }
    }

    fn subflow_qp(&self, number: usize) -> QpNumber {
        QpNumber(self.qp.0.wrapping_add(number as u32))
    }
    /// Returns the entries and numbers of the subflows.
    fn subflows(&self) -> impl Iterator<Item = (u32, QpNumber)> + '_ {
        self.subflows.iter().enumerate().map(|(number, &entry)| (entry, self.subflow_qp(number)))
    }
}

impl Host {
    /// Begins to send a message over several subflows on queue pairs from `qp` on; returns the entry of the first.
    #[cold]
    pub(super) fn open_bundle(&mut self, cx: &mut Context<'_, '_, TcpParams>, qp: QpNumber, message: &Message) -> u32 {
        let Message { dst, size, entropy, class, context, .. } = *message;
        let classes = Classes { data: class, ack: cx.params.ack_class };
        let opener = Bundle::new(cx.params, qp, dst, size, context);
        let at = self.bundles.put(Box::new(Bundle { is_opener: true, entropy, classes, ..opener }));
        let entry = self.add_subflow(cx, at);
        self.hand_out(cx, at);
        self.refresh(cx, entry);
        entry
    }

    /// Expects a message over several subflows from queue pairs from `qp` on; returns the entry of the first.
    #[cold]
    pub(super) fn accept_bundle(&mut self, cx: &mut Context<'_, '_, TcpParams>, bundle: Bundle) -> u32 {
        let at = self.bundles.put(Box::new(bundle));
        let first = self.add_subflow(cx, at);
        for _ in 1..cx.params.config.subflows {
            self.add_subflow(cx, at);
        }
        first
    }

    /// Adds a subflow; returns its entry.
    fn add_subflow(&mut self, cx: &Context<'_, '_, TcpParams>, at: u32) -> u32 {
        let Some(bundle) = self.bundles.get(at) else { return u32::MAX };
        let (number, &Bundle { config, is_opener, peer, entropy, classes, .. }) = (bundle.subflows.len(), &**bundle);
        // The subflow is closed with the flow, not when it has sent its octets.
        let own = Params { fin: false, ..config };
        let flow = Flow::new(classes, &own, is_opener, bundle.subflow_qp(number), peer, Bytes::ZERO);
        let entropy = mix64(u64::from(entropy) + number as u64) as u32;
        let entry = self.put(cx, Flow { has_fin: config.fin, entropy, bundle: Some(at), ..flow });
        if let Some(bundle) = self.bundles.get_mut(at) {
            bundle.subflows.push(entry);
        }
        entry
    }

    /// Gives octets to subflows that can send them now.
    pub(super) fn hand_out(&mut self, cx: &mut Context<'_, '_, TcpParams>, at: u32) {
        loop {
            let Some(bundle) = self.bundles.get_mut(at).filter(|bundle| bundle.is_opener) else { return };
            if bundle.left == 0 {
                return self.finish_subflows(cx, at);
            }
            let share = bundle.left.min(bundle.config.mss);
            let (count, turn) = (bundle.subflows.len(), bundle.turn);
            let can_grow = count < usize::from(bundle.config.subflows);
            let in_turn = (0..count).map(|n| (turn + n) % count);
            let in_turn: Vec<(usize, u32, QpNumber)> =
                in_turn.map(|number| (number, bundle.subflows[number], bundle.subflow_qp(number))).collect();
            let has_room = |&&(_, entry, qp): &&(usize, u32, QpNumber)| {
                self.flow(entry, qp).is_some_and(|flow| flow.connection.has_room())
            };
            match in_turn.iter().find(has_room) {
                Some(&(number, entry, qp)) => {
                    if let Some(flow) = self.flow_mut(entry, qp) {
                        flow.connection.supply(share);
                    }
                    if let Some(bundle) = self.bundles.get_mut(at) {
                        bundle.left -= share;
                        bundle.turn = (number + 1) % count;
                    }
                    self.refresh(cx, entry);
                }
                // Another subflow joins when the newest is established and full.
                None if can_grow && self.is_newest_full(at) => {
                    let entry = self.add_subflow(cx, at);
                    self.refresh(cx, entry);
                }
                None => return,
            }
        }
    }

    /// Returns whether the newest subflow is established and has a full window in flight.
    fn is_newest_full(&mut self, at: u32) -> bool {
        let Some(bundle) = self.bundles.get_mut(at) else { return false };
        let Some((entry, qp)) = bundle.subflows().last() else { return false };
        self.flow(entry, qp).is_some_and(|flow| flow.connection.is_full())
    }

    /// Closes all subflows, after they have sent their octets.
    fn finish_subflows(&mut self, cx: &mut Context<'_, '_, TcpParams>, at: u32) {
        let Some(bundle) = self.bundles.get_mut(at).filter(|bundle| bundle.config.fin) else { return };
        bundle.config.fin = false;
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        for (entry, qp) in all {
            if let Some(flow) = self.flow_mut(entry, qp) {
                flow.connection.close();
            }
            self.refresh(cx, entry);
        }
    }

    /// Returns the coupling of the subflows' windows.
    fn coupling(&mut self, at: u32) -> Coupling {
        let Some(bundle) = self.bundles.get_mut(at) else { return Coupling::ALONE };
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        let state = |(entry, qp)| {
            let (cwnd, rtt) = self.flow(entry, qp)?.connection.window_and_rtt();
            Some((cwnd, rtt.unwrap_or_default().as_ps()))
        };
        Coupling::of(all.into_iter().filter_map(state))
    }

    /// Returns the progress of a flow at its sender. It waits for the cause of the subflow nearest to sending.
    pub(super) fn standing_of_bundle(&self, at: u32) -> Option<Standing> {
        let bundle = self.bundles.get(at)?;
        let all = || bundle.subflows().filter_map(|(entry, qp)| self.flow(entry, qp)).map(Flow::standing);
        let nearest = all().map(|one| one.hold).min_by_key(|hold| match hold {
            HoldReason::Link => 0,
            HoldReason::Pacing(_) => 1,
            HoldReason::Window | HoldReason::Cap => 2,
            HoldReason::Recovery(_) => 3,
            HoldReason::Acks => 4,
        });
        let (hold, unsent) = (nearest?, bundle.left);
        // Each subflow counts its octets for itself.
        let none = Standing { hold, sent: None, unsent, has_lost: false, timeouts: 0, resent: 0 };
        Some(all().fold(none, |sum, one| Standing {
            unsent: sum.unsent + one.unsent,
            timeouts: sum.timeouts + one.timeouts,
            resent: sum.resent + one.resent,
            ..sum
        }))
    }

    /// Handles a segment of a subflow.
    pub(super) fn handle_subflow(
        &mut self,
        cx: &mut Context<'_, '_, TcpParams>,
        packet: &Packet,
        tcp: &Tcp,
        entry: u32,
        at: u32,
    ) -> Handled {
        // At the receiver, all subflows come with the entry of the first.
        let Some(bundle) = self.bundles.get(at) else { return Handled::Unknown };
        let own = bundle.subflows().find(|&(_, qp)| qp == packet.qp);
        let entry = own.map_or(entry, |(entry, _)| entry);
        let coupling = self.coupling(at);
        let Some(flow) = self.flow_mut(entry, packet.qp) else { return Handled::Unknown };
        flow.connection.couple(coupling);
        let (arrival, has_data) = flow.take_in(cx.cx, packet, tcp);
        count_arrival(&mut cx.port.stats, &arrival, has_data);
        let Some(bundle) = self.bundles.get_mut(at) else { return Handled::Unknown };
        let (qp, context) = (bundle.qp, bundle.context);
        if bundle.is_opener {
            self.refresh(cx, entry);
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
        self.refresh(cx, entry);
        if is_received {
            return Handled::Completed(Completion::Received { src: packet.src, qp, context, duplicates });
        }
        Handled::Taken
    }

    /// Returns whether the flow has nothing left to do.
    fn is_bundle_sent(&mut self, at: u32) -> bool {
        let Some(bundle) = self.bundles.get_mut(at) else { return false };
        let (left, all) = (bundle.left, bundle.subflows().collect::<Vec<_>>());
        left == 0 && all.into_iter().all(|(entry, qp)| self.flow(entry, qp).is_none_or(Flow::is_sent))
    }

    /// Sends the last segments of all subflows.
    fn say_last(&mut self, cx: &mut Context<'_, '_, TcpParams>, at: u32) {
        let Some(bundle) = self.bundles.get_mut(at) else { return };
        let all: Vec<(u32, QpNumber)> = bundle.subflows().collect();
        for (entry, qp) in all {
            if let Some(flow) = self.flow_mut(entry, qp) {
                flow.answer(cx);
            }
        }
    }

    /// Removes a flow and its subflows.
    #[cold]
    pub(super) fn close_bundle(&mut self, at: u32) -> Option<Closed> {
        let bundle = self.bundles.take(at)?;
        for (entry, qp) in bundle.subflows() {
            self.take(entry, qp);
        }
        Some(Closed { context: bundle.context, duplicates: bundle.duplicates })
    }
}
