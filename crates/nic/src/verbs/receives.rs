//! Where a queue pair takes its receive requests from.

use alloc::collections::VecDeque;

use super::attributes::QpInit;
use super::shared::Shared;
use super::work::ReceiveRequest;

/// A receive queue of one's own; unused if there is a shared one.
#[derive(Debug, Default)]
pub(super) struct Receives {
    own: VecDeque<ReceiveRequest>,
    /// How many were ever added.
    added: u64,
}

impl Receives {
    pub(super) fn push(&mut self, request: ReceiveRequest) {
        self.own.push_back(request);
        self.added += 1;
    }
    /// How many of its own were ever added.
    pub(super) fn added(&self) -> u64 {
        self.added
    }
    pub(super) fn len(&self) -> usize {
        self.own.len()
    }
    /// How many requests could be taken.
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
    /// What of its own is left.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = ReceiveRequest> {
        self.own.drain(..)
    }
}
