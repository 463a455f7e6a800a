#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[cfg(all(target_os = "linux", not(loom)))]
pub mod daemon;
#[cfg(all(target_os = "linux", not(loom)))]
mod lock;
#[cfg(all(target_os = "linux", not(loom)))]
#[allow(unsafe_code, reason = "a mapping")]
mod memory;
#[cfg(all(target_os = "linux", not(loom)))]
mod message;
#[cfg(target_os = "linux")]
#[cfg_attr(loom, allow(dead_code, reason = "all but the test is compiled out"))]
mod ring;
#[cfg(all(target_os = "linux", not(loom)))]
mod socket;

#[cfg(all(target_os = "linux", not(loom)))]
pub use message::{LONGEST_MESSAGE, Notice, Outcome, Prefix, Reach};
#[cfg(all(target_os = "linux", not(loom)))]
pub use socket::{Received, Sending, Socket, default_path, native_socket};
