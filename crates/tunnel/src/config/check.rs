//! Checks of `eqds.toml`, each with its remedy.

use core::net::{IpAddr, SocketAddr};
use std::path::Path;

use selvedge_document::{Document, DocumentError, KeyPath};
use selvedge_units::Bytes;

use super::settings::{PeerSettings, Seal, Settings, Written};
use super::{Class, Config, EqifTable, Peer, Prefix, key, overhead};
use crate::base64;
use crate::keys::{KeyError, Pair, Secret};

/// A text that was read, to be checked.
pub(super) struct Checker<'a> {
    pub(super) path: &'a Path,
    pub(super) document: &'a Document,
    pub(super) settings: &'a Settings,
}

/// A prefix inside, with the key that has it.
struct Inside {
    prefix: Prefix,
    key: KeyPath,
    owner: String,
}

impl Checker<'_> {
    pub(super) fn config(&self) -> Result<Config, DocumentError> {
        let settings = self.settings;
        self.check_numbers()?;
        self.check_names()?;
        self.check_addresses()?;
        let inside = self.check_prefixes()?;
        self.check_underlay(&inside)?;
        self.check_device()?;
        self.check_secrets()?;
        let own = self.own_key()?;
        let peers = (0..settings.peer.len()).map(|at| self.peer(at, own.as_ref())).collect::<Result<Vec<_>, _>>()?;
        self.check_keys(&peers)?;
        self.check_device_mtu(&peers)?;
        let last = settings.first_path_port + (settings.paths - 1) as u16;
        let config = Config {
            name: settings.name.clone(),
            addresses: settings.addresses.iter().map(|address| address.0).collect(),
            port: settings.port,
            link_rate: settings.link_rate,
            path_ports: settings.first_path_port..=last,
            prefixes: unwritten(&settings.prefixes),
            device: settings.device.clone(),
            inner_addresses: settings.inner_addresses.iter().map(|address| address.0).collect(),
            state: self.beside(&settings.state),
            seal: settings.seal,
            tunnel: settings.tunnel.clone(),
            eqif: settings.eqif.clone(),
            peers,
            classes: self.classes()?,
        };
        self.check_tunnels(&config)?;
        Ok(config)
    }

    /// Checks the behaviour of tunnels with each peer's MTU.
    fn check_tunnels(&self, config: &Config) -> Result<(), DocumentError> {
        let tunnel = &self.settings.tunnel;
        let within = |name: &str| key("tunnel").join(name);
        if !(1..=64).contains(&tunnel.batch) {
            return self.wrong(&within("batch"), format!("{} packets; expected 1 to 64", tunnel.batch));
        }
        self.check_queue(&key("tunnel"), tunnel.queue, tunnel.mark_above)?;
        let EqifTable { tcp, rdma, other, native } = &self.settings.eqif;
        for (name, eqif) in [("tcp", tcp), ("rdma", rdma), ("other", other), ("native", native)] {
            let within = key("eqif").join(name);
            self.check_share(&within, eqif.weight, eqif.priority)?;
            let queue = eqif.queue.or(tunnel.queue.filter(|_| eqif.mark_above.is_some()));
            self.check_queue(&within, queue, eqif.mark_above)?;
        }
        for peer in &config.peers {
            if let Err(error) = crate::endpoint::check(config, peer) {
                let name = error.key.rsplit('.').next().unwrap_or(error.key);
                let message = format!("{} (peer \"{}\", MTU {})", error.message, peer.name, peer.mtu);
                return self.wrong(&within(name), message);
            }
        }
        Ok(())
    }

    fn check_share(&self, within: &KeyPath, weight: u32, priority: u32) -> Result<(), DocumentError> {
        if !(1..=1_000).contains(&weight) {
            return self.wrong(&within.join("weight"), format!("{weight}; expected 1 to 1000"));
        }
        if priority > 7 {
            return self.wrong(&within.join("priority"), format!("{priority}; expected 0 to 7"));
        }
        Ok(())
    }

    /// Checks the queue of one kind of traffic, or of all.
    fn check_queue(
        &self,
        within: &KeyPath,
        queue: Option<Bytes>,
        mark_above: Option<Bytes>,
    ) -> Result<(), DocumentError> {
        if let (Some(mark), Some(queue)) = (mark_above, queue)
            && mark > queue
        {
            let message = format!("{mark} is more than `queue`, {queue}; expected that or less");
            return self.wrong(&within.join("mark-above"), message);
        }
        if let Some(queue) = queue.filter(|queue| queue.get() < 65_536) {
            let message = format!("{queue} does not hold one packet with offload; expected \"64KiB\" or more");
            return self.wrong(&within.join("queue"), message);
        }
        Ok(())
    }

    fn wrong<T>(&self, key: &KeyPath, message: impl Into<String>) -> Result<T, DocumentError> {
        Err(DocumentError::new(self.document.place(key), key.to_string(), message))
    }

    fn check_numbers(&self) -> Result<(), DocumentError> {
        let settings = self.settings;
        if settings.link_rate.as_bps() < 1_000_000 {
            let message = format!("{} is no rate of a link; expected \"1Mbps\" or more", settings.link_rate);
            return self.wrong(&key("link-rate"), message);
        }
        if !(1..=256).contains(&settings.paths) {
            return self.wrong(&key("paths"), format!("{} paths; expected 1 to 256", settings.paths));
        }
        let last = u32::from(settings.first_path_port) + settings.paths - 1;
        if settings.first_path_port < 1_024 || last > u16::MAX.into() {
            let message = format!(
                "source ports {} to {last}; expected ports from 1024 to 65535: 49152 leaves room for all paths",
                settings.first_path_port
            );
            return self.wrong(&key("first-path-port"), message);
        }
        if (u32::from(settings.first_path_port)..=last).contains(&settings.port.into()) {
            let message = format!(
                "source ports {} to {last} include the port on which this host listens, {}; choose others",
                settings.first_path_port, settings.port
            );
            return self.wrong(&key("first-path-port"), message);
        }
        let ports = settings.peer.iter().enumerate().map(|(at, peer)| (peer_key(at, "port"), peer.port));
        for (key, port) in [(key("port"), settings.port)].into_iter().chain(ports) {
            if port == 0 {
                return self.wrong(&key, "0 is no port; expected 1 to 65535");
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), DocumentError> {
        let settings = self.settings;
        let peers = settings.peer.iter().enumerate().map(|(at, peer)| (peer_key(at, "name"), &peer.name));
        let hosts = [(key("name"), &settings.name)].into_iter().chain(peers);
        self.check_unique(hosts, "this host or another peer is called that, too; give each peer its own name")?;
        let classes = settings.class.iter().enumerate();
        let classes = classes.map(|(at, class)| (element("class", at).join("name"), &class.name));
        self.check_unique(classes, "another class is called that, too; give each its own name")
    }

    fn check_unique<'b>(
        &self,
        names: impl Iterator<Item = (KeyPath, &'b String)>,
        twice: &str,
    ) -> Result<(), DocumentError> {
        let mut known: Vec<&String> = Vec::new();
        for (key, name) in names {
            if name.trim().is_empty() || name.contains(char::is_control) {
                return self.wrong(&key, format!("{name:?} is no name; expected letters that can be read"));
            }
            if known.contains(&name) {
                return self.wrong(&key, format!("\"{name}\": {twice}"));
            }
            known.push(name);
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), DocumentError> {
        let settings = self.settings;
        for (at, Written(address)) in settings.addresses.iter().enumerate() {
            let key = element("addresses", at);
            self.check_unicast(&key, *address)?;
            if settings.addresses[..at].iter().any(|other| other.0.is_ipv4() == address.is_ipv4()) {
                let message = format!("{address} is the second address of its version; a host has one of each at most");
                return self.wrong(&key, message);
            }
        }
        if settings.addresses.is_empty() {
            return self.wrong(&key("addresses"), "no address; expected this host's address outside");
        }
        for (at, peer) in settings.peer.iter().enumerate() {
            let (key, address) = (peer_key(at, "address"), peer.address.0);
            self.check_unicast(&key, address)?;
            if settings.addresses.iter().any(|own| own.0 == address) && peer.port == settings.port {
                let message = format!("{address} port {} is this host's own; two daemons cannot share it", peer.port);
                return self.wrong(&key, message);
            }
            let same = settings.peer[..at].iter().find(|other| (other.address.0, other.port) == (address, peer.port));
            if let Some(other) = same {
                let message = format!(
                    "{address} port {} is the address of peer \"{}\", too; two daemons cannot share it: correct one, or \
                     give one another port",
                    peer.port, other.name
                );
                return self.wrong(&key, message);
            }
            if settings.addresses.iter().all(|own| own.0.is_ipv4() != address.is_ipv4()) {
                let version = if address.is_ipv4() { "IPv4" } else { "IPv6" };
                let message =
                    format!("{address} is of {version}, of which this host has no address; add one to `addresses`");
                return self.wrong(&key, message);
            }
        }
        Ok(())
    }

    fn check_unicast(&self, key: &KeyPath, address: IpAddr) -> Result<(), DocumentError> {
        let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || is_broadcast {
            return self.wrong(key, format!("{address} is not the address of one host"));
        }
        match address.to_canonical() {
            canonical if canonical == address => Ok(()),
            canonical => self.wrong(key, format!("{address} is an IPv4 address; write {canonical}")),
        }
    }

    /// Checks the prefixes inside; returns them all.
    fn check_prefixes(&self) -> Result<Vec<Inside>, DocumentError> {
        let settings = self.settings;
        let mut all: Vec<Inside> = Vec::new();
        let own = (key("prefixes"), "this host".to_owned(), &settings.prefixes);
        let peers = settings.peer.iter().enumerate();
        let peers =
            peers.map(|(at, peer)| (peer_key(at, "prefixes"), format!("peer \"{}\"", peer.name), &peer.prefixes));
        for (list, owner, prefixes) in [own].into_iter().chain(peers) {
            if prefixes.is_empty() {
                return self.wrong(&list, "no prefix; expected those inside, as [\"10.1.0.0/24\"]");
            }
            for (at, Written(prefix)) in prefixes.iter().enumerate() {
                let key = list.join(at.to_string());
                if prefix.length == 0 {
                    let message =
                        format!("{prefix} is everything, the network outside included; list the prefixes inside");
                    return self.wrong(&key, message);
                }
                if let Some(other) = all.iter().find(|other| other.prefix.overlaps(*prefix)) {
                    let message = format!(
                        "{prefix} overlaps {} of {}, {}; each address inside belongs to one host: make them disjoint",
                        other.prefix,
                        other.owner,
                        self.document.place(&other.key)
                    );
                    return self.wrong(&key, message);
                }
                all.push(Inside { prefix: *prefix, key, owner: owner.clone() });
            }
        }
        Ok(all)
    }

    /// Checks that no address outside is inside, where its packets would go through the tunnel that they carry.
    fn check_underlay(&self, inside: &[Inside]) -> Result<(), DocumentError> {
        let settings = self.settings;
        let own = settings.addresses.iter().enumerate().map(|(at, address)| (element("addresses", at), address.0));
        let peers = settings.peer.iter().enumerate().map(|(at, peer)| (peer_key(at, "address"), peer.address.0));
        for (key, address) in own.chain(peers) {
            if let Some(within) = inside.iter().find(|inside| inside.prefix.contains(address)) {
                let message = format!(
                    "{address} lies in {} of {}, {}: tunnels would carry themselves; use addresses outside, or a \
                     narrower prefix",
                    within.prefix,
                    within.owner,
                    self.document.place(&within.key)
                );
                return self.wrong(&key, message);
            }
        }
        Ok(())
    }

    /// Checks the name of the device inside, and its addresses.
    fn check_device(&self) -> Result<(), DocumentError> {
        let settings = self.settings;
        let name = &settings.device;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !(1..=15).contains(&name.len()) || !name.chars().all(is_plain) || name.starts_with(['-', '.']) {
            let message =
                format!("{name:?} is no name of a device; expected 1 to 15 letters, digits, -, _ or ., as \"eqds0\"");
            return self.wrong(&key("device"), message);
        }
        for (at, Written(inner)) in settings.inner_addresses.iter().enumerate() {
            let key = element("inner-addresses", at);
            self.check_unicast(&key, inner.address)?;
            let Some(Written(own)) = settings.prefixes.iter().find(|prefix| prefix.0.contains(inner.address)) else {
                let message = format!(
                    "{} lies in none of this host's prefixes: peers would drop its packets; add its prefix to \
                     `prefixes`, or take an address of {}",
                    inner.address, settings.prefixes[0].0
                );
                return self.wrong(&key, message);
            };
            if inner.length < own.length {
                let message =
                    format!("{inner} reaches beyond this host's prefix {own}; write {}/{}", inner.address, own.length);
                return self.wrong(&key, message);
            }
            if settings.inner_addresses[..at].iter().any(|other| other.0.address == inner.address) {
                return self.wrong(&key, format!("{} is in the list twice; remove one", inner.address));
            }
        }
        Ok(())
    }

    /// Checks that the device takes IPv6 if any is inside: Linux switches IPv6 off where the MTU is too small.
    fn check_device_mtu(&self, peers: &[Peer]) -> Result<(), DocumentError> {
        let settings = self.settings;
        let is_v6 = |prefix: &Prefix| prefix.address.is_ipv6();
        let has_v6 = settings.prefixes.iter().map(|prefix| &prefix.0).any(is_v6)
            && peers.iter().flat_map(|peer| &peer.prefixes).any(is_v6);
        let narrow = peers.iter().enumerate().find(|(_, peer)| peer.inner_mtu < 1_280);
        let Some((at, peer)) = narrow.filter(|_| has_v6) else { return Ok(()) };
        let key = if settings.peer[at].mtu.is_some() { peer_key(at, "mtu") } else { key("mtu") };
        let message = format!(
            "packets to peer \"{}\" have {} bytes at most, and all share one device, on which IPv6 needs 1280; expected \
             {} or more",
            peer.name,
            peer.inner_mtu,
            1_280 + overhead(settings.peer[at].address.0, settings.seal)
        );
        self.wrong(&key, message)
    }

    /// Checks that nobody else can read a file with secrets.
    fn check_secrets(&self) -> Result<(), DocumentError> {
        let settings = self.settings;
        let peers = settings.peer.iter().enumerate();
        let peers = peers.map(|(at, peer)| (peer_key(at, "shared-key"), peer.shared_key.is_some()));
        let own = [(key("private-key"), settings.private_key.is_some())];
        if let Some((key, _)) = own.into_iter().chain(peers).find(|(_, is_written)| *is_written) {
            return super::key::private(self.path).or_else(|message| self.wrong(&key, message));
        }
        Ok(())
    }

    fn own_key(&self) -> Result<Option<Secret>, DocumentError> {
        let settings = self.settings;
        let file = settings.private_key_file.as_deref();
        self.secret(settings.private_key.as_deref(), file, &key("private-key"))
    }

    /// Returns the secret that is written at `key`, or in the file that the key with "-file" names.
    fn secret(
        &self,
        inline: Option<&str>,
        file: Option<&Path>,
        key: &KeyPath,
    ) -> Result<Option<Secret>, DocumentError> {
        let steps = key.steps();
        let (last, before) = steps.split_last().expect("a key has a name");
        let file_key = before.iter().fold(KeyPath::root(), |path, step| path.join(step)).join(format!("{last}-file"));
        match (inline, file) {
            (None, None) => Ok(None),
            (Some(text), None) => {
                Secret::from_base64(text).map(Some).or_else(|error| self.wrong(key, error.to_string()))
            }
            (None, Some(file)) => {
                super::key::read(&self.beside(file)).map(Some).or_else(|message| self.wrong(&file_key, message))
            }
            (Some(_), Some(_)) => self.wrong(&file_key, format!("{last} is written, too; keep one of both")),
        }
    }

    fn peer(&self, at: usize, own: Option<&Secret>) -> Result<Peer, DocumentError> {
        let (settings, peer) = (self.settings, &self.settings.peer[at]);
        Ok(Peer {
            name: peer.name.clone(),
            address: SocketAddr::new(peer.address.0, peer.port),
            prefixes: unwritten(&peer.prefixes),
            mtu: peer.mtu.unwrap_or(settings.mtu),
            inner_mtu: self.inner_mtu(at, peer)?,
            pair: self.pair(at, peer, own, settings.seal)?,
        })
    }

    fn inner_mtu(&self, at: usize, peer: &PeerSettings) -> Result<u32, DocumentError> {
        let settings = self.settings;
        let (mtu, key) = match peer.mtu {
            Some(mtu) if mtu > settings.mtu => {
                let message = format!("{mtu} is more than this host's mtu, {}; leave it out", settings.mtu);
                return self.wrong(&peer_key(at, "mtu"), message);
            }
            Some(mtu) => (mtu, peer_key(at, "mtu")),
            None => (settings.mtu, key("mtu")),
        };
        if mtu > 65_535 {
            return self.wrong(&key, format!("{mtu} is more than an IP packet has; expected 65535 at most"));
        }
        let is_v6 = |prefix: &Written<Prefix>| prefix.0.address.is_ipv6();
        // RFC 8200, section 5; RFC 791.
        let (least, what) = if peer.prefixes.iter().any(is_v6) { (1_280, "IPv6") } else { (576, "IPv4") };
        let around = overhead(peer.address.0, settings.seal);
        match mtu.checked_sub(around) {
            Some(inner) if inner >= least => Ok(inner),
            _ => {
                let message = format!(
                    "{mtu} is too small: {what} inside needs {least} bytes and the tunnel adds {around}; expected {} or \
                     more",
                    least + around
                );
                self.wrong(&key, message)
            }
        }
    }

    fn pair(&self, at: usize, peer: &PeerSettings, own: Option<&Secret>, seal: Seal) -> Result<Pair, DocumentError> {
        let shared_key = peer_key(at, "shared-key");
        let shared = self.secret(peer.shared_key.as_deref(), peer.shared_key_file.as_deref(), &shared_key)?;
        let public_key = peer_key(at, "public-key");
        let (pair, key) = match (&peer.public_key, own, shared) {
            (Some(_), None, _) => {
                let message =
                    "this host has no private key to use with it; add private-key-file at the top of the file";
                return self.wrong(&public_key, message);
            }
            (Some(text), Some(own), shared) => {
                let Some(public) = base64::decode(text) else {
                    return self.wrong(&public_key, KeyError::NotBase64.to_string());
                };
                (Pair::from_static(own, public, shared.as_ref(), seal.suite()), public_key)
            }
            (None, _, Some(shared)) => {
                (Pair::from_shared(&shared, &self.settings.name, &peer.name, seal.suite()), shared_key)
            }
            (None, _, None) => {
                let message = format!("peer \"{}\" has no key; add public-key, or shared-key-file", peer.name);
                return self.wrong(&element("peer", at), message);
            }
        };
        pair.or_else(|error| self.wrong(&key, error.to_string()))
    }

    /// Checks that no two peers have one public key.
    fn check_keys(&self, peers: &[Peer]) -> Result<(), DocumentError> {
        for (at, peer) in peers.iter().enumerate() {
            if let Some(other) = peers[..at].iter().find(|other| other.pair.has_peer_of(&peer.pair)) {
                let message = format!("peer \"{}\" has the same key; each host has its own", other.name);
                return self.wrong(&peer_key(at, "public-key"), message);
            }
        }
        Ok(())
    }

    fn classes(&self) -> Result<Vec<Class>, DocumentError> {
        let mut all: Vec<(Prefix, &str)> = Vec::new();
        let mut classes = Vec::new();
        for (at, class) in self.settings.class.iter().enumerate() {
            let within = |name: &str| element("class", at).join(name);
            self.check_share(&element("class", at), class.weight, class.priority)?;
            if class.prefixes.is_empty() {
                return self.wrong(&within("prefixes"), "no prefix; expected the sources of the class's traffic");
            }
            for (number, Written(prefix)) in class.prefixes.iter().enumerate() {
                if let Some((other, name)) = all.iter().find(|(other, _)| other.overlaps(*prefix)) {
                    let message = format!("{prefix} overlaps {other} of class \"{name}\"; make them disjoint");
                    return self.wrong(&within("prefixes").join(number.to_string()), message);
                }
                all.push((*prefix, &class.name));
            }
            let (weight, priority) = (class.weight as u16, class.priority as u8);
            let (name, prefixes) = (class.name.clone(), unwritten(&class.prefixes));
            classes.push(Class { name, prefixes, weight, priority });
        }
        Ok(classes)
    }

    /// Returns a path relative to the file's folder.
    fn beside(&self, file: &Path) -> std::path::PathBuf {
        self.path.parent().map_or_else(|| file.to_owned(), |folder| folder.join(file))
    }
}

fn element(list: &str, at: usize) -> KeyPath {
    key(list).join(at.to_string())
}

fn peer_key(at: usize, name: &str) -> KeyPath {
    element("peer", at).join(name)
}

fn unwritten(prefixes: &[Written<Prefix>]) -> Vec<Prefix> {
    prefixes.iter().map(|prefix| prefix.0).collect()
}
