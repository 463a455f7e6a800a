//! Queue pairs of identifiers, and their state transitions.

use std::ffi::c_int;
use std::ptr;

use selvedge_nic::verbs::Limits;

use super::abi::rdma_cm_id;
use super::address;
use super::connect::QKEY;
use super::event::fail;
use super::id::{DATAGRAM, Id};
use crate::abi::{
    ibv_context, ibv_cq, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq,
    ibv_srq_init_attr, ibv_srq_init_attr_ex,
};
use crate::channel::{ibv_create_comp_channel, ibv_destroy_comp_channel};
use crate::completion::{ibv_create_cq, ibv_destroy_cq};
use crate::context::Context;
use crate::limits::least;
use crate::pair::{create_qp_ex, ibv_create_qp, ibv_destroy_qp, ibv_modify_qp};
use crate::srq::{create_srq_ex, ibv_create_srq, ibv_destroy_srq};
use crate::{address as ah, error};

/// States of `enum ibv_qp_state`.
mod state {
    pub(super) const INIT: i32 = 1;
    pub(super) const READY_TO_RECEIVE: i32 = 2;
    pub(super) const READY_TO_SEND: i32 = 3;
    pub(super) const ERROR: i32 = 6;
}

/// Access rights of the other side: all.
const ACCESS: u32 = 0b1111;

/// Returns the attributes that take a queue pair to a state, and their mask; `None` if the route is not known yet.
fn attributes(id: &Id, to: c_int) -> Option<(ibv_qp_attr, c_int)> {
    const STATE: c_int = 1;
    // SAFETY: numbers only.
    let mut wanted: ibv_qp_attr = unsafe { std::mem::zeroed() };
    wanted.qp_state = to;
    let is_datagram = id.abi.qp_type == DATAGRAM;
    let mask = match to {
        state::INIT => {
            wanted.port_num = 1;
            wanted.qp_access_flags = ACCESS;
            wanted.qkey = QKEY;
            if is_datagram { 1 << 4 | 1 << 5 | 1 << 6 } else { 1 << 3 | 1 << 4 | 1 << 5 }
        }
        state::READY_TO_RECEIVE if is_datagram => 0,
        state::READY_TO_RECEIVE => {
            // SAFETY: the device was opened when the address was resolved.
            let context = unsafe { Context::of(id.abi.verbs) };
            wanted.ah_attr = ah::attributes(context, &id.route()?);
            wanted.path_mtu = id.mtu;
            wanted.dest_qp_num = id.peer.qp;
            wanted.rq_psn = id.psn;
            wanted.max_dest_rd_atomic = id.reads_answered.min(most_reads(context));
            wanted.min_rnr_timer = 0;
            1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15
        }
        state::READY_TO_SEND if is_datagram => 1 << 16,
        state::READY_TO_SEND => {
            wanted.sq_psn = id.peer.psn;
            wanted.timeout = id.ack_timeout;
            wanted.retry_cnt = id.retries;
            wanted.rnr_retry = id.peer.not_ready_retries;
            // SAFETY: as above.
            wanted.max_rd_atomic = id.reads_asked.min(most_reads(unsafe { Context::of(id.abi.verbs) }));
            1 << 16 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13
        }
        _ => 0,
    };
    Some((wanted, mask | STATE))
}

/// Returns the most Reads and Atomics that a queue pair can have outstanding.
fn most_reads(context: &Context) -> u8 {
    least(Limits::HERE.reads.into(), context.profile.max_rd_atom) as u8
}

unsafe fn go(id: &Id, to: c_int) -> c_int {
    let Some((mut wanted, mask)) = attributes(id, to) else { return libc::EINVAL };
    unsafe { ibv_modify_qp(id.abi.qp, &raw mut wanted, mask) }
}

/// Takes the queue pair of a connection to the state in which it receives and sends; returns 0 or `errno`.
pub(super) unsafe fn make_ready(id: &Id) -> c_int {
    match unsafe { go(id, state::READY_TO_RECEIVE) } {
        0 => unsafe { go(id, state::READY_TO_SEND) },
        errno => errno,
    }
}

/// Takes the queue pair to the error state, which flushes all posted requests.
pub(super) unsafe fn fail_all(id: &Id) {
    if !id.abi.qp.is_null() && id.abi.qp_type != DATAGRAM {
        unsafe { go(id, state::ERROR) };
    }
}

/// Returns the attributes for applications that change their queue pairs themselves.
#[unsafe(export_name = "selvedge_rdma_init_qp_attr")]
pub unsafe extern "C" fn init_qp_attr(id: *mut rdma_cm_id, to: *mut ibv_qp_attr, mask: *mut c_int) -> c_int {
    let state = unsafe { (*to).qp_state };
    match attributes(unsafe { Id::of(id) }, state) {
        Some((wanted, bits)) => {
            unsafe { (*to, *mask) = (wanted, bits) };
            0
        }
        None => fail(libc::EINVAL),
    }
}

/// Returns the given protection domain, or the identifier's default if it is null.
unsafe fn domain(id: &mut Id, given: *mut ibv_pd) -> *mut ibv_pd {
    if !given.is_null() {
        id.abi.pd = given;
    }
    id.abi.pd
}

/// Creates a completion queue with a channel, for an application that brings none.
unsafe fn queue(context: *mut ibv_context, depth: u32, of: *mut rdma_cm_id) -> *mut ibv_cq {
    unsafe {
        let channel = ibv_create_comp_channel(context);
        if channel.is_null() {
            return ptr::null_mut();
        }
        let cq = ibv_create_cq(context, depth.max(1) as c_int, of.cast(), channel, 0);
        if cq.is_null() {
            ibv_destroy_comp_channel(channel);
        }
        cq
    }
}

unsafe fn with_queues(
    id: *mut rdma_cm_id,
    given: *mut ibv_pd,
    (mut send, mut receive): (*mut ibv_cq, *mut ibv_cq),
    depths: (u32, u32),
    make: impl FnOnce(*mut ibv_pd, *mut ibv_cq, *mut ibv_cq) -> *mut ibv_qp,
) -> c_int {
    let inner = unsafe { Id::of(id) };
    let pd = unsafe { domain(inner, given) };
    if pd.is_null() {
        return fail(libc::EINVAL);
    }
    unsafe {
        if send.is_null() {
            send = queue(inner.abi.verbs, depths.0, id);
            inner.abi.send_cq = send;
            inner.abi.send_cq_channel = send.as_ref().map_or(ptr::null_mut(), |cq| cq.channel);
        }
        if receive.is_null() {
            receive = queue(inner.abi.verbs, depths.1, id);
            inner.abi.recv_cq = receive;
            inner.abi.recv_cq_channel = receive.as_ref().map_or(ptr::null_mut(), |cq| cq.channel);
        }
    }
    let qp = make(pd, send, receive);
    if qp.is_null() {
        return -1;
    }
    inner.abi.qp = qp;
    let errno = unsafe {
        match go(inner, state::INIT) {
            0 if inner.abi.qp_type == DATAGRAM => make_ready(inner),
            errno => errno,
        }
    };
    if errno != 0 {
        unsafe { destroy_qp(id) };
        return fail(errno);
    }
    0
}

#[unsafe(export_name = "selvedge_rdma_create_qp")]
pub unsafe extern "C" fn create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> c_int {
    let depths = unsafe { ((*wanted).cap.max_send_wr, (*wanted).cap.max_recv_wr) };
    unsafe {
        with_queues(id, pd, ((*wanted).send_cq, (*wanted).recv_cq), depths, |pd, send, receive| {
            ((*wanted).send_cq, (*wanted).recv_cq) = (send, receive);
            if (*wanted).srq.is_null() {
                (*wanted).srq = Id::of(id).abi.srq;
            }
            ibv_create_qp(pd, wanted)
        })
    }
}

#[unsafe(export_name = "selvedge_rdma_create_qp_ex")]
pub unsafe extern "C" fn rdma_create_qp_ex(id: *mut rdma_cm_id, wanted: *mut ibv_qp_init_attr_ex) -> c_int {
    const DOMAIN: u32 = 1;
    let all = unsafe { &mut *wanted };
    let given = if all.comp_mask & DOMAIN != 0 { all.pd } else { ptr::null_mut() };
    let depths = (all.cap.max_send_wr, all.cap.max_recv_wr);
    unsafe {
        with_queues(id, given, (all.send_cq, all.recv_cq), depths, |pd, send, receive| {
            ((*wanted).send_cq, (*wanted).recv_cq) = (send, receive);
            (*wanted).comp_mask |= DOMAIN;
            (*wanted).pd = pd;
            create_qp_ex(Id::of(id).abi.verbs, wanted)
        })
    }
}

#[unsafe(export_name = "selvedge_rdma_destroy_qp")]
pub unsafe extern "C" fn destroy_qp(id: *mut rdma_cm_id) {
    let inner = unsafe { Id::of(id) };
    unsafe {
        if !inner.abi.qp.is_null() {
            ibv_destroy_qp(inner.abi.qp);
            inner.abi.qp = ptr::null_mut();
        }
        let abi = &mut inner.abi;
        let queues = [&mut abi.send_cq, &mut abi.recv_cq].map(taken);
        let channels = [&mut abi.send_cq_channel, &mut abi.recv_cq_channel].map(taken);
        each_once(queues).for_each(|cq| _ = ibv_destroy_cq(cq));
        each_once(channels).for_each(|channel| _ = ibv_destroy_comp_channel(channel));
    }
}

/// Returns the pointers that are not null, each once: applications may use one queue or channel for both directions.
fn each_once<T>([first, second]: [*mut T; 2]) -> impl Iterator<Item = *mut T> {
    let other = if second == first { ptr::null_mut() } else { second };
    [first, other].into_iter().filter(|pointer| !pointer.is_null())
}

/// Returns a pointer and replaces it by null.
fn taken<T>(from: &mut *mut T) -> *mut T {
    std::mem::replace(from, ptr::null_mut())
}

fn kept(id: &mut Id, srq: *mut ibv_srq) -> c_int {
    id.abi.srq = srq;
    if srq.is_null() { -1 } else { 0 }
}

#[unsafe(export_name = "selvedge_rdma_create_srq")]
pub unsafe extern "C" fn rdma_create_srq(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    wanted: *mut ibv_srq_init_attr,
) -> c_int {
    let inner = unsafe { Id::of(id) };
    let pd = unsafe { domain(inner, pd) };
    if pd.is_null() {
        return fail(libc::EINVAL);
    }
    let srq = unsafe { ibv_create_srq(pd, wanted) };
    kept(inner, srq)
}

#[unsafe(export_name = "selvedge_rdma_create_srq_ex")]
pub unsafe extern "C" fn rdma_create_srq_ex(id: *mut rdma_cm_id, wanted: *mut ibv_srq_init_attr_ex) -> c_int {
    let inner = unsafe { Id::of(id) };
    let srq = unsafe { create_srq_ex(inner.abi.verbs, wanted) };
    kept(inner, srq)
}

#[unsafe(export_name = "selvedge_rdma_destroy_srq")]
pub unsafe extern "C" fn rdma_destroy_srq(id: *mut rdma_cm_id) {
    let inner = unsafe { Id::of(id) };
    if !inner.abi.srq.is_null() {
        unsafe { ibv_destroy_srq(inner.abi.srq) };
        inner.abi.srq = ptr::null_mut();
    }
}

/// Returns a list of all devices, open; null ends the list.
#[unsafe(export_name = "selvedge_rdma_get_devices")]
pub unsafe extern "C" fn get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    let devices = match address::all_devices() {
        Ok(devices) => devices,
        Err(problem) => return error::null(error::of_io(&problem)),
    };
    unsafe {
        if let Some(count) = count.as_mut() {
            *count = devices.len() as c_int;
        }
        let list = libc::calloc(devices.len() + 1, size_of::<*mut ibv_context>()).cast::<*mut ibv_context>();
        if !list.is_null() {
            ptr::copy_nonoverlapping(devices.as_ptr(), list, devices.len());
        }
        list
    }
}

#[unsafe(export_name = "selvedge_rdma_free_devices")]
pub unsafe extern "C" fn free_devices(list: *mut *mut ibv_context) {
    unsafe { libc::free(list.cast()) }
}
