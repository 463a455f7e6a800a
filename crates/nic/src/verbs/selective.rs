//! What both ends of a connection between two of our own need (IRN, section 5).

use alloc::collections::VecDeque;

use selvedge_transport::{Cx, Receiver, RecoveryConfig, Scheme, Segment, Sender, WIDEST_WINDOW};
use selvedge_units::{Duration, Instant, Psn, Setting};
use selvedge_wire::verbs::{Headers, Ours};
use selvedge_wire::{Ack, AckKind, Extension, Holes, Syndrome, Waited};

use super::attributes::Terms;
use super::requester::scheme;
use super::shared::Shared;
use super::transmit::Transmit;

/// Packets that the other side may be expected to have under way, though its own cap may differ from ours: what is
/// farther ahead is of another life of the queue pair.
const FARTHEST: u32 = 4_096;

/// How far ahead of what is expected packets may be.
pub(super) fn reach(recovery: &RecoveryConfig) -> u32 {
    if let Setting::Value(cap) = recovery.bdp_cap() { cap.max(FARTHEST) } else { WIDEST_WINDOW as u32 }
}

/// The same recovery for a receiver, which takes what the other side's own cap lets it send.
pub(super) fn widest(recovery: RecoveryConfig) -> RecoveryConfig {
    match recovery {
        RecoveryConfig::Irn(irn) => RecoveryConfig::Irn(selvedge_transport::recovery::irn::IrnConfig {
            bdp_cap: Setting::Value(reach(&recovery)),
            ..irn
        }),
        other => other,
    }
}

/// Whether a packet asks for an acknowledgement, which is about to be sent by `sender`.
pub(super) fn asks(terms: &Terms, sender: &Sender, segment: Segment) -> bool {
    /// Acknowledgements that a full window brings at the least: the sender must not run dry between them.
    const LEAST: u32 = 4;
    let most = if let Setting::Value(window) = terms.init.recovery.bdp_cap() { window / LEAST } else { u32::MAX };
    let every = terms.init.ack_every.min(most).max(1);
    // Once in 2^32 it asks too early.
    let number = segment.seq.index() as u32;
    segment.seq + 1 == sender.supplied() || segment.retransmission || number.wrapping_add(1).is_multiple_of(every)
}

/// Who sends a packet several times at once, in a burst of losses, is answered as often, up to this.
const ECHOES: usize = 16;

/// Acknowledgements that are to be sent. Where packets are taken in batches, one speaks for several.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<PendingAck>);

/// An acknowledgement that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAck {
    ack: Ack,
    /// Where the scheme's NACKs carry them.
    holes: Option<Holes>,
    /// The time stamp of the packet that caused it.
    sent_at: Instant,
    /// The lowest SACK of the NACKs that it speaks for.
    first: Psn,
    /// How long that packet waited in this host.
    waited: Option<Duration>,
    /// Syndrome of a positive acknowledgement: receive requests that it advertises.
    credits: Syndrome,
    /// No packet caused it.
    is_unasked: bool,
}

impl PendingAck {
    /// What `receiver` says to a packet that was sent at `sent_at`.
    pub(super) fn by(receiver: &Receiver, ack: Ack, sent_at: Instant) -> Self {
        let is_negative = ack.kind == AckKind::Nack;
        let holes = if is_negative { receiver.holes() } else { None };
        let credits = Syndrome::NO_CREDITS;
        Self { ack, holes, sent_at, first: ack.sack, waited: None, credits, is_unasked: false }
    }
    pub(super) fn is_positive(&self) -> bool {
        self.ack.kind == AckKind::Ack
    }
    /// Returns the acknowledgement with this syndrome, if it is positive: receive requests that it advertises.
    pub(super) fn advertising(self, credits: Syndrome) -> Self {
        Self { credits, ..self }
    }
    /// Returns the acknowledgement marked as one that no packet caused.
    pub(super) fn unasked(self) -> Self {
        Self { is_unasked: true, ..self }
    }
    /// The same, of a packet that waited so long in this host before it was handled.
    pub(super) fn after(self, waited: Option<Duration>) -> Self {
        Self { waited, ..self }
    }
    /// Whether the same packet caused both, and nothing else came between.
    fn repeats(&self, before: &Self) -> bool {
        (self.ack.sack, self.ack.expected) == (before.ack.sack, before.ack.expected)
    }
    /// This one for both, if nothing is lost by that.
    fn instead_of(self, before: &Self) -> Option<Self> {
        match (before.ack.kind, self.ack.kind) {
            // Congestion control counts marks.
            _ if self.ack.ecn_echo != before.ack.ecn_echo => None,
            (AckKind::Ack, AckKind::Ack) => Some(self),
            (AckKind::Nack, AckKind::Ack) => (self.ack.expected.ahead_of(before.ack.sack) > 0).then_some(self),
            (AckKind::Ack, AckKind::Nack) => self.holes.is_some().then_some(self),
            (AckKind::Nack, AckKind::Nack) => {
                // A packet that was sent again is not the newest.
                let sack = if self.ack.sack.ahead_of(before.ack.sack) > 0 { self.ack.sack } else { before.ack.sack };
                let first = if before.first.ahead_of(self.first) > 0 { self.first } else { before.first };
                let both = Self { ack: Ack { sack, ..self.ack }, first, ..self };
                both.tells_of_first().then_some(both)
            }
        }
    }
    /// Whether its holes show that all between the oldest and the newest packet that it speaks for has arrived.
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

/// An acknowledgement as a packet.
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
        ours: scheme(&terms.init.recovery).map_or(Ours::No, Ours::Uses),
        aeth: Some(aeth),
        extension: Some(extension),
        holes,
        ..Headers::default()
    };
    Transmit { route: terms.route, headers, payload: 0 }
}

/// Tells a sender what an acknowledgement says.
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
        Some(holes) => sender.on_nack_and_holes(cx, &mut shared.chip, ack, holes, sent_at),
        None => sender.on_ack(cx, &mut shared.chip, ack, sent_at),
    }
    shared.paths.on_echo(terms.path, cx.now, sent_at, waited.time());
}
