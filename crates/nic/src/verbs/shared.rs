//! What the queue pairs of a NIC share: regions, completion queues, shared receive queues, and the list of what has
//! happened.

use alloc::collections::{BTreeMap, VecDeque};

use selvedge_transport::{OnChip, Verdict};
use selvedge_units::QpNumber;

use super::paths::Paths;
use super::queue::{Added, CompletionQueue, CqId};
use super::region::Regions;
use super::srq::{SharedQueue, SrqId};
use super::work::{Completion, ReceiveRequest};

/// What has happened that the application may want to know without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A completion that this queue waited for has come.
    Completion(CqId),
    /// This queue had no room for a completion, which is lost: it takes no more.
    CqOverrun(CqId),
    /// This queue pair has failed.
    QpFatal(QpNumber),
    /// The other side asked for what makes no sense: this queue pair has failed.
    QpRequest(QpNumber),
    /// The other side asked for what it is not allowed to: this queue pair has failed.
    QpAccess(QpNumber),
    /// The first packet has arrived before the application said that it was ready to send.
    Established(QpNumber),
    /// All that was begun is finished.
    Drained(QpNumber),
    /// This failed queue pair will take no more requests from its shared receive queue.
    LastReceive(QpNumber),
    /// Fewer requests wait in this shared receive queue than its limit.
    SrqLimit(SrqId),
}

/// What a NIC has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets of requests and of answers put on the wire, those sent again included; no acknowledgements.
    pub sent: u64,
    /// Of these, how many had been sent before.
    pub retransmissions: u64,
    /// Packets of requests and of answers that arrived and had arrived before.
    pub duplicates: u64,
    /// Payload bytes that arrived for the first time, 8 for the answer to an Atomic.
    pub goodput: u64,
    /// Of these, how many came out of order and went through a reorder buffer (MELO).
    pub reordered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Acknowledgements of one of our own that were dropped, because they count other messages as completed (MSN) than
    /// those whose packets they acknowledge.
    pub contradictions: u64,
}

/// See above.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stats: Stats,
    pub(super) regions: Regions,
    pub(super) cqs: BTreeMap<CqId, CompletionQueue>,
    pub(super) srqs: BTreeMap<SrqId, SharedQueue>,
    pub(super) events: VecDeque<Event>,
    /// Memory that queue pairs share on the chip.
    pub(super) chip: OnChip,
    /// The ways to other hosts.
    pub(super) paths: Paths,
    /// Completions so far.
    pub(super) completed: u64,
    /// Some queue pair has said how large that is.
    pub(super) has_pools: bool,
}

impl Shared {
    pub(super) fn complete(&mut self, cq: CqId, completion: Completion) {
        // The queue cannot have been destroyed: the queue pair uses it.
        let Some(queue) = self.cqs.get_mut(&cq) else { return };
        self.completed += 1;
        match queue.add(completion) {
            Added::Quietly => {}
            Added::Event => self.events.push_back(Event::Completion(cq)),
            Added::Overrun => self.events.push_back(Event::CqOverrun(cq)),
        }
    }
    /// Counts a packet of a request or an answer that is sent.
    pub(super) fn count_sent(&mut self, again: bool) {
        self.stats.sent += 1;
        self.stats.retransmissions += u64::from(again);
    }
    /// Counts what has arrived for the first time.
    pub(super) fn count_accepted(&mut self, bytes: u32) {
        self.stats.goodput += u64::from(bytes);
    }
    /// The same, where packets may come in any order.
    pub(super) fn count_placed(&mut self, verdict: Verdict, bytes: u32) {
        self.count_accepted(bytes);
        if let Verdict::Buffered(_) = verdict {
            self.stats.reordered += u64::from(bytes);
        }
    }
    /// What a queue pair completed need not be told any more.
    pub(super) fn forget(&mut self, cq: CqId, qp: QpNumber) {
        if let Some(queue) = self.cqs.get_mut(&cq) {
            queue.forget(qp);
        }
    }
    /// The next request of a shared receive queue.
    pub(super) fn take(&mut self, srq: SrqId) -> Option<ReceiveRequest> {
        let (request, reached) = self.srqs.get_mut(&srq)?.take()?;
        if reached {
            self.events.push_back(Event::SrqLimit(srq));
        }
        Some(request)
    }
}
