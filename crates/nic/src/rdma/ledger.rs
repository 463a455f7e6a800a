//! Memory without content, except the words of atomic operations.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::verbs::{Fault, Memory};

/// Memory that counts placed bytes and keeps the words that atomic operations access: all other words are zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    placed: u64,
    words: BTreeMap<u64, u64>,
}

impl Ledger {
    /// Returns the payload bytes placed so far, duplicates included.
    pub fn placed(&self) -> u64 {
        self.placed
    }
    /// Returns the word at `address`.
    pub fn word(&self, address: u64) -> u64 {
        self.words.get(&address).copied().unwrap_or(0)
    }
    /// Removes and returns the word at `address`.
    pub fn take(&mut self, address: u64) -> u64 {
        self.words.remove(&address).unwrap_or(0)
    }

    fn change(&mut self, address: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        let before = self.word(address);
        self.words.insert(address, change(before));
        before
    }
}

impl Memory for Ledger {
    fn place(&mut self, _: u64, _: u32, length: u32) -> Result<(), Fault> {
        self.placed += u64::from(length);
        Ok(())
    }
    fn keep(&self, _: &mut Vec<u8>) {}
    fn place_kept(&mut self, _: &[u8], _: u64, _: u32, length: u32) -> Result<(), Fault> {
        self.placed += u64::from(length);
        Ok(())
    }
    fn place_network_header(&mut self, _: u64, _: u32, _: u32) -> Result<(), Fault> {
        Ok(())
    }
    fn fetch_add(&mut self, address: u64, add: u64) -> Result<u64, Fault> {
        Ok(self.change(address, |before| before.wrapping_add(add)))
    }
    fn compare_swap(&mut self, address: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        Ok(self.change(address, |before| if before == compare { swap } else { before }))
    }
    fn word(&self) -> Option<u64> {
        Some(0)
    }
    fn replace(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        self.store(address, value)
    }
    fn flush(&mut self, _: u64, _: u64, _: bool) -> Result<(), Fault> {
        Ok(())
    }
    fn store(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        self.change(address, |_| value);
        Ok(())
    }
}
