//! Structures of devices and contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{Missing, ibv_mw_bind, ibv_recv_wr, ibv_send_wr, ibv_wc, structures};
use crate::borrowed::{Borrowed, Given, Out};
use crate::completion::Cq;
use crate::memory::Pd;
use crate::pair::Qp;
use crate::srq::Srq;
use crate::window::Window;

/// Function that posts a list of requests to a queue, and tells which one was refused.
pub(crate) type Post<Q, T> = extern "C" fn(Borrowed<'_, Q>, Option<Borrowed<'_, T>>, Option<Out<'_, *mut T>>) -> c_int;

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_gid {
    pub raw: [u8; 16],
    pub global: [u64; 2],
}

structures! {
    struct ibv_gid_entry {
        gid: ibv_gid,
        gid_index: u32,
        port_num: u32,
        gid_type: u32,
        ndev_ifindex: u32,
    }
    struct ibv_device {
        _ops: [Missing; 2],
        node_type: c_int,
        transport_type: c_int,
        name: [c_char; 64],
        dev_name: [c_char; 64],
        dev_path: [c_char; 256],
        ibdev_path: [c_char; 256],
    }
    struct ibv_context_ops {
        _compat_query_device: Missing,
        _compat_query_port: Missing,
        _compat_alloc_pd: Missing,
        _compat_dealloc_pd: Missing,
        _compat_reg_mr: Missing,
        _compat_rereg_mr: Missing,
        _compat_dereg_mr: Missing,
        alloc_mw: Option<extern "C" fn(Borrowed<'_, Pd>, c_int) -> Option<Given<Window>>>,
        bind_mw: Option<extern "C" fn(Borrowed<'_, Qp>, Borrowed<'_, Window>, Borrowed<'_, ibv_mw_bind>) -> c_int>,
        dealloc_mw: Option<extern "C" fn(Given<Window>) -> c_int>,
        _compat_create_cq: Missing,
        poll_cq: Option<unsafe extern "C" fn(Borrowed<'_, Cq>, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<extern "C" fn(Borrowed<'_, Cq>, c_int) -> c_int>,
        _compat_cq_event: Missing,
        _compat_resize_cq: Missing,
        _compat_destroy_cq: Missing,
        _compat_create_srq: Missing,
        _compat_modify_srq: Missing,
        _compat_query_srq: Missing,
        _compat_destroy_srq: Missing,
        post_srq_recv: Option<Post<Srq, ibv_recv_wr>>,
        _compat_create_qp: Missing,
        _compat_query_qp: Missing,
        _compat_modify_qp: Missing,
        _compat_destroy_qp: Missing,
        post_send: Option<Post<Qp, ibv_send_wr>>,
        post_recv: Option<Post<Qp, ibv_recv_wr>>,
        _compat_create_ah: Missing,
        _compat_destroy_ah: Missing,
        _compat_attach_mcast: Missing,
        _compat_detach_mcast: Missing,
        _compat_async_event: Missing,
    }
    struct ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: libc::pthread_mutex_t,
        abi_compat: *mut c_void,
    }
    struct ibv_device_attr {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: c_int,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }
    struct ibv_port_attr {
        state: c_int,
        max_mtu: c_int,
        active_mtu: c_int,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }
    struct ibv_pd {
        context: *mut ibv_context,
        handle: u32,
    }
    struct ibv_mr {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }
}

impl ibv_gid {
    pub fn octets(&self) -> [u8; 16] {
        // SAFETY: all bits mean something in either view.
        unsafe { self.raw }
    }
}
