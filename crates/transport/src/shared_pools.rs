//! State that the queue pairs of one NIC share.

use crate::recovery::melo::{BitsPool, Residents};

/// Memory on a NIC's chip that its queue pairs share, with counts of state that did not fit. The NIC owns the memory
/// and lends it to the engines for each call; most schemes use none.
#[derive(Clone, Debug, Default)]
pub struct SharedPools {
    /// Pool of receivers' bits, for packets that have arrived out of order (MELO, section 3.2.3).
    pub receiving: BitsPool,
    /// Pool of senders' bits, for packets that receivers have reported as arrived out of order (MELO, section 3.2.4).
    pub sending: BitsPool,
    /// Packets dropped because there was no room for their bits or their payload (MELO, section 3.2.5).
    pub exhausted: u64,
    /// Packets dropped because their bits were in the middle of a list (MELO, section 3.2.3).
    pub middle: u64,
    /// NACKs whose contents were not recorded for lack of room.
    pub forgotten: u64,
    /// Receivers whose state is on the chip, where the chip has room for some connections only (MELO, section 3.2.5).
    pub(crate) receivers: Residents,
    /// Senders whose state is on the chip, where the chip has room for some connections only (MELO, section 3.2.5).
    pub(crate) senders: Residents,
}

impl SharedPools {
    /// Returns a chip with two pools of `blocks` blocks of `block` bits each, and room for the state of `connections`
    /// receivers and as many senders; zero connections means any number.
    pub(crate) fn with_pools(blocks: u32, block: u32, connections: usize) -> Self {
        Self {
            receiving: BitsPool::new(blocks, block),
            sending: BitsPool::new(blocks, block),
            receivers: Residents::new(connections),
            senders: Residents::new(connections),
            ..Self::default()
        }
    }

    /// Returns whether there is no memory.
    pub fn is_none(&self) -> bool {
        self.receiving.blocks() == 0
    }
    /// Returns how often a connection's state has left the chip to make room for another one's.
    pub fn swaps(&self) -> u64 {
        self.receivers.swaps() + self.senders.swaps()
    }
}
