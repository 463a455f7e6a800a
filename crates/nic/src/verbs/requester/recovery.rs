//! Selection of a connection's loss recovery.

use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::{RecoveryConfig, Sender, SenderConfig};
use selvedge_units::{Bytes, Psn, Setting};

use crate::verbs::attributes::Terms;

/// Returns the configuration of go-back-N as in the InfiniBand specification.
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

/// Creates a sender of packets of the connection's MTU.
pub(in crate::verbs) fn sender(terms: &Terms, recovery: RecoveryConfig, first_psn: Psn) -> Sender {
    let frame = Bytes::new(u64::from(terms.mtu)) + terms.init.overhead;
    Sender::new(&SenderConfig { recovery, congestion: terms.init.congestion, frame }, first_psn)
}
