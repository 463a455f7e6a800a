//! The responder of a reliable connection: executes requests and sends responses.
//!
//! Like the requester, the responder begins in [`standard`] mode. It goes over to [`selective`] mode with the first
//! packet of that kind, once the other side has announced that it is a Selvedge NIC.

mod advertised;
mod in_order;
mod inbound;
mod query;
mod reads;
mod selective;
mod standard;

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_transport::{Cx, SchemeParams};
use selvedge_units::Instant;
use selvedge_wire::verbs::{Headers, Ours};

pub(super) use self::in_order::InOrder;
use self::selective::Selective;
use self::standard::Standard;
use super::arrival::{Arrival, Site};
use super::attributes::Terms;
use super::memory::Memory;
use super::qp::Failure;
use super::receives::Receives;
use super::shared::Shared;
use super::transmit::Transmit;
use super::work::{Payload, ReceiveRequest};

/// Responder of a reliable connection.
pub(super) struct Responder {
    mode: Mode,
    /// Scheme that the other side has offered, if it is a Selvedge NIC.
    offer: Option<u8>,
    untouched: bool,
}

enum Mode {
    Standard(Standard),
    Selective(Box<Selective>),
}

/// Rejection of a request.
pub(super) enum Refusal {
    /// RNR NAK: no receive request was ready, or there is no room for another Read.
    NotReady,
    /// NAK with this code; the queue pair fails.
    Nak(u8, Failure),
}

impl Responder {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { mode: Mode::Standard(Standard::new(terms)), offer: None, untouched: true }
    }
    /// Returns whether no packet has arrived yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched
    }
    /// Returns the scheme that the other side has offered, if it is a Selvedge NIC.
    pub(super) fn offer(&self) -> Option<u8> {
        self.offer
    }

    pub(super) fn handle_request(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let headers = arrival.headers;
        let known = terms.init.recovery.wire_id();
        match headers.ours {
            Ours::Offers(offered) if known == Some(offered) => self.offer = known,
            Ours::Uses(used) if known == Some(used) => {
                if let Mode::Standard(standard) = &self.mode {
                    // The other side goes over between messages.
                    if !standard.is_idle_at(terms, headers.bth.psn) {
                        return Ok(());
                    }
                    self.offer = known;
                    self.mode =
                        Mode::Selective(Box::new(Selective::new(terms, standard.expected_psn(terms), standard.msn())));
                }
            }
            Ours::Uses(_) => return Ok(()),
            Ours::Offers(_) | Ours::No => {}
        }
        self.untouched = false;
        match &mut self.mode {
            Mode::Standard(standard) => standard.handle_request(cx, terms, site, arrival),
            Mode::Selective(selective) if matches!(headers.ours, Ours::Uses(_)) => {
                selective.handle_request(cx, terms, site, arrival)
            }
            // The packet was sent before the other side went over.
            Mode::Selective(_) => Ok(()),
        }
    }

    /// Handles new receive requests; returns whether the other side has to be informed of them.
    pub(super) fn on_receives_added(&mut self, terms: &Terms, receives: &Receives) -> bool {
        match &mut self.mode {
            Mode::Standard(standard) => standard.on_receives_added(terms, receives),
            Mode::Selective(selective) => selective.on_receives_added(terms, receives),
        }
    }

    /// Handles an acknowledgement of a response.
    pub(super) fn on_read_ack(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        headers: &Headers,
    ) -> Result<(), Failure> {
        match &mut self.mode {
            Mode::Standard(_) => Ok(()),
            Mode::Selective(selective) => selective.on_read_ack(cx, terms, shared, headers),
        }
    }

    /// Handles a congestion notification: packets of this side arrived with ECN marks.
    pub(super) fn on_congestion(&mut self, cx: &mut Cx<'_>) {
        if let Mode::Selective(selective) = &mut self.mode {
            selective.on_congestion(cx);
        }
    }

    /// Returns whether an acknowledgement to a Selvedge peer waits to be sent.
    pub(super) fn has_ack(&self) -> bool {
        matches!(&self.mode, Mode::Selective(selective) if selective.has_ack())
    }
    /// Returns an acknowledgement or a NAK, if that is the next packet.
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        match &mut self.mode {
            Mode::Standard(standard) => standard.poll_ack(terms).map(|ack| self.offering(ack)),
            Mode::Selective(selective) => selective.poll_ack(terms),
        }
    }
    /// Returns a repetition of the last acknowledgement, if there was any, for an owner that is about to destroy the
    /// queue pair.
    pub(super) fn last_word(&self, terms: &Terms) -> Option<Transmit> {
        match &self.mode {
            Mode::Standard(standard) => standard.last_word(terms).map(|ack| self.offering(ack)),
            Mode::Selective(selective) => selective.last_word(terms),
        }
    }
    /// Returns the standard packet `reply` with this side's preferred scheme added.
    fn offering(&self, mut reply: Transmit) -> Transmit {
        reply.headers.ours = self.offer.map_or(Ours::No, Ours::Offers);
        reply
    }

    /// Writes the next packet to `transmit`; returns whether there is one.
    pub(super) fn poll_transmit(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
        transmit: &mut Transmit,
    ) -> bool {
        match &mut self.mode {
            Mode::Standard(standard) => {
                let reply = standard.poll_transmit(terms, shared, payload);
                reply.map(|reply| *transmit = self.offering(reply)).is_some()
            }
            Mode::Selective(selective) => selective.poll_transmit(cx, terms, shared, payload, transmit),
        }
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared) {
        if let Mode::Selective(selective) = &mut self.mode {
            selective.handle_timeout(cx, terms, shared);
        }
    }
    pub(super) fn deadline(&self) -> Instant {
        match &self.mode {
            Mode::Standard(_) => Instant::NEVER,
            Mode::Selective(selective) => selective.deadline(),
        }
    }

    /// Releases the on-chip memory of the responder.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        if let Mode::Selective(selective) = &mut self.mode {
            selective.release(shared);
        }
    }
    /// Removes and returns the receive requests that were begun.
    pub(super) fn drain(&mut self) -> Vec<ReceiveRequest> {
        match &mut self.mode {
            Mode::Standard(standard) => standard.drain(),
            Mode::Selective(selective) => selective.drain(),
        }
    }
}
