//! Go-back-N, the loss recovery of RoCE NICs (InfiniBand's reliable connection).
//!
//! The responder accepts packets in order only. At a gap it sends one NAK that names the packet it expects, and
//! discards every packet until that one arrives; the requester resumes from there.

mod config;
mod recv;
mod send;

pub use config::{Acks, GoBackNConfig, GoBackNConfig as Config, GoBackNParams, Nacks};
pub use recv::Recv;
pub use send::Send;

#[cfg(test)]
mod tests;
