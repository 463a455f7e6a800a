//! `cargo xtask verbs-bench`: the software RNIC beside what else sends bytes between two hosts: kernel TCP, UCX over
//! TCP, QUIC, UDP sockets.
//!
//! All of it runs on one machine, between two network namespaces and a veth pair, one program after the other in one
//! run, so that numbers can be compared, with each other and nothing else. This needs root, `ip`, `nft`, `ethtool` and
//! the programs themselves; what is missing is named and left out.

pub(crate) mod link;
mod ping_pong;
mod rivals;
mod table;
mod trial;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

pub(crate) use self::ping_pong::{Peer, peer};

use self::link::Link;
use self::table::Table;
use self::trial::{Measured, Perftest};
use crate::dist;
use crate::page;
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// How often each is measured; the table has the median
    #[arg(long, value_name = "N", default_value_t = 11)]
    repeat: usize,
    /// quinn's bulk benchmark (`bulk` of its folder `bench`), built by you
    #[arg(long, value_name = "FILE")]
    quinn: Option<PathBuf>,
    /// A folder with our libraries, instead of making them
    #[arg(long, value_name = "FOLDER")]
    libraries: Option<PathBuf>,
    /// Write the tables to docs/verbs.md
    #[arg(long)]
    write: bool,
}

/// What stands in the document.
const PAGE: &str = "docs/verbs.md";
/// Bytes of messages.
const SIZES: [u64; 5] = [64, 1_024, 4_096, 65_536, 1_048_576];
/// The three operations.
const OPERATIONS: [&str; 3] = ["ib_write_bw", "ib_send_bw", "ib_read_bw"];
/// In percent.
const LOSSES: [u64; 3] = [0, 1, 5];

/// `cargo xtask verbs-bench`.
pub(crate) fn verbs_bench(options: &Options) -> Result<()> {
    let libraries = match &options.libraries {
        Some(folder) => folder.canonicalize()?,
        None => dist::libraries()?,
    };
    let link = Link::new()?;
    let bench = Bench { link: &link, libraries, repeat: options.repeat };
    let losses = bench.losses().unwrap_or_else(|problem| {
        eprintln!("losses: left out: {problem:#}");
        String::new()
    });
    let text = [table::about(options.repeat)?, bench.speed(options), bench.latency(), losses].join("\n");
    println!("\n{text}");
    if options.write {
        page::write(&root().join(PAGE), "verbs-bench", &text)?;
    }
    Ok(())
}

struct Bench<'a> {
    link: &'a Link,
    libraries: PathBuf,
    repeat: usize,
}

impl Bench<'_> {
    /// The median of some trials; says what goes on.
    fn median(&self, name: &str, trial: impl Fn() -> Result<Measured>) -> Option<Measured> {
        let mut all = Vec::new();
        for _ in 0..self.repeat {
            match trial() {
                Ok(measured) => all.push(measured),
                Err(problem) => {
                    eprintln!("{name}: left out: {problem:#}");
                    return None;
                }
            }
        }
        all.sort_by(|one, other| one.value.total_cmp(&other.value));
        let median = all.get(all.len() / 2).copied()?;
        eprintln!("{name}: {}", median.value);
        Some(median)
    }
    fn perftest(&self, program: &'static str, bytes: u64, recovery: &'static str, iterations: u64) -> Option<Measured> {
        let trial = Perftest { program, bytes, recovery, iterations, libraries: &self.libraries };
        self.median(&format!("{program} {bytes} {recovery}"), || trial.run(self.link))
    }

    /// Goodput by size, and beside others.
    fn speed(&self, options: &Options) -> String {
        let mut table = Table::new(&["bytes", "`ib_write_bw`", "`ib_send_bw`", "`ib_read_bw`"]);
        for bytes in SIZES {
            let iterations = (1 << 31) / bytes.max(4_096);
            let cells = OPERATIONS.map(|program| {
                let measured = self.perftest(program, bytes, "irn", iterations);
                measured.map(|measured| table::rate(&measured, bytes))
            });
            table.row(&bytes.to_string(), cells);
        }
        let mut rivals = Table::new(&["beside them", "Gb/s"]);
        let gbps = |measured: Option<Measured>| [measured.map(|measured| format!("{:.1}", measured.value))];
        rivals.row("iperf3, TCP", gbps(self.median("iperf3", || rivals::iperf3(self.link))));
        let ucx = self.median("ucx_perftest", || rivals::ucx(self.link, "tag_bw", 65_536));
        rivals.row("UCX over TCP, `ucx_perftest -t tag_bw`, 64 KB", gbps(ucx));
        let quinn = options.quinn.as_deref();
        let quinn = quinn.and_then(|program| self.median("quinn", || rivals::quinn(self.link, program)));
        rivals.row("quinn, `bulk` (both ends in one process, loopback)", gbps(quinn));
        format!("Gb/s of payload (millions of messages/s):\n\n{}\n{}", table.text(), rivals.text())
    }

    /// One way, of small messages.
    fn latency(&self) -> String {
        let mut table = Table::new(&["one way, 2 bytes", "us, typical"]);
        let us = |measured: Option<Measured>| [measured.map(|measured| format!("{:.1}", measured.value))];
        for program in ["ib_send_lat", "ib_write_lat", "ib_read_lat"] {
            table.row(&format!("`{program}`"), us(self.perftest(program, 2, "irn", 20_000)));
        }
        let waits = self.median("ib_send_lat -e", || {
            Perftest {
                program: "ib_send_lat",
                bytes: 2,
                recovery: "irn",
                iterations: 20_000,
                libraries: &self.libraries,
            }
            .run_with(self.link, &["-e"])
        });
        table.row("`ib_send_lat -e` (waits for events)", us(waits));
        let sockets = self.median("UDP ping-pong", || ping_pong::measure(self.link));
        table.row("UDP ping-pong, blocking sockets", us(sockets));
        let ucx = self.median("ucx_perftest", || rivals::ucx(self.link, "tag_lat", 2));
        table.row("UCX over TCP, `ucx_perftest -t tag_lat`", us(ucx));
        table.text().to_owned()
    }

    /// Goodput with losses, packet by packet.
    fn losses(&self) -> Result<String> {
        let mut table =
            Table::new(&["64 KB", "lost, %", "irn", "of that without loss", "go-back-n", "of that without loss"]);
        self.link.segments(false)?;
        for program in OPERATIONS {
            let mut whole = [None; 2];
            for loss in LOSSES {
                self.link.lose(loss)?;
                let mut cells = Vec::new();
                for (recovery, whole) in ["irn", "go-back-n"].into_iter().zip(&mut whole) {
                    let measured = self.perftest(program, 65_536, recovery, iterations(recovery, loss));
                    if loss == 0 {
                        *whole = measured;
                    }
                    cells.push(measured.map(|measured| format!("{:.2}", measured.value)));
                    let share = measured.zip(*whole).map(|(some, whole)| some.value / whole.value);
                    cells.push(share.map(|share| format!("{:.0} %", share * 100.0)));
                }
                table.row_of(&[format!("`{program}`"), loss.to_string()], cells);
            }
        }
        self.link.lose(0)?;
        self.link.segments(true)?;
        let about = "Gb/s of payload with losses, the kernel's segmentation and coalescing turned off, so that each lost packet is one\n\
                     of ours:";
        Ok(format!("{about}\n\n{}", table.text()))
    }
}

/// So that each trial takes a second or some.
fn iterations(recovery: &str, loss: u64) -> u64 {
    match (recovery, loss) {
        (_, 0) => 8_000,
        ("irn", 1) => 8_000,
        ("irn", _) => 4_000,
        (_, 1) => 1_000,
        _ => 100,
    }
}
