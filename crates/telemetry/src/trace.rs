//! What happened inside an engine, for people and event files.

use selvedge_units::{Instant, QpNumber, Seq};

/// One thing that happened. Built only while somebody listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// The sender began to repair a loss.
    RecoveryEntered {
        /// First packet that the receiver lacks; the first to be sent again.
        acked: Seq,
        /// Whether a timeout was the reason, rather than a NACK.
        by_timeout: bool,
    },
    /// The sender has everything acknowledged that it repaired.
    RecoveryLeft {
        /// First packet that the receiver lacks.
        acked: Seq,
    },
    /// A packet was sent again.
    Retransmitted {
        /// The packet.
        seq: Seq,
    },
    /// Nothing was heard for a retransmission timeout.
    TimedOut {
        /// First packet that the receiver lacks.
        acked: Seq,
        /// Whether the short timeout passed, of two.
        quick: bool,
    },
    /// The short timeout passed with too much in flight; the long one applies.
    TimeoutExtended {
        /// When that ends.
        until: Instant,
    },
    /// The sender looked for a packet to send again, in a call that sent nothing (IRN's hardware).
    Searched,
    /// A packet arrived that is not the next one.
    OutOfOrder {
        /// The next one.
        expected: Seq,
        /// The one that arrived.
        seq: Seq,
    },
    /// An acknowledgement made no sense: it names packets that were never sent.
    AckIgnored {
        /// First packet that was never sent.
        sent: Seq,
    },
}

/// Somebody who listens to one or many engines.
pub trait Probe {
    /// What follows is about this queue pair. Said where whoever drives the engines cannot know: when
    /// timers run out.
    fn on_queue_pair(&mut self, qp: QpNumber) {
        let _ = qp;
    }
    /// `event` happened at `at`.
    fn on_trace(&mut self, at: Instant, event: &Trace);
}
