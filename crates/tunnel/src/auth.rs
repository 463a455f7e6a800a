//! The MAC of a header and the encryption of a payload.

use ring::aead::{Aad, Nonce};
use selvedge_wire::eqds::v1::MAC;

use crate::keys::EpochKeys;

/// Bytes of the tag at the end of a sealed payload.
pub const TAG: usize = 16;

impl EpochKeys {
    /// Returns the MAC of a header's covered bytes: SipHash-2-4, in little-endian order as its authors write it.
    #[inline]
    pub fn mac(&self, covered: &[u8]) -> [u8; MAC] {
        self.mac.hash(covered).to_le_bytes()
    }

    /// Returns whether `mac` is that of the covered bytes. The time does not depend on where they differ.
    #[inline]
    pub fn verify(&self, covered: &[u8], mac: [u8; MAC]) -> bool {
        self.mac.hash(covered) ^ u64::from_le_bytes(mac) == 0
    }

    /// Encrypts a payload in place; returns the tag, which follows it. `header` is authenticated, too, its MAC
    /// included.
    pub fn seal(&self, number: u32, header: &[u8], payload: &mut [u8]) -> [u8; TAG] {
        let nonce = self.nonce(number);
        let tag = self.seal.seal_in_place_separate_tag(nonce, Aad::from(header), payload);
        tag.expect("a packet is shorter than a cipher's limit").as_ref().try_into().expect("a tag of 16 bytes")
    }

    /// Decrypts a sealed payload, tag included, in place; returns it without the tag, or `None` if it was damaged.
    pub fn open<'a>(&self, number: u32, header: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        self.seal.open_in_place(self.nonce(number), Aad::from(header), sealed).ok()
    }

    /// Returns the nonce of a packet: four zero bytes, the key epoch, the packet number.
    fn nonce(&self, number: u32) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..8].copy_from_slice(&self.epoch.to_be_bytes());
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}
