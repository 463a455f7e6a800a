//! Back-pressure from the queues of an RDMA EQIF, which drop nothing, to its engine (section 6, RDMA EQIF class).

use super::config::{CnpConfig, Pressure};
use super::spacing::Spacing;

/// Back-pressure state of one RDMA EQIF.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// Number of queues above the pause threshold.
    long: u32,
}

/// Back-pressure state of one queue: its contribution to the [`Backlog`], and the spacing of its CNPs.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuePressure {
    is_long: bool,
    cnps: Spacing,
}

impl Backlog {
    /// Returns whether the engine is paused because some queue is too long. As the paper notes of PAUSE, traffic to
    /// other destinations stops, too.
    #[inline]
    pub fn pauses(&self) -> bool {
        self.long > 0
    }

    /// Records that a queue's length became `bytes`. Returns whether the engine resumes.
    pub fn note_length(&mut self, queue: &mut QueuePressure, pressure: &Pressure, bytes: u64) -> bool {
        let Pressure::Pause { above, resume } = pressure else { return false };
        let before = self.pauses();
        if !queue.is_long && bytes > above.get() {
            queue.is_long = true;
            self.long += 1;
        } else if queue.is_long && bytes <= resume.get() {
            queue.is_long = false;
            self.long -= 1;
        }
        before && !self.pauses()
    }
}

impl QueuePressure {
    /// Returns whether a packet that finds `waiting` bytes queued triggers a CNP to its queue pair.
    pub fn asks_for_cnp(&mut self, pressure: &Pressure, waiting: u64) -> bool {
        let Pressure::Cnp(CnpConfig { k_low, k_high, p_max, .. }) = pressure else { return false };
        if waiting <= k_low.get() {
            self.cnps = Spacing::default();
            return false;
        }
        waiting > k_high.get() || self.cnps.draw(*p_max, waiting - k_low.get(), k_high.get() - k_low.get())
    }
}
