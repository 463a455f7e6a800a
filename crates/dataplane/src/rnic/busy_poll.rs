//! Busy polling: the progress thread looks for packets for a while before it sleeps.
//!
//! To be woken takes as long as dozens of packets, and costs the sender time, too. So after packets the thread goes on
//! looking for about as long as waking takes, and the time it wastes is never more than what it might have saved
//! (Karlin et al., "Empirical studies of competitive spinning for a shared-memory multiprocessor", SOSP 1991). After
//! unsuccessful polling, because packets are rare or the application needs this processor to answer, the thread polls
//! less and less often; after another thread wanted the processor, it does not poll at all for a while.

use std::sync::atomic::Ordering;
use std::time::Duration;

use selvedge_units::{self as units, Instant};

use super::adapter::Adapter;
use super::progress::wait_for;
use super::yielding::REMEMBERED;

/// Longest time of one busy poll. Waking takes 5 us, or 50 us where processors sleep under a hypervisor.
const LOOK: units::Duration = units::Duration::from_us(50);
/// Duration of a busy poll from which on it must have lost the processor to another thread that computes.
const INTERRUPTED: units::Duration = units::Duration::from_us(500);
/// Most busy polls that are left out after unsuccessful ones: first one, then two, four, and so on.
const MOST_OMITTED: u32 = 64;

/// State that decides when the progress thread polls before it sleeps.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    /// Busy polls that were left out after the last unsuccessful one.
    penalty: u32,
    /// Busy polls still to be left out.
    omitted: u32,
    /// Earliest time of the next busy poll, because other threads wanted the processor.
    not_before: Instant,
}

impl BusyPoll {
    /// Looks for packets until `deadline` at most, unless recent busy polls were unsuccessful; returns whether there is
    /// something to do. Ends when an application begins to poll, which then does the work itself.
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
