//! Tunnels that begin here and carry packets of stacks.

use selvedge_transport::Cx;
use selvedge_transport::endpoint::Handled;
use selvedge_transport::eqds::eqif::{EqifParams, Queue, QueuePressure};
use selvedge_transport::eqds::{EqdsParams, Event, Interest, Paths, Sender, State, Transmit};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, mix64};
use selvedge_wire::eqds::{Control, Data};
use selvedge_wire::{Ecn, Packet, Repr};

use super::{EqifSet, NATIVE, OF_RDMA, UNARMED, key};
use crate::eqds::{Outward, teardown};
use crate::nic::{Nic, NicParams};
use crate::slot::{EGRESS_TUNNELS, Owner, TUNNELS};

/// Sending end of a tunnel that carries packets of a stack.
#[derive(Debug)]
pub(super) struct EgressTunnel {
    sender: Sender<Packet>,
    pub(super) queue: Queue<Packet>,
    eqif: u8,
    dst: HostId,
    paths: Paths,
    /// Bytes in flight that [`EqifSet::in_flight`] includes.
    in_flight: u64,
    /// Contribution of the tunnel to the engine's backlog.
    pub(super) pressure: QueuePressure,
    /// Whether the tunnel is in the schedule.
    queued: bool,
    /// Earliest entry of the tunnel in the heap of deadlines.
    armed: Instant,
}

#[cfg(test)]
impl EgressTunnel {
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.sender.state(), State::Closed(_))
    }
}

impl EqifSet {
    /// Returns the tunnel of an EQIF to a host, which is created if necessary.
    pub(super) fn carrier_to(&mut self, dst: HostId, eqif: u8, entropy: u32) -> u32 {
        if let Some(carrier) = self.by_destination.get((dst, key(eqif))) {
            return carrier;
        }
        let carrier = self.outbound.len() as u32;
        self.outbound.push(EgressTunnel {
            sender: Sender::new(),
            queue: Queue::new(),
            eqif,
            dst,
            paths: Paths::new(entropy.into()),
            in_flight: 0,
            pressure: QueuePressure::default(),
            queued: false,
            armed: UNARMED,
        });
        self.by_destination.insert((dst, key(eqif)), carrier);
        carrier
    }
}

impl Nic {
    /// Returns the cargo of the packet that [`Nic::poll_transmit`] has just returned; `None` if it carries no other
    /// packet.
    #[inline]
    pub fn poll_cargo(&mut self) -> Option<Packet> {
        self.eqifs.as_mut()?.leaving.take()
    }

    /// Queues a packet of a stack until its tunnel has credit.
    pub(super) fn wait_for_credit(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        eqif: &EqifParams,
        carrier: u32,
        packet: Packet,
    ) {
        let Some(eqifs) = &mut self.eqifs else { return };
        let state = &mut eqifs.outbound[carrier as usize];
        let tunnel = eqif.of(state.eqif);
        let bytes = u32::from(packet.frame) + tunnel.header;
        state.queue.push(packet, bytes);
        eqifs.stats.peak = eqifs.stats.peak.max(Bytes::new(state.queue.bytes()));
        let random = mix64(u64::from(self.port.host.0) << 32 ^ u64::from(carrier) ^ cx.now.as_ps()) as u32;
        state.sender.supply(tunnel, cx.now, bytes.into(), random);
        if tunnel.life.most != u32::MAX {
            self.shed_carriers(params, tunnel, carrier);
        }
        self.refresh_carrier(params, tunnel, carrier);
    }

    /// Writes the next packet of all tunnels, which come up in the ready ring as one entry; returns whether there is
    /// one.
    #[inline(never)]
    pub(crate) fn serve_edge(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &mut Packet) -> bool {
        let Some(eqif) = &params.eqif else { return false };
        if let Some(eqifs) = &mut self.eqifs {
            eqifs.queued = false;
        }
        let mut sent = false;
        while !sent {
            let turn = self.eqifs.as_mut().and_then(|eqifs| eqifs.schedule.pop(eqif.tunnel.quantum));
            let Some((number, tunnel)) = turn else { break };
            sent = match number {
                NATIVE => {
                    let sent = self.poll_endpoint(cx, params, TUNNELS.slot(tunnel), packet);
                    self.join_tunnels();
                    sent
                }
                _ => self.serve_carrier(cx, params, eqif, tunnel, packet),
            };
            if let Some(eqifs) = self.eqifs.as_mut().filter(|_| sent) {
                eqifs.schedule.charge(number, packet.frame.into());
            }
        }
        if let Some(eqifs) = &mut self.eqifs {
            eqifs.stand(&mut self.port.ready);
        }
        sent
    }

    /// Writes the next packet of a tunnel to `packet`; returns whether there is one.
    fn serve_carrier(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        eqif: &EqifParams,
        carrier: u32,
        packet: &mut Packet,
    ) -> bool {
        let Some(eqifs) = &mut self.eqifs else { return false };
        let EgressTunnel { sender, queue, paths, dst, eqif: number, .. } = &mut eqifs.outbound[carrier as usize];
        let tunnel = eqif.of(*number);
        // A request to send has the class of the first waiting packet.
        let (head, waiting) = (queue.head(), queue.first().map_or(params.frames.ack_class, |packet| packet.class));
        let new = || queue.pop(cx.now).expect("the tunnel asks only if a packet waits");
        let sent = sender.poll_transmit(tunnel, cx.now, head, new);
        let (path, entropy) = paths.next(tunnel.paths);
        if let Some(sent) = &sent {
            sender.note_path(tunnel, sent.seq, path);
        }
        let (dst, number) = (*dst, *number);
        eqifs.outbound[carrier as usize].queued = false;
        let Some(Transmit { mut cargo, seq, pull_target, flags, retransmission, .. }) = sent else { return false };
        if let Some((inner, headers)) = cargo.and_then(|kept| eqifs.shelf.get(&kept)) {
            if let Some(rdma) = &mut self.rdma {
                rdma.leaving = Some(*headers);
            }
            if let Some(kept) = cargo.filter(|_| !tunnel.reliable) {
                // It is not sent again.
                eqifs.shelf.drop_headers(&kept);
            }
            cargo = Some(inner);
        }
        let payload = cargo.map_or(0, |cargo| cargo.frame);
        *packet = Packet {
            sent_at: cx.now,
            src: self.port.host,
            dst,
            qp: cargo.map_or(NO_FLOW, |cargo| forward_qp(&cargo)),
            slot: EGRESS_TUNNELS.slot(carrier),
            entropy,
            frame: cargo.map_or(eqif.tunnel.control_frame, |cargo| cargo.frame + eqif.tunnel.header as u16),
            class: cargo.map_or(params.frames.ack_class, |cargo| cargo.class),
            ecn: cargo.map_or(Ecn::NotCapable, |cargo| outer_ecn(cargo.ecn)),
            repr: Repr::EqdsData(Data {
                seq,
                pull_target,
                index: 0,
                payload,
                flags,
                eqif: number,
                class: cargo.map_or(waiting, |cargo| cargo.class),
                retransmission,
                trimmed: false,
            }),
        };
        eqifs.leaving = cargo;
        match cargo {
            None => self.port.stats.acks_sent += 1,
            Some(cargo) => {
                self.port.stats.data_sent += 1;
                self.port.stats.retransmissions += u64::from(retransmission);
                if !retransmission {
                    eqifs.stats.left += 1;
                    eqifs.stats.waited = eqifs.stats.waited.saturating_add(cx.now - cargo.sent_at);
                }
            }
        }
        self.refresh_carrier(params, tunnel, carrier);
        if number == OF_RDMA {
            self.ease(cx, params, eqif, carrier);
        }
        true
    }

    /// Handles a shorter queue of the RDMA engine: the engine may be able to go on.
    fn ease(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams, carrier: u32) {
        let (Some(rdma), Some(EqifSet { outbound, backlog, .. })) = (&eqif.rdma, self.eqifs.as_deref_mut()) else {
            return;
        };
        let state = &mut outbound[carrier as usize];
        if backlog.note_length(&mut state.pressure, &rdma.pressure, state.queue.bytes()) {
            self.run_engine(cx, params, eqif);
        }
    }

    /// Handles a control packet for a tunnel that begins here, if that tunnel exists.
    #[inline(never)]
    pub(crate) fn on_carrier_control(
        &mut self,
        cx: &Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        control: &Control,
    ) -> Handled {
        let (Some(eqif), Some(eqifs)) = (&params.eqif, &mut self.eqifs) else { return Handled::Unknown };
        let carrier = EGRESS_TUNNELS.place(packet.slot);
        let EqifSet { outbound, shelf, .. } = &mut **eqifs;
        let Some(state) = outbound.get_mut(carrier as usize).filter(|state| state.dst == packet.src) else {
            return Handled::Unknown;
        };
        self.port.stats.acks_received += 1;
        let tunnel = eqif.of(state.eqif);
        state.sender.handle_control(tunnel, cx.now, control, |kept| {
            if tunnel.reliable {
                shelf.drop_headers(&kept);
            }
        });
        self.refresh_carrier(params, tunnel, carrier);
        Handled::Taken
    }

    /// Handles a deadline of a tunnel that carries packets, or of the engine. [`Nic::hand_over`] handles the
    /// consequences for stacks.
    #[cold]
    pub(crate) fn on_tunnel_of_stack_deadline(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        at: Instant,
        owner: Owner,
    ) {
        let (Some(eqif), Some(eqifs)) = (&params.eqif, &mut self.eqifs) else { return };
        let carrier = match owner {
            Owner::Engine => return eqifs.engine.wakes(at),
            Owner::IngressTunnel(place) => return self.on_reorder_deadline(cx, params, eqif, at, place),
            Owner::EgressTunnel(place) => place,
            _ => return,
        };
        let state = &mut eqifs.outbound[carrier as usize];
        if state.armed != at {
            return;
        }
        state.armed = UNARMED;
        let tunnel = eqif.of(state.eqif);
        if state.sender.handle_timeout(tunnel, cx.now) {
            self.port.stats.timeouts += 1;
        }
        if let Some(event) = state.sender.poll_event() {
            self.on_carrier_event(params, tunnel, carrier, event);
        }
        self.refresh_carrier(params, tunnel, carrier);
    }

    /// Handles an event of a tunnel: its end after a pause, or because the other host does not answer.
    #[cold]
    fn on_carrier_event(&mut self, params: &NicParams, tunnel: &EqdsParams, carrier: u32, event: Event) {
        let Some(eqifs) = &mut self.eqifs else { return };
        let state = &mut eqifs.outbound[carrier as usize];
        match event {
            Event::Idle => {
                let to = Outward { dst: state.dst, slot: EGRESS_TUNNELS.slot(carrier), eqif: state.eqif };
                let farewell = state.sender.close(tunnel).filter(|_| tunnel.life.tells);
                if let Some(end) = farewell {
                    self.port.answers.push_back(teardown(self.port.host, &params.frames, tunnel, to, end));
                }
            }
            Event::PeerUnreachable => {
                if tunnel.reliable {
                    state.sender.unacknowledged().for_each(|kept| eqifs.shelf.drop_headers(kept));
                }
                for (kept, _) in state.queue.drain() {
                    eqifs.shelf.drop_headers(&kept);
                    eqifs.stats.dropped += 1;
                }
                state.sender.forget(tunnel, tunnel.life.memory);
            }
        }
    }

    /// Closes the idle tunnel that has rested longest if more are open than settings allow, apart from `newest`.
    #[cold]
    fn shed_carriers(&mut self, params: &NicParams, tunnel: &EqdsParams, newest: u32) {
        let Some(eqifs) = &self.eqifs else { return };
        let is_open = |state: &EgressTunnel| !matches!(state.sender.state(), State::Closed(_));
        if eqifs.outbound.iter().filter(|state| is_open(state)).count() <= tunnel.life.most as usize {
            return;
        }
        let others = (0..).zip(&eqifs.outbound).filter(|(place, _)| *place != newest);
        let idle = others.filter(|(_, state)| is_open(state) && state.sender.is_done());
        if let Some((oldest, _)) = idle.min_by_key(|(_, state)| state.sender.active_at()) {
            self.on_carrier_event(params, tunnel, oldest, Event::Idle);
        }
    }

    /// Updates the schedule and the deadlines of a tunnel after a change of its state.
    fn refresh_carrier(&mut self, params: &NicParams, tunnel: &EqdsParams, carrier: u32) {
        debug_assert!(params.eqif.is_some());
        let Some(eqifs) = &mut self.eqifs else { return };
        let state = &mut eqifs.outbound[carrier as usize];
        let in_flight = state.sender.in_flight();
        eqifs.in_flight = eqifs.in_flight + in_flight - core::mem::replace(&mut state.in_flight, in_flight);
        eqifs.stats.in_flight = eqifs.stats.in_flight.max(Bytes::new(eqifs.in_flight));
        let at = state.sender.poll_timeout();
        let arms = at < state.armed;
        if arms {
            state.armed = at;
        }
        if !state.queued && state.sender.next(tunnel, state.queue.head()) != Interest::Nothing {
            state.queued = true;
            let number = state.eqif;
            eqifs.join(&mut self.port.ready, number, carrier);
        }
        if arms {
            self.port.deadlines.push(at, EGRESS_TUNNELS.slot(carrier));
        }
    }
}

/// Queue pair number of no flow of the host that sends the tunnel's packets.
const NO_FLOW: QpNumber = QpNumber(u32::MAX);

/// Returns the flow of a carried packet, if the packet's sender is that of the flow.
fn forward_qp(cargo: &Packet) -> QpNumber {
    let is_forward = match &cargo.repr {
        Repr::Tcp(tcp) => !tcp.is_backward(),
        Repr::Data(_) => true,
        _ => false,
    };
    if is_forward { cargo.qp } else { NO_FLOW }
}

/// Returns the ECN field of the outer header (RFC 3168, section 9.1.1, full functionality): an existing mark stays in
/// the inner header.
fn outer_ecn(inner: Ecn) -> Ecn {
    match inner {
        Ecn::NotCapable => Ecn::NotCapable,
        Ecn::Capable | Ecn::Marked => Ecn::Capable,
    }
}
