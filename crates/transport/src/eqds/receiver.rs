//! The receiving end of a tunnel (section 5; appendix A, figure 27).

use alloc::collections::VecDeque;

use selvedge_units::Instant;
use selvedge_wire::eqds::{Control, Data, Flags};

use super::config::EqdsParams;
use super::credit::{Promise, Scale};

/// The receiving end of a tunnel: soft state, built by the first SYN.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Receiver<H> {
    tunnel: Option<Tunnel<H>>,
}

/// What it knows while it is established.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tunnel<H> {
    /// The first number of the epoch.
    base: u32,
    /// Everything before it has arrived.
    expected: u32,
    /// From `expected` on: the reorder queue.
    queue: VecDeque<Slot<H>>,
    /// Credit given so far, and asked for.
    pull: u32,
    target: u32,
    promise: Promise,
    /// The sender is not known to have heard of us.
    syn: bool,
    /// Bytes that arrived since the last acknowledgement.
    unacknowledged: u32,
    /// An acknowledgement was asked for and goes out when the holes are filled.
    ack_when_whole: bool,
    /// Since when the queue has waited for `expected`; [`Instant::NEVER`] while it does not.
    waits_since: Instant,
}

/// A place in the reorder queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Slot<H> {
    Missing,
    Kept(H),
    HandedOn,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It is new: kept, or handed on.
    Taken,
    /// It had arrived before, and has come whole again.
    Duplicate,
    /// It brought no payload: trimmed, of a packet that had arrived before, perhaps, or a request.
    Empty,
    /// It is of no tunnel that exists here.
    Stray,
}

impl<H: Copy> Receiver<H> {
    /// Closed.
    pub const fn new() -> Self {
        Self { tunnel: None }
    }

    /// Whether it is established, and then the first number of its epoch.
    pub fn epoch(&self) -> Option<u32> {
        self.tunnel.as_ref().map(|tunnel| tunnel.base)
    }

    /// Credit given so far.
    pub fn pull(&self) -> u32 {
        self.tunnel.as_ref().map_or(0, |tunnel| tunnel.pull)
    }
    /// Packets that wait in the reorder queue.
    pub fn waiting(&self) -> usize {
        let kept = |tunnel: &Tunnel<H>| tunnel.queue.iter().filter(|slot| matches!(slot, Slot::Kept(_))).count();
        self.tunnel.as_ref().map_or(0, kept)
    }

    /// Takes in a data packet or request; `trimmed` says that its payload was cut off. `deliver` gets what is handed
    /// on. Returns what became of it and what to answer; the busy time is for the caller to fill in.
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
        if data.flags.any(Flags::SYN) {
            if let Some(refusal) = self.adopt(params, data.seq, &mut deliver) {
                return (Disposition::Stray, Some(refusal));
            }
        } else if let Some(tunnel) = self.tunnel.as_mut().filter(|tunnel| tunnel.syn) {
            tunnel.syn = !tunnel.is_near(params, data.seq);
        }
        let Some(tunnel) = self.tunnel.as_mut().filter(|tunnel| tunnel.is_near(params, data.seq)) else {
            // Not of this epoch, or there is none (appendix A: "receipt of a RST indicates the receiver is closed").
            let reset = Control { flags: Flags::RST, number: data.seq, pull: 0, busy: 0 };
            return (Disposition::Stray, Some(reset));
        };
        tunnel.note_target(params, data.pull_target);
        if data.flags.any(Flags::RTS) {
            return (Disposition::Empty, Some(tunnel.cumulative(Flags::ACK)));
        }
        tunnel.on_packet(params, now, data, trimmed, cargo, &mut deliver)
    }

    /// Quanta that the sender wants and has not been given.
    #[inline]
    pub fn owed(&self, params: &EqdsParams) -> u32 {
        self.tunnel.as_ref().map_or(0, |tunnel| tunnel.owed(params))
    }

    /// Gives one quantum of credit.
    #[inline]
    pub fn grant(&mut self, params: &EqdsParams) -> Option<Control> {
        let tunnel = self.tunnel.as_mut()?;
        let numbers = params.numbers;
        tunnel.pull = numbers.add(tunnel.pull, 1);
        if numbers.is_after(tunnel.pull, tunnel.target) {
            tunnel.target = tunnel.pull;
        }
        tunnel.promise.catch_up(&scale(params), tunnel.pull);
        tunnel.unacknowledged = 0;
        Some(tunnel.cumulative(Flags::PULL))
    }

    /// Drops the tunnel. What waits in order for others is handed on; the sender may be told by the packet returned.
    pub fn close(&mut self, params: &EqdsParams, deliver: impl FnMut(H)) -> Option<Control> {
        let mut tunnel = self.tunnel.take()?;
        let number = tunnel.expected;
        tunnel.release(params, deliver);
        Some(Control { flags: Flags::RST, number, pull: 0, busy: 0 })
    }

    /// When [`Receiver::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self, params: &EqdsParams) -> Instant {
        let since = self.tunnel.as_ref().map_or(Instant::NEVER, |tunnel| tunnel.waits_since);
        params.reorder_timeout.map_or(Instant::NEVER, |timeout| since.saturating_add(timeout))
    }

    /// The reorder queue has waited long enough: hands on what there is up to the next hole.
    pub fn handle_timeout(&mut self, params: &EqdsParams, now: Instant, mut deliver: impl FnMut(H)) {
        if now < self.poll_timeout(params) {
            return;
        }
        if let Some(tunnel) = &mut self.tunnel {
            while let Some(Slot::Missing) = tunnel.queue.front() {
                tunnel.queue.pop_front();
                tunnel.expected = params.numbers.add(tunnel.expected, 1);
            }
            tunnel.advance(params, &mut deliver);
            tunnel.waits_since = if tunnel.queue.is_empty() { Instant::NEVER } else { now };
        }
    }

    /// A SYN has come: of this epoch, a greater one, or a lesser, which is answered by what is returned.
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
            // The epoch that it has come to: numbers run on beyond the one it began with.
            let highest = numbers.add(tunnel.expected, tunnel.queue.len() as u32);
            if numbers.distance(highest, base) < 0 {
                // A sender that has begun anew meanwhile hears it, too: what is missing must not seem to have arrived.
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
        }
    }

    /// Whether a number can be of this epoch: what it waits for, or what it may see again.
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

    /// A target is never more than a window beyond what the sender has been given; if it seems so, we have forgotten
    /// what we gave.
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

    /// A control packet about all that has arrived.
    #[inline]
    fn cumulative(&self, flags: Flags) -> Control {
        Control { flags: flags.with(Flags::SYN.when(self.syn)), number: self.expected, pull: self.pull, busy: 0 }
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
            self.promise.add(&scale(params), self.pull, bytes);
            return (Disposition::Empty, Some(nack));
        }
        let in_order = place == 0;
        self.keep(params, place, cargo, deliver);
        if in_order {
            self.advance(params, deliver);
        }
        match self.queue.is_empty() {
            true => self.waits_since = Instant::NEVER,
            false if in_order || self.waits_since == Instant::NEVER => self.waits_since = now,
            false => {}
        }
        (Disposition::Taken, self.acknowledge(params, data, bytes, in_order))
    }

    /// Puts a packet where it belongs.
    #[inline]
    fn keep(&mut self, params: &EqdsParams, place: usize, cargo: H, deliver: &mut impl FnMut(H)) {
        let slot = if params.ordered { Slot::Kept(cargo) } else { Slot::HandedOn };
        if !params.ordered {
            deliver(cargo);
        }
        if place == 0 && self.queue.is_empty() {
            // In order and alone, as most are.
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
    }

    /// Hands on what is in order.
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

    /// What to say of a packet that was taken.
    #[inline]
    fn acknowledge(&mut self, params: &EqdsParams, data: &Data, bytes: u32, in_order: bool) -> Option<Control> {
        let each = params.ack_after == 0;
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

    /// The epoch ends: what waits for others can wait no longer (appendix A).
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
