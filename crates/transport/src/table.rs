//! A hash table from the key of a flow to its slot, for packets that carry no slot.
//!
//! The table uses linear probing over a power of two, is at most half full, and deletes by shifting entries back. The
//! standard map does not serve: its iteration order and hashing are not fixed, and this look-up happens once per data
//! packet.

use alloc::boxed::Box;
use alloc::vec;

use selvedge_prefetch::PrefetchRange;
use selvedge_units::{HostId, QpNumber};

/// A key that identifies a flow.
pub trait Key: Copy + Eq {
    /// The key in free entries.
    const BLANK: Self;
    /// Returns a hash of the key; only its upper half is used.
    fn mixed(self) -> u64;
}

/// A queue pair, identified by the host that sends on it and its number.
impl Key for (HostId, QpNumber) {
    const BLANK: Self = (HostId(0), QpNumber(0));
    #[inline]
    fn mixed(self) -> u64 {
        // Fibonacci hashing, whose high bits are well mixed.
        (u64::from(self.0.0) << 32 | u64::from(self.1.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A hash table that maps keys to numbers below `u32::MAX`.
#[derive(Debug)]
pub struct Table<K> {
    entries: Box<[Entry<K>]>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry<K> {
    key: K,
    /// The value; `EMPTY` marks a free entry.
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

    /// Creates an empty table.
    pub fn new() -> Self {
        Self { entries: vec![Self::FREE; 8].into_boxed_slice(), len: 0 }
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        (key.mixed() >> 32) as usize & (self.entries.len() - 1)
    }

    /// Returns the entry where the search for `key` begins, for drivers that prefetch it.
    #[inline]
    pub fn state_of(&self, key: K) -> PrefetchRange {
        PrefetchRange::of(core::slice::from_ref(&self.entries[self.home(key)]))
    }

    /// Returns all entries, for drivers that prefetch them; nothing if the table is empty.
    #[inline]
    pub fn state(&self) -> PrefetchRange {
        if self.len == 0 { PrefetchRange::EMPTY } else { PrefetchRange::of(&self.entries) }
    }

    /// Returns the value of `key`, if the table contains it.
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

    /// Adds an entry; `key` must be new.
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

    /// Removes an entry and returns its value, if the table contains it.
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
        // Shift back every entry that the free entry would hide from its home.
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
