//! Stored scenarios of results: the settings of their series, without the files that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use selvedge_document::{Document, KeyPath};
use toml::{Table, Value};

use crate::draft::Draft;
use crate::error::{ScenarioError, unreadable};
use crate::input;
use crate::plan::Changes;
use crate::written::values;

/// Series of a stored scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSeries {
    /// Name of the series within its case.
    pub series: String,
    /// Case of the series.
    pub case: Option<String>,
    values: BTreeMap<String, String>,
}

/// Returns the series of the resolved scenario at `path`. Files that it names are not read.
///
/// # Errors
/// Returns an error if the scenario cannot be read, or is not one of this version.
pub fn stored_series(path: &Path) -> Result<Vec<StoredSeries>, ScenarioError> {
    let name = path.display().to_string();
    let text = input::read_text(path).map_err(|error| unreadable(&name, &error))?;
    let draft = Draft::read(Document::parse(&name, &text)?, &Changes::default())?;
    let series = draft.variants(None)?.into_iter().map(|variant| {
        let mut leaves = BTreeMap::new();
        collect(&values(&variant.scenario), &KeyPath::root(), &mut leaves);
        StoredSeries { series: variant.name, case: variant.case, values: leaves }
    });
    Ok(series.collect())
}

impl StoredSeries {
    /// Returns the keys whose values differ, each with its value here and in `other`, as TOML; `None` where a series
    /// has none.
    pub fn differences(&self, other: &Self) -> Vec<(String, Option<String>, Option<String>)> {
        let keys: BTreeSet<&String> = self.values.keys().chain(other.values.keys()).collect();
        let pairs =
            keys.into_iter().map(|key| (key.clone(), self.values.get(key).cloned(), other.values.get(key).cloned()));
        pairs.filter(|(_, own, other)| own != other).collect()
    }
}

/// Collects all values that are no tables, by their dotted keys.
fn collect(table: &Table, path: &KeyPath, leaves: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        collect_value(value, path.join(key), leaves);
    }
}

fn collect_value(value: &Value, path: KeyPath, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) if !table.is_empty() => collect(table, &path, leaves),
        Value::Array(elements) if elements.iter().any(Value::is_table) => {
            for (at, element) in elements.iter().enumerate() {
                collect_value(element, path.join(at.to_string()), leaves);
            }
        }
        other => {
            leaves.insert(path.to_string(), other.to_string());
        }
    }
}
