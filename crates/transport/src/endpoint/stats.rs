//! Counters of a NIC.

use selvedge_wire::eqds::Flags;
use selvedge_wire::{AckKind, Repr};

/// Counters of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct NicStats {
    /// Data packets put on the wire, retransmissions included.
    pub data_sent: u64,
    /// Data packets that had been sent before. Through EQDS tunnels, both retransmissions of stacks and of tunnels
    /// count: the number may exceed `data_sent`.
    pub retransmissions: u64,
    /// Acknowledgements put on the wire.
    pub acks_sent: u64,
    /// Negative acknowledgements put on the wire; also counted in `acks_sent`.
    pub nacks_sent: u64,
    /// Congestion notifications put on the wire.
    pub cnps_sent: u64,
    /// Data packets that arrived for a queue pair known here.
    pub data_received: u64,
    /// Data packets that arrived and had arrived before; also counted in `data_received`.
    pub duplicates: u64,
    /// Acknowledgements that arrived for a queue pair known here.
    pub acks_received: u64,
    /// Payload bytes accepted for the first time.
    pub goodput: u64,
    /// Payload bytes that went through a reorder buffer, and were copied from there; also counted in `goodput`.
    pub reordered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl NicStats {
    /// Counts a control packet that is sent.
    #[inline(always)]
    pub fn count_answer(&mut self, answer: &Repr) {
        let is_negative = match answer {
            Repr::Ack(ack) => ack.kind == AckKind::Nack,
            Repr::EqdsControl(control) => control.flags.any(Flags::NACK),
            _ => return self.count_another(answer),
        };
        self.acks_sent += 1;
        self.nacks_sent += u64::from(is_negative);
    }

    /// Counts a control packet of a rare kind.
    #[inline(never)]
    fn count_another(&mut self, answer: &Repr) {
        match answer {
            Repr::HoleNack(_) => {
                self.acks_sent += 1;
                self.nacks_sent += 1;
            }
            // Of EQDS's data packets, the end of a tunnel is sent as a control packet.
            Repr::Tcp(_) | Repr::Control(_) | Repr::EqdsData(_) => self.acks_sent += 1,
            Repr::Cnp => self.cnps_sent += 1,
            Repr::Ack(_) | Repr::EqdsControl(_) => self.count_answer(answer),
            Repr::Data(_) | Repr::Pause(_) | Repr::NetRt(_) => {}
        }
    }
}
