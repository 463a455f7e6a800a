//! Hash tables for look-ups of repeated values.

use std::hash::{BuildHasherDefault, Hasher};

use selvedge_units::mix64;

/// Indices by value.
#[expect(clippy::disallowed_types, reason = "values are looked up; nobody iterates over them")]
pub(super) type Known<V> = std::collections::HashMap<V, u32, BuildHasherDefault<Mix>>;

/// A fast hasher for values that no adversary chooses.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix64(self.0 ^ value);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
