//! The real world: sockets, clock and threads around the same engines.
//!
//! The only crate that waits, and the only one with a clock. For now one flow between two UDP
//! sockets: enough to hold the engines to the same tests in both worlds.
#![forbid(unsafe_code)]

mod clock;
mod driver;
mod icrc;
mod reorder;
mod udp;

pub use clock::Clock;
pub use driver::{Incoming, Outgoing, receive, send};
pub use reorder::ReorderBuffer;
pub use udp::{Datagrams, Udp};
