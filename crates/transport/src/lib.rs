//! Pure protocol engines: loss recovery, congestion control, senders and receivers.
//!
//! An engine takes values and returns values: time, acknowledgements and packets in; packets to send and a deadline
//! out. Engines read no clock, open no files or sockets, and hold no payload. The caller follows one pattern:
//!
//! ```text
//!     supply ─────────┐                      ┌─> poll_transmit   until None, while the link is free
//!     on_ack ─────────┼─>  Sender  (next) ───┤
//!     handle_timeout ─┘                      └─> poll_timeout    when to call handle_timeout
//!
//!     on_data ────────────> Receiver ──────────> Reply { verdict, ack }
//!             ────────────> Feedback ──────────> FeedbackDue { cnp, report, ack }   what congestion control needs, too
//! ```
//!
//! [`Sender`] combines any loss [`recovery`] with any [`congestion`] control and with pacing. Both are chosen by
//! configuration ([`RecoveryConfig`], [`CongestionConfig`]) and dispatched by an enum that the registry generates; a
//! test or a driver may fix the types instead. State that the queue pairs of a NIC share ([`SharedPools`]) belongs to
//! the NIC, which lends it to the engines for each call.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bitmap;
#[cfg(test)]
mod dialogue;
mod fabric;
mod feedback;
mod footprint;
mod pacing;
mod receiver;
mod registry;
mod role;
#[cfg(test)]
mod rounds;
mod sender;
mod shared_pools;

pub mod congestion;
pub mod eqds;
pub mod ndp;
pub mod netrt;
pub mod path;
pub mod recovery;
pub mod replay;
pub mod table;
pub mod tcp;

pub use bitmap::WIDEST_WINDOW;
pub use congestion::{AnyCongestion, Congestion, CongestionConfig, Marking, Needs, Signal, Tuning};
pub use fabric::{Fabric, SettingError};
pub use feedback::{Feedback, FeedbackConfig, FeedbackDue};
pub use footprint::{Footprint, Item, Published, Scope};
pub use receiver::{Receiver, ReceiverConfig};
pub use recovery::{Acceptance, AnyAcceptance, AnyRecovery, Recovery, RecoveryConfig, Scheme};
pub use role::{Cx, Hold, Limits, Next, Reply, Segment, Verdict};
pub use sender::{Sender, SenderConfig, SenderStats};
pub use shared_pools::SharedPools;
