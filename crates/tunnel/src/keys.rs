//! Keys: those of peers, and those of packets, which are derived from them (docs/eqds-wire.md, "Key schedule").

use core::fmt;

use ring::aead::{AES_128_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::{digest, hmac};
use siphasher::sip::SipHasher24;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::base64;

/// A secret of 32 bytes: an X25519 private key, or a key that a pair of peers shares. Its bytes are overwritten when it
/// is dropped, and never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// Creates a secret.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
    /// Reads a secret in base64 (44 characters, as `wg genkey` writes it).
    ///
    /// # Errors
    /// If the text is not base64 of 32 bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        base64::decode(text).map(Self::new).ok_or(KeyError::NotBase64)
    }
    /// Returns the X25519 public key of this secret.
    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&StaticSecret::from(*self.0)).to_bytes()
    }
    fn is_zero(&self) -> bool {
        self.0.iter().fold(0, |all, byte| all | byte) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Reason why no keys can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// A text that is not base64 of 32 bytes.
    #[error("not a key: expected 32 bytes in base64, which are 44 characters, as `wg genkey` writes them")]
    NotBase64,
    /// A public key of low order, which makes the shared secret known to everybody.
    #[error("this public key is weak: everybody knows what it shares; ask the peer for its real one")]
    Weak,
    /// A shared key whose bytes are all zero.
    #[error("this key is all zeros; make one with `wg genpsk`")]
    Zero,
    /// Both peers have one identity.
    #[error("both ends have one identity; give each its own key or name")]
    SameIdentity,
}

/// Encryption of payloads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Suite {
    /// AES-128 in Galois/counter mode: the faster one on processors with instructions for AES.
    #[default]
    Aes128Gcm,
    /// ChaCha20 and Poly1305: the faster one on processors without.
    ChaCha20Poly1305,
}

impl Suite {
    /// Returns the code of the suite in the key schedule.
    pub const fn code(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }
    const fn key_length(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::ChaCha20Poly1305 => 32,
        }
    }
}

/// Secret that two peers share, and from which all their keys derive; the same at both.
#[derive(Clone)]
pub struct Pair {
    prk: hmac::Key,
    suite: Suite,
    own: [u8; 32],
    peer: [u8; 32],
}

impl Pair {
    /// Derives the keys of a pair from static X25519 keys, and from a shared key if there is one.
    ///
    /// # Errors
    /// If the peer's public key is weak, the shared key is zero, or both ends have one key.
    pub fn from_static(own: &Secret, peer: [u8; 32], shared: Option<&Secret>, suite: Suite) -> Result<Self, KeyError> {
        let own_public = own.public();
        let agreed = StaticSecret::from(*own.0).diffie_hellman(&PublicKey::from(peer));
        if !agreed.was_contributory() {
            return Err(KeyError::Weak);
        }
        let agreed = Secret::new(agreed.to_bytes());
        Self::new(&agreed, shared, suite, own_public, peer)
    }

    /// Derives the keys of a pair from a shared key alone. Names tell the peers apart; both must know both.
    ///
    /// # Errors
    /// If the shared key is zero, or both names are equal.
    pub fn from_shared(shared: &Secret, own: &str, peer: &str, suite: Suite) -> Result<Self, KeyError> {
        let none = Secret::new([0; 32]);
        Self::new(&none, Some(shared), suite, identity(own), identity(peer))
    }

    fn new(
        agreed: &Secret,
        shared: Option<&Secret>,
        suite: Suite,
        own: [u8; 32],
        peer: [u8; 32],
    ) -> Result<Self, KeyError> {
        if own == peer {
            return Err(KeyError::SameIdentity);
        }
        if shared.is_some_and(Secret::is_zero) {
            return Err(KeyError::Zero);
        }
        let salt = shared.map_or([0; 32], |shared| *shared.0);
        let extracted = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salt), &*agreed.0);
        Ok(Self { prk: hmac::Key::new(hmac::HMAC_SHA256, extracted.as_ref()), suite, own, peer })
    }

    /// Returns whether the peer of both pairs is one.
    pub fn has_peer_of(&self, other: &Self) -> bool {
        self.peer == other.peer
    }

    /// Returns the keys of packets to the peer.
    pub fn outbound(&self) -> Direction {
        self.direction(&self.own, &self.peer)
    }
    /// Returns the keys of packets from the peer.
    pub fn inbound(&self) -> Direction {
        self.direction(&self.peer, &self.own)
    }

    fn direction(&self, from: &[u8; 32], to: &[u8; 32]) -> Direction {
        let key = expand(&self.prk, self.suite, b"direction", &[from, to]);
        let [k3, k2, k1, k0, ..] = *expand(&self.prk, self.suite, b"key id", &[from, to]);
        Direction {
            key: hmac::Key::new(hmac::HMAC_SHA256, &*key),
            id: u32::from_be_bytes([k3, k2, k1, k0]),
            suite: self.suite,
        }
    }
}

/// Keys of packets from one peer to another.
#[derive(Clone)]
pub struct Direction {
    key: hmac::Key,
    /// The key id in the headers of packets.
    pub id: u32,
    suite: Suite,
}

impl Direction {
    /// Derives the keys of one key epoch.
    pub fn epoch(&self, epoch: u32) -> EpochKeys {
        let mac = expand(&self.key, self.suite, b"mac", &[&epoch.to_be_bytes()]);
        let seal = expand(&self.key, self.suite, b"seal", &[&epoch.to_be_bytes()]);
        let (mac, _) = mac.split_first_chunk::<16>().expect("32 bytes were derived");
        let algorithm = match self.suite {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let seal = UnboundKey::new(algorithm, &seal[..self.suite.key_length()]).expect("the suite's length of keys");
        EpochKeys { epoch, mac: SipHasher24::new_with_key(mac), seal: LessSafeKey::new(seal) }
    }
}

/// Keys of packets of one direction and key epoch.
pub struct EpochKeys {
    /// The key epoch.
    pub epoch: u32,
    pub(crate) mac: SipHasher24,
    pub(crate) seal: LessSafeKey,
}

/// Returns the first 32 bytes of HKDF-Expand (RFC 5869) of HMAC-SHA256.
fn expand(key: &hmac::Key, suite: Suite, label: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut context = hmac::Context::with_key(key);
    context.update(b"selvedge eqds 1\0");
    context.update(label);
    context.update(&[0, suite.code()]);
    parts.iter().for_each(|part| context.update(part));
    context.update(&[1]);
    let mut bytes = Zeroizing::new([0; 32]);
    bytes.copy_from_slice(context.sign().as_ref());
    bytes
}

/// Returns the identity of a peer that is known by name only.
fn identity(name: &str) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"selvedge eqds 1\0name\0");
    context.update(name.as_bytes());
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
