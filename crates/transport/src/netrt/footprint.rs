//! State that NetRT keeps in top-of-rack switches: table II, computed from the settings.

use alloc::format;

use selvedge_units::Bytes;

use super::config::NetRtConfig;
use super::{COUNTER_BITS, STATE_BITS, WINDOW};
use crate::footprint::{Footprint, PSN_BITS, Published, Scope};

const PUBLISHED: Published = Published {
    source: "NetRT table II",
    queue_pair: 32 + 24 + 128 + 2,
    work_request: 0,
    shared: 8 * (100_000 + 100_000),
    note: "in ToRs, not on NICs: shared by the flows of a port, for a bandwidth-delay product of 100 KB; 10,000 flows take \
           40 KB at their source ToR and 192.5 KB at their destination ToR",
};

impl NetRtConfig {
    /// Returns the state that these resolved settings need: of each flow at both its ToRs, and of each port.
    pub fn footprint(&self) -> Footprint {
        let [pool, buffer] =
            [self.pool, self.buffer].map(|room| room.resolve(|| None).map_or(0, |bytes: Bytes| bytes.get() * 8));
        Footprint { published: Some(PUBLISHED), ..Footprint::default() }
            .with("requests", Scope::QueuePair, COUNTER_BITS, "source ToR: how often it was asked for")
            .with("epsn", Scope::QueuePair, PSN_BITS, "destination ToR: ePSN")
            .with("bitmap", Scope::QueuePair, u64::from(WINDOW), "destination ToR: bitmap of what is held")
            .with("state", Scope::QueuePair, STATE_BITS, "destination ToR: Ordered, ReTx or Waiting")
            .with(
                "pool",
                Scope::Shared,
                pool,
                format!("source ToR, each port: duplicate pool of {}", Bytes::new(pool / 8)),
            )
            .with(
                "buffer",
                Scope::Shared,
                buffer,
                format!("destination ToR, each port: reordering buffer of {}", Bytes::new(buffer / 8)),
            )
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Setting;

    use super::*;

    #[test]
    fn it_costs_what_its_paper_says() {
        // "100 Gbps x 5 us" is 62.5 KB, "less than 100 KB" (section III-D1), with which table II counts.
        let bdp = Setting::Value(Bytes::from_kb(100));
        let config = NetRtConfig { enabled: true, pool: bdp, buffer: bdp, ..NetRtConfig::default() };
        let netrt = config.footprint();
        assert_eq!(netrt.bits(Scope::QueuePair), PUBLISHED.queue_pair);
        assert_eq!(netrt.bits(Scope::Shared), PUBLISHED.shared);
        let flows = u64::from(config.flows);
        let bytes = |name: &str| {
            let item = netrt.items.iter().find(|item| item.name == name).expect("an item of table II");
            item.total(flows, 0) / 8
        };
        let table = ["pool", "requests", "buffer", "epsn", "bitmap", "state"].map(bytes);
        assert_eq!(table, [100_000, 40_000, 100_000, 30_000, 160_000, 2_500]);
    }
}
