//! Changes that switches make to an IP packet that stays where it is: ECN (RFC 3168), length.
//!
//! IPv4's header checksum follows incrementally (RFC 1624). Checksums of TCP and UDP and RoCE's ICRC do not cover ECN;
//! the length is part of the former two. Bytes that are no IP header are left alone.

/// Marks the IP packet that begins with `packet` as one that met congestion. Returns whether it can carry the mark and
/// had none.
pub fn mark(packet: &mut [u8]) -> bool {
    let mut marks = false;
    change_class(packet, |byte| {
        marks = matches!(byte & 0b11, 0b01 | 0b10);
        if marks { byte | 0b11 } else { byte }
    });
    marks
}

/// Sets the length of the IP packet that begins with `packet`: the field of the version, which counts the header in
/// IPv4 and not in IPv6.
pub fn set_length(packet: &mut [u8], length: u16) {
    match packet {
        [0x40..=0x4f, _, high, low, _, _, _, _, _, _, c0, c1, ..] => {
            let before = [*high, *low];
            [*high, *low] = length.to_be_bytes();
            amend_checksum([c0, c1], before, [*high, *low]);
        }
        [0x60..=0x6f, _, _, _, high, low, ..] => [*high, *low] = length.to_be_bytes(),
        _ => {}
    }
}

/// Changes the byte of DSCP and ECN.
fn change_class(packet: &mut [u8], change: impl FnOnce(u8) -> u8) {
    match packet {
        [first @ 0x40..=0x4f, byte, _, _, _, _, _, _, _, _, c0, c1, ..] => {
            let before = [*first, *byte];
            *byte = change(*byte);
            amend_checksum([c0, c1], before, [*first, *byte]);
        }
        [high @ 0x60..=0x6f, low, ..] => {
            let byte = change(*high << 4 | *low >> 4);
            *high = 0x60 | byte >> 4;
            *low = byte << 4 | *low & 0x0f;
        }
        _ => {}
    }
}

/// Corrects a checksum over a word that has changed: the checksum without the old word, and with the new one.
fn amend_checksum([c0, c1]: [&mut u8; 2], before: [u8; 2], after: [u8; 2]) {
    let word = u16::from_be_bytes;
    let sum = u32::from(!word([*c0, *c1])) + u32::from(!word(before)) + u32::from(word(after));
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    [*c0, *c1] = (!(sum as u16)).to_be_bytes();
}
