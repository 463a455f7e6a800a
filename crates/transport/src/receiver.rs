//! The receiver of one flow: any acceptance, behind PSNs.

use selvedge_units::{Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data, HoleNack, Holes};

use crate::on_chip::OnChip;
use crate::recovery::{Acceptance, AnyAcceptance, RecoveryConfig, Unanswered};
use crate::role::{Cx, Reply};

/// What a receiver is built from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceiverConfig {
    /// Loss recovery, every "auto" resolved; the same as the sender's.
    pub recovery: RecoveryConfig,
}

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver<A = AnyAcceptance> {
    acceptance: A,
    first_psn: Psn,
}

impl Receiver {
    /// A receiver that expects `first_psn`.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn new(config: &ReceiverConfig, first_psn: Psn) -> Self {
        Self::with(AnyAcceptance::from(&config.recovery), first_psn)
    }
}

impl Receiver<crate::recovery::go_back_n::Recv> {
    /// The next `packets` will not come; see [`Recv::skip`](crate::recovery::go_back_n::Recv::skip).
    pub fn skip(&mut self, packets: u64) {
        self.acceptance.skip(packets);
    }
}

impl Receiver<crate::recovery::irn::Recv> {
    /// Whether packet `seq`, which lies at or beyond the expected one, has arrived.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        self.acceptance.has(seq)
    }
}

impl<A: Acceptance> Receiver<A> {
    /// A receiver around `acceptance` that expects `first_psn`.
    pub fn with(acceptance: A, first_psn: Psn) -> Self {
        Self { acceptance, first_psn }
    }

    /// Takes a data packet; `marked` says whether it arrived with congestion experienced. At most
    /// one acknowledgement comes back, to be sent at once. Its MSN is zero: messages are the
    /// business of the layer above, which fills it in.
    ///
    /// `chip` is what all receivers of a NIC share, built by [`Scheme::on_chip`](crate::Scheme::on_chip).
    #[inline(always)]
    pub fn on_data(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, data: &Data, marked: bool) -> Reply {
        self.acceptance.answer(cx, chip, data, marked, self.first_psn)
    }

    /// The PSN of the packet that is expected, and for how many packets from that one on nothing comes back: for
    /// drivers that handle many such in a row. `None` if that is none.
    #[inline(always)]
    pub fn unanswered(&self) -> Option<(Psn, Unanswered)> {
        let unanswered = self.acceptance.unanswered();
        (unanswered.packets > 0).then(|| (self.expected().to_psn(self.first_psn), unanswered))
    }

    /// Takes the next packets, so many, as [`Receiver::on_data`] does; they are [unanswered](Receiver::unanswered).
    #[inline(always)]
    pub fn take_unanswered(&mut self, packets: u64) {
        self.acceptance.take_unanswered(packets);
    }

    /// An acknowledgement of what has arrived so far, occasioned by `data`: for schemes that send none
    /// themselves.
    pub fn acknowledge(&self, data: &Data, marked: bool) -> Ack {
        let expected = self.expected().to_psn(self.first_psn);
        Ack { kind: AckKind::Ack, ecn_echo: marked, expected, sack: data.psn, msn: 0 }
    }

    /// What to send in place of a NACK that was just made, where NACKs carry holes: if a packet behind the newest has
    /// triggered it.
    #[inline]
    pub fn with_holes(&self, nack: &Ack) -> Option<HoleNack> {
        let holes = self.holes()?;
        let nack = nack.with_holes(holes);
        (holes[0].length > 0 && nack.behind < u16::MAX / 2).then_some(nack)
    }
    /// The newest holes, newest first, where NACKs carry them.
    #[inline]
    pub fn holes(&self) -> Option<Holes> {
        Some(self.acceptance.holes()?.map(|hole| hole.shifted(self.first_psn)))
    }

    /// It will be forgotten: gives back what it holds of the chip's memory.
    pub fn release(&mut self, chip: &mut OnChip) {
        self.acceptance.release(chip);
    }

    /// The packet expected next: everything before it has arrived.
    #[inline]
    pub fn expected(&self) -> Seq {
        self.acceptance.expected()
    }
}

const _: () = assert!(size_of::<Receiver>() <= 64, "a receiver fits one cache line");
