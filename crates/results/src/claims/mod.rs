//! The tables of claims: every claim of a paper beside its measured value, as an HTML page and as Markdown with a
//! section per paper.
//!
//! A claim that is not fully reproduced is followed by its explanation: the reason that its `known` gives, and how far
//! the measurements of other figures move the same quantity (`why.rs`).

mod document;
mod grid;
mod html;
mod markdown;
mod paper;
mod why;

pub use document::{is_claims_markdown, render_claims_markdown};
pub use html::render_claims_html;

use serde::Serialize;

use crate::number::{bounded, digits, in_brackets};
use crate::{Bound, ClaimVerdict, Measured, NotRun, Outcome};

/// One figure, checked; serialises for machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckedFigure {
    /// The figure's folder.
    pub figure: String,
    /// Title of the figure's scenario.
    pub title: String,
    /// Whether the runs were too short to judge claims.
    pub smoke: bool,
    /// Number of seeds of each series.
    pub seeds: usize,
    /// Number of runs: series x cases x seeds.
    pub runs: usize,
    /// Number of runs that another figure had requested before.
    pub shared: usize,
    /// Processor time of the figure's runs, seconds.
    pub cpu_s: f64,
    /// Verdicts on the figure's claims.
    pub claims: Vec<ClaimVerdict>,
    /// The figure's measurements.
    pub measured: Vec<Measured>,
    /// Statements of the paper that no run can show.
    pub not_run: Vec<NotRun>,
}

impl CheckedFigure {
    /// Returns the name of the figure's folder, which identifies the figure in tables.
    fn name(&self) -> &str {
        self.figure.trim_end_matches('/').rsplit('/').next().unwrap_or(&self.figure)
    }
    fn count(&self, outcome: Outcome) -> usize {
        self.claims.iter().filter(|claim| claim.outcome == outcome).count()
    }
}

/// All figures, and how they were run.
pub struct ClaimsInput<'a> {
    /// The figures, in the order of the tables.
    pub figures: &'a [CheckedFigure],
    /// Wall time of all figures together, seconds.
    pub wall_s: f64,
    /// Number of threads used.
    pub threads: usize,
    /// Version of the program.
    pub version: &'a str,
    /// The command that wrote the tables.
    pub command: &'a str,
}

/// Returns a value with its interval: "1.45 (1.36–1.54)", "≥ 1.45 (1.36–1.54)", "undecided"; "-" without a value.
fn ours(mean: Option<f64>, ci95: Option<[f64; 2]>, bound: Option<Bound>) -> String {
    bounded(mean, bound, 3) + &in_brackets(ci95)
}

/// Returns the range as the paper prints it, or else the accepted range.
fn range(claim: &ClaimVerdict) -> String {
    claim.paper.clone().unwrap_or_else(|| match claim.accepted {
        [Some(low), Some(high)] => format!("{}–{}", digits(low, 3), digits(high, 3)),
        [Some(low), None] => format!("≥ {}", digits(low, 3)),
        [None, Some(high)] => format!("≤ {}", digits(high, 3)),
        [None, None] => String::new(),
    })
}

/// Returns the claim's sentence, followed by the quantity if the claim has several.
fn sentence(claim: &ClaimVerdict) -> String {
    if claim.which.is_empty() { claim.say.clone() } else { format!("{} ({})", claim.say, claim.which) }
}

const RULE: &str = "Ratios are geometric means over seeds, paired by seed, with 95 % intervals. Reproduced: in the \
                    paper's range, and the interval excludes 1. Direction only: by another factor, but the \
                    whole interval lies on the claimed side of 1, by 0.5 % at least (what is shown as 1.00 has no \
                    direction); where 10 % or less around 1 are claimed (\"99 % of the bandwidth\"), the whole \
                    interval must be within 10 % of 1, too. Values are judged by their interval: all of it is in the range, or it meets \
                    the paper's value as printed and is no wider than what is accepted. \"≥\" and \"≤\": flows that had not \
                    finished when runs ended count with their age, so that the number is a bound, which must hold for \
                    all that it may be. By construction: nothing else could have come out (accounting that compares a \
                    constant with itself, bounds of what hardly differs). Everything else is not reproduced. Seeds are \
                    added, up to a limit of the figure, until the 99.9 % intervals of all its claims lie in the accepted \
                    range or outside it, whichever it is; what is shown are 95 % intervals. Nothing is tuned to \
                    pass.";
