//! Measurement of this machine's simulation speed by a run of a few hundredths of a second.

use std::path::Path;

use selvedge_scenario::{Changes, Plan, Point};
use selvedge_sim::Parallel;
use selvedge_telemetry::{FlowRow, Observer, PortRow};

use crate::run::Simulate;

/// Returns the packet-hops per second of wall time on one thread, measured by a short run of a small network; `None` if
/// the run was too short to measure. `simulate` reports the run's duration as
/// [`RunRecord::wall_s`](selvedge_telemetry::RunRecord).
pub fn measured_rate(simulate: &Simulate) -> Option<f64> {
    let plan = Plan::from_text("calibration", SCENARIO, Path::new(""), &Changes::default()).ok()?;
    let point = Point { series: 0, seed: plan.seeds[0] };
    let config = plan.config(point);
    let record = simulate(&config, plan.library(point), Parallel::default(), &mut Nobody, None).ok()?;
    let rate = record.packet_hops as f64 / record.wall_s;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// A scenario with 16 hosts and about 800,000 packet-hops.
const SCENARIO: &str = r#"
title = "calibration"
seeds = 1
series = ["roce+pfc"]
[topology.leaf-spine]
leaves = 4
spines = 2
hosts-per-leaf = 4
host-link = { rate = "100Gbps", delay = "600ns" }
spine-link = { rate = "200Gbps", delay = "1us" }
[workload.permutation]
size = "13MB"
"#;

/// An observer that ignores everything.
struct Nobody;

impl Observer for Nobody {
    fn on_flows(&mut self, _: &[FlowRow]) {}
    fn on_ports(&mut self, _: &[PortRow]) {}
}
