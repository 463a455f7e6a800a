//! Addresses of hosts, and the ports that they are at.
//!
//! 1. Hosts that are known beforehand stay at their ports: a frame with such a source address from another port is
//!    forged. Other addresses are learnt from the frames that they send, up to a number for each port.
//! 2. A question for an address (ARP, neighbour solicitation) whose owner is known is answered at the port where it was
//!    asked. The answer is the same as the owner's, and the fabric carries no broadcasts that a simulated one has not.
//! 3. Any other frame for a group, or for an unknown station, goes to all other ports, one copy each. Flooding along
//!    the links would need a spanning tree, while a fabric has many equal paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use selvedge_wire::{EtherType, Ethernet, Ipv6, MacAddress};

use super::frame::Facts;

/// Most stations that are learnt at a port.
const MOST_LEARNT: usize = 64;
/// Bytes of an ARP packet for IPv4 over Ethernet.
const ARP: usize = 28;
/// ARP's hardware type, protocol type and address lengths, before the operation.
const ARP_HEAD: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
/// Protocol number of ICMPv6.
const ICMPV6: u8 = 58;
/// Type of a neighbour solicitation.
const SOLICITATION: u8 = 135;
/// Type of a neighbour advertisement.
const ADVERTISEMENT: u8 = 136;
/// Bytes of an advertisement with the option that carries the address.
const ADVERTISED: usize = 32;
/// Hop limit of neighbour discovery, which proves that no router has forwarded it.
const HOPS: u8 = 255;

/// Addresses and their ports.
#[derive(Debug)]
pub struct Directory {
    stations: BTreeMap<MacAddress, Station>,
    owners: BTreeMap<IpAddr, MacAddress>,
    /// Number of stations learnt at each port.
    learnt: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    port: usize,
    is_known: bool,
}

/// Destination of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// One port.
    Port(usize),
    /// All ports but that of the sender.
    Others,
    /// The port that the frame came from: there is nothing to do.
    Same,
}

impl Directory {
    /// Creates the directory of so many ports.
    pub fn new(ports: usize) -> Self {
        Self { stations: BTreeMap::new(), owners: BTreeMap::new(), learnt: vec![0; ports] }
    }

    /// Returns the number of ports.
    pub fn ports(&self) -> usize {
        self.learnt.len()
    }

    /// Adds the host at a port.
    pub fn add(&mut self, port: usize, station: MacAddress, addresses: impl IntoIterator<Item = IpAddr>) {
        self.stations.insert(station, Station { port, is_known: true });
        self.owners.extend(addresses.into_iter().map(|address| (address, station)));
    }

    /// Learns the sender of a frame. Returns whether it may be at that port.
    pub fn learn(&mut self, from: usize, source: MacAddress) -> bool {
        if source.is_group() {
            return false;
        }
        match self.stations.get_mut(&source) {
            Some(station) if station.port == from => true,
            Some(station) if station.is_known => false,
            // A station that has moved.
            Some(station) if self.learnt[from] < MOST_LEARNT => {
                self.learnt[station.port] -= 1;
                self.learnt[from] += 1;
                station.port = from;
                true
            }
            // Frames to stations that find no place are flooded.
            Some(_) => true,
            None => {
                if self.learnt[from] < MOST_LEARNT {
                    self.learnt[from] += 1;
                    self.stations.insert(source, Station { port: from, is_known: false });
                }
                true
            }
        }
    }

    /// Returns where a frame from a port goes.
    pub fn route(&self, from: usize, destination: MacAddress) -> Route {
        match self.stations.get(&destination) {
            Some(station) if station.port == from => Route::Same,
            Some(station) => Route::Port(station.port),
            None => Route::Others,
        }
    }

    /// Returns the answer to a question for the address of a known host; `None` for any other frame.
    pub fn answer(&self, from: usize, frame: &[u8], facts: &Facts) -> Option<Vec<u8>> {
        let content = frame.get(usize::from(facts.payload_at)..)?;
        let answer = match facts.kind {
            EtherType::ARP => self.answer_arp(from, content)?,
            EtherType::IPV6 => self.answer_solicitation(from, content)?,
            _ => return None,
        };
        // A tag stays in place.
        let mut whole = frame.get(..usize::from(facts.payload_at))?.to_vec();
        whole.extend_from_slice(&answer.content);
        let ethernet = Ethernet { destination: facts.source, source: answer.station, kind: 0 };
        whole[..12].copy_from_slice(&ethernet.emit()[..12]);
        whole.resize(whole.len().max(Ethernet::MINIMUM), 0);
        Some(whole)
    }

    /// Returns the station that has an address, if it is at another port.
    fn owner(&self, from: usize, address: IpAddr) -> Option<MacAddress> {
        let station = *self.owners.get(&address)?;
        self.stations.get(&station).filter(|owner| owner.port != from).map(|_| station)
    }

    fn answer_arp(&self, from: usize, packet: &[u8]) -> Option<Answer> {
        let packet = packet.first_chunk::<ARP>()?;
        let (head, operation) = (&packet[..6], &packet[6..8]);
        if head != ARP_HEAD || operation != [0, 1] {
            return None;
        }
        let (sender, target) = (&packet[8..18], &packet[24..28]);
        let target: [u8; 4] = target.try_into().ok()?;
        let station = self.owner(from, Ipv4Addr::from(target).into())?;
        let content = [&ARP_HEAD[..], &[0, 2], &station.0, &target, sender].concat();
        Some(Answer { station, content })
    }

    /// Answers a neighbour solicitation (RFC 4861, section 7.2). Probes for duplicate addresses, which have no sender,
    /// go to the owner.
    fn answer_solicitation(&self, from: usize, packet: &[u8]) -> Option<Answer> {
        let (ip, message) = Ipv6::parse(packet).ok()?;
        let target: [u8; 16] = message.get(8..24)?.try_into().ok()?;
        let is_solicitation = ip.protocol == ICMPV6 && ip.hop_limit == HOPS && message[..2] == [SOLICITATION, 0];
        if !is_solicitation || ip.source.is_unspecified() {
            return None;
        }
        let source = Ipv6Addr::from(target);
        let station = self.owner(from, source.into())?;
        let answer = Ipv6 { source, destination: ip.source, length: ADVERTISED as u16, ..ip };
        // Solicited, and the address overrides what was known before; then the option "target link-layer address".
        let head = [ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0];
        let mut message = [&head[..], &target, &[2, 1], &station.0].concat();
        let checksum = selvedge_wire::Udp::checksum_of(&message, answer.pseudo_header(ADVERTISED as u16));
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        Some(Answer { station, content: [&answer.emit()[..], &message].concat() })
    }
}

/// Answer of a station.
struct Answer {
    station: MacAddress,
    /// Bytes behind the Ethernet header.
    content: Vec<u8>,
}
