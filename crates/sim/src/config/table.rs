//! [`TransportConfig`] in its written form: one of several tables.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::Bytes;
use serde::{Deserialize, Serialize};

use super::TransportConfig;

/// Written form of a [`TransportConfig`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TransportTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<CongestionConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eqds: Option<EqdsConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ndp: Option<NdpConfig>,
}

impl TryFrom<TransportTable> for TransportConfig {
    type Error = &'static str;

    fn try_from(table: TransportTable) -> Result<Self, Self::Error> {
        let TransportTable { recovery, congestion, tcp, eqds, ndp } = table;
        if let Some(tunnels) = &eqds {
            return Self::with_tunnels(tunnels, recovery, congestion, tcp, ndp);
        }
        if tcp.is_some() {
            if recovery.is_some() || congestion.is_some() {
                return Err("tcp stands alone: flows that speak TCP have its loss recovery and congestion control, \
                            which are chosen in transport.tcp; leave out recovery and congestion");
            }
            if ndp.is_some() {
                return Err("tcp and ndp are two transports; give one");
            }
            return Ok(Self { tcp, ..Self::default() });
        }
        if ndp.is_some() {
            if recovery.is_some() || congestion.is_some() {
                return Err(
                    "ndp stands alone: it has a loss recovery of its own, and its receivers set the pace; leave out \
                            recovery and congestion",
                );
            }
            return Ok(Self { ndp, ..Self::default() });
        }
        let recovery = recovery.ok_or("missing field `recovery`")?;
        Ok(Self { recovery, congestion: congestion.unwrap_or(Self::default().congestion), ..Self::default() })
    }
}

impl TransportConfig {
    /// Returns EQDS, with or without a stack that sends through its tunnels.
    fn with_tunnels(
        tunnels: &EqdsConfig,
        recovery: Option<RecoveryConfig>,
        congestion: Option<CongestionConfig>,
        tcp: Option<TcpConfig>,
        ndp: Option<NdpConfig>,
    ) -> Result<Self, &'static str> {
        let has_rdma = recovery.is_some();
        let eqif = &tunnels.eqif;
        match () {
            () if ndp.is_some() => Err("eqds and ndp are two transports; give one"),
            () if congestion.is_some() && !has_rdma => Err("missing field `recovery`"),
            () if tcp.is_some() && has_rdma => Err("tcp stands where recovery and congestion do; give one of them"),
            () if tcp.is_some() && eqif.tcp.is_none() => Err("tcp beside eqds sends through its tunnels: write \
                            [transport.eqds.eqif.tcp] as well, or leave out one of them"),
            () if has_rdma && !eqif.is_used() => {
                Err("eqds by itself carries messages of its own; for queue pairs in its \
                            tunnels write [transport.eqds.eqif.rdma] as well, or leave out recovery and congestion")
            }
            () if eqif.rdma.is_some() && !has_rdma => {
                Err("there are no queue pairs for eqds.eqif.rdma; write [transport.recovery], or leave it out")
            }
            () => Ok(Self {
                recovery: recovery.unwrap_or(Self::default().recovery),
                congestion: congestion.unwrap_or(Self::default().congestion),
                tcp,
                eqds: Some(*tunnels),
                has_rdma_stack: has_rdma,
                verbs_headers: Bytes::ZERO,
                ndp: None,
            }),
        }
    }
}

impl From<TransportConfig> for TransportTable {
    fn from(config: TransportConfig) -> Self {
        let TransportConfig { recovery, congestion, tcp, eqds, ndp, .. } = config;
        let of_rdma = config.is_rdma();
        Self { recovery: of_rdma.then_some(recovery), congestion: of_rdma.then_some(congestion), tcp, eqds, ndp }
    }
}

/// Schema of the kinds of tables.
impl JsonSchema for TransportConfig {
    fn schema_name() -> Cow<'static, str> {
        "TransportConfig".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let recovery = generator.subschema_for::<RecoveryConfig>();
        let congestion = generator.subschema_for::<CongestionConfig>();
        let tcp = generator.subschema_for::<TcpConfig>();
        let ndp = generator.subschema_for::<NdpConfig>();
        let eqds = generator.subschema_for::<EqdsConfig>();
        json_schema!({
            "description": "The engines at both ends of every flow: RDMA's, TCP, EQDS or NDP.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "recovery": { "description": "Loss recovery.", "allOf": [recovery.clone()] },
                        "congestion": { "description": "Congestion control.", "allOf": [congestion.clone()] }
                    },
                    "required": ["recovery"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": { "tcp": { "description": "TCP instead of both.", "allOf": [tcp.clone()] } },
                    "required": ["tcp"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": { "ndp": { "description": "NDP instead of both.", "allOf": [ndp] } },
                    "required": ["ndp"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "eqds": { "description": "Messages in EQDS tunnels instead.", "allOf": [eqds.clone()] }
                    },
                    "required": ["eqds"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "tcp": { "description": "A stack in EQDS tunnels.", "allOf": [tcp] },
                        "eqds": { "description": "The tunnels; eqif.tcp must be there.", "allOf": [eqds.clone()] }
                    },
                    "required": ["tcp", "eqds"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "recovery": { "description": "Loss recovery.", "allOf": [recovery] },
                        "congestion": { "description": "Congestion control.", "allOf": [congestion] },
                        "eqds": { "description": "Tunnels; eqif says whose packets they carry.", "allOf": [eqds] }
                    },
                    "required": ["recovery", "eqds"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
