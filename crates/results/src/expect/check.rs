//! Claims against a summary; the rule is in the parent module's documentation.

use std::fmt;

use serde::Serialize;

use super::parse::{Claim, Expectations};
use crate::Summary;
use crate::number::{digits, ratio_interval};

/// How a claim fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As claimed.
    Reproduced,
    /// The claimed side wins, by another factor.
    DirectionOnly,
    /// Not as claimed, or the study lacks the numbers.
    NotReproduced,
    /// There is a value, from runs too short to hold a claim against.
    NotJudged,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::DirectionOnly => "direction only",
            Self::NotReproduced => "not reproduced",
            Self::NotJudged => "not judged",
        })
    }
}

/// A claim and what the study says; serialises for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClaimVerdict {
    /// The claim.
    pub say: String,
    /// How it fared.
    pub outcome: Outcome,
    /// Whether it fails the check: not fully reproduced, and not known.
    pub fails: bool,
    /// Name of the metric.
    pub metric: String,
    /// The series it is about.
    pub of: String,
    /// The series it is compared with, for ratios.
    pub than: Option<String>,
    /// The accepted range; an open end is absent.
    pub accepted: [Option<f64>; 2],
    /// What came out.
    pub mean: Option<f64>,
    /// How well it is known.
    pub ci95: Option<[f64; 2]>,
    /// Why it came out so, where the numbers alone do not say it.
    pub note: Option<String>,
    /// The documented reason for a failure.
    pub known: Option<String>,
    /// Where it is claimed.
    pub source: Option<String>,
    /// The range as printed there.
    pub paper: Option<String>,
    /// Line in the file.
    pub line: usize,
}

/// Holds each claim against the study.
pub fn check(expectations: &Expectations, summary: &Summary) -> Vec<ClaimVerdict> {
    expectations.claims.iter().map(|claim| check_claim(claim, summary)).collect()
}

/// Looks only whether each claim finds its numbers: for smoke runs, which are too short to judge. A
/// claim fails when the study has no value for it, whether or not it is known.
pub fn check_smoke(expectations: &Expectations, summary: &Summary) -> Vec<ClaimVerdict> {
    let unjudged = |verdict: ClaimVerdict| {
        let fails = verdict.mean.is_none();
        let outcome = if fails { Outcome::NotReproduced } else { Outcome::NotJudged };
        ClaimVerdict { outcome, fails, ..verdict }
    };
    check(expectations, summary).into_iter().map(unjudged).collect()
}

/// One line per claim and what it rests on, for a terminal; the last line counts.
pub fn render_claims(verdicts: &[ClaimVerdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let mark = match (verdict.outcome, verdict.fails) {
            (Outcome::Reproduced, _) => "ok  ",
            (Outcome::NotJudged, _) => "runs",
            (_, false) => "know",
            (_, true) => "FAIL",
        };
        out += &format!("{mark}  {:<14}  {}: {}\n", verdict.outcome, verdict.say, evidence(verdict));
    }
    let count = |outcome| verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
    let fails = verdicts.iter().filter(|verdict| verdict.fails).count();
    let claims = verdicts.len();
    out += &match count(Outcome::NotJudged) {
        0 => format!(
            "{claims} claims: {} reproduced, {} in direction only, {} not; {fails} without a known reason\n",
            count(Outcome::Reproduced),
            count(Outcome::DirectionOnly),
            count(Outcome::NotReproduced),
        ),
        valued => format!("{claims} claims: {valued} with a value, not judged after a smoke run; {fails} without\n"),
    };
    out
}

fn evidence(verdict: &ClaimVerdict) -> String {
    let mut parts = Vec::new();
    if let Some(mean) = verdict.mean {
        let interval = verdict.ci95.map_or(String::new(), |ci| format!(" ({})", ratio_interval(ci)));
        let accepted = match verdict.accepted {
            [Some(low), Some(high)] => format!("{} to {}", digits(low, 3), digits(high, 3)),
            [Some(low), None] => format!("at least {}", digits(low, 3)),
            [None, Some(high)] => format!("at most {}", digits(high, 3)),
            [None, None] => "anything".into(),
        };
        parts.push(format!("found {}{interval}, accepted {accepted}", digits(mean, 3)));
    }
    parts.extend(verdict.paper.iter().map(|paper| format!("paper {paper}")));
    parts.extend(verdict.note.clone());
    parts.extend(verdict.known.iter().filter_map(|reason| match verdict.outcome {
        Outcome::Reproduced => Some("comes out after all: remove `known`".to_string()),
        Outcome::NotJudged => None,
        _ => Some(format!("known: {reason}")),
    }));
    parts.join("; ")
}

fn check_claim(claim: &Claim, summary: &Summary) -> ClaimVerdict {
    let missing =
        [Some(&claim.of), claim.than.as_ref()].into_iter().flatten().find(|name| summary.find(name).is_none());
    let estimate = match &claim.than {
        Some(than) => summary.ratio(&claim.of, than, &claim.metric),
        None => summary.find(&claim.of).and_then(|series| series.metric(&claim.metric)).cloned(),
    };
    let (mean, ci95) = estimate.map_or((None, None), |estimate| (estimate.mean, estimate.ci95));
    let outcome = mean.map_or(Outcome::NotReproduced, |mean| judge(claim, mean, ci95));
    let note = match (missing, mean, ci95) {
        (Some(name), ..) => {
            let names: Vec<_> = summary.series.iter().map(|series| series.name.as_str()).collect();
            Some(format!("the study has no series \"{name}\", only {}", names.join(", ")))
        }
        (None, None, _) => Some("the study has no value for it".into()),
        (None, Some(_), None) => Some("one seed, no interval".into()),
        _ => None,
    };
    ClaimVerdict {
        say: claim.say.clone(),
        outcome,
        fails: outcome != Outcome::Reproduced && claim.known.is_none(),
        metric: claim.metric.clone(),
        of: claim.of.clone(),
        than: claim.than.clone(),
        accepted: [claim.low, claim.high].map(|bound| bound.is_finite().then_some(bound)),
        mean,
        ci95,
        note,
        known: claim.known.clone(),
        source: claim.source.clone(),
        paper: claim.paper.clone(),
        line: claim.line,
    }
}

fn judge(claim: &Claim, mean: f64, ci95: Option<[f64; 2]>) -> Outcome {
    let accepted = claim.low..=claim.high;
    let inside = accepted.contains(&mean);
    if claim.than.is_none() {
        return if inside { Outcome::Reproduced } else { Outcome::NotReproduced };
    }
    let [low, high] = ci95.unwrap_or([mean, mean]);
    let side = if claim.low >= 1.0 {
        Some(low > 1.0)
    } else if claim.high <= 1.0 {
        Some(high < 1.0)
    } else {
        None
    };
    match (side, inside) {
        // A direction: the interval excludes 1 on the claimed side, or it does not.
        (Some(true), true) => Outcome::Reproduced,
        (Some(true), false) | (Some(false), true) => Outcome::DirectionOnly,
        (Some(false), false) => Outcome::NotReproduced,
        // Sameness: the evidence must lie inside.
        (None, true) if accepted.contains(&low) && accepted.contains(&high) => Outcome::Reproduced,
        (None, true) => Outcome::DirectionOnly,
        (None, false) => Outcome::NotReproduced,
    }
}
