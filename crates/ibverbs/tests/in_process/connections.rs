//! Connections by address and port: a server and a client in two threads.

use std::ffi::{c_int, c_void};
use std::ptr;

use selvedge_ibverbs::abi::ibv_qp_init_attr;

use crate::c::{said, zeros};

/// The beginning of C's `struct rdma_cm_id`.
#[repr(C)]
struct Id {
    verbs: *mut c_void,
    channel: *mut c_void,
    context: *mut c_void,
    qp: *mut c_void,
}

/// The beginning of C's `struct rdma_cm_event`, with the parameters of a connection.
#[repr(C)]
struct Event {
    id: *mut Id,
    listen_id: *mut Id,
    event: c_int,
    status: c_int,
    private: *const u8,
    private_length: u8,
}

/// C's `struct rdma_conn_param`.
#[repr(C)]
struct Parameters {
    private: *const u8,
    private_length: u8,
    responder_resources: u8,
    initiator_depth: u8,
    flow_control: u8,
    retry_count: u8,
    rnr_retry_count: u8,
    srq: u8,
    qp_num: u32,
}

#[rustfmt::skip]
unsafe extern "C" {
    fn selvedge_rdma_create_event_channel() -> *mut c_void;
    fn selvedge_rdma_destroy_event_channel(channel: *mut c_void);
    fn selvedge_rdma_create_id(channel: *mut c_void, to: *mut *mut Id, context: *mut c_void, space: c_int) -> c_int;
    fn selvedge_rdma_destroy_id(id: *mut Id) -> c_int;
    fn selvedge_rdma_bind_addr(id: *mut Id, to: *mut libc::sockaddr) -> c_int;
    fn selvedge_rdma_listen(id: *mut Id, backlog: c_int) -> c_int;
    fn selvedge_rdma_resolve_addr(id: *mut Id, from: *mut libc::sockaddr, to: *mut libc::sockaddr, ms: c_int) -> c_int;
    fn selvedge_rdma_resolve_route(id: *mut Id, ms: c_int) -> c_int;
    fn selvedge_rdma_create_qp(id: *mut Id, pd: *mut c_void, wanted: *mut ibv_qp_init_attr) -> c_int;
    fn selvedge_rdma_destroy_qp(id: *mut Id);
    fn selvedge_rdma_connect(id: *mut Id, parameters: *mut Parameters) -> c_int;
    fn selvedge_rdma_accept(id: *mut Id, parameters: *mut Parameters) -> c_int;
    fn selvedge_rdma_disconnect(id: *mut Id) -> c_int;
    fn selvedge_rdma_get_cm_event(channel: *mut c_void, to: *mut *mut Event) -> c_int;
    fn selvedge_rdma_ack_cm_event(event: *mut Event) -> c_int;
    fn selvedge_rdma_event_str(event: c_int) -> *const std::ffi::c_char;
    fn selvedge_rdma_get_src_port(id: *mut Id) -> u16;
    fn selvedge_rdma_migrate_id(id: *mut Id, channel: *mut c_void) -> c_int;
}

const TCP: c_int = 0x0106;
const RELIABLE: c_int = 2;

/// Returns the address of loopback, which leads to a device on every host.
pub(crate) fn loopback(port: u16) -> libc::sockaddr_in {
    let mut address: libc::sockaddr_in = zeros();
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

/// Takes an event, which must be of this kind; returns its identifier and the other side's data.
fn take(channel: *mut c_void, kind: &str) -> (*mut Id, Vec<u8>) {
    let mut event = ptr::null_mut();
    // SAFETY: the channel is this library's, and the event is there until it is acknowledged.
    unsafe {
        assert_eq!(selvedge_rdma_get_cm_event(channel, &raw mut event), 0);
        let Event { id, event: found, private, private_length, .. } = event.read();
        assert_eq!(said(selvedge_rdma_event_str(found)), kind);
        let private = match kind {
            "RDMA_CM_EVENT_CONNECT_REQUEST" | "RDMA_CM_EVENT_ESTABLISHED" if !private.is_null() => {
                std::slice::from_raw_parts(private, private_length.into()).to_vec()
            }
            _ => Vec::new(),
        };
        assert_eq!(selvedge_rdma_ack_cm_event(event), 0);
        (id, private)
    }
}

fn attributes() -> ibv_qp_init_attr {
    let mut wanted: ibv_qp_init_attr = zeros();
    wanted.qp_type = RELIABLE;
    (wanted.cap.max_send_wr, wanted.cap.max_recv_wr) = (4, 4);
    (wanted.cap.max_send_sge, wanted.cap.max_recv_sge) = (1, 1);
    wanted
}

fn parameters(private: &'static [u8]) -> Parameters {
    Parameters {
        private: private.as_ptr(),
        private_length: private.len() as u8,
        responder_resources: 1,
        initiator_depth: 1,
        flow_control: 0,
        retry_count: 7,
        rnr_retry_count: 7,
        srq: 0,
        qp_num: 0,
    }
}

fn serve(channel: usize) {
    let channel = ptr::with_exposed_provenance_mut::<c_void>(channel);
    // SAFETY: the steps of a server, on this library's objects.
    unsafe {
        let (new, private) = take(channel, "RDMA_CM_EVENT_CONNECT_REQUEST");
        assert_eq!((private.get(..5), (*new).context.addr()), (Some(&b"hello"[..]), 5));
        assert_eq!(selvedge_rdma_create_qp(new, ptr::null_mut(), &mut attributes()), 0);
        assert_eq!(selvedge_rdma_accept(new, &mut parameters(b"welcome")), 0);
        take(channel, "RDMA_CM_EVENT_ESTABLISHED");
        take(channel, "RDMA_CM_EVENT_DISCONNECTED");
        selvedge_rdma_disconnect(new);
        selvedge_rdma_destroy_qp(new);
        assert_eq!(selvedge_rdma_destroy_id(new), 0);
    }
}

#[test]
fn a_server_and_a_client_connect_and_part() {
    // SAFETY: the steps of a client, on this library's objects.
    unsafe {
        let (channel, mut listener) = (selvedge_rdma_create_event_channel(), ptr::null_mut());
        let context = ptr::without_provenance_mut(5);
        assert_eq!(selvedge_rdma_create_id(channel, &raw mut listener, context, TCP), 0);
        assert_eq!(selvedge_rdma_bind_addr(listener, ptr::from_mut(&mut loopback(0)).cast()), 0);
        assert_eq!(selvedge_rdma_listen(listener, 1), 0);
        let port = u16::from_be(selvedge_rdma_get_src_port(listener));
        let served = channel.expose_provenance();
        let server = std::thread::spawn(move || serve(served));

        let (own, mut id) = (selvedge_rdma_create_event_channel(), ptr::null_mut());
        assert_eq!(selvedge_rdma_create_id(own, &raw mut id, ptr::null_mut(), TCP), 0);
        assert_eq!(selvedge_rdma_bind_addr(id, ptr::null_mut()), -1, "no address");
        let mut there = loopback(port);
        assert_eq!(selvedge_rdma_resolve_addr(id, ptr::null_mut(), (&raw mut there).cast(), 1_000), 0);
        take(own, "RDMA_CM_EVENT_ADDR_RESOLVED");
        assert_eq!(selvedge_rdma_resolve_route(id, 1_000), 0);
        take(own, "RDMA_CM_EVENT_ROUTE_RESOLVED");
        assert_eq!(selvedge_rdma_create_qp(id, ptr::null_mut(), &mut attributes()), 0);
        assert!(!(*id).qp.is_null());
        assert_eq!(selvedge_rdma_connect(id, &mut parameters(b"hello")), 0);
        let (_, private) = take(own, "RDMA_CM_EVENT_ESTABLISHED");
        assert_eq!(private.get(..7), Some(&b"welcome"[..]));
        assert_eq!(selvedge_rdma_disconnect(id), 0);
        take(own, "RDMA_CM_EVENT_DISCONNECTED");
        server.join().expect("the server is content");
        selvedge_rdma_destroy_qp(id);
        assert!((*id).qp.is_null());
        for id in [id, listener] {
            assert_eq!(selvedge_rdma_destroy_id(id), 0);
        }
        for channel in [own, channel] {
            selvedge_rdma_destroy_event_channel(channel);
        }
    }
}

#[test]
fn an_identifier_without_a_channel_waits_and_can_move_to_one() {
    // SAFETY: the steps of a program, on this library's objects.
    unsafe {
        let mut id = ptr::null_mut();
        assert_eq!(selvedge_rdma_create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), TCP), 0);
        let mut there = loopback(9);
        assert_eq!(selvedge_rdma_resolve_addr(id, ptr::null_mut(), (&raw mut there).cast(), 1_000), 0);
        let channel = selvedge_rdma_create_event_channel();
        assert_eq!(selvedge_rdma_migrate_id(id, channel), 0);
        assert_eq!(selvedge_rdma_resolve_route(id, 1_000), 0);
        take(channel, "RDMA_CM_EVENT_ROUTE_RESOLVED");
        assert_eq!(selvedge_rdma_migrate_id(id, ptr::null_mut()), 0);
        assert_eq!(selvedge_rdma_resolve_route(id, 1_000), 0);
        selvedge_rdma_destroy_event_channel(channel);
        assert_eq!(selvedge_rdma_destroy_id(id), 0);
    }
}
