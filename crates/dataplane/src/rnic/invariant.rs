//! The invariant CRC of packets between two hosts (InfiniBand architecture, volume 1, annex A17.3.3), optimized, for
//! IPv4 and IPv6.
//!
//! The CRC covers IPv4's identification, which the kernel writes and a UDP socket never sees. For sent packets it is
//! known: 0, and for the segments of one call 0, 1, 2, ... For received packets it may be any value. But a CRC is
//! linear: the effect of an unknown identification lies in a space of 2^16 differences out of 2^32. A packet counts as
//! sound if *some* identification explains its CRC; one corruption in 2^16 that UDP's checksum missed then goes
//! undetected.

use std::net::Ipv6Addr;

use crc32fast::Hasher;
use selvedge_wire::{Icrc, Udp};

const IPV4: usize = 20;
const IPV6: usize = 40;
/// Offset of the identification in an IPv4 header, in bytes.
const IDENTIFICATION: usize = 4;

/// Two ends of a packet's way, by address and UDP port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    pub(super) from: Ipv6Addr,
    pub(super) to: Ipv6Addr,
    pub(super) from_port: u16,
    pub(super) to_port: u16,
}

impl Ends {
    /// Returns the shared part of the CRC of packets with `length` bytes from the BTH to before the ICRC.
    pub(super) fn invariant(self, length: usize) -> Invariant {
        let mut buffer = [0xff; 8 + IPV6 + Udp::LENGTH];
        let datagram = Udp::LENGTH + length + Icrc::LENGTH;
        // Eight bytes of ones stand for InfiniBand's local route header; fields that routers may change count as ones,
        // too.
        let mut at = 8;
        let mut write = |bytes: &[u8]| {
            buffer[at..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let (Some(from), Some(to)) = (self.from.to_ipv4_mapped(), self.to.to_ipv4_mapped()) {
            write(&[0x45, 0xff]);
            write(&((IPV4 + datagram) as u16).to_be_bytes());
            write(&[0, 0, 0x40, 0, 0xff, 17, 0xff, 0xff]);
            write(&from.octets());
            write(&to.octets());
        } else {
            write(&[0x6f, 0xff, 0xff, 0xff]);
            write(&(datagram as u16).to_be_bytes());
            write(&[17, 0xff]);
            write(&self.from.octets());
            write(&self.to.octets());
        }
        write(&self.from_port.to_be_bytes());
        write(&self.to_port.to_be_bytes());
        write(&(datagram as u16).to_be_bytes());
        write(&[0xff, 0xff]);
        let mut hasher = Hasher::new();
        hasher.update(&buffer[..at]);
        Invariant { ends: self, length, before: hasher.finalize(), has_identification: at == 8 + IPV4 + Udp::LENGTH }
    }
}

/// The shared part of the CRC of all packets of one length between two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invariant {
    ends: Ends,
    length: usize,
    /// CRC of the headers before the packet, with identification 0.
    before: u32,
    has_identification: bool,
}

impl Invariant {
    /// Returns whether this is the shared part for packets of this length between these ends.
    pub(super) fn is_of(&self, ends: &Ends, length: usize) -> bool {
        self.length == length && self.ends == *ends
    }

    /// Returns the ICRC of a packet with this IPv4 identification.
    pub(super) fn icrc(&self, identification: u16, packet: &[u8]) -> [u8; Icrc::LENGTH] {
        self.crc(identification, packet).to_le_bytes()
    }

    /// Returns the identification that explains this ICRC; tries the likely one first, then any. `None` if none does:
    /// the packet is damaged.
    pub(super) fn identify(&self, likely: u16, packet: &[u8], icrc: [u8; Icrc::LENGTH]) -> Option<u16> {
        let difference = self.crc(likely, packet) ^ u32::from_le_bytes(icrc);
        if difference == 0 {
            return Some(likely);
        }
        if !self.has_identification {
            return None;
        }
        let behind = BEHIND_IDENTIFICATION + packet.len();
        change_before(difference, behind).map(|change| likely ^ change)
    }

    /// Computes the CRC in one pass over the packet as it is. Fields that the CRC counts as ones, and the
    /// identification, are accounted for by an equivalent change of the CRC of the bytes before the packet.
    fn crc(&self, identification: u16, packet: &[u8]) -> u32 {
        debug_assert_eq!(packet.len(), self.length, "a packet of another length");
        let mut before = self.before;
        if self.has_identification {
            let [first, second] = identification.to_be_bytes();
            before ^= FIRST[usize::from(first)] ^ SECOND[usize::from(second)];
        }
        // Congestion marks, and the reserved bits beside them, may change on the way: they count as ones.
        before ^= packet.get(MARKS).map_or(0, |marks| MASKED[usize::from(!marks)]);
        let mut hasher = Hasher::new_with_initial(before);
        hasher.update(packet);
        hasher.finalize()
    }
}

/// Offset of the byte in a BTH that counts as ones.
const MARKS: usize = 4;
/// Bytes between IPv4's identification and the packet.
const BEHIND_IDENTIFICATION: usize = IPV4 - IDENTIFICATION - 2 + Udp::LENGTH;

/// Changes of the CRC before the packet, indexed by the difference in the identification's first byte; [`SECOND`] holds
/// those for the second byte.
static FIRST: [u32; 256] = changes(BEHIND_IDENTIFICATION + 1);
static SECOND: [u32; 256] = changes(BEHIND_IDENTIFICATION);
/// Equivalent changes of the CRC before the packet, indexed by the difference in the byte at [`MARKS`].
static MASKED: [u32; 256] = {
    let mut changes = changes(0);
    let mut at = 0;
    while at < 256 {
        let mut bits = 0;
        while bits < 8 * (MARKS + 1) {
            changes[at] = over_x(changes[at]);
            bits += 1;
        }
        at += 1;
    }
    changes
};

/// Returns the change of a CRC for each difference in a byte that `behind` other bytes follow.
const fn changes(behind: usize) -> [u32; 256] {
    let mut changes = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut change, mut bits) = (at as u32, 0);
        while bits < 8 * (behind + 1) {
            change = times_x(change);
            bits += 1;
        }
        changes[at] = change;
        at += 1;
    }
    changes
}

/// The CRC's polynomial, in reflected form like all values here: the highest bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xedb8_8320;
const ONE: u32 = 1 << 31;

const fn times_x(a: u32) -> u32 {
    if a & 1 == 1 { a >> 1 ^ POLYNOMIAL } else { a >> 1 }
}

/// Divides by x, the inverse of [`times_x`]: the polynomial's highest bit is set, and no other product's is.
const fn over_x(a: u32) -> u32 {
    if a >> 31 == 1 { (a ^ POLYNOMIAL) << 1 | 1 } else { a << 1 }
}

const fn times(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 32);
    while bit > 0 {
        bit -= 1;
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = times_x(b);
    }
    product
}

/// The powers of x with exponents 1, 2, 4, 8, ...
const SQUARES: [u32; 32] = {
    let mut squares = [times_x(ONE); 32];
    let mut at = 1;
    while at < 32 {
        squares[at] = times(squares[at - 1], squares[at - 1]);
        at += 1;
    }
    squares
};

/// Returns the change of two bytes, followed by `behind` others, that changes a CRC by `difference`; `None` if none
/// does.
///
/// A change m(x) of degree below 16 becomes m(x) x^(32 + 8 behind) modulo the polynomial. The polynomial is primitive:
/// x has the order 2^32 - 1, so a multiplication by the missing power of x inverts the change.
fn change_before(difference: u32, behind: usize) -> Option<u16> {
    let inverse = u32::MAX - (32 + 8 * behind as u32);
    let power = (0..32).filter(|bit| inverse >> bit & 1 == 1).fold(ONE, |power, bit| times(power, SQUARES[bit]));
    let change = times(difference, power);
    // In the order of transmission the lowest bit of a byte comes first.
    let [low, high] = [(change >> 24) as u8, (change >> 16) as u8];
    (change & 0xffff == 0).then(|| u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(from: &str, to: &str) -> Ends {
        let address = |text: &str| match text.parse().expect("an address") {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            std::net::IpAddr::V6(v6) => v6,
        };
        Ends { from: address(from), to: address(to), from_port: 4_791, to_port: 4_792 }
    }

    #[test]
    fn it_is_the_icrc_of_the_simple_way() {
        let there = std::net::SocketAddrV4::new([10, 0, 0, 2].into(), 4_792);
        for length in [12, 16, 77, 1_076] {
            // Every value of the congestion marks.
            for marks in 0..=u8::MAX {
                let mut packet: Vec<u8> = (0..length).map(|at: usize| (at * 7) as u8).collect();
                packet[MARKS] = marks;
                let simple = crate::icrc::of("10.0.0.1:4791".parse().expect("a valid address"), there, &packet);
                assert_eq!(Some(ends("10.0.0.1", "10.0.0.2").invariant(length).icrc(0, &packet)), simple);
            }
        }
    }

    #[test]
    fn any_identification_is_found_and_damage_is_not_taken_for_one() {
        let ends = ends("10.0.0.1", "10.0.0.2");
        let mut misses = 0;
        for length in [12, 13, 76, 1_100, 4_200] {
            let packet: Vec<u8> = (0..length).map(|at: usize| (at * 7) as u8).collect();
            let invariant = ends.invariant(length);
            for identification in [0, 1, 63, 0xe337, 0xffff] {
                let icrc = invariant.icrc(identification, &packet);
                assert_eq!(invariant.identify(0, &packet, icrc), Some(identification));
                let mut damaged = packet.clone();
                damaged[length - 1] ^= 0x10;
                misses += u32::from(invariant.identify(identification, &damaged, icrc).is_some());
            }
        }
        assert_eq!(misses, 0);
    }

    #[test]
    fn ipv6_has_no_identification() {
        let invariant = ends("fd00::1", "fd00::2").invariant(60);
        let packet = [7; 60];
        let icrc = invariant.icrc(0, &packet);
        assert_eq!(invariant.identify(5, &packet, icrc), Some(5));
        assert_eq!(invariant.identify(0, &[6; 60], icrc), None);
    }
}
