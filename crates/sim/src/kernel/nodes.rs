//! The contract between the kernel and the nodes that it visits.

use std::ops::Range;

use super::calendar::Calendar;
use super::rounds::WindowSlice;

/// Message between nodes: a plain value that waits in an inbox for the window of its arrival.
pub(crate) trait Message: Copy {
    /// Returns the time of arrival, in picoseconds after the beginning of the window of its arrival.
    fn at(&self) -> u32;
    /// Returns the port through which the message arrives.
    fn port(&self) -> u16;
    /// Sets the time of arrival and the port.
    fn set_arrival(&mut self, at: u32, port: u16);
}

/// Outbox of a partition for another one, at the end of a window.
pub(crate) trait Exchange: Default + Send {
    /// Moves everything that `other` holds to the end.
    fn append(&mut self, other: &mut Self);
    /// Returns whether there is nothing.
    fn is_empty(&self) -> bool;
}

/// The nodes of one partition, numbered from 0, with their calendar.
///
/// The kernel visits each node at most once in a window, except where a window is cut short, in an order that changes
/// no result: a visited node takes its [inbox](Calendar::take_inbox), handles everything before the limit in the order
/// of its own, sends messages through the calendar, and [leaves](Nodes::leave).
pub(crate) trait Nodes: Send {
    /// Messages between nodes.
    type Message: Message;
    /// Messages, and what belongs to them, between partitions.
    type Outbox: Exchange;

    fn calendar(&self) -> &Calendar<Self::Message>;
    fn calendar_mut(&mut self) -> &mut Calendar<Self::Message>;
    /// Returns the list of nodes that have something left to do in a window that was cut short, see [`Nodes::leave`].
    fn postponed(&mut self) -> &mut Vec<u32>;
    /// Handles the beginning of a part of a window, in picoseconds: everything before it has happened, and nothing from
    /// its end on may happen. What begins by itself in this part, without a message, is booked for it here.
    fn enter(&mut self, part: Range<u64>);
    /// Prefetches what the visits of the next nodes behind `nodes[at]` need. For `at` below zero (wrapped around),
    /// those before the first visit.
    fn prepare(&mut self, nodes: &[u32], at: usize);
    /// Visits `node`, which handles all its events before `limit`, in picoseconds.
    fn visit(&mut self, node: u32, limit: u64);
    /// Returns the next window, at `from` or later, in which something begins by itself.
    fn next_beginning(&self, from: u64) -> Option<u64>;
    /// Moves messages for other partitions to the outboxes.
    fn pack(&mut self);
    /// Returns the outboxes, indexed by partition.
    fn outboxes(&mut self) -> &mut [Self::Outbox];
    /// Takes in what another partition has sent.
    fn deliver(&mut self, outbox: &mut Self::Outbox);
    /// Returns the number of events so far.
    fn events(&self) -> u64;

    /// Number of visits before which [`Nodes::prepare`] begins.
    const PREPARED: usize;

    /// Handles the events that are left of a window, up to the end of `slice`.
    fn run_window(&mut self, slice: WindowSlice) {
        let limit = self.turn_to(slice);
        while let Some(nodes) = self.calendar_mut().take_agenda() {
            self.visit_all(nodes, limit);
        }
        while let Some(node) = self.postponed().pop() {
            self.calendar_mut().book_again(node, slice.end.as_ps());
        }
    }

    /// Handles two whole windows section by section: that of the leading side, and that of the other. The results equal
    /// those of one window after the other.
    fn run_pair(&mut self, windows: [WindowSlice; 2]) {
        let mut sections = 0;
        while let Some(section) = self.calendar().section(sections) {
            let limit = self.turn_to(windows[usize::from(!section.leads)]);
            while let Some(nodes) = self.calendar_mut().take_section(&section) {
                self.visit_all(nodes, limit);
            }
            sections += 1;
        }
        windows.into_iter().for_each(|window| self.run_window(window));
    }

    /// Turns to a window; returns the time, in picoseconds, at which it ends, or at which `slice` does if that is
    /// earlier.
    fn turn_to(&mut self, slice: WindowSlice) -> u64 {
        self.calendar_mut().turn_to(slice.window);
        let limit = slice.end.as_ps().min(self.calendar().end());
        self.enter(slice.begin.as_ps()..limit);
        limit
    }

    /// Visits `nodes`; the list then goes back to the calendar.
    fn visit_all(&mut self, nodes: Vec<u32>, limit: u64) {
        for before in (1..=Self::PREPARED).rev() {
            self.prepare(&nodes, 0_usize.wrapping_sub(before));
        }
        for (at, &node) in nodes.iter().enumerate() {
            self.prepare(&nodes, at);
            self.visit(node, limit);
        }
        self.calendar_mut().return_agenda(nodes);
    }

    /// Ends a visit to `node` at `limit`; the node's next event comes at `next`, `u64::MAX` if there is none without a
    /// further message.
    #[inline]
    fn leave(&mut self, node: u32, next: u64, limit: u64) {
        if next == u64::MAX {
            return;
        }
        let end = self.calendar().end();
        if limit < end && next < end {
            self.postponed().push(node);
        } else {
            self.calendar_mut().book_again(node, next);
        }
    }

    /// Returns the next window, at `from` or later, in which something may happen; `None` if there is none.
    fn next_window(&self, from: u64) -> Option<u64> {
        self.next_beginning(from).into_iter().chain(self.calendar().next_window(from)).min()
    }

    /// Runs a window and moves what it sends to other partitions to `outboxes`.
    fn run_shared(&mut self, slice: WindowSlice, mut give: impl FnMut(usize, &mut Self::Outbox)) {
        self.run_window(slice);
        self.pack();
        for (to, outbox) in self.outboxes().iter_mut().enumerate() {
            if !outbox.is_empty() {
                give(to, outbox);
            }
        }
    }
}
