//! The reorder buffer: memory for payload that arrived out of order, for schemes that do not place it at once (MELO,
//! section 3.2.2).

use selvedge_units::Seq;

/// The reorder buffer of one queue pair, in the host's memory. Packet `seq` is kept in slot `seq mod slots`; the
/// receiver decides which packets are kept, and when they are released.
pub struct ReorderBuffer {
    slots: Vec<Slot>,
}

/// A kept packet's payload and its destination: the place in the application's memory that the packet named.
#[derive(Clone, Default)]
struct Slot {
    destination: Seq,
    payload: Vec<u8>,
}

impl ReorderBuffer {
    /// Creates an empty buffer of `slots` slots; 0 for schemes that keep no packets.
    pub fn new(slots: u32) -> Self {
        Self { slots: vec![Slot::default(); slots as usize] }
    }

    fn slot(&mut self, seq: Seq) -> &mut Slot {
        let slots = self.slots.len() as u64;
        &mut self.slots[(seq.index() % slots) as usize]
    }

    /// Keeps the payload of packet `seq` for `destination`.
    pub fn keep(&mut self, seq: Seq, destination: Seq, payload: &[u8]) {
        let slot = self.slot(seq);
        slot.destination = destination;
        slot.payload.clear();
        slot.payload.extend_from_slice(payload);
    }

    /// Copies the `run` packets from `first` on to their destinations, by calls of `place`.
    pub fn release(&mut self, first: Seq, run: u32, place: &mut dyn FnMut(Seq, &[u8])) {
        for ahead in 0..u64::from(run) {
            let slot = self.slot(first + ahead);
            place(slot.destination, &slot.payload);
        }
    }
}
