//! State that the queue pairs of a NIC share: regions, completion queues, shared receive queues, and pending events.

use alloc::collections::{BTreeMap, VecDeque};

use selvedge_transport::SharedState;
use selvedge_units::QpNumber;

use super::paths::Paths;
use super::queue::{Added, CompletionQueue, CqId};
use super::region::Regions;
use super::srq::{SharedQueue, SrqId};
use super::work::{Completion, ReceiveRequest};
use crate::reorder::Spare;

/// An asynchronous event for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Arrival of a completion in an armed completion queue.
    Completion(CqId),
    /// Overflow of a completion queue: a completion was lost, and the queue takes no more.
    CqOverrun(CqId),
    /// Failure of a queue pair.
    QpFatal(QpNumber),
    /// Failure of a queue pair because of a malformed request from the other side.
    QpRequest(QpNumber),
    /// Failure of a queue pair because of a request from the other side that is not permitted.
    QpAccess(QpNumber),
    /// Arrival of the first packet before the application moved the queue pair to ReadyToSend.
    Established(QpNumber),
    /// Completion of all outstanding requests of a draining queue pair.
    Drained(QpNumber),
    /// End of a failed queue pair's use of its shared receive queue.
    LastReceive(QpNumber),
    /// Fall of the number of requests in a shared receive queue below its limit.
    SrqLimit(SrqId),
}

/// Counters of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets of requests and responses sent, retransmissions included, acknowledgements excluded.
    pub sent: u64,
    /// Retransmitted packets of requests and responses.
    pub retransmissions: u64,
    /// Packets of requests and responses received that had been received before.
    pub duplicates: u64,
    /// Payload bytes received for the first time; 8 for the response to an Atomic.
    pub goodput: u64,
    /// Payload bytes counted by `goodput` that waited in a reorder buffer, and were copied from there to their
    /// destination (MELO); 8 for the response to an Atomic.
    pub reordered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Acknowledgements of a Selvedge peer that were dropped because their MSN does not count the messages whose
    /// packets they acknowledge.
    pub contradictions: u64,
}

/// State that the queue pairs of a NIC share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stats: Stats,
    pub(super) regions: Regions,
    pub(super) cqs: BTreeMap<CqId, CompletionQueue>,
    pub(super) srqs: BTreeMap<SrqId, SharedQueue>,
    pub(super) events: VecDeque<Event>,
    /// On-chip memory that queue pairs share.
    pub(super) pools: SharedState,
    /// Memory of reorder buffers that holds no packet.
    pub(super) spare: Spare,
    /// Paths to other hosts.
    pub(super) paths: Paths,
    /// Number of completions so far.
    pub(super) completed: u64,
}

impl Shared {
    pub(super) fn complete(&mut self, cq: CqId, completion: Completion) {
        // The completion queue exists as long as the queue pair uses it.
        let Some(queue) = self.cqs.get_mut(&cq) else { return };
        self.completed += 1;
        match queue.add(completion) {
            Added::Quietly => {}
            Added::Event => self.events.push_back(Event::Completion(cq)),
            Added::Overrun => self.events.push_back(Event::CqOverrun(cq)),
        }
    }
    /// Counts a sent packet of a request or response.
    pub(super) fn count_sent(&mut self, again: bool) {
        self.stats.sent += 1;
        self.stats.retransmissions += u64::from(again);
    }
    /// Counts payload bytes received for the first time.
    pub(super) fn count_accepted(&mut self, bytes: u32) {
        self.stats.goodput += u64::from(bytes);
    }
    /// Removes the completions of a queue pair that were not polled.
    pub(super) fn forget(&mut self, cq: CqId, qp: QpNumber) {
        if let Some(queue) = self.cqs.get_mut(&cq) {
            queue.forget(qp);
        }
    }
    /// Takes the next request of a shared receive queue.
    pub(super) fn take(&mut self, srq: SrqId) -> Option<ReceiveRequest> {
        let (request, reached) = self.srqs.get_mut(&srq)?.take()?;
        if reached {
            self.events.push_back(Event::SrqLimit(srq));
        }
        Some(request)
    }
}
