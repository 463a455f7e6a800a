//! TOML text with the place of each of its keys.

use std::collections::BTreeMap;
use std::ops::Range;

use selvedge_units::words::{nearest, one_of};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{DocumentError, Place};
use crate::path::KeyPath;
use crate::route::wants_table;

/// A TOML text and the places of its keys.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    text: String,
    /// Whether the user can see the text. If not, messages give no lines and columns.
    is_file: bool,
    /// Lines at the beginning of the text that the user's file does not have.
    lines_before: usize,
    spans: BTreeMap<KeyPath, Spans>,
}

/// Byte ranges of a key and its value.
#[derive(Clone, Debug)]
struct Spans {
    key: Range<usize>,
    value: Range<usize>,
    list: Option<List>,
}

/// Notation of a list.
#[derive(Clone, Copy, Debug)]
enum List {
    InBrackets,
    /// Notation as `[[tables]]`.
    OfTables,
}

/// Error in a text: the key, and the fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The key.
    pub path: KeyPath,
    /// Bytes of the text that the error is about.
    span: Range<usize>,
    /// The fault, and what would be right.
    pub message: String,
}

impl Document {
    /// Reads the syntax. `name` is the file's name in messages.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        Self::parse_behind(0, name, text.to_owned())
    }

    /// Returns this text with values for keys of the root that it lacks. Each of `lines` begins with its key. Messages
    /// count the lines of the text as it was.
    ///
    /// # Errors
    /// If a line is not TOML.
    pub fn completed(self, lines: &[&str]) -> Result<Self, DocumentError> {
        let key = |line: &&&str| line.split([' ', '=']).next().map(|key| KeyPath::root().join(key)).unwrap_or_default();
        let missing: Vec<&str> = lines.iter().filter(|line| !self.spans.contains_key(&key(line))).copied().collect();
        let text = missing.iter().map(|line| format!("{line}\n")).chain([self.text.clone()]).collect::<String>();
        Ok(Self { is_file: self.is_file, ..Self::parse_behind(missing.len(), &self.name, text)? })
    }

    fn parse_behind(lines_before: usize, name: &str, text: String) -> Result<Self, DocumentError> {
        let mut document = Self { name: name.to_owned(), text, is_file: true, lines_before, spans: BTreeMap::new() };
        let text = document.text.as_str();
        match DeTable::parse(text) {
            Ok(root) => collect(root.get_ref(), &KeyPath::root(), &mut document.spans),
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                return Err(DocumentError::new(document.at(offset), "", format!("not TOML: {}", error.message())));
            }
        }
        // Numbers are read only now; all other faults were found before.
        match toml::from_str::<toml::Table>(text) {
            Ok(_) => Ok(document),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                let message = format!("too large a number: TOML's go up to {}", i64::MAX);
                Err(DocumentError::new(document.at(span.start), document.path_at(&span).to_string(), message))
            }
        }
    }

    /// Returns this text marked as unseen: messages quote no lines of it, because no user has it in front of them.
    pub fn unseen(self) -> Self {
        Self { is_file: false, ..self }
    }

    /// Returns the values of the text as a `T`, which `schema` describes. `elsewhere` may extend the message about an
    /// unknown key by places that have such a key.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value has another type.
    pub fn read<T: DeserializeOwned>(
        &self,
        schema: &Json,
        elsewhere: impl FnOnce(&Json, &KeyPath, &toml::Table, &str) -> String,
    ) -> Result<T, Mismatch> {
        if let Some(mismatch) = self.misplaced_list(schema) {
            return Err(mismatch);
        }
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let path = self.path_at(&span);
            let mut message = reworded(error.message(), &path);
            if message.starts_with("unknown ") {
                message = elsewhere(schema, &path, &self.table(), &message);
            }
            Mismatch { path, span, message }
        })
    }

    /// Returns the error for a list in the place of a table, which serde takes for a table without its keys.
    fn misplaced_list(&self, schema: &Json) -> Option<Mismatch> {
        self.spans.iter().find_map(|(path, spans)| {
            let list = spans.list?;
            wants_table(schema, path).then(|| {
                let message = match list {
                    List::OfTables => format!("found a list of tables, [[{path}]]; expected one table, [{path}]"),
                    List::InBrackets => "found a list in [ ], expected a table in { }".to_owned(),
                };
                Mismatch { path: path.clone(), span: spans.key.clone(), message }
            })
        })
    }

    /// Returns the values of the text, untyped.
    ///
    /// # Panics
    /// Never: the text was parsed before.
    pub fn table(&self) -> toml::Table {
        toml::from_str(&self.text).expect("the text was parsed before")
    }

    /// Returns `mismatch`, an error of this document, with its place.
    pub fn error(&self, mismatch: Mismatch) -> DocumentError {
        DocumentError::new(self.at(mismatch.span.start), mismatch.path.to_string(), mismatch.message)
    }

    /// Returns the place of the key at `path`, or of the nearest enclosing item that is written.
    pub fn place(&self, path: &KeyPath) -> Place {
        let mut steps = path.steps().to_vec();
        while !steps.is_empty() {
            let prefix = steps.iter().fold(KeyPath::root(), |path, step| path.join(step));
            if let Some(spans) = self.spans.get(&prefix) {
                return self.at(spans.key.start);
            }
            steps.pop();
        }
        if self.is_file { Place::File(self.name.clone()) } else { Place::Argument(self.name.clone()) }
    }

    /// Returns the place of a byte of the text.
    fn at(&self, offset: usize) -> Place {
        if !self.is_file {
            return Place::Argument(self.name.clone());
        }
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place::At {
            file: self.name.clone(),
            line: (before.matches('\n').count() + 1).saturating_sub(self.lines_before).max(1),
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Returns the key that an error with this span is about: the key which, or whose value, has exactly this span, or
    /// else the innermost around it.
    fn path_at(&self, span: &Range<usize>) -> KeyPath {
        // The root has no span of its own.
        if span.is_empty() {
            return KeyPath::root();
        }
        let exact = |(_, spans): &(&KeyPath, &Spans)| spans.key == *span || spans.value == *span;
        let deepest = |(path, _): &(&KeyPath, &Spans)| path.steps().len();
        if let Some((path, _)) = self.spans.iter().filter(exact).max_by_key(deepest) {
            return path.clone();
        }
        let around = |(_, spans): &(&KeyPath, &Spans)| spans.value.start <= span.start && span.end <= spans.value.end;
        let width = |(_, spans): &(&KeyPath, &Spans)| spans.value.len();
        self.spans.iter().filter(around).min_by_key(width).map(|(path, _)| path.clone()).unwrap_or_default()
    }
}

fn collect(table: &DeTable<'_>, path: &KeyPath, spans: &mut BTreeMap<KeyPath, Spans>) {
    for (key, value) in table {
        collect_value(key.span(), value, path.join(key.get_ref().as_ref()), spans);
    }
}

fn collect_value(key: Range<usize>, value: &Spanned<DeValue<'_>>, path: KeyPath, spans: &mut BTreeMap<KeyPath, Spans>) {
    let mut list = None;
    match value.get_ref() {
        DeValue::Table(table) => collect(table, &path, spans),
        DeValue::Array(elements) => {
            let of_tables = elements.iter().next().is_some_and(|first| matches!(first.get_ref(), DeValue::Table(_)));
            list = Some(if of_tables { List::OfTables } else { List::InBrackets });
            for (index, element) in elements.iter().enumerate() {
                collect_value(element.span(), element, path.join(index.to_string()), spans);
            }
        }
        _ => {}
    }
    spans.insert(path, Spans { key, value: value.span(), list });
}

/// Returns the message of serde in the terms of TOML.
fn reworded(message: &str, path: &KeyPath) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = path.steps().last().map_or("", String::as_str);
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return unknown("key", rest);
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return unknown("choice", rest);
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("the key {} is missing", field.replace('`', "\""));
    }
    if message.starts_with("wanted exactly 1 element") {
        return format!("choose exactly one kind of {name}");
    }
    if message == "wanted string or table" {
        return "expected a name in quotes, or a table in { }; `selvedge schema` lists the choices".to_owned();
    }
    match message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: ")) {
        Some(rest) => format!("found {}", in_toml_words(&rest.replace('`', ""))),
        None => message.replace('`', "\""),
    }
}

/// Replaces Rust's and serde's names of types with those of TOML.
fn in_toml_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let found = found.replace("map", "a table").replace("sequence", "a list").replace("string", "the text");
    let found = found.replace("unit variant", "a name alone");
    let most = match expected {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        // TOML files cannot hold numbers beyond this.
        _ => i64::MAX,
    };
    let up_to = format!("a whole number from 0 to {most}");
    let digits = found.trim_start_matches("integer ").trim_start_matches("the text ").trim_matches('"');
    let is_too_large = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" if is_too_large => &up_to,
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or above",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list in [ ]",
        "a map" => "a table in { }",
        "struct variant" | "newtype variant" => "a table with its settings, as in { name = { ... } }",
        "unit variant" => "a name alone, in quotes",
        other if other.starts_with("struct ") => "a table in { }",
        other => other,
    };
    format!("{found}, expected {expected}")
}

/// Rewords "`headrom`, expected one of `enabled`, `headroom`".
fn unknown(what: &str, rest: &str) -> String {
    let (found, expected) = rest.split_once(", ").unwrap_or((rest, ""));
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    unknown_name(what, found.trim_matches('`'), &known)
}

/// Returns the message for a name that does not exist, with the nearest that does.
pub fn unknown_name(what: &str, found: &str, known: &[&str]) -> String {
    match nearest(found, known.iter().copied()) {
        Some(meant) => format!("unknown {what} \"{found}\"; did you mean \"{meant}\"?"),
        None => {
            // Choices that may be written with or without settings are listed twice.
            let mut once: Vec<&str> = Vec::new();
            for name in known {
                if !once.contains(name) {
                    once.push(name);
                }
            }
            format!("unknown {what} \"{found}\"; known here: {}", one_of(&once))
        }
    }
}
