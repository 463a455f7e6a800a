//! Random arrivals of applications' requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use selvedge_units::{Domain, Duration, Instant, Rng};

use super::messages::Messages;
use crate::workload::build::BuildEnv;
use crate::workload::flow::stream;
use crate::workload::poisson::exponential;
use crate::workload::{Extent, FlowSpec, Generator};

/// Messages of all connections in order of time; of each connection, one waits in a heap.
#[derive(Clone)]
pub(super) struct Arrivals {
    messages: Messages,
    gaps: Vec<Gap>,
    most: Option<u64>,
    /// Time of each connection's next message.
    next: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// Random gap between messages of one connection.
#[derive(Clone)]
struct Gap {
    mean_ps: f64,
    rng: Rng,
}

impl Arrivals {
    /// Creates the arrivals of hosts that each move `load` of their link's rate, from `start` on; each connection has
    /// at most `most` messages.
    pub(super) fn new(messages: Messages, load: f64, start: Duration, most: Option<u64>, env: &BuildEnv<'_>) -> Self {
        let gap = |(n, per_second): (u32, f64)| Gap {
            mean_ps: 1e12 / per_second,
            rng: stream(env.seed, Domain::FlowArrival, messages.first(), n),
        };
        let mut gaps: Vec<Gap> = (0..).zip(per_second(&messages, load, env)).map(gap).collect();
        let first = |(n, gap): (u32, &mut Gap)| Reverse((gap.after(Instant::ZERO + start), n));
        let next = (0..).zip(&mut gaps).map(first).collect();
        Self { messages, gaps, most, next }
    }
}

/// Returns the mean number of messages of each connection per second: hosts divide their load evenly.
pub(super) fn per_second(messages: &Messages, load: f64, env: &BuildEnv<'_>) -> Vec<f64> {
    let connections = messages.connections();
    let mut held = vec![0u32; env.graph.hosts.len()];
    connections.iter().for_each(|connection| held[connection.src.index()] += 1);
    let of = |connection: &super::Connection| {
        let host = connection.src;
        let rate = env.graph.links[env.routes.ports().of_host(host).link as usize].rate.as_bps() as f64;
        load * rate / 8.0 / messages.mean() / f64::from(held[host.index()])
    };
    connections.iter().map(of).collect()
}

impl Generator for Arrivals {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let Reverse((start, n)) = self.next.pop()?;
        let connection = n as usize;
        let message = self.messages.next(connection, start);
        if self.most.is_none_or(|most| self.messages.made(connection) < most) {
            self.next.push(Reverse((self.gaps[connection].after(start), n)));
        }
        Some(message)
    }
    fn extent(&self) -> Extent {
        let Some(most) = self.most else { return Extent::Endless };
        let left = |n: usize| most - self.messages.made(n);
        Extent::Known((0..self.gaps.len()).map(left).fold(0, u64::saturating_add))
    }
    fn boxed_clone(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}

impl Gap {
    fn after(&mut self, previous: Instant) -> Instant {
        exponential(&mut self.rng, self.mean_ps, previous)
    }
}
