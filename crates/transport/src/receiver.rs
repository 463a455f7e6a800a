//! The receiver of one flow: any loss recovery, with PSNs converted to sequence numbers.

use selvedge_units::{Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data, HoleNack, Holes};

use crate::recovery::{AnyRecoveryReceiver, RecoveryParams, RecoveryReceiver, Unanswered};
use crate::role::{Cx, Reply};

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver<R = AnyRecoveryReceiver> {
    recovery: R,
    first_psn: Psn,
}

impl Receiver {
    /// Creates a receiver that expects `first_psn`, with the sender's loss recovery.
    pub fn new(recovery: &RecoveryParams, first_psn: Psn) -> Self {
        Self::with(AnyRecoveryReceiver::from(recovery), first_psn)
    }
}

impl Receiver<crate::recovery::go_back_n::Recv> {
    /// Skips the next `packets`, which will not arrive; see [`Recv::skip`](crate::recovery::go_back_n::Recv::skip).
    pub fn skip(&mut self, packets: u64) {
        self.recovery.skip(packets);
    }
}

impl Receiver<crate::recovery::irn::Recv> {
    /// Returns whether packet `seq`, which lies at or beyond the expected one, has arrived.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        self.recovery.has(seq)
    }
}

impl<R: RecoveryReceiver> Receiver<R> {
    /// Creates a receiver around `recovery` that expects `first_psn`.
    pub fn with(recovery: R, first_psn: Psn) -> Self {
        Self { recovery, first_psn }
    }

    /// Handles a data packet; `marked` says whether it arrived with congestion experienced. Returns at most one
    /// acknowledgement, to be sent at once. Its MSN is zero: messages are the concern of the layer above, which fills
    /// the MSN in.
    ///
    /// `shared` is the state that all receivers of a NIC share, built by
    /// [`SchemeParams::shared`](crate::SchemeParams::shared).
    #[inline(always)]
    pub fn handle_data(&mut self, cx: &mut Cx<'_>, shared: &mut R::Shared, data: &Data, marked: bool) -> Reply {
        self.recovery.answer(cx, shared, data, marked, self.first_psn)
    }

    /// Returns the PSN of the expected packet, and for how many packets from that one on no acknowledgement is due; for
    /// drivers that handle many such packets at once. `None` if that number is zero.
    #[inline(always)]
    pub fn unanswered(&self) -> Option<(Psn, Unanswered)> {
        let unanswered = self.recovery.unanswered();
        (unanswered.packets > 0).then(|| (self.expected().to_psn(self.first_psn), unanswered))
    }

    /// Accepts the next `packets` packets at once like [`Receiver::handle_data`], where they are
    /// [unanswered](Receiver::unanswered).
    #[inline(always)]
    pub fn take_unanswered(&mut self, packets: u64) {
        self.recovery.take_unanswered(packets);
    }

    /// Returns an acknowledgement of all packets that have arrived so far, triggered by `data`; for schemes that send
    /// no acknowledgements themselves.
    pub fn acknowledge(&self, data: &Data, marked: bool) -> Ack {
        let expected = self.expected().to_psn(self.first_psn);
        Ack { kind: AckKind::Ack, ecn_echo: marked, expected, sack: data.psn, msn: 0 }
    }

    /// Returns a NACK with holes to send in place of `nack`, which was just made: if NACKs carry holes, and if a packet
    /// behind the newest one has triggered it.
    #[inline]
    pub fn with_holes(&self, nack: &Ack) -> Option<HoleNack> {
        let holes = self.holes()?;
        let nack = nack.with_holes(holes);
        (holes[0].length > 0 && nack.behind < u16::MAX / 2).then_some(nack)
    }
    /// Returns the newest holes, newest first, where NACKs carry them.
    #[inline]
    pub fn holes(&self) -> Option<Holes> {
        Some(self.recovery.holes()?.map(|hole| hole.shifted(self.first_psn)))
    }

    /// Releases the flow's part of the chip's memory, before the receiver is dropped.
    pub fn release(&mut self, shared: &mut R::Shared) {
        self.recovery.release(shared);
    }

    /// Returns the packet expected next: every packet before it has arrived.
    #[inline]
    pub fn expected(&self) -> Seq {
        self.recovery.expected()
    }
}

const _: () = assert!(size_of::<Receiver>() <= 64, "a receiver fits one cache line");
