//! Shared receive queues.

use alloc::collections::VecDeque;

use super::region::PdId;
use super::work::ReceiveRequest;

/// Identifier of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct SrqId(pub u32);

/// Attributes of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrqAttributes {
    /// Maximum number of requests in the queue.
    pub requests: u32,
    /// Maximum number of scatter elements of a request.
    pub pieces: u32,
    /// Number of requests below which the queue raises an event, once; 0 means never.
    pub limit: u32,
}

/// A queue of receive requests that several queue pairs take from.
#[derive(Debug)]
pub(super) struct SharedQueue {
    pub(super) pd: PdId,
    pub(super) attributes: SrqAttributes,
    pub(super) waiting: VecDeque<ReceiveRequest>,
    /// Number of queue pairs that take from the queue.
    pub(super) users: u32,
}

impl SharedQueue {
    /// Takes the next request; also returns whether the limit was reached with it.
    pub(super) fn take(&mut self) -> Option<(ReceiveRequest, bool)> {
        let request = self.waiting.pop_front()?;
        let reached = self.waiting.len() < self.attributes.limit as usize;
        if reached {
            self.attributes.limit = 0;
        }
        Some((request, reached))
    }
}
