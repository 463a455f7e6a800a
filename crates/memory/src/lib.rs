//! Memory of state that is larger than the processor's cache: [`Table`]s in large pages.
//!
//! The unsafe code that the simulator and its switches need for the sake of speed is here and in `prefetch`: their own
//! is safe.

mod pages;
mod table;

pub use pages::{Allocator, advise, layout, return_freed_memory};
pub use table::Table;

/// Bytes of one kind of state up to which it is taken to stay in the cache, where saving memory accesses costs more
/// than it gains: 4 MiB. Zero in debug builds, so that the smallest test also takes the code paths of large fabrics, to
/// the same results.
pub const CACHE: usize = if cfg!(debug_assertions) { 0 } else { 4 << 20 };
