//! Verdicts of a study with several cases: the answer in each case, and over all.

use std::collections::BTreeMap;

use selvedge_units::words::all_of;

use super::{Answer, Verdict, verdict};
use crate::{PointRun, RunSummary, Summary};

/// Returns the verdict over all cases, with a sentence for each case.
pub(super) fn by_case(summary: &Summary, cases: &[Option<&str>]) -> Verdict {
    // A large sweep has thousands of series and runs: each case gets its own alone.
    let mut runs: BTreeMap<&str, Vec<PointRun>> = BTreeMap::new();
    for point in &summary.run.points {
        runs.entry(&point.series).or_default().push(point.clone());
    }
    let bare = summary.without_series();
    let in_case = |case: Option<&str>| {
        let series: Vec<_> = summary.series.iter().filter(|series| series.case.as_deref() == case).cloned().collect();
        let points = series.iter().filter_map(|series| runs.get(series.name.as_str())).flatten().cloned().collect();
        verdict(&Summary { series, run: RunSummary { points, ..bare.run.clone() }, ..bare.clone() })
    };
    let verdicts: Vec<Verdict> = cases.iter().map(|&case| in_case(case)).collect();
    let (answer, lead) = in_all(&verdicts);
    let sentences: Vec<String> = if cases.len() > FEW || summary.sweep.is_some() {
        answers_alone(cases, &verdicts, summary.sweep.is_some())
    } else {
        let sentence = |(case, verdict): (&Option<&str>, &Verdict)| match case {
            Some(case) => format!("{case}: {}", verdict.sentence),
            None => verdict.sentence.clone(),
        };
        cases.iter().zip(&verdicts).map(sentence).collect()
    };
    let needs_seeds = verdicts.iter().any(|verdict| verdict.needs_seeds);
    Verdict { answer, needs_seeds, sentence: format!("{lead}{}", sentences.join(" ")), ..Verdict::default() }
}

/// Returns the answer over all cases, and the words that begin a sentence if the answer holds in some cases only.
/// Undecided cases contradict no other.
fn in_all(verdicts: &[Verdict]) -> (Answer, &'static str) {
    let is_known = |answer: Answer| !matches!(answer, Answer::Undecided | Answer::NotPut | Answer::NotAsked);
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

/// Largest number of cases that get a sentence each; more would be too long for a headline.
const FEW: usize = 2;

/// Returns which answer holds in which cases: "PFC is not needed at 0.1 % and 1 %." Points of a sweep are counted.
fn answers_alone(cases: &[Option<&str>], verdicts: &[Verdict], is_sweep: bool) -> Vec<String> {
    // Examples: "at 0.1 %", "with small buffers".
    let are_numbers = cases.iter().flatten().all(|case| case.starts_with(|first: char| first.is_ascii_digit()));
    let preposition = if are_numbers { "at" } else { "with" };
    let tell = |(answer, text): (Answer, &str)| {
        let at = cases.iter().zip(verdicts).filter(|(_, verdict)| verdict.answer == answer);
        let names: Vec<&str> = at.filter_map(|(case, _)| *case).collect();
        let place = match answer {
            _ if is_sweep => format!(" at {} of {} points", names.len(), cases.len()),
            _ if names.len() < cases.len() => format!(" {preposition} {}", all_of(&names)),
            Answer::No | Answer::Undecided | Answer::NotPut | Answer::NotAsked => {
                format!(" in any case: {}", all_of(&names))
            }
            _ => format!(" in every case: {}", all_of(&names)),
        };
        (!names.is_empty()).then(|| format!("{text}{place}."))
    };
    let answers = [
        (Answer::No, "PFC is not needed"),
        (Answer::Yes, "PFC is needed"),
        (Answer::Depends, "It depends on the measure"),
        (Answer::Undecided, "It is not decided"),
        (Answer::NotPut, "The traffic does not put the question"),
        (Answer::NotAsked, "PFC is not compared"),
    ];
    answers.into_iter().filter_map(tell).collect()
}
