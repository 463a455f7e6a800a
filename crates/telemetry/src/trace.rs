//! Events inside an engine, for display and event files.

use selvedge_units::{Instant, QpNumber, Seq};

/// An event inside an engine. Constructed only while a probe listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// The sender entered loss recovery.
    RecoveryEntered {
        /// First packet missing at the receiver; the first to be retransmitted.
        acked: Seq,
        /// Whether the cause was a timeout, not a NACK.
        by_timeout: bool,
    },
    /// The sender left loss recovery: all retransmissions are acknowledged.
    RecoveryLeft {
        /// First packet missing at the receiver.
        acked: Seq,
    },
    /// A packet was retransmitted.
    Retransmitted {
        /// The retransmitted packet.
        seq: Seq,
    },
    /// A retransmission timeout expired.
    TimedOut {
        /// First packet missing at the receiver.
        acked: Seq,
        /// Whether the short one of two timeouts expired.
        quick: bool,
    },
    /// The short timeout expired with too much in flight; the long one applies.
    TimeoutExtended {
        /// Expiry of the long timeout.
        until: Instant,
    },
    /// The sender searched for a packet to retransmit in a call that sent nothing (IRN's hardware).
    Searched,
    /// A packet arrived out of order.
    OutOfOrder {
        /// The expected packet.
        expected: Seq,
        /// The packet that arrived.
        seq: Seq,
    },
    /// An acknowledgement was ignored: it names packets that were never sent.
    AckIgnored {
        /// First packet that was never sent.
        sent: Seq,
    },
}

/// A listener to the events of one or many engines.
pub trait Probe {
    /// Announces the queue pair of the following events. Called where the driver of the engines cannot know the queue
    /// pair: when timers expire.
    fn on_queue_pair(&mut self, qp: QpNumber) {
        let _ = qp;
    }
    /// Handles `event`, which happened at `at`.
    fn on_trace(&mut self, at: Instant, event: &Trace);
}
