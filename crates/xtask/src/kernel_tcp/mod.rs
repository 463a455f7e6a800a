//! Command `cargo xtask kernel-tcp`: Selvedge's TCP against that of the running kernel.
//!
//! Both send the same number of bytes through the same bottleneck (rate, delay, buffer), and both lose the same data
//! packets, or receive them late: those on lists that were drawn beforehand. The kernel sends in real time, between two
//! network namespaces with Selvedge's relay between them; the engine sends in virtual time. The command needs root,
//! `ip`, `sysctl` and /dev/net/tun, and minutes: it is a chore, not a test.

mod drops;
mod engine;
mod kernel;
mod namespaces;
mod peer;
mod relay;
mod table;
mod tun;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;
use clap::Args;

pub(crate) use peer::{Peer, peer};

use crate::page;
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// Congestion controls, as the kernel calls them: reno, cubic, bbr
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "reno,cubic,bbr")]
    control: Vec<String>,
    /// Loss rates, in percent
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,0.01,0.1,1")]
    loss: Vec<f64>,
    /// Shares of packets that arrive late, behind others, in percent; with each, nothing is lost
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    late: Vec<f64>,
    /// Number of lists of lost or late packets for each rate
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Approximate duration of a transfer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 40)]
    seconds: u64,
    /// Transfers of the kernel that run at a time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Write the table to docs/tcp.md
    #[arg(long)]
    write: bool,
}

/// Path between the two ends, equal for the kernel and the engine.
#[derive(Clone, Copy)]
struct Bottleneck {
    /// Rate in bits per second on the wire.
    rate: u64,
    /// Round-trip propagation delay in milliseconds.
    rtt_ms: u64,
    /// Size of the buffer in bytes.
    buffer: u64,
    /// Delay of late packets in milliseconds.
    late_ms: u64,
}

/// Bottleneck with 167 full packets in flight, and as many in the buffer, so that losses limit the rate, not the link.
/// Late packets are overtaken by 20 full ones.
const BOTTLENECK: Bottleneck = Bottleneck { rate: 50_000_000, rtt_ms: 40, buffer: 250_000, late_ms: 5 };

/// Payload of a full segment: 1,500 bytes less the headers of IP and TCP and time stamps.
const MSS: u64 = 1_448;
/// Bytes that a frame takes on the wire beside an IP packet: Ethernet, FCS, preamble, gap.
const AROUND_IP: u64 = 14 + 4 + 20;

/// Transfer in the kernel and in the engine.
#[derive(Clone)]
struct Transfer {
    control: String,
    /// Loss rate in percent.
    loss: f64,
    /// Share of late packets in percent.
    late_share: f64,
    seed: u64,
    bytes: u64,
    /// Numbers of the data packets that are lost, from 0.
    drops: Vec<u64>,
    /// Numbers of the data packets that are late.
    late: Vec<u64>,
}

/// Result of a transfer in one of the two.
#[derive(Clone, Copy)]
struct Outcome {
    seconds: f64,
    retransmissions: u64,
    timeouts: u64,
    /// Mean excess of its round trips over the bottleneck's, in microseconds: the delay that a busy machine adds.
    late_us: f64,
}

/// Transfer, and its results.
struct Compared {
    transfer: Transfer,
    kernel: Outcome,
    ours: Outcome,
}

impl Compared {
    /// Returns the goodput, in megabits of payload per second.
    fn goodput(&self, outcome: Outcome) -> f64 {
        self.transfer.bytes as f64 * 8.0 / 1e6 / outcome.seconds
    }
}

pub(crate) fn kernel_tcp(options: &Options) -> Result<()> {
    let transfers = transfers(options);
    eprintln!("{} transfers of about {} s, {} at a time", transfers.len(), options.seconds, options.jobs);
    let engine = engine::Engine::new()?;
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            while let Some(transfer) = transfers.get(next.fetch_add(1, Ordering::Relaxed)) {
                let kernel = kernel::run(transfer)?;
                let ours = engine.run(transfer)?;
                let compared = Compared { transfer: transfer.clone(), kernel, ours };
                eprintln!("{}", table::line(&compared));
                results.lock().expect("an unpoisoned lock").push(compared);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("an unpoisoned lock"))
    })?;
    let table = table::table(&results.into_inner().expect("an unpoisoned lock"))?;
    println!("{table}");
    if options.write {
        page::write(&root().join("docs/tcp.md"), "kernel-tcp", &table)?;
        eprintln!("wrote docs/tcp.md");
    }
    Ok(())
}

/// Returns the transfers, with the lowest loss rates first, because those transfers take the longest.
fn transfers(options: &Options) -> Vec<Transfer> {
    let mut transfers = Vec::new();
    for control in &options.control {
        let losses = options.loss.iter().map(|&loss| (loss, 0.0));
        for (loss, late_share) in losses.chain(options.late.iter().map(|&late| (0.0, late))) {
            // Without loss or lateness all lists are the same.
            for seed in 1..=if loss + late_share > 0.0 { options.seeds } else { 1 } {
                // BBR's rate does not follow from losses.
                let rate = if control == "bbr" { expected_rate(0.0) } else { expected_rate(loss / 100.0) };
                let bytes = (rate * options.seconds as f64 / 8.0) as u64 / MSS * MSS;
                // Enough for as many retransmissions again.
                let drawn = |percent: f64| drops::drawn(percent / 100.0, seed, bytes / MSS * 2);
                let (drops, late) = (drawn(loss), drawn(late_share));
                transfers.push(Transfer { control: control.clone(), loss, late_share, seed, bytes, drops, late });
            }
        }
    }
    transfers
}

/// Returns the bits per second that a transfer may reach (Mathis et al., CCR 1997), for the choice of its length alone.
fn expected_rate(p: f64) -> f64 {
    let window = 1.3 * 8.0 * MSS as f64 / p.max(1e-9).sqrt();
    (window / (BOTTLENECK.rtt_ms as f64 / 1e3)).min(BOTTLENECK.rate as f64 * 0.9)
}
