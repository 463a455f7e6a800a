//! Packets that wait for an output.
//!
//! Design notes.
//! 1. *Queues* are linked through the packets themselves: a queue is a head and a tail. An
//!    input-queued switch has one per (output, class, input): virtual output queues. A shared-buffer
//!    switch has one per (output, class).
//! 2. *Lines*: the queues of one (output, class) that hold something stand in a ring. Serving takes
//!    one packet from the first queue and sends that queue to the back: round-robin over inputs (IRN
//!    section 4.1) at constant cost, whatever the number of ports.

use super::pool::{NONE, Pool, Slot};
use crate::kernel::prefetch;
use crate::kernel::table::Table;

/// Packets of one class from one input (or from all) to one output.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    head: Slot,
    tail: Slot,
    /// The queue behind it in its line's ring.
    next: u32,
}

/// The queues of one class that wait for one output.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    first: u32,
    last: u32,
    /// Bytes that wait.
    pub(crate) bytes: u64,
    /// The most that ever waited.
    pub(crate) peak: u64,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, next: NONE };

    /// The packets in it, first to last.
    pub(crate) fn packets<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = Slot> + use<'a> {
        let some = |slot| (slot != NONE).then_some(slot);
        std::iter::successors(some(self.head), move |&slot| some(pool.get(slot).next))
    }
}

impl Line {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, bytes: 0, peak: 0 };

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Puts a packet at the end of `queue`.
    #[inline]
    pub(crate) fn push(&mut self, queues: &mut Table<Queue>, queue: u32, pool: &mut Pool, slot: Slot, frame: u64) {
        self.bytes += frame;
        self.peak = self.peak.max(self.bytes);
        pool.get_mut(slot).next = NONE;
        let entry = &mut queues[queue];
        if entry.head == NONE {
            *entry = Queue { head: slot, tail: slot, next: NONE };
            self.append(queues, queue);
        } else {
            pool.get_mut(entry.tail).next = slot;
            entry.tail = slot;
        }
    }

    /// Takes the next packet in round-robin order. The line must not be empty.
    #[inline]
    pub(crate) fn pop(&mut self, queues: &mut Table<Queue>, pool: &Pool) -> Slot {
        let queue = self.first;
        let entry = &mut queues[queue];
        let slot = entry.head;
        let held = pool.get(slot);
        self.bytes -= u64::from(held.packet.frame);
        entry.head = held.next;
        let emptied = held.next == NONE;
        if self.last != queue {
            self.first = core::mem::replace(&mut entry.next, NONE);
            if !emptied {
                self.append(queues, queue);
            }
        } else if emptied {
            (self.first, self.last) = (NONE, NONE);
        }
        slot
    }

    /// Fetches the queue that is served next.
    #[inline]
    pub(crate) fn prefetch_queue(&self, queues: &Table<Queue>) {
        prefetch(queues, self.first);
    }

    /// Fetches the packet that is served next.
    #[inline]
    pub(crate) fn prefetch_packet(&self, queues: &Table<Queue>, pool: &Pool) {
        if self.first != NONE {
            prefetch(pool.places(), queues[self.first].head);
        }
    }

    fn append(&mut self, queues: &mut Table<Queue>, queue: u32) {
        if self.first == NONE {
            self.first = queue;
        } else {
            queues[self.last].next = queue;
        }
        self.last = queue;
    }
}
