//! The destination ToR: in which order packets reach their host (section III-C2, algorithms 1 and 2).
//!
//! The numbers C1 to C17 name places where the printed algorithm cannot be what was meant, or the text leaves
//! something open; the folder's README lists them, and `printed.rs` shows what each misprint breaks.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_units::{Instant, Psn};
use selvedge_wire::Request;

use super::flows::{Flows, Lasting};
use super::{Flow, Occupancy, Passing, Settings, WINDOW};

/// What to do with the packet that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardingDecision {
    /// Let it go on.
    Forward,
    /// It is held here.
    Held,
    /// It has been here before: drop it.
    Drop,
}

/// What else a destination ToR wants done, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tracked<H> {
    /// Forward a packet that was held.
    Release(H),
    /// Drop a packet that was held.
    Discard(H),
    /// Send this to the source ToR of a flow.
    Request(Flow, Request),
}

/// What a destination ToR has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DstTorStats {
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Packets that were held.
    pub held: u64,
    /// Times that it gave up and left recovery to the NICs.
    pub given_up: u64,
    /// Duplicates that came after all: dropped.
    pub surplus: u64,
    /// Packets of flows for which there was no state.
    pub untracked: u64,
}

/// One destination ToR.
#[derive(Debug)]
pub struct DstTor<H> {
    settings: Settings,
    flows: Flows<Track>,
    windows: Windows<H>,
    /// When to ask, which flow, and for which gap.
    due: BinaryHeap<Reverse<(Instant, u32, u64)>>,
    /// Gaps so far.
    gaps: u64,
    /// By port.
    held: Vec<Occupancy>,
    output: VecDeque<Tracked<H>>,
    stats: DstTorStats,
}

/// What is kept of a flow: 24 + 128 + 2 bits in the paper's accounting.
#[derive(Debug)]
struct Track {
    expected: Psn,
    /// Bit `i`: the packet `expected + 1 + i` is held.
    arrived: u128,
    state: State,
    /// Traffic class of its packets.
    class: u8,
    port: u16,
    /// Its window, while anything is held.
    window: u32,
    /// Number of its present gap, by which requests that are due are told from stale ones.
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
    /// A ToR with this many ports.
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

    /// A data packet has come out of the fabric, and the buffer has room for it; `is_copy` if a source ToR sent it
    /// again. A packet that finds no room has not arrived: its driver drops it and says nothing here, so that it is
    /// missed.
    #[inline]
    pub fn on_data(
        &mut self,
        now: Instant,
        flow: Flow,
        psn: Psn,
        packet: Passing<H>,
        is_copy: bool,
    ) -> ForwardingDecision {
        let Some(at) = self.flows.meet(now, flow, || Track::of(psn, &packet)) else {
            self.stats.untracked += 1;
            return ForwardingDecision::Forward;
        };
        let track = &mut self.flows[at];
        if is_copy && track.state == State::Waiting {
            // It waits "until the sender re-sends": the NICs go back already. Taken for that, a copy would have them go
            // back again, to what follows it (C4).
            self.stats.surplus += 1;
            return ForwardingDecision::Drop;
        }
        // Serial numbers of 24 bits (C9).
        match psn.ahead_of(track.expected) {
            0 => {
                track.expected = psn.next();
                if track.state != State::Ordered {
                    self.close_gap(now, at);
                }
                ForwardingDecision::Forward
            }
            1.. if track.state == State::Waiting => ForwardingDecision::Forward, // C3
            ahead @ 1.. => self.on_early(now, at, ahead as u32, packet),
            // The NIC must acknowledge what its peer sends again (C4), but has not asked for copies.
            _ if is_copy => {
                self.stats.surplus += 1;
                ForwardingDecision::Drop
            }
            _ => ForwardingDecision::Forward,
        }
    }

    /// The traffic class of a flow's packets. Copies come at high priority and leave in this one: they would
    /// overtake what was forwarded before them and still waits for their host.
    pub fn class_of(&self, flow: Flow) -> Option<u8> {
        self.flows.find(flow).map(|at| self.flows[at].class)
    }

    /// The source ToR of a flow has nothing to send for `psn`.
    pub fn on_unfulfilled(&mut self, now: Instant, flow: Flow, psn: Psn) {
        let Some(at) = self.flows.find(flow) else { return };
        // An answer that is late means nothing (C10).
        if self.flows[at].state == State::ReTx && self.flows[at].expected == psn {
            self.give_up(now, at);
        }
    }

    /// Repeats the requests that are due.
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

    /// When to call [`DstTor::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// What else it wants done.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Tracked<H>> {
        self.output.pop_front()
    }

    /// What it has done so far.
    pub fn stats(&self) -> &DstTorStats {
        &self.stats
    }
    /// What is held, by port.
    pub fn occupancy(&self) -> &[Occupancy] {
        &self.held
    }
    /// Flows that it keeps state of.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// A packet has come `ahead` of the expected one.
    #[inline(never)]
    fn on_early(&mut self, now: Instant, at: usize, ahead: u32, packet: Passing<H>) -> ForwardingDecision {
        let Passing { handle, bytes, port, room, .. } = packet;
        let track = &mut self.flows[at];
        let bit = ahead - 1;
        if bit < WINDOW && track.arrived >> bit & 1 == 1 {
            return ForwardingDecision::Drop; // C7
        }
        let most = self.settings.buffer.min(room);
        let held = self.held[usize::from(port)].bytes();
        // Beyond the bitmap (C8), or no buffer left: the NICs' turn.
        if bit >= WINDOW || held + u64::from(bytes) > most {
            self.give_up(now, at);
            return ForwardingDecision::Forward;
        }
        if track.window == NONE {
            track.window = self.windows.open();
        }
        // Something is missing that nobody has asked for: behind all that has arrived, or the first of all (C12).
        let behind = u128::BITS - track.arrived.leading_zeros();
        let hole = if track.state == State::Ordered { Some(0) } else { (bit > behind).then_some(behind + 1) };
        track.arrived |= 1 << bit; // C1
        self.windows.put(track.window, track.expected.plus(ahead), (handle, bytes));
        track.state = State::ReTx;
        self.held[usize::from(port)].add(now, bytes);
        self.stats.held += 1;
        if let Some(hole) = hole {
            self.open_gap(now, at, hole);
        }
        ForwardingDecision::Held
    }

    /// Something is missing that was not missed before, so far behind the expected packet.
    fn open_gap(&mut self, now: Instant, at: usize, behind: u32) {
        let asks = self.settings.patience.is_zero();
        if asks {
            self.request(at, behind);
        }
        // What belongs to a gap that others have opened is asked for again with that.
        if !asks || behind == 0 {
            let after = if asks { self.settings.interval } else { self.settings.patience };
            self.gaps += 1;
            self.flows[at].gap = self.gaps;
            self.due.push(Reverse((now.saturating_add(after), at as u32, self.gaps)));
        }
    }

    /// Asks for what is missing from so far behind the expected packet on: what is missing before has been asked for.
    fn request(&mut self, at: usize, behind: u32) {
        let track = &self.flows[at];
        let request = Request::new(track.expected.plus(behind), track.arrived >> behind);
        self.output.push_back(Tracked::Request(self.flows.flow(at), request));
        self.stats.requests += 1;
    }

    /// The expected packet has come: what follows it may go, too (algorithm 1). Nested here (C2).
    #[inline(never)]
    fn close_gap(&mut self, now: Instant, at: usize) {
        let track = &mut self.flows[at];
        while track.arrived & 1 == 1 {
            // By number, not in the order of arrival (C6).
            let (handle, bytes) = self.windows.take(track.window, track.expected);
            self.held[usize::from(track.port)].remove(now, bytes);
            self.output.push_back(Tracked::Release(handle));
            track.expected = track.expected.next();
            track.arrived >>= 1;
        }
        if track.arrived == 0 {
            track.state = State::Ordered;
            self.windows.close(&mut track.window);
        } else {
            // Bit 0 stood for the packet that is expected now, which is missing (C5).
            track.arrived >>= 1;
        }
    }

    /// Leaves recovery to the NICs: the first packet that was held makes the receiver ask for the missing one;
    /// it would refuse the others.
    fn give_up(&mut self, now: Instant, at: usize) {
        let track = &mut self.flows[at];
        track.state = State::Waiting;
        self.stats.given_up += 1;
        let mut is_first = true;
        while track.arrived != 0 {
            let bit = track.arrived.trailing_zeros();
            track.arrived &= track.arrived - 1;
            let (handle, bytes) = self.windows.take(track.window, track.expected.plus(bit + 1));
            self.held[usize::from(track.port)].remove(now, bytes);
            self.output.push_back(if is_first { Tracked::Release(handle) } else { Tracked::Discard(handle) });
            is_first = false;
        }
        self.windows.close(&mut track.window);
    }
}

impl Track {
    /// Of a flow whose first packet this is, as far as is known here. Queue pairs begin at 0, as the ToR has seen
    /// when they were set up; one that is far beyond that was forgotten in between.
    fn of<H>(psn: Psn, packet: &Passing<H>) -> Self {
        let expected = if psn.get() <= WINDOW { Psn::new(0) } else { psn };
        let (class, port) = (packet.class, packet.port);
        Self { expected, arrived: 0, state: State::Ordered, class, port, window: NONE, gap: 0 }
    }
}

/// Held packets of flows that have a gap: a ring of [`WINDOW`] places each, by PSN.
#[derive(Debug)]
struct Windows<H> {
    places: Vec<Option<(H, u32)>>,
    free: Vec<u32>,
}

/// No window.
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
    fn at(&mut self, window: u32, psn: Psn) -> &mut Option<(H, u32)> {
        &mut self.places[(window * WINDOW + psn.get() % WINDOW) as usize]
    }
    fn put(&mut self, window: u32, psn: Psn, packet: (H, u32)) {
        *self.at(window, psn) = Some(packet);
    }
    fn take(&mut self, window: u32, psn: Psn) -> (H, u32) {
        self.at(window, psn).take().expect("its bit is set")
    }
}
