//! Sends and Writes whose packets are taken in order: the message in progress.

use super::Refusal;
use super::inbound::{self, MALFORMED};
use crate::verbs::arrival::{Arrival, Site};
use crate::verbs::attributes::Terms;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message::{Asked, Position};
use crate::verbs::receives::Receives;
use crate::verbs::region::Intent;
use crate::verbs::shared::Shared;
use crate::verbs::work::{CompletionKind, ReceiveRequest, Status};

/// State of the message in progress, where packets are taken in order.
#[derive(Debug, Default)]
pub(in crate::verbs) struct InOrder {
    under_way: Option<Message>,
    /// Receive request that an abandoned message had begun to fill: the next message gets it.
    kept: Option<ReceiveRequest>,
}

#[derive(Debug)]
enum Message {
    Send { request: ReceiveRequest, received: u64 },
    Write { key: u32, address: u64, length: u64, received: u64 },
}

impl InOrder {
    /// Returns whether no message is in progress.
    pub(in crate::verbs) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }
    /// Returns how many receive requests have begun and are not completed: none or one.
    pub(in crate::verbs) fn begun(&self) -> usize {
        usize::from(self.kept.is_some() || matches!(self.under_way, Some(Message::Send { .. })))
    }
    /// Abandons the message in progress.
    pub(in crate::verbs) fn abandon(&mut self) {
        if let Some(Message::Send { request, .. }) = self.under_way.take() {
            self.kept = Some(request);
        }
    }
    /// Removes and returns the receive request that was begun.
    pub(in crate::verbs) fn drain(&mut self) -> Option<ReceiveRequest> {
        self.abandon();
        self.kept.take()
    }

    /// Takes the next packet, which is part of a Send or a Write; returns whether the packet completes its message.
    pub(in crate::verbs) fn take(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
        asked: Asked,
    ) -> Result<bool, Refusal> {
        match asked {
            Asked::Send(position) => self.send(terms, site, arrival, position)?,
            Asked::Write(position) => self.write(terms, site, arrival, position)?,
            Asked::Read | Asked::Once => return Err(MALFORMED),
        }
        Ok(self.is_idle())
    }

    fn send(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
        position: Position,
    ) -> Result<(), Refusal> {
        let &Arrival { headers, payload, .. } = arrival;
        inbound::check_length(terms, position, payload)?;
        let (request, received) = match self.under_way.take() {
            None if position.begins() => (self.request(terms, site.shared, site.receives)?, 0),
            Some(Message::Send { request, received }) if !position.begins() => (request, received),
            other => {
                self.under_way = other;
                return Err(MALFORMED);
            }
        };
        let outcome = inbound::scatter(terms, site.shared, site.memory, Origin::Packet, &request, received, payload);
        let received = received + u64::from(payload);
        if outcome.is_ok() && !position.ends() {
            self.under_way = Some(Message::Send { request, received });
            return Ok(());
        }
        let (status, solicited) = (outcome.err().unwrap_or(Status::Success), headers.bth.solicited);
        let (kind, attached) = (CompletionKind::Receive, inbound::attached(headers));
        let completion = inbound::completion(terms, request.id, status, kind, received, attached, solicited);
        inbound::deliver(terms, site.shared, completion)?;
        outcome.map_err(inbound::refusal_of)
    }

    fn write(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
        position: Position,
    ) -> Result<(), Refusal> {
        let &Arrival { headers, payload, .. } = arrival;
        inbound::check_length(terms, position, payload)?;
        let (key, address, length, received) = match (&self.under_way, headers.reth) {
            (None, Some(reth)) if position.begins() => {
                let length = u64::from(reth.length);
                inbound::reach(terms, site.shared, Intent::RemoteWrite, reth.key, reth.address, length)?;
                (reth.key, reth.address, length, 0)
            }
            (&Some(Message::Write { key, address, length, received }), _) if !position.begins() => {
                (key, address, length, received)
            }
            _ => return Err(MALFORMED),
        };
        let after = received + u64::from(payload);
        if after > length || (position.ends() && after != length) {
            return Err(MALFORMED);
        }
        let request = match headers.immediate {
            Some(_) => Some(self.request(terms, site.shared, site.receives)?),
            None => None,
        };
        let at = address.wrapping_add(received);
        if let Err(refusal) = inbound::write(terms, site.shared, site.memory, Origin::Packet, key, at, payload) {
            self.kept = request;
            return Err(refusal);
        }
        self.under_way = (!position.ends()).then_some(Message::Write { key, address, length, received: after });
        if let Some(request) = request {
            let attached = inbound::attached(headers);
            let (kind, solicited) = (CompletionKind::ReceiveWrite, headers.bth.solicited);
            let completion = inbound::completion(terms, request.id, Status::Success, kind, length, attached, solicited);
            site.shared.complete(terms.init.receive_cq, completion);
        }
        Ok(())
    }

    /// Takes the receive request that the next message fills.
    fn request(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        receives: &mut Receives,
    ) -> Result<ReceiveRequest, Refusal> {
        let kept = self.kept.take();
        kept.or_else(|| receives.take(shared, &terms.init)).ok_or(Refusal::NotReady)
    }
}
