//! Arrived packets: placement of their payload.

use std::net::Ipv6Addr;

use selvedge_nic::verbs::{Fault, Memory, Route};

use super::{memory, persist};

/// Bytes of the network header that precedes a datagram's payload.
const HEADER: usize = 40;

/// The payload of a packet, and the route on which it arrived.
pub(super) struct Arrival<'a> {
    pub(super) payload: &'a [u8],
    pub(super) route: &'a Route,
    /// Bytes of the UDP datagram.
    pub(super) length: usize,
}

impl Arrival<'_> {
    /// Returns the network header as applications expect it: IPv6's, or 20 zero bytes and IPv4's (RoCEv2 annex
    /// A17.4.5).
    fn network_header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let Route { local, remote, traffic_class, hop_limit, .. } = *self.route;
        const UDP: u8 = 17;
        if let (Some(to), Some(from)) = (local.to_ipv4_mapped(), remote.to_ipv4_mapped()) {
            let ip = &mut header[20..];
            ip[0] = 0x45;
            ip[1] = traffic_class;
            ip[2..4].copy_from_slice(&((self.length + 28) as u16).to_be_bytes());
            ip[6] = 0x40;
            ip[8] = hop_limit;
            ip[9] = UDP;
            ip[12..16].copy_from_slice(&from.octets());
            ip[16..20].copy_from_slice(&to.octets());
            let sum = checksum(ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            header[0] = 0x60 | traffic_class >> 4;
            header[1] = traffic_class << 4;
            header[4..6].copy_from_slice(&((self.length + 8) as u16).to_be_bytes());
            header[6] = UDP;
            header[7] = hop_limit;
            header[8..24].copy_from_slice(&Ipv6Addr::octets(&remote));
            header[24..40].copy_from_slice(&Ipv6Addr::octets(&local));
        }
        header
    }
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

impl Memory for Arrival<'_> {
    fn place(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        let bytes = self.payload.get(from as usize..).and_then(|rest| rest.get(..length as usize));
        memory::write(address, bytes.ok_or(Fault)?)
    }
    fn keep(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.payload);
    }
    fn place_kept(&mut self, kept: &[u8], address: u64, from: u32, length: u32) -> Result<(), Fault> {
        let bytes = kept.get(from as usize..).and_then(|rest| rest.get(..length as usize));
        memory::write(address, bytes.ok_or(Fault)?)
    }
    fn place_network_header(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        let header = self.network_header();
        let bytes = header.get(from as usize..).and_then(|rest| rest.get(..length as usize));
        memory::write(address, bytes.ok_or(Fault)?)
    }
    fn fetch_add(&mut self, address: u64, add: u64) -> Result<u64, Fault> {
        memory::fetch_add(address, add)
    }
    fn compare_swap(&mut self, address: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        memory::compare_swap(address, compare, swap)
    }
    fn word(&self) -> Option<u64> {
        self.payload.try_into().ok().map(u64::from_ne_bytes)
    }
    fn replace(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        memory::replace(address, value)
    }
    fn flush(&mut self, address: u64, length: u64, persistent: bool) -> Result<(), Fault> {
        memory::settle();
        if persistent { persist::write_back(address, length) } else { Ok(()) }
    }
    fn store(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        memory::write(address, &value.to_ne_bytes())
    }
}
