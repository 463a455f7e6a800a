//! Between ports and engine: reads frames, finds their destinations, answers for hosts, counts.

use std::collections::VecDeque;

use selvedge_units::Instant;
use selvedge_wire::{EtherType, MacAddress};

use super::counters::PortCounts;
use super::directory::{Directory, Route};
use super::engine::{Arrival, Engine, Leaving};
use super::frame::Facts;
use super::pause::pause_of;

/// Most answers that wait at a time; a host that asks faster than its interface takes them waits longer.
const MOST_ANSWERS: usize = 64;

/// An engine with a directory of hosts. Pure, like the engine.
#[derive(Debug)]
pub struct Bridge<E> {
    /// The engine.
    pub engine: E,
    directory: Directory,
    counts: Vec<PortCounts>,
    /// Answers in place of hosts, with their ports.
    answers: VecDeque<(usize, Vec<u8>)>,
    /// The answer that was lent last.
    lent: Vec<u8>,
}

impl<E: Engine> Bridge<E> {
    /// Creates a bridge between the ports of a directory.
    pub fn new(engine: E, directory: Directory) -> Self {
        let counts = vec![PortCounts::default(); directory.ports()];
        Self { engine, directory, counts, answers: VecDeque::new(), lent: Vec::new() }
    }

    /// Handles a frame that came from a host, from its Ethernet header on, without FCS.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn handle_frame(&mut self, now: Instant, from: usize, frame: &[u8]) {
        let counts = &mut self.counts[from];
        counts.received += 1;
        counts.received_bytes += frame.len() as u64;
        let Some(facts) = Facts::parse(frame) else {
            counts.malformed += 1;
            return;
        };
        if !self.directory.learn(from, facts.source) {
            counts.forged += 1;
            return;
        }
        if facts.kind == EtherType::MAC_CONTROL || facts.destination == MacAddress::MAC_CONTROL {
            // Never forwarded, whatever it says.
            match pause_of(frame, &facts) {
                Some(pause) => {
                    counts.pauses += 1;
                    self.engine.handle_pause(now, from, &pause);
                }
                None => counts.local += 1,
            }
            return;
        }
        match self.directory.route(from, facts.destination) {
            Route::Port(to) => self.engine.handle_packet(now, Arrival { from, to, facts: &facts, frame }),
            Route::Same => counts.local += 1,
            Route::Others => self.answer_or_flood(now, from, &facts, frame),
        }
    }

    /// Returns the next frame for a host. To be called until `None` after each other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Leaving<'_>> {
        if let Some((port, answer)) = self.answers.pop_front() {
            self.lent = answer;
            return Some(Leaving { port, frame: &self.lent });
        }
        self.engine.poll_transmit(now)
    }

    /// Returns the time at which [`Bridge::handle_timeout`] or [`Bridge::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Handles that time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    /// Returns the counters of a port, to be changed.
    pub(super) fn counts_of(&mut self, port: usize) -> &mut PortCounts {
        &mut self.counts[port]
    }

    /// Returns the counters of all ports.
    pub fn counts(&self) -> &[PortCounts] {
        &self.counts
    }

    fn answer_or_flood(&mut self, now: Instant, from: usize, facts: &Facts, frame: &[u8]) {
        if let Some(answer) = self.directory.answer(from, frame, facts) {
            if self.answers.len() < MOST_ANSWERS {
                self.counts[from].answered += 1;
                self.answers.push_back((from, answer));
            } else {
                self.counts[from].refused += 1;
            }
            return;
        }
        self.counts[from].flooded += 1;
        for to in (0..self.directory.ports()).filter(|to| *to != from) {
            self.engine.handle_packet(now, Arrival { from, to, facts, frame });
        }
    }
}
