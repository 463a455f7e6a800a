//! One packet's way through the network, and that of the acknowledgement that it caused.

use std::iter;

use selvedge_sim::topology::Node;
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
pub(crate) struct Transmission {
    /// Packets of its flow that were sent for the first time before it.
    pub(crate) before: u64,
    /// Whether it had been sent before.
    pub(crate) again: bool,
    /// Its traffic class.
    pub(crate) class: u8,
    /// How it travels; of several copies, the one that arrived first.
    pub(crate) forward: Path,
    /// Copies that switches made of it (NetRT).
    copies: Vec<Path>,
    /// Traffic class and path of its acknowledgement.
    pub(crate) backward_class: u8,
    pub(crate) backward: Option<Path>,
}

/// The way of a packet, as far as it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
    /// When it was last in some node; of an acknowledgement at first, when its data packet arrived.
    pub(crate) reached: Instant,
    pub(crate) place: Location,
}

/// Where a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// On the last link of its way so far.
    Link,
    /// In this node, behind that link: in the queue of this port, if it stands in one.
    Node(Node, Option<PortId>),
    /// Where it was to go.
    Destination,
    /// Dropped.
    Lost,
}

impl Transmission {
    pub(crate) fn new(before: u64, again: bool, class: u8, hop: Hop) -> Self {
        let forward = Path { hops: vec![hop], reached: hop.from, place: Location::Link };
        Self { before, again, class, forward, copies: Vec::new(), backward_class: class, backward: None }
    }

    /// When it was sent.
    pub(crate) fn sent(&self) -> Instant {
        self.forward.hops[0].sent
    }

    /// Whether the packet or its acknowledgement was dropped.
    pub(crate) fn is_lost(&self) -> bool {
        iter::once(&self.forward).chain(&self.backward).any(|path| path.place == Location::Lost)
    }

    /// The packet, or a copy of it, leaves `node`.
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

    /// The packet, or a copy of it, has come to an end of a link. Whether it is the first that arrives.
    pub(crate) fn arrive(&mut self, at: Instant, place: Location) -> bool {
        let is_first = self.forward.place != Location::Destination;
        let Some(path) = self.paths().find(|path| path.is_due(at)) else { return false };
        (path.reached, path.place) = (at, place);
        if is_first && place == Location::Destination {
            self.prefer(|path| path.place == Location::Destination);
        }
        is_first && place == Location::Destination
    }

    /// The packet, or a copy of it, which is in `node` or has just come to it, waits there for a port, or is dropped.
    pub(crate) fn stay(&mut self, at: Instant, node: Node, place: Location) {
        if let Some(path) = self.paths().find(|path| path.is_in(node) || path.is_due(at)) {
            path.place = place;
        }
    }

    /// The run is over at `end`: until then what is under way was on links and in queues.
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

    /// A copy of which this is true takes the place of a packet of which it is not.
    fn prefer(&mut self, which: impl Fn(&Path) -> bool) {
        if !which(&self.forward)
            && let Some(copy) = self.copies.iter_mut().find(|copy| which(copy))
        {
            std::mem::swap(&mut self.forward, copy);
        }
    }
}

impl Path {
    /// Whether the packet may still arrive.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.place, Location::Link | Location::Node(..))
    }

    /// The packet leaves the node that it is in.
    pub(crate) fn leave(&mut self, hop: Hop) {
        self.hops.push(Hop { from: self.reached, ..hop });
        self.place = Location::Link;
    }

    fn is_in(&self, node: Node) -> bool {
        matches!(self.place, Location::Node(here, _) if here == node)
    }

    /// Whether it comes to the end of a link at `at`.
    fn is_due(&self, at: Instant) -> bool {
        self.place == Location::Link && self.hops.last().is_some_and(|hop| hop.arrives == at)
    }

    /// Cuts the way off at `end`.
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
