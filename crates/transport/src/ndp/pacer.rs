//! The pull pacer of a host (NDP section 3.2): one pull per transmission time of a full packet on its link, for all
//! flows in turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};

use super::config::NdpParams;

/// The pulls that all flows of a host owe their senders. Flows are identified by small numbers chosen by the caller.
#[derive(Clone, Debug)]
pub struct PullPacer {
    interval: Duration,
    /// Time of the next pull, at the earliest.
    next_at: Instant,
    /// Flows in the order of their turns, each once.
    ring: VecDeque<u32>,
    /// Pulls owed, indexed by flow.
    debts: Vec<Debt>,
    /// Number of flows in the ring that owe pulls.
    debtors: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Debt {
    pulls: u32,
    /// Whether the flow is in the ring, even if it owes nothing any more.
    stands: bool,
}

impl PullPacer {
    /// Creates the pacer of a host without flows.
    pub fn new(params: &NdpParams) -> Self {
        let (ring, debts) = (VecDeque::new(), Vec::new());
        Self { interval: params.pull_interval, next_at: Instant::ZERO, ring, debts, debtors: 0 }
    }

    /// Adds one pull owed by `flow`.
    pub fn owe(&mut self, flow: u32) {
        let at = flow as usize;
        if at >= self.debts.len() {
            self.debts.resize(at + 1, Debt::default());
        }
        let debt = &mut self.debts[at];
        self.debtors += u32::from(debt.pulls == 0);
        debt.pulls += 1;
        if !debt.stands {
            debt.stands = true;
            self.ring.push_back(flow);
        }
    }

    /// Cancels the pulls owed by `flow`: everything has arrived, or the sender is gone.
    pub fn forget(&mut self, flow: u32) {
        if let Some(debt) = self.debts.get_mut(flow as usize) {
            self.debtors -= u32::from(debt.pulls > 0);
            debt.pulls = 0;
        }
    }

    /// Returns the flow whose pull is due at `now`, if any; to be called until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        if now < self.next_at || self.debtors == 0 {
            return None;
        }
        while let Some(flow) = self.ring.pop_front() {
            let debt = &mut self.debts[flow as usize];
            if debt.pulls == 0 {
                debt.stands = false;
                continue;
            }
            debt.pulls -= 1;
            if debt.pulls > 0 {
                self.ring.push_back(flow);
            } else {
                debt.stands = false;
                self.debtors -= 1;
            }
            self.next_at = now.saturating_add(self.interval);
            return Some(flow);
        }
        None
    }

    /// Returns the time at which [`PullPacer::poll`] will return a flow; `None` if no pulls are owed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.debtors > 0).then_some(self.next_at)
    }
}
