#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod balancing;
pub mod buffer;
pub mod busy_ports;
pub mod crossbar;
pub mod descriptor;
pub mod environment;
mod fabric;
pub mod fair;
pub mod forward;
mod link;
pub mod loss;
pub mod marking;
pub mod netrt;
mod observer;
mod outage;
mod pfc;
pub mod port;
pub mod queue;
mod sample;
pub mod shares;
pub mod switch;
mod switches;
pub mod trimming;

pub use environment::{Environment, NetRtPacket, Note, Packets, Trimmed};
pub use fabric::{Change, Delivery, Fabric, Parts};
pub use observer::FabricObserver;
pub use sample::busy_time;
pub use switches::{Params, Switches};
