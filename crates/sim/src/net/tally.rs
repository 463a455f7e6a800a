//! Counters of packets, by kind.

use selvedge_telemetry::{ByKind, Drops, PacketKind, RunRecord};
use selvedge_wire::{Packet, Repr};

/// Counters of packets by what became of them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) drops: ByKind<Drops>,
    pub(crate) delivered: ByKind<u64>,
    pub(crate) ecn_marks: u64,
    /// Packets dropped although they were cut to their headers already.
    pub(crate) trimmed_drops: u64,
}

impl Tally {
    pub(crate) fn add_to(&self, record: &mut RunRecord) {
        let netrt = &mut record.netrt;
        for (kind, delivered, drops) in [
            (PacketKind::Data, &mut record.data_delivered, &mut record.data_drops),
            (PacketKind::Ack, &mut record.acks_delivered, &mut record.ack_drops),
            (PacketKind::Pause, &mut record.pauses_delivered, &mut record.pause_drops),
            (PacketKind::Cnp, &mut record.cnps_delivered, &mut record.cnp_drops),
            (PacketKind::NetRt, &mut netrt.messages_delivered, &mut netrt.message_drops),
        ] {
            *delivered += self.delivered[kind];
            drops.add(&self.drops[kind]);
        }
        record.ecn_marks += self.ecn_marks;
        record.trimmed_drops += self.trimmed_drops;
    }
}

/// Returns the kind that a packet counts as.
#[inline(always)]
pub(crate) fn kind_of(packet: &Packet) -> PacketKind {
    match packet.repr {
        Repr::Data(_) => PacketKind::Data,
        Repr::Ack(_) | Repr::EqdsControl(_) => PacketKind::Ack,
        Repr::EqdsData(data) => with_payload(data.payload > 0),
        _ => kind_of_others(packet),
    }
}

/// Returns the kind of a packet of a rare kind, or of one whose headers must be read.
#[inline(never)]
fn kind_of_others(packet: &Packet) -> PacketKind {
    match packet.repr {
        Repr::Data(_) => PacketKind::Data,
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Control(_) | Repr::EqdsControl(_) => PacketKind::Ack,
        Repr::Pause(_) => PacketKind::Pause,
        Repr::Cnp => PacketKind::Cnp,
        Repr::NetRt(_) => PacketKind::NetRt,
        Repr::Tcp(tcp) => with_payload(tcp.payload() > 0),
        Repr::EqdsData(data) => with_payload(data.payload > 0),
    }
}

/// Returns the kind of packets with or without payload.
#[inline(always)]
fn with_payload(has_payload: bool) -> PacketKind {
    if has_payload { PacketKind::Data } else { PacketKind::Ack }
}
