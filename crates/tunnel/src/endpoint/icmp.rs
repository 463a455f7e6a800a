//! ICMP messages to this host's stack: a destination cannot be reached (RFC 792, RFC 4443).

use core::net::IpAddr;

use super::inside::{Facts, VnetHeader, folded};

/// Reason why a packet is not carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreachable {
    /// No peer serves the address.
    NoRoute,
    /// The peer does not answer.
    Host,
}

/// Bytes of the refused packet that the message quotes.
const QUOTED: usize = 548;

/// Returns the message, `virtio_net_hdr` included, from the destination that cannot be reached; `None` if `packet` is
/// one that no message may answer: ICMP errors, fragments behind the first, and packets to groups.
pub(super) fn unreachable(why: Unreachable, packet: &[u8], facts: &Facts) -> Option<Vec<u8>> {
    const ICMP: u8 = 1;
    const ICMP_V6: u8 = 58;
    let quoted = &packet[..packet.len().min(QUOTED)];
    let mut message = VnetHeader::default().to_host().to_vec();
    match (facts.destination, facts.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = 4 * usize::from(*packet.first()? & 0xf);
            // Types 3, 4, 5, 11 and 12 are errors.
            let is_error = facts.protocol == ICMP && matches!(packet.get(header)?, 3 | 4 | 5 | 11 | 12);
            let is_later = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff != 0;
            if is_error || is_later || from.is_multicast() || from.is_broadcast() {
                return None;
            }
            let length = (20 + 8 + quoted.len()) as u16;
            let [l1, l0] = length.to_be_bytes();
            let mut ip = [0x45, 0xc0, l1, l0, 0, 0, 0x40, 0, 64, ICMP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            ip[12..16].copy_from_slice(&from.octets());
            ip[16..].copy_from_slice(&to.octets());
            let sum = !folded(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            message.extend(ip);
            let code = if why == Unreachable::NoRoute { 0 } else { 1 };
            append(&mut message, [3, code], &[], quoted);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            // Types below 128 are errors.
            let is_error = facts.protocol == ICMP_V6 && *packet.get(40)? < 128;
            if is_error || from.is_multicast() {
                return None;
            }
            let length = (8 + quoted.len()) as u16;
            message.extend([0x60, 0, 0, 0]);
            message.extend(length.to_be_bytes());
            message.extend([ICMP_V6, 64]);
            message.extend(from.octets());
            message.extend(to.octets());
            let mut pseudo = [&from.octets()[..], &to.octets()].concat();
            pseudo.extend(u32::from(length).to_be_bytes());
            pseudo.extend([0, 0, 0, ICMP_V6]);
            let code = if why == Unreachable::NoRoute { 0 } else { 3 };
            append(&mut message, [1, code], &pseudo, quoted);
        }
        _ => return None,
    }
    Some(message)
}

/// Appends the ICMP header, with a checksum that covers `pseudo` too, and the quoted bytes.
fn append(message: &mut Vec<u8>, [kind, code]: [u8; 2], pseudo: &[u8], quoted: &[u8]) {
    let start = message.len();
    message.extend([kind, code, 0, 0, 0, 0, 0, 0]);
    message.extend(quoted);
    let sums = [folded(pseudo).to_be_bytes(), folded(&message[start..]).to_be_bytes()].concat();
    let sum = !folded(&sums);
    message[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::super::inside::tests::udp;
    use super::*;

    #[test]
    fn the_sender_of_a_packet_is_told_by_its_destination() {
        let (a, b) = (Ipv4Addr::new(10, 80, 1, 1), Ipv4Addr::new(10, 80, 2, 1));
        let packet = udp(a, b, 53, 0, &[7; 900]);
        let facts = Facts::of(&packet).expect("a packet");
        let message = unreachable(Unreachable::Host, &packet, &facts).expect("a message");
        let ip = &message[VnetHeader::LENGTH..];
        let answer = Facts::of(ip).expect("a packet");
        assert_eq!((answer.source, answer.destination, answer.protocol), (b.into(), a.into(), 1));
        assert_eq!((&ip[20..22], folded(&ip[..20]), folded(&ip[20..])), (&[3, 1][..], u16::MAX, u16::MAX));
        assert_eq!(ip[28..], packet[..QUOTED]);
        assert_eq!(unreachable(Unreachable::Host, ip, &answer), None, "errors are not answered");
    }

    #[test]
    fn messages_of_ipv6_have_a_checksum_of_addresses_too() {
        let (a, b) = (Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1));
        let mut packet = vec![0x60, 0, 0, 0, 0, 4, 59, 64];
        packet.extend(a.octets());
        packet.extend(b.octets());
        packet.extend([1, 2, 3, 4]);
        let facts = Facts::of(&packet).expect("a packet");
        let message = unreachable(Unreachable::NoRoute, &packet, &facts).expect("a message");
        let ip = &message[VnetHeader::LENGTH..];
        assert_eq!(Facts::of(ip).map(|facts| (facts.source, facts.destination)), Some((b.into(), a.into())));
        let mut summed = ip[8..40].to_vec();
        summed.extend([0, 0, 0, (ip.len() - 40) as u8, 0, 0, 0, 58]);
        summed.extend(&ip[40..]);
        assert_eq!((ip[40], ip[41], folded(&summed)), (1, 0, u16::MAX));
        let answer = Facts::of(ip).expect("a packet");
        assert_eq!(unreachable(Unreachable::NoRoute, ip, &answer), None);
    }
}
