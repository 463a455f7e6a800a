//! Which connections are on the chip, where that holds a limited number (section 3.2.5, "Swapping to/from off-chip
//! memory").
//!
//! The least recently used one gives way: its blocks return to the pool and its bits go to the host's memory. When it
//! is used again it takes blocks for them. What that costs in time is not modelled (section 2.3: "latency and PCIe
//! bandwidth"); it is counted.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::linked_bitmap::LinkedBitmap;
use super::pool::BitsPool;

/// A connection's name here; zero until it has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Name(u32);

/// The connections on a chip: receivers, or senders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    /// How many there may be; zero is any number, and then nothing is written down.
    limit: usize,
    names: u32,
    /// Least recently used first, by which use that was, each with its bitmap as it left it.
    here: BTreeMap<u64, (Name, LinkedBitmap)>,
    /// Where they stand there.
    used: BTreeMap<Name, u64>,
    uses: u64,
    /// The bits of those that have any and are not here.
    away: BTreeMap<Name, Box<[u8]>>,
    swaps: u64,
}

/// What it took to have a connection on the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// Nothing: it is there.
    Here,
    /// Its bits were loaded into other blocks.
    Loaded,
    /// The pool has no blocks for its bits: it stays away.
    NoRoom,
}

impl Residents {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
    /// Whether anybody ever has to give way.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit > 0
    }
    /// How many connections have given way.
    pub(crate) fn swaps(&self) -> u64 {
        self.swaps
    }

    /// The connection `name` is used next; its bitmap was as it is when it was used last.
    pub(crate) fn enter(&mut self, pool: &mut BitsPool, name: &mut Name, bitmap: &mut LinkedBitmap) -> Entered {
        if *name == Name::default() {
            self.names += 1;
            *name = Name(self.names);
        }
        self.uses += 1;
        if let Some(used) = self.used.get_mut(name)
            && let Some(resident) = self.here.remove(used)
        {
            *used = self.uses;
            self.here.insert(self.uses, resident);
            return Entered::Here;
        }
        if self.here.len() >= self.limit
            && let Some((_, (victim, bitmap))) = self.here.pop_first()
        {
            self.used.remove(&victim);
            self.swaps += 1;
            if !bitmap.is_empty() {
                self.away.insert(victim, bitmap.unload(pool));
            }
        }
        let entered = match self.away.get(name) {
            None => Entered::Here,
            Some(bits) if bitmap.load(pool, bits) => Entered::Loaded,
            Some(_) => return Entered::NoRoom,
        };
        self.away.remove(name);
        self.used.insert(*name, self.uses);
        self.here.insert(self.uses, (*name, bitmap.clone()));
        entered
    }

    /// The connection that entered last leaves its bitmap like this.
    pub(crate) fn leave(&mut self, bitmap: &LinkedBitmap) {
        if let Some(mut last) = self.here.last_entry() {
            last.get_mut().1.clone_from(bitmap);
        }
    }

    /// The connection `name` is no more, or its bits are not wanted. Returns whether they were away: then its bitmap
    /// holds no blocks.
    pub(crate) fn forget(&mut self, name: Name) -> bool {
        if let Some(used) = self.used.remove(&name) {
            self.here.remove(&used);
        }
        self.away.remove(&name).is_some()
    }
}
