//! Runs of the examples.

#[path = "../examples/own_congestion_control.rs"]
mod own_congestion_control;
#[path = "../examples/two_engines.rs"]
mod two_engines;

#[test]
fn two_engines_deliver_what_the_channel_loses() {
    two_engines::main().expect("the example runs");
}

#[test]
fn a_congestion_control_of_ones_own_keeps_the_queue_short() {
    own_congestion_control::main().expect("the example runs");
}
