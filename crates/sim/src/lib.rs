#![doc = include_str!("../README.md")]

pub mod config;
pub mod fault;
pub mod record;
mod run;
pub mod topology;
pub mod workload;

mod beside;
mod error;
mod estimate;
mod kernel;
mod net;
mod parts;
mod resolve;
mod simulation;
mod two;

pub use beside::Beside;
pub use config::SimConfig;
pub use error::{ConfigError, Library, NoFiles};
pub use estimate::{Bound, Estimate, MemoryEstimate, estimate};
pub use kernel::rounds::Parallel;
pub use parts::fabric_parts;
pub use record::Recorder;
pub use resolve::{AutoScope, Network, Resolved, Settings, Transports, sampling_interval, span_of_starts};
pub use run::{Injection, Session, port_infos, ports_of_links, run, run_recorded};
pub use simulation::{NetworkSource, Outcome, Simulation, SimulationBuilder};
