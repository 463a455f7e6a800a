//! From (host, queue pair number) to a slot: a hash table for packets that carry no slot.
//!
//! Linear probing over a power of two, at most half full, deletion by shifting back. Written here
//! because the standard map's iteration order and hashing are not ours to fix, and because this
//! look-up happens once per data packet.

use alloc::boxed::Box;
use alloc::vec;

use selvedge_units::{HostId, QpNumber};

/// Maps `(host, qp)` to a `u32`.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Box<[Entry]>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    /// `EMPTY` marks a free entry.
    slot: u32,
}

const EMPTY: u32 = u32::MAX;
const FREE: Entry = Entry { key: 0, slot: EMPTY };

fn key(host: HostId, qp: QpNumber) -> u64 {
    u64::from(host.0) << 32 | u64::from(qp.0)
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { entries: vec![FREE; 8].into_boxed_slice(), len: 0 }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        // Fibonacci hashing; the high bits are the good ones.
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.entries.len() - 1)
    }

    /// Where the search for a key begins.
    #[inline]
    pub(crate) fn whereabouts(&self, host: HostId, qp: QpNumber) -> (*const u8, usize) {
        (core::ptr::from_ref(&self.entries[self.home(key(host, qp))]).cast(), size_of::<Entry>())
    }

    #[inline]
    pub(crate) fn get(&self, host: HostId, qp: QpNumber) -> Option<u32> {
        let key = key(host, qp);
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
    pub(crate) fn insert(&mut self, host: HostId, qp: QpNumber, slot: u32) {
        debug_assert!(self.get(host, qp).is_none(), "{host:?} {qp:?} is open already");
        if (self.len + 1) * 2 > self.entries.len() {
            let larger = vec![FREE; self.entries.len() * 2].into_boxed_slice();
            let old = core::mem::replace(&mut self.entries, larger);
            for entry in old.iter().filter(|entry| entry.slot != EMPTY) {
                self.place(*entry);
            }
        }
        self.place(Entry { key: key(host, qp), slot });
        self.len += 1;
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.key);
        while self.entries[at].slot != EMPTY {
            at = (at + 1) & (self.entries.len() - 1);
        }
        self.entries[at] = entry;
    }

    /// Removes an entry and returns its slot.
    pub(crate) fn remove(&mut self, host: HostId, qp: QpNumber) -> Option<u32> {
        let key = key(host, qp);
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
        self.entries[hole] = FREE;
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
            let (host, qp) = (HostId(rng.below(4) as u32), QpNumber(rng.below(40) as u32));
            if rng.below(2) == 0 {
                if let alloc::collections::btree_map::Entry::Vacant(vacant) = model.entry((host, qp)) {
                    vacant.insert(step);
                    table.insert(host, qp, step);
                }
            } else {
                assert_eq!(table.remove(host, qp), model.remove(&(host, qp)));
            }
            assert_eq!(table.len, model.len());
            let (host, qp) = (HostId(rng.below(4) as u32), QpNumber(rng.below(40) as u32));
            assert_eq!(table.get(host, qp), model.get(&(host, qp)).copied());
        }
    }
}
