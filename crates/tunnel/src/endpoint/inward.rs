//! The receiving end of a tunnel.

use selvedge_transport::eqds::{EqdsParams, Pacer, Receiver};
use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::v1::Next;
use selvedge_wire::eqds::{Control, Flags};

use super::assembly::Assembly;

/// Facts about a datagram that waits in a reorder queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrived {
    pub(super) next: Next,
    /// Whether the datagram carried a mark of congestion.
    pub(super) is_marked: bool,
}

/// The last datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) path: u16,
    /// Packet number.
    pub(super) number: u32,
    pub(super) key_epoch: u32,
    /// Time of arrival.
    pub(super) at: Instant,
}

/// The receiving end of a tunnel.
#[derive(Debug)]
pub(super) struct Inward {
    /// Parameters; the service is the one that the sender chose when the tunnel began.
    pub(super) params: EqdsParams,
    pub(super) receiver: Receiver<u32>,
    pub(super) assembly: Assembly,
    /// Quanta that the sender is owed, as the pacer knows.
    pub(super) owed: u32,
    /// Whether the tunnel is in the pacer's list.
    is_listed: bool,
    /// Report that is to be sent; later ones are joined to it.
    pending: Option<Control>,
    pub(super) last: Last,
    /// Key epoch under which the tunnel began.
    pub(super) key_epoch: u32,
    /// Earliest entry in the heap of deadlines.
    pub(super) armed: Instant,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Inward {
    pub(super) fn new(params: EqdsParams) -> Self {
        Self {
            params,
            receiver: Receiver::new(),
            assembly: Assembly::default(),
            owed: 0,
            is_listed: false,
            pending: None,
            last: Last { path: 0, number: 0, key_epoch: 0, at: Instant::ZERO },
            key_epoch: 0,
            armed: Instant::NEVER,
            packets: 0,
            bytes: 0,
        }
    }

    /// Tells the pacer what the sender is owed. `name` is that of the tunnel.
    pub(super) fn account(&mut self, now: Instant, pacer: &mut Pacer, name: u32) {
        let owed = self.receiver.owed(&self.params);
        pacer.note_owed(self.owed, owed);
        self.owed = owed;
        if owed > 0 && !self.is_listed {
            self.is_listed = true;
            pacer.push(now, name, 0);
        }
    }

    /// Enters the list of a new pacer.
    pub(super) fn enlist(&mut self, now: Instant, pacer: &mut Pacer, name: u32) {
        (self.owed, self.is_listed) = (0, false);
        self.account(now, pacer, name);
    }

    /// Returns the report that grants credit, after the pacer has chosen this tunnel.
    pub(super) fn grant(&mut self, now: Instant, pacer: &mut Pacer, name: u32) -> Option<Control> {
        self.is_listed = false;
        if self.owed == 0 {
            return None;
        }
        let quanta = self.owed.min(pacer.quanta());
        let control = self.receiver.grant(&self.params, quanta)?;
        pacer.spend(name, quanta);
        self.account(now, pacer, name);
        Some(control)
    }

    /// Joins a cumulative report to the pending one; returns whether there was none.
    pub(super) fn join(&mut self, control: Control) -> bool {
        let flags = self.pending.map_or(Flags::NONE, |pending| pending.flags);
        self.pending.replace(Control { flags: control.flags.with(flags), ..control }).is_none()
    }
    /// Removes the pending report.
    pub(super) fn take_pending(&mut self) -> Option<Control> {
        self.pending.take()
    }

    /// Moves the origin of time by `by`.
    pub(super) fn rebase(&mut self, by: Duration) {
        self.receiver.rebase(by);
        super::rebase(&mut self.armed, by);
        super::rebase(&mut self.last.at, by);
    }
}

/// Returns whether a report says nothing of single packets, so that a later one makes it superfluous.
pub(super) fn is_cumulative(control: &Control) -> bool {
    !control.flags.any(Flags::SACK.with(Flags::NACK).with(Flags::RST))
}
