//! Changes to a scenario before it is read: `--set` and series.

use std::fs;
use std::path::Path;

use selvedge_document::{KeyPath, Step, route};
use selvedge_units::words::plural;
use toml::{Table, Value};

use crate::error::{Place, ScenarioError, unreadable, utf8};
use crate::suggest;

/// Replacement of the value at a path; it never merges with the old value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Edit {
    pub(crate) path: KeyPath,
    pub(crate) value: Value,
    /// Place that asks for the edit.
    pub(crate) origin: Place,
    route: Vec<Step>,
}

/// Outcome of an edit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Applied {
    /// The value is in place.
    Yes,
    /// The path goes through one kind of something where another kind is chosen.
    OtherKind {
        /// Key at which the choice is made ("transport.recovery").
        at: KeyPath,
        /// Choice made at that key.
        chosen: String,
    },
}

impl Edit {
    /// Returns an edit of the key called `path`. The error for a key that the schema lacks suggests one of `scenario`
    /// that is like it.
    pub(crate) fn new(
        schema: &serde_json::Value,
        scenario: &Table,
        path: &str,
        value: Value,
        origin: Place,
    ) -> Result<Self, ScenarioError> {
        let Some(parsed) = KeyPath::parse(path) else {
            let message = format!("\"{path}\" is not a key; expected one as in switch.pfc.enabled");
            return Err(ScenarioError::new(origin, "", message));
        };
        match route(schema, &parsed) {
            Ok(route) => Ok(Self { path: parsed, value, origin, route }),
            Err(message) => {
                let message = suggest::elsewhere(schema, &parsed, scenario, &message);
                Err(ScenarioError::new(origin, "", message))
            }
        }
    }

    /// Returns an edit of the key at `path`; `None` if the schema has none.
    pub(crate) fn known(schema: &serde_json::Value, path: &KeyPath, value: Value, origin: Place) -> Option<Self> {
        let route = route(schema, path).ok()?;
        Some(Self { path: path.clone(), value, origin, route })
    }

    /// Reads the `key=value` of `--set`. The value is TOML; a value that is not TOML is a text, so that units need no
    /// quotes: `--set switch.pfc.headroom=20KB`.
    pub(crate) fn from_argument(
        schema: &serde_json::Value,
        scenario: &Table,
        argument: &str,
    ) -> Result<Self, ScenarioError> {
        let origin = Place::Argument(format!("--set {argument}"));
        let Some((path, value)) = argument.split_once('=') else {
            let message = "expected key=value, as in --set switch.pfc.enabled=true";
            return Err(ScenarioError::new(origin, "", message));
        };
        let value = value.trim();
        let value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value").filter(|_| table.is_empty()))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        Self::new(schema, scenario, path, value, origin)
    }

    /// Returns the edit of an option that names a file. The file's content replaces `key` as a whole, as a table of the
    /// kind `kind`.
    pub(crate) fn from_file(
        schema: &serde_json::Value,
        key: &str,
        kind: &str,
        path: &Path,
    ) -> Result<Self, ScenarioError> {
        let option = if key == "topology" { "--topology" } else { "--flows" };
        let shown = path.display().to_string();
        let unreadable = |error: std::io::Error| unreadable(&shown, &error);
        fs::metadata(path).map_err(unreadable)?;
        // A pipe has no canonical path.
        let place = fs::canonicalize(path).or_else(|_| std::path::absolute(path)).map_err(unreadable)?;
        let text = utf8(option, &place)?;
        let file = Table::from_iter([("path".to_owned(), Value::String(text.to_owned()))]);
        let whole = Table::from_iter([(kind.to_owned(), Value::Table(file))]);
        Self::new(schema, &Table::new(), key, Value::Table(whole), Place::Argument(format!("{option} {shown}")))
    }

    /// Puts the value into `table`, a scenario of one series, unless the edit is about a part that the series does not
    /// have.
    pub(crate) fn apply_where_it_fits(&self, table: &mut Table) -> Result<Applied, ScenarioError> {
        match self.other_stack(table) {
            Some((at, chosen)) => Ok(Applied::OtherKind { at, chosen }),
            None => self.apply(table),
        }
    }

    /// Puts the value into `table`.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<Applied, ScenarioError> {
        if let Some(chosen) = self.other_than_eqds(table) {
            return Ok(Applied::OtherKind { at: KeyPath::root().join("transport"), chosen });
        }
        let steps = self.path.steps();
        let mut at = KeyPath::root();
        let mut here = Cursor::Table(table);
        for (index, step) in steps.iter().enumerate() {
            if let Step::Kind(keys) = &self.route[index]
                && let Cursor::Table(kinds) = &here
                && let Some(chosen) = kinds.keys().find(|kind| !keys.contains(kind))
            {
                return Ok(Applied::OtherKind { at, chosen: chosen.clone() });
            }
            let last = index + 1 == steps.len();
            let slot = match here {
                Cursor::Table(table) if last => {
                    table.insert(step.clone(), self.value.clone());
                    return Ok(Applied::Yes);
                }
                Cursor::Table(table) => {
                    let is_list = self.route[index + 1] == Step::Element;
                    let empty = || if is_list { Value::Array(Vec::new()) } else { Value::Table(Table::new()) };
                    table.entry(step.clone()).or_insert_with(empty)
                }
                Cursor::Array(elements) => {
                    let count = elements.len();
                    let slot = step.parse::<usize>().ok().and_then(|index| elements.get_mut(index));
                    let Some(slot) = slot else {
                        return Err(
                            self.refused(format!("{at} has {} here, numbered from 0", plural(count as u64, "element")))
                        );
                    };
                    if last {
                        *slot = self.value.clone();
                        return Ok(Applied::Yes);
                    }
                    slot
                }
            };
            at = at.join(step);
            here = match slot {
                Value::Table(table) => Cursor::Table(table),
                Value::Array(elements) => Cursor::Array(elements),
                Value::String(kind) if matches!(self.route.get(index + 1), Some(Step::Kind(_))) => {
                    return Ok(Applied::OtherKind { at, chosen: kind.clone() });
                }
                other => return Err(self.refused(format!("{at} is {other} here, which has no keys"))),
            };
        }
        unreachable!("a path has at least one step, and the last returns");
    }

    /// Returns the kind of transport chosen instead, if this edit is about EQDS and the table has no EQDS. The key
    /// `eqif` is exempt: tunnels stand beside the stacks that use them.
    fn other_than_eqds(&self, table: &Table) -> Option<String> {
        let ["transport", "eqds", key, ..] = self.path.steps().iter().map(String::as_str).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let kinds = table.get("transport")?.as_table()?;
        if key == "eqif" || kinds.contains_key("eqds") {
            None
        } else {
            kinds.keys().find(|kind| *kind != "congestion").cloned()
        }
    }

    /// Returns the key and the choice made instead, if this edit is about a stack in EQDS's tunnels that is not there,
    /// or about a stack outside of tunnels where there are tunnels alone.
    fn other_stack(&self, table: &Table) -> Option<(KeyPath, String)> {
        let kinds = table.get("transport")?.as_table()?;
        let eqif = kinds.get("eqds").and_then(|eqds| eqds.get("eqif")).and_then(Value::as_table);
        let carried = ["tcp", "rdma"].into_iter().find(|stack| eqif.is_some_and(|eqif| eqif.contains_key(*stack)));
        let has_both = carried.is_some() && table.contains_key("beside");
        let transport = KeyPath::root().join("transport");
        match self.path.steps().iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["transport", "eqds", "eqif", key, ..] => {
                let fits = match key {
                    // TCP beside RDMA may go through tunnels, too.
                    "tcp" | "rdma" => eqif.is_some_and(|eqif| eqif.contains_key(key)) || has_both,
                    "native" => kinds.contains_key("eqds"),
                    _ => carried.is_some(),
                };
                let without = || kinds.keys().find(|kind| *kind != "congestion").cloned();
                match (fits, carried) {
                    (true, _) => None,
                    (false, Some(stack)) => Some((transport.join("eqds").join("eqif"), stack.to_owned())),
                    (false, None) => Some((transport, without()?)),
                }
            }
            ["transport", stack, ..] if stack != "eqds" && carried.is_none() && kinds.contains_key("eqds") => {
                Some((transport, "eqds".to_owned()))
            }
            _ => None,
        }
    }

    /// Returns an error about this edit.
    pub(crate) fn refused(&self, message: impl Into<String>) -> ScenarioError {
        ScenarioError::new(self.origin.clone(), "", message)
    }

    /// Returns the error for an edit that fits no chosen kind.
    pub(crate) fn other_kind(&self, at: &KeyPath, chosen: &str) -> ScenarioError {
        let kind = &self.path.steps()[at.steps().len()];
        if kind == chosen {
            // There are tunnels, but the stack that `eqif` is about is absent.
            return self.refused(format!(
                "no stack sends through the tunnels of \"{chosen}\" here: give a series that does, as \"tcp+eqds\" or \"roce+eqds\""
            ));
        }
        if at.steps().last().is_some_and(|key| key == "eqif") {
            let series = if kind == "tcp" { "tcp+eqds" } else { "roce+eqds" };
            return self.refused(format!(
                "what goes through the tunnels is \"{chosen}\" here, and nothing that goes there is \"{kind}\": give a series that is, as \"{series}\""
            ));
        }
        let inside = match &self.value {
            // The key itself is the kind.
            value if self.path.steps().len() == at.steps().len() + 1 => value.to_string(),
            _ => "{ ... }".to_owned(),
        };
        self.refused(format!(
            "{at} is \"{chosen}\" here, not \"{kind}\"; replace it as a whole: '{at} = {{ {kind} = {inside} }}'"
        ))
    }
}

enum Cursor<'a> {
    Table(&'a mut Table),
    Array(&'a mut Vec<Value>),
}
