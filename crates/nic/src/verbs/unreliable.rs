//! Unreliable connections (InfiniBand architecture, volume 1, sections 9.8.2 and 9.8.3): Sends and Writes of any
//! length, in packets that are not acknowledged. Where a packet is missing, the rest of its message is dropped, too.

use alloc::collections::VecDeque;

use selvedge_units::{Psn, Seq};
use selvedge_wire::Reth;
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::UNRELIABLE;

use super::arrival::{Arrival, Site};
use super::attributes::Terms;
use super::memory::Memory;
use super::message::{self, Asked, Position};
use super::qp::SendFailed;
use super::responder::InOrder;
use super::shared::Shared;
use super::transmit::Transmit;
use super::work::{Attached, Operation, Payload, ReceiveRequest, SendRequest, Status};

/// Send queue of an unreliable connection.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    waiting: VecDeque<SendRequest>,
    /// Packets sent of the first waiting request.
    begun: u64,
    /// Packets sent in all.
    sent: Seq,
}

impl Outbound {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
    pub(super) fn post(&mut self, request: SendRequest) {
        self.waiting.push_back(request);
    }
    pub(super) fn drain(&mut self) -> impl Iterator<Item = SendRequest> {
        self.begun = 0;
        self.waiting.drain(..)
    }
    /// Returns whether a message is partly sent.
    pub(super) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Returns the next packet; a request completes with its last one. A new message begins only if `admits` permits
    /// it.
    pub(super) fn poll_transmit(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
        admits: bool,
    ) -> Result<Option<Transmit>, SendFailed> {
        let Some(request) = self.waiting.front().filter(|_| admits || self.begun > 0) else { return Ok(None) };
        let length = request.length();
        let position = Position::of(self.begun, message::packets(length, terms.mtu));
        let bytes = message::bytes_in(self.begun, length, terms.mtu);
        let offset = self.begun * u64::from(terms.mtu);
        let gathered = request.gather(&shared.regions, terms.init.pd, offset, u64::from(bytes), payload);
        let status = if gathered.is_some() { Status::Success } else { Status::LocalProtection };
        let headers = headers(terms, request, position, self.sent.to_psn(terms.send_psn), length);
        let is_over = position.ends() || status != Status::Success;
        if is_over {
            if request.signaled || terms.init.all_signaled || status != Status::Success {
                shared.complete(terms.init.send_cq, request.completion(terms.number, status, 0));
            }
            self.waiting.pop_front();
        }
        self.begun = if is_over { 0 } else { self.begun + 1 };
        if status != Status::Success {
            return Err(SendFailed);
        }
        self.sent += 1;
        shared.count_sent(false);
        Ok(Some(Transmit { route: terms.route, headers, payload: bytes }))
    }
}

fn headers(terms: &Terms, request: &SendRequest, position: Position, psn: Psn, length: u64) -> Headers {
    let mut headers = Headers {
        bth: terms.bth(UNRELIABLE | message::request_opcode(&request.operation, position), psn),
        ..Headers::default()
    };
    let immediate = match request.operation {
        Operation::Write { remote, immediate } => {
            let reth = Reth { address: remote.address, key: remote.key, length: length as u32 };
            headers.reth = position.begins().then_some(reth);
            immediate
        }
        Operation::Send(Attached::Immediate(immediate)) => Some(immediate),
        _ => None,
    };
    headers.immediate = immediate.filter(|_| position.ends());
    headers.bth.solicited = request.solicited && position.ends();
    headers
}

/// Receiving side of an unreliable connection.
#[derive(Debug)]
pub(super) struct Inbound {
    expected: Psn,
    messages: InOrder,
}

impl Inbound {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { expected: terms.receive_psn, messages: InOrder::default() }
    }
    /// Returns the receive request that was begun.
    pub(super) fn drain(&mut self) -> Option<ReceiveRequest> {
        self.messages.drain()
    }

    /// Takes a packet, or drops it without notice. Late packets are dropped, too, so that no message is delivered
    /// twice.
    pub(super) fn receive(&mut self, terms: &Terms, site: &mut Site<'_, impl Memory>, arrival: &Arrival<'_>) {
        let bth = &arrival.headers.bth;
        let ahead = bth.psn.ahead_of(self.expected);
        if ahead < 0 {
            site.shared.stats.duplicates += 1;
            return;
        }
        self.expected = bth.psn.next();
        let asked = Asked::of(bth.opcode & !UNRELIABLE);
        let begins = matches!(asked, Some(Asked::Send(position) | Asked::Write(position)) if position.begins());
        if ahead > 0 || begins {
            self.messages.abandon();
        }
        let taken = asked.is_some_and(|asked| self.messages.take(terms, site, arrival, asked).is_ok());
        if taken {
            site.shared.count_accepted(arrival.payload);
        } else {
            self.messages.abandon();
        }
    }
}
