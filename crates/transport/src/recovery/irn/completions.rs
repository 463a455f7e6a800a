//! When messages complete at the responder: the 2-bitmap of section 5.3.3.
//!
//! Packets may arrive in any order, but the message sequence number (MSN) advances and receive work
//! requests complete (a CQE each) only when everything before has arrived. Per packet that is one
//! of four states, hence two bits in the paper: not arrived, arrived, arrived and ends a message,
//! arrived and ends a message that completes a receive work request. The first is the acceptance's
//! own business; here are the other two, one bit each.

use selvedge_units::Seq;

use crate::bitmap::Bitmap;

/// What the arrival of a packet completes, once everything before it has arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Completion {
    /// Nothing: it is not the end of a message.
    Nothing,
    /// A message: the MSN advances.
    Message,
    /// A message, and with it a receive work request: the MSN advances and a CQE is due.
    Receive,
}

impl Completion {
    /// By BTH opcode (reliable connection).
    pub const fn of_opcode(opcode: u8) -> Self {
        match opcode {
            // SEND last and only, without and with immediate; WRITE last and only with immediate; SEND last and only
            // with invalidate.
            2..=5 | 9 | 11 | 22 | 23 => Self::Receive,
            // WRITE last and only; READ request; atomics, which section 5.1 handles as READs, and so flushes and
            // atomic writes, which are younger than the paper.
            8 | 10 | 12 | 19 | 20 | 28 | 29 => Self::Message,
            _ => Self::Nothing,
        }
    }
}

/// What became complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completed {
    /// Messages.
    pub messages: u64,
    /// Receive work requests.
    pub receives: u64,
}

/// Completions that wait for earlier packets.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    messages: Bitmap,
    receives: Bitmap,
}

impl Completions {
    /// Whether `seq`, in a window that begins at `head`, ends a message, and whether it completes a receive work
    /// request.
    pub(crate) fn waiting(&self, head: Seq, seq: Seq) -> Completion {
        match (self.messages.get(head, seq), self.receives.get(head, seq)) {
            (_, true) => Completion::Receive,
            (true, false) => Completion::Message,
            (false, false) => Completion::Nothing,
        }
    }

    /// Packet `seq` was accepted for the first time; the receiver now expects `after`, and
    /// expected `before` until then. Returns what became complete.
    #[inline]
    pub fn on_accepted(&mut self, seq: Seq, completion: Completion, before: Seq, after: Seq) -> Completed {
        if completion >= Completion::Message {
            self.messages.insert(before, seq);
        }
        if completion == Completion::Receive {
            self.receives.insert(before, seq);
        }
        Completed { messages: self.messages.clear(before, after), receives: self.receives.clear(before, after) }
    }
}
