//! State that both ends of a connection between two Selvedge NICs need (IRN, section 5).

use alloc::collections::VecDeque;

use selvedge_transport::{Cx, Receiver, RecoveryParams, SchemeParams, Segment, Sender, WIDEST_WINDOW};
use selvedge_units::{Duration, Instant, Psn};
use selvedge_wire::verbs::{Headers, Ours};
use selvedge_wire::{Ack, AckKind, Extension, Holes, Syndrome, Waited};

use super::attributes::Terms;
use super::shared::Shared;
use super::transmit::Transmit;

/// Packets that the other side may be expected to have in flight, though its own BDP cap may differ from this side's.
/// Packets farther ahead belong to an earlier use of the queue pair.
const FARTHEST: u32 = 4_096;

/// Returns how far ahead of the expected packet a packet may be.
pub(super) fn reach(recovery: &RecoveryParams) -> u32 {
    recovery.bdp_cap().map_or(WIDEST_WINDOW as u32, |cap| cap.max(FARTHEST))
}

/// Returns `recovery` for a receiver, which accepts as many packets in flight as the other side's cap
/// permits.
pub(super) fn widest(mut recovery: RecoveryParams) -> RecoveryParams {
    recovery.set_receivers_cap(Some(reach(&recovery)));
    recovery
}

/// Returns whether a packet that `sender` is about to send requests an acknowledgement.
pub(super) fn asks(terms: &Terms, sender: &Sender, segment: Segment) -> bool {
    /// Minimum acknowledgements per full window, so that the sender does not run dry between them.
    const LEAST: u32 = 4;
    let most = terms.init.recovery.bdp_cap().map_or(u32::MAX, |window| window / LEAST);
    let every = terms.init.ack_every.min(most).max(1);
    // The index wraps around: once in 2^32 packets an acknowledgement is requested too early.
    let number = segment.seq.index() as u32;
    segment.seq + 1 == sender.supplied() || segment.retransmission || number.wrapping_add(1).is_multiple_of(every)
}

/// Maximum number of equal acknowledgements pending, one for each copy of a packet that the sender repeats in a burst
/// of losses.
const ECHOES: usize = 16;

/// Acknowledgements waiting to be sent. Where packets are taken in batches, one acknowledgement may stand for several.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<PendingAck>);

/// An acknowledgement waiting to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAck {
    ack: Ack,
    /// Holes in the received sequence, if the scheme's NACKs carry them.
    holes: Option<Holes>,
    /// Time stamp of the packet that caused the acknowledgement.
    sent_at: Instant,
    /// Lowest SACK of the NACKs that this acknowledgement stands for.
    first: Psn,
    /// Time that the causing packet waited in this host.
    waited: Option<Duration>,
    /// Syndrome of a positive acknowledgement: the advertised receive requests.
    credits: Syndrome,
    /// Whether no packet caused the acknowledgement.
    is_unasked: bool,
}

impl PendingAck {
    /// Creates `receiver`'s acknowledgement of a packet that was sent at `sent_at`.
    pub(super) fn by(receiver: &Receiver, ack: Ack, sent_at: Instant) -> Self {
        let is_negative = ack.kind == AckKind::Nack;
        let holes = if is_negative { receiver.holes() } else { None };
        let credits = Syndrome::NO_CREDITS;
        Self { ack, holes, sent_at, first: ack.sack, waited: None, credits, is_unasked: false }
    }
    pub(super) fn is_positive(&self) -> bool {
        self.ack.kind == AckKind::Ack
    }
    /// Returns the acknowledgement with the syndrome `credits`, which advertises receive requests if it is positive.
    pub(super) fn advertising(self, credits: Syndrome) -> Self {
        Self { credits, ..self }
    }
    /// Returns the acknowledgement marked as one that no packet caused.
    pub(super) fn unasked(self) -> Self {
        Self { is_unasked: true, ..self }
    }
    /// Returns the acknowledgement with the time that its packet waited in this host before it was handled.
    pub(super) fn after(self, waited: Option<Duration>) -> Self {
        Self { waited, ..self }
    }
    /// Returns whether `before` has the same cause, with no other packet between.
    fn repeats(&self, before: &Self) -> bool {
        (self.ack.sack, self.ack.expected) == (before.ack.sack, before.ack.expected)
    }
    /// Returns an acknowledgement that stands for both, if no information is lost.
    fn instead_of(self, before: &Self) -> Option<Self> {
        match (before.ack.kind, self.ack.kind) {
            // Congestion control counts marked packets.
            _ if self.ack.ecn_echo != before.ack.ecn_echo => None,
            (AckKind::Ack, AckKind::Ack) => Some(self),
            (AckKind::Nack, AckKind::Ack) => (self.ack.expected.ahead_of(before.ack.sack) > 0).then_some(self),
            (AckKind::Ack, AckKind::Nack) => self.holes.is_some().then_some(self),
            (AckKind::Nack, AckKind::Nack) => {
                // The SACK of a retransmission is not the newest.
                let sack = if self.ack.sack.ahead_of(before.ack.sack) > 0 { self.ack.sack } else { before.ack.sack };
                let first = if before.first.ahead_of(self.first) > 0 { self.first } else { before.first };
                let both = Self { ack: Ack { sack, ..self.ack }, first, ..self };
                both.tells_of_first().then_some(both)
            }
        }
    }
    /// Returns whether the holes reach back before `first`, so that they describe every packet from there to the SACK.
    fn tells_of_first(&self) -> bool {
        let oldest = self.holes.and_then(|holes| holes.into_iter().rfind(|hole| hole.length > 0));
        let Some(oldest) = oldest else { return false };
        let behind = (self.ack.sack.get() as u16).wrapping_sub(oldest.start) as i16;
        self.ack.sack.ahead_of(self.first) < i32::from(behind)
    }
}

impl Pending {
    pub(super) fn push(&mut self, ack: PendingAck) {
        let waiting = self.0.len();
        if let Some(last) = self.0.back_mut()
            && (waiting >= ECHOES || !ack.repeats(last))
            && let Some(both) = ack.instead_of(last)
        {
            *last = both;
        } else {
            self.0.push_back(ack);
        }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn pop(&mut self) -> Option<PendingAck> {
        self.0.pop_front()
    }
}

/// Returns the packet that carries an acknowledgement.
pub(super) fn acknowledgement(terms: &Terms, opcode: u8, ack: &PendingAck) -> Transmit {
    let PendingAck { ack, holes, sent_at, waited, credits, is_unasked, .. } = *ack;
    let (bth, mut aeth) = ack.headers();
    if let Syndrome::Ack(_) = aeth.syndrome {
        aeth.syndrome = credits;
    }
    let (sack, waited) = (ack.sack, Waited::of(waited));
    let extension = Extension { sent_at, sack, waited, retransmission: is_unasked, ..Extension::default() };
    let headers = Headers {
        bth: selvedge_wire::Bth { becn: bth.becn, ..terms.bth(opcode, bth.psn) },
        ours: terms.init.recovery.wire_id().map_or(Ours::No, Ours::Uses),
        aeth: Some(aeth),
        extension: Some(extension),
        holes,
        ..Headers::default()
    };
    Transmit { route: terms.route, headers, payload: 0 }
}

/// Passes an acknowledgement to a sender.
pub(super) fn hear(
    sender: &mut Sender,
    cx: &mut Cx<'_>,
    terms: &Terms,
    shared: &mut Shared,
    ack: &Ack,
    headers: &Headers,
) {
    let Some(Extension { sent_at, waited, .. }) = headers.extension else { return };
    match headers.holes {
        Some(holes) => sender.on_nack_and_holes(cx, &mut shared.pools, ack, holes, sent_at),
        None => sender.handle_ack(cx, &mut shared.pools, ack, sent_at),
    }
    shared.paths.on_echo(terms.path, cx.now, sent_at, waited.time());
}
