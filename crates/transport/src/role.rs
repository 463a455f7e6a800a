//! Types that engines and their drivers exchange.

use selvedge_telemetry::{Probe, Trace};
use selvedge_units::{Bytes, Instant, QpNumber, Rate, Seq};
use selvedge_wire::Ack;

/// The outside world as an engine sees it during one call: the time and a probe.
pub struct Cx<'a> {
    /// The current time, which never decreases.
    pub now: Instant,
    /// The probe that observes the engine, if any.
    pub probe: Option<&'a mut dyn Probe>,
}

impl Cx<'_> {
    /// Returns a context at `now` without a probe.
    #[inline]
    pub const fn at(now: Instant) -> Cx<'static> {
        Cx { now, probe: None }
    }
    /// Tells the probe which queue pair the next events belong to.
    #[inline]
    pub fn about(&mut self, qp: QpNumber) {
        if let Some(probe) = &mut self.probe {
            probe.on_queue_pair(qp);
        }
    }
    /// Reports an event to the probe; without a probe, the cost is one untaken branch.
    #[inline]
    pub fn trace(&mut self, event: impl FnOnce() -> Trace) {
        #[cold]
        fn tell(probe: &mut dyn Probe, now: Instant, event: impl FnOnce() -> Trace) {
            probe.on_trace(now, &event());
        }
        if let Some(probe) = &mut self.probe {
            tell(&mut **probe, self.now, event);
        }
    }
}

/// A sender's decision at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Send this packet.
    Send(Segment),
    /// Send nothing before this instant, unless an input arrives.
    Wait(Instant),
    /// Send nothing until an input arrives or packets are supplied.
    Idle,
}

impl Next {
    /// Returns the decision to send packet `seq`, for the first time or again.
    #[inline]
    pub const fn packet(seq: Seq, retransmission: bool) -> Self {
        Self::Send(Segment { seq, retransmission })
    }
}

/// The reason why a sender does not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldReason {
    /// The link: the sender has a packet and waits only for its turn.
    Link,
    /// Pacing, until this instant.
    Pacing(Instant),
    /// The congestion window, until something arrives.
    Window,
    /// The loss recovery's own limit on packets in flight (IRN's BDP-FC), until something arrives.
    Cap,
    /// The loss recovery, until this instant: a lost packet is being fetched, or the sender backs off.
    Recovery(Instant),
    /// Acknowledgements: everything has been sent.
    Acks,
}

/// The limits of a sender at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Congestion control's window; [`Bytes::MAX`] without one.
    pub window: Bytes,
    /// Congestion control's rate; [`Rate::MAX`] without one.
    pub rate: Rate,
    /// Packets believed to be in the network.
    pub in_flight: u64,
}

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Number of the packet.
    pub seq: Seq,
    /// Whether the packet was sent before.
    pub retransmission: bool,
}

/// A receiver's reply to a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The treatment of the payload.
    pub verdict: DataVerdict,
    /// The acknowledgement to send back, if any.
    pub ack: Option<Ack>,
}

/// The treatment of a data packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataVerdict {
    /// The packet has arrived for the first time, in order or not: place it.
    Accepted(Seq),
    /// The packet has arrived for the first time, out of order: keep it in the reorder buffer, together with its place
    /// in the application's memory.
    Buffered(Seq),
    /// The packet has arrived in order: place it, and copy the next `run` packets behind it out of the reorder buffer.
    Released {
        /// The packet.
        seq: Seq,
        /// Number of packets to copy from the reorder buffer.
        run: u32,
    },
    /// The packet had arrived before: drop it.
    Duplicate,
    /// The packet has arrived out of order and the scheme keeps no such packets (go-back-N), or has no room for it
    /// (MELO): drop it.
    Refused,
    /// The packet lies outside the window that an honest sender stays in: drop it without an answer.
    Invalid,
}

impl DataVerdict {
    /// Returns the packet if it has arrived for the first time.
    #[inline]
    pub const fn accepted(self) -> Option<Seq> {
        match self {
            Self::Accepted(seq) | Self::Buffered(seq) | Self::Released { seq, .. } => Some(seq),
            Self::Duplicate | Self::Refused | Self::Invalid => None,
        }
    }
}
