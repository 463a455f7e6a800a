//! A plan in one line, for titles.

use selvedge_sim::topology::Topology;
use selvedge_sim::workload::WorkloadSummary;
use selvedge_units::Rate;

use crate::plan::{Plan, PlannedSeries};

impl Plan {
    /// Returns the study in one line: "54 hosts, fat-tree k = 6, 40 Gb/s, poisson at 70 % load"; where cases differ, as
    /// a range from the least to the most.
    pub fn in_one_line(&self) -> String {
        let hosts = range(self.series.iter().map(|series| series.network.graph().host_count() as f64));
        let slowest = self.series.iter().map(|series| series.network.slowest_line_rate());
        let rates = slowest.chain(self.series.iter().map(|series| series.network.line_rate()));
        let mut parts = vec![format!("{hosts} hosts"), alternatives(self.series.iter().map(topology))];
        parts.push(format!("{} Gb/s", range(rates.map(Rate::as_gbps_f64))));
        parts.extend((0..3).filter_map(|position| self.workloads_at(position)));
        parts.join(", ")
    }

    /// Returns the names of the workloads at this position in all series; the operations of one workload count as one.
    fn workloads_at(&self, position: usize) -> Option<String> {
        let found: Vec<&WorkloadSummary> =
            self.series.iter().filter_map(|series| whole(&series.workloads).nth(position)).collect();
        let described = found.iter().map(|workload| {
            let loads = found.iter().filter(|other| other.kind == workload.kind).filter_map(|other| other.load);
            match workload.load {
                Some(_) => {
                    format!("{} at {} % load", workload.kind, range(loads.map(|load| (load * 1_000.0).round() / 10.0)))
                }
                None => workload.kind.to_owned(),
            }
        });
        Some(alternatives(described)).filter(|text| !text.is_empty())
    }
}

/// Returns the workloads, each with its first operation alone.
fn whole(workloads: &[WorkloadSummary]) -> impl Iterator<Item = &WorkloadSummary> {
    let of = |workload: &WorkloadSummary| match workload.operation {
        Some(operation) => workload.key.trim_end_matches(operation).to_owned(),
        None => workload.key.clone(),
    };
    let is_first = move |&at: &usize| at == 0 || of(&workloads[at]) != of(&workloads[at - 1]);
    (0..workloads.len()).filter(is_first).map(|at| &workloads[at])
}

fn topology(series: &PlannedSeries) -> String {
    match &series.scenario.topology {
        Topology::FatTree(tree) => format!("fat-tree k = {}", tree.k),
        Topology::File(file) => file.path.rsplit('/').next().unwrap_or(&file.path).to_owned(),
        other => other.name().to_owned(),
    }
}

/// Returns the range of values: "4", or "4 to 16".
fn range(values: impl Iterator<Item = f64>) -> String {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    if least < most { format!("{least} to {most}") } else { least.to_string() }
}

/// Joins texts, each once: "ring or leaf-spine".
pub(crate) fn alternatives(texts: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    distinct.join(" or ")
}
