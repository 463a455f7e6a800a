//! The reorder buffer: memory for payload that arrived out of order, for schemes that do not place it at once (MELO,
//! section 3.2.2).

use alloc::vec::Vec;

use selvedge_units::Seq;

/// Reorder buffer of one direction of a connection, in the host's memory. Packet `seq` is kept in slot `seq mod slots`,
/// with its payload and its destination of type `D`; the receiver decides which packets are kept, and when they leave.
///
/// The table of slots is allocated when the first packet is kept. Memory for payload comes from [`Spare`] and returns
/// there, so that a NIC with many connections has as much of it as packets have ever waited at one time.
#[derive(Debug)]
pub struct ReorderBuffer<D> {
    slots: u32,
    table: Vec<Option<Kept<D>>>,
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
        Self { slots, table: Vec::new() }
    }
    /// Returns whether the buffer has slots: the scheme delivers packets in order.
    pub fn has_slots(&self) -> bool {
        self.slots > 0
    }

    fn slot(&mut self, seq: Seq) -> Option<&mut Option<Kept<D>>> {
        let at = seq.index().checked_rem(u64::from(self.slots))?;
        self.table.get_mut(at as usize)
    }

    /// Keeps packet `seq` with `length` bytes of payload for `destination`; `write` appends the payload to an empty
    /// vector. Without slots, nothing is kept.
    pub fn keep(&mut self, seq: Seq, destination: D, length: u32, spare: &mut Spare, write: impl FnOnce(&mut Vec<u8>)) {
        if self.table.is_empty() {
            self.table.resize_with(self.slots as usize, || None);
        }
        let Some(slot) = self.slot(seq) else { return };
        let before = slot.take().map(|kept| kept.payload);
        let mut payload = before.or_else(|| spare.0.pop()).unwrap_or_default();
        payload.clear();
        write(&mut payload);
        *slot = Some(Kept { destination, length, payload });
    }

    /// Removes and returns packet `seq`, if it is kept. The caller copies its payload on, and then returns the memory
    /// ([`Spare::give`]).
    pub fn take(&mut self, seq: Seq) -> Option<Kept<D>> {
        self.slot(seq)?.take()
    }

    /// Removes all packets, and frees the table.
    pub fn clear(&mut self, spare: &mut Spare) {
        for kept in self.table.drain(..).flatten() {
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
}
