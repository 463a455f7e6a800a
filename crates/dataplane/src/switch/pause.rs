//! Frames of priority flow control (IEEE 802.1Qbb).

use selvedge_wire::{EtherType, Ethernet, MacAddress, Pfc};

use super::frame::Facts;

/// Returns the frame of a pause. `source` is the address of the port that sends it.
pub fn pause_frame(source: MacAddress, pause: &Pfc) -> [u8; Ethernet::MINIMUM] {
    let ethernet = Ethernet { destination: MacAddress::MAC_CONTROL, source, kind: EtherType::MAC_CONTROL };
    let mut frame = [0; Ethernet::MINIMUM];
    frame[..Ethernet::LENGTH].copy_from_slice(&ethernet.emit());
    frame[Ethernet::LENGTH..Ethernet::LENGTH + Pfc::LENGTH].copy_from_slice(&pause.emit());
    frame
}

/// Returns the pause that a MAC control frame asks for; `None` if it is malformed or asks for something else.
pub(super) fn pause_of(frame: &[u8], facts: &Facts) -> Option<Pfc> {
    let content = frame.get(usize::from(facts.payload_at)..)?;
    Pfc::parse(content).ok().map(|(pause, _)| pause)
}
