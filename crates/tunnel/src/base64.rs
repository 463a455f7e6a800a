//! Base64 (RFC 4648, section 4) of 32 bytes: 44 characters, the last of which is "=".

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the 32 bytes of a text; `None` if the text is anything else.
pub fn decode(text: &str) -> Option<[u8; 32]> {
    let text = text.trim().as_bytes();
    let [digits @ .., b'='] = text else { return None };
    if digits.len() != 43 {
        return None;
    }
    let mut bytes = [0; 33];
    for (place, group) in bytes.chunks_exact_mut(3).zip(digits.chunks(4)) {
        let mut word = 0;
        for at in 0..4 {
            let digit = *group.get(at).unwrap_or(&b'A');
            let value = ALPHABET.iter().position(|known| *known == digit)?;
            word = word << 6 | value as u32;
        }
        place.copy_from_slice(&word.to_be_bytes()[1..]);
    }
    let (bytes, rest) = bytes.split_first_chunk::<32>().expect("33 bytes");
    // The last digit has two bits too many; only one text stands for each key.
    (rest == [0]).then_some(*bytes)
}

/// Returns the text of 32 bytes.
pub fn encode(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(44);
    for group in bytes.chunks(3) {
        let word = group.iter().chain(&[0, 0]).take(3).fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let digits = (0..=group.len()).map(|at| ALPHABET[(word >> (18 - 6 * at) & 0x3f) as usize] as char);
        text.extend(digits);
    }
    text.push('=');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_wireguard_has_them() {
        // RFC 7748, section 6.1: Alice's private key, in the form of `wg`.
        let key = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
        let bytes = decode(key).unwrap();
        assert_eq!(bytes[..4], [0x77, 0x07, 0x6d, 0x0a]);
        assert_eq!(encode(&bytes), key);
        assert_eq!(decode(&format!("{key}\n")), Some(bytes));
        let other_digits = ["", "=", &key[1..], &key[..43], &key.replace('d', "?"), &key.replace("o=", "p=")];
        assert!(other_digits.iter().all(|text| decode(text).is_none()));
    }
}
