//! Deadlines of flows, tunnels and the NIC's own parts.

use selvedge_transport::Cx;
use selvedge_transport::endpoint::Endpoint;
use selvedge_units::Instant;

use super::{FlowParams, Nic, NicParams, call};
use crate::slot::{BESIDE, MESSAGES, Owner, QUEUE_PAIRS, TCP, TUNNELS};

impl Nic {
    /// Returns when to call [`Nic::handle_timeout`].
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = self.port.deadlines.next();
        (at != Instant::NEVER).then_some(at)
    }

    /// Handles all deadlines that have passed. Early or repeated calls have no effect.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while self.port.deadlines.next() <= cx.now
            && let Some((at, slot)) = self.port.deadlines.pop()
        {
            match Owner::of(slot) {
                Owner::Pacer => self.pull(cx.now, params),
                Owner::Requests => self.on_verbs_deadline(cx, at),
                owner @ (Owner::EgressTunnel(_) | Owner::IngressTunnel(_) | Owner::Engine) => {
                    self.on_tunnel_of_stack_deadline(cx, params, at, owner);
                }
                _ => {
                    call!(self, cx, params, slot, |endpoint, cx, entry| endpoint.handle_timeout(cx, entry, at));
                    self.join_tunnels();
                }
            }
        }
        self.hand_over(cx, params);
    }
}
