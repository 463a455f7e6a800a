//! Contexts: open devices.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use selvedge_dataplane::rnic::{Adapter, Channel, Device, Notice, Owner};

use crate::abi::{ibv_context, ibv_context_ops, verbs_context};
use crate::borrowed::{Borrowed, Shared, zeroed};
use crate::device::DeviceEntry;
use crate::import::Token;
use crate::limits::Profile;
use crate::{completion, extended_cq, memory, pair, post, query, srq, window};

/// An open device: C's extended operations, C's context, and this library's fields, in this order.
#[repr(C)]
pub struct Context {
    abi: Shared<verbs_context>,
    pub(crate) adapter: &'static Adapter,
    pub(crate) listed: &'static DeviceEntry,
    pub(crate) notices: Arc<Channel<Notice>>,
    /// The limits of the NIC that the context emulates.
    pub(crate) profile: Profile,
    _token: Token,
}

impl Context {
    pub(crate) fn open(listed: &'static DeviceEntry) -> io::Result<*mut ibv_context> {
        Self::with(listed, Token::new(listed)?)
    }
    /// Opens a device with an existing token as its `cmd_fd`; otherwise like [`Self::open`].
    ///
    /// # Errors
    /// Returns an error when the profile is invalid, or the adapter cannot be created.
    pub(crate) fn with(listed: &'static DeviceEntry, token: Token) -> io::Result<*mut ibv_context> {
        let profile = Profile::chosen()?;
        let adapter = Adapter::get()?;
        let notices = Arc::new(Channel::new()?);
        let abi = abi(listed, token.descriptor(), notices.descriptor());
        let abi = Shared::new(abi);
        let context = Box::into_raw(Box::new(Self { abi, adapter, listed, notices, profile, _token: token }));
        Ok(context.wrapping_byte_add(IN_CONTEXT).cast())
    }

    /// Closes an open device.
    ///
    /// # Safety
    /// The device is open, and is not used afterwards.
    pub(crate) unsafe fn close(context: Borrowed<'_, ibv_context>) {
        // SAFETY: `with` has made the box; the caller promises that nobody uses it.
        drop(unsafe { Box::from_raw(context.whole().as_ptr()) });
    }

    pub(crate) fn device(&self) -> &Device {
        &self.listed.device
    }
    /// Returns the owner of an object, with the object's address in C as its cookie.
    pub(crate) fn owner<T>(&self, object: *const T, completions: Option<Arc<Channel<u64>>>) -> Owner {
        Owner { cookie: object as u64, completions, notices: Arc::clone(&self.notices) }
    }
}

/// The position of C's context in [`Context`] in bytes.
const IN_CONTEXT: usize = offset_of!(Context, abi) + offset_of!(verbs_context, context);

/// Number of completion vectors, `num_comp_vectors`.
pub(crate) const VECTORS: c_int = 1;

impl<'c> Borrowed<'c, ibv_context> {
    /// Returns the open device around C's context.
    pub(crate) fn whole(self) -> Borrowed<'c, Context> {
        let whole = self.as_ptr().wrapping_byte_sub(IN_CONTEXT).cast::<Context>();
        // SAFETY: every context of this library is at that position in a `Context`, which lives as long.
        unsafe { Borrowed::new(whole) }.expect("a context is not at the beginning of the address space")
    }
}

fn abi(listed: &'static DeviceEntry, cmd_fd: c_int, async_fd: c_int) -> verbs_context {
    let mut abi: verbs_context = zeroed();
    abi.query_port = Some(query::query_port);
    abi.query_device_ex = Some(query::query_device_ex);
    abi.advise_mr = Some(memory::advise_mr);
    abi.alloc_td = Some(memory::alloc_td);
    abi.dealloc_td = Some(memory::dealloc_td);
    abi.alloc_parent_domain = Some(memory::alloc_parent_domain);
    abi.create_cq_ex = Some(extended_cq::create_cq_ex);
    abi.create_qp_ex = Some(pair::create_qp_ex);
    abi.create_srq_ex = Some(srq::create_srq_ex);
    abi.sz = size_of::<verbs_context>();
    abi.context = ibv_context {
        device: listed.as_c(),
        ops: operations(),
        cmd_fd,
        async_fd,
        num_comp_vectors: VECTORS,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        // The value that tells `verbs.h` that there are extended operations before the context.
        abi_compat: ptr::without_provenance_mut::<c_void>(usize::MAX),
    };
    abi
}

fn operations() -> ibv_context_ops {
    let mut operations: ibv_context_ops = zeroed();
    operations.alloc_mw = Some(window::alloc_mw);
    operations.bind_mw = Some(window::bind_mw);
    operations.dealloc_mw = Some(window::dealloc_mw);
    operations.poll_cq = Some(completion::poll_cq);
    operations.req_notify_cq = Some(completion::req_notify_cq);
    operations.post_send = Some(post::post_send);
    operations.post_recv = Some(post::post_recv);
    operations.post_srq_recv = Some(post::post_srq_recv);
    operations
}
