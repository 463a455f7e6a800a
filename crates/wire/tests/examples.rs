//! Runs of the examples.

#[path = "../examples/roce_packet.rs"]
mod roce_packet;

#[test]
fn a_packet_survives_the_wire_and_damage_is_found() {
    roce_packet::main().expect("the example runs");
}
