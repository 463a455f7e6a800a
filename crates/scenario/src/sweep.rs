//! Sweeps: the points of a grid of values, each a case of the study.
//!
//! ```text
//! [sweep], --sweep ──expand──> Grid: axes (keys and values), points ──> a case per point ──> runs
//! ```

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use selvedge_document::{Document, KeyPath};
use selvedge_units::words::plural;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::{Place, ScenarioError};
use crate::scenario::Case;

/// Grid of values: every series runs at every point of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sweep {
    /// Keys whose values are crossed: each value of one with each of the others. By dotted key: a list of values, or a
    /// range { from, to } with a `step`, a `factor` or a `count`, both ends included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub cross: BTreeMap<String, Value>,
    /// Keys that change together: the first values of all, then the second ones. Each table is one axis of the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub zip: Vec<BTreeMap<String, Value>>,
    /// Points to leave out: those that have all values of one of these tables. By swept key: a value, a list of which
    /// any fits, or bounds { at-least, at-most }.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub skip: Vec<BTreeMap<String, Value>>,
    /// Points to keep: those that have all values of at least one of these tables. Without any, all are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    pub only: Vec<BTreeMap<String, Value>>,
}

/// Expanded sweep.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Grid {
    /// Axes of the grid: crossed keys in the order of their names, then zipped ones in the order of the file.
    pub axes: Vec<GridAxis>,
    /// Points in the order in which they run; the last axis changes fastest.
    pub points: Vec<GridPoint>,
}

/// Axis of a sweep's grid.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GridAxis {
    /// Keys that change along the axis: one, or several that are zipped.
    pub keys: Vec<String>,
    /// Steps of the axis, each with a value for every key.
    pub values: Vec<Vec<Value>>,
}

/// Point of a sweep.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GridPoint {
    /// Name of the point's case.
    pub case: String,
    /// Step of the point on each axis.
    pub at: Vec<usize>,
}

/// Expanded sweep with the places of its keys.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expanded {
    pub(crate) grid: Grid,
    /// Place where each swept key is written.
    pub(crate) places: BTreeMap<String, Place>,
}

impl Expanded {
    /// Returns the case of each point.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let of_point = |point: &GridPoint| {
            let steps = self.grid.axes.iter().zip(&point.at);
            let set = steps.flat_map(|(axis, &at)| axis.keys.iter().cloned().zip(axis.values[at].iter().cloned()));
            Case { name: point.case.clone(), set: set.collect() }
        };
        self.grid.points.iter().map(of_point).collect()
    }
}

/// Largest number of points; more are taken for a mistake.
const MOST_POINTS: usize = 10_000;
/// Largest number of values of one range.
const MOST_VALUES: usize = 10_000;

/// Expands the sweep of `document`, extended by the `arguments` of `--sweep`; `None` if there is neither.
///
/// # Errors
/// A key without values, values that do not fit together, or a condition on something that is not swept.
pub(crate) fn expand(
    sweep: Option<&Sweep>,
    arguments: &[String],
    document: &Document,
) -> Result<Option<Expanded>, ScenarioError> {
    if sweep.is_none() && arguments.is_empty() {
        return Ok(None);
    }
    let sweep = sweep.cloned().unwrap_or_default();
    let here = KeyPath::root().join("sweep");
    let mut places = BTreeMap::new();
    let mut place_of = |key: &str, place: Place| match places.insert(key.to_owned(), place.clone()) {
        None => Ok(()),
        Some(_) => Err(ScenarioError::new(place, "", format!("{key} is swept twice; give all its values once"))),
    };
    let mut axes = Vec::new();
    for (key, value) in &sweep.cross {
        let place = document.place(&here.join("cross").join(key));
        axes.push(crossed(key, value, &place)?);
        place_of(key, place)?;
    }
    for (number, keys) in sweep.zip.iter().enumerate() {
        let table = here.join("zip").join(number.to_string());
        axes.push(zipped(keys, |key| document.place(&table.join(key)), document.place(&table))?);
        keys.keys().try_for_each(|key| place_of(key, document.place(&table.join(key))))?;
    }
    for argument in arguments {
        let place = Place::Argument(format!("--sweep {argument}"));
        let (key, value) = of_argument(argument).ok_or_else(|| {
            let message = "expected key=values, as in --sweep workload.poisson.load=0.3,0.5,0.7";
            ScenarioError::new(place.clone(), "", message)
        })?;
        axes.push(crossed(&key, &value, &place)?);
        place_of(&key, place)?;
    }
    if axes.is_empty() {
        let message = "nothing is swept; give keys and values, as in cross.'workload.poisson.load' = [0.3, 0.5]";
        return Err(ScenarioError::new(document.place(&here), "sweep", message));
    }
    let conditions = |list: &[BTreeMap<String, Value>], name: &str| -> Result<Vec<Vec<Condition>>, ScenarioError> {
        let of_table = |(number, table): (usize, &BTreeMap<String, Value>)| {
            let path = here.join(name).join(number.to_string());
            table
                .iter()
                .map(|(key, value)| Condition::new(key, value, &axes, document.place(&path.join(key))))
                .collect()
        };
        list.iter().enumerate().map(of_table).collect()
    };
    let (skip, only) = (conditions(&sweep.skip, "skip")?, conditions(&sweep.only, "only")?);
    let all = axes.iter().try_fold(1, |all: usize, axis| all.checked_mul(axis.values.len()));
    let whole = document.place(&here);
    let all = all.filter(|&all| all <= MOST_POINTS * 100).ok_or_else(|| too_many(&axes, &whole))?;
    let mut points = Vec::new();
    for number in 0..all {
        let at = place_in_grid(number, &axes);
        let fits = |table: &Vec<Condition>| table.iter().all(|condition| condition.holds(&axes, &at));
        if skip.iter().any(fits) || !only.is_empty() && !only.iter().any(fits) {
            continue;
        }
        points.push(at);
    }
    if points.len() > MOST_POINTS {
        return Err(too_many(&axes, &whole));
    }
    if points.is_empty() {
        let message = "no point is left: `skip` and `only` leave out all of them";
        return Err(ScenarioError::new(whole, "sweep", message));
    }
    let names = names(&axes, &points);
    let points = points.into_iter().zip(names).map(|(at, case)| GridPoint { case, at }).collect();
    Ok(Some(Expanded { grid: Grid { axes, points }, places }))
}

fn too_many(axes: &[GridAxis], place: &Place) -> ScenarioError {
    let counts: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
    let message = format!("{} points are too many; give at most {MOST_POINTS}, or leave some out", counts.join(" x "));
    ScenarioError::new(place.clone(), "sweep", message)
}

/// Returns the steps of point `number` of the whole grid; the last axis changes fastest.
fn place_in_grid(mut number: usize, axes: &[GridAxis]) -> Vec<usize> {
    let mut at = vec![0; axes.len()];
    for (step, axis) in at.iter_mut().zip(axes).rev() {
        *step = number % axis.values.len();
        number /= axis.values.len();
    }
    at
}

/// Splits `key=values` of `--sweep`: TOML, or values separated by commas, whose units need no quotes.
fn of_argument(argument: &str) -> Option<(String, Value)> {
    let (key, text) = argument.split_once('=')?;
    let toml = |text: &str| toml::from_str::<Table>(&format!("value = {text}")).ok()?.remove("value");
    let value = match toml(text) {
        Some(value @ (Value::Array(_) | Value::Table(_))) => value,
        _ => {
            let one = |text: &str| toml(text).unwrap_or_else(|| Value::String(text.to_owned()));
            Value::Array(text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(one).collect())
        }
    };
    Some((key.trim().to_owned(), value))
}

/// Returns the axis of one key.
fn crossed(key: &str, value: &Value, place: &Place) -> Result<GridAxis, ScenarioError> {
    let values = values(value).map_err(|message| ScenarioError::new(place.clone(), "", format!("{key}: {message}")))?;
    Ok(GridAxis { keys: vec![key.to_owned()], values: values.into_iter().map(|value| vec![value]).collect() })
}

/// Returns the axis of several keys that change together.
fn zipped(
    keys: &BTreeMap<String, Value>,
    place_of: impl Fn(&str) -> Place,
    whole: Place,
) -> Result<GridAxis, ScenarioError> {
    let mut columns: Vec<(&String, Vec<Value>)> = Vec::new();
    for (key, value) in keys {
        let wrong = |message: String| ScenarioError::new(place_of(key), "", format!("{key}: {message}"));
        let values = values(value).map_err(wrong)?;
        if let Some((first, others)) = columns.first()
            && others.len() != values.len()
        {
            let (own, other) = (plural(values.len() as u64, "value"), others.len());
            return Err(wrong(format!("{own}, but {first} has {other}; zipped keys need equally many")));
        }
        columns.push((key, values));
    }
    let Some((_, first)) = columns.first() else {
        return Err(ScenarioError::new(whole, "sweep.zip", "no keys; give some, each with a list of values"));
    };
    let step = |at: usize| columns.iter().map(|(_, values)| values[at].clone()).collect();
    Ok(GridAxis { values: (0..first.len()).map(step).collect(), keys: keys.keys().cloned().collect() })
}

/// Returns the values of a list or a range.
fn values(value: &Value) -> Result<Vec<Value>, String> {
    let list = match value {
        Value::Array(list) => list.clone(),
        Value::Table(range) => range_values(range)?,
        _ => return Err(format!("{value} is no list; give one, as in [{value}], or a range, as in {RANGE}")),
    };
    if list.is_empty() {
        return Err("no values; give at least one".to_owned());
    }
    match list.iter().enumerate().find(|(at, value)| list[..*at].iter().any(|other| same(other, value))) {
        Some((_, twice)) => Err(format!("{twice} twice would run every point twice; leave one out")),
        None => Ok(list),
    }
}

const RANGE: &str = "{ from = 0.1, to = 0.9, step = 0.2 }";

/// Returns the values of a range.
fn range_values(range: &Table) -> Result<Vec<Value>, String> {
    let known = ["from", "to", "step", "factor", "count"];
    if let Some(other) = range.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("a range has no \"{other}\"; expected from, to, and one of step, factor, count"));
    }
    let need = |key: &str| range.get(key).ok_or_else(|| format!("a range needs \"{key}\", as in {RANGE}"));
    let (from, to) = (Amount::of(need("from")?)?, Amount::of(need("to")?)?);
    if from.unit != to.unit {
        return Err(format!("from is in \"{}\" and to in \"{}\"; write both in one unit", from.unit, to.unit));
    }
    let way = range.iter().filter(|(key, _)| known[2..].contains(&key.as_str())).collect::<Vec<_>>();
    let [(way, by)] = way[..] else {
        return Err(format!("a range needs one of step, factor, count, as in {RANGE}"));
    };
    let whole = |at: usize, number: f64| if at > MOST_VALUES { None } else { Some(number) };
    // Rounding errors must not lose the last value.
    let until = to.number + (to.number - from.number).abs() * 1e-9;
    let numbers: Vec<f64> = match way.as_str() {
        "count" => {
            let count = by.as_integer().filter(|count| (2..=MOST_VALUES as i64).contains(count));
            let count = count.ok_or_else(|| format!("count = {by}: expected a number from 2 to {MOST_VALUES}"))?;
            let step = (to.number - from.number) / (count - 1) as f64;
            (0..count).map(|at| from.number + at as f64 * step).collect()
        }
        "step" => {
            let step = Amount::of(by)?;
            if step.unit != from.unit {
                return Err(format!(
                    "from is in \"{}\" and step in \"{}\"; write both in one unit",
                    from.unit, step.unit
                ));
            }
            if step.number <= 0.0 || to.number < from.number {
                return Err(format!(
                    "step = {by}: expected a step above 0 that leads from {} up to {}",
                    from.number, to.number
                ));
            }
            (0..).map_while(|at| whole(at, from.number + at as f64 * step.number)).take_while(|&v| v <= until).collect()
        }
        _ => {
            let factor = Amount::of(by)?.number;
            if factor <= 1.0 || from.number <= 0.0 || to.number < from.number {
                return Err(format!(
                    "factor = {by}: expected a factor above 1 that leads from {} (above 0) up to {}",
                    from.number, to.number
                ));
            }
            (0..).map_while(|at| whole(at, from.number * factor.powi(at as i32))).take_while(|&v| v <= until).collect()
        }
    };
    if numbers.len() > MOST_VALUES {
        return Err(format!("more than {MOST_VALUES} values; take larger steps"));
    }
    let is_whole = from.is_whole && numbers.iter().all(|number| rounded(*number).fract() == 0.0);
    Ok(numbers.into_iter().map(|number| from.like(rounded(number), is_whole)).collect())
}

/// Number with a unit: 0.3, "60KB".
struct Amount {
    number: f64,
    unit: String,
    /// Whether the number is written as an integer.
    is_whole: bool,
}

impl Amount {
    fn of(value: &Value) -> Result<Self, String> {
        match value {
            Value::Integer(number) => Ok(Self { number: *number as f64, unit: String::new(), is_whole: true }),
            Value::Float(number) if number.is_finite() => {
                Ok(Self { number: *number, unit: String::new(), is_whole: false })
            }
            Value::String(text) => {
                let end = text.find(|c: char| !(c.is_ascii_digit() || "._-".contains(c))).unwrap_or(text.len());
                let number = text[..end].replace('_', "").parse();
                let number = number.map_err(|_| format!("\"{text}\" is no number, with or without a unit"))?;
                Ok(Self { number, unit: text[end..].trim().to_owned(), is_whole: false })
            }
            other => Err(format!("{other} is no number, with or without a unit")),
        }
    }

    /// Returns `number` written like this amount.
    fn like(&self, number: f64, is_whole: bool) -> Value {
        match () {
            () if !self.unit.is_empty() => Value::String(format!("{number}{}", self.unit)),
            () if is_whole => Value::Integer(number as i64),
            () => Value::Float(number),
        }
    }
}

/// Returns the number with twelve digits, so that 3 x 0.1 is 0.3.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

/// Returns whether two values are equal, whatever notation they have.
fn same(a: &Value, b: &Value) -> bool {
    match (Amount::of(a), Amount::of(b)) {
        (Ok(a), Ok(b)) => a.number == b.number && a.unit == b.unit,
        _ => a == b,
    }
}

/// Condition on the value of one swept key.
struct Condition {
    axis: usize,
    key: usize,
    fits: Fits,
}

enum Fits {
    Any(Vec<Value>),
    Between(f64, f64),
}

impl Condition {
    fn new(key: &str, value: &Value, axes: &[GridAxis], place: Place) -> Result<Self, ScenarioError> {
        let wrong = |message: String| ScenarioError::new(place.clone(), "", message);
        let of_axis = |(axis, swept): (usize, &GridAxis)| Some((axis, swept.keys.iter().position(|own| own == key)?));
        let Some((axis, key)) = axes.iter().enumerate().find_map(of_axis) else {
            let known: Vec<&str> = axes.iter().flat_map(|axis| &axis.keys).map(String::as_str).collect();
            return Err(wrong(format!("{key} is not swept; conditions may name {}", known.join(", "))));
        };
        let fits = match value {
            Value::Table(bounds) => {
                let amount = |name: &str| bounds.get(name).map(Amount::of).transpose().map_err(wrong);
                if let Some(other) = bounds.keys().find(|key| !["at-least", "at-most"].contains(&key.as_str())) {
                    return Err(wrong(format!("\"{other}\": expected at-least, at-most, or both")));
                }
                let (least, most) = (amount("at-least")?, amount("at-most")?);
                for bound in least.iter().chain(&most) {
                    let other = |step: &Vec<Value>| Amount::of(&step[key]).map_or(true, |own| own.unit != bound.unit);
                    if axes[axis].values.iter().any(other) {
                        return Err(wrong("bounds need numbers in the unit of the swept values".to_owned()));
                    }
                }
                let number = |amount: Option<Amount>, without| amount.map_or(without, |amount| amount.number);
                Fits::Between(number(least, f64::NEG_INFINITY), number(most, f64::INFINITY))
            }
            value => {
                let listed = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                let is_swept = |one: &Value| axes[axis].values.iter().any(|step| same(&step[key], one));
                if let Some(none) = listed.iter().find(|one| !is_swept(one)) {
                    return Err(wrong(format!("{none} is none of the swept values")));
                }
                Fits::Any(listed)
            }
        };
        Ok(Self { axis, key, fits })
    }

    fn holds(&self, axes: &[GridAxis], at: &[usize]) -> bool {
        let value = &axes[self.axis].values[at[self.axis]][self.key];
        match &self.fits {
            Fits::Any(listed) => listed.iter().any(|one| same(one, value)),
            Fits::Between(least, most) => Amount::of(value).is_ok_and(|own| (*least..=*most).contains(&own.number)),
        }
    }
}

/// Returns a name for each point: its values, or its number where they make no name of a file.
fn names(axes: &[GridAxis], points: &[Vec<usize>]) -> Vec<String> {
    let keys: Vec<&String> = axes.iter().flat_map(|axis| &axis.keys).collect();
    let short: Vec<String> = keys.iter().map(|key| short_name(key, &keys)).collect();
    let name = |at: &Vec<usize>| {
        let values = axes.iter().zip(at).flat_map(|(axis, &at)| &axis.values[at]);
        let parts: Vec<String> =
            short.iter().zip(values).map(|(key, value)| format!("{key} = {}", shown(value))).collect();
        parts.join(", ")
    };
    let names: Vec<String> = points.iter().map(name).collect();
    let is_name =
        |name: &String| name.len() <= LONGEST && !name.contains(['/', '\\', '\n']) && !name.contains(char::is_control);
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() == names.len() && names.iter().all(is_name) {
        return names;
    }
    (1..=points.len()).map(|number| format!("point {number}")).collect()
}

/// Length limit of the names of points in bytes, which leaves room for the series in the names of files.
const LONGEST: usize = 100;

/// Returns as many of the key's last steps as tell it from the other keys.
fn short_name(key: &str, all: &[&String]) -> String {
    let steps = |key: &str| KeyPath::parse(key).map_or_else(|| vec![key.to_owned()], |path| path.steps().to_vec());
    let own = steps(key);
    let ending = |steps: &[String], count: usize| steps[steps.len().saturating_sub(count)..].join(".");
    let is_own =
        |count: &usize| all.iter().filter(|other| ending(&steps(other), *count) == ending(&own, *count)).count() < 2;
    ending(&own, (1..own.len()).find(is_own).unwrap_or(own.len()))
}

/// Returns the value as people write it: texts without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
