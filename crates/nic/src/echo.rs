//! In-band telemetry (HPCC): records that switches wrote on data wait here until the acknowledgement of the data
//! leaves.
//!
//! Called only where switches write telemetry, so that other simulations pay nothing.

use selvedge_transport::Cx;
use selvedge_units::{HostId, Instant, QpNumber};
use selvedge_wire::{Packet, PathRecord, Repr};

use crate::nic::{FlowParams, Nic, NicParams};

/// Telemetry that an acknowledgement will carry.
#[derive(Debug)]
pub(crate) struct Echo {
    /// The data packet: source, queue pair and sending time, which are unique because a host sends one packet at a
    /// time.
    of: (HostId, QpNumber, Instant),
    path: PathRecord,
}

impl Nic {
    /// Handles `path`, which switches have written on `packet`; the packet was handled just now.
    pub fn handle_path(&mut self, params: &NicParams, now: Instant, packet: &Packet, path: &PathRecord) {
        match packet.repr {
            // The acknowledgement of the packet, if there is one, is the last in the queue.
            Repr::Data(_) => {
                let of = (packet.src, packet.qp, packet.sent_at);
                if self
                    .port
                    .answers
                    .last()
                    .is_some_and(|answer| is_ack(answer) && (answer.dst, answer.qp, answer.sent_at) == of)
                {
                    self.echoes.push_back(Echo { of, path: *path });
                }
            }
            Repr::Ack(_) | Repr::HoleNack(_) => {
                let FlowParams::Rdma(own) = &params.flows else { return };
                let mut cx = Cx::at(now);
                let context = &mut self.port.lend(&mut cx, &params.frames, own, 0);
                self.queue_pairs.handle_telemetry(context, packet.slot, packet.qp, path);
            }
            Repr::Cnp
            | Repr::Control(_)
            | Repr::Pause(_)
            | Repr::Tcp(_)
            | Repr::EqdsData(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => {}
        }
    }

    /// Returns the telemetry that `packet`, just returned by [`Nic::poll_transmit`], carries when it leaves: an
    /// acknowledgement carries the record of its data, all other packets carry none.
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
