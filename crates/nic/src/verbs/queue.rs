//! Completion queues.

use alloc::collections::VecDeque;

use super::error::VerbsError;
use super::work::{Completion, Status};

/// Identifier of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CqId(pub u32);

/// Kind of completion for which a completion queue raises an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Armed {
    #[default]
    No,
    /// Solicited completions and failures.
    Solicited,
    /// Any completion.
    Next,
}

/// A completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    ready: VecDeque<Completion>,
    depth: u32,
    armed: Armed,
    overrun: bool,
    /// Number of send and receive queues that complete here.
    pub(super) users: u32,
}

/// Effect of adding a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Added {
    /// The completion waits to be polled.
    Quietly,
    /// The completion raises the requested event.
    Event,
    /// The queue was full, and has failed.
    Overrun,
}

impl CompletionQueue {
    pub(super) fn new(depth: u32) -> Self {
        Self { ready: VecDeque::new(), depth, armed: Armed::No, overrun: false, users: 0 }
    }
    pub(super) fn add(&mut self, completion: Completion) -> Added {
        if self.overrun {
            return Added::Quietly;
        }
        if self.ready.len() >= self.depth as usize {
            self.overrun = true;
            return Added::Overrun;
        }
        self.ready.push_back(completion);
        let fires = match self.armed {
            Armed::No => false,
            Armed::Solicited => completion.solicited || completion.status != Status::Success,
            Armed::Next => true,
        };
        if fires {
            self.armed = Armed::No;
            return Added::Event;
        }
        Added::Quietly
    }
    pub(super) fn poll(&mut self) -> Option<Completion> {
        self.ready.pop_front()
    }
    /// Returns whether a successful completion of `qp` waits to be polled.
    pub(super) fn holds_success(&self, qp: selvedge_units::QpNumber) -> bool {
        self.ready.iter().any(|completion| completion.qp == qp && completion.status == Status::Success)
    }
    pub(super) fn arm(&mut self, solicited_only: bool) {
        // An armed queue is never weakened from any completion to solicited ones.
        if !(solicited_only && self.armed == Armed::Next) {
            self.armed = if solicited_only { Armed::Solicited } else { Armed::Next };
        }
    }
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }
    pub(super) fn resize(&mut self, depth: u32) -> Result<(), VerbsError> {
        if (depth as usize) < self.ready.len() {
            return Err(VerbsError::Invalid("fewer places than completions that wait"));
        }
        self.depth = depth;
        Ok(())
    }
    /// Removes the completions of a destroyed queue pair that were not polled.
    pub(super) fn forget(&mut self, qp: selvedge_units::QpNumber) {
        self.ready.retain(|completion| completion.qp != qp);
    }
}
