//! Sockets over RDMA: a server and a client in two threads.

use std::ffi::{c_int, c_void};

use crate::c::zeros;
use crate::connections::loopback;

#[rustfmt::skip]
unsafe extern "C" {
    fn selvedge_rsocket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn selvedge_rbind(socket: c_int, to: *const libc::sockaddr, length: libc::socklen_t) -> c_int;
    fn selvedge_rlisten(socket: c_int, backlog: c_int) -> c_int;
    fn selvedge_raccept(socket: c_int, to: *mut libc::sockaddr, length: *mut libc::socklen_t) -> c_int;
    fn selvedge_rconnect(socket: c_int, to: *const libc::sockaddr, length: libc::socklen_t) -> c_int;
    fn selvedge_rgetsockname(socket: c_int, to: *mut libc::sockaddr, length: *mut libc::socklen_t) -> c_int;
    fn selvedge_rsend(socket: c_int, from: *const c_void, length: usize, flags: c_int) -> isize;
    fn selvedge_rwritev(socket: c_int, from: *const libc::iovec, count: c_int) -> isize;
    fn selvedge_rrecv(socket: c_int, to: *mut c_void, length: usize, flags: c_int) -> isize;
    fn selvedge_rpoll(descriptors: *mut libc::pollfd, count: libc::nfds_t, timeout_ms: c_int) -> c_int;
    fn selvedge_rclose(socket: c_int) -> c_int;
}

const LENGTH: usize = 300_000;

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

fn serve(listener: c_int) {
    let mut received = Vec::new();
    let mut room = vec![0_u8; 10_000];
    // SAFETY: the buffer is as long as it says.
    unsafe {
        let mut peer: libc::sockaddr_in = zeros();
        let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let socket = selvedge_raccept(listener, (&raw mut peer).cast(), &raw mut length);
        assert!(socket >= 0 && c_int::from(peer.sin_family) == libc::AF_INET);
        loop {
            let mut wanted = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
            assert_eq!(selvedge_rpoll(&raw mut wanted, 1, -1), 1);
            match selvedge_rrecv(socket, room.as_mut_ptr().cast(), room.len(), 0) {
                0 => break,
                got => received.extend_from_slice(&room[..usize::try_from(got).expect("no error")]),
            }
        }
        assert_eq!(selvedge_rclose(socket), 0);
    }
    assert_eq!(received.len(), LENGTH);
    assert!((0..LENGTH).all(|at| received[at] == byte(at)));
}

#[test]
fn bytes_arrive_in_order() {
    let mut bytes: Vec<u8> = (0..LENGTH).map(byte).collect();
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: addresses and buffers are as long as they say.
    unsafe {
        let [listener, socket] = [0, 1].map(|_| selvedge_rsocket(libc::AF_INET, libc::SOCK_STREAM, 0));
        let mut address = loopback(0);
        assert_eq!(selvedge_rbind(listener, (&raw const address).cast(), length), 0);
        assert_eq!(selvedge_rlisten(listener, 1), 0);
        let mut room = length;
        assert_eq!(selvedge_rgetsockname(listener, (&raw mut address).cast(), &raw mut room), 0);
        let server = std::thread::spawn(move || serve(listener));
        assert_eq!(selvedge_rconnect(socket, (&raw const address).cast(), length), 0);
        let (head, rest) = bytes.split_at_mut(1_000);
        let pieces = [&mut head[..10], &mut []]
            .map(|piece: &mut [u8]| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() });
        assert_eq!(selvedge_rwritev(socket, pieces.as_ptr(), 2), 10);
        let mut sent = 10;
        let all = [&head[..], rest].concat();
        while sent < LENGTH {
            let told = selvedge_rsend(socket, all[sent..].as_ptr().cast(), LENGTH - sent, 0);
            sent += usize::try_from(told).expect("no error");
        }
        assert_eq!(selvedge_rsend(socket, std::ptr::null(), 1, 0), -1, "no buffer");
        assert_eq!(selvedge_rclose(socket), 0);
        server.join().expect("the server is content");
        assert_eq!(selvedge_rclose(listener), 0);
    }
}
