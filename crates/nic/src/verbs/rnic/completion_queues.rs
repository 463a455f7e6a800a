//! Completion queues.

use super::{Limits, Rnic};
use crate::verbs::error::VerbsError;
use crate::verbs::queue::{CompletionQueue, CqId};
use crate::verbs::work::Completion;

impl Rnic {
    /// Creates a completion queue.
    ///
    /// # Errors
    /// If `depth` is zero or above the limit.
    pub fn create_cq(&mut self, depth: u32) -> Result<CqId, VerbsError> {
        check_depth(depth)?;
        let cq = CqId(self.fresh());
        self.shared.cqs.insert(cq, CompletionQueue::new(depth));
        Ok(cq)
    }
    /// Changes the depth of a completion queue.
    ///
    /// # Errors
    /// If the queue does not exist, `depth` is out of range, or more completions than `depth` wait in the queue.
    pub fn resize_cq(&mut self, cq: CqId, depth: u32) -> Result<(), VerbsError> {
        check_depth(depth)?;
        self.cq(cq)?.resize(depth)
    }
    /// Returns the depth of a completion queue.
    pub fn cq_depth(&self, cq: CqId) -> Option<u32> {
        self.shared.cqs.get(&cq).map(CompletionQueue::depth)
    }
    /// Destroys a completion queue.
    ///
    /// # Errors
    /// If the queue does not exist, or while a queue pair uses it.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), VerbsError> {
        if self.cq(cq)?.users > 0 {
            return Err(VerbsError::InUse("queue pair"));
        }
        self.shared.cqs.remove(&cq);
        Ok(())
    }
    /// Returns the next completion of a queue.
    pub fn poll_cq(&mut self, cq: CqId) -> Option<Completion> {
        self.shared.cqs.get_mut(&cq)?.poll()
    }
    /// Returns the number of completions so far, in all queues.
    pub fn completed(&self) -> u64 {
        self.shared.completed
    }
    /// Arms a completion queue: it raises an event at the next completion, or at the next solicited one.
    ///
    /// # Errors
    /// If the queue does not exist.
    pub fn arm_cq(&mut self, cq: CqId, solicited_only: bool) -> Result<(), VerbsError> {
        self.cq(cq)?.arm(solicited_only);
        Ok(())
    }
    pub(super) fn cq(&mut self, cq: CqId) -> Result<&mut CompletionQueue, VerbsError> {
        self.shared.cqs.get_mut(&cq).ok_or(VerbsError::NoSuch("completion queue"))
    }
}

fn check_depth(depth: u32) -> Result<(), VerbsError> {
    if depth == 0 || depth > Limits::HERE.completions {
        return Err(VerbsError::Invalid("a completion queue holds 1 to 4194304 completions"));
    }
    Ok(())
}
