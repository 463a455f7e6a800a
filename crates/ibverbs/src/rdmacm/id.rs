//! Identifiers: `librdmacm`'s objects for one end of a connection.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::Arc;

use selvedge_dataplane::rnic::{Adapter, At};
use selvedge_nic::cm::{CmEvent, ConnectionId};
use selvedge_nic::verbs::Route;

use super::abi::{rdma_cm_event, rdma_cm_id, rdma_event_channel};
use super::address;
use super::connect::anything;
use super::event::{EventChannel, QueuedEvent, ack_cm_event, destroy_event_channel, fail, get_cm_event, hears};
use super::multicast::{self, Joined};
use super::port::{self, Claim};
use crate::abi::ibv_qp_init_attr;
use crate::channel::Unacknowledged;
use crate::error;
use crate::query::gid_of;

/// Port spaces of `enum rdma_port_space`.
pub(super) const TCP: c_int = 0x0106;
pub(super) const UDP: c_int = 0x0111;
/// Types of `enum ibv_qp_type`.
pub(super) const RELIABLE: c_int = 2;
pub(super) const DATAGRAM: c_int = 4;

/// Default code of the acknowledgement timeout: 67 ms.
const ACK_TIMEOUT: u8 = 14;

/// Parameters of the other side.
#[derive(Clone, Copy, Default)]
pub(super) struct Peer {
    pub(super) qp: u32,
    pub(super) psn: u32,
    pub(super) not_ready_retries: u8,
}

/// An identifier: C's structure, followed by this library's fields.
#[repr(C)]
pub(super) struct Id {
    pub(super) abi: rdma_cm_id,
    pub(super) adapter: &'static Adapter,
    pub(super) source: Option<SocketAddr>,
    pub(super) destination: Option<SocketAddr>,
    pub(super) connection: Option<ConnectionId>,
    pub(super) listens_to: Option<At>,
    /// The reserved RDMA port, if there is one.
    pub(super) reserved: Option<u16>,
    /// Whether the identifier shares its port with others that do.
    pub(super) shares_port: bool,
    pub(super) peer: Peer,
    /// The first PSN that this side expects, chosen early: some applications make their queue pairs ready before they
    /// connect.
    pub(super) psn: u32,
    pub(super) reads_answered: u8,
    pub(super) reads_asked: u8,
    pub(super) retries: u8,
    pub(super) mtu: c_int,
    /// Code of the acknowledgement timeout: 4.096 us times 2 to this power.
    pub(super) ack_timeout: u8,
    pub(super) traffic_class: u8,
    pub(super) unacknowledged: Unacknowledged,
    /// Multicast groups that the identifier has joined.
    pub(super) groups: Vec<Joined>,
    /// Whether the identifier has a channel of its own, so that functions wait for their events.
    pub(super) waits: bool,
    /// The protection domain and attributes of the queue pairs that a listening endpoint creates for its connections.
    pub(super) endpoint: Option<(usize, ibv_qp_init_attr)>,
}

impl Id {
    /// Returns the identifier at C's pointer.
    ///
    /// # Safety
    /// `id` is from this library.
    pub(super) unsafe fn of<'a>(id: *mut rdma_cm_id) -> &'a mut Self {
        // SAFETY: the caller's.
        unsafe { &mut *id.cast::<Self>() }
    }
    /// Creates an identifier.
    pub(super) fn new(
        channel: *mut rdma_event_channel,
        context: *mut c_void,
        space: c_int,
        waits: bool,
    ) -> std::io::Result<Box<Self>> {
        // SAFETY: zeros are null pointers and numbers.
        let mut abi: rdma_cm_id = unsafe { std::mem::zeroed() };
        abi.channel = channel;
        abi.context = context;
        abi.ps = space;
        abi.qp_type = if space == UDP { DATAGRAM } else { RELIABLE };
        Ok(Box::new(Self {
            abi,
            adapter: Adapter::get()?,
            source: None,
            destination: None,
            connection: None,
            listens_to: None,
            reserved: None,
            shares_port: false,
            peer: Peer::default(),
            psn: anything() & 0xff_ffff,
            reads_answered: 0,
            reads_asked: 0,
            retries: 7,
            mtu: 3,
            ack_timeout: ACK_TIMEOUT,
            traffic_class: 0,
            unacknowledged: Unacknowledged::default(),
            groups: Vec::new(),
            waits,
            endpoint: None,
        }))
    }
    /// Returns the route to the other side, once both ends are known.
    pub(super) fn route(&self) -> Option<Route> {
        let (local, remote) = (address::gid(&self.source?), address::gid(&self.destination?));
        Some(Route { local, remote, traffic_class: self.traffic_class, hop_limit: 64, flow_label: 0 })
    }
    pub(super) fn set_source(&mut self, source: SocketAddr) {
        self.source = Some(source);
        self.abi.route.addr.src_storage = address::written(source);
        self.abi.route.addr.addr.sgid = gid_of(&address::gid(&source));
        self.abi.route.addr.addr.pkey = u16::MAX.to_be();
    }
    pub(super) fn set_destination(&mut self, destination: SocketAddr) {
        self.destination = Some(destination);
        self.abi.route.addr.dst_storage = address::written(destination);
        self.abi.route.addr.addr.dgid = gid_of(&address::gid(&destination));
    }
    /// Chooses the device by the source address.
    ///
    /// # Errors
    /// Returns an error when no device has the address, or it cannot be opened.
    pub(super) fn choose_device(&mut self) -> std::io::Result<()> {
        let Some(source) = self.source else { return Ok(()) };
        let (context, domain) = address::device_with(address::gid(&source))?;
        self.abi.verbs = context;
        if self.abi.pd.is_null() {
            self.abi.pd = domain;
        }
        self.abi.port_num = 1;
        // SAFETY: it was opened just now, or before.
        self.mtu = crate::query::mtu_code(unsafe { crate::context::Context::of(context) }.device().payload());
        Ok(())
    }
    /// Reserves the port of an address, any if it is 0; returns the port.
    ///
    /// # Errors
    /// Returns an error if the port is taken.
    pub(super) fn claim(&mut self, address: SocketAddr) -> std::io::Result<u16> {
        let claim = Claim { address, space: self.abi.ps, shares: self.shares_port };
        let port = port::claim(self.adapter, std::ptr::from_ref(self).addr(), claim)?;
        self.reserved = Some(port);
        Ok(port)
    }
    /// Reserves a port that no other identifier of this process has; returns the port.
    ///
    /// # Errors
    /// Returns an error if no port is left.
    pub(super) fn claim_any(&mut self, address: SocketAddr) -> std::io::Result<u16> {
        let claim = Claim { address, space: self.abi.ps, shares: self.shares_port };
        let port = port::any(std::ptr::from_ref(self).addr(), claim, anything())?;
        self.reserved = Some(port);
        Ok(port)
    }
    /// Queues a local event.
    pub(super) fn tell(&self, kind: c_int, status: c_int) {
        self.push(QueuedEvent::Local(kind, status));
    }
    /// Queues the event that a group was joined.
    pub(super) fn tell_joined(&self, joined: Joined) {
        self.push(QueuedEvent::Joined(joined));
    }
    fn push(&self, event: QueuedEvent) {
        // SAFETY: the channel outlives its identifiers.
        let queue = unsafe { &EventChannel::of(self.abi.channel).queue };
        queue.push((std::ptr::from_ref(self).expose_provenance(), event));
    }
    pub(super) fn hears(&self) -> selvedge_dataplane::rnic::Hears {
        // SAFETY: as above.
        hears(unsafe { &EventChannel::of(self.abi.channel).queue }, self)
    }
    /// Waits for the event of the operation just begun, if the identifier is synchronous; returns 0, or -1 with
    /// `errno`.
    ///
    /// # Safety
    /// The identifier is used by one thread.
    pub(super) unsafe fn complete(&mut self) -> c_int {
        if !self.waits {
            return 0;
        }
        unsafe {
            if !self.abi.event.is_null() {
                ack_cm_event(self.abi.event);
                self.abi.event = std::ptr::null_mut();
            }
            let mut event: *mut rdma_cm_event = std::ptr::null_mut();
            if get_cm_event(self.abi.channel, &raw mut event) != 0 {
                return -1;
            }
            self.abi.event = event;
            match (*event).status {
                0 => 0,
                // A positive status is the other side's reason for a refusal.
                reason if reason > 0 => fail(libc::ECONNREFUSED),
                status => fail(-status),
            }
        }
    }
}

#[unsafe(export_name = "selvedge_rdma_create_id")]
pub unsafe extern "C" fn create_id(
    channel: *mut rdma_event_channel,
    to: *mut *mut rdma_cm_id,
    context: *mut c_void,
    space: c_int,
) -> c_int {
    if space != TCP && space != UDP {
        return fail(libc::EOPNOTSUPP);
    }
    let waits = channel.is_null();
    let made = (if waits { EventChannel::create() } else { Ok(channel) })
        .and_then(|channel| Id::new(channel, context, space, waits));
    match made {
        Ok(id) => {
            unsafe { *to = Box::into_raw(id).cast() };
            0
        }
        Err(problem) => {
            // Some failures have no `errno`, so the reason is printed.
            error::say(&format!("cannot make an RDMA identifier: {problem}"));
            fail(error::of_io(&problem))
        }
    }
}

#[unsafe(export_name = "selvedge_rdma_destroy_id")]
pub unsafe extern "C" fn destroy_id(id: *mut rdma_cm_id) -> c_int {
    let inner = unsafe { Id::of(id) };
    if let Some(at) = inner.listens_to {
        let _ = inner.adapter.unlisten(at);
    }
    if let Some(port) = inner.reserved {
        port::release(inner.adapter, id.addr(), port);
    }
    unsafe { multicast::leave_all(inner) };
    if let Some(connection) = inner.connection {
        let _ = inner.adapter.connect(|manager, cx| manager.disconnect(cx, connection));
        let _ = inner.adapter.forget_connection(connection);
    }
    let own = id.expose_provenance();
    unsafe {
        if !inner.abi.event.is_null() {
            ack_cm_event(inner.abi.event);
        }
        for (_, event) in EventChannel::of(inner.abi.channel).queue.withdraw(|(of, _)| *of == own) {
            refuse(inner.adapter, &event);
        }
        inner.unacknowledged.wait();
        if inner.waits {
            destroy_event_channel(inner.abi.channel);
        }
        drop(Box::from_raw(id.cast::<Id>()));
    }
    0
}

/// Refuses a connection request whose event is discarded unseen.
fn refuse(adapter: &Adapter, event: &QueuedEvent) {
    let QueuedEvent::Remote(event) = event else { return };
    let connection = match **event {
        CmEvent::Requested { id, .. } | CmEvent::Asked { id, .. } => id,
        _ => return,
    };
    let _ = adapter.connect(|manager, cx| match **event {
        CmEvent::Asked { .. } => manager.answer(cx, connection, None, &[]),
        _ => manager.reject(cx, connection, &[]),
    });
    let _ = adapter.forget_connection(connection);
}

#[unsafe(export_name = "selvedge_rdma_migrate_id")]
pub unsafe extern "C" fn migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
    let inner = unsafe { Id::of(id) };
    let old = inner.abi.channel;
    let waits = channel.is_null();
    let channel = match if waits { EventChannel::create() } else { Ok(channel) } {
        Ok(channel) => channel,
        Err(problem) => return fail(error::of_io(&problem)),
    };
    inner.abi.channel = channel;
    let had_own = std::mem::replace(&mut inner.waits, waits);
    if let Some(connection) = inner.connection {
        let _ = inner.adapter.own_connection(connection, inner.hears());
    }
    if let Some(at) = inner.listens_to {
        let _ = inner.adapter.own_service(at, inner.hears());
    }
    // All further events go to the new channel; pending ones are moved there.
    let own = id.expose_provenance();
    for event in unsafe { EventChannel::of(old) }.queue.withdraw(|(of, _)| *of == own) {
        queue_of(inner).push(event);
    }
    if had_own {
        unsafe { destroy_event_channel(old) };
    }
    0
}

/// Sets an option. Effective are the type of service, the acknowledgement timeout, and sharing of the port. Other
/// options, like that for IPv6 alone, are accepted without effect.
#[unsafe(export_name = "selvedge_rdma_set_option")]
pub unsafe extern "C" fn set_option(
    id: *mut rdma_cm_id,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: usize,
) -> c_int {
    // Values of enumerations in rdma_cma.h.
    const OF_IDENTIFIER: c_int = 0;
    const TYPE_OF_SERVICE: c_int = 0;
    const SHARES_PORT: c_int = 1;
    const ACK_TIMEOUT: c_int = 3;
    let inner = unsafe { Id::of(id) };
    if (level, option, length) == (OF_IDENTIFIER, SHARES_PORT, size_of::<c_int>()) {
        // SAFETY: so many bytes.
        inner.shares_port = unsafe { value.cast::<c_int>().read_unaligned() } != 0;
        return 0;
    }
    let given = if length == 1 { unsafe { value.cast::<u8>().as_ref() } } else { None };
    match (level, option, given) {
        (OF_IDENTIFIER, TYPE_OF_SERVICE, Some(&class)) => inner.traffic_class = class,
        (OF_IDENTIFIER, ACK_TIMEOUT, Some(&timeout)) if timeout < 32 => inner.ack_timeout = timeout,
        (OF_IDENTIFIER, TYPE_OF_SERVICE | ACK_TIMEOUT, _) => return fail(libc::EINVAL),
        _ => {}
    }
    0
}

fn port_of(address: Option<SocketAddr>) -> u16 {
    address.map_or(0, |address| address.port().to_be())
}

#[unsafe(export_name = "selvedge_rdma_get_src_port")]
pub unsafe extern "C" fn get_src_port(id: *mut rdma_cm_id) -> u16 {
    port_of(unsafe { Id::of(id) }.source)
}

#[unsafe(export_name = "selvedge_rdma_get_dst_port")]
pub unsafe extern "C" fn get_dst_port(id: *mut rdma_cm_id) -> u16 {
    port_of(unsafe { Id::of(id) }.destination)
}

/// Returns the queue of an identifier's channel, for identifiers that are created from it.
pub(super) fn queue_of(id: &Id) -> Arc<selvedge_dataplane::rnic::Channel<(usize, QueuedEvent)>> {
    // SAFETY: the channel outlives its identifiers.
    Arc::clone(unsafe { &EventChannel::of(id.abi.channel).queue })
}
