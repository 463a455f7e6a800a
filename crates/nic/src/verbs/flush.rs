//! Flushes: requests that make earlier writes visible or persistent (InfiniBand architecture, volume 1, annex A19).

use selvedge_wire::verbs::Feth;
use selvedge_wire::{Reth, verbs::Headers};

use super::work::Remote;

/// A flush of earlier writes to the responder's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flush {
    /// Beginning of the flushed memory. For a whole region, only the key matters.
    pub remote: Remote,
    /// Length in bytes.
    pub length: u32,
    /// Whether the flush covers the whole region.
    pub whole_region: bool,
    /// Whether the writes become visible to all readers of the memory.
    pub global: bool,
    /// Whether the writes become persistent against the loss of power.
    pub persistent: bool,
}

impl Flush {
    /// Returns the flush that a request's headers describe; `None` if the specification does not define it.
    pub(super) fn of(headers: &Headers) -> Option<Self> {
        let (feth, reth) = (headers.flush?, headers.reth?);
        let has = |placement| feth.placement & placement != 0;
        let (global, persistent) = (has(Feth::GLOBAL), has(Feth::PERSISTENT));
        let is_known = feth.placement <= Feth::GLOBAL | Feth::PERSISTENT && feth.selectivity <= Feth::REGION;
        let remote = Remote { address: reth.address, key: reth.key };
        let whole_region = feth.selectivity == Feth::REGION;
        let flush = Self { remote, length: reth.length, whole_region, global, persistent };
        (is_known && (global || persistent)).then_some(flush)
    }
    /// Returns the headers that request the flush.
    pub(super) fn headers(&self) -> (Feth, Reth) {
        let bit = |wanted: bool, placement| if wanted { placement } else { 0 };
        let placement = bit(self.global, Feth::GLOBAL) | bit(self.persistent, Feth::PERSISTENT);
        let selectivity = if self.whole_region { Feth::REGION } else { Feth::RANGE };
        let reth = Reth { address: self.remote.address, key: self.remote.key, length: self.length };
        (Feth { placement, selectivity }, reth)
    }
}
