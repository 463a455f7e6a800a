//! MELO's sender: the receiver's bitmap, rebuilt from NACKs in the sender's own pool.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Instant, Seq};
use selvedge_wire::{Hole, Holes};

use super::linked_bitmap::{Cursor, LinkedBitmap};
use super::pools::Pools;
use super::residents::{Entered, Name};
use super::{MeloParams, Resend};
use crate::bitmap::WIDEST_WINDOW;
use crate::recovery::timer::Timer;
use crate::recovery::{AckOutcome, ParsedAck, Recovery, SchemeParams};
use crate::role::{Cx, Next};

/// MELO's sender (section 3.2.4).
///
/// 1. Each hole that a NACK reports is retransmitted, oldest first. A hole that a later NACK names again is
///    retransmitted again ([`Resend::AsNamed`]), or not ([`Resend::Once`]). Whatever no NACK repairs, the timeout does:
///    then every unacknowledged packet is sent again.
/// 2. A NACK carries up to three holes. Packets between them, and below the packet that triggered the NACK, have
///    arrived. So the next NACK makes up for up to two lost NACKs; the timeout makes up for more.
/// 3. Where the pool has no blocks to record a NACK, or for the bitmap of a connection that returns to the chip, the
///    sender goes back like after a timeout (section 3.2.5). Congestion control is told of a loss.
#[derive(Clone, Debug)]
pub struct Send {
    /// Bitmap of the packets from the first unacknowledged one to the newest one that a NACK reported: set bits have
    /// arrived.
    known: LinkedBitmap,
    /// Number of set bits.
    arrived: u64,
    /// The position up to which holes have been retransmitted.
    searched: Cursor,
    /// The next hole to retransmit of those that were not retransmitted yet.
    lost: Option<Seq>,
    /// Holes that were retransmitted and that the newest NACK names again: to be retransmitted before `lost`, oldest
    /// first. Empty with [`Resend::Once`].
    again: Holes,
    resend: Resend,
    /// Whether the first unacknowledged packet is to be retransmitted before `lost`, because its receiver was not
    /// ready.
    not_ready: bool,
    /// The next packet in order; goes back to the first unacknowledged one at a timeout.
    next: Seq,
    /// One past the highest packet that was ever sent.
    sent: Seq,
    /// The packet up to which a loss is being repaired: repair ends when it is the first unacknowledged one.
    recover: Seq,
    /// Whether a recovery began for want of blocks, of which congestion control has not been told.
    untold: bool,
    timer: Timer,
    cap: u64,
    /// The connection's name, where the chip holds some connections only.
    name: Name,
}

impl Send {
    /// Creates a sender that has sent nothing.
    pub fn new(params: &MeloParams) -> Self {
        Self {
            known: LinkedBitmap::default(),
            arrived: 0,
            searched: Cursor::default(),
            lost: None,
            again: Default::default(),
            resend: params.resend,
            not_ready: false,
            next: Seq::ZERO,
            sent: Seq::ZERO,
            recover: Seq::ZERO,
            untold: false,
            timer: Timer::single(params.rto),
            cap: params.bdp_cap().map_or(WIDEST_WINDOW, u64::from),
            name: Name::default(),
        }
    }

    /// Handles a move of the cumulative acknowledgement to `expected`; returns how many packets are newly known to have
    /// arrived.
    fn on_progress(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, expected: Seq) -> u64 {
        let acked = self.known.first();
        let told_before = self.known.advance(&mut pools.sending, expected);
        self.arrived -= told_before;
        self.next = self.next.max(expected);
        self.not_ready = false;
        for hole in &mut self.again {
            let passed = (expected.index() as u16).wrapping_sub(hole.start) as i16;
            hole.shorten(passed.max(0) as u16);
        }
        if self.lost.is_some_and(|lost| lost < expected) {
            self.search(pools);
        }
        if acked < self.recover && self.recover <= expected {
            cx.trace(|| Trace::RecoveryLeft { acked: expected });
        }
        if expected == self.sent {
            self.timer.stop();
        } else {
            self.timer.restart(cx.now);
        }
        expected - acked - told_before
    }

    /// Handles the `holes` of a NACK triggered by `sack`; `delivered` packets are known from its cumulative
    /// acknowledgement.
    fn on_news(
        &mut self,
        cx: &mut Cx<'_>,
        pools: &mut Pools,
        sack: Seq,
        holes: &[Range<Seq>; 3],
        mut delivered: u64,
    ) -> AckOutcome {
        // Packets that will be sent again anyway, and reports that are known already, are ignored.
        let is_news = sack < self.next && sack >= self.known.high() && sack > self.known.first();
        if !is_news {
            return AckOutcome { delivered, loss: false };
        }
        let loss = !self.is_repairing();
        if !self.known.has_room(&pools.sending, sack + 1) {
            pools.forgotten += 1;
            self.go_back(cx, pools, false);
            return AckOutcome { delivered, loss };
        }
        if loss {
            self.recover = self.next;
            cx.trace(|| Trace::RecoveryEntered { acked: self.known.first(), by_timeout: false });
        }
        if self.resend == Resend::AsNamed {
            // Holes from `lost` on wait to be retransmitted for the first time.
            let retransmitted = self.known.first()..self.lost.unwrap_or(self.known.high());
            let [newest, middle, oldest] = holes.each_ref().map(|hole| {
                let (start, end) = (hole.start.max(retransmitted.start), hole.end.min(retransmitted.end));
                Hole { start: start.index() as u16, length: end.checked_since(start).unwrap_or(0) as u16 }
            });
            self.again = [oldest, middle, newest];
        }
        delivered += self.remember(pools, sack, holes);
        if self.lost.is_none() {
            self.search(pools);
        }
        AckOutcome { delivered, loss }
    }

    /// Records the holes of a NACK that was triggered by `sack`; returns how many packets are newly known to have
    /// arrived.
    fn remember(&mut self, pools: &mut Pools, sack: Seq, holes: &[Range<Seq>; 3]) -> u64 {
        let pool = &mut pools.sending;
        // The packet at RCV.NXT is missing, whether or not its hole is among the newest.
        if self.known.is_empty() {
            self.known.push(pool, self.known.first() + 1, false);
        }
        let mut arrived = 0;
        for hole in holes.iter().rev().filter(|hole| !hole.is_empty()) {
            arrived += self.known.push(pool, hole.start.min(sack), true);
            self.known.push(pool, hole.end.min(sack), false);
        }
        arrived += self.known.push(pool, sack + 1, true);
        self.arrived += arrived;
        arrived
    }

    /// Returns the next packet to retransmit once more.
    #[inline]
    fn again(&self) -> Option<Seq> {
        let hole = self.again.iter().find(|hole| hole.length > 0)?;
        let first = self.known.first();
        Some(first + u64::from(hole.start.wrapping_sub(first.index() as u16)))
    }

    /// Finds the next hole that was not retransmitted yet.
    #[inline]
    fn search(&mut self, pools: &Pools) {
        self.lost = self.known.next_clear(&pools.sending, &mut self.searched);
    }

    /// Goes back to the first unacknowledged packet (section 3.2.3) and clears the bitmap.
    fn go_back(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, by_timeout: bool) {
        self.known.clear(&mut pools.sending);
        self.arrived = 0;
        self.searched = Cursor::default();
        self.lost = None;
        self.again = Default::default();
        self.not_ready = false;
        self.next = self.known.first();
        self.recover = self.sent;
        self.timer.restart(cx.now);
        cx.trace(|| Trace::RecoveryEntered { acked: self.known.first(), by_timeout });
    }

    /// Calls `act` with the bitmap on the chip. If there is no room for the bitmap, the sender first goes back, which
    /// needs no bits.
    fn on_chip<T>(
        &mut self,
        cx: &mut Cx<'_>,
        pools: &mut Pools,
        act: impl FnOnce(&mut Self, &mut Cx<'_>, &mut Pools) -> T,
    ) -> T {
        if !pools.senders.is_limited() {
            return act(self, cx, pools);
        }
        match pools.senders.enter(&mut pools.sending, &mut self.name, &mut self.known) {
            Entered::Here => {}
            Entered::Loaded => self.known.find(&pools.sending, &mut self.searched),
            Entered::NoRoom => {
                pools.forgotten += 1;
                pools.senders.forget(self.name);
                self.known.forget();
                self.untold |= !self.is_repairing();
                self.go_back(cx, pools, false);
                pools.senders.enter(&mut pools.sending, &mut self.name, &mut self.known);
            }
        }
        let done = act(self, cx, pools);
        pools.senders.leave(&self.known);
        done
    }

    #[inline]
    fn is_repairing(&self) -> bool {
        self.known.first() < self.recover
    }
}

// Methods called for each packet are not inlined, to keep the other schemes' arms of `AnyRecovery` inlined.
impl Recovery for Send {
    type Shared = Pools;

    #[inline]
    fn acked(&self) -> Seq {
        self.known.first()
    }
    #[inline]
    fn sent(&self) -> Seq {
        self.sent
    }
    #[inline]
    fn in_flight(&self) -> u64 {
        self.next - self.known.first() - self.arrived
    }
    #[inline]
    fn has_lost(&self) -> bool {
        self.lost.is_some() || self.again().is_some() || self.not_ready || self.next < self.sent
    }

    #[inline(never)]
    fn next(&self, _: Instant, supplied: Seq, window_open: bool) -> Next {
        if self.not_ready {
            Next::packet(self.known.first(), true)
        } else if let Some(lost) = self.again().or(self.lost) {
            Next::packet(lost, true)
        } else if self.next >= supplied || !window_open || self.next - self.known.first() >= self.cap {
            Next::Idle
        } else {
            Next::packet(self.next, self.next < self.sent)
        }
    }

    #[inline(never)]
    fn on_sent(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, seq: Seq) {
        if core::mem::take(&mut self.not_ready) {
            cx.trace(|| Trace::Retransmitted { seq });
        } else if let Some(hole) = self.again.iter_mut().find(|hole| hole.length > 0) {
            cx.trace(|| Trace::Retransmitted { seq });
            hole.shorten(1);
        } else if self.lost == Some(seq) {
            cx.trace(|| Trace::Retransmitted { seq });
            self.on_chip(cx, pools, |this, _, pools| this.search(pools));
        } else {
            self.next += 1;
            if self.next > self.sent {
                self.sent = self.next;
            } else {
                cx.trace(|| Trace::Retransmitted { seq });
            }
        }
        self.timer.ensure_running(cx.now);
    }

    #[inline(never)]
    fn handle_ack(&mut self, cx: &mut Cx<'_>, pools: &mut Pools, heard: ParsedAck) -> AckOutcome {
        let is_progress = heard.expected > self.known.first();
        let progress =
            |this: &mut Self, cx: &mut Cx<'_>, pools: &mut Pools| this.on_progress(cx, pools, heard.expected);
        let delivered = if is_progress { self.on_chip(cx, pools, progress) } else { 0 };
        AckOutcome { delivered, loss: core::mem::take(&mut self.untold) }
    }

    fn handle_holes(
        &mut self,
        cx: &mut Cx<'_>,
        pools: &mut Pools,
        heard: ParsedAck,
        holes: &[Range<Seq>; 3],
    ) -> AckOutcome {
        let AckOutcome { delivered, loss } = self.handle_ack(cx, pools, heard);
        let told = self.on_chip(cx, pools, |this, cx, pools| this.on_news(cx, pools, heard.sack, holes, delivered));
        AckOutcome { loss: told.loss | loss | core::mem::take(&mut self.untold), ..told }
    }

    #[inline]
    fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>, pools: &mut Pools) -> bool {
        cx.trace(|| Trace::TimedOut { acked: self.known.first(), quick: false });
        self.on_chip(cx, pools, |this, cx, pools| this.go_back(cx, pools, true));
        self.untold = false;
        true
    }

    fn handle_not_ready(&mut self, cx: &mut Cx<'_>, _: &mut Pools) {
        let first = self.known.first();
        // A packet that will be sent anyway need not be sent twice.
        if first >= self.next || self.again().or(self.lost) == Some(first) {
            return;
        }
        if !self.is_repairing() {
            self.recover = self.next;
            cx.trace(|| Trace::RecoveryEntered { acked: first, by_timeout: false });
        }
        self.not_ready = true;
        self.timer.restart(cx.now);
    }

    fn release(&mut self, pools: &mut Pools) {
        if pools.senders.forget(self.name) {
            self.known.forget();
        }
        self.known.clear(&mut pools.sending);
    }
}
