//! Completion of messages at the responder: the 2-bitmap of section 5.3.3.
//!
//! Packets may arrive in any order, but the message sequence number (MSN) advances and receive work requests complete
//! (a CQE each) only when every packet before has arrived. Each packet is in one of four states, hence two bits in the
//! paper: not arrived, arrived, arrived and ends a message, arrived and ends a message that completes a receive work
//! request. The receiver records which packets have arrived; this module records the other two facts, one bit each.

use selvedge_units::Seq;

use crate::bitmap::Bitmap;

/// The completion that the arrival of a packet causes, once every packet before it has arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Completion {
    /// Nothing: the packet is not the end of a message.
    Nothing,
    /// A message: the MSN advances.
    Message,
    /// A message, and with it a receive work request: the MSN advances and a CQE is due.
    Receive,
}

impl Completion {
    /// Returns the completion of a packet with this BTH opcode (reliable connection).
    pub const fn of_opcode(opcode: u8) -> Self {
        match opcode {
            // SEND last and only, without and with immediate; WRITE last and only with immediate; SEND last and only
            // with invalidate.
            2..=5 | 9 | 11 | 22 | 23 => Self::Receive,
            // WRITE last and only; READ request; atomics, which section 5.1 handles like READs. Flushes and atomic
            // writes, which are younger than the paper, are handled in the same way.
            8 | 10 | 12 | 19 | 20 | 28 | 29 => Self::Message,
            _ => Self::Nothing,
        }
    }
}

/// Counts of completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completed {
    /// Completed messages.
    pub messages: u64,
    /// Completed receive work requests.
    pub receives: u64,
}

/// Completions that wait for earlier packets.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    messages: Bitmap,
    receives: Bitmap,
}

impl Completions {
    /// Returns whether `seq`, in a window that begins at `head`, ends a message, and whether that message completes a
    /// receive work request.
    pub(crate) fn waiting(&self, head: Seq, seq: Seq) -> Completion {
        match (self.messages.get(head, seq), self.receives.get(head, seq)) {
            (_, true) => Completion::Receive,
            (true, false) => Completion::Message,
            (false, false) => Completion::Nothing,
        }
    }

    /// Handles the first arrival of packet `seq`; the receiver now expects `after`, and expected `before` until
    /// then. Returns the completions.
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
