//! From what names a flow to a slot: a hash table for packets that carry no slot.
//!
//! Linear probing over a power of two, at most half full, deletion by shifting back. Written here
//! because the standard map's iteration order and hashing are not ours to fix, and because this
//! look-up happens once per data packet.

use alloc::boxed::Box;
use alloc::vec;

use selvedge_units::{HostId, QpNumber};

/// What names a flow.
pub trait Key: Copy + Eq {
    /// What stands in free entries.
    const BLANK: Self;
    /// A hash of it, of which the upper half counts.
    fn mixed(self) -> u64;
}

/// A queue pair, by the host that sends on it.
impl Key for (HostId, QpNumber) {
    const BLANK: Self = (HostId(0), QpNumber(0));
    #[inline]
    fn mixed(self) -> u64 {
        // Fibonacci hashing; the high bits are the good ones.
        (u64::from(self.0.0) << 32 | u64::from(self.1.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Maps keys to numbers below `u32::MAX`.
#[derive(Debug)]
pub struct Table<K> {
    entries: Box<[Entry<K>]>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry<K> {
    key: K,
    /// `EMPTY` marks a free entry.
    slot: u32,
}

const EMPTY: u32 = u32::MAX;

impl<K: Key> Default for Table<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Table<K> {
    const FREE: Entry<K> = Entry { key: K::BLANK, slot: EMPTY };

    /// An empty table.
    pub fn new() -> Self {
        Self { entries: vec![Self::FREE; 8].into_boxed_slice(), len: 0 }
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        (key.mixed() >> 32) as usize & (self.entries.len() - 1)
    }

    /// Where the search for a key begins.
    #[inline]
    pub fn whereabouts(&self, key: K) -> (*const u8, usize) {
        (core::ptr::from_ref(&self.entries[self.home(key)]).cast(), size_of::<Entry<K>>())
    }

    /// Where all of it lies; nothing, if there is nothing in it.
    #[inline]
    pub fn all_whereabouts(&self) -> (*const u8, usize) {
        (self.entries.as_ptr().cast(), if self.len == 0 { 0 } else { size_of_val(&*self.entries) })
    }

    /// What a key is mapped to.
    #[inline]
    pub fn get(&self, key: K) -> Option<u32> {
        let mut at = self.home(key);
        loop {
            let entry = self.entries[at];
            if entry.slot == EMPTY {
                return None;
            }
            if entry.key == key {
                return Some(entry.slot);
            }
            at = (at + 1) & (self.entries.len() - 1);
        }
    }

    /// Adds an entry; the key must be new.
    pub fn insert(&mut self, key: K, slot: u32) {
        debug_assert!(self.get(key).is_none(), "it is in the table already");
        if (self.len + 1) * 2 > self.entries.len() {
            let larger = vec![Self::FREE; self.entries.len() * 2].into_boxed_slice();
            let old = core::mem::replace(&mut self.entries, larger);
            for entry in old.iter().filter(|entry| entry.slot != EMPTY) {
                self.place(*entry);
            }
        }
        self.place(Entry { key, slot });
        self.len += 1;
    }

    fn place(&mut self, entry: Entry<K>) {
        let mut at = self.home(entry.key);
        while self.entries[at].slot != EMPTY {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = entry;
    }

    /// Removes an entry and returns what its key was mapped to.
    pub fn remove(&mut self, key: K) -> Option<u32> {
        let mask = self.entries.len() - 1;
        let mut hole = self.home(key);
        loop {
            match self.entries[hole] {
                entry if entry.slot == EMPTY => return None,
                entry if entry.key == key => break,
                _ => hole = (hole + 1) & mask,
            }
        }
        let slot = self.entries[hole].slot;
        // Shift back every entry that the hole would hide from its home.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.slot == EMPTY {
                break;
            }
            let wanted = self.home(entry.key);
            if (at.wrapping_sub(wanted) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = Self::FREE;
        self.len -= 1;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use selvedge_units::{Domain, Rng};

    #[test]
    fn behaves_like_a_map() {
        let mut rng = Rng::stream(3, Domain::Impairment, 1);
        let mut table = Table::new();
        let mut model = BTreeMap::new();
        for step in 0..20_000 {
            let key = (HostId(rng.below(4) as u32), QpNumber(rng.below(40) as u32));
            if rng.below(2) == 0 {
                if let alloc::collections::btree_map::Entry::Vacant(vacant) = model.entry(key) {
                    vacant.insert(step);
                    table.insert(key, step);
                }
            } else {
                assert_eq!(table.remove(key), model.remove(&key));
            }
            assert_eq!(table.len, model.len());
            let key = (HostId(rng.below(4) as u32), QpNumber(rng.below(40) as u32));
            assert_eq!(table.get(key), model.get(&key).copied());
        }
    }
}
