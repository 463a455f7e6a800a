//! Completion queues.

use std::ffi::{c_int, c_void};
use std::ptr;

use selvedge_dataplane::rnic::Adapter;
use selvedge_nic::verbs::{Attached, Completion, CompletionKind, CqId, Status};

use crate::abi::{ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_wc};
use crate::channel::{CompletionChannel, Unacknowledged};
use crate::context::Context;
use crate::error;
use crate::limits::{self, Held, Kind};

/// A completion queue: C's structure, followed by this library's fields.
#[repr(C)]
pub(crate) struct Cq {
    pub(crate) abi: ibv_cq_ex,
    pub(crate) id: CqId,
    pub(crate) adapter: &'static Adapter,
    pub(crate) unacknowledged: Unacknowledged,
    pub(crate) unacknowledged_errors: Unacknowledged,
    /// The completion that the extended interface currently reads.
    pub(crate) current: ibv_wc,
    _held: Held,
}

impl Cq {
    /// Returns the completion queue at C's pointer.
    ///
    /// # Safety
    /// `cq` is from this library.
    pub(crate) unsafe fn of<'a>(cq: *mut ibv_cq) -> &'a Self {
        // SAFETY: the caller's.
        unsafe { &*cq.cast::<Self>() }
    }

    /// Creates a completion queue, without the extended interface's functions.
    ///
    /// # Errors
    /// Returns `errno`.
    ///
    /// # Safety
    /// `context` and `channel` are from this library.
    pub(crate) unsafe fn create(
        context: *mut ibv_context,
        cqe: c_int,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
    ) -> Result<Box<Self>, c_int> {
        // SAFETY: the caller's.
        let (inner, announced) = unsafe { (Context::of(context), CompletionChannel::of(channel)) };
        let depth = u32::try_from(cqe).map_err(|_| libc::EINVAL)?;
        limits::check(depth, inner.profile.max_cqe, "max_cqe")?;
        let held = Held::take(Kind::CompletionQueue, &inner.profile)?;
        // SAFETY: zeros are null pointers, missing functions, numbers.
        let mut abi: ibv_cq_ex = unsafe { std::mem::zeroed() };
        abi.context = context;
        abi.channel = channel;
        abi.cq_context = cq_context;
        abi.cqe = cqe;
        abi.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        abi.cond = libc::PTHREAD_COND_INITIALIZER;
        let mut cq = Box::new(Self {
            abi,
            id: CqId(0),
            adapter: inner.adapter,
            unacknowledged: Unacknowledged::default(),
            unacknowledged_errors: Unacknowledged::default(),
            // SAFETY: numbers only.
            current: unsafe { std::mem::zeroed() },
            _held: held,
        });
        let completions = announced.map(CompletionChannel::join);
        let owner = inner.owner(ptr::from_ref(&*cq), completions);
        cq.id = inner.adapter.create_cq(depth, owner).map_err(|refusal| {
            if let Some(channel) = announced {
                channel.leave();
            }
            error::of(refusal)
        })?;
        cq.abi.handle = cq.id.0;
        Ok(cq)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    if vector < 0 || vector >= unsafe { (*context).num_comp_vectors } {
        return error::null(libc::EINVAL);
    }
    match unsafe { Cq::create(context, cqe, cq_context, channel) } {
        Ok(cq) => Box::into_raw(cq).cast(),
        Err(errno) => error::null(errno),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    let Ok(depth) = u32::try_from(cqe) else { return libc::EINVAL };
    let (inner, context) = unsafe { (Cq::of(cq), Context::of((*cq).context)) };
    if let Err(errno) = limits::check(depth, context.profile.max_cqe, "max_cqe") {
        return errno;
    }
    let code = error::code_of(inner.adapter.command(|rnic, _| rnic.resize_cq(inner.id, depth)));
    if code == 0 {
        unsafe { (*cq).cqe = cqe };
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    let inner = unsafe { Cq::of(cq) };
    let code = error::code(inner.adapter.destroy_cq(inner.id));
    if code == 0 {
        inner.unacknowledged.wait();
        inner.unacknowledged_errors.wait();
        unsafe {
            if let Some(channel) = CompletionChannel::of((*cq).channel) {
                channel.leave();
            }
            drop(Box::from_raw(cq.cast::<Cq>()));
        }
    }
    code
}

pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let cq = unsafe { Cq::of(cq) };
    error::code(cq.adapter.arm_cq(cq.id, solicited_only != 0))
}

pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, to: *mut ibv_wc) -> c_int {
    let cq = unsafe { Cq::of(cq) };
    let mut at = to;
    let found = cq.adapter.poll_cq(cq.id, usize::try_from(most).unwrap_or(0), |completion| unsafe {
        at.write(translate(completion));
        at = at.add(1);
    });
    let found = found.map_or(-1, |found| found as c_int);
    for each in 0..usize::try_from(found).unwrap_or(0) {
        explain(cq.adapter, unsafe { &*to.add(each) });
    }
    found
}

/// Prints why no peer answered, if the reason is that the system refused to send.
pub(crate) fn explain(adapter: &Adapter, wc: &ibv_wc) {
    if wc.status == status_of(Status::RetriesExceeded)
        && let Ok(counters) = adapter.counters()
        && let Some(refusal) = counters.refusal
    {
        let refusal = std::io::Error::from_raw_os_error(refusal);
        error::say(&format!(
            "queue pair {:#x}: nobody answers; the system refused to send {} times: {refusal}. Does the path MTU of the \
             connection fit the interface's, and is there a route? `selvedge verbs --info` shows what there is",
            wc.qp_num, counters.refused
        ));
    }
}

/// Translates a completion to C's structure.
pub(crate) fn translate(completion: &Completion) -> ibv_wc {
    const ROUTE_HEADER: u32 = 1;
    const IMMEDIATE: u32 = 1 << 1;
    const INVALIDATED: u32 = 1 << 3;
    /// UCX up to 1.13 accepts datagrams over IPv4 only from NICs that report them in the service level, as some do: any
    /// level with these bits.
    const SERVICE_LEVEL: u8 = 0x0a;
    let (carried, flag) = match completion.attached {
        Attached::Nothing => (0, 0),
        Attached::Immediate(bytes) => (u32::from_ne_bytes(bytes), IMMEDIATE),
        Attached::Invalidate(key) => (key, INVALIDATED),
    };
    let is_v4 = completion.source.is_some_and(|source| source.route.remote.to_ipv4_mapped().is_some());
    ibv_wc {
        wr_id: completion.id,
        status: status_of(completion.status),
        opcode: opcode_of(completion.kind),
        vendor_err: 0,
        byte_len: completion.length,
        imm_data: carried,
        qp_num: completion.qp.0,
        src_qp: completion.source.map_or(0, |source| source.qp.0),
        wc_flags: flag | if completion.source.is_some() { ROUTE_HEADER } else { 0 },
        pkey_index: 0,
        slid: 0,
        sl: if is_v4 { SERVICE_LEVEL } else { 0 },
        dlid_path_bits: 0,
    }
}

/// Returns the code in `enum ibv_wc_status`.
fn status_of(status: Status) -> c_int {
    match status {
        Status::Success => 0,
        Status::LocalLength => 1,
        Status::LocalOperation => 2,
        Status::LocalProtection => 4,
        Status::Flushed => 5,
        Status::WindowBind => 6,
        Status::BadResponse => 7,
        Status::LocalAccess => 8,
        Status::RemoteInvalidRequest => 9,
        Status::RemoteAccess => 10,
        Status::RemoteOperation => 11,
        Status::RetriesExceeded => 12,
        Status::NotReadyRetriesExceeded => 13,
    }
}

/// Returns the code in `enum ibv_wc_opcode`.
fn opcode_of(kind: CompletionKind) -> c_int {
    match kind {
        CompletionKind::Send => 0,
        CompletionKind::Write => 1,
        CompletionKind::Read => 2,
        CompletionKind::CompareSwap => 3,
        CompletionKind::FetchAdd => 4,
        CompletionKind::Bind => 5,
        CompletionKind::LocalInvalidate => 6,
        CompletionKind::Flush => 8,
        CompletionKind::AtomicWrite => 9,
        CompletionKind::Receive => 128,
        CompletionKind::ReceiveWrite => 129,
    }
}
