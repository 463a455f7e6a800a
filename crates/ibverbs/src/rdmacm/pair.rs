//! Queue pairs of identifiers, and their state transitions.

use std::ffi::c_int;
use std::ptr;

use selvedge_nic::verbs::Limits;

use super::address;
use super::connect::QKEY;
use super::event::fail;
use super::id::{DATAGRAM, Id};
use crate::abi::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq_init_attr,
    ibv_srq_init_attr_ex,
};
use crate::borrowed::{Borrowed, Exclusive, Given, Out, allocated, load, store, zeroed};
use crate::channel::{CompletionChannel, ibv_create_comp_channel, ibv_destroy_comp_channel};
use crate::completion::{Cq, ibv_create_cq, ibv_destroy_cq};
use crate::context::Context;
use crate::limits::least;
use crate::memory::Pd;
use crate::pair::{Qp, create_qp_ex, ibv_create_qp, ibv_destroy_qp, ibv_modify_qp};
use crate::srq::{Srq, create_srq_ex, ibv_create_srq, ibv_destroy_srq};
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
    let mut wanted: ibv_qp_attr = zeroed();
    wanted.qp_state = to;
    let is_datagram = load!(id.abi, qp_type) == DATAGRAM;
    let state = id.state();
    let mask = match to {
        state::INIT => {
            wanted.port_num = 1;
            wanted.qp_access_flags = ACCESS;
            wanted.qkey = QKEY;
            if is_datagram { 1 << 4 | 1 << 5 | 1 << 6 } else { 1 << 3 | 1 << 4 | 1 << 5 }
        }
        state::READY_TO_RECEIVE if is_datagram => 0,
        state::READY_TO_RECEIVE => {
            let context = id.verbs()?.whole();
            wanted.ah_attr = ah::attributes(&context, &state.route()?);
            wanted.path_mtu = state.mtu;
            wanted.dest_qp_num = state.peer.qp;
            wanted.rq_psn = state.psn;
            wanted.max_dest_rd_atomic = state.reads_answered.min(most_reads(&context));
            wanted.min_rnr_timer = 0;
            1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15
        }
        state::READY_TO_SEND if is_datagram => 1 << 16,
        state::READY_TO_SEND => {
            wanted.sq_psn = state.peer.psn;
            wanted.timeout = state.ack_timeout;
            wanted.retry_cnt = state.retries;
            wanted.rnr_retry = state.peer.not_ready_retries;
            wanted.max_rd_atomic = state.reads_asked.min(most_reads(&id.verbs()?.whole()));
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

/// Takes a queue pair to a state; returns 0 or `errno`.
fn go(id: &Id, qp: Borrowed<'_, Qp>, to: c_int) -> c_int {
    let Some((wanted, mask)) = attributes(id, to) else { return libc::EINVAL };
    ibv_modify_qp(qp, Borrowed::of(&wanted), mask)
}

/// Takes the queue pair of a connection to the state in which it receives and sends; returns 0 or `errno`.
pub(super) fn make_ready(id: &Id, qp: Borrowed<'_, Qp>) -> c_int {
    match go(id, qp, state::READY_TO_RECEIVE) {
        0 => go(id, qp, state::READY_TO_SEND),
        errno => errno,
    }
}

/// Takes the queue pair to the error state, which flushes all posted requests.
pub(super) fn fail_all(id: &Id) {
    if let Some(qp) = id.qp().filter(|_| load!(id.abi, qp_type) != DATAGRAM) {
        go(id, qp, state::ERROR);
    }
}

/// Returns the attributes for applications that change their queue pairs themselves.
#[unsafe(export_name = "selvedge_rdma_init_qp_attr")]
pub extern "C" fn init_qp_attr(
    id: Borrowed<'_, Id>,
    mut to: Exclusive<'_, ibv_qp_attr>,
    mut mask: Out<'_, c_int>,
) -> c_int {
    match attributes(&id, to.qp_state) {
        Some((wanted, bits)) => {
            *to = wanted;
            mask.write(bits);
            0
        }
        None => fail(libc::EINVAL),
    }
}

/// Returns the given protection domain, or the identifier's default.
fn domain<'c>(id: &'c Id, given: Option<Borrowed<'c, Pd>>) -> Option<Borrowed<'c, Pd>> {
    if let Some(given) = given {
        store!(id.abi, pd = given.as_c());
    }
    let pd = load!(id.abi, pd).cast();
    // SAFETY: null, or a domain of this library's that the program deallocates after the identifier's objects.
    unsafe { Borrowed::new(pd) }
}

/// Creates a completion queue with a channel, for an application that brings none; returns null for both on failure.
fn queue(id: Borrowed<'_, Id>, depth: u32) -> (*mut ibv_cq, *mut ibv_comp_channel) {
    let made = id.verbs().and_then(|context| {
        let channel = ibv_create_comp_channel(context.as_ptr())?;
        let cq = ibv_create_cq(context, depth.max(1) as c_int, id.as_ptr().cast(), Some(channel.borrow()), 0);
        let channel_address = channel.as_ptr().cast();
        match cq {
            Some(cq) => Some((cq.as_ptr().cast(), channel_address)),
            None => {
                ibv_destroy_comp_channel(channel);
                None
            }
        }
    });
    made.unwrap_or((ptr::null_mut(), ptr::null_mut()))
}

fn with_queues(
    id: Borrowed<'_, Id>,
    given: Option<Borrowed<'_, Pd>>,
    (mut send, mut receive): (*mut ibv_cq, *mut ibv_cq),
    depths: (u32, u32),
    make: impl FnOnce(Borrowed<'_, Pd>, *mut ibv_cq, *mut ibv_cq) -> Option<Given<Qp>>,
) -> c_int {
    let Some(pd) = domain(id.get(), given) else { return fail(libc::EINVAL) };
    if send.is_null() {
        let (cq, channel) = queue(id, depths.0);
        send = cq;
        store!(id.abi, send_cq = cq);
        store!(id.abi, send_cq_channel = channel);
    }
    if receive.is_null() {
        let (cq, channel) = queue(id, depths.1);
        receive = cq;
        store!(id.abi, recv_cq = cq);
        store!(id.abi, recv_cq_channel = channel);
    }
    let Some(qp) = make(pd, send, receive) else { return -1 };
    store!(id.abi, qp = qp.as_ptr().cast());
    let errno = match go(&id, qp.borrow(), state::INIT) {
        0 if load!(id.abi, qp_type) == DATAGRAM => make_ready(&id, qp.borrow()),
        errno => errno,
    };
    if errno != 0 {
        destroy_qp(id);
        return fail(errno);
    }
    0
}

#[unsafe(export_name = "selvedge_rdma_create_qp")]
pub extern "C" fn create_qp(
    id: Borrowed<'_, Id>,
    pd: Option<Borrowed<'_, Pd>>,
    mut wanted: Exclusive<'_, ibv_qp_init_attr>,
) -> c_int {
    let depths = (wanted.cap.max_send_wr, wanted.cap.max_recv_wr);
    with_queues(id, pd, (wanted.send_cq, wanted.recv_cq), depths, |pd, send, receive| {
        (wanted.send_cq, wanted.recv_cq) = (send, receive);
        if wanted.srq.is_null() {
            wanted.srq = load!(id.abi, srq);
        }
        ibv_create_qp(pd, wanted)
    })
}

#[unsafe(export_name = "selvedge_rdma_create_qp_ex")]
pub extern "C" fn rdma_create_qp_ex(id: Borrowed<'_, Id>, mut wanted: Exclusive<'_, ibv_qp_init_attr_ex>) -> c_int {
    const DOMAIN: u32 = 1;
    let given = if wanted.comp_mask & DOMAIN != 0 { wanted.pd } else { ptr::null_mut() };
    // SAFETY: null, or a domain of this library's.
    let given = unsafe { Borrowed::new(given.cast::<Pd>()) };
    let depths = (wanted.cap.max_send_wr, wanted.cap.max_recv_wr);
    with_queues(id, given, (wanted.send_cq, wanted.recv_cq), depths, |pd, send, receive| {
        (wanted.send_cq, wanted.recv_cq) = (send, receive);
        wanted.comp_mask |= DOMAIN;
        wanted.pd = pd.as_c();
        create_qp_ex(load!(id.abi, verbs), wanted)
    })
}

/// Takes the objects that fields of C's structure name, each once: applications may use one queue or channel for both
/// directions. The structure has null pointers in their place.
macro_rules! taken {
    ($id:ident, $type:ty: $($field:ident),+) => {{
        let pointers = [$(load!($id.abi, $field)),+];
        $(store!($id.abi, $field = ptr::null_mut());)+
        let once = pointers.iter().enumerate().filter(|(at, pointer)| !pointers[..*at].contains(pointer));
        // SAFETY: the field is null, or names an object that was made for this identifier, of this type.
        once.filter_map(|(_, pointer)| unsafe { Given::<$type>::from_c(pointer.cast()) }).collect::<Vec<_>>()
    }};
}

#[unsafe(export_name = "selvedge_rdma_destroy_qp")]
pub extern "C" fn destroy_qp(id: Borrowed<'_, Id>) {
    taken!(id, Qp: qp).into_iter().for_each(|qp| _ = ibv_destroy_qp(qp));
    let queues = taken!(id, Cq: send_cq, recv_cq);
    let channels = taken!(id, CompletionChannel: send_cq_channel, recv_cq_channel);
    queues.into_iter().for_each(|cq| _ = ibv_destroy_cq(cq));
    channels.into_iter().for_each(|channel| _ = ibv_destroy_comp_channel(channel));
}

fn kept(id: &Id, srq: Option<Given<Srq>>) -> c_int {
    let srq = srq.map_or(ptr::null_mut(), |srq| srq.as_ptr());
    store!(id.abi, srq = srq.cast());
    if srq.is_null() { -1 } else { 0 }
}

#[unsafe(export_name = "selvedge_rdma_create_srq")]
pub extern "C" fn rdma_create_srq(
    id: Borrowed<'_, Id>,
    pd: Option<Borrowed<'_, Pd>>,
    wanted: Borrowed<'_, ibv_srq_init_attr>,
) -> c_int {
    match domain(id.get(), pd) {
        Some(pd) => kept(&id, ibv_create_srq(pd, wanted)),
        None => fail(libc::EINVAL),
    }
}

#[unsafe(export_name = "selvedge_rdma_create_srq_ex")]
pub extern "C" fn rdma_create_srq_ex(id: Borrowed<'_, Id>, wanted: Borrowed<'_, ibv_srq_init_attr_ex>) -> c_int {
    kept(&id, create_srq_ex(load!(id.abi, verbs), wanted))
}

#[unsafe(export_name = "selvedge_rdma_destroy_srq")]
pub extern "C" fn rdma_destroy_srq(id: Borrowed<'_, Id>) {
    taken!(id, Srq: srq).into_iter().for_each(|srq| _ = ibv_destroy_srq(srq));
}

/// Returns a list of all devices, open; null ends the list.
#[unsafe(export_name = "selvedge_rdma_get_devices")]
pub extern "C" fn get_devices(count: Option<Out<'_, c_int>>) -> *mut *mut ibv_context {
    let mut devices = match address::all_devices() {
        Ok(devices) => devices,
        Err(problem) => return error::null(error::of_io(&problem)),
    };
    if let Some(mut count) = count {
        count.write(devices.len() as c_int);
    }
    devices.push(ptr::null_mut());
    allocated(&devices)
}

/// Frees a list of devices.
///
/// # Safety
/// The list is from `rdma_get_devices`, or null, and is not used afterwards.
#[unsafe(export_name = "selvedge_rdma_free_devices")]
pub unsafe extern "C" fn free_devices(list: *mut *mut ibv_context) {
    // SAFETY: as the caller promises.
    unsafe { libc::free(list.cast()) }
}
