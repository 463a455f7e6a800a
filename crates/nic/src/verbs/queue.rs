//! Completion queues.

use alloc::collections::VecDeque;

use super::error::VerbsError;
use super::work::{Completion, Status};

/// A completion queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CqId(pub u32);

/// What a completion queue waits for before it raises an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Armed {
    #[default]
    No,
    /// For completions that the sender solicited, and failures.
    Solicited,
    /// For any.
    Next,
}

/// Completions in order.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    ready: VecDeque<Completion>,
    depth: u32,
    armed: Armed,
    overrun: bool,
    /// Queues of queue pairs that complete here.
    pub(super) users: u32,
}

/// What a new completion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Added {
    /// It waits to be polled.
    Quietly,
    /// It raises the event that was asked for.
    Event,
    /// There was no room: the queue has failed.
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
    /// Whether a request of `qp` was carried out and nobody has polled that yet.
    pub(super) fn holds_success(&self, qp: selvedge_units::QpNumber) -> bool {
        self.ready.iter().any(|completion| completion.qp == qp && completion.status == Status::Success)
    }
    pub(super) fn arm(&mut self, solicited_only: bool) {
        // The stronger wish holds until it is fulfilled.
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
    /// A queue pair is gone: what it completed need not be told any more.
    pub(super) fn forget(&mut self, qp: selvedge_units::QpNumber) {
        self.ready.retain(|completion| completion.qp != qp);
    }
}
