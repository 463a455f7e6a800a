//! The reorder buffer: where payload waits that came out of order, for schemes that do not place it at once
//! (MELO, section 3.2.2).

use selvedge_units::Seq;

/// One queue pair's reorder buffer, in the host's memory. Packet `seq` waits in slot `seq mod slots`; which packets
/// may is the receiver's decision, and when they leave.
pub struct ReorderBuffer {
    slots: Vec<Slot>,
}

/// What waits, and where it goes: the place in the application's memory that the packet named.
#[derive(Clone, Default)]
struct Slot {
    destination: Seq,
    payload: Vec<u8>,
}

impl ReorderBuffer {
    /// A buffer of so many slots, empty; none where nothing waits.
    pub fn new(slots: u32) -> Self {
        Self { slots: vec![Slot::default(); slots as usize] }
    }

    fn slot(&mut self, seq: Seq) -> &mut Slot {
        let slots = self.slots.len() as u64;
        &mut self.slots[(seq.index() % slots) as usize]
    }

    /// Keeps a packet's payload for `destination`.
    pub fn keep(&mut self, seq: Seq, destination: Seq, payload: &[u8]) {
        let slot = self.slot(seq);
        slot.destination = destination;
        slot.payload.clear();
        slot.payload.extend_from_slice(payload);
    }

    /// Copies the `run` packets from `first` on to where they go.
    pub fn release(&mut self, first: Seq, run: u32, place: &mut dyn FnMut(Seq, &[u8])) {
        for ahead in 0..u64::from(run) {
            let slot = self.slot(first + ahead);
            place(slot.destination, &slot.payload);
        }
    }
}
