//! Packets, counted by kind.

use selvedge_telemetry::Drops;
use selvedge_wire::{Packet, Repr};

/// Packets by kind, as `[data, acknowledgement, pause, congestion notification, message between switches]`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) drops: [Drops; 5],
    pub(crate) delivered: [u64; 5],
    pub(crate) ecn_marks: u64,
    /// Packets dropped when they were cut to their headers already.
    pub(crate) trimmed_drops: u64,
}

/// The index of a packet's kind in a [`Tally`].
#[inline(always)]
pub(crate) fn kind_of(packet: &Packet) -> usize {
    match packet.repr {
        Repr::Data(_) => 0,
        Repr::Ack(_) | Repr::EqdsControl(_) => 1,
        Repr::EqdsData(data) => usize::from(data.payload == 0),
        _ => kind_of_others(packet),
    }
}

/// The same of packets of which there are few, or which have to be asked.
#[inline(never)]
fn kind_of_others(packet: &Packet) -> usize {
    match packet.repr {
        Repr::Data(_) => 0,
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Pull(_) => 1,
        Repr::Pause(_) => 2,
        Repr::Cnp => 3,
        Repr::NetRt(_) => 4,
        Repr::Tcp(tcp) => usize::from(tcp.payload() == 0),
        Repr::EqdsData(data) => usize::from(data.payload == 0),
        Repr::EqdsControl(_) => 1,
    }
}
