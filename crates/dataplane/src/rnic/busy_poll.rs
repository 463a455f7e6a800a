//! Busy polling: how the progress thread looks for packets before it sleeps.
//!
//! To be woken takes as long as dozens of packets, and costs whoever sends, too. So after packets the thread goes on
//! looking for about as long as waking takes, and what it wastes is never more than what it might have saved (Karlin et
//! al., "Empirical studies of competitive spinning for a shared-memory multiprocessor", SOSP 1991). Where that was of
//! no use, because packets are rare or the application needs this processor to answer, it does so less and less often;
//! where others wanted the processor, not at all for a while.

use std::sync::atomic::Ordering;
use std::time::Duration;

use selvedge_units::{self as units, Instant};

use super::adapter::Adapter;
use super::progress::wait_for;
use super::yielding::REMEMBERED;

/// How long it looks. Waking takes 5 us, where processors sleep under a hypervisor 50.
const LOOK: units::Duration = units::Duration::from_us(50);
/// A look that took so long had to leave the processor to somebody who computes.
const INTERRUPTED: units::Duration = units::Duration::from_us(500);
/// After looks in vain the next one, two, four, ... are left out, so many at the most.
const MOST_OMITTED: u32 = 64;

/// When the progress thread polls before it sleeps, and how often it leaves that out.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    /// Attempts to leave out after the next look in vain.
    penalty: u32,
    /// Attempts that are still to be left out.
    omitted: u32,
    /// Others wanted the processor: none before this.
    not_before: Instant,
}

impl BusyPoll {
    /// Looks for packets until `deadline`, if there is some hope; returns whether there is something to do. An
    /// application that begins to poll does it itself.
    pub(super) fn finds_work(&mut self, adapter: &Adapter, deadline: Instant) -> bool {
        let start = adapter.now();
        if self.omitted > 0 || start < self.not_before {
            self.omitted = self.omitted.saturating_sub(1);
            return false;
        }
        let calls = adapter.calls.load(Ordering::Relaxed);
        let mut now = start;
        while now < deadline.min(start + LOOK) {
            if wait_for(adapter, true, Some(Duration::ZERO)) {
                self.penalty = 0;
                return true;
            }
            if adapter.calls.load(Ordering::Relaxed) != calls {
                return false;
            }
            now = adapter.now();
        }
        self.penalty = (2 * self.penalty).clamp(1, MOST_OMITTED);
        self.omitted = self.penalty;
        if now.since(start) >= INTERRUPTED {
            self.not_before = now + REMEMBERED;
        }
        false
    }
}
