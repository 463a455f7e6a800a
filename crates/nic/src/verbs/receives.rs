//! Source of a queue pair's receive requests: its own queue or a shared one.

use alloc::collections::VecDeque;

use super::attributes::QpInit;
use super::shared::Shared;
use super::work::ReceiveRequest;

/// Receive queue of one queue pair; unused with a shared receive queue.
#[derive(Debug, Default)]
pub(super) struct Receives {
    own: VecDeque<ReceiveRequest>,
    /// Number of requests ever added.
    added: u64,
}

impl Receives {
    pub(super) fn push(&mut self, request: ReceiveRequest) {
        self.own.push_back(request);
        self.added += 1;
    }
    /// Returns how many requests were ever added to the queue pair's own queue.
    pub(super) fn added(&self) -> u64 {
        self.added
    }
    pub(super) fn len(&self) -> usize {
        self.own.len()
    }
    /// Returns how many requests could be taken, from the shared queue if there is one.
    pub(super) fn available(&self, shared: &Shared, init: &QpInit) -> usize {
        match init.srq {
            Some(srq) => shared.srqs.get(&srq).map_or(0, |queue| queue.waiting.len()),
            None => self.own.len(),
        }
    }
    pub(super) fn take(&mut self, shared: &mut Shared, init: &QpInit) -> Option<ReceiveRequest> {
        match init.srq {
            Some(srq) => shared.take(srq),
            None => self.own.pop_front(),
        }
    }
    /// Removes and returns the requests left in the queue pair's own queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = ReceiveRequest> {
        self.own.drain(..)
    }
}
