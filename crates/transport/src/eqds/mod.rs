//! EQDS tunnels, pure: an edge-queued datagram service (Olteanu et al., NSDI'22).
//!
//! ```text
//!   supply ─────────┐                        ┌─> poll_transmit   data, or a request for credit
//!   handle_control ─┼──>  Sender  (next)  ───┤
//!   handle_timeout ─┘                        └─> poll_timeout
//!
//!   handle_data ──────> Receiver ──> deliver, and what to answer
//!                          │ owed                   ▲ grant
//!                          └──────> Pacer ──────────┘            one per host: a quantum per MTU-time
//! ```
//!
//! A tunnel leads from one host to another; its owner defines the cargo. README.md in this folder maps the sections of
//! the paper to this code.
//!
//! The way of the data:
//! 1. The owner supplies bytes; credit, or a request for it, lets the [`Sender`] number a packet and keep it in flight.
//! 2. The [`Receiver`] acknowledges, orders and delivers it, or reports it as trimmed or missing; the [`Pacer`] turns
//!    what it still wants into PULLs, in the order of the receiver's policy.
//! 3. Control packets free what has arrived, renew credit, and are measured; timers find the rest: losses, silence,
//!    idleness.

mod clock;
mod config;
mod credit;
pub mod eqif;
mod life;
mod loss;
mod measured;
mod native;
mod numbers;
mod pacer;
mod paths;
mod pieces;
mod policy;
mod receiver;
mod round_trips;
mod sender;
mod service;
mod shares;
#[cfg(test)]
mod tests;
mod window;

pub use config::{EqdsConfig, EqdsParams, Headers, Messages};
pub use life::{Life, LifeConfig};
pub use loss::{Loss, LossConfig, Source};
pub use measured::PathReport;
pub use native::NativeInfo;
pub use numbers::Numbers;
pub use pacer::{Pacer, Pulls};
pub use paths::Paths;
pub use pieces::Pieces;
pub use policy::Policy;
pub use receiver::{Disposition, Receiver};
pub use round_trips::RoundTrips;
pub use sender::{Delivered, Event, Interest, MISSING, MOST_DOUBLINGS, Memory, Sender, State, Transmit};
pub use service::Service;
pub use shares::{Class, Part, Shares};
