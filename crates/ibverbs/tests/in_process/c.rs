//! The functions of verbs.h and rdma_cma.h as C declares them, and small steps that every program needs.
#![allow(clashing_extern_declarations, reason = "C's types have the library's layouts, and other names")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use selvedge_ibverbs::abi::*;

#[rustfmt::skip]
unsafe extern "C" {
    pub(crate) fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    pub(crate) fn ibv_free_device_list(list: *mut *mut ibv_device);
    pub(crate) fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    pub(crate) fn ibv_close_device(context: *mut ibv_context) -> c_int;
    pub(crate) fn ibv_query_port(context: *mut ibv_context, port: u8, to: *mut ibv_port_attr) -> c_int;
    pub(crate) fn ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, to: *mut ibv_gid) -> c_int;
    pub(crate) fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    pub(crate) fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    pub(crate) fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, flags: c_int) -> *mut ibv_mr;
    pub(crate) fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
    pub(crate) fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    pub(crate) fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    pub(crate) fn ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, of: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int,
    ) -> *mut ibv_cq;
    pub(crate) fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
    pub(crate) fn ibv_get_cq_event(channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, of: *mut *mut c_void) -> c_int;
    pub(crate) fn ibv_ack_cq_events(cq: *mut ibv_cq, events: c_uint);
    pub(crate) fn ibv_create_srq(pd: *mut ibv_pd, wanted: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    pub(crate) fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
    pub(crate) fn ibv_create_qp(pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    pub(crate) fn ibv_modify_qp(qp: *mut ibv_qp, wanted: *mut ibv_qp_attr, mask: c_int) -> c_int;
    pub(crate) fn ibv_query_qp(qp: *mut ibv_qp, to: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr) -> c_int;
    pub(crate) fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    pub(crate) fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
    pub(crate) fn ibv_create_ah(pd: *mut ibv_pd, wanted: *mut ibv_ah_attr) -> *mut ibv_ah;
    pub(crate) fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
    pub(crate) fn ibv_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
}

/// Looks a function of a structure up, with C's type for it.
macro_rules! function {
    ($table:expr, $field:ident: fn($($kind:ty),*) $(-> $told:ty)?) => {{
        #[allow(unused_unsafe, reason = "the macro is used in unsafe blocks, too")]
        // SAFETY: the program has the structure from the library.
        let function = unsafe { (*$table).$field }.expect(stringify!($field));
        #[allow(unused_unsafe, reason = "the macro is used in unsafe blocks, too")]
        // SAFETY: the types are those of verbs.h; pointers of all kinds are passed alike.
        let function = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn($($kind),*) $(-> $told)?>(function as *const ()) };
        function
    }};
}
pub(crate) use function;

/// Returns a structure of zeros, as `memset` makes it.
pub(crate) fn zeros<T>() -> T {
    // SAFETY: the tests ask for structures of verbs.h alone, all of which may be zero.
    unsafe { std::mem::zeroed() }
}

/// Rights of memory regions: local and remote writes, remote reads and Atomics, windows.
pub(crate) const ALL: c_int = 0b1_1111;

/// An open device, with a protection domain and a completion queue that has a channel.
pub(crate) struct Opened {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) channel: *mut ibv_comp_channel,
    pub(crate) cq: *mut ibv_cq,
    gid: ibv_gid,
}

impl Opened {
    /// Opens the first device whose port is active.
    pub(crate) fn new() -> Self {
        const ACTIVE: c_int = 4;
        // SAFETY: the steps of every program, on this library's objects.
        unsafe {
            let mut count = -1;
            let list = ibv_get_device_list(&raw mut count);
            assert!(!list.is_null() && count > 0, "every host has a device, loopback at least");
            let mut at = 0;
            let context = loop {
                assert!(at < count as usize, "a port is active");
                let context = ibv_open_device(*list.add(at));
                let mut port: ibv_port_attr = zeros();
                assert_eq!(ibv_query_port(context, 1, &raw mut port), 0);
                if port.state == ACTIVE {
                    break context;
                }
                assert_eq!(ibv_close_device(context), 0);
                at += 1;
            };
            ibv_free_device_list(list);
            let mut gid: ibv_gid = zeros();
            assert_eq!(ibv_query_gid(context, 1, 1, &raw mut gid), 0);
            let (pd, channel) = (ibv_alloc_pd(context), ibv_create_comp_channel(context));
            let cq = ibv_create_cq(context, 64, ptr::without_provenance_mut(7), channel, 0);
            assert!(!pd.is_null() && !channel.is_null() && !cq.is_null());
            Self { context, pd, channel, cq, gid }
        }
    }

    /// Creates a queue pair of a type of `enum ibv_qp_type`.
    pub(crate) fn pair(&self, kind: c_int, srq: *mut ibv_srq) -> *mut ibv_qp {
        let mut wanted: ibv_qp_init_attr = zeros();
        (wanted.send_cq, wanted.recv_cq, wanted.srq, wanted.qp_type) = (self.cq, self.cq, srq, kind);
        (wanted.cap.max_send_wr, wanted.cap.max_recv_wr) = (16, 16);
        (wanted.cap.max_send_sge, wanted.cap.max_recv_sge, wanted.cap.max_inline_data) = (4, 4, 64);
        // SAFETY: the domain and the queues are this library's.
        let qp = unsafe { ibv_create_qp(self.pd, &raw mut wanted) };
        assert!(!qp.is_null());
        qp
    }

    /// Returns the attributes of the way to this device.
    pub(crate) fn way(&self) -> ibv_ah_attr {
        let mut way: ibv_ah_attr = zeros();
        (way.is_global, way.port_num) = (1, 1);
        (way.grh.dgid, way.grh.sgid_index, way.grh.hop_limit) = (self.gid, 1, 64);
        way
    }

    /// Connects a queue pair to one of the same process.
    pub(crate) fn connect(&self, qp: *mut ibv_qp, to: *mut ibv_qp) {
        let mut wanted: ibv_qp_attr = zeros();
        // SAFETY: both queue pairs are this library's.
        unsafe {
            (wanted.qp_state, wanted.port_num, wanted.qp_access_flags) = (1, 1, 0b1111);
            assert_eq!(ibv_modify_qp(qp, &raw mut wanted, 1 | 1 << 3 | 1 << 4 | 1 << 5), 0);
            (wanted.qp_state, wanted.path_mtu, wanted.dest_qp_num) = (2, 3, (*to).qp_num);
            (wanted.max_dest_rd_atomic, wanted.ah_attr) = (4, self.way());
            let mask = 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20;
            assert_eq!(ibv_modify_qp(qp, &raw mut wanted, mask), 0);
            (wanted.qp_state, wanted.timeout, wanted.retry_cnt, wanted.rnr_retry) = (3, 14, 7, 7);
            wanted.max_rd_atomic = 4;
            assert_eq!(ibv_modify_qp(qp, &raw mut wanted, 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16), 0);
            assert_eq!((*qp).state, 3);
        }
    }

    /// Waits for completions; returns them in order of arrival.
    pub(crate) fn wait(&self, count: usize) -> Vec<ibv_wc> {
        let poll = function!(&raw const (*self.context).ops, poll_cq: fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int);
        let mut all: Vec<ibv_wc> = Vec::new();
        let mut room: [ibv_wc; 4] = zeros();
        while all.len() < count {
            // SAFETY: there is room for four.
            let found = unsafe { poll(self.cq, 4, room.as_mut_ptr()) };
            all.extend(&room[..usize::try_from(found).expect("no error")]);
            std::thread::yield_now();
        }
        assert_eq!(all.len(), count);
        all
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the program has destroyed the other objects.
        unsafe {
            assert_eq!(ibv_destroy_cq(self.cq), 0);
            assert_eq!(ibv_destroy_comp_channel(self.channel), 0);
            assert_eq!(ibv_dealloc_pd(self.pd), 0);
            assert_eq!(ibv_close_device(self.context), 0);
        }
    }
}

/// Registered memory of the program.
pub(crate) struct Memory {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) mr: *mut ibv_mr,
}

impl Memory {
    pub(crate) fn new(opened: &Opened, length: usize) -> Self {
        let mut bytes = vec![0_u8; length].into_boxed_slice();
        // SAFETY: the memory is the program's, until the region is deregistered.
        let mr = unsafe { ibv_reg_mr(opened.pd, bytes.as_mut_ptr().cast(), length, ALL) };
        assert!(!mr.is_null());
        Self { bytes, mr }
    }
    pub(crate) fn piece(&self, at: usize, length: u32) -> ibv_sge {
        // SAFETY: the region is this library's.
        let lkey = unsafe { (*self.mr).lkey };
        ibv_sge { addr: self.bytes.as_ptr().expose_provenance() as u64 + at as u64, length, lkey }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the region is this library's.
        assert_eq!(unsafe { ibv_dereg_mr(self.mr) }, 0);
    }
}

/// Returns a C string.
pub(crate) fn text(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).expect("no zeros")
}

/// Returns the text of a C string.
pub(crate) fn said(text: *const c_char) -> String {
    // SAFETY: the library returns C strings.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
