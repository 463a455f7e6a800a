//! Handling of arriving packets.

use selvedge_transport::Cx;
use selvedge_transport::endpoint::{Endpoint, Handled};
use selvedge_transport::queue_pairs::{Incoming, Report};
use selvedge_wire::{Ack, Data, Packet, Repr};

use super::{FlowParams, Nic, NicParams, call};
use crate::slot::{BESIDE, MESSAGES, Owner, QUEUE_PAIRS, TCP, TUNNELS};

impl Nic {
    /// Handles an arriving packet.
    #[inline(always)]
    pub fn handle_packet(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet) -> Handled {
        match &packet.repr {
            Repr::Data(data) => self.handle_data(cx, params, packet, data),
            Repr::Ack(ack) => self.handle_ack(cx, params, packet, ack),
            Repr::EqdsData(data) => self.handle_tunnelled(cx, params, packet, data),
            Repr::EqdsControl(control) => self.handle_credit(cx, params, packet, control),
            // The network handles these packets before they get here.
            Repr::Pause(_) | Repr::NetRt(_) => Handled::Unknown,
            Repr::HoleNack(_) | Repr::Cnp | Repr::Control(_) | Repr::Tcp(_) => self.handle_another(cx, params, packet),
        }
    }

    #[inline(never)]
    fn handle_data(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, data: &Data) -> Handled {
        let Some(slot) = self.receiver_of(packet) else { return Handled::Unknown };
        match &params.flows {
            FlowParams::Rdma(own) if QUEUE_PAIRS.has(slot) => {
                self.queue_pairs.handle_data(&mut self.port.lend(cx, &params.frames, own, 0), packet, data, slot)
            }
            _ => self.deliver(cx, params, packet, slot),
        }
    }

    #[inline(never)]
    fn handle_ack(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, ack: &Ack) -> Handled {
        match &params.flows {
            FlowParams::Rdma(own) if QUEUE_PAIRS.has(packet.slot) => {
                self.queue_pairs.handle_ack(&mut self.port.lend(cx, &params.frames, own, 0), packet, ack, packet.slot)
            }
            _ => self.deliver(cx, params, packet, packet.slot),
        }
    }

    /// Handles a packet of a rarer kind.
    #[inline(never)]
    fn handle_another(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet) -> Handled {
        let to_receiver = match &packet.repr {
            Repr::Control(control) => control.to_receiver,
            Repr::Tcp(tcp) => !tcp.is_backward(),
            _ => false,
        };
        let slot = if to_receiver { self.receiver_of(packet) } else { Some(packet.slot) };
        slot.map_or(Handled::Unknown, |slot| self.deliver(cx, params, packet, slot))
    }

    /// Returns the slot of the receiver of a flow that `packet` is for.
    #[inline]
    fn receiver_of(&self, packet: &Packet) -> Option<u32> {
        self.port.by_peer.get((packet.src, packet.qp))
    }

    /// Gives a packet to the endpoint that has `slot`.
    #[inline(never)]
    fn deliver(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, slot: u32) -> Handled {
        let handled = call!(self, cx, params, slot, |endpoint, cx, entry| endpoint.handle_packet(cx, packet, entry));
        handled.unwrap_or(Handled::Unknown)
    }

    /// Returns the receiver for a run of data packets from the queue pair that has sent `packet`; `None` if that queue
    /// pair has no receiver here.
    ///
    /// Useful only where [`NicParams::takes_unanswered`] holds.
    #[inline(always)]
    pub fn incoming(&mut self, packet: &Packet) -> Option<Incoming<'_>> {
        let slot = self.receiver_of(packet)?;
        self.queue_pairs.incoming(packet, slot, &mut self.port.stats)
    }

    /// Handles a report about a queue pair, as made by the receiving NIC.
    pub fn handle_report(&mut self, cx: &mut Cx<'_>, params: &NicParams, report: &Report) {
        if let FlowParams::Rdma(own) = &params.flows {
            self.queue_pairs.handle_report(&mut self.port.lend(cx, &params.frames, own, 0), report, report.slot);
        }
        self.hand_over(cx, params);
    }
}
