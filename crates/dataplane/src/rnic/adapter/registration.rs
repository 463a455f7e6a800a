//! Operations of the adapter on registered memory and memory windows.

use selvedge_nic::verbs::{PdId, Region, Sge, VerbsError, WindowId, WindowKind};

use super::{Adapter, Refusal, entropy};
use crate::rnic::{memory, persist};

impl Adapter {
    /// Registers memory; returns the region's key.
    ///
    /// # Errors
    /// Returns [`Refusal::Fault`], [`Refusal::Entropy`], or the engine's refusal.
    ///
    /// # Safety
    /// Peers that know the key may read the memory, and write it if the region allows it, until it is deregistered. The
    /// memory must be the caller's to give, and no Rust reference to it may exist.
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr(&self, region: Region) -> Result<u32, Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        // SAFETY: the caller's.
        unsafe { self.reg_mr_on_demand(region) }
    }
    /// Registers memory that need not be mapped yet; returns the region's key.
    ///
    /// # Errors
    /// Returns [`Refusal::Entropy`], or the engine's refusal.
    ///
    /// # Safety
    /// The conditions of [`Self::reg_mr`] apply.
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr_on_demand(&self, region: Region) -> Result<u32, Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.command(|rnic, _| rnic.reg_mr(region, entropy))??)
    }
    /// Registers other memory under a key.
    ///
    /// # Errors
    /// Returns [`Refusal::Fault`], [`Refusal::Entropy`], or the engine's refusal.
    ///
    /// # Safety
    /// The conditions of [`Self::reg_mr`] apply.
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn rereg_mr(&self, key: u32, region: Region) -> Result<(), Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        Ok(self.command(|rnic, _| rnic.rereg_mr(key, region))??)
    }
    /// Makes the system load memory of a region of `pd`, for writing if `written`.
    ///
    /// # Errors
    /// Returns [`Refusal::Fault`] if the memory is not mapped, or an error if the region does not contain `piece`.
    pub fn prefetch(&self, pd: PdId, piece: Sge, written: bool) -> Result<(), Refusal> {
        let region = self.lock()?.rnic.region(piece.key).filter(|region| region.pd == pd);
        let place = region.and_then(|region| region.place(piece.address, piece.length.into()));
        let address = place.ok_or(VerbsError::NoSuch("piece of a memory region"))?;
        memory::prefetch(address, piece.length.into(), written).map_err(|_| Refusal::Fault)
    }
    /// Creates a memory window; returns its identifier and key.
    ///
    /// # Errors
    /// Returns [`Refusal::Entropy`], or the engine's refusal.
    pub fn alloc_mw(&self, pd: PdId, kind: WindowKind) -> Result<(WindowId, u32), Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.lock()?.rnic.alloc_mw(pd, kind, entropy)?)
    }
    /// Returns whether memory may be registered that need not be mapped: where accesses are guarded.
    pub fn has_on_demand(&self) -> bool {
        memory::IS_GUARDED
    }
    /// Returns whether this memory can be made to survive the loss of power: all of it is mapped files that survive a
    /// restart.
    pub fn can_persist(&self, address: u64, length: u64) -> bool {
        persist::is_kept(address, length)
    }
}
