//! Series that cannot win because they leave too many flows or groups unfinished.

use crate::metric::Metric;
use crate::number::fixed;
use crate::summary::TakenOver;
use crate::{Estimate, SeriesSummary};

/// Share of measured flows or jobs that may be unfinished before a series counts as stalled.
pub(crate) const STALLED: f64 = 0.01;
/// Ratio of two shares without intervals from which on the first is clearly more.
const SEVERAL: f64 = 3.0;

/// A remark on the unfinished flows of one series.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Stall {
    /// The series cannot win; the reason, to follow the series' name.
    Stalled(String),
    /// The series leaves more unfinished than [`STALLED`], but not clearly more than the best of the others.
    Alike {
        /// Text such as "leaves 11 of 600 flows unfinished".
        clause: String,
        /// Name of the other series.
        rival: String,
        /// Unfinished flows of the other series: "6 of 600".
        rival_leaves: String,
    },
}

/// Returns the remark on `series`, one of `all` of its case; `None` if there is none. Where `ignores_seeds`, several
/// seeds count as one.
pub(crate) fn stall(series: &SeriesSummary, all: &[SeriesSummary], ignores_seeds: bool) -> Option<Stall> {
    if let Some(clause) = broken(series) {
        return Some(Stall::Stalled(clause));
    }
    let rivals: Vec<&SeriesSummary> =
        all.iter().filter(|other| other.name != series.name && broken(other).is_none()).collect();
    let mut alike = None;
    for (metric, over) in watched(series).into_iter().filter(|(_, over)| over.missing() > STALLED) {
        let clause = leaves(&over);
        let found = rivals.iter().filter_map(|other| Some((other, other.taken_over(&metric)?)));
        let least = found.min_by(|(_, a), (_, b)| a.missing().total_cmp(&b.missing()));
        match least {
            // The rival's completion times are lower bounds, too.
            Some((_, theirs)) if theirs.missing() > STALLED => return Some(Stall::Stalled(clause)),
            Some((other, theirs)) if !is_clearly_more(&over, &theirs, ignores_seeds) => {
                let (rival, rival_leaves) = (other.name.clone(), of_all(&theirs));
                alike.get_or_insert(Stall::Alike { clause, rival, rival_leaves });
            }
            _ => return Some(Stall::Stalled(clause)),
        }
    }
    alike
}

/// Returns whether the unfinished share that stalls `loser` is clearly larger than that of `winner`.
pub(crate) fn trails(loser: &SeriesSummary, winner: &SeriesSummary, ignores_seeds: bool) -> bool {
    let is_behind = |(metric, over): (String, TakenOver)| {
        over.missing() > STALLED
            && winner.taken_over(&metric).is_none_or(|theirs| is_clearly_more(&over, &theirs, ignores_seeds))
    };
    broken(loser).is_some() || watched(loser).into_iter().any(is_behind)
}

/// Returns what a series leaves unfinished, to follow its name, if that is clearly more than another series leaves but
/// too little to stall the series.
pub(crate) fn leaves_more(series: &SeriesSummary, other: &SeriesSummary, ignores_seeds: bool) -> Option<String> {
    let more = watched(series).into_iter().filter(|(metric, over)| {
        over.missing() <= STALLED
            && other.taken_over(metric).is_some_and(|theirs| is_clearly_more(over, &theirs, ignores_seeds))
    });
    more.max_by(|(_, a), (_, b)| a.missing().total_cmp(&b.missing())).map(|(_, over)| leaves(&over))
}

/// Returns what a series leaves unfinished, to follow its name; `None` if everything finished.
pub(crate) fn unfinished(series: &SeriesSummary) -> Option<String> {
    let left = watched(series).into_iter().map(|(_, over)| over).filter(|over| over.unfinished > 0.0);
    left.max_by(|a, b| a.missing().total_cmp(&b.missing())).map(|over| leaves(&over))
}

/// Returns the reason why a series cannot win regardless of the others; `None` without such a reason.
fn broken(series: &SeriesSummary) -> Option<String> {
    if let [first, ..] = &series.deadlocks[..] {
        let runs = series.metric("measured_flows").map_or(0, |flows| flows.per_seed.iter().flatten().count());
        let seeds = if series.deadlocks.len() == 1 {
            format!("with seed {}", first.seed)
        } else {
            format!("with {} of {runs} seeds", series.deadlocks.len())
        };
        return Some(format!("deadlocks {seeds}"));
    }
    let mut decisive = series.traits.decisive().filter_map(|compared| series.taken_over(&compared.metric));
    decisive.all(|over| over.measured == 0.0).then(|| format!("has no measured {}", series.traits.awaited()))
}

/// Returns the flows or groups that must finish, with the metric that is taken over them.
fn watched(series: &SeriesSummary) -> Vec<(String, TakenOver)> {
    let decisive: Vec<String> = series.traits.decisive().map(|compared| compared.metric).collect();
    // Beside other flows, those of incasts count only in their workload's metrics.
    let of = decisive.first().and_then(|metric| metric.rsplit('.').next());
    let own = series
        .metrics
        .keys()
        .filter(|name| Metric::find_of_workload(name).is_some_and(|(_, metric)| Some(metric.name) == of));
    let names = decisive.iter().chain(own.filter(|name| !decisive.contains(name)));
    names.filter_map(|name| Some((name.clone(), series.taken_over(name)?))).collect()
}

/// Returns whether one share is clearly larger than the other, over the seeds if there are several.
fn is_clearly_more(of: &TakenOver, to: &TakenOver, ignores_seeds: bool) -> bool {
    if to.unfinished == 0.0 {
        return of.unfinished > 0.0;
    }
    let pairs = of.missing_by_seed.iter().zip(&to.missing_by_seed);
    let differences = Estimate::of_mean(pairs.map(|(&of, &to)| of.zip(to).map(|(of, to)| of - to)).collect());
    match differences.ci95 {
        Some([low, _]) if !ignores_seeds => low > 0.0,
        _ => of.missing() >= SEVERAL * to.missing(),
    }
}

/// Returns a clause such as "leaves 11 of 600 flows unfinished".
fn leaves(over: &TakenOver) -> String {
    format!("leaves {} {} unfinished", of_all(over), over.what)
}

/// Returns a text such as "11 of 600".
fn of_all(over: &TakenOver) -> String {
    format!("{} of {}", fixed(over.unfinished, 0), fixed(over.measured, 0))
}
