//! Runs random arrivals on a fat-tree over IRN and prints completion times.
//!
//! ```text
//! cargo run --release -p selvedge-sim --example ten_lines
//! ```

use std::error::Error;

use selvedge_sim::Simulation;
use selvedge_sim::topology::{FatTree, LinkConfig};
use selvedge_sim::workload::{Poisson, Sizes};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_units::{Bytes, Duration, Rate};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };
    let sizes = Sizes::Uniform([Bytes::from_kb(1), Bytes::from_kb(100)]);
    let simulation = Simulation::builder(FatTree { k: 4, link })
        .workload(Poisson::of("50%".parse()?, sizes))
        .recovery(IrnConfig::default())
        .stop_after_flows(200)
        .seed(1)
        .build()?;
    let outcome = simulation.run()?;

    let mut times: Vec<Duration> = outcome.completion_times().collect();
    times.sort_unstable();
    println!("{} flows; median {}, slowest {}", times.len(), times[times.len() / 2], times[times.len() - 1]);
    println!("{} packets dropped, {} resent", outcome.totals.data_drops.total(), outcome.totals.retransmissions);
    Ok(())
}
