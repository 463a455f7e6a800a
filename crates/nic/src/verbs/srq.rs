//! Shared receive queues.

use alloc::collections::VecDeque;

use super::region::PdId;
use super::work::ReceiveRequest;

/// A shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct SrqId(pub u32);

/// How a shared receive queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrqAttributes {
    /// Requests that it holds at most.
    pub requests: u32,
    /// Pieces of memory of a request.
    pub pieces: u32,
    /// Below so many requests it raises an event, once; 0 is never.
    pub limit: u32,
}

/// Receive requests for whichever queue pair needs one next.
#[derive(Debug)]
pub(super) struct SharedQueue {
    pub(super) pd: PdId,
    pub(super) attributes: SrqAttributes,
    pub(super) waiting: VecDeque<ReceiveRequest>,
    /// Queue pairs that take from here.
    pub(super) users: u32,
}

impl SharedQueue {
    /// The next request, and whether the limit was reached with it.
    pub(super) fn take(&mut self) -> Option<(ReceiveRequest, bool)> {
        let request = self.waiting.pop_front()?;
        let reached = self.waiting.len() < self.attributes.limit as usize;
        if reached {
            self.attributes.limit = 0;
        }
        Some((request, reached))
    }
}
