//! The JSON Schema of scenario files, and what it says about a path.

use serde_json::Value;

use crate::document::unknown_name;
use crate::path::KeyPath;
use crate::scenario::Scenario;

/// The JSON Schema (draft 2020-12) of a scenario file, as editors and `selvedge schema` want it.
pub fn schema() -> Value {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Scenario>().to_value()
}

/// How a path runs through the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// For each step: whether it chooses one of several kinds ("fat-tree" in "topology.fat-tree.k").
    pub(crate) choices: Vec<bool>,
}

/// Follows `path` through the schema; says which step is unknown and what was meant.
pub(crate) fn route(schema: &Value, path: &KeyPath) -> Result<Route, String> {
    let mut nodes = vec![schema];
    let mut choices = Vec::new();
    for (at, step) in path.steps().iter().enumerate() {
        let views: Vec<View<'_>> = nodes.iter().flat_map(|node| views(schema, node)).collect();
        let mut next = Vec::new();
        let mut choice = false;
        for view in &views {
            match view {
                View::Keys { properties, chosen } => {
                    if let Some(node) = properties.get(step) {
                        next.push(node);
                        choice |= chosen;
                    }
                }
                View::Elements(node) if step.bytes().all(|b| b.is_ascii_digit()) => next.push(node),
                View::Elements(_) => {}
            }
        }
        if next.is_empty() {
            let before = KeyPath::parse(&path.steps()[..at].join("."));
            let known: Vec<&str> = views.iter().flat_map(View::names).collect();
            let inside = before.map(|path| format!(" in {path}")).unwrap_or_default();
            return Err(if known.is_empty() && views.iter().any(|view| matches!(view, View::Elements(_))) {
                format!("\"{step}\" is not an index{inside}: elements are numbered from 0")
            } else {
                unknown_name("key", step, &known) + &inside
            });
        }
        nodes = next;
        choices.push(choice);
    }
    Ok(Route { choices })
}

/// What a node of the schema offers to a further step.
enum View<'a> {
    Keys { properties: &'a serde_json::Map<String, Value>, chosen: bool },
    Elements(&'a Value),
}

impl<'a> View<'a> {
    fn names(&self) -> Vec<&'a str> {
        match self {
            Self::Keys { properties, .. } => properties.keys().map(String::as_str).collect(),
            Self::Elements(_) => Vec::new(),
        }
    }
}

/// All views of `node`: its own keys and elements, and those of what it refers to or chooses from.
fn views<'a>(root: &'a Value, node: &'a Value) -> Vec<View<'a>> {
    let mut all = Vec::new();
    if let Some(name) = node.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(name.trim_start_matches('#')).expect("schemars defines what it refers to");
        all.extend(views(root, target));
    }
    if let Some(properties) = node.get("properties").and_then(Value::as_object) {
        all.push(View::Keys { properties, chosen: false });
    }
    if let Some(items) = node.get("items") {
        all.push(View::Elements(items));
    }
    for (key, chosen) in [("oneOf", true), ("anyOf", false), ("allOf", false)] {
        for option in node.get(key).and_then(Value::as_array).into_iter().flatten() {
            all.extend(views(root, option).into_iter().map(|view| match view {
                View::Keys { properties, chosen: already } => View::Keys { properties, chosen: chosen || already },
                elements @ View::Elements(_) => elements,
            }));
        }
    }
    all
}
