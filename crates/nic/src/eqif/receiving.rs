//! Tunnels that end here and the packets that leave them: the receiving EQIF (sections 3 and 5 of the paper).

use selvedge_transport::Cx;
use selvedge_transport::endpoint::Handled;
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::eqds::{Disposition, Pacer};
use selvedge_units::Instant;
use selvedge_wire::eqds::{Control, Flags};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Ecn, Packet, Repr};

use super::{EqifSet, NATIVE, UNARMED, key};
use crate::eqds::{Arrival, End, Origin, control_packet, name};
use crate::nic::{Nic, NicParams};
use crate::slot::{INGRESS_TUNNELS, REQUESTS};

/// Receiving end of a tunnel that carries packets of a stack.
#[derive(Debug)]
pub(super) struct IngressTunnel {
    end: End<Packet>,
    eqif: u8,
    /// Earliest entry of the tunnel's reorder queue in the heap of deadlines.
    armed: Instant,
}

#[cfg(test)]
impl IngressTunnel {
    pub(super) fn is_closed(&self) -> bool {
        self.end.receiver.epoch().is_none()
    }
}

impl EqifSet {
    /// Returns the tunnel by which a packet has arrived.
    fn carried_from(&mut self, packet: &Packet, eqif: u8) -> u32 {
        let from = (packet.src, key(eqif));
        if let Some(place) = self.by_source.get(from) {
            return place;
        }
        let place = self.inbound.len() as u32;
        self.inbound.push(IngressTunnel { end: End::new(packet), eqif, armed: UNARMED });
        self.by_source.insert(from, place);
        place
    }

    /// Grants credit to the tunnel at index `place`, whose turn has come.
    pub(crate) fn grant(
        &mut self,
        now: Instant,
        params: &NicParams,
        pacer: &mut Pacer,
        place: u32,
    ) -> Option<(Origin, Control)> {
        let eqif = params.eqif.as_ref()?;
        let state = &mut self.inbound[place as usize];
        state.end.grant(now, eqif.of(state.eqif), pacer, name(place, true))
    }
}

impl Nic {
    /// Handles an arriving packet that may carry another. `cargo` is the carried packet, as [`Nic::poll_cargo`]
    /// returned it; `headers` are those that [`Nic::poll_headers`] returned with it, and necessary if the carried
    /// packet is of an application's queue pair.
    pub fn handle_carrier(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        packet: &Packet,
        cargo: Option<Packet>,
        headers: Option<&Headers>,
    ) -> Handled {
        match (&packet.repr, &params.eqif) {
            (Repr::EqdsData(data), Some(eqif)) if data.eqif != NATIVE => {
                self.on_carrier_data(cx, params, eqif, Arrival { packet, data, cargo: (cargo, headers) })
            }
            _ => self.handle_packet(cx, params, packet),
        }
    }

    fn on_carrier_data(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        eqif: &EqifParams,
        Arrival { packet, data, cargo: (cargo, headers) }: Arrival<'_, (Option<Packet>, Option<&Headers>)>,
    ) -> Handled {
        let Some(eqifs) = self.eqifs.as_deref_mut() else { return Handled::Unknown };
        debug_assert!(
            cargo.is_some() || data.trimmed || data.payload == 0,
            "the driver has lost what a packet carried"
        );
        let mut cargo = cargo.unwrap_or(Packet::BLANK);
        if packet.ecn == Ecn::Marked && cargo.ecn == Ecn::Capable {
            cargo.ecn = Ecn::Marked;
        }
        let headers = headers.filter(|_| cargo.slot == REQUESTS && !data.trimmed && data.payload > 0);
        if let Some(headers) = headers {
            cargo = eqifs.shelf.put(&cargo, headers);
        }
        let known = eqifs.inbound.len();
        let place = eqifs.carried_from(packet, data.eqif);
        if place as usize == known {
            self.tunnels.pacer(&eqif.tunnel).introduce(name(place, true), packet.src.0);
        }
        let (state, arrived) = (&mut eqifs.inbound[place as usize], &mut eqifs.arrived);
        let eqds = eqif.of(state.eqif);
        let pacer = self.tunnels.pacer(eqds);
        let arrival = Arrival { packet, data, cargo };
        let deliver = |packet| arrived.push_back(packet);
        let (disposition, control) = state.end.hear(cx, eqds, pacer, name(place, true), arrival, deliver);
        eqifs.stats.reordering = eqifs.stats.reordering.max(state.end.receiver.waiting() as u64);
        if headers.is_some() && disposition != Disposition::Taken {
            eqifs.shelf.drop_headers(&cargo);
        }
        self.arm_pacer();
        if let Some(control) = control {
            self.port.answers.push_back(control_packet(
                self.port.host,
                &params.frames,
                eqds,
                &Origin::of(packet),
                control,
            ));
        }
        if disposition == Disposition::Duplicate {
            self.port.stats.data_received += 1;
            self.port.stats.duplicates += 1;
        }
        if eqif.tunnel.life.most != u32::MAX && data.flags.any(Flags::SYN) {
            self.shed_ends(cx, params, eqif, place);
        }
        self.arm_reordering(eqif, place);
        self.hand_up(cx, params);
        self.hand_over(cx, params);
        Handled::Taken
    }

    /// Drops the tunnel that has rested longest if more end here than settings allow, apart from `newest`.
    #[cold]
    fn shed_ends(&mut self, cx: &Cx<'_>, params: &NicParams, eqif: &EqifParams, newest: u32) {
        let (Some(eqifs), pacer) = (&mut self.eqifs, self.tunnels.pacer(&eqif.tunnel)) else { return };
        let eqds = &eqif.tunnel;
        let open = eqifs.inbound.iter().filter(|state| state.end.receiver.epoch().is_some()).count();
        if open <= eqds.life.most as usize {
            return;
        }
        let others = eqifs.inbound.iter_mut().enumerate().filter(|(place, _)| *place != newest as usize);
        let resting = others.filter_map(|(_, state)| Some((state.end.receiver.resting_since(eqds)?, state)));
        let Some((_, state)) = resting.min_by_key(|(since, _)| *since) else { return };
        let arrived = &mut eqifs.arrived;
        if let Some((to, reset)) = state.end.drop_state(cx.now, eqds, pacer, |packet| arrived.push_back(packet)) {
            self.port.answers.push_back(control_packet(self.port.host, &params.frames, eqds, &to, reset));
        }
    }

    /// Delivers packets that have left tunnels to the stacks.
    fn hand_up(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while let Some(packet) = self.eqifs.as_mut().and_then(|eqifs| eqifs.arrived.pop_front()) {
            let Some(eqifs) = &mut self.eqifs else { return };
            let handled = if let Some((inner, &headers)) = eqifs.shelf.get(&packet) {
                eqifs.shelf.drop_headers(&packet);
                self.handle_verbs(cx, params, &inner, &headers)
            } else {
                self.handle_packet(cx, params, &packet)
            };
            match handled {
                Handled::Taken => {}
                Handled::Completed(completion) => self.tunnels.completions.push_back(completion),
                Handled::Unknown => {
                    if let Some(eqifs) = &mut self.eqifs {
                        eqifs.stats.strays += 1;
                    }
                }
            }
        }
    }

    /// Handles a deadline of a reorder queue, which may have waited long enough for missing packets.
    pub(super) fn on_reorder_deadline(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        eqif: &EqifParams,
        at: Instant,
        place: u32,
    ) {
        let Some(eqifs) = self.eqifs.as_deref_mut() else { return };
        let (state, arrived) = (&mut eqifs.inbound[place as usize], &mut eqifs.arrived);
        if state.armed != at {
            return;
        }
        state.armed = UNARMED;
        let eqds = eqif.of(state.eqif);
        state.end.receiver.handle_timeout(eqds, cx.now, |packet| arrived.push_back(packet));
        let pacer = self.tunnels.pacer(eqds);
        while let Some((to, control)) = state.end.poll_missing(cx.now, eqds, pacer) {
            self.port.answers.push_back(control_packet(self.port.host, &params.frames, eqds, &to, control));
        }
        if let Some((to, control)) = state.end.retire(cx.now, eqds, pacer, |packet| arrived.push_back(packet)) {
            self.port.answers.push_back(control_packet(self.port.host, &params.frames, eqds, &to, control));
        }
        self.arm_reordering(eqif, place);
        self.hand_up(cx, params);
    }

    fn arm_reordering(&mut self, eqif: &EqifParams, place: u32) {
        let Some(eqifs) = &mut self.eqifs else { return };
        let state = &mut eqifs.inbound[place as usize];
        let eqds = eqif.of(state.eqif);
        let at = state.end.receiver.poll_timeout(eqds).min(state.end.receiver.idle_due(eqds));
        if at < state.armed {
            state.armed = at;
            self.port.deadlines.push(at, INGRESS_TUNNELS.slot(place));
        }
    }
}
