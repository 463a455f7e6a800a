//! Operations of applications, and their frequencies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::{Bytes, Duration, HostId, Rng};
use selvedge_wire::Header;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::ConfigError;
use crate::topology::{Framing, Paths};

/// Operation of an application.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// RDMA Write.
    Write,
    /// RDMA Write with immediate, which also completes a receive request.
    WriteImmediate,
    /// RDMA Read.
    Read,
    /// Send, which delivers a message into a receive request.
    Send,
    /// Send with four bytes of immediate data.
    SendImmediate,
    /// Atomic addition of 1 to a word of the responder that all requesters share.
    FetchAdd,
    /// Atomic compare and swap, which raises a word of the responder by 1 if it has its last known value.
    CompareSwap,
}

impl Verb {
    /// Returns the operation's name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::WriteImmediate => "write-immediate",
            Self::Read => "read",
            Self::Send => "send",
            Self::SendImmediate => "send-immediate",
            Self::FetchAdd => "fetch-add",
            Self::CompareSwap => "compare-swap",
        }
    }
    /// Returns whether the operation concerns a word of 8 bytes.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CompareSwap)
    }
    /// Returns the operation's time in an empty network: its payload in one direction, and a short packet (a request,
    /// an acknowledgement) in the other. Headers are those of plain RoCE, `gap` is part of `framing`; a message longer
    /// than what a queue pair may have in flight takes longer. `None` where no path is left.
    pub fn ideal(
        self,
        paths: &Paths,
        [src, dst]: [HostId; 2],
        size: Bytes,
        framing: Framing,
        gap: Bytes,
    ) -> Option<Duration> {
        let one = Bytes::new(1);
        let short = Framing { mtu: one, overhead: Header::MINIMUM_FRAME + gap - one, least: Bytes::ZERO };
        let shortest = |from, to| paths.ideal_fct(from, to, one, short);
        let message = |from, to| paths.ideal_fct(from, to, size, framing);
        Some(match self {
            Self::Write | Self::WriteImmediate | Self::Send | Self::SendImmediate => {
                message(src, dst)? + shortest(dst, src)?
            }
            Self::Read => shortest(src, dst)? + message(dst, src)?,
            Self::FetchAdd | Self::CompareSwap => shortest(src, dst)? + shortest(dst, src)?,
        })
    }
    /// Returns whether payload goes with the request, and not with the answer.
    pub const fn carries(self) -> bool {
        !matches!(self, Self::Read | Self::FetchAdd | Self::CompareSwap)
    }
}

/// Operations of applications: at random by weights, or in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operations {
    /// Random operations, in proportion to their weights.
    Weights(BTreeMap<Verb, u32>),
    /// Operations in turn, round again after the last.
    InTurn(Vec<Verb>),
}

impl Default for Operations {
    fn default() -> Self {
        Self::InTurn(vec![Verb::Write])
    }
}

impl Operations {
    /// Returns whether any operation is a Read.
    pub fn has_reads(&self) -> bool {
        self.shares().iter().any(|&(verb, _)| verb == Verb::Read)
    }
    /// Returns each operation that occurs, with its share of all.
    pub(super) fn shares(&self) -> Vec<(Verb, f64)> {
        let mut counts: BTreeMap<Verb, u32> = BTreeMap::new();
        match self {
            Self::Weights(weights) => counts.extend(weights.iter().filter(|&(_, &weight)| weight > 0)),
            Self::InTurn(verbs) => verbs.iter().for_each(|&verb| *counts.entry(verb).or_default() += 1),
        }
        let total: f64 = counts.values().map(|&count| f64::from(count)).sum();
        counts.into_iter().map(|(verb, count)| (verb, f64::from(count) / total)).collect()
    }
    /// Returns the operation of the `n`-th message. Takes one number from `rng`, whatever the form.
    pub(super) fn pick(&self, n: u64, rng: &mut Rng) -> Verb {
        match self {
            Self::Weights(weights) => {
                let mut left = rng.below(weights.values().map(|&weight| u64::from(weight)).sum());
                for (&verb, &weight) in weights {
                    match left.checked_sub(weight.into()) {
                        None => return verb,
                        Some(rest) => left = rest,
                    }
                }
                unreachable!("the draw is below the sum")
            }
            Self::InTurn(verbs) => {
                rng.next_u64();
                verbs[(n % verbs.len() as u64) as usize]
            }
        }
    }
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.shares().is_empty() {
            let message = "nothing is asked for: name an operation, as [\"write\"], or give one a weight above 0";
            return Err(ConfigError::new("operations", message));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Operations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Operations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Operations, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(Operations::Weights)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Operations, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Operations::InTurn)
            }
        }
        from.deserialize_any(Forms)
    }
}
impl Serialize for Operations {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Weights(weights) => weights.serialize(to),
            Self::InTurn(verbs) => verbs.serialize(to),
        }
    }
}
impl JsonSchema for Operations {
    fn schema_name() -> Cow<'static, str> {
        "Operations".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let verb = generator.subschema_for::<Verb>();
        json_schema!({
            "description": EXPECTED,
            "anyOf": [
                { "type": "object", "propertyNames": verb, "additionalProperties": { "type": "integer", "minimum": 0 } },
                { "type": "array", "items": verb, "minItems": 1 },
            ],
        })
    }
}

const EXPECTED: &str = "operations: weights, as { write = 3, read = 1 }, or in turn, as [\"write\", \"send\"]";
