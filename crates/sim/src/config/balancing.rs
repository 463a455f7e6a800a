//! Configuration of load balancing: the choice among several equally short paths.

use schemars::JsonSchema;
use selvedge_switch::balancing::{Balancing, Drill, Flowlet, MOST_CHOICES, MOST_ENTRIES};
use selvedge_units::{Duration, Setting};
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Choice among several equally short paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BalancingConfig {
    /// All packets of a flow take the path that its hash chooses (RFC 2992).
    #[default]
    Ecmp,
    /// Each packet takes a path at random.
    Spray,
    /// Each packet takes the shortest of a few queues (DRILL, SIGCOMM 2017).
    Drill(DrillConfig),
    /// A flow may change its path after a pause (LetFlow, NSDI 2017).
    Flowlet(FlowletConfig),
}

/// Parameters of [`BalancingConfig::Drill`]: DRILL(choices, memory).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DrillConfig {
    /// Queues that are drawn at random for each packet, 1 to 8 (DRILL's choice: 2). Each is drawn from all, so one may
    /// be drawn twice; ConWeave's ns-3 code draws different ones.
    pub choices: u8,
    /// Shortest queues of the last time that are remembered for each leaf switch, 0 to 8 (DRILL's choice: 1).
    pub memory: u8,
}

impl Default for DrillConfig {
    fn default() -> Self {
        Self { choices: 2, memory: 1 }
    }
}

/// Parameters of [`BalancingConfig::Flowlet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FlowletConfig {
    /// Silence after which a flow may change its path. Nothing is reordered if paths differ by less. "auto": the base
    /// round-trip time of the longest path.
    pub gap: Setting<Duration>,
    /// Flows that a switch can tell apart, at least 1; flows with equal hashes count as one.
    pub entries: u32,
    /// Choice of the new path.
    pub choice: Choice,
}

impl Default for FlowletConfig {
    fn default() -> Self {
        Self { gap: Setting::Auto, entries: 1 << 12, choice: Choice::Random }
    }
}

/// Choice of a flowlet's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Any path (LetFlow).
    #[default]
    Random,
    /// Path with the shortest queue.
    LeastLoaded,
}

impl BalancingConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// If a value is out of range: names the key and the valid range.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Drill(drill) if !(1..=MOST_CHOICES).contains(&usize::from(drill.choices)) => Err(ConfigError::new(
                "drill.choices",
                format!("{} is out of range: 1 to {MOST_CHOICES}", drill.choices),
            )),
            Self::Drill(drill) if usize::from(drill.memory) > MOST_CHOICES => {
                Err(ConfigError::new("drill.memory", format!("{} is out of range: 0 to {MOST_CHOICES}", drill.memory)))
            }
            Self::Flowlet(flowlet) if !(1..=MOST_ENTRIES).contains(&flowlet.entries) => Err(ConfigError::new(
                "flowlet.entries",
                format!("{} is out of range: 1 to {MOST_ENTRIES} in each switch", flowlet.entries),
            )),
            Self::Flowlet(flowlet) if flowlet.gap == Setting::Off => Err(ConfigError::new(
                "flowlet.gap",
                "give a time, as in \"50us\", or \"auto\"; without gaps: \"spray\"",
            )),
            _ => Ok(()),
        }
    }

    /// Returns what switches do, with nothing left open; `None`: the hash of a flow chooses.
    pub(crate) fn resolved(&self) -> Option<Balancing> {
        match *self {
            Self::Ecmp => None,
            Self::Spray => Some(Balancing::Spray),
            Self::Drill(DrillConfig { choices, memory }) => {
                Some(Balancing::Drill(Drill { choices: choices.into(), memory: memory.into() }))
            }
            Self::Flowlet(FlowletConfig { gap, entries, choice }) => Some(Balancing::Flowlet(Flowlet {
                gap: gap.resolve(|| None).unwrap_or(Duration::ZERO),
                entries: entries as usize,
                to_least_loaded: choice == Choice::LeastLoaded,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_work_are_named() {
        let wrong = |config: BalancingConfig| config.check().expect_err("should be refused").key;
        assert_eq!(wrong(BalancingConfig::Drill(DrillConfig { choices: 0, memory: 1 })), "drill.choices");
        assert_eq!(wrong(BalancingConfig::Drill(DrillConfig { choices: 2, memory: 9 })), "drill.memory");
        let flowlet = FlowletConfig::default();
        assert_eq!(wrong(BalancingConfig::Flowlet(FlowletConfig { entries: 0, ..flowlet })), "flowlet.entries");
        assert_eq!(wrong(BalancingConfig::Flowlet(FlowletConfig { entries: u32::MAX, ..flowlet })), "flowlet.entries");
        assert_eq!(wrong(BalancingConfig::Flowlet(FlowletConfig { gap: Setting::Off, ..flowlet })), "flowlet.gap");
        assert_eq!(BalancingConfig::Flowlet(flowlet).check(), Ok(()));
    }
}
