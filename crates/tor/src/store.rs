//! Packets in slots, whose memory is reused: no packet allocates once as many were kept at a time.

/// Packets that are kept: copies, and held packets.
#[derive(Debug, Default)]
pub(crate) struct Store {
    slots: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// Buffers for the next packets.
    spare: Vec<Vec<u8>>,
}

/// Buffers that wait to be reused, at most.
const SPARE: usize = 4_096;

impl Store {
    /// Returns a buffer with these bytes.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        buffer
    }
    /// Takes back a buffer.
    pub(crate) fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Keeps a packet.
    pub(crate) fn keep(&mut self, packet: Vec<u8>) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                slot
            }
            None => {
                self.slots.push(packet);
                self.slots.len() as u32 - 1
            }
        }
    }
    /// Returns a copy of a kept packet.
    pub(crate) fn copy(&mut self, slot: u32) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(&self.slots[slot as usize]);
        buffer
    }
    /// Returns a kept packet, which is kept no longer.
    pub(crate) fn take(&mut self, slot: u32) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.slots[slot as usize])
    }
    /// Forgets a kept packet.
    pub(crate) fn drop(&mut self, slot: u32) {
        let buffer = self.take(slot);
        self.reuse(buffer);
    }
    /// Returns the number of kept packets.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
