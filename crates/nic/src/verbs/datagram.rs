//! Unreliable datagrams.

use alloc::collections::{BTreeSet, VecDeque};
use core::net::Ipv6Addr;

use selvedge_wire::Bth;
use selvedge_wire::verbs::opcode::{DATAGRAM, operation as op};
use selvedge_wire::verbs::{Deth, Headers};

use super::arrival::{Arrival, Site};
use super::attributes::{PARTITION, Terms};
use super::memory::Memory;
use super::multicast::MULTICAST;
use super::qp::SendFailed;
use super::region::Intent;
use super::shared::Shared;
use super::transmit::Transmit;
use super::work::{Attached, Completion, CompletionKind, Data, Operation, Payload, SendRequest, Source, Span, Status};

/// Bytes before a datagram's payload in its receive request: a global route header, or an IPv4 header in its last
/// bytes.
const NETWORK_HEADER: u64 = 40;
/// The bit of a Q_Key that selects the queue pair's own Q_Key instead.
const CONTROLLED: u32 = 1 << 31;

/// Send queue of a datagram queue pair.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    waiting: VecDeque<SendRequest>,
    psn: u32,
    /// Local addresses from which the queue pair has sent to groups.
    known_as: BTreeSet<Ipv6Addr>,
}

impl Datagrams {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
    pub(super) fn post(&mut self, request: SendRequest) {
        self.waiting.push_back(request);
    }
    pub(super) fn drain(&mut self) -> impl Iterator<Item = SendRequest> {
        self.waiting.drain(..)
    }
    /// Returns whether the queue pair has sent to groups from this address.
    pub(super) fn has_sent_from(&self, address: &Ipv6Addr) -> bool {
        self.known_as.contains(address)
    }

    /// Returns the next datagram, and completes its request.
    pub(super) fn poll_transmit(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
    ) -> Result<Option<Transmit>, SendFailed> {
        let Some(request) = self.waiting.front() else { return Ok(None) };
        let (Operation::Send(attached), Some(destination)) = (request.operation, request.destination) else {
            return Err(SendFailed);
        };
        let length = request.length();
        let mut status = Status::Success;
        if length > u64::from(terms.mtu) {
            status = Status::LocalLength;
        } else if request.gather(&shared.regions, terms.init.pd, 0, length, payload).is_none() {
            status = Status::LocalProtection;
        }
        let operation = match attached {
            Attached::Immediate(_) => op::SEND_ONLY_IMMEDIATE,
            Attached::Nothing | Attached::Invalidate(_) => op::SEND_ONLY,
        };
        let immediate = match attached {
            Attached::Immediate(immediate) => Some(immediate),
            _ => None,
        };
        self.psn = self.psn.wrapping_add(1);
        if destination.qp == MULTICAST {
            self.known_as.insert(destination.route.local);
        }
        let bth = Bth {
            opcode: DATAGRAM | operation,
            solicited: request.solicited,
            partition: PARTITION,
            destination: destination.qp,
            psn: selvedge_units::Psn::new(terms.send_psn.get().wrapping_add(self.psn - 1)),
            ..Bth::default()
        };
        let qkey = if destination.qkey & CONTROLLED != 0 { terms.qkey } else { destination.qkey };
        let deth = Some(Deth { qkey, source: terms.number });
        let headers = Headers { bth, deth, immediate, ..Headers::default() };
        let transmit = Transmit { route: destination.route, headers, payload: length as u32 };
        if request.signaled || terms.init.all_signaled || status != Status::Success {
            shared.complete(terms.init.send_cq, request.completion(terms.number, status, 0));
        }
        self.waiting.pop_front();
        if status == Status::Success { Ok(Some(transmit)) } else { Err(SendFailed) }
    }

    /// Receives a datagram. A datagram that cannot be delivered is dropped without notice.
    pub(super) fn receive(
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        &Arrival { route, headers, payload }: &Arrival<'_>,
    ) {
        let Site { shared, memory, receives } = site;
        let Some(deth) = headers.deth.filter(|deth| deth.qkey == terms.qkey) else { return };
        let Some(request) = receives.take(shared, &terms.init) else { return };
        let mut completion = Completion {
            id: request.id,
            status: Status::Success,
            kind: CompletionKind::Receive,
            length: payload + NETWORK_HEADER as u32,
            attached: headers.immediate.map_or(Attached::Nothing, Attached::Immediate),
            qp: terms.number,
            source: Some(Source { qp: deth.source, route: *route }),
            solicited: headers.bth.solicited,
        };
        let room: u64 = request.scatter.iter().map(|piece| u64::from(piece.length)).sum();
        let mut faults = false;
        let mut put = |offset: u64, length: u64, place: &mut dyn FnMut(u64, u32, u32) -> bool| {
            let mut from = 0;
            let found = &mut |span: Span| {
                faults |= !place(span.address, from, span.length);
                from += span.length;
            };
            shared.regions.spans(terms.init.pd, &request.scatter, offset, length, Intent::LocalWrite, found).is_some()
        };
        if room < NETWORK_HEADER + u64::from(payload) {
            completion.status = Status::LocalLength;
        } else if !put(0, NETWORK_HEADER, &mut |at, from, length| memory.place_network_header(at, from, length).is_ok())
            || !put(NETWORK_HEADER, u64::from(payload), &mut |at, from, length| memory.place(at, from, length).is_ok())
            || faults
        {
            completion.status = Status::LocalProtection;
        }
        shared.complete(terms.init.receive_cq, completion);
    }
}

impl SendRequest {
    /// Returns the length of the message in bytes.
    pub(super) fn length(&self) -> u64 {
        match &self.data {
            Data::Gather(pieces) => pieces.iter().map(|piece| u64::from(piece.length)).sum(),
            Data::Inline(bytes) => bytes.len() as u64,
        }
    }
    /// Appends `length` bytes of the message from `offset` on, or their spans, to `payload`. Returns `None` if a key
    /// forbids the access.
    pub(super) fn gather(
        &self,
        regions: &super::region::Regions,
        pd: super::region::PdId,
        offset: u64,
        length: u64,
        payload: &mut Payload,
    ) -> Option<()> {
        match &self.data {
            Data::Inline(bytes) => {
                payload.inline.extend_from_slice(bytes.get(offset as usize..)?.get(..length as usize)?);
                Some(())
            }
            Data::Gather(_) => self.spans(regions, pd, offset, length, &mut |span| payload.spans.push(span)),
        }
    }
    /// Calls `found` with each piece of memory that holds or receives `length` bytes from `offset` on. Returns `None`
    /// if a key forbids the access, or the data is inline.
    pub(super) fn spans(
        &self,
        regions: &super::region::Regions,
        pd: super::region::PdId,
        offset: u64,
        length: u64,
        found: &mut impl FnMut(Span),
    ) -> Option<()> {
        let Data::Gather(pieces) = &self.data else { return None };
        let intent = match self.operation {
            Operation::Send(_) | Operation::Write { .. } | Operation::AtomicWrite(_) => Intent::LocalRead,
            _ => Intent::LocalWrite,
        };
        regions.spans(pd, pieces, offset, length, intent, found)
    }
    /// Returns the kind of the request's completion.
    pub(super) fn kind(&self) -> CompletionKind {
        match self.operation {
            Operation::Send(_) => CompletionKind::Send,
            Operation::Write { .. } => CompletionKind::Write,
            Operation::Read(_) => CompletionKind::Read,
            Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
            Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
            Operation::AtomicWrite(_) => CompletionKind::AtomicWrite,
            Operation::Flush(_) => CompletionKind::Flush,
            Operation::LocalInvalidate(_) => CompletionKind::LocalInvalidate,
            Operation::Bind(_) => CompletionKind::Bind,
        }
    }
    /// Returns the request's completion, with `length` bytes read.
    pub(super) fn completion(&self, qp: selvedge_units::QpNumber, status: Status, length: u32) -> Completion {
        Completion {
            id: self.id,
            status,
            kind: self.kind(),
            length,
            attached: Attached::Nothing,
            qp,
            source: None,
            solicited: false,
        }
    }
}
