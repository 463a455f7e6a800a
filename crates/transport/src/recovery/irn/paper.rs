//! The sender as the text of section 3 has it.
//!
//! 1. A NACK or a timeout begins recovery with the packet at the cumulative acknowledgement. Any
//!    later packet counts as lost only once a higher one is selectively acknowledged.
//! 2. The recovery sequence is latched anew at every retransmission, as in the authors' hardware
//!    code: the text can be read either way. So a cumulative acknowledgement at or below it was
//!    triggered by a packet that was sent after the one it stops at. Where paths keep order, that
//!    one is lost: it is sent again even if nothing above it was selectively acknowledged. With
//!    several retransmissions under way the acknowledgement may be an earlier one's, and the guess is wrong; what
//!    is sent again then latches the sequence anew, and every acknowledgement that follows is
//!    misread, too. [`PartialAcks::First`] guesses up to what the first retransmission latched, [`PartialAcks::None`]
//!    not at all.
//! 3. Each packet is sent again at most once per recovery; if it is lost again, the timeout begins
//!    a new one. The SACK bitmap survives, so only holes are repeated.
//! 4. Retransmissions go before new packets and ignore the cap. New packets go out during recovery
//!    if the cap allows.
//! 5. Without SACKs (section 4.3) nothing is remembered but the cumulative acknowledgement: a
//!    recovery repeats its first packet, and one more at each partial acknowledgement.
//! 6. If the cumulative acknowledgement moves before anything was sent again, packets had only been
//!    reordered, and recovery is called off; except when a SACK shows a hole at its new place.
//! 7. With time stamps ([`Stamps`]), notes 2 and 3 need no guess: an acknowledgement below the recovery sequence means
//!    a loss if its packet was sent after the latest retransmission, and what was sent again and overtaken is sent
//!    again at once. A timeout in recovery then repeats one packet alone.
//! 8. Where a timeout may send several packets ([`Probes`]), the packet at the cumulative acknowledgement goes out so
//!    many times: as soon as one of them has an answer, notes 1 to 7 do the rest.
//! 9. A receiver that was not ready for a packet says so when that is the one at the cumulative acknowledgement
//!    (section 5): it is sent again, even if it was in this recovery.

use alloc::boxed::Box;
use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};

use super::probes::Probes;
use super::stamps::Stamps;
use super::{IrnConfig, PartialAcks};
use crate::bitmap::Bitmap;
use crate::role::Cx;

/// State of the sender: what the paper's NIC holds per queue pair (section 6.1), with sequence
/// numbers that do not wrap.
#[derive(Clone, Debug)]
pub(super) struct Paper {
    acked: Seq,
    /// The next new packet.
    next: Seq,
    phase: Phase,
    /// The packet to send again now.
    lost: Option<Seq>,
    /// Packets before this one have been sent again in this recovery, or need not be.
    scan: Seq,
    /// The recovery sequence: the last new packet before the latest retransmission.
    recover: Seq,
    /// Up to here a partial acknowledgement tells of a loss: the recovery sequence, or what it was at first, or zero.
    guess: Seq,
    partial_acks: PartialAcks,
    /// Selectively acknowledged packets beyond `acked`.
    sacks: Bitmap,
    /// One past the highest of them.
    sacks_end: Seq,
    sacks_count: u32,
    /// NACKs since the last cumulative progress.
    nacks: u32,
    nack_threshold: u32,
    /// Whether SACKs are remembered.
    sack: bool,
    /// Where time stamps count. Boxed: few flows have them.
    stamps: Option<Box<Stamps>>,
    probes: Probes,
}

/// Where recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// A loss is assumed; nothing has been sent again yet.
    Suspecting,
    /// Something has been sent again.
    Recovering,
}

/// What an acknowledgement did.
pub(super) struct Effect {
    /// Packets newly known to have arrived.
    pub(super) delivered: u64,
    /// The cumulative acknowledgement moved.
    pub(super) advanced: bool,
    /// Recovery began.
    pub(super) entered: bool,
}

impl Paper {
    pub(super) fn new(config: &IrnConfig) -> Self {
        Self {
            acked: Seq::ZERO,
            next: Seq::ZERO,
            phase: Phase::Open,
            lost: None,
            scan: Seq::ZERO,
            recover: Seq::ZERO,
            guess: Seq::ZERO,
            partial_acks: config.told_by_partial_acks(),
            sacks: Bitmap::default(),
            sacks_end: Seq::ZERO,
            sacks_count: 0,
            nacks: 0,
            nack_threshold: config.nack_threshold,
            sack: config.sack,
            stamps: config.time_stamps.then(|| Box::new(Stamps::new())),
            probes: Probes::new(config.probes),
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
        // A packet that was overtaken is sent again out of turn.
        self.scan = self.scan.max(seq + 1);
        self.look_ahead();
        if self.lost.is_none() && self.probes.take() {
            self.lost = Some(self.acked);
        }
    }
    /// Somebody answers: what is lost will be known.
    fn on_sign_of_life(&mut self) {
        if self.probes.stop() && self.lost.is_some_and(|lost| lost < self.scan) {
            self.look_ahead();
        }
    }

    /// `expected` was checked: it is at most `next`. `sack` belongs to a NACK and is not checked. The packet that
    /// triggered the acknowledgement was sent `rtt` ago.
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Cx<'_>,
        expected: Seq,
        sack: Option<Seq>,
        holes: Option<&[Range<Seq>; 3]>,
        rtt: Duration,
    ) -> Effect {
        // In order, nothing lost: the common case touches no more than this.
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

    /// The cumulative acknowledgement moved during recovery. Returns whether another began.
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
            // NACKs that came during this recovery may have told of the next loss already.
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
                // It was to be sent once more, and has arrived.
                if self.lost.is_some_and(|lost| lost < self.acked) {
                    self.look_ahead();
                }
            }
            None if self.acked <= self.guess => self.lost = Some(self.acked),
            // What SACKs show, and no more.
            None => self.look_ahead(),
        }
        false
    }

    /// During recovery, a packet that was sent at `sent_at` has arrived.
    fn on_stamp(&mut self, sent_at: Instant, is_out_of_order: bool) {
        let Some(stamps) = &mut self.stamps else { return };
        stamps.on_arrival(sent_at, self.recover + 1);
        if is_out_of_order && self.acked < self.scan && stamps.is_head_overtaken(sent_at) {
            self.lost = Some(self.acked);
        } else if self.lost.is_none_or(|lost| lost < self.acked || self.sacks.contains(lost)) {
            self.look_ahead();
        }
    }

    /// Returns whether recovery began.
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
            // It arrived after all, or shows new holes below it.
            Phase::Recovering if self.lost.is_none_or(|lost| lost == sack) => self.look_ahead(),
            Phase::Recovering => {}
        }
        false
    }

    pub(super) fn on_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::Recovering && self.stamps.is_some() {
            self.lost = Some(self.acked);
        } else {
            self.enter(cx, true);
        }
        self.probes.on_timeout();
    }

    /// The packet at the cumulative acknowledgement has to be sent again, whether or not it was.
    pub(super) fn on_not_ready(&mut self, cx: &mut Cx<'_>) {
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

    /// Finds the next hole below a SACK, or below what was overtaken, that was not sent again yet.
    fn look_ahead(&mut self) {
        let from = self.scan.max(self.acked);
        self.lost = self.sacks.first_clear(from, self.sacks_end);
        if let (None, Some(stamps)) = (self.lost, &self.stamps) {
            let beyond = from.max(self.sacks_end);
            self.lost = (beyond < stamps.overtaken()).then_some(beyond);
        }
    }

    /// Sets the bit of `sack`; returns 1 if it was clear.
    fn remember_sack(&mut self, sack: Seq) -> u64 {
        self.sacks_end = self.sacks_end.max(sack + 1);
        let fresh = self.sacks.insert(self.acked, sack);
        self.sacks_count += u32::from(fresh);
        u64::from(fresh)
    }

    /// What lies between `holes`, newest first, and below `sack`, has arrived; returns how many packets were not known
    /// to have.
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

    /// Clears the bits before `expected`; returns how many were set.
    fn forget_sacks(&mut self, expected: Seq) -> u64 {
        let cleared = self.sacks.clear(self.acked, expected.min(self.sacks_end));
        self.sacks_count -= cleared as u32;
        cleared
    }
}
