//! One or several tables under one key.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Any number of tables under one key: none, one (`[workload.poisson]`) or an array of tables
/// (`[[workload.poisson]]`).
#[derive(Clone, PartialEq, Debug)]
pub struct Many<T>(pub Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
impl<T> From<T> for Many<T> {
    fn from(one: T) -> Self {
        Self(vec![one])
    }
}
impl<T> Deref for Many<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}
impl<T> Many<T> {
    /// Returns whether there is no table; a method for serde.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // This is not an untagged enum, which would lose the place of errors and unknown keys.
        struct OneOrSeveral<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrSeveral<T> {
            type Value = Many<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or an array of tables")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Many<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Many::from)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Many<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Many)
            }
        }
        from.deserialize_any(OneOrSeveral(PhantomData))
    }
}
impl<T: Serialize> Serialize for Many<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(to),
            several => several.serialize(to),
        }
    }
}
impl<T: JsonSchema> JsonSchema for Many<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrSeveral{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
