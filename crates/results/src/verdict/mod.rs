//! Answer to "Do I need PFC?" in one sentence.
//!
//! 1. A series is *stalled* when a run of it ends in a deadlock, when no measured flow finishes, or when more than 1 %
//!    of its measured flows, or of those of one of its workloads, never finish. If the best of the other series leaves
//!    some unfinished, too, the stalled one must leave clearly more: the paired differences of the shares have a 95 %
//!    interval above 0, or, without an interval, the share is several times the other. A stalled series cannot win.
//!    Every stalled series is named, and so is every other one that exceeds 1 %.
//! 2. Among the others, the best without PFC is compared with the best with PFC. Best is least average FCT.
//! 3. Two series are compared by paired ratios of average FCT, average slowdown and 99th percentile FCT. A ratio is
//!    *the same* when its whole 95 % interval lies within 5 % of 1, *larger* or *smaller* when the interval excludes 1,
//!    *hardly smaller* when it excludes 5 % less, else *open*. Where flows had not finished when runs ended, the ratio
//!    is known from one side only, or from none: its interval is open there, and it is *larger* if even the lower bound
//!    is, *smaller* if even the upper bound is, never *the same*. When the metrics contradict each other the answer is
//!    that it depends; otherwise average FCT decides.
//! 4. PFC is needed when the best series with it beats the best without. PFC is not needed when they are the same, when
//!    the one without wins, or when the one with it is hardly faster.
//! 5. The answer is about PFC, not about other differences of two series: the better one must have its *control* in the
//!    study, the same series with PFC switched. As the best of the other kind is at least as good as that control, PFC
//!    by itself makes no smaller difference. Where the control is missing, the answer is undecided; where it cannot
//!    exist (transports that are not run with PFC), rule 4 applies.
//! 6. Where no buffer was full, no packet trimmed and nothing paused, the traffic does not raise the question, whatever
//!    the series differ in.
//! 7. Fewer than three seeds decide nothing, unless runs do not depend on the seed.
//!
//! Where there are jobs, or nothing but incasts, all-to-alls and jobs, their completion time replaces all three
//! metrics, and these groups replace flows. Where several workloads have such groups, each has its own completion time,
//! and all decide: the best has the least geometric mean, and what is open for one workload is open.

mod cases;
mod comparison;
mod sentence;
mod wording;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::cases::by_case;
use self::comparison::{Relation, best, best_against, decisive, ratio as ratio_of, relation, seeds_can_tell};
use self::sentence::{judge, lost_by, not_asked, not_put, stalled_rest, stalls};
use self::wording::Wording;
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
    /// Whether more seeds may decide the question.
    #[serde(default)]
    pub needs_seeds: bool,
    /// Average FCT, or another decisive metric, of the best with PFC over the best without, paired by seed; null where
    /// several workloads decide.
    pub with_over_without: Option<Estimate>,
}

/// Whether PFC is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A series without PFC is as good or better.
    No,
    /// PFC is better, or nothing works without it.
    Yes,
    /// The metrics contradict each other.
    Depends,
    /// The intervals are inconclusive, or the series differ in more than PFC.
    Undecided,
    /// No buffer was full and nothing was paused: PFC had nothing to do.
    NotPut,
    /// The study does not ask the question.
    #[default]
    NotAsked,
}

/// Returns whether PFC mattered: some switch paused its neighbour, or lost packets that PFC would have saved.
fn puts_the_question(with: &[&SeriesSummary], without: &[&SeriesSummary]) -> bool {
    let pauses = |series: &&SeriesSummary| series.total("pause_frames") > 0.0 || !series.deadlocks.is_empty();
    let loses = |series: &&SeriesSummary| series.drops.buffer_full > 0 || series.total("trims") > 0.0;
    with.iter().any(pauses) || without.iter().any(loses)
}

/// Returns the verdict, from the numbers and the declared traits; never from names.
pub fn verdict(summary: &Summary) -> Verdict {
    let cases = summary.cases();
    if cases.len() > 1 {
        return by_case(summary, &cases);
    }
    let (with, without): (Vec<_>, Vec<_>) = summary.series.iter().partition(|series| series.traits.pfc);
    let wording = Wording::new(summary);
    if with.is_empty() || without.is_empty() {
        return not_asked(summary, &wording);
    }
    if !puts_the_question(&with, &without) {
        let all: Vec<&SeriesSummary> = summary.series.iter().collect();
        let clauses = not_put(&all, &wording);
        let sentence = format!("{clauses}{}.{}", stalled_rest(&all, &wording), wording.remark());
        return Verdict { answer: Answer::NotPut, sentence, ..Verdict::default() };
    }
    let (best_without, best_with) = match (best(&without, &wording), best(&with, &wording)) {
        (Some(_), None) => (best_against(&without, &with, &wording), None),
        (None, Some(_)) => (None, best_against(&with, &without, &wording)),
        both => both,
    };
    let all: Vec<&SeriesSummary> = summary.series.iter().collect();
    let (answer, sentence, ratio) = match (best_without, best_with) {
        (None, None) => (
            Answer::Undecided,
            format!(
                "Not decided: {}; nothing here completes its {}.",
                stalls(&all, &wording),
                summary.series[0].traits.awaited()
            ),
            None,
        ),
        (Some(winner), None) => {
            let rest = stalled_rest(&without, &wording);
            (Answer::No, format!("No: {}, while {}{rest}.", stalls(&with, &wording), wording.completes(winner)), None)
        }
        (None, Some(winner)) => {
            let rest = stalled_rest(&with, &wording);
            (
                Answer::Yes,
                format!("Yes: {}, while {}{rest}.", stalls(&without, &wording), wording.completes(winner)),
                None,
            )
        }
        (Some(lossy), Some(lossless)) => {
            let (answer, clauses) = judge(&with, &without, lossy, lossless, &wording);
            let only = match &decisive(lossless, lossy)[..] {
                [metric] => Some(ratio_of(lossless, lossy, metric)),
                _ => None,
            };
            let rest = stalled_rest(&all, &wording);
            let less = lost_by(lossy, lossless, &wording) + &lost_by(lossless, lossy, &wording);
            (answer, format!("{clauses}{rest}{less}.{}", wording.remark()), only)
        }
    };
    let name = |series: Option<&SeriesSummary>| series.map(|series| series.name.clone());
    let is_open = |(lossy, lossless)| match relation(lossless, lossy, wording.ignores_seeds) {
        Relation::Open(metric) => seeds_can_tell(&ratio_of(lossless, lossy, &metric)),
        _ => false,
    };
    Verdict {
        answer,
        sentence,
        best_without: name(best_without),
        best_with: name(best_with),
        needs_seeds: answer == Answer::Undecided && best_without.zip(best_with).is_some_and(is_open),
        with_over_without: ratio,
    }
}
