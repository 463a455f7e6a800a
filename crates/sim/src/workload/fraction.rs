//! Fractions of a whole.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Fraction above 0 and at most 1: of a link's rate, of the flows. Written as 0.7 or "70%".
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Fraction(f64);

impl Fraction {
    /// Returns the fraction `value`; `None` unless it is above 0 and at most 1.
    pub fn new(value: f64) -> Option<Self> {
        (value > 0.0 && value <= 1.0).then_some(Self(value))
    }
    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
    /// Returns this part of `whole`, to the nearest integer.
    pub fn of(self, whole: u64) -> u64 {
        // `as` saturates; beyond 2^53 the nearest representable number suffices.
        ((whole as f64 * self.0).round() as u64).min(whole)
    }
}

impl FromStr for Fraction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, parts) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let value = number.parse::<f64>().ok().and_then(|value| Self::new(value / parts));
        value.ok_or_else(|| format!("found \"{text}\", expected {EXPECTED}"))
    }
}
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Fraction;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Fraction, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Fraction, E> {
                Fraction::new(value).ok_or_else(|| E::custom(format!("found {value}, expected {EXPECTED}")))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Fraction, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Fraction, E> {
                self.visit_f64(value as f64)
            }
        }
        from.deserialize_any(Either)
    }
}
impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}
impl JsonSchema for Fraction {
    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": EXPECTED,
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^[0-9.eE+-]+ *%?$" },
            ],
        })
    }
}

const EXPECTED: &str = "a fraction above 0 and at most 1, as 0.7 or \"70%\"";
