//! Parser of `expect.toml`.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::footprint::{FootprintNic, Footprints, is_about_state};
use super::quantity::{Cases, Quantities};
use crate::metric::{METRICS, Metric};

/// The claims of one file.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectations {
    /// Claims, in the file's order.
    pub claims: Vec<Claim>,
    /// Measurements shown without a claim, in the file's order.
    pub measurements: Vec<Measurement>,
    /// Statements of the paper that no run can show, in the file's order.
    pub not_run: Vec<NotRun>,
    /// Whether the series also run on a real network: the cases are then "simulated" and "real".
    pub real: bool,
    /// Largest number of seeds to run where fewer leave claims undecided; `None`: the number in the scenario.
    pub max_seeds: Option<usize>,
    /// The NIC whose state claims are about; `None` without such claims.
    pub footprint: Option<FootprintNic>,
    file: String,
    text: String,
}

/// One claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The claim in a sentence.
    pub say: String,
    /// The quantities that the claim is about.
    pub quantities: Quantities,
    /// The one of several quantities that counts; `None`: each has its own verdict.
    pub take: Option<Take>,
    /// Smallest value that counts as reproduced.
    pub low: f64,
    /// Largest value that counts as reproduced.
    pub high: f64,
    /// Place of the claim in the paper.
    pub source: Option<String>,
    /// The range as the paper prints it.
    pub paper: Option<String>,
    /// The paper's value, where the range is one around a value.
    pub near: Option<Near>,
    /// The known reason why the claim is not reproduced; a claim with such a reason does not fail the check.
    pub known: Option<String>,
    /// The reason why the claim holds whatever the simulator does, if it does.
    pub by_construction: Option<ByConstruction>,
    /// Line of the claim in the file, from 1.
    pub line: usize,
}

/// A value that a paper prints.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Near {
    /// Smallest value that rounds to the printed one.
    pub low: f64,
    /// Largest value that rounds to the printed one.
    pub high: f64,
    /// Largest distance from the printed value that counts as reproduced.
    pub reach: f64,
}

/// The statement that a claim holds by construction: it compares a constant with itself, or bounds quantities that
/// hardly differ.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(from = "WrittenConstruction")]
pub struct ByConstruction {
    /// The reason.
    pub because: String,
    /// Largest distance of the whole interval from 1 at which the statement holds, as a share; `None`: it always holds.
    pub within: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a reason in quotes, or { within = 0.05, because = \"...\" }")]
enum WrittenConstruction {
    Always(String),
    Within(Within),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Within {
    within: f64,
    because: String,
}

impl From<WrittenConstruction> for ByConstruction {
    fn from(written: WrittenConstruction) -> Self {
        match written {
            WrittenConstruction::Always(because) => Self { because, within: None },
            WrittenConstruction::Within(Within { within, because }) => Self { because, within: Some(within) },
        }
    }
}

/// The one of several quantities that a claim compares with its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The largest: "up to".
    Max,
    /// The smallest: "at least".
    Min,
}

/// Numbers to show beside the claims, without a range.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// The measurement in a sentence.
    pub say: String,
    /// The quantities to show.
    pub quantities: Quantities,
    /// Line of the measurement in the file, from 1.
    pub line: usize,
}

/// A statement of a paper that no run can show; serialises for machines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotRun {
    /// The statement in a sentence.
    pub say: String,
    /// Place of the statement in the paper.
    pub source: String,
    /// The number as the paper prints it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// The reason why no run can show it.
    pub because: String,
}

/// The reason why a file is not a list of claims, or of programs to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectError {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.what)
    }
}

impl std::error::Error for ExpectError {}

impl Expectations {
    /// Parses the claims in `text`, the content of `file`; the name is used in messages.
    ///
    /// # Errors
    /// Returns an error with file, line and column when the text is not TOML, a key is unknown or missing, a metric
    /// does not exist, or a range is empty.
    pub fn parse(text: &str, file: &str) -> Result<Self, ExpectError> {
        Self::parse_about(text, file, About::Simulation { counts_state: false })
    }

    /// Parses claims about what real programs print: any metric may exist.
    ///
    /// # Errors
    /// Returns an error as [`Expectations::parse`] does, and if there are keys about simulations: `real`, `max-seeds`,
    /// `[footprint]`.
    pub fn parse_of_programs(text: &str, file: &str) -> Result<Self, ExpectError> {
        let read = Self::parse_about(text, file, About::Programs)?;
        let misplaced =
            [("real", read.real), ("max-seeds", read.max_seeds.is_some()), ("footprint", read.footprint.is_some())];
        if let Some((key, _)) = misplaced.iter().find(|(_, is_there)| *is_there) {
            let what = format!("`{key}` is about simulations, and this folder has programs; remove it");
            return Err(ExpectError { file: file.into(), line: 1, column: 1, what });
        }
        Ok(read)
    }

    fn parse_about(text: &str, file: &str, about: About) -> Result<Self, ExpectError> {
        let place = |span: Option<Range<usize>>| position(text, span.map_or(0, |span| span.start));
        let fail = |at: Option<Range<usize>>, what: String| {
            let (line, column) = place(at);
            ExpectError { file: file.into(), line, column, what }
        };
        let File { real, max_seeds, footprint, expect, measure, not_run } =
            toml::from_str(text).map_err(|error| fail(error.span(), error.message().to_string()))?;
        let max_seeds = match max_seeds {
            Some(most) if !SEEDS.contains(most.get_ref()) => {
                let what = format!("max-seeds is from 3 to 1000, found {}", most.get_ref());
                return Err(fail(Some(most.span()), what));
            }
            most => most.map(|most| *most.get_ref() as usize),
        };
        let about = match about {
            About::Simulation { .. } => About::Simulation { counts_state: footprint.is_some() },
            About::Programs => About::Programs,
        };
        let misplaced = |(span, what)| fail(Some(span), what);
        let mut claims = Vec::new();
        for table in expect {
            let (line, _) = position(text, table.span().start);
            claims.push(claim(table.into_inner(), line, about).map_err(misplaced)?);
        }
        let mut measurements = Vec::new();
        for table in measure {
            let (line, _) = position(text, table.span().start);
            let WrittenMeasure { say, metric, of, than, case, than_case } = table.into_inner();
            let quantities = quantities(metric, of, than, case, than_case, about).map_err(misplaced)?;
            measurements.push(Measurement { say, quantities, line });
        }
        if claims.is_empty() && measurements.is_empty() && not_run.is_empty() {
            return Err(fail(None, "no claims: expected at least one [[expect]]".into()));
        }
        Ok(Self { claims, measurements, not_run, real, max_seeds, footprint, file: file.into(), text: text.into() })
    }

    /// Sets aside claims and measurements about this case; returns the claims in words. Of claims about several cases,
    /// the other cases stay.
    pub fn set_aside(&mut self, case: &str) -> Vec<String> {
        let of_claims = self.claims.iter_mut().map(|claim| &mut claim.quantities);
        let of_measurements = self.measurements.iter_mut().map(|measurement| &mut measurement.quantities);
        of_claims.chain(of_measurements).for_each(|quantities| quantities.leave_out(case));
        let (aside, kept) =
            std::mem::take(&mut self.claims).into_iter().partition(|claim| claim.quantities.names(case));
        self.claims = kept;
        self.measurements.retain(|measurement| !measurement.quantities.names(case));
        Vec::into_iter(aside).map(|claim: Claim| claim.say).collect()
    }

    /// Checks that a study of these series (case and name) has everything that the claims are about.
    ///
    /// # Errors
    /// Returns an error with file and line about the first missing item.
    pub fn check_names(&self, series: &[(Option<&str>, &str)], state: &Footprints) -> Result<(), ExpectError> {
        let mut cases: Vec<Option<&str>> = series.iter().map(|&(case, _)| case).collect();
        cases.dedup();
        let claims = self.claims.iter().map(|claim| &claim.quantities);
        for quantities in claims.chain(self.measurements.iter().map(|measurement| &measurement.quantities)) {
            if let Some(what) = quantities.each(&cases).iter().find_map(|one| one.missing(series, Some(state))) {
                let (line, column) = position(&self.text, quantities.place);
                return Err(ExpectError { file: self.file.clone(), line, column, what });
            }
        }
        Ok(())
    }
}

/// Accepted values of `max-seeds`.
const SEEDS: std::ops::RangeInclusive<u64> = 3..=1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    real: bool,
    max_seeds: Option<Spanned<u64>>,
    footprint: Option<FootprintNic>,
    #[serde(default)]
    expect: Vec<Spanned<Written>>,
    #[serde(default)]
    measure: Vec<Spanned<WrittenMeasure>>,
    #[serde(default)]
    not_run: Vec<NotRun>,
}

/// A claim as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    say: String,
    metric: Spanned<OneOrMore>,
    of: Spanned<OneOrMore>,
    than: Option<Spanned<OneOrMore>>,
    case: Option<Spanned<OneOrMore>>,
    than_case: Option<Spanned<String>>,
    take: Option<Take>,
    ratio: Option<Spanned<Bounds>>,
    value: Option<Spanned<Bounds>>,
    source: Option<String>,
    paper: Option<String>,
    known: Option<String>,
    by_construction: Option<Spanned<ByConstruction>>,
}

/// A measurement as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenMeasure {
    say: String,
    metric: Spanned<OneOrMore>,
    of: Spanned<OneOrMore>,
    than: Option<Spanned<OneOrMore>>,
    case: Option<Spanned<OneOrMore>>,
    than_case: Option<Spanned<String>>,
}

/// One name, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a name in quotes, or a list of them")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::More(names) => names,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bounds {
    at_most: Option<Number>,
    at_least: Option<Number>,
    between: Option<Vec<Number>>,
    near: Option<Number>,
    tolerance: Option<Number>,
}

/// A number as written in the file: 1.5, 2, or "1/3.7".
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "NumberText")]
struct Number {
    value: f64,
    /// Half of the last written digit; zero for fractions.
    half_digit: f64,
}

impl Number {
    fn as_printed(self, reach: f64) -> Near {
        Near { low: self.value - self.half_digit, high: self.value + self.half_digit, reach }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a fraction in quotes as in \"1/3.7\"")]
enum NumberText {
    Whole(i64),
    Real(f64),
    Text(String),
}

impl TryFrom<NumberText> for Number {
    type Error = String;

    fn try_from(written: NumberText) -> Result<Self, String> {
        let value = match &written {
            NumberText::Whole(value) => Some(*value as f64),
            NumberText::Real(value) => Some(*value),
            NumberText::Text(text) => text.split_once('/').and_then(|(above, below)| {
                let part = |text: &str| text.trim().parse::<f64>().ok();
                Some(part(above)? / part(below)?)
            }),
        };
        let found = match &written {
            NumberText::Text(text) => format!("\"{text}\""),
            NumberText::Whole(value) => value.to_string(),
            NumberText::Real(value) => value.to_string(),
        };
        value
            .filter(|value| value.is_finite())
            .map(|value| Self { value, half_digit: half_digit(&written, value) })
            .ok_or_else(|| format!("{found} is not a number: expected one as in 0.27, or a fraction as in \"1/3.7\""))
    }
}

/// Returns half of the last digit of a number written in full, such as "0.085"; zero for fractions.
fn half_digit(written: &NumberText, value: f64) -> f64 {
    match written {
        NumberText::Text(_) => 0.0,
        NumberText::Whole(_) | NumberText::Real(_) => {
            let decimals = value.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
            0.5 * 10_f64.powi(-(decimals as i32))
        }
    }
}

type Misplaced = (Range<usize>, String);

/// Kinds of figures that claims are about.
#[derive(Clone, Copy)]
enum About {
    Simulation {
        /// Whether state is counted, too.
        counts_state: bool,
    },
    Programs,
}

fn claim(written: Written, line: usize, about: About) -> Result<Claim, Misplaced> {
    let of = written.of.span();
    let Written { metric, than, case, than_case, .. } = written;
    let quantities = quantities(metric, written.of, than, case, than_case, about)?;
    let bounds = match (written.ratio, written.value, quantities.is_ratio()) {
        (Some(ratio), None, true) => ratio,
        (None, Some(value), false) => value,
        (Some(ratio), None, false) => {
            let what = "a ratio needs what it is compared with: add than = \"...\", or than-case";
            return Err((ratio.span(), what.into()));
        }
        (None, Some(value), true) => {
            let what = "`than` belongs to a ratio, and so does `than-case`; a value stands alone";
            return Err((value.span(), what.into()));
        }
        (Some(_), Some(value), _) => return Err((value.span(), "either `ratio` or `value`, not both".into())),
        (None, None, _) => {
            let what = "nothing is claimed: add ratio = { at-most = 1.0 } or value = { at-least = 0.08 }";
            return Err((of, what.into()));
        }
    };
    let (low, high) = range(&bounds)?;
    let near = bounds.get_ref().near.map(|near| near.as_printed((high - low) / 2.0));
    let by_construction = match written.by_construction {
        None => None,
        Some(reason) => {
            let place = reason.span();
            let reason = reason.into_inner();
            if reason.because.trim().is_empty() {
                return Err((place, "give the reason why it cannot fail".into()));
            }
            if reason.within.is_some_and(|within| !(within > 0.0 && within < 1.0)) {
                return Err((place, "`within` is how near to 1 a ratio is, as in 0.05: above 0, below 1".into()));
            }
            if reason.within.is_some() && !quantities.is_ratio() {
                return Err((place, "`within` is how near to 1 a ratio is; a value has none".into()));
            }
            Some(reason)
        }
    };
    Ok(Claim {
        say: written.say,
        quantities,
        take: written.take,
        low,
        high,
        near,
        source: written.source,
        paper: written.paper,
        known: written.known,
        by_construction,
        line,
    })
}

fn quantities(
    metric: Spanned<OneOrMore>,
    of: Spanned<OneOrMore>,
    than: Option<Spanned<OneOrMore>>,
    case: Option<Spanned<OneOrMore>>,
    than_case: Option<Spanned<String>>,
    about: About,
) -> Result<Quantities, Misplaced> {
    let at = metric.span();
    let metrics = metric.into_inner().list();
    metrics.iter().try_for_each(|name| check_metric(name, &at, about))?;
    let at = of.span();
    let of = of.into_inner().list();
    if metrics.is_empty() || of.is_empty() {
        return Err((at, "nothing is named: give at least one metric and one series".into()));
    }
    let place = at.start;
    let than = match than {
        None => vec![None; of.len()],
        Some(than) => {
            let at = than.span();
            let all = match than.into_inner().list() {
                one if one.len() == 1 => vec![Some(one[0].clone()); of.len()],
                all if all.len() == of.len() => all.into_iter().map(Some).collect(),
                all => {
                    let what =
                        format!("{} series for {} of `of`: give one for each, or one for all", all.len(), of.len());
                    return Err((at, what));
                }
            };
            if let Some((same, _)) = of.iter().zip(&all).find(|(of, than)| than.as_ref() == Some(*of)) {
                return Err((at, format!("\"{same}\" is compared with itself: name another series in `of` or `than`")));
            }
            all
        }
    };
    let cases = match case.map(Spanned::into_inner) {
        None => Cases::None,
        Some(OneOrMore::One(all)) if all == "*" => Cases::All,
        Some(cases) => Cases::These(cases.list()),
    };
    let than_case = than_case.map(Spanned::into_inner);
    Ok(Quantities { metrics, pairs: of.into_iter().zip(than).collect(), cases, than_case, place })
}

fn check_metric(name: &str, at: &Range<usize>, about: About) -> Result<(), Misplaced> {
    let About::Simulation { counts_state } = about else {
        let what = format!("\"{name}\" is no metric of a program: expected figure and field, as in \"incast.p99_us\"");
        return if name.contains('.') { Ok(()) } else { Err((at.clone(), what)) };
    };
    // The names of metrics about state depend on the series.
    if is_about_state(name) {
        let what = format!("\"{name}\" counts state: say on what, as in [footprint] queue-pairs = 2000");
        return if counts_state { Ok(()) } else { Err((at.clone(), what)) };
    }
    if Metric::find(name).is_some() || Metric::find_of_workload(name).is_some() {
        return Ok(());
    }
    let names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    Err((at.clone(), format!("there is no metric \"{name}\": expected one of {}", names.join(", "))))
}

/// Returns the range that the bounds describe.
fn range(bounds: &Spanned<Bounds>) -> Result<(f64, f64), Misplaced> {
    let Bounds { at_most, at_least, between, near, tolerance } = bounds.get_ref();
    let fail = |what: &str| Err((bounds.span(), what.to_string()));
    let (low, high) = match (at_least, at_most, between.as_deref(), near, tolerance) {
        (None, None, Some([low, high]), None, None) => (low.value, high.value),
        (None, None, Some(found), None, None) => {
            return fail(&format!("between takes two bounds, [low, high], found {}", found.len()));
        }
        (None, None, None, Some(_), Some(tolerance)) if tolerance.value < 0.0 => {
            return fail(&format!("a tolerance is a part of `near`, zero or above, found {}", tolerance.value));
        }
        (None, None, None, Some(near), Some(tolerance)) => {
            let reach = (near.value * tolerance.value).abs();
            (near.value - reach, near.value + reach)
        }
        (None, None, None, Some(_), None) => {
            return fail("`near` needs a relative `tolerance`, as in { near = 0.085, tolerance = 0.3 }");
        }
        (None, None, None, None, _) => {
            return fail("no bound: expected at-most, at-least, between = [low, high], or near with tolerance");
        }
        (low, high, None, None, None) => {
            (low.map_or(f64::NEG_INFINITY, |low| low.value), high.map_or(f64::INFINITY, |high| high.value))
        }
        _ => return fail("bounds that exclude each other: expected at-most and/or at-least, or between, or near"),
    };
    if low > high {
        return fail("an empty range: its lower bound is above its upper one");
    }
    Ok((low, high))
}

/// Returns line and column of a byte offset, both from 1, columns in characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
