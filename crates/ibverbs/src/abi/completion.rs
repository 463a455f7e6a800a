//! Structures of completion queues, channels, and completions.

use std::ffi::{c_int, c_uint, c_void};

use super::{Missing, ibv_context, ibv_pd, structures};
use crate::borrowed::Borrowed;
use crate::completion::Cq;

structures! {
    struct ibv_comp_channel {
        context: *mut ibv_context,
        fd: c_int,
        refcnt: c_int,
    }
    struct ibv_cq {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
    }
    struct ibv_poll_cq_attr {
        comp_mask: u32,
    }
    struct ibv_cq_ex {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
        comp_mask: u32,
        status: c_int,
        wr_id: u64,
        start_poll: Option<extern "C" fn(Borrowed<'_, Cq>, Option<Borrowed<'_, ibv_poll_cq_attr>>) -> c_int>,
        next_poll: Option<extern "C" fn(Borrowed<'_, Cq>) -> c_int>,
        end_poll: Option<extern "C" fn(Borrowed<'_, Cq>)>,
        read_opcode: Option<extern "C" fn(Borrowed<'_, Cq>) -> c_int>,
        read_vendor_err: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_byte_len: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_imm_data: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_qp_num: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_src_qp: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_wc_flags: Option<extern "C" fn(Borrowed<'_, Cq>) -> c_uint>,
        read_slid: Option<extern "C" fn(Borrowed<'_, Cq>) -> u32>,
        read_sl: Option<extern "C" fn(Borrowed<'_, Cq>) -> u8>,
        read_dlid_path_bits: Option<extern "C" fn(Borrowed<'_, Cq>) -> u8>,
        read_completion_ts: Missing,
        read_cvlan: Missing,
        read_flow_tag: Missing,
        read_tm_info: Missing,
        read_completion_wallclock_ns: Missing,
    }
    struct ibv_cq_init_attr_ex {
        cqe: u32,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: u32,
        wc_flags: u64,
        comp_mask: u32,
        flags: u32,
        parent_domain: *mut ibv_pd,
    }
    struct ibv_wc {
        wr_id: u64,
        status: c_int,
        opcode: c_int,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
    struct ibv_async_event {
        element: *mut c_void,
        event_type: c_int,
    }
}
