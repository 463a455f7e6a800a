//! An RDMA NIC for the programs of this host: the engine of [`selvedge_nic::verbs`], UDP sockets, a thread.
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
//! 1. One adapter per process, made when the first device is opened. All devices share it: a packet's addresses say
//!    which interface it uses.
//! 2. Whoever posts also sends, and whoever polls also receives: the thread is for applications that wait for events
//!    or in other calls, and for what others do to our memory. While an application polls, the thread stays away.
//! 3. What cannot be sent because a socket is full stays in its batch, and nothing else is taken from the engine.

mod adapter;
mod arrival;
mod batch;
mod busy_poll;
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
pub use network::Counters;
pub use port::ROCE;
pub(crate) use port::is_ours;
pub use profile::{PROFILE, Profile};
