//! Memory on a NIC's chip that its queue pairs share (section 3.2 of the paper).

use selvedge_telemetry::Reordering;
use selvedge_units::Bytes;

use super::{BitsPool, Residents};
use crate::recovery::SharedPart;

/// Memory on a NIC's chip that its queue pairs share, with counts of state that did not fit.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// Pool of receivers' bits, for packets that have arrived out of order (section 3.2.3).
    pub receiving: BitsPool,
    /// Pool of senders' bits, for packets that receivers have reported as arrived out of order (section 3.2.4).
    pub sending: BitsPool,
    /// Packets dropped because there was no room for their bits or their payload (section 3.2.5).
    pub exhausted: u64,
    /// Packets dropped because their bits were in the middle of a list (section 3.2.3).
    pub middle: u64,
    /// NACKs whose contents were not recorded for lack of room.
    pub forgotten: u64,
    /// Receivers whose state is on the chip, where the chip has room for some connections only (section 3.2.5).
    pub(crate) receivers: Residents,
    /// Senders whose state is on the chip, where the chip has room for some connections only (section 3.2.5).
    pub(crate) senders: Residents,
}

impl Pools {
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
}

impl SharedPart for Pools {
    fn is_none(&self) -> bool {
        self.receiving.blocks() == 0
    }
    fn reordering(&self) -> Reordering {
        Reordering {
            buffered: Bytes::ZERO,
            pool_blocks: self.receiving.blocks(),
            pool_peak: self.receiving.peak(),
            sender_pool_peak: self.sending.peak(),
            refused_full: self.exhausted,
            refused_middle: self.middle,
            forgotten: self.forgotten,
            swaps: self.receivers.swaps() + self.senders.swaps(),
        }
    }
}
