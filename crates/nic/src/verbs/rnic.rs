//! The NIC: its resources, and what goes in and out.

mod completion_queues;
mod memory;
mod queue_pairs;
mod shared_queues;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_transport::path::PathConfig;
use selvedge_transport::{Cx, OnChip};
use selvedge_units::{Duration, Instant, QpNumber};
use selvedge_wire::verbs::Headers;

use super::arrival::Arrival;
use super::memory::Memory;
use super::multicast::{Groups, MULTICAST};
use super::qp::QueuePair;
use super::region::PdId;
use super::shared::{Event, Shared, Stats};
use super::transmit::Transmit;
use super::work::{Payload, Route};

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
    /// Other sides are to be told of receive requests.
    has_news: bool,
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
            has_news: false,
        }
    }

    /// Queue pairs that are connected from now on share one congestion control on their way to the same address, beside
    /// their own; or have only their own, as at first.
    ///
    /// # Panics
    /// If the settings are out of range ([`PathConfig::check`]).
    pub fn control_paths(&mut self, config: Option<PathConfig>) {
        assert!(config.is_none_or(|config| config.check().is_ok()), "settings of paths: {config:?}");
        self.shared.paths.control(config);
    }
    /// How long the packets that are handled next have waited in this host before; `None`, as at first, if that is not
    /// known. Round-trip times of paths are without it.
    pub fn set_waited(&mut self, waited: Option<Duration>) {
        self.shared.paths.waited = waited;
    }
    /// The clock that [`Cx::now`] shows stood still until `now`, because nobody was there to handle packets and
    /// timeouts: what left before has no round-trip time.
    pub fn on_lapse(&mut self, now: Instant) {
        self.shared.paths.on_lapse(now);
    }

    fn fresh(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

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
    /// Whether the owner of `qp` may hear of a success yet: a send request of it has not completed, or the completion
    /// of a request that was carried out waits to be polled. False for a queue pair that does not exist.
    pub fn has_unfinished(&self, qp: QpNumber) -> bool {
        let Some(pair) = self.qps.get(&qp.0) else { return false };
        if pair.has_sends() {
            return true;
        }
        let mut queues =
            [pair.init.send_cq, pair.init.receive_cq].into_iter().filter_map(|cq| self.shared.cqs.get(&cq));
        queues.any(|queue| queue.holds_success(qp))
    }
    /// What a queue pair has acknowledged, once more, if it is connected and has: to be said, some times, before it is
    /// destroyed. If what it said first is lost, nobody answers any more when the other side asks again.
    pub fn last_word(&self, qp: QpNumber) -> Option<Transmit> {
        self.qps.get(&qp.0)?.last_word()
    }
    /// Writes the next packet to send to `transmit`, and to `payload` where its payload stands; returns whether there
    /// is one.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>, payload: &mut Payload, transmit: &mut Transmit) -> bool {
        loop {
            while let Some(&qp) = self.ready.front() {
                payload.clear();
                let pair = self.qps.get_mut(&qp);
                let sends = pair.is_some_and(|pair| pair.poll_transmit(cx, &mut self.shared, payload, transmit));
                let full = self.shared.paths.take_full();
                if sends {
                    return true;
                }
                self.ready.pop_front();
                if let Some(pair) = self.qps.get_mut(&qp) {
                    pair.is_ready = false;
                    if let Some(path) = full.filter(|_| !pair.is_waiting) {
                        pair.is_waiting = true;
                        self.shared.paths.wait(path, qp);
                    }
                }
                self.renew(qp);
            }
            let Some(next) = self.shared.paths.next_turn() else { return false };
            if let Some(pair) = self.qps.get_mut(&next) {
                pair.is_waiting = false;
                self.settle(next);
            }
        }
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
        let paths = self.shared.paths.poll_timeout();
        let own = self.deadlines.first().map(|&(at, _)| at);
        own.into_iter().chain(paths).min()
    }
    /// Handles what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.shared.paths.handle_timeout(cx.now);
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
