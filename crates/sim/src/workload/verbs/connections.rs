//! Connections of applications.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::{Domain, HostId};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::messages::Messages;
use crate::ConfigError;
use crate::topology::Demand;
use crate::two::Two;
use crate::workload::build::{BuildEnv, Offer};
use crate::workload::flow::stream;
use crate::workload::permutation::derangement;
use crate::workload::{HostRef, Hosts};

/// Connection between two queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Requester.
    pub src: HostId,
    /// Responder.
    pub dst: HostId,
}

/// Hosts that have connections: "permutation", "all-to-all", or pairs by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Partners {
    /// A random derangement, drawn from the seed: each host is the requester of one connection and the responder of
    /// one.
    #[default]
    Permutation,
    /// Connections from each host to all others.
    AllToAll,
    /// Listed pairs of requester and responder.
    Listed(Vec<[HostRef; 2]>),
}

/// Pairs of hosts, the requester first.
pub(super) enum Pairs {
    All(Vec<HostId>),
    Listed(Vec<[HostId; 2]>),
}

impl Partners {
    pub(super) fn resolve(
        &self,
        hosts: Option<&Hosts>,
        env: &BuildEnv<'_>,
        workload: u16,
    ) -> Result<Pairs, ConfigError> {
        let taking_part = || {
            let found = Hosts::resolve(hosts, env.graph).map_err(|error| error.within("hosts"))?;
            if found.len() < 2 {
                return Err(ConfigError::new("hosts", "connections need at least two hosts, found one"));
            }
            Ok(found)
        };
        match self {
            Self::Permutation => {
                let hosts = taking_part()?;
                let partners = derangement(&hosts, &mut stream(env.seed, Domain::WorkloadShape, workload, 0));
                Ok(Pairs::Listed(hosts.into_iter().zip(partners).map(|(src, dst)| [src, dst]).collect()))
            }
            Self::AllToAll => taking_part().map(Pairs::All),
            Self::Listed(_) if hosts.is_some() => {
                Err(ConfigError::new("hosts", "the pairs are listed: leave this out, or let `pairs` be \"all-to-all\""))
            }
            Self::Listed(pairs) => listed(pairs, env).map_err(|error| error.within("pairs")),
        }
    }
}

fn listed(pairs: &[[HostRef; 2]], env: &BuildEnv<'_>) -> Result<Pairs, ConfigError> {
    if pairs.is_empty() {
        return Err(ConfigError::new("", "no pairs: give some, as [[\"h0\", \"h1\"]], or \"permutation\""));
    }
    let resolve = |[src, dst]: &[HostRef; 2]| {
        let pair = [src.resolve(env.graph)?, dst.resolve(env.graph)?];
        if pair[0] == pair[1] {
            let name = &env.graph.hosts[pair[0].index()].name;
            return Err(ConfigError::new("", format!("\"{name}\" is paired with itself")));
        }
        Ok(pair)
    };
    pairs.iter().map(resolve).collect::<Result<_, _>>().map(Pairs::Listed)
}

impl Pairs {
    fn listed(&self) -> Vec<[HostId; 2]> {
        match self {
            Self::All(hosts) => {
                let count = hosts.len();
                // The next host comes first, and then round again, so that responders are used evenly.
                let pair = |at: usize, ahead: usize| [hosts[at], hosts[(at + ahead) % count]];
                (0..count).flat_map(|at| (1..count).map(move |ahead| pair(at, ahead))).collect()
            }
            Self::Listed(pairs) => pairs.clone(),
        }
    }
    /// Returns the connections, `each` per pair.
    pub(super) fn connections(&self, each: u32) -> Vec<Connection> {
        let pairs = self.listed();
        pairs.into_iter().flat_map(|[src, dst]| (0..each).map(move |_| Connection { src, dst })).collect()
    }

    /// Returns the loads on links if each requester moves `load` of its link's rate, a part of which comes with
    /// answers.
    pub(super) fn offers(&self, load: f64, messages: &Messages, env: &BuildEnv<'_>) -> Vec<Offer> {
        let pairs = match self {
            Self::All(hosts) => {
                let demand = Demand { from: hosts.clone(), to: hosts.clone(), load };
                return vec![Offer { demand, expansion: messages.expansion(env.framing, |_| true) }];
            }
            Self::Listed(pairs) => pairs,
        };
        let back = messages.share_back();
        let [forth_expansion, back_expansion] =
            [true, false].map(|carries| messages.expansion(env.framing, |verb| verb.carries() == carries));
        let rate = |host: HostId| env.graph.links[env.routes.ports().of_host(host).link as usize].rate.as_bps() as f64;
        let mut offers = Vec::new();
        for &[src, dst] in pairs {
            let partners = pairs.iter().filter(|[asking, _]| *asking == src).count() as f64;
            let own = load / partners;
            let forth = (src, dst, own * (1.0 - back), forth_expansion);
            let answers = (dst, src, own * back * rate(src) / rate(dst), back_expansion);
            for (from, to, load, expansion) in [forth, answers] {
                if load > 0.0 {
                    offers.push(Offer { demand: Demand { from: vec![from], to: vec![to], load }, expansion });
                }
            }
        }
        offers
    }
}

impl<'de> Deserialize<'de> for Partners {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Partners;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Partners, E> {
                match text {
                    PERMUTATION => Ok(Partners::Permutation),
                    ALL_TO_ALL => Ok(Partners::AllToAll),
                    _ => Err(E::custom(format!("found \"{text}\", expected {EXPECTED}"))),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Partners, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Two(pair)) = seq.next_element()? {
                    pairs.push(pair);
                }
                Ok(Partners::Listed(pairs))
            }
        }
        from.deserialize_any(Forms)
    }
}
impl Serialize for Partners {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Permutation => to.serialize_str(PERMUTATION),
            Self::AllToAll => to.serialize_str(ALL_TO_ALL),
            Self::Listed(pairs) => pairs.serialize(to),
        }
    }
}
impl JsonSchema for Partners {
    fn schema_name() -> Cow<'static, str> {
        "Partners".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let pair = generator.subschema_for::<[HostRef; 2]>();
        json_schema!({
            "description": EXPECTED,
            "anyOf": [{ "enum": [PERMUTATION, ALL_TO_ALL] }, { "type": "array", "items": pair, "minItems": 1 }],
        })
    }
}

const PERMUTATION: &str = "permutation";
const ALL_TO_ALL: &str = "all-to-all";
const EXPECTED: &str = "pairs: \"permutation\", \"all-to-all\", or a list, as [[\"h0\", \"h1\"], [\"h2\", \"h1\"]]";
