//! Shared receive queues.

use alloc::collections::VecDeque;

use super::{Limits, Rnic};
use crate::verbs::error::VerbsError;
use crate::verbs::region::PdId;
use crate::verbs::srq::{SharedQueue, SrqAttributes, SrqId};
use crate::verbs::work::ReceiveRequest;

impl Rnic {
    /// Creates a shared receive queue.
    ///
    /// # Errors
    /// If the protection domain does not exist, the capacity is zero, or an attribute is above its limit.
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
    /// Sets the capacity and the limit of a shared receive queue.
    ///
    /// # Errors
    /// If the queue does not exist, the capacity is out of range or below the number of waiting requests, or the limit
    /// is above the capacity.
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
    /// Returns the attributes of a shared receive queue.
    pub fn query_srq(&self, srq: SrqId) -> Option<SrqAttributes> {
        self.shared.srqs.get(&srq).map(|queue| queue.attributes)
    }
    /// Destroys a shared receive queue.
    ///
    /// # Errors
    /// If the queue does not exist, or while a queue pair uses it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), VerbsError> {
        let queue = self.shared.srqs.get(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?;
        if queue.users > 0 {
            return Err(VerbsError::InUse("queue pair"));
        }
        self.shared.srqs.remove(&srq);
        Ok(())
    }
    /// Posts a receive request on a shared receive queue.
    ///
    /// # Errors
    /// If the queue does not exist or is full, or the request has too many scatter elements.
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
