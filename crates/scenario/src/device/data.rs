//! Files of families of devices.

use std::collections::BTreeMap;

use selvedge_sim::config::LinkHeadroom;
use selvedge_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};
use toml::Value;

/// Commercial device, as public documents describe it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// Name of the device in scenarios.
    pub(super) name: String,
    /// Other names of the device.
    pub(super) also: Vec<String>,
    pub(super) kind: DeviceKind,
    /// Description of the device in a few words.
    pub(super) about: String,
    /// Author of most of the values, in a word.
    pub(super) by: String,
    /// Rate of the fastest Ethernet port.
    pub(super) fastest: Option<Sourced<Rate>>,
    /// Loss recovery, by its key in `[transport.recovery]`.
    pub(super) recovery: Option<Sourced<String>>,
    /// Congestion control, by its key in `[transport.congestion]`.
    pub(super) congestion: Option<Sourced<String>>,
    /// Keys of scenarios that the device sets, and their values.
    pub(super) set: Vec<Setting>,
    /// Headroom by rate and cable.
    pub(super) headroom: Option<Headroom>,
    /// Properties that no public document states.
    pub(super) unknown: Vec<Gap>,
    /// Properties of the device that the simulator does not model.
    pub(super) not_modelled: Vec<Gap>,
}

/// Kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// NIC, for `nic.preset`.
    Nic,
    /// Switch, for `switch.preset`.
    Switch,
}

/// A value and its source.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Sourced<T> {
    pub(super) value: T,
    /// Name of the value in its source.
    pub(super) note: String,
    pub(super) source: String,
}

/// Key of scenarios, its value, and the source of the value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Setting {
    pub(super) key: String,
    #[serde(flatten)]
    pub(super) value: Sourced<Value>,
}

/// Headroom for each lossless class of an input, by the rate and the length of its link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Headroom {
    /// Metres of cable, ascending.
    pub(super) cables: Vec<u64>,
    pub(super) rows: Vec<Row>,
    pub(super) source: String,
}

/// Headroom of links of one rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) rate: Rate,
    /// Headroom for each length of cable, from the shortest; the longest may be missing.
    pub(super) bytes: Vec<u64>,
}

/// Property that is missing, and the value or behaviour in its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gap {
    pub(super) what: String,
    pub(super) instead: String,
}

impl Device {
    /// Returns the device's name in scenarios, as "connectx-7".
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns all names of the device.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.name).chain(self.also.iter().map(String::as_str))
    }
    /// Returns the kind: NIC or switch.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }
}

impl DeviceKind {
    /// Returns the key that names such a device.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Nic => "nic.preset",
            Self::Switch => "switch.preset",
        }
    }
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Nic => "NIC",
            Self::Switch => "switch",
        }
    }
}

impl Headroom {
    /// Returns the rows of `switch.pfc.headroom-by-link`.
    pub(super) fn by_link(&self) -> impl Iterator<Item = LinkHeadroom> + '_ {
        self.rows.iter().flat_map(move |row| {
            let cells = self.cables.iter().zip(&row.bytes);
            cells.map(move |(&metres, &bytes)| LinkHeadroom {
                rate: row.rate,
                delay: Duration::from_ns(metres * NS_PER_METRE),
                headroom: Bytes::new(bytes),
            })
        })
    }
}

/// Propagation delay of light in glass in ns per metre: 2/3 of its speed in vacuum.
const NS_PER_METRE: u64 = 5;

/// Returns the devices of a file.
///
/// # Panics
/// Returns an error if the file, which is part of this crate, is malformed.
pub(super) fn read(file: &str, text: &str) -> Vec<Device> {
    let family: Family = toml::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let source = |name: &str| match family.sources.get(name) {
        Some(source) => source.clone(),
        None => panic!("{file}: no source is called {name}"),
    };
    let scheme = |of: &Option<Scheme>| {
        of.as_ref().map(|of| Sourced { value: of.kind.clone(), note: of.note.clone(), source: source(&of.from) })
    };
    let setting = |entry: &Entry| Setting {
        key: entry.key.clone(),
        value: Sourced { value: entry.value.clone(), note: entry.note.clone(), source: source(&entry.from) },
    };
    let device = |own: &Member| Device {
        name: own.name.clone(),
        also: own.also.clone(),
        kind: family.kind,
        about: own.about.clone(),
        by: family.by.clone(),
        fastest: own.fastest.as_ref().map(|fastest| Sourced {
            value: fastest.rate,
            note: String::new(),
            source: source(&fastest.from),
        }),
        recovery: scheme(&own.recovery).or_else(|| scheme(&family.recovery)),
        congestion: scheme(&family.congestion),
        set: own.set.iter().chain(&family.set).map(setting).collect(),
        headroom: own.headroom.as_ref().map(|table| Headroom {
            cables: table.cables.clone(),
            rows: table.rows.clone(),
            source: source(&table.from),
        }),
        unknown: own.unknown.iter().chain(&family.unknown).cloned().collect(),
        not_modelled: own.not_modelled.iter().chain(&family.not_modelled).cloned().collect(),
    };
    family.device.iter().map(device).collect()
}

/// Content of a file: what all devices of a family have in common, and the devices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Family {
    kind: DeviceKind,
    by: String,
    recovery: Option<Scheme>,
    congestion: Option<Scheme>,
    #[serde(default)]
    set: Vec<Entry>,
    /// Sources, indexed by their names in the file.
    sources: BTreeMap<String, String>,
    #[serde(default)]
    unknown: Vec<Gap>,
    #[serde(default)]
    not_modelled: Vec<Gap>,
    device: Vec<Member>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Member {
    name: String,
    #[serde(default)]
    also: Vec<String>,
    about: String,
    recovery: Option<Scheme>,
    fastest: Option<Port>,
    #[serde(default)]
    set: Vec<Entry>,
    headroom: Option<Table>,
    #[serde(default)]
    unknown: Vec<Gap>,
    #[serde(default)]
    not_modelled: Vec<Gap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scheme {
    kind: String,
    from: String,
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Port {
    rate: Rate,
    from: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    value: Value,
    from: String,
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    from: String,
    cables: Vec<u64>,
    rows: Vec<Row>,
}
