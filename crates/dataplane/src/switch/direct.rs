//! No switch at all: frames reach their hosts at once.

use std::collections::VecDeque;

use selvedge_telemetry::PortRow;
use selvedge_units::Instant;
use selvedge_wire::Pfc;

use super::engine::{Arrival, Engine, Leaving};

/// Most frames that are kept between two calls of the driver.
const MOST: usize = 4_096;

/// An engine without queues, links and losses: a network to compare others with.
#[derive(Debug, Default)]
pub struct Direct {
    frames: VecDeque<(usize, Vec<u8>)>,
    /// Memory of frames that have left.
    spare: Vec<Vec<u8>>,
    lent: Vec<u8>,
    full: u64,
}

impl Engine for Direct {
    fn handle_packet(&mut self, _: Instant, arrival: Arrival<'_>) {
        if self.frames.len() == MOST {
            self.full += 1;
            return;
        }
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(arrival.frame);
        self.frames.push_back((arrival.to, frame));
    }

    /// Ignores the pause: there is no queue in which frames could wait.
    fn handle_pause(&mut self, _: Instant, _: usize, _: &Pfc) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        let (port, frame) = self.frames.pop_front()?;
        self.spare.push(std::mem::replace(&mut self.lent, frame));
        Some(Leaving { port, frame: &self.lent })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.frames.front().map(|_| Instant::ZERO)
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn sample(&mut self, _: Instant, _: &mut Vec<PortRow>) {}

    fn visit_counts(&self, each: &mut dyn FnMut(&str, &'static str, u64)) {
        each("", "full", self.full);
    }
}
