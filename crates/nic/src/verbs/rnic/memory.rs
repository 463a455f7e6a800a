//! Protection domains, memory regions and windows.

use super::Rnic;
use crate::verbs::error::VerbsError;
use crate::verbs::region::{PdId, Region};
use crate::verbs::window::{WindowId, WindowKind};

impl Rnic {
    /// Allocates a protection domain.
    pub fn alloc_pd(&mut self) -> PdId {
        let pd = PdId(self.fresh());
        self.pds.insert(pd);
        pd
    }
    /// Deallocates a protection domain.
    ///
    /// # Errors
    /// If the domain does not exist, or while any resource belongs to it.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<(), VerbsError> {
        self.pd(pd)?;
        if let Some(what) = self.shared.regions.any_of(pd) {
            return Err(VerbsError::InUse(what));
        }
        if self.qps.values().any(|qp| qp.init.pd == pd) {
            return Err(VerbsError::InUse("queue pair"));
        }
        if self.shared.srqs.values().any(|srq| srq.pd == pd) {
            return Err(VerbsError::InUse("shared receive queue"));
        }
        self.pds.remove(&pd);
        Ok(())
    }
    pub(super) fn pd(&self, pd: PdId) -> Result<(), VerbsError> {
        self.pds.contains(&pd).then_some(()).ok_or(VerbsError::NoSuch("protection domain"))
    }
    /// Registers memory and returns its key, local and remote. `entropy` must be unpredictable.
    ///
    /// # Errors
    /// If the protection domain does not exist, the rights contradict each other, or the region runs past the end of
    /// memory.
    pub fn reg_mr(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.register(region, entropy)
    }
    /// Replaces the region of a key.
    ///
    /// # Errors
    /// Like [`Self::reg_mr`], or if the key does not exist, or while a window refers to the region.
    pub fn rereg_mr(&mut self, key: u32, region: Region) -> Result<(), VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.change(key, region)
    }
    /// Returns the region of a key.
    pub fn region(&self, key: u32) -> Option<Region> {
        self.shared.regions.get(key).copied()
    }
    /// Deregisters a region: its memory is not accessed from now on.
    ///
    /// # Errors
    /// If the key does not exist, or while a window refers to the region.
    pub fn dereg_mr(&mut self, key: u32) -> Result<(), VerbsError> {
        self.shared.regions.deregister(key).map(drop)
    }
    /// Allocates a memory window, which is not bound yet, and returns it with its key. `entropy` must be unpredictable.
    ///
    /// # Errors
    /// If the protection domain does not exist, or the limit of windows is reached.
    pub fn alloc_mw(&mut self, pd: PdId, kind: WindowKind, entropy: u32) -> Result<(WindowId, u32), VerbsError> {
        self.pd(pd)?;
        self.shared.regions.open(pd, kind, entropy)
    }
    /// Deallocates a window: no memory is accessed through it from now on.
    ///
    /// # Errors
    /// If the window does not exist.
    pub fn dealloc_mw(&mut self, window: WindowId) -> Result<(), VerbsError> {
        self.shared.regions.windows().dealloc(window)
    }
}
