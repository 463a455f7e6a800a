//! Hashes that distinguish contents.

use selvedge_units::mix64;

/// Returns a hash of `bytes`, which is equal on all platforms.
pub(crate) fn of(bytes: &[u8]) -> u64 {
    let mut hash = mix64(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix64(hash ^ u64::from_le_bytes(word));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn every_byte_and_the_length_count() {
        let texts: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"abcdefgh", b"abcdefgi", b"abcdefgh\0"];
        for (n, a) in texts.iter().enumerate() {
            for b in &texts[..n] {
                assert_ne!(of(a), of(b), "{a:?} {b:?}");
            }
        }
    }
}
