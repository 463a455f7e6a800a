//! Functions for addresses, routes and connections.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;

use selvedge_dataplane::rnic::At;
use selvedge_nic::cm::{ConnectionId, Offer};
use selvedge_nic::verbs::Route;
use selvedge_units::{Psn, QpNumber};
use selvedge_wire::cm::{IpAddresses, Request};

use super::abi::rdma_conn_param;
use super::address::{self, CAddress};
use super::event::{fail, kind};
use super::id::{DATAGRAM, Id, Peer, State, UDP};
use super::{pair, port};
use crate::borrowed::{Borrowed, Given, elements, load, store};
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
    // SAFETY: four bytes are there.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 4, 0) };
    u32::from_ne_bytes(bytes)
}

#[unsafe(export_name = "selvedge_rdma_bind_addr")]
pub extern "C" fn bind_addr(inner: Borrowed<'_, Id>, to: CAddress<'_>) -> c_int {
    let Some(mut source) = to.read() else { return fail(libc::EAFNOSUPPORT) };
    if inner.state().reserved.is_some() {
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
pub extern "C" fn listen(inner: Borrowed<'_, Id>, _backlog: c_int) -> c_int {
    if inner.state().source.is_none() {
        let any: SocketAddr = ([0; 4], 0).into();
        if bind_addr(inner, CAddress::of(&address::written(any))) != 0 {
            return -1;
        }
    }
    let Some(source) = inner.state().source else { return fail(libc::EINVAL) };
    let service = service(load!(inner.abi, ps), source.port());
    let listened = port::listen(inner.address(), source.port()).and_then(|()| {
        let address = if address::is_any(source)? { None } else { Some(address::gid(&source)) };
        let at = At { service, address };
        inner.adapter.listen(at, inner.hears())?;
        inner.change(|state| state.listens_to = Some(at));
        Ok(())
    });
    listened.map_or_else(|problem| fail(error::of_io(&problem)), |()| 0)
}

#[unsafe(export_name = "selvedge_rdma_resolve_addr")]
pub extern "C" fn resolve_addr(
    inner: Borrowed<'_, Id>,
    from: CAddress<'_>,
    to: CAddress<'_>,
    _timeout_ms: c_int,
) -> c_int {
    let Some(destination) = to.read() else { return fail(libc::EAFNOSUPPORT) };
    let given = from.read();
    // Linux binds the identifier to the source, and reports a failure at once.
    if let Some(source) = given.filter(|source| source.port() != 0 && inner.state().reserved.is_none())
        && let Err(problem) = inner.claim(source)
    {
        return fail(error::of_io(&problem));
    }
    let resolved = resolve(&inner, given, destination);
    match resolved {
        Ok(()) => inner.tell(kind::ADDR_RESOLVED, 0),
        Err(problem) => {
            error::say(&format!("no way from an RDMA device of this host to {destination}: {problem}"));
            inner.tell(kind::ADDR_ERROR, -error::of_io(&problem));
        }
    }
    inner.complete()
}

/// Finds the route to an address: from the given source, from that of the identifier, or from any.
///
/// # Errors
/// Returns an error if no device leads there, or no port is left.
pub(super) fn resolve(inner: &Id, given: Option<SocketAddr>, destination: SocketAddr) -> io::Result<()> {
    let wanted = given.or(inner.state().source);
    let destination = address::beyond_loopback(destination)?;
    inner.set_destination(destination);
    let mut source = match wanted {
        Some(source) if !address::is_any(source)? => source,
        _ => address::source_towards(destination)?,
    };
    // A client may have any port, because nobody connects to it.
    source.set_port(match inner.state().reserved {
        Some(port) => port,
        None => inner.claim_any(source)?,
    });
    inner.set_source(source);
    inner.choose_device()
}

#[unsafe(export_name = "selvedge_rdma_resolve_route")]
pub extern "C" fn resolve_route(inner: Borrowed<'_, Id>, _timeout_ms: c_int) -> c_int {
    if inner.route().is_none() {
        return fail(libc::EINVAL);
    }
    store!(inner.abi, route.num_paths = 0);
    inner.tell(kind::ROUTE_RESOLVED, 0);
    inner.complete()
}

/// Returns this side's offer for a connection.
fn offer(inner: &Id, parameters: Option<Borrowed<'_, rdma_conn_param>>) -> Offer {
    let number = match inner.qp() {
        None => parameters.map_or(0, |parameters| parameters.qp_num),
        Some(qp) => qp.number.0,
    };
    let State { psn, ack_timeout, .. } = inner.state();
    let mut offer = Offer {
        qp: QpNumber(number & 0xff_ffff),
        psn: Psn::new(psn),
        qkey: if load!(inner.abi, qp_type) == DATAGRAM { QKEY } else { 0 },
        responder_resources: 16,
        initiator_depth: 16,
        retries: 7,
        not_ready_retries: 7,
        ack_timeout,
        srq: !load!(inner.abi, srq).is_null(),
        private: Vec::new(),
    };
    if let Some(given) = parameters {
        offer.responder_resources = given.responder_resources;
        offer.initiator_depth = given.initiator_depth;
        offer.retries = given.retry_count.min(7);
        offer.not_ready_retries = given.rnr_retry_count.min(7);
        // SAFETY: the program gives as many bytes as it says, or none.
        offer.private = unsafe { bytes(given.private_data, given.private_data_len) };
    }
    inner.change(|state| {
        (state.reads_answered, state.reads_asked) = (offer.responder_resources, offer.initiator_depth);
    });
    offer
}

/// Copies private data; none where the pointer is null.
///
/// # Safety
/// `length` bytes are there, or the pointer is null.
unsafe fn bytes(from: *const c_void, length: u8) -> Vec<u8> {
    // SAFETY: as the caller promises.
    unsafe { elements(from.cast::<u8>(), length.into()) }.unwrap_or_default().to_vec()
}

#[unsafe(export_name = "selvedge_rdma_connect")]
pub extern "C" fn connect(inner: Borrowed<'_, Id>, parameters: Option<Borrowed<'_, rdma_conn_param>>) -> c_int {
    let state = inner.state();
    let (Some(route), Some(destination), Some(source)) = (state.route(), state.destination, state.source) else {
        return fail(libc::EINVAL);
    };
    let offer = offer(&inner, parameters);
    // The retry count is for both sides: the accepting side cannot choose it.
    inner.change(|state| state.retries = offer.retries);
    let service = service(load!(inner.abi, ps), destination.port());
    let (port, mtu, is_datagram) = (source.port(), state.mtu as u8, load!(inner.abi, qp_type) == DATAGRAM);
    let begun = inner.adapter.connect_for(inner.hears(), |manager, cx| {
        if is_datagram {
            manager.resolve(cx, route, service, port, &offer.private)
        } else {
            manager.connect(cx, route, service, port, mtu, &offer)
        }
    });
    match begun {
        Ok(connection) => inner.change(|state| state.connection = Some(connection)),
        Err(refusal) => return fail(error::of(refusal)),
    }
    inner.complete()
}

/// Creates an identifier, in the listener's channel, for a request for a connection.
pub(super) fn requested(listener: &Id, connection: ConnectionId, route: &Route, request: &Request) -> Given<Id> {
    let new = questioned(listener, connection, route, request.ip.port, request.service);
    new.change(|state| {
        state.peer = Peer { qp: request.qp.0, psn: request.psn.get(), not_ready_retries: request.not_ready_retries };
        state.retries = request.retries;
        state.mtu = state.mtu.min(c_int::from(request.mtu));
    });
    new
}

/// Creates an identifier, in the listener's channel, for a request for a queue pair (service ID resolution).
pub(super) fn asked(listener: &Id, connection: ConnectionId, route: &Route, service: u64) -> Given<Id> {
    questioned(listener, connection, route, 0, service)
}

fn questioned(listener: &Id, connection: ConnectionId, route: &Route, port: u16, service: u64) -> Given<Id> {
    let mut abi = listener.abi.copied();
    (abi.qp, abi.event) = (std::ptr::null_mut(), std::ptr::null_mut());
    let State { ack_timeout, traffic_class, .. } = listener.state();
    let state = State { connection: Some(connection), ack_timeout, traffic_class, ..State::new() };
    let new = Id::new(abi, listener.adapter, state, None);
    new.set_source(address::socket_address(route.local, service as u16));
    new.set_destination(address::socket_address(route.remote, port));
    if let Err(problem) = new.choose_device() {
        error::say(&format!("a connection came for {}, which no device has: {problem}", route.local));
    }
    let _ = new.adapter.own_connection(connection, new.hears());
    new
}

#[unsafe(export_name = "selvedge_rdma_accept")]
pub extern "C" fn accept(inner: Borrowed<'_, Id>, parameters: Option<Borrowed<'_, rdma_conn_param>>) -> c_int {
    let Some(connection) = inner.state().connection else { return fail(libc::EINVAL) };
    let offer = offer(&inner, parameters);
    if load!(inner.abi, qp_type) == DATAGRAM {
        let found = Some((offer.qp, QKEY));
        let told = inner.adapter.connect(|manager, cx| manager.answer(cx, connection, found, &offer.private));
        return if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) };
    }
    if let Some(qp) = inner.qp() {
        let errno = pair::make_ready(&inner, qp);
        if errno != 0 {
            return fail(errno);
        }
    }
    let told = inner.adapter.connect(|manager, cx| manager.accept(cx, connection, &offer));
    if !matches!(told, Ok(Ok(()))) {
        return fail(libc::EINVAL);
    }
    inner.complete()
}

/// Completes a connection after the other side's answer, where the application manages the queue pair itself.
#[unsafe(export_name = "selvedge_rdma_establish")]
pub extern "C" fn establish(inner: Borrowed<'_, Id>) -> c_int {
    let Some(connection) = inner.state().connection else { return fail(libc::EINVAL) };
    let told = inner.adapter.connect(|manager, cx| manager.ready(cx, connection));
    if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) }
}

/// Refuses a connection request.
///
/// # Safety
/// `length` bytes are at `private`, or it is null.
#[unsafe(export_name = "selvedge_rdma_reject")]
pub unsafe extern "C" fn reject(inner: Borrowed<'_, Id>, private: *const c_void, length: u8) -> c_int {
    let Some(connection) = inner.state().connection else { return fail(libc::EINVAL) };
    // SAFETY: as the caller promises.
    let private = unsafe { bytes(private, length) };
    let is_datagram = load!(inner.abi, qp_type) == DATAGRAM;
    let told = inner.adapter.connect(|manager, cx| {
        if is_datagram {
            manager.answer(cx, connection, None, &private)
        } else {
            manager.reject(cx, connection, &private)
        }
    });
    if matches!(told, Ok(Ok(()))) { 0 } else { fail(libc::EINVAL) }
}

/// Refuses a connection request for want of options.
///
/// # Safety
/// `length` bytes are at `private`, or it is null.
#[unsafe(export_name = "selvedge_rdma_reject_ece")]
pub unsafe extern "C" fn reject_ece(id: Borrowed<'_, Id>, private: *const c_void, length: u8) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { reject(id, private, length) }
}

#[unsafe(export_name = "selvedge_rdma_disconnect")]
pub extern "C" fn disconnect(inner: Borrowed<'_, Id>) -> c_int {
    let Some(connection) = inner.state().connection else { return fail(libc::EINVAL) };
    pair::fail_all(&inner);
    // A failure means that the other side has ended the connection already, which has the wanted effect.
    let _ = inner.adapter.connect(|manager, cx| manager.disconnect(cx, connection));
    inner.complete()
}

/// Notes that the connection is established, because its first packet arrived before the message that says so.
#[unsafe(export_name = "selvedge_rdma_notify")]
pub extern "C" fn notify(inner: Borrowed<'_, Id>, _event: c_int) -> c_int {
    let Some(connection) = inner.state().connection else { return fail(libc::EINVAL) };
    let told = inner.adapter.connect(|manager, cx| manager.established(cx, connection));
    told.map_or_else(|refusal| fail(error::of(refusal)), |()| 0)
}
