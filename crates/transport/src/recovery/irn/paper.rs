//! IRN's sender according to the text of section 3.
//!
//! 1. A NACK or a timeout begins recovery with the packet at the cumulative acknowledgement. Any later packet counts as
//!    lost only once a higher one is selectively acknowledged.
//! 2. The recovery sequence is set at every retransmission, like in the authors' hardware code: the text allows two
//!    readings. A cumulative acknowledgement at or below the recovery sequence was then triggered by a packet that was
//!    sent after the one it stops at. Where paths keep order, that packet is lost: it is retransmitted even if no
//!    packet above it was selectively acknowledged. With several retransmissions in flight, the acknowledgement may be
//!    that of an earlier one, and the guess is wrong. The spurious retransmission then sets the recovery sequence
//!    again, and every following acknowledgement is misread, too. [`PartialAcks::First`] guesses up to the recovery
//!    sequence of the first retransmission, [`PartialAcks::None`] not at all.
//! 3. Each packet is retransmitted at most once per recovery; if it is lost again, the timeout begins a new recovery.
//!    The SACK bitmap survives, so only holes are repeated.
//! 4. Retransmissions precede new packets and ignore the cap. New packets are sent during recovery if the cap allows.
//! 5. Without SACKs (section 4.3), only the cumulative acknowledgement is recorded: a recovery repeats its first
//!    packet, and one more at each partial acknowledgement.
//! 6. If the cumulative acknowledgement moves before any retransmission, packets had only been reordered, and recovery
//!    ends; except when a SACK shows a hole at the new cumulative acknowledgement.
//! 7. With time stamps ([`Stamps`]), notes 2 and 3 need no guess: an acknowledgement below the recovery sequence means
//!    a loss if its packet was sent after the latest retransmission, and a retransmitted packet that was overtaken is
//!    retransmitted again at once. A timeout in recovery then repeats one packet alone.
//! 8. Where a timeout may send several packets ([`Probes`]), the packet at the cumulative acknowledgement is sent that
//!    many times: as soon as one of them has an answer, notes 1 to 7 apply.
//! 9. A receiver that is not ready for the packet at the cumulative acknowledgement says so (section 5): that packet is
//!    retransmitted, even if it was in this recovery.

use alloc::boxed::Box;
use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};

use super::probes::Probes;
use super::stamps::Stamps;
use super::{IrnParams, PartialAcks};
use crate::bitmap::Bitmap;
use crate::role::Cx;

/// State of the sender: the state per queue pair of the paper's NIC (section 6.1), with sequence numbers that do not
/// wrap.
#[derive(Clone, Debug)]
pub(super) struct Paper {
    acked: Seq,
    /// The next new packet.
    next: Seq,
    phase: Phase,
    /// The packet to retransmit now.
    lost: Option<Seq>,
    /// The packet before which every packet was retransmitted in this recovery, or need not be.
    scan: Seq,
    /// The recovery sequence: the last new packet before the latest retransmission.
    recover: Seq,
    /// The last packet at which a partial acknowledgement shows a loss: the present or the first recovery sequence, or
    /// zero.
    guess: Seq,
    partial_acks: PartialAcks,
    /// Selectively acknowledged packets beyond `acked`.
    sacks: Bitmap,
    /// One past the highest selectively acknowledged packet.
    sacks_end: Seq,
    sacks_count: u32,
    /// NACKs since the last cumulative progress.
    nacks: u32,
    nack_threshold: u32,
    /// Whether SACKs are recorded.
    sack: bool,
    /// The send times of retransmissions, where time stamps count. Boxed: few flows have them.
    stamps: Option<Box<Stamps>>,
    probes: Probes,
}

/// The phase of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No packet is known to be lost.
    Open,
    /// A loss is assumed; nothing has been retransmitted yet.
    Suspecting,
    /// At least one packet has been retransmitted.
    Recovering,
}

/// The effect of an acknowledgement.
pub(super) struct Effect {
    /// Packets newly known to have arrived.
    pub(super) delivered: u64,
    /// Whether the cumulative acknowledgement moved.
    pub(super) advanced: bool,
    /// Whether recovery began.
    pub(super) entered: bool,
}

impl Paper {
    pub(super) fn new(params: &IrnParams) -> Self {
        Self {
            acked: Seq::ZERO,
            next: Seq::ZERO,
            phase: Phase::Open,
            lost: None,
            scan: Seq::ZERO,
            recover: Seq::ZERO,
            guess: Seq::ZERO,
            partial_acks: params.partial_acks,
            sacks: Bitmap::default(),
            sacks_end: Seq::ZERO,
            sacks_count: 0,
            nacks: 0,
            nack_threshold: params.nack_threshold,
            sack: params.sack,
            stamps: params.time_stamps.then(|| Box::new(Stamps::new())),
            probes: Probes::new(params.probes),
        }
    }
    #[inline]
    pub(super) fn acked(&self) -> Seq {
        self.acked
    }
    #[inline]
    pub(super) fn next(&self) -> Seq {
        self.next
    }
    #[inline]
    pub(super) fn lost(&self) -> Option<Seq> {
        self.lost
    }
    #[inline]
    pub(super) fn sacked(&self) -> u64 {
        u64::from(self.sacks_count)
    }

    #[inline]
    pub(super) fn on_sent(&mut self, cx: &mut Cx<'_>, seq: Seq) {
        if seq == self.next {
            self.next += 1;
        } else {
            self.on_resent(cx, seq);
        }
    }

    #[inline(never)]
    fn on_resent(&mut self, cx: &mut Cx<'_>, seq: Seq) {
        debug_assert_eq!(self.lost, Some(seq), "only the packet that was offered may be sent again");
        cx.trace(|| Trace::Retransmitted { seq });
        self.recover = Seq::new(self.next.index() - 1);
        match self.partial_acks {
            PartialAcks::First if self.phase == Phase::Recovering => {}
            PartialAcks::First | PartialAcks::Latest => self.guess = self.recover,
            PartialAcks::None | PartialAcks::Auto => {}
        }
        self.phase = Phase::Recovering;
        if let Some(stamps) = &mut self.stamps {
            stamps.on_resent(cx.now, seq == self.acked);
        }
        // A packet that was overtaken is retransmitted out of order.
        self.scan = self.scan.max(seq + 1);
        self.look_ahead();
        if self.lost.is_none() && self.probes.take() {
            self.lost = Some(self.acked);
        }
    }
    /// Handles an answer of the receiver: stops the probes, since further answers will show the losses.
    fn on_sign_of_life(&mut self) {
        if self.probes.stop() && self.lost.is_some_and(|lost| lost < self.scan) {
            self.look_ahead();
        }
    }

    /// Handles an acknowledgement. `expected` was checked: it is at most `next`. `sack` belongs to a NACK and is not
    /// checked. The packet that triggered the acknowledgement was sent `rtt` ago.
    #[inline(always)]
    pub(super) fn handle_ack(
        &mut self,
        cx: &mut Cx<'_>,
        expected: Seq,
        sack: Option<Seq>,
        holes: Option<&[Range<Seq>; 3]>,
        rtt: Duration,
    ) -> Effect {
        // Fast path: an acknowledgement in order without losses touches no more than this state.
        let advanced = expected > self.acked;
        let mut delivered = 0;
        let mut entered = false;
        if advanced {
            delivered = expected - self.acked;
            if self.sacks_count > 0 {
                delivered -= self.forget_sacks(expected);
            }
            self.acked = expected;
            self.nacks = 0;
            if self.phase != Phase::Open {
                entered = self.on_progress(cx, rtt);
            }
        }
        if let Some(sack) = sack
            && sack > self.acked
            && sack < self.next
        {
            if self.sack {
                delivered += self.remember_sack(sack);
                delivered += holes.map_or(0, |holes| self.remember_between(sack, holes));
            }
            entered |= self.on_nack(cx, sack, rtt);
        }
        Effect { delivered, advanced, entered }
    }

    /// Handles a move of the cumulative acknowledgement during recovery. Returns whether another recovery began.
    #[inline(never)]
    fn on_progress(&mut self, cx: &mut Cx<'_>, rtt: Duration) -> bool {
        self.on_sign_of_life();
        let is_over = match self.phase {
            Phase::Open => false,
            Phase::Suspecting => true,
            Phase::Recovering => self.acked > self.recover,
        };
        if is_over {
            cx.trace(|| Trace::RecoveryLeft { acked: self.acked });
            self.phase = Phase::Open;
            self.lost = None;
            // NACKs during this recovery may have shown the next loss already.
            let known_lost = self.sacks_count >= self.nack_threshold;
            if known_lost {
                self.enter(cx, false);
            }
            return known_lost;
        }
        match &mut self.stamps {
            Some(stamps) => {
                if self.acked < self.scan {
                    stamps.on_head_moved();
                }
                self.on_stamp(cx.now - rtt, false);
            }
            // Partial acknowledgement: note 2.
            None if self.scan > self.acked => {
                // The packet was to be retransmitted once more, and has arrived.
                if self.lost.is_some_and(|lost| lost < self.acked) {
                    self.look_ahead();
                }
            }
            None if self.acked <= self.guess => self.lost = Some(self.acked),
            // Only the holes below SACKs count as lost.
            None => self.look_ahead(),
        }
        false
    }

    /// Handles the arrival, during recovery, of a packet that was sent at `sent_at`.
    fn on_stamp(&mut self, sent_at: Instant, is_out_of_order: bool) {
        let Some(stamps) = &mut self.stamps else { return };
        stamps.on_arrival(sent_at, self.recover + 1);
        if is_out_of_order && self.acked < self.scan && stamps.is_head_overtaken(sent_at) {
            self.lost = Some(self.acked);
        } else if self.lost.is_none_or(|lost| lost < self.acked || self.sacks.contains(lost)) {
            self.look_ahead();
        }
    }

    /// Handles a NACK triggered by `sack`. Returns whether recovery began.
    #[inline(never)]
    fn on_nack(&mut self, cx: &mut Cx<'_>, sack: Seq, rtt: Duration) -> bool {
        self.nacks = self.nacks.saturating_add(1);
        self.on_sign_of_life();
        match self.phase {
            Phase::Open if self.nacks >= self.nack_threshold => {
                self.enter(cx, false);
                return true;
            }
            Phase::Open | Phase::Suspecting => {}
            Phase::Recovering if self.stamps.is_some() => self.on_stamp(cx.now - rtt, true),
            // The packet to retransmit has arrived after all, or the SACK shows new holes below it.
            Phase::Recovering if self.lost.is_none_or(|lost| lost == sack) => self.look_ahead(),
            Phase::Recovering => {}
        }
        false
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::Recovering && self.stamps.is_some() {
            self.lost = Some(self.acked);
        } else {
            self.enter(cx, true);
        }
        self.probes.handle_timeout();
    }

    /// Marks the packet at the cumulative acknowledgement for retransmission, even if it was retransmitted before.
    pub(super) fn handle_not_ready(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::Recovering {
            self.lost = Some(self.acked);
        } else {
            self.enter(cx, false);
        }
    }

    /// Begins recovery with the packet at the cumulative acknowledgement.
    fn enter(&mut self, cx: &mut Cx<'_>, by_timeout: bool) {
        cx.trace(|| Trace::RecoveryEntered { acked: self.acked, by_timeout });
        self.phase = Phase::Suspecting;
        self.scan = self.acked;
        self.lost = Some(self.acked);
    }

    /// Finds the next hole below a SACK, or below an overtaken packet, that was not retransmitted yet.
    fn look_ahead(&mut self) {
        let from = self.scan.max(self.acked);
        self.lost = self.sacks.first_clear(from, self.sacks_end);
        if let (None, Some(stamps)) = (self.lost, &self.stamps) {
            let beyond = from.max(self.sacks_end);
            self.lost = (beyond < stamps.overtaken()).then_some(beyond);
        }
    }

    /// Records `sack`; returns 1 if it was not recorded before, otherwise 0.
    fn remember_sack(&mut self, sack: Seq) -> u64 {
        self.sacks_end = self.sacks_end.max(sack + 1);
        let fresh = self.sacks.insert(self.acked, sack);
        self.sacks_count += u32::from(fresh);
        u64::from(fresh)
    }

    /// Records the packets between `holes` (newest first) and below `sack`, which have arrived; returns how many of
    /// them were not recorded before.
    fn remember_between(&mut self, sack: Seq, holes: &[Range<Seq>; 3]) -> u64 {
        let older = holes.iter().rev().filter(|hole| !hole.is_empty() && hole.start < sack);
        let newer = older.clone().skip(1).map(|hole| hole.start).chain([sack]);
        let mut fresh = 0;
        for (hole, end) in older.zip(newer) {
            fresh += self.sacks.fill(self.acked, hole.end.max(self.acked + 1), end);
        }
        self.sacks_count += fresh as u32;
        fresh
    }

    /// Removes the SACKs before `expected`; returns how many there were.
    fn forget_sacks(&mut self, expected: Seq) -> u64 {
        let cleared = self.sacks.clear(self.acked, expected.min(self.sacks_end));
        self.sacks_count -= cleared as u32;
        cleared
    }
}
