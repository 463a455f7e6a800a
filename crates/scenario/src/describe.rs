//! A plan in one line, for titles.

use selvedge_sim::topology::Topology;
use selvedge_sim::workload::Summary;

use crate::network::Network;
use crate::plan::{Plan, PlannedSeries};

impl Plan {
    /// The study's first series in one line: "54 hosts, fat-tree k = 6, 40 Gb/s, poisson at 70 %
    /// load".
    pub fn in_one_line(&self) -> String {
        let series = &self.series[0];
        let mut parts = vec![format!("{} hosts", series.network.graph().host_count())];
        parts.push(topology(series));
        parts.push(line_rates(&series.network));
        parts.extend(series.workloads.iter().take(3).map(workload));
        parts.join(", ")
    }
}

fn topology(series: &PlannedSeries) -> String {
    match &series.scenario.topology {
        Topology::FatTree(tree) => format!("fat-tree k = {}", tree.k),
        Topology::File(file) => file.path.rsplit('/').next().unwrap_or(&file.path).to_owned(),
        other => other.name().to_owned(),
    }
}

fn workload(summary: &Summary) -> String {
    match summary.load {
        Some(load) => format!("{} at {} % load", summary.kind, (load * 1_000.0).round() / 10.0),
        None => summary.kind.to_owned(),
    }
}

fn line_rates(network: &Network) -> String {
    let (slowest, fastest) = (network.slowest_line_rate().as_gbps_f64(), network.line_rate().as_gbps_f64());
    if slowest < fastest { format!("{slowest} to {fastest} Gb/s") } else { format!("{fastest} Gb/s") }
}
