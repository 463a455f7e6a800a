//! A switch, or a whole fabric of them, for real frames.
//!
//! ```text
//! host's interface ── Port ──> Bridge: facts, destination ──> Engine: queues, links, losses, routes
//! host's interface <── Port <──────────────────────────────── Engine
//! ```
//!
//! 1. The switches of a rack, and the links between them, are one pure [`Engine`] in one thread ([`Running`]). Only
//!    ports towards hosts do input and output.
//! 2. The thread carries bytes and reads the clock; [`Bridge`] and [`Engine`] decide. Tests of these need no interface.
//! 3. Every frame that a port took is given to a host, or counted with its reason: by the bridge in [`PortCounts`], by
//!    the engine in counters of its own.

mod bridge;
mod checksum;
mod counters;
mod direct;
mod directory;
mod driver;
mod engine;
mod fabric;
mod frame;
mod frames;
mod netrt;
mod pause;
pub mod ports;
mod record;
mod recorder;
mod roce;
#[cfg(test)]
mod tests;
mod trim;

pub use bridge::Bridge;
pub use counters::PortCounts;
pub use direct::Direct;
pub use directory::{Directory, Route};
pub use driver::{Outcome, Running, Sampling};
pub use engine::{Arrival, Engine, Leaving};
pub use fabric::FabricEngine;
pub use frame::{Facts, Ip, mark};
pub use pause::pause_frame;
pub use recorder::{Batch, Recorder};
pub use trim::{can_be_trimmed, trim};
