//! A message that this host sends.

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant, QpNumber};

use crate::endpoint::{Alarm, Message};
use crate::role::HoldReason;

/// A message that this host sends, counted in packets.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) message: Message,
    pub(super) qp: QpNumber,
    /// Packets of the message.
    pub(super) packets: u64,
    /// Packets at the beginning that need no grant.
    unscheduled: u64,
    /// Packets sent for the first time.
    pub(super) sent: u64,
    /// Packets that may be sent.
    granted: u64,
    /// Packets to send again.
    again: VecDeque<u64>,
    /// Priorities of unscheduled and of other packets.
    first_priority: u8,
    priority: u8,
    /// Whether the receiver knows of the message.
    pub(super) is_known: bool,
    /// Time of the last packet from the receiver, or to it.
    pub(super) busy: Instant,
    pub(super) alarm: Alarm,
    pub(super) timeouts: u64,
    pub(super) resent: u64,
}

impl Sending {
    /// Creates the state of a message of `packets` packets, `unscheduled` of which need no grant and have
    /// `first_priority`.
    pub(super) fn new(message: &Message, qp: QpNumber, packets: u64, unscheduled: u64, first_priority: u8) -> Self {
        let unscheduled = unscheduled.min(packets);
        Self {
            message: *message,
            qp,
            packets,
            unscheduled,
            sent: 0,
            granted: unscheduled,
            again: VecDeque::new(),
            first_priority,
            priority: first_priority,
            is_known: false,
            busy: Instant::ZERO,
            alarm: Alarm::default(),
            timeouts: 0,
            resent: 0,
        }
    }

    /// Handles a grant: packets before `granted` may be sent. Older grants, which may arrive late, change nothing.
    pub(super) fn handle_grant(&mut self, granted: u64, priority: u8) {
        if granted > self.granted {
            self.granted = granted.min(self.packets);
            self.priority = priority;
        }
    }

    /// Handles a RESEND of `count` packets from `first` on, all of which have been granted; returns whether the sender
    /// has sent any of them. These are sent again.
    pub(super) fn handle_resend(&mut self, first: u64, count: u64, priority: u8) -> bool {
        let end = first.saturating_add(count);
        self.granted = self.granted.max(end.min(self.packets));
        let end = end.min(self.sent);
        for packet in first..end {
            if !self.again.contains(&packet) {
                self.again.push_back(packet);
            }
        }
        self.priority = priority;
        first < end
    }

    /// Sends the first packet again: nothing has come from the receiver, which may not know of the message.
    pub(super) fn repeat_first(&mut self) {
        if self.again.is_empty() && self.sent > 0 {
            self.again.push_back(0);
        }
        self.timeouts += 1;
    }

    /// Returns whether a packet can be sent.
    pub(super) fn is_ready(&self) -> bool {
        !self.again.is_empty() || self.sent < self.granted
    }

    /// Returns the number of packets that were never sent.
    pub(super) fn rest(&self) -> u64 {
        self.packets - self.sent
    }

    /// Returns the priority of the next packet.
    pub(super) fn next_priority(&self) -> u8 {
        let next = self.again.front().copied().unwrap_or(self.sent);
        if next < self.unscheduled && self.again.is_empty() { self.first_priority } else { self.priority }
    }

    /// Returns the next packet, and whether it was sent before.
    pub(super) fn take(&mut self) -> Option<(u64, bool)> {
        if let Some(packet) = self.again.pop_front() {
            self.resent += 1;
            return Some((packet, true));
        }
        let next = self.sent;
        (next < self.granted).then(|| {
            self.sent += 1;
            (next, false)
        })
    }

    pub(super) fn has_lost(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns the time at which the first packet is to be repeated, if nothing comes before: while the receiver may
    /// not know of the message, or its acknowledgement may be lost. Otherwise missing packets are the receiver's
    /// concern.
    pub(super) fn deadline(&self, interval: Duration) -> Option<Instant> {
        let is_waiting = !self.is_ready() && (!self.is_known || self.sent == self.packets);
        // The receiver's request comes first, if it knows of the message.
        is_waiting.then(|| self.busy.saturating_add(interval.saturating_mul(2)))
    }

    /// Returns the reason why the sender does not send.
    pub(super) fn hold(&self) -> HoldReason {
        match self.is_ready() {
            true => HoldReason::Link,
            false if self.sent < self.packets => HoldReason::Window,
            false => HoldReason::Acks,
        }
    }
}
