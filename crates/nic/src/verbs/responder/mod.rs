//! The responder of a reliable connection: takes requests, answers them.
//!
//! As the requester it begins standard ([`standard`]) and goes over to [`selective`] with the first packet of that
//! kind, once the other side has said that it knows how.

mod advertised;
mod in_order;
mod inbound;
mod query;
mod reads;
mod selective;
mod standard;

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_transport::Cx;
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
use super::requester::scheme;
use super::shared::Shared;
use super::transmit::Transmit;
use super::work::{Payload, ReceiveRequest};

/// See above.
pub(super) struct Responder {
    mode: Mode,
    /// The other side has said that it is one of our own, of this scheme.
    offer: Option<u8>,
    untouched: bool,
}

enum Mode {
    Standard(Standard),
    Selective(Box<Selective>),
}

/// A request is refused.
pub(super) enum Refusal {
    /// No receive request was ready, or there is no room for one more Read.
    NotReady,
    /// With a NAK; the queue pair fails.
    Nak(u8, Failure),
}

impl Responder {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { mode: Mode::Standard(Standard::new(terms)), offer: None, untouched: true }
    }
    /// Whether nothing has arrived yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched
    }
    /// The scheme that the other side would rather use, if it is one of our own.
    pub(super) fn offer(&self) -> Option<u8> {
        self.offer
    }

    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let headers = arrival.headers;
        let known = scheme(&terms.init.recovery);
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
            Mode::Standard(standard) => standard.on_request(cx, terms, site, arrival),
            Mode::Selective(selective) if matches!(headers.ours, Ours::Uses(_)) => {
                selective.on_request(cx, terms, site, arrival)
            }
            // From before the other side went over.
            Mode::Selective(_) => Ok(()),
        }
    }

    /// Receive requests were added: the other side may have to hear of them. Returns whether it has.
    pub(super) fn on_receives_added(&mut self, terms: &Terms, receives: &Receives) -> bool {
        match &mut self.mode {
            Mode::Standard(standard) => standard.on_receives_added(terms, receives),
            Mode::Selective(selective) => selective.on_receives_added(terms, receives),
        }
    }

    /// An acknowledgement of an answer.
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

    /// Packets of ours arrive with marks.
    pub(super) fn on_congestion(&mut self, cx: &mut Cx<'_>) {
        if let Mode::Selective(selective) = &mut self.mode {
            selective.on_congestion(cx);
        }
    }

    /// Whether an acknowledgement of one of our own is to be sent.
    pub(super) fn has_ack(&self) -> bool {
        matches!(&self.mode, Mode::Selective(selective) if selective.has_ack())
    }
    /// An acknowledgement, or what is said instead of one, if that comes next.
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        match &mut self.mode {
            Mode::Standard(standard) => standard.poll_ack(terms).map(|ack| self.offering(ack)),
            Mode::Selective(selective) => selective.poll_ack(terms),
        }
    }
    /// What has been acknowledged, once more, if anything has: for whoever is about to forget it.
    pub(super) fn last_word(&self, terms: &Terms) -> Option<Transmit> {
        match &self.mode {
            Mode::Standard(standard) => standard.last_word(terms).map(|ack| self.offering(ack)),
            Mode::Selective(selective) => selective.last_word(terms),
        }
    }
    /// A standard packet that says what we would rather use.
    fn offering(&self, mut reply: Transmit) -> Transmit {
        reply.headers.ours = self.offer.map_or(Ours::No, Ours::Offers);
        reply
    }

    /// Writes the next packet to `transmit`, if there is one.
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

    /// Gives back what it holds of the chip's memory.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        if let Mode::Selective(selective) = &mut self.mode {
            selective.release(shared);
        }
    }
    /// The receive requests that were begun.
    pub(super) fn drain(&mut self) -> Vec<ReceiveRequest> {
        match &mut self.mode {
            Mode::Standard(standard) => standard.drain(),
            Mode::Selective(selective) => selective.drain(),
        }
    }
}
