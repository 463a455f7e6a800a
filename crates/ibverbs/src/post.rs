//! Work requests, translated from C's lists.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;

use selvedge_dataplane::rnic::Refusal;
use selvedge_nic::verbs::{Attached, Data, Destination, Operation, ReceiveRequest, Remote, SendRequest, Sge};
use selvedge_units::QpNumber;

use crate::abi::{ibv_recv_wr, ibv_send_wr, ibv_sge};
use crate::address::Ah;
use crate::borrowed::{Borrowed, List, Out, elements, load};
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

/// Outcome of posting a list: the refused request, null for an empty list, and its `errno`.
type Posted<T> = Result<(), (*mut T, c_int)>;

pub(crate) extern "C" fn post_send(
    qp: Borrowed<'_, Qp>,
    first: Option<Borrowed<'_, ibv_send_wr>>,
    bad: Option<Out<'_, *mut ibv_send_wr>>,
) -> c_int {
    let is_datagram = load!(qp.abi, qp_base.qp_type) == DATAGRAM;
    let outcome = qp.adapter.post_send(qp.number, |rnic, cx| {
        List(first).try_for_each(|request| {
            send_request(request, is_datagram)
                .and_then(|request| qp.has(request))
                .and_then(|request| rnic.post_send(cx, qp.number, request).map_err(error::of_verbs))
                .map_err(|errno| (request.as_ptr(), errno))
        })
    });
    report(outcome, first, bad)
}

/// Stores the refused request of a list in `bad`; returns its `errno`, or 0.
fn report<T>(
    outcome: Result<Posted<T>, Refusal>,
    first: Option<Borrowed<'_, T>>,
    bad: Option<Out<'_, *mut T>>,
) -> c_int {
    let first = first.map_or(ptr::null_mut(), Borrowed::as_ptr);
    match outcome.unwrap_or_else(|refusal| Err((first, error::of(refusal)))) {
        Ok(()) => 0,
        Err((request, errno)) => {
            if let Some(mut bad) = bad {
                bad.write(request);
            }
            errno
        }
    }
}

fn send_request(wr: Borrowed<'_, ibv_send_wr>, is_datagram: bool) -> Result<SendRequest, c_int> {
    // Fields that the opcode does not use may be uninitialised, and are not read.
    let immediate = || wr.imm_data.to_ne_bytes();
    let remote = || {
        // SAFETY: requests that call this set the member.
        let rdma = unsafe { wr.wr.rdma };
        Remote { address: rdma.remote_addr, key: rdma.rkey }
    };
    let atomic = || {
        // SAFETY: Atomics set the member.
        let atomic = unsafe { wr.wr.atomic };
        (Remote { address: atomic.remote_addr, key: atomic.rkey }, atomic)
    };
    let operation = match wr.opcode {
        opcode::WRITE => Operation::Write { remote: remote(), immediate: None },
        opcode::WRITE_IMMEDIATE => Operation::Write { remote: remote(), immediate: Some(immediate()) },
        opcode::SEND => Operation::Send(Attached::Nothing),
        opcode::SEND_IMMEDIATE => Operation::Send(Attached::Immediate(immediate())),
        opcode::SEND_INVALIDATE => Operation::Send(Attached::Invalidate(wr.imm_data)),
        opcode::READ => Operation::Read(remote()),
        opcode::COMPARE_SWAP => {
            let (remote, given) = atomic();
            Operation::CompareSwap { remote, compare: given.compare_add, swap: given.swap }
        }
        opcode::FETCH_ADD => {
            let (remote, given) = atomic();
            Operation::FetchAdd { remote, add: given.compare_add }
        }
        opcode::ATOMIC_WRITE => Operation::AtomicWrite(remote()),
        // The structure has no fields for a flush: only requests built field by field can flush.
        opcode::LOCAL_INVALIDATE => Operation::LocalInvalidate(wr.imm_data),
        opcode::BIND => {
            // SAFETY: a window of this library's, or null.
            let window = unsafe { Borrowed::new(wr.bind_mw.mw.cast()) };
            window::bind_type_2(window, wr.bind_mw.rkey, &wr.bind_mw.bind_info)?
        }
        _ => return Err(libc::EINVAL),
    };
    let destination = if is_datagram {
        // SAFETY: requests of datagram queue pairs have this member, with an address handle of this library's, or null.
        let (ah, to) = unsafe { (Borrowed::new(wr.wr.ud.ah.cast()), wr.wr.ud) };
        Some(destination(ah, to.remote_qpn, to.remote_qkey).ok_or(libc::EINVAL)?)
    } else {
        None
    };
    // SAFETY: a request's list is as long as it says.
    let pieces = unsafe { pieces(wr.sg_list, wr.num_sge)? };
    let is_inline = wr.send_flags & flag::INLINE != 0;
    Ok(SendRequest {
        id: wr.wr_id,
        operation,
        // SAFETY: the data of an inline request is the program's to read, registered or not.
        data: if is_inline { Data::Inline(unsafe { gather(pieces) }) } else { Data::Gather(list(pieces)) },
        signaled: wr.send_flags & flag::SIGNALED != 0,
        solicited: wr.send_flags & flag::SOLICITED != 0,
        fence: wr.send_flags & flag::FENCE != 0,
        destination,
    })
}

/// Returns the destination of a datagram; `None` without an address handle.
pub(crate) fn destination(ah: Option<Borrowed<'_, Ah>>, qp: u32, qkey: u32) -> Option<Destination> {
    Some(Destination { route: ah?.route, qp: QpNumber(qp & 0xff_ffff), qkey })
}

/// Returns a list of `count` elements.
///
/// # Errors
/// Returns `EINVAL` for a negative count, and for a list that is null and not empty.
///
/// # Safety
/// The list has `count` elements, which nobody changes during `'c`, or is null.
unsafe fn pieces<'c>(list: *const ibv_sge, count: c_int) -> Result<&'c [ibv_sge], c_int> {
    let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
    // SAFETY: as the caller promises.
    unsafe { elements(list, count) }.ok_or(libc::EINVAL)
}

pub(crate) fn list(pieces: &[ibv_sge]) -> Vec<Sge> {
    pieces.iter().map(|sge| Sge { address: sge.addr, length: sge.length, key: sge.lkey }).collect()
}

/// Copies inline data of several elements.
///
/// # Safety
/// The memory of the elements is the program's to read.
unsafe fn gather(pieces: &[ibv_sge]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sge in pieces.iter().filter(|sge| sge.length > 0) {
        let from = std::ptr::with_exposed_provenance::<u8>(sge.addr as usize);
        // SAFETY: as the caller promises.
        bytes.extend_from_slice(unsafe { slice::from_raw_parts(from, sge.length as usize) });
    }
    bytes
}

/// Copies inline data of one element.
///
/// # Safety
/// `length` bytes are there.
pub(crate) unsafe fn copy(from: *const c_void, length: usize) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec()
}

fn receive_request(wr: Borrowed<'_, ibv_recv_wr>) -> Result<ReceiveRequest, c_int> {
    // SAFETY: a request's list is as long as it says.
    let pieces = unsafe { pieces(wr.sg_list, wr.num_sge)? };
    Ok(ReceiveRequest { id: wr.wr_id, scatter: list(pieces) })
}

pub(crate) extern "C" fn post_recv(
    qp: Borrowed<'_, Qp>,
    first: Option<Borrowed<'_, ibv_recv_wr>>,
    bad: Option<Out<'_, *mut ibv_recv_wr>>,
) -> c_int {
    let outcome =
        qp.adapter.post_recv(|rnic| each(first, |request| rnic.post_recv(qp.number, request).map_err(error::of_verbs)));
    report(outcome, first, bad)
}

pub(crate) extern "C" fn post_srq_recv(
    srq: Borrowed<'_, Srq>,
    first: Option<Borrowed<'_, ibv_recv_wr>>,
    bad: Option<Out<'_, *mut ibv_recv_wr>>,
) -> c_int {
    let outcome = srq
        .adapter
        .post_recv(|rnic| each(first, |request| rnic.post_srq_recv(srq.id, request).map_err(error::of_verbs)));
    report(outcome, first, bad)
}

fn each(
    first: Option<Borrowed<'_, ibv_recv_wr>>,
    mut post: impl FnMut(ReceiveRequest) -> Result<(), c_int>,
) -> Posted<ibv_recv_wr> {
    List(first)
        .try_for_each(|request| receive_request(request).and_then(&mut post).map_err(|errno| (request.as_ptr(), errno)))
}
