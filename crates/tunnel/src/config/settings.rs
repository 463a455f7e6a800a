//! Content of `eqds.toml`, as written.

use core::net::IpAddr;
use core::str::FromStr;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_units::Rate;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::{EqifTable, InnerAddress, Prefix, TunnelSettings};
use crate::keys::Suite;

/// Settings of EQDS's daemon on one host: the network outside, the prefixes inside, keys, and policy.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Name of this host, by which its peers know it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Addresses of this host in the network outside: one, or one of IPv4 and one of IPv6.
    #[schemars(length(min = 1, max = 2))]
    pub addresses: Vec<Written<IpAddr>>,
    /// UDP port on which this host listens.
    #[serde(default = "port")]
    pub port: u16,
    /// Rate of this host's link.
    pub link_rate: Rate,
    /// Bytes of the longest IP packet that the network outside takes. Packets inside are shorter by the headers.
    #[serde(default = "mtu")]
    pub mtu: u32,
    /// Number of paths: UDP source ports over which packets are spread.
    #[serde(default = "paths")]
    #[schemars(range(min = 1, max = 256))]
    pub paths: u32,
    /// First of the source ports.
    #[serde(default = "first_path_port")]
    pub first_path_port: u16,
    /// Prefixes inside that this host serves.
    #[schemars(length(min = 1))]
    pub prefixes: Vec<Written<Prefix>>,
    /// Name of the network device that the daemon makes, through which packets inside pass.
    #[serde(default = "device")]
    #[schemars(length(min = 1, max = 15))]
    pub device: String,
    /// Addresses that the daemon gives to the device, with the lengths of their prefixes. Each lies in one of
    /// `prefixes`. None if this host only forwards packets inside, as for containers.
    #[serde(default)]
    pub inner_addresses: Vec<Written<InnerAddress>>,
    /// Private key of this host (`wg genkey`). With it, this file must be readable by its owner only.
    pub private_key: Option<String>,
    /// File with the private key of this host, relative to this file. Only its owner may read it.
    #[schemars(with = "Option<String>")]
    pub private_key_file: Option<PathBuf>,
    /// File in which the daemon remembers key epochs, over restarts.
    #[serde(default = "state")]
    #[schemars(with = "String")]
    pub state: PathBuf,
    /// Encryption of payloads; both ends must agree.
    #[serde(default)]
    pub seal: Seal,
    /// Behaviour of tunnels.
    #[serde(default)]
    pub tunnel: TunnelSettings,
    /// Kinds of traffic: who is served first, and how.
    #[serde(default)]
    pub eqif: EqifTable,
    /// Other hosts.
    #[serde(default)]
    pub peer: Vec<PeerSettings>,
    /// Shares of this host's incoming link, by the traffic's source inside.
    #[serde(default)]
    pub class: Vec<ClassSettings>,
}

/// Another host with an EQDS daemon.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerSettings {
    /// Name of the peer, which its own file has as `name`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Address of the peer in the network outside.
    pub address: Written<IpAddr>,
    /// UDP port on which the peer listens.
    #[serde(default = "port")]
    pub port: u16,
    /// Prefixes inside that the peer serves. Packets from the peer must come from one of them.
    #[schemars(length(min = 1))]
    pub prefixes: Vec<Written<Prefix>>,
    /// Public key of the peer (`wg pubkey`).
    pub public_key: Option<String>,
    /// Key that this host shares with the peer (`wg genpsk`), beside static keys or instead of them. With it, this file
    /// must be readable by its owner only.
    pub shared_key: Option<String>,
    /// File with the shared key, relative to this file. Only its owner may read it.
    #[schemars(with = "Option<String>")]
    pub shared_key_file: Option<PathBuf>,
    /// Bytes of the longest IP packet that the way to the peer takes, if less than `mtu`.
    pub mtu: Option<u32>,
}

/// Share of this host's incoming link.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassSettings {
    /// Name of the class, in statistics.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Prefixes inside from which the traffic comes. Traffic from elsewhere has weight 1 and priority 0.
    #[schemars(length(min = 1))]
    pub prefixes: Vec<Written<Prefix>>,
    /// Share of the credit among senders of one priority, relative to other weights.
    #[serde(default = "weight")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: u32,
    /// Priority, 0 to 7: senders of a greater priority are served first.
    #[serde(default)]
    #[schemars(range(max = 7))]
    pub priority: u32,
}

/// Encryption of payloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seal {
    /// AES-128-GCM: the faster one on processors with instructions for AES.
    #[default]
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// ChaCha20-Poly1305: the faster one on processors without.
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
    /// None: headers are authenticated, payloads can be read and changed by anyone on the way.
    Off,
}

impl Seal {
    /// Returns the suite of the key schedule.
    pub fn suite(self) -> Suite {
        if self == Self::ChaCha20Poly1305 { Suite::ChaCha20Poly1305 } else { Suite::Aes128Gcm }
    }
}

fn port() -> u16 {
    selvedge_wire::eqds::v1::PORT
}
fn mtu() -> u32 {
    1_500
}
fn paths() -> u32 {
    16
}
fn first_path_port() -> u16 {
    49_152
}
fn device() -> String {
    "eqds0".to_owned()
}
fn weight() -> u32 {
    1
}
fn state() -> PathBuf {
    "/var/lib/selvedge/eqds-epochs".into()
}

/// A value that is written as a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written<T>(pub T);

/// Text forms that a [`Written`] value has.
pub trait Form {
    /// Name of the form in the schema.
    const NAME: &str;
    /// Description of the form, with an example.
    const FORM: &str;
}
impl Form for IpAddr {
    const NAME: &str = "Address";
    const FORM: &str = "an address, as \"192.0.2.1\" or \"2001:db8::1\"";
}
impl Form for InnerAddress {
    const NAME: &str = "InnerAddress";
    const FORM: &str = "an address with its prefix's length, as \"10.1.0.1/24\" or \"2001:db8::1/64\"";
}
impl Form for Prefix {
    const NAME: &str = "Prefix";
    const FORM: &str = "a prefix, as \"10.1.0.0/16\" or \"2001:db8::/48\"";
}

impl<'de, T: FromStr<Err: core::fmt::Display> + Form> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: FromStr<Err: core::fmt::Display> + Form> Visitor<'_> for Text<T> {
            type Value = T;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(T::FORM)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(|error: T::Err| {
                    let message = error.to_string();
                    // Errors of prefixes have a remedy; those of addresses say little.
                    if message.contains(text) {
                        E::custom(message)
                    } else {
                        E::invalid_value(Unexpected::Str(text), &self)
                    }
                })
            }
        }
        from.deserialize_str(Text(PhantomData)).map(Self)
    }
}

impl<T: Form> JsonSchema for Written<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": format!("Text: {}.", T::FORM) })
    }
}
