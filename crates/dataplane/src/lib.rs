#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod clock;
mod driver;
mod icrc;
#[cfg(target_os = "linux")]
pub mod impair;
mod reorder;
#[cfg(target_os = "linux")]
pub mod rnic;
#[cfg(target_os = "linux")]
pub mod trial;
mod udp;

pub use clock::Clock;
pub use driver::{Incoming, Outgoing, receive, send};
pub use reorder::ReorderBuffer;
pub use udp::{Datagrams, Udp};
