//! Links that fail and come back.

use selvedge_switch::busy_ports::NEVER;

use crate::net::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Takes the link at port `at` down, or up again. Packets that wait for a link that goes down are lost.
    pub(crate) fn set_down(&mut self, at: u32, down: bool) {
        if self.net.extras[at].down == down {
            return;
        }
        // Packets that the node sends now are sent as in its own window.
        self.edge.calendar.turn_to_window_of(self.node_of(at), self.net.now.as_ps());
        let is_lossy = self.edge.losses[at as usize].is_some();
        self.net.set_down(&mut self.edge, at, down, is_lossy);
        let port = &self.net.egress[at];
        if port.is_host && !down {
            self.kick_host(port.owner, at);
        }
        self.book_port(at);
    }

    /// Returns the node that owns port `at`.
    fn node_of(&self, at: u32) -> u32 {
        let port = &self.net.egress[at];
        if port.is_host { port.owner } else { self.edge.hosts.len() as u32 + port.owner }
    }

    /// Books the node of port `at` for the events that are due there, after a change between windows.
    fn book_port(&mut self, at: u32) {
        let port = &self.net.egress[at];
        let due = if port.is_host { self.host_due(port.owner) } else { self.net.switches[port.owner].due() };
        if due != NEVER {
            self.edge.calendar.book(self.node_of(at), due);
        }
    }
}
