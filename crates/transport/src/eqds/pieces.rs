//! Tracking of the arrived packets of a native message: tunnels may deliver them in any order, and twice after a tunnel
//! was re-established.

use selvedge_units::Seq;

use crate::bitmap::Bitmap;

/// The arrival state of one message's packets.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The first missing packet: all before it have arrived.
    first: Seq,
    /// Packets that have arrived beyond `first`.
    beyond: Bitmap,
    missing: u64,
}

impl Pieces {
    /// Creates a message of `packets` packets, none of which has arrived.
    pub fn new(packets: u64) -> Self {
        Self { first: Seq::ZERO, beyond: Bitmap::default(), missing: packets }
    }

    /// Records the arrival of packet `index`; returns whether the packet is new.
    #[inline]
    pub fn insert(&mut self, index: u32) -> bool {
        let seq = Seq::new(index.into());
        if seq < self.first || !self.beyond.insert(self.first, seq) {
            return false;
        }
        if seq == self.first {
            self.first = self.beyond.take_run(seq);
        }
        self.missing -= 1;
        true
    }

    /// Returns the number of packets that have not arrived.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}
