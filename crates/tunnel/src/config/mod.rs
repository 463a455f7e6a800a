//! `eqds.toml`: what is written ([`Settings`]), and what follows from it once all checks pass ([`Config`]).

mod check;
mod eqif;
mod key;
mod prefix;
mod settings;
mod tunnel;

use core::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

pub use eqif::{EqifSettings, EqifTable, Service};
pub use prefix::{InnerAddress, Prefix, PrefixError};
use selvedge_document::{Document, DocumentError, KeyPath, Place};
use selvedge_units::Rate;
use serde_json::Value;
pub use settings::{ClassSettings, PeerSettings, Seal, Settings, Written};
pub use tunnel::TunnelSettings;

use crate::auth::TAG;
use crate::keys::Pair;
use selvedge_wire::eqds::v1::{Common, MAC, PacketType};
use selvedge_wire::{Ipv4, Ipv6, Udp};

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of this host.
    pub name: String,
    /// Addresses of this host outside: at most one of each version of IP.
    pub addresses: Vec<IpAddr>,
    /// UDP port on which this host listens.
    pub port: u16,
    /// Rate of this host's link.
    pub link_rate: Rate,
    /// UDP source ports, one per path.
    pub path_ports: std::ops::RangeInclusive<u16>,
    /// Prefixes inside that this host serves.
    pub prefixes: Vec<Prefix>,
    /// Name of the device inside.
    pub device: String,
    /// Addresses of the device inside.
    pub inner_addresses: Vec<InnerAddress>,
    /// File in which key epochs are remembered.
    pub state: PathBuf,
    /// Encryption of payloads.
    pub seal: Seal,
    /// Behaviour of tunnels.
    pub tunnel: TunnelSettings,
    /// Kinds of traffic.
    pub eqif: EqifTable,
    /// Other hosts, in the order of the file.
    pub peers: Vec<Peer>,
    /// Shares of this host's incoming link, in the order of the file.
    pub classes: Vec<Class>,
}

/// Another host.
#[derive(Clone)]
pub struct Peer {
    /// Name of the peer.
    pub name: String,
    /// Address and port of the peer outside.
    pub address: SocketAddr,
    /// Prefixes inside that the peer serves.
    pub prefixes: Vec<Prefix>,
    /// Bytes of the longest IP packet outside that the way to the peer takes.
    pub mtu: u32,
    /// Bytes of the longest IP packet inside that fits one packet outside.
    pub inner_mtu: u32,
    /// Keys.
    pub pair: Pair,
}

impl core::fmt::Debug for Peer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { name, address, prefixes, mtu, inner_mtu, pair: _ } = self;
        f.debug_struct("Peer")
            .field("name", name)
            .field("address", address)
            .field("prefixes", prefixes)
            .field("mtu", mtu)
            .field("inner_mtu", inner_mtu)
            .finish_non_exhaustive()
    }
}

/// Share of this host's incoming link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Prefixes inside from which the traffic comes.
    pub prefixes: Vec<Prefix>,
    /// Share among senders of one priority, 1 to 1000.
    pub weight: u16,
    /// Priority, 0 to 7; the greater is served first.
    pub priority: u8,
}

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// Returns the first fault with its place and remedy.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = match error.kind() {
                std::io::ErrorKind::NotFound => "no such file; --config FILE names another".to_owned(),
                std::io::ErrorKind::InvalidData => "not a text in UTF-8".to_owned(),
                _ => format!("cannot be read: {error}"),
            };
            DocumentError::new(Place::File(name.clone()), "", message)
        })?;
        Self::parse(path, &text)
    }

    /// Checks the text of the file at `path`, which other files are relative to.
    ///
    /// # Errors
    /// Returns the first fault with its place and remedy.
    pub fn parse(path: &Path, text: &str) -> Result<Self, DocumentError> {
        let document = Document::parse(&path.display().to_string(), text)?;
        let settings = document.read(&schema(), |_, _, _, message| message.to_owned());
        let settings: Settings = settings.map_err(|mismatch| document.error(mismatch))?;
        check::Checker { path, document: &document, settings: &settings }.config()
    }

    /// Returns the index of the peer that serves an address inside.
    pub fn peer_of(&self, inner: IpAddr) -> Option<usize> {
        self.peers.iter().position(|peer| peer.serves(inner))
    }

    /// Returns the class of traffic from an address inside.
    pub fn class_of(&self, inner: IpAddr) -> Option<&Class> {
        self.classes.iter().find(|class| class.prefixes.iter().any(|prefix| prefix.contains(inner)))
    }

    /// Returns the MTU of the interface inside: packets of it fit to each peer.
    pub fn inner_mtu(&self) -> Option<u32> {
        self.peers.iter().map(|peer| peer.inner_mtu).min()
    }
}

impl Peer {
    /// Returns whether nothing about the peer differs from `other`.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let ids = |peer: &Self| (peer.pair.inbound().id, peer.pair.outbound().id);
        let facts = |peer: &Self| (peer.name.clone(), peer.address, peer.prefixes.clone(), peer.mtu);
        facts(self) == facts(other) && ids(self) == ids(other)
    }

    /// Returns whether the peer serves an address inside. A packet whose source it does not serve is dropped.
    pub fn serves(&self, inner: IpAddr) -> bool {
        self.prefixes.iter().any(|prefix| prefix.contains(inner))
    }
}

/// Returns the bytes of headers around a packet inside, and of the tag behind it.
pub fn overhead(outside: IpAddr, seal: Seal) -> u32 {
    let ip = if outside.is_ipv4() { Ipv4::LENGTH } else { Ipv6::LENGTH };
    let header = Common::LENGTH + PacketType::Data.length() + MAC;
    let tag = if seal == Seal::Off { 0 } else { TAG };
    (ip + Udp::LENGTH + header + tag) as u32
}

/// Returns the JSON Schema (draft 2020-12) of `eqds.toml`.
pub fn schema() -> Value {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Settings>().to_value()
}

fn key(text: &str) -> KeyPath {
    KeyPath::parse(text).expect("a literal path")
}

#[cfg(test)]
mod tests;
