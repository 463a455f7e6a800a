//! MELO's receiver: a bitmap of blocks from the NIC's pool; the payload of out-of-order packets waits off the chip.

use selvedge_telemetry::Trace;
use selvedge_units::Seq;
use selvedge_wire::{AckKind, Holes};

use super::MeloParams;
use super::linked_bitmap::{LinkedBitmap, Set};
use super::pools::Pools;
use super::residents::{Entered, Name};
use crate::recovery::holes::NewestHoles;
use crate::recovery::{Answer, RecoveryReceiver, SchemeParams};
use crate::role::{Cx, DataVerdict};

/// MELO's receiver (section 3.2).
#[derive(Clone, Debug)]
pub struct Recv {
    /// The packets from RCV.NXT to RCV.HIGH that have arrived; empty while all packets arrive in order.
    arrived: LinkedBitmap,
    holes: NewestHoles,
    /// Slots of the connection's reorder buffer: packet `seq` waits in slot `seq mod slots`.
    slots: u32,
    /// The connection's name, where the chip holds some connections only.
    name: Name,
}

impl Recv {
    /// Creates a receiver that expects the first packet.
    pub fn new(params: &MeloParams) -> Self {
        Self {
            arrived: LinkedBitmap::default(),
            holes: NewestHoles::default(),
            slots: params.reorder_slots(),
            name: Name::default(),
        }
    }

    /// Handles a packet like [`RecoveryReceiver::handle_data`], where the bitmap may have to be loaded first. A packet
    /// is dropped if that is not possible, like one without bits in the pool (section 3.2.5).
    fn on_data_swapping(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, seq: Seq) -> Answer {
        if pools.receivers.enter(&mut pools.receiving, &mut self.name, &mut self.arrived) == Entered::NoRoom {
            pools.exhausted += 1;
            return Answer::new(DataVerdict::Refused, None);
        }
        let answer = self.take(cx, pools, seq);
        pools.receivers.leave(&self.arrived);
        answer
    }

    /// Handles packet `seq` while the bitmap is on the chip.
    #[inline]
    fn take(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, seq: Seq) -> Answer {
        let expected = self.expected();
        let Some(ahead) = seq.checked_since(expected) else {
            return Answer::new(DataVerdict::Duplicate, Some(AckKind::Ack));
        };
        if ahead == 0 {
            if !self.arrived.is_empty() {
                return self.on_front(pools, seq);
            }
            self.arrived.advance(&mut pools.receiving, seq + 1);
            return Answer::new(DataVerdict::Accepted(seq), Some(AckKind::Ack));
        }
        cx.trace(|| Trace::OutOfOrder { expected, seq });
        if ahead >= u64::from(self.slots) {
            pools.exhausted += 1;
            Answer::new(DataVerdict::Refused, None)
        } else if seq < self.arrived.high() {
            self.on_late(pools, seq)
        } else {
            self.on_beyond(pools, seq)
        }
    }

    /// Handles the packet at RCV.NXT, behind which others have arrived: the run that it completes goes to the
    /// application (section 3.1).
    fn on_front(&mut self, pools: &mut Pools, seq: Seq) -> Answer {
        self.arrived.set(&mut pools.receiving, seq);
        self.holes.fill(seq);
        let run = self.arrived.take_run(&mut pools.receiving);
        Answer::new(DataVerdict::Released { seq, run: (run - 1) as u32 }, Some(AckKind::Ack))
    }

    /// Handles a packet below RCV.HIGH, which was retransmitted or overtaken. The middle of the list cannot be reached
    /// (section 3.2.3, "Bits block concatenation").
    fn on_late(&mut self, pools: &mut Pools, seq: Seq) -> Answer {
        match self.arrived.set(&mut pools.receiving, seq) {
            Set::Fresh => {
                self.holes.fill(seq);
                Answer::new(DataVerdict::Buffered(seq), Some(AckKind::Ack))
            }
            Set::Already => Answer::new(DataVerdict::Duplicate, Some(AckKind::Ack)),
            Set::Middle => {
                pools.middle += 1;
                Answer::new(DataVerdict::Refused, None)
            }
        }
    }

    /// Handles a packet beyond RCV.HIGH. All blocks for a gap and the packet are allocated, or none: a packet without
    /// bits in the pool is dropped (section 3.2.5).
    fn on_beyond(&mut self, pools: &mut Pools, seq: Seq) -> Answer {
        let high = self.arrived.high();
        // Most packets behind a hole arrive one after the other.
        if seq == high && !self.arrived.is_empty() && self.arrived.extend(&mut pools.receiving) {
            return Answer::new(DataVerdict::Buffered(seq), Some(AckKind::Ack));
        }
        if !self.arrived.has_room(&pools.receiving, seq + 1) {
            pools.exhausted += 1;
            return Answer::new(DataVerdict::Refused, None);
        }
        self.arrived.push(&mut pools.receiving, seq, false);
        self.arrived.push(&mut pools.receiving, seq + 1, true);
        // "Whenever a new hole in the bitmap forms" (section 3.2.4).
        let is_hole = seq > high;
        if is_hole {
            self.holes.add(high, seq);
        }
        Answer::new(DataVerdict::Buffered(seq), Some(if is_hole { AckKind::Nack } else { AckKind::Ack }))
    }
}

impl RecoveryReceiver for Recv {
    type Shared = Pools;

    #[inline]
    fn expected(&self) -> Seq {
        self.arrived.first()
    }

    // Not inlined, to keep the other schemes' arms of `AnyRecoveryReceiver` inlined.
    #[inline(never)]
    fn handle_data(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, seq: Seq, _: bool) -> Answer {
        if pools.receivers.is_limited() { self.on_data_swapping(cx, pools, seq) } else { self.take(cx, pools, seq) }
    }

    #[inline]
    fn holes(&self) -> Option<Holes> {
        Some(self.holes.as_sent())
    }

    fn release(&mut self, pools: &mut Pools) {
        if pools.receivers.forget(self.name) {
            self.arrived.forget();
        }
        self.arrived.clear(&mut pools.receiving);
        self.holes.clear();
    }
}
