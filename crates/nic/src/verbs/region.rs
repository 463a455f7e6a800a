//! Memory regions: who may touch which memory, by which key.
//!
//! A key is 32 bits that the NIC's owner draws and nobody can guess; a region is named by the same key locally and
//! remotely. Every access is checked against its region's bounds, protection domain and rights, and against what the
//! queue pair allows, before a byte moves.

use alloc::collections::BTreeMap;

use super::error::VerbsError;
use super::work::{Sge, Span};

/// A protection domain: what belongs together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PdId(pub u32);

/// What may be done to a region, or through a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// The NIC may write here for its own application: receives, Reads.
    pub local_write: bool,
    /// Others may write.
    pub remote_write: bool,
    /// Others may read.
    pub remote_read: bool,
    /// Others may do atomic operations.
    pub remote_atomic: bool,
}

/// A piece of memory under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its protection domain.
    pub pd: PdId,
    /// Its first address, as requests name it.
    pub address: u64,
    /// Where that is in the process.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// What may be done.
    pub access: Access,
}

/// What somebody wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    /// Our own application's data is sent.
    LocalRead,
    /// Data for our own application arrives.
    LocalWrite,
    /// The other side writes.
    RemoteWrite,
    /// The other side reads.
    RemoteRead,
    /// The other side does an atomic operation.
    RemoteAtomic,
}

impl Access {
    fn allows(self, intent: Intent) -> bool {
        match intent {
            Intent::LocalRead => true,
            Intent::LocalWrite => self.local_write,
            Intent::RemoteWrite => self.remote_write,
            Intent::RemoteRead => self.remote_read,
            Intent::RemoteAtomic => self.remote_atomic,
        }
    }
    /// Whether a queue pair with these rights lets the other side do that.
    pub(super) fn admits(self, intent: Intent) -> bool {
        self.allows(intent)
    }
}

/// All regions of a NIC.
#[derive(Debug, Default)]
pub(super) struct Regions {
    by_key: BTreeMap<u32, Region>,
}

impl Regions {
    /// Puts a region under a new key, which comes from `entropy`.
    pub(super) fn register(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        check(&region)?;
        // Key 0 names nothing: programs leave it uninitialised.
        let mut key = entropy.max(1);
        while self.by_key.contains_key(&key) {
            key = key.checked_add(1).unwrap_or(1);
        }
        self.by_key.insert(key, region);
        Ok(key)
    }

    /// Puts another region under a key that exists.
    pub(super) fn change(&mut self, key: u32, region: Region) -> Result<(), VerbsError> {
        check(&region)?;
        *self.by_key.get_mut(&key).ok_or(VerbsError::NoSuch("memory region"))? = region;
        Ok(())
    }

    pub(super) fn deregister(&mut self, key: u32) -> Result<Region, VerbsError> {
        self.by_key.remove(&key).ok_or(VerbsError::NoSuch("memory region"))
    }

    pub(super) fn get(&self, key: u32) -> Option<&Region> {
        self.by_key.get(&key)
    }
    pub(super) fn any_of(&self, pd: PdId) -> bool {
        self.by_key.values().any(|region| region.pd == pd)
    }

    /// Where `length` bytes at `address` are, if `key` allows `intent` to members of `pd`.
    pub(super) fn resolve(&self, pd: PdId, key: u32, address: u64, length: u64, intent: Intent) -> Option<u64> {
        let region = self.get(key).filter(|region| region.pd == pd && region.access.allows(intent))?;
        let offset = address.checked_sub(region.address)?;
        (offset.checked_add(length)? <= region.length).then(|| region.start.wrapping_add(offset))
    }

    /// The pieces of `list` that hold `length` bytes from `offset` on; `None` if a key forbids it, or the list is shorter.
    pub(super) fn spans(
        &self,
        pd: PdId,
        list: &[Sge],
        mut offset: u64,
        length: u64,
        intent: Intent,
        found: &mut impl FnMut(Span),
    ) -> Option<()> {
        let mut left = length;
        for sge in list {
            if left == 0 {
                break;
            }
            let skipped = offset.min(u64::from(sge.length));
            offset -= skipped;
            let here = (u64::from(sge.length) - skipped).min(left);
            if here > 0 {
                let address = self.resolve(pd, sge.key, sge.address.wrapping_add(skipped), here, intent)?;
                found(Span { address, length: here as u32 });
                left -= here;
            }
        }
        (left == 0).then_some(())
    }
}

fn check(region: &Region) -> Result<(), VerbsError> {
    if (region.access.remote_write || region.access.remote_atomic) && !region.access.local_write {
        return Err(VerbsError::Invalid("remote write or atomic access without local write access"));
    }
    let fits = |from: u64| from.checked_add(region.length).is_some();
    if !fits(region.address) || !fits(region.start) {
        return Err(VerbsError::Invalid("a region that runs past the end of memory"));
    }
    Ok(())
}
