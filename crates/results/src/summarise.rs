//! From the points of a study to its summary.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_units::mix64;

use crate::metric::{METRICS, Metric, PER_WORKLOAD};
use crate::point::DropCounts;
use crate::summary::{PointRun, SeedDeadlock};
use crate::traits::Compared;
use crate::verdict::{Verdict, verdict};
use crate::warnings::warnings;
use crate::{Estimate, PointSummary, Ratio, RunSummary, SeriesInfo, SeriesSummary, StudyInfo, Summary};

/// Summarises the points of a study. Points may come in any order. Points of series that are not listed are ignored,
/// and missing points become missing values.
pub fn summarise(study: &StudyInfo, series: &[SeriesInfo], points: &[PointSummary]) -> Summary {
    let mut seeds = Vec::new();
    for point in points {
        if !seeds.contains(&point.seed) {
            seeds.push(point.seed);
        }
    }
    seeds.sort_unstable();
    let known: BTreeMap<(&str, u64), &PointSummary> =
        points.iter().rev().map(|point| ((point.series.as_str(), point.seed), point)).collect();
    let find = |name: &str, seed| known.get(&(name, seed)).copied();
    let by_series: Vec<(&SeriesInfo, Vec<Option<&PointSummary>>)> =
        series.iter().map(|info| (info, seeds.iter().map(|&seed| find(&info.name, seed)).collect())).collect();

    let summaries: Vec<_> = by_series.iter().map(|(info, points)| summarise_series(info, points)).collect();
    let in_order: Vec<&PointSummary> =
        by_series.iter().flat_map(|(_, points)| points.iter().flatten().copied()).collect();
    let mut summary = Summary {
        title: study.title.clone(),
        scenario: study.scenario.clone(),
        sweep: study.sweep.clone(),
        warnings: warnings(&by_series, &seeds),
        seeds,
        ratios: all_ratios(&summaries),
        series: summaries,
        run: summarise_run(study, &in_order),
        verdict: Verdict::default(),
    };
    if summary.ignores_seeds() {
        let same = match summary.run.deterministic {
            true => {
                "Nothing in this scenario is random: a second seed gave the same runs, so that each series is shown once."
            }
            false => "Every seed gave the same run: nothing in this scenario is random; one seed says as much.",
        };
        summary.warnings.insert(0, same.into());
    }
    summary.verdict = verdict(&summary);
    summary
}

fn summarise_series(info: &SeriesInfo, points: &[Option<&PointSummary>]) -> SeriesSummary {
    let metrics = METRICS.iter().map(|metric| (metric.name.to_string(), metric.estimate(points.iter().copied())));
    let mut metrics: BTreeMap<String, Estimate> = metrics.collect();
    let names = points.iter().flatten().flat_map(|point| point.workloads.iter().map(|(name, _)| name));
    let names: BTreeSet<&String> = names.collect();
    for name in names {
        let own = |point: &PointSummary| {
            let (_, flows) = point.workloads.iter().find(|(known, _)| known == name)?;
            Some(PointSummary { flows: flows.clone(), ..point.clone() })
        };
        let own: Vec<Option<PointSummary>> = points.iter().map(|point| point.and_then(own)).collect();
        for metric in PER_WORKLOAD.into_iter().filter_map(Metric::find) {
            metrics.insert(format!("{name}.{}", metric.name), metric.estimate(own.iter().map(Option::as_ref)));
        }
    }
    let mut drops = DropCounts::default();
    let mut deadlocks = Vec::new();
    for point in points.iter().flatten() {
        drops.add(&point.run.data_drops);
        let seed = point.seed;
        deadlocks.extend(point.run.deadlock.clone().map(|deadlock| SeedDeadlock { seed, deadlock }));
    }
    SeriesSummary {
        name: info.name.clone(),
        series: info.series.clone(),
        case: info.case.clone(),
        traits: info.traits.clone(),
        metrics,
        drops,
        deadlocks,
    }
}

fn all_ratios(series: &[SeriesSummary]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (at, to) in series.iter().enumerate() {
        for of in series[at + 1..].iter().filter(|of| of.case == to.case) {
            for Compared { metric, .. } in to.traits.compared() {
                let estimates = of.metric(&metric).zip(to.metric(&metric));
                let estimate = estimates.map(|(of, to)| Estimate::of_ratio(of, to)).unwrap_or_default();
                ratios.push(Ratio { of: of.name.clone(), to: to.name.clone(), metric, estimate });
            }
        }
    }
    ratios
}

fn summarise_run(study: &StudyInfo, points: &[&PointSummary]) -> RunSummary {
    // The order of the points matters: the fingerprint identifies the plan.
    let fingerprint = points.iter().fold(0, |hash, point| {
        let own = u64::from_str_radix(&point.run.fingerprint, 16).unwrap_or_default();
        mix64(hash ^ own)
    });
    RunSummary {
        fingerprint: format!("{fingerprint:016x}"),
        packet_hops: points.iter().map(|point| point.run.packet_hops).sum(),
        events: points.iter().map(|point| point.run.events).sum(),
        cpu_s: points.iter().map(|point| point.run.cpu_s).sum(),
        wall_s: study.wall_s,
        threads: study.threads,
        version: study.version.clone(),
        deterministic: study.deterministic,
        points: points
            .iter()
            .map(|point| PointRun {
                series: point.series.clone(),
                seed: point.seed,
                fingerprint: point.run.fingerprint.clone(),
                simulated_us: point.run.end_us,
                packet_hops: point.run.packet_hops,
                events: point.run.events,
                cpu_s: point.run.cpu_s,
                wall_s: point.run.wall_s,
            })
            .collect(),
    }
}
