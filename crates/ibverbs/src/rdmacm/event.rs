//! Event channels and their events.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

use selvedge_dataplane::rnic::{Channel, Hears};
use selvedge_nic::cm::{CmEvent, ConnectionId};
use selvedge_wire::cm::Request;

use super::abi::{rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_param, rdma_ud_param};
use super::id::Id;
use super::multicast::{self, Joined};
use super::{connect, pair};
use crate::{address as ah, error};

/// Types of `enum rdma_cm_event_type`.
pub(super) mod kind {
    use std::ffi::c_int;

    pub(crate) const ADDR_RESOLVED: c_int = 0;
    pub(crate) const ADDR_ERROR: c_int = 1;
    pub(crate) const ROUTE_RESOLVED: c_int = 2;
    pub(crate) const CONNECT_REQUEST: c_int = 4;
    pub(crate) const CONNECT_RESPONSE: c_int = 5;
    pub(crate) const CONNECT_ERROR: c_int = 6;
    pub(crate) const UNREACHABLE: c_int = 7;
    pub(crate) const REJECTED: c_int = 8;
    pub(crate) const ESTABLISHED: c_int = 9;
    pub(crate) const DISCONNECTED: c_int = 10;
    pub(crate) const MULTICAST_JOIN: c_int = 12;
    pub(crate) const MULTICAST_ERROR: c_int = 13;
}

/// An event of an identifier, before the application takes it.
pub(super) enum QueuedEvent {
    /// A local event: its type, and 0 or minus `errno`.
    Local(c_int, c_int),
    /// A multicast group was joined.
    Joined(Joined),
    /// An event of the connection manager's protocol.
    Remote(Box<CmEvent>),
}

/// An event channel: C's structure, and the queue behind it.
#[repr(C)]
pub(super) struct EventChannel {
    abi: rdma_event_channel,
    pub(super) queue: Arc<Channel<(usize, QueuedEvent)>>,
}

impl EventChannel {
    pub(super) fn create() -> std::io::Result<*mut rdma_event_channel> {
        let queue = Channel::new()?;
        let abi = rdma_event_channel { fd: queue.descriptor() };
        Ok(Box::into_raw(Box::new(Self { abi, queue: Arc::new(queue) })).cast())
    }
    /// Returns the event channel at C's pointer.
    ///
    /// # Safety
    /// `channel` is from this library.
    pub(super) unsafe fn of<'a>(channel: *mut rdma_event_channel) -> &'a Self {
        // SAFETY: the caller's.
        unsafe { &*channel.cast::<Self>() }
    }
}

/// Returns a callback that puts an identifier's events into its channel's queue.
pub(super) fn hears(queue: &Arc<Channel<(usize, QueuedEvent)>>, id: *const Id) -> Hears {
    let (queue, id) = (Arc::clone(queue), id.expose_provenance());
    Arc::new(move |event| queue.push((id, QueuedEvent::Remote(Box::new(event)))))
}

/// An event: C's structure, and the data that it points to.
#[repr(C)]
struct Event {
    abi: rdma_cm_event,
    private: Vec<u8>,
    /// The identifier whose count of unacknowledged events includes this event.
    counted: *mut Id,
}

#[unsafe(export_name = "selvedge_rdma_create_event_channel")]
pub extern "C" fn create_event_channel() -> *mut rdma_event_channel {
    EventChannel::create().unwrap_or_else(|problem| error::null(error::of_io(&problem)))
}

#[unsafe(export_name = "selvedge_rdma_destroy_event_channel")]
pub unsafe extern "C" fn destroy_event_channel(channel: *mut rdma_event_channel) {
    drop(unsafe { Box::from_raw(channel.cast::<EventChannel>()) });
}

#[unsafe(export_name = "selvedge_rdma_get_cm_event")]
pub unsafe extern "C" fn get_cm_event(channel: *mut rdma_event_channel, to: *mut *mut rdma_cm_event) -> c_int {
    let queue = Arc::clone(&unsafe { EventChannel::of(channel) }.queue);
    let id_of = ptr::with_exposed_provenance_mut::<Id>;
    // SAFETY: who destroys an identifier withdraws its events first.
    match queue.take(|&(id, _)| unsafe { &*id_of(id) }.unacknowledged.took()) {
        Ok((id, event)) => {
            unsafe { *to = Box::into_raw(presented(id_of(id), event)).cast() };
            0
        }
        Err(problem) => fail(error::of_io(&problem)),
    }
}

/// Sets `errno` and returns -1.
pub(super) fn fail(errno: c_int) -> c_int {
    error::set(errno);
    -1
}

#[unsafe(export_name = "selvedge_rdma_ack_cm_event")]
pub unsafe extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    let event = unsafe { Box::from_raw(event.cast::<Event>()) };
    unsafe { &*event.counted }.unacknowledged.acknowledge(1);
    0
}

/// Returns the event as the application sees it.
unsafe fn presented(id: *mut Id, event: QueuedEvent) -> Box<Event> {
    let mut found = new(id, ptr::null_mut());
    match event {
        QueuedEvent::Local(kind, status) => {
            (found.abi.event, found.abi.status) = (kind, status);
        }
        QueuedEvent::Joined(joined) => {
            let (parameters, errno) = unsafe { multicast::attached(&*id, &joined) };
            found.abi.param.ud = parameters;
            found.abi.event = if errno == 0 { kind::MULTICAST_JOIN } else { kind::MULTICAST_ERROR };
            found.abi.status = -errno;
        }
        QueuedEvent::Remote(event) => unsafe { fill_remote(&mut found, id, *event) },
    }
    if found.counted != id {
        // A connection request is an event of the new identifier, not of the listener.
        unsafe {
            (*found.counted).unacknowledged.took();
            (*id).unacknowledged.acknowledge(1);
        }
    }
    found
}

/// Fills in an event of the connection manager's protocol.
unsafe fn fill_remote(found: &mut Event, id: *mut Id, event: CmEvent) {
    match event {
        CmEvent::Requested { id: connection, route, request } => {
            let new = unsafe { connect::requested(id, connection, &route, &request) };
            found.abi.event = kind::CONNECT_REQUEST;
            (found.abi.id, found.abi.listen_id) = (new.cast(), id.cast());
            found.counted = new;
            offered(found, &request);
        }
        CmEvent::Asked { id: connection, route, request } => {
            let new = unsafe { connect::asked(id, connection, &route, request.service) };
            found.abi.event = kind::CONNECT_REQUEST;
            (found.abi.id, found.abi.listen_id) = (new.cast(), id.cast());
            found.counted = new;
            found.private = request.private.to_vec();
            found.abi.param.conn = connection_parameters(&found.private);
        }
        CmEvent::Replied { id: connection, reply } => {
            found.private = reply.private.to_vec();
            let mut parameters = connection_parameters(&found.private);
            parameters.responder_resources = reply.initiator_depth;
            parameters.initiator_depth = reply.responder_resources;
            parameters.rnr_retry_count = reply.not_ready_retries;
            parameters.srq = u8::from(reply.srq);
            parameters.qp_num = reply.qp.0;
            found.abi.param.conn = parameters;
            (found.abi.event, found.abi.status) = unsafe { replied(id, connection, &reply) };
        }
        CmEvent::Established(_) => found.abi.event = kind::ESTABLISHED,
        CmEvent::Rejected { reason, private, .. } => {
            found.private = private;
            found.abi.param.conn = connection_parameters(&found.private);
            (found.abi.event, found.abi.status) = (kind::REJECTED, c_int::from(reason));
        }
        CmEvent::Unreachable(_) => {
            (found.abi.event, found.abi.status) = (kind::UNREACHABLE, -libc::ETIMEDOUT);
        }
        CmEvent::Disconnected(_) => found.abi.event = kind::DISCONNECTED,
        CmEvent::Resolved { reply, .. } => {
            found.private = reply.private.to_vec();
            let inner = unsafe { &*id };
            let context = unsafe { crate::context::Context::of(inner.abi.verbs) };
            let attributes = inner.route().map(|route| ah::attributes(context, &route));
            found.abi.param.ud = rdma_ud_param {
                private_data: found.private.as_ptr().cast(),
                private_data_len: found.private.len() as u8,
                // SAFETY: numbers only.
                ah_attr: attributes.unwrap_or_else(|| unsafe { std::mem::zeroed() }),
                qp_num: reply.qp.0,
                qkey: reply.qkey,
            };
            found.abi.event = kind::ESTABLISHED;
        }
    }
}

fn new(id: *mut Id, listens: *mut rdma_cm_id) -> Box<Event> {
    let param = rdma_param { conn: connection_parameters(&[]) };
    let abi = rdma_cm_event { id: id.cast(), listen_id: listens, event: 0, status: 0, param };
    Box::new(Event { abi, private: Vec::new(), counted: id })
}

fn connection_parameters(private: &[u8]) -> rdma_conn_param {
    // SAFETY: zeros are a null pointer and numbers.
    let mut parameters: rdma_conn_param = unsafe { std::mem::zeroed() };
    if !private.is_empty() {
        parameters.private_data = private.as_ptr().cast();
        parameters.private_data_len = private.len() as u8;
    }
    parameters
}

/// Fills in the other side's offer, from this side's point of view.
fn offered(event: &mut Event, request: &Request) {
    event.private = request.private.to_vec();
    let mut parameters = connection_parameters(&event.private);
    parameters.responder_resources = request.initiator_depth;
    parameters.initiator_depth = request.responder_resources;
    parameters.retry_count = request.retries;
    parameters.rnr_retry_count = request.not_ready_retries;
    parameters.srq = u8::from(request.srq);
    parameters.qp_num = request.qp.0;
    event.abi.param.conn = parameters;
}

/// Handles the acceptance of a connection by the other side: makes this side's queue pair ready, if it belongs to the
/// identifier. Returns the event type, and 0 or minus `errno`.
unsafe fn replied(id: *mut Id, connection: ConnectionId, reply: &selvedge_wire::cm::Reply) -> (c_int, c_int) {
    let inner = unsafe { &mut *id };
    inner.peer.qp = reply.qp.0;
    inner.peer.psn = reply.psn.get();
    inner.peer.not_ready_retries = reply.not_ready_retries;
    if inner.abi.qp.is_null() {
        return (kind::CONNECT_RESPONSE, 0);
    }
    let errno = unsafe { pair::make_ready(inner) };
    if errno != 0 {
        return (kind::CONNECT_ERROR, -errno);
    }
    let told = inner.adapter.connect(|manager, cx| manager.ready(cx, connection));
    if matches!(told, Ok(Ok(()))) { (kind::ESTABLISHED, 0) } else { (kind::CONNECT_ERROR, -libc::EINVAL) }
}

#[unsafe(export_name = "selvedge_rdma_event_str")]
pub extern "C" fn event_str(event: c_int) -> *const c_char {
    const NAMES: [&std::ffi::CStr; 16] = [
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    usize::try_from(event).ok().and_then(|at| NAMES.get(at)).unwrap_or(&c"UNKNOWN EVENT").as_ptr()
}

/// Fails with `ENOSYS`: the target of functions of later versions that are not supported.
#[unsafe(export_name = "selvedge_rdma_unsupported")]
pub extern "C" fn unsupported() -> c_int {
    fail(libc::ENOSYS)
}
