//! Structures of later versions: extended operations before the context, attributes that grow.

use std::ffi::{c_int, c_void};

use super::{
    Missing, ibv_context, ibv_cq_init_attr_ex, ibv_device_attr, ibv_pd, ibv_port_attr, ibv_qp_init_attr_ex, ibv_sge,
    ibv_srq_init_attr_ex, structures,
};
use crate::borrowed::{Borrowed, Exclusive, Given};
use crate::completion::Cq;
use crate::memory::Pd;
use crate::pair::Qp;
use crate::srq::Srq;

type QueryDevice =
    unsafe extern "C" fn(Borrowed<'_, ibv_context>, Option<Borrowed<'_, u32>>, *mut ibv_device_attr_ex, usize) -> c_int;

structures! {
    struct ibv_device_attr_ex {
        orig_attr: ibv_device_attr,
        comp_mask: u32,
        odp_caps: [u64; 3],
        completion_timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        tso_caps: [u32; 2],
        rss_caps: [u64; 4],
        max_wq_type_rq: u32,
        packet_pacing_caps: [u32; 3],
        raw_packet_caps: u32,
        tm_caps: [u32; 5],
        cq_mod_caps: [u16; 2],
        max_dm_size: u64,
        pci_atomic_caps: [u16; 3],
        xrc_odp_caps: u32,
        phys_port_cnt_ex: u32,
    }
    struct ibv_td {
        context: *mut ibv_context,
    }
    struct ibv_parent_domain_init_attr {
        pd: *mut ibv_pd,
        td: *mut ibv_td,
        comp_mask: u32,
        alloc: Missing,
        free: Missing,
        pd_context: *mut c_void,
    }
    struct verbs_context {
        query_port: Option<unsafe extern "C" fn(Borrowed<'_, ibv_context>, u8, *mut ibv_port_attr, usize) -> c_int>,
        advise_mr: Option<unsafe extern "C" fn(Borrowed<'_, Pd>, c_int, u32, *mut ibv_sge, u32) -> c_int>,
        alloc_null_mr: Missing,
        read_counters: Missing,
        attach_counters_point_flow: Missing,
        create_counters: Missing,
        destroy_counters: Missing,
        reg_dm_mr: Missing,
        alloc_dm: Missing,
        free_dm: Missing,
        modify_flow_action_esp: Missing,
        destroy_flow_action: Missing,
        create_flow_action_esp: Missing,
        modify_qp_rate_limit: Missing,
        alloc_parent_domain:
            Option<extern "C" fn(Borrowed<'_, ibv_context>, Borrowed<'_, ibv_parent_domain_init_attr>) -> Option<Given<Pd>>>,
        dealloc_td: Option<extern "C" fn(Given<ibv_td>) -> c_int>,
        alloc_td: Option<extern "C" fn(*mut ibv_context, Borrowed<'_, u32>) -> Option<Given<ibv_td>>>,
        modify_cq: Missing,
        post_srq_ops: Missing,
        destroy_rwq_ind_table: Missing,
        create_rwq_ind_table: Missing,
        destroy_wq: Missing,
        modify_wq: Missing,
        create_wq: Missing,
        query_rt_values: Missing,
        create_cq_ex: Option<extern "C" fn(Borrowed<'_, ibv_context>, Borrowed<'_, ibv_cq_init_attr_ex>) -> Option<Given<Cq>>>,
        priv_: *mut c_void,
        query_device_ex:
            Option<QueryDevice>,
        ibv_destroy_flow: Missing,
        ABI_placeholder2: Missing,
        ibv_create_flow: Missing,
        ABI_placeholder1: Missing,
        open_qp: Missing,
        create_qp_ex: Option<extern "C" fn(*mut ibv_context, Exclusive<'_, ibv_qp_init_attr_ex>) -> Option<Given<Qp>>>,
        get_srq_num: Missing,
        create_srq_ex: Option<extern "C" fn(*mut ibv_context, Borrowed<'_, ibv_srq_init_attr_ex>) -> Option<Given<Srq>>>,
        open_xrcd: Missing,
        close_xrcd: Missing,
        _ABI_placeholder3: u64,
        sz: usize,
        context: ibv_context,
    }
}
