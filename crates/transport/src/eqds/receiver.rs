//! The receiving end of a tunnel (section 5; appendix A, figure 27).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::{Control, Data, Flags};

use super::clock::rebase;
use super::config::EqdsParams;
use super::credit::{Promise, Scale};
use super::loss::Source;
use super::round_trips::RoundTrips;
use super::sender::MISSING;

/// The receiving end of a tunnel: soft state, built by the first SYN.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Receiver<H> {
    tunnel: Option<Tunnel<H>>,
}

/// State of an established receiver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tunnel<H> {
    /// The first number of the epoch.
    base: u32,
    /// The lowest number that has not arrived.
    expected: u32,
    /// The reorder queue; its first slot is number `expected`.
    queue: VecDeque<Slot<H>>,
    /// Pull number granted so far; `target` is the one requested.
    pull: u32,
    target: u32,
    promise: Promise,
    /// Whether the sender may not know yet that the tunnel is established; control packets then carry SYN.
    syn: bool,
    /// Bytes that arrived since the last acknowledgement.
    unacknowledged: u32,
    /// Whether a requested acknowledgement is due when all holes are filled.
    ack_when_whole: bool,
    /// Time since which the queue has waited for `expected`; [`Instant::NEVER`] while it does not.
    waits_since: Instant,
    gaps: Gaps,
    /// Time at which the last packet arrived.
    heard_at: Instant,
    /// Times that holes took to fill, if bounds are measured.
    fills: Option<Box<RoundTrips>>,
}

/// Gaps in the reorder queue that are to be reported as missing packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Gaps {
    /// Time of the next report; [`Instant::NEVER`] while there is none to make.
    due: Instant,
    /// Numbers before this one are to be reported then.
    end: u32,
    /// Numbers before this one have been reported.
    reported: u32,
}

/// A slot of the reorder queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Slot<H> {
    Missing,
    Kept(H),
    HandedOn,
}

/// The result of a packet's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// The packet is new: kept or delivered.
    Taken,
    /// The packet had arrived before, and arrived whole again.
    Duplicate,
    /// The packet brought no payload: trimmed (possibly a duplicate), or a request.
    Empty,
    /// The packet belongs to no tunnel that exists here.
    Stray,
    /// The packet told that the sender has dropped the tunnel, which is closed here, too.
    Closed,
}

impl<H: Copy> Receiver<H> {
    /// Creates a closed receiver.
    pub const fn new() -> Self {
        Self { tunnel: None }
    }

    /// Returns the first number of the epoch if the receiver is established.
    pub fn epoch(&self) -> Option<u32> {
        self.tunnel.as_ref().map(|tunnel| tunnel.base)
    }

    /// Returns the pull number granted so far.
    pub fn pull(&self) -> u32 {
        self.tunnel.as_ref().map_or(0, |tunnel| tunnel.pull)
    }
    /// Returns the number of packets waiting in the reorder queue.
    pub fn waiting(&self) -> usize {
        let kept = |tunnel: &Tunnel<H>| tunnel.queue.iter().filter(|slot| matches!(slot, Slot::Kept(_))).count();
        self.tunnel.as_ref().map_or(0, kept)
    }

    /// Handles a data packet or request; `trimmed` tells that its payload was cut off. `deliver` receives the delivered
    /// packets. Returns the result and the answer, whose busy time the caller fills in.
    #[inline]
    pub fn handle_data(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        data: &Data,
        trimmed: bool,
        cargo: H,
        mut deliver: impl FnMut(H),
    ) -> (Disposition, Option<Control>) {
        if data.flags.any(Flags::SYN.with(Flags::RST)) {
            if data.flags.any(Flags::RST) {
                return (self.on_teardown(params, data.seq, deliver), None);
            }
            if let Some(refusal) = self.adopt(params, data.seq, &mut deliver) {
                return (Disposition::Stray, Some(refusal));
            }
        } else if let Some(tunnel) = self.tunnel.as_mut().filter(|tunnel| tunnel.syn) {
            tunnel.syn = !tunnel.is_near(params, data.seq);
        }
        let Some(tunnel) = self.tunnel.as_mut().filter(|tunnel| tunnel.is_near(params, data.seq)) else {
            // The packet is of another epoch, or there is none (appendix A: "receipt of a RST indicates the receiver is
            // closed").
            let reset = Control { flags: Flags::RST, number: data.seq, pull: 0, busy: 0, eqif: 0 };
            return (Disposition::Stray, Some(reset));
        };
        tunnel.heard_at = now;
        tunnel.note_target(params, data.pull_target);
        if data.flags.any(Flags::RTS) {
            return (Disposition::Empty, Some(tunnel.cumulative(Flags::ACK)));
        }
        tunnel.on_packet(params, now, data, trimmed, cargo, &mut deliver)
    }

    /// Returns the quanta that the sender wants and has not been granted.
    #[inline]
    pub fn owed(&self, params: &EqdsParams) -> u32 {
        self.tunnel.as_ref().map_or(0, |tunnel| tunnel.owed(params))
    }

    /// Grants `quanta` quanta of credit, no more than [`Receiver::owed`], with one control packet, which is returned if
    /// a tunnel exists. Pull numbers are cumulative: a sender cannot tell one PULL of several quanta from the last of
    /// several PULLs.
    #[inline]
    pub fn grant(&mut self, params: &EqdsParams, quanta: u32) -> Option<Control> {
        let tunnel = self.tunnel.as_mut()?;
        let numbers = params.numbers;
        tunnel.pull = numbers.add(tunnel.pull, quanta);
        if numbers.is_after(tunnel.pull, tunnel.target) {
            tunnel.target = tunnel.pull;
        }
        tunnel.promise.catch_up(&scale(params), tunnel.pull);
        tunnel.unacknowledged = 0;
        Some(tunnel.cumulative(Flags::PULL))
    }

    /// Drops the tunnel. Packets in the reorder queue are delivered. Returns a RST that may be sent to the sender.
    pub fn close(&mut self, params: &EqdsParams, deliver: impl FnMut(H)) -> Option<Control> {
        let mut tunnel = self.tunnel.take()?;
        let number = tunnel.expected;
        tunnel.release(params, deliver);
        Some(Control { flags: Flags::RST, number, pull: 0, busy: 0, eqif: 0 })
    }

    /// Closes the tunnel if `seq`, the number after the last that its sender has used, is of its epoch.
    #[cold]
    fn on_teardown(&mut self, params: &EqdsParams, seq: u32, deliver: impl FnMut(H)) -> Disposition {
        let Some(tunnel) = &self.tunnel else { return Disposition::Stray };
        let end = params.numbers.add(tunnel.expected, tunnel.queue.len() as u32);
        if !tunnel.is_near(params, seq) || params.numbers.is_after(end, seq) {
            return Disposition::Stray;
        }
        self.close(params, deliver);
        Disposition::Closed
    }

    /// Returns whether nothing has arrived for the idle time of the settings, and nothing is owed: the owner may
    /// [`Receiver::close`] the tunnel.
    pub fn is_idle(&mut self, params: &EqdsParams, now: Instant) -> bool {
        if self.idle_due(params) > now {
            return false;
        }
        let Some(tunnel) = self.tunnel.as_mut().filter(|tunnel| tunnel.owed(params) > 0) else { return true };
        // The sender waits for credit, which counts as activity.
        tunnel.heard_at = now;
        false
    }

    /// Returns the time at which the tunnel will be idle unless more arrives; [`Instant::NEVER`] if there is none.
    pub fn idle_due(&self, params: &EqdsParams) -> Instant {
        let (Some(idle), Some(tunnel)) = (params.life.idle, &self.tunnel) else { return Instant::NEVER };
        tunnel.heard_at.saturating_add(idle)
    }

    /// Moves the origin of time by `by`, see `clock.rs` of this module.
    pub fn rebase(&mut self, by: Duration) {
        if let Some(tunnel) = &mut self.tunnel {
            for at in [&mut tunnel.waits_since, &mut tunnel.gaps.due, &mut tunnel.heard_at] {
                rebase(at, by);
            }
        }
    }

    /// Returns the time at which the last packet arrived, if a tunnel exists to which nothing is owed, and which has no
    /// packets in its reorder queue.
    pub fn resting_since(&self, params: &EqdsParams) -> Option<Instant> {
        let tunnel = self.tunnel.as_ref().filter(|tunnel| tunnel.queue.is_empty() && tunnel.owed(params) == 0)?;
        Some(tunnel.heard_at)
    }

    /// Returns the time at which [`Receiver::handle_timeout`] and then [`Receiver::poll_missing`] are due.
    pub fn poll_timeout(&self, params: &EqdsParams) -> Instant {
        self.gives_up_at(params).min(self.missing_due())
    }

    /// Returns the time at which [`Receiver::poll_missing`] is due.
    pub fn missing_due(&self) -> Instant {
        self.tunnel.as_ref().map_or(Instant::NEVER, |tunnel| tunnel.gaps.due)
    }

    /// Returns the time at which the reorder queue no longer waits for the first missing packet.
    fn gives_up_at(&self, params: &EqdsParams) -> Instant {
        let since = self.tunnel.as_ref().map_or(Instant::NEVER, |tunnel| tunnel.waits_since);
        let Some(timeout) = params.reorder_timeout else { return Instant::NEVER };
        let fills = self.tunnel.as_ref().and_then(|tunnel| tunnel.fills.as_ref()?.bound());
        let measured = fills.map_or(timeout, |bound| bound.saturating_mul(2).max(params.rto).min(timeout));
        since.saturating_add(measured)
    }

    /// Returns the next report of a missing packet, if one is due: to be called until it returns `None`. Each missing
    /// packet is reported once. The caller fills in the busy time.
    pub fn poll_missing(&mut self, params: &EqdsParams, now: Instant) -> Option<Control> {
        let (tunnel, wait) = (self.tunnel.as_mut()?, params.loss.gap_wait?);
        if now < tunnel.gaps.due { None } else { tunnel.next_missing(params, now, wait) }
    }

    /// Handles the timeout of the reorder queue: delivers the packets up to the next hole.
    pub fn handle_timeout(&mut self, params: &EqdsParams, now: Instant, mut deliver: impl FnMut(H)) {
        if now < self.gives_up_at(params) {
            return;
        }
        if let Some(tunnel) = &mut self.tunnel {
            while let Some(Slot::Missing) = tunnel.queue.front() {
                tunnel.queue.pop_front();
                tunnel.expected = params.numbers.add(tunnel.expected, 1);
            }
            tunnel.advance(params, &mut deliver);
            tunnel.waits_since = if tunnel.queue.is_empty() { Instant::NEVER } else { now };
            tunnel.watch_gaps(params, now);
        }
    }

    /// Handles a SYN of the present, a greater or a lesser epoch; returns the refusal of a lesser one.
    #[inline]
    fn adopt(&mut self, params: &EqdsParams, seq: u32, deliver: &mut impl FnMut(H)) -> Option<Control> {
        let numbers = params.numbers;
        let base = numbers.first(seq);
        if let Some(tunnel) = &mut self.tunnel {
            if tunnel.base == base {
                // "Treated as normal data packets except the SYN flag is set in their ACKs."
                tunnel.syn = true;
                return None;
            }
            // Highest number of the present epoch: numbers may run beyond the epoch in which the tunnel began.
            let highest = numbers.add(tunnel.expected, tunnel.queue.len() as u32);
            if numbers.distance(highest, base) < 0 {
                // A sender that has restarted meanwhile gets SYN, too: missing packets must not appear acknowledged.
                return Some(tunnel.cumulative(Flags::SYN.with(Flags::ACK)));
            }
            tunnel.release(params, &mut *deliver);
        }
        self.tunnel = Some(Tunnel::new(base));
        None
    }
}

impl<H: Copy> Default for Receiver<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Copy> Tunnel<H> {
    fn new(base: u32) -> Self {
        Self {
            base,
            expected: base,
            queue: VecDeque::new(),
            pull: 0,
            target: 0,
            promise: Promise::default(),
            syn: true,
            unacknowledged: 0,
            ack_when_whole: false,
            waits_since: Instant::NEVER,
            heard_at: Instant::ZERO,
            fills: None,
            gaps: Gaps { due: Instant::NEVER, end: base, reported: base },
        }
    }

    /// Returns whether a number can be of this epoch: one still expected, or a recent duplicate.
    #[inline]
    fn is_near(&self, params: &EqdsParams, seq: u32) -> bool {
        let distance = params.numbers.distance(self.expected, seq);
        distance.unsigned_abs() <= params.reorder && params.numbers.distance(self.base, seq) >= 0
    }

    #[inline]
    fn owed(&self, params: &EqdsParams) -> u32 {
        let target = self.promise.beyond(&scale(params), self.target);
        params.numbers.distance(self.pull, target).max(0) as u32
    }

    /// Takes over a pull target. A target never exceeds the granted pull number by more than a window; if it appears
    /// to, this end has lost its state, and the pull number is reconstructed.
    #[inline]
    fn note_target(&mut self, params: &EqdsParams, target: u32) {
        let numbers = params.numbers;
        if !numbers.is_after(target, self.target) {
            return;
        }
        self.target = target;
        let beyond = numbers.distance(self.pull, target) as u32;
        if u64::from(beyond) * u64::from(params.quantum) > u64::from(params.window.max(params.quantum)) {
            let most = (params.window / params.quantum).max(1);
            self.pull = numbers.add(target, most.wrapping_neg());
        }
    }

    /// Returns a control packet with the cumulative acknowledgement.
    #[inline]
    fn cumulative(&self, flags: Flags) -> Control {
        Control {
            flags: flags.with(Flags::SYN.when(self.syn)),
            number: self.expected,
            pull: self.pull,
            busy: 0,
            eqif: 0,
        }
    }

    #[inline]
    fn on_packet(
        &mut self,
        params: &EqdsParams,
        now: Instant,
        data: &Data,
        trimmed: bool,
        cargo: H,
        deliver: &mut impl FnMut(H),
    ) -> (Disposition, Option<Control>) {
        let place = params.numbers.distance(self.expected, data.seq);
        let again = if trimmed { Disposition::Empty } else { Disposition::Duplicate };
        if place < 0 {
            return (again, Some(self.cumulative(Flags::ACK)));
        }
        let place = place as usize;
        let about = |flags, tunnel: &Self| Control { number: data.seq, ..tunnel.cumulative(flags) };
        if self.queue.get(place).is_some_and(|slot| !matches!(slot, Slot::Missing)) {
            return (again, Some(about(Flags::SACK, self)));
        }
        let bytes = u32::from(data.payload) + params.header;
        if trimmed {
            let nack = about(Flags::NACK, self);
            if params.reliable {
                self.promise.add(&scale(params), self.pull, bytes);
            }
            return (Disposition::Empty, Some(nack));
        }
        let in_order = place == 0;
        self.keep(params, place, cargo, deliver);
        if in_order {
            if params.bounds == Source::Measured && self.waits_since != Instant::NEVER {
                self.fills.get_or_insert_default().add(now.since(self.waits_since));
            }
            self.advance(params, deliver);
        }
        match self.queue.is_empty() {
            true => self.waits_since = Instant::NEVER,
            false if in_order || self.waits_since == Instant::NEVER => self.waits_since = now,
            false => {}
        }
        if params.loss.gap_wait.is_some() {
            self.watch_gaps(params, now);
        }
        (Disposition::Taken, self.acknowledge(params, data, bytes, in_order))
    }

    /// Sets the time of the next report of missing packets after the queue has changed.
    #[cold]
    fn watch_gaps(&mut self, params: &EqdsParams, now: Instant) {
        let Some(wait) = params.loss.gap_wait else { return };
        if self.queue.is_empty() {
            self.gaps.due = Instant::NEVER;
        } else if self.gaps.due == Instant::NEVER {
            let numbers = params.numbers;
            let end = numbers.add(self.expected, self.queue.len() as u32);
            let from = self.first_unreported(params);
            let waits = numbers.distance(self.expected, from) as usize;
            // The first gap that has not been reported, if the queue has any.
            if self.queue.iter().skip(waits).any(|slot| matches!(slot, Slot::Missing)) {
                (self.gaps.due, self.gaps.end) = (now.saturating_add(wait), end);
            }
        }
    }

    fn first_unreported(&self, params: &EqdsParams) -> u32 {
        let reported = self.gaps.reported;
        if params.numbers.is_after(reported, self.expected) { reported } else { self.expected }
    }

    /// Returns the report of the first missing packet that is due; if none is, sets the time of the next.
    fn next_missing(&mut self, params: &EqdsParams, now: Instant, wait: Duration) -> Option<Control> {
        let numbers = params.numbers;
        let mut number = self.first_unreported(params);
        while numbers.is_after(self.gaps.end, number) {
            let place = numbers.distance(self.expected, number) as usize;
            let is_missing = self.queue.get(place).is_some_and(|slot| matches!(slot, Slot::Missing));
            self.gaps.reported = numbers.add(number, 1);
            if is_missing {
                return Some(Control { number, ..self.cumulative(MISSING) });
            }
            number = self.gaps.reported;
        }
        debug_assert!(!wait.is_zero(), "checked with the settings");
        self.gaps.due = Instant::NEVER;
        self.watch_gaps(params, now);
        None
    }

    /// Inserts a packet at its place in the reorder queue, or delivers it.
    #[inline]
    fn keep(&mut self, params: &EqdsParams, place: usize, cargo: H, deliver: &mut impl FnMut(H)) {
        let slot = if params.ordered { Slot::Kept(cargo) } else { Slot::HandedOn };
        if !params.ordered {
            deliver(cargo);
        }
        if place == 0 && self.queue.is_empty() {
            // The common case: in order, with an empty queue.
            if let Slot::Kept(cargo) = slot {
                deliver(cargo);
            }
            self.expected = params.numbers.add(self.expected, 1);
            return;
        }
        if let Some(missing) = self.queue.get_mut(place) {
            *missing = slot;
            return;
        }
        while self.queue.len() < place {
            self.queue.push_back(Slot::Missing);
        }
        self.queue.push_back(slot);
        if !params.reliable {
            self.pass_holes(params);
        }
    }

    /// Passes over the oldest holes of an unreliable tunnel, which nobody fills, so that the queue stays within half of
    /// the reorder window. The other half is for packets on their way.
    #[cold]
    fn pass_holes(&mut self, params: &EqdsParams) {
        let most = (params.reorder / 2).max(1) as usize;
        while self.queue.len() > most || self.queue.front().is_some_and(|slot| !matches!(slot, Slot::Missing)) {
            self.queue.pop_front();
            self.expected = params.numbers.add(self.expected, 1);
        }
    }

    /// Delivers the packets that are in order.
    #[inline]
    fn advance(&mut self, params: &EqdsParams, deliver: &mut impl FnMut(H)) {
        while let Some(slot) = self.queue.front() {
            match *slot {
                Slot::Missing => break,
                Slot::Kept(cargo) => deliver(cargo),
                Slot::HandedOn => {}
            }
            self.queue.pop_front();
            self.expected = params.numbers.add(self.expected, 1);
        }
    }

    /// Returns the acknowledgement of a packet that was taken, if one is due.
    #[inline]
    fn acknowledge(&mut self, params: &EqdsParams, data: &Data, bytes: u32, in_order: bool) -> Option<Control> {
        let each = params.ack_after == 0 || (!in_order && params.loss.path_margin.is_some());
        let asked = data.flags.any(Flags::ACK);
        if !each {
            self.unacknowledged += bytes;
            self.ack_when_whole |= asked && !in_order;
            let whole = self.ack_when_whole && self.queue.is_empty();
            if !(asked || whole || self.syn || self.unacknowledged > params.ack_after) {
                return None;
            }
            self.unacknowledged = 0;
            self.ack_when_whole &= !whole;
        }
        if in_order || !(each || asked) {
            return Some(self.cumulative(Flags::ACK));
        }
        Some(Control { number: data.seq, ..self.cumulative(Flags::SACK) })
    }

    /// Ends the epoch: delivers the packets of the reorder queue without waiting for the missing ones (appendix A).
    fn release(&mut self, params: &EqdsParams, mut deliver: impl FnMut(H)) {
        for slot in self.queue.drain(..) {
            if let Slot::Kept(cargo) = slot {
                deliver(cargo);
            }
            self.expected = params.numbers.add(self.expected, 1);
        }
    }
}

#[inline]
fn scale(params: &EqdsParams) -> Scale {
    Scale { numbers: params.numbers, quantum: params.quantum, window: params.window }
}
