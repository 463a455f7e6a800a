//! Classes of packets, by purpose.

use selvedge_wire::Opcode;
use selvedge_wire::verbs::opcode::{RELIABLE, operation};

use crate::rnic;

/// Classes of packets, each with independently drawn fates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// RoCE packets that carry or request data: Sends, Writes, Reads and their responses, Atomics, datagrams.
    Data = 0,
    /// RoCE packets without data: acknowledgements, negative acknowledgements, congestion notifications.
    Ack = 1,
    /// RoCE packets for queue pair 1, which the connection manager uses, and messages of switches (NetRT).
    Management = 2,
    /// All other packets, TCP for example.
    Other = 3,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Data, Self::Ack, Self::Management, Self::Other];

    /// Returns the class's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Management => "management",
            Self::Other => "other",
        }
    }
}

const UDP: u8 = 17;
const CONGESTION_NOTIFICATION: u8 = 0x81;
const MANAGEMENT: u32 = 1;

/// Returns the offset of the UDP header in an IPv4 or IPv6 packet; `None` if the packet is not unfragmented UDP without
/// IP options.
pub(super) fn udp_at(packet: &[u8]) -> Option<usize> {
    let (at, protocol) = match packet.first()? {
        0x45 if packet.get(6)? & 0x3f == 0 && packet.get(7)? == &0 => (20, packet.get(9)?),
        first if first >> 4 == 6 => (40, packet.get(6)?),
        _ => return None,
    };
    (*protocol == UDP && packet.len() >= at + 8).then_some(at)
}

/// Returns the class of an IP packet.
pub fn classify(packet: &[u8]) -> Class {
    let roce = || {
        let udp = &packet[udp_at(packet)?..];
        let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
        let is_roce = [port(0), port(2)].into_iter().any(rnic::is_ours);
        is_roce.then_some(udp.get(8..20)?)
    };
    let Some(bth) = roce() else { return Class::Other };
    let destination = u32::from_be_bytes([0, bth[5], bth[6], bth[7]]);
    let (opcode, service) = (bth[0], bth[0] & 0xe0);
    let only_tells = [operation::ACKNOWLEDGE, operation::READ_ACKNOWLEDGE].contains(&(opcode & 0x1f));
    if destination == MANAGEMENT || opcode == Opcode::NETRT {
        Class::Management
    } else if opcode == CONGESTION_NOTIFICATION || (service == RELIABLE && only_tells) {
        Class::Ack
    } else {
        Class::Data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a UDP packet with a BTH of this opcode and destination queue pair.
    fn packet(port: u16, opcode: u8, destination: u8) -> Vec<u8> {
        let mut packet = vec![0; 20 + 8 + 12 + 4];
        (packet[0], packet[9]) = (0x45, UDP);
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        (packet[28], packet[35]) = (opcode, destination);
        packet
    }

    #[test]
    fn packets_are_told_apart() {
        assert_eq!(classify(&packet(4_791, operation::WRITE_ONLY, 17)), Class::Data);
        assert_eq!(classify(&packet(4_854, operation::ACKNOWLEDGE, 17)), Class::Ack);
        assert_eq!(classify(&packet(4_791, 0x81, 17)), Class::Ack);
        assert_eq!(classify(&packet(4_791, 0x64, 1)), Class::Management);
        assert_eq!(classify(&packet(4_791, Opcode::NETRT, 17)), Class::Management);
        assert_eq!(classify(&packet(4_855, operation::ACKNOWLEDGE, 17)), Class::Other);
        assert_eq!(classify(&packet(4_791, operation::WRITE_ONLY, 17)[..30]), Class::Other);
        assert_eq!(classify(&[]), Class::Other);
    }
}
