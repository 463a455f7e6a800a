//! Selection of a connection's loss recovery.

use selvedge_transport::recovery::go_back_n::GoBackNParams;
use selvedge_transport::{RecoveryParams, Sender, SenderParams};
use selvedge_units::{Bytes, Psn};

use crate::verbs::attributes::Terms;

/// Returns the parameters of go-back-N with a standard peer.
pub(in crate::verbs) fn go_back_n(terms: &Terms) -> GoBackNParams {
    GoBackNParams::standard(terms.timeout, terms.init.window.max(1))
}

/// Creates a sender of packets of the connection's MTU.
pub(in crate::verbs) fn sender(terms: &Terms, recovery: RecoveryParams, first_psn: Psn) -> Sender {
    let frame = Bytes::new(u64::from(terms.mtu)) + terms.init.overhead;
    Sender::new(&SenderParams { recovery, congestion: terms.init.congestion, frame }, first_psn)
}
