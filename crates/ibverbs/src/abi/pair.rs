//! Structures of queue pairs, shared receive queues and addresses.

use std::ffi::{c_int, c_uint, c_void};

use super::{Missing, ibv_context, ibv_cq, ibv_data_buf, ibv_gid, ibv_mw_bind_info, ibv_pd, ibv_sge, structures};
use crate::address::Ah;
use crate::borrowed::Borrowed;
use crate::pair::Qp;
use crate::window::Window;

type Of<T> = Option<T>;

structures! {
    struct ibv_global_route {
        dgid: ibv_gid,
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
    }
    struct ibv_grh {
        version_tclass_flow: u32,
        paylen: u16,
        next_hdr: u8,
        hop_limit: u8,
        sgid: ibv_gid,
        dgid: ibv_gid,
    }
    struct ibv_ah_attr {
        grh: ibv_global_route,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }
    struct ibv_ah {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        handle: u32,
    }
    struct ibv_srq_attr {
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }
    struct ibv_srq_init_attr {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
    }
    struct ibv_srq_init_attr_ex {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
        comp_mask: u32,
        srq_type: c_int,
        pd: *mut ibv_pd,
        xrcd: *mut c_void,
        cq: *mut ibv_cq,
        tm_cap: [u32; 2],
    }
    struct ibv_srq {
        context: *mut ibv_context,
        srq_context: *mut c_void,
        pd: *mut ibv_pd,
        handle: u32,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        events_completed: u32,
    }
    struct ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }
    struct ibv_qp_init_attr {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: c_int,
        sq_sig_all: c_int,
    }
    struct ibv_rx_hash_conf {
        rx_hash_function: u8,
        rx_hash_key_len: u8,
        rx_hash_key: *mut u8,
        rx_hash_fields_mask: u64,
    }
    struct ibv_qp_init_attr_ex {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: c_int,
        sq_sig_all: c_int,
        comp_mask: u32,
        pd: *mut ibv_pd,
        xrcd: *mut c_void,
        create_flags: u32,
        max_tso_header: u16,
        rwq_ind_tbl: *mut c_void,
        rx_hash_conf: ibv_rx_hash_conf,
        source_qpn: u32,
        send_ops_flags: u64,
    }
    struct ibv_qp_attr {
        qp_state: c_int,
        cur_qp_state: c_int,
        path_mtu: c_int,
        path_mig_state: c_int,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr,
        alt_ah_attr: ibv_ah_attr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
    struct ibv_qp {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
        state: c_int,
        qp_type: c_int,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        events_completed: u32,
    }
    struct ibv_qp_ex {
        qp_base: ibv_qp,
        comp_mask: u64,
        wr_id: u64,
        wr_flags: c_uint,
        wr_atomic_cmp_swp: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64, u64, u64)>,
        wr_atomic_fetch_add: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64, u64)>,
        wr_bind_mw: Of<extern "C" fn(Borrowed<'_, Qp>, Option<Borrowed<'_, Window>>, u32, Borrowed<'_, ibv_mw_bind_info>)>,
        wr_local_inv: Of<extern "C" fn(Borrowed<'_, Qp>, u32)>,
        wr_rdma_read: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64)>,
        wr_rdma_write: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64)>,
        wr_rdma_write_imm: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64, u32)>,
        wr_send: Of<extern "C" fn(Borrowed<'_, Qp>)>,
        wr_send_imm: Of<extern "C" fn(Borrowed<'_, Qp>, u32)>,
        wr_send_inv: Of<extern "C" fn(Borrowed<'_, Qp>, u32)>,
        wr_send_tso: Missing,
        wr_set_ud_addr: Of<extern "C" fn(Borrowed<'_, Qp>, Option<Borrowed<'_, Ah>>, u32, u32)>,
        wr_set_xrc_srqn: Missing,
        wr_set_inline_data: Of<unsafe extern "C" fn(Borrowed<'_, Qp>, *mut c_void, usize)>,
        wr_set_inline_data_list: Of<unsafe extern "C" fn(Borrowed<'_, Qp>, usize, *const ibv_data_buf)>,
        wr_set_sge: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64, u32)>,
        wr_set_sge_list: Of<unsafe extern "C" fn(Borrowed<'_, Qp>, usize, *const ibv_sge)>,
        wr_start: Of<extern "C" fn(Borrowed<'_, Qp>)>,
        wr_complete: Of<extern "C" fn(Borrowed<'_, Qp>) -> c_int>,
        wr_abort: Of<extern "C" fn(Borrowed<'_, Qp>)>,
        wr_atomic_write: Of<extern "C" fn(Borrowed<'_, Qp>, u32, u64, Borrowed<'_, [u8; 8]>)>,
    }
    struct ibv_ece {
        vendor_id: u32,
        options: u32,
        comp_mask: u32,
    }
}
