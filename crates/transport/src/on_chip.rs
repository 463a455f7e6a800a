//! What the queue pairs of one NIC share.

use crate::recovery::melo::{BitsPool, Residents};

/// Memory on a NIC's chip that its queue pairs share, with counts of what did not fit. The NIC owns it and lends
/// it for each call; most schemes have none.
#[derive(Clone, Debug, Default)]
pub struct OnChip {
    /// Bits for what has arrived out of order (MELO, section 3.2.3).
    pub receiving: BitsPool,
    /// Bits for what receivers have told of it (MELO, section 3.2.4).
    pub sending: BitsPool,
    /// Packets dropped because there was no room for their bits or their payload (MELO, section 3.2.5).
    pub exhausted: u64,
    /// Packets dropped because their bits were in the middle of a list (MELO, section 3.2.3).
    pub middle: u64,
    /// NACKs that found no room to be remembered in.
    pub forgotten: u64,
    /// Receivers whose state is here, and senders, where it has room for some only (MELO, section 3.2.5).
    pub(crate) receivers: Residents,
    /// See `receivers`.
    pub(crate) senders: Residents,
}

impl OnChip {
    /// Two pools of so many blocks, and room for so many receivers and as many senders; zero is any number.
    pub(crate) fn with_pools(blocks: u32, connections: usize) -> Self {
        Self {
            receiving: BitsPool::new(blocks),
            sending: BitsPool::new(blocks),
            receivers: Residents::new(connections),
            senders: Residents::new(connections),
            ..Self::default()
        }
    }

    /// How many connections have left the chip for others.
    pub fn swaps(&self) -> u64 {
        self.receivers.swaps() + self.senders.swaps()
    }
}
