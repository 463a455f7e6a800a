#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
mod busy_poll;
mod clock;
mod driver;
#[cfg(target_os = "linux")]
pub mod eqds;
mod icrc;
#[cfg(target_os = "linux")]
pub mod impair;
#[cfg(target_os = "linux")]
mod iproute;
#[cfg(target_os = "linux")]
pub mod lab;
#[cfg(target_os = "linux")]
mod netns;
#[cfg(target_os = "linux")]
pub mod rnic;
#[cfg(target_os = "linux")]
pub mod switch;
#[cfg(target_os = "linux")]
pub mod trial;
#[cfg(target_os = "linux")]
mod tun;
mod udp;

pub use clock::Clock;
pub use driver::{Incoming, Outgoing, receive, send};
pub use udp::{Datagrams, Udp};
