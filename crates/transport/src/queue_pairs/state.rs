//! The two ends of a queue pair: an engine and the state of its flow.

use selvedge_units::{Bytes, HostId, Instant, QpNumber, Seq};

use super::RdmaParams;
use crate::endpoint::{Alarm, Context};
use crate::feedback::Feedback;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// Feedback for the sending end of a queue pair that travels outside the fabric: an RTT sample where data is not
/// acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Host of the sending end.
    pub to: HostId,
    /// Queue pair at the sending end.
    pub qp: QpNumber,
    /// Slot of the queue pair at the sending end.
    pub slot: u32,
    /// Sending time of the packet that has just arrived.
    pub sent_at: Instant,
    /// Bytes on the wire that have arrived since the previous report.
    pub bytes: Bytes,
}

/// Sending end of a queue pair. State that every packet touches comes first, as in its engine.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SendQp {
    pub(super) qp: QpNumber,
    pub(super) dst: HostId,
    pub(super) entropy: u32,
    pub(super) context: u32,
    /// Index of the last packet, whose payload may be short.
    pub(super) last: Seq,
    pub(super) last_payload: u16,
    /// Traffic class of the data.
    pub(super) class: u8,
    /// Whether the queue pair waits for its turn at the link.
    pub(super) queued: bool,
    /// Deadline of the engine's timers. `pacing` is that of its next packet.
    pub(super) timer: Alarm,
    pub(super) pacing: Alarm,
    pub(super) sender: Sender,
}

impl SendQp {
    /// Updates the turn and the deadlines after a change of the engine's state. A queue pair that waits for its turn is
    /// asked when its turn comes.
    #[inline(always)]
    pub(super) fn settle(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32) {
        if self.queued {
            self.timer.set_at(cx, entry, self.sender.timers());
        } else {
            self.ask(cx, entry);
        }
    }

    /// Gives the queue pair a turn at the link if the engine has a packet to send now. Sets the deadlines of a later
    /// packet, and of timers.
    #[inline(always)]
    pub(super) fn ask(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32) {
        let (sends_at, timers) = self.sender.next_times(cx.now());
        self.timer.set_at(cx, entry, timers);
        self.queued = sends_at <= cx.now();
        if self.queued {
            cx.ready(entry);
        } else {
            self.pacing.set_at(cx, entry, sends_at);
        }
    }
}

/// Receiving end of a queue pair.
#[derive(Debug)]
pub(super) struct RecvQp {
    pub(super) receiver: Receiver,
    pub(super) feedback: Feedback,
    pub(super) context: u32,
    pub(super) duplicates: u32,
    /// Packets that have not arrived yet.
    pub(super) missing: u64,
}
