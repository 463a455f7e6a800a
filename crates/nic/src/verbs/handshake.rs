//! From Reset to ReadyToSend in three steps, as whoever connects two reliable queue pairs takes them.

use selvedge_units::{Psn, QpNumber};

use super::{Access, QpChange, QpState, Route};

/// What one side is told of a reliable connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Handshake {
    /// What the other side may do.
    pub access: Access,
    /// The way to the other side.
    pub route: Route,
    /// The queue pair on the other side.
    pub destination: QpNumber,
    /// Bytes of payload that a packet carries at most, as [`QpChange::mtu`].
    pub mtu: u16,
    /// PSN of the first request that is sent.
    pub send_psn: Psn,
    /// PSN of the first request that is expected.
    pub receive_psn: Psn,
    /// Reads and Atomics under way at a time, asked for and answered.
    pub reads: u8,
    /// How long to wait for an answer, as [`QpChange::timeout`].
    pub timeout: u8,
    /// How often to try again after silence, 0 to 7.
    pub retries: u8,
    /// The code of how long a sender is to wait when no receive request is ready; it tries again for ever.
    pub not_ready_timer: u8,
}

impl Handshake {
    /// The changes to make, in order.
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
