//! Bytes of packets in slots: memory is reused, so that no packet allocates once as many were in use at a time.

/// Packets, each in a slot.
#[derive(Debug)]
pub(super) struct Store<T> {
    slots: Vec<Slot<T>>,
    /// Free slots with little memory, and with much.
    free: [Vec<u32>; 2],
    /// Bytes in use.
    bytes: u64,
}

#[derive(Debug)]
struct Slot<T> {
    bytes: Vec<u8>,
    about: Option<T>,
}

/// Capacity in bytes up to which a slot has little memory.
const LITTLE: usize = 2_048;

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: [Vec::new(), Vec::new()], bytes: 0 }
    }
}

impl<T> Store<T> {
    /// Returns the bytes of all packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a slot with a copy of `parts`, one behind the other.
    pub(super) fn put<const N: usize>(&mut self, parts: [&[u8]; N], about: T) -> u32 {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let slot = self.free[usize::from(length > LITTLE)].pop().unwrap_or_else(|| {
            let slot = self.slots.len() as u32;
            self.slots.push(Slot { bytes: Vec::new(), about: None });
            slot
        });
        let place = &mut self.slots[slot as usize];
        parts.into_iter().for_each(|part| place.bytes.extend_from_slice(part));
        place.about = Some(about);
        self.bytes += length as u64;
        slot
    }

    /// Appends to a packet.
    pub(super) fn append(&mut self, slot: u32, bytes: &[u8]) {
        if let Some(place) = self.slots.get_mut(slot as usize).filter(|place| place.about.is_some()) {
            place.bytes.extend_from_slice(bytes);
            self.bytes += bytes.len() as u64;
        }
    }

    /// Returns the slots of the packets that `are` describes.
    pub(super) fn slots(&self, are: impl Fn(&T) -> bool) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().zip(0..);
        slots.filter(move |(slot, _)| slot.about.as_ref().is_some_and(&are)).map(|(_, at)| at)
    }

    /// Returns the bytes of a packet and what is known about it; `None` if the slot is free.
    pub(super) fn get(&self, slot: u32) -> Option<(&[u8], &T)> {
        let slot = self.slots.get(slot as usize)?;
        Some((&slot.bytes, slot.about.as_ref()?))
    }
    /// Returns what is known about a packet.
    pub(super) fn about(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.about.as_mut()
    }

    /// Frees a slot.
    pub(super) fn free(&mut self, slot: u32) {
        let Some(place) = self.slots.get_mut(slot as usize).filter(|place| place.about.is_some()) else { return };
        self.bytes -= place.bytes.len() as u64;
        place.about = None;
        place.bytes.clear();
        self.free[usize::from(place.bytes.capacity() > LITTLE)].push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_by_size() {
        let mut store = Store::default();
        let (long, short) = (store.put([&[1; 10], &[2; 5_000]], 'l'), store.put([&[3; 100], &[]], 's'));
        assert_eq!((store.bytes(), store.get(long).map(|(bytes, _)| bytes.len())), (5_110, Some(5_010)));
        store.free(long);
        store.free(short);
        store.free(short);
        assert_eq!((store.bytes(), store.get(long)), (0, None));
        assert_eq!(store.put([&[4; 90], &[]], 'x'), short, "not the long one");
        assert_eq!(store.put([&[4; 4_000], &[]], 'y'), long);
        assert_eq!(store.get(short), Some((&[4; 90][..], &'x')));
    }
}
