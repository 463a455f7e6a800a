//! An RDMA NIC for the programs of this host: the engine of [`selvedge_nic::verbs`], UDP sockets, and a progress
//! thread.
//!
//! ```text
//!   application threads                                     progress thread
//!     post_send ──┐                                      ┌── waits for: packets, deadlines
//!     poll_cq  ───┼──> [ Adapter: one lock ] <───────────┘
//!                 │      Rnic     decides
//!                 │      Network  UDP 4791 + slot, cut and joined by the kernel, ICRC
//!                 └───>  Memory   the application's, guarded against faults
//!                           |
//!                        Channel  completion and asynchronous events, by a descriptor
//! ```
//!
//! 1. There is one adapter per process, created when the first device is opened. All devices share it: a packet's
//!    addresses determine the interface.
//! 2. A thread that posts also sends, and a thread that polls also receives. The progress thread serves applications
//!    that wait for events or in other calls, and remote accesses to the process's memory. While an application polls,
//!    the progress thread sleeps.
//! 3. Packets that cannot be sent because a socket is full stay in their batch, and no others are taken from the
//!    engine.

mod adapter;
mod arrival;
mod batch;
mod channel;
mod connections;
mod datagrams;
mod device;
mod environment;
mod events;
mod fork;
mod forward;
mod groups;
mod invariant;
mod libraries;
mod memory;
mod network;
mod persist;
mod port;
mod profile;
mod progress;
pub mod settings;
mod state;
mod timekeeping;
mod yielding;

pub use adapter::{Adapter, Refusal};
pub use channel::Channel;
pub use connections::{At, Hears};
pub use device::{Device, LOOPBACK, NAMES};
pub use environment::{Environment, written};
pub use events::{Notice, Owner};
pub use libraries::{LIBRARY, libraries};
pub use network::Counters;
pub use port::ROCE;
pub(crate) use port::is_ours;
pub use profile::{PROFILE, Profile};
