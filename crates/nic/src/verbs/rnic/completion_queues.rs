//! Completion queues.

use super::{Limits, Rnic};
use crate::verbs::error::VerbsError;
use crate::verbs::queue::{CompletionQueue, CqId};
use crate::verbs::work::Completion;

impl Rnic {
    /// A new completion queue.
    ///
    /// # Errors
    /// If it is to hold nothing, or too much.
    pub fn create_cq(&mut self, depth: u32) -> Result<CqId, VerbsError> {
        check_depth(depth)?;
        let cq = CqId(self.fresh());
        self.shared.cqs.insert(cq, CompletionQueue::new(depth));
        Ok(cq)
    }
    /// Changes how much one holds.
    ///
    /// # Errors
    /// If more than that waits in it.
    pub fn resize_cq(&mut self, cq: CqId, depth: u32) -> Result<(), VerbsError> {
        check_depth(depth)?;
        self.cq(cq)?.resize(depth)
    }
    /// How much one holds.
    pub fn cq_depth(&self, cq: CqId) -> Option<u32> {
        self.shared.cqs.get(&cq).map(CompletionQueue::depth)
    }
    /// Forgets one.
    ///
    /// # Errors
    /// While a queue pair completes there.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), VerbsError> {
        if self.cq(cq)?.users > 0 {
            return Err(VerbsError::InUse("queue pair"));
        }
        self.shared.cqs.remove(&cq);
        Ok(())
    }
    /// The next completion.
    pub fn poll_cq(&mut self, cq: CqId) -> Option<Completion> {
        self.shared.cqs.get_mut(&cq)?.poll()
    }
    /// How many completions there have been in all queues.
    pub fn completed(&self) -> u64 {
        self.shared.completed
    }
    /// Asks for an event at the next completion, or the next that the sender solicited.
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
