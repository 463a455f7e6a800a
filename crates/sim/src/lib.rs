//! Packet-level fabric simulator.
//!
//! A [`topology::Graph`], flows from [`workload`]s and [`fault`]s become a run of the fabric, whose hosts each own a
//! `selvedge_nic::Nic`. The crate opens no files and prints nothing.

pub mod config;
pub mod fault;
pub mod record;
pub mod topology;
pub mod workload;

mod beside;
mod error;
mod estimate;
mod kernel;
mod net;
mod two;

pub use beside::Beside;
pub use config::SimConfig;
pub use error::{ConfigError, Library, NoFiles};
pub use estimate::{Bound, Estimate, MemoryEstimate, estimate};
pub use kernel::{Allocator, Parallel, port_infos, ports_of_links, return_freed_memory, run, run_recorded};
pub use record::Recorder;
