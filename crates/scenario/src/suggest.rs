//! Suggestions of the key that was meant by an unknown one, in the same table or in another.

use selvedge_document::KeyPath;
use selvedge_units::words::{misspelling, one_of};
use serde_json::Value as Json;
use toml::Table;

use crate::edit::{Applied, Edit};
use crate::error::Place;
use crate::schema;

/// Suggestions in one message, at most.
const MOST: usize = 3;

/// Returns `message`, which says that nothing is at `path`, extended by keys of other tables that may be meant: keys
/// whose last steps are like those of `path`, in order. Keys of the kinds that `scenario` has come before others. A key
/// of the same table that is nearly alike, which `message` names, comes first, unless another table has exactly this
/// one.
pub(crate) fn elsewhere(schema: &Json, path: &KeyPath, scenario: &Table, message: &str) -> String {
    let found = candidates(schema, path, scenario);
    let is_exact = found.first().is_some_and(|first| first.misspelt == 0);
    let parent = &path.steps()[..path.steps().len().saturating_sub(1)];
    let is_here = found.iter().any(|found| found.parent == parent);
    if found.is_empty() || message.contains("did you mean") && (is_here || !is_exact) {
        return message.to_owned();
    }
    let names: Vec<String> = found.iter().take(MOST).map(|found| format!("\"{}\"", found.path)).collect();
    let (what, _) = message.split_once(';').unwrap_or((message, ""));
    format!("{what}; did you mean {}?", one_of(&names))
}

/// Key that may be meant; better candidates come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Number of wrong letters, over all steps.
    misspelt: usize,
    /// Whether the key belongs to a kind that is not chosen.
    of_other_kind: bool,
    /// Number of steps to the key that the scenario does not have.
    absent: usize,
    steps: usize,
    path: String,
    parent: Vec<String>,
}

/// Returns the best candidates, which are equally good but for their length.
fn candidates(schema: &Json, path: &KeyPath, scenario: &Table) -> Vec<Candidate> {
    let mut wanted: Vec<&str> = path.steps().iter().map(String::as_str).collect();
    // Elements of lists have the same keys, whatever their number.
    wanted.retain(|step| !step.bytes().all(|byte| byte.is_ascii_digit()));
    let mut found: Vec<Candidate> = Vec::new();
    for candidate in schema::all_paths(schema) {
        let Some(misspelt) = distance(&wanted, candidate.steps()) else { continue };
        if candidate == *path {
            continue;
        }
        found.push(Candidate {
            misspelt,
            of_other_kind: is_of_other_kind(schema, &candidate, scenario),
            absent: absent(&candidate, scenario),
            steps: candidate.steps().len(),
            path: candidate.to_string(),
            parent: candidate.steps()[..candidate.steps().len() - 1].to_vec(),
        });
    }
    found.sort();
    let rank = |candidate: &Candidate| (candidate.misspelt, candidate.of_other_kind, candidate.absent);
    let best = found.first().map(rank);
    found.retain(|candidate| Some(rank(candidate)) == best);
    found
}

/// Returns the distance of the steps `wanted` from steps of `candidate` in the same order, with the last steps of both
/// paired; `None` if too far.
fn distance(wanted: &[&str], candidate: &[String]) -> Option<usize> {
    let (last, before) = wanted.split_last()?;
    let (end, mut rest) = candidate.split_last()?;
    let mut sum = misspelling(last, end)?;
    for step in before.iter().rev() {
        let near = rest.iter().enumerate().rev().find_map(|(at, name)| Some((at, misspelling(step, name)?)));
        let (at, distance) = near?;
        sum += distance;
        rest = &rest[..at];
    }
    Some(sum)
}

fn is_of_other_kind(schema: &Json, candidate: &KeyPath, scenario: &Table) -> bool {
    let origin = Place::Argument(String::new());
    let edit = Edit::known(schema, candidate, true.into(), origin);
    let applied = edit.map(|edit| edit.apply_where_it_fits(&mut scenario.clone()));
    matches!(applied, Some(Ok(Applied::OtherKind { .. }) | Err(_)))
}

/// Returns the number of tables around `candidate` that a scenario lacks.
fn absent(candidate: &KeyPath, scenario: &Table) -> usize {
    let (mut here, tables) = (Some(scenario), candidate.steps().len() - 1);
    let present = candidate.steps()[..tables].iter().take_while(|step| {
        here = here.and_then(|table| table.get(*step)?.as_table());
        here.is_some()
    });
    tables - present.count()
}
