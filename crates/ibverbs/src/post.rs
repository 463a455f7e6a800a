//! Work requests, translated from C's lists.

use std::ffi::{c_int, c_void};
use std::slice;

use selvedge_nic::verbs::{Attached, Data, Destination, Operation, ReceiveRequest, Remote, SendRequest, Sge};
use selvedge_units::QpNumber;

use crate::abi::{ibv_ah, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_srq};
use crate::address::Ah;
use crate::pair::Qp;
use crate::srq::Srq;
use crate::{error, window};

/// Opcodes of `enum ibv_wr_opcode`.
mod opcode {
    pub(super) const WRITE: i32 = 0;
    pub(super) const WRITE_IMMEDIATE: i32 = 1;
    pub(super) const SEND: i32 = 2;
    pub(super) const SEND_IMMEDIATE: i32 = 3;
    pub(super) const READ: i32 = 4;
    pub(super) const COMPARE_SWAP: i32 = 5;
    pub(super) const FETCH_ADD: i32 = 6;
    pub(super) const LOCAL_INVALIDATE: i32 = 7;
    pub(super) const BIND: i32 = 8;
    pub(super) const SEND_INVALIDATE: i32 = 9;
    pub(super) const ATOMIC_WRITE: i32 = 15;
}

/// Flags of `enum ibv_send_flags`.
pub(crate) mod flag {
    pub(crate) const FENCE: u32 = 1;
    pub(crate) const SIGNALED: u32 = 1 << 1;
    pub(crate) const SOLICITED: u32 = 1 << 2;
    pub(crate) const INLINE: u32 = 1 << 3;
}

/// `IBV_QPT_UD` of `enum ibv_qp_type`.
const DATAGRAM: c_int = 4;

pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let inner = unsafe { Qp::of(qp) };
    let is_datagram = unsafe { (*qp).qp_type } == DATAGRAM;
    let outcome = inner.adapter.post_send(inner.number, |rnic, cx| {
        let mut next = first;
        // SAFETY: a list as the caller promises.
        while let Some(request) = unsafe { next.as_ref() } {
            unsafe { send_request(request, is_datagram) }
                .and_then(|request| inner.has(request))
                .and_then(|request| rnic.post_send(cx, inner.number, request).map_err(error::of_verbs))
                .map_err(|errno| (next, errno))?;
            next = request.next;
        }
        Ok(())
    });
    unsafe { report(outcome.unwrap_or_else(|refusal| Err((first, error::of(refusal)))), bad) }
}

/// Stores the refused request of a list in `bad`; returns its `errno`, or 0.
unsafe fn report<T>(outcome: Result<(), (*mut T, c_int)>, bad: *mut *mut T) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err((request, errno)) => {
            unsafe { *bad = request };
            errno
        }
    }
}

unsafe fn send_request(wr: &ibv_send_wr, is_datagram: bool) -> Result<SendRequest, c_int> {
    // SAFETY: the opcode and the kind of queue pair say which member of the union was set.
    let (rdma, atomic) = unsafe { (wr.wr.rdma, wr.wr.atomic) };
    let immediate = wr.imm_data.to_ne_bytes();
    let remote = Remote { address: rdma.remote_addr, key: rdma.rkey };
    let word = Remote { address: atomic.remote_addr, key: atomic.rkey };
    let operation = match wr.opcode {
        opcode::WRITE => Operation::Write { remote, immediate: None },
        opcode::WRITE_IMMEDIATE => Operation::Write { remote, immediate: Some(immediate) },
        opcode::SEND => Operation::Send(Attached::Nothing),
        opcode::SEND_IMMEDIATE => Operation::Send(Attached::Immediate(immediate)),
        opcode::SEND_INVALIDATE => Operation::Send(Attached::Invalidate(wr.imm_data)),
        opcode::READ => Operation::Read(remote),
        opcode::COMPARE_SWAP => Operation::CompareSwap { remote: word, compare: atomic.compare_add, swap: atomic.swap },
        opcode::FETCH_ADD => Operation::FetchAdd { remote: word, add: atomic.compare_add },
        opcode::ATOMIC_WRITE => Operation::AtomicWrite(remote),
        // The structure has no fields for a flush: only requests built field by field can flush.
        opcode::LOCAL_INVALIDATE => Operation::LocalInvalidate(wr.imm_data),
        opcode::BIND => unsafe { window::bind_type_2(wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info)? },
        _ => return Err(libc::EINVAL),
    };
    // SAFETY: as above.
    let destination = is_datagram.then(|| unsafe {
        let to = wr.wr.ud;
        destination(to.ah, to.remote_qpn, to.remote_qkey)
    });
    let destination = match destination {
        Some(None) => return Err(libc::EINVAL),
        Some(found) => found,
        None => None,
    };
    let pieces = unsafe { pieces(wr.sg_list, wr.num_sge)? };
    let is_inline = wr.send_flags & flag::INLINE != 0;
    Ok(SendRequest {
        id: wr.wr_id,
        operation,
        data: if is_inline { Data::Inline(unsafe { gather(pieces) }) } else { Data::Gather(list(pieces)) },
        signaled: wr.send_flags & flag::SIGNALED != 0,
        solicited: wr.send_flags & flag::SOLICITED != 0,
        fence: wr.send_flags & flag::FENCE != 0,
        destination,
    })
}

/// Returns the destination of a datagram; `None` without an address handle.
pub(crate) unsafe fn destination(ah: *mut ibv_ah, qp: u32, qkey: u32) -> Option<Destination> {
    // SAFETY: the caller's: from us, or null.
    let route = unsafe { ah.cast::<Ah>().as_ref() }?.route;
    Some(Destination { route, qp: QpNumber(qp & 0xff_ffff), qkey })
}

unsafe fn pieces<'a>(list: *const ibv_sge, count: c_int) -> Result<&'a [ibv_sge], c_int> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(_) if list.is_null() => Err(libc::EINVAL),
        // SAFETY: the caller's.
        Ok(count) => Ok(unsafe { slice::from_raw_parts(list, count) }),
        Err(_) => Err(libc::EINVAL),
    }
}

pub(crate) fn list(pieces: &[ibv_sge]) -> Vec<Sge> {
    pieces.iter().map(|sge| Sge { address: sge.addr, length: sge.length, key: sge.lkey }).collect()
}

/// Copies inline data of several elements.
unsafe fn gather(pieces: &[ibv_sge]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sge in pieces.iter().filter(|sge| sge.length > 0) {
        let from = std::ptr::with_exposed_provenance::<u8>(sge.addr as usize);
        // SAFETY: inline data is the caller's to read, registered or not.
        bytes.extend_from_slice(unsafe { slice::from_raw_parts(from, sge.length as usize) });
    }
    bytes
}

/// Copies inline data of one element.
pub(crate) unsafe fn copy(from: *const c_void, length: usize) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec()
}

unsafe fn receive_request(wr: &ibv_recv_wr) -> Result<ReceiveRequest, c_int> {
    Ok(ReceiveRequest { id: wr.wr_id, scatter: list(unsafe { pieces(wr.sg_list, wr.num_sge)? }) })
}

pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let inner = unsafe { Qp::of(qp) };
    let outcome = inner.adapter.post_recv(|rnic| unsafe {
        each(first, |request| rnic.post_recv(inner.number, request).map_err(error::of_verbs))
    });
    unsafe { report(outcome.unwrap_or_else(|refusal| Err((first, error::of(refusal)))), bad) }
}

pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let inner = unsafe { Srq::of(srq) };
    let outcome = inner.adapter.post_recv(|rnic| unsafe {
        each(first, |request| rnic.post_srq_recv(inner.id, request).map_err(error::of_verbs))
    });
    unsafe { report(outcome.unwrap_or_else(|refusal| Err((first, error::of(refusal)))), bad) }
}

unsafe fn each(
    first: *mut ibv_recv_wr,
    mut post: impl FnMut(ReceiveRequest) -> Result<(), c_int>,
) -> Result<(), (*mut ibv_recv_wr, c_int)> {
    let mut next = first;
    // SAFETY: a list as the caller promises.
    while let Some(request) = unsafe { next.as_ref() } {
        unsafe { receive_request(request) }.and_then(&mut post).map_err(|errno| (next, errno))?;
        next = request.next;
    }
    Ok(())
}
