//! Two TCP connections connected in virtual time.

use std::collections::BTreeMap;

use selvedge_transport::Cx;
use selvedge_transport::tcp::{Connection, Params, State, TcpStats};
use selvedge_units::{Domain, Duration, Instant, Octet, Rng, TcpSeq};
use selvedge_wire::tcp::{Flags, Header, Segment};

use crate::impair::{Fate, Impairment};
use crate::model::TcpReceiver;

/// A transfer from one end to the other, with the conditions.
#[derive(Clone, Debug)]
pub struct TcpTransfer {
    /// Parameters of both ends.
    pub params: Params,
    /// Octets to transfer.
    pub octets: u64,
    /// The sequence numbers of the SYNs.
    pub initial: [TcpSeq; 2],
    /// One-way propagation delay.
    pub delay: Duration,
    /// Serialisation time of a full segment.
    pub segment_time: Duration,
    /// Impairments of the segments sent by the sender and by the receiver.
    pub impairments: [Impairment; 2],
    /// Probability of a mark, in percent.
    pub marks: u64,
    /// Whether the receiver's application reads at intervals, and not all available octets.
    pub reads_slowly: bool,
    /// Random seed of marks and reads.
    pub seed: u64,
}

/// The outcome of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOutcome {
    /// Whether the receiver has everything, and the sender has everything acknowledged.
    pub finished: bool,
    /// Octets that arrived for the first time.
    pub fresh: u64,
    /// Octets that the application received, in order.
    pub in_order: u64,
    /// Time at which the last octet reached the receiver.
    pub finish: Instant,
    /// Time at which nothing was left to do.
    pub end: Instant,
    /// Counters of the sender.
    pub stats: TcpStats,
}

/// A sender and a receiver in virtual time.
pub struct TcpPair {
    ends: [Connection; 2],
    transfer: TcpTransfer,
    now: Instant,
    free_at: [Instant; 2],
    flying: BTreeMap<(Instant, u64), (usize, Segment, bool)>,
    departed: u64,
    /// Reference model of the receiver.
    model: TcpReceiver,
    unread: u64,
    read_at: Instant,
    rng: Rng,
    outcome: TcpOutcome,
}

impl TcpPair {
    /// Turns after which a transfer counts as stuck; more than an impaired one takes.
    const PATIENCE: u64 = 200_000;

    /// Creates a pair of new connections.
    pub fn new(transfer: TcpTransfer) -> Self {
        let params = &transfer.params;
        let [ours, theirs] = transfer.initial;
        let mut ends = if params.handshake {
            [Connection::connect(params, ours), Connection::listen(params, theirs)]
        } else {
            [Connection::established(params, ours, theirs), Connection::established(params, theirs, ours)]
        };
        ends[0].supply(transfer.octets);
        if params.fin {
            ends[0].close();
        }
        let outcome = TcpOutcome {
            finished: false,
            fresh: 0,
            in_order: 0,
            finish: Instant::ZERO,
            end: Instant::ZERO,
            stats: TcpStats::default(),
        };
        Self {
            ends,
            now: Instant::ZERO,
            free_at: [Instant::ZERO; 2],
            flying: BTreeMap::new(),
            departed: 0,
            model: TcpReceiver::default(),
            unread: 0,
            read_at: Instant::NEVER,
            rng: Rng::stream(transfer.seed, Domain::Impairment, 2),
            outcome,
            transfer,
        }
    }

    /// Runs until everything is done, no events are left, or the limit of turns is reached.
    ///
    /// # Panics
    /// If the receiver deviates from its reference model, or an end breaks its contract.
    pub fn run(mut self) -> TcpOutcome {
        for _ in 0..Self::PATIENCE {
            self.turn();
            if self.is_done() {
                self.outcome.finished = true;
                break;
            }
            match self.next_event() {
                Some(at) => self.now = at,
                None => break,
            }
        }
        TcpOutcome { end: self.now, stats: self.ends[0].stats(), ..self.outcome }
    }

    fn is_done(&self) -> bool {
        let is_closed = |state| matches!(state, State::Closed | State::TimeWait);
        self.outcome.in_order == self.transfer.octets
            && self.ends[0].is_acknowledged()
            && (!self.transfer.params.fin || self.ends.iter().all(|end| is_closed(end.state())))
    }

    fn next_event(&self) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(Connection::poll_timeout);
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let links = (0..2).filter(|&end| self.ends[end].is_ready()).map(|end| self.free_at[end]);
        let read = Some(self.read_at).filter(|&at| at < Instant::NEVER);
        timers.chain(arrival).chain(links).chain(read).min().map(|at| at.max(self.now))
    }

    /// Handles all events due now.
    fn turn(&mut self) {
        while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= self.now) {
            let (to, segment, marked) = first.remove();
            self.arrive(to, &segment, marked);
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= self.now) {
                end.handle_timeout(&mut Cx::at(self.now));
            }
        }
        if self.read_at <= self.now {
            self.read();
        }
        for from in 0..2 {
            self.drain(from);
        }
    }

    fn arrive(&mut self, to: usize, segment: &Segment, marked: bool) {
        let expected = self.model.expected();
        let arrival = self.ends[to].handle_segment(&mut Cx::at(self.now), segment, marked);
        if to == 0 {
            assert_eq!(arrival.fresh, 0, "the receiver sends nothing");
            return;
        }
        let octets = u64::from(segment.payload);
        if let Some(start) = segment.seq.near(expected, self.transfer.initial[0])
            && octets > 0
        {
            // Accepted octets must be exactly the new ones; the receiver may also refuse a segment entirely.
            let fresh = self.model.fresh(start, octets);
            assert!(arrival.fresh == fresh || arrival.fresh == 0, "{start:?} + {octets}: {arrival:?}, not {fresh}");
            if arrival.fresh > 0 {
                assert!(!arrival.is_duplicate);
                self.model.take(start, octets);
            }
        }
        let in_order = self.model.expected() - expected;
        assert_eq!(arrival.in_order, in_order, "{:?} expected", self.model.expected());
        assert_eq!(self.ends[1].received(), self.model.expected() - Octet::FIRST);
        self.outcome.fresh += arrival.fresh;
        self.outcome.in_order += in_order;
        if in_order > 0 && self.outcome.in_order == self.transfer.octets {
            self.outcome.finish = self.now;
        }
        self.unread += in_order;
        if !self.transfer.reads_slowly {
            self.ends[1].read(std::mem::take(&mut self.unread));
        } else if self.read_at == Instant::NEVER && self.unread > 0 {
            self.read_at = self.now + Duration::from_us(self.rng.below(2_000));
        }
        let is_over = self.outcome.in_order == self.transfer.octets;
        if self.transfer.params.fin && is_over && self.ends[1].state() == State::CloseWait {
            self.ends[1].close();
        }
    }

    fn read(&mut self) {
        let octets = 1 + self.rng.below(self.unread);
        self.ends[1].read(octets);
        self.unread -= octets;
        let again = self.now + Duration::from_us(self.rng.below(2_000));
        self.read_at = if self.unread > 0 { again } else { Instant::NEVER };
    }

    /// Sends the segments of one end, one full segment per `segment_time`.
    fn drain(&mut self, from: usize) {
        while self.free_at[from] <= self.now {
            let ready = self.ends[from].is_ready();
            let sent = self.ends[from].poll_transmit(&mut Cx::at(self.now));
            assert_eq!(ready, sent.is_some(), "one decision");
            let Some(sent) = sent else {
                let wake = self.ends[from].poll_timeout();
                assert!(wake.is_none_or(|at| at > self.now), "{:?} waits for {wake:?}, at {:?}", from, self.now);
                return;
            };
            self.check(from, &sent.segment);
            let (mss, octets) = (self.transfer.params.mss, u64::from(sent.segment.payload));
            self.free_at[from] = self.now + Duration::from_ps(self.transfer.segment_time.as_ps() * octets / mss);
            let marked = sent.ecn_capable && self.rng.below(100) < self.transfer.marks;
            let arrival = self.free_at[from] + self.transfer.delay;
            let (copies, arrival) = match self.transfer.impairments[from].next_fate() {
                Fate::Deliver => (1, arrival),
                Fate::Drop => (0, arrival),
                Fate::Duplicate => (2, arrival),
                Fate::Late(by) => (1, arrival + by),
            };
            for _ in 0..copies {
                self.flying.insert((arrival, self.departed), (1 - from, sent.segment, marked));
                self.departed += 1;
            }
        }
    }

    /// Checks the invariants of every segment.
    fn check(&self, from: usize, segment: &Segment) {
        let mut buffer = [0; Header::LONGEST];
        let header = Header { source: 1, destination: 2, segment: Segment { payload: 0, ..*segment } };
        assert_eq!(Header::parse(header.emit(&mut buffer)), Ok((header, &[][..])), "survives the wire");
        if from == 1 {
            assert_eq!(segment.payload, 0);
            let octet = |seq: TcpSeq| seq.near(self.model.expected(), self.transfer.initial[0]).unwrap_or_default();
            for (at, (from, to)) in segment.sacks.iter().enumerate() {
                assert!(octet(from) < octet(to) && self.model.has(octet(from), octet(to)), "{segment:?}");
                assert!(octet(from) > self.model.expected() || at == 0, "only a duplicate: {segment:?}");
            }
            if segment.flags.contains(Flags::ACK) {
                let fin = u64::from(self.transfer.params.fin);
                assert!(octet(segment.ack) <= self.model.expected() + fin, "{segment:?}");
            }
        }
    }
}
