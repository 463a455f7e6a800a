//! Offered load of flow lists, in numbers.

use std::collections::BTreeMap;

use selvedge_sim::topology::{Demand, LinkLoad, LinkLoads};
use selvedge_sim::workload::{Generator, Workload};
use selvedge_units::{Bytes, Duration, HostId, Instant};

use crate::plan::PlannedSeries;

/// The flows of one or more lists.
#[derive(Default)]
pub(crate) struct FlowListTotals {
    flows: u64,
    payload: Bytes,
    /// Payload, and bytes on links including overheads, by sender and receiver.
    pairs: BTreeMap<(HostId, HostId), (Bytes, Bytes)>,
    first: Option<Instant>,
    /// Time at which the last flow would be complete in an empty network.
    end: Instant,
}

impl FlowListTotals {
    /// Returns the flows of `series` that come from lists and have start times of their own, each list by its
    /// workload's number.
    pub(crate) fn of(series: &PlannedSeries, workload: &Workload) -> BTreeMap<u16, Self> {
        let is_list = |number: u16| {
            let summary = &workload.summaries[usize::from(number)];
            summary.kind == "flows" && summary.last.is_some()
        };
        let numbers = (0..workload.summaries.len() as u16).filter(|&number| is_list(number));
        let mut lists: BTreeMap<u16, Self> = numbers.map(|number| (number, Self::default())).collect();
        if lists.is_empty() {
            return lists;
        }
        let framing = series.scenario.nic.framing(&series.transport);
        let mut stream = workload.stream.clone();
        while let Some(flow) = stream.next_flow() {
            let Some(list) = lists.get_mut(&flow.workload) else { continue };
            let whole = flow.size + framing.overhead * flow.size.pieces(framing.mtu);
            let (payload, all) = list.pairs.entry((flow.src, flow.dst)).or_default();
            *payload += flow.size;
            *all += whole;
            list.flows += 1;
            list.payload += flow.size;
            list.first.get_or_insert(flow.start);
            let ideal = series.network.paths().ideal_fct(flow.src, flow.dst, flow.size, framing).unwrap_or_default();
            list.end = list.end.max(flow.start.saturating_add(ideal));
        }
        lists
    }

    /// Returns the time from the first start until the last flow would be complete in an empty network.
    fn span(&self) -> Option<Duration> {
        self.first.map(|first| self.end.since(first)).filter(|span| !span.is_zero())
    }

    /// Returns the mean payload that each sender offers, as a fraction of its link's rate.
    pub(crate) fn load(&self, series: &PlannedSeries) -> Option<f64> {
        let span = self.span()?.as_us_f64();
        let mut senders: Vec<HostId> = self.pairs.keys().map(|&(src, _)| src).collect();
        senders.dedup();
        let rates = senders.iter().map(|&host| series.network.paths().host_rate(host).as_bps() as f64);
        Some(self.payload.get() as f64 * 8e6 / span / rates.sum::<f64>())
    }

    /// Returns the number of flows that start per second.
    pub(crate) fn per_second(&self) -> Option<f64> {
        Some(self.flows as f64 * 1e6 / self.span()?.as_us_f64())
    }

    /// Returns the link that all of `lists` together load most, headers included; `None` if there are too many pairs of
    /// hosts to add up.
    pub(crate) fn worst_link(lists: &BTreeMap<u16, Self>, series: &PlannedSeries) -> Option<LinkLoad> {
        let graph = series.network.graph();
        let pairs: usize = lists.values().map(|list| list.pairs.len()).sum();
        if pairs.saturating_mul(graph.hosts.len() + graph.switches.len()) > MOST_STEPS {
            return None;
        }
        let first = lists.values().filter_map(|list| list.first).min()?;
        let end = lists.values().map(|list| list.end).max()?;
        let span = end.since(first).as_us_f64();
        let demands = lists.values().flat_map(|list| &list.pairs).map(|(&(src, dst), &(_, all))| {
            let rate = series.network.paths().host_rate(src).as_bps() as f64;
            Demand { from: vec![src], to: vec![dst], load: all.get() as f64 * 8e6 / span / rate }
        });
        let demands: Vec<Demand> = demands.collect();
        LinkLoads::new(graph, series.network.routes(), &demands).worst().filter(|worst| worst.load.is_finite())
    }
}

/// Maximum number of steps of adding up loads, about a second's work.
const MOST_STEPS: usize = 300_000_000;
