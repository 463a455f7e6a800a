//! From the text of an `expect.toml` to claims.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::metric::METRICS;

/// The claims of one file.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectations {
    /// In the file's order; at least one.
    pub claims: Vec<Claim>,
}

/// One claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The claim in a sentence.
    pub say: String,
    /// Name of the metric.
    pub metric: String,
    /// The series it is about.
    pub of: String,
    /// The series it is compared with, for ratios.
    pub than: Option<String>,
    /// The least that counts as reproduced.
    pub low: f64,
    /// The most that counts as reproduced.
    pub high: f64,
    /// Where it is claimed.
    pub source: Option<String>,
    /// The range as printed there.
    pub paper: Option<String>,
    /// Why it is known not to come out; such a claim does not fail the check.
    pub known: Option<String>,
    /// Line in the file, from 1.
    pub line: usize,
}

/// Why a file is not a list of claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectError {
    file: String,
    line: usize,
    column: usize,
    what: String,
}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.what)
    }
}

impl std::error::Error for ExpectError {}

impl Expectations {
    /// Reads the text of `file` (its name is for messages).
    ///
    /// # Errors
    /// With file, line and column, when the text is not TOML, a key is unknown or missing, a metric
    /// does not exist, or a range is empty.
    pub fn parse(text: &str, file: &str) -> Result<Self, ExpectError> {
        let place = |span: Option<Range<usize>>| position(text, span.map_or(0, |span| span.start));
        let fail = |at: Option<Range<usize>>, what: String| {
            let (line, column) = place(at);
            ExpectError { file: file.into(), line, column, what }
        };
        let written: File = toml::from_str(text).map_err(|error| fail(error.span(), error.message().to_string()))?;
        let mut claims = Vec::new();
        for table in written.expect {
            let (line, _) = position(text, table.span().start);
            claims.push(claim(table.into_inner(), line).map_err(|(span, what)| fail(Some(span), what))?);
        }
        if claims.is_empty() {
            return Err(fail(None, "no claims: expected at least one [[expect]]".into()));
        }
        Ok(Self { claims })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    expect: Vec<Spanned<Written>>,
}

/// A claim as it was written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    say: String,
    metric: Spanned<String>,
    of: Spanned<String>,
    than: Option<Spanned<String>>,
    ratio: Option<Spanned<Bounds>>,
    value: Option<Spanned<Bounds>>,
    source: Option<String>,
    paper: Option<String>,
    known: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bounds {
    at_most: Option<Number>,
    at_least: Option<Number>,
    between: Option<[Number; 2]>,
    near: Option<Number>,
    tolerance: Option<Number>,
}

/// 1.5, 2, or "1/3.7".
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "NumberText")]
struct Number(f64);

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
            .map(Self)
            .ok_or_else(|| format!("{found} is not a number: expected one as in 0.27, or a fraction as in \"1/3.7\""))
    }
}

type Misplaced = (Range<usize>, String);

fn claim(written: Written, line: usize) -> Result<Claim, Misplaced> {
    check_metric(&written.metric)?;
    let (bounds, than) = match (written.ratio, written.value, written.than) {
        (Some(ratio), None, Some(than)) => (ratio, Some(than)),
        (None, Some(value), None) => (value, None),
        (Some(ratio), None, None) => {
            return Err((ratio.span(), "a ratio needs the series it is compared with: add than = \"...\"".into()));
        }
        (None, Some(_), Some(than)) => {
            return Err((than.span(), "`than` belongs to a ratio; a value stands alone".into()));
        }
        (Some(_), Some(value), _) => return Err((value.span(), "either `ratio` or `value`, not both".into())),
        (None, None, _) => {
            let what = "nothing is claimed: add ratio = { at-most = 1.0 } or value = { at-least = 0.08 }";
            return Err((written.of.span(), what.into()));
        }
    };
    let (low, high) = range(&bounds)?;
    Ok(Claim {
        say: written.say,
        metric: written.metric.into_inner(),
        of: written.of.into_inner(),
        than: than.map(Spanned::into_inner),
        low,
        high,
        source: written.source,
        paper: written.paper,
        known: written.known,
        line,
    })
}

fn check_metric(metric: &Spanned<String>) -> Result<(), Misplaced> {
    let name = metric.get_ref();
    if METRICS.iter().any(|known| known.name == name) {
        return Ok(());
    }
    let names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
    Err((metric.span(), format!("there is no metric \"{name}\": expected one of {}", names.join(", "))))
}

/// The range that the bounds describe.
fn range(bounds: &Spanned<Bounds>) -> Result<(f64, f64), Misplaced> {
    let Bounds { at_most, at_least, between, near, tolerance } = bounds.get_ref();
    let fail = |what: &str| Err((bounds.span(), what.to_string()));
    let (low, high) = match (at_least, at_most, between, near, tolerance) {
        (None, None, Some([low, high]), None, None) => (low.0, high.0),
        (None, None, None, Some(near), Some(tolerance)) => {
            let reach = (near.0 * tolerance.0).abs();
            (near.0 - reach, near.0 + reach)
        }
        (None, None, None, Some(_), None) => {
            return fail("`near` needs a relative `tolerance`, as in { near = 0.085, tolerance = 0.3 }");
        }
        (None, None, None, None, _) => {
            return fail("no bound: expected at-most, at-least, between = [low, high], or near with tolerance");
        }
        (low, high, None, None, None) => {
            (low.map_or(f64::NEG_INFINITY, |low| low.0), high.map_or(f64::INFINITY, |high| high.0))
        }
        _ => return fail("bounds that exclude each other: expected at-most and/or at-least, or between, or near"),
    };
    if low > high {
        return fail("an empty range: its lower bound is above its upper one");
    }
    Ok((low, high))
}

/// Line and column of a byte offset, both from 1, columns in characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
