//! TCP that shares a network with the configured transport.

use schemars::JsonSchema;
use selvedge_transport::tcp::{Params, TcpConfig};
use selvedge_units::Bytes;
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::config::NicConfig;
use crate::topology::Framing;
use crate::workload::WorkloadSummary;

/// Workloads whose flows use TCP beside the configured transport, RDMA or another TCP, so that both share the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Beside {
    /// Workloads that use TCP, by their keys in `[workload]`: "incast", or "poisson\[1\]" where there are several.
    pub workloads: Vec<String>,
    /// Priority of these workloads' packets, 0 to 7. Absent: the priority of all other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<u8>,
    /// TCP of these workloads, also where the transport is TCP itself, with settings of its own.
    #[serde(default)]
    pub tcp: TcpConfig,
}

impl Beside {
    /// Returns how the payload of these flows becomes what a link carries.
    pub fn framing(&self, nic: &NicConfig) -> Framing {
        let header = Header::ETHERNET_IPV4 + Bytes::new(self.tcp.header());
        Framing {
            mtu: self.tcp.mss.resolve(|| None).unwrap_or(nic.mtu),
            overhead: header + nic.gap,
            least: Header::MINIMUM_FRAME + nic.gap,
        }
    }

    /// Returns the parameters of both ends of these flows; every "auto" is resolved.
    pub(crate) fn params(&self) -> Result<Params, ConfigError> {
        self.tcp.params().map_err(|error| ConfigError::new(&format!("beside.tcp.{}", error.key), error.message))
    }

    /// Returns for each of `all` workloads whether it uses TCP beside the transport.
    ///
    /// # Errors
    /// No workload has one of the names; the key is "workloads".
    pub fn which(&self, all: &[WorkloadSummary]) -> Result<Vec<bool>, ConfigError> {
        let mut which = vec![false; all.len()];
        for name in &self.workloads {
            let mut is_known = false;
            for (chosen, workload) in which.iter_mut().zip(all) {
                if workload.key == *name || workload.kind == name {
                    (*chosen, is_known) = (true, true);
                }
            }
            if !is_known {
                let known: Vec<&str> = all.iter().map(|workload| workload.key.as_str()).collect();
                let message = format!("there is no workload \"{name}\"; there are {}", known.join(", "));
                return Err(ConfigError::new("workloads", message));
            }
        }
        Ok(which)
    }
}
