//! The structures of `<infiniband/verbs.h>`, as rdma-core 44 has them; later versions only append.
//!
//! Names are C's. `LAYOUTS` of each file tells sizes and offsets, which a test compares with the installed header.
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

/// A structure as this crate lays it out.
#[derive(Debug)]
pub struct Layout {
    /// Its name in C.
    pub name: &'static str,
    pub size: usize,
    /// Each field and where it begins.
    pub fields: &'static [(&'static str, usize)],
}

/// All structures.
pub const LAYOUTS: &[&[Layout]] =
    &[device::LAYOUTS, completion::LAYOUTS, pair::LAYOUTS, work::LAYOUTS, extended::LAYOUTS];

/// Structures that C knows, and their layouts.
macro_rules! structures {
    ($($kind:tt $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(pub $field: $type,)*
            }
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
