//! Runs of the examples.

#[path = "../examples/over_udp.rs"]
mod over_udp;

#[test]
fn a_transfer_crosses_loopback() {
    over_udp::main().expect("the example runs");
}
