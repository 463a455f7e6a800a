//! Queue depth over time: a grid of small charts, tiers across, statistics down.

use super::Study;
use super::axis::{Axis, Quantity};
use super::chart::{Chart, decimate};
use super::html::{escape, figure, legend, section};
use crate::{Tier, TierQueues};

/// What is drawn, and where it is found.
type Statistic = (&'static str, fn(&TierQueues) -> &Vec<f64>);

/// Points per curve.
const POINTS: usize = 256;

/// The egress queues of each tier in one run of each series.
pub(super) fn over_time(study: &Study<'_>) -> String {
    let runs: Vec<_> = study.first_points().collect();
    let mut tiers: Vec<Tier> = runs
        .iter()
        .flat_map(|(_, point)| &point.queues.tiers)
        .filter(|queues| queues.max.iter().any(|&depth| depth > 0.0))
        .map(|queues| queues.tier)
        .collect();
    tiers.sort_unstable();
    tiers.dedup();
    let Some((_, first)) = runs.first().filter(|_| !tiers.is_empty()) else { return String::new() };
    let end_us = runs.iter().map(|(_, point)| point.run.end_us).fold(0.0, f64::max);
    let statistics: [Statistic; 3] = [
        ("deepest port", |queues| &queues.max),
        ("99th percentile of ports", |queues| &queues.p99),
        ("mean of ports", |queues| &queues.mean),
    ];
    let width = match tiers.len() {
        1 => 1040.0,
        2 => 510.0,
        _ => 340.0,
    };
    let mut rows = String::new();
    for (position, (title, of)) in statistics.into_iter().enumerate() {
        let time_title = if position + 1 == statistics.len() { "simulated time" } else { "" };
        let deepest = runs.iter().flat_map(|(_, point)| &point.queues.tiers).flat_map(of).copied().fold(0.0, f64::max);
        let mut charts = String::new();
        for &tier in &tiers {
            let x = Axis::linear(time_title, Quantity::Time, 0.0, end_us).exact(0.0, end_us);
            let y = Axis::linear("", Quantity::Size, 0.0, deepest);
            let mut chart = Chart::new(width, 190.0, x, y);
            for (at, point) in &runs {
                let Some(queues) = point.queues.tiers.iter().find(|queues| queues.tier == tier) else { continue };
                let time = |bin: usize| (bin as f64 + 0.5) * point.queues.bin_us;
                let points: Vec<_> = of(queues).iter().enumerate().map(|(bin, &depth)| (time(bin), depth)).collect();
                chart.line(*at, &point.series, study.is_pfc(*at), &decimate(&points, POINTS));
            }
            charts +=
                &figure(&format!("{tier}, {title}"), &chart.finish(&format!("Queue depth over time: {tier}, {title}")));
        }
        rows += &format!("<div class=\"row\" style=\"--columns:{}\">{charts}</div>", tiers.len().min(4));
    }
    let lead = format!(
        "Bytes waiting at egress ports in the run with seed {}, by tier of their switch; hosts are attached to tier 0. A row shares its scale.",
        first.seed
    );
    section("queues", "Queue depth over time", &escape(&lead), &format!("{}{rows}", legend(study)))
}
