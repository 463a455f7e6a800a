//! Paths through a JSON Schema.

use serde_json::Value;

use crate::document::unknown_name;
use crate::path::KeyPath;

/// Role of one step of a path, according to the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A key of a table.
    Key,
    /// Choice of one of several kinds: "fat-tree" in "topology.fat-tree.k", with the keys that may stand beside the
    /// kind in any of them, mostly the chosen one.
    Kind(Vec<String>),
    /// An element of a list.
    Element,
}

impl Step {
    /// Returns the step as a kind, for a key that is found in a kind with these keys.
    fn or_beside<'a>(self, keys: impl Iterator<Item = &'a String>) -> Self {
        let mut all = if let Self::Kind(all) = self { all } else { Vec::new() };
        all.extend(keys.cloned());
        Self::Kind(all)
    }
}

/// Follows `path` through the schema; the error names the unknown step and suggests a known one.
pub fn route(schema: &Value, path: &KeyPath) -> Result<Vec<Step>, String> {
    follow(schema, path).map(|(route, _)| route)
}

/// Returns whether the value at `path` is a table, and no list.
pub fn wants_table(schema: &Value, path: &KeyPath) -> bool {
    let nodes = follow(schema, path).map_or(Vec::new(), |(_, nodes)| nodes);
    let views: Vec<View<'_>> = nodes.iter().flat_map(|node| views(schema, node)).collect();
    !views.is_empty() && views.iter().all(|view| matches!(view, View::Keys { .. }))
}

/// Returns the steps of `path`, and the schema's nodes at its end.
pub fn follow<'a>(schema: &'a Value, path: &KeyPath) -> Result<(Vec<Step>, Vec<&'a Value>), String> {
    let mut nodes = vec![schema];
    let mut route = Vec::new();
    for (at, step) in path.steps().iter().enumerate() {
        let views: Vec<View<'_>> = nodes.iter().flat_map(|node| views(schema, node)).collect();
        let mut next = Vec::new();
        let mut kind = Step::Key;
        for view in &views {
            match view {
                View::Keys { properties, kinds } => {
                    if let Some(node) = properties.get(step) {
                        next.push(node);
                        if *kinds {
                            kind = kind.or_beside(properties.keys());
                        }
                    }
                }
                View::Elements(node) => {
                    if step.bytes().all(|b| b.is_ascii_digit()) {
                        next.push(node);
                        kind = Step::Element;
                    }
                }
            }
        }
        if next.is_empty() {
            let before = path.steps()[..at].join(".");
            let known: Vec<&str> = views.iter().flat_map(View::names).collect();
            return Err(if !known.is_empty() {
                let what = if at == 0 { "key".to_owned() } else { format!("key in {before}:") };
                unknown_name(&what, step, &known)
            } else if views.is_empty() {
                format!("{before} is a plain value without the key \"{step}\"")
            } else {
                format!("{before} is a list, whose elements are {before}[0], {before}[1], ...")
            });
        }
        nodes = next;
        route.push(kind);
    }
    Ok((route, nodes))
}

/// Further steps that a node of the schema offers.
pub enum View<'a> {
    /// Keys of a table.
    Keys {
        /// The schema of each key.
        properties: &'a serde_json::Map<String, Value>,
        /// Whether these keys are those of one of several kinds.
        kinds: bool,
    },
    /// Elements of a list, and their schema.
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

/// Returns all views of `node`: its own keys and elements, and those of the nodes that it refers to or chooses from.
pub fn views<'a>(root: &'a Value, node: &'a Value) -> Vec<View<'a>> {
    let mut all = Vec::new();
    if let Some(target) = resolved(root, node) {
        all.extend(views(root, target));
    }
    if let Some(properties) = node.get("properties").and_then(Value::as_object) {
        all.push(View::Keys { properties, kinds: false });
    }
    if let Some(items) = node.get("items") {
        all.push(View::Elements(items));
    }
    for (key, kinds) in [("oneOf", true), ("anyOf", false), ("allOf", false)] {
        for option in node.get(key).and_then(Value::as_array).into_iter().flatten() {
            all.extend(views(root, option).into_iter().map(|view| match view {
                View::Keys { properties, kinds: already } => View::Keys { properties, kinds: kinds || already },
                elements @ View::Elements(_) => elements,
            }));
        }
    }
    all
}

/// Returns the node that `node` refers to, if it is a reference.
pub fn resolved<'a>(root: &'a Value, node: &Value) -> Option<&'a Value> {
    let name = node.get("$ref")?.as_str()?;
    Some(root.pointer(name.trim_start_matches('#')).expect("schemars defines what it refers to"))
}
