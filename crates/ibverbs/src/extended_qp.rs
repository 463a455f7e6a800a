//! The extended interface of queue pairs: requests built field by field, then posted together.
//!
//! Between `wr_start` and `wr_complete` the queue pair is locked, as the manual says; errors are reported at the end.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_nic::verbs::{Attached, Data, Destination, Flush, Operation, Remote, SendRequest, Service};
use selvedge_wire::verbs::Feth;

use crate::abi::{ibv_ah, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_qp_ex, ibv_sge};
use crate::pair::Qp;
use crate::post::{self, flag};
use crate::{error, window};

/// The Atomics in `enum ibv_qp_create_send_ops_flags`.
pub(crate) const ATOMICS: u64 = 0b11 << 5;

/// Returns the operations that can be built for a queue pair, as `enum ibv_qp_create_send_ops_flags`.
pub(crate) const fn operations(service: Service) -> u64 {
    const WRITES: u64 = 0b11;
    const SENDS: u64 = 0b11 << 2;
    match service {
        // All operations except segmentation (TSO).
        Service::Reliable => 0b1_1011_1111_1111,
        Service::Unreliable => WRITES | SENDS,
        Service::Datagram => SENDS,
    }
}

/// Type of the function `wr_flush`, which `struct ibv_qp_ex` has at its end since rdma-core 45.
pub(crate) type WrFlush = unsafe extern "C" fn(*mut ibv_qp_ex, u32, u64, usize, u8, u8);

/// Send requests under construction, and the lock that the building thread holds.
#[derive(Default)]
pub(crate) struct Builder {
    /// Held from `wr_start` to `wr_complete` or `wr_abort`.
    lock: Mutex<()>,
    /// Accessed by the thread that holds `lock`, alone.
    building: UnsafeCell<Building>,
}

/// Send requests under construction.
#[derive(Default)]
struct Building {
    requests: Vec<SendRequest>,
    /// The first error.
    failed: Option<c_int>,
    /// The builder's lock, between calls.
    guard: Option<MutexGuard<'static, ()>>,
}

// SAFETY: `building` is accessed under `lock` alone, and the guard is put there and taken away by the thread that holds
// it.
unsafe impl Send for Builder {}
// SAFETY: as above.
unsafe impl Sync for Builder {}

/// Sets the functions of the extended interface in a queue pair.
pub(crate) fn equip(qp: &mut ibv_qp_ex) {
    qp.wr_atomic_cmp_swp = Some(compare_swap);
    qp.wr_atomic_fetch_add = Some(fetch_add);
    qp.wr_bind_mw = Some(bind);
    qp.wr_local_inv = Some(local_invalidate);
    qp.wr_rdma_read = Some(read);
    qp.wr_rdma_write = Some(write);
    qp.wr_rdma_write_imm = Some(write_immediate);
    qp.wr_send = Some(send);
    qp.wr_send_imm = Some(send_immediate);
    qp.wr_send_inv = Some(send_invalidate);
    qp.wr_set_ud_addr = Some(set_address);
    qp.wr_set_inline_data = Some(set_inline);
    qp.wr_set_inline_data_list = Some(set_inline_list);
    qp.wr_set_sge = Some(set_piece);
    qp.wr_set_sge_list = Some(set_pieces);
    qp.wr_start = Some(start);
    qp.wr_complete = Some(complete);
    qp.wr_abort = Some(abort);
    qp.wr_atomic_write = Some(atomic_write);
}

unsafe extern "C" fn start(qp: *mut ibv_qp_ex) {
    // SAFETY: the queue pair outlives the lock, or the application destroys what it is using.
    let qp: &'static Qp = unsafe { &*qp.cast() };
    let guard = qp.builder.lock.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the lock is held.
    let building = unsafe { &mut *qp.builder.building.get() };
    building.requests.clear();
    building.failed = None;
    building.guard = Some(guard);
}

/// Returns the requests under construction, for the thread that has called `start`.
///
/// # Safety
/// The calling thread holds the lock, and has no other reference to them.
unsafe fn building<'a>(qp: *mut ibv_qp_ex) -> &'a mut Building {
    // SAFETY: the queue pair exists, and the calling thread holds the lock.
    unsafe { &mut *(*qp.cast::<Qp>()).builder.building.get() }
}

/// Releases the lock; returns the requests and the first error.
///
/// # Safety
/// The conditions of [`building`] hold.
unsafe fn finish(qp: *mut ibv_qp_ex) -> (Vec<SendRequest>, Option<c_int>) {
    // SAFETY: as the caller promises; the reference ends before the lock is released.
    let (taken, guard) = unsafe {
        let building = building(qp);
        ((mem::take(&mut building.requests), building.failed.take()), building.guard.take())
    };
    drop(guard);
    taken
}

unsafe extern "C" fn complete(qp: *mut ibv_qp_ex) -> c_int {
    let (requests, failed) = unsafe { finish(qp) };
    if let Some(errno) = failed {
        return errno;
    }
    let qp = unsafe { &*qp.cast::<Qp>() };
    error::code_of(qp.adapter.post_send(qp.number, |rnic, cx| rnic.post_sends(cx, qp.number, requests)))
}

unsafe extern "C" fn abort(qp: *mut ibv_qp_ex) {
    unsafe { finish(qp) };
}

unsafe fn begin(qp: *mut ibv_qp_ex, operation: Operation) {
    let (id, flags) = unsafe { ((*qp).wr_id, (*qp).wr_flags) };
    unsafe { building(qp) }.requests.push(SendRequest {
        id,
        operation,
        data: Data::Gather(Vec::new()),
        signaled: flags & flag::SIGNALED != 0,
        solicited: flags & flag::SOLICITED != 0,
        fence: flags & flag::FENCE != 0,
        destination: None,
    });
}

unsafe extern "C" fn compare_swap(qp: *mut ibv_qp_ex, key: u32, address: u64, compare: u64, swap: u64) {
    unsafe { begin(qp, Operation::CompareSwap { remote: Remote { address, key }, compare, swap }) }
}
unsafe extern "C" fn fetch_add(qp: *mut ibv_qp_ex, key: u32, address: u64, add: u64) {
    unsafe { begin(qp, Operation::FetchAdd { remote: Remote { address, key }, add }) }
}
unsafe extern "C" fn atomic_write(qp: *mut ibv_qp_ex, key: u32, address: u64, value: *const c_void) {
    unsafe {
        begin(qp, Operation::AtomicWrite(Remote { address, key }));
        set(qp, |request| request.data = Data::Inline(post::copy(value, size_of::<u64>())));
    }
}
pub(crate) unsafe extern "C" fn flush(
    qp: *mut ibv_qp_ex,
    key: u32,
    address: u64,
    length: usize,
    placement: u8,
    selectivity: u8,
) {
    // The wire format uses the values of `enum ibv_placement_type` and `enum ibv_selectivity_level`.
    let global = placement & Feth::GLOBAL != 0;
    let persistent = placement & Feth::PERSISTENT != 0;
    let is_known = placement & !(Feth::GLOBAL | Feth::PERSISTENT) == 0 && selectivity <= Feth::REGION;
    let whole_region = selectivity == Feth::REGION;
    let remote = Remote { address, key };
    match u32::try_from(length) {
        Ok(length) if is_known && (global || persistent) => {
            let flush = Flush { remote, length, whole_region, global, persistent };
            unsafe { begin(qp, Operation::Flush(flush)) }
        }
        _ => unsafe { building(qp).failed = Some(libc::EINVAL) },
    }
}
unsafe extern "C" fn bind(qp: *mut ibv_qp_ex, mw: *mut ibv_mw, key: u32, info: *const ibv_mw_bind_info) {
    match unsafe { window::bind_type_2(mw, key, &*info) } {
        Ok(operation) => unsafe { begin(qp, operation) },
        Err(errno) => unsafe { building(qp).failed = Some(errno) },
    }
}
unsafe extern "C" fn local_invalidate(qp: *mut ibv_qp_ex, key: u32) {
    unsafe { begin(qp, Operation::LocalInvalidate(key)) }
}
unsafe extern "C" fn read(qp: *mut ibv_qp_ex, key: u32, address: u64) {
    unsafe { begin(qp, Operation::Read(Remote { address, key })) }
}
unsafe extern "C" fn write(qp: *mut ibv_qp_ex, key: u32, address: u64) {
    unsafe { begin(qp, Operation::Write { remote: Remote { address, key }, immediate: None }) }
}
unsafe extern "C" fn write_immediate(qp: *mut ibv_qp_ex, key: u32, address: u64, immediate: u32) {
    let immediate = Some(immediate.to_ne_bytes());
    unsafe { begin(qp, Operation::Write { remote: Remote { address, key }, immediate }) }
}
unsafe extern "C" fn send(qp: *mut ibv_qp_ex) {
    unsafe { begin(qp, Operation::Send(Attached::Nothing)) }
}
unsafe extern "C" fn send_immediate(qp: *mut ibv_qp_ex, immediate: u32) {
    unsafe { begin(qp, Operation::Send(Attached::Immediate(immediate.to_ne_bytes()))) }
}
unsafe extern "C" fn send_invalidate(qp: *mut ibv_qp_ex, key: u32) {
    unsafe { begin(qp, Operation::Send(Attached::Invalidate(key))) }
}

/// Changes the latest request under construction.
unsafe fn set(qp: *mut ibv_qp_ex, change: impl FnOnce(&mut SendRequest)) {
    let builder = unsafe { building(qp) };
    match builder.requests.last_mut() {
        Some(request) => change(request),
        None => builder.failed = Some(libc::EINVAL),
    }
}

unsafe extern "C" fn set_address(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, remote: u32, qkey: u32) {
    let to: Option<Destination> = unsafe { post::destination(ah, remote, qkey) };
    unsafe {
        set(qp, |request| request.destination = to);
        if to.is_none() {
            building(qp).failed = Some(libc::EINVAL);
        }
    }
}
unsafe extern "C" fn set_inline(qp: *mut ibv_qp_ex, from: *mut c_void, length: usize) {
    unsafe { set(qp, |request| request.data = Data::Inline(post::copy(from, length))) }
}
unsafe extern "C" fn set_inline_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_data_buf) {
    let pieces = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(list, count) } };
    let bytes = pieces.iter().flat_map(|piece| unsafe { post::copy(piece.addr, piece.length) }).collect();
    unsafe { set(qp, |request| request.data = Data::Inline(bytes)) }
}
unsafe extern "C" fn set_piece(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    unsafe { set(qp, |request| request.data = Data::Gather(post::list(&[ibv_sge { addr, length, lkey }]))) }
}
unsafe extern "C" fn set_pieces(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    let pieces = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(list, count) } };
    unsafe { set(qp, |request| request.data = Data::Gather(post::list(pieces))) }
}
