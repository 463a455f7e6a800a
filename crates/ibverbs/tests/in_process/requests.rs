//! Lists of work requests, requests built field by field, windows, and events.

use std::ffi::{c_int, c_void};
use std::ptr;

use selvedge_ibverbs::abi::*;

use crate::c::*;

const RELIABLE: c_int = 2;
const DATAGRAM: c_int = 4;
const SIGNALED: u32 = 1 << 1;
const INLINE: u32 = 1 << 3;

type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;

fn post_send(opened: &Opened) -> PostSend {
    function!(
        &raw const (*opened.context).ops,
        post_send: fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int
    )
}

fn request(id: u64, opcode: c_int, pieces: &mut [ibv_sge]) -> ibv_send_wr {
    let mut wr: ibv_send_wr = zeros();
    (wr.wr_id, wr.opcode, wr.send_flags) = (id, opcode, SIGNALED);
    (wr.sg_list, wr.num_sge) = (pieces.as_mut_ptr(), pieces.len() as c_int);
    wr
}

#[test]
fn lists_are_posted_up_to_the_request_that_is_refused() {
    const WRITE: c_int = 0;
    const SEND: c_int = 2;
    const NOTHING: c_int = 77;
    let opened = Opened::new();
    let memory = Memory::new(&opened, 4_096);
    let [first, second] = [0, 1].map(|_| opened.pair(RELIABLE, ptr::null_mut()));
    opened.connect(first, second);
    opened.connect(second, first);
    let (mut from, mut to) = ([memory.piece(0, 8), memory.piece(8, 8)], [memory.piece(2_048, 64)]);
    // SAFETY: the lists end, and live until they are posted.
    unsafe {
        (*memory.bytes.as_ptr().cast_mut().cast::<[u8; 16]>()) = *b"sixteen bytes...";
        let post_recv = function!(
            &raw const (*opened.context).ops,
            post_recv: fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int
        );
        let (sg_list, num_sge) = (to.as_mut_ptr(), 1);
        let mut last = ibv_recv_wr { wr_id: 11, next: ptr::null_mut(), sg_list, num_sge };
        let mut receive = ibv_recv_wr { wr_id: 10, next: &raw mut last, sg_list, num_sge };
        let mut refused_receive = ptr::null_mut();
        assert_eq!(post_recv(second, &raw mut receive, &raw mut refused_receive), 0);

        let mut unknown = request(3, NOTHING, &mut from);
        let mut send = request(2, SEND, &mut from);
        send.send_flags |= INLINE;
        send.next = &raw mut unknown;
        let mut write = request(1, WRITE, &mut from);
        write.next = &raw mut send;
        write.wr.rdma = rdma_target { remote_addr: memory.piece(1_024, 0).addr, rkey: (*memory.mr).rkey };
        let mut refused = ptr::null_mut();
        assert_eq!(post_send(&opened)(first, &raw mut write, &raw mut refused), libc::EINVAL);
        assert!(ptr::eq(refused, &raw const unknown), "the third is refused");

        let mut ids: Vec<_> = opened.wait(3).iter().map(|wc| (wc.status, wc.wr_id)).collect();
        ids.sort_unstable();
        assert_eq!(ids, [(0, 1), (0, 2), (0, 10)]);
        assert_eq!(&memory.bytes[1_024..1_040], b"sixteen bytes...");
        assert_eq!(&memory.bytes[2_048..2_064], b"sixteen bytes...");

        // Refused without a place to tell which; and a list that is empty.
        assert_eq!(post_send(&opened)(first, &raw mut unknown, ptr::null_mut()), libc::EINVAL);
        assert_eq!(post_send(&opened)(first, ptr::null_mut(), &raw mut refused), 0);
        let (mut now, mut init) = (zeros(), zeros());
        assert_eq!(ibv_query_qp(first, &raw mut now, 0, &raw mut init), 0);
        assert_eq!((now.dest_qp_num, init.send_cq), ((*second).qp_num, opened.cq));
        for qp in [first, second] {
            assert_eq!(ibv_destroy_qp(qp), 0);
        }
    }
}

#[test]
fn null_pointers_are_refused_where_verbs_permits_them() {
    let opened = Opened::new();
    let qp = opened.pair(DATAGRAM, ptr::null_mut());
    // SAFETY: every null pointer is one that a program may pass.
    unsafe {
        assert_eq!(ibv_attach_mcast(qp, ptr::null(), 0), libc::EINVAL);
        let mut refused = ptr::null_mut();
        let mut without_address = request(1, 2, &mut []);
        assert_eq!(post_send(&opened)(qp, &raw mut without_address, &raw mut refused), libc::EINVAL);
        let mut without_list = request(1, 2, &mut []);
        (without_list.sg_list, without_list.num_sge) = (ptr::null_mut(), 1);
        without_list.wr.ud.ah = ibv_create_ah(opened.pd, &mut opened.way());
        assert_eq!(post_send(&opened)(qp, &raw mut without_list, &raw mut refused), libc::EINVAL);
        assert_eq!(ibv_destroy_ah(without_list.wr.ud.ah), 0);
        let mut without_queues: ibv_qp_init_attr = zeros();
        without_queues.qp_type = RELIABLE;
        assert!(ibv_create_qp(opened.pd, &raw mut without_queues).is_null());
        let mut without_domain: ibv_srq_init_attr_ex = zeros();
        without_domain.comp_mask = 1 << 1;
        let extended = opened.context.byte_sub(std::mem::offset_of!(verbs_context, context)).cast::<verbs_context>();
        let create = function!(
            extended, create_srq_ex: fn(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq
        );
        assert!(create(opened.context, &raw mut without_domain).is_null());
        assert_eq!(ibv_destroy_qp(qp), 0);
    }
}

#[test]
fn requests_are_built_field_by_field() {
    let opened = Opened::new();
    let memory = Memory::new(&opened, 4_096);
    let mut wanted: ibv_srq_init_attr = zeros();
    (wanted.attr.max_wr, wanted.attr.max_sge) = (4, 1);
    // SAFETY: the steps of a program, on this library's objects.
    unsafe {
        let srq = ibv_create_srq(opened.pd, &raw mut wanted);
        let extended = opened.context.byte_sub(std::mem::offset_of!(verbs_context, context)).cast::<verbs_context>();
        let create = function!(extended, create_qp_ex: fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp);
        let mut all: ibv_qp_init_attr_ex = zeros();
        (all.send_cq, all.recv_cq, all.qp_type) = (opened.cq, opened.cq, RELIABLE);
        (all.cap.max_send_wr, all.cap.max_send_sge, all.cap.max_inline_data) = (16, 4, 64);
        (all.comp_mask, all.pd, all.send_ops_flags) = (1 | 1 << 6, opened.pd, 0b1111);
        let first = create(opened.context, &raw mut all);
        let second = opened.pair(RELIABLE, srq);
        opened.connect(first, second);
        opened.connect(second, first);
        let post_srq = function!(
            &raw const (*opened.context).ops,
            post_srq_recv: fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int
        );
        let mut piece = memory.piece(2_048, 64);
        let mut receive = ibv_recv_wr { wr_id: 10, next: ptr::null_mut(), sg_list: &raw mut piece, num_sge: 1 };
        assert_eq!(post_srq(srq, &raw mut receive, ptr::null_mut()), 0);

        let qp = ibv_qp_to_qp_ex(first);
        assert!(ibv_qp_to_qp_ex(second).is_null());
        let start = function!(qp, wr_start: fn(*mut ibv_qp_ex));
        let complete = function!(qp, wr_complete: fn(*mut ibv_qp_ex) -> c_int);
        let write = function!(qp, wr_rdma_write: fn(*mut ibv_qp_ex, u32, u64));
        let send = function!(qp, wr_send_imm: fn(*mut ibv_qp_ex, u32));
        let set = function!(qp, wr_set_inline_data_list: fn(*mut ibv_qp_ex, usize, *const ibv_data_buf));
        let set_pieces = function!(qp, wr_set_sge_list: fn(*mut ibv_qp_ex, usize, *const ibv_sge));
        let (mut here, mut there) = (*b"one ", *b"two");
        let parts = [
            ibv_data_buf { addr: here.as_mut_ptr().cast::<c_void>(), length: 4 },
            ibv_data_buf { addr: there.as_mut_ptr().cast::<c_void>(), length: 3 },
        ];
        start(qp);
        ((*qp).wr_id, (*qp).wr_flags) = (1, SIGNALED);
        write(qp, (*memory.mr).rkey, memory.piece(1_024, 0).addr);
        set(qp, 2, parts.as_ptr());
        (*qp).wr_id = 2;
        send(qp, 5_u32.to_be());
        set_pieces(qp, 0, ptr::null());
        assert_eq!(complete(qp), 0);
        let mut ids: Vec<_> = opened.wait(3).iter().map(|wc| (wc.status, wc.wr_id)).collect();
        ids.sort_unstable();
        assert_eq!(ids, [(0, 1), (0, 2), (0, 10)]);
        assert_eq!(&memory.bytes[1_024..1_031], b"one two");
        start(qp);
        set_pieces(qp, 0, ptr::null());
        assert_eq!(complete(qp), libc::EINVAL, "pieces of no request");
        for pair in [first, second] {
            assert_eq!(ibv_destroy_qp(pair), 0);
        }
        assert_eq!(ibv_destroy_srq(srq), 0);
    }
}

#[test]
fn windows_open_a_part_of_a_region() {
    const TYPE_2: c_int = 2;
    const BIND: c_int = 8;
    let opened = Opened::new();
    let memory = Memory::new(&opened, 4_096);
    let [first, second] = [0, 1].map(|_| opened.pair(RELIABLE, ptr::null_mut()));
    opened.connect(first, second);
    opened.connect(second, first);
    // SAFETY: the steps of a program, on this library's objects.
    unsafe {
        let ops = &raw const (*opened.context).ops;
        let mw = function!(ops, alloc_mw: fn(*mut ibv_pd, c_int) -> *mut ibv_mw)(opened.pd, TYPE_2);
        assert!(!mw.is_null());
        let mut bind = request(1, BIND, &mut []);
        bind.bind_mw.mw = mw;
        bind.bind_mw.rkey = (*mw).rkey + 1;
        let piece = memory.piece(1_024, 64);
        bind.bind_mw.bind_info =
            ibv_mw_bind_info { mr: memory.mr, addr: piece.addr, length: 64, mw_access_flags: 0b10 };
        assert_eq!(post_send(&opened)(second, &raw mut bind, ptr::null_mut()), 0);
        assert_eq!(opened.wait(1)[0].status, 0);
        let mut from = [memory.piece(0, 4)];
        let mut write = request(2, 0, &mut from);
        write.wr.rdma = rdma_target { remote_addr: piece.addr, rkey: bind.bind_mw.rkey };
        assert_eq!(post_send(&opened)(first, &raw mut write, ptr::null_mut()), 0);
        assert_eq!(opened.wait(1)[0].status, 0);
        assert_eq!(function!(ops, dealloc_mw: fn(*mut ibv_mw) -> c_int)(mw), 0);
        for pair in [first, second] {
            assert_eq!(ibv_destroy_qp(pair), 0);
        }
    }
}

#[test]
fn a_thread_waits_for_completions_while_another_posts() {
    let opened = Opened::new();
    let memory = Memory::new(&opened, 4_096);
    let [first, second] = [0, 1].map(|_| opened.pair(RELIABLE, ptr::null_mut()));
    opened.connect(first, second);
    opened.connect(second, first);
    let notify = function!(&raw const (*opened.context).ops, req_notify_cq: fn(*mut ibv_cq, c_int) -> c_int);
    // SAFETY: the completion queue is this library's.
    assert_eq!(unsafe { notify(opened.cq, 0) }, 0);
    let channel = opened.channel.expose_provenance();
    let waiting = std::thread::spawn(move || {
        let (mut cq, mut of) = (ptr::null_mut::<ibv_cq>(), ptr::null_mut());
        // SAFETY: the channel outlives the thread.
        let told = unsafe { ibv_get_cq_event(ptr::with_exposed_provenance_mut(channel), &raw mut cq, &raw mut of) };
        // SAFETY: the event was taken.
        unsafe { ibv_ack_cq_events(cq, 1) };
        (told, cq.addr(), of.addr())
    });
    let mut from = [memory.piece(0, 4)];
    let mut write = request(1, 0, &mut from);
    // SAFETY: the steps of a program, on this library's objects.
    unsafe {
        write.wr.rdma = rdma_target { remote_addr: memory.piece(1_024, 0).addr, rkey: (*memory.mr).rkey };
        assert_eq!(post_send(&opened)(first, &raw mut write, ptr::null_mut()), 0);
    }
    assert_eq!(waiting.join().expect("the thread ends"), (0, opened.cq.addr(), 7));
    assert_eq!(opened.wait(1)[0].status, 0);
    for pair in [first, second] {
        // SAFETY: the queue pair is this library's.
        assert_eq!(unsafe { ibv_destroy_qp(pair) }, 0);
    }
}
