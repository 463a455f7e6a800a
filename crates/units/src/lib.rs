//! Quantities with units, and identifiers.
//!
//! Every quantity that the protocols and the simulator handle has a type here, so that a count of
//! packets cannot be added to a count of bytes and two 24-bit sequence numbers cannot be compared
//! with `<`. All of them are integers: results do not depend on the platform's floating point.
//!
//! [`words`] is in this crate because every crate that reads names needs it.
//!
//! The crate has no dependencies and is `no_std`; the `config` feature adds the text forms of scenario files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod chance;
mod channel;
mod id;
mod octet;
mod psn;
mod rate;
mod rng;
mod setting;
mod skew;
mod text;
mod time;
pub mod words;

pub use bytes::Bytes;
pub use chance::Chance;
pub use channel::{Channel, TwoStates};
pub use id::{HostId, PortId, QpNumber, SwitchId};
pub use octet::{Octet, TcpSeq};
pub use psn::{Psn, Seq};
pub use rate::Rate;
pub use rng::{Domain, Rng, mix64};
pub use setting::{Setting, Toggle};
pub use skew::Skew;
pub use text::UnitError;
pub use time::{Duration, Instant};
