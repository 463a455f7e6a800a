//! An engine for tests and benchmarks of what carries frames: a queue and a rate for each port, no delay.

use std::collections::VecDeque;

use selvedge_dataplane::switch::{Arrival, Engine, Leaving};
use selvedge_telemetry::PortRow;
use selvedge_units::{Bytes, Instant, Rate};
use selvedge_wire::Pfc;

/// Queues in order of arrival, one for each port.
#[derive(Debug)]
pub(crate) struct Fifo {
    queues: Vec<Queue>,
    /// Memory of frames that have left.
    spare: Vec<Vec<u8>>,
    lent: Vec<u8>,
    rate: Rate,
    /// Bytes that a queue holds.
    limit: usize,
    /// Frames that found a queue full.
    pub(crate) full: u64,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Time at which the last bit of the first frame has left.
    due: Instant,
}

impl Fifo {
    pub(crate) fn new(ports: usize, rate: Rate, limit: usize) -> Self {
        let queues = (0..ports).map(|_| Queue::default()).collect();
        Self { queues, spare: Vec::new(), lent: Vec::new(), rate, limit, full: 0 }
    }
}

impl Engine for Fifo {
    fn handle_packet(&mut self, now: Instant, arrival: Arrival<'_>) {
        let queue = &mut self.queues[arrival.to];
        if queue.bytes + arrival.frame.len() > self.limit {
            self.full += 1;
            return;
        }
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(arrival.frame);
        if queue.frames.is_empty() {
            queue.due = queue.due.max(now) + self.rate.time_for(Bytes::new(frame.len() as u64));
        }
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
    }

    fn handle_pause(&mut self, _: Instant, _: usize, _: &Pfc) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Leaving<'_>> {
        let is_due = |queue: &&mut Queue| !queue.frames.is_empty() && queue.due <= now;
        let (port, queue) = self.queues.iter_mut().enumerate().find(|(_, queue)| is_due(queue))?;
        let frame = queue.frames.pop_front()?;
        queue.bytes -= frame.len();
        if let Some(next) = queue.frames.front() {
            queue.due += self.rate.time_for(Bytes::new(next.len() as u64));
        }
        self.spare.push(std::mem::replace(&mut self.lent, frame));
        Some(Leaving { port, frame: &self.lent })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.queues.iter().filter(|queue| !queue.frames.is_empty()).map(|queue| queue.due).min()
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn sample(&mut self, _: Instant, _: &mut Vec<PortRow>) {}

    fn visit_counts(&self, each: &mut dyn FnMut(&str, &'static str, u64)) {
        each("", "full", self.full);
    }
}
