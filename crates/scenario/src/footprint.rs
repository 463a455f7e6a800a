//! Cost of the state of loss recovery schemes on a NIC, in the network of a scenario.

use std::collections::BTreeMap;
use std::fmt;

use selvedge_sim::config::{RdmaConfig, TransportConfig};
use selvedge_transport::{Footprint, Scheme, Scope};
use selvedge_units::Bytes;
use selvedge_units::words::lines;
use serde::Serialize;

use crate::plan::{Plan, PlannedSeries};

/// NIC and its use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NicUse {
    /// Size of the cache for state of queue pairs and work queue elements.
    pub cache: Bytes,
    /// Number of queue pairs in the cache.
    pub queue_pairs: u64,
    /// Number of work queue elements in the cache.
    pub work_requests: u64,
}

/// State of each scheme of a plan, beyond the state that all RoCE NICs have. `Display` is for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FootprintFacts {
    /// Line rate of the hosts.
    pub rate_gbps: f64,
    /// Base round-trip time: twice the propagation delay of the longest path, in microseconds.
    pub base_rtt_us: f64,
    /// The largest bandwidth-delay product of any path, by the slowest link on it.
    pub bdp_bytes: u64,
    /// Payload of a full packet.
    pub mtu_bytes: u64,
    /// Size of the cache, [`NicUse::cache`], in bytes.
    pub cache_bytes: u64,
    /// Number of queue pairs, [`NicUse::queue_pairs`].
    pub queue_pairs: u64,
    /// Number of work queue elements, [`NicUse::work_requests`].
    pub work_requests: u64,
    /// State of each scheme.
    pub schemes: Vec<SchemeFacts>,
}

/// State of one scheme.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SchemeFacts {
    /// Name of the scheme.
    pub name: String,
    /// Bits per queue pair.
    pub queue_pair_bits: u64,
    /// Bits per work queue element.
    pub work_request_bits: u64,
    /// Bits of state that all queue pairs share.
    pub shared_bits: u64,
    /// Total bytes on the NIC.
    pub total_bytes: u64,
    /// Total size as a fraction of the NIC's cache.
    pub cache_share: f64,
    /// Items that the state consists of.
    pub items: Vec<ItemFacts>,
    /// Numbers that the scheme's paper publishes.
    pub published: Option<PublishedFacts>,
}

/// Facts about one piece of state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ItemFacts {
    /// Name of the item, unique among the items of a scheme.
    pub name: &'static str,
    /// Unit that has one such item: "QP", "WQE", "NIC" or "port" (of a top-of-rack switch).
    pub per: &'static str,
    /// Length of the item in bits.
    pub bits: u64,
    /// Total bytes of the item, on the NIC or on both ToRs.
    pub total_bytes: u64,
    /// Description of the item.
    pub what: String,
}

/// Numbers that a paper publishes about its scheme.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PublishedFacts {
    /// Paper, and place in it.
    pub source: &'static str,
    /// Bits per queue pair.
    pub queue_pair_bits: u64,
    /// Bits per work queue element.
    pub work_request_bits: u64,
    /// Bits of state that all queue pairs share.
    pub shared_bits: u64,
    /// Network that the numbers are for, and further assumptions.
    pub note: &'static str,
}

impl FootprintFacts {
    /// Returns the footprint of the schemes of `plan` on this NIC.
    ///
    /// # Errors
    /// Returns an error for a series whose state is not [counted](SchemeFacts::new).
    pub fn new(plan: &Plan, nic: NicUse) -> Result<Self, String> {
        let schemes = plan.series.iter().map(|series| SchemeFacts::new(series, nic)).collect::<Result<_, _>>()?;
        let PlannedSeries { network, scenario, .. } = &plan.series[0];
        Ok(Self {
            rate_gbps: network.line_rate().as_gbps_f64(),
            base_rtt_us: network.base_rtt().as_us_f64(),
            bdp_bytes: network.bdp().bytes.get(),
            mtu_bytes: scenario.nic.mtu.get(),
            cache_bytes: nic.cache.get(),
            queue_pairs: nic.queue_pairs,
            work_requests: nic.work_requests,
            schemes,
        })
    }
}

impl SchemeFacts {
    /// Returns the state of one series on this NIC.
    ///
    /// # Errors Returns an error if the scenario has another transport than RDMA, or tunnels: nothing of theirs is
    /// counted here. EQDS's paper counts packets that wait in the memory of hosts (section 8.5), not state on a chip.
    pub fn new(series: &PlannedSeries, nic: NicUse) -> Result<Self, String> {
        let transport = &series.transport;
        let TransportConfig::Rdma(RdmaConfig { recovery, .. }) = transport else {
            let has = if transport.is_rdma() {
                "sends through tunnels, whose state"
            } else {
                "has no queue pairs, and its state"
            };
            return Err(format!("series \"{}\" {has} is not counted", series.name));
        };
        let netrt = &series.scenario.switch.netrt;
        // NetRT keeps no additional state at NICs; its state is in ToRs.
        let (footprint, place) = match netrt.enabled {
            true => (netrt.footprint(), "port"),
            false => (recovery.footprint(), "NIC"),
        };
        let total_bytes = footprint.total(nic.queue_pairs, nic.work_requests).div_ceil(8);
        Ok(Self {
            name: series.name.clone(),
            queue_pair_bits: footprint.bits(Scope::QueuePair),
            work_request_bits: footprint.bits(Scope::WorkRequest),
            shared_bits: footprint.bits(Scope::Shared),
            total_bytes,
            cache_share: total_bytes as f64 / nic.cache.get().max(1) as f64,
            items: items(&footprint, place, nic),
            published: footprint.published.map(|published| PublishedFacts {
                source: published.source,
                queue_pair_bits: published.queue_pair,
                work_request_bits: published.work_request,
                shared_bits: published.shared,
                note: published.note,
            }),
        })
    }

    /// Returns the numbers that claims can be made about, by name: bytes of each item ("bitmap"); of the items of queue
    /// pairs, of work queue elements and of the state that all share ("queue-pairs", "work-requests", "shared"); of all
    /// items ("total"), and of all items for each queue pair ("per-qp"); and the share of the cache ("cache-share").
    pub fn numbers(&self, nic: NicUse) -> BTreeMap<&'static str, f64> {
        let total = self.total_bytes as f64;
        let bytes = |bits: u64, count: u64| (bits * count) as f64 / 8.0;
        let sums = [
            ("queue-pairs", bytes(self.queue_pair_bits, nic.queue_pairs)),
            ("work-requests", bytes(self.work_request_bits, nic.work_requests)),
            ("shared", bytes(self.shared_bits, 1)),
            ("total", total),
            ("per-qp", total / nic.queue_pairs as f64),
            ("cache-share", self.cache_share),
        ];
        self.items.iter().map(|item| (item.name, item.total_bytes as f64)).chain(sums).collect()
    }
}

/// Returns the items of `footprint`; `place` has the state that is shared.
fn items(footprint: &Footprint, place: &'static str, nic: NicUse) -> Vec<ItemFacts> {
    let mut items: Vec<_> = footprint.items.iter().collect();
    items.sort_by_key(|item| item.scope);
    let facts = items.into_iter().map(|item| ItemFacts {
        name: item.name,
        per: match item.scope {
            Scope::QueuePair => "QP",
            Scope::WorkRequest => "WQE",
            Scope::Shared => place,
        },
        bits: item.bits,
        total_bytes: item.total(nic.queue_pairs, nic.work_requests).div_ceil(8),
        what: item.what.clone(),
    });
    facts.collect()
}

impl fmt::Display for FootprintFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate_gbps, base_rtt_us, bdp_bytes, mtu_bytes, queue_pairs, work_requests, .. } = self;
        let cache = Bytes::new(self.cache_bytes);
        writeln!(f, "state beyond what RoCE NICs keep for go-back-N, in bits")?;
        writeln!(f, "{rate_gbps} Gb/s, base RTT {base_rtt_us} us, BDP {bdp_bytes} bytes, MTU {mtu_bytes} bytes")?;
        writeln!(f, "{queue_pairs} QPs and {work_requests} WQEs in a cache of {cache}\n")?;
        self.write_table(f)?;
        // The items of many schemes do not fit on a screen.
        if self.schemes.len() > FEW {
            self.write_published(f, false)?;
            return writeln!(f, "\nWhat it is made of, and what papers assume: --series NAME, or --json for all.");
        }
        self.write_items(f)?;
        self.write_published(f, true)
    }
}

impl FootprintFacts {
    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.schemes.iter().map(|scheme| scheme.name.len()).max().unwrap_or(0).max(6);
        let share = format!("of {}", Bytes::new(self.cache_bytes));
        let head = ("scheme", "per QP", "per WQE", "shared", "bytes in all");
        writeln!(f, "{:<width$} {:>10} {:>8} {:>8} {:>14} {share:>10}", head.0, head.1, head.2, head.3, head.4)?;
        for scheme in &self.schemes {
            let SchemeFacts { name, queue_pair_bits, work_request_bits, shared_bits, total_bytes, .. } = scheme;
            let share = format!("{:.1} %", scheme.cache_share * 100.0);
            writeln!(
                f,
                "{name:<width$} {queue_pair_bits:>10} {work_request_bits:>8} {shared_bits:>8} {total_bytes:>14} {share:>10}"
            )?;
        }
        Ok(())
    }

    /// Writes the items that each scheme's state consists of, once for schemes that have them in common.
    fn write_items(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<&Vec<ItemFacts>> = Vec::new();
        for scheme in self.schemes.iter().filter(|scheme| !scheme.items.is_empty()) {
            if shown.contains(&&scheme.items) {
                continue;
            }
            shown.push(&scheme.items);
            let alike = self.schemes.iter().filter(|other| other.items == scheme.items);
            let names: Vec<&str> = alike.map(|other| other.name.as_str()).collect();
            writeln!(f, "\n{}", names.join(", "))?;
            for ItemFacts { per, bits, what, .. } in &scheme.items {
                let head = format!("  {bits:>10} per {per:<4} ");
                let mut what = lines(what, WIDTH - head.len()).into_iter();
                writeln!(f, "{head}{}", what.next().unwrap_or_default())?;
                what.try_for_each(|line| writeln!(f, "{:>1$}{line}", "", head.len()))?;
            }
        }
        Ok(())
    }

    /// Writes the numbers that the papers publish, each once, with the papers' assumptions if `with_notes`.
    fn write_published(&self, f: &mut fmt::Formatter<'_>, with_notes: bool) -> fmt::Result {
        let mut shown: Vec<&PublishedFacts> = Vec::new();
        for published in self.schemes.iter().filter_map(|scheme| scheme.published.as_ref()) {
            if shown.contains(&published) {
                continue;
            }
            shown.push(published);
            let PublishedFacts { source, queue_pair_bits, work_request_bits, shared_bits, note } = published;
            let gap = if with_notes || shown.len() == 1 { "\n" } else { "" };
            writeln!(
                f,
                "{gap}{source} says {queue_pair_bits} per QP, {work_request_bits} per WQE, {shared_bits} shared"
            )?;
            if !with_notes {
                continue;
            }
            lines(&format!("({note})"), WIDTH - 2).iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}

/// Maximum number of schemes whose items are listed on a screen.
const FEW: usize = 2;
/// Columns of a screen.
const WIDTH: usize = 80;
