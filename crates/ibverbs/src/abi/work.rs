//! Structures of work requests.

use std::ffi::{c_int, c_uint, c_void};

use super::{ibv_ah, ibv_context, ibv_mr, ibv_pd, structures};
use crate::borrowed::Linked;

structures! {
    struct ibv_sge {
        addr: u64,
        length: u32,
        lkey: u32,
    }
    struct ibv_data_buf {
        addr: *mut c_void,
        length: usize,
    }
    struct ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }
    struct ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: c_int,
        send_flags: c_uint,
        imm_data: u32,
        wr: send_target,
        qp_type: [u32; 2],
        bind_mw: bind_target,
    }
    struct ibv_mw {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        rkey: u32,
        handle: u32,
        type_: c_int,
    }
    struct ibv_mw_bind_info {
        mr: *mut ibv_mr,
        addr: u64,
        length: u64,
        mw_access_flags: c_uint,
    }
    struct ibv_mw_bind {
        wr_id: u64,
        send_flags: c_uint,
        bind_info: ibv_mw_bind_info,
    }
}

// SAFETY: verbs.h has the contract: a list of requests is passed by its first.
unsafe impl Linked for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}
// SAFETY: verbs.h has the contract: a list of requests is passed by its first.
unsafe impl Linked for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

/// The target of a request; the opcode and the type of the queue pair select the member.
#[repr(C)]
#[derive(Clone, Copy)]
pub union send_target {
    pub rdma: rdma_target,
    pub atomic: atomic_target,
    pub ud: datagram_target,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rdma_target {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct atomic_target {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct datagram_target {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bind_target {
    pub mw: *mut ibv_mw,
    pub rkey: u32,
    pub bind_info: ibv_mw_bind_info,
}
