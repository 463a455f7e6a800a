#![allow(missing_docs)]
use schemars::JsonSchema;
use selvedge_units::{Bytes, Duration, Setting};
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
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TransportConfig {
    pub recovery: RecoveryConfig,
    pub congestion: CongestionConfig,
}
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryConfig {
    GoBackN(GoBackN),
    Irn(Irn),
}
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GoBackN {
    pub rto: Setting<Duration>,
}
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Irn {
    pub rto_high: Setting<Duration>,
    pub bdp_cap: Setting<u32>,
    pub extra_header: Bytes,
}
impl Default for RecoveryConfig {
    fn default() -> Self {
        Self::Irn(Irn::default())
    }
}
impl RecoveryConfig {
    pub fn name(&self) -> &'static str {
        match self {
            Self::GoBackN(_) => "go-back-n",
            Self::Irn(_) => "irn",
        }
    }
}
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionConfig {
    None(NoCc),
    Fixed(NoCc),
}
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NoCc {}
impl Default for CongestionConfig {
    fn default() -> Self {
        Self::None(NoCc {})
    }
}
impl CongestionConfig {
    pub const NAMES: &'static [&'static str] = &["none", "fixed"];
}
