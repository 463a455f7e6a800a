//! What both ends of a connection between two of our own need (IRN, section 5).

use alloc::collections::VecDeque;

use selvedge_transport::{RecoveryConfig, WIDEST_WINDOW};
use selvedge_units::{Instant, Setting};
use selvedge_wire::verbs::{Headers, Ours};
use selvedge_wire::{Ack, Extension};

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
pub(super) struct Pending(VecDeque<(Ack, Instant)>);

impl Pending {
    /// `sent_at` is the time stamp of the packet that caused it.
    pub(super) fn push(&mut self, ack: Ack, sent_at: Instant) {
        use selvedge_wire::AckKind::Ack as Positive;
        match self.0.back_mut() {
            Some(last) if last.0.kind == Positive && ack.kind == Positive => *last = (ack, sent_at),
            _ => self.0.push_back((ack, sent_at)),
        }
    }
    pub(super) fn pop(&mut self) -> Option<(Ack, Instant)> {
        self.0.pop_front()
    }
}

/// An acknowledgement as a packet.
pub(super) fn acknowledgement(terms: &Terms, opcode: u8, ack: &Ack, sent_at: Instant) -> Transmit {
    let (bth, aeth) = ack.headers();
    let headers = Headers {
        bth: selvedge_wire::Bth { becn: bth.becn, ..terms.bth(opcode, bth.psn) },
        ours: scheme(&terms.init.recovery).map_or(Ours::No, Ours::Uses),
        aeth: Some(aeth),
        extension: Some(Extension { sent_at, sack: ack.sack, ..Extension::default() }),
        ..Headers::default()
    };
    Transmit { route: terms.route, headers, payload: 0 }
}
