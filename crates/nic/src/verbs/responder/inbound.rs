//! Memory accesses of requests, checked before a byte is copied.

use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::verbs::{AtomicEth, Headers};

use super::Refusal;
use crate::verbs::attributes::Terms;
use crate::verbs::flush::Flush;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message::{Position, nak};
use crate::verbs::qp::Failure;
use crate::verbs::region::Intent;
use crate::verbs::shared::Shared;
use crate::verbs::work::{Attached, Completion, CompletionKind, ReceiveRequest, Span, Status};

pub(super) const MALFORMED: Refusal = Refusal::Nak(nak::INVALID_REQUEST, Failure::InvalidRequest);
pub(super) const FORBIDDEN: Refusal = Refusal::Nak(nak::REMOTE_ACCESS, Failure::Access);
pub(super) const BROKEN: Refusal = Refusal::Nak(nak::REMOTE_OPERATION, Failure::Fatal);

/// Checks the payload length of a packet: all but the last packet of a message are full; the last of several is not
/// empty.
pub(super) fn check_length(terms: &Terms, position: Position, payload: u32) -> Result<(), Refusal> {
    let is_right = match position {
        Position::First | Position::Middle => payload == terms.mtu,
        Position::Last => payload > 0 && payload <= terms.mtu,
        Position::Only => payload <= terms.mtu,
    };
    if is_right { Ok(()) } else { Err(MALFORMED) }
}

/// Returns the process address of `length` bytes at `address` in the region of `key`, if the other side may access them
/// with `intent`. Accesses of zero bytes are permitted anywhere.
pub(super) fn reach(
    terms: &Terms,
    shared: &Shared,
    intent: Intent,
    key: u32,
    address: u64,
    length: u64,
) -> Result<u64, Refusal> {
    if !terms.access.admits(intent) {
        return Err(MALFORMED);
    }
    if length == 0 {
        return Ok(0);
    }
    shared.regions.resolve(terms.init.pd, terms.number, key, address, length, intent).ok_or(FORBIDDEN)
}

/// Places the payload of a Write's packet at the address that the packet names.
pub(super) fn write(
    terms: &Terms,
    shared: &Shared,
    memory: &mut impl Memory,
    origin: Origin<'_>,
    key: u32,
    address: u64,
    payload: u32,
) -> Result<(), Refusal> {
    let at = reach(terms, shared, Intent::RemoteWrite, key, address, u64::from(payload))?;
    if payload == 0 { Ok(()) } else { origin.place(memory, at, 0, payload).map_err(|_| FORBIDDEN) }
}

/// Places the payload of a Send's packet into its receive request, at `offset` of the message. An error on this side is
/// returned as the status of the receive request.
pub(super) fn scatter(
    terms: &Terms,
    shared: &Shared,
    memory: &mut impl Memory,
    origin: Origin<'_>,
    request: &ReceiveRequest,
    offset: u64,
    payload: u32,
) -> Result<(), Status> {
    let room: u64 = request.scatter.iter().map(|piece| u64::from(piece.length)).sum();
    if offset + u64::from(payload) > room {
        return Err(Status::LocalLength);
    }
    let (mut from, mut faults) = (0, false);
    let mut place = |span: Span| {
        faults |= origin.place(memory, span.address, from, span.length).is_err();
        from += span.length;
    };
    let (pd, intent) = (terms.init.pd, Intent::LocalWrite);
    let found = shared.regions.spans(pd, &request.scatter, offset, u64::from(payload), intent, &mut place);
    if found.is_none() || faults { Err(Status::LocalProtection) } else { Ok(()) }
}

/// Returns the NAK for a receive request that failed with this status.
pub(super) const fn refusal_of(status: Status) -> Refusal {
    match status {
        Status::LocalLength => MALFORMED,
        _ => BROKEN,
    }
}

/// Executes an atomic operation; returns the old value.
pub(super) fn atomic(
    terms: &Terms,
    shared: &Shared,
    memory: &mut impl Memory,
    opcode: u8,
    atomic: &AtomicEth,
) -> Result<u64, Refusal> {
    if !atomic.address.is_multiple_of(8) {
        return Err(MALFORMED);
    }
    let at = reach(terms, shared, Intent::RemoteAtomic, atomic.key, atomic.address, 8)?;
    if !at.is_multiple_of(8) {
        return Err(MALFORMED);
    }
    let before = match opcode {
        op::COMPARE_SWAP => memory.compare_swap(at, atomic.compare, atomic.swap_add),
        _ => memory.fetch_add(at, atomic.swap_add),
    };
    before.map_err(|_| FORBIDDEN)
}

/// Executes an atomic write.
pub(super) fn atomic_write(
    terms: &Terms,
    shared: &Shared,
    memory: &mut impl Memory,
    key: u32,
    address: u64,
    value: u64,
) -> Result<(), Refusal> {
    let at = reach(terms, shared, Intent::RemoteWrite, key, address, 8)?;
    if !address.is_multiple_of(8) || !at.is_multiple_of(8) {
        return Err(MALFORMED);
    }
    memory.replace(at, value).map_err(|_| FORBIDDEN)
}

/// Returns the address and the length in bytes of the memory that a flush covers.
pub(super) fn flushed(terms: &Terms, shared: &Shared, flush: &Flush) -> Result<(u64, u64), Refusal> {
    let intent = Intent::Flush { global: flush.global, persistent: flush.persistent };
    let all = shared.regions.whole(terms.init.pd, terms.number, flush.remote.key, intent).ok_or(FORBIDDEN)?;
    if flush.whole_region {
        return Ok((all.start, all.length));
    }
    let length = u64::from(flush.length);
    Ok((all.place(flush.remote.address, length).ok_or(FORBIDDEN)?, length))
}

/// Returns the extra information in the last packet of a message.
pub(super) fn attached(headers: &Headers) -> Attached {
    match (headers.immediate, headers.invalidate) {
        (Some(immediate), _) => Attached::Immediate(immediate),
        (None, Some(key)) => Attached::Invalidate(key),
        (None, None) => Attached::Nothing,
    }
}

/// Completes a receive request. A window that the message invalidates is closed first; if it is not bound to this queue
/// pair, the completion reports an invalid request and the other side gets a NAK.
pub(super) fn deliver(terms: &Terms, shared: &mut Shared, mut completion: Completion) -> Result<(), Refusal> {
    let mut outcome = Ok(());
    if let (Status::Success, Attached::Invalidate(key)) = (completion.status, completion.attached)
        && shared.regions.windows().invalidate(terms.init.pd, terms.number, key).is_err()
    {
        completion.status = Status::RemoteInvalidRequest;
        outcome = Err(FORBIDDEN);
    }
    shared.complete(terms.init.receive_cq, completion);
    outcome
}

/// Creates the completion of a receive request.
pub(super) fn completion(
    terms: &Terms,
    id: u64,
    status: Status,
    kind: CompletionKind,
    length: u64,
    attached: Attached,
    solicited: bool,
) -> Completion {
    Completion { id, status, kind, length: length as u32, attached, qp: terms.number, source: None, solicited }
}
