//! The extended interface of completion queues: one completion at a time, field by field.

use std::ffi::{c_int, c_uint};

use crate::abi::{ibv_context, ibv_cq_init_attr_ex, ibv_poll_cq_attr};
use crate::borrowed::{Borrowed, Given, store};
use crate::channel::CompletionChannel;
use crate::completion::{Cq, explain, translate};
use crate::context::VECTORS;
use crate::error;

/// Readable fields of a completion: `IBV_WC_STANDARD_FLAGS`.
const READABLE: u64 = 0x7f;
/// Known bits of `comp_mask`: flags, and a parent domain.
const KNOWN: u32 = 3;

pub(crate) extern "C" fn create_cq_ex(
    context: Borrowed<'_, ibv_context>,
    wanted: Borrowed<'_, ibv_cq_init_attr_ex>,
) -> Option<Given<Cq>> {
    if wanted.wc_flags & !READABLE != 0 || wanted.comp_mask & !KNOWN != 0 {
        return error::none(libc::EOPNOTSUPP);
    }
    if wanted.comp_vector >= VECTORS as u32 {
        return error::none(libc::EINVAL);
    }
    let depth = c_int::try_from(wanted.cqe).unwrap_or(-1);
    // SAFETY: a channel of this library's, or null.
    let channel = unsafe { Borrowed::new(wanted.channel.cast::<CompletionChannel>()) };
    let mut cq = match Cq::create(context, depth, wanted.cq_context, channel) {
        Ok(cq) => cq,
        Err(errno) => return error::none(errno),
    };
    let abi = cq.abi.get_mut();
    abi.start_poll = Some(start_poll);
    abi.next_poll = Some(next_poll);
    abi.end_poll = Some(end_poll);
    abi.read_opcode = Some(read_opcode);
    abi.read_vendor_err = Some(read_vendor_err);
    abi.read_byte_len = Some(read_byte_len);
    abi.read_imm_data = Some(read_imm_data);
    abi.read_qp_num = Some(read_qp_num);
    abi.read_src_qp = Some(read_src_qp);
    abi.read_wc_flags = Some(read_wc_flags);
    abi.read_slid = Some(read_nothing);
    abi.read_sl = Some(read_sl);
    abi.read_dlid_path_bits = Some(read_no_bits);
    Some(cq.into())
}

extern "C" fn start_poll(cq: Borrowed<'_, Cq>, attributes: Option<Borrowed<'_, ibv_poll_cq_attr>>) -> c_int {
    // Bits of `comp_mask` would announce extensions, of which there are none.
    if attributes.is_some_and(|attributes| attributes.comp_mask != 0) {
        return libc::EINVAL;
    }
    next_poll(cq)
}

extern "C" fn next_poll(cq: Borrowed<'_, Cq>) -> c_int {
    match cq.adapter.poll_cq(cq.id, 1, |completion| cq.current.set(translate(completion))) {
        Ok(0) => libc::ENOENT,
        Ok(_) => {
            let current = cq.current.get();
            explain(cq.adapter, &current);
            store!(cq.abi, status = current.status);
            store!(cq.abi, wr_id = current.wr_id);
            0
        }
        Err(refusal) => error::of(refusal),
    }
}

extern "C" fn end_poll(_: Borrowed<'_, Cq>) {}

macro_rules! readers {
    ($($name:ident: $type:ty = $field:ident,)*) => {
        $(
            extern "C" fn $name(cq: Borrowed<'_, Cq>) -> $type {
                cq.current.get().$field
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

extern "C" fn read_nothing(_: Borrowed<'_, Cq>) -> u32 {
    0
}
extern "C" fn read_no_bits(_: Borrowed<'_, Cq>) -> u8 {
    0
}
