//! The extended interface of completion queues: one completion at a time, field by field.

use std::ffi::{c_int, c_uint};

use crate::abi::{ibv_context, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_poll_cq_attr};
use crate::completion::{Cq, explain, translate};
use crate::error;

/// Readable fields of a completion: `IBV_WC_STANDARD_FLAGS`.
const READABLE: u64 = 0x7f;
/// Known bits of `comp_mask`: flags, and a parent domain.
const KNOWN: u32 = 3;

pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    attributes: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    let wanted = unsafe { &*attributes };
    if wanted.wc_flags & !READABLE != 0 || wanted.comp_mask & !KNOWN != 0 {
        return error::null(libc::EOPNOTSUPP);
    }
    if wanted.comp_vector >= unsafe { (*context).num_comp_vectors } as u32 {
        return error::null(libc::EINVAL);
    }
    let depth = c_int::try_from(wanted.cqe).unwrap_or(-1);
    let mut cq = match unsafe { Cq::create(context, depth, wanted.cq_context, wanted.channel) } {
        Ok(cq) => cq,
        Err(errno) => return error::null(errno),
    };
    cq.abi.start_poll = Some(start_poll);
    cq.abi.next_poll = Some(next_poll);
    cq.abi.end_poll = Some(end_poll);
    cq.abi.read_opcode = Some(read_opcode);
    cq.abi.read_vendor_err = Some(read_vendor_err);
    cq.abi.read_byte_len = Some(read_byte_len);
    cq.abi.read_imm_data = Some(read_imm_data);
    cq.abi.read_qp_num = Some(read_qp_num);
    cq.abi.read_src_qp = Some(read_src_qp);
    cq.abi.read_wc_flags = Some(read_wc_flags);
    cq.abi.read_slid = Some(read_nothing);
    cq.abi.read_sl = Some(read_sl);
    cq.abi.read_dlid_path_bits = Some(read_no_bits);
    Box::into_raw(cq).cast()
}

unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attributes: *mut ibv_poll_cq_attr) -> c_int {
    // Bits of `comp_mask` would announce extensions, of which there are none.
    if unsafe { attributes.as_ref() }.is_some_and(|attributes| attributes.comp_mask != 0) {
        return libc::EINVAL;
    }
    unsafe { next_poll(cq) }
}

unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    let cq = unsafe { &mut *cq.cast::<Cq>() };
    let current = &mut cq.current;
    match cq.adapter.poll_cq(cq.id, 1, |completion| *current = translate(completion)) {
        Ok(0) => libc::ENOENT,
        Ok(_) => {
            explain(cq.adapter, &cq.current);
            cq.abi.status = cq.current.status;
            cq.abi.wr_id = cq.current.wr_id;
            0
        }
        Err(refusal) => error::of(refusal),
    }
}

unsafe extern "C" fn end_poll(_: *mut ibv_cq_ex) {}

macro_rules! readers {
    ($($name:ident: $type:ty = $field:ident,)*) => {
        $(
            unsafe extern "C" fn $name(cq: *mut ibv_cq_ex) -> $type {
                unsafe { (*cq.cast::<Cq>()).current.$field }
            }
        )*
    };
}

readers! {
    read_opcode: c_int = opcode,
    read_vendor_err: u32 = vendor_err,
    read_byte_len: u32 = byte_len,
    read_imm_data: u32 = imm_data,
    read_qp_num: u32 = qp_num,
    read_src_qp: u32 = src_qp,
    read_wc_flags: c_uint = wc_flags,
    read_sl: u8 = sl,
}

unsafe extern "C" fn read_nothing(_: *mut ibv_cq_ex) -> u32 {
    0
}
unsafe extern "C" fn read_no_bits(_: *mut ibv_cq_ex) -> u8 {
    0
}
