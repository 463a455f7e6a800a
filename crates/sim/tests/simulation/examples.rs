//! Runs of the examples.

#[path = "../../examples/own_congestion.rs"]
mod own_congestion;
#[path = "../../examples/own_topology.rs"]
mod own_topology;
#[path = "../../examples/own_transport.rs"]
mod own_transport;
#[path = "../../examples/ten_lines.rs"]
mod ten_lines;

#[test]
fn a_simulation_takes_ten_lines() {
    ten_lines::main().expect("the example runs");
}

#[test]
fn a_graph_of_ones_own_can_be_simulated() {
    own_topology::main().expect("the example runs");
}

#[test]
fn a_transport_of_ones_own_runs_in_the_simulator() {
    own_transport::main().expect("the example runs");
}

#[test]
fn a_congestion_control_of_ones_own_runs_in_the_simulator() {
    own_congestion::main().expect("the example runs");
}
