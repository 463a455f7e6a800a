//! EQDS tunnels between real hosts: what stands between a TUN device, sockets and the engine.
//!
//! [`endpoint`] joins all parts into one host's tunnels. [`keys`] derives the keys of packets from those of peers,
//! [`Outbound`] writes packets, [`Gate`] decides which datagrams come from a peer, for the first time, and [`config`]
//! reads the settings. Time and bytes are arguments: no socket is opened, no clock read. docs/eqds-wire.md is the
//! specification.
#![forbid(unsafe_code)]

mod auth;
pub mod base64;
pub mod config;
pub mod endpoint;
mod epoch;
mod gate;
pub mod keys;
mod limit;
mod outbound;
mod replay;

pub use auth::TAG;
pub use epoch::{EpochError, EpochFile, Epochs, StoredEpochs};
pub use gate::{Accepted, Counters, Floor, Gate, Notice, Refused};
pub use limit::Buckets;
pub use outbound::Outbound;
pub use replay::Replay;
