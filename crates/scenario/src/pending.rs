#![allow(missing_docs)]
use schemars::JsonSchema;
use selvedge_units::Duration;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Measure {
    pub skip: u64,
}
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LossConfig {
    pub chance: selvedge_units::Chance,
}
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkFailure {
    pub link: String,
    pub at: Duration,
}
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadConfig {
    Poisson(Poisson),
}
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Poisson {
    pub load: f64,
    pub sizes: String,
}
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TransportConfig {
    pub recovery: RecoveryConfig,
    #[serde(default = "none")]
    pub congestion: CongestionConfig,
}
fn none() -> CongestionConfig {
    CongestionConfig::None(Default::default())
}
use selvedge_transport::{RecoveryConfig, CongestionConfig};
