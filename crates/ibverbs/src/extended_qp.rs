//! The extended interface of queue pairs: requests built field by field, then posted together.
//!
//! Between `wr_start` and `wr_complete` the queue pair is locked, as the manual says; errors are reported at the end.

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use selvedge_nic::verbs::{Attached, Data, Destination, Flush, Operation, Remote, SendRequest, Service};
use selvedge_wire::verbs::Feth;

use crate::abi::{ibv_data_buf, ibv_mw_bind_info, ibv_qp_ex, ibv_sge};
use crate::address::Ah;
use crate::borrowed::{Borrowed, elements, load};
use crate::error;
use crate::pair::Qp;
use crate::post::{self, flag};
use crate::window::{self, Window};

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
pub(crate) type WrFlush = extern "C" fn(Borrowed<'_, Qp>, u32, u64, usize, u8, u8);

/// Send requests under construction, by one thread at a time.
#[derive(Default)]
pub(crate) struct Builder {
    building: Mutex<Building>,
    /// Notified when a thread has finished building.
    finished: Condvar,
}

/// Send requests under construction.
#[derive(Default)]
struct Building {
    requests: Vec<SendRequest>,
    /// The first error.
    failed: Option<c_int>,
    /// Whether a thread is building, from `wr_start` to `wr_complete` or `wr_abort`. Calls in between lock the mutex
    /// themselves, so that no guard outlives a call.
    is_taken: bool,
}

impl Builder {
    /// Waits until no thread builds, and begins.
    fn start(&self) {
        let free = self.finished.wait_while(self.building(), |building| building.is_taken);
        let mut building = free.unwrap_or_else(PoisonError::into_inner);
        building.requests.clear();
        building.failed = None;
        building.is_taken = true;
    }
    /// Ends the construction; returns the requests and the first error.
    fn finish(&self) -> (Vec<SendRequest>, Option<c_int>) {
        let mut building = self.building();
        building.is_taken = false;
        self.finished.notify_one();
        (mem::take(&mut building.requests), building.failed.take())
    }
    fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn fail(&self, errno: c_int) {
        self.building().failed = Some(errno);
    }
    /// Changes the latest request under construction.
    fn set(&self, change: impl FnOnce(&mut SendRequest)) {
        let mut building = self.building();
        match building.requests.last_mut() {
            Some(request) => change(request),
            None => building.failed = Some(libc::EINVAL),
        }
    }
}

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

extern "C" fn start(qp: Borrowed<'_, Qp>) {
    qp.builder.start();
}

extern "C" fn complete(qp: Borrowed<'_, Qp>) -> c_int {
    let (requests, failed) = qp.builder.finish();
    if let Some(errno) = failed {
        return errno;
    }
    error::code_of(qp.adapter.post_send(qp.number, |rnic, cx| rnic.post_sends(cx, qp.number, requests)))
}

extern "C" fn abort(qp: Borrowed<'_, Qp>) {
    qp.builder.finish();
}

fn begin(qp: Borrowed<'_, Qp>, operation: Operation) {
    let (id, flags) = (load!(qp.abi, wr_id), load!(qp.abi, wr_flags));
    qp.builder.building().requests.push(SendRequest {
        id,
        operation,
        data: Data::Gather(Vec::new()),
        signaled: flags & flag::SIGNALED != 0,
        solicited: flags & flag::SOLICITED != 0,
        fence: flags & flag::FENCE != 0,
        destination: None,
    });
}

extern "C" fn compare_swap(qp: Borrowed<'_, Qp>, key: u32, address: u64, compare: u64, swap: u64) {
    begin(qp, Operation::CompareSwap { remote: Remote { address, key }, compare, swap });
}
extern "C" fn fetch_add(qp: Borrowed<'_, Qp>, key: u32, address: u64, add: u64) {
    begin(qp, Operation::FetchAdd { remote: Remote { address, key }, add });
}
extern "C" fn atomic_write(qp: Borrowed<'_, Qp>, key: u32, address: u64, value: Borrowed<'_, [u8; 8]>) {
    begin(qp, Operation::AtomicWrite(Remote { address, key }));
    qp.builder.set(|request| request.data = Data::Inline(value.to_vec()));
}
pub(crate) extern "C" fn flush(
    qp: Borrowed<'_, Qp>,
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
            begin(qp, Operation::Flush(flush));
        }
        _ => qp.builder.fail(libc::EINVAL),
    }
}
extern "C" fn bind(
    qp: Borrowed<'_, Qp>,
    mw: Option<Borrowed<'_, Window>>,
    key: u32,
    info: Borrowed<'_, ibv_mw_bind_info>,
) {
    match window::bind_type_2(mw, key, &info) {
        Ok(operation) => begin(qp, operation),
        Err(errno) => qp.builder.fail(errno),
    }
}
extern "C" fn local_invalidate(qp: Borrowed<'_, Qp>, key: u32) {
    begin(qp, Operation::LocalInvalidate(key));
}
extern "C" fn read(qp: Borrowed<'_, Qp>, key: u32, address: u64) {
    begin(qp, Operation::Read(Remote { address, key }));
}
extern "C" fn write(qp: Borrowed<'_, Qp>, key: u32, address: u64) {
    begin(qp, Operation::Write { remote: Remote { address, key }, immediate: None });
}
extern "C" fn write_immediate(qp: Borrowed<'_, Qp>, key: u32, address: u64, immediate: u32) {
    let immediate = Some(immediate.to_ne_bytes());
    begin(qp, Operation::Write { remote: Remote { address, key }, immediate });
}
extern "C" fn send(qp: Borrowed<'_, Qp>) {
    begin(qp, Operation::Send(Attached::Nothing));
}
extern "C" fn send_immediate(qp: Borrowed<'_, Qp>, immediate: u32) {
    begin(qp, Operation::Send(Attached::Immediate(immediate.to_ne_bytes())));
}
extern "C" fn send_invalidate(qp: Borrowed<'_, Qp>, key: u32) {
    begin(qp, Operation::Send(Attached::Invalidate(key)));
}

extern "C" fn set_address(qp: Borrowed<'_, Qp>, ah: Option<Borrowed<'_, Ah>>, remote: u32, qkey: u32) {
    let to: Option<Destination> = post::destination(ah, remote, qkey);
    qp.builder.set(|request| request.destination = to);
    if to.is_none() {
        qp.builder.fail(libc::EINVAL);
    }
}
/// Sets the data of a request.
///
/// # Safety
/// `length` bytes are there.
unsafe extern "C" fn set_inline(qp: Borrowed<'_, Qp>, from: *mut c_void, length: usize) {
    // SAFETY: as the caller promises.
    let bytes = unsafe { post::copy(from, length) };
    qp.builder.set(|request| request.data = Data::Inline(bytes));
}
/// Sets the data of a request from pieces.
///
/// # Safety
/// The list has `count` elements, each with as many bytes as it says.
unsafe extern "C" fn set_inline_list(qp: Borrowed<'_, Qp>, count: usize, list: *const ibv_data_buf) {
    // SAFETY: as the caller promises.
    let pieces = unsafe { elements(list, count) }.into_iter().flatten();
    // SAFETY: as the caller promises.
    let bytes = pieces.flat_map(|piece| unsafe { post::copy(piece.addr, piece.length) }).collect();
    qp.builder.set(|request| request.data = Data::Inline(bytes));
}
extern "C" fn set_piece(qp: Borrowed<'_, Qp>, lkey: u32, addr: u64, length: u32) {
    qp.builder.set(|request| request.data = Data::Gather(post::list(&[ibv_sge { addr, length, lkey }])));
}
/// Sets the memory of a request.
///
/// # Safety
/// The list has `count` elements.
unsafe extern "C" fn set_pieces(qp: Borrowed<'_, Qp>, count: usize, list: *const ibv_sge) {
    // SAFETY: as the caller promises.
    let pieces = unsafe { elements(list, count) }.unwrap_or_default();
    qp.builder.set(|request| request.data = Data::Gather(post::list(pieces)));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn threads_build_requests_one_after_the_other() {
        const THREADS: u32 = 4;
        const ROUNDS: u32 = 200;
        let (builder, inside) = (Builder::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (builder, inside) = (&builder, &inside);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        builder.start();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "another thread builds");
                        builder.fail((thread * ROUNDS + round) as c_int);
                        assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
                        assert_eq!(builder.finish().1, Some((thread * ROUNDS + round) as c_int));
                    }
                });
            }
        });
    }

    #[test]
    fn a_part_without_a_request_is_an_error() {
        let builder = Builder::default();
        builder.start();
        builder.set(|request| request.fence = true);
        assert_eq!(builder.finish().1, Some(libc::EINVAL));
    }
}
