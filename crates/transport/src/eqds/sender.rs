//! The sending end of a tunnel (section 5; appendix A, figure 26).
//!
//! Design notes.
//! 1. *Cargo* is whatever its owner can find a packet by. New packets stay with the owner, who says how many bytes wait
//!    ([`Sender::supply`]) and gives the first of them when it may go. What is under way is kept here.
//! 2. *One decision*: [`Sender::next`] says what to do; [`Sender::poll_transmit`] does it.
//! 3. *Timers.* One deadline, which never moves because something arrives: when it comes, what is under way is looked
//!    at.

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Flags};

use super::config::EqdsParams;
use super::credit::{Credit, Scale};
use super::window::Window;

/// How often a sender that nobody answers doubles its timeout.
pub const MOST_DOUBLINGS: u32 = 6;

/// The sending end of a tunnel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sender<H> {
    state: State,
    /// The first number of this epoch.
    base: u32,
    window: Window<H>,
    credit: Credit,
    /// Packets of earlier epochs that nobody is known to have: they go first, with new numbers.
    again: VecDeque<(H, u32)>,
    again_bytes: u64,
    /// Bytes of new packets that wait with the owner.
    backlog: u64,
    /// The receiver's link is busy until then, at least.
    busy_until: Instant,
    /// When credit was last asked for, or given.
    asked_at: Instant,
    /// An unanswered request is repeated.
    repeat: bool,
    timeouts: u32,
    /// When to look whether something was lost; [`Instant::NEVER`] while nothing is waited for.
    deadline: Instant,
}

/// States of figure 26.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// No tunnel. The number that its next epoch must be beyond, if that is known.
    Closed(Option<u32>),
    /// All packets carry SYN.
    SynSent,
    /// The receiver knows the epoch.
    Established,
}

/// What a tunnel would do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Send a packet.
    Send,
    /// Request credit.
    Request,
    /// Wait, for something to arrive or be supplied.
    Nothing,
}

/// A packet for the tunnel to carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit<H> {
    /// What it carries; `None` in a request to send.
    pub cargo: Option<H>,
    /// Its number.
    pub seq: u32,
    /// See [`selvedge_wire::eqds::Data::pull_target`].
    pub pull_target: u32,
    /// Its flags.
    pub flags: Flags,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// That [`Sender::next`] would be [`Interest::Send`] again, where no packet is larger than a quantum of credit. If
    /// not set, that may be so all the same.
    pub another: bool,
}

impl<H: Copy> Sender<H> {
    /// A tunnel that carries nothing yet.
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
            deadline: Instant::NEVER,
        }
    }

    /// New packets wait, of so many bytes together. `random` chooses the epoch of a tunnel that remembers none.
    pub fn supply(&mut self, params: &EqdsParams, now: Instant, bytes: u64, random: u32) {
        let was_idle = self.demand() == 0;
        self.backlog += bytes;
        if let State::Closed(last) = self.state {
            let base = last.map_or(params.numbers.random_epoch(random), |last| params.numbers.epoch_after(last, 1));
            self.open(params, base);
        } else {
            self.renew(params, now, was_idle);
        }
        self.arm(params, now);
    }

    /// Packets that waited will not come.
    pub fn withdraw(&mut self, bytes: u64) {
        self.backlog -= bytes.min(self.backlog);
    }

    /// Drops the tunnel's state, as either end may at any time (section 5). What was under way is lost to it, unless
    /// the tunnel remembers its number and so much more.
    pub fn forget(&mut self, params: &EqdsParams, memory: Memory) {
        let last = (memory == Memory::Number).then(|| self.last(params));
        *self = Self { state: State::Closed(last), ..Self::new() };
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Bytes that wait to be sent, again or for the first time: the "size of the TX buffer" (section 6).
    #[inline]
    pub fn demand(&self) -> u64 {
        self.backlog + self.again_bytes + self.window.lost_bytes
    }
    /// Whether packets that were lost or trimmed wait to be sent again.
    pub fn has_lost(&self) -> bool {
        self.again_bytes + self.window.lost_bytes > 0
    }
    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.window.in_flight
    }
    /// Bytes of credit held.
    pub fn credit(&self) -> u32 {
        self.credit.held()
    }
    /// The highest pull number that has come.
    pub fn pull(&self) -> u32 {
        self.credit.pull
    }
    /// Quanta that it has asked for, or has been promised, and that have not come.
    pub fn awaited(&self, params: &EqdsParams) -> u32 {
        self.credit.outstanding(&scale(params))
    }
    /// Until when the receiver said that its link is busy.
    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }
    /// Whether everything supplied has arrived.
    pub fn is_done(&self) -> bool {
        self.demand() == 0 && self.window.in_flight == 0
    }

    /// What to do now; `head` is the size of the first packet that waits with the owner, if one does.
    #[inline(always)]
    pub fn next(&mut self, params: &EqdsParams, head: Option<u32>) -> Interest {
        match self.first_bytes(params, head) {
            Some(bytes) if bytes <= self.usable() => Interest::Send,
            Some(_) if self.may_ask(params) => Interest::Request,
            Some(_) | None => Interest::Nothing,
        }
    }

    /// Whether [`Sender::next`] is [`Interest::Nothing`] for want of credit, whatever waits with the owner.
    #[inline(always)]
    pub fn is_out_of_credit(&self, params: &EqdsParams) -> bool {
        self.credit.held() == 0 && !self.may_ask(params)
    }

    /// Credit for the packet whose turn it is. What was lost goes again for what the receiver gives, and not for what
    /// is left of a window that may be sent unasked: whatever trimmed it is still there.
    #[inline(always)]
    fn usable(&self) -> u32 {
        if self.window.lost_bytes > 0 { self.credit.granted() } else { self.credit.held() }
    }

    /// Whoever is owed credit has been heard; whoever is not, or wants much more, must ask.
    #[inline(always)]
    fn may_ask(&self, params: &EqdsParams) -> bool {
        self.repeat || self.credit.wants(&scale(params), self.demand(), self.window.lost_bytes)
    }

    /// Does what [`Sender::next`] says. `new` gives the first packet that waits, and its bytes; it is called at most
    /// once.
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

    /// Takes in a control packet; `freed` is called for each packet that has arrived. What is no news, or of another
    /// epoch, does nothing; returns whether it was heeded.
    #[inline]
    pub fn handle_control(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        control: &Control,
        mut freed: impl FnMut(H),
    ) -> bool {
        if !self.concerns(params, control) {
            return false;
        }
        let (flags, number) = (control.flags, control.number);
        let numbers = params.numbers;
        self.timeouts = 0;
        if control.busy > 0 {
            let until = now.saturating_add(Duration::from_us(control.busy.into()));
            self.busy_until = self.busy_until.max(until);
            self.credit.release();
        }
        if self.credit.take_pull(&scale(params), control.pull) {
            (self.asked_at, self.repeat) = (now, false);
        }
        let before = self.window.in_flight;
        if flags.any(Flags::NACK) {
            if let Some(bytes) = self.window.lose(numbers, number) {
                self.credit.note_lost(bytes.into(), self.window.in_flight);
                self.credit.note_trimmed(&scale(params), control.pull, bytes);
            }
        } else if flags.any(Flags::SACK) {
            self.window.acknowledge(numbers, number, &mut freed);
            self.credit.note_arrived(&scale(params), before - self.window.in_flight, self.window.in_flight);
        } else {
            self.window.acknowledge_to(numbers, number, &mut freed);
            self.credit.note_arrived(&scale(params), before - self.window.in_flight, self.window.in_flight);
        }
        true
    }

    /// When [`Sender::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Instant {
        self.deadline
    }

    /// The deadline has come. Returns whether something was taken for lost.
    pub fn handle_timeout(&mut self, params: &EqdsParams, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        let before = self.window.in_flight;
        let (mut next, lost) = self.window.expire(params.numbers, now, params.rto);
        if lost {
            self.credit.note_lost(before - self.window.in_flight, self.window.in_flight);
        }
        let mut is_late = false;
        if self.demand() > 0 {
            // Who waits for credit asks again, but not sooner than it can come, and ever more rarely. What is lost
            // together is asked for together: first windows of an incast are lost as a whole.
            let patience = params.rto.saturating_mul(1 << self.timeouts.min(MOST_DOUBLINGS));
            let due = self.asked_at.saturating_add(patience).max(self.busy_until);
            is_late = due <= now;
            next = next.min(if is_late { now.saturating_add(patience) } else { due });
        }
        self.deadline = next;
        if is_late {
            self.repeat = true;
            self.credit.release();
            self.timeouts += 1;
            if self.timeouts > params.max_timeouts {
                let base = params.numbers.epoch_after(self.last(params), 1);
                self.reopen(params, base);
            }
        }
        lost
    }

    /// The first number of its epoch.
    #[cfg(test)]
    pub(super) fn epoch(&self) -> u32 {
        self.base
    }

    /// Time has no part in the model of `tests/model.rs`: what is waited for may come at any moment.
    #[cfg(test)]
    pub(super) fn turn_back_time(&mut self, params: &EqdsParams) {
        if self.deadline != Instant::NEVER {
            self.deadline = Instant::ZERO + params.rto;
        }
    }

    /// Begins an epoch.
    fn open(&mut self, params: &EqdsParams, base: u32) {
        self.state = State::SynSent;
        self.base = base;
        self.window = Window::new(base);
        self.credit = Credit::new(if params.bursts { params.window } else { 0 });
        (self.repeat, self.timeouts, self.deadline) = (false, 0, Instant::NEVER);
    }

    /// The tunnel is unhealthy: begins another epoch with what has not arrived (appendix A).
    fn reopen(&mut self, params: &EqdsParams, base: u32) {
        let last = self.last(params);
        let mut unsettled: VecDeque<(H, u32)> = self.window.drain().collect();
        unsettled.append(&mut self.again);
        self.again_bytes = unsettled.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        self.again = unsettled;
        self.open(params, base);
        if self.demand() == 0 {
            self.state = State::Closed(Some(last));
        }
    }

    /// Demand grows, or returns after a pause: may the tunnel send unasked what it has no credit for, up to one window
    /// in all? Not while the receiver's link is busy (section 5), nor when something was lost.
    fn renew(&mut self, params: &EqdsParams, now: Instant, was_idle: bool) {
        if was_idle {
            self.asked_at = now;
        }
        if params.bursts && now >= self.busy_until && !self.repeat && self.window.lost_bytes == 0 {
            self.credit.restart(&scale(params));
            self.credit.reserve(&scale(params), self.demand());
        } else if was_idle {
            self.credit.forfeit();
        }
    }

    /// Bytes of the packet whose turn it is: lost ones first, then those of earlier epochs, then new ones.
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

    /// Whether a new number may be used: within what the receiver keeps, and, with SYN, within the epoch.
    #[inline]
    fn has_room(&self, params: &EqdsParams) -> bool {
        self.window.len() < params.reorder && (self.state == State::Established || self.is_in_first_epoch(params))
    }

    /// Whether the next number is of the epoch with which the tunnel began.
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
        // Where nothing follows that would bring an acknowledgement along, one is asked for.
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

    /// The target to announce now.
    #[inline]
    fn ask(&mut self, params: &EqdsParams) -> u32 {
        self.credit.ask(&scale(params), self.demand(), self.window.lost_bytes)
    }

    #[inline]
    fn arm(&mut self, params: &EqdsParams, now: Instant) {
        if self.deadline == Instant::NEVER {
            self.deadline = now.saturating_add(params.rto);
        }
    }

    #[inline]
    fn syn(&self) -> Flags {
        Flags::SYN.when(self.state == State::SynSent)
    }

    /// Whether a control packet speaks of this epoch. If it says that there is none such, begins another.
    #[inline]
    fn concerns(&mut self, params: &EqdsParams, control: &Control) -> bool {
        let (flags, numbers) = (control.flags, params.numbers);
        let from_first = numbers.distance(self.window.first(), control.number);
        // Cumulative numbers may be that of the next packet; the others are of packets sent.
        let beyond = !flags.any(Flags::NACK.with(Flags::SACK));
        let in_window = from_first >= 0 && from_first < self.window.len() as i32 + i32::from(beyond);
        match self.state {
            State::Closed(_) => false,
            State::Established if flags.any(Flags::RST) => {
                if in_window {
                    let base = numbers.epoch_after(self.last(params), 1);
                    self.reopen(params, base);
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
                    // The receiver is further: to be beyond all that may be under way there, two epochs.
                    let base = numbers.epoch_after(control.number, 2);
                    self.reopen(params, base);
                }
                in_window
            }
        }
    }

    /// The highest number in use.
    fn last(&self, params: &EqdsParams) -> u32 {
        if let State::Closed(Some(last)) = self.state {
            return last;
        }
        // A request with SYN has used the epoch, though no number.
        let next = self.window.next(params.numbers);
        if next == self.base { next } else { params.numbers.add(next, u32::MAX) }
    }
}

impl<H: Copy> Default for Sender<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// What an end remembers of a tunnel that it forgets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// The number it had reached: its next epoch is greater.
    Number,
    /// Nothing.
    Nothing,
}

#[inline]
fn scale(params: &EqdsParams) -> Scale {
    Scale { numbers: params.numbers, quantum: params.quantum, window: params.window }
}
