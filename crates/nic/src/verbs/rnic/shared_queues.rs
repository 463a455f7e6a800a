//! Shared receive queues.

use alloc::collections::VecDeque;

use super::{Limits, Rnic};
use crate::verbs::error::VerbsError;
use crate::verbs::region::PdId;
use crate::verbs::srq::{SharedQueue, SrqAttributes, SrqId};
use crate::verbs::work::ReceiveRequest;

impl Rnic {
    /// A new shared receive queue.
    ///
    /// # Errors
    /// If it is to hold nothing, or too much.
    pub fn create_srq(&mut self, pd: PdId, attributes: SrqAttributes) -> Result<SrqId, VerbsError> {
        self.pd(pd)?;
        let limits = Limits::HERE;
        if attributes.requests == 0 || attributes.requests > limits.requests || attributes.pieces > limits.pieces {
            return Err(VerbsError::Invalid("more requests or pieces than this NIC can hold, or none"));
        }
        let srq = SrqId(self.fresh());
        let queue = SharedQueue { pd, attributes, waiting: VecDeque::new(), users: 0 };
        self.shared.srqs.insert(srq, queue);
        Ok(srq)
    }
    /// Sets how much one holds, and its limit.
    ///
    /// # Errors
    /// If it cannot hold what waits in it, or the limit is above what it holds.
    pub fn modify_srq(&mut self, srq: SrqId, requests: Option<u32>, limit: Option<u32>) -> Result<(), VerbsError> {
        let queue = self.shared.srqs.get_mut(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?;
        let requests = requests.unwrap_or(queue.attributes.requests);
        let limit = limit.unwrap_or(queue.attributes.limit);
        if requests == 0 || requests > Limits::HERE.requests || (requests as usize) < queue.waiting.len() {
            return Err(VerbsError::Invalid("fewer requests than wait, or more than this NIC can hold"));
        }
        if limit > requests {
            return Err(VerbsError::Invalid("a limit above the number of requests"));
        }
        queue.attributes = SrqAttributes { requests, limit, ..queue.attributes };
        Ok(())
    }
    /// How one stands.
    pub fn query_srq(&self, srq: SrqId) -> Option<SrqAttributes> {
        self.shared.srqs.get(&srq).map(|queue| queue.attributes)
    }
    /// Forgets one.
    ///
    /// # Errors
    /// While a queue pair takes from it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), VerbsError> {
        let queue = self.shared.srqs.get(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?;
        if queue.users > 0 {
            return Err(VerbsError::InUse("queue pair"));
        }
        self.shared.srqs.remove(&srq);
        Ok(())
    }
    /// Adds a receive request.
    ///
    /// # Errors
    /// If there is no room, or it has too many pieces.
    pub fn post_srq_recv(&mut self, srq: SrqId, request: ReceiveRequest) -> Result<(), VerbsError> {
        let queue = self.shared.srqs.get_mut(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?;
        if queue.waiting.len() >= queue.attributes.requests as usize {
            return Err(VerbsError::Exhausted("places in the shared receive queue"));
        }
        if request.scatter.len() > queue.attributes.pieces as usize {
            return Err(VerbsError::Invalid("more pieces than the shared receive queue was made for"));
        }
        queue.waiting.push_back(request);
        Ok(())
    }
}
