//! Functions for addresses, routes and connections.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::slice;

use selvedge_dataplane::rnic::At;
use selvedge_nic::cm::{ConnectionId, Offer};
use selvedge_nic::verbs::Route;
use selvedge_units::{Psn, QpNumber};
use selvedge_wire::cm::{IpAddresses, Request};

use super::abi::{rdma_cm_id, rdma_conn_param};
use super::address;
use super::event::{fail, hears, kind};
use super::id::{DATAGRAM, Id, Peer, UDP, queue_of};
use super::{pair, port};
use crate::error;

/// The Q_Key of datagram queue pairs of this interface.
pub(super) const QKEY: u32 = 0x0123_4567;

fn service(space: c_int, port: u16) -> u64 {
    let services = if space == UDP { IpAddresses::UDP_SERVICES } else { IpAddresses::TCP_SERVICES };
    services | u64::from(port)
}

/// Returns a random number: an initial PSN, or the first candidate for a client's port.
pub(super) fn anything() -> u32 {
    let mut bytes = [0; 4];
    // SAFETY: four bytes.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 4, 0) };
    u32::from_ne_bytes(bytes)
}

#[unsafe(export_name = "selvedge_rdma_bind_addr")]
pub unsafe extern "C" fn bind_addr(id: *mut rdma_cm_id, to: *mut libc::sockaddr) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(mut source) = (unsafe { address::read(to) }) else { return fail(libc::EAFNOSUPPORT) };
    if inner.reserved.is_some() {
        return fail(libc::EINVAL);
    }
    match inner.claim(source) {
        Ok(port) => source.set_port(port),
        Err(problem) => return fail(error::of_io(&problem)),
    }
    inner.set_source(source);
    let chosen = address::is_any(source).and_then(|is_any| if is_any { Ok(()) } else { inner.choose_device() });
    chosen.map_or_else(|problem| fail(error::of_io(&problem)), |()| 0)
}

#[unsafe(export_name = "selvedge_rdma_listen")]
pub unsafe extern "C" fn listen(id: *mut rdma_cm_id, _backlog: c_int) -> c_int {
    let inner = unsafe { Id::of(id) };
    if inner.source.is_none() {
        let any: SocketAddr = ([0; 4], 0).into();
        let mut any = address::written(any);
        if unsafe { bind_addr(id, (&raw mut any).cast()) } != 0 {
            return -1;
        }
    }
    let Some(source) = inner.source else { return fail(libc::EINVAL) };
    let service = service(inner.abi.ps, source.port());
    let listened = port::listen(id.addr(), source.port()).and_then(|()| {
        let address = if address::is_any(source)? { None } else { Some(address::gid(&source)) };
        let at = At { service, address };
        inner.adapter.listen(at, inner.hears())?;
        inner.listens_to = Some(at);
        Ok(())
    });
    listened.map_or_else(|problem| fail(error::of_io(&problem)), |()| 0)
}

#[unsafe(export_name = "selvedge_rdma_resolve_addr")]
pub unsafe extern "C" fn resolve_addr(
    id: *mut rdma_cm_id,
    from: *mut libc::sockaddr,
    to: *mut libc::sockaddr,
    _timeout_ms: c_int,
) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(destination) = (unsafe { address::read(to) }) else { return fail(libc::EAFNOSUPPORT) };
    let given = unsafe { address::read(from) };
    // Linux binds the identifier to the source, and reports a failure at once.
    if let Some(source) = given.filter(|source| source.port() != 0 && inner.reserved.is_none())
        && let Err(problem) = inner.claim(source)
    {
        return fail(error::of_io(&problem));
    }
    let resolved = resolve(inner, given, destination);
    match resolved {
        Ok(()) => inner.tell(kind::ADDR_RESOLVED, 0),
        Err(problem) => {
            error::say(&format!("no way from an RDMA device of this host to {destination}: {problem}"));
            inner.tell(kind::ADDR_ERROR, -error::of_io(&problem));
        }
    }
    unsafe { inner.complete() }
}

/// Finds the route to an address: from the given source, from that of the identifier, or from any.
///
/// # Errors
/// Returns an error if no device leads there, or no port is left.
pub(super) fn resolve(inner: &mut Id, given: Option<SocketAddr>, destination: SocketAddr) -> io::Result<()> {
    let wanted = given.or(inner.source);
    let destination = address::beyond_loopback(destination)?;
    inner.set_destination(destination);
    let mut source = match wanted {
        Some(source) if !address::is_any(source)? => source,
        _ => address::source_towards(destination)?,
    };
    // A client may have any port, because nobody connects to it.
    source.set_port(match inner.reserved {
        Some(port) => port,
        None => inner.claim_any(source)?,
    });
    inner.set_source(source);
    inner.choose_device()
}

#[unsafe(export_name = "selvedge_rdma_resolve_route")]
pub unsafe extern "C" fn resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
    let inner = unsafe { Id::of(id) };
    if inner.route().is_none() {
        return fail(libc::EINVAL);
    }
    inner.abi.route.num_paths = 0;
    inner.tell(kind::ROUTE_RESOLVED, 0);
    unsafe { inner.complete() }
}

/// Returns this side's offer for a connection.
unsafe fn offer(inner: &mut Id, parameters: Option<&rdma_conn_param>) -> Offer {
    let number = if inner.abi.qp.is_null() {
        parameters.map_or(0, |parameters| parameters.qp_num)
    } else {
        // SAFETY: it was made for this identifier.
        unsafe { (*inner.abi.qp).qp_num }
    };
    let mut offer = Offer {
        qp: QpNumber(number & 0xff_ffff),
        psn: Psn::new(inner.psn),
        qkey: if inner.abi.qp_type == DATAGRAM { QKEY } else { 0 },
        responder_resources: 16,
        initiator_depth: 16,
        retries: 7,
        not_ready_retries: 7,
        ack_timeout: inner.ack_timeout,
        srq: !inner.abi.srq.is_null(),
        private: Vec::new(),
    };
    if let Some(given) = parameters {
        offer.responder_resources = given.responder_resources;
        offer.initiator_depth = given.initiator_depth;
        offer.retries = given.retry_count.min(7);
        offer.not_ready_retries = given.rnr_retry_count.min(7);
        offer.private = unsafe { bytes(given.private_data, given.private_data_len) };
    }
    inner.reads_answered = offer.responder_resources;
    inner.reads_asked = offer.initiator_depth;
    offer
}

unsafe fn bytes(from: *const c_void, length: u8) -> Vec<u8> {
    if from.is_null() || length == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(from.cast::<u8>(), length.into()) }.to_vec()
}

#[unsafe(export_name = "selvedge_rdma_connect")]
pub unsafe extern "C" fn connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    let inner = unsafe { Id::of(id) };
    let (Some(route), Some(destination), Some(source)) = (inner.route(), inner.destination, inner.source) else {
        return fail(libc::EINVAL);
    };
    let offer = unsafe { offer(inner, parameters.as_ref()) };
    // The retry count is for both sides: the accepting side cannot choose it.
    inner.retries = offer.retries;
    let service = service(inner.abi.ps, destination.port());
    let (port, mtu, is_datagram) = (source.port(), inner.mtu as u8, inner.abi.qp_type == DATAGRAM);
    let begun = inner.adapter.connect_for(inner.hears(), |manager, cx| {
        if is_datagram {
            manager.resolve(cx, route, service, port, &offer.private)
        } else {
            manager.connect(cx, route, service, port, mtu, &offer)
        }
    });
    match begun {
        Ok(connection) => inner.connection = Some(connection),
        Err(refusal) => return fail(error::of(refusal)),
    }
    unsafe { inner.complete() }
}

/// Creates an identifier, in the listener's channel, for a request for a connection.
pub(super) unsafe fn requested(
    listener: *mut Id,
    connection: ConnectionId,
    route: &Route,
    request: &Request,
) -> *mut Id {
    let new = unsafe { questioned(listener, connection, route, request.ip.port, request.service) };
    let inner = unsafe { &mut *new };
    inner.peer = Peer { qp: request.qp.0, psn: request.psn.get(), not_ready_retries: request.not_ready_retries };
    inner.retries = request.retries;
    inner.mtu = inner.mtu.min(c_int::from(request.mtu));
    new
}

/// Creates an identifier, in the listener's channel, for a request for a queue pair (service ID resolution).
pub(super) unsafe fn asked(listener: *mut Id, connection: ConnectionId, route: &Route, service: u64) -> *mut Id {
    unsafe { questioned(listener, connection, route, 0, service) }
}

unsafe fn questioned(listener: *mut Id, connection: ConnectionId, route: &Route, port: u16, service: u64) -> *mut Id {
    let listener = unsafe { &*listener };
    let (channel, context) = (listener.abi.channel, listener.abi.context);
    let mut new = Box::new(Id {
        abi: listener.abi,
        adapter: listener.adapter,
        source: None,
        destination: None,
        connection: Some(connection),
        listens_to: None,
        reserved: None,
        shares_port: false,
        peer: Peer::default(),
        psn: anything() & 0xff_ffff,
        reads_answered: 0,
        reads_asked: 0,
        retries: 7,
        mtu: 3,
        ack_timeout: listener.ack_timeout,
        traffic_class: listener.traffic_class,
        unacknowledged: crate::channel::Unacknowledged::default(),
        groups: Vec::new(),
        waits: false,
        endpoint: None,
    });
    (new.abi.channel, new.abi.context) = (channel, context);
    (new.abi.qp, new.abi.event) = (std::ptr::null_mut(), std::ptr::null_mut());
    new.set_source(address::socket_address(route.local, service as u16));
    new.set_destination(address::socket_address(route.remote, port));
    if let Err(problem) = new.choose_device() {
        error::say(&format!("a connection came for {}, which no device has: {problem}", route.local));
    }
    let hears = hears(&queue_of(listener), &*new);
    let _ = new.adapter.own_connection(connection, hears);
    Box::into_raw(new)
}

#[unsafe(export_name = "selvedge_rdma_accept")]
pub unsafe extern "C" fn accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(connection) = inner.connection else { return fail(libc::EINVAL) };
    let offer = unsafe { offer(inner, parameters.as_ref()) };
    if inner.abi.qp_type == DATAGRAM {
        let found = Some((offer.qp, QKEY));
        let told = inner.adapter.connect(|manager, cx| manager.answer(cx, connection, found, &offer.private));
        return if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) };
    }
    if !inner.abi.qp.is_null() {
        let errno = unsafe { pair::make_ready(inner) };
        if errno != 0 {
            return fail(errno);
        }
    }
    let told = inner.adapter.connect(|manager, cx| manager.accept(cx, connection, &offer));
    if !matches!(told, Ok(Ok(()))) {
        return fail(libc::EINVAL);
    }
    unsafe { inner.complete() }
}

/// Completes a connection after the other side's answer, where the application manages the queue pair itself.
#[unsafe(export_name = "selvedge_rdma_establish")]
pub unsafe extern "C" fn establish(id: *mut rdma_cm_id) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(connection) = inner.connection else { return fail(libc::EINVAL) };
    let told = inner.adapter.connect(|manager, cx| manager.ready(cx, connection));
    if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) }
}

#[unsafe(export_name = "selvedge_rdma_reject")]
pub unsafe extern "C" fn reject(id: *mut rdma_cm_id, private: *const c_void, length: u8) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(connection) = inner.connection else { return fail(libc::EINVAL) };
    let private = unsafe { bytes(private, length) };
    let is_datagram = inner.abi.qp_type == DATAGRAM;
    let told = inner.adapter.connect(|manager, cx| {
        if is_datagram {
            manager.answer(cx, connection, None, &private)
        } else {
            manager.reject(cx, connection, &private)
        }
    });
    if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) }
}

#[unsafe(export_name = "selvedge_rdma_reject_ece")]
pub unsafe extern "C" fn reject_ece(id: *mut rdma_cm_id, private: *const c_void, length: u8) -> c_int {
    unsafe { reject(id, private, length) }
}

#[unsafe(export_name = "selvedge_rdma_disconnect")]
pub unsafe extern "C" fn disconnect(id: *mut rdma_cm_id) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(connection) = inner.connection else { return fail(libc::EINVAL) };
    unsafe { pair::fail_all(inner) };
    // A failure means that the other side has ended the connection already, which has the wanted effect.
    let _ = inner.adapter.connect(|manager, cx| manager.disconnect(cx, connection));
    unsafe { inner.complete() }
}

/// Notes that the connection is established, because its first packet arrived before the message that says so.
#[unsafe(export_name = "selvedge_rdma_notify")]
pub unsafe extern "C" fn notify(id: *mut rdma_cm_id, _event: c_int) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(connection) = inner.connection else { return fail(libc::EINVAL) };
    let told = inner.adapter.connect(|manager, cx| manager.established(cx, connection));
    told.map_or_else(|refusal| fail(error::of(refusal)), |()| 0)
}
