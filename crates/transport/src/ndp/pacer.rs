//! When a host pulls, and whom (NDP section 3.2): one pull per time of a full packet on its link, for one flow after
//! the other.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};

use super::config::NdpConfig;

/// The pulls that all flows of a host owe their senders. A flow is named by a small number of the caller's.
#[derive(Clone, Debug)]
pub struct PullPacer {
    interval: Duration,
    /// No pull before this.
    next_at: Instant,
    /// Flows whose turn comes, each once.
    ring: VecDeque<u32>,
    /// By flow.
    debts: Vec<Debt>,
    /// Flows in the ring that owe something.
    debtors: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Debt {
    pulls: u32,
    /// Whether it stands in the ring: also when it owes nothing any more.
    stands: bool,
}

impl PullPacer {
    /// The pacer of a host without flows.
    pub fn new(config: &NdpConfig) -> Self {
        let (ring, debts) = (VecDeque::new(), Vec::new());
        Self { interval: config.interval(), next_at: Instant::ZERO, ring, debts, debtors: 0 }
    }

    /// `flow` owes its sender one more pull.
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

    /// `flow` owes nothing any more: all of it has arrived, or nobody is there to pull.
    pub fn forget(&mut self, flow: u32) {
        if let Some(debt) = self.debts.get_mut(flow as usize) {
            self.debtors -= u32::from(debt.pulls > 0);
            debt.pulls = 0;
        }
    }

    /// The flow whose pull is due at `now`, if one is; called again until `None`.
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

    /// When [`PullPacer::poll`] will have something; `None` if nobody owes anything.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.debtors > 0).then_some(self.next_at)
    }
}
