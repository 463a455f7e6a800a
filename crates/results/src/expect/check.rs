//! Claims against a summary; the rule is in the parent module's documentation.

use std::fmt;

use selvedge_units::words::plural;
use serde::Serialize;

use super::parse::{Claim, Expectations, Measurement, Take};
use super::quantity::Quantity;
use crate::Summary;
use crate::number::{digits, in_brackets};
use crate::stall::STALLED;

/// How a claim fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As claimed.
    Reproduced,
    /// The claimed side wins beyond doubt, by another factor.
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
    /// Which of the claim's quantities this is about, where it has several; empty otherwise.
    pub which: String,
    /// How it fared.
    pub outcome: Outcome,
    /// Whether it fails the check: not fully reproduced, and not known.
    pub fails: bool,
    /// What was compared.
    #[serde(flatten)]
    pub quantity: Quantity,
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

/// One number of a measurement; serialises for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// What is measured.
    pub say: String,
    /// Which of its quantities.
    pub which: String,
    /// What was compared, if anything was.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// What came out.
    pub mean: Option<f64>,
    /// How well it is known.
    pub ci95: Option<[f64; 2]>,
    /// What to know about it.
    pub note: Option<String>,
}

/// Holds each claim against the study.
pub fn check(expectations: &Expectations, summary: &Summary) -> Vec<ClaimVerdict> {
    expectations.claims.iter().flat_map(|claim| check_claim(claim, summary)).collect()
}

/// The numbers that are shown without a claim.
pub fn measure(expectations: &Expectations, summary: &Summary) -> Vec<Measured> {
    let of = |measurement: &Measurement| -> Vec<Measured> {
        let each = measurement.quantities.each(&summary.cases()).into_iter();
        each.map(|quantity| {
            let (mean, ci95) = value(&quantity, summary);
            Measured {
                say: measurement.say.clone(),
                which: measurement.quantities.label(&quantity),
                note: note(&quantity, mean, ci95, summary),
                quantity,
                mean,
                ci95,
            }
        })
        .collect()
    };
    expectations.measurements.iter().flat_map(of).collect()
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
        let which = if verdict.which.is_empty() { String::new() } else { format!(" ({})", verdict.which) };
        out += &format!("{mark}  {:<14}  {}{which}: {}\n", verdict.outcome, verdict.say, evidence(verdict));
    }
    for claim in verdicts.chunk_by(|a, b| a.say == b.say && a.line == b.line) {
        let needless = claim.iter().all(|one| one.known.is_some() && one.outcome == Outcome::Reproduced);
        if needless && !claim[0].which.is_empty() {
            out += &format!("      all of it comes out after all: remove `known`: {}\n", claim[0].say);
        }
    }
    let count = |outcome| verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
    let fails = verdicts.iter().filter(|verdict| verdict.fails).count();
    let claims = plural(verdicts.len() as u64, "claim");
    out += &match count(Outcome::NotJudged) {
        0 => format!(
            "{claims}: {} reproduced, {} in direction only, {} not; {fails} without a known reason\n",
            count(Outcome::Reproduced),
            count(Outcome::DirectionOnly),
            count(Outcome::NotReproduced),
        ),
        valued => format!("{claims}: {valued} with a value, not judged after a smoke run; {fails} without\n"),
    };
    out
}

/// One line per number, for a terminal.
pub fn render_measured(measured: &[Measured]) -> String {
    let mut out = String::new();
    let mut said = "";
    for one in measured {
        if one.say != said {
            out += &format!("      {}\n", one.say);
            said = &one.say;
        }
        let mean = one.mean.map_or("-".into(), |mean| digits(mean, 3));
        let interval = in_brackets(one.ci95);
        let note = one.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
        out += &format!("        {}: {mean}{interval}{note}\n", one.which);
    }
    out
}

fn evidence(verdict: &ClaimVerdict) -> String {
    let mut parts = Vec::new();
    if let Some(mean) = verdict.mean {
        let interval = in_brackets(verdict.ci95);
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
        // Of several verdicts on one claim, the others may need it.
        Outcome::Reproduced if !verdict.which.is_empty() => None,
        Outcome::Reproduced => Some("comes out after all: remove `known`".to_string()),
        Outcome::NotJudged => None,
        _ => Some(format!("known: {reason}")),
    }));
    parts.join("; ")
}

fn check_claim(claim: &Claim, summary: &Summary) -> Vec<ClaimVerdict> {
    let each = claim.quantities.each(&summary.cases());
    let verdicts: Vec<ClaimVerdict> = each.into_iter().map(|quantity| check_one(claim, quantity, summary)).collect();
    let Some(take) = claim.take else { return verdicts };
    let without = verdicts.iter().filter(|verdict| verdict.mean.is_none()).count();
    let rank = |verdict: &ClaimVerdict| match (take, verdict.mean) {
        (_, None) => f64::NEG_INFINITY,
        (Take::Max, Some(mean)) => mean,
        (Take::Min, Some(mean)) => -mean,
    };
    let of = verdicts.len();
    let mut extreme: Vec<ClaimVerdict> =
        verdicts.into_iter().max_by(|a, b| rank(a).total_cmp(&rank(b))).into_iter().collect();
    if let Some(one) = extreme.first_mut().filter(|one| without > 0 && one.mean.is_some()) {
        let lack = format!("{without} of {of} comparisons have no value");
        one.note = Some(one.note.take().map_or(lack.clone(), |note| format!("{note}; {lack}")));
    }
    extreme
}

fn check_one(claim: &Claim, quantity: Quantity, summary: &Summary) -> ClaimVerdict {
    let (mean, ci95) = value(&quantity, summary);
    let outcome = match mean.map_or(Outcome::NotReproduced, |mean| judge(claim, mean, ci95)) {
        Outcome::Reproduced if is_stalled(&quantity, summary) => Outcome::DirectionOnly,
        other => other,
    };
    ClaimVerdict {
        say: claim.say.clone(),
        which: claim.quantities.label(&quantity),
        outcome,
        fails: outcome != Outcome::Reproduced && claim.known.is_none(),
        note: note(&quantity, mean, ci95, summary),
        quantity,
        accepted: [claim.low, claim.high].map(|bound| bound.is_finite().then_some(bound)),
        mean,
        ci95,
        known: claim.known.clone(),
        source: claim.source.clone(),
        paper: claim.paper.clone(),
        line: claim.line,
    }
}

fn value(quantity: &Quantity, summary: &Summary) -> (Option<f64>, Option<[f64; 2]>) {
    quantity.estimate(summary).map_or((None, None), |estimate| (estimate.mean, estimate.ci95))
}

/// What the number alone does not say.
fn note(quantity: &Quantity, mean: Option<f64>, ci95: Option<[f64; 2]>, summary: &Summary) -> Option<String> {
    let series: Vec<_> = summary.series.iter().map(|series| (series.case.as_deref(), &*series.series)).collect();
    if let Some(missing) = quantity.missing(&series, None) {
        return Some(missing);
    }
    if mean.is_none() {
        return Some("the study has no value for it".into());
    }
    let mut notes: Vec<String> = ci95.is_none().then(|| "one seed, no interval".into()).into_iter().collect();
    for name in std::iter::once(&quantity.of).chain(&quantity.than) {
        let Some(series) = summary.find_in(quantity.case.as_deref(), name) else { continue };
        if let Some(over) = series.taken_over(&quantity.metric).filter(|over| over.missing() >= MENTIONED) {
            let (share, what) = (digits(over.missing() * 100.0, 2), over.what);
            notes.push(format!("{share} % of the {what} of {name} never finished and count in no average"));
        }
        if !series.deadlocks.is_empty() {
            notes.push(format!("{} of {name} ended in a deadlock", plural(series.deadlocks.len() as u64, "run")));
        }
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Whether the numbers are those of lucky flows, or groups.
fn is_stalled(quantity: &Quantity, summary: &Summary) -> bool {
    let cases = std::iter::once(quantity.case.as_deref()).chain(quantity.than_case.as_deref().map(Some));
    let names = || std::iter::once(&quantity.of).chain(&quantity.than);
    let mut series = cases.flat_map(|case| names().filter_map(move |name| summary.find_in(case, name)));
    series.any(|series| series.taken_over(&quantity.metric).is_some_and(|over| over.missing() > STALLED))
}

/// From which share on unfinished flows are mentioned.
const MENTIONED: f64 = 0.001;

fn judge(claim: &Claim, mean: f64, ci95: Option<[f64; 2]>) -> Outcome {
    let accepted = claim.low..=claim.high;
    let inside = accepted.contains(&mean);
    if !claim.quantities.is_ratio() {
        return if inside { Outcome::Reproduced } else { Outcome::NotReproduced };
    }
    let [low, high] = ci95.unwrap_or([mean, mean]);
    let is_near = |value: f64| (1.0 - NEAR..=1.0 + NEAR).contains(&value);
    // The middle is what the paper says; an open range says "more" or "less".
    let claims_near = is_near((claim.low * claim.high).sqrt());
    let shows = |is_beyond: bool| is_beyond && (!claims_near || is_near(low) && is_near(high));
    let (excludes, direction) = if claim.low >= 1.0 {
        (low > 1.0, shows(low >= 1.0 + VISIBLE))
    } else if claim.high <= 1.0 {
        (high < 1.0, shows(high <= 1.0 - VISIBLE))
    } else {
        // Sameness: the evidence must lie inside, or near.
        (accepted.contains(&low) && accepted.contains(&high), inside && is_near(low) && is_near(high))
    };
    match (inside && excludes, direction) {
        (true, _) => Outcome::Reproduced,
        (false, true) => Outcome::DirectionOnly,
        (false, false) => Outcome::NotReproduced,
    }
}

/// Who claims a ratio as near to 1 as this claims that there is little to win or lose.
const NEAR: f64 = 0.1;

/// How far from 1 a ratio must be to have a direction: ratios are shown with three digits, and "1.00" shows none.
const VISIBLE: f64 = 0.005;
