//! In-band telemetry (HPCC): what switches wrote on data waits here until its acknowledgement leaves.
//!
//! Asked only where switches write, so that others pay nothing.

use selvedge_units::{HostId, Instant, QpNumber};
use selvedge_wire::{Packet, PathRecord, Repr};

use crate::nic::Nic;

/// What an acknowledgement will carry.
#[derive(Debug)]
pub(crate) struct Echo {
    /// Which one: a host sends one packet at a time.
    of: (HostId, QpNumber, Instant),
    path: PathRecord,
}

impl Nic {
    /// Switches have written `path` on `packet`, which was handled just now.
    pub fn handle_path(&mut self, now: Instant, packet: &Packet, path: &PathRecord) {
        match packet.repr {
            // The answer to it, if there is one, waits behind all others.
            Repr::Data(_) => {
                let of = (packet.src, packet.qp, packet.sent_at);
                if self
                    .answers
                    .last()
                    .is_some_and(|answer| is_ack(answer) && (answer.dst, answer.qp, answer.sent_at) == of)
                {
                    self.echoes.push_back(Echo { of, path: *path });
                }
            }
            Repr::Ack(_) | Repr::HoleNack(_) => {
                if let Some(state) = self.sender_at(packet.slot, packet.qp) {
                    state.sender.on_telemetry(now, path);
                    self.refresh(packet.slot, now);
                }
            }
            Repr::Cnp
            | Repr::Pull(_)
            | Repr::Pause(_)
            | Repr::Tcp(_)
            | Repr::EqdsData(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => {}
        }
    }

    /// What `packet`, which [`Nic::poll_transmit`] has just given, carries when it leaves: an acknowledgement
    /// that which its data brought, all others nothing.
    pub fn poll_path(&mut self, packet: &Packet) -> PathRecord {
        if !is_ack(packet) {
            return PathRecord::EMPTY;
        }
        let of = (packet.dst, packet.qp, packet.sent_at);
        let place = self.echoes.iter().position(|echo| echo.of == of);
        place.and_then(|place| self.echoes.remove(place)).map_or(PathRecord::EMPTY, |echo| echo.path)
    }
}

fn is_ack(packet: &Packet) -> bool {
    matches!(packet.repr, Repr::Ack(_) | Repr::HoleNack(_))
}
