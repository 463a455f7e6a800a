//! The sentence of a verdict.

use selvedge_units::words::{all_of, plural};

use super::comparison::{
    FEWEST_SEEDS, Relation, SAME, best, control_of, decisive, farthest_apart, other_differences, ratio, relation,
    seeds_can_tell,
};
use super::wording::{Wording, each, number, what_completes};
use super::{Answer, Verdict};
use crate::stall::{leaves_more, unfinished};
use crate::traits::Compared;
use crate::{Bound, Estimate, SeriesSummary, Summary};

/// Returns whether PFC makes the difference between the best series of each kind, where both kinds complete their
/// flows, with a sentence without its end.
///
/// The better series must have its control in the study, if that can exist. The best of the other kind is no worse than
/// the control, so that PFC alone makes at least the reported difference.
pub(super) fn judge(
    with: &[&SeriesSummary],
    without: &[&SeriesSummary],
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    wording: &Wording,
) -> (Answer, String) {
    let (answer, clauses) = compare(with, without, lossy, lossless, wording);
    let lacks = |better: &SeriesSummary, others: &[&SeriesSummary]| {
        better.traits.control.as_ref().filter(|_| control_of(better, others).is_none()).cloned()
    };
    match answer {
        Answer::No => match lacks(lossy, with) {
            Some(control) => {
                let apart = not_isolated(lossy, lossless, Some(&control), wording);
                (Answer::Undecided, format!("Not decided: {apart}"))
            }
            None => (answer, clauses),
        },
        Answer::Yes if control_of(lossless, without).is_none() => {
            let isolated = with.iter().copied().filter(|series| control_of(series, without).is_some());
            let isolated: Vec<&SeriesSummary> = isolated.collect();
            let apart = not_isolated(lossless, lossy, lossless.traits.control.as_deref(), wording);
            match best(&isolated, wording) {
                Some(other) => {
                    let (answer, clauses) = compare(&isolated, without, lossy, other, wording);
                    (answer, format!("{clauses}. {}", first_upper(&apart)))
                }
                None => (Answer::Undecided, format!("Not decided: {apart}")),
            }
        }
        _ => (answer, clauses),
    }
}

/// Returns a clause: one series is better than another, but not necessarily because of PFC.
fn not_isolated(better: &SeriesSummary, worse: &SeriesSummary, control: Option<&str>, wording: &Wording) -> String {
    let gain = match relation(worse, better, wording.ignores_seeds) {
        Relation::Larger(metrics) => format!("{} than", wording.gain(&metrics, better, worse)),
        _ => "does no worse than".to_owned(),
    };
    let differences = other_differences(better, worse);
    let missing = match control {
        Some(control) => format!("the study lacks {control} to tell them apart"),
        None => format!("{} cannot be had {} PFC to tell them apart", wording.of(better), other_kind(better)),
    };
    format!(
        "{} {gain} {}, but they differ in {} as well, and {missing}",
        wording.of(better),
        wording.of(worse),
        all_of(&differences)
    )
}

fn other_kind(series: &SeriesSummary) -> &'static str {
    if series.traits.pfc { "without" } else { "with" }
}

/// Returns the text with its first letter in upper case.
fn first_upper(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}

/// Returns the sentence for traffic without losses and pauses: PFC makes no difference, but other traits may.
pub(super) fn not_put(series: &[&SeriesSummary], wording: &Wording) -> String {
    let lead = "This traffic does not put the question: no buffer was full, and nothing was paused";
    let Some((better, worse, metrics)) = farthest_apart(series, wording) else { return lead.to_owned() };
    let differences = other_differences(better, worse);
    let gain = wording.gain(&metrics, better, worse);
    let (better, worse) = (wording.of(better), wording.of(worse));
    format!("{lead}. That {better} {gain} than {worse} comes from what else differs: {}", all_of(&differences))
}

/// Returns the differences other than PFC of two compared series, and the effect of PFC itself on the one that has it.
fn other_causes(
    lossless: &SeriesSummary,
    lossy: &SeriesSummary,
    without: &[&SeriesSummary],
    wording: &Wording,
) -> String {
    let differences = other_differences(lossless, lossy);
    let Some(control) = control_of(lossless, without).filter(|_| !differences.is_empty()) else {
        return String::new();
    };
    let times = |metrics: &[Compared], of, to| number(&ratio(of, to, &metrics[0]));
    let effect = match relation(lossless, control, wording.ignores_seeds) {
        _ if let Some(stall) = wording.stall(control) => format!("without PFC it {stall}"),
        Relation::Larger(metrics) => format!("PFC by itself makes it {}x slower", times(&metrics, lossless, control)),
        Relation::Smaller(metrics) => format!("PFC by itself makes it {}x faster", times(&metrics, control, lossless)),
        Relation::Same => "PFC by itself changes nothing about it".to_owned(),
        Relation::HardlySmaller(_) => "PFC by itself makes it 5 % faster at most".to_owned(),
        Relation::Open(_) | Relation::Contradictory { .. } => "what PFC by itself does to it is not clear".to_owned(),
    };
    format!("; {} differs in {} as well: {effect}", wording.of(lossless), all_of(&differences))
}

/// Returns which of the best series is better, where both kinds complete their flows, with a sentence without its end.
/// Series of `without` that are no series' control count as alternatives.
fn compare(
    with: &[&SeriesSummary],
    without: &[&SeriesSummary],
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    wording: &Wording,
) -> (Answer, String) {
    let (a, b) = (wording.of(lossy), wording.of(lossless));
    match relation(lossless, lossy, wording.ignores_seeds) {
        Relation::Larger(metrics) => (Answer::No, favourable(with, without, lossy, lossless, metrics, wording)),
        Relation::Same => {
            let metrics = decisive(lossless, lossy);
            let what = each(&metrics, what_completes);
            let how_alike = each(&metrics, |metric| wording.interval(&ratio(lossless, lossy, metric)));
            (Answer::No, format!("No: {b} completes {what} as {a} does, within 5 % ({how_alike})"))
        }
        Relation::HardlySmaller(metrics) => {
            let how_little = |metric: &Compared| {
                format!(
                    "{} of {b} over {a} is {}",
                    metric.title,
                    wording.with_interval(&ratio(lossless, lossy, metric))
                )
            };
            (Answer::No, format!("No: nothing with PFC is as much as 5 % faster; {}", each(&metrics, how_little)))
        }
        Relation::Smaller(metrics) => {
            let gain = wording.gain(&metrics, lossless, lossy);
            let choice = if without.len() > 1 { ", the best without it" } else { "" };
            let rest = wording.same_rest(&metrics, lossless, lossy);
            (Answer::Yes, format!("Yes: {b} {gain} than {a}{choice}{rest}"))
        }
        Relation::Open(open) => {
            let of = |metric: &Compared| ratio(lossless, lossy, metric);
            let (ratio, title) = (of(&open), &open.title);
            let seeds = ratio.per_seed.iter().flatten().count();
            let why = match ratio.ci95 {
                _ if !seeds_can_tell(&ratio) => {
                    let number = match ratio.bound {
                        Some(Bound::Undecided) => String::new(),
                        _ => format!(" is {}, so that it", wording.with_known_interval(&ratio)),
                    };
                    let both = [(lossy, a), (lossless, b)].map(|(series, name)| (unfinished(series), name));
                    let left = both.into_iter().filter_map(|(left, name)| Some(format!("{name} {}", left?)));
                    format!(
                        "{title} of {b} over {a}{number} may be above 1 or below: {} when runs end, and takes longer than is \
                         known; give the runs more time",
                        all_of(&left.collect::<Vec<_>>())
                    )
                }
                Some(_) if seeds >= FEWEST_SEEDS => format!(
                    "{title} of {b} over {a} is {}, and the interval includes 1; {} (--until-decided)",
                    wording.with_interval(&ratio),
                    what_it_takes(&ratio)
                ),
                _ => format!(
                    "{title} of {b} over {a} is {}, from {}; an interval needs three at least, as with --seeds 5",
                    number(&ratio),
                    plural(seeds as u64, "seed")
                ),
            };
            let mut others = decisive(lossless, lossy);
            others.retain(|metric| *metric != open);
            let tell =
                |metric: &Compared| format!("{} it is {}", metric.title, wording.with_known_interval(&of(metric)));
            let others = if others.is_empty() { String::new() } else { format!(". By {}", each(&others, tell)) };
            (Answer::Undecided, format!("Not decided: {why}{others}"))
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

/// Returns how many seeds would decide a ratio if further seeds vary like the present ones: until its interval excludes
/// 1, or excludes that PFC gains 5 %.
fn what_it_takes(ratio: &Estimate) -> String {
    let seeds = ratio.per_seed.iter().flatten().count() as f64;
    let needed = ratio.mean.zip(ratio.ci95).map(|(mean, [low, high])| {
        let half = (high / low).ln() / 2.0;
        let least = half / (-mean.ln()).max(SAME.ln() + mean.ln());
        (seeds * least * least).ceil()
    });
    match needed {
        Some(needed) if needed <= 1_000.0 => format!("about {} seeds would tell", needed.max(seeds + 1.0)),
        _ => "more than 1,000 seeds would be needed to tell".to_owned(),
    }
}

/// Returns the sentence of the answer "no": against the best other transport with PFC, and against the winner's own
/// transport with PFC.
fn favourable(
    with: &[&SeriesSummary],
    without: &[&SeriesSummary],
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    metrics: Vec<Compared>,
    wording: &Wording,
) -> String {
    let same = |series: &SeriesSummary| {
        series.traits.recovery == lossy.traits.recovery && series.traits.congestion == lossy.traits.congestion
    };
    let (own, others): (Vec<_>, Vec<_>) = with.iter().copied().partition(|series| same(series));
    // Only results that the intervals show are reported: a rival whose interval includes 1 is not named as beaten.
    let beaten = best(&others, wording).and_then(|rival| match relation(rival, lossy, wording.ignores_seeds) {
        Relation::Larger(metrics) => Some((rival, metrics)),
        _ => None,
    });
    let (rival, metrics) = beaten.unwrap_or((lossless, metrics));
    let gain = wording.gain(&metrics, lossy, rival);
    let mut text = format!("No: {} {gain} than {}", wording.of(lossy), wording.of(rival));
    text += &wording.same_rest(&metrics, lossy, rival);
    if let Some(own) = best(&own, wording).filter(|own| own.name != rival.name) {
        let all = decisive(own, lossy);
        text += &match relation(own, lossy, wording.ignores_seeds) {
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
    text + &other_causes(rival, lossy, without, wording)
}

/// Returns clauses on the series that a comparison left out as stalled, and on those that it nearly left out.
pub(super) fn stalled_rest(series: &[&SeriesSummary], wording: &Wording) -> String {
    let stalled: Vec<_> = series.iter().copied().filter(|series| wording.stall(series).is_some()).collect();
    let stalled = if stalled.is_empty() { String::new() } else { format!("; {}", stalls(&stalled, wording)) };
    stalled + &series.iter().filter_map(|series| wording.alike(series)).collect::<String>()
}

/// Returns a clause if a compared series leaves a few flows unfinished where its rival leaves fewer: its completion
/// times cover the other flows only.
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
