//! What engines and their drivers say to each other.

use selvedge_telemetry::{Probe, Trace};
use selvedge_units::{Bytes, Instant, QpNumber, Rate, Seq};
use selvedge_wire::Ack;

/// Everything that an engine may learn from outside during one call.
pub struct Cx<'a> {
    /// The time. Never goes back.
    pub now: Instant,
    /// Who listens, if anybody.
    pub probe: Option<&'a mut dyn Probe>,
}

impl Cx<'_> {
    /// A call at `now` with nobody listening.
    #[inline]
    pub const fn at(now: Instant) -> Cx<'static> {
        Cx { now, probe: None }
    }
    /// Tells the probe whose turn it is.
    #[inline]
    pub fn about(&mut self, qp: QpNumber) {
        if let Some(probe) = &mut self.probe {
            probe.on_queue_pair(qp);
        }
    }
    /// Tells the probe; without one this is a single untaken branch.
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

/// What a sender would do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Send this.
    Send(Segment),
    /// Nothing before this instant, unless something arrives.
    Wait(Instant),
    /// Nothing, until something arrives or is supplied.
    Idle,
}

impl Next {
    /// Packet `seq`, for the first time or again.
    #[inline]
    pub const fn packet(seq: Seq, retransmission: bool) -> Self {
        Self::Send(Segment { seq, retransmission })
    }
}

/// What a sender waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Nothing but its turn on the link.
    Link,
    /// Pacing, until this instant.
    Pacing(Instant),
    /// The congestion window, until something arrives.
    Window,
    /// The loss recovery's own limit on packets in flight (IRN's BDP-FC), until something arrives.
    Cap,
    /// The loss recovery, until this instant: a lost packet is being fetched, or it backs off.
    Recovery(Instant),
    /// Acknowledgements: everything has been sent.
    Acks,
}

/// What limits a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Congestion control's window; [`Bytes::MAX`] without one.
    pub window: Bytes,
    /// Congestion control's rate; [`Rate::MAX`] without one.
    pub rate: Rate,
    /// Packets believed to be in the network.
    pub in_flight: u64,
}

/// One packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Which.
    pub seq: Seq,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// What a receiver makes of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// What to do with the payload.
    pub verdict: Verdict,
    /// What to send back.
    pub ack: Option<Ack>,
}

/// What to do with a data packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This packet for the first time, in order or not: place it.
    Accepted(Seq),
    /// This packet for the first time, out of order: keep it in the reorder buffer, and where it belongs
    /// with it.
    Buffered(Seq),
    /// This packet in order: place it, and copy the next `run` packets behind it out of the reorder buffer.
    Released {
        /// This packet.
        seq: Seq,
        /// How many that were buffered.
        run: u32,
    },
    /// It had arrived before: drop it.
    Duplicate,
    /// It came out of order and the scheme keeps no such packets (go-back-N), or has no room for it (MELO): drop
    /// it.
    Refused,
    /// It lies outside the window that an honest sender stays in: drop it, answer nothing.
    Invalid,
}

impl Verdict {
    /// The packet, if this is its first time.
    #[inline]
    pub const fn accepted(self) -> Option<Seq> {
        match self {
            Self::Accepted(seq) | Self::Buffered(seq) | Self::Released { seq, .. } => Some(seq),
            Self::Duplicate | Self::Refused | Self::Invalid => None,
        }
    }
}
