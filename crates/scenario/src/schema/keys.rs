//! Help about the keys of a scenario file, derived from the schema place by place.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use selvedge_document::{KeyPath, follow, resolved};
use selvedge_units::words::{lines, one_of};
use serde_json::Value;

use super::schema;
use crate::describe::alternatives;
use crate::error::ScenarioError;
use crate::suggest;

/// Description of one place of a scenario file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyHelp {
    /// Path of the place, as "workload.incast"; empty for the whole file.
    path: String,
    about: String,
    /// Values that may be written there, beside keys.
    takes: String,
    keys: Vec<Key>,
}

/// Key of a table, or word in the place of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    name: String,
    takes: String,
    /// Effect of leaving the key out: a value, "required", or nothing.
    without: String,
    about: String,
    /// Place of the keys inside, if it has a description of its own.
    inside: Option<String>,
}

impl KeyHelp {
    /// Returns the description of `path`: "" is the whole file.
    ///
    /// # Errors
    /// Returns an error if nothing may stand at `path`: the message names the unknown step and suggests a known one.
    pub fn of(path: &str) -> Result<Self, ScenarioError> {
        let schema = schema();
        let wrong = |message: String| ScenarioError::argument(path.to_owned(), message);
        let parsed = match path {
            "" => KeyPath::root(),
            _ => {
                KeyPath::parse(path).ok_or_else(|| wrong("not a key; expected one as in workload.incast".to_owned()))?
            }
        };
        let none = toml::Table::new();
        let (_, nodes) =
            follow(&schema, &parsed).map_err(|message| wrong(suggest::elsewhere(&schema, &parsed, &none, &message)))?;
        Ok(Reader(&schema).help(path, &nodes))
    }

    /// Returns the description as a section of the page.
    fn section(&self) -> String {
        let mut section = String::new();
        if !self.path.is_empty() {
            let _ = write!(section, "\n## {}\n\n{}\n", self.path, self.about);
        }
        section.push_str("\n| key | takes | without it | |\n|---|---|---|---|\n");
        for Key { name, takes, without, about, .. } in &self.keys {
            let _ = writeln!(section, "| `{name}` | {takes} | {without} | {about} |");
        }
        section
    }

    /// Returns the description of all keys, as a page in Markdown.
    pub fn page() -> String {
        let schema = schema();
        let reader = Reader(&schema);
        let mut page = String::from(
            "# Keys of scenario files\n\nWritten by `cargo xtask schema`; `selvedge keys workload.incast` shows a part of it. A scenario to \
             begin with is in [scenarios.md](scenarios.md).\n",
        );
        let mut seen = BTreeSet::new();
        reader.write(&mut page, "", &[&schema], &mut seen);
        page
    }
}

/// Text for a terminal.
impl fmt::Display for KeyHelp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: usize = 100;
        if !self.path.is_empty() {
            writeln!(f, "{}: {}", self.path, self.takes)?;
        }
        lines(&self.about, WIDTH).iter().try_for_each(|line| writeln!(f, "{line}"))?;
        for key in &self.keys {
            writeln!(f)?;
            let without = match key.without.as_str() {
                "" => String::new(),
                "required" => " (required)".to_owned(),
                value => format!(" (default: {value})"),
            };
            let takes = if key.takes.is_empty() { String::new() } else { format!(" = {}", key.takes) };
            writeln!(f, "  {}{takes}{without}", key.name)?;
            lines(&key.about, WIDTH - 6).iter().try_for_each(|line| writeln!(f, "      {line}"))?;
        }
        let inner: Vec<&Key> = self.keys.iter().filter(|key| key.inside.is_some()).collect();
        if let Some(place) = inner.first().and_then(|first| first.inside.as_ref()) {
            let names: Vec<&str> = inner.iter().map(|key| key.name.as_str()).collect();
            writeln!(f, "\nThere is more inside {}: selvedge keys {place}", one_of(&names))?;
        }
        Ok(())
    }
}

/// Reader of a schema.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a Value);

impl<'a> Reader<'a> {
    /// Returns the description of `path`, for which `nodes` are the schema's nodes.
    fn help(self, path: &str, nodes: &[&'a Value]) -> KeyHelp {
        let tables: Vec<_> = nodes.iter().flat_map(|node| self.tables(node)).collect();
        let has_choice = tables.len() > 1;
        let mut keys: Vec<Key> = Vec::new();
        for node in nodes.iter().flat_map(|node| self.words(node)) {
            let (name, about) = (node["const"].to_string(), self.about_key(node));
            // The same words may be reached by several paths.
            if keys.iter().any(|key| key.name == name) {
                continue;
            }
            keys.push(Key { name, takes: String::new(), without: String::new(), about, inside: None });
        }
        for table in &tables {
            let properties = table["properties"].as_object().expect("tables have keys");
            let required =
                |name: &str| table["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            for (name, node) in properties {
                if keys.iter().any(|key| key.name == *name) {
                    continue;
                }
                // One kind of several: the description of the kind is that of its table.
                let is_kind = has_choice && properties.len() == 1;
                let without = match node.get("default").and_then(short) {
                    Some(value) => value,
                    None if required(name) && !has_choice => "required".to_owned(),
                    None => String::new(),
                };
                let about = if is_kind { self.about(&[table, node]) } else { self.about_key(node) };
                let opens = !self.tables(node).is_empty() || !self.words(node).is_empty();
                let inside = if opens { self.inside(path, name).map(|(place, _)| place) } else { None };
                keys.push(Key { name: name.clone(), takes: self.takes_as_key(node), without, about, inside });
            }
        }
        let takes = alternatives(nodes.iter().map(|node| self.takes(node)));
        KeyHelp { path: path.to_owned(), about: self.about(nodes), takes, keys }
    }

    /// Writes the description of `path` and of its keys; a description that was written before under another name is
    /// referred to.
    fn write(self, page: &mut String, path: &str, nodes: &[&'a Value], seen: &mut BTreeSet<String>) {
        let help = self.help(path, nodes);
        page.push_str(&help.section());
        for key in help.keys.iter().filter(|key| key.inside.is_some()) {
            let Some((place, nodes)) = self.inside(path, &key.name) else { continue };
            if seen.insert(self.identity(&nodes)) {
                self.write(page, &place, &nodes, seen);
            }
        }
    }

    /// Returns the place of a key inside `path`, and the nodes that describe it. For a list, the keys are those of its
    /// elements.
    fn inside(self, path: &str, key: &str) -> Option<(String, Vec<&'a Value>)> {
        let places = [key.to_owned(), format!("{path}.{key}"), format!("{path}[0].{key}")];
        let mut places = places.into_iter().skip(usize::from(!path.is_empty()));
        places.find_map(|place| {
            let (_, nodes) = follow(self.0, &KeyPath::parse(&place)?).ok()?;
            Some((place, nodes))
        })
    }

    /// Returns a text that is equal for nodes whose tables are the same.
    fn identity(self, nodes: &[&'a Value]) -> String {
        nodes
            .iter()
            .flat_map(|node| self.tables(node))
            .chain(nodes.iter().flat_map(|node| self.words(node)))
            .map(|table| format!("{:p} ", std::ptr::from_ref(table)))
            .collect()
    }

    /// Returns the tables that may stand at `node`, or in a list there.
    fn tables(self, node: &'a Value) -> Vec<&'a Value> {
        let own = node.get("properties").map(|_| node);
        let inner = self.options(node).chain(node.get("items"));
        own.into_iter().chain(inner.flat_map(|inner| self.tables(inner))).fold(Vec::new(), |mut all, table| {
            if !all.iter().any(|known| std::ptr::eq(*known, table)) {
                all.push(table);
            }
            all
        })
    }

    /// Returns the words that may stand at `node`, if they have descriptions.
    fn words(self, node: &'a Value) -> Vec<&'a Value> {
        let own = node.get("const").and(node.get("description")).map(|_| node);
        own.into_iter().chain(self.options(node).flat_map(|option| self.words(option))).collect()
    }

    /// Returns the nodes that `node` refers to, or chooses from.
    fn options(self, node: &'a Value) -> impl Iterator<Item = &'a Value> {
        let lists = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|key| node.get(key)?.as_array());
        resolved(self.0, node).into_iter().chain(lists.flatten())
    }

    /// Returns the description of the first of `nodes` that has one.
    fn about(self, nodes: &[&'a Value]) -> String {
        let said = |node: &&'a Value| -> Option<&'a str> {
            let own = node["description"].as_str().filter(|text| !is_form(text));
            own.or_else(|| {
                self.options(node).find_map(|option| option["description"].as_str().filter(|text| !is_form(text)))
            })
        };
        nodes.iter().find_map(said).map(plain).unwrap_or_default()
    }

    /// Returns the description of a key or a word: its own, or else that of the node it refers to.
    fn about_key(self, node: &'a Value) -> String {
        node["description"].as_str().map_or_else(|| self.about(&[node]), plain)
    }

    /// Returns the values that may be written where `node` describes them.
    fn takes(self, node: &'a Value) -> String {
        match node["description"].as_str().filter(|text| is_form(text) && node.get("const").is_none()) {
            Some(form) => plain(form),
            None => self.takes_as_key(node),
        }
    }

    /// Returns the values that may be written for a key whose own description does not list them.
    fn takes_as_key(self, node: &'a Value) -> String {
        if let Some(word) = node.get("const") {
            return word.to_string();
        }
        if node.get("properties").is_some() {
            return "{ ... }".to_owned();
        }
        let options: Vec<String> = match node["enum"].as_array() {
            Some(words) => words.iter().map(Value::to_string).collect(),
            None => self.options(node).map(|option| self.takes(option)).filter(|takes| !takes.is_empty()).collect(),
        };
        if !options.is_empty() {
            return alternatives(options);
        }
        let of_type = |name: &str| match name {
            "string" => "a text".to_owned(),
            "integer" => "a whole number".to_owned(),
            "number" => "a number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "array" => format!("[{}, ...]", node.get("items").map_or("...".to_owned(), |items| self.takes(items))),
            "object" => "{ key = value, ... }".to_owned(),
            _ => String::new(),
        };
        match &node["type"] {
            Value::String(name) => of_type(name),
            Value::Array(names) => {
                names.iter().filter_map(Value::as_str).map(of_type).find(|takes| !takes.is_empty()).unwrap_or_default()
            }
            _ => String::new(),
        }
    }
}

/// Returns whether a description is about the notation of a value, as "a time, as in ..." is, not about its meaning.
fn is_form(description: &str) -> bool {
    description.starts_with(|c: char| !c.is_uppercase())
}

/// Returns a default value as it would be written, unless that is long.
fn short(value: &Value) -> Option<String> {
    const WIDEST: usize = 24;
    let text = match value {
        Value::Null | Value::Object(_) => return None,
        other => other.to_string(),
    };
    (text.chars().count() <= WIDEST).then_some(text)
}

/// Returns a description in one line, without the marks of rustdoc's links.
fn plain(text: &str) -> String {
    let mut plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(begin) = plain.find("[`") {
        let Some(end) = plain[begin..].find("`]").map(|at| begin + at) else { break };
        let target = plain[end + 2..].starts_with('(').then(|| plain[end..].find(')')).flatten();
        let rest = target.map_or(end + 2, |at| end + at + 1);
        plain = format!("{}{}{}", &plain[..begin], &plain[begin + 2..end], &plain[rest..]);
    }
    plain.replace("\\[", "[").replace("\\]", "]")
}
