//! Memory windows: pieces of regions to which requests grant and revoke remote access without registering memory
//! (InfiniBand architecture, volume 1, section 10.6.7).
//!
//! | | type 1 | type 2 (2B) |
//! |---|---|---|
//! | opens by | binding | binding, from the free state alone |
//! | to | every queue pair of its domain | the queue pair that bound it |
//! | closes by | binding it to nothing | invalidating its key, from either side |
//! | addresses begin | as the region's | as the region's, or at 0 |
//!
//! The high 24 bits of a window's keys belong to that window alone for as long as it exists. The application chooses
//! the low 8 bits at each binding, so that an earlier key is invalid.

use alloc::collections::BTreeMap;

use selvedge_units::QpNumber;

use super::error::VerbsError;
use super::region::{Access, Intent, PdId, Region};
use super::rnic::Limits;

/// Identifier of a memory window: the high 24 bits of its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct WindowId(pub u32);

/// Types of memory windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowKind {
    /// Type 1: open to all queue pairs of its protection domain, and bound again at will.
    Type1,
    /// Type 2B: open to the queue pair that bound it, until its key is invalidated.
    Type2,
}

/// Parameters of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bind {
    /// Memory window to bind.
    pub window: WindowId,
    /// New key of the window; only its low 8 bits count.
    pub key: u32,
    /// Key of the region.
    pub region: u32,
    /// First address of the window, in the address space of the region.
    pub address: u64,
    /// Length in bytes; 0 closes a window of type 1.
    pub length: u64,
    /// Rights of remote peers. Local rights are ignored.
    pub access: Access,
    /// Whether remote addresses count from the beginning of the window.
    pub zero_based: bool,
}

/// State of a memory window.
#[derive(Debug)]
struct Window {
    pd: PdId,
    kind: WindowKind,
    /// Low 8 bits of the key.
    variant: u8,
    bound: Option<Bound>,
}

/// Binding of a window that is open.
#[derive(Clone, Copy, Debug)]
struct Bound {
    by: QpNumber,
    region: u32,
    /// Open piece of the region, by its remote addresses and those of the process.
    view: Region,
}

/// All memory windows of a NIC.
#[derive(Debug, Default)]
pub(super) struct Windows {
    by_prefix: BTreeMap<u32, Window>,
}

const fn prefix(key: u32) -> u32 {
    key >> 8
}

impl WindowId {
    /// Returns the range of keys that the window may have.
    pub(super) const fn keys(self) -> core::ops::RangeInclusive<u32> {
        self.0 << 8..=self.0 << 8 | 0xff
    }
}

impl Windows {
    /// Returns whether this key belongs to a window rather than a region.
    pub(super) fn owns(&self, key: u32) -> bool {
        self.by_prefix.contains_key(&prefix(key))
    }
    /// Allocates a window that is not bound. The key is derived from `entropy` and skips those that are `taken`.
    pub(super) fn alloc(
        &mut self,
        pd: PdId,
        kind: WindowKind,
        entropy: u32,
        taken: impl Fn(WindowId) -> bool,
    ) -> Result<(WindowId, u32), VerbsError> {
        if self.by_prefix.len() >= Limits::HERE.windows as usize {
            return Err(VerbsError::Exhausted("memory windows"));
        }
        // Prefix 0 is not used: key 0 names nothing.
        let mut id = WindowId(prefix(entropy).max(1));
        while self.by_prefix.contains_key(&id.0) || taken(id) {
            id = WindowId(((id.0 + 1) & 0xff_ffff).max(1));
        }
        let variant = entropy as u8;
        self.by_prefix.insert(id.0, Window { pd, kind, variant, bound: None });
        Ok((id, id.0 << 8 | u32::from(variant)))
    }
    pub(super) fn dealloc(&mut self, id: WindowId) -> Result<(), VerbsError> {
        self.by_prefix.remove(&id.0).map(drop).ok_or(VerbsError::NoSuch("memory window"))
    }
    pub(super) fn any_of(&self, pd: PdId) -> bool {
        self.by_prefix.values().any(|window| window.pd == pd)
    }
    /// Returns whether any window refers to the region of this key.
    pub(super) fn any_into(&self, region: u32) -> bool {
        self.by_prefix.values().any(|window| window.bound.is_some_and(|bound| bound.region == region))
    }

    /// Binds a window on a request of `by`, a queue pair of `pd`. `find` looks up regions.
    pub(super) fn bind<'a>(
        &mut self,
        pd: PdId,
        by: QpNumber,
        bind: &Bind,
        find: impl FnOnce(u32) -> Option<&'a Region>,
    ) -> Result<(), VerbsError> {
        let window = self.by_prefix.get_mut(&bind.window.0).ok_or(VerbsError::NoSuch("memory window"))?;
        if window.pd != pd {
            return Err(VerbsError::Invalid("a window of another protection domain"));
        }
        match window.kind {
            WindowKind::Type1 if bind.zero_based => {
                return Err(VerbsError::Invalid("a window of type 1 whose addresses begin at 0"));
            }
            WindowKind::Type2 if window.bound.is_some() => {
                return Err(VerbsError::Invalid("a window of type 2 that is bound already: invalidate it first"));
            }
            WindowKind::Type2 if bind.length == 0 => {
                return Err(VerbsError::Invalid("a window of type 2 onto nothing"));
            }
            _ => {}
        }
        let bound = match bind.length {
            0 => None,
            _ => {
                let region = find(bind.region).ok_or(VerbsError::NoSuch("memory region"))?;
                Some(Bound { by, region: bind.region, view: view(region, pd, bind)? })
            }
        };
        (window.variant, window.bound) = (bind.key as u8, bound);
        Ok(())
    }

    /// Invalidates a window of type 2, on a request that `by` has posted or received.
    pub(super) fn invalidate(&mut self, pd: PdId, by: QpNumber, key: u32) -> Result<(), VerbsError> {
        let window = self.by_prefix.get_mut(&prefix(key)).ok_or(VerbsError::NoSuch("memory window"))?;
        let is_its_own = window.variant == key as u8 && window.pd == pd;
        let is_open = window.bound.is_some_and(|bound| bound.by == by);
        if window.kind != WindowKind::Type2 || !is_its_own || !is_open {
            return Err(VerbsError::Invalid("a key that is of no window of type 2, bound by this queue pair"));
        }
        window.bound = None;
        Ok(())
    }
    /// Closes the windows that a destroyed queue pair has bound.
    pub(super) fn forget(&mut self, qp: QpNumber) {
        for window in self.by_prefix.values_mut().filter(|window| window.kind == WindowKind::Type2) {
            window.bound.take_if(|bound| bound.by == qp);
        }
    }

    /// Returns the process address of `length` bytes at `address`, if the window of `key` grants that access to `qp` of
    /// `pd`.
    pub(super) fn resolve(
        &self,
        pd: PdId,
        qp: QpNumber,
        key: u32,
        address: u64,
        length: u64,
        intent: Intent,
    ) -> Option<u64> {
        self.view(qp, key)?.resolve(pd, address, length, intent)
    }
    /// Returns the piece of memory that the window of `key` opens to `qp`, if it is bound.
    pub(super) fn view(&self, qp: QpNumber, key: u32) -> Option<&Region> {
        let window = self.by_prefix.get(&prefix(key)).filter(|window| window.variant == key as u8)?;
        let bound = window.bound.as_ref().filter(|bound| window.kind == WindowKind::Type1 || bound.by == qp)?;
        Some(&bound.view)
    }
}

/// Returns the piece of memory that remote peers see through the window, if the binding is permitted.
fn view(region: &Region, pd: PdId, bind: &Bind) -> Result<Region, VerbsError> {
    if region.pd != pd {
        return Err(VerbsError::Invalid("a region of another protection domain"));
    }
    if !region.access.bind {
        return Err(VerbsError::Invalid("a region that allows no windows"));
    }
    if (bind.access.remote_write || bind.access.remote_atomic) && !region.access.local_write {
        return Err(VerbsError::Invalid("a window to write through, without local write access to the region"));
    }
    let start = region.place(bind.address, bind.length).ok_or(VerbsError::Invalid("a window beyond its region"))?;
    let address = if bind.zero_based { 0 } else { bind.address };
    Ok(Region { pd, address, start, length: bind.length, access: bind.access })
}
