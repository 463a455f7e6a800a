//! Tunnels that end here, the pacer that grants them credit, and the messages that arrive.

use selvedge_transport::Cx;
use selvedge_transport::endpoint::{Alarm, Closed, Completion, Context, Frames, Handled};
use selvedge_transport::eqds::{Disposition, EqdsParams, Pacer, Pieces, Receiver, Transmit};
use selvedge_units::{HostId, Instant, QpNumber};
use selvedge_wire::eqds::{Control, Data, Flags};
use selvedge_wire::{Ecn, Packet, Repr};

use super::{ENDS, TUNNEL, Tunnels};
use crate::eqif::NATIVE;
use crate::nic::{Nic, NicParams};
use crate::slot::TUNNELS;

/// Receiving end of a tunnel.
#[derive(Debug)]
pub(crate) struct End<H> {
    pub(crate) receiver: Receiver<H>,
    /// Origin of the last packet that came through the tunnel: credit returns to it.
    last: Origin,
    /// Traffic class of the last packet.
    class: u8,
    /// Quanta of credit that the sender is owed, as known to the pacer.
    owed: u32,
    /// Whether the tunnel is in the pacer's list.
    listed: bool,
}

/// Origin of a tunnel's packet, as far as control packets in response need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Time stamp that control packets echo; see [`Packet::sent_at`].
    sent_at: Instant,
    src: HostId,
    qp: QpNumber,
    slot: u32,
    entropy: u32,
    eqif: u8,
}

impl Origin {
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Self {
        let Packet { sent_at, src, qp, slot, entropy, repr, .. } = *packet;
        let eqif = if let Repr::EqdsData(Data { eqif, .. }) = repr { eqif } else { NATIVE };
        Self { sent_at, src, qp, slot, entropy, eqif }
    }
}

/// A packet that has arrived through a tunnel, and its cargo.
pub(crate) struct Arrival<'a, H> {
    pub(crate) packet: &'a Packet,
    pub(crate) data: &'a Data,
    pub(crate) cargo: H,
}

/// Receiving end of a tunnel for native messages.
#[derive(Debug)]
pub(super) struct Inbound {
    end: End<()>,
    /// Place of the newest packet's message; `None` if it was not looked up yet.
    message: Option<u32>,
    alarm: Alarm,
}

impl<H: Copy> End<H> {
    /// Creates the end of a tunnel whose first packet has arrived.
    pub(crate) fn new(first: &Packet) -> Self {
        Self { receiver: Receiver::new(), last: Origin::of(first), class: 0, owed: 0, listed: false }
    }

    /// Handles a packet; returns its disposition and the control packet to send. `name` identifies the tunnel in the
    /// pacer's list.
    #[inline]
    pub(crate) fn hear(
        &mut self,
        cx: &Cx<'_>,
        eqds: &EqdsParams,
        pacer: &mut Pacer,
        name: u32,
        Arrival { packet, data, cargo }: Arrival<'_, H>,
        deliver: impl FnMut(H),
    ) -> (Disposition, Option<Control>) {
        let (disposition, control) = self.receiver.handle_data(eqds, cx.now, data, data.trimmed, cargo, deliver);
        (self.last, self.class) = (Origin::of(packet), data.class);
        self.account(cx.now, eqds, pacer, name);
        let Some(control) = control else { return (disposition, None) };
        let echo = Flags::ECN_ECHO.when(packet.ecn == Ecn::Marked);
        (disposition, Some(Control { busy: pacer.busy_beside(self.owed), flags: control.flags.with(echo), ..control }))
    }

    /// Grants credit when the tunnel's turn has come; returns the control packet and its destination. Returns `None` if
    /// the sender has started over meanwhile and wants no more.
    #[inline]
    pub(crate) fn grant(
        &mut self,
        now: Instant,
        eqds: &EqdsParams,
        pacer: &mut Pacer,
        name: u32,
    ) -> Option<(Origin, Control)> {
        self.listed = false;
        if self.owed == 0 {
            return None;
        }
        let quanta = self.owed.min(pacer.quanta());
        let control = self.receiver.grant(eqds, quanta)?;
        pacer.spend(name, quanta);
        self.account(now, eqds, pacer, name);
        Some((Origin { sent_at: now, ..self.last }, Control { busy: pacer.busy_beside(self.owed), ..control }))
    }

    /// Returns the next report of a missing packet that is due, and its destination.
    #[cold]
    pub(crate) fn poll_missing(&mut self, now: Instant, eqds: &EqdsParams, pacer: &Pacer) -> Option<(Origin, Control)> {
        let control = self.receiver.poll_missing(eqds, now)?;
        Some((Origin { sent_at: now, ..self.last }, Control { busy: pacer.busy_beside(self.owed), ..control }))
    }

    /// Closes the tunnel if it is idle; returns the message that tells its sender.
    #[cold]
    pub(crate) fn retire(
        &mut self,
        now: Instant,
        eqds: &EqdsParams,
        pacer: &mut Pacer,
        deliver: impl FnMut(H),
    ) -> Option<(Origin, Control)> {
        if !self.receiver.is_idle(eqds, now) {
            return None;
        }
        self.drop_state(now, eqds, pacer, deliver)
    }

    /// Drops the tunnel's state; returns the message that tells its sender.
    #[cold]
    pub(crate) fn drop_state(
        &mut self,
        now: Instant,
        eqds: &EqdsParams,
        pacer: &mut Pacer,
        deliver: impl FnMut(H),
    ) -> Option<(Origin, Control)> {
        let reset = self.receiver.close(eqds, deliver)?;
        pacer.note_owed(self.owed, 0);
        self.owed = 0;
        eqds.life.tells.then_some((Origin { sent_at: now, ..self.last }, reset))
    }

    /// Informs the pacer of the credit that the sender is owed, and adds the tunnel to the pacer's list if that is not
    /// zero.
    #[inline]
    fn account(&mut self, now: Instant, eqds: &EqdsParams, pacer: &mut Pacer, name: u32) {
        let owed = self.receiver.owed(eqds);
        pacer.note_owed(self.owed, owed);
        self.owed = owed;
        if owed > 0 && !self.listed {
            self.listed = true;
            pacer.push(now, name, self.class);
        }
    }
}

/// Returns the pacer's name of the tunnel at index `place` among those of native messages, or of carriers.
#[inline]
pub(crate) const fn name(place: u32, carries: bool) -> u32 {
    place << 1 | carries as u32
}

/// A message being received.
#[derive(Debug)]
pub(super) struct Arriving {
    src: HostId,
    pub(super) context: u32,
    pub(super) pieces: Pieces,
    duplicates: u32,
}

impl Tunnels {
    /// Expects a message.
    pub(super) fn expect(&mut self, src: HostId, packets: u64, context: u32) -> u32 {
        self.arriving.put(Arriving { src, context, pieces: Pieces::new(packets), duplicates: 0 })
    }

    /// Handles a data packet or a request for credit.
    #[inline(never)]
    pub(crate) fn handle_data(
        &mut self,
        cx: &mut Context<'_, '_, EqdsParams>,
        packet: &Packet,
        data: &Data,
    ) -> Handled {
        let eqds = cx.params;
        if data.eqif != NATIVE {
            return Handled::Unknown;
        }
        self.pacer(eqds);
        let tunnel = self.tunnel_from(packet);
        let Self { inbound, pacer: Some(pacer), .. } = self else { return Handled::Unknown };
        let state = &mut inbound[tunnel as usize];
        if state.end.last.qp != packet.qp {
            state.message = None;
        }
        let arrival = Arrival { packet, data, cargo: () };
        let (disposition, control) = state.end.hear(cx.cx, eqds, pacer, name(tunnel, false), arrival, |()| {});
        cx.port.deadlines.set_pacer(pacer.poll_timeout());
        if let Some(control) = control {
            let control = control_packet(cx.port.host, cx.frames, eqds, &Origin::of(packet), control);
            cx.port.answers.push_back(control);
        }
        if eqds.housekeeping {
            if eqds.life.most != u32::MAX && data.flags.any(Flags::SYN) {
                self.shed_inbound(cx, tunnel);
            }
            self.arm_inbound(cx, tunnel);
        }
        match disposition {
            Disposition::Taken => self.take_piece(cx, packet, data, tunnel),
            Disposition::Duplicate => {
                cx.port.stats.data_received += 1;
                cx.port.stats.duplicates += 1;
                if let Some(message) = self.message_of(cx, packet, tunnel) {
                    message.duplicates += 1;
                }
            }
            Disposition::Empty => cx.port.stats.data_received += u64::from(data.payload > 0),
            Disposition::Stray | Disposition::Closed => {}
        }
        Handled::Taken
    }

    /// Tells the pacer that a control packet has arrived, which took time on the link.
    #[inline]
    pub(super) fn note_control(&mut self, cx: &mut Context<'_, '_, EqdsParams>) {
        if let Some(pacer) = &mut self.pacer {
            pacer.note_control(cx.now());
            cx.port.deadlines.set_pacer(pacer.poll_timeout());
        }
    }

    /// Sets the deadline of the tunnel's next report of missing packets, and of its end.
    #[cold]
    fn arm_inbound(&mut self, cx: &mut Context<'_, '_, EqdsParams>, tunnel: u32) {
        let state = &mut self.inbound[tunnel as usize];
        let at = state.end.receiver.missing_due().min(state.end.receiver.idle_due(cx.params));
        state.alarm.set_at(cx, ENDS + tunnel, at);
    }

    /// Handles a deadline of a tunnel that ends here: reports missing packets, and ends an idle tunnel. Otherwise it
    /// waits for missing packets without end: a message is complete only with all of its packets.
    #[cold]
    pub(super) fn on_inbound_deadline(&mut self, cx: &mut Context<'_, '_, EqdsParams>, at: Instant, tunnel: u32) {
        let Self { inbound, pacer: Some(pacer), .. } = self else { return };
        let eqds = cx.params;
        let Some(state) = inbound.get_mut(tunnel as usize) else { return };
        if !state.alarm.take(at) {
            return;
        }
        while let Some((to, control)) = state.end.poll_missing(cx.now(), eqds, pacer) {
            cx.port.answers.push_back(control_packet(cx.port.host, cx.frames, eqds, &to, control));
        }
        if let Some((to, reset)) = state.end.retire(cx.now(), eqds, pacer, |()| {}) {
            cx.port.answers.push_back(control_packet(cx.port.host, cx.frames, eqds, &to, reset));
        }
        self.arm_inbound(cx, tunnel);
    }

    /// Returns the tunnel by which a packet has arrived.
    #[inline]
    fn tunnel_from(&mut self, packet: &Packet) -> u32 {
        if let Some(tunnel) = self.by_source.get((packet.src, TUNNEL)) {
            return tunnel;
        }
        let tunnel = self.inbound.len() as u32;
        if let Some(pacer) = &mut self.pacer {
            pacer.introduce(name(tunnel, false), packet.src.0);
        }
        self.inbound.push(Inbound { end: End::new(packet), message: None, alarm: Alarm::default() });
        self.by_source.insert((packet.src, TUNNEL), tunnel);
        tunnel
    }

    /// Drops the tunnel for native messages that has rested longest if more are open than settings allow, apart from
    /// `newest`.
    #[cold]
    fn shed_inbound(&mut self, cx: &mut Context<'_, '_, EqdsParams>, newest: u32) {
        let eqds = cx.params;
        let Self { inbound, pacer: Some(pacer), .. } = self else { return };
        let open = inbound.iter().filter(|state| state.end.receiver.epoch().is_some()).count();
        if open <= eqds.life.most as usize {
            return;
        }
        let others = inbound.iter_mut().enumerate().filter(|(place, _)| *place != newest as usize);
        let resting = others.filter_map(|(_, state)| Some((state.end.receiver.resting_since(eqds)?, state)));
        let Some((_, state)) = resting.min_by_key(|(since, _)| *since) else { return };
        if let Some((to, reset)) = state.end.drop_state(cx.now(), eqds, pacer, |()| {}) {
            cx.port.answers.push_back(control_packet(cx.port.host, cx.frames, eqds, &to, reset));
        }
    }

    /// Handles a packet of a message that has left its tunnel.
    #[inline(always)]
    fn take_piece(&mut self, cx: &mut Context<'_, '_, EqdsParams>, packet: &Packet, data: &Data, tunnel: u32) {
        cx.port.stats.data_received += 1;
        let Some(state) = self.message_of(cx, packet, tunnel) else { return };
        if !state.pieces.insert(data.index) {
            state.duplicates += 1;
            cx.port.stats.duplicates += 1;
            return;
        }
        cx.port.stats.goodput += u64::from(data.payload);
        if state.pieces.missing() == 0 {
            let (context, duplicates) = (state.context, state.duplicates);
            let done = Completion::Received { src: packet.src, qp: packet.qp, context, duplicates };
            self.completions.push_back(done);
        }
    }

    /// Returns the message of the newest packet that has left this tunnel, and caches its place.
    #[inline(always)]
    fn message_of(&mut self, cx: &Context<'_, '_, EqdsParams>, packet: &Packet, tunnel: u32) -> Option<&mut Arriving> {
        let message = &mut self.inbound[tunnel as usize].message;
        if message.is_none() {
            *message = cx.port.by_peer.get((packet.src, packet.qp)).map(|slot| slot.wrapping_sub(cx.first));
        }
        self.arriving.get_mut((*message)?)
    }

    /// Removes a message, complete or not.
    #[cold]
    pub(super) fn close_arriving(&mut self, place: u32) -> Option<Closed> {
        let Arriving { src, context, duplicates, .. } = self.arriving.take(place)?;
        if let Some(tunnel) = self.by_source.get((src, TUNNEL)) {
            let state = &mut self.inbound[tunnel as usize];
            state.message = state.message.filter(|message| *message != place);
        }
        Some(Closed { context, duplicates })
    }

    /// Grants credit to the tunnel at index `place`, whose turn has come.
    #[inline]
    pub(crate) fn grant(&mut self, now: Instant, eqds: &EqdsParams, who: u32) -> Option<(Origin, Control)> {
        let Self { inbound, pacer: Some(pacer), .. } = self else { return None };
        inbound[(who >> 1) as usize].end.grant(now, eqds, pacer, who)
    }
}

impl Nic {
    /// Handles a packet that has come through a tunnel for native messages.
    #[inline(always)]
    pub(crate) fn handle_tunnelled(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        data: &Data,
    ) -> Handled {
        let (Some(own), now) = (&params.eqds, cx.now) else { return Handled::Unknown };
        let context = &mut self.port.lend(cx, &params.frames, own, TUNNELS.slot(0));
        let handled = self.tunnels.handle_data(context, packet, data);
        // No deadline is needed for a pull that is due already.
        if self.tunnels.pacer.as_ref().is_some_and(|pacer| pacer.poll_timeout() <= now) {
            self.pull(now, params);
        }
        handled
    }

    /// Handles a control packet for a tunnel that begins here.
    #[inline(always)]
    pub(crate) fn handle_credit(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        control: &Control,
    ) -> Handled {
        let Some(own) = &params.eqds else { return Handled::Unknown };
        let context = &mut self.port.lend(cx, &params.frames, own, TUNNELS.slot(0));
        if !TUNNELS.has(packet.slot) {
            self.tunnels.note_control(context);
            return self.on_carrier_control(cx, params, packet, control);
        }
        let handled = self.tunnels.handle_control(context, packet, control, TUNNELS.place(packet.slot));
        self.join_tunnels();
        handled
    }

    /// Grants credit to the next tunnel in the pacer's list, if a pull is due.
    #[inline(never)]
    pub(crate) fn pull(&mut self, now: Instant, params: &NicParams) {
        let Some(eqds) = &params.eqds else { return };
        // A wake-up that came late makes up for lost time: several pulls leave together.
        while let Some(who) = self.tunnels.pacer.as_mut().and_then(|pacer| pacer.poll(now)) {
            let (place, carries) = (who >> 1, who & 1 == 1);
            let granted = if carries {
                let (Some(eqifs), Some(pacer)) = (&mut self.eqifs, &mut self.tunnels.pacer) else { continue };
                eqifs.grant(now, params, pacer, place)
            } else {
                self.tunnels.grant(now, eqds, who)
            };
            if let Some((last, control)) = granted {
                let control = control_packet(self.port.host, &params.frames, eqds, &last, control);
                self.port.answers.push_back(control);
            }
        }
        self.arm_pacer();
    }

    /// Sets the deadline of the pacer's next pull.
    #[inline]
    pub(crate) fn arm_pacer(&mut self) {
        if let Some(pacer) = &self.tunnels.pacer {
            self.port.deadlines.set_pacer(pacer.poll_timeout());
        }
    }
}

/// The other end of a tunnel that begins here.
pub(crate) struct Outward {
    pub(crate) dst: HostId,
    pub(crate) slot: u32,
    pub(crate) eqif: u8,
}

/// Creates the packet that tells a receiver of the end of its tunnel.
pub(crate) fn teardown<H>(
    from: HostId,
    frames: &Frames,
    eqds: &EqdsParams,
    Outward { dst, slot, eqif }: Outward,
    end: Transmit<H>,
) -> Packet {
    Packet {
        src: from,
        dst,
        slot,
        frame: eqds.control_frame,
        class: frames.ack_class,
        ecn: Ecn::NotCapable,
        repr: Repr::EqdsData(Data {
            seq: end.seq,
            pull_target: end.pull_target,
            index: 0,
            payload: 0,
            flags: end.flags,
            eqif,
            class: frames.ack_class,
            retransmission: false,
            trimmed: false,
        }),
        ..Packet::BLANK
    }
}

/// Creates a control packet for the origin `to`.
#[inline]
pub(crate) fn control_packet(
    from: HostId,
    frames: &Frames,
    eqds: &EqdsParams,
    to: &Origin,
    control: Control,
) -> Packet {
    Packet {
        sent_at: to.sent_at,
        src: from,
        dst: to.src,
        qp: to.qp,
        slot: to.slot,
        entropy: !to.entropy,
        frame: eqds.control_frame,
        class: frames.ack_class,
        ecn: Ecn::NotCapable,
        repr: Repr::EqdsControl(Control { eqif: to.eqif, ..control }),
    }
}

#[cfg(test)]
mod tests {
    use selvedge_transport::Fabric;
    use selvedge_transport::eqds::EqdsConfig;
    use selvedge_units::{Bytes, Duration, Rate};

    use super::*;

    fn params() -> EqdsParams {
        let (rate, rtt, frame) = (Rate::from_gbps(100), Duration::from_us(10), Bytes::new(1_500));
        let fabric = Fabric {
            pfc: false,
            line_rate: rate,
            bdp: rate.amount_in(rtt),
            sender_is_slowest: true,
            frame,
            gap: Bytes::ZERO,
            base_rtt: rtt,
            fill_time: rtt,
            links: 2,
            inputs: 1,
            congested_rtt: rtt * 2,
            acks: false,
        };
        let mut config = EqdsConfig::default();
        config.resolve(&fabric, frame, true, false);
        config.params(frame, Bytes::ZERO).expect("valid settings")
    }

    #[test]
    fn who_begins_anew_and_wants_nothing_gets_nothing() {
        let eqds = params();
        let mut pacer = Pacer::new(eqds.pulls(Duration::from_us(1)), eqds.policy);
        let mut end = End::new(&Packet::BLANK);
        let hear = |end: &mut End<()>, pacer: &mut Pacer, seq, pull_target| {
            let flags = Flags::SYN;
            let data = Data {
                seq,
                pull_target,
                index: 0,
                payload: 100,
                flags,
                eqif: 0,
                class: 0,
                retransmission: false,
                trimmed: false,
            };
            let arrival = Arrival { packet: &Packet::BLANK, data: &data, cargo: () };
            end.hear(&Cx::at(Instant::ZERO), &eqds, pacer, 0, arrival, |()| {});
        };
        hear(&mut end, &mut pacer, 0, 50);
        let wanted = end.receiver.owed(&eqds);
        assert!(wanted > 0 && end.listed);
        hear(&mut end, &mut pacer, 1 << 30, 0);
        assert_eq!(end.receiver.owed(&eqds), 0, "the new epoch wants nothing");
        assert!(pacer.poll(Instant::ZERO).is_some() && end.grant(Instant::ZERO, &eqds, &mut pacer, 0).is_none());
        assert_eq!(pacer.busy_beside(0), 0);
    }
}
