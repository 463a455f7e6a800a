//! Memory regions: who may touch which memory, by which key.
//!
//! A key is 32 bits that the NIC's owner draws and nobody can guess; a region is named by the same key locally and
//! remotely. Every access is checked against its region's bounds, protection domain and rights, and against what the
//! queue pair allows, before a byte moves.

use alloc::collections::BTreeMap;

use selvedge_units::QpNumber;

use super::error::VerbsError;
use super::window::{Bind, WindowId, WindowKind, Windows};
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
    /// Memory windows may be bound to it.
    pub bind: bool,
    /// Others may make sure that what they have written is seen.
    pub flush_global: bool,
    /// Others may make sure that what they have written survives the loss of power.
    pub flush_persistent: bool,
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
    /// The other side makes sure of what it has written.
    Flush { global: bool, persistent: bool },
}

impl Access {
    /// Nothing.
    pub const NONE: Self = Self {
        local_write: false,
        remote_write: false,
        remote_read: false,
        remote_atomic: false,
        bind: false,
        flush_global: false,
        flush_persistent: false,
    };
    /// Everything.
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
    /// Whether a queue pair with these rights lets the other side do that. Flushes are a matter of regions alone.
    pub(super) fn admits(self, intent: Intent) -> bool {
        matches!(intent, Intent::Flush { .. }) || self.allows(intent)
    }
}

impl Region {
    /// Where `length` bytes at `address` are in the process, if that is within it.
    pub fn place(&self, address: u64, length: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        (offset.checked_add(length)? <= self.length).then(|| self.start.wrapping_add(offset))
    }
    /// The same, if members of `pd` are allowed `intent`.
    pub(super) fn resolve(&self, pd: PdId, address: u64, length: u64, intent: Intent) -> Option<u64> {
        if self.opens_to(pd, intent) { self.place(address, length) } else { None }
    }
    /// Whether members of `pd` are allowed `intent`.
    fn opens_to(&self, pd: PdId, intent: Intent) -> bool {
        self.pd == pd && self.access.allows(intent)
    }
}

/// All regions of a NIC, and the windows into them.
#[derive(Debug, Default)]
pub(super) struct Regions {
    by_key: BTreeMap<u32, Region>,
    windows: Windows,
}

impl Regions {
    /// Puts a region under a new key, which comes from `entropy`.
    pub(super) fn register(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        check(&region)?;
        // Key 0 names nothing: programs leave it uninitialised.
        let mut key = entropy.max(1);
        while self.by_key.contains_key(&key) || self.windows.owns(key) {
            key = key.checked_add(1).unwrap_or(1);
        }
        self.by_key.insert(key, region);
        Ok(key)
    }

    /// Puts another region under a key that exists, and that no window leads into.
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

    /// A new window, and its key.
    pub(super) fn open(&mut self, pd: PdId, kind: WindowKind, entropy: u32) -> Result<(WindowId, u32), VerbsError> {
        let regions = &self.by_key;
        self.windows.alloc(pd, kind, entropy, |id| regions.range(id.keys()).next().is_some())
    }
    /// Binds a window: see [`Windows::bind`].
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
    /// What of a protection domain there still is.
    pub(super) fn any_of(&self, pd: PdId) -> Option<&'static str> {
        if self.by_key.values().any(|region| region.pd == pd) {
            return Some("memory region");
        }
        self.windows.any_of(pd).then_some("memory window")
    }

    /// Where `length` bytes at `address` are, if the remote key `key` allows `intent` to the queue pair `qp` of `pd`.
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

    /// All that the remote key `key` leads to, if it allows `intent` to the queue pair `qp` of `pd`.
    pub(super) fn whole(&self, pd: PdId, qp: QpNumber, key: u32, intent: Intent) -> Option<&Region> {
        let found = self.get(key).or_else(|| self.windows.view(qp, key))?;
        found.opens_to(pd, intent).then_some(found)
    }

    /// The pieces of `list` that hold `length` bytes from `offset` on; `None` if a key forbids it, or the list is
    /// shorter.
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
