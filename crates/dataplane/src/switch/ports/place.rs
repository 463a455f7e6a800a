//! Places of ports, as users name them.

use std::fmt;
use std::io;
use std::str::FromStr;

use super::{Port, PortKind, exists};
use crate::netns;

/// Place of a port: `eth1`, `sv-a/eth0` in a namespace, `tap:tap0`, `packet:eth1`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortPlace {
    /// Kind of the port. `None`: the best for an interface that exists.
    pub kind: Option<PortKind>,
    /// Network namespace of the interface; `None` for that of the process.
    pub namespace: Option<String>,
    /// Name of the interface.
    pub interface: String,
}

impl PortPlace {
    /// Opens the port. Returns why it is not the best one, if it is not.
    ///
    /// # Errors
    /// Returns an error if there is no such namespace or interface, or the system's.
    pub fn open(&self) -> io::Result<(Port, Option<io::Error>)> {
        let open = || {
            if self.kind != Some(PortKind::Tap) && !exists(&self.interface) {
                let why = format!("there is no interface {self}");
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
            let (mut port, why) = match self.kind {
                Some(kind) => (Port::open(kind, &self.interface)?, None),
                None => Port::open_best(&self.interface)?,
            };
            // The other end may be out of reach of `plain`.
            port.complete_checksums();
            Ok((port, why))
        };
        match &self.namespace {
            None => open(),
            Some(namespace) => netns::visit(namespace, open),
        }
    }
}

impl FromStr for PortPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = match text.split_once(':') {
            None => (None, text),
            Some(("xdp", rest)) => (Some(PortKind::Xdp), rest),
            Some(("packet", rest)) => (Some(PortKind::Packet), rest),
            Some(("tap", rest)) => (Some(PortKind::Tap), rest),
            Some((kind, _)) => return Err(format!("\"{kind}\" is no kind of port: xdp, packet and tap are")),
        };
        let (namespace, interface) = rest.split_once('/').map_or((None, rest), |(space, name)| (Some(space), name));
        if let Some(namespace) = namespace {
            netns::check_name(namespace)?;
        }
        if interface.is_empty() || interface.len() >= libc::IFNAMSIZ || interface.contains(['/', ':', ' ']) {
            return Err(format!("\"{interface}\" is no name for an interface: one to 15 letters are, as in eth1"));
        }
        Ok(Self { kind, namespace: namespace.map(str::to_owned), interface: interface.to_owned() })
    }
}

impl fmt::Display for PortPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind {
            write!(f, "{kind}:")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_shown() {
        for text in ["eth1", "tap:tap0", "sv-a/eth0", "packet:sv-a/eth0"] {
            assert_eq!(text.parse::<PortPlace>().map(|place| place.to_string()).as_deref(), Ok(text));
        }
        let wrong = |text: &str| text.parse::<PortPlace>().expect_err("no place");
        assert!(wrong("").contains("is no name for an interface"));
        assert!(wrong("a/b/c").contains("is no name for an interface"));
        assert!(wrong("sixteen_letters_").contains("one to 15 letters"));
        assert!(wrong("tun:x").contains("xdp, packet and tap are"));
        assert!(wrong("../x").contains("no name for a namespace"));
    }
}
