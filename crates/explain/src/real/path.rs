//! The path of a packet through the fabric.

use selvedge_telemetry::DropReason;
use selvedge_units::{Duration, Instant, PortId};

/// Path of a packet, as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct PacketPath {
    /// Stream that the packet belongs to.
    pub(super) stream: u32,
    /// Time at which the host sent the packet, or a switch made it.
    pub(super) entered: Instant,
    /// Bytes on a link.
    pub(super) frame: u16,
    /// Bytes of payload.
    pub(super) payload: u32,
    pub(super) class: u8,
    /// Whether the packet carries, or asks for, an application's bytes.
    pub(super) is_data: bool,
    /// Whether the host had sent the same bytes before.
    pub(super) again: bool,
    /// Packet of which a switch has made this copy.
    pub(super) copy_of: Option<u32>,
    /// Output where the packet was marked.
    pub(super) marked: Option<PortId>,
    /// Output where the packet was trimmed.
    pub(super) trimmed: Option<PortId>,
    pub(super) hops: Vec<Hop>,
    pub(super) end: PathEnd,
    /// Time at which the packet was last in a node.
    pub(super) reached: Instant,
    /// Time at which the packet began to wait there for a port.
    pub(super) queued: Option<Instant>,
}

/// One link of a path, and the wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hop {
    /// Port through which the packet left.
    pub(super) port: PortId,
    /// Time at which the packet was in the node.
    pub(super) from: Instant,
    /// Time at which the packet was let to the port; after `from` where NetRT's switch held it.
    pub(super) ready: Instant,
    /// Time at which its first bit left.
    pub(super) sent: Instant,
    pub(super) serialisation: Duration,
    /// Time at which its last bit reached the other end; `None` while it is on the link.
    pub(super) arrived: Option<Instant>,
}

/// End of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathEnd {
    /// The packet is in the fabric.
    UnderWay,
    /// The packet was handed to its host at this time, which is later than its arrival where the process was late.
    Delivered(Instant),
    /// The packet was dropped by the owner of the port through which it had entered.
    Dropped(PortId, DropReason),
}

impl Hop {
    /// Returns when the port was free again.
    pub(super) fn left(&self) -> Instant {
        self.sent + self.serialisation
    }
}

impl PacketPath {
    pub(super) fn delivered(&self) -> Option<Instant> {
        if let PathEnd::Delivered(at) = self.end { Some(at) } else { None }
    }

    /// Returns when the host's link was free again after the packet.
    pub(super) fn left_host(&self) -> Instant {
        self.hops.first().map_or(self.entered, Hop::left)
    }
}
