//! The NIC: its resources, and what goes in and out.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::slice;

use selvedge_transport::{Cx, OnChip, RecoveryConfig, Scheme};
use selvedge_units::{Instant, QpNumber};
use selvedge_wire::verbs::Headers;

use super::arrival::Arrival;
use super::attributes::{Capacities, QpChange, QpInit, QpState};
use super::error::VerbsError;
use super::memory::Memory;
use super::multicast::{Groups, MULTICAST};
use super::qp::QueuePair;
use super::queue::{CompletionQueue, CqId};
use super::region::{PdId, Region};
use super::shared::{Event, Shared, Stats};
use super::srq::{SharedQueue, SrqAttributes, SrqId};
use super::transmit::Transmit;
use super::window::{WindowId, WindowKind};
use super::work::{Completion, Payload, ReceiveRequest, Route, SendRequest};

/// What a NIC can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Requests in a queue.
    pub requests: u32,
    /// Pieces of memory of a request.
    pub pieces: u32,
    /// Bytes of data in a request.
    pub inline: u32,
    /// Completions in a queue.
    pub completions: u32,
    /// Reads and Atomics under way at a time, each way.
    pub reads: u8,
    /// Bytes of a message.
    pub message: u32,
    /// Memory windows.
    pub windows: u32,
    /// Places in multicast groups, of all queue pairs together.
    pub attachments: u32,
}

impl Limits {
    /// What this NIC can hold.
    pub const HERE: Self = Self {
        queue_pairs: 1 << 14,
        requests: 1 << 15,
        pieces: 32,
        inline: 1_024,
        completions: 1 << 22,
        reads: 128,
        message: 1 << 31,
        windows: 1 << 16,
        attachments: 1 << 16,
    };
}

/// An RDMA NIC without wires and without memory of its own.
pub struct Rnic {
    pub(super) shared: Shared,
    pds: BTreeSet<PdId>,
    next_id: u32,
    /// Numbers of queue pairs: the high bits, which are the same for all of this NIC.
    prefix: u32,
    next_qp: u32,
    pub(super) qps: BTreeMap<u32, Box<QueuePair>>,
    pub(super) groups: Groups,
    /// Queue pairs that may have something to send, each at most once.
    ready: VecDeque<u32>,
    deadlines: BTreeSet<(Instant, u32)>,
}

impl Rnic {
    /// Bits of a queue pair's number below the prefix.
    pub const QP_BITS: u32 = 18;

    /// A NIC without resources. Its queue pairs' numbers have `prefix` (6 bits) above [`Self::QP_BITS`], and begin
    /// after `first` below: some of `entropy`, so that a restarted process does not reuse them at once.
    pub fn new(prefix: u32, first: u32) -> Self {
        Self {
            shared: Shared::default(),
            pds: BTreeSet::new(),
            next_id: 1,
            prefix: prefix << Self::QP_BITS,
            next_qp: first,
            qps: BTreeMap::new(),
            groups: Groups::default(),
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    // Protection domains and memory.

    /// A new protection domain.
    pub fn alloc_pd(&mut self) -> PdId {
        let pd = PdId(self.fresh());
        self.pds.insert(pd);
        pd
    }
    /// Forgets one.
    ///
    /// # Errors
    /// While anything belongs to it.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<(), VerbsError> {
        self.pd(pd)?;
        if let Some(what) = self.shared.regions.any_of(pd) {
            return Err(VerbsError::InUse(what));
        }
        if self.qps.values().any(|qp| qp.init.pd == pd) {
            return Err(VerbsError::InUse("queue pair"));
        }
        if self.shared.srqs.values().any(|srq| srq.pd == pd) {
            return Err(VerbsError::InUse("shared receive queue"));
        }
        self.pds.remove(&pd);
        Ok(())
    }
    fn pd(&self, pd: PdId) -> Result<(), VerbsError> {
        self.pds.contains(&pd).then_some(()).ok_or(VerbsError::NoSuch("protection domain"))
    }
    /// Registers memory; returns its key, local and remote. `entropy` is a number that nobody can guess.
    ///
    /// # Errors
    /// When rights contradict each other, or the region runs past the end of memory.
    pub fn reg_mr(&mut self, region: Region, entropy: u32) -> Result<u32, VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.register(region, entropy)
    }
    /// Changes what a key stands for.
    ///
    /// # Errors
    /// As [`Self::reg_mr`], if there is no such key, or while a window leads into the region.
    pub fn rereg_mr(&mut self, key: u32, region: Region) -> Result<(), VerbsError> {
        self.pd(region.pd)?;
        self.shared.regions.change(key, region)
    }
    /// What a key stands for.
    pub fn region(&self, key: u32) -> Option<Region> {
        self.shared.regions.get(key).copied()
    }
    /// Forgets a region: nothing touches its memory from now on.
    ///
    /// # Errors
    /// If there is none, or while a window leads into it.
    pub fn dereg_mr(&mut self, key: u32) -> Result<(), VerbsError> {
        self.shared.regions.deregister(key).map(drop)
    }
    /// A new memory window, which leads nowhere until it is bound; and its key. `entropy` is a number that nobody can
    /// guess.
    ///
    /// # Errors
    /// When there are too many.
    pub fn alloc_mw(&mut self, pd: PdId, kind: WindowKind, entropy: u32) -> Result<(WindowId, u32), VerbsError> {
        self.pd(pd)?;
        self.shared.regions.open(pd, kind, entropy)
    }
    /// Forgets a window: nothing is reached through it from now on.
    ///
    /// # Errors
    /// If there is none.
    pub fn dealloc_mw(&mut self, window: WindowId) -> Result<(), VerbsError> {
        self.shared.regions.windows().dealloc(window)
    }

    // Completion queues.

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
    fn cq(&mut self, cq: CqId) -> Result<&mut CompletionQueue, VerbsError> {
        self.shared.cqs.get_mut(&cq).ok_or(VerbsError::NoSuch("completion queue"))
    }

    // Shared receive queues.

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

    // Queue pairs.

    /// A new queue pair, in state Reset.
    ///
    /// # Errors
    /// If it is to hold too much, or what it names does not exist.
    pub fn create_qp(&mut self, init: QpInit) -> Result<QpNumber, VerbsError> {
        self.pd(init.pd)?;
        check_capacities(&init.capacities)?;
        if self.qps.len() >= Limits::HERE.queue_pairs as usize {
            return Err(VerbsError::Exhausted("queue pairs"));
        }
        self.cq(init.send_cq)?;
        self.cq(init.receive_cq)?;
        if let Some(srq) = init.srq {
            self.shared.srqs.get_mut(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?.users += 1;
        }
        for cq in [init.send_cq, init.receive_cq] {
            self.cq(cq)?.users += 1;
        }
        if matches!(init.recovery, RecoveryConfig::Melo(_)) && !self.shared.has_pools {
            self.shared.chip = init.recovery.on_chip();
            self.shared.has_pools = true;
        }
        let number = loop {
            self.next_qp = (self.next_qp + 1) % (1 << Self::QP_BITS);
            let number = self.prefix | self.next_qp;
            // 0 and 1 are for management, the last for groups.
            if number > 1 && number != MULTICAST.0 && !self.qps.contains_key(&number) {
                break number;
            }
        };
        self.qps.insert(number, Box::new(QueuePair::new(QpNumber(number), init)));
        Ok(QpNumber(number))
    }
    /// Changes a queue pair.
    ///
    /// # Errors
    /// If it may not go from the state that it is in to the one that it should, or what that needs is missing.
    pub fn modify_qp(&mut self, _: &mut Cx<'_>, qp: QpNumber, change: &QpChange) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.modify(&mut self.shared, change)?;
        if change.state == Some(QpState::Reset) {
            // It is as new: of what it was asked before, nothing more is told.
            for cq in [pair.init.send_cq, pair.init.receive_cq] {
                if let Some(queue) = self.shared.cqs.get_mut(&cq) {
                    queue.forget(qp);
                }
            }
        }
        self.settle(qp.0);
        Ok(())
    }
    /// Says that the other side is one of our own, with the same recovery, as a connection manager may know (IRN,
    /// section 7): the connection need not find out. Without a recovery of ours it changes nothing.
    ///
    /// # Errors
    /// If there is none.
    pub fn agree(&mut self, qp: QpNumber) -> Result<(), VerbsError> {
        self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?.agree();
        Ok(())
    }
    /// How a queue pair stands: every field but `from` is filled in that was ever set.
    pub fn query_qp(&self, qp: QpNumber) -> Option<(QpChange, QpInit)> {
        self.qps.get(&qp.0).map(|pair| (pair.attributes(), pair.init))
    }
    /// Its state.
    pub fn qp_state(&self, qp: QpNumber) -> Option<QpState> {
        self.qps.get(&qp.0).map(|pair| pair.state())
    }
    /// Whether requests of its have begun that are not finished: something will be heard of them.
    pub fn has_begun(&self, qp: QpNumber) -> bool {
        self.qps.get(&qp.0).is_some_and(|pair| pair.has_begun())
    }
    /// Whether it is to drain, and has not finished what was begun.
    pub fn is_draining(&self, qp: QpNumber) -> bool {
        self.qps.get(&qp.0).is_some_and(|pair| pair.is_draining())
    }
    /// Forgets a queue pair and its completions that were not polled yet.
    ///
    /// # Errors
    /// If there is none.
    pub fn destroy_qp(&mut self, qp: QpNumber) -> Result<(), VerbsError> {
        let mut pair = self.qps.remove(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.release(&mut self.shared);
        self.shared.regions.windows().forget(qp);
        self.groups.forget(qp);
        self.deadlines.remove(&(pair.deadline, qp.0));
        for cq in [pair.init.send_cq, pair.init.receive_cq] {
            if let Some(queue) = self.shared.cqs.get_mut(&cq) {
                queue.users -= 1;
                queue.forget(qp);
            }
        }
        if let Some(srq) = pair.init.srq.and_then(|srq| self.shared.srqs.get_mut(&srq)) {
            srq.users -= 1;
        }
        Ok(())
    }
    /// Adds a send request.
    ///
    /// # Errors
    /// If there is no room, the state does not allow it, or the request contradicts itself.
    pub fn post_send(&mut self, _: &mut Cx<'_>, qp: QpNumber, request: SendRequest) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.check_sends(slice::from_ref(&request))?;
        pair.post_send(&mut self.shared, request);
        self.settle(qp.0);
        Ok(())
    }
    /// Adds send requests: all of them, or none.
    ///
    /// # Errors
    /// As [`Self::post_send`], for any of them.
    pub fn post_sends(&mut self, _: &mut Cx<'_>, qp: QpNumber, requests: Vec<SendRequest>) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.check_sends(&requests)?;
        for request in requests {
            pair.post_send(&mut self.shared, request);
        }
        self.settle(qp.0);
        Ok(())
    }
    /// Adds a receive request.
    ///
    /// # Errors
    /// As [`Self::post_send`].
    pub fn post_recv(&mut self, qp: QpNumber, request: ReceiveRequest) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.post_recv(&mut self.shared, request)
    }

    // The wire.

    /// A packet has arrived over `route` (local is this side) with so many bytes of payload, which `memory` can place.
    pub fn handle_packet(
        &mut self,
        cx: &mut Cx<'_>,
        memory: &mut impl Memory,
        route: &Route,
        headers: &Headers,
        payload: u32,
    ) {
        let qp = headers.bth.destination.0;
        if let Some(pair) = self.qps.get_mut(&qp) {
            pair.handle_packet(cx, &mut self.shared, memory, &Arrival { route, headers, payload });
            self.settle(qp);
        } else if qp == MULTICAST.0 {
            self.handle_for_group(cx, memory, &Arrival { route, headers, payload });
        }
    }
    /// The next acknowledgement that a queue pair has for the other side; for owners who send these before anything
    /// else. Others find them with [`Self::poll_transmit`].
    pub fn poll_ack(&mut self, qp: QpNumber) -> Option<Transmit> {
        self.qps.get_mut(&qp.0)?.poll_ack()
    }
    /// What a queue pair has acknowledged, once more, if it is connected and has: to be said, some times, before it is
    /// destroyed. If what it said first is lost, nobody answers any more when the other side asks again.
    pub fn last_word(&self, qp: QpNumber) -> Option<Transmit> {
        self.qps.get(&qp.0)?.last_word()
    }
    /// Writes the next packet to send to `transmit`, and to `payload` where its payload stands; returns whether there
    /// is one.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>, payload: &mut Payload, transmit: &mut Transmit) -> bool {
        while let Some(&qp) = self.ready.front() {
            payload.clear();
            let pair = self.qps.get_mut(&qp);
            if pair.is_some_and(|pair| pair.poll_transmit(cx, &mut self.shared, payload, transmit)) {
                return true;
            }
            self.ready.pop_front();
            if let Some(pair) = self.qps.get_mut(&qp) {
                pair.is_ready = false;
            }
            self.renew(qp);
        }
        false
    }
    /// The queue pair that has sent last.
    pub fn whose_turn(&self) -> Option<QpNumber> {
        self.ready.front().copied().map(QpNumber)
    }
    /// The queue pair that has sent last goes behind the others; for owners who let them take turns packet by packet.
    pub fn end_turn(&mut self) {
        if let Some(qp) = self.ready.pop_front() {
            self.ready.push_back(qp);
            self.renew(qp);
        }
    }
    /// When to call [`Self::handle_timeout`], and [`Self::poll_transmit`] after it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }
    /// Handles what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, qp)) = self.deadlines.first() {
            if at > cx.now {
                break;
            }
            self.deadlines.pop_first();
            if let Some(pair) = self.qps.get_mut(&qp) {
                pair.deadline = Instant::NEVER;
                pair.handle_timeout(cx, &mut self.shared);
                self.settle(qp);
            }
        }
    }
    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats
    }
    /// Memory that its queue pairs share on the chip.
    pub(crate) fn chip(&self) -> &OnChip {
        &self.shared.chip
    }
    /// What has happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// Something about a queue pair has changed: it may have something to send, and another deadline.
    fn settle(&mut self, qp: u32) {
        if let Some(pair) = self.qps.get_mut(&qp)
            && !pair.is_ready
        {
            pair.is_ready = true;
            self.ready.push_back(qp);
        }
    }
    fn renew(&mut self, qp: u32) {
        let Some(pair) = self.qps.get_mut(&qp) else { return };
        let deadline = pair.next_deadline();
        if deadline != pair.deadline {
            self.deadlines.remove(&(pair.deadline, qp));
            pair.deadline = deadline;
            if deadline < Instant::NEVER {
                self.deadlines.insert((deadline, qp));
            }
        }
    }
}

fn check_depth(depth: u32) -> Result<(), VerbsError> {
    if depth == 0 || depth > Limits::HERE.completions {
        return Err(VerbsError::Invalid("a completion queue holds 1 to 4194304 completions"));
    }
    Ok(())
}

fn check_capacities(wanted: &Capacities) -> Result<(), VerbsError> {
    let limits = Limits::HERE;
    if wanted.send_requests > limits.requests || wanted.receive_requests > limits.requests {
        return Err(VerbsError::Invalid("more requests than a queue can hold"));
    }
    if wanted.send_pieces > limits.pieces || wanted.receive_pieces > limits.pieces {
        return Err(VerbsError::Invalid("more pieces than a request can have"));
    }
    if wanted.inline > limits.inline {
        return Err(VerbsError::Invalid("more inline data than a request can hold"));
    }
    Ok(())
}
