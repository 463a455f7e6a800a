//! Two TCP connections with nothing but virtual time between them.

use std::collections::BTreeMap;

use selvedge_transport::Cx;
use selvedge_transport::tcp::{Connection, State, TcpConfig, TcpStats};
use selvedge_units::{Domain, Duration, Instant, Octet, Rng, TcpSeq};
use selvedge_wire::tcp::{Flags, Header, Segment};

use crate::impair::{Fate, Impairment};
use crate::model::TcpReceiver;

/// A transfer from one end to the other.
#[derive(Clone, Debug)]
pub struct TcpTransfer {
    /// Both ends; "auto" resolved.
    pub config: TcpConfig,
    /// Octets to transfer.
    pub octets: u64,
    /// The sequence numbers of the SYNs.
    pub initial: [TcpSeq; 2],
    /// Propagation delay, each way.
    pub delay: Duration,
    /// How long a full segment takes to serialise.
    pub segment_time: Duration,
    /// What happens to what the sender and the receiver send.
    pub impairments: [Impairment; 2],
    /// How likely a segment is marked, in percent.
    pub marks: u64,
    /// The receiver's application reads now and then, and not all that is there.
    pub reads_slowly: bool,
    /// Decides about marks and reads.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOutcome {
    /// The receiver has everything, and the sender knows.
    pub finished: bool,
    /// Octets that arrived for the first time.
    pub fresh: u64,
    /// Octets that the application got, in order.
    pub in_order: u64,
    /// When the receiver had the last octet.
    pub finish: Instant,
    /// When nothing was left to do.
    pub end: Instant,
    /// What the sender did.
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
    /// What has arrived at the receiver, by definition.
    model: TcpReceiver,
    unread: u64,
    read_at: Instant,
    rng: Rng,
    outcome: TcpOutcome,
}

impl TcpPair {
    /// More turns than an impaired transfer ever takes.
    const PATIENCE: u64 = 200_000;

    /// Two ends that have seen nothing.
    pub fn new(transfer: TcpTransfer) -> Self {
        let config = &transfer.config;
        let [ours, theirs] = transfer.initial;
        let mut ends = if config.handshake {
            [Connection::connect(config, ours), Connection::listen(config, theirs)]
        } else {
            [Connection::established(config, ours, theirs), Connection::established(config, theirs, ours)]
        };
        ends[0].supply(transfer.octets);
        if config.fin {
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

    /// Runs until everything is done, nothing can happen any more, or patience ends.
    ///
    /// # Panics
    /// When the receiver does not do what its definition says, or an end breaks its contract.
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
            && (!self.transfer.config.fin || self.ends.iter().all(|end| is_closed(end.state())))
    }

    fn next_event(&self) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(Connection::poll_timeout);
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let links = (0..2).filter(|&end| self.ends[end].is_ready()).map(|end| self.free_at[end]);
        let read = Some(self.read_at).filter(|&at| at < Instant::NEVER);
        timers.chain(arrival).chain(links).chain(read).min().map(|at| at.max(self.now))
    }

    /// Everything that is due now.
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
            // What it takes in is what is new; it may refuse a segment altogether.
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
        if self.transfer.config.fin && is_over && self.ends[1].state() == State::CloseWait {
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

    /// Sends what one end has, one full segment per `segment_time`.
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
            let (mss, octets) = (self.transfer.config.mss(), u64::from(sent.segment.payload));
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

    /// What holds of every segment.
    fn check(&self, from: usize, segment: &Segment) {
        let mut buffer = [0; Header::LONGEST];
        let header = Header { source: 1, destination: 2, segment: Segment { payload: 0, ..*segment } };
        assert_eq!(Header::parse(header.emit(&mut buffer)), Ok((header, &[][..])), "survives the wire");
        if from == 1 {
            assert_eq!(segment.payload, 0);
            let octet = |seq: TcpSeq| seq.near(self.model.expected(), self.transfer.initial[0]).unwrap_or_default();
            for (from, to) in segment.sacks.iter() {
                assert!(octet(from) < octet(to) && self.model.has(octet(from), octet(to)), "{segment:?}");
                assert!(octet(from) > self.model.expected(), "{segment:?}");
            }
            if segment.flags.contains(Flags::ACK) {
                let fin = u64::from(self.transfer.config.fin);
                assert!(octet(segment.ack) <= self.model.expected() + fin, "{segment:?}");
            }
        }
    }
}
