//! Links that fail and come back.

use selvedge_telemetry::DropReason;

use crate::environment::{Environment, Note};
use crate::port::Egress;
use crate::switches::Switches;

impl Switches {
    /// Takes the link at port `at` down, or up again; `is_lossy`: the link loses packets at other times, too. Packets
    /// that wait for a link that goes down are lost. A host at `at` may send again when the link comes back: its NIC
    /// must be asked.
    pub fn set_down<E: Environment>(&mut self, env: &mut E, at: u32, down: bool, is_lossy: bool) {
        self.extras[at].down = down;
        if E::RECORDED {
            env.note(self, Note::Link { at, up: !down });
        }
        self.set_slow_path(at, down || is_lossy || self.is_at_tor(at));
        let port = &mut self.egress[at];
        if down {
            self.extras[at].end_pause(self.now);
            port.paused = Egress::DOWN;
            self.flush(env, at);
            self.forget_idle(at);
            return;
        }
        port.paused = 0;
        // A pause that was announced to the other end has ended with the link.
        self.ingress[at].announced = 0;
        self.note_pause_due(at);
        if !self.egress[at].is_host {
            self.kick(env, at);
        }
    }

    /// Drops all packets that wait for port `at`.
    fn flush<E: Environment>(&mut self, env: &mut E, at: u32) {
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
            self.release_sent(env, switch, ingress, at, u64::from(packet.frame), packet.class);
            self.drop_packet(env, ingress, packet.slot, DropReason::LinkDown);
        }
    }
}
