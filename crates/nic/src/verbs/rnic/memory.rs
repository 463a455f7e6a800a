//! Protection domains, memory regions and windows.

use super::Rnic;
use crate::verbs::error::VerbsError;
use crate::verbs::region::{PdId, Region};
use crate::verbs::window::{WindowId, WindowKind};

impl Rnic {
    /// A new protection domain.
    pub fn alloc_pd(&mut self) -> PdId {
        let pd = PdId(self.fresh());
        self.pds.insert(pd);
        pd
    }
    /// Forgets one.
    ///
    /// # Errors
    /// While anything belongs to it.
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
    /// Registers memory; returns its key, local and remote. `entropy` is a number that nobody can guess.
    ///
    /// # Errors
    /// When rights contradict each other, or the region runs past the end of memory.
    pub fn reg_mr(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.register(region, entropy)
    }
    /// Changes what a key stands for.
    ///
    /// # Errors
    /// As [`Self::reg_mr`], if there is no such key, or while a window leads into the region.
    pub fn rereg_mr(&mut self, key: u32, region: Region) -> Result<(), VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.change(key, region)
    }
    /// What a key stands for.
    pub fn region(&self, key: u32) -> Option<Region> {
        self.shared.regions.get(key).copied()
    }
    /// Forgets a region: nothing touches its memory from now on.
    ///
    /// # Errors
    /// If there is none, or while a window leads into it.
    pub fn dereg_mr(&mut self, key: u32) -> Result<(), VerbsError> {
        self.shared.regions.deregister(key).map(drop)
    }
    /// A new memory window, which leads nowhere until it is bound; and its key. `entropy` is a number that nobody can
    /// guess.
    ///
    /// # Errors
    /// When there are too many.
    pub fn alloc_mw(&mut self, pd: PdId, kind: WindowKind, entropy: u32) -> Result<(WindowId, u32), VerbsError> {
        self.pd(pd)?;
        self.shared.regions.open(pd, kind, entropy)
    }
    /// Forgets a window: nothing is reached through it from now on.
    ///
    /// # Errors
    /// If there is none.
    pub fn dealloc_mw(&mut self, window: WindowId) -> Result<(), VerbsError> {
        self.shared.regions.windows().dealloc(window)
    }
}
