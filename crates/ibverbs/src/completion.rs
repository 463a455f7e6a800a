//! Completion queues.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;

use selvedge_dataplane::rnic::Adapter;
use selvedge_nic::verbs::{Attached, Completion, CompletionKind, CqId, Status};

use crate::abi::{ibv_context, ibv_cq_ex, ibv_wc};
use crate::borrowed::{Borrowed, Given, Link, Shared, elements, store, zeroed};
use crate::channel::{CompletionChannel, Unacknowledged};
use crate::context::{Context, VECTORS};
use crate::error;
use crate::limits::{self, Held, ObjectKind};

/// A completion queue: C's structure, followed by this library's fields.
#[repr(C)]
pub struct Cq {
    pub(crate) abi: Shared<ibv_cq_ex>,
    context: Link<Context>,
    /// The channel that announces completions, if there is one.
    channel: Option<Link<CompletionChannel>>,
    pub(crate) id: CqId,
    pub(crate) adapter: &'static Adapter,
    pub(crate) unacknowledged: Unacknowledged,
    pub(crate) unacknowledged_errors: Unacknowledged,
    /// The completion that the extended interface currently reads.
    pub(crate) current: Cell<ibv_wc>,
    _held: Held,
}

impl Cq {
    /// Creates a completion queue, without the extended interface's functions.
    ///
    /// # Errors
    /// Returns `errno`.
    pub(crate) fn create(
        context: Borrowed<'_, ibv_context>,
        cqe: c_int,
        cq_context: *mut c_void,
        announced: Option<Borrowed<'_, CompletionChannel>>,
    ) -> Result<Box<Self>, c_int> {
        let inner = context.whole();
        let depth = u32::try_from(cqe).map_err(|_| libc::EINVAL)?;
        limits::check(depth, inner.profile.max_cqe, "max_cqe")?;
        let held = Held::take(ObjectKind::CompletionQueue, &inner.profile)?;
        let mut abi: ibv_cq_ex = zeroed();
        abi.context = context.as_ptr();
        abi.channel = announced.map_or(ptr::null_mut(), |channel| channel.as_ptr().cast());
        abi.cq_context = cq_context;
        abi.cqe = cqe;
        abi.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        abi.cond = libc::PTHREAD_COND_INITIALIZER;
        // SAFETY: programs destroy a queue before its channel, and before they close its device.
        let (of, channel) = unsafe { (Link::to(inner), announced.map(|channel| Link::to(channel))) };
        let mut cq = Box::new(Self {
            abi: Shared::new(abi),
            context: of,
            channel,
            id: CqId(0),
            adapter: inner.adapter,
            unacknowledged: Unacknowledged::default(),
            unacknowledged_errors: Unacknowledged::default(),
            current: Cell::new(zeroed()),
            _held: held,
        });
        let completions = announced.map(|channel| channel.join());
        let owner = inner.owner(ptr::from_ref(&*cq), completions);
        cq.id = inner.adapter.create_cq(depth, owner).map_err(|refusal| {
            if let Some(channel) = announced {
                channel.leave();
            }
            error::of(refusal)
        })?;
        cq.abi.get_mut().handle = cq.id.0;
        Ok(cq)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_cq(
    context: Borrowed<'_, ibv_context>,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: Option<Borrowed<'_, CompletionChannel>>,
    vector: c_int,
) -> Option<Given<Cq>> {
    if !(0..VECTORS).contains(&vector) {
        return error::none(libc::EINVAL);
    }
    error::given(Cq::create(context, cqe, cq_context, channel).map(Given::from))
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_resize_cq(cq: Borrowed<'_, Cq>, cqe: c_int) -> c_int {
    let Ok(depth) = u32::try_from(cqe) else { return libc::EINVAL };
    if let Err(errno) = limits::check(depth, cq.context.get().profile.max_cqe, "max_cqe") {
        return errno;
    }
    let code = error::code_of(cq.adapter.command(|rnic, _| rnic.resize_cq(cq.id, depth)));
    if code == 0 {
        store!(cq.abi, cqe = cqe);
    }
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_destroy_cq(cq: Given<Cq>) -> c_int {
    let code = error::code(cq.adapter.destroy_cq(cq.id));
    if code == 0 {
        cq.unacknowledged.wait();
        cq.unacknowledged_errors.wait();
        if let Some(channel) = &cq.channel {
            channel.get().leave();
        }
        cq.free();
    }
    code
}

pub(crate) extern "C" fn req_notify_cq(cq: Borrowed<'_, Cq>, solicited_only: c_int) -> c_int {
    error::code(cq.adapter.arm_cq(cq.id, solicited_only != 0))
}

/// Takes completions from a queue; returns their number, or -1.
///
/// # Safety
/// `to` has room for `most` completions, initialised or not.
pub(crate) unsafe extern "C" fn poll_cq(cq: Borrowed<'_, Cq>, most: c_int, to: *mut ibv_wc) -> c_int {
    let (mut at, mut failed) = (to, false);
    let found = cq.adapter.poll_cq(cq.id, usize::try_from(most).unwrap_or(0), |completion| {
        failed |= completion.status == Status::RetriesExceeded;
        // SAFETY: at most `most` completions are taken, and the caller promises the room.
        unsafe {
            at.write(translate(completion));
            at = at.add(1);
        }
    });
    let found = found.map_or(-1, |found| found as c_int);
    if failed {
        // SAFETY: so many were written above.
        let written = unsafe { elements(to, usize::try_from(found).unwrap_or(0)) };
        written.into_iter().flatten().for_each(|wc| explain(cq.adapter, wc));
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
