//! Identifiers: `librdmacm`'s objects for one end of a connection.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_dataplane::rnic::{Adapter, At};
use selvedge_nic::cm::{CmEvent, ConnectionId};
use selvedge_nic::verbs::Route;

use super::abi::{rdma_cm_id, rdma_event_channel};
use super::address;
use super::connect::anything;
use super::event::{Event, EventChannel, QueuedEvent, ack_cm_event, fail, hears, take};
use super::multicast::{self, Joined};
use super::port::{self, Claim};
use crate::abi::{ibv_context, ibv_qp_init_attr};
use crate::borrowed::{Borrowed, Given, Out, Shared, elements, load, store, zeroed};
use crate::channel::Unacknowledged;
use crate::error;
use crate::memory::Pd;
use crate::pair::Qp;
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
pub struct Id {
    pub(super) abi: Shared<rdma_cm_id>,
    pub(super) adapter: &'static Adapter,
    state: Mutex<State>,
    pub(super) unacknowledged: Unacknowledged,
    /// Multicast groups that the identifier has joined.
    groups: Mutex<Vec<Joined>>,
    /// The identifier's own channel, if it has one: functions wait for their events then.
    own_channel: Mutex<Option<Given<EventChannel>>>,
}

/// State of an identifier.
#[derive(Clone, Copy)]
pub(super) struct State {
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
    /// The protection domain and attributes of the queue pairs that a listening endpoint creates for its connections.
    pub(super) endpoint: Option<(*mut Pd, ibv_qp_init_attr)>,
}

impl State {
    /// Returns the state of an identifier without addresses.
    pub(super) fn new() -> Self {
        Self {
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
            endpoint: None,
        }
    }
    /// Returns the route to the other side, once both ends are known.
    pub(super) fn route(&self) -> Option<Route> {
        let (local, remote) = (address::gid(&self.source?), address::gid(&self.destination?));
        Some(Route { local, remote, traffic_class: self.traffic_class, hop_limit: 64, flow_label: 0 })
    }
}

impl Id {
    /// Creates an identifier with the given fields of C's structure.
    pub(super) fn new(
        abi: rdma_cm_id,
        adapter: &'static Adapter,
        state: State,
        own_channel: Option<Given<EventChannel>>,
    ) -> Given<Self> {
        Given::new(Self {
            abi: Shared::new(abi),
            adapter,
            state: Mutex::new(state),
            unacknowledged: Unacknowledged::default(),
            groups: Mutex::default(),
            own_channel: Mutex::new(own_channel),
        })
    }
    /// Creates an identifier whose events come through `channel`, or through one of its own.
    ///
    /// # Errors
    /// Returns an error if the system has nothing left.
    pub(super) fn create(
        channel: Option<Borrowed<'_, EventChannel>>,
        context: *mut c_void,
        space: c_int,
    ) -> std::io::Result<Given<Self>> {
        let own = if channel.is_none() { Some(EventChannel::create()?) } else { None };
        let mut abi: rdma_cm_id = zeroed();
        abi.channel = address_of(channel, own.as_ref());
        abi.context = context;
        abi.ps = space;
        abi.qp_type = if space == UDP { DATAGRAM } else { RELIABLE };
        Ok(Self::new(abi, Adapter::get()?, State::new(), own))
    }
    pub(super) fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Changes the state. `change` calls no function of this identifier.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
    pub(super) fn groups(&self) -> MutexGuard<'_, Vec<Joined>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn own_channel(&self) -> MutexGuard<'_, Option<Given<EventChannel>>> {
        self.own_channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns whether functions of the identifier wait for their events.
    pub(super) fn waits(&self) -> bool {
        self.own_channel().is_some()
    }
    /// Returns the identifier's address, by which ports and events know it.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).expose_provenance()
    }
    pub(super) fn channel(&self) -> Borrowed<'_, EventChannel> {
        let channel = load!(self.abi, channel).cast();
        // SAFETY: programs destroy a channel after its identifiers.
        unsafe { Borrowed::new(channel) }.expect("an identifier has a channel")
    }
    /// Returns the device, once it is chosen.
    pub(super) fn verbs(&self) -> Option<Borrowed<'_, ibv_context>> {
        let verbs = load!(self.abi, verbs);
        // SAFETY: the device of an identifier is open as long as the process lives.
        unsafe { Borrowed::new(verbs) }
    }
    /// Returns the queue pair, if there is one.
    pub(super) fn qp(&self) -> Option<Borrowed<'_, Qp>> {
        let qp = load!(self.abi, qp).cast();
        // SAFETY: the pointer is null, or a queue pair of this library's; programs that destroy it themselves reset it.
        unsafe { Borrowed::new(qp) }
    }
    /// Returns the route to the other side, once both ends are known.
    pub(super) fn route(&self) -> Option<Route> {
        self.state().route()
    }
    pub(super) fn set_source(&self, source: SocketAddr) {
        self.change(|state| state.source = Some(source));
        store!(self.abi, route.addr.src_storage = address::written(source));
        store!(self.abi, route.addr.addr.sgid = gid_of(&address::gid(&source)));
        store!(self.abi, route.addr.addr.pkey = u16::MAX.to_be());
    }
    pub(super) fn set_destination(&self, destination: SocketAddr) {
        self.change(|state| state.destination = Some(destination));
        store!(self.abi, route.addr.dst_storage = address::written(destination));
        store!(self.abi, route.addr.addr.dgid = gid_of(&address::gid(&destination)));
    }
    /// Chooses the device by the source address.
    ///
    /// # Errors
    /// Returns an error when no device has the address, or it cannot be opened.
    pub(super) fn choose_device(&self) -> std::io::Result<()> {
        let Some(source) = self.state().source else { return Ok(()) };
        let (context, domain) = address::device_with(address::gid(&source))?;
        store!(self.abi, verbs = context.as_ptr());
        if load!(self.abi, pd).is_null() {
            store!(self.abi, pd = domain.as_c());
        }
        store!(self.abi, port_num = 1);
        self.change(|state| state.mtu = crate::query::mtu_code(context.whole().device().payload()));
        Ok(())
    }
    /// Reserves the port of an address, any if it is 0; returns the port.
    ///
    /// # Errors
    /// Returns an error if the port is taken.
    pub(super) fn claim(&self, address: SocketAddr) -> std::io::Result<u16> {
        let claim = Claim { address, space: load!(self.abi, ps), shares: self.state().shares_port };
        let port = port::claim(self.adapter, self.address(), claim)?;
        self.change(|state| state.reserved = Some(port));
        Ok(port)
    }
    /// Reserves a port that no other identifier of this process has; returns the port.
    ///
    /// # Errors
    /// Returns an error if no port is left.
    pub(super) fn claim_any(&self, address: SocketAddr) -> std::io::Result<u16> {
        let claim = Claim { address, space: load!(self.abi, ps), shares: self.state().shares_port };
        let port = port::any(self.address(), claim, anything())?;
        self.change(|state| state.reserved = Some(port));
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
        self.channel().queue.push((self.address(), event));
    }
    pub(super) fn hears(&self) -> selvedge_dataplane::rnic::Hears {
        hears(&self.channel().queue, self)
    }
    /// Returns the event that a function of a waiting identifier took for the program, and forgets it.
    fn taken_event(&self) -> Option<Given<Event>> {
        let event = load!(self.abi, event);
        store!(self.abi, event = std::ptr::null_mut());
        // SAFETY: null, or an event that `complete` or `get_request` has put there; programs leave it to this library.
        unsafe { Given::from_c(event.cast()) }
    }
    /// Waits for the event of the operation just begun, if the identifier is synchronous; returns 0, or -1 with
    /// `errno`.
    pub(super) fn complete(&self) -> c_int {
        if !self.waits() {
            return 0;
        }
        if let Some(event) = self.taken_event() {
            ack_cm_event(event);
        }
        let event = match take(&self.channel()) {
            Ok(event) => event,
            Err(problem) => return fail(error::of_io(&problem)),
        };
        store!(self.abi, event = event.as_ptr().cast());
        match event.status() {
            0 => 0,
            // A positive status is the other side's reason for a refusal.
            reason if reason > 0 => fail(libc::ECONNREFUSED),
            status => fail(-status),
        }
    }
}

/// Returns the address of the channel that an identifier uses: the given one, or its own.
fn address_of(given: Option<Borrowed<'_, EventChannel>>, own: Option<&Given<EventChannel>>) -> *mut rdma_event_channel {
    let own = own.map_or(std::ptr::null_mut(), Given::as_ptr);
    given.map_or(own, Borrowed::as_ptr).cast()
}

#[unsafe(export_name = "selvedge_rdma_create_id")]
pub extern "C" fn create_id(
    channel: Option<Borrowed<'_, EventChannel>>,
    mut to: Out<'_, Given<Id>>,
    context: *mut c_void,
    space: c_int,
) -> c_int {
    match created(channel, context, space) {
        Ok(id) => {
            to.write(id);
            0
        }
        Err(errno) => fail(errno),
    }
}

/// Creates an identifier of a port space.
///
/// # Errors
/// Returns `errno`; prints the reason, which some failures have instead.
pub(super) fn created(
    channel: Option<Borrowed<'_, EventChannel>>,
    context: *mut c_void,
    space: c_int,
) -> Result<Given<Id>, c_int> {
    if space != TCP && space != UDP {
        return Err(libc::EOPNOTSUPP);
    }
    Id::create(channel, context, space).map_err(|problem| {
        error::say(&format!("cannot make an RDMA identifier: {problem}"));
        error::of_io(&problem)
    })
}

#[unsafe(export_name = "selvedge_rdma_destroy_id")]
pub extern "C" fn destroy_id(id: Given<Id>) -> c_int {
    let state = id.state();
    if let Some(at) = state.listens_to {
        let _ = id.adapter.unlisten(at);
    }
    if let Some(port) = state.reserved {
        port::release(id.adapter, id.address(), port);
    }
    multicast::leave_all(&id);
    if let Some(connection) = state.connection {
        let _ = id.adapter.connect(|manager, cx| manager.disconnect(cx, connection));
        let _ = id.adapter.forget_connection(connection);
    }
    if let Some(event) = id.taken_event() {
        ack_cm_event(event);
    }
    let own = id.address();
    for (_, event) in id.channel().queue.withdraw(|(of, _)| *of == own) {
        refuse(id.adapter, &event);
    }
    id.unacknowledged.wait();
    if let Some(channel) = id.own_channel().take() {
        channel.free();
    }
    id.free();
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
pub extern "C" fn migrate_id(id: Borrowed<'_, Id>, channel: Option<Borrowed<'_, EventChannel>>) -> c_int {
    let own = match if channel.is_none() { EventChannel::create().map(Some) } else { Ok(None) } {
        Ok(own) => own,
        Err(problem) => return fail(error::of_io(&problem)),
    };
    let old = Arc::clone(&id.channel().queue);
    store!(id.abi, channel = address_of(channel, own.as_ref()));
    let old_own = std::mem::replace(&mut *id.own_channel(), own);
    let state = id.state();
    if let Some(connection) = state.connection {
        let _ = id.adapter.own_connection(connection, id.hears());
    }
    if let Some(at) = state.listens_to {
        let _ = id.adapter.own_service(at, id.hears());
    }
    // All further events go to the new channel; pending ones are moved there.
    let address = id.address();
    for event in old.withdraw(|(of, _)| *of == address) {
        id.channel().queue.push(event);
    }
    if let Some(channel) = old_own {
        channel.free();
    }
    0
}

/// Sets an option. Effective are the type of service, the acknowledgement timeout, and sharing of the port. Other
/// options, like that for IPv6 alone, are accepted without effect.
///
/// # Safety
/// `length` bytes are at `value`.
#[unsafe(export_name = "selvedge_rdma_set_option")]
pub unsafe extern "C" fn set_option(
    id: Borrowed<'_, Id>,
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
    const WORD: usize = size_of::<c_int>();
    let value = match length {
        // SAFETY: as the caller promises.
        1 => unsafe { elements(value.cast::<u8>(), 1) },
        // SAFETY: as the caller promises.
        WORD => unsafe { elements(value.cast::<u8>(), WORD) },
        _ => None,
    };
    match (level, option, value) {
        (OF_IDENTIFIER, SHARES_PORT, Some(&[a, b, c, d])) => {
            id.change(|state| state.shares_port = c_int::from_ne_bytes([a, b, c, d]) != 0);
        }
        (OF_IDENTIFIER, TYPE_OF_SERVICE, Some(&[class])) => id.change(|state| state.traffic_class = class),
        (OF_IDENTIFIER, ACK_TIMEOUT, Some(&[timeout])) if timeout < 32 => {
            id.change(|state| state.ack_timeout = timeout);
        }
        (OF_IDENTIFIER, TYPE_OF_SERVICE | ACK_TIMEOUT, _) => return fail(libc::EINVAL),
        _ => {}
    }
    0
}

fn port_of(address: Option<SocketAddr>) -> u16 {
    address.map_or(0, |address| address.port().to_be())
}

#[unsafe(export_name = "selvedge_rdma_get_src_port")]
pub extern "C" fn get_src_port(id: Borrowed<'_, Id>) -> u16 {
    port_of(id.state().source)
}

#[unsafe(export_name = "selvedge_rdma_get_dst_port")]
pub extern "C" fn get_dst_port(id: Borrowed<'_, Id>) -> u16 {
    port_of(id.state().destination)
}
