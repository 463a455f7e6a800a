//! Runs one permutation and prints the completion times of its flows.
//!
//! ```text
//! cargo run --release -p selvedge-sim --example permutation -- 8 2MB roce+pfc [threads] [partitions]
//! ```
//!
//! Also suits profilers: `valgrind --tool=callgrind target/release/examples/permutation 16 2MB irn` and the printed
//! packet-hops give instructions per packet-hop.

mod scene;

use std::error::Error;

use selvedge_sim::{NoFiles, Parallel, run};
use selvedge_telemetry::{FlowRow, Observer, PortRow};
use selvedge_units::Duration;

use scene::permutation;

/// Observer that adds up completion times.
#[derive(Default)]
struct Times {
    flows: u64,
    total_us: f64,
    longest: Duration,
}

impl Observer for Times {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        for fct in rows.iter().filter_map(FlowRow::fct) {
            self.flows += 1;
            self.total_us += fct.as_us_f64();
            self.longest = self.longest.max(fct);
        }
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [k, size, series, rest @ ..] = arguments.as_slice() else {
        return Err("usage: permutation K SIZE roce+pfc|irn|eqds [THREADS] [PARTITIONS]".into());
    };
    let count = |n: usize| rest.get(n).map_or(Ok(1), |text| text.parse());
    let parallel = Parallel { threads: count(0)?, partitions: count(1)?, ..Parallel::default() };

    let config = permutation(k.parse()?, size.parse()?, series.parse()?)?;
    let mut times = Times::default();
    let record = run(&config, &NoFiles, parallel, &mut times)?;
    println!("{} flows finished by {}", times.flows, record.end);
    println!("completion: mean {:.3} us, longest {}", times.total_us / times.flows.max(1) as f64, times.longest);
    println!("{} packet-hops, {} events, {} pause frames", record.packet_hops, record.events, record.pause_frames);
    println!("{} drops, {} retransmissions", record.data_drops.total(), record.retransmissions);
    println!("fingerprint {:016x}", record.fingerprint);
    Ok(())
}
