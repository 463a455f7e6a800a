//! Outgoing packets.

use selvedge_wire::verbs::Headers;

use super::work::Route;

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transmit {
    /// Route of the packet.
    pub route: Route,
    /// Headers of the packet. Its payload is in the [`Payload`](super::Payload) that came with it.
    pub headers: Headers,
    /// Payload length in bytes.
    pub payload: u32,
}

impl Default for Transmit {
    /// Returns an empty packet without a destination.
    fn default() -> Self {
        Self { route: Route::NOWHERE, headers: Headers::default(), payload: 0 }
    }
}
