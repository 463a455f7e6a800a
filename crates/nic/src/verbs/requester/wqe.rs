//! A send request on its way: what of the sequence is its own, and what has come of its answer.

use selvedge_units::Seq;

use super::Failed;
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::memory::Memory;
use crate::verbs::message;
use crate::verbs::msn::Msn;
use crate::verbs::shared::Shared;
use crate::verbs::work::{Data, Operation, SendRequest, Span, Status};

/// A request that has not completed.
#[derive(Debug)]
pub(super) struct Wqe {
    pub(super) request: SendRequest,
    /// Its first packet; far away if it has not begun.
    pub(super) first: Seq,
    /// How many sequence numbers it takes.
    pub(super) packets: u64,
    /// Bytes of its message, or of the answer.
    pub(super) length: u64,
    /// Packets of the answer that have arrived, of what has one.
    pub(super) answered: u64,
    /// Its recv_WQE_SN or read_WQE_SN.
    pub(super) number: u32,
    /// Between two of our own: the MSN by which it is completed at the other side.
    pub(super) msn: Msn,
    /// Requests that consume a receive request, up to this one, since the connection began.
    pub(super) consumed: u64,
}

/// Where a request stands that has not begun.
const NOT_BEGUN: Seq = Seq::new(u64::MAX);

impl Wqe {
    pub(super) fn new(request: SendRequest) -> Self {
        let (length, msn) = (request.length(), Msn::default());
        Self { request, first: NOT_BEGUN, packets: 0, length, answered: 0, number: 0, msn, consumed: 0 }
    }
    /// Whether it has an answer beside an acknowledgement.
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
    /// Whether it consumes a receive request of the other side.
    pub(super) fn consumes(&self) -> bool {
        matches!(self.request.operation, Operation::Send(_) | Operation::Write { immediate: Some(_), .. })
    }
    /// The memory of the other side that it reads or writes: where and how many bytes.
    fn there(&self) -> Option<(u64, u64)> {
        match self.request.operation {
            Operation::Write { remote, .. } | Operation::Read(remote) => Some((remote.address, self.length)),
            Operation::CompareSwap { remote, .. } | Operation::FetchAdd { remote, .. } => Some((remote.address, 8)),
            Operation::AtomicWrite(remote) => Some((remote.address, 8)),
            _ => None,
        }
    }
    /// The memory of this side that it reads or writes.
    fn here(&self) -> impl Iterator<Item = (u64, u64)> {
        let pieces = match &self.request.data {
            Data::Gather(pieces) => pieces.as_slice(),
            Data::Inline(_) => &[],
        };
        pieces.iter().map(|piece| (piece.address, u64::from(piece.length)))
    }
    /// Whether it could overwrite memory that `older` reads or writes.
    pub(super) fn could_overwrite(&self, older: &Self) -> bool {
        let is_read = matches!(self.request.operation, Operation::Read(_));
        let overlaps = |(a, length): (u64, u64), (b, other): (u64, u64)| {
            a < b.saturating_add(other) && b < a.saturating_add(length)
        };
        let there = self.there().filter(|_| !is_read).zip(older.there());
        there.is_some_and(|(new, old)| overlaps(new, old))
            || (self.is_read() && self.here().any(|new| older.here().any(|old| overlaps(new, old))))
    }
    /// Whether nothing of it is sent.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.request.operation, Operation::LocalInvalidate(_) | Operation::Bind(_))
    }
    /// Does what is done without sending anything.
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
    /// Bytes of payload in the packet of it that has this sequence number.
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
    /// Whether its memory may be used so.
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
    /// Puts the packet at `offset` of the answer where it belongs.
    pub(super) fn take_answer(
        &self,
        terms: &Terms,
        shared: &Shared,
        memory: &mut impl Memory,
        &Arrival { headers, payload, .. }: &Arrival<'_>,
        index: u64,
    ) -> Result<(), Failed> {
        let offset = index * u64::from(terms.mtu);
        let expected = match self.request.operation {
            Operation::Read(_) => message::bytes_in(index, self.length, terms.mtu),
            _ => 0,
        };
        if payload != expected || index >= self.answer_packets(terms) {
            // An empty packet where there should be data: it was closed before it could be read.
            let is_closed = payload == 0 && expected > 0 && headers.original.is_none();
            return Err(Failed(if is_closed { Status::RemoteAccess } else { Status::BadResponse }));
        }
        match (self.request.operation, headers.original) {
            (Operation::Read(_), None) => {
                let (mut from, mut placed) = (0, Ok(()));
                self.pieces(terms, shared, offset, u64::from(payload), &mut |span| {
                    if placed.is_ok() {
                        placed = memory.place(span.address, from, span.length);
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
                memory.store(word.address, original).map_err(|_| Failed(Status::LocalProtection))
            }
        }
    }

    /// Where so many bytes from `offset` on stand, or go to.
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
