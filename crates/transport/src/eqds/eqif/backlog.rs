//! What an RDMA engine hears of the queues of its EQIF, which drop nothing (section 6, RDMA EQIF class).

use super::config::{BackPressure, CnpConfig, PauseConfig};
use super::spacing::Spacing;

/// What the queues of one RDMA EQIF make of their lengths.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// Queues that are too long, of those that may pause the engine.
    long: u32,
}

/// The back-pressure of one queue: its part in the [`Backlog`], and how it spaces its CNPs.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuePressure {
    is_long: bool,
    cnps: Spacing,
}

impl Backlog {
    /// The engine must not send: some queue is too long. As the paper says of PAUSE, it stops what is for other
    /// destinations, too.
    #[inline]
    pub fn pauses(&self) -> bool {
        self.long > 0
    }

    /// A queue has become `bytes` long. Returns whether the engine may go on that could not before.
    pub fn note_length(&mut self, queue: &mut QueuePressure, pressure: &BackPressure, bytes: u64) -> bool {
        let BackPressure::Pause(PauseConfig { above, .. }) = pressure else { return false };
        let before = self.pauses();
        if !queue.is_long && bytes > above.get() {
            queue.is_long = true;
            self.long += 1;
        } else if queue.is_long && bytes <= pressure.resume().get() {
            queue.is_long = false;
            self.long -= 1;
        }
        before && !self.pauses()
    }
}

impl QueuePressure {
    /// Whether a packet that finds `waiting` bytes asks for a CNP to the queue pair that it is of.
    pub fn asks_for_cnp(&mut self, pressure: &BackPressure, waiting: u64) -> bool {
        let BackPressure::Cnp(CnpConfig { k_low, k_high, p_max, .. }) = pressure else { return false };
        if waiting <= k_low.get() {
            self.cnps = Spacing::default();
            return false;
        }
        waiting > k_high.get() || self.cnps.draw(*p_max, waiting - k_low.get(), k_high.get() - k_low.get())
    }
}
