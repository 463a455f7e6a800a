//! "Do I need PFC?", answered in one sentence.
//!
//! 1. A series is *stalled* when a run of it ends in a deadlock, when no measured flow finishes, or when more than 1 %
//!    of its measured flows, or of those of one of its workloads, never do. Where the best of the others leaves some
//!    unfinished, too, that must be clearly more than there: the paired differences of the shares have a 95 % interval
//!    above 0, or, without an interval, the share is several times the other. A stalled series cannot win; its
//!    completion times are those of the lucky flows. Every one is named, and every other one beyond 1 %.
//! 2. Of the others, the best without PFC meets the best with PFC. Best is least average FCT.
//! 3. Two series are compared by paired ratios of average FCT, average slowdown and 99th percentile
//!    FCT. A ratio is *the same* when its whole 95 % interval lies within 5 % of 1, *larger* or
//!    *smaller* when the interval excludes 1, else *open*. When the metrics contradict each other the
//!    answer is that it depends; otherwise average FCT decides.
//! 4. PFC is needed when the best series with it beats the best without. When they are the same or
//!    the one without wins, it is not.
//!
//! Where there are jobs, or nothing but incasts, all-to-alls and jobs, their completion time takes the place of all
//! three metrics, and they that of flows. Where several workloads have such groups, each has its own completion time,
//! and all decide: best is least geometric mean, and what is open for one of them is open.

use schemars::JsonSchema;
use selvedge_units::words::all_of;
use serde::{Deserialize, Serialize};

use crate::metric::Unit;
use crate::number::{Scale, digits};
use crate::stall::{Stall, leaves_more, stall, trails, unfinished};
use crate::traits::Compared;
use crate::{Estimate, SeriesSummary, Summary};

/// The answer of a study.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The answer in a word.
    pub answer: Answer,
    /// The answer in a sentence.
    pub sentence: String,
    /// Name of the best series without PFC, if any completes its flows.
    pub best_without: Option<String>,
    /// Name of the best series with PFC, if any completes its flows.
    pub best_with: Option<String>,
    /// Average FCT, or what else decides, of the best with PFC over the best without, paired by seed; null where
    /// several workloads decide.
    pub with_over_without: Option<Estimate>,
}

/// Whether PFC is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Something without PFC is as good or better.
    No,
    /// With PFC is better, or nothing works without.
    Yes,
    /// The metrics contradict each other.
    Depends,
    /// The intervals do not tell.
    Undecided,
    /// The study does not ask the question.
    #[default]
    NotAsked,
}

/// Ratios within this factor of 1 are the same for anyone who designs a network.
const SAME: f64 = 1.05;

/// Answers from the numbers and the declared traits; never from names.
pub fn verdict(summary: &Summary) -> Verdict {
    let cases = summary.cases();
    if cases.len() > 1 {
        return by_case(summary, &cases);
    }
    let (with, without): (Vec<_>, Vec<_>) = summary.series.iter().partition(|series| series.traits.pfc);
    let label = Labels::new(summary);
    if with.is_empty() || without.is_empty() {
        return not_asked(summary, &label);
    }
    let (best_without, best_with) = match (best(&without, &label), best(&with, &label)) {
        (Some(_), None) => (best_against(&without, &with, &label), None),
        (None, Some(_)) => (None, best_against(&with, &without, &label)),
        both => both,
    };
    let all: Vec<&SeriesSummary> = summary.series.iter().collect();
    let (answer, sentence, ratio) = match (best_without, best_with) {
        (None, None) => (
            Answer::Undecided,
            format!(
                "Undecided: {}; nothing here completes its {}.",
                stalls(&all, &label),
                summary.series[0].traits.awaited()
            ),
            None,
        ),
        (Some(winner), None) => {
            let rest = stalled_rest(&without, &label);
            (Answer::No, format!("No: {}, while {}{rest}.", stalls(&with, &label), label.completes(winner)), None)
        }
        (None, Some(winner)) => {
            let rest = stalled_rest(&with, &label);
            (Answer::Yes, format!("Yes: {}, while {}{rest}.", stalls(&without, &label), label.completes(winner)), None)
        }
        (Some(lossy), Some(lossless)) => {
            let (answer, clauses) = compare(&with, without.len() > 1, lossy, lossless, &label);
            let only = match &decisive(lossless, lossy)[..] {
                [metric] => Some(ratio(lossless, lossy, metric)),
                _ => None,
            };
            let rest = stalled_rest(&all, &label);
            let less = lost_by(lossy, lossless, &label) + &lost_by(lossless, lossy, &label);
            (answer, format!("{clauses}{rest}{less}.{}", label.remark()), only)
        }
    };
    let name = |series: Option<&SeriesSummary>| series.map(|series| series.name.clone());
    Verdict { answer, sentence, best_without: name(best_without), best_with: name(best_with), with_over_without: ratio }
}

/// The answer in each case, one sentence after the other.
fn by_case(summary: &Summary, cases: &[Option<&str>]) -> Verdict {
    let in_case = |case: Option<&str>| {
        let series = summary.series.iter().filter(|series| series.case.as_deref() == case);
        verdict(&Summary { series: series.cloned().collect(), ..summary.clone() })
    };
    let verdicts: Vec<Verdict> = cases.iter().map(|&case| in_case(case)).collect();
    let (answer, lead) = in_all(&verdicts);
    let sentences: Vec<String> = if cases.len() > FEW {
        answers_alone(cases, &verdicts)
    } else {
        let sentence = |(case, verdict): (&Option<&str>, &Verdict)| match case {
            Some(case) => format!("{case}: {}", verdict.sentence),
            None => verdict.sentence.clone(),
        };
        cases.iter().zip(&verdicts).map(sentence).collect()
    };
    Verdict { answer, sentence: format!("{lead}{}", sentences.join(" ")), ..Verdict::default() }
}

/// The answer over all cases, and with which words a sentence begins where it is that of some only. Cases that do not
/// tell contradict nobody.
fn in_all(verdicts: &[Verdict]) -> (Answer, &'static str) {
    let is_known = |answer: Answer| !matches!(answer, Answer::Undecided | Answer::NotAsked);
    let all = verdicts.iter().map(|verdict| verdict.answer);
    let first = all.clone().next().unwrap_or_default();
    if all.clone().all(|answer| answer == first) {
        return (first, "");
    }
    let known: Vec<Answer> = all.filter(|&answer| is_known(answer)).collect();
    match known.first() {
        None => (Answer::Undecided, ""),
        Some(Answer::No) if known.iter().all(|answer| *answer == Answer::No) => {
            (Answer::No, "No, as far as the intervals tell. ")
        }
        Some(Answer::Yes) if known.iter().all(|answer| *answer == Answer::Yes) => {
            (Answer::Yes, "Yes, as far as the intervals tell. ")
        }
        Some(_) => (Answer::Depends, ""),
    }
}

/// Of so many cases each gets a sentence of its own; more would be no headline.
const FEW: usize = 2;

/// Which answer holds where: "PFC is not needed at 0.1 % and 1 %."
fn answers_alone(cases: &[Option<&str>], verdicts: &[Verdict]) -> Vec<String> {
    // "at 0.1 %", "with small buffers".
    let are_numbers = cases.iter().flatten().all(|case| case.starts_with(|first: char| first.is_ascii_digit()));
    let preposition = if are_numbers { "at" } else { "with" };
    let tell = |(answer, text): (Answer, &str)| {
        let at = cases.iter().zip(verdicts).filter(|(_, verdict)| verdict.answer == answer);
        let names: Vec<&str> = at.filter_map(|(case, _)| *case).collect();
        let place = match answer {
            _ if names.len() < cases.len() => format!(" {preposition} {}", all_of(&names)),
            Answer::No | Answer::Undecided | Answer::NotAsked => format!(" in any case: {}", all_of(&names)),
            _ => format!(" in every case: {}", all_of(&names)),
        };
        (!names.is_empty()).then(|| format!("{text}{place}."))
    };
    let answers = [
        (Answer::No, "PFC is not needed"),
        (Answer::Yes, "PFC is needed"),
        (Answer::Depends, "It depends on the measure"),
        (Answer::Undecided, "The intervals do not tell"),
        (Answer::NotAsked, "PFC is not compared"),
    ];
    answers.into_iter().filter_map(tell).collect()
}

/// The healthy series of least average FCT, or completion time of groups. Of several workloads it is the geometric
/// mean: none counts for more because it takes longer.
fn best<'a>(series: &[&'a SeriesSummary], label: &Labels) -> Option<&'a SeriesSummary> {
    let time = |series: &SeriesSummary| -> f64 {
        let means = decisive(series, series).into_iter().map(|metric| series.metric(&metric.metric)?.mean);
        means.map(|mean| mean.map_or(f64::INFINITY, f64::ln)).sum()
    };
    let healthy = series.iter().copied().filter(|series| label.stall(series).is_none());
    healthy.min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// The metrics that decide between two series: of several workloads those of which either has measured any group.
fn decisive(of: &SeriesSummary, to: &SeriesSummary) -> Vec<Compared> {
    let all: Vec<Compared> = to.traits.decisive().collect();
    let is_measured = |metric: &Compared| {
        let measured =
            |series: &SeriesSummary| series.taken_over(&metric.metric).is_some_and(|over| over.measured > 0.0);
        measured(of) || measured(to)
    };
    if all.len() > 1 { all.into_iter().filter(is_measured).collect() } else { all }
}

/// Both kinds complete their flows: which is better? A sentence without its end. `choice_without` is whether there was
/// more than one series without PFC to choose from.
fn compare(
    with: &[&SeriesSummary],
    choice_without: bool,
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    label: &Labels,
) -> (Answer, String) {
    let (a, b) = (label.of(lossy), label.of(lossless));
    match relation(lossless, lossy) {
        Relation::Larger(metrics) => (Answer::No, favourable(with, lossy, lossless, metrics, label)),
        Relation::Same => {
            let metrics = decisive(lossless, lossy);
            let what = each(&metrics, what_completes);
            let how_alike = each(&metrics, |metric| label.interval(&ratio(lossless, lossy, metric)));
            (Answer::No, format!("No: {b} completes {what} as {a} does, within 5 % ({how_alike})"))
        }
        Relation::Smaller(metrics) => {
            let gain = label.gain(&metrics, lossless, lossy);
            let choice = if choice_without { ", the best without it" } else { "" };
            let rest = label.same_rest(&metrics, lossless, lossy);
            (Answer::Yes, format!("Yes: {b} {gain} than {a}{choice}{rest}"))
        }
        Relation::Open(open) => {
            let of = |metric: &Compared| ratio(lossless, lossy, metric);
            let (ratio, title) = (of(&open), &open.title);
            let why = match ratio.ci95 {
                Some(_) => format!(
                    "{title} of {b} over {a} is {}, and the interval includes 1; more seeds would narrow it",
                    label.with_interval(&ratio)
                ),
                None => format!(
                    "{title} of {b} over {a} is {}, from one seed; run more seeds for an interval",
                    number(&ratio)
                ),
            };
            let mut others = decisive(lossless, lossy);
            others.retain(|metric| *metric != open);
            let tell = |metric: &Compared| format!("{} it is {}", metric.title, label.with_known_interval(&of(metric)));
            let others = if others.is_empty() { String::new() } else { format!(". By {}", each(&others, tell)) };
            (Answer::Undecided, format!("Undecided: {why}{others}"))
        }
        Relation::Contradictory { larger, smaller } => {
            let part = |metric: &Compared| {
                format!("{} {}", metric.title, label.with_interval(&ratio(lossless, lossy, metric)))
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
    label: &Labels,
) -> String {
    let same = |series: &SeriesSummary| {
        series.traits.recovery == lossy.traits.recovery && series.traits.congestion == lossy.traits.congestion
    };
    let (own, others): (Vec<_>, Vec<_>) = with.iter().copied().partition(|series| same(series));
    // Only what the intervals show is said: a rival too noisy to be beaten is not named as beaten.
    let beaten = best(&others, label).and_then(|rival| match relation(rival, lossy) {
        Relation::Larger(metrics) => Some((rival, metrics)),
        _ => None,
    });
    let (rival, metrics) = beaten.unwrap_or((lossless, metrics));
    let gain = label.gain(&metrics, lossy, rival);
    let mut text = format!("No: {} {gain} than {}", label.of(lossy), label.of(rival));
    text += &label.same_rest(&metrics, lossy, rival);
    if let Some(own) = best(&own, label).filter(|own| own.name != rival.name) {
        let all = decisive(own, lossy);
        text += &match relation(own, lossy) {
            Relation::Larger(metrics) if metrics[0].completes.is_some() => {
                let slower = |metric: &Compared| {
                    let what = if all.len() > 1 { format!("{} ", what_completes(metric)) } else { String::new() };
                    let ratio = ratio(own, lossy, metric);
                    format!("{what}{}x slower{}", number(&ratio), label.bracket(&ratio))
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
                    label.bracket(&higher)
                )
            }
            Relation::Same => {
                let how_alike = each(&all, |metric| label.interval(&ratio(own, lossy, metric)));
                format!(", and adding PFC to it changes nothing (within 5 %, {how_alike})")
            }
            _ => {
                let how_alike = each(&all, |metric| label.with_interval(&ratio(own, lossy, metric)));
                format!(", and adding PFC to it makes no clear difference ({how_alike})")
            }
        };
    }
    text
}

/// Those of the series that a comparison had to leave out, and those that it nearly had to.
fn stalled_rest(series: &[&SeriesSummary], label: &Labels) -> String {
    let stalled: Vec<_> = series.iter().copied().filter(|series| label.stall(series).is_some()).collect();
    let stalled = if stalled.is_empty() { String::new() } else { format!("; {}", stalls(&stalled, label)) };
    stalled + &series.iter().filter_map(|series| label.alike(series)).collect::<String>()
}

/// That a series which is compared leaves a few unfinished, where its rival leaves fewer: its completion times are
/// those of the others.
fn lost_by(series: &SeriesSummary, rival: &SeriesSummary, label: &Labels) -> String {
    let left = leaves_more(series, rival, label.ignores_seeds);
    left.map_or(String::new(), |left| format!("; {} {left}", label.of(series)))
}

/// The best of the series of which the others, all stalled, leave clearly more unfinished.
fn best_against<'a>(
    series: &[&'a SeriesSummary],
    stalled: &[&SeriesSummary],
    label: &Labels,
) -> Option<&'a SeriesSummary> {
    let is_ahead = |one: &&SeriesSummary| stalled.iter().all(|other| trails(other, one, label.ignores_seeds));
    let ahead: Vec<&SeriesSummary> = series.iter().copied().filter(is_ahead).collect();
    best(&ahead, label).or_else(|| best(series, label))
}

fn not_asked(summary: &Summary, label: &Labels) -> Verdict {
    let sentence = match &summary.series[..] {
        [] => "No verdict: there is no series.".to_string(),
        [only] => {
            let tell = match (label.stall(only), label.pace(only)) {
                (Some(stall), _) => format!("{} {stall}", label.of(only)),
                (None, Some(pace)) => format!("{} completes {pace}", label.of(only)),
                (None, None) => format!("{} says nothing", label.of(only)),
            };
            let missing = if only.traits.pfc { "without" } else { "with" };
            format!("No verdict on PFC: {tell}; add a series {missing} PFC to compare.{}", label.remark())
        }
        [first, ..] => {
            let (all, missing) = if first.traits.pfc { ("with", "without") } else { ("without", "with") };
            let rest = stalled_rest(&summary.series.iter().collect::<Vec<_>>(), label);
            format!("No verdict on PFC: every series runs {all} it{rest}; add one {missing} PFC to compare.")
        }
    };
    Verdict { answer: Answer::NotAsked, sentence, ..Verdict::default() }
}

fn stalls(series: &[&SeriesSummary], label: &Labels) -> String {
    let parts: Vec<_> =
        series.iter().filter_map(|series| Some(format!("{} {}", label.of(series), label.stall(series)?))).collect();
    all_of(&parts)
}

/// How one series relates to another over the compared metrics.
enum Relation {
    /// In these of the metrics that decide, the others being the same; if all are, in one of the others.
    Larger(Vec<Compared>),
    /// See [`Self::Larger`].
    Smaller(Vec<Compared>),
    Same,
    /// In this one of the metrics that decide.
    Open(Compared),
    Contradictory {
        larger: Compared,
        smaller: Compared,
    },
}

fn relation(of: &SeriesSummary, to: &SeriesSummary) -> Relation {
    let deciding = decisive(of, to);
    let others = to.traits.compared().into_iter().filter(|metric| metric.completes.is_none());
    let signed = |metrics: Vec<Compared>| -> Vec<(Compared, Sign)> {
        metrics.into_iter().map(|metric| (metric.clone(), sign(&ratio(of, to, &metric)))).collect()
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
    // Where those that decide are the same, let the others speak, if they have something to say.
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
    Open,
}

fn sign(ratio: &Estimate) -> Sign {
    match ratio.ci95 {
        None => Sign::Open,
        Some([low, high]) if low > 1.0 / SAME && high < SAME => Sign::Same,
        Some([low, _]) if low > 1.0 => Sign::Larger,
        Some([_, high]) if high < 1.0 => Sign::Smaller,
        Some(_) => Sign::Open,
    }
}

fn ratio(of: &SeriesSummary, to: &SeriesSummary, metric: &Compared) -> Estimate {
    match (of.metric(&metric.metric), to.metric(&metric.metric)) {
        (Some(of), Some(to)) => Estimate::of_ratio(of, to),
        _ => Estimate::default(),
    }
}

fn number(estimate: &Estimate) -> String {
    estimate.mean.map_or("unknown".into(), |mean| format!("{mean:.*}", decimals(mean)))
}

/// What completes where this metric decides.
fn what_completes(metric: &Compared) -> String {
    metric.completes.clone().unwrap_or_default()
}

/// What there is to tell of each metric: "a, b and c".
fn each(metrics: &[Compared], tell: impl Fn(&Compared) -> String) -> String {
    let parts: Vec<String> = metrics.iter().map(tell).collect();
    all_of(&parts)
}

/// "an average slowdown", "a 99th percentile FCT".
fn with_article(title: &str) -> String {
    let article = if title.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {title}")
}

/// Of a ratio and its interval: two near 1, where they decide; one beyond 2, none beyond 100.
fn decimals(mean: f64) -> usize {
    match mean {
        ..2.0 => 2,
        ..100.0 => 1,
        _ => 0,
    }
}

/// How sentences speak of a study.
struct Labels {
    /// What series are called: by their traits where those tell them apart, else by name.
    by_name: Vec<(String, String)>,
    /// Whether seeds make no difference: then intervals say nothing.
    ignores_seeds: bool,
    /// What some leave unfinished, by name.
    stalls: Vec<(String, Stall)>,
}

impl Labels {
    fn new(summary: &Summary) -> Self {
        let series = &summary.series;
        let one_congestion = series.windows(2).all(|pair| pair[0].traits.congestion == pair[1].traits.congestion);
        let describe = |series: &SeriesSummary| {
            let traits = &series.traits;
            let congestion = match traits.congestion.as_str() {
                "" | "none" => String::new(),
                _ if one_congestion => String::new(),
                other => format!(" + {}", title(other)),
            };
            let pfc = if traits.pfc { "with" } else { "without" };
            format!("{}{congestion} {pfc} PFC", title(&traits.recovery))
        };
        let mut by_name: Vec<_> = series.iter().map(|series| (series.name.clone(), describe(series))).collect();
        let clash =
            |at: usize| by_name.iter().enumerate().any(|(other, (_, label))| other != at && *label == by_name[at].1);
        if (0..by_name.len()).any(clash) {
            for ((_, label), series) in by_name.iter_mut().zip(series) {
                let pfc = if series.traits.pfc { "with" } else { "without" };
                *label = format!("\"{}\" ({pfc} PFC)", series.series);
            }
        }
        let ignores_seeds = summary.ignores_seeds();
        let stalled = |one: &SeriesSummary| Some((one.name.clone(), stall(one, series, ignores_seeds)?));
        let stalls = series.iter().filter_map(stalled).collect();
        Self { by_name, ignores_seeds, stalls }
    }

    fn of<'a>(&'a self, series: &'a SeriesSummary) -> &'a str {
        self.by_name.iter().find(|(name, _)| *name == series.name).map_or(&series.name, |(_, label)| label)
    }

    fn found(&self, series: &SeriesSummary) -> Option<&Stall> {
        self.stalls.iter().find(|(name, _)| *name == series.name).map(|(_, stall)| stall)
    }

    /// Why a series cannot win, to follow its name; `None` if it can.
    fn stall(&self, series: &SeriesSummary) -> Option<&str> {
        match self.found(series)? {
            Stall::Stalled(clause) => Some(clause),
            Stall::Alike { .. } => None,
        }
    }

    /// What a series leaves unfinished that may still win: a clause that ends a sentence.
    fn alike(&self, series: &SeriesSummary) -> Option<String> {
        let Stall::Alike { clause, rival, rival_leaves } = self.found(series)? else { return None };
        let of_rival = self.by_name.iter().find(|(name, _)| name == rival).map_or(rival, |(_, label)| label);
        Some(format!("; {} {clause}, not clearly more than {of_rival} ({rival_leaves})", self.of(series)))
    }

    /// "IRN without PFC completes its flows", if that is so.
    fn completes(&self, series: &SeriesSummary) -> String {
        let what = unfinished(series).unwrap_or_else(|| format!("completes its {}", series.traits.awaited()));
        format!("{} {what}", self.of(series))
    }

    /// How fast a series by itself is: "flows in 1.62 times the ideal time on average".
    fn pace(&self, series: &SeriesSummary) -> Option<String> {
        if !series.traits.goes_by_groups() {
            let slowdown = series.metric("slowdown_mean").filter(|slowdown| slowdown.mean.is_some())?;
            return Some(format!(
                "flows in {} times the ideal time on average{}",
                number(slowdown),
                self.known_bracket(slowdown)
            ));
        }
        let metrics = decisive(series, series);
        let time = |metric: &Compared| {
            let time = series.metric(&metric.metric).cloned().unwrap_or_default();
            let scale = Scale::of(Unit::Us, time.mean.unwrap_or_default());
            let [mean, low, high] = [time.mean, time.ci95.map(|ci| ci[0]), time.ci95.map(|ci| ci[1])]
                .map(|value| value.map_or("-".into(), |value| digits(value * scale.factor, 4)));
            let is_known = time.ci95.is_some() && !self.ignores_seeds;
            let interval = if is_known { format!(" (95 % CI {low}-{high})") } else { String::new() };
            format!("{} in {mean} {}{interval}", what_completes(metric), scale.unit)
        };
        let is_known =
            metrics.iter().any(|metric| series.metric(&metric.metric).is_some_and(|time| time.mean.is_some()));
        is_known.then(|| format!("{} on average", each(&metrics, time)))
    }

    /// What the better of two does in these metrics.
    fn gain(&self, metrics: &[Compared], better: &SeriesSummary, worse: &SeriesSummary) -> String {
        let part = |metric: &Compared| {
            let ratio = ratio(worse, better, metric);
            (number(&ratio), self.bracket(&ratio))
        };
        match metrics {
            [metric] if metric.completes.is_none() => {
                let (number, interval) = part(metric);
                let title = with_article(&metric.title);
                format!("has the same average FCT (within 5 %) and {title} {number}x lower{interval}")
            }
            _ => {
                let faster = |metric: &Compared| {
                    let (number, interval) = part(metric);
                    format!("{} {number}x faster{interval}", what_completes(metric))
                };
                format!("completes {}", each(metrics, faster))
            }
        }
    }

    /// What both complete equally fast, where they differ in `metrics` only.
    fn same_rest(&self, metrics: &[Compared], of: &SeriesSummary, to: &SeriesSummary) -> String {
        let mut rest = decisive(of, to);
        rest.retain(|metric| !metrics.contains(metric));
        if rest.is_empty() || metrics[0].completes.is_none() {
            return String::new();
        }
        let how_alike = each(&rest, |metric| self.interval(&ratio(of, to, metric)));
        format!("; {} take as long, within 5 % ({how_alike})", each(&rest, what_completes))
    }

    /// " (95 % CI 1.07-1.09)"; nothing where seeds make no difference.
    fn bracket(&self, estimate: &Estimate) -> String {
        if self.ignores_seeds { String::new() } else { format!(" ({})", self.interval(estimate)) }
    }

    /// The same; nothing for one seed, too.
    fn known_bracket(&self, estimate: &Estimate) -> String {
        estimate.ci95.map_or(String::new(), |_| self.bracket(estimate))
    }

    /// "95 % CI 1.07-1.09"; where seeds make no difference, what is to be known about.
    fn interval(&self, estimate: &Estimate) -> String {
        let decimals = estimate.mean.map_or(2, decimals);
        match estimate.ci95 {
            _ if self.ignores_seeds => format!("a factor of {}", number(estimate)),
            Some([low, high]) => format!("95 % CI {low:.decimals$}-{high:.decimals$}"),
            None => "no interval".into(),
        }
    }

    fn with_interval(&self, estimate: &Estimate) -> String {
        format!("{}{}", number(estimate), self.bracket(estimate))
    }

    fn with_known_interval(&self, estimate: &Estimate) -> String {
        format!("{}{}", number(estimate), self.known_bracket(estimate))
    }

    /// What to know about intervals that are not there.
    fn remark(&self) -> &'static str {
        if self.ignores_seeds { " Nothing here depends on the seed." } else { "" }
    }
}

/// The usual spelling of a registry name.
fn title(name: &str) -> String {
    match name {
        "go-back-n" => "RoCE (go-back-N)".into(),
        "new-reno" => "NewReno".into(),
        "timely" => "TIMELY".into(),
        "swift" => "Swift".into(),
        "netrt" => "NetRT".into(),
        "irn" | "melo" | "eqds" | "ndp" | "tcp" | "mptcp" | "dcqcn" | "dctcp" | "aimd" | "hpcc" | "cubic" | "lia" => {
            name.to_uppercase()
        }
        other => other.into(),
    }
}
