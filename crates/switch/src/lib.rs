#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod balancing;
pub mod buffer;
pub mod busy_ports;
pub mod crossbar;
pub mod descriptor;
pub mod environment;
pub mod fair;
pub mod forward;
mod link;
pub mod marking;
pub mod netrt;
mod outage;
mod pfc;
pub mod port;
pub mod queue;
pub mod switch;
mod switches;
pub mod trimming;

pub use environment::{Environment, NetRtPacket, Note};
pub use switches::{Params, Switches};
