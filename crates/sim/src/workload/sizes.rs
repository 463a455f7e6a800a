//! Sizes of flows.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::{Bytes, Rng};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Cdf;
use crate::topology::Framing;
use crate::two::Two;
use crate::{ConfigError, Library};

/// Sizes of flows: `"cdf:web-search"` or `"file:sizes.txt"`, `{ uniform = ["500KB", "5MB"] }`, `{ fixed = "64KB" }`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// A distribution by name ("cdf:web-search") or from a file ("file:sizes.txt").
    Named(String),
    /// All sizes from the first to the second equally likely, both included.
    Uniform([Bytes; 2]),
    /// One size for all flows.
    Fixed(Bytes),
}

/// Distribution of sizes, ready for use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SizeDistribution {
    /// Distribution given by points.
    Cdf(Arc<Cdf>),
    /// Uniform distribution from the first to the second size, both included.
    Uniform(Bytes, Bytes),
    /// One size for all flows.
    Fixed(Bytes),
}

impl Sizes {
    /// Builds the distribution.
    ///
    /// # Errors
    /// A size of zero, a range that runs backwards, a name that `library` does not know. The key is empty, "uniform" or
    /// "fixed".
    pub fn build(&self, library: &dyn Library) -> Result<SizeDistribution, ConfigError> {
        match self {
            Self::Named(reference) => library.cdf(reference).map(|cdf| SizeDistribution::Cdf(Arc::new(cdf))),
            Self::Uniform([low, _]) if low.is_zero() => {
                Err(ConfigError::new("uniform", "a flow has at least one byte"))
            }
            Self::Uniform([low, high]) if low > high => {
                Err(ConfigError::new("uniform", format!("found {low} to {high}: put the smaller size first")))
            }
            Self::Uniform([low, high]) => Ok(SizeDistribution::Uniform(*low, *high)),
            Self::Fixed(size) => SizeDistribution::fixed("fixed", *size),
        }
    }
}

impl SizeDistribution {
    /// Returns the distribution of `size` alone, which was written under `key`.
    pub(super) fn fixed(key: &str, size: Bytes) -> Result<Self, ConfigError> {
        if size.is_zero() {
            return Err(ConfigError::new(key, "a flow has at least one byte"));
        }
        Ok(Self::Fixed(size))
    }
    /// Draws a size; at least one byte. Takes one number from `rng`, whatever the distribution.
    pub fn sample(&self, rng: &mut Rng) -> Bytes {
        let draw = rng.next_u64();
        match self {
            Self::Cdf(cdf) => cdf.at(draw),
            Self::Uniform(low, high) => {
                let width = u128::from((*high - *low).get()) + 1;
                *low + Bytes::new(((u128::from(draw) * width) >> 64) as u64)
            }
            Self::Fixed(size) => *size,
        }
    }
    /// Returns the mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Cdf(cdf) => cdf.mean(),
            Self::Uniform(low, high) => (low.get() as f64 + high.get() as f64) / 2.0,
            Self::Fixed(size) => size.get() as f64,
        }
    }
    /// Returns the mean number of packets, each of which carries up to `payload`.
    pub fn mean_packets(&self, payload: Bytes) -> f64 {
        match self {
            Self::Cdf(cdf) => cdf.mean_packets(payload),
            Self::Uniform(low, high) => packets_between(*low - Bytes::new(1), *high, payload),
            Self::Fixed(size) => size.pieces(payload) as f64,
        }
    }
    /// Returns the mean number of bytes on links for each byte of payload, over all flows.
    pub(super) fn expansion(&self, framing: Framing) -> f64 {
        1.0 + framing.overhead.get() as f64 * self.mean_packets(framing.mtu) / self.mean()
    }
}

/// Returns the mean number of packets of the sizes above `low` up to `high`, all equally likely.
pub(super) fn packets_between(low: Bytes, high: Bytes, payload: Bytes) -> f64 {
    // Sum of the packets of all sizes up to `size`.
    let packets = |size: Bytes| {
        let full = u128::from(size.get() / payload.get());
        let payload = u128::from(payload.get());
        payload * full * (full + 1) / 2 + (u128::from(size.get()) - full * payload) * (full + 1)
    };
    (packets(high) - packets(low)) as f64 / (high - low).get() as f64
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Sizes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Sizes, E> {
                if text.starts_with("cdf:") || text.starts_with("file:") {
                    return Ok(Sizes::Named(text.to_owned()));
                }
                let hint = match text.parse::<Bytes>() {
                    Ok(_) => format!("; for one size write {{ fixed = \"{text}\" }}"),
                    Err(_) => String::new(),
                };
                Err(E::custom(format!("found \"{text}\", expected {EXPECTED}{hint}")))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                match Written::deserialize(MapAccessDeserializer::new(map))? {
                    Written { uniform: Some(Two(range)), fixed: None } => Ok(Sizes::Uniform(range)),
                    Written { uniform: None, fixed: Some(size) } => Ok(Sizes::Fixed(size)),
                    _ => Err(A::Error::custom("choose exactly one kind of sizes: uniform or fixed")),
                }
            }
        }
        from.deserialize_any(Forms)
    }
}
impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(reference) => to.serialize_str(reference),
            Self::Uniform(range) => Table::Uniform(*range).serialize(to),
            Self::Fixed(size) => Table::Fixed(*size).serialize(to),
        }
    }
}
impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Table>();
        json_schema!({
            "description": EXPECTED,
            "anyOf": [{ "type": "string", "pattern": "^(cdf|file):.+$" }, table],
        })
    }
}

/// Written form of a table: exactly one of both fields.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    uniform: Option<Two<Bytes>>,
    fixed: Option<Bytes>,
}

/// Forms of [`Sizes`] that are tables.
#[derive(serde::Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SizeTable")]
enum Table {
    /// All sizes from the first to the second equally likely, both included.
    Uniform([Bytes; 2]),
    /// One size for all flows.
    Fixed(Bytes),
}

const EXPECTED: &str =
    "flow sizes: \"cdf:NAME\", \"file:PATH\", { uniform = [\"500KB\", \"5MB\"] } or { fixed = \"64KB\" }";
