//! TCP: one end of a connection, pure.
//!
//! ```text
//!     supply, close ───┐                        ┌─> poll_transmit   until None: segments to send
//!     handle_segment ──┼──>  Connection  ───────┤
//!     read             │   sending | receiving  └─> poll_timeout    when to call handle_timeout
//!     handle_timeout ──┘
//! ```
//!
//! Beside [`crate::Sender`], not behind it: TCP counts octets, acknowledges ranges of them, delays
//! acknowledgements and closes windows. Which RFC's section is where: README.md in this folder.

mod config;
mod connection;
mod ranges;
mod receiving;
mod rto;
mod scoreboard;
mod sending;

pub mod congestion;

pub use config::{Ecn, TcpConfig};
pub use connection::{Connection, State, Transmit, clock};
pub use receiving::Arrival;

/// What a connection has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpStats {
    /// Segments sent that take sequence numbers, retransmissions included.
    pub sent: u64,
    /// Of these, how many carried octets that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast recoveries.
    pub recoveries: u32,
    /// The congestion window, octets.
    pub cwnd: u64,
    /// Where slow start ends, octets.
    pub ssthresh: u64,
}

#[cfg(test)]
mod tests;
