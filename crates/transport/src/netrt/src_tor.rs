//! The source ToR: copies of passing packets, retransmitted on request (sections III-C1 and III-C3).

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_units::{Bytes, Duration, Instant, Psn, Rate};
use selvedge_wire::Request;

use super::duplicates::{Duplicates, Limits, MOST_REQUESTS, Ticket};
use super::flows::{Flows, Lasting};
use super::{Flow, Occupancy, Passing, Settings, WINDOW};

/// Counters of a source ToR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SrcTorStats {
    /// Requests received.
    pub requests: u64,
    /// Requests answered "unfulfilled".
    pub unfulfilled: u64,
    /// Duplicates sent.
    pub retransmissions: u64,
    /// Number of times that a sender was paused.
    pub pauses: u64,
}

/// A source ToR.
#[derive(Debug)]
pub struct SrcTor<H> {
    settings: Settings,
    flows: Flows<Requested>,
    ports: Vec<Port<H>>,
    /// Ports with duplicates to send, and the time at which each may send; once each.
    due: BinaryHeap<Reverse<(Instant, u16)>>,
    /// Ports whose pause state may have changed; once each.
    changed: Vec<u16>,
    /// Total bytes of all duplicates.
    kept: u64,
    stats: SrcTorStats,
}

/// Number of requests for a flow (section III-C1: 32 bits).
#[derive(Debug)]
struct Requested(u32);

impl Lasting for Requested {
    fn is_needed(&self) -> bool {
        false
    }
}

/// State of one host's port.
#[derive(Debug)]
struct Port<H> {
    duplicates: Duplicates<H>,
    /// Duplicates to send, in the order of their requests.
    queue: VecDeque<Ticket>,
    /// Bytes of the duplicates in the queue: N of the rate law (C13).
    requested: u64,
    /// Time at which the next duplicate may be sent.
    next_at: Instant,
    line_rate: Rate,
    is_paused: bool,
    /// Whether the port is among the changed ports.
    has_changed: bool,
}

impl<H: Copy> SrcTor<H> {
    /// Creates a ToR whose ports have these line rates.
    pub fn new(settings: Settings, rates: impl IntoIterator<Item = Rate>) -> Self {
        let port = |line_rate| Port {
            duplicates: Duplicates::new(),
            queue: VecDeque::new(),
            requested: 0,
            next_at: Instant::ZERO,
            line_rate,
            is_paused: false,
            has_changed: false,
        };
        Self {
            settings,
            flows: Flows::new(settings.flows, settings.idle),
            ports: rates.into_iter().map(port).collect(),
            due: BinaryHeap::new(),
            changed: Vec::new(),
            kept: 0,
            stats: SrcTorStats::default(),
        }
    }

    /// Handles a data packet from a host into the fabric: keeps a duplicate of it. `packet.handle` refers to the
    /// duplicate. Handles of duplicates that are not kept, or no longer, are passed to `freed`.
    #[inline]
    pub fn handle_data(&mut self, now: Instant, flow: Flow, psn: Psn, packet: &Passing<H>, freed: &mut impl FnMut(H)) {
        let Some(at) = self.flows.meet(now, flow, || Requested(0)) else { return freed(packet.handle) };
        let requests = self.flows[at].0;
        let port = &mut self.ports[usize::from(packet.port)];
        let lifetime = self.settings.lifetime.map_or(u64::MAX, Duration::as_ps);
        let oldest = Instant::from_ps(now.as_ps().saturating_sub(lifetime));
        let before = port.duplicates.occupancy.bytes();
        let limits = Limits { most: self.settings.pool, oldest };
        let lost = port.duplicates.add(now, (flow, requests), psn, packet, limits, freed);
        self.kept = self.kept - before + port.duplicates.occupancy.bytes();
        if lost > 0 {
            port.requested -= lost;
            self.note_change(packet.port);
        }
    }

    /// Evicts duplicates, those of the fullest port first, until all together have at most `room` bytes: for ports that
    /// share a buffer with regular traffic. The evicted handles are passed to `freed`.
    pub fn yield_to(&mut self, now: Instant, room: u64, freed: &mut impl FnMut(H)) {
        while self.kept > room {
            let ports = (0..).zip(&self.ports);
            let fullest = ports.max_by_key(|(number, port)| (port.duplicates.occupancy.bytes(), Reverse(*number)));
            let Some((number, _)) = fullest else { return };
            let port = &mut self.ports[usize::from(number)];
            let before = port.duplicates.occupancy.bytes();
            let lost = port.duplicates.shrink(now, before - 1, freed);
            port.requested -= lost;
            self.kept = self.kept - before + port.duplicates.occupancy.bytes();
            self.note_change(number);
        }
    }

    /// Handles a destination ToR's request for missing packets of a flow whose host is at `port`. Returns the answer
    /// "unfulfilled" if there is no duplicate of the first missing packet; then nothing is retransmitted.
    pub fn handle_request(&mut self, now: Instant, flow: Flow, port: u16, request: &Request) -> Option<Psn> {
        self.stats.requests += 1;
        let Some(at) = self.flows.meet(now, flow, || Requested(0)) else { return self.refuse(request) };
        let requests = (self.flows[at].0 + 1).min(MOST_REQUESTS);
        self.flows[at].0 = requests;
        let Port { duplicates, queue, requested, next_at, .. } = &mut self.ports[usize::from(port)];
        let was_empty = queue.is_empty();
        duplicates.promote(flow, requests);
        if !duplicates.has((flow, requests), request.expected()) {
            // The destination ToR will leave recovery to the NICs (figure 3b), and cannot use later packets.
            *requested -= duplicates.spare((flow, requests), request.expected());
            self.note_change(port);
            return self.refuse(request);
        }
        let mut asked = Holes::of(request);
        let is_asked = |psn| asked.take(psn);
        // A request this soon cannot reflect the fate of a copy sent recently.
        let recently = Instant::from_ps(now.as_ps().saturating_sub(self.settings.quiet.as_ps()));
        duplicates.want((flow, requests), recently, is_asked, |ticket, bytes| {
            queue.push_back(ticket);
            *requested += u64::from(bytes);
        });
        if was_empty && !queue.is_empty() {
            self.due.push(Reverse((*next_at, port)));
        }
        self.note_change(port);
        None
    }

    fn refuse(&mut self, request: &Request) -> Option<Psn> {
        self.stats.unfulfilled += 1;
        Some(request.expected())
    }

    /// Returns the next duplicate that may be sent now, and the port of its host.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(u16, H)> {
        while let Some(&Reverse((at, number))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let port = &mut self.ports[usize::from(number)];
            let requests = |flow| self.flows.find(flow).map_or(0, |at| self.flows[at].0);
            let handle = port.poll_transmit(now, &self.settings, requests);
            if !port.queue.is_empty() {
                self.due.push(Reverse((port.next_at, number)));
            }
            self.note_change(number);
            if let Some(handle) = handle {
                self.stats.retransmissions += 1;
                return Some((number, handle));
            }
        }
        None
    }

    /// Returns the time at which [`SrcTor::poll_transmit`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a port whose host is to be paused (`true`) or resumed (`false`); to be called after every other call
    /// until `None`.
    pub fn poll_pause(&mut self) -> Option<(u16, bool)> {
        while let Some(number) = self.changed.pop() {
            let port = &mut self.ports[usize::from(number)];
            port.has_changed = false;
            let shall = port.shall_pause(&self.settings);
            if shall != port.is_paused {
                port.is_paused = shall;
                self.stats.pauses += u64::from(shall);
                return Some((number, shall));
            }
        }
        None
    }

    /// Records that a port's queue may have changed.
    fn note_change(&mut self, number: u16) {
        let port = &mut self.ports[usize::from(number)];
        if !port.has_changed {
            port.has_changed = true;
            self.changed.push(number);
        }
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> &SrcTorStats {
        &self.stats
    }
    /// Returns the total bytes of all duplicates.
    pub fn kept(&self) -> u64 {
        self.kept
    }
    /// Returns the bytes of the duplicates of one port.
    pub fn kept_of(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].duplicates.occupancy.bytes()
    }
    /// Returns the occupancy by duplicates, in the order of ports.
    pub fn occupancy(&self) -> impl Iterator<Item = &Occupancy> {
        self.ports.iter().map(|port| &port.duplicates.occupancy)
    }
    /// Returns the number of flows with state.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}

impl<H: Copy> Port<H> {
    /// Returns the next duplicate that may be sent now; `requests` returns how often a flow was requested.
    fn poll_transmit(&mut self, now: Instant, settings: &Settings, requests: impl Fn(Flow) -> u32) -> Option<H> {
        while self.next_at <= now {
            let ticket = self.queue.pop_front()?;
            // The rate for the waiting bytes, including this duplicate.
            let (rate, _) = settings.rate(self.requested, self.line_rate);
            // The duplicate was evicted for regular traffic; the next request will find it missing.
            let Some((handle, bytes)) = self.duplicates.redeem(now, ticket, &requests) else { continue };
            self.requested -= u64::from(bytes);
            self.next_at = now + rate.time_for(Bytes::new(u64::from(bytes)));
            return Some(handle);
        }
        None
    }

    /// Returns whether the host is to be paused: from congestion on until the burst has ended (C16).
    fn shall_pause(&self, settings: &Settings) -> bool {
        let congested = settings.rate(self.requested, self.line_rate).1;
        settings.pause && (congested || self.is_paused && self.requested > 0)
    }
}

/// The packets that a request reports as missing: the expected one, and every gap before the last arrived packet.
struct Holes {
    expected: Psn,
    /// Missing packets; bit `i` is `expected + 1 + i`.
    missing: u128,
    first: bool,
}

impl Holes {
    fn of(request: &Request) -> Self {
        let below_last = match request.arrived().leading_zeros() {
            u128::BITS => 0,
            zeros => u128::MAX >> zeros,
        };
        Self { expected: request.expected(), missing: !request.arrived() & below_last, first: true }
    }

    /// Returns whether a packet is missing, once for each packet.
    fn take(&mut self, psn: Psn) -> bool {
        match psn.ahead_of(self.expected) {
            0 => core::mem::take(&mut self.first),
            ahead @ 1.. if ahead as u32 <= WINDOW => {
                let bit = 1 << (ahead - 1);
                let is_missing = self.missing & bit != 0;
                self.missing &= !bit;
                is_missing
            }
            _ => false,
        }
    }
}
