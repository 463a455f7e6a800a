//! The device inside: a TUN device with segmentation offload, its addresses and routes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use selvedge_tunnel::config::{Config, Prefix};
use selvedge_tunnel::endpoint::Endpoint;

use super::error::EqdsError;
use crate::iproute::{ip, ip_batch};
use crate::tun;

/// Longest queue of packets before the device.
const QUEUE: u32 = 1_000;
/// MTU of the device as long as there are no peers: the least that IPv6 needs.
const WITHOUT_PEERS: u32 = 1_280;
/// Work on packets that every kernel with TUN devices leaves to the reader.
const OFFLOADS: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// Work that Linux 6.2 and later leave to the reader, too: cutting of UDP datagrams.
const UDP_OFFLOADS: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// A TUN device with its addresses and routes. Dropping the value removes all of them.
#[derive(Debug)]
pub(super) struct Device {
    file: File,
    name: String,
    cuts_udp: bool,
}

/// Outcomes of giving a packet to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// The host has the packet.
    Yes,
    /// The kernel refused the packet: its `virtio_net_hdr` or its form is wrong, or the device is down.
    Refused,
}

impl Device {
    /// Makes the device, without addresses, that the settings describe.
    pub(super) fn open(config: &Config) -> Result<Self, EqdsError> {
        let name = config.device.clone();
        let is_taken = || {
            EqdsError::input(format!(
                "there is a network device {name} already: if it is that of another daemon, `selvedge eqds status` shows \
                 it; `ip link delete {name}` removes one that is not needed; or choose another name by `device`"
            ))
        };
        if if_nametoindex(&*name).is_ok() {
            return Err(is_taken());
        }
        let flags = tun::PLAIN | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        let file = tun::open(&name, flags).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => EqdsError::input(format!(
                "{error}: run it as root, or with CAP_NET_ADMIN (systemd: AmbientCapabilities=CAP_NET_ADMIN; a container: \
                 --cap-add NET_ADMIN)"
            )),
            io::ErrorKind::ResourceBusy => is_taken(),
            _ => EqdsError::input(error.to_string()),
        })?;
        let unable = EqdsError::system("cannot set up the device");
        tun::set_header_length(&file, Endpoint::VNET_HEADER as libc::c_int).map_err(unable)?;
        let wanted = if config.tunnel.offload { OFFLOADS } else { libc::TUN_F_CSUM };
        let cuts_udp = config.tunnel.offload && tun::set_offloads(&file, wanted | UDP_OFFLOADS).is_ok();
        if !cuts_udp {
            tun::set_offloads(&file, wanted).map_err(EqdsError::system("cannot set the offloads of the device"))?;
        }
        Ok(Self { file, name, cuts_udp })
    }

    /// Gives the device its MTU and addresses, and routes to the prefixes of all peers.
    pub(super) fn set_up(&self, config: &Config) -> Result<(), EqdsError> {
        let routes = routes(config);
        check_routes(&routes, config)?;
        let name = &self.name;
        // Without an address of its own making, the device sends no router solicitations. Hosts without IPv6 refuse.
        let _ = ip(&["link", "set", "dev", name, "addrgenmode", "none"]);
        // When an address is removed at a reload, the others of its prefix stay. Containers may not change it.
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{name}/promote_secondaries"), "1");
        let mut commands = vec![format!("link set dev {name} mtu {} txqueuelen {QUEUE} up", mtu(config))];
        commands.extend(config.inner_addresses.iter().map(|address| format!("address add {address} dev {name}")));
        commands.extend(routes.iter().map(|prefix| format!("route add {prefix} dev {name}")));
        batch(&commands)
    }

    /// Changes MTU, addresses and routes from those of `old` to those of `new`; on an error nothing is changed.
    pub(super) fn change(&self, old: &Config, new: &Config) -> Result<(), EqdsError> {
        let before = routes(old);
        let added: Vec<Prefix> = routes(new).into_iter().filter(|prefix| !before.contains(prefix)).collect();
        check_routes(&added, new)?;
        batch(&self.steps(old, new)).inspect_err(|_| {
            for step in self.steps(new, old) {
                // Steps that were not taken cannot be taken back.
                let _ = batch(&[step]);
            }
        })
    }

    /// Returns the commands that lead from `old` to `new`.
    fn steps(&self, old: &Config, new: &Config) -> Vec<String> {
        let name = &self.name;
        let mut steps = Vec::new();
        if mtu(new) != mtu(old) {
            steps.push(format!("link set dev {name} mtu {}", mtu(new)));
        }
        let (before, mut after) = (routes(old), routes(new));
        let gone = before.iter().filter(|prefix| !after.contains(prefix));
        steps.extend(gone.map(|prefix| format!("route delete {prefix} dev {name}")));
        let (had, mut has) = (&old.inner_addresses, new.inner_addresses.clone());
        let removed: Vec<_> = had.iter().filter(|address| !has.contains(address)).collect();
        steps.extend(removed.iter().map(|address| format!("address delete {address} dev {name}")));
        if removed.is_empty() {
            has.retain(|address| !had.contains(address));
            after.retain(|prefix| !before.contains(prefix));
        }
        // With an address the kernel may have removed others of its prefix, and with the last one all routes.
        steps.extend(has.iter().map(|address| format!("address replace {address} dev {name}")));
        steps.extend(after.iter().map(|prefix| format!("route replace {prefix} dev {name}")));
        steps
    }

    /// Returns the name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
    /// Returns whether the kernel leaves the cutting of UDP datagrams to this side.
    pub(super) fn cuts_udp(&self) -> bool {
        self.cuts_udp
    }
    /// Returns the file, to wait for packets.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads the next packet that this host sends; `None` if there is none.
    pub(super) fn take(&self, buffer: &mut [u8]) -> Result<Option<usize>, EqdsError> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EAGAIN | Errno::EINTR) => Ok(None),
                // The device is down, by `ip link set down`: it can come up again.
                Some(Errno::EIO | Errno::ENETDOWN) => Ok(None),
                Some(Errno::EBADFD) => Err(self.is_gone()),
                _ => Err(EqdsError::failed(format!("cannot read from {}: {error}", self.name))),
            },
        }
    }

    /// Gives a packet to this host.
    pub(super) fn give(&self, packet: &[u8]) -> Given {
        loop {
            match (&self.file).write(packet) {
                Ok(_) => return Given::Yes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Given::Refused,
            }
        }
    }

    /// Returns the error of a device that somebody removed.
    pub(super) fn is_gone(&self) -> EqdsError {
        EqdsError::failed(format!("the device {} was removed by another program", self.name))
    }
}

/// Returns the prefixes of all peers.
fn routes(config: &Config) -> Vec<Prefix> {
    config.peers.iter().flat_map(|peer| peer.prefixes.iter().copied()).collect()
}

/// Returns the MTU of the device inside.
pub(super) fn mtu(config: &Config) -> u32 {
    config.inner_mtu().unwrap_or(WITHOUT_PEERS)
}

/// Runs commands of `ip`; the error has a remedy.
fn batch(commands: &[String]) -> Result<(), EqdsError> {
    ip_batch(&[], commands).map(drop).map_err(|error| {
        let text = error.to_string();
        let is_off = text.contains(':') && (text.contains("Permission denied") || text.contains("not supported"));
        let hint = match is_off && is_v6_off() {
            true => {
                "; IPv6 is switched off here: `sysctl -w net.ipv6.conf.all.disable_ipv6=0`, or leave out its prefixes"
            }
            false => "",
        };
        EqdsError::input(format!("{text}{hint}"))
    })
}

fn is_v6_off() -> bool {
    let setting = fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    setting.map_or(true, |text| text.trim() != "0")
}

/// Checks that no route to one of `prefixes` exists, which would be used instead of the device's or beside it.
fn check_routes(prefixes: &[Prefix], config: &Config) -> Result<(), EqdsError> {
    for (family, is_v4) in [("-4", true), ("-6", false)] {
        let of_family = prefixes.iter().filter(|prefix| prefix.address.is_ipv4() == is_v4);
        let commands: Vec<String> = of_family.map(|prefix| format!("route show exact {prefix}")).collect();
        let found = ip_batch(&[family], &commands).map_err(|error| EqdsError::input(error.to_string()))?;
        let Some(route) = found.lines().map(str::trim).find(|line| !line.is_empty()) else { continue };
        let target = route.split_whitespace().next().unwrap_or_default();
        let address: Option<IpAddr> = target.split('/').next().and_then(|address| address.parse().ok());
        let peer = address.and_then(|address| config.peers.get(config.peer_of(address)?));
        let peer = peer.map_or_else(String::new, |peer| format!(" of peer \"{}\"", peer.name));
        return Err(EqdsError::input(format!(
            "there is a route to {target}{peer} already (`{route}`), and packets to it would not reach the tunnel: remove \
             it by `ip {family} route delete {target}`, or the prefix from the settings"
        )));
    }
    Ok(())
}
