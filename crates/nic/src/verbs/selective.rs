//! What both ends of a connection between two of our own need (IRN, section 5).

use alloc::collections::VecDeque;

use selvedge_transport::{Receiver, RecoveryConfig, WIDEST_WINDOW};
use selvedge_units::{Instant, Setting};
use selvedge_wire::verbs::{Headers, Ours};
use selvedge_wire::{Ack, AckKind, Extension, Holes};

use super::attributes::Terms;
use super::requester::scheme;
use super::rnic::Transmit;

/// The same recovery for a receiver, which takes whatever the other side's own cap lets it send.
pub(super) fn widest(recovery: RecoveryConfig) -> RecoveryConfig {
    match recovery {
        RecoveryConfig::Irn(irn) => RecoveryConfig::Irn(selvedge_transport::recovery::irn::IrnConfig {
            bdp_cap: Setting::Value(WIDEST_WINDOW as u32),
            ..irn
        }),
        other => other,
    }
}

/// Acknowledgements that are to be sent. One that only says that more has arrived in order replaces such a one: where
/// packets are taken in batches it speaks for the batch.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<Said>);

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    ack: Ack,
    /// Where the scheme's NACKs carry them (MELO).
    holes: Option<Holes>,
    /// The time stamp of the packet that caused it.
    sent_at: Instant,
}

impl Said {
    /// What `receiver` says to a packet that was sent at `sent_at`.
    pub(super) fn by(receiver: &Receiver, ack: Ack, sent_at: Instant) -> Self {
        let is_negative = ack.kind == AckKind::Nack;
        let holes = if is_negative { receiver.with_holes(&ack).map(|nack| nack.holes) } else { None };
        Self { ack, holes, sent_at }
    }
}

impl Pending {
    pub(super) fn push(&mut self, said: Said) {
        match self.0.back_mut() {
            Some(last) if last.ack.kind == AckKind::Ack && said.ack.kind == AckKind::Ack => *last = said,
            _ => self.0.push_back(said),
        }
    }
    pub(super) fn pop(&mut self) -> Option<Said> {
        self.0.pop_front()
    }
}

/// An acknowledgement as a packet.
pub(super) fn acknowledgement(terms: &Terms, opcode: u8, said: &Said) -> Transmit {
    let Said { ack, holes, sent_at } = *said;
    let (bth, aeth) = ack.headers();
    let headers = Headers {
        bth: selvedge_wire::Bth { becn: bth.becn, ..terms.bth(opcode, bth.psn) },
        ours: scheme(&terms.init.recovery).map_or(Ours::No, Ours::Uses),
        aeth: Some(aeth),
        extension: Some(Extension { sent_at, sack: ack.sack, ..Extension::default() }),
        holes,
        ..Headers::default()
    };
    Transmit { route: terms.route, headers, payload: 0 }
}
