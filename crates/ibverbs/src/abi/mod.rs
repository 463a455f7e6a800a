//! The structures of `<infiniband/verbs.h>`, as rdma-core 44 defines them; later versions only append fields.
//!
//! Names are C's. `LAYOUTS` of each file lists sizes and offsets, which a test compares with the installed header.
#![allow(non_camel_case_types, non_snake_case, reason = "the names are C's")]
#![allow(missing_docs, reason = "what they mean is in verbs.h and its manual pages")]

mod completion;
mod device;
mod extended;
mod pair;
mod work;

pub use completion::*;
pub use device::*;
pub use extended::*;
pub use pair::*;
pub use work::*;

/// The layout of a structure in this crate.
#[derive(Debug)]
pub struct Layout {
    /// Name of the structure in C.
    pub name: &'static str,
    pub size: usize,
    /// Names of the fields, with their offsets in bytes.
    pub fields: &'static [(&'static str, usize)],
}

/// Layouts of all structures.
pub const LAYOUTS: &[&[Layout]] =
    &[device::LAYOUTS, completion::LAYOUTS, pair::LAYOUTS, work::LAYOUTS, extended::LAYOUTS];

/// Defines structures that C knows, and their layouts. All fields are numbers, pointers and functions that may be
/// missing, or structures of such.
macro_rules! structures {
    ($($kind:tt $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(pub $field: $type,)*
            }
            // SAFETY: numbers, null pointers and missing functions.
            unsafe impl $crate::borrowed::Zeroable for $name {}
        )*
        #[doc = "The layouts of these."]
        pub const LAYOUTS: &[$crate::abi::Layout] = &[$(
            $crate::abi::Layout {
                name: concat!(stringify!($kind), " ", stringify!($name)),
                size: size_of::<$name>(),
                fields: &[$((stringify!($field), std::mem::offset_of!($name, $field)),)*],
            },
        )*];
    };
}
pub(crate) use structures;

/// A function pointer that may be missing.
pub type Missing = Option<unsafe extern "C" fn()>;
