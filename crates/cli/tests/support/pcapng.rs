//! Packets of a capture.

/// Returns the captured bytes of each enhanced packet block.
pub(crate) fn packets(file: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let length = word(rest, 4);
        let (block, behind) = rest.split_at(length);
        assert_eq!(word(block, length - 4), length, "a block says its length at both ends");
        if word(block, 0) == 6 {
            packets.push(block[28..][..word(block, 20)].to_vec());
        }
        rest = behind;
    }
    packets
}

fn word(block: &[u8], at: usize) -> usize {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes")) as usize
}
