//! The IP addresses and ports of a connection (annex A11).
//!
//! | bytes | field                                                        |
//! |-------|--------------------------------------------------------------|
//! | 0     | version, 0                                                   |
//! | 1     | IP version (4 bits), 0 (4)                                   |
//! | 2-3   | source port                                                  |
//! | 4-19  | source address; IPv4 in the last four bytes                  |
//! | 20-35 | destination address                                          |

use core::net::Ipv6Addr;

/// The IP addresses and ports of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpAddresses {
    /// Source port.
    pub port: u16,
    /// Source address (IPv4 as `::ffff:a.b.c.d`).
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl IpAddresses {
    /// Bytes of the header.
    pub const LENGTH: usize = 36;
    /// Base of the service ids of TCP-like ports, which are in the lowest 16 bits.
    pub const TCP_SERVICES: u64 = 0x0106_0000;
    /// Base of the service ids of UDP-like ports.
    pub const UDP_SERVICES: u64 = 0x0111_0000;

    /// Reads the header. An unknown IP version is treated as 6.
    pub fn parse(bytes: &[u8; Self::LENGTH]) -> Self {
        let is_v4 = bytes[1] >> 4 == 4;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[at..at + 16]);
            if is_v4 {
                octets[..12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
            }
            Ipv6Addr::from(octets)
        };
        Self { port: u16::from_be_bytes([bytes[2], bytes[3]]), source: address(4), destination: address(20) }
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[1] = if self.source.to_ipv4_mapped().is_some() { 4 << 4 } else { 6 << 4 };
        bytes[2..4].copy_from_slice(&self.port.to_be_bytes());
        for (at, address) in [(4, self.source), (20, self.destination)] {
            match address.to_ipv4_mapped() {
                Some(v4) => bytes[at + 12..at + 16].copy_from_slice(&v4.octets()),
                None => bytes[at..at + 16].copy_from_slice(&address.octets()),
            }
        }
        bytes
    }
}
