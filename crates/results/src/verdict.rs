//! "Do I need PFC?", answered in one sentence.
//!
//! 1. A series is *stalled* when a run of it ends in a deadlock, when no measured flow finishes, or when more than 1 %
//!    of its measured flows, or of those of one of its workloads, never do. A stalled series cannot win; its completion
//!    times are those of the lucky flows.
//! 2. Of the others, the best without PFC meets the best with PFC. Best is least average FCT.
//! 3. Two series are compared by paired ratios of average FCT, average slowdown and 99th percentile
//!    FCT. A ratio is *the same* when its whole 95 % interval lies within 5 % of 1, *larger* or
//!    *smaller* when the interval excludes 1, else *open*. When the metrics contradict each other the
//!    answer is that it depends; otherwise average FCT decides.
//! 4. PFC is needed when the best series with it beats the best without. When they are the same or
//!    the one without wins, it is not.
//!
//! Where traffic is jobs, job completion time takes the place of all three metrics, and jobs that of flows.

use std::iter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{FLOW_COMPLETION, JOB_COMPLETION, Metric};
use crate::number::fixed;
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
    /// Average FCT of the best with PFC over the best without, paired by seed.
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

/// The share of measured flows or jobs that may be missing before a series counts as stalled.
pub(crate) const STALLED: f64 = 0.01;
/// Ratios within this factor of 1 are the same for anyone who designs a network.
const SAME: f64 = 1.05;

/// Answers from the numbers and the declared traits; never from names.
pub fn verdict(summary: &Summary) -> Verdict {
    let cases = summary.cases();
    if cases.len() > 1 {
        return by_case(summary, &cases);
    }
    let (with, without): (Vec<_>, Vec<_>) = summary.series.iter().partition(|series| series.traits.pfc);
    let label = Labels::new(&summary.series);
    if with.is_empty() || without.is_empty() {
        return not_asked(summary, &label);
    }
    let best_with = best(&with);
    let best_without = best(&without);
    let (answer, sentence, ratio) = match (best_without, best_with) {
        (None, None) => (
            Answer::Undecided,
            format!(
                "Undecided: {}; nothing here completes its flows.",
                stalls(&summary.series.iter().collect::<Vec<_>>(), &label)
            ),
            None,
        ),
        (Some(winner), None) => (
            Answer::No,
            format!("No: {}, while {} completes its flows.", stalls(&with, &label), label.of(winner)),
            None,
        ),
        (None, Some(winner)) => (
            Answer::Yes,
            format!("Yes: {}, while {} completes its flows.", stalls(&without, &label), label.of(winner)),
            None,
        ),
        (Some(lossy), Some(lossless)) => {
            let (answer, sentence) = compare(&with, without.len() > 1, lossy, lossless, &label);
            (answer, sentence, Some(ratio(lossless, lossy, lossy.traits.headline())))
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
    let same = verdicts.iter().all(|verdict| verdict.answer == verdicts[0].answer);
    let sentences: Vec<String> = if cases.len() > FEW {
        answers_alone(cases, &verdicts)
    } else {
        let sentence = |(case, verdict): (&Option<&str>, &Verdict)| match case {
            Some(case) => format!("{case}: {}", verdict.sentence),
            None => verdict.sentence.clone(),
        };
        cases.iter().zip(&verdicts).map(sentence).collect()
    };
    Verdict {
        answer: if same { verdicts[0].answer } else { Answer::Depends },
        sentence: sentences.join(" "),
        ..Verdict::default()
    }
}

/// Of so many cases each gets a sentence of its own; more would be no headline.
const FEW: usize = 2;

/// Which answer holds where: "No with 0.1 % and 1 %."
fn answers_alone(cases: &[Option<&str>], verdicts: &[Verdict]) -> Vec<String> {
    let tell = |(answer, text): (Answer, &str)| {
        let at = cases.iter().zip(verdicts).filter(|(_, verdict)| verdict.answer == answer);
        let names: Vec<&str> = at.filter_map(|(case, _)| *case).collect();
        (!names.is_empty()).then(|| format!("{text}: {}.", and(&names)))
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

/// "a, b and c".
pub(crate) fn and(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The healthy series of least average FCT (or job completion time).
fn best<'a>(series: &[&'a SeriesSummary]) -> Option<&'a SeriesSummary> {
    let fct = |series: &SeriesSummary| series.metric(series.traits.headline()).and_then(|estimate| estimate.mean);
    let healthy = series.iter().copied().filter(|series| stall(series).is_none());
    healthy.min_by(|a, b| fct(a).unwrap_or(f64::INFINITY).total_cmp(&fct(b).unwrap_or(f64::INFINITY)))
}

/// Both kinds complete their flows: which is better? `choice_without` is whether there was more than
/// one series without PFC to choose from.
fn compare(
    with: &[&SeriesSummary],
    choice_without: bool,
    lossy: &SeriesSummary,
    lossless: &SeriesSummary,
    label: &Labels,
) -> (Answer, String) {
    let (a, b) = (label.of(lossy), label.of(lossless));
    let headline = lossy.traits.headline();
    match relation(lossless, lossy) {
        Relation::Larger(metric) => (Answer::No, favourable(with, lossy, lossless, metric, label)),
        Relation::Same => {
            let ratio = ratio(lossless, lossy, headline);
            let what = what_completes(headline);
            (Answer::No, format!("No: {b} completes {what} as {a} does, within 5 % ({}).", interval(&ratio)))
        }
        Relation::Smaller(metric) => {
            let gain = gain(metric, &ratio(lossy, lossless, metric));
            let choice = if choice_without { ", the best without it" } else { "" };
            let rest = stalled_rest(with, label);
            (Answer::Yes, format!("Yes: {b} {gain} than {a}{choice}{rest}."))
        }
        Relation::Open => {
            let ratio = ratio(lossless, lossy, headline);
            let title = title_of(headline);
            let why = match ratio.ci95 {
                Some(_) => format!(
                    "{title} of {b} over {a} is {}, and the interval includes 1; more seeds would narrow it",
                    with_interval(&ratio)
                ),
                None => format!(
                    "{title} of {b} over {a} is {}, from one seed; run more seeds for an interval",
                    number(&ratio)
                ),
            };
            (Answer::Undecided, format!("Undecided: {why}."))
        }
        Relation::Contradictory { larger, smaller } => {
            let part =
                |metric: &str| format!("{} {}", title_of(metric), with_interval(&ratio(lossless, lossy, metric)));
            let text = format!(
                "It depends: {b} against {a} is worse in one measure ({}) and better in another ({}).",
                part(larger),
                part(smaller)
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
    metric: &str,
    label: &Labels,
) -> String {
    let same = |series: &SeriesSummary| {
        series.traits.recovery == lossy.traits.recovery && series.traits.congestion == lossy.traits.congestion
    };
    let (own, others): (Vec<_>, Vec<_>) = with.iter().copied().partition(|series| same(series));
    // Only what the intervals show is said: a rival too noisy to be beaten is not named as beaten.
    let beaten = best(&others).and_then(|rival| match relation(rival, lossy) {
        Relation::Larger(metric) => Some((rival, metric)),
        _ => None,
    });
    let (rival, metric) = beaten.unwrap_or((lossless, metric));
    let gain = gain(metric, &ratio(rival, lossy, metric));
    let mut text = format!("No: {} {gain} than {}", label.of(lossy), label.of(rival));
    if let Some(own) = best(&own).filter(|own| own.name != rival.name) {
        let headline = lossy.traits.headline();
        let slower = ratio(own, lossy, headline);
        text += &match relation(own, lossy) {
            Relation::Larger(metric) if metric == headline => {
                format!(", and adding PFC to it makes it {}x slower ({})", number(&slower), interval(&slower))
            }
            Relation::Larger(metric) => {
                let higher = ratio(own, lossy, metric);
                format!(
                    ", and adding PFC to it makes its {} {}x higher ({})",
                    title_of(metric),
                    number(&higher),
                    interval(&higher)
                )
            }
            Relation::Same => format!(", and adding PFC to it changes nothing (within 5 %, {})", interval(&slower)),
            _ => format!(", and adding PFC to it makes no clear difference ({})", with_interval(&slower)),
        };
    }
    text + &stalled_rest(with, label) + "."
}

/// Series with PFC that the comparison had to leave out.
fn stalled_rest(with: &[&SeriesSummary], label: &Labels) -> String {
    let stalled: Vec<_> = with.iter().copied().filter(|series| stall(series).is_some()).collect();
    if stalled.is_empty() { String::new() } else { format!("; {}", stalls(&stalled, label)) }
}

fn not_asked(summary: &Summary, label: &Labels) -> Verdict {
    let sentence = match &summary.series[..] {
        [] => "No verdict: there is no series.".to_string(),
        [only] => {
            let tell = match (stall(only), only.metric("slowdown_mean").filter(|slowdown| slowdown.mean.is_some())) {
                (Some(stall), _) => format!("{} {stall}", label.of(only)),
                (None, Some(slowdown)) => {
                    let ci = slowdown.ci95.map_or(String::new(), |_| format!(" ({})", interval(slowdown)));
                    format!(
                        "{} completes flows in {} times the ideal time on average{ci}",
                        label.of(only),
                        number(slowdown)
                    )
                }
                (None, None) => format!("{} says nothing", label.of(only)),
            };
            let missing = if only.traits.pfc { "without" } else { "with" };
            format!("No verdict on PFC: {tell}; add a series {missing} PFC to compare.")
        }
        [first, ..] => {
            let (all, missing) = if first.traits.pfc { ("with", "without") } else { ("without", "with") };
            format!("No verdict on PFC: every series runs {all} it; add one {missing} PFC to compare.")
        }
    };
    Verdict { answer: Answer::NotAsked, sentence, ..Verdict::default() }
}

/// Why a series cannot win, to follow its name; `None` if it can.
fn stall(series: &SeriesSummary) -> Option<String> {
    if let [first, ..] = &series.deadlocks[..] {
        let runs = series.metric("measured_flows").map_or(0, |flows| flows.per_seed.iter().flatten().count());
        let seeds = if series.deadlocks.len() == 1 {
            format!("with seed {}", first.seed)
        } else {
            format!("with {} of {runs} seeds", series.deadlocks.len())
        };
        return Some(format!("deadlocks {seeds}"));
    }
    let headline = series.traits.headline();
    let over = series.taken_over(headline)?;
    if over.measured == 0.0 {
        return Some(format!("has no measured {}", over.what));
    }
    // Flows of incasts beside others count in their workload's metrics alone.
    let own =
        series.metrics.keys().filter(|name| Metric::find_of_workload(name).is_some_and(|(_, of)| of.name == headline));
    let stalled =
        iter::once(over).chain(own.filter_map(|name| series.taken_over(name))).find(|over| over.missing() > STALLED)?;
    Some(format!(
        "leaves {} of {} {} unfinished",
        fixed(stalled.unfinished, 0),
        fixed(stalled.measured, 0),
        stalled.what
    ))
}

fn stalls(series: &[&SeriesSummary], label: &Labels) -> String {
    let parts: Vec<_> =
        series.iter().filter_map(|series| stall(series).map(|stall| format!("{} {stall}", label.of(series)))).collect();
    and(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// How one series relates to another over the compared metrics.
enum Relation {
    /// In this metric, the headline one if that tells.
    Larger(&'static str),
    /// In this metric, the headline one if that tells.
    Smaller(&'static str),
    Same,
    Open,
    Contradictory {
        larger: &'static str,
        smaller: &'static str,
    },
}

fn relation(of: &SeriesSummary, to: &SeriesSummary) -> Relation {
    let headline = to.traits.headline();
    let signs: Vec<_> = to.traits.compared().iter().map(|&metric| (metric, sign(&ratio(of, to, metric)))).collect();
    let first = |wanted| signs.iter().find(|&&(_, sign)| sign == wanted).map(|&(metric, _)| metric);
    if let (Some(larger), Some(smaller)) = (first(Sign::Larger), first(Sign::Smaller)) {
        return Relation::Contradictory { larger, smaller };
    }
    match sign(&ratio(of, to, headline)) {
        Sign::Larger => Relation::Larger(headline),
        Sign::Smaller => Relation::Smaller(headline),
        Sign::Open => Relation::Open,
        // The average is the same: then let the other metrics speak, if they have something to say.
        Sign::Same => match (first(Sign::Larger), first(Sign::Smaller)) {
            (Some(metric), _) => Relation::Larger(metric),
            (_, Some(metric)) => Relation::Smaller(metric),
            _ => Relation::Same,
        },
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

fn ratio(of: &SeriesSummary, to: &SeriesSummary, metric: &str) -> Estimate {
    match (of.metric(metric), to.metric(metric)) {
        (Some(of), Some(to)) => Estimate::of_ratio(of, to),
        _ => Estimate::default(),
    }
}

fn number(estimate: &Estimate) -> String {
    estimate.mean.map_or("unknown".into(), |mean| format!("{mean:.*}", decimals(mean)))
}

fn interval(estimate: &Estimate) -> String {
    let decimals = estimate.mean.map_or(2, decimals);
    estimate.ci95.map_or("no interval".into(), |[low, high]| format!("95 % CI {low:.decimals$}-{high:.decimals$}"))
}

fn with_interval(estimate: &Estimate) -> String {
    format!("{} ({})", number(estimate), interval(estimate))
}

/// What the better of two does, `ratio` being the worse over the better in `metric`.
fn gain(metric: &str, ratio: &Estimate) -> String {
    if [FLOW_COMPLETION, JOB_COMPLETION].contains(&metric) {
        return format!("completes {} {}x faster ({})", what_completes(metric), number(ratio), interval(ratio));
    }
    format!("has the same average FCT and a {} {}x lower ({})", title_of(metric), number(ratio), interval(ratio))
}

/// What completes where this metric decides.
fn what_completes(headline: &str) -> &'static str {
    if headline == JOB_COMPLETION { "jobs" } else { "flows" }
}

fn title_of(metric: &str) -> &str {
    match metric {
        JOB_COMPLETION => "job completion time",
        _ => Metric::find(metric).map_or(metric, |metric| metric.title),
    }
}

/// Of a ratio and its interval: two near 1, where they decide; one beyond 2, none beyond 100.
fn decimals(mean: f64) -> usize {
    match mean {
        ..2.0 => 2,
        ..100.0 => 1,
        _ => 0,
    }
}

/// What series are called in sentences: by their traits where those tell them apart, else by name.
struct Labels {
    by_name: Vec<(String, String)>,
}

impl Labels {
    fn new(series: &[SeriesSummary]) -> Self {
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
            for ((name, label), series) in by_name.iter_mut().zip(series) {
                let pfc = if series.traits.pfc { "with" } else { "without" };
                *label = format!("\"{name}\" ({pfc} PFC)");
            }
        }
        Self { by_name }
    }

    fn of<'a>(&'a self, series: &'a SeriesSummary) -> &'a str {
        self.by_name.iter().find(|(name, _)| *name == series.name).map_or(&series.name, |(_, label)| label)
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
