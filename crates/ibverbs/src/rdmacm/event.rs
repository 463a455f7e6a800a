//! Event channels and their events.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

use selvedge_dataplane::rnic::{Channel, Hears};
use selvedge_nic::cm::{CmEvent, ConnectionId};
use selvedge_wire::cm::Request;

use super::abi::{rdma_cm_event, rdma_conn_param, rdma_event_channel, rdma_param, rdma_ud_param};
use super::id::{Id, Peer};
use super::multicast::{self, Joined};
use super::{connect, pair};
use crate::borrowed::{Borrowed, Given, Link, Out, zeroed};
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
pub struct EventChannel {
    _abi: rdma_event_channel,
    pub(super) queue: Arc<Channel<(usize, QueuedEvent)>>,
}

impl EventChannel {
    pub(super) fn create() -> std::io::Result<Given<Self>> {
        let queue = Channel::new()?;
        let abi = rdma_event_channel { fd: queue.descriptor() };
        Ok(Given::new(Self { _abi: abi, queue: Arc::new(queue) }))
    }
}

/// Returns a callback that puts an identifier's events into its channel's queue.
pub(super) fn hears(queue: &Arc<Channel<(usize, QueuedEvent)>>, id: &Id) -> Hears {
    let (queue, id) = (Arc::clone(queue), id.address());
    Arc::new(move |event| queue.push((id, QueuedEvent::Remote(Box::new(event)))))
}

/// An event: C's structure, and the data that it points to.
#[repr(C)]
pub struct Event {
    abi: rdma_cm_event,
    private: Vec<u8>,
    /// The identifier whose count of unacknowledged events includes this event.
    counted: Link<Id>,
}

impl Event {
    /// Returns 0, minus `errno`, or the other side's reason for a refusal.
    pub(super) fn status(&self) -> c_int {
        self.abi.status
    }
    pub(super) fn kind(&self) -> c_int {
        self.abi.event
    }
    /// Returns the private data of the other side.
    pub(super) fn private(&self) -> &[u8] {
        &self.private
    }
    /// Returns the identifier that the event counts for: a request's is the new one.
    pub(super) fn id(&self) -> Borrowed<'_, Id> {
        self.counted.get()
    }
}

#[unsafe(export_name = "selvedge_rdma_create_event_channel")]
pub extern "C" fn create_event_channel() -> Option<Given<EventChannel>> {
    error::given(EventChannel::create().map_err(|problem| error::of_io(&problem)))
}

#[unsafe(export_name = "selvedge_rdma_destroy_event_channel")]
pub extern "C" fn destroy_event_channel(channel: Given<EventChannel>) {
    channel.free();
}

#[unsafe(export_name = "selvedge_rdma_get_cm_event")]
pub extern "C" fn get_cm_event(channel: Borrowed<'_, EventChannel>, mut to: Out<'_, Given<Event>>) -> c_int {
    match take(&channel) {
        Ok(event) => {
            to.write(event);
            0
        }
        Err(problem) => fail(error::of_io(&problem)),
    }
}

/// Takes the next event of a channel.
///
/// # Errors
/// Returns an error if there is none and the channel does not wait, or a signal arrived.
pub(super) fn take(channel: &EventChannel) -> std::io::Result<Given<Event>> {
    let queue = Arc::clone(&channel.queue);
    // SAFETY: an event has the address of its identifier, which is destroyed after its events are withdrawn, or were
    // taken and acknowledged.
    let id_of =
        |id| unsafe { Borrowed::<Id>::new(ptr::with_exposed_provenance_mut(id)) }.expect("an event's identifier");
    let (id, event) = queue.take(|&(id, _)| id_of(id).unacknowledged.took())?;
    Ok(presented(id_of(id), event))
}

/// Sets `errno` and returns -1.
pub(super) fn fail(errno: c_int) -> c_int {
    error::set(errno);
    -1
}

#[unsafe(export_name = "selvedge_rdma_ack_cm_event")]
pub extern "C" fn ack_cm_event(event: Given<Event>) -> c_int {
    event.id().unacknowledged.acknowledge(1);
    event.free();
    0
}

/// Returns the event as the application sees it.
fn presented(id: Borrowed<'_, Id>, event: QueuedEvent) -> Given<Event> {
    let mut found = new(id, id);
    match event {
        QueuedEvent::Local(kind, status) => {
            (found.abi.event, found.abi.status) = (kind, status);
        }
        QueuedEvent::Joined(joined) => {
            let (parameters, errno) = multicast::attached(&id, &joined);
            found.abi.param.ud = parameters;
            found.abi.event = if errno == 0 { kind::MULTICAST_JOIN } else { kind::MULTICAST_ERROR };
            found.abi.status = -errno;
        }
        QueuedEvent::Remote(event) => found = remote(id, *event),
    }
    if found.id().as_ptr() != id.as_ptr() {
        // A connection request is an event of the new identifier, not of the listener.
        found.id().unacknowledged.took();
        id.unacknowledged.acknowledge(1);
    }
    found.into()
}

/// Returns an event of the connection manager's protocol.
fn remote(id: Borrowed<'_, Id>, event: CmEvent) -> Box<Event> {
    let mut found = new(id, id);
    match event {
        CmEvent::Requested { id: connection, route, request } => {
            found = new(connect::requested(&id, connection, &route, &request).borrow(), id);
            found.abi.event = kind::CONNECT_REQUEST;
            offered(&mut found, &request);
        }
        CmEvent::Asked { id: connection, route, request } => {
            found = new(connect::asked(&id, connection, &route, request.service).borrow(), id);
            found.abi.event = kind::CONNECT_REQUEST;
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
            (found.abi.event, found.abi.status) = replied(&id, connection, &reply);
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
            let route = id.verbs().zip(id.route());
            found.abi.param.ud = rdma_ud_param {
                private_data: found.private.as_ptr().cast(),
                private_data_len: found.private.len() as u8,
                ah_attr: route.map_or_else(zeroed, |(verbs, route)| ah::attributes(&verbs.whole(), &route)),
                qp_num: reply.qp.0,
                qkey: reply.qkey,
            };
            found.abi.event = kind::ESTABLISHED;
        }
    }
    found
}

/// Returns an event of an identifier; for a request, that of the new identifier, and `came_to` is the listener.
fn new(id: Borrowed<'_, Id>, came_to: Borrowed<'_, Id>) -> Box<Event> {
    let param = rdma_param { conn: connection_parameters(&[]) };
    let listens = if came_to.as_ptr() == id.as_ptr() { ptr::null_mut() } else { came_to.as_ptr().cast() };
    let abi = rdma_cm_event { id: id.as_ptr().cast(), listen_id: listens, event: 0, status: 0, param };
    // SAFETY: destroying the identifier waits until the event is acknowledged.
    let counted = unsafe { Link::to(id) };
    Box::new(Event { abi, private: Vec::new(), counted })
}

fn connection_parameters(private: &[u8]) -> rdma_conn_param {
    let mut parameters: rdma_conn_param = zeroed();
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
fn replied(inner: &Id, connection: ConnectionId, reply: &selvedge_wire::cm::Reply) -> (c_int, c_int) {
    inner.change(|state| {
        state.peer = Peer { qp: reply.qp.0, psn: reply.psn.get(), not_ready_retries: reply.not_ready_retries };
    });
    let Some(qp) = inner.qp() else { return (kind::CONNECT_RESPONSE, 0) };
    let errno = pair::make_ready(inner, qp);
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
