//! Checks of claims against a summary; the rule is in the parent module's documentation.

use std::fmt;

use selvedge_units::words::plural;
use serde::Serialize;

use super::parse::{Claim, Expectations, Measurement, Near, Take};
use super::quantity::Quantity;
use crate::number::{bounded, digits, in_brackets};
use crate::{Bound, Estimate, Summary};

/// The outcome of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The study shows what is claimed.
    Reproduced,
    /// The study shows what is claimed, and no other result was possible; see [`Claim::by_construction`].
    ByConstruction,
    /// The claimed side is significantly better, by a factor outside the claimed range.
    DirectionOnly,
    /// The study does not show what is claimed, or lacks the numbers.
    NotReproduced,
    /// A value from runs too short to judge a claim.
    NotJudged,
}

impl Outcome {
    /// Returns whether the study shows what is claimed.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Reproduced | Self::ByConstruction)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::ByConstruction => "by construction",
            Self::DirectionOnly => "direction only",
            Self::NotReproduced => "not reproduced",
            Self::NotJudged => "not judged",
        })
    }
}

/// A claim and the study's result for it; serialises for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClaimVerdict {
    /// The claim in a sentence.
    pub say: String,
    /// Label of the judged quantity if the claim has several; empty otherwise.
    pub which: String,
    /// Outcome of the claim.
    pub outcome: Outcome,
    /// Whether the claim fails the check: not fully reproduced, and not known to fail.
    pub fails: bool,
    /// The judged quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// The accepted range; an open end is absent.
    pub accepted: [Option<f64>; 2],
    /// Mean in the study.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean.
    pub ci95: Option<[f64; 2]>,
    /// The bound that the mean is of the claimed quantity, if runs ended before that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// An explanation of the result that the numbers alone do not give.
    pub note: Option<String>,
    /// The documented reason for a failure.
    pub known: Option<String>,
    /// The reason why the claim holds whatever the simulator does, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_construction: Option<String>,
    /// Place of the claim in the paper.
    pub source: Option<String>,
    /// The range as the paper prints it.
    pub paper: Option<String>,
    /// Line of the claim in its file.
    pub line: usize,
}

/// One number of a measurement; serialises for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// The measurement in a sentence.
    pub say: String,
    /// Label of the quantity if the measurement has several; empty otherwise.
    pub which: String,
    /// The measured quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Mean in the study.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean.
    pub ci95: Option<[f64; 2]>,
    /// The bound that the mean is, if runs ended before the quantity was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// A remark on the number.
    pub note: Option<String>,
}

/// Judges each claim against the study.
pub fn check(expectations: &Expectations, summary: &Summary) -> Vec<ClaimVerdict> {
    expectations.claims.iter().flat_map(|claim| check_claim(claim, summary)).collect()
}

/// Returns the numbers that are shown without a claim.
pub fn measure(expectations: &Expectations, summary: &Summary) -> Vec<Measured> {
    let of = |measurement: &Measurement| -> Vec<Measured> {
        let each = measurement.quantities.each(&summary.cases()).into_iter();
        each.map(|quantity| {
            let estimate = quantity.estimate(summary).unwrap_or_default();
            Measured {
                say: measurement.say.clone(),
                which: measurement.quantities.label(&quantity),
                note: note(&quantity, &estimate, summary),
                quantity,
                mean: estimate.mean,
                ci95: estimate.ci95,
                bound: estimate.bound,
            }
        })
        .collect()
    };
    expectations.measurements.iter().flat_map(of).collect()
}

/// Checks only that each claim finds its numbers, for smoke runs, which are too short to judge. A claim fails when the
/// study has no value for it, whether or not it is known to fail.
pub fn check_smoke(expectations: &Expectations, summary: &Summary) -> Vec<ClaimVerdict> {
    let unjudged = |verdict: ClaimVerdict| {
        // In runs this short anything may be unfinished.
        let fails = verdict.mean.is_none() && verdict.bound.is_none();
        let outcome = if fails { Outcome::NotReproduced } else { Outcome::NotJudged };
        ClaimVerdict { outcome, fails, ..verdict }
    };
    check(expectations, summary).into_iter().map(unjudged).collect()
}

/// Returns whether more seeds may decide a claim that the present seeds leave undecided.
///
/// A claim is decided when its 99.9 % interval lies inside the accepted range, or outside. This interval is used only
/// before the last seeds have run; the results that are shown and judged have 95 % intervals. Looking early does not
/// favour a claim, because the evidence required against it is as strong as that for it. Because 99.9 % are required,
/// even eight such looks let less than 0.8 % more of the intervals miss than the 5 % that do (Haybittle 1971, Peto et
/// al. 1976). Where the limit is reached, the interval is that of a fixed number of seeds.
pub fn needs_seeds(expectations: &Expectations, summary: &Summary) -> bool {
    let is_open = |claim: &Claim| {
        let mut found = estimates(claim, summary);
        match claim.take {
            Some(take) => extreme(&mut found, take).is_some_and(|(_, estimate)| seeds_can_tell(claim, &estimate)),
            None => found.iter().any(|(_, estimate)| seeds_can_tell(claim, estimate)),
        }
    };
    expectations.claims.iter().any(is_open)
}

/// Returns whether an estimate leaves a claim undecided, and more seeds might decide it.
fn seeds_can_tell(claim: &Claim, estimate: &Estimate) -> bool {
    let is_by_construction = claim.by_construction.as_ref().is_some_and(|reason| reason.within.is_none());
    if estimate.mean.is_none() || is_by_construction || is_open(claim, estimate) {
        return false;
    }
    let interval = estimate.wide_interval(claim.quantities.is_ratio());
    interval.is_none_or(|[low, high]| {
        let is_inside = claim.low <= low && high <= claim.high;
        let is_outside = high < claim.low || low > claim.high;
        !is_inside && !is_outside
    })
}

/// Renders one line per claim with its evidence, for a terminal; the last line counts outcomes.
pub fn render_claims(verdicts: &[ClaimVerdict]) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let mark = match (verdict.outcome, verdict.fails) {
            (Outcome::Reproduced | Outcome::ByConstruction, _) => "ok  ",
            (Outcome::NotJudged, _) => "runs",
            (_, false) => "know",
            (_, true) => "FAIL",
        };
        let which = if verdict.which.is_empty() { String::new() } else { format!(" ({})", verdict.which) };
        out += &format!("{mark}  {:<14}  {}{which}: {}\n", verdict.outcome, verdict.say, evidence(verdict));
    }
    for claim in verdicts.chunk_by(|a, b| a.say == b.say && a.line == b.line) {
        let needless = claim.iter().all(|one| one.known.is_some() && one.outcome.holds());
        if needless && !claim[0].which.is_empty() {
            out += &format!("      all of it comes out after all: remove `known`: {}\n", claim[0].say);
        }
    }
    let count = |outcome| verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
    let fails = verdicts.iter().filter(|verdict| verdict.fails).count();
    let claims = plural(verdicts.len() as u64, "claim");
    out += &match count(Outcome::NotJudged) {
        0 => format!(
            "{claims}: {} reproduced, {}{} in direction only, {} not; {fails} without a known reason\n",
            count(Outcome::Reproduced),
            match count(Outcome::ByConstruction) {
                0 => String::new(),
                some => format!("{some} by construction, "),
            },
            count(Outcome::DirectionOnly),
            count(Outcome::NotReproduced),
        ),
        valued => format!("{claims}: {valued} with a value, not judged after a smoke run; {fails} without\n"),
    };
    out
}

/// Renders one line per number, for a terminal.
pub fn render_measured(measured: &[Measured]) -> String {
    let mut out = String::new();
    let mut said = "";
    for one in measured {
        if one.say != said {
            out += &format!("      {}\n", one.say);
            said = &one.say;
        }
        let mean = bounded(one.mean, one.bound, 3);
        let interval = in_brackets(one.ci95);
        let note = one.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
        out += &format!("        {}: {mean}{interval}{note}\n", one.which);
    }
    out
}

fn evidence(verdict: &ClaimVerdict) -> String {
    let mut parts = Vec::new();
    if verdict.mean.is_some() || verdict.bound.is_some() {
        let interval = in_brackets(verdict.ci95);
        let accepted = match verdict.accepted {
            [Some(low), Some(high)] => format!("{} to {}", digits(low, 3), digits(high, 3)),
            [Some(low), None] => format!("at least {}", digits(low, 3)),
            [None, Some(high)] => format!("at most {}", digits(high, 3)),
            [None, None] => "anything".into(),
        };
        parts.push(format!("found {}{interval}, accepted {accepted}", bounded(verdict.mean, verdict.bound, 3)));
    }
    parts.extend(verdict.paper.iter().map(|paper| format!("paper {paper}")));
    parts.extend(verdict.note.clone());
    parts.extend(verdict.by_construction.iter().map(|reason| format!("by construction: {reason}")));
    parts.extend(verdict.known.iter().filter_map(|reason| match verdict.outcome {
        // Other verdicts on the same claim may need `known`.
        outcome if outcome.holds() && !verdict.which.is_empty() => None,
        outcome if outcome.holds() => Some("comes out after all: remove `known`".to_string()),
        Outcome::NotJudged => None,
        _ => Some(format!("known: {reason}")),
    }));
    parts.join("; ")
}

fn check_claim(claim: &Claim, summary: &Summary) -> Vec<ClaimVerdict> {
    let mut found = estimates(claim, summary);
    let Some(take) = claim.take else {
        return found.into_iter().map(|(quantity, estimate)| check_one(claim, quantity, estimate, summary)).collect();
    };
    let of = found.len();
    let without = found.iter().filter(|(_, estimate)| estimate.mean.is_none() && estimate.bound.is_none()).count();
    let Some((quantity, estimate)) = extreme(&mut found, take) else { return Vec::new() };
    let mut one = check_one(claim, quantity, estimate, summary);
    if without > 0 && one.mean.is_some() {
        let lack = format!("{without} of {of} comparisons have no value");
        one.note = Some(one.note.take().map_or(lack.clone(), |note| format!("{note}; {lack}")));
    }
    vec![one]
}

/// Returns the quantities of a claim with their estimates.
fn estimates(claim: &Claim, summary: &Summary) -> Vec<(Quantity, Estimate)> {
    let each = claim.quantities.each(&summary.cases()).into_iter();
    each.map(|quantity| (quantity.clone(), quantity.estimate(summary).unwrap_or_default())).collect()
}

/// Returns the largest or smallest of several estimates. The result is a bound if its estimate is one, or if another
/// may lie beyond it.
fn extreme(found: &mut Vec<(Quantity, Estimate)>, take: Take) -> Option<(Quantity, Estimate)> {
    let rank = |estimate: &Estimate| match (take, estimate.mean) {
        (_, None) => f64::NEG_INFINITY,
        (Take::Max, Some(mean)) => mean,
        (Take::Min, Some(mean)) => -mean,
    };
    let at = (0..found.len()).max_by(|&a, &b| rank(&found[a].1).total_cmp(&rank(&found[b].1)))?;
    let (beyond, within) = match take {
        Take::Max => (Bound::AtLeast, Bound::AtMost),
        Take::Min => (Bound::AtMost, Bound::AtLeast),
    };
    let may_be_beyond = found.iter().any(|(_, one)| one.bound.is_some_and(|bound| bound != within));
    let (quantity, estimate) = found.swap_remove(at);
    let bound = Bound::joined(estimate.bound, may_be_beyond.then_some(beyond));
    Some((quantity, estimate.bounded(bound)))
}

fn check_one(claim: &Claim, quantity: Quantity, estimate: Estimate, summary: &Summary) -> ClaimVerdict {
    let by_construction = claim.by_construction.as_ref().filter(|reason| is_near_one(&estimate, reason.within));
    let outcome = match judge(claim, &estimate) {
        Outcome::Reproduced if by_construction.is_some() => Outcome::ByConstruction,
        outcome => outcome,
    };
    let mut note = note(&quantity, &estimate, summary);
    let open = match outcome {
        Outcome::Reproduced | Outcome::ByConstruction => None,
        _ if is_open(claim, &estimate) => Some(open_side(&estimate)),
        _ if is_straddled(claim, &estimate) => {
            Some("undecided: the interval reaches beyond what is accepted".to_owned())
        }
        _ => None,
    };
    if let Some(open) = open {
        note = Some(note.map_or(open.clone(), |note| format!("{open}; {note}")));
    }
    ClaimVerdict {
        say: claim.say.clone(),
        which: claim.quantities.label(&quantity),
        outcome,
        fails: !outcome.holds() && claim.known.is_none(),
        note,
        quantity,
        accepted: [claim.low, claim.high].map(|bound| bound.is_finite().then_some(bound)),
        mean: estimate.mean,
        ci95: estimate.ci95,
        bound: estimate.bound,
        known: claim.known.clone(),
        by_construction: by_construction.filter(|_| outcome.holds()).map(|reason| reason.because.clone()),
        source: claim.source.clone(),
        paper: claim.paper.clone(),
        line: claim.line,
    }
}

/// Returns a note with facts that the number alone does not give.
fn note(quantity: &Quantity, estimate: &Estimate, summary: &Summary) -> Option<String> {
    let series: Vec<_> = summary.series.iter().map(|series| (series.case.as_deref(), &*series.series)).collect();
    if let Some(missing) = quantity.missing(&series, None) {
        return Some(missing);
    }
    if estimate.mean.is_none() && estimate.bound.is_none() {
        return Some("the study has no value for it".into());
    }
    let is_single = estimate.ci95.is_none() && estimate.mean.is_some();
    let mut notes: Vec<String> = is_single.then(|| "one seed, no interval".into()).into_iter().collect();
    for (name, series) in quantity.series(summary) {
        let is_bound = series.metric(&quantity.metric).is_some_and(|own| own.bound.is_some());
        if let Some(over) = series.taken_over(&quantity.metric).filter(|over| is_bound || over.missing() >= MENTIONED) {
            let (share, what) = (digits(over.missing() * 100.0, 2), over.what);
            let how = if is_bound { " and count with their age" } else { "" };
            notes.push(format!("{share} % of the {what} of {name} had not finished when runs ended{how}"));
        }
        if !series.deadlocks.is_empty() {
            notes.push(format!("{} of {name} ended in a deadlock", plural(series.deadlocks.len() as u64, "run")));
        }
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Returns whether the bound that an estimate is leaves the claim undecided, for any number of seeds.
fn is_open(claim: &Claim, estimate: &Estimate) -> bool {
    let Some(bound) = estimate.bound else { return false };
    let [low, high] = match estimate.mean {
        Some(mean) => Bound::opened(Some(bound), [mean, mean]),
        None => [0.0, f64::INFINITY],
    };
    low <= claim.high && high >= claim.low && !(claim.low <= low && high <= claim.high)
}

/// Returns the known side of a number that leaves its claim undecided.
fn open_side(estimate: &Estimate) -> String {
    match (estimate.bound, estimate.mean) {
        (Some(Bound::AtLeast), Some(mean)) => format!("undecided: it is {} or more", digits(mean, 3)),
        (Some(Bound::AtMost), Some(mean)) => format!("undecided: it is {} or less", digits(mean, 3)),
        _ => "undecided: nothing bounds it, as both of what is compared take longer than is known".into(),
    }
}

/// The share of unfinished flows from which on they are mentioned.
const MENTIONED: f64 = 0.001;

fn judge(claim: &Claim, estimate: &Estimate) -> Outcome {
    let Some(mean) = estimate.mean else { return Outcome::NotReproduced };
    let accepted = claim.low..=claim.high;
    // A bound is accepted only if every possible value is.
    let is_inside = |[low, high]: [f64; 2]| accepted.contains(&low) && accepted.contains(&high);
    let [low, high] = estimate.known_interval().unwrap_or(Bound::opened(estimate.bound, [mean, mean]));
    // Values are judged by their interval rather than their mean; so are ratios whose value a paper prints.
    let inside = match claim.near {
        Some(near) => is_inside([low, high]) || meets(near, [low, high]),
        None if claim.quantities.is_ratio() => is_inside(Bound::opened(estimate.bound, [mean, mean])),
        None => is_inside([low, high]),
    };
    if !claim.quantities.is_ratio() {
        return if inside { Outcome::Reproduced } else { Outcome::NotReproduced };
    }
    let is_near = |value: f64| (1.0 - NEAR..=1.0 + NEAR).contains(&value);
    // The middle of the range is the paper's value; an open range says "more" or "less".
    let claims_near = is_near((claim.low * claim.high).sqrt());
    let shows = |is_beyond: bool| is_beyond && (!claims_near || is_near(low) && is_near(high));
    let (excludes, direction) = if claim.low >= 1.0 {
        (low > 1.0, shows(low >= 1.0 + VISIBLE))
    } else if claim.high <= 1.0 {
        (high < 1.0, shows(high <= 1.0 - VISIBLE))
    } else {
        // A range around 1 claims sameness: the evidence must lie inside the range, or near 1.
        (is_inside([low, high]), inside && is_near(low) && is_near(high))
    };
    match (inside && excludes, direction) {
        (true, _) => Outcome::Reproduced,
        (false, true) => Outcome::DirectionOnly,
        (false, false) => Outcome::NotReproduced,
    }
}

/// Returns whether an interval meets a value as it is printed, and is narrow enough to be evidence: its half-width is
/// at most the tolerance of the claim.
fn meets(near: Near, [low, high]: [f64; 2]) -> bool {
    low <= near.high && high >= near.low && (high - low) / 2.0 <= near.reach
}

/// Returns whether a value's interval contains an end of the accepted range.
fn is_straddled(claim: &Claim, estimate: &Estimate) -> bool {
    let is_by_interval = !claim.quantities.is_ratio() || claim.near.is_some();
    let interval = estimate.known_interval().filter(|_| is_by_interval && estimate.mean.is_some());
    interval
        .is_some_and(|[low, high]| low <= claim.high && high >= claim.low && !(claim.low <= low && high <= claim.high))
}

/// Returns whether the whole interval of a ratio is within this share of 1; always true for `None`.
fn is_near_one(estimate: &Estimate, within: Option<f64>) -> bool {
    let Some(within) = within else { return true };
    let interval = estimate.known_interval().or(estimate.mean.map(|mean| Bound::opened(estimate.bound, [mean, mean])));
    interval.is_some_and(|[low, high]| low >= 1.0 / (1.0 + within) && high <= 1.0 + within)
}

/// Largest distance from 1 at which a claimed ratio means that the two sides hardly differ.
const NEAR: f64 = 0.1;

/// Smallest distance from 1 at which a ratio has a direction: with the three digits shown, "1.00" has none.
const VISIBLE: f64 = 0.005;
