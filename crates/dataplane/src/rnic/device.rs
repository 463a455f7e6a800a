//! RDMA devices: one for each interface of this host that has an address.
//!
//! Loopback is a device only if no other interface is up, or if the user asks for it: programs that use all devices at
//! once (UCX's rails) would send to another host's 127.0.0.1.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::{env, fs, io};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Icrc, Udp};

/// Environment variable with preferred names of devices, like `eth0=mlx5_0,lo=rxe0`: some programs look for familiar
/// names.
pub const NAMES: &str = "SELVEDGE_DEVICE_NAMES";

/// Environment variable that says whether loopback is a device: `yes` or `no`. Unset, loopback is one if no other
/// device is up, or if an argument or an environment variable of the program names it.
pub const LOOPBACK: &str = "SELVEDGE_LOOPBACK";

/// An RDMA device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Name of the device: `sv_` and the interface, or the name from [`NAMES`]. Without hyphens: libfabric takes what
    /// follows the last one for a suffix of its own.
    pub name: String,
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface.
    pub index: u32,
    /// MTU of the interface in bytes.
    pub mtu: u32,
    /// Hardware address of the interface.
    pub hardware: [u8; 6],
    /// Whether the interface is up and running.
    pub is_up: bool,
    /// Speed in megabits per second, if the interface tells it.
    pub speed: Option<u32>,
    /// Addresses in InfiniBand's sense, in the order that Linux gives them: first the link-local one, then IPv4
    /// addresses as `::ffff:a.b.c.d`, then the other IPv6 addresses.
    pub gids: Vec<Ipv6Addr>,
    /// Whether the first of the addresses is one of the interface; otherwise nothing can be sent from it or to it.
    pub has_link_local: bool,
}

impl Device {
    /// Returns the devices that programs see, loopback last if it is one of them.
    ///
    /// # Errors
    /// Returns an error when the system does not tell its interfaces, or [`LOOPBACK`] is neither `yes` nor `no`.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut devices = Self::every()?;
        let wish = wish(&env::var_os(LOOPBACK).unwrap_or_default())?;
        let is_alone = !devices.iter().any(|device| device.is_up && !device.is_loopback());
        devices.retain(|device| !device.is_loopback() || wish.unwrap_or_else(|| is_alone || is_named(&device.name)));
        Ok(devices)
    }

    /// Returns all devices, loopback in any case.
    ///
    /// # Errors
    /// Returns an error when the system does not tell its interfaces.
    pub fn every() -> io::Result<Vec<Self>> {
        let mut found: BTreeMap<String, Found> = BTreeMap::new();
        for address in getifaddrs()? {
            found.entry(interface_of(&address.interface_name).to_owned()).or_default().learn(&address);
        }
        let names = env::var(NAMES).unwrap_or_default();
        let mut devices: Vec<Self> =
            found.into_iter().filter_map(|(interface, found)| found.device(interface, &names)).collect();
        devices.sort_by_key(|device| (device.is_loopback(), device.index));
        distinguish(&mut devices);
        Ok(devices)
    }

    /// Returns warnings for arguments and environment variables of this process that name a device with a hyphen, like
    /// `sv-eth0` for `sv_eth0`.
    pub fn misspellings(devices: &[Self]) -> Vec<String> {
        misspellings(devices, &said())
    }

    /// Returns warnings for entries of [`NAMES`] that name none of `devices`.
    pub(super) fn misnomers(devices: &[Self]) -> Vec<String> {
        misnomers(&env::var(NAMES).unwrap_or_default(), devices)
    }

    /// Returns the largest payload of a packet in bytes, as InfiniBand counts it: the largest of 256, 512, 1024, 2048
    /// and 4096 that fits into the MTU behind all headers.
    pub fn payload(&self) -> u16 {
        const IPV6: usize = 40;
        let headers = (IPV6 + Udp::LENGTH + Headers::LONGEST + Icrc::LENGTH) as u32;
        (8..=12).rev().map(|power| 1 << power).find(|&payload| u32::from(payload) + headers <= self.mtu).unwrap_or(256)
    }
    /// Returns the hardware address as a 64-bit one.
    pub fn guid(&self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.hardware;
        [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }
    /// Returns whether the device leads to this host alone.
    pub fn is_loopback(&self) -> bool {
        self.gids.iter().any(|gid| gid.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()) || gid.is_loopback())
    }
}

/// Facts about an interface, collected from the entries of `getifaddrs`, one per address.
#[derive(Default)]
struct Found {
    flags: Option<InterfaceFlags>,
    hardware: [u8; 6],
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
}

impl Found {
    fn learn(&mut self, address: &InterfaceAddress) {
        self.flags = Some(address.flags);
        let Some(storage) = &address.address else { return };
        if let Some(v4) = storage.as_sockaddr_in() {
            self.v4.push(v4.ip());
        } else if let Some(v6) = storage.as_sockaddr_in6() {
            self.v6.push(v6.ip());
        } else if let Some(hardware) = storage.as_link_addr().and_then(|link| link.addr()) {
            self.hardware = hardware;
        }
    }

    /// Returns the device of the interface; `None` if it has no address that others could reach.
    fn device(self, interface: String, names: &str) -> Option<Device> {
        let index = if_nametoindex(interface.as_str()).ok()?;
        let flags = self.flags?;
        let mut device = Device {
            name: name_of(&interface, names),
            index,
            mtu: setting(&interface, "mtu").unwrap_or(1_500),
            hardware: self.hardware,
            is_up: flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING),
            speed: setting(&interface, "speed"),
            gids: Vec::new(),
            has_link_local: false,
            interface,
        };
        let (local, global): (Vec<_>, Vec<_>) = self.v6.into_iter().partition(Ipv6Addr::is_unicast_link_local);
        if self.v4.is_empty() && global.is_empty() {
            return None;
        }
        let mut bytes = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[8..].copy_from_slice(&device.guid());
        device.has_link_local = !local.is_empty();
        device.gids.push(local.first().copied().unwrap_or(Ipv6Addr::from(bytes)));
        device.gids.extend(self.v4.iter().map(Ipv4Addr::to_ipv6_mapped));
        device.gids.extend(global);
        Some(device)
    }
}

/// Returns the interface that has an address with this label. Labels like `eth0:1` are names for addresses; no
/// interface has a colon in its name.
fn interface_of(label: &str) -> &str {
    label.split_once(':').map_or(label, |(interface, _)| interface)
}

fn name_of(interface: &str, names: &str) -> String {
    let chosen = names.split(',').filter_map(|pair| pair.split_once('=')).find(|(of, _)| *of == interface);
    // Kernels allow 63 characters.
    chosen.map_or_else(|| default_name(interface), |(_, name)| name.chars().take(63).collect())
}

fn default_name(interface: &str) -> String {
    format!("sv_{}", interface.replace('-', "_"))
}

/// Appends the interface's index to the names of devices that would be equal (`br-a` and `br_a`), except the first.
fn distinguish(devices: &mut [Device]) {
    for at in 1..devices.len() {
        let (before, rest) = devices.split_at_mut(at);
        if before.iter().any(|device| device.name == rest[0].name) {
            rest[0].name = format!("{}_{}", rest[0].name, rest[0].index);
        }
    }
}

/// Parses the value of [`LOOPBACK`]; `None` if it is empty.
fn wish(said: &std::ffi::OsStr) -> io::Result<Option<bool>> {
    match said.to_str() {
        Some("") => Ok(None),
        Some("yes") => Ok(Some(true)),
        Some("no") => Ok(Some(false)),
        _ => {
            let problem = format!("{LOOPBACK}={}: yes and no are known", said.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
    }
}

/// Returns the arguments of this process, and the values of its environment variables.
fn said() -> Vec<OsString> {
    env::args_os().skip(1).chain(env::vars_os().map(|(_, value)| value)).collect()
}

/// Returns whether an argument or an environment variable of this process names a device.
fn is_named(name: &str) -> bool {
    said().iter().any(|text| has_word(&text.to_string_lossy(), name))
}

/// Returns whether `word` occurs in `text` and is not part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !word.is_empty() && !before.is_some_and(continues) && !behind.is_some_and(continues)
    })
}

fn misspellings(devices: &[Device], said: &[OsString]) -> Vec<String> {
    let problem = |device: &Device| {
        let Device { name, interface, .. } = device;
        let old = format!("sv-{interface}");
        let is_said = *name != old && said.iter().any(|text| has_word(&text.to_string_lossy(), &old));
        is_said.then(|| {
            format!("no device is called {old}: that of {interface} is {name} ({NAMES}={interface}={old} renames it)")
        })
    };
    devices.iter().filter_map(problem).collect()
}

fn misnomers(names: &str, devices: &[Device]) -> Vec<String> {
    let problem = |pair: &str| match pair.split_once('=') {
        None => Some(format!("{NAMES}: \"{pair}\" names nothing: expected INTERFACE=NAME, as in eth0=mlx5_0")),
        Some((of, _)) if devices.iter().any(|device| device.interface == of) => None,
        Some((of, name)) => Some(format!("{NAMES}: there is no device of \"{of}\" that could be named {name}")),
    };
    names.split(',').filter(|pair| !pair.is_empty()).filter_map(problem).collect()
}

fn setting(interface: &str, what: &str) -> Option<u32> {
    fs::read_to_string(format!("/sys/class/net/{interface}/{what}")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(mtu: u32) -> Device {
        Device {
            name: "sv_eth0".into(),
            interface: "eth0".into(),
            index: 2,
            mtu,
            hardware: [2, 0, 0, 0, 0, 1],
            is_up: true,
            speed: None,
            gids: vec![],
            has_link_local: false,
        }
    }

    #[test]
    fn the_payload_follows_from_the_mtu() {
        let payloads = [1_500, 65_536, 9_000, 4_200, 576, 68].map(|mtu| device(mtu).payload());
        assert_eq!(payloads, [1_024, 4_096, 4_096, 2_048, 256, 256]);
    }

    #[test]
    fn names_can_be_chosen() {
        assert_eq!(name_of("eth0", ""), "sv_eth0");
        assert_eq!(name_of("lo", "eth0=mlx5_0,lo=rxe0"), "rxe0");
        assert_eq!(device(1_500).guid(), [0, 0, 0, 0xff, 0xfe, 0, 0, 1]);
    }

    #[test]
    fn names_have_no_hyphens_and_are_each_there_once() {
        assert_eq!(name_of("br-3f-a", ""), "sv_br_3f_a");
        let of = |name: &str, index| Device { name: name.into(), index, ..device(1_500) };
        let mut devices = [of("sv_br_a", 2), of("sv_br_a", 3), of("sv_eth0", 4), of("sv_br_a", 5)];
        distinguish(&mut devices);
        assert_eq!(devices.map(|device| device.name), ["sv_br_a", "sv_br_a_3", "sv_eth0", "sv_br_a_5"]);
    }

    #[test]
    fn loopback_is_asked_for_by_yes_or_by_its_name() {
        assert_eq!(["", "yes", "no"].map(|text| wish(text.as_ref()).ok()), [None, Some(true), Some(false)].map(Some));
        let refused = wish("1".as_ref()).expect_err("should be refused");
        assert_eq!(refused.to_string(), "SELVEDGE_LOOPBACK=1: yes and no are known");
        for text in ["sv_lo", "sv_lo:1", "eth0:1,sv_lo:1", "--device=sv_lo"] {
            assert!(has_word(text, "sv_lo"), "{text}");
        }
        for text in ["", "sv_lo0", "my-sv_lo", "sv_local", "sv-lo"] {
            assert!(!has_word(text, "sv_lo"), "{text}");
        }
    }

    #[test]
    fn names_with_a_hyphen_in_settings_are_told() {
        let said = ["-d", "sv-eth0", "UCX"].map(OsString::from);
        let told = misspellings(&[device(1_500)], &said);
        let expected =
            "no device is called sv-eth0: that of eth0 is sv_eth0 (SELVEDGE_DEVICE_NAMES=eth0=sv-eth0 renames it)";
        assert_eq!(told, [expected]);
        let renamed = Device { name: "sv-eth0".into(), ..device(1_500) };
        assert_eq!(misspellings(&[renamed], &said), [""; 0]);
        assert_eq!(misspellings(&[device(1_500)], &["sv-eth01"].map(OsString::from)), [""; 0]);
    }

    #[test]
    fn names_that_name_nothing_are_told() {
        let devices = [device(1_500)];
        assert_eq!(misnomers("", &devices), [""; 0]);
        assert_eq!(misnomers("eth0=mlx5_0,", &devices), [""; 0]);
        let told = misnomers("eth0,eht0=mlx5_0", &devices).join("\n");
        assert!(told.contains("\"eth0\" names nothing: expected INTERFACE=NAME"), "{told}");
        assert!(told.contains("no device of \"eht0\" that could be named mlx5_0"), "{told}");
    }

    #[test]
    fn an_address_with_a_label_is_its_interfaces() {
        assert_eq!(["eth0", "eth0:1", "eth0:web"].map(interface_of), ["eth0"; 3]);
    }

    #[test]
    fn this_host_has_loopback() {
        let devices = Device::every().expect("the system lists its interfaces");
        let loopback = devices.iter().find(|device| device.interface == "lo");
        assert!(loopback.is_none_or(|lo| lo.gids.contains(&Ipv4Addr::LOCALHOST.to_ipv6_mapped())), "{devices:?}");
    }
}
