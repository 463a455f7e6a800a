//! Content of a scenario file, as written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use selvedge_sim::config::{NicConfig, Stop, SwitchConfig, TransportConfig};
use selvedge_sim::fault::{LinkFailure, LossConfig};
use selvedge_sim::topology::Topology;
use selvedge_sim::workload::{Measure, WorkloadConfig};
use selvedge_sim::{AutoScope, Beside, Settings};
use selvedge_units::{Duration, Setting};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Series, Sweep};

/// Study: one fabric, its traffic, and the series that are compared on it.
///
/// Quantities are texts with a unit ("40Gbps", "2us", "240KB"). Keys that are left out have the defaults shown. A
/// setting of "auto" is derived from the rest of the scenario; the resolved scenario in the results folder shows the
/// derived values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Title of the study, in one line.
    #[serde(deserialize_with = "text")]
    #[schemars(length(min = 1))]
    pub title: String,
    /// Description of the study, in as many lines as it takes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Each series runs once per seed. A number n means the seeds 1 to n.
    #[serde(default)]
    pub seeds: Seeds,
    /// End of a run. Without: when all flows are done.
    #[serde(default)]
    pub stop: Stop,
    /// Flows that count for results.
    #[serde(default)]
    pub measure: Measure,
    /// Interval at which queue depths and pauses of all ports are recorded. "auto": every other base round-trip time,
    /// but not much more than 2,000 times while flows start; "off": never.
    #[serde(default)]
    pub sample: Setting<Duration>,
    /// Paths from which the windows, round-trip times and timeouts of `transport` at "auto" are derived. Default:
    /// per-path.
    #[serde(default)]
    pub auto: AutoScope,
    /// Network of the study.
    pub topology: Topology,
    /// Traffic of the study.
    pub workload: WorkloadConfig,
    /// Switches of the network.
    #[serde(default)]
    pub switch: SwitchConfig,
    /// NICs of the hosts, and how packets look on the wire.
    #[serde(default)]
    pub nic: NicConfig,
    /// Loss recovery and congestion control, or TCP.
    #[serde(default)]
    pub transport: TransportConfig,
    /// Workloads that use TCP, whatever the others use: a network that RDMA shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Packets that links lose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<LossConfig>,
    /// Links that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LinkFailure>,
    /// Values that `selvedge check --smoke` puts in place, by their dotted keys, so that a figure
    /// can be tried in seconds: fewer flows, fewer seeds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub smoke: BTreeMap<String, toml::Value>,
    /// Conditions under which all series are compared, one after the other: several loads, for example. Each case is
    /// this scenario with some values replaced. Without any, there is one condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub case: Vec<Case>,
    /// Grid of values at whose points all series are compared, in place of cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Series to compare: each is this scenario with some values replaced. Without any, the scenario itself is the only
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<Series>>,
}

/// Reads a text that is not blank.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        return Err(D::Error::invalid_value(Unexpected::Str(&text), &"a line that says what the study is about"));
    }
    Ok(text)
}

impl Scenario {
    /// Returns a scenario of only a network and its traffic; everything else has its default.
    pub fn new(title: String, topology: Topology, workload: WorkloadConfig) -> Self {
        let Settings { switch, nic, transport, beside, auto } = Settings::default();
        Self {
            title,
            description: String::new(),
            seeds: Seeds::default(),
            stop: Stop::default(),
            measure: Measure::default(),
            sample: Setting::Auto,
            auto,
            topology,
            workload,
            switch,
            nic,
            transport,
            beside,
            loss: Vec::new(),
            failures: Vec::new(),
            smoke: BTreeMap::new(),
            case: Vec::new(),
            sweep: None,
            series: None,
        }
    }

    /// Returns the settings of switches, NICs and transports.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            switch: self.switch.clone(),
            nic: self.nic.clone(),
            transport: self.transport,
            beside: self.beside.clone(),
            auto: self.auto,
        }
    }
}

/// A condition under which all series are compared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// Name in tables and claims: "30 % load".
    pub name: String,
    /// Values by their dotted keys, put in place after those of the series. A value that fits some series only (a
    /// setting of one loss recovery) leaves the others unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

/// Seeds of a study: a list, or how many.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[serde(expecting = "expected a number of seeds, as in 5, or a list of them, as in [1, 2, 3]")]
pub enum Seeds {
    /// Seeds from 1 to this number.
    Count(u64),
    /// Listed seeds.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Self::Count(5)
    }
}

impl Seeds {
    /// Returns all seeds, in order.
    pub fn list(&self) -> Vec<u64> {
        match self {
            Self::Count(count) => (1..=*count).collect(),
            Self::List(seeds) => seeds.clone(),
        }
    }
}

impl std::fmt::Display for Seeds {
    /// Writes the seeds in the notation of `--seeds`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::List(seeds) => {
                f.write_str(&seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(","))?;
                // A number alone would be a count.
                if seeds.len() == 1 { f.write_str(",") } else { Ok(()) }
            }
        }
    }
}

impl std::str::FromStr for Seeds {
    type Err = String;

    /// Reads "5" or "1,2,3".
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("\"{text}\": expected a number of seeds, as in 5, or a list of them, as in 1,2,3");
        match text.trim().parse() {
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => {
                let text = text.trim().trim_start_matches('[').trim_end_matches(']').trim_end_matches(',');
                text.split(',').map(|seed| seed.trim().parse()).collect::<Result<_, _>>().map(Self::List).map_err(wrong)
            }
        }
    }
}
