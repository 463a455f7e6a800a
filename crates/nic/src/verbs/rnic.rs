//! The NIC: its resources, and its handling of packets and timeouts.

mod completion_queues;
mod memory;
mod queue_pairs;
mod shared_queues;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_transport::path::PathConfig;
use selvedge_transport::{Cx, SharedState};
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

/// Limits of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Number of queue pairs.
    pub queue_pairs: u32,
    /// Number of requests in a queue.
    pub requests: u32,
    /// Number of scatter/gather elements of a request.
    pub pieces: u32,
    /// Bytes of inline data in a request.
    pub inline: u32,
    /// Number of completions in a queue.
    pub completions: u32,
    /// Outstanding Reads and Atomics, in each direction.
    pub reads: u8,
    /// Bytes of a message.
    pub message: u32,
    /// Number of memory windows.
    pub windows: u32,
    /// Number of multicast attachments, of all queue pairs together.
    pub attachments: u32,
}

impl Limits {
    /// Limits of this implementation.
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

/// An RDMA NIC as an engine: it has no links and no memory of its own.
pub struct Rnic {
    pub(super) shared: Shared,
    pds: BTreeSet<PdId>,
    next_id: u32,
    /// High bits of queue pair numbers, common to all of this NIC.
    prefix: u32,
    next_qp: u32,
    pub(super) qps: BTreeMap<u32, Box<QueuePair>>,
    pub(super) groups: Groups,
    /// Queue pairs that may have a packet to send, each at most once.
    ready: VecDeque<u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    /// Whether peers have to be informed of new receive requests.
    has_news: bool,
}

impl Rnic {
    /// Bits of a queue pair's number below the prefix.
    pub const QP_BITS: u32 = 18;

    /// Creates a NIC without resources. Numbers of its queue pairs have `prefix` (6 bits) above [`Self::QP_BITS`] and
    /// begin after `first` below. `first` should be random, so that a restarted process does not reuse numbers at once.
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

    /// Sets the congestion control that queue pairs connected from now on share with all others on the path to the same
    /// address, in addition to their own; `None`, the initial setting: only their own.
    ///
    /// # Panics
    /// If the settings are out of range ([`PathConfig::check`]).
    pub fn control_paths(&mut self, config: Option<PathConfig>) {
        assert!(config.is_none_or(|config| config.check().is_ok()), "settings of paths: {config:?}");
        self.shared.paths.control(config);
    }
    /// Sets how long the packets that are handled next have waited in this host; `None`, the initial setting, if that
    /// is not known. Round-trip times of paths exclude this wait.
    pub fn set_waited(&mut self, waited: Option<Duration>) {
        self.shared.paths.waited = waited;
    }
    /// Notes that the clock shown by [`Cx::now`] stood still until `now`, because packets and timeouts were not
    /// handled: packets sent before `now` give no round-trip time.
    pub fn on_lapse(&mut self, now: Instant) {
        self.shared.paths.on_lapse(now);
    }

    fn fresh(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    /// Handles a packet that has arrived over `route` (local is this side) with `payload` bytes, which `memory` can
    /// place.
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
    /// Notifies a queue pair of congestion, as a congestion notification packet from its peer does. Has no effect on a
    /// queue pair that does not exist.
    pub(crate) fn notify_of_congestion(&mut self, cx: &mut Cx<'_>, qp: QpNumber) {
        if let Some(pair) = self.qps.get_mut(&qp.0) {
            pair.on_congestion(cx, &mut self.shared);
            self.settle(qp.0);
        }
    }
    /// Returns the next acknowledgement of a queue pair, for owners that send acknowledgements before all else.
    /// [`Self::poll_transmit`] returns them too.
    pub fn poll_ack(&mut self, qp: QpNumber) -> Option<Transmit> {
        self.qps.get_mut(&qp.0)?.poll_ack()
    }
    /// Returns whether the owner of `qp` may still see a success: a send request has not completed, or the completion
    /// of a successful request waits to be polled. Returns false for a queue pair that does not exist.
    pub fn has_unfinished(&self, qp: QpNumber) -> bool {
        let Some(pair) = self.qps.get(&qp.0) else { return false };
        if pair.has_sends() {
            return true;
        }
        let mut queues =
            [pair.init.send_cq, pair.init.receive_cq].into_iter().filter_map(|cq| self.shared.cqs.get(&cq));
        queues.any(|queue| queue.holds_success(qp))
    }
    /// Returns a repetition of the queue pair's last acknowledgement, if it is connected and has acknowledged anything.
    /// Owners should send it a few times before they destroy the queue pair: if the original is lost, nobody answers
    /// the other side's retransmissions any more.
    pub fn last_word(&self, qp: QpNumber) -> Option<Transmit> {
        self.qps.get(&qp.0)?.last_word()
    }
    /// Writes the next packet to `transmit`, and the location of its payload to `payload`; returns whether there is a
    /// packet.
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
    /// Returns the queue pair at the front of the ready ring, which has sent last.
    pub fn whose_turn(&self) -> Option<QpNumber> {
        self.ready.front().copied().map(QpNumber)
    }
    /// Moves the queue pair that has sent last behind the others, for owners that schedule queue pairs packet by
    /// packet.
    pub fn end_turn(&mut self) {
        if let Some(qp) = self.ready.pop_front() {
            self.ready.push_back(qp);
            self.renew(qp);
        }
    }
    /// Returns when to call [`Self::handle_timeout`], followed by [`Self::poll_transmit`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let paths = self.shared.paths.poll_timeout();
        let own = self.deadlines.first().map(|&(at, _)| at);
        own.into_iter().chain(paths).min()
    }
    /// Handles all deadlines that have passed.
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
    /// Returns the counters of this NIC.
    pub fn stats(&self) -> Stats {
        self.shared.stats
    }
    /// Returns the on-chip memory that queue pairs share.
    pub(crate) fn pools(&self) -> &SharedState {
        &self.shared.pools
    }
    /// Returns the next asynchronous event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// Updates the ready ring and the deadline of a queue pair that has changed.
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
