//! A sender and a receiver connected by a link in virtual time.

use std::collections::BTreeMap;

use selvedge_transport::{Cx, DataVerdict, Next, Receiver, SchemeParams, Sender, SharedState};
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::{AckKind, Body, Data};

use crate::impair::{Fate, Impairment};
use crate::world::{Outcome, Placed, Transfer, World};

/// The link between two ends, symmetric. As a [`World`], it makes a [`Pair`] per transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Propagation delay.
    pub delay: Duration,
    /// Serialisation time of a data packet. Acknowledgements take no time.
    pub frame_time: Duration,
}

impl Default for Link {
    /// Returns a link of 40 Gb/s with full frames, and the round trip of the paper's longest path: 24 us.
    fn default() -> Self {
        Self { delay: Duration::from_us(12), frame_time: Duration::from_ps(221_200) }
    }
}

impl World for Link {
    fn run(&self, transfer: Transfer) -> Outcome {
        let sender = Sender::new(&transfer.params, transfer.first_psn);
        let receiver = Receiver::new(&transfer.params.recovery, transfer.first_psn);
        Pair::new(sender, receiver, *self, transfer).run()
    }
}

/// A sender and a receiver in virtual time, with one transfer between them.
pub struct Pair {
    sender: Sender,
    receiver: Receiver,
    link: Link,
    transfer: Transfer,
    now: Instant,
    /// Time at which the sender's end of the link is free.
    free_at: Instant,
    data: Lane<(Data, Seq)>,
    acks: Lane<Body>,
    placed: Placed,
    reorder: ReorderBuffer,
    /// On-chip resources of the sender's and of the receiver's NIC.
    chips: (SharedState, SharedState),
    duplicates: u64,
}

/// Packets in flight, by arrival, then by departure. Each carries its own sending time, or, if an acknowledgement, that
/// of its data packet.
struct Lane<T> {
    flying: BTreeMap<(Instant, u64), (T, Instant)>,
    departed: u64,
    impairment: Impairment,
}

/// A reorder buffer that records which packet is in each slot.
struct ReorderBuffer(Vec<Option<Seq>>);

impl ReorderBuffer {
    fn of(slots: u32) -> Self {
        Self(vec![None; slots as usize])
    }
    fn slot(&mut self, seq: Seq) -> &mut Option<Seq> {
        let slots = self.0.len() as u64;
        &mut self.0[(seq.index() % slots) as usize]
    }
    fn keep(&mut self, seq: Seq) {
        assert_eq!(self.slot(seq).replace(seq), None, "two packets in one slot");
    }
    /// Removes and returns the `run` packets after `seq`.
    fn take(&mut self, seq: Seq, run: u32) -> impl Iterator<Item = Seq> {
        (1..=u64::from(run)).map(move |ahead| {
            let waiting = self.slot(seq + ahead).take();
            assert_eq!(waiting, Some(seq + ahead), "a run has no hole");
            seq + ahead
        })
    }
}

impl<T: Copy> Lane<T> {
    fn new(impairment: Impairment) -> Self {
        Self { flying: BTreeMap::new(), departed: 0, impairment }
    }
    fn send(&mut self, packet: T, body: &Body, sent_at: Instant, arrival: Instant) {
        let (copies, arrival) = match self.impairment.fate(body) {
            Fate::Deliver => (1, arrival),
            Fate::Drop => (0, arrival),
            Fate::Duplicate => (2, arrival),
            Fate::Late(by) => (1, arrival + by),
        };
        for _ in 0..copies {
            self.flying.insert((arrival, self.departed), (packet, sent_at));
            self.departed += 1;
        }
    }
    fn next_arrival(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|(&(at, _), _)| at)
    }
    fn arrive(&mut self, now: Instant) -> Option<(T, Instant)> {
        self.flying.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    }
}

impl Pair {
    /// Turns per packet after which a transfer counts as stuck; an impaired one takes fewer than a hundred.
    const PATIENCE: u64 = 10_000;

    /// Creates a pair of new engines, with all of the transfer's payload supplied.
    pub fn new(mut sender: Sender, receiver: Receiver, link: Link, mut transfer: Transfer) -> Self {
        let recovery = transfer.params.recovery;
        sender.supply(transfer.packets());
        Self {
            sender,
            receiver,
            link,
            now: Instant::ZERO,
            free_at: Instant::ZERO,
            data: Lane::new(std::mem::take(&mut transfer.forward)),
            acks: Lane::new(std::mem::take(&mut transfer.backward)),
            placed: Placed::for_transfer(&transfer),
            reorder: ReorderBuffer::of(recovery.reorder_slots()),
            chips: (recovery.shared(), recovery.shared()),
            duplicates: 0,
            transfer,
        }
    }

    /// Runs until both ends are done, no events are left, or the limit of turns is reached.
    pub fn run(mut self) -> Outcome {
        let is_acknowledged = self.transfer.params.recovery.acknowledges();
        for _ in 0..Self::PATIENCE * (self.transfer.packets() + 1) {
            self.turn();
            let sent = if is_acknowledged { self.sender.is_done() } else { self.sender.is_drained() };
            if sent && self.placed.is_complete() {
                return self.outcome(true);
            }
            match self.next_event() {
                Some(at) => self.now = at,
                None => break,
            }
        }
        self.outcome(false)
    }

    /// Returns the time of the next event.
    fn next_event(&self) -> Option<Instant> {
        let wants_link = matches!(self.sender.next(self.now), Next::Send(_));
        [
            self.data.next_arrival(),
            self.acks.next_arrival(),
            self.sender.poll_timeout(),
            wants_link.then_some(self.free_at),
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|at| at.max(self.now))
    }

    /// Handles all events due now.
    fn turn(&mut self) {
        let mut cx = Cx::at(self.now);
        while let Some(((data, seq), sent_at)) = self.data.arrive(self.now) {
            let reply = self.receiver.handle_data(&mut cx, &mut self.chips.1, &data, false);
            match reply.verdict {
                DataVerdict::Accepted(accepted) => {
                    assert_eq!(accepted, seq, "the receiver takes a packet for another");
                    self.placed.place(seq, self.transfer.piece_of(seq));
                }
                DataVerdict::Buffered(buffered) => {
                    assert_eq!(buffered, seq, "the receiver takes a packet for another");
                    self.reorder.keep(seq);
                }
                DataVerdict::Released { seq: released, run } => {
                    assert_eq!(released, seq, "the receiver takes a packet for another");
                    self.placed.place(seq, self.transfer.piece_of(seq));
                    for seq in self.reorder.take(seq, run) {
                        self.placed.place(seq, self.transfer.piece_of(seq));
                    }
                }
                DataVerdict::Duplicate => self.duplicates += 1,
                DataVerdict::Refused => {}
                DataVerdict::Invalid => panic!("an honest sender's {seq:?} lies outside the receiver's window"),
            }
            if let Some(ack) = reply.ack {
                let nack = (ack.kind == AckKind::Nack).then(|| self.receiver.with_holes(&ack)).flatten();
                let body = nack.map_or(Body::Ack(ack), Body::HoleNack);
                self.acks.send(body, &body, sent_at, self.now + self.link.delay);
            }
        }
        while let Some((ack, sent_at)) = self.acks.arrive(self.now) {
            match ack {
                Body::Ack(ack) => self.sender.handle_ack(&mut cx, &mut self.chips.0, &ack, sent_at),
                Body::HoleNack(nack) => self.sender.handle_hole_nack(&mut cx, &mut self.chips.0, &nack, sent_at),
                Body::Data(_) | Body::Cnp => unreachable!("a receiver acknowledges"),
            }
            assert!(self.sender.acked() <= self.receiver.expected(), "acknowledged before it arrived");
        }
        if self.sender.poll_timeout().is_some_and(|at| at <= self.now) {
            self.sender.handle_timeout(&mut cx, &mut self.chips.0);
        }
        while self.free_at <= self.now {
            let frame = self.transfer.params.frame;
            let Some(segment) = self.sender.poll_transmit(&mut cx, &mut self.chips.0, |_| frame) else { break };
            self.free_at = self.now + self.link.frame_time;
            let data = Data {
                psn: segment.seq.to_psn(self.transfer.first_psn),
                payload: self.transfer.piece_of(segment.seq).len() as u16,
                last: segment.seq + 1 == self.sender.supplied(),
                retransmission: segment.retransmission,
                trimmed: false,
            };
            let arrival = self.free_at + self.link.delay;
            self.data.send((data, segment.seq), &Body::Data(data), self.now, arrival);
        }
    }

    fn outcome(mut self, finished: bool) -> Outcome {
        self.sender.release(&mut self.chips.0);
        self.receiver.release(&mut self.chips.1);
        let left = (self.chips.0.melo.sending.in_use(), self.chips.1.melo.receiving.in_use());
        assert_eq!(left, (0, 0), "blocks that nobody holds and nobody can get");
        Outcome { finished, placed: self.placed, duplicates: self.duplicates, stats: self.sender.stats() }
    }
}
