//! [`TransportConfig`] in its written form: one of several tables.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_transport::endpoint::EndpointConfig;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::transport::{RdmaConfig, Stack, TransportConfig, TunnelledConfig};

/// Written form of a [`TransportConfig`]: a table with some of these keys, and those of transports of messages.
#[derive(Default)]
pub(super) struct TransportTable {
    recovery: Option<RecoveryConfig>,
    congestion: Option<CongestionConfig>,
    tcp: Option<TcpConfig>,
    eqds: Option<EqdsConfig>,
    messages: Option<EndpointConfig>,
}

const RECOVERY: &str = "recovery";
const CONGESTION: &str = "congestion";
const TCP: &str = "tcp";
const EQDS: &str = "eqds";

/// All keys of the table.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [&[RECOVERY, CONGESTION, TCP, EQDS], EndpointConfig::NAMES].concat());

impl<'de> Deserialize<'de> for TransportTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = TransportTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of a transport")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TransportTable, A::Error> {
                let mut table = TransportTable::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        RECOVERY => table.recovery = Some(map.next_value()?),
                        CONGESTION => table.congestion = Some(map.next_value()?),
                        TCP => table.tcp = Some(map.next_value()?),
                        EQDS => table.eqds = Some(map.next_value()?),
                        name => {
                            let Some(messages) = EndpointConfig::next_value(name, &mut map)? else {
                                return Err(de::Error::unknown_field(name, &KEYS));
                            };
                            if let Some(other) = table.messages.replace(messages) {
                                return Err(de::Error::custom(two(other.name(), name)));
                            }
                        }
                    }
                }
                Ok(table)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl Serialize for TransportTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { recovery, congestion, tcp, eqds, messages } = self;
        let mut map = serializer.serialize_map(None)?;
        recovery.iter().try_for_each(|recovery| map.serialize_entry(RECOVERY, recovery))?;
        congestion.iter().try_for_each(|congestion| map.serialize_entry(CONGESTION, congestion))?;
        tcp.iter().try_for_each(|tcp| map.serialize_entry(TCP, tcp))?;
        eqds.iter().try_for_each(|eqds| map.serialize_entry(EQDS, eqds))?;
        messages.iter().try_for_each(|messages| messages.serialize_entry(&mut map))?;
        map.end()
    }
}

fn two(one: &str, other: &str) -> String {
    format!("{one} and {other} are two transports; give one")
}

impl TryFrom<TransportTable> for TransportConfig {
    type Error = String;

    fn try_from(table: TransportTable) -> Result<Self, Self::Error> {
        let TransportTable { recovery, congestion, tcp, eqds, messages } = table;
        let has_rdma = recovery.is_some() || congestion.is_some();
        if let Some(messages) = messages {
            let name = messages.name();
            if let Some(other) = tcp.map(|_| TCP).or(eqds.map(|_| EQDS)) {
                return Err(two(other, name));
            }
            if has_rdma {
                return Err(format!(
                    "{name} stands alone: it has a loss recovery of its own, and its receivers set the pace; leave out \
                     recovery and congestion"
                ));
            }
            return Ok(Self::Messages(messages));
        }
        if let Some(tunnels) = eqds {
            return Self::with_tunnels(tunnels, recovery, congestion, tcp).map_err(str::to_owned);
        }
        if let Some(tcp) = tcp {
            if has_rdma {
                return Err("tcp stands alone: flows that speak TCP have its loss recovery and congestion control, \
                            which are chosen in transport.tcp; leave out recovery and congestion"
                    .to_owned());
            }
            return Ok(Self::Tcp(tcp));
        }
        let recovery = recovery.ok_or("missing field `recovery`")?;
        Ok(Self::Rdma(rdma(recovery, congestion)))
    }
}

/// Returns queue pairs with this recovery.
fn rdma(recovery: RecoveryConfig, congestion: Option<CongestionConfig>) -> RdmaConfig {
    RdmaConfig { recovery, congestion: congestion.unwrap_or(RdmaConfig::default().congestion) }
}

impl TransportConfig {
    /// Returns EQDS, with or without a stack that sends through its tunnels.
    fn with_tunnels(
        tunnels: EqdsConfig,
        recovery: Option<RecoveryConfig>,
        congestion: Option<CongestionConfig>,
        tcp: Option<TcpConfig>,
    ) -> Result<Self, &'static str> {
        let eqif = &tunnels.eqif;
        match (recovery, tcp) {
            (None, _) if congestion.is_some() => Err("missing field `recovery`"),
            (Some(_), Some(_)) => Err("tcp stands where recovery and congestion do; give one of them"),
            (None, Some(_)) if eqif.tcp.is_none() => Err("tcp beside eqds sends through its tunnels: write \
                            [transport.eqds.eqif.tcp] as well, or leave out one of them"),
            (Some(_), None) if !eqif.is_used() => {
                Err("eqds by itself carries messages of its own; for queue pairs in its \
                            tunnels write [transport.eqds.eqif.rdma] as well, or leave out recovery and congestion")
            }
            (None, _) if eqif.rdma.is_some() => {
                Err("there are no queue pairs for eqds.eqif.rdma; write [transport.recovery], or leave it out")
            }
            (Some(recovery), None) => Ok(TunnelledConfig::new(tunnels, rdma(recovery, congestion)).into()),
            (None, Some(tcp)) => Ok(TunnelledConfig::new(tunnels, tcp).into()),
            (None, None) => Ok(Self::Eqds(tunnels)),
        }
    }
}

impl From<TransportConfig> for TransportTable {
    fn from(config: TransportConfig) -> Self {
        let none = Self::default();
        let of_rdma = |RdmaConfig { recovery, congestion }| Self {
            recovery: Some(recovery),
            congestion: Some(congestion),
            ..Self::default()
        };
        match config {
            TransportConfig::Rdma(rdma) => of_rdma(rdma),
            TransportConfig::Tcp(tcp) => Self { tcp: Some(tcp), ..none },
            TransportConfig::Messages(messages) => Self { messages: Some(messages), ..none },
            TransportConfig::Eqds(eqds) => Self { eqds: Some(eqds), ..none },
            TransportConfig::Tunnelled(TunnelledConfig { tunnels, stack, .. }) => {
                let stack = match stack {
                    Stack::Rdma(rdma) => of_rdma(rdma),
                    Stack::Tcp(tcp) => Self { tcp: Some(tcp), ..none },
                };
                Self { eqds: Some(tunnels), ..stack }
            }
        }
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
        let eqds = generator.subschema_for::<EqdsConfig>();
        let table = |keys: &[(&str, &str, &Schema)], required: &[&str]| {
            let property = |(key, description, schema): &(&str, &str, &Schema)| {
                ((*key).to_owned(), serde_json::json!({ "description": description, "allOf": [schema] }))
            };
            let properties: serde_json::Map<_, _> = keys.iter().map(property).collect();
            serde_json::json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false
            })
        };
        let (recovery, congestion) =
            ((RECOVERY, "Loss recovery.", &recovery), (CONGESTION, "Congestion control.", &congestion));
        let mut tables =
            vec![table(&[recovery, congestion], &[RECOVERY]), table(&[(TCP, "TCP instead of both.", &tcp)], &[TCP])];
        let names = EndpointConfig::NAMES.iter().zip(EndpointConfig::ABOUTS);
        for ((name, about), schema) in names.zip(EndpointConfig::schemas(generator)) {
            tables.push(table(&[(name, about, &schema)], &[name]));
        }
        tables.push(table(&[(EQDS, "Messages in EQDS tunnels instead.", &eqds)], &[EQDS]));
        let around_tcp = (EQDS, "The tunnels; eqif.tcp must be there.", &eqds);
        tables.push(table(&[(TCP, "A stack in EQDS tunnels.", &tcp), around_tcp], &[TCP, EQDS]));
        let around = (EQDS, "Tunnels; eqif says whose packets they carry.", &eqds);
        tables.push(table(&[recovery, congestion, around], &[RECOVERY, EQDS]));
        json_schema!({ "description": "The engines at both ends of every flow.", "oneOf": tables })
    }
}
