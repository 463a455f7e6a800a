//! Numerical comparison of series: the best one, and the relation of two.

use super::wording::Wording;
use crate::stall::trails;
use crate::traits::Compared;
use crate::{Bound, Estimate, SeriesSummary};

/// Returns the series with the least average FCT or completion time of groups, among those that are not stalled. With
/// several workloads it is the geometric mean, which gives workloads of long and short times equal weight.
pub(super) fn best<'a>(series: &[&'a SeriesSummary], wording: &Wording) -> Option<&'a SeriesSummary> {
    let time = |series: &SeriesSummary| -> f64 {
        let means = decisive(series, series).into_iter().map(|metric| series.metric(&metric.metric)?.mean);
        means.map(|mean| mean.map_or(f64::INFINITY, f64::ln)).sum()
    };
    let healthy = series.iter().copied().filter(|series| wording.stall(series).is_none());
    healthy.min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// Returns the two series that differ most, among those that are not stalled, if something decides between them: the
/// better first, and the metrics in which they differ.
pub(super) fn farthest_apart<'a>(
    series: &[&'a SeriesSummary],
    wording: &Wording,
) -> Option<(&'a SeriesSummary, &'a SeriesSummary, Vec<Compared>)> {
    let better = best(series, wording)?;
    let gap = |worse: &&SeriesSummary| {
        decisive(worse, better).iter().filter_map(|metric| ratio(worse, better, metric).mean).map(f64::ln).sum::<f64>()
    };
    let healthy = series.iter().copied().filter(|series| wording.stall(series).is_none());
    let worse = healthy.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    match relation(worse, better, wording.ignores_seeds) {
        Relation::Larger(metrics) => Some((better, worse, metrics)),
        _ => None,
    }
}

/// Returns the best of `series` compared to which all of `stalled` leave clearly more unfinished.
pub(super) fn best_against<'a>(
    series: &[&'a SeriesSummary],
    stalled: &[&SeriesSummary],
    wording: &Wording,
) -> Option<&'a SeriesSummary> {
    let is_ahead = |one: &&SeriesSummary| stalled.iter().all(|other| trails(other, one, wording.ignores_seeds));
    let ahead: Vec<&SeriesSummary> = series.iter().copied().filter(is_ahead).collect();
    best(&ahead, wording).or_else(|| best(series, wording))
}

/// Returns the control of `series` among `others`: the series that is equal but for PFC.
pub(super) fn control_of<'a>(series: &SeriesSummary, others: &[&'a SeriesSummary]) -> Option<&'a SeriesSummary> {
    let name = series.traits.control.as_ref()?;
    others.iter().copied().find(|other| other.series == *name)
}

/// Returns the traits other than PFC in which two series differ.
pub(super) fn other_differences(a: &SeriesSummary, b: &SeriesSummary) -> Vec<&'static str> {
    let (of, to) = (&a.traits, &b.traits);
    let is_control = of.control.as_ref() == Some(&b.series) || to.control.as_ref() == Some(&a.series);
    let all = [
        (of.recovery != to.recovery, "loss recovery"),
        (of.congestion != to.congestion, "congestion control"),
        (of.acks != to.acks && !of.acks.is_empty() && !to.acks.is_empty(), "acknowledgements"),
    ];
    let some: Vec<_> = all.into_iter().filter_map(|(differs, what)| differs.then_some(what)).collect();
    if some.is_empty() && !is_control { vec!["other settings"] } else { some }
}

/// Returns the metrics that decide between two series; with several workloads, those with groups measured in either.
pub(super) fn decisive(of: &SeriesSummary, to: &SeriesSummary) -> Vec<Compared> {
    let all: Vec<Compared> = to.traits.decisive().collect();
    let is_measured = |metric: &Compared| {
        let measured =
            |series: &SeriesSummary| series.taken_over(&metric.metric).is_some_and(|over| over.measured > 0.0);
        measured(of) || measured(to)
    };
    if all.len() > 1 { all.into_iter().filter(is_measured).collect() } else { all }
}

/// The relation of one series to another over the compared metrics.
pub(super) enum Relation {
    /// Larger in these decisive metrics and the same in the others; if all decisive ones are the same, in one other
    /// metric.
    Larger(Vec<Compared>),
    /// Smaller in these metrics; see [`Self::Larger`].
    Smaller(Vec<Compared>),
    Same,
    /// At most 5 % smaller, and possibly larger, in these decisive metrics; the same in the others.
    HardlySmaller(Vec<Compared>),
    /// Undecided in this decisive metric.
    Open(Compared),
    Contradictory {
        larger: Compared,
        smaller: Compared,
    },
}

/// Returns the relation of `of` to `to`. Where `ignores_seeds`, a single run is exact.
pub(super) fn relation(of: &SeriesSummary, to: &SeriesSummary, ignores_seeds: bool) -> Relation {
    let deciding = decisive(of, to);
    let others = to.traits.compared().into_iter().filter(|metric| metric.completes.is_none());
    let signed = |metrics: Vec<Compared>| -> Vec<(Compared, Sign)> {
        metrics.into_iter().map(|metric| (metric.clone(), sign(&ratio(of, to, &metric), ignores_seeds))).collect()
    };
    let (deciding, others) = (signed(deciding), signed(others.collect()));
    let with = |all: &[(Compared, Sign)], wanted| -> Vec<Compared> {
        all.iter().filter(|(_, sign)| *sign == wanted).map(|(metric, _)| metric.clone()).collect()
    };
    let first = |wanted| with(&deciding, wanted).into_iter().chain(with(&others, wanted)).next();
    if let (Some(larger), Some(smaller)) = (first(Sign::Larger), first(Sign::Smaller)) {
        return Relation::Contradictory { larger, smaller };
    }
    if let Some(open) = with(&deciding, Sign::Open).into_iter().next() {
        return Relation::Open(open);
    }
    if let Some(unknown) = with(&deciding, Sign::Unknown).into_iter().next() {
        // No run has the decisive mean; other metrics that are known decide.
        let known = |wanted| with(&others, wanted).into_iter().next();
        return match (known(Sign::Larger), known(Sign::Smaller)) {
            (Some(larger), _) => Relation::Larger(vec![larger]),
            (_, Some(smaller)) => Relation::Smaller(vec![smaller]),
            _ => Relation::Open(unknown),
        };
    }
    let hardly = with(&deciding, Sign::HardlySmaller);
    if let Some(open) = hardly.first() {
        // Not if another metric indicates the opposite.
        return if first(Sign::Smaller).is_some() {
            Relation::Open(open.clone())
        } else {
            Relation::HardlySmaller(hardly)
        };
    }
    // Where the decisive metrics are the same, the other metrics decide if any of them differs.
    let telling = |wanted| match with(&deciding, wanted) {
        none if none.is_empty() => first(wanted).into_iter().collect(),
        some => some,
    };
    match (telling(Sign::Larger), telling(Sign::Smaller)) {
        (larger, _) if !larger.is_empty() => Relation::Larger(larger),
        (_, smaller) if !smaller.is_empty() => Relation::Smaller(smaller),
        _ => Relation::Same,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Larger,
    Smaller,
    Same,
    HardlySmaller,
    Open,
    /// Undecided for any number of seeds: flows had not finished when runs ended.
    Unknown,
}

fn sign(ratio: &Estimate, ignores_seeds: bool) -> Sign {
    let interval = match ratio.known_interval() {
        _ if ignores_seeds => ratio.mean.map(|mean| Bound::opened(ratio.bound, [mean, mean])),
        interval => interval.filter(|_| ratio.per_seed.iter().flatten().count() >= FEWEST_SEEDS),
    };
    match interval {
        _ if ratio.bound == Some(Bound::Undecided) => Sign::Unknown,
        Some([low, high]) if low <= 1.0 / SAME && high >= 1.0 && !seeds_can_tell(ratio) => Sign::Unknown,
        None => Sign::Open,
        Some([low, high]) if low > 1.0 / SAME && high < SAME => Sign::Same,
        Some([low, _]) if low > 1.0 => Sign::Larger,
        Some([_, high]) if high < 1.0 => Sign::Smaller,
        Some([low, _]) if low > 1.0 / SAME => Sign::HardlySmaller,
        Some(_) => Sign::Open,
    }
}

/// Returns whether more seeds can decide how a ratio relates to 1: the possible values, given its mean, do not lie on
/// both sides.
pub(super) fn seeds_can_tell(ratio: &Estimate) -> bool {
    match ratio.bound {
        None => true,
        Some(Bound::AtLeast) => ratio.mean.is_some_and(|mean| mean > 1.0 / SAME),
        Some(Bound::AtMost) => ratio.mean.is_some_and(|mean| mean < 1.0),
        Some(Bound::Undecided) => false,
    }
}

/// Smallest number of seeds for a decision; with fewer seeds an interval may be narrow by chance.
pub(super) const FEWEST_SEEDS: usize = 3;

/// Factor from 1 within which a ratio makes no practical difference to the design of a network.
pub(super) const SAME: f64 = 1.05;

pub(super) fn ratio(of: &SeriesSummary, to: &SeriesSummary, metric: &Compared) -> Estimate {
    match (of.metric(&metric.metric), to.metric(&metric.metric)) {
        (Some(of), Some(to)) => Estimate::of_ratio(of, to),
        _ => Estimate::default(),
    }
}
