//! Flushes: requests that make sure of what was written before (InfiniBand architecture, volume 1, annex A19).

use selvedge_wire::verbs::Feth;
use selvedge_wire::{Reth, verbs::Headers};

use super::work::Remote;

/// What is to be made sure of, of what was written to the responder's memory before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flush {
    /// Where it begins. If it is a whole region, only the key matters.
    pub remote: Remote,
    /// Bytes.
    pub length: u32,
    /// It is about all of the region.
    pub whole_region: bool,
    /// Whoever reads that memory is to find it.
    pub global: bool,
    /// It is to survive the loss of power.
    pub persistent: bool,
}

impl Flush {
    /// What a request asks for; `None` if it asks for what the specification does not know.
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
    /// The headers that ask for it.
    pub(super) fn headers(&self) -> (Feth, Reth) {
        let bit = |wanted: bool, placement| if wanted { placement } else { 0 };
        let placement = bit(self.global, Feth::GLOBAL) | bit(self.persistent, Feth::PERSISTENT);
        let selectivity = if self.whole_region { Feth::REGION } else { Feth::RANGE };
        let reth = Reth { address: self.remote.address, key: self.remote.key, length: self.length };
        (Feth { placement, selectivity }, reth)
    }
}
