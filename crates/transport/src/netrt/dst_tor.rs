//! The destination ToR: puts packets in order before they reach their host (section III-C2, algorithms 1 and 2).
//!
//! The numbers C1 to C17 mark places where the printed algorithm cannot be as intended, or the text leaves something
//! open; the folder's README lists them, and `printed.rs` shows the effect of each misprint.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_units::{Instant, Psn};
use selvedge_wire::Request;

use super::flows::{Flows, Lasting};
use super::{Flow, Occupancy, Passing, Settings, WINDOW};

/// The decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardingDecision {
    /// Forward the packet.
    Forward,
    /// The packet is held in the ToR.
    Held,
    /// Drop the packet, a duplicate.
    Drop,
}

/// An action requested by a destination ToR; to be performed in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tracked<H> {
    /// Forward a held packet.
    Release(H),
    /// Drop a held packet.
    Discard(H),
    /// Send a request to the source ToR of a flow.
    Request(Flow, Request),
}

/// Counters of a destination ToR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DstTorStats {
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Packets that were held.
    pub held: u64,
    /// Number of times that recovery was left to the NICs.
    pub given_up: u64,
    /// Unneeded copies, which were dropped.
    pub surplus: u64,
    /// Packets of flows without state.
    pub untracked: u64,
    /// Number of times that a flow began anew.
    pub restarts: u64,
}

/// A destination ToR.
#[derive(Debug)]
pub struct DstTor<H> {
    settings: Settings,
    flows: Flows<Track>,
    windows: Windows<H>,
    /// Due requests: time, flow, and gap number.
    due: BinaryHeap<Reverse<(Instant, u32, u64)>>,
    /// Number of gaps so far.
    gaps: u64,
    /// Occupancy by held packets, indexed by port.
    held: Vec<Occupancy>,
    output: VecDeque<Tracked<H>>,
    stats: DstTorStats,
}

/// State of a flow: 24 + 128 + 2 bits in the paper's accounting.
#[derive(Debug)]
struct Track {
    expected: Psn,
    /// Held packets; bit `i` is `expected + 1 + i`.
    arrived: u128,
    state: State,
    /// Traffic class of the flow's packets.
    class: u8,
    port: u16,
    /// Window of the flow's held packets, [`NONE`] if nothing is held.
    window: u32,
    /// Number of the present gap, which distinguishes due requests from stale ones.
    gap: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ordered,
    ReTx,
    Waiting,
}

impl Lasting for Track {
    fn is_needed(&self) -> bool {
        self.state == State::ReTx
    }
}

impl<H: Copy> DstTor<H> {
    /// Creates a ToR with `ports` ports.
    pub fn new(settings: Settings, ports: usize) -> Self {
        Self {
            settings,
            flows: Flows::new(settings.flows, settings.idle),
            windows: Windows::default(),
            due: BinaryHeap::new(),
            gaps: 0,
            held: alloc::vec![Occupancy::default(); ports],
            output: VecDeque::new(),
            stats: DstTorStats::default(),
        }
    }

    /// Handles a data packet from the fabric for which the buffer has room; `is_copy` if a source ToR retransmitted it.
    /// The driver drops packets without room and does not report them, so that they count as missing.
    #[inline]
    pub fn handle_data(
        &mut self,
        now: Instant,
        flow: Flow,
        psn: Psn,
        mut packet: Passing<H>,
        is_copy: bool,
    ) -> ForwardingDecision {
        packet.psns = packet.psns.max(1);
        let Some(at) = self.flows.meet(now, flow, || Track::of(&packet)) else {
            self.stats.untracked += 1;
            return ForwardingDecision::Forward;
        };
        let track = &mut self.flows[at];
        if is_copy && track.state == State::Waiting {
            // In this state the ToR waits "until the sender re-sends": the NICs go back already. A copy mistaken for
            // that would make them go back again, to the packet after it (C4).
            self.stats.surplus += 1;
            return ForwardingDecision::Drop;
        }
        // Serial numbers of 24 bits (C9).
        match psn.ahead_of(track.expected) {
            0 => {
                if track.state == State::Ordered {
                    track.expected = psn.plus(packet.psns);
                } else {
                    self.close_gap(now, at, packet.psns);
                }
                ForwardingDecision::Forward
            }
            ahead if self.settings.restarts && track.is_beyond(ahead) => {
                (track.expected, track.state) = (psn.plus(packet.psns), State::Ordered);
                self.stats.restarts += 1;
                ForwardingDecision::Forward
            }
            1.. if track.state == State::Waiting => ForwardingDecision::Forward, // C3
            ahead @ 1.. => self.on_early(now, at, ahead as u32, packet),
            // The NIC must acknowledge its peer's retransmissions (C4), but has not requested copies.
            _ if is_copy => {
                self.stats.surplus += 1;
                ForwardingDecision::Drop
            }
            _ => ForwardingDecision::Forward,
        }
    }

    /// Returns the traffic class of a flow's packets. Copies arrive at high priority and leave in this class: otherwise
    /// they would overtake packets forwarded earlier that still wait for the host.
    pub fn class_of(&self, flow: Flow) -> Option<u8> {
        self.flows.find(flow).map(|at| self.flows[at].class)
    }

    /// Handles the source ToR's answer that it has nothing to retransmit for `psn`.
    pub fn on_unfulfilled(&mut self, now: Instant, flow: Flow, psn: Psn) {
        let Some(at) = self.flows.find(flow) else { return };
        // A late answer is ignored (C10).
        if self.flows[at].state == State::ReTx && self.flows[at].expected == psn {
            self.give_up(now, at);
        }
    }

    /// Repeats the due requests.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((at, flow, gap))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let flow = flow as usize;
            if self.flows[flow].state != State::ReTx || self.flows[flow].gap != gap {
                continue;
            }
            if self.flows.silence(flow, now) > self.settings.idle {
                self.give_up(now, flow);
            } else {
                self.request(flow, 0);
                self.due.push(Reverse((now.saturating_add(self.settings.interval), flow as u32, gap)));
            }
        }
    }

    /// Returns the time at which [`DstTor::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Returns the next requested action.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Tracked<H>> {
        self.output.pop_front()
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> &DstTorStats {
        &self.stats
    }
    /// Returns the occupancy by held packets, indexed by port.
    pub fn occupancy(&self) -> &[Occupancy] {
        &self.held
    }
    /// Returns the number of flows with state.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Handles a packet that is `ahead` of the expected one.
    #[inline(never)]
    fn on_early(&mut self, now: Instant, at: usize, ahead: u32, packet: Passing<H>) -> ForwardingDecision {
        let Passing { handle, bytes, room, psns, .. } = packet;
        let track = &mut self.flows[at];
        let port = track.port;
        let bit = ahead - 1;
        if bit < WINDOW && track.arrived >> bit & 1 == 1 {
            return ForwardingDecision::Drop; // C7
        }
        let most = self.settings.buffer.min(room);
        let held = self.held[usize::from(port)].bytes();
        // Beyond the bitmap (C8), or without buffer: recovery is left to the NICs.
        if bit >= WINDOW || held + u64::from(bytes) > most {
            self.give_up(now, at);
            return ForwardingDecision::Forward;
        }
        if track.window == NONE {
            track.window = self.windows.open();
        }
        // A new gap, not requested yet: after the last arrived packet, or the first gap (C12).
        let behind = u128::BITS - track.arrived.leading_zeros();
        let hole = if track.state == State::Ordered { Some(0) } else { (bit > behind).then_some(behind + 1) };
        // Packets that a Read request asks for do not come this way: they count as arrived (C1).
        let taken = u128::MAX >> (WINDOW - psns.min(WINDOW));
        track.arrived |= taken << bit;
        self.windows.put(track.window, track.expected.plus(ahead), Held { handle, bytes, psns });
        track.state = State::ReTx;
        self.held[usize::from(port)].add(now, bytes);
        self.stats.held += 1;
        if let Some(hole) = hole {
            self.open_gap(now, at, hole);
        }
        ForwardingDecision::Held
    }

    /// Handles a new gap, which begins `behind` packets after the expected one.
    fn open_gap(&mut self, now: Instant, at: usize, behind: u32) {
        let asks = self.settings.patience.is_zero();
        if asks {
            self.request(at, behind);
        }
        // Later holes within an open gap are requested again with that gap's repetitions.
        if !asks || behind == 0 {
            let after = if asks { self.settings.interval } else { self.settings.patience };
            self.gaps += 1;
            self.flows[at].gap = self.gaps;
            self.due.push(Reverse((now.saturating_add(after), at as u32, self.gaps)));
        }
    }

    /// Requests the missing packets from `behind` packets after the expected one; earlier ones have been requested.
    fn request(&mut self, at: usize, behind: u32) {
        let track = &self.flows[at];
        let request = Request::new(track.expected.plus(behind), track.arrived >> behind);
        self.output.push_back(Tracked::Request(self.flows.flow(at), request));
        self.stats.requests += 1;
    }

    /// Handles the arrival of the expected packet in a gap, which takes this many PSNs: releases the packets that
    /// follow in order (algorithm 1), nested here (C2).
    #[inline(never)]
    fn close_gap(&mut self, now: Instant, at: usize, psns: u32) {
        let mut psns = psns;
        loop {
            // Whatever a peer has sent with the PSNs of an answer that goes the other way is in nobody's order.
            for ahead in 1..psns.min(WINDOW + 1) {
                let psn = self.flows[at].expected.plus(ahead);
                if let Some(held) = self.take(now, at, psn) {
                    self.output.push_back(Tracked::Discard(held.handle));
                }
            }
            let track = &mut self.flows[at];
            track.expected = track.expected.plus(psns);
            // Bit 0 is the packet that is expected now.
            track.arrived = track.arrived.checked_shr(psns - 1).unwrap_or(0);
            if track.arrived & 1 == 0 {
                break;
            }
            // In the order of PSNs, not of arrival (C6).
            let expected = track.expected;
            track.arrived >>= 1;
            psns = match self.take(now, at, expected) {
                Some(held) => {
                    self.output.push_back(Tracked::Release(held.handle));
                    held.psns
                }
                None => 1,
            };
        }
        let track = &mut self.flows[at];
        if track.arrived == 0 {
            track.state = State::Ordered;
            self.windows.close(&mut track.window);
        } else {
            // Bit 0 represented the packet that is expected now, which is missing (C5).
            track.arrived >>= 1;
        }
    }

    /// Takes a held packet of a flow out of the buffer.
    fn take(&mut self, now: Instant, at: usize, psn: Psn) -> Option<Held<H>> {
        let track = &self.flows[at];
        let held = (track.window != NONE).then(|| self.windows.take(track.window, psn))??;
        self.held[usize::from(track.port)].remove(now, held.bytes);
        Some(held)
    }

    /// Leaves recovery to the NICs: releases the first held packet, which makes the receiver request the missing one,
    /// and discards the others, which the receiver would refuse.
    fn give_up(&mut self, now: Instant, at: usize) {
        let track = &mut self.flows[at];
        track.state = State::Waiting;
        self.stats.given_up += 1;
        let mut is_first = true;
        while self.flows[at].arrived != 0 {
            let track = &mut self.flows[at];
            let bit = track.arrived.trailing_zeros();
            track.arrived &= track.arrived - 1;
            let psn = track.expected.plus(bit + 1);
            let Some(Held { handle, .. }) = self.take(now, at, psn) else { continue };
            self.output.push_back(if is_first { Tracked::Release(handle) } else { Tracked::Discard(handle) });
            is_first = false;
        }
        self.windows.close(&mut self.flows[at].window);
    }
}

impl Track {
    /// Creates the state of a flow upon the first packet seen.
    fn of<H>(packet: &Passing<H>) -> Self {
        let Passing { class, port, first, .. } = *packet;
        Self { expected: first, arrived: 0, state: State::Ordered, class, port, window: NONE, gap: 0 }
    }

    /// Returns whether a packet is so far from the expected one, `ahead` PSNs, that it is none of this flow as it was.
    /// While packets are held, one far ahead is the flow's own, and makes the ToR give up.
    fn is_beyond(&self, ahead: i32) -> bool {
        self.state != State::ReTx && ahead.unsigned_abs() > WINDOW
    }
}

/// A held packet.
#[derive(Clone, Copy, Debug)]
struct Held<H> {
    handle: H,
    bytes: u32,
    /// PSNs that it takes.
    psns: u32,
}

/// Held packets of flows with a gap: a ring of [`WINDOW`] slots each, indexed by PSN.
#[derive(Debug)]
struct Windows<H> {
    places: Vec<Option<Held<H>>>,
    free: Vec<u32>,
}

/// Stands for no window.
const NONE: u32 = u32::MAX;

impl<H> Default for Windows<H> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<H: Copy> Windows<H> {
    fn open(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let window = self.places.len() / WINDOW as usize;
            self.places.resize(self.places.len() + WINDOW as usize, None);
            window as u32
        })
    }
    fn close(&mut self, window: &mut u32) {
        if *window != NONE {
            self.free.push(*window);
            *window = NONE;
        }
    }
    fn at(&mut self, window: u32, psn: Psn) -> &mut Option<Held<H>> {
        &mut self.places[(window * WINDOW + psn.get() % WINDOW) as usize]
    }
    fn put(&mut self, window: u32, psn: Psn, packet: Held<H>) {
        *self.at(window, psn) = Some(packet);
    }
    fn take(&mut self, window: u32, psn: Psn) -> Option<Held<H>> {
        self.at(window, psn).take()
    }
}
