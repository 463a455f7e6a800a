//! The three steps that take a reliable queue pair from Reset to ReadyToSend.

use selvedge_units::{Psn, QpNumber};

use super::{Access, QpChange, QpState, Route};

/// Parameters of a reliable connection at one side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Handshake {
    /// Access rights of the other side.
    pub access: Access,
    /// Route to the other side.
    pub route: Route,
    /// Queue pair of the other side.
    pub destination: QpNumber,
    /// Maximum payload of a packet in bytes, like [`QpChange::mtu`].
    pub mtu: u16,
    /// PSN of the first request to send.
    pub send_psn: Psn,
    /// PSN of the first request expected.
    pub receive_psn: Psn,
    /// Reads and Atomics outstanding at a time, in each direction.
    pub reads: u8,
    /// Retransmission timeout, encoded like [`QpChange::timeout`].
    pub timeout: u8,
    /// Number of retries after a timeout, 0 to 7.
    pub retries: u8,
    /// RNR timer code: how long a sender waits when no receive request is ready; it retries without limit.
    pub not_ready_timer: u8,
}

impl Handshake {
    /// Returns the state changes to make, in order.
    pub fn steps(&self) -> [QpChange; 3] {
        [
            QpChange {
                state: Some(QpState::Initialised),
                access: Some(self.access),
                pkey_index: Some(0),
                port: Some(1),
                ..QpChange::default()
            },
            QpChange {
                state: Some(QpState::ReadyToReceive),
                route: Some(self.route),
                destination: Some(self.destination),
                mtu: Some(self.mtu),
                receive_psn: Some(self.receive_psn),
                reads_answered: Some(self.reads),
                not_ready_timer: Some(self.not_ready_timer),
                ..QpChange::default()
            },
            QpChange {
                state: Some(QpState::ReadyToSend),
                send_psn: Some(self.send_psn),
                timeout: Some(self.timeout),
                retries: Some(self.retries),
                not_ready_retries: Some(7),
                reads_asked: Some(self.reads),
                ..QpChange::default()
            },
        ]
    }
}
