//! The path of one packet through the network, and of the acknowledgement that it caused.

use std::iter;

use selvedge_sim::topology::Node;
use selvedge_units::{Duration, Instant, PortId};

/// One link of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop {
    /// Port through which the packet left.
    pub(crate) port: PortId,
    /// Time at which the packet's last bit was in the node (at the beginning of the path: at which there was something
    /// to send).
    pub(crate) from: Instant,
    /// Time at which the packet's first bit left.
    pub(crate) sent: Instant,
    /// Serialisation time on the link.
    pub(crate) serialisation: Duration,
    /// Time at which the packet's last bit is at the other end.
    pub(crate) arrives: Instant,
}

impl Hop {
    /// Returns the propagation time of the packet's last bit.
    pub(crate) fn propagation(&self) -> Duration {
        self.arrives - self.sent - self.serialisation
    }
    /// Returns when the port was free again.
    pub(crate) fn left(&self) -> Instant {
        self.sent + self.serialisation
    }
}

/// One transmission of a data packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    /// Number of packets of the flow sent for the first time before this one.
    pub(crate) before: u64,
    /// Whether the transmission is a retransmission.
    pub(crate) again: bool,
    /// Traffic class of the packet.
    pub(crate) class: u8,
    /// Path of the packet; among several copies, of the one that arrived first.
    pub(crate) forward: Path,
    /// Paths of copies that switches made of the packet (NetRT).
    copies: Vec<Path>,
    /// Traffic class of the acknowledgement.
    pub(crate) backward_class: u8,
    /// Path of the acknowledgement, once there is one.
    pub(crate) backward: Option<Path>,
}

/// The path of a packet, as far as it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
    /// Time at which the packet was last in a node; for an acknowledgement, initially the arrival of its data packet.
    pub(crate) reached: Instant,
    pub(crate) place: Location,
}

/// The location of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// On the last link of the path so far.
    Link,
    /// In this node, at the end of that link; in the queue of this port, if any.
    Node(Node, Option<PortId>),
    /// At the destination.
    Destination,
    /// Dropped.
    Lost,
}

impl Transmission {
    pub(crate) fn new(before: u64, again: bool, class: u8, hop: Hop) -> Self {
        let forward = Path { hops: vec![hop], reached: hop.from, place: Location::Link };
        Self { before, again, class, forward, copies: Vec::new(), backward_class: class, backward: None }
    }

    /// Returns when the packet was sent.
    pub(crate) fn sent(&self) -> Instant {
        self.forward.hops[0].sent
    }

    /// Returns whether the packet or its acknowledgement was dropped.
    pub(crate) fn is_lost(&self) -> bool {
        iter::once(&self.forward).chain(&self.backward).any(|path| path.place == Location::Lost)
    }

    /// Records that the packet, or a copy of it, leaves `node`.
    pub(crate) fn leave(&mut self, node: Node, hop: Hop) {
        if let Some(path) = self.paths().find(|path| path.is_in(node)) {
            path.leave(hop);
            return;
        }
        // The first switch has kept a copy.
        let first = self.forward.hops[0];
        let mut copy = Path { hops: vec![first], reached: first.arrives, place: Location::Link };
        copy.leave(hop);
        self.copies.push(copy);
    }

    /// Records that the packet, or a copy of it, reaches the end of a link. Returns whether it is the first to arrive.
    pub(crate) fn arrive(&mut self, at: Instant, place: Location) -> bool {
        let is_first = self.forward.place != Location::Destination;
        let Some(path) = self.paths().find(|path| path.is_due(at)) else { return false };
        (path.reached, path.place) = (at, place);
        if is_first && place == Location::Destination {
            self.prefer(|path| path.place == Location::Destination);
        }
        is_first && place == Location::Destination
    }

    /// Records that the packet, or a copy of it, which is in or has just reached `node`, waits there for a port or is
    /// dropped.
    pub(crate) fn stay(&mut self, at: Instant, node: Node, place: Location) {
        if let Some(path) = self.paths().find(|path| path.is_in(node) || path.is_due(at)) {
            path.place = place;
        }
    }

    /// Records the end of the run: times of packets in flight and in queues are cut at `end`.
    pub(crate) fn end(&mut self, end: Instant) {
        if !matches!(self.forward.place, Location::Destination) {
            self.prefer(Path::is_under_way);
        }
        self.forward.end(end);
        self.backward.iter_mut().for_each(|back| back.end(end));
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut Path> {
        iter::once(&mut self.forward).chain(&mut self.copies)
    }

    /// Replaces the packet's path by that of a copy for which `which` is true, if it is false for the packet.
    fn prefer(&mut self, which: impl Fn(&Path) -> bool) {
        if !which(&self.forward)
            && let Some(copy) = self.copies.iter_mut().find(|copy| which(copy))
        {
            std::mem::swap(&mut self.forward, copy);
        }
    }
}

impl Path {
    /// Returns whether the packet may still arrive.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.place, Location::Link | Location::Node(..))
    }

    /// Records that the packet leaves its present node.
    pub(crate) fn leave(&mut self, hop: Hop) {
        self.hops.push(Hop { from: self.reached, ..hop });
        self.place = Location::Link;
    }

    fn is_in(&self, node: Node) -> bool {
        matches!(self.place, Location::Node(here, _) if here == node)
    }

    /// Returns whether the packet reaches the end of a link at `at`.
    fn is_due(&self, at: Instant) -> bool {
        self.place == Location::Link && self.hops.last().is_some_and(|hop| hop.arrives == at)
    }

    /// Cuts the path at `end`.
    fn end(&mut self, end: Instant) {
        match self.place {
            Location::Link => {
                let Some(hop) = self.hops.last_mut() else { return };
                hop.serialisation = hop.serialisation.min(end - hop.sent);
                hop.arrives = hop.arrives.min(end);
            }
            Location::Node(_, Some(port)) => {
                let hop = Hop { port, from: self.reached, sent: end, serialisation: Duration::ZERO, arrives: end };
                self.hops.push(hop);
            }
            Location::Node(_, None) | Location::Destination | Location::Lost => {}
        }
    }
}
