//! Memory regions: access rights to memory, by key.
//!
//! A key is a random 32-bit number that the NIC's owner supplies and nobody can guess; a region has the same key
//! locally and remotely. Every access is checked against the bounds, protection domain and rights of its region, and
//! against the rights of the queue pair, before a byte is copied.

use alloc::collections::BTreeMap;

use selvedge_units::QpNumber;

use super::error::VerbsError;
use super::window::{Bind, WindowId, WindowKind, Windows};
use super::work::{Sge, Span};

/// A protection domain: the scope within which queue pairs may use regions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PdId(pub u32);

/// Access rights of a region, a memory window or a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Whether the NIC may write on behalf of its own application: receives and Reads.
    pub local_write: bool,
    /// Whether remote peers may write.
    pub remote_write: bool,
    /// Whether remote peers may read.
    pub remote_read: bool,
    /// Whether remote peers may perform atomic operations.
    pub remote_atomic: bool,
    /// Whether memory windows may be bound to the region.
    pub bind: bool,
    /// Whether remote peers may flush their writes to global visibility.
    pub flush_global: bool,
    /// Whether remote peers may flush their writes to persistence against the loss of power.
    pub flush_persistent: bool,
}

/// A piece of registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Protection domain of the region.
    pub pd: PdId,
    /// First address of the region, as requests name it.
    pub address: u64,
    /// First address of the region in the process.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Access rights.
    pub access: Access,
}

/// Kind of an access that is to be checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    /// Read of data of the local application, to be sent.
    LocalRead,
    /// Write of data that arrives for the local application.
    LocalWrite,
    /// Write on behalf of the other side.
    RemoteWrite,
    /// Read on behalf of the other side.
    RemoteRead,
    /// Atomic operation on behalf of the other side.
    RemoteAtomic,
    /// Flush of earlier writes on behalf of the other side.
    Flush { global: bool, persistent: bool },
}

impl Access {
    /// No rights.
    pub const NONE: Self = Self {
        local_write: false,
        remote_write: false,
        remote_read: false,
        remote_atomic: false,
        bind: false,
        flush_global: false,
        flush_persistent: false,
    };
    /// All rights.
    pub const ALL: Self = Self {
        local_write: true,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
        bind: true,
        flush_global: true,
        flush_persistent: true,
    };

    fn allows(self, intent: Intent) -> bool {
        match intent {
            Intent::LocalRead => true,
            Intent::LocalWrite => self.local_write,
            Intent::RemoteWrite => self.remote_write,
            Intent::RemoteRead => self.remote_read,
            Intent::RemoteAtomic => self.remote_atomic,
            Intent::Flush { global, persistent } => {
                (!global || self.flush_global) && (!persistent || self.flush_persistent)
            }
        }
    }
    /// Returns whether a queue pair with these rights admits `intent` from the other side. Flushes depend on regions
    /// alone.
    pub(super) fn admits(self, intent: Intent) -> bool {
        matches!(intent, Intent::Flush { .. }) || self.allows(intent)
    }
}

impl Region {
    /// Returns the process address of `length` bytes at `address`, if they lie within the region.
    pub fn place(&self, address: u64, length: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        (offset.checked_add(length)? <= self.length).then(|| self.start.wrapping_add(offset))
    }
    /// Returns the process address of `length` bytes at `address`, if they lie within the region and members of `pd`
    /// may access it with `intent`.
    pub(super) fn resolve(&self, pd: PdId, address: u64, length: u64, intent: Intent) -> Option<u64> {
        if self.opens_to(pd, intent) { self.place(address, length) } else { None }
    }
    /// Returns whether members of `pd` may access the region with `intent`.
    fn opens_to(&self, pd: PdId, intent: Intent) -> bool {
        self.pd == pd && self.access.allows(intent)
    }
}

/// All regions of a NIC, and the memory windows into them.
#[derive(Debug, Default)]
pub(super) struct Regions {
    by_key: BTreeMap<u32, Region>,
    windows: Windows,
}

impl Regions {
    /// Registers a region under a new key, which is derived from `entropy`.
    pub(super) fn register(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        check(&region)?;
        // Key 0 names nothing: programs leave keys uninitialised.
        let mut key = entropy.max(1);
        while self.by_key.contains_key(&key) || self.windows.owns(key) {
            key = key.checked_add(1).unwrap_or(1);
        }
        self.by_key.insert(key, region);
        Ok(key)
    }

    /// Replaces the region of an existing key, which no memory window may refer to.
    pub(super) fn change(&mut self, key: u32, region: Region) -> Result<(), VerbsError> {
        check(&region)?;
        self.has_no_windows(key)?;
        *self.by_key.get_mut(&key).ok_or(VerbsError::NoSuch("memory region"))? = region;
        Ok(())
    }

    pub(super) fn deregister(&mut self, key: u32) -> Result<Region, VerbsError> {
        self.has_no_windows(key)?;
        self.by_key.remove(&key).ok_or(VerbsError::NoSuch("memory region"))
    }
    fn has_no_windows(&self, key: u32) -> Result<(), VerbsError> {
        if self.windows.any_into(key) { Err(VerbsError::InUse("memory window")) } else { Ok(()) }
    }

    /// Allocates a memory window, and returns its identifier and key.
    pub(super) fn open(&mut self, pd: PdId, kind: WindowKind, entropy: u32) -> Result<(WindowId, u32), VerbsError> {
        let regions = &self.by_key;
        self.windows.alloc(pd, kind, entropy, |id| regions.range(id.keys()).next().is_some())
    }
    /// Binds a memory window, see [`Windows::bind`].
    pub(super) fn bind(&mut self, pd: PdId, by: QpNumber, bind: &Bind) -> Result<(), VerbsError> {
        let regions = &self.by_key;
        self.windows.bind(pd, by, bind, |key| regions.get(&key))
    }
    pub(super) fn windows(&mut self) -> &mut Windows {
        &mut self.windows
    }

    pub(super) fn get(&self, key: u32) -> Option<&Region> {
        self.by_key.get(&key)
    }
    /// Returns the kind of a resource that still belongs to `pd`, if there is any.
    pub(super) fn any_of(&self, pd: PdId) -> Option<&'static str> {
        if self.by_key.values().any(|region| region.pd == pd) {
            return Some("memory region");
        }
        self.windows.any_of(pd).then_some("memory window")
    }

    /// Returns the process address of `length` bytes at `address`, if the remote key `key` permits `intent` to the
    /// queue pair `qp` of `pd`.
    pub(super) fn resolve(
        &self,
        pd: PdId,
        qp: QpNumber,
        key: u32,
        address: u64,
        length: u64,
        intent: Intent,
    ) -> Option<u64> {
        match self.get(key) {
            Some(region) => region.resolve(pd, address, length, intent),
            None => self.windows.resolve(pd, qp, key, address, length, intent),
        }
    }

    /// Returns the whole region or window of the remote key `key`, if it permits `intent` to the queue pair `qp` of
    /// `pd`.
    pub(super) fn whole(&self, pd: PdId, qp: QpNumber, key: u32, intent: Intent) -> Option<&Region> {
        let found = self.get(key).or_else(|| self.windows.view(qp, key))?;
        found.opens_to(pd, intent).then_some(found)
    }

    /// Calls `found` with each piece of `list` that holds some of `length` bytes from `offset` on. Returns `None` if a
    /// key forbids the access or the list is shorter.
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
                let address = self.get(sge.key)?.resolve(pd, sge.address.wrapping_add(skipped), here, intent)?;
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
