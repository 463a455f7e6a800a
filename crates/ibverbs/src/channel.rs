//! Completion channels, asynchronous events, and counts of unacknowledged events.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use selvedge_dataplane::rnic::{Channel, Notice};
use selvedge_nic::verbs::Event;

use crate::abi::{ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_qp, ibv_srq};
use crate::completion::Cq;
use crate::context::Context;
use crate::error;
use crate::pair::Qp;
use crate::srq::Srq;

/// The number of events about an object that an application has taken and not acknowledged. The object must not be
/// destroyed before they are acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Unacknowledged {
    count: Mutex<u32>,
    changed: Condvar,
}

impl Unacknowledged {
    pub(crate) fn took(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
    pub(crate) fn acknowledge(&self, events: u32) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(events);
        self.changed.notify_all();
    }
    /// Waits until all events are acknowledged.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A completion channel: C's structure, and the queue behind it.
#[repr(C)]
pub(crate) struct CompletionChannel {
    abi: ibv_comp_channel,
    channel: Arc<Channel<u64>>,
    /// Number of completion queues that use the channel. Any thread may create and destroy queues, and `refcnt` is
    /// protected by C's lock, so the count is kept here.
    users: AtomicU32,
}

impl CompletionChannel {
    /// Returns the completion channel at C's pointer; `None` if it is null.
    ///
    /// # Safety
    /// `channel` is from this library, or null.
    pub(crate) unsafe fn of<'a>(channel: *mut ibv_comp_channel) -> Option<&'a Self> {
        // SAFETY: the caller's.
        unsafe { channel.cast::<Self>().as_ref() }
    }
    /// Adds a completion queue that announces its events here; returns the queue of events.
    pub(crate) fn join(&self) -> Arc<Channel<u64>> {
        self.users.fetch_add(1, Ordering::AcqRel);
        Arc::clone(&self.channel)
    }
    pub(crate) fn leave(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    match Channel::new() {
        Ok(channel) => {
            let abi = ibv_comp_channel { context, fd: channel.descriptor(), refcnt: 0 };
            let users = AtomicU32::new(0);
            Box::into_raw(Box::new(CompletionChannel { abi, channel: Arc::new(channel), users })).cast()
        }
        Err(problem) => error::null(error::of_io(&problem)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    if unsafe { CompletionChannel::of(channel) }.is_some_and(|channel| channel.users.load(Ordering::Acquire) > 0) {
        return libc::EBUSY;
    }
    drop(unsafe { Box::from_raw(channel.cast::<CompletionChannel>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let channel = unsafe { Arc::clone(&(*channel.cast::<CompletionChannel>()).channel) };
    let queue_of = |cookie| ptr::with_exposed_provenance_mut::<ibv_cq>(cookie as usize);
    // SAFETY: who destroys a queue withdraws its events first.
    match channel.take(|&cookie| unsafe { Cq::of(queue_of(cookie)) }.unacknowledged.took()) {
        Ok(cookie) => {
            let found = queue_of(cookie);
            unsafe {
                *cq = found;
                *cq_context = (*found).cq_context;
            }
            0
        }
        Err(problem) => {
            error::set(error::of_io(&problem));
            -1
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    unsafe { Cq::of(cq) }.unacknowledged.acknowledge(events);
}

mod kind {
    //! Values of `enum ibv_event_type`.
    use std::ffi::c_int;

    pub(super) const CQ_ERROR: c_int = 0;
    pub(super) const QP_FATAL: c_int = 1;
    pub(super) const QP_REQUEST: c_int = 2;
    pub(super) const QP_ACCESS: c_int = 3;
    pub(super) const ESTABLISHED: c_int = 4;
    pub(super) const DRAINED: c_int = 5;
    pub(super) const SRQ_LIMIT: c_int = 15;
    pub(super) const LAST_RECEIVE: c_int = 16;
}

fn kind_of(event: Event) -> c_int {
    match event {
        Event::CqOverrun(_) | Event::Completion(_) => kind::CQ_ERROR,
        Event::QpFatal(_) => kind::QP_FATAL,
        Event::QpRequest(_) => kind::QP_REQUEST,
        Event::QpAccess(_) => kind::QP_ACCESS,
        Event::Established(_) => kind::ESTABLISHED,
        Event::Drained(_) => kind::DRAINED,
        Event::LastReceive(_) => kind::LAST_RECEIVE,
        Event::SrqLimit(_) => kind::SRQ_LIMIT,
    }
}

/// Returns the count of the object that an event is about, if it has one.
unsafe fn count_of<'a>(event: &ibv_async_event) -> Option<&'a Unacknowledged> {
    // SAFETY: the kind of event says what it is about.
    unsafe {
        Some(match event.event_type {
            kind::CQ_ERROR => &Cq::of(event.element.cast::<ibv_cq>()).unacknowledged_errors,
            kind::QP_FATAL..=kind::DRAINED | kind::LAST_RECEIVE => {
                &Qp::of(event.element.cast::<ibv_qp>()).unacknowledged
            }
            kind::SRQ_LIMIT => &Srq::of(event.element.cast::<ibv_srq>()).unacknowledged,
            _ => return None,
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int {
    let notices = Arc::clone(&unsafe { Context::of(context) }.notices);
    let told = |notice: &Notice| {
        let element = ptr::with_exposed_provenance_mut(notice.cookie as usize);
        ibv_async_event { element, event_type: kind_of(notice.event) }
    };
    let taken = notices.take(|notice| {
        // SAFETY: who destroys what an event is about withdraws the event first.
        if let Some(count) = unsafe { count_of(&told(notice)) } {
            count.took();
        }
    });
    match taken {
        Ok(notice) => {
            unsafe { *event = told(&notice) };
            0
        }
        Err(problem) => {
            error::set(error::of_io(&problem));
            -1
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    if let Some(count) = unsafe { count_of(&*event) } {
        count.acknowledge(1);
    }
}
