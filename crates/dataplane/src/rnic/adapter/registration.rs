//! Registered memory, and windows onto it.

use selvedge_nic::verbs::{PdId, Region, Sge, VerbsError, WindowId, WindowKind};

use super::{Adapter, Refusal, entropy};
use crate::rnic::{memory, persist};

impl Adapter {
    /// Registers memory; returns its key.
    ///
    /// # Errors
    /// [`Refusal::Fault`], [`Refusal::Entropy`], or as the engine has it.
    ///
    /// # Safety
    /// Whoever holds the key may read the memory, and write it if the region says so, until it is deregistered: it must
    /// be the caller's to give, and nothing that anybody holds a Rust reference to.
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr(&self, region: Region) -> Result<u32, Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        // SAFETY: the caller's.
        unsafe { self.reg_mr_on_demand(region) }
    }
    /// Registers memory that need not be there yet; returns its key.
    ///
    /// # Errors
    /// [`Refusal::Entropy`], or as the engine has it.
    ///
    /// # Safety
    /// As [`Self::reg_mr`].
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr_on_demand(&self, region: Region) -> Result<u32, Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.command(|rnic, _| rnic.reg_mr(region, entropy))??)
    }
    /// Registers other memory under a key.
    ///
    /// # Errors
    /// As [`Self::reg_mr`].
    ///
    /// # Safety
    /// As [`Self::reg_mr`].
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn rereg_mr(&self, key: u32, region: Region) -> Result<(), Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        Ok(self.command(|rnic, _| rnic.rereg_mr(key, region))??)
    }
    /// Has the system bring in memory of a region of `pd`, to be written if `written`.
    ///
    /// # Errors
    /// [`Refusal::Fault`] if it is not there; if the region has no such piece.
    pub fn prefetch(&self, pd: PdId, piece: Sge, written: bool) -> Result<(), Refusal> {
        let region = self.lock()?.rnic.region(piece.key).filter(|region| region.pd == pd);
        let place = region.and_then(|region| region.place(piece.address, piece.length.into()));
        let address = place.ok_or(VerbsError::NoSuch("piece of a memory region"))?;
        memory::prefetch(address, piece.length.into(), written).map_err(|_| Refusal::Fault)
    }
    /// A new memory window; and its key.
    ///
    /// # Errors
    /// [`Refusal::Entropy`], or as the engine has it.
    pub fn alloc_mw(&self, pd: PdId, kind: WindowKind) -> Result<(WindowId, u32), Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.lock()?.rnic.alloc_mw(pd, kind, entropy)?)
    }
    /// Whether memory may be registered that need not be there: where accesses are guarded.
    pub fn has_on_demand(&self) -> bool {
        memory::IS_GUARDED
    }
    /// Whether this memory can be made to survive the loss of power: all of it is files that are kept.
    pub fn can_persist(&self, address: u64, length: u64) -> bool {
        persist::is_kept(address, length)
    }
}
