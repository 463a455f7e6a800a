//! The connections on a chip that holds a limited number of them (section 3.2.5, "Swapping to/from off-chip memory").
//!
//! The least recently used connection is swapped out: its blocks return to the pool and its bits go to the host's
//! memory. When it is used again it takes blocks for them. The cost in time is not modelled (section 2.3: "latency and
//! PCIe bandwidth"); swaps are counted.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::linked_bitmap::LinkedBitmap;
use super::pool::BitsPool;

/// A connection's name among the residents; zero before it is assigned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Name(u32);

/// The connections on a chip: its receivers, or its senders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    /// The largest number of connections on the chip; zero is any number, and then nothing is recorded.
    limit: usize,
    names: u32,
    /// Connections on the chip by the number of their latest use, least recently used first, each with its bitmap after
    /// that use.
    here: BTreeMap<u64, (Name, LinkedBitmap)>,
    /// The number of the latest use of each connection on the chip.
    used: BTreeMap<Name, u64>,
    uses: u64,
    /// The bits of connections off the chip, where they have any.
    away: BTreeMap<Name, Box<[u64]>>,
    swaps: u64,
}

/// The result of moving a connection onto the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// The connection is on the chip; its blocks are unchanged.
    Here,
    /// The connection is on the chip; its bits were loaded into other blocks.
    Loaded,
    /// The connection stays off the chip: the pool has no blocks for its bits.
    NoRoom,
}

impl Residents {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
    /// Returns whether the number of connections on the chip is limited.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit > 0
    }
    /// Returns how many connections were swapped out.
    pub(crate) fn swaps(&self) -> u64 {
        self.swaps
    }

    /// Moves the connection `name` onto the chip for its next use; `bitmap` is unchanged since the last use.
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

    /// Records the bitmap of the connection that entered last, after its use.
    pub(crate) fn leave(&mut self, bitmap: &LinkedBitmap) {
        if let Some(mut last) = self.here.last_entry() {
            last.get_mut().1.clone_from(bitmap);
        }
    }

    /// Removes the connection `name` and its bits. Returns whether the bits were off the chip: then its bitmap holds no
    /// blocks.
    pub(crate) fn forget(&mut self, name: Name) -> bool {
        if let Some(used) = self.used.remove(&name) {
            self.here.remove(&used);
        }
        self.away.remove(&name).is_some()
    }
}
