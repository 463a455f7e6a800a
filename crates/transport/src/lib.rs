#![doc = include_str!("../README.md")]
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

pub mod congestion;
pub mod endpoint;
pub mod eqds;
pub mod homa;
pub mod ndp;
pub mod netrt;
pub mod own;
pub mod path;
pub mod places;
pub mod queue_pairs;
pub mod recovery;
pub mod replay;
pub mod table;
pub mod tcp;

pub use bitmap::WIDEST_WINDOW;
pub use congestion::{AnyCongestion, Congestion, CongestionConfig, CongestionParams, Marking, Needs, Signal, Tuning};
pub use fabric::{Fabric, SettingError};
pub use feedback::{Feedback, FeedbackConfig, FeedbackDue};
pub use footprint::{Footprint, Item, Published, Scope};
pub use receiver::Receiver;
pub use recovery::{
    AnyRecovery, AnyRecoveryReceiver, Recovery, RecoveryConfig, RecoveryParams, RecoveryReceiver, Scheme, SchemeParams,
    SharedPart, SharedState,
};
pub use role::{Cx, DataVerdict, HoldReason, Limits, Next, Reply, Segment};
pub use sender::{Sender, SenderParams, SenderStats};
