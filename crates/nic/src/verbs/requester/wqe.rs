//! A send request in progress: its part of the sequence, and the state of its response.

use selvedge_units::Seq;

use super::Failed;
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message;
use crate::verbs::msn::Msn;
use crate::verbs::shared::Shared;
use crate::verbs::work::{Data, Operation, SendRequest, Span, Status};

/// A request that has not completed.
#[derive(Debug)]
pub(super) struct Wqe {
    pub(super) request: SendRequest,
    /// Sequence number of the first packet; [`NOT_BEGUN`] if the request has not begun.
    pub(super) first: Seq,
    /// Number of sequence numbers that the request takes.
    pub(super) packets: u64,
    /// Length of the message or response in bytes.
    pub(super) length: u64,
    /// Packets of the response that have arrived, for requests with a response.
    pub(super) answered: u64,
    /// Recv_WQE_SN or read_WQE_SN of the request.
    pub(super) number: u32,
    /// MSN by which the other side has completed the request; used between two Selvedge NICs.
    pub(super) msn: Msn,
    /// Number of requests that consume a receive request, up to this one, since the connection began.
    pub(super) consumed: u64,
}

/// A packet of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Index of the packet in the response.
    pub(super) index: u64,
    /// Payload length in bytes.
    pub(super) payload: u32,
    /// Result of an atomic operation.
    pub(super) original: Option<u64>,
}

impl Answer {
    pub(super) fn of(arrival: &Arrival<'_>, index: u64) -> Self {
        Self { index, payload: arrival.payload, original: arrival.headers.original }
    }
    /// Returns the bytes delivered to an application: payload, or the result of an atomic operation.
    pub(super) fn brings(&self) -> u32 {
        self.payload + if self.original.is_some() { 8 } else { 0 }
    }
}

/// Sequence number of a request that has not begun.
const NOT_BEGUN: Seq = Seq::new(u64::MAX);

impl Wqe {
    pub(super) fn new(request: SendRequest) -> Self {
        let (length, msn) = (request.length(), Msn::default());
        Self { request, first: NOT_BEGUN, packets: 0, length, answered: 0, number: 0, msn, consumed: 0 }
    }
    /// Returns whether the request has a response beyond an acknowledgement.
    pub(super) fn is_read(&self) -> bool {
        matches!(
            self.request.operation,
            Operation::Read(_)
                | Operation::CompareSwap { .. }
                | Operation::FetchAdd { .. }
                | Operation::AtomicWrite(_)
                | Operation::Flush(_)
        )
    }
    /// Returns whether the request consumes a receive request of the other side.
    pub(super) fn consumes(&self) -> bool {
        matches!(self.request.operation, Operation::Send(_) | Operation::Write { immediate: Some(_), .. })
    }
    /// Returns the memory of the other side that the request reads or writes: address and length in bytes.
    fn there(&self) -> Option<(u64, u64)> {
        match self.request.operation {
            Operation::Write { remote, .. } | Operation::Read(remote) => Some((remote.address, self.length)),
            Operation::CompareSwap { remote, .. } | Operation::FetchAdd { remote, .. } => Some((remote.address, 8)),
            Operation::AtomicWrite(remote) => Some((remote.address, 8)),
            _ => None,
        }
    }
    /// Returns the memory of this side that the request reads or writes.
    fn here(&self) -> impl Iterator<Item = (u64, u64)> {
        let pieces = match &self.request.data {
            Data::Gather(pieces) => pieces.as_slice(),
            Data::Inline(_) => &[],
        };
        pieces.iter().map(|piece| (piece.address, u64::from(piece.length)))
    }
    /// Returns whether the request could overwrite memory that `older` reads or writes.
    pub(super) fn could_overwrite(&self, older: &Self) -> bool {
        let is_read = matches!(self.request.operation, Operation::Read(_));
        let overlaps = |(a, length): (u64, u64), (b, other): (u64, u64)| {
            a < b.saturating_add(other) && b < a.saturating_add(length)
        };
        let there = self.there().filter(|_| !is_read).zip(older.there());
        there.is_some_and(|(new, old)| overlaps(new, old))
            || (self.is_read() && self.here().any(|new| older.here().any(|old| overlaps(new, old))))
    }
    /// Returns whether the request is executed without sending a packet.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.request.operation, Operation::LocalInvalidate(_) | Operation::Bind(_))
    }
    /// Executes a local request.
    pub(super) fn execute(&self, terms: &Terms, shared: &mut Shared) -> Result<(), Failed> {
        let (pd, qp) = (terms.init.pd, terms.number);
        match &self.request.operation {
            Operation::LocalInvalidate(key) => {
                let closed = shared.regions.windows().invalidate(pd, qp, *key);
                closed.map_err(|_| Failed(Status::LocalOperation))
            }
            Operation::Bind(bind) => shared.regions.bind(pd, qp, bind).map_err(|_| Failed(Status::WindowBind)),
            _ => Ok(()),
        }
    }
    /// Returns the payload bytes in the request's packet with sequence number `seq`.
    pub(super) fn payload(&self, seq: Seq, terms: &Terms) -> u32 {
        match self.request.operation {
            Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => 0,
            _ => message::bytes_in(seq - self.first, self.length, terms.mtu),
        }
    }
    pub(super) fn is_answered(&self, terms: &Terms) -> bool {
        self.answered == self.answer_packets(terms)
    }
    fn answer_packets(&self, terms: &Terms) -> u64 {
        match self.request.operation {
            Operation::Read(_) => message::packets(self.length, terms.mtu),
            _ => 1,
        }
    }
    /// Checks whether the local keys permit the request's use of memory.
    pub(super) fn allowed(&self, terms: &Terms, shared: &Shared) -> Result<(), Failed> {
        let length = match self.request.operation {
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } | Operation::AtomicWrite(_) => 8,
            Operation::Flush(_) => 0,
            _ => self.length,
        };
        if self.length != length {
            return Err(Failed(Status::LocalLength));
        }
        if matches!(self.request.data, Data::Inline(_)) || self.is_local() {
            return Ok(());
        }
        self.pieces(terms, shared, 0, self.length, &mut |_| ())
    }
    /// Places a packet of the response, or only checks whether it may be placed where `origin` is nowhere.
    pub(super) fn take_answer(
        &self,
        terms: &Terms,
        shared: &Shared,
        memory: &mut impl Memory,
        origin: Origin<'_>,
        &Answer { index, payload, original }: &Answer,
    ) -> Result<(), Failed> {
        let offset = index * u64::from(terms.mtu);
        let expected = match self.request.operation {
            Operation::Read(_) => message::bytes_in(index, self.length, terms.mtu),
            _ => 0,
        };
        if payload != expected || index >= self.answer_packets(terms) {
            // The packet is empty although data was expected: the window was closed before the memory could be read.
            let is_closed = payload == 0 && expected > 0 && original.is_none();
            return Err(Failed(if is_closed { Status::RemoteAccess } else { Status::BadResponse }));
        }
        match (self.request.operation, original) {
            (Operation::Read(_), None) => {
                let (mut from, mut placed) = (0, Ok(()));
                self.pieces(terms, shared, offset, u64::from(payload), &mut |span| {
                    if placed.is_ok() {
                        placed = origin.place(memory, span.address, from, span.length);
                    }
                    from += span.length;
                })?;
                placed.map_err(|_| Failed(Status::LocalProtection))
            }
            (Operation::AtomicWrite(_) | Operation::Flush(_), None) => Ok(()),
            (Operation::Read(_) | Operation::AtomicWrite(_) | Operation::Flush(_), Some(_)) | (_, None) => {
                Err(Failed(Status::BadResponse))
            }
            (_, Some(original)) => {
                let mut word = None;
                self.pieces(terms, shared, offset, 8, &mut |span| word = Some(span))?;
                let word = word.filter(|span| span.length == 8).ok_or(Failed(Status::LocalProtection))?;
                if let Origin::Nowhere = origin {
                    return Ok(());
                }
                memory.store(word.address, original).map_err(|_| Failed(Status::LocalProtection))
            }
        }
    }

    /// Calls `found` with each piece of memory that holds or receives `length` bytes from `offset` on.
    fn pieces(
        &self,
        terms: &Terms,
        shared: &Shared,
        offset: u64,
        length: u64,
        found: &mut impl FnMut(Span),
    ) -> Result<(), Failed> {
        let all = self.request.spans(&shared.regions, terms.init.pd, offset, length, found);
        all.ok_or(Failed(Status::LocalProtection))
    }
}
