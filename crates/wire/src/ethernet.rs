//! The Ethernet header (IEEE 802.3, clause 3), without a VLAN tag.
//!
//! | bytes | field                                    |
//! |-------|------------------------------------------|
//! | 0-5   | destination address                      |
//! | 6-11  | source address                           |
//! | 12-13 | type of the payload; see [`EtherType`]   |

use crate::error::{ParseError, take};

/// The address of an Ethernet station.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Address of MAC control frames: never forwarded by a bridge (IEEE 802.1Q, table 8-1).
    pub const MAC_CONTROL: Self = Self([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);

    /// Address of all stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns whether the address is that of a group of stations; all of them are one.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns a locally administered unicast address with this number in its last four bytes.
    pub const fn local(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([0x02, 0x00, a, b, c, d])
    }
}

/// Types of Ethernet payloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EtherType;

impl EtherType {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address resolution (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// A tag with priority and VLAN (IEEE 802.1Q), before the type of the payload.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// A tag of a provider's network (IEEE 802.1ad), before the type of the payload.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// MAC control: pauses.
    pub const MAC_CONTROL: u16 = 0x8808;
}

/// An Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ethernet {
    /// Address of the receiver.
    pub destination: MacAddress,
    /// Address of the sender.
    pub source: MacAddress,
    /// Type of the payload; see [`EtherType`].
    pub kind: u16,
}

impl Ethernet {
    /// Bytes of the header.
    pub const LENGTH: usize = 14;
    /// Bytes of the smallest frame without its FCS; shorter ones are padded.
    pub const MINIMUM: usize = 60;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&destination, rest) = take::<6>(bytes)?;
        let (&source, rest) = take::<6>(rest)?;
        let (&kind, rest) = take::<2>(rest)?;
        let header =
            Self { destination: MacAddress(destination), source: MacAddress(source), kind: u16::from_be_bytes(kind) };
        Ok((header, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let MacAddress([d0, d1, d2, d3, d4, d5]) = self.destination;
        let MacAddress([s0, s1, s2, s3, s4, s5]) = self.source;
        let [k0, k1] = self.kind.to_be_bytes();
        [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, k0, k1]
    }
}
