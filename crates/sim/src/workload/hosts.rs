//! Hosts by number, by name, and by range.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::words::{did_you_mean, in_ranges};
use selvedge_units::{HostId, Rng};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::ConfigError;
use crate::topology::Graph;

/// Reference to one host: its number (17) or its name ("h17").
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostRef {
    /// Number of the host, from 0.
    Number(u64),
    /// Name of the host.
    Name(String),
}

/// List of hosts: an array of numbers, names and ranges ("h0..h26", both ends included), or a single one of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts(pub Vec<HostRef>);

impl HostRef {
    /// Returns the host in `graph`.
    ///
    /// # Errors
    /// No host has this number or name; the key is empty.
    pub fn resolve(&self, graph: &Graph) -> Result<HostId, ConfigError> {
        Index::new(graph).find(self)
    }
}

impl Hosts {
    /// Returns the hosts in `graph`, in the order written; all of them for `None`.
    ///
    /// # Errors
    /// A number or name that no host has, a range that runs backwards, a host that is named twice, an empty list; the
    /// key is empty.
    pub fn resolve(hosts: Option<&Self>, graph: &Graph) -> Result<Vec<HostId>, ConfigError> {
        let Some(Self(written)) = hosts else {
            return Ok(graph.host_ids().collect());
        };
        let index = Index::new(graph);
        let mut found = Vec::new();
        let mut seen = vec![false; graph.hosts.len()];
        for host in written {
            for n in index.range(host)? {
                if std::mem::replace(&mut seen[n as usize], true) {
                    let name = &graph.hosts[n as usize].name;
                    return Err(ConfigError::new("", format!("host \"{name}\" is named twice")));
                }
                found.push(HostId(n));
            }
        }
        if found.is_empty() {
            return Err(ConfigError::new("", "no hosts: name some, or leave the key out for all"));
        }
        Ok(found)
    }
}

/// Returns one of `hosts` (in ascending order) other than `src`, all equally likely.
///
/// # Panics
/// When there is no other host.
pub(super) fn other_than(src: HostId, hosts: &[HostId], rng: &mut Rng) -> HostId {
    let own = hosts.binary_search(&src).ok();
    let choice = rng.below(hosts.len() as u64 - u64::from(own.is_some())) as usize;
    hosts[choice + usize::from(own.is_some_and(|own| choice >= own))]
}

/// Hosts, indexed by name.
struct Index<'a> {
    graph: &'a Graph,
    names: BTreeMap<&'a str, u32>,
}

impl<'a> Index<'a> {
    fn new(graph: &'a Graph) -> Self {
        let name = |host: HostId| graph.hosts[host.index()].name.as_str();
        Self { graph, names: graph.host_ids().map(|host| (name(host), host.0)).collect() }
    }
    fn find(&self, host: &HostRef) -> Result<HostId, ConfigError> {
        match host {
            HostRef::Number(n) => match u32::try_from(*n) {
                Ok(small) if small < self.graph.host_count() => Ok(HostId(small)),
                _ => {
                    let last = self.graph.host_count().saturating_sub(1);
                    Err(ConfigError::new("", format!("there is no host {n}: hosts are numbered from 0 to {last}")))
                }
            },
            HostRef::Name(name) => match self.names.get(name.as_str()) {
                Some(&n) => Ok(HostId(n)),
                None => {
                    let hint = did_you_mean(name, self.names.keys().copied());
                    let hosts = self.graph.host_ids().map(|host| self.graph.hosts[host.index()].name.as_str());
                    let hint = if hint.is_empty() { format!(": there are {}", in_ranges(hosts)) } else { hint };
                    Err(ConfigError::new("", format!("there is no host \"{name}\"{hint}")))
                }
            },
        }
    }
    fn range(&self, host: &HostRef) -> Result<std::ops::RangeInclusive<u32>, ConfigError> {
        let ends = match host {
            HostRef::Name(range) if !self.names.contains_key(range.as_str()) => range.split_once(".."),
            _ => None,
        };
        let Some((first, last)) = ends else {
            return self.find(host).map(|HostId(n)| n..=n);
        };
        let end = |text: &str| match text.trim().parse() {
            Ok(n) if !self.names.contains_key(text.trim()) => self.find(&HostRef::Number(n)),
            _ => self.find(&HostRef::Name(text.trim().to_owned())),
        };
        let (HostId(first), HostId(last)) = (end(first)?, end(last)?);
        if first > last {
            let HostRef::Name(range) = host else { unreachable!("ranges are text") };
            return Err(ConfigError::new("", format!("the range \"{range}\" runs backwards: put the lower end first")));
        }
        Ok(first..=last)
    }
}

impl<'de> Deserialize<'de> for HostRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = HostRef;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host: its number or its name in quotes")
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<HostRef, E> {
                Ok(HostRef::Number(n))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<HostRef, E> {
                u64::try_from(n)
                    .map(HostRef::Number)
                    .map_err(|_| E::custom(format!("there is no host {n}: hosts are numbered from 0")))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<HostRef, E> {
                Ok(HostRef::Name(name.to_owned()))
            }
        }
        from.deserialize_any(Either)
    }
}
impl Serialize for HostRef {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(n) => to.serialize_u64(*n),
            Self::Name(name) => to.serialize_str(name),
        }
    }
}
impl JsonSchema for HostRef {
    fn schema_name() -> Cow<'static, str> {
        "Host".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a host: its number, or its name",
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }],
        })
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Hosts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hosts: an array of numbers, names and ranges as \"h0..h26\"")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Hosts, A::Error> {
                let mut hosts = Vec::new();
                while let Some(host) = seq.next_element()? {
                    hosts.push(host);
                }
                Ok(Hosts(hosts))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Hosts, E> {
                Ok(Hosts(vec![HostRef::Name(name.to_owned())]))
            }
        }
        from.deserialize_any(OneOrSeveral)
    }
}
impl Serialize for Hosts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}
impl JsonSchema for Hosts {
    fn schema_name() -> Cow<'static, str> {
        "Hosts".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let host = generator.subschema_for::<HostRef>();
        json_schema!({
            "description": "hosts: numbers, names and ranges as \"h0..h26\" (both ends included)",
            "anyOf": [{ "type": "array", "items": host }, { "type": "string" }],
        })
    }
}
