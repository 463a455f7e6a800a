//! Bit flips in packets.

use super::class::udp_at;

/// Offset of the checksum in a UDP header, in bytes.
const CHECKSUM: usize = 6;

/// Flips one bit of a packet, chosen by `draw` modulo the number of bits.
pub(super) fn anywhere(packet: &mut [u8], draw: u64) {
    flip(packet, draw);
}

/// Flips one bit of UDP's payload and adapts UDP's checksum; returns false if the packet is not UDP, or if there is no
/// payload.
pub(super) fn behind_the_checksum(packet: &mut [u8], draw: u64) -> bool {
    let Some(at) = udp_at(packet) else { return false };
    let (udp, payload) = packet[at..].split_at_mut(8);
    if payload.is_empty() {
        return false;
    }
    let word = (draw % (payload.len() as u64 * 8)) as usize / 16;
    let value = |payload: &[u8]| {
        u16::from_be_bytes([payload[word * 2], payload.get(word * 2 + 1).copied().unwrap_or_default()])
    };
    let before = value(payload);
    flip(payload, draw);
    let checksum = u16::from_be_bytes([udp[CHECKSUM], udp[CHECKSUM + 1]]);
    if checksum != 0 {
        // RFC 1624: HC' = ~(~HC + ~m + m'); zero would mean that there is none.
        let sum = u32::from(!checksum) + u32::from(!before) + u32::from(value(payload));
        let folded = (sum & 0xffff) + (sum >> 16);
        let mended = match !((folded & 0xffff) + (folded >> 16)) as u16 {
            0 => 0xffff,
            mended => mended,
        };
        udp[CHECKSUM..].copy_from_slice(&mended.to_be_bytes());
    }
    true
}

fn flip(bytes: &mut [u8], draw: u64) {
    if !bytes.is_empty() {
        let bit = draw % (bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the one's complement sum over `bytes`, which is all ones if the checksum is correct (RFC 1071).
    fn sum(bytes: &[u8]) -> u32 {
        let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn the_checksum_stays_right() {
        for length in [1usize, 2, 31, 100] {
            for draw in 0..length as u64 * 8 {
                let mut packet = vec![0xa7; 28 + length];
                (packet[0], packet[6], packet[7], packet[9]) = (0x45, 0x40, 0, 17);
                packet[26..28].fill(0);
                let checksum = !(sum(&packet[20..]) as u16);
                packet[26..28].copy_from_slice(&checksum.to_be_bytes());
                let before = packet.clone();
                assert!(behind_the_checksum(&mut packet, draw));
                assert_eq!(sum(&packet[20..]), 0xffff, "{length} {draw}");
                let flipped: u32 = packet[28..].iter().zip(&before[28..]).map(|(a, b)| (a ^ b).count_ones()).sum();
                assert_eq!(flipped, 1);
            }
        }
    }

    #[test]
    fn what_is_no_udp_is_left_alone() {
        let mut packet = [0x45; 60];
        assert!(!behind_the_checksum(&mut packet, 7));
        assert_eq!(packet, [0x45; 60]);
        anywhere(&mut packet, 60 * 8 + 9);
        assert_eq!(packet[1], 0x45 ^ 2);
    }
}
