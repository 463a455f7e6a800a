//! Series of a scenario file.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Scenario with some values replaced. A text stands for its preset alone: "irn" for { preset = "irn" }.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(transform = or_text)]
pub struct Series {
    /// Name in tables and plots. Without: the preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Scheme by its short name: "irn", "irn+pfc", "roce+pfc", "roce+dcqcn", "tcp".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Case in which the series runs. Without: in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Values by their dotted keys. Each replaces the old value and never merges with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

impl Series {
    /// Returns a series of a preset without changes.
    pub(crate) fn of_preset(preset: &str) -> Self {
        Self { preset: Some(preset.to_owned()), ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Not an untagged enum: that would lose the place of errors and unknown keys.
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = Series;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a scheme, as in \"irn\", or a table, as in { preset = \"irn\" }")
            }
            fn visit_str<E>(self, preset: &str) -> Result<Series, E> {
                Ok(Series::of_preset(preset.trim()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Series, A::Error> {
                // The derived, inherent `deserialize`; that of the trait is the function around it.
                Self::Value::deserialize(MapAccessDeserializer::new(map))
            }
        }
        from.deserialize_any(TextOrTable)
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

/// Extends the schema of `table` by a text in its place.
fn or_text(table: &mut Schema) {
    let description = table.remove("description");
    let text = json_schema!({ "type": "string", "description": "A scheme by its short name: \"irn\"." });
    *table = json_schema!({ "anyOf": [text, table.clone()] });
    if let Some(description) = description {
        table.insert("description".to_owned(), description);
    }
}
