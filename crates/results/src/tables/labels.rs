//! Labels that all rows of a run share: series and case, and the values that cases change.

use std::collections::BTreeSet;
use std::sync::Arc;

use parquet::errors::Result as ParquetResult;

use super::names::{Name, Names};
use super::part::Columns;
use super::schema::{ColumnType, Extra, Table};

/// The labels of a run in tables.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Labels {
    /// Name of the series in the whole study: "30 % load: irn".
    pub name: String,
    /// Name of the series within its case: "irn".
    pub series: String,
    /// Case of the run; `None` if the study has none.
    pub case: Option<String>,
    /// Keys that the study's cases change, with the run's values; in the same order for all runs.
    pub swept: Vec<(String, Swept)>,
}

/// A value that cases change. Values of one key are numbers in all runs of a study, or texts in all.
#[derive(Clone, PartialEq, Debug)]
pub enum Swept {
    /// A number; NaN where the run has none.
    Number(f64),
    /// Any other value, as written in a scenario; empty where the run has none.
    Text(String),
}

/// Labels of a run in a study without cases.
impl From<&str> for Labels {
    fn from(series: &str) -> Self {
        Self { name: series.to_owned(), series: series.to_owned(), ..Self::default() }
    }
}

impl Labels {
    /// Returns the columns for keys that cases change.
    pub(super) fn extras(&self) -> Vec<Extra> {
        let names = column_names(self.swept.iter().map(|(key, _)| key.as_str()));
        let kind = |value: &Swept| match value {
            Swept::Number(_) => ColumnType::Number,
            Swept::Text(_) => ColumnType::Text,
        };
        names.into_iter().zip(&self.swept).map(|(name, (_, value))| Extra { name, kind: kind(value) }).collect()
    }
}

/// Values of [`Labels`] as they are written.
pub(super) struct Written {
    series: Name,
    case: Name,
    swept: Vec<Value>,
}

enum Value {
    Number(f64),
    Text(Name),
}

impl Written {
    /// Returns the values for a table whose rows all have these labels.
    pub(super) fn new(labels: &Labels) -> Self {
        let [written] = Self::of_all([labels].into_iter()).try_into().unwrap_or_else(|_| unreachable!("one of one"));
        written
    }

    /// Returns the values for a table whose rows have any of these labels.
    pub(super) fn of_all<'l>(labels: impl Iterator<Item = &'l Labels>) -> Vec<Self> {
        let labels: Vec<&Labels> = labels.collect();
        let texts_of = |labels: &Labels| -> Vec<Arc<str>> {
            let swept = labels.swept.iter().map(|(_, value)| match value {
                Swept::Number(_) => "",
                Swept::Text(text) => text,
            });
            let case = labels.case.as_deref().unwrap_or_default();
            [labels.series.as_str(), case].into_iter().chain(swept).map(Arc::from).collect()
        };
        let texts: Vec<Vec<Arc<str>>> = labels.iter().map(|labels| texts_of(labels)).collect();
        let (names, ranks) = Names::of(texts.iter().flatten());
        let mut ranked = ranks.iter().map(|&rank| names.at(rank).clone());
        let mut next = || ranked.next().expect("a rank for each text");
        let written = labels.iter().map(|labels| {
            let (series, case) = (next(), next());
            let swept = labels.swept.iter().map(|(_, value)| match (value, next()) {
                (Swept::Number(number), _) => Value::Number(*number),
                (Swept::Text(_), text) => Value::Text(text),
            });
            Self { series, case, swept: swept.collect() }
        });
        written.collect()
    }

    /// Writes the columns "series" and "case", with which all tables begin.
    pub(super) fn write_first<Row>(&self, columns: &mut Columns<'_, Row>) -> ParquetResult<()> {
        let all = columns.whole();
        columns.text_of(&all, |_| &self.series)?;
        columns.text_of(&all, |_| &self.case)
    }

    /// Writes the columns for keys that cases change, with which all tables end.
    pub(super) fn write_last<Row>(&self, columns: &mut Columns<'_, Row>) -> ParquetResult<()> {
        let all = columns.whole();
        self.swept.iter().try_for_each(|value| match value {
            Value::Number(number) => columns.real_of(&all, |_| *number),
            Value::Text(text) => columns.text_of(&all, |_| text),
        })
    }
}

/// Returns a column name for each key: as many of the key's last steps as distinguish it from the other keys and from
/// the columns that all tables have.
fn column_names<'k>(keys: impl Iterator<Item = &'k str>) -> Vec<String> {
    let taken: BTreeSet<String> = Table::all_column_names();
    let keys: Vec<Vec<String>> = keys.map(steps).collect();
    let ending = |key: &[String], count: usize| key[key.len().saturating_sub(count)..].join("_");
    let name = |(number, key): (usize, &Vec<String>)| {
        let is_own = |name: &String, count: usize| {
            let others = keys.iter().enumerate().filter(|(other, _)| *other != number);
            !taken.contains(name) && others.map(|(_, other)| ending(other, count)).all(|other| other != *name)
        };
        let ways = (1..=key.len()).map(|count| (ending(key, count), count));
        let own = ways.into_iter().find(|(name, count)| is_own(name, *count)).map(|(name, _)| name);
        own.unwrap_or_else(|| format!("set_{number}"))
    };
    keys.iter().enumerate().map(name).collect()
}

/// Returns the steps of a dotted key, in characters that need no quotes in SQL.
fn steps(key: &str) -> Vec<String> {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    key.split(['.', '[', ']']).filter(|step| !step.is_empty()).map(|step| step.chars().map(word).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::column_names;

    #[test]
    fn columns_of_keys_are_short_and_tell_them_apart() {
        let names = |keys: &[&str]| column_names(keys.iter().copied());
        assert_eq!(names(&["workload.poisson.load", "switch.buffer.shared-buffer.total"]), ["load", "total"]);
        assert_eq!(names(&["a.link.rate", "a.host-link.rate"]), ["link_rate", "host_link_rate"]);
        assert_eq!(names(&["loss[0].model.random.rate"]), ["rate"]);
        // Names of columns that tables already have.
        assert_eq!(names(&["workload.incast.group", "drops"]), ["incast_group", "set_1"]);
        assert_eq!(names(&[]), [""; 0]);
    }
}
