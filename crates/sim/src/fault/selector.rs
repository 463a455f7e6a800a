//! Selection of links, and of their directions.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::words::{did_you_mean, in_ranges};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::topology::{Graph, Link, Node};

/// Selection of some links of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkSelector {
    /// "all": all links.
    All,
    /// "host-links": the links of hosts.
    HostLinks,
    /// "tier0-tier1": the links between switches of two tiers (0: switches with hosts).
    Tiers(u8, u8),
    /// "pod0-edge1 - pod0-agg0": the link between two nodes; all of them if they are parallel.
    Between(String, String),
    /// "core3": all links of a node. "pod0-edge1:pod0-agg0", like the names of ports in traces, is the link between
    /// these nodes, unless a node has this name.
    Of(String),
    /// 17: the link with an index, from 0.
    Index(u32),
}

/// Directions of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Both directions.
    #[default]
    Both,
    /// Away from the hosts.
    Up,
    /// Towards the hosts.
    Down,
    /// Direction from the node named first in the selector to the one named second ("A - B"); from the node of a
    /// selector "A"; else from the end that the topology names first.
    AToB,
    /// Opposite direction of `a-to-b`.
    BToA,
}

/// One direction of one link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lane {
    /// Index of the link.
    pub link: u32,
    /// Whether the direction leads from [`Link::a`] to [`Link::b`].
    pub from_a: bool,
}

impl Lane {
    /// Returns a number that no other lane has: twice the link's index, plus one for the direction to `a`.
    pub const fn index(self) -> usize {
        self.link as usize * 2 + !self.from_a as usize
    }
}

impl LinkSelector {
    /// Returns the selected links of `graph`, by ascending index.
    ///
    /// # Errors
    /// No link is selected: nodes that do not exist or are not neighbours, tiers without links, an index beyond the
    /// last. The key is empty.
    pub fn links(&self, graph: &Graph) -> Result<Vec<u32>, ConfigError> {
        let meant = self.among(graph);
        if let Self::Between(..) | Self::Of(_) = &*meant {
            meant.nodes(graph)?;
        }
        let selected = (0..).zip(&graph.links).filter(|&(n, link)| meant.selects(graph, n, link));
        let links: Vec<u32> = selected.map(|(n, _)| n).collect();
        if links.is_empty() { Err(meant.nothing(graph)) } else { Ok(links) }
    }
    /// Returns the selected links of `graph` in `direction`, by ascending index.
    ///
    /// # Errors
    /// Those of [`LinkSelector::links`]; and "up" or "down" on a link between nodes of the same tier. The key is "link"
    /// or "direction".
    pub fn lanes(&self, graph: &Graph, direction: Direction) -> Result<Vec<Lane>, ConfigError> {
        let mut lanes = Vec::new();
        let meant = self.among(graph);
        for link in self.links(graph).map_err(|error| error.within("link"))? {
            let ends = &graph.links[link as usize];
            let (low, high) = (graph.height(ends.a), graph.height(ends.b));
            if low == high && matches!(direction, Direction::Up | Direction::Down) {
                let message = format!(
                    "the link \"{}\" is between nodes of the same tier, where there is no up and down: write \"a-to-b\" or \"b-to-a\"",
                    graph.link_name(ends)
                );
                return Err(ConfigError::new("direction", message));
            }
            let forward = meant.first_end(graph, ends) == ends.a;
            let directions: &[bool] = match direction {
                Direction::Both => &[true, false],
                Direction::Up => &[low < high],
                Direction::Down => &[low > high],
                Direction::AToB => &[forward],
                Direction::BToA => &[!forward],
            };
            lanes.extend(directions.iter().map(|&from_a| Lane { link, from_a }));
        }
        Ok(lanes)
    }

    /// Returns the selector with its meaning in `graph`: "a:b" is the name of one node, or a link between two.
    fn among(&self, graph: &Graph) -> Cow<'_, Self> {
        if let Self::Of(name) = self
            && graph.find(name).is_none()
        {
            let split = name.match_indices(':').map(|(at, _)| (&name[..at], &name[at + 1..]));
            let mut pairs = split.filter(|(x, y)| graph.find(x).is_some() && graph.find(y).is_some());
            if let (Some((x, y)), None) = (pairs.next(), pairs.next()) {
                return Cow::Owned(Self::Between(x.to_owned(), y.to_owned()));
            }
        }
        Cow::Borrowed(self)
    }

    fn selects(&self, graph: &Graph, index: u32, link: &Link) -> bool {
        let tier = |node: Node| graph.height(node).checked_sub(1);
        let named = |node: Node, name: &str| graph.name(node) == name;
        match self {
            Self::All => true,
            Self::HostLinks => link.a.host().or(link.b.host()).is_some(),
            Self::Tiers(x, y) => {
                let tiers = (tier(link.a), tier(link.b));
                let (x, y) = (Some(u32::from(*x)), Some(u32::from(*y)));
                tiers == (x, y) || tiers == (y, x)
            }
            Self::Between(x, y) => named(link.a, x) && named(link.b, y) || named(link.a, y) && named(link.b, x),
            Self::Of(name) => named(link.a, name) || named(link.b, name),
            Self::Index(n) => *n == index,
        }
    }
    /// Returns the end of a selected link that the selector names first.
    fn first_end(&self, graph: &Graph, link: &Link) -> Node {
        match self {
            Self::Between(first, _) | Self::Of(first) if graph.name(link.b) == first => link.b,
            _ => link.a,
        }
    }
    /// Checks that the named nodes exist.
    fn nodes(&self, graph: &Graph) -> Result<(), ConfigError> {
        let names = match self {
            Self::Between(x, y) => [Some(x), Some(y)],
            Self::Of(x) => [Some(x), None],
            _ => [None, None],
        };
        match names.into_iter().flatten().find(|name| graph.find(name).is_none()) {
            None => Ok(()),
            Some(name) => {
                // Where one node of "a:b" exists, the other is missing.
                let name = match (self, name.split_once(':')) {
                    (Self::Of(_), Some((x, y))) if graph.find(x).is_some() => y,
                    (Self::Of(_), Some((x, y))) if graph.find(y).is_some() => x,
                    _ => name,
                };
                let hint = did_you_mean(name, graph.names());
                let hint = if hint.is_empty() { format!(": there are {}", in_ranges(graph.names())) } else { hint };
                let end = if hint.ends_with('?') { " Links are" } else { "; links are" };
                Err(ConfigError::new("", format!("there is no node \"{name}\"{hint}{end} {FORMS}")))
            }
        }
    }
    #[cold]
    fn nothing(&self, graph: &Graph) -> ConfigError {
        let message = match self {
            Self::Index(n) => {
                let last = graph.links.len().saturating_sub(1);
                format!("there is no link {n}: links are numbered from 0 to {last}")
            }
            Self::Tiers(..) => {
                let top = graph.switches.iter().map(|switch| switch.tier).max().unwrap_or(0);
                format!("no link is between these tiers, found \"{self}\": tiers go from 0 (with hosts) to {top}")
            }
            Self::Between(x, y) => {
                let neighbours = |link: &Link| match (graph.name(link.a), graph.name(link.b)) {
                    (a, b) if a == x => Some(format!("\"{b}\"")),
                    (a, b) if b == x => Some(format!("\"{a}\"")),
                    _ => None,
                };
                let neighbours: Vec<String> = graph.links.iter().filter_map(neighbours).take(8).collect();
                format!("no link joins \"{x}\" and \"{y}\": neighbours of \"{x}\" are {}", neighbours.join(", "))
            }
            _ => "the network has no such link".to_owned(),
        };
        ConfigError::new("", message)
    }
}

impl FromStr for LinkSelector {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let tier = |text: &str| text.strip_prefix("tier")?.parse().ok();
        let tiers = |text: &str| text.split_once('-').and_then(|(x, y)| Some((tier(x)?, tier(y)?)));
        let text = text.trim();
        match text {
            "" => Err(format!("found nothing, expected links: {FORMS}")),
            "all" => Ok(Self::All),
            "host-links" => Ok(Self::HostLinks),
            _ => Ok(match (tiers(text), text.split_once(" - ")) {
                (Some((x, y)), _) => Self::Tiers(x, y),
                (None, Some((x, y))) => Self::Between(x.trim().to_owned(), y.trim().to_owned()),
                (None, None) => Self::Of(text.to_owned()),
            }),
        }
    }
}
impl fmt::Display for LinkSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::HostLinks => f.write_str("host-links"),
            Self::Tiers(x, y) => write!(f, "tier{x}-tier{y}"),
            Self::Between(x, y) => write!(f, "{x} - {y}"),
            Self::Of(name) => f.write_str(name),
            Self::Index(n) => write!(f, "{n}"),
        }
    }
}

impl<'de> Deserialize<'de> for LinkSelector {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = LinkSelector;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "links: {FORMS}")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<LinkSelector, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<LinkSelector, E> {
                u32::try_from(n).map(LinkSelector::Index).map_err(|_| E::custom(format!("there is no link {n}")))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<LinkSelector, E> {
                u32::try_from(n).map(LinkSelector::Index).map_err(|_| E::custom(format!("there is no link {n}")))
            }
        }
        from.deserialize_any(Either)
    }
}
impl Serialize for LinkSelector {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Index(n) => to.serialize_u32(*n),
            _ => to.collect_str(self),
        }
    }
}
impl JsonSchema for LinkSelector {
    fn schema_name() -> Cow<'static, str> {
        "Links".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": FORMS,
            "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }],
        })
    }
}

const FORMS: &str = "\"all\", \"host-links\", \"tier0-tier1\", two nodes as \"h0 - pod0-edge0\" or \"h0:pod0-edge0\", one node for all of its links, or an index";
