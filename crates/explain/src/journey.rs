//! One packet's way through the network, and that of the acknowledgement that it caused.

use selvedge_units::{Duration, Instant, PortId};

/// One link of a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop {
    /// The port through which the packet left.
    pub(crate) port: PortId,
    /// When its last bit was in the node (or, where the way begins, when there was something to send).
    pub(crate) from: Instant,
    /// When its first bit left.
    pub(crate) sent: Instant,
    /// How long it took on the wire.
    pub(crate) serialisation: Duration,
    /// When its last bit is at the other end.
    pub(crate) arrives: Instant,
}

impl Hop {
    /// How long its last bit is on the link.
    pub(crate) fn propagation(&self) -> Duration {
        self.arrives - self.sent - self.serialisation
    }
    /// When the port was free again.
    pub(crate) fn left(&self) -> Instant {
        self.sent + self.serialisation
    }
}

/// A data packet that was sent once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Journey {
    /// Packets of its flow that were sent for the first time before it.
    pub(crate) before: u64,
    /// Whether it had been sent before.
    pub(crate) again: bool,
    /// Its traffic class.
    pub(crate) class: u8,
    /// Its way, as far as it has come.
    pub(crate) way: Vec<Hop>,
    /// When it was last in some node.
    pub(crate) reached: Instant,
    /// Class and way of its acknowledgement.
    pub(crate) back_class: u8,
    pub(crate) back: Vec<Hop>,
    /// When that was last in some node; at first, when its data packet arrived.
    pub(crate) back_reached: Instant,
}

impl Journey {
    /// When it was sent.
    pub(crate) fn sent(&self) -> Instant {
        self.way[0].sent
    }
}
