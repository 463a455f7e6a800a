//! Information that the native EQIF offers to transports (section 6): transmit buffer, pull queue at the destination,
//! round trips. Delivery notices come from [`Sender::handle_control_with`](super::Sender::handle_control_with), and
//! statistics of paths from [`Sender::paths`](super::Sender::paths).

use selvedge_units::{Duration, Instant};

use super::config::EqdsParams;
use super::round_trips::RoundTrips;
use super::sender::Sender;

/// State of one tunnel at one instant, as a transport on top of it sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeInfo {
    /// Bytes that wait to be sent, retransmissions included: the size of the TX buffer.
    pub waiting: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes of credit held.
    pub credit: u32,
    /// Quanta that this tunnel has in the pull queue of the destination, or on their way to or from it.
    pub awaited: u32,
    /// Time for which the destination's link is busy with other tunnels, as far as announced: the others' part of its
    /// pull queue.
    pub pull_queue: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Round-trip times; `None` unless settings have them measured.
    pub round_trips: Option<RoundTrips>,
}

impl<H: Copy> Sender<H> {
    /// Returns the information that native transports are offered.
    pub fn native_info(&self, params: &EqdsParams, now: Instant) -> NativeInfo {
        NativeInfo {
            waiting: self.demand(),
            in_flight: self.in_flight(),
            credit: self.credit(),
            awaited: self.awaited(params),
            pull_queue: self.busy_until().since(now),
            rto: self.rto(params),
            round_trips: self.round_trips().copied(),
        }
    }
}
