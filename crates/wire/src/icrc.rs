//! The invariant CRC of RoCEv2 (InfiniBand architecture, volume 1, annex A17.3.3): Ethernet's CRC-32 over the fields
//! that no router changes. Fields that routers may change count as ones, as do eight bytes before the IP header, in the
//! place of InfiniBand's local route header.

use crate::bth::Bth;
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::udp::Udp;

/// An invariant CRC under computation.
#[derive(Clone, Copy, Debug)]
pub struct Icrc(u32);

impl Icrc {
    /// Bytes of the finished CRC.
    pub const LENGTH: usize = 4;

    /// Begins a CRC with the headers that have fields to be masked, as they are sent.
    pub fn begin(mut ip: [u8; Ipv4::LENGTH], udp: [u8; Udp::LENGTH], bth: [u8; Bth::LENGTH]) -> Self {
        ip[1] = 0xff; // DSCP and ECN
        ip[8] = 0xff; // time to live
        ip[10..12].fill(0xff); // checksum
        Self::of_headers(&ip, udp, bth)
    }

    /// Begins a CRC, as [`Icrc::begin`] does, over IPv6.
    pub fn begin_ipv6(mut ip: [u8; Ipv6::LENGTH], udp: [u8; Udp::LENGTH], bth: [u8; Bth::LENGTH]) -> Self {
        ip[0] |= 0x0f; // traffic class and flow label
        ip[1..4].fill(0xff);
        ip[7] = 0xff; // hop limit
        Self::of_headers(&ip, udp, bth)
    }

    fn of_headers(ip: &[u8], mut udp: [u8; Udp::LENGTH], mut bth: [u8; Bth::LENGTH]) -> Self {
        udp[6..8].fill(0xff); // checksum
        bth[4] = 0xff; // FECN, BECN, reserved
        let mut crc = Self(u32::MAX);
        crc.update(&[0xff; 8]);
        crc.update(ip);
        crc.update(&udp);
        crc.update(&bth);
        crc
    }

    /// Adds the bytes that follow: extended headers, payload, padding.
    pub fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = TABLE[(self.0 as u8 ^ byte) as usize] ^ self.0 >> 8;
        }
    }

    /// Returns the CRC in wire order.
    pub fn finish(self) -> [u8; Self::LENGTH] {
        (!self.0).to_le_bytes()
    }
}

/// Effect of each byte on the CRC. The polynomial is Ethernet's, its bits reversed.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
