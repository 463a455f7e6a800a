//! Queue pairs: creation, modification, query, destruction.

use std::ffi::c_int;
use std::ptr;

use selvedge_dataplane::rnic::{Adapter, settings};
use selvedge_nic::verbs::{Capacities, Operation, QpChange, QpInit, QpState, SendRequest, Service};
use selvedge_transport::CongestionConfig;
use selvedge_units::{Bytes, Psn, QpNumber};

use crate::abi::{
    ibv_context, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex,
};
use crate::channel::Unacknowledged;
use crate::completion::Cq;
use crate::context::Context;
use crate::extended_qp::{self, Builder, WrFlush};
use crate::limits::{self, Held, Kind, Profile};
use crate::memory::{Pd, access, flags};
use crate::query::{is_port, mtu_code};
use crate::srq::Srq;
use crate::{address, error};

/// A queue pair: C's structure, followed by this library's fields.
#[repr(C)]
pub(crate) struct Qp {
    pub(crate) abi: ibv_qp_ex,
    /// The function `wr_flush`, a part of C's structure since rdma-core 45.
    wr_flush: WrFlush,
    pub(crate) number: QpNumber,
    pub(crate) adapter: &'static Adapter,
    pub(crate) unacknowledged: Unacknowledged,
    /// Whether requests can be built field by field.
    pub(crate) is_extended: bool,
    /// Send requests under construction.
    pub(crate) builder: Builder,
    /// Whether the emulated NIC has no Atomics.
    pub(crate) no_atomics: bool,
    _held: Held,
}

const _: () = assert!(std::mem::offset_of!(Qp, wr_flush) == size_of::<ibv_qp_ex>(), "where newer headers have it");

/// Types of `enum ibv_qp_type`.
mod kind {
    pub(super) const RELIABLE: i32 = 2;
    pub(super) const UNRELIABLE: i32 = 3;
    pub(super) const DATAGRAM: i32 = 4;
}

/// Bytes of inline data that every queue pair accepts, whatever was requested.
const LEAST_INLINE: u32 = 64;

impl Qp {
    /// Returns the queue pair at C's pointer.
    ///
    /// # Safety
    /// `qp` is from this library.
    pub(crate) unsafe fn of<'a>(qp: *mut ibv_qp) -> &'a Self {
        // SAFETY: the caller's.
        unsafe { &*qp.cast::<Self>() }
    }

    /// Returns the request unchanged, if the emulated NIC supports it.
    ///
    /// # Errors
    /// Returns `errno` if it does not.
    pub(crate) fn has(&self, request: SendRequest) -> Result<SendRequest, c_int> {
        let is_atomic = matches!(request.operation, Operation::CompareSwap { .. } | Operation::FetchAdd { .. });
        if self.no_atomics && is_atomic {
            return Err(limits::refuse(libc::EOPNOTSUPP, "there are no Atomics"));
        }
        Ok(request)
    }

    unsafe fn create(pd: *mut ibv_pd, wanted: &mut ibv_qp_init_attr, is_extended: bool) -> Result<*mut ibv_qp, c_int> {
        let service = service(wanted.qp_type).ok_or(libc::EOPNOTSUPP)?;
        if wanted.send_cq.is_null() || wanted.recv_cq.is_null() {
            return Err(libc::EINVAL);
        }
        let (context, domain) = unsafe { ((*pd).context, Pd::of(pd)) };
        let profile = &unsafe { Context::of(context) }.profile;
        let held = Held::take(Kind::QueuePair, profile)?;
        allowed(profile, wanted)?;
        let shared = (!wanted.srq.is_null()).then(|| unsafe { Srq::of(wanted.srq) }.id);
        if shared.is_some() {
            wanted.cap.max_recv_wr = 0;
            wanted.cap.max_recv_sge = 0;
        }
        // Other NICs have space for that many bytes in their queues, and programs rely on it without a request.
        wanted.cap.max_inline_data = wanted.cap.max_inline_data.max(limits::least(LEAST_INLINE, profile.max_inline));
        let init = QpInit {
            service,
            pd: domain.id,
            send_cq: unsafe { Cq::of(wanted.send_cq) }.id,
            receive_cq: unsafe { Cq::of(wanted.recv_cq) }.id,
            srq: shared,
            capacities: capacities(&wanted.cap),
            all_signaled: wanted.sq_sig_all != 0,
            congestion: CongestionConfig::None(Default::default()),
            overhead: Bytes::ZERO,
            recovery: settings::recovery().map_err(said)?,
            window: settings::WINDOW,
            ack_every: settings::ack_every(),
            options: settings::options().map_err(said)?,
        };
        // SAFETY: zeros are null pointers, missing functions, numbers.
        let mut abi: ibv_qp_ex = unsafe { std::mem::zeroed() };
        let base = &mut abi.qp_base;
        base.context = context;
        base.qp_context = wanted.qp_context;
        base.pd = pd;
        base.send_cq = wanted.send_cq;
        base.recv_cq = wanted.recv_cq;
        base.srq = wanted.srq;
        base.qp_type = wanted.qp_type;
        base.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        base.cond = libc::PTHREAD_COND_INITIALIZER;
        extended_qp::equip(&mut abi);
        let mut qp = Box::new(Self {
            abi,
            wr_flush: extended_qp::flush,
            number: QpNumber(0),
            adapter: domain.adapter,
            unacknowledged: Unacknowledged::default(),
            is_extended,
            builder: Builder::default(),
            no_atomics: profile.no_atomics,
            _held: held,
        });
        let owner = unsafe { Context::of(context) }.owner(ptr::from_ref(&*qp), None);
        qp.number = domain.adapter.create_qp(init, owner).map_err(error::of)?;
        qp.abi.qp_base.qp_num = qp.number.0;
        qp.abi.qp_base.handle = qp.number.0;
        Ok(Box::into_raw(qp).cast())
    }
}

/// Prints what is wrong with a setting; returns `errno`.
fn said(problem: String) -> c_int {
    error::say(&problem);
    libc::EINVAL
}

/// Checks that the emulated NIC permits such a queue pair.
fn allowed(profile: &Profile, wanted: &ibv_qp_init_attr) -> Result<(), c_int> {
    let cap = &wanted.cap;
    if profile.uc_only && wanted.qp_type != kind::UNRELIABLE {
        return Err(limits::refuse(libc::EOPNOTSUPP, "there are unreliable connections (IBV_QPT_UC) alone"));
    }
    // A queue pair with a shared receive queue has no receive queue of its own.
    let own = if wanted.srq.is_null() { [cap.max_recv_wr, cap.max_recv_sge] } else { [0; 2] };
    limits::check(cap.max_send_wr.max(own[0]), profile.max_qp_wr, "max_qp_wr")?;
    limits::check(cap.max_send_sge.max(own[1]), profile.max_sge, "max_sge")?;
    limits::check(cap.max_inline_data, profile.max_inline, "max_inline")
}

fn service(kind: c_int) -> Option<Service> {
    Some(match kind {
        kind::RELIABLE => Service::Reliable,
        kind::UNRELIABLE => Service::Unreliable,
        kind::DATAGRAM => Service::Datagram,
        _ => return None,
    })
}

fn capacities(cap: &ibv_qp_cap) -> Capacities {
    Capacities {
        send_requests: cap.max_send_wr,
        receive_requests: cap.max_recv_wr,
        send_pieces: cap.max_send_sge,
        receive_pieces: cap.max_recv_sge,
        inline: cap.max_inline_data,
    }
}

fn cap(capacities: &Capacities) -> ibv_qp_cap {
    ibv_qp_cap {
        max_send_wr: capacities.send_requests,
        max_recv_wr: capacities.receive_requests,
        max_send_sge: capacities.send_pieces,
        max_recv_sge: capacities.receive_pieces,
        max_inline_data: capacities.inline,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    unsafe { Qp::create(pd, &mut *wanted, false) }.unwrap_or_else(error::null)
}

pub(crate) unsafe extern "C" fn create_qp_ex(_: *mut ibv_context, wanted: *mut ibv_qp_init_attr_ex) -> *mut ibv_qp {
    const DOMAIN: u32 = 1;
    const CREATE_FLAGS: u32 = 1 << 2;
    const SEND_OPERATIONS: u32 = 1 << 6;
    let all = unsafe { &mut *wanted };
    if all.comp_mask & DOMAIN == 0 || all.pd.is_null() {
        return error::null(libc::EINVAL);
    }
    let builds = all.comp_mask & SEND_OPERATIONS != 0;
    let profile = &unsafe { Context::of((*all.pd).context) }.profile;
    let operations = service(all.qp_type).map_or(0, extended_qp::operations);
    if builds && profile.no_atomics && all.send_ops_flags & extended_qp::ATOMICS != 0 {
        return error::null(limits::refuse(libc::EOPNOTSUPP, "there are no Atomics"));
    }
    if all.comp_mask & !(DOMAIN | CREATE_FLAGS | SEND_OPERATIONS) != 0
        || (all.comp_mask & CREATE_FLAGS != 0 && all.create_flags != 0)
        || (builds && all.send_ops_flags & !operations != 0)
    {
        return error::null(libc::EOPNOTSUPP);
    }
    let mut plain = ibv_qp_init_attr {
        qp_context: all.qp_context,
        send_cq: all.send_cq,
        recv_cq: all.recv_cq,
        srq: all.srq,
        cap: all.cap,
        qp_type: all.qp_type,
        sq_sig_all: all.sq_sig_all,
    };
    let made = unsafe { Qp::create(all.pd, &mut plain, builds) };
    all.cap = plain.cap;
    made.unwrap_or_else(error::null)
}

/// Flags of `enum ibv_qp_attr_mask`.
mod mask {
    pub(super) const STATE: i32 = 1;
    pub(super) const CURRENT_STATE: i32 = 1 << 1;
    pub(super) const DRAINED_EVENT: i32 = 1 << 2;
    pub(super) const ACCESS: i32 = 1 << 3;
    pub(super) const PKEY_INDEX: i32 = 1 << 4;
    pub(super) const PORT: i32 = 1 << 5;
    pub(super) const QKEY: i32 = 1 << 6;
    pub(super) const ADDRESS: i32 = 1 << 7;
    pub(super) const MTU: i32 = 1 << 8;
    pub(super) const TIMEOUT: i32 = 1 << 9;
    pub(super) const RETRIES: i32 = 1 << 10;
    pub(super) const NOT_READY_RETRIES: i32 = 1 << 11;
    pub(super) const RECEIVE_PSN: i32 = 1 << 12;
    pub(super) const READS_ASKED: i32 = 1 << 13;
    pub(super) const ALTERNATE_PATH: i32 = 1 << 14;
    pub(super) const NOT_READY_TIMER: i32 = 1 << 15;
    pub(super) const SEND_PSN: i32 = 1 << 16;
    pub(super) const READS_ANSWERED: i32 = 1 << 17;
    pub(super) const CAPACITIES: i32 = 1 << 19;
    pub(super) const DESTINATION: i32 = 1 << 20;
    /// Attributes that cannot be set: there is no path migration and no rate limit, and queues keep their size.
    pub(super) const UNSUPPORTED: i32 = ALTERNATE_PATH | CAPACITIES | 1 << 25;
}

/// States, indexed by `enum ibv_qp_state`.
const STATES: [QpState; 7] = [
    QpState::Reset,
    QpState::Initialised,
    QpState::ReadyToReceive,
    QpState::ReadyToSend,
    QpState::Draining,
    QpState::SendError,
    QpState::Error,
];

fn state(code: c_int) -> Result<QpState, c_int> {
    usize::try_from(code).ok().and_then(|code| STATES.get(code).copied()).ok_or(libc::EINVAL)
}

fn state_code(state: QpState) -> c_int {
    STATES.iter().position(|known| *known == state).unwrap_or(0) as c_int
}

fn change(context: &Context, wanted: &ibv_qp_attr, mask: c_int) -> Result<QpChange, c_int> {
    if mask & mask::UNSUPPORTED != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let has = |bit: c_int| mask & bit != 0;
    if (has(mask::PORT) && !is_port(wanted.port_num.into()))
        || (has(mask::PKEY_INDEX) && wanted.pkey_index != 0)
        || (has(mask::MTU) && !(1..=5).contains(&wanted.path_mtu))
    {
        return Err(libc::EINVAL);
    }
    let most = context.profile.max_rd_atom;
    for (bit, wanted) in [(mask::READS_ASKED, wanted.max_rd_atomic), (mask::READS_ANSWERED, wanted.max_dest_rd_atomic)]
    {
        limits::check(if has(bit) { wanted.into() } else { 0 }, most, "max_rd_atom")?;
    }
    Ok(QpChange {
        state: if has(mask::STATE) { Some(state(wanted.qp_state)?) } else { None },
        from: if has(mask::CURRENT_STATE) { Some(state(wanted.cur_qp_state)?) } else { None },
        access: has(mask::ACCESS).then(|| access(wanted.qp_access_flags)),
        qkey: has(mask::QKEY).then_some(wanted.qkey),
        route: if has(mask::ADDRESS) { Some(address::route(context, &wanted.ah_attr)?) } else { None },
        destination: has(mask::DESTINATION).then_some(QpNumber(wanted.dest_qp_num)),
        mtu: has(mask::MTU).then_some(128 << wanted.path_mtu),
        send_psn: has(mask::SEND_PSN).then_some(Psn::new(wanted.sq_psn & 0xff_ffff)),
        receive_psn: has(mask::RECEIVE_PSN).then_some(Psn::new(wanted.rq_psn & 0xff_ffff)),
        reads_asked: has(mask::READS_ASKED).then_some(wanted.max_rd_atomic),
        reads_answered: has(mask::READS_ANSWERED).then_some(wanted.max_dest_rd_atomic),
        timeout: has(mask::TIMEOUT).then_some(wanted.timeout),
        retries: has(mask::RETRIES).then_some(wanted.retry_cnt),
        not_ready_retries: has(mask::NOT_READY_RETRIES).then_some(wanted.rnr_retry),
        not_ready_timer: has(mask::NOT_READY_TIMER).then_some(wanted.min_rnr_timer),
        drained_event: has(mask::DRAINED_EVENT).then_some(wanted.en_sqd_async_notify != 0),
        pkey_index: has(mask::PKEY_INDEX).then_some(wanted.pkey_index),
        port: has(mask::PORT).then_some(wanted.port_num),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(qp: *mut ibv_qp, wanted: *mut ibv_qp_attr, mask: c_int) -> c_int {
    let (inner, context) = unsafe { (Qp::of(qp), Context::of((*qp).context)) };
    let mut change = match change(context, unsafe { &*wanted }, mask) {
        Ok(change) => change,
        Err(errno) => return errno,
    };
    if unsafe { (*qp).qp_type } == kind::DATAGRAM && change.state == Some(QpState::Initialised) {
        // Datagrams are as long as the port allows: programs set no MTU for such queue pairs.
        change.mtu = Some(context.device().payload());
    }
    let outcome = inner.adapter.command(|rnic, cx| {
        rnic.modify_qp(cx, inner.number, &change)?;
        Ok(rnic.qp_state(inner.number))
    });
    match outcome {
        Ok(Ok(now)) => {
            unsafe { (*qp).state = now.map_or(0, state_code) };
            0
        }
        Ok(Err(error)) => error::of_verbs(error),
        Err(refusal) => error::of(refusal),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    qp: *mut ibv_qp,
    to: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let (inner, context) = unsafe { (Qp::of(qp), Context::of((*qp).context)) };
    let found = inner.adapter.command(|rnic, _| (rnic.query_qp(inner.number), rnic.is_draining(inner.number)));
    let (now, made, is_draining) = match found {
        Ok((Some((now, made)), is_draining)) => (now, made, is_draining),
        Ok((None, _)) => return libc::EINVAL,
        Err(refusal) => return error::of(refusal),
    };
    let base = unsafe { &mut *qp };
    base.state = now.state.map_or(0, state_code);
    unsafe {
        *init = ibv_qp_init_attr {
            qp_context: base.qp_context,
            send_cq: base.send_cq,
            recv_cq: base.recv_cq,
            srq: base.srq,
            cap: cap(&made.capacities),
            qp_type: base.qp_type,
            sq_sig_all: c_int::from(made.all_signaled),
        };
        *to = attributes(context, base.state, &now, cap(&made.capacities));
        (*to).sq_draining = u8::from(is_draining);
    }
    0
}

fn attributes(context: &Context, state: c_int, now: &QpChange, cap: ibv_qp_cap) -> ibv_qp_attr {
    // SAFETY: numbers only.
    let mut to: ibv_qp_attr = unsafe { std::mem::zeroed() };
    to.qp_state = state;
    to.cur_qp_state = state;
    to.path_mtu = now.mtu.map_or(0, mtu_code);
    to.qkey = now.qkey.unwrap_or(0);
    to.rq_psn = now.receive_psn.map_or(0, Psn::get);
    to.sq_psn = now.send_psn.map_or(0, Psn::get);
    to.dest_qp_num = now.destination.map_or(0, |qp| qp.0);
    to.qp_access_flags = now.access.map_or(0, flags);
    to.cap = cap;
    if let Some(route) = &now.route {
        to.ah_attr = address::attributes(context, route);
    }
    to.pkey_index = now.pkey_index.unwrap_or(0);
    to.en_sqd_async_notify = u8::from(now.drained_event == Some(true));
    to.max_rd_atomic = now.reads_asked.unwrap_or(0);
    to.max_dest_rd_atomic = now.reads_answered.unwrap_or(0);
    to.min_rnr_timer = now.not_ready_timer.unwrap_or(0);
    to.port_num = now.port.unwrap_or(0);
    to.timeout = now.timeout.unwrap_or(0);
    to.retry_cnt = now.retries.unwrap_or(0);
    to.rnr_retry = now.not_ready_retries.unwrap_or(0);
    to
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
    let inner = unsafe { Qp::of(qp) };
    let code = error::code(inner.adapter.destroy_qp(inner.number));
    if code == 0 {
        inner.unacknowledged.wait();
        drop(unsafe { Box::from_raw(qp.cast::<Qp>()) });
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    if unsafe { Qp::of(qp) }.is_extended { qp.cast() } else { error::null(libc::EINVAL) }
}

/// Returns 0: no order of written data is promised, except that the last byte is written last.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_qp_data_in_order(_: *mut ibv_qp, _: c_int, _: u32) -> c_int {
    0
}
