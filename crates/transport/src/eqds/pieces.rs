//! Which packets of a native message have arrived: tunnels may deliver them in any order, and, when built anew, twice.

use selvedge_units::Seq;

use crate::bitmap::Bitmap;

/// The packets of one message.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Everything before it has arrived.
    first: Seq,
    /// What has arrived beyond it.
    beyond: Bitmap,
    missing: u64,
}

impl Pieces {
    /// A message of so many packets, none of which has arrived.
    pub fn new(packets: u64) -> Self {
        Self { first: Seq::ZERO, beyond: Bitmap::default(), missing: packets }
    }

    /// The packet `index` has arrived; returns whether it had not before.
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

    /// Packets that have not arrived.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}
