//! The answer in a sentence.

use selvedge_units::words::all_of;

use super::comparison::{Relation, best, decisive, ratio, relation};
use super::wording::{Wording, each, number, what_completes};
use super::{Answer, Verdict};
use crate::stall::leaves_more;
use crate::traits::Compared;
use crate::{SeriesSummary, Summary};

/// Both kinds complete their flows: which is better? A sentence without its end. `choice_without` is whether there was
/// more than one series without PFC to choose from.
pub(super) fn compare(
    with: &[&SeriesSummary],
    choice_without: bool,
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    wording: &Wording,
) -> (Answer, String) {
    let (a, b) = (wording.of(lossy), wording.of(lossless));
    match relation(lossless, lossy) {
        Relation::Larger(metrics) => (Answer::No, favourable(with, lossy, lossless, metrics, wording)),
        Relation::Same => {
            let metrics = decisive(lossless, lossy);
            let what = each(&metrics, what_completes);
            let how_alike = each(&metrics, |metric| wording.interval(&ratio(lossless, lossy, metric)));
            (Answer::No, format!("No: {b} completes {what} as {a} does, within 5 % ({how_alike})"))
        }
        Relation::Smaller(metrics) => {
            let gain = wording.gain(&metrics, lossless, lossy);
            let choice = if choice_without { ", the best without it" } else { "" };
            let rest = wording.same_rest(&metrics, lossless, lossy);
            (Answer::Yes, format!("Yes: {b} {gain} than {a}{choice}{rest}"))
        }
        Relation::Open(open) => {
            let of = |metric: &Compared| ratio(lossless, lossy, metric);
            let (ratio, title) = (of(&open), &open.title);
            let why = match ratio.ci95 {
                Some(_) => format!(
                    "{title} of {b} over {a} is {}, and the interval includes 1; more seeds would narrow it",
                    wording.with_interval(&ratio)
                ),
                None => format!(
                    "{title} of {b} over {a} is {}, from one seed; run more seeds for an interval",
                    number(&ratio)
                ),
            };
            let mut others = decisive(lossless, lossy);
            others.retain(|metric| *metric != open);
            let tell =
                |metric: &Compared| format!("{} it is {}", metric.title, wording.with_known_interval(&of(metric)));
            let others = if others.is_empty() { String::new() } else { format!(". By {}", each(&others, tell)) };
            (Answer::Undecided, format!("Undecided: {why}{others}"))
        }
        Relation::Contradictory { larger, smaller } => {
            let part = |metric: &Compared| {
                format!("{} {}", metric.title, wording.with_interval(&ratio(lossless, lossy, metric)))
            };
            let text = format!(
                "It depends: {b} against {a} is worse in one measure ({}) and better in another ({})",
                part(&larger),
                part(&smaller)
            );
            (Answer::Depends, text)
        }
    }
}

/// The good news: against today's practice (the best other transport with PFC), and against the
/// winner's own transport with PFC.
fn favourable(
    with: &[&SeriesSummary],
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    metrics: Vec<Compared>,
    wording: &Wording,
) -> String {
    let same = |series: &SeriesSummary| {
        series.traits.recovery == lossy.traits.recovery && series.traits.congestion == lossy.traits.congestion
    };
    let (own, others): (Vec<_>, Vec<_>) = with.iter().copied().partition(|series| same(series));
    // Only what the intervals show is said: a rival too noisy to be beaten is not named as beaten.
    let beaten = best(&others, wording).and_then(|rival| match relation(rival, lossy) {
        Relation::Larger(metrics) => Some((rival, metrics)),
        _ => None,
    });
    let (rival, metrics) = beaten.unwrap_or((lossless, metrics));
    let gain = wording.gain(&metrics, lossy, rival);
    let mut text = format!("No: {} {gain} than {}", wording.of(lossy), wording.of(rival));
    text += &wording.same_rest(&metrics, lossy, rival);
    if let Some(own) = best(&own, wording).filter(|own| own.name != rival.name) {
        let all = decisive(own, lossy);
        text += &match relation(own, lossy) {
            Relation::Larger(metrics) if metrics[0].completes.is_some() => {
                let slower = |metric: &Compared| {
                    let what = if all.len() > 1 { format!("{} ", what_completes(metric)) } else { String::new() };
                    let ratio = ratio(own, lossy, metric);
                    format!("{what}{}x slower{}", number(&ratio), wording.bracket(&ratio))
                };
                let it = if all.len() > 1 { "" } else { " it" };
                format!(", and adding PFC to it makes{it} {}", each(&metrics, slower))
            }
            Relation::Larger(metrics) => {
                let higher = ratio(own, lossy, &metrics[0]);
                format!(
                    ", and adding PFC to it makes its {} {}x higher{}",
                    metrics[0].title,
                    number(&higher),
                    wording.bracket(&higher)
                )
            }
            Relation::Same => {
                let how_alike = each(&all, |metric| wording.interval(&ratio(own, lossy, metric)));
                format!(", and adding PFC to it changes nothing (within 5 %, {how_alike})")
            }
            _ => {
                let how_alike = each(&all, |metric| wording.with_interval(&ratio(own, lossy, metric)));
                format!(", and adding PFC to it makes no clear difference ({how_alike})")
            }
        };
    }
    text
}

/// Those of the series that a comparison had to leave out, and those that it nearly had to.
pub(super) fn stalled_rest(series: &[&SeriesSummary], wording: &Wording) -> String {
    let stalled: Vec<_> = series.iter().copied().filter(|series| wording.stall(series).is_some()).collect();
    let stalled = if stalled.is_empty() { String::new() } else { format!("; {}", stalls(&stalled, wording)) };
    stalled + &series.iter().filter_map(|series| wording.alike(series)).collect::<String>()
}

/// That a series which is compared leaves a few unfinished, where its rival leaves fewer: its completion times are
/// those of the others.
pub(super) fn lost_by(series: &SeriesSummary, rival: &SeriesSummary, wording: &Wording) -> String {
    let left = leaves_more(series, rival, wording.ignores_seeds);
    left.map_or(String::new(), |left| format!("; {} {left}", wording.of(series)))
}

pub(super) fn not_asked(summary: &Summary, wording: &Wording) -> Verdict {
    let sentence = match &summary.series[..] {
        [] => "No verdict: there is no series.".to_string(),
        [only] => {
            let tell = match (wording.stall(only), wording.pace(only)) {
                (Some(stall), _) => format!("{} {stall}", wording.of(only)),
                (None, Some(pace)) => format!("{} completes {pace}", wording.of(only)),
                (None, None) => format!("{} says nothing", wording.of(only)),
            };
            let missing = if only.traits.pfc { "without" } else { "with" };
            format!("No verdict on PFC: {tell}; add a series {missing} PFC to compare.{}", wording.remark())
        }
        [first, ..] => {
            let (all, missing) = if first.traits.pfc { ("with", "without") } else { ("without", "with") };
            let rest = stalled_rest(&summary.series.iter().collect::<Vec<_>>(), wording);
            format!("No verdict on PFC: every series runs {all} it{rest}; add one {missing} PFC to compare.")
        }
    };
    Verdict { answer: Answer::NotAsked, sentence, ..Verdict::default() }
}

pub(super) fn stalls(series: &[&SeriesSummary], wording: &Wording) -> String {
    let parts: Vec<_> =
        series.iter().filter_map(|series| Some(format!("{} {}", wording.of(series), wording.stall(series)?))).collect();
    all_of(&parts)
}
