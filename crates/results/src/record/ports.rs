//! Samples of ports: queues and utilisation by tier, pauses by port.

use std::collections::BTreeMap;
use std::iter;

use selvedge_telemetry::{PortInfo, PortRow, PortTotals};
use selvedge_units::{Duration, Instant};

use super::PortTable;
use super::tiers::TierTimeline;
use crate::Tier;
use crate::point::{PausedPort, Pauses, PortTimes, TierPauses, WORST_PORTS};
use crate::timeline::{Bin, Timeline};

/// Largest number of bins of the map of pauses.
const PAUSE_BINS: usize = 128;

pub(super) struct PortAccumulator {
    tiers: Vec<(Tier, u64)>,
    /// Index of each port's tier in the list of tiers, indexed by port.
    tier_of: Vec<Option<u8>>,
    queues: TierTimeline,
    utilisation: TierTimeline,
    /// Pauses over time; created at the first sample, like `queues` and `utilisation`.
    paused: Option<Timeline<PausedPorts>>,
    /// Pauses of the present sample.
    pauses: PausedPorts,
}

/// Numbers of paused ports, with their paused times in picoseconds.
#[derive(Clone, Default)]
struct PausedPorts(Vec<(u32, u64)>);

impl Bin for PausedPorts {
    fn absorb(&mut self, later: &Self) {
        self.0.extend_from_slice(&later.0);
        // Both lists are sorted, so sorting merges them.
        self.0.sort_by_key(|&(port, _)| port);
        self.0.dedup_by(|(port, later), (before, paused)| {
            let is_same = port == before;
            if is_same {
                *paused += *later;
            }
            is_same
        });
    }
}

impl PausedPorts {
    fn of(&self, port: u32) -> u64 {
        self.0.binary_search_by_key(&port, |&(port, _)| port).map_or(0, |at| self.0[at].1)
    }
}

impl PortAccumulator {
    pub(super) fn new(table: &PortTable) -> Self {
        let tiers: Vec<_> = table.tiers.iter().map(|(&tier, &ports)| (tier, ports)).collect();
        let timeline = || TierTimeline::new(tiers.iter().map(|&(_, ports)| ports).collect());
        let (queues, utilisation) = (timeline(), timeline());
        let place = |port: &Option<PortInfo>| {
            let tier = Tier::from(port.as_ref()?.kind);
            tiers.iter().position(|&(known, _)| known == tier).map(|place| place as u8)
        };
        let tier_of = table.ports.iter().map(place).collect();
        Self { tiers, tier_of, queues, utilisation, paused: None, pauses: PausedPorts::default() }
    }

    /// Adds the samples of one time.
    pub(super) fn add(&mut self, rows: &[PortRow], time: Instant, interval: Duration) {
        for row in rows {
            let Some(&Some(tier)) = self.tier_of.get(row.port.index()) else { continue };
            self.queues.note(tier.into(), row.egress_queue.get());
            self.utilisation.note(tier.into(), row.busy.as_ps());
            if !row.paused.is_zero() {
                self.pauses.0.push((row.port.0, row.paused.as_ps()));
            }
        }
        self.paused.get_or_insert_with(|| Timeline::new(PAUSE_BINS, interval)).at(time).absorb(&self.pauses);
        self.pauses.0.clear();
        self.queues.close(time, interval, 1);
        self.utilisation.close(time, interval, interval.as_ps());
    }

    /// Returns egress queues over time, rounded to bytes.
    pub(super) fn queues(&self) -> PortTimes {
        self.queues.times(&self.tiers, 1.0)
    }

    /// Returns the share of time that ports were transmitting, rounded to 0.01 %.
    pub(super) fn utilisation(&self) -> PortTimes {
        self.utilisation.times(&self.tiers, 1e4)
    }

    pub(super) fn pauses(&self, table: &PortTable, totals: &[PortTotals]) -> Pauses {
        let mut by_tier = BTreeMap::<(Tier, Tier), TierPauses>::new();
        let mut paused: Vec<(&PortTotals, &PortInfo)> = Vec::new();
        for port in totals {
            let Some(info) = table.port(port.id.index()) else { continue };
            let (by, stopped) = (info.peer_kind.into(), info.kind.into());
            let pair = by_tier.entry((by, stopped)).or_insert(TierPauses {
                by,
                paused: stopped,
                paused_us: 0.0,
                paused_ports: 0,
                ports: 0,
            });
            pair.ports += 1;
            if !port.paused.is_zero() {
                pair.paused_us += port.paused.as_us_f64();
                pair.paused_ports += 1;
                paused.push((port, info));
            }
        }
        let (width, bins) = self.pause_bins();
        let mut over_time = self.paused.clone();
        over_time.iter_mut().for_each(|line| line.widen_to(width));
        // The share of each bin that a port was paused, rounded to 0.001.
        let shares = |port| {
            let bins =
                over_time.iter().flat_map(|line| line.bins()).map(|bin| bin.of(port)).chain(iter::repeat(0)).take(bins);
            let exact = bins.map(|paused| paused as f64 / width.as_ps() as f64);
            exact.map(|share| ((share * 1000.0).round() / 1000.0).min(1.0) as f32).collect()
        };
        let paused_ports = paused.len() as u64;
        paused.sort_by_key(|(port, _)| (std::cmp::Reverse(port.paused), port.id));
        paused.truncate(WORST_PORTS);
        let worst = paused.into_iter().map(|(port, info)| PausedPort {
            port: port.id.0,
            node: info.node.to_string(),
            peer: info.peer.to_string(),
            tier: info.kind.into(),
            peer_tier: info.peer_kind.into(),
            paused_us: port.paused.as_us_f64(),
            pauses: totals.iter().find(|peer| peer.id == info.peer_id).map_or(0, |peer| peer.pauses_sent),
            egress_peak: port.egress_peak.get(),
            share: shares(port.id.0),
        });
        Pauses {
            worst: worst.collect(),
            by_tier: by_tier.into_values().filter(|pair| pair.paused_ports > 0).collect(),
            paused_ports,
            ports: totals.len() as u64,
            bin_us: width.as_us_f64(),
        }
    }

    /// Returns the narrowest width at which [`PAUSE_BINS`] bins cover all samples, and the number of bins needed.
    fn pause_bins(&self) -> (Duration, usize) {
        let Some(line) = self.queues.line() else { return (Duration::ZERO, 0) };
        let covered = line.width().as_ps() * line.bins().len() as u64;
        let mut width = line.width().as_ps();
        while covered.div_ceil(width) > PAUSE_BINS as u64 {
            width *= 2;
        }
        (Duration::from_ps(width), covered.div_ceil(width) as usize)
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn pauses_of_a_port_add_up_when_bins_are_joined() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        let mut line = Timeline::<PausedPorts>::new(4, Duration::from_us(1));
        let mut model = BTreeMap::<u32, u64>::new();
        for us in 1..=1_000 {
            let mut sample = PausedPorts::default();
            for port in 0..50 {
                // Two of three ports are not paused.
                let paused = rng.below(3_000).saturating_sub(2_000);
                if paused > 0 {
                    sample.0.push((port, paused));
                    *model.entry(port).or_default() += paused;
                }
            }
            line.at(Instant::ZERO + Duration::from_us(us)).absorb(&sample);
        }
        assert_eq!(line.bins().len(), 4);
        for bin in line.bins() {
            assert!(bin.0.is_sorted_by(|(a, _), (b, _)| a < b), "each port once, in order");
        }
        for port in 0..51 {
            let sum: u64 = line.bins().iter().map(|bin| bin.of(port)).sum();
            assert_eq!(sum, model.get(&port).copied().unwrap_or(0), "port {port}");
        }
    }
}
