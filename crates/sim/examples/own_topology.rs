//! Builds a network that no topology of the crate describes, a ring of switches with two hosts each, and runs an
//! incast on it, once with PFC and once without.
//!
//! ```text
//! cargo run --release -p selvedge-sim --example own_topology
//! ```

use std::error::Error;
use std::sync::Arc;

use selvedge_sim::topology::{Graph, LinkConfig};
use selvedge_sim::{ConfigError, Network, Simulation};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_units::{Bytes, Duration, HostId, Rate, SwitchId};

/// Returns a ring of `count` switches, each with two hosts. Each switch and its hosts are one unit: a run on several
/// threads never separates them.
fn ring(count: u32) -> Graph {
    let mut graph = Graph::default();
    let link = |gbps: u64| LinkConfig { rate: Rate::from_gbps(gbps), delay: Duration::from_us(1) };
    let switches: Vec<SwitchId> = (0..count).map(|n| graph.add_switch(format!("s{n}"), 0, n)).collect();
    for (&switch, n) in switches.iter().zip(0..) {
        for side in ["a", "b"] {
            let host = graph.add_host(format!("s{n}{side}"), n);
            graph.connect(host.into(), switch.into(), link(100));
        }
    }
    for (n, &switch) in switches.iter().enumerate() {
        graph.connect(switch.into(), switches[(n + 1) % switches.len()].into(), link(200));
    }
    graph
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // The network with its routes is computed once, for both runs.
    let network = Arc::new(Network::of(ring(4))?);
    println!("base round trip {}, bandwidth-delay product {}", network.base_rtt(), network.bdp().bytes);
    for pfc in [true, false] {
        let roce = GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() };
        let mut simulation = Simulation::builder(Arc::clone(&network)).recovery(roce).pfc(pfc);
        for src in 1..8 {
            simulation = simulation.flow(HostId(src), HostId(0), Bytes::from_kb(500), Duration::ZERO);
        }
        let outcome = simulation.build()?.run()?;
        let slowest = outcome.completion_times().max().ok_or("no flow finished")?;
        let (drops, pauses) = (outcome.totals.data_drops.total(), outcome.totals.pause_frames);
        println!("go-back-N, PFC {pfc}: slowest {slowest}, {drops} drops, {pauses} pause frames");
    }

    // A network that cannot work is refused, with the reason.
    let mut alone = ring(4);
    alone.add_host("alone".into(), 0);
    let refused: ConfigError = Network::of(alone).expect_err("a host without a link");
    println!("refused: {refused}");
    Ok(())
}
