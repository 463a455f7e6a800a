//! TCP: one end of a connection, without I/O.
//!
//! ```text
//!     supply, close ───┐                        ┌─> poll_transmit   until None: segments to send
//!     handle_segment ──┼──>  Connection  ───────┤
//!     read             │   sending | receiving  └─> poll_timeout    when to call handle_timeout
//!     handle_timeout ──┘
//! ```
//!
//! An alternative to [`crate::Sender`], not built on it: TCP counts octets, acknowledges ranges of them, delays
//! acknowledgements and closes windows. README.md in this folder maps the sections of the RFCs to this code.

mod config;
mod connection;
mod host;
mod hystart;
mod prr;
mod rack;
mod ranges;
mod rate;
mod receiving;
mod rto;
mod scoreboard;
mod sending;
mod sent;

pub mod congestion;

pub use config::{Ecn, LossDetection, Params, TcpConfig};
pub use connection::{Connection, State, Transmit, clock};
pub use host::{Host, TcpParams};
pub use receiving::Arrival;

/// Counters and state of a connection's sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpStats {
    /// Segments sent that occupy sequence numbers, retransmissions included.
    pub sent: u64,
    /// Segments sent that carried octets sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast recoveries.
    pub recoveries: u32,
    /// Tail loss probes sent.
    pub probes: u32,
    /// Recoveries and timeouts that turned out to be spurious, and were taken back.
    pub undone: u32,
    /// The congestion window, octets.
    pub cwnd: u64,
    /// Slow start threshold, octets.
    pub ssthresh: u64,
}

#[cfg(test)]
mod tests;
