//! The reorder buffer: memory for payload that arrived out of order, for schemes that do not place it at once (MELO,
//! section 3.2.2).

use alloc::vec::Vec;

use selvedge_units::Seq;

/// Slots of a table when the first packet is kept.
const FIRST: usize = 16;

/// Reorder buffer of one direction of a connection, in the host's memory. Packet `seq` is kept in slot `seq mod slots`,
/// with its payload and its destination of type `D`; the receiver decides which packets are kept, and when they leave.
///
/// The table of slots begins small and is doubled, up to `slots`, whenever two kept packets would have one slot. Memory
/// for payload comes from [`Spare`] and returns there: a NIC has as much of it as packets of all its connections have
/// ever waited at one time.
#[derive(Debug)]
pub struct ReorderBuffer<D> {
    slots: usize,
    table: Vec<Option<(Seq, Kept<D>)>>,
}

/// A packet in a reorder buffer.
#[derive(Debug)]
pub struct Kept<D> {
    /// Place in the application's memory that the packet named.
    pub destination: D,
    /// Payload length in bytes.
    pub length: u32,
    /// Payload of the packet; empty in a simulation without contents.
    pub payload: Vec<u8>,
}

/// Memory for the payload of packets, used again and again; the reorder buffers of a NIC share it.
#[derive(Debug, Default)]
pub struct Spare(Vec<Vec<u8>>);

impl<D> ReorderBuffer<D> {
    /// Creates an empty buffer of `slots` slots; 0 for schemes that keep no packets.
    pub fn new(slots: u32) -> Self {
        Self { slots: slots as usize, table: Vec::new() }
    }
    /// Returns whether the buffer has slots: the scheme delivers packets in order.
    pub fn has_slots(&self) -> bool {
        self.slots > 0
    }

    /// Returns the slot of packet `seq`; `None` if there is no table.
    fn slot(&mut self, seq: Seq) -> Option<&mut Option<(Seq, Kept<D>)>> {
        let at = seq.index().checked_rem(self.table.len() as u64)?;
        self.table.get_mut(at as usize)
    }
    /// Returns whether another packet has the slot of packet `seq`, or there is no slot.
    fn is_taken(&mut self, seq: Seq) -> bool {
        self.slot(seq).is_none_or(|slot| slot.as_ref().is_some_and(|(other, _)| *other != seq))
    }
    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(FIRST).min(self.slots);
        let mut table = Vec::new();
        table.resize_with(length, || None);
        for (seq, kept) in core::mem::replace(&mut self.table, table).into_iter().flatten() {
            if let Some(slot) = self.slot(seq) {
                *slot = Some((seq, kept));
            }
        }
    }

    /// Keeps packet `seq` with `length` bytes of payload for `destination`; `write` appends the payload to an empty
    /// vector. Without slots, nothing is kept.
    pub fn keep(&mut self, seq: Seq, destination: D, length: u32, spare: &mut Spare, write: impl FnOnce(&mut Vec<u8>)) {
        while self.is_taken(seq) && self.table.len() < self.slots {
            self.grow();
        }
        let Some(slot) = self.slot(seq) else { return };
        let before = slot.take().map(|(_, kept)| kept.payload);
        let mut payload = before.or_else(|| spare.0.pop()).unwrap_or_default();
        payload.clear();
        write(&mut payload);
        *slot = Some((seq, Kept { destination, length, payload }));
    }

    /// Removes and returns packet `seq`, if it is kept. The caller copies its payload on, and then returns the memory
    /// ([`Spare::give`]).
    pub fn take(&mut self, seq: Seq) -> Option<Kept<D>> {
        self.slot(seq)?.take_if(|(kept, _)| *kept == seq).map(|(_, kept)| kept)
    }

    /// Removes all packets, and frees the table.
    pub fn clear(&mut self, spare: &mut Spare) {
        for (_, kept) in self.table.drain(..).flatten() {
            spare.give(kept.payload);
        }
        self.table = Vec::new();
    }
}

impl Spare {
    /// Returns memory for use by another packet.
    pub fn give(&mut self, payload: Vec<u8>) {
        if payload.capacity() > 0 {
            self.0.push(payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(buffer: &mut ReorderBuffer<u64>, spare: &mut Spare, seq: u64) {
        buffer.keep(Seq::new(seq), seq * 10, 3, spare, |payload| payload.extend_from_slice(&[seq as u8; 3]));
    }

    #[test]
    fn packets_leave_with_their_payload_and_destination_and_memory_is_used_again() {
        let (mut buffer, mut spare) = (ReorderBuffer::new(4), Spare::default());
        assert!(buffer.take(Seq::new(5)).is_none() && buffer.table.is_empty(), "no table before the first packet");
        for seq in [5, 7, 6] {
            keep(&mut buffer, &mut spare, seq);
        }
        for seq in 5..8 {
            let kept = buffer.take(Seq::new(seq)).expect("the packet is kept");
            assert_eq!((kept.destination, kept.payload.as_slice()), (seq * 10, [seq as u8; 3].as_slice()));
            spare.give(kept.payload);
        }
        assert!(buffer.take(Seq::new(5)).is_none());
        assert_eq!(spare.0.len(), 3);
        for seq in 8..11 {
            keep(&mut buffer, &mut spare, seq);
        }
        assert!(spare.0.is_empty(), "the memory of earlier packets is used again");
        buffer.clear(&mut spare);
        assert_eq!((spare.0.len(), buffer.table.capacity()), (3, 0));
        assert!(buffer.take(Seq::new(9)).is_none());
    }

    #[test]
    fn a_slot_holds_one_packet_and_no_slots_hold_none() {
        let (mut buffer, mut spare) = (ReorderBuffer::new(4), Spare::default());
        keep(&mut buffer, &mut spare, 1);
        keep(&mut buffer, &mut spare, 5);
        assert_eq!(buffer.take(Seq::new(5)).map(|kept| kept.destination), Some(50));
        assert!(buffer.take(Seq::new(1)).is_none() && spare.0.is_empty());
        let mut none = ReorderBuffer::new(0);
        keep(&mut none, &mut spare, 1);
        assert!(!none.has_slots() && none.take(Seq::new(1)).is_none());
    }

    #[test]
    fn the_table_grows_when_two_packets_would_have_one_slot() {
        let (mut buffer, mut spare) = (ReorderBuffer::new(1_000), Spare::default());
        let lengths = [(100, 16), (115, 16), (116, 32), (131, 32), (132, 64), (612, 1_000)].map(|(seq, length)| {
            keep(&mut buffer, &mut spare, seq);
            assert_eq!(buffer.table.len(), length, "packets 100 to {seq}");
            seq
        });
        for seq in lengths {
            assert_eq!(buffer.take(Seq::new(seq)).map(|kept| kept.destination), Some(seq * 10));
        }
        assert!(buffer.table.iter().all(Option::is_none));
    }
}
