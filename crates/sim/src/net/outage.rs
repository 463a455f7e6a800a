//! Links that fail and come back.

use selvedge_telemetry::DropReason;

use super::port::Egress;
use crate::kernel::busy_ports::NEVER;
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Takes the link at port `at` down, or up again. Packets that wait for a link that goes down are lost.
    pub(crate) fn set_down(&mut self, at: u32, down: bool) {
        let extra = &mut self.extras[at];
        if extra.down == down {
            return;
        }
        extra.down = down;
        // Packets that the node sends now are sent as in its own window.
        self.calendar.turn_to_window_of(self.node_of(at), self.now.as_ps());
        if RECORDED {
            self.note_link(at, !down);
        }
        let is_at_tor = self.is_at_tor(at);
        let has_loss = self.extras[at].loss.is_some();
        self.set_slow_path(at, down || has_loss || is_at_tor);
        let extra = &mut self.extras[at];
        let port = &mut self.egress[at];
        if down {
            extra.end_pause(self.now);
            port.paused = Egress::DOWN;
            self.flush(at);
            self.forget_idle(at);
        } else {
            port.paused = 0;
            // A pause that was announced to the other end has ended with the link.
            self.ingress[at].announced = 0;
            self.note_pause_due(at);
            self.kick(at);
        }
        self.book_port(at);
    }

    /// Returns the node that owns port `at`.
    fn node_of(&self, at: u32) -> u32 {
        let port = &self.egress[at];
        if port.is_host { port.owner } else { self.hosts.len() as u32 + port.owner }
    }

    /// Books the node of port `at` for the events that are due there, after a change between windows.
    fn book_port(&mut self, at: u32) {
        let port = &self.egress[at];
        let due = if port.is_host { self.host_due(port.owner) } else { self.switches[port.owner].due() };
        if due != NEVER {
            self.calendar.book(self.node_of(at), due);
        }
    }

    /// Drops all packets that wait for port `at`.
    fn flush(&mut self, at: u32) {
        while self.egress[at].waiting != 0 {
            let class = self.egress[at].waiting.ilog2() as u8;
            let line = self.line_of(at, class);
            let switch = self.egress[at].owner;
            let line = &mut self.lines[line];
            let packet = line.pop(&mut self.queues, &mut self.store);
            if line.is_empty() {
                self.egress[at].waiting &= !(1 << class);
            }
            let ingress = self.switches[switch].facts.first_port + u32::from(packet.port);
            self.release_sent(switch, ingress, at, u64::from(packet.frame), packet.class);
            self.drop_packet(ingress, packet.slot, DropReason::LinkDown);
        }
    }
}
