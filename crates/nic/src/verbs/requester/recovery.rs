//! Which loss recovery a connection uses.

use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::{RecoveryConfig, Sender, SenderConfig};
use selvedge_units::{Bytes, Psn, Setting};

use crate::verbs::attributes::Terms;

/// The number that our own packets call a recovery by, 1 to 15; `None` if a connection that uses it is standard.
pub fn scheme(recovery: &RecoveryConfig) -> Option<u8> {
    match recovery {
        RecoveryConfig::GoBackN(_) => None,
        RecoveryConfig::Irn(_) => Some(1),
        RecoveryConfig::Melo(_) => Some(2),
    }
}

/// Go-back-N as the InfiniBand specification has it.
pub(in crate::verbs) fn go_back_n(terms: &Terms) -> GoBackNConfig {
    GoBackNConfig {
        rto: terms.timeout.map_or(Setting::Off, Setting::Value),
        rto_low: Setting::Off,
        rto_low_packets: 0,
        acks: Acks::PerPacket,
        ack_every: 1,
        ack_interval: Setting::Off,
        nack: Nacks::OncePerGap,
        bdp_cap: Setting::Value(terms.init.window.max(1)),
        ..GoBackNConfig::default()
    }
}

/// A sender of so large packets.
pub(in crate::verbs) fn sender(terms: &Terms, recovery: RecoveryConfig, first_psn: Psn) -> Sender {
    let frame = Bytes::new(u64::from(terms.mtu)) + terms.init.overhead;
    Sender::new(&SenderConfig { recovery, congestion: terms.init.congestion, frame }, first_psn)
}
