//! Queue pairs: creation, modification, query, destruction.

use std::ffi::c_int;
use std::ptr;

use selvedge_dataplane::rnic::{Adapter, settings};
use selvedge_nic::verbs::{Capacities, Operation, QpChange, QpInit, QpState, SendRequest, Service};
use selvedge_transport::FeedbackConfig;
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_units::{Bytes, Psn, QpNumber};

use crate::abi::{ibv_context, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex};
use crate::borrowed::{Borrowed, Exclusive, Given, Link, Out, Shared, load, store, zeroed};
use crate::channel::Unacknowledged;
use crate::completion::Cq;
use crate::context::Context;
use crate::extended_qp::{self, Builder, WrFlush};
use crate::limits::{self, Held, ObjectKind, Profile};
use crate::memory::{Pd, access, flags};
use crate::query::{is_port, mtu_code};
use crate::srq::Srq;
use crate::{address, error};

/// A queue pair: C's structure, followed by this library's fields.
#[repr(C)]
pub struct Qp {
    pub(crate) abi: Shared<ibv_qp_ex>,
    /// The function `wr_flush`, a part of C's structure since rdma-core 45.
    wr_flush: WrFlush,
    domain: Link<Pd>,
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
    /// Returns the device of the queue pair.
    pub(crate) fn context(&self) -> Borrowed<'_, Context> {
        self.domain.get().get().context()
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

    fn create(
        domain: Borrowed<'_, Pd>,
        wanted: &mut ibv_qp_init_attr,
        is_extended: bool,
    ) -> Result<Given<Self>, c_int> {
        let service = service(wanted.qp_type).ok_or(libc::EOPNOTSUPP)?;
        // SAFETY: completion queues of this library's, or null.
        let (send_cq, receive_cq) = unsafe {
            let [send, receive] = [wanted.send_cq, wanted.recv_cq].map(|cq| Borrowed::new(cq.cast::<Cq>()));
            (send.ok_or(libc::EINVAL)?, receive.ok_or(libc::EINVAL)?)
        };
        let context = domain.context();
        let profile = &context.profile;
        let held = Held::take(ObjectKind::QueuePair, profile)?;
        allowed(profile, wanted)?;
        // SAFETY: a shared receive queue of this library's, or null.
        let shared = unsafe { Borrowed::new(wanted.srq.cast::<Srq>()) }.map(|srq| srq.id);
        if shared.is_some() {
            wanted.cap.max_recv_wr = 0;
            wanted.cap.max_recv_sge = 0;
        }
        // Other NICs have space for that many bytes in their queues, and programs rely on it without a request.
        wanted.cap.max_inline_data = wanted.cap.max_inline_data.max(limits::least(LEAST_INLINE, profile.max_inline));
        let init = QpInit {
            service,
            pd: domain.id,
            send_cq: send_cq.id,
            receive_cq: receive_cq.id,
            srq: shared,
            capacities: capacities(&wanted.cap),
            all_signaled: wanted.sq_sig_all != 0,
            congestion: NoneConfig {}.into(),
            feedback: FeedbackConfig::default(),
            overhead: Bytes::ZERO,
            recovery: settings::recovery().map_err(said)?,
            window: settings::WINDOW,
            ack_every: settings::ack_every(),
            options: settings::options().map_err(said)?,
        };
        let mut abi: ibv_qp_ex = zeroed();
        let base = &mut abi.qp_base;
        base.context = domain.abi.context;
        base.qp_context = wanted.qp_context;
        base.pd = domain.as_c();
        base.send_cq = wanted.send_cq;
        base.recv_cq = wanted.recv_cq;
        base.srq = wanted.srq;
        base.qp_type = wanted.qp_type;
        base.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        base.cond = libc::PTHREAD_COND_INITIALIZER;
        extended_qp::equip(&mut abi);
        let mut qp = Box::new(Self {
            abi: Shared::new(abi),
            wr_flush: extended_qp::flush,
            // SAFETY: programs deallocate a domain after its queue pairs.
            domain: unsafe { Link::to(domain) },
            number: QpNumber(0),
            adapter: domain.adapter,
            unacknowledged: Unacknowledged::default(),
            is_extended,
            builder: Builder::default(),
            no_atomics: profile.no_atomics,
            _held: held,
        });
        let owner = context.owner(ptr::from_ref(&*qp), None);
        qp.number = domain.adapter.create_qp(init, owner).map_err(error::of)?;
        let base = &mut qp.abi.get_mut().qp_base;
        (base.qp_num, base.handle) = (qp.number.0, qp.number.0);
        Ok(qp.into())
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
pub extern "C" fn ibv_create_qp(
    pd: Borrowed<'_, Pd>,
    mut wanted: Exclusive<'_, ibv_qp_init_attr>,
) -> Option<Given<Qp>> {
    error::given(Qp::create(pd, &mut wanted, false))
}

pub(crate) extern "C" fn create_qp_ex(
    _: *mut ibv_context,
    mut all: Exclusive<'_, ibv_qp_init_attr_ex>,
) -> Option<Given<Qp>> {
    const DOMAIN: u32 = 1;
    const CREATE_FLAGS: u32 = 1 << 2;
    const SEND_OPERATIONS: u32 = 1 << 6;
    let pd = if all.comp_mask & DOMAIN != 0 { all.pd } else { ptr::null_mut() };
    // SAFETY: a domain of this library's, or null.
    let Some(domain) = (unsafe { Borrowed::new(pd.cast::<Pd>()) }) else { return error::none(libc::EINVAL) };
    let builds = all.comp_mask & SEND_OPERATIONS != 0;
    let profile = &domain.context().get().profile;
    let operations = service(all.qp_type).map_or(0, extended_qp::operations);
    if builds && profile.no_atomics && all.send_ops_flags & extended_qp::ATOMICS != 0 {
        return error::none(limits::refuse(libc::EOPNOTSUPP, "there are no Atomics"));
    }
    if all.comp_mask & !(DOMAIN | CREATE_FLAGS | SEND_OPERATIONS) != 0
        || (all.comp_mask & CREATE_FLAGS != 0 && all.create_flags != 0)
        || (builds && all.send_ops_flags & !operations != 0)
    {
        return error::none(libc::EOPNOTSUPP);
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
    let made = Qp::create(domain, &mut plain, builds);
    all.cap = plain.cap;
    error::given(made)
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
pub extern "C" fn ibv_modify_qp(qp: Borrowed<'_, Qp>, wanted: Borrowed<'_, ibv_qp_attr>, mask: c_int) -> c_int {
    let context = qp.context();
    let mut change = match change(&context, &wanted, mask) {
        Ok(change) => change,
        Err(errno) => return errno,
    };
    if load!(qp.abi, qp_base.qp_type) == kind::DATAGRAM && change.state == Some(QpState::Initialised) {
        // Datagrams are as long as the port allows: programs set no MTU for such queue pairs.
        change.mtu = Some(context.device().payload());
    }
    let outcome = qp.adapter.command(|rnic, cx| {
        rnic.modify_qp(cx, qp.number, &change)?;
        Ok(rnic.qp_state(qp.number))
    });
    match outcome {
        Ok(Ok(now)) => {
            store!(qp.abi, qp_base.state = now.map_or(0, state_code));
            0
        }
        Ok(Err(error)) => error::of_verbs(error),
        Err(refusal) => error::of(refusal),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_qp(
    qp: Borrowed<'_, Qp>,
    mut to: Out<'_, ibv_qp_attr>,
    _mask: c_int,
    mut init: Out<'_, ibv_qp_init_attr>,
) -> c_int {
    let found = qp.adapter.command(|rnic, _| (rnic.query_qp(qp.number), rnic.is_draining(qp.number)));
    let (now, made, is_draining) = match found {
        Ok((Some((now, made)), is_draining)) => (now, made, is_draining),
        Ok((None, _)) => return libc::EINVAL,
        Err(refusal) => return error::of(refusal),
    };
    let state = now.state.map_or(0, state_code);
    store!(qp.abi, qp_base.state = state);
    init.write(ibv_qp_init_attr {
        qp_context: load!(qp.abi, qp_base.qp_context),
        send_cq: load!(qp.abi, qp_base.send_cq),
        recv_cq: load!(qp.abi, qp_base.recv_cq),
        srq: load!(qp.abi, qp_base.srq),
        cap: cap(&made.capacities),
        qp_type: load!(qp.abi, qp_base.qp_type),
        sq_sig_all: c_int::from(made.all_signaled),
    });
    let mut found = attributes(&qp.context(), state, &now, cap(&made.capacities));
    found.sq_draining = u8::from(is_draining);
    to.write(found);
    0
}

fn attributes(context: &Context, state: c_int, now: &QpChange, cap: ibv_qp_cap) -> ibv_qp_attr {
    let mut to: ibv_qp_attr = zeroed();
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
pub extern "C" fn ibv_destroy_qp(qp: Given<Qp>) -> c_int {
    let code = error::code(qp.adapter.destroy_qp(qp.number));
    if code == 0 {
        qp.unacknowledged.wait();
        qp.free();
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_qp_to_qp_ex(qp: Borrowed<'_, Qp>) -> *mut ibv_qp_ex {
    if qp.is_extended { qp.as_ptr().cast() } else { error::null(libc::EINVAL) }
}

/// Returns 0: no order of written data is promised, except that the last byte is written last.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_qp_data_in_order(_: *mut ibv_qp, _: c_int, _: u32) -> c_int {
    0
}
