#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

mod ack;
pub mod aeth;
pub mod amend;
pub mod bth;
pub mod cm;
pub mod cnp;
pub mod datagram;
pub mod eqds;
mod error;
pub mod ethernet;
pub mod extension;
pub mod frame;
pub mod holes;
pub mod icrc;
mod int;
pub mod ipv4;
pub mod ipv6;
pub mod netrt;
mod packet;
pub mod pfc;
pub mod reth;
pub mod roce;
pub mod tcp;
pub mod udp;
pub mod verbs;

pub use aeth::{Aeth, Syndrome};
pub use bth::{Bth, Opcode};
pub use datagram::{Body, Datagram};
pub use error::ParseError;
pub use ethernet::{EtherType, Ethernet, MacAddress};
pub use extension::{Extension, Waited};
pub use frame::{Content, Frame};
pub use holes::{Hole, Holes};
pub use icrc::Icrc;
pub use int::{Hop, Hops, PathRecord};
pub use ipv4::{Envelope, Ipv4};
pub use ipv6::Ipv6;
pub use netrt::{NetRt, Request};
pub use packet::{Ack, AckKind, Control, Data, Ecn, Header, HoleNack, Label, Packet, Pause, Repr};
pub use pfc::Pfc;
pub use reth::Reth;
pub use roce::{Extended, Roce};
pub use tcp::Tcp;
pub use udp::Udp;
