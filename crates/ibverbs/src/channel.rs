//! Completion channels, asynchronous events, and counts of unacknowledged events.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use selvedge_dataplane::rnic::{Channel, Notice};
use selvedge_nic::verbs::Event;

use crate::abi::{ibv_async_event, ibv_comp_channel, ibv_context};
use crate::borrowed::{Borrowed, Given, Out, Shared, load};
use crate::completion::Cq;
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
pub struct CompletionChannel {
    _abi: Shared<ibv_comp_channel>,
    channel: Arc<Channel<u64>>,
    /// Number of completion queues that use the channel. Any thread may create and destroy queues, and `refcnt` is
    /// protected by C's lock, so the count is kept here.
    users: AtomicU32,
}

impl CompletionChannel {
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
pub extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> Option<Given<CompletionChannel>> {
    match Channel::new() {
        Ok(channel) => {
            let abi = Shared::new(ibv_comp_channel { context, fd: channel.descriptor(), refcnt: 0 });
            let users = AtomicU32::new(0);
            Some(Given::new(CompletionChannel { _abi: abi, channel: Arc::new(channel), users }))
        }
        Err(problem) => error::none(error::of_io(&problem)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_destroy_comp_channel(channel: Given<CompletionChannel>) -> c_int {
    if channel.users.load(Ordering::Acquire) > 0 {
        return libc::EBUSY;
    }
    channel.free();
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_cq_event(
    channel: Borrowed<'_, CompletionChannel>,
    mut cq: Out<'_, *mut Cq>,
    mut cq_context: Out<'_, *mut c_void>,
) -> c_int {
    let channel = Arc::clone(&channel.channel);
    // SAFETY: a queue's cookie is its address, and a queue is destroyed after its events are withdrawn, or were taken
    // and acknowledged.
    let queue_of = |cookie| unsafe { about::<Cq>(ptr::with_exposed_provenance_mut(cookie as usize)) };
    match channel.take(|&cookie| queue_of(cookie).unacknowledged.took()) {
        Ok(cookie) => {
            let found = queue_of(cookie);
            cq.write(found.as_ptr());
            cq_context.write(load!(found.abi, cq_context));
            0
        }
        Err(problem) => {
            error::set(error::of_io(&problem));
            -1
        }
    }
}

/// Returns the object that an event is about.
///
/// # Safety
/// The object is a `T` of this library's, which is not destroyed during `'c`.
unsafe fn about<'c, T>(object: *mut c_void) -> Borrowed<'c, T> {
    // SAFETY: as the caller promises.
    unsafe { Borrowed::new(object.cast()) }.expect("an event is about an object")
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_cq_events(cq: Borrowed<'_, Cq>, events: c_uint) {
    cq.unacknowledged.acknowledge(events);
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
///
/// # Safety
/// The event is one of this library's, and the object is not destroyed during `'c`.
unsafe fn count_of<'c>(event: &ibv_async_event) -> Option<&'c Unacknowledged> {
    // SAFETY: the kind of event says what it is about.
    unsafe {
        Some(match event.event_type {
            kind::CQ_ERROR => &about::<Cq>(event.element).get().unacknowledged_errors,
            kind::QP_FATAL..=kind::DRAINED | kind::LAST_RECEIVE => &about::<Qp>(event.element).get().unacknowledged,
            kind::SRQ_LIMIT => &about::<Srq>(event.element).get().unacknowledged,
            _ => return None,
        })
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_async_event(
    context: Borrowed<'_, ibv_context>,
    mut event: Out<'_, ibv_async_event>,
) -> c_int {
    let notices = Arc::clone(&context.whole().notices);
    let told = |notice: &Notice| {
        let element = ptr::with_exposed_provenance_mut(notice.cookie as usize);
        ibv_async_event { element, event_type: kind_of(notice.event) }
    };
    let taken = notices.take(|notice| {
        // SAFETY: an object is destroyed after its events are withdrawn, or were taken and acknowledged.
        if let Some(count) = unsafe { count_of(&told(notice)) } {
            count.took();
        }
    });
    match taken {
        Ok(notice) => {
            event.write(told(&notice));
            0
        }
        Err(problem) => {
            error::set(error::of_io(&problem));
            -1
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_ack_async_event(event: Borrowed<'_, ibv_async_event>) {
    // SAFETY: the program has the event from this library, and destroying the object waits for this call.
    if let Some(count) = unsafe { count_of(&event) } {
        count.acknowledge(1);
    }
}
