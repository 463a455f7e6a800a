//! The capabilities of this host for a software RNIC, found by trying.

use std::io;
use std::net::Ipv4Addr;

use nix::sys::socket::{setsockopt, sockopt};

use super::device::Device;
use super::port::{Ports, ROCE};

/// Capabilities of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Environment {
    /// The UDP port that the next process gets; `None` if none is free.
    pub port: Option<u16>,
    /// Whether NICs of other makers reach that process.
    pub reached: bool,
    /// Bytes that a socket's receive buffer holds.
    pub buffer: usize,
    /// Whether the kernel cuts long datagrams (`UDP_SEGMENT`).
    pub cuts: bool,
    /// Whether the kernel joins datagrams that arrive together (`UDP_GRO`).
    pub joins: bool,
    /// Whether there is IPv6.
    pub ipv6: bool,
}

impl Environment {
    /// Finds the capabilities by trying each.
    ///
    /// # Errors
    /// Returns an error when there are no sockets at all; a lack of free ports is no error.
    pub fn probe() -> io::Result<Self> {
        let ports = match Ports::open() {
            Ok(ports) => ports,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Ok(Self { port: None, reached: false, buffer: 0, cuts: false, joins: false, ipv6: false });
            }
            Err(error) => return Err(error),
        };
        let (sockets, reached) = (&ports.own, ports.has_roce());
        let socket = &sockets.v4;
        Ok(Self {
            port: Some(ROCE + u16::from(sockets.slot)),
            reached,
            buffer: nix::sys::socket::getsockopt(socket, sockopt::RcvBuf)?,
            cuts: setsockopt(socket, sockopt::UdpGsoSegment, &0).is_ok(),
            joins: setsockopt(socket, sockopt::UdpGroSegment, &true).is_ok(),
            ipv6: sockets.v6.is_some(),
        })
    }

    /// Returns messages about missing capabilities.
    pub fn lacks(&self, devices: &[Device]) -> Vec<String> {
        /// Bytes that a connection's window takes, including the kernel's own bookkeeping.
        const BUFFER: usize = 1 << 20;
        let mut lacks = Vec::new();
        let mut lack = |is_lacking: bool, text: &str| {
            if is_lacking {
                lacks.push(text.to_owned());
            }
        };
        lack(devices.is_empty(), "no interface has an IPv4 or a global IPv6 address: there are no devices");
        lack(self.port.is_none(), "UDP ports 4791 to 4854 are all taken: no further process can use RDMA");
        lack(
            self.port.is_some() && !self.reached,
            "UDP port 4791 is another user's or a driver's: NICs that are not ours do not reach us",
        );
        if self.port.is_some() {
            lack(self.buffer < BUFFER, "small socket buffers cost throughput: sysctl net.core.rmem_max=16777216");
            lack(!self.cuts, "the kernel does not cut datagrams (UDP_SEGMENT): sending is slow");
            lack(!self.joins, "the kernel does not join datagrams (UDP_GRO): receiving is slow");
            lack(!self.ipv6, "no IPv6: only IPv4 GIDs work");
        }
        for device in devices.iter().filter(|device| !device.is_up) {
            lack(true, &format!("{} is down", device.interface));
        }
        lacks.extend(Device::misnomers(devices));
        lacks
    }
}

/// Returns the usual text form of an address: `10.0.0.1` rather than `::ffff:10.0.0.1`.
pub fn written(gid: &std::net::Ipv6Addr) -> String {
    gid.to_ipv4_mapped().as_ref().map_or_else(|| gid.to_string(), Ipv4Addr::to_string)
}
