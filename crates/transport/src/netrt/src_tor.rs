//! The source ToR: copies of what passed, sent again on request (sections III-C1 and III-C3).

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_units::{Bytes, Duration, Instant, Psn, Rate};
use selvedge_wire::Request;

use super::duplicates::{Duplicates, Limits, MOST_REQUESTS, Ticket};
use super::flows::{Flows, Lasting};
use super::{Flow, Occupancy, Passing, Settings, WINDOW};

/// What a source ToR has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SrcTorStats {
    /// Requests that came.
    pub requests: u64,
    /// Of these, how many were answered "unfulfilled".
    pub unfulfilled: u64,
    /// Duplicates sent.
    pub retransmissions: u64,
    /// Times that a sender was paused.
    pub pauses: u64,
}

/// One source ToR.
#[derive(Debug)]
pub struct SrcTor<H> {
    settings: Settings,
    flows: Flows<Requested>,
    ports: Vec<Port<H>>,
    /// When each port that has something to send may send it; once each.
    due: BinaryHeap<Reverse<(Instant, u16)>>,
    /// Ports whose hosts may have to be paused, or may go on; once each.
    changed: Vec<u16>,
    /// Bytes of all duplicates.
    kept: u64,
    stats: SrcTorStats,
}

/// How often a flow was asked for (section III-C1: 32 bits).
#[derive(Debug)]
struct Requested(u32);

impl Lasting for Requested {
    fn is_needed(&self) -> bool {
        false
    }
}

/// What belongs to one host.
#[derive(Debug)]
struct Port<H> {
    duplicates: Duplicates<H>,
    /// To be sent, in the order in which they were asked for.
    queue: VecDeque<Ticket>,
    /// Bytes of these: N of the rate law (C13).
    requested: u64,
    /// When the next of them may go.
    next_at: Instant,
    line_rate: Rate,
    is_paused: bool,
    /// Whether it is among the ports that have changed.
    has_changed: bool,
}

impl<H: Copy> SrcTor<H> {
    /// A ToR whose ports have these line rates.
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

    /// A data packet has come from a host and goes into the fabric: keeps a duplicate of it. `packet.handle`
    /// stands for the duplicate.
    #[inline]
    pub fn on_data(&mut self, now: Instant, flow: Flow, psn: Psn, packet: &Passing<H>) {
        let Some(at) = self.flows.meet(now, flow, || Requested(0)) else { return };
        let requests = self.flows[at].0;
        let port = &mut self.ports[usize::from(packet.port)];
        let lifetime = self.settings.lifetime.map_or(u64::MAX, Duration::as_ps);
        let oldest = Instant::from_ps(now.as_ps().saturating_sub(lifetime));
        let before = port.duplicates.occupancy.bytes();
        let lost = port.duplicates.add(now, (flow, requests), psn, packet, Limits { most: self.settings.pool, oldest });
        self.kept = self.kept - before + port.duplicates.occupancy.bytes();
        if lost > 0 {
            port.requested -= lost;
            self.note_change(packet.port);
        }
    }

    /// Where ports share a buffer that regular traffic needs: evicts duplicates, of whoever has most, until all
    /// together have at most `room` bytes.
    pub fn yield_to(&mut self, now: Instant, room: u64) {
        while self.kept > room {
            let ports = (0..).zip(&self.ports);
            let fullest = ports.max_by_key(|(number, port)| (port.duplicates.occupancy.bytes(), Reverse(*number)));
            let Some((number, _)) = fullest else { return };
            let port = &mut self.ports[usize::from(number)];
            let before = port.duplicates.occupancy.bytes();
            let lost = port.duplicates.shrink(now, before - 1);
            port.requested -= lost;
            self.kept = self.kept - before + port.duplicates.occupancy.bytes();
            self.note_change(number);
        }
    }

    /// A destination ToR lacks something of a flow whose host is at `port`. Returns the answer "unfulfilled", if
    /// there is no duplicate of the packet that is missing first; then nothing is sent again.
    pub fn on_request(&mut self, now: Instant, flow: Flow, port: u16, request: &Request) -> Option<Psn> {
        self.stats.requests += 1;
        let Some(at) = self.flows.meet(now, flow, || Requested(0)) else { return self.refuse(request) };
        let requests = (self.flows[at].0 + 1).min(MOST_REQUESTS);
        self.flows[at].0 = requests;
        let Port { duplicates, queue, requested, next_at, .. } = &mut self.ports[usize::from(port)];
        let was_empty = queue.is_empty();
        duplicates.promote(flow, requests);
        if !duplicates.has((flow, requests), request.expected()) {
            // Its destination will leave recovery to the NICs (figure 3b), and has no use for what comes behind.
            *requested -= duplicates.spare((flow, requests), request.expected());
            self.note_change(port);
            return self.refuse(request);
        }
        let mut asked = Holes::of(request);
        let is_asked = |psn| asked.take(psn);
        // Who asks so soon cannot know yet what became of a copy.
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

    /// The next duplicate that may be sent now, and the port of its host.
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

    /// When to call [`SrcTor::poll_transmit`] again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// A port whose host shall be paused, or may go on (`false`); to be asked after every other call.
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

    /// Something waits for a port to be sent, or no longer does.
    fn note_change(&mut self, number: u16) {
        let port = &mut self.ports[usize::from(number)];
        if !port.has_changed {
            port.has_changed = true;
            self.changed.push(number);
        }
    }

    /// What it has done so far.
    pub fn stats(&self) -> &SrcTorStats {
        &self.stats
    }
    /// Bytes of all duplicates.
    pub fn kept(&self) -> u64 {
        self.kept
    }
    /// Bytes of the duplicates of one port.
    pub fn kept_of(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].duplicates.occupancy.bytes()
    }
    /// Duplicates, by port.
    pub fn occupancy(&self) -> impl Iterator<Item = &Occupancy> {
        self.ports.iter().map(|port| &port.duplicates.occupancy)
    }
    /// Flows that it keeps state of.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}

impl<H: Copy> Port<H> {
    /// The next duplicate that may be sent now; `requests` says how often a flow was asked for.
    fn poll_transmit(&mut self, now: Instant, settings: &Settings, requests: impl Fn(Flow) -> u32) -> Option<H> {
        while self.next_at <= now {
            let ticket = self.queue.pop_front()?;
            // The rate that what waits asks for, this one included.
            let (rate, _) = settings.rate(self.requested, self.line_rate);
            // Regular traffic has needed its place: the next request will tell.
            let Some((handle, bytes)) = self.duplicates.redeem(now, ticket, &requests) else { continue };
            self.requested -= u64::from(bytes);
            self.next_at = now + rate.time_for(Bytes::new(u64::from(bytes)));
            return Some(handle);
        }
        None
    }

    /// From congestion on until the burst has ended (C16).
    fn shall_pause(&self, settings: &Settings) -> bool {
        let congested = settings.rate(self.requested, self.line_rate).1;
        settings.pause && (congested || self.is_paused && self.requested > 0)
    }
}

/// The packets that a request names as missing: the expected one, and every gap before the last that has
/// arrived.
struct Holes {
    expected: Psn,
    /// Bit `i`: `expected + 1 + i`.
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

    /// Whether a packet is one of them; each once.
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
