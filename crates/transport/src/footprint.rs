//! Cost of a scheme's state on a NIC.

use alloc::string::String;
use alloc::vec::Vec;

/// State that a scheme adds to that of RoCE NICs: the accounting of IRN section 6.1 and MELO
/// section 3.2.4, from the scheme's own resolved settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// The pieces of state.
    pub items: Vec<Item>,
    /// The numbers that the scheme's paper gives, if it gives any.
    pub published: Option<Published>,
}

/// One piece of state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The item's name in files; unique within one scheme.
    pub name: &'static str,
    /// The number of instances of the item.
    pub scope: Scope,
    /// Length of one instance, in bits.
    pub bits: u64,
    /// Description of the item, and of how its length follows from the settings.
    pub what: String,
}

/// The number of instances of a piece of state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// One per queue pair.
    QueuePair,
    /// One per work queue element.
    WorkRequest,
    /// One for the whole NIC.
    Shared,
}

/// The cost of a scheme's state according to its paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
    /// The paper and the section.
    pub source: &'static str,
    /// Bits per queue pair.
    pub queue_pair: u64,
    /// Bits per work queue element.
    pub work_request: u64,
    /// Bits shared by the whole NIC.
    pub shared: u64,
    /// The network that the numbers apply to, and further remarks of the paper.
    pub note: &'static str,
}

impl Footprint {
    /// Adds an item.
    pub(crate) fn with(mut self, name: &'static str, scope: Scope, bits: u64, what: impl Into<String>) -> Self {
        debug_assert!(self.items.iter().all(|item| item.name != name), "{name} names two items");
        self.items.push(Item { name, scope, bits, what: what.into() });
        self
    }
    /// Returns the sum of the bits of all items of this scope, one instance each.
    pub fn bits(&self, scope: Scope) -> u64 {
        self.items.iter().filter(|item| item.scope == scope).map(|item| item.bits).sum()
    }
    /// Returns the total bits on a NIC with this many queue pairs and work queue elements.
    pub fn total(&self, queue_pairs: u64, work_requests: u64) -> u64 {
        self.items.iter().map(|item| item.total(queue_pairs, work_requests)).sum()
    }
}

impl Item {
    /// Returns the bits of all instances of this item on a NIC with this many queue pairs and work queue elements.
    pub fn total(&self, queue_pairs: u64, work_requests: u64) -> u64 {
        self.bits
            * match self.scope {
                Scope::QueuePair => queue_pairs,
                Scope::WorkRequest => work_requests,
                Scope::Shared => 1,
            }
    }
}

/// Returns the bits of a bitmap for `packets` packets; hardware works on pieces of 32 bits (IRN section 6.2).
pub(crate) const fn bitmap_bits(packets: u64) -> u64 {
    packets.next_multiple_of(32)
}

/// Returns the bits of a number up to `most`.
pub(crate) const fn bits_of(most: u64) -> u64 {
    (u64::BITS - most.leading_zeros()) as u64
}

/// Bits of a packet sequence number.
pub(crate) const PSN_BITS: u64 = 24;

#[cfg(test)]
mod tests {
    use selvedge_units::{Bytes, Duration, Rate, Setting};

    use super::*;
    use crate::recovery::irn::{IrnConfig, Mode};
    use crate::recovery::melo::MeloConfig;
    use crate::recovery::{RecoveryConfig, Scheme};
    use crate::{Fabric, SettingError};

    /// Returns a fabric of three tiers with 2 us per link: 24 us of round-trip time.
    fn fabric(gbps: u64) -> Fabric {
        let rtt = Duration::from_us(24);
        let line_rate = Rate::from_gbps(gbps);
        Fabric { line_rate, bdp: line_rate.amount_in(rtt), frame: Bytes::new(1_086), ..Fabric::IRN_PAPER }
    }

    fn of(config: impl Into<RecoveryConfig>, fabric: &Fabric) -> Footprint {
        let mut config = config.into();
        config.resolve(fabric);
        let checked: Result<(), SettingError> = config.check();
        checked.expect("valid settings");
        config.footprint()
    }

    #[test]
    fn irn_costs_what_its_paper_says() {
        for mode in [Mode::Paper, Mode::Hls] {
            let irn = of(IrnConfig { mode, ..IrnConfig::default() }, &fabric(40));
            let published = irn.published.expect("the numbers of section 6.1 are published");
            assert_eq!(irn.bits(Scope::QueuePair), published.queue_pair);
            assert_eq!(irn.bits(Scope::WorkRequest), published.work_request);
            assert_eq!(irn.bits(Scope::Shared), published.shared);
            // "A couple of thousands of QPs and tens of thousands of WQEs", in 4 MB: "3-10 %".
            let share = irn.total(2_000, 20_000) as f64 / 8.0 / 4e6;
            assert!((0.03..0.10).contains(&share), "{share}");
        }
    }

    #[test]
    fn melo_costs_what_its_paper_says() {
        let melo = of(MeloConfig::default(), &fabric(40));
        let published = melo.published.expect("the numbers of section 3.2.4 are published");
        assert_eq!(melo.bits(Scope::QueuePair), published.queue_pair);
        // The paper does not count the two stacks' pointers.
        assert_eq!(melo.bits(Scope::Shared), published.shared + 2 * 8);
        // "MELO requires an extra of 23B for each connection, which is 9.1% compared with already existing states
        // (248B)".
        let each = melo.total(300, 0) as f64 / 8.0 / 300.0;
        assert_eq!(each.round(), 23.0);
        assert!((0.090..0.092).contains(&(each / 248.0)), "{each}");
        // The pool's size does not depend on the number of connections: a bitmap of 312 B for each would.
        assert_eq!(melo.bits(Scope::Shared), of(MeloConfig::default(), &fabric(100)).bits(Scope::Shared));
    }

    #[test]
    fn bitmaps_follow_the_bandwidth_delay_product() {
        // 277 packets, in pieces of 32.
        let text = IrnConfig { mode: Mode::Paper, ..IrnConfig::default() };
        assert_eq!(of(text, &fabric(100)).bits(Scope::QueuePair), 160 + 5 * 288);
        let without = of(IrnConfig { sack: false, ..text }, &fabric(100));
        assert_eq!(without.bits(Scope::QueuePair), 160 + 3 * 288);
        let refined = of(IrnConfig::default(), &fabric(100));
        assert_eq!(refined.bits(Scope::QueuePair), 160 + 5 * 288 + 2 * 24, "one more PSN at both ends");
        let unbounded = of(IrnConfig { bdp_cap: Setting::Off, ..IrnConfig::default() }, &fabric(40));
        assert!(unbounded.bits(Scope::QueuePair) > 1_000_000, "BDP-FC is what bounds it");
    }

    #[test]
    fn go_back_n_is_what_nics_have() {
        for config in RecoveryConfig::all().filter(|config| config.name() == "go-back-n") {
            assert_eq!(of(config, &fabric(40)), Footprint::default());
        }
    }

    #[test]
    fn what_a_variant_adds_is_counted() {
        use crate::recovery::irn::{DynamicRto, Rto};
        let plain = of(IrnConfig::default(), &fabric(40)).bits(Scope::QueuePair);
        let patient = of(IrnConfig { nack_threshold: 8, ..IrnConfig::default() }, &fabric(40));
        assert_eq!(patient.bits(Scope::QueuePair), plain + 2 * 4);
        let dynamic = of(IrnConfig { rto: Rto::Dynamic(DynamicRto::default()), ..IrnConfig::default() }, &fabric(40));
        // 10,000 us are 14 bits.
        assert_eq!(dynamic.bits(Scope::QueuePair), plain + 2 * 3 * 14);
    }
}
