//! The sending end of a tunnel (section 5; appendix A, figure 26).
//!
//! Design notes.
//! 1. *Cargo* is the owner's handle of a packet. New packets stay with the owner, which reports how many bytes wait
//!    ([`Sender::supply`]) and hands over the first packet when it may be sent. Packets in flight are kept here.
//! 2. *One decision*: [`Sender::next`] decides what to do; [`Sender::poll_transmit`] does it.
//! 3. *Timers.* There is one deadline, which arrivals never move: when it expires, the packets in flight are examined.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Flags};

use super::clock::rebase;
use super::config::EqdsParams;
use super::credit::{Credit, Scale};
use super::loss::Source;
use super::measured::{Measured, PathReport};
use super::round_trips::RoundTrips;
use super::window::{Notice, Window};

/// Most doublings of the timeout of a sender that gets no answers.
pub const MOST_DOUBLINGS: u32 = 6;

/// The sending end of a tunnel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sender<H> {
    state: State,
    /// The first number of this epoch.
    base: u32,
    window: Window<H>,
    credit: Credit,
    /// Packets of earlier epochs that are not known to have arrived; sent first, under new numbers.
    again: VecDeque<(H, u32)>,
    again_bytes: u64,
    /// Bytes of new packets waiting with the owner.
    backlog: u64,
    /// Time until which the receiver's link is busy, at least.
    busy_until: Instant,
    /// Time at which credit was last requested or granted.
    asked_at: Instant,
    /// Whether an unanswered request is to be repeated.
    repeat: bool,
    timeouts: u32,
    /// Time of the first of these timeouts.
    silent_since: Instant,
    /// Credit of the tunnel in bytes, and packets that it may have in flight: those of the settings, or measured.
    span: u32,
    room: u32,
    event: Option<Event>,
    /// Whether `deadline` may be later than the timeout of a packet sent now.
    is_late_deadline: bool,
    /// Time at which to look for lost packets; [`Instant::NEVER`] while nothing is awaited.
    deadline: Instant,
    /// Round trips and paths, if settings need them.
    measured: Option<Box<Measured>>,
}

/// States of a tunnel's sender (figure 26).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// No tunnel; holds the number that the next epoch must exceed, if known.
    Closed(Option<u32>),
    /// The tunnel is being set up: all packets carry SYN.
    SynSent,
    /// The receiver knows the epoch.
    Established,
}

/// Flags of a report that a packet is missing although later ones have arrived, besides those of trimmed packets: the
/// receiver's request to send. Control packets have no other use for that flag.
pub const MISSING: Flags = Flags::NACK.with(Flags::RTS);

/// Delivery notice of a packet: the other end has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered<H> {
    /// Cargo of the packet.
    pub cargo: H,
    /// Bytes of credit that the packet took.
    pub bytes: u32,
    /// Path id of the last transmission, as given to [`Sender::note_path`].
    pub path: u16,
    /// Time from the transmission to the notice; `None` for retransmissions, of which any copy may have arrived.
    pub round_trip: Option<Duration>,
}

impl<H: Copy> Delivered<H> {
    #[inline]
    fn new(now: Instant, notice: &Notice<H>) -> Self {
        let Notice { cargo, bytes, path, .. } = *notice;
        Self { cargo, bytes, path, round_trip: (!notice.again).then(|| now.since(notice.sent_at)) }
    }
}

/// An event that the owner of a tunnel handles, see [`Sender::poll_event`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Nothing was sent for the idle time of the settings: the owner may [`Sender::close`] the tunnel.
    Idle,
    /// The other host has not answered for too long. The tunnel does nothing more until it is supplied or told to
    /// [`Sender::retry`]. An owner that drops the packets that wait ([`Sender::forget`]) tells the stack that sent
    /// them: ICMP destination unreachable.
    PeerUnreachable,
}

/// Next action of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Send a packet.
    Send,
    /// Request credit.
    Request,
    /// Wait for an arrival or for supply.
    Nothing,
}

/// A packet to be sent through the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit<H> {
    /// Cargo of the packet; `None` in a request to send.
    pub cargo: Option<H>,
    /// Sequence number.
    pub seq: u32,
    /// Pull target, see [`selvedge_wire::eqds::Data::pull_target`].
    pub pull_target: u32,
    /// Flags of the header.
    pub flags: Flags,
    /// Whether the packet was sent before.
    pub retransmission: bool,
    /// Set only if [`Sender::next`] would return [`Interest::Send`] again, provided that no packet is larger than a
    /// quantum of credit. If unset, another packet may be ready all the same.
    pub another: bool,
}

impl<H: Copy> Sender<H> {
    /// Creates a closed tunnel without any packets.
    pub fn new() -> Self {
        Self {
            state: State::Closed(None),
            base: 0,
            window: Window::new(0),
            credit: Credit::new(0),
            again: VecDeque::new(),
            again_bytes: 0,
            backlog: 0,
            busy_until: Instant::ZERO,
            asked_at: Instant::ZERO,
            repeat: false,
            timeouts: 0,
            silent_since: Instant::NEVER,
            span: 0,
            room: 0,
            event: None,
            is_late_deadline: false,
            deadline: Instant::NEVER,
            measured: None,
        }
    }

    /// Begins another epoch at once, by a request, with all packets that are not known to have arrived: the owner has
    /// learnt that the other host discards the present ones, or has lost its state. Does nothing to a closed tunnel.
    pub fn restart(&mut self, params: &EqdsParams, now: Instant) {
        if let State::Closed(_) = self.state {
            return;
        }
        let base = params.numbers.epoch_after(self.last(params), 1);
        self.reopen(params, now, base, false);
        self.repeat = self.demand() > 0;
        self.arm(params, now);
    }

    /// Adds new packets of `bytes` bytes in total to the backlog. `random` selects the epoch if the tunnel remembers
    /// none.
    pub fn supply(&mut self, params: &EqdsParams, now: Instant, bytes: u64, random: u32) {
        let was_idle = self.demand() == 0;
        self.backlog += bytes;
        if let State::Closed(last) = self.state {
            let base = last.map_or(params.numbers.random_epoch(random), |last| params.numbers.epoch_after(last, 1));
            self.open(params, base, params.bursts && now >= self.busy_until);
        } else {
            self.renew(params, now, was_idle);
        }
        self.arm(params, now);
    }

    /// Removes `bytes` bytes of waiting packets, which will not be sent, from the backlog.
    pub fn withdraw(&mut self, bytes: u64) {
        self.backlog -= bytes.min(self.backlog);
    }

    /// Drops the tunnel's state, as either end may at any time (section 5). Packets in flight are dropped. With
    /// [`Memory::Number`] the tunnel remembers its highest number.
    pub fn forget(&mut self, params: &EqdsParams, memory: Memory) {
        let last = (memory == Memory::Number).then(|| self.last(params));
        *self = Self { state: State::Closed(last), ..Self::new() };
    }

    /// Returns the state of figure 26.
    pub fn state(&self) -> State {
        self.state
    }
    /// Returns the bytes waiting to be sent, retransmissions included: the "size of the TX buffer" (section 6).
    #[inline]
    pub fn demand(&self) -> u64 {
        self.backlog + self.again_bytes + self.window.lost_bytes
    }
    /// Returns whether lost or trimmed packets wait to be retransmitted.
    pub fn has_lost(&self) -> bool {
        self.again_bytes + self.window.lost_bytes > 0
    }
    /// Returns the bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.window.in_flight
    }
    /// Returns the bytes of credit held.
    pub fn credit(&self) -> u32 {
        self.credit.held()
    }
    /// Returns the highest pull number received.
    pub fn pull(&self) -> u32 {
        self.credit.pull
    }
    /// Returns the quanta of credit requested or promised that have not been granted yet.
    pub fn awaited(&self, params: &EqdsParams) -> u32 {
        self.credit.outstanding(&self.scale(params))
    }
    /// Returns the time until which the receiver's link is busy, as far as the receiver announced it.
    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }
    /// Returns the cargo of the packets that were sent and are not known to have arrived. An unreliable tunnel drops
    /// that of lost packets.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &H> {
        self.window.unacknowledged().chain(self.again.iter().map(|(cargo, _)| cargo))
    }
    /// Returns whether all supplied packets have arrived.
    pub fn is_done(&self) -> bool {
        self.demand() == 0 && self.window.in_flight == 0
    }

    /// Returns the next action; `head` is the size of the first packet waiting with the owner, if any.
    #[inline(always)]
    pub fn next(&mut self, params: &EqdsParams, head: Option<u32>) -> Interest {
        match self.first_bytes(params, head) {
            Some(bytes) if bytes <= self.usable() => Interest::Send,
            Some(_) if self.may_ask(params) => Interest::Request,
            Some(_) | None => Interest::Nothing,
        }
    }

    /// Returns whether [`Sender::next`] is [`Interest::Nothing`] for lack of credit, whatever waits with the owner.
    #[inline(always)]
    pub fn is_out_of_credit(&self, params: &EqdsParams) -> bool {
        self.credit.held() == 0 && !self.may_ask(params)
    }

    /// Returns the credit usable for the next packet. Retransmissions need credit granted by the receiver, not the rest
    /// of an unsolicited window: the congestion that trimmed them persists.
    #[inline(always)]
    fn usable(&self) -> u32 {
        if self.window.lost_bytes > 0 { self.credit.granted() } else { self.credit.held() }
    }

    /// Returns whether a request may be sent: a sender that is owed credit need not ask, unless it wants much more.
    #[inline(always)]
    fn may_ask(&self, params: &EqdsParams) -> bool {
        self.repeat || self.credit.wants(&self.scale(params), self.demand(), self.window.lost_bytes)
    }

    /// Performs the action that [`Sender::next`] returns. `new` hands over the first waiting packet and its size in
    /// bytes; called at most once.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        head: Option<u32>,
        new: impl FnOnce() -> (H, u32),
    ) -> Option<Transmit<H>> {
        match self.next(params, head) {
            Interest::Send => Some(self.send(params, now, new)),
            Interest::Request => Some(self.request(params, now)),
            Interest::Nothing => None,
        }
    }

    /// Handles a control packet; `freed` is called for each packet that has arrived. Stale control packets and those of
    /// other epochs have no effect. Returns whether the packet concerned this epoch.
    #[inline]
    pub fn handle_control(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        control: &Control,
        mut freed: impl FnMut(H),
    ) -> bool {
        self.handle_control_with(params, now, control, |delivered| freed(delivered.cargo))
    }

    /// Handles a control packet as [`Sender::handle_control`] does; `delivered` is called with the delivery notice of
    /// each packet that has arrived (section 6, native).
    #[inline]
    pub fn handle_control_with(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        control: &Control,
        mut delivered: impl FnMut(Delivered<H>),
    ) -> bool {
        if !self.concerns(params, now, control) {
            return false;
        }
        let (flags, number) = (control.flags, control.number);
        let numbers = params.numbers;
        self.timeouts = 0;
        if control.busy > 0 {
            let until = now.saturating_add(Duration::from_us(control.busy.into()).min(params.busy_ceiling));
            self.busy_until = self.busy_until.max(until);
            self.credit.release();
        }
        if self.credit.take_pull(&self.scale(params), control.pull) {
            (self.asked_at, self.repeat) = (now, false);
        }
        if flags.any(Flags::NACK) {
            self.note_missing(params, control);
            return true;
        }
        let before = self.window.in_flight;
        let measured = &mut self.measured;
        let mut freed = |notice: Notice<H>| {
            if let Some(measured) = measured {
                measured.note_arrived(numbers, now, &notice);
            }
            delivered(Delivered::new(now, &notice));
        };
        if flags.any(Flags::SACK) {
            self.window.acknowledge(numbers, number, &mut freed);
        } else {
            self.window.acknowledge_to(numbers, number, &mut freed);
        }
        self.credit.note_arrived(&self.scale(params), before - self.window.in_flight, self.window.in_flight);
        if self.measured.is_some() {
            self.measure(params, now, number);
        }
        true
    }

    /// Handles the report that a packet arrived trimmed, or, with [`MISSING`], that others arrived instead of it. Only
    /// of a trimmed packet does the receiver know the size, so only its credit is promised.
    #[inline(never)]
    fn note_missing(&mut self, params: &EqdsParams, control: &Control) {
        let numbers = params.numbers;
        let is_trimmed = control.flags.with(MISSING) != control.flags;
        let Some(packet) = self.window.get_in_flight(numbers, control.number) else { return };
        if !is_trimmed && packet.again {
            // A gap is reported once, so the report is about the first copy.
            return;
        }
        let Some(bytes) = self.window.lose(numbers, control.number) else { return };
        self.credit.note_lost(bytes.into(), self.window.in_flight);
        if is_trimmed && params.reliable {
            self.credit.note_trimmed(&self.scale(params), control.pull, bytes);
        }
        if let Some(measured) = &mut self.measured {
            measured.note_lost(packet.path);
        }
        self.abandon(params);
    }

    /// Ends the handling of an acknowledgement of `number`: takes a sample of the round-trip time and finds overtaken
    /// packets.
    #[cold]
    fn measure(&mut self, params: &EqdsParams, now: Instant, number: u32) {
        let Some(measured) = &mut self.measured else { return };
        // Only a retransmission can overtake packets with greater numbers.
        let again = measured.take_sample();
        if params.bounds == Source::Measured {
            (self.span, self.room) = measured.bounds(params);
            self.credit.narrow(self.span);
        }
        let end = if again { self.window.next(params.numbers) } else { number };
        let next = self.judge(params, now, end);
        self.deadline = self.deadline.min(next);
    }

    /// Declares overtaken packets before `end` lost; returns when the next overtaken packet will be.
    fn judge(&mut self, params: &EqdsParams, now: Instant, end: u32) -> Instant {
        let (Some(measured), Some(margin)) = (&mut self.measured, params.loss.path_margin) else {
            return Instant::NEVER;
        };
        let before = self.window.in_flight;
        let next = self.window.judge(params.numbers, now, end, |packet| {
            let lost_from = measured.lost_from(params.numbers, packet, margin);
            if lost_from.is_some_and(|at| at <= now) {
                measured.note_lost(packet.path);
            }
            lost_from
        });
        if self.window.in_flight < before {
            self.credit.note_lost(before - self.window.in_flight, self.window.in_flight);
            self.abandon(params);
        }
        next
    }

    /// Gives up lost packets if the service is unreliable.
    #[inline]
    fn abandon(&mut self, params: &EqdsParams) {
        if !params.reliable && self.window.lost_bytes > 0 {
            self.window.abandon_lost(params.numbers);
        }
    }

    /// Returns the number of packets of this epoch that were lost and, as the service is unreliable, not sent again.
    pub fn abandoned(&self) -> u64 {
        self.window.abandoned
    }

    /// Moves the origin of time by `by`, see `clock.rs` of this module.
    pub fn rebase(&mut self, by: Duration) {
        for at in [&mut self.busy_until, &mut self.asked_at, &mut self.silent_since, &mut self.deadline] {
            rebase(at, by);
        }
        self.window.rebase(by);
        if let Some(measured) = &mut self.measured {
            measured.rebase(by);
        }
    }

    /// Records the path of the packet that [`Sender::poll_transmit`] has just returned, if settings need it.
    #[inline]
    pub fn note_path(&mut self, params: &EqdsParams, seq: u32, path: u16) {
        if self.measured.is_some() {
            self.window.set_path(params.numbers, seq, path);
        }
    }

    /// Returns the round-trip times measured, if settings have them measured ([`EqdsParams::measures`]).
    pub fn round_trips(&self) -> Option<&RoundTrips> {
        self.measured.as_ref().map(|measured| &measured.round_trips)
    }
    /// Returns the statistics of each path, in the order of path ids; empty unless settings have paths measured.
    pub fn paths(&self) -> &[PathReport] {
        self.measured.as_ref().map_or(&[], |measured| measured.paths())
    }

    /// Returns the retransmission timeout.
    #[inline]
    pub fn rto(&self, params: &EqdsParams) -> Duration {
        match (&self.measured, params.loss.measured) {
            (Some(measured), Some(bounds)) => measured.timeout(params.rto, bounds),
            _ => params.rto,
        }
    }

    /// Returns the time at which [`Sender::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Instant {
        self.deadline
    }

    /// Returns the next event of the tunnel; to be called after [`Sender::handle_timeout`].
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// Tries again to reach a host that was given up.
    pub fn retry(&mut self, params: &EqdsParams, now: Instant) {
        if self.demand() > 0 {
            (self.repeat, self.silent_since) = (true, now);
            self.arm(params, now);
        }
    }

    /// Drops the tunnel's state as [`Sender::forget`] does, with the memory that settings give it. Returns the message
    /// that tells the receiver, if there was a tunnel; sending it is optional.
    pub fn close(&mut self, params: &EqdsParams) -> Option<Transmit<H>> {
        if let State::Closed(_) = self.state {
            return None;
        }
        let (seq, flags) = (self.window.next(params.numbers), Flags::RST.with(self.syn()));
        self.forget(params, params.life.memory);
        Some(Transmit { cargo: None, seq, pull_target: 0, flags, retransmission: false, another: false })
    }

    /// Returns the time at which a packet or a request was last sent, or credit arrived.
    pub fn active_at(&self) -> Instant {
        self.asked_at
    }

    /// Handles the deadline, if it has expired. Returns whether packets were declared lost.
    pub fn handle_timeout(&mut self, params: &EqdsParams, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        let before = self.window.in_flight;
        let rto = self.rto(params);
        let (mut next, lost) = self.window.expire(params.numbers, now, rto);
        if lost {
            self.credit.note_lost(before - self.window.in_flight, self.window.in_flight);
        }
        if let Some(measured) = &mut self.measured {
            if lost {
                measured.note_timeout();
            }
            next = next.min(self.judge(params, now, self.window.next(params.numbers)));
        }
        self.abandon(params);
        let mut is_late = false;
        if self.demand() > 0 {
            // A sender waiting for credit requests it again, but not before credit can arrive, and with exponential
            // backoff. Packets lost together are requested together: the first windows of an incast are lost as a
            // whole.
            let patience = rto.saturating_mul(1 << self.timeouts.min(MOST_DOUBLINGS));
            let due = self.asked_at.saturating_add(patience).max(self.busy_until);
            is_late = due <= now;
            next = next.min(if is_late { now.saturating_add(patience) } else { due });
        } else if self.window.in_flight == 0 {
            next = self.rest(params, now);
        }
        self.deadline = next;
        if is_late {
            self.be_late(params, now);
        }
        lost
    }

    /// Handles a timeout without an answer: the request is repeated, in a new epoch after many of them, until the other
    /// host is given up.
    #[cold]
    fn be_late(&mut self, params: &EqdsParams, now: Instant) {
        if self.timeouts == 0 {
            self.silent_since = now;
        }
        self.timeouts += 1;
        if params.life.unreachable.is_some_and(|limit| now.since(self.silent_since) >= limit) {
            // An owner that supplies more has the other host tried for as long again.
            (self.event, self.deadline, self.silent_since) = (Some(Event::PeerUnreachable), Instant::NEVER, now);
            self.credit.release();
            return;
        }
        self.repeat = true;
        self.credit.release();
        let timeouts = self.timeouts;
        let tries = if params.life.unreachable.is_some() { timeouts % (params.max_timeouts + 1) } else { timeouts };
        if tries == 0 || tries > params.max_timeouts {
            let base = params.numbers.epoch_after(self.last(params), 1);
            self.reopen(params, now, base, false);
            if params.life.unreachable.is_some() {
                self.timeouts = timeouts;
            }
        }
    }

    /// Returns the time at which a tunnel without packets has paused for long enough to be closed, and reports the
    /// event if that time has come.
    fn rest(&mut self, params: &EqdsParams, now: Instant) -> Instant {
        let Some(idle) = params.life.idle else { return Instant::NEVER };
        let due = self.asked_at.saturating_add(idle);
        if due > now {
            self.is_late_deadline = true;
            return due;
        }
        self.event = Some(Event::Idle);
        Instant::NEVER
    }

    /// Returns the first number of the current epoch.
    #[cfg(test)]
    pub(super) fn epoch(&self) -> u32 {
        self.base
    }

    /// Resets the deadline: the model of `tests/model.rs` has no time, so any awaited event may come at any moment.
    #[cfg(test)]
    pub(super) fn turn_back_time(&mut self, params: &EqdsParams) {
        if self.deadline != Instant::NEVER {
            self.deadline = Instant::ZERO + params.rto;
        }
    }

    #[inline]
    fn scale(&self, params: &EqdsParams) -> Scale {
        Scale { numbers: params.numbers, quantum: params.quantum, window: self.span }
    }

    /// Begins an epoch; `bursts` tells whether the first window may be sent unsolicited.
    fn open(&mut self, params: &EqdsParams, base: u32, bursts: bool) {
        self.state = State::SynSent;
        self.base = base;
        self.window = Window::new(base);
        if self.measured.is_none() {
            (self.span, self.room) = (params.window, params.reorder);
        }
        self.credit = Credit::new(if bursts { self.span.min(params.first_window) } else { 0 });
        (self.repeat, self.timeouts, self.deadline) = (false, 0, Instant::NEVER);
        if params.measures() && self.measured.is_none() {
            self.measured = Some(Box::default());
            self.is_late_deadline = true;
        }
    }

    /// Begins another epoch with the packets that have not arrived: the tunnel is unhealthy (appendix A). The first
    /// window is sent unsolicited only if the other host `answers`, and not while its link is busy.
    fn reopen(&mut self, params: &EqdsParams, now: Instant, base: u32, answers: bool) {
        let last = self.last(params);
        let mut unsettled: VecDeque<(H, u32)> = self.window.drain().collect();
        unsettled.append(&mut self.again);
        if !params.reliable {
            unsettled.clear();
        }
        self.again_bytes = unsettled.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        self.again = unsettled;
        self.open(params, base, params.bursts && answers && now >= self.busy_until);
        if self.demand() == 0 {
            self.state = State::Closed(Some(last));
        }
    }

    /// Renews the unsolicited window, one window at most in total, when demand grows or returns after a pause. Not
    /// while the receiver's link is busy (section 5), nor after a loss.
    fn renew(&mut self, params: &EqdsParams, now: Instant, was_idle: bool) {
        if was_idle {
            self.asked_at = now;
        }
        if params.bursts && now >= self.busy_until && !self.repeat && self.window.lost_bytes == 0 {
            self.credit.restart(&self.scale(params), params.first_window);
            self.credit.reserve(&self.scale(params), self.demand());
        } else if was_idle {
            self.credit.forfeit();
        }
    }

    /// Returns the size in bytes of the next packet to send: lost packets first, then those of earlier epochs, then new
    /// ones.
    #[inline(always)]
    fn first_bytes(&mut self, params: &EqdsParams, head: Option<u32>) -> Option<u32> {
        if self.window.lost_bytes > 0
            && let Some(bytes) = self.window.lost_front(params.numbers)
        {
            return Some(bytes);
        }
        if !self.has_room(params) {
            return None;
        }
        self.again.front().map_or(head, |(_, bytes)| Some(*bytes))
    }

    /// Returns whether a new number may be used: within the receiver's reorder window and, while SYN is set, within the
    /// epoch.
    #[inline]
    fn has_room(&self, params: &EqdsParams) -> bool {
        self.window.len() < self.room && (self.state == State::Established || self.is_in_first_epoch(params))
    }

    /// Returns whether the next number belongs to the epoch with which the tunnel began.
    #[cold]
    fn is_in_first_epoch(&self, params: &EqdsParams) -> bool {
        let used = params.numbers.distance(self.base, self.window.first()) as u32 + self.window.len();
        used < params.numbers.epoch_length()
    }

    #[inline]
    fn send(&mut self, params: &EqdsParams, now: Instant, new: impl FnOnce() -> (H, u32)) -> Transmit<H> {
        let numbers = params.numbers;
        let before = self.window.in_flight;
        let (seq, cargo, retransmission) = if let Some((seq, cargo)) = self.window.resend(numbers, now) {
            self.credit.spend((self.window.in_flight - before) as u32);
            (seq, cargo, true)
        } else {
            let (cargo, bytes, old) = match self.again.pop_front() {
                Some((cargo, bytes)) => {
                    self.again_bytes -= u64::from(bytes);
                    (cargo, bytes, true)
                }
                None => {
                    let (cargo, bytes) = new();
                    self.backlog -= u64::from(bytes);
                    (cargo, bytes, false)
                }
            };
            self.credit.spend(bytes);
            (self.window.send(numbers, now, cargo, bytes), cargo, old)
        };
        let pull_target = self.ask(params);
        (self.asked_at, self.repeat) = (now, false);
        self.arm(params, now);
        // An acknowledgement is requested if no later packet would elicit one.
        let another = self.demand() > 0 && self.usable() >= params.quantum && self.has_room(params);
        let flags = self.syn().with(Flags::ACK.when(!another || retransmission));
        Transmit { cargo: Some(cargo), seq, pull_target, flags, retransmission, another }
    }

    fn request(&mut self, params: &EqdsParams, now: Instant) -> Transmit<H> {
        self.credit.forfeit();
        let pull_target = self.ask(params);
        (self.asked_at, self.repeat) = (now, false);
        self.arm(params, now);
        let seq = self.window.next(params.numbers);
        let flags = Flags::RTS.with(self.syn());
        Transmit { cargo: None, seq, pull_target, flags, retransmission: false, another: false }
    }

    /// Computes the pull target to announce.
    #[inline]
    fn ask(&mut self, params: &EqdsParams) -> u32 {
        self.credit.ask(&self.scale(params), self.demand(), self.window.lost_bytes)
    }

    #[inline]
    fn arm(&mut self, params: &EqdsParams, now: Instant) {
        if self.deadline == Instant::NEVER || self.is_late_deadline {
            self.deadline = self.deadline.min(now.saturating_add(self.rto(params)));
            self.is_late_deadline = self.measured.is_some();
        }
    }

    #[inline]
    fn syn(&self) -> Flags {
        Flags::SYN.when(self.state == State::SynSent)
    }

    /// Returns whether a control packet concerns this epoch. If the packet says that the receiver has no such epoch,
    /// begins another.
    #[inline]
    fn concerns(&mut self, params: &EqdsParams, now: Instant, control: &Control) -> bool {
        let (flags, numbers) = (control.flags, params.numbers);
        let from_first = numbers.distance(self.window.first(), control.number);
        // Cumulative acknowledgements may name the next packet; SACK and NACK name packets sent.
        let beyond = !flags.any(Flags::NACK.with(Flags::SACK));
        let in_window = (from_first >= 0 || self.lags(params, control.number))
            && from_first < self.window.len() as i32 + i32::from(beyond);
        match self.state {
            State::Closed(_) => false,
            State::Established if flags.any(Flags::RST) => {
                if in_window {
                    let base = numbers.epoch_after(self.last(params), 1);
                    self.reopen(params, now, base, true);
                }
                false
            }
            State::Established => in_window,
            State::SynSent => {
                if flags.any(Flags::RST) || !flags.any(Flags::SYN) {
                    return false;
                }
                if in_window {
                    self.state = State::Established;
                } else if from_first > 0 {
                    // The receiver is ahead: two epochs skip all numbers that may be in flight there.
                    let base = numbers.epoch_after(control.number, 2);
                    self.reopen(params, now, base, true);
                }
                in_window
            }
        }
    }

    /// Returns whether `number` is one that a receiver may still expect of an unreliable tunnel: its sender has given
    /// up packets that the receiver waits for.
    #[cold]
    fn lags(&self, params: &EqdsParams, number: u32) -> bool {
        let numbers = params.numbers;
        !params.reliable
            && numbers.distance(self.base, number) >= 0
            && numbers.distance(number, self.window.first()) <= params.reorder as i32
    }

    /// Returns the highest number in use.
    fn last(&self, params: &EqdsParams) -> u32 {
        if let State::Closed(Some(last)) = self.state {
            return last;
        }
        // A request with SYN uses the epoch, but no number.
        let next = self.window.next(params.numbers);
        if next == self.base { next } else { params.numbers.add(next, u32::MAX) }
    }
}

impl<H: Copy> Default for Sender<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// State that an end of a tunnel retains when it drops the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Memory {
    /// The highest number used; the next epoch is greater.
    Number,
    /// Nothing.
    Nothing,
}
