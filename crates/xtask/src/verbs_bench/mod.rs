//! Command `cargo xtask verbs-bench`: the software RNIC beside other programs that send bytes between two hosts: kernel
//! TCP, UCX over TCP, QUIC, UDP sockets.
//!
//! Everything runs on one machine, between two network namespaces and a veth pair, one program after the other in one
//! run, so that numbers can be compared with each other, and with nothing else. The command needs root, `ip`, `nft`,
//! `ethtool` and the programs themselves; missing programs are named and left out.

pub(crate) mod link;
mod ping_pong;
mod rivals;
mod table;
mod trial;
mod turns;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

pub(crate) use self::ping_pong::{Peer, peer};

use self::link::Link;
use self::table::Table;
use self::trial::Perftest;
use self::turns::{Id, Turns};
use crate::dist;
use crate::page;
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// Turns in which each trial is measured once; tables have the median (with losses, of 3 at the most)
    #[arg(long, value_name = "N", default_value_t = 11)]
    repeat: usize,
    /// quinn's bulk benchmark (`bulk` of its folder `bench`), built beforehand
    #[arg(long, value_name = "FILE")]
    quinn: Option<PathBuf>,
    /// Folder with Selvedge's libraries, instead of building them
    #[arg(long, value_name = "FOLDER")]
    libraries: Option<PathBuf>,
    /// Measure the table with losses alone
    #[arg(long)]
    losses: bool,
    /// Write the tables to docs/verbs.md
    #[arg(long)]
    write: bool,
}

/// Document that contains the table.
const PAGE: &str = "docs/verbs.md";
/// Sizes of messages in bytes.
const SIZES: [u64; 5] = [64, 1_024, 4_096, 65_536, 1_048_576];
/// Programs of perftest for the three operations.
const OPERATIONS: [&str; 3] = ["ib_write_bw", "ib_send_bw", "ib_read_bw"];
/// Loss recoveries between two of Selvedge's NICs.
const RECOVERIES: [&str; 3] = ["irn", "melo", "go-back-n"];
/// Maximum number of turns of each row with losses: recovery changes goodput more than machines do.
const FEW: usize = 3;
/// Loss rates in percent.
const LOSSES: [u64; 3] = [0, 1, 5];

/// Runs `cargo xtask verbs-bench`.
pub(crate) fn verbs_bench(options: &Options) -> Result<()> {
    let libraries = match &options.libraries {
        Some(folder) => folder.canonicalize()?,
        None => dist::libraries()?,
    };
    let link = Link::new()?;
    let bench = Bench { link: &link, libraries, repeat: options.repeat };
    let say = |chore: &str, text: &str| {
        println!("\n{text}");
        if options.write { page::write(&root().join(PAGE), chore, text) } else { Ok(()) }
    };
    if !options.losses {
        let about = table::about(options.repeat)?;
        say("verbs-bench", &[about, bench.without_losses(options.quinn.as_deref())].join("\n"))?;
    }
    let about = table::about(bench.few())?;
    match bench.losses() {
        Ok(losses) => say("verbs-bench --losses", &[about, losses].join("\n")),
        Err(problem) => {
            eprintln!("losses: left out: {problem:#}");
            Ok(())
        }
    }
}

struct Bench<'a> {
    link: &'a Link,
    libraries: PathBuf,
    repeat: usize,
}

impl Bench<'_> {
    fn perftest(&self, program: &'static str, bytes: u64, iterations: u64) -> Perftest<'_> {
        Perftest { program, bytes, recovery: "irn", iterations, libraries: &self.libraries }
    }

    /// Returns the number of turns of each row with losses.
    fn few(&self) -> usize {
        self.repeat.min(FEW)
    }

    /// Returns tables of goodput by size, latencies, and the results of other programs, all measured in the same turns.
    fn without_losses(&self, quinn: Option<&Path>) -> String {
        let link = self.link;
        let mut turns = Turns::default();
        let goodput = SIZES.map(|bytes| {
            OPERATIONS.map(|program| {
                let trial = self.perftest(program, bytes, (1 << 31) / bytes.max(4_096));
                turns.add(format!("{program} {bytes}"), move || trial.run(link))
            })
        });
        let tcp = turns.add("iperf3".to_owned(), || rivals::iperf3(link));
        let ucx = turns.add("ucx_perftest, tag_bw".to_owned(), || rivals::ucx(link, "tag_bw", 65_536));
        let quinn = quinn.map(|program| turns.add("quinn".to_owned(), move || rivals::quinn(link, program)));
        let latencies = [("ib_send_lat", ""), ("ib_write_lat", ""), ("ib_read_lat", ""), ("ib_send_lat", "-e")];
        let latencies = latencies.map(|(program, more)| {
            let trial = self.perftest(program, 2, 20_000);
            let more: Vec<&str> = more.split_whitespace().collect();
            turns.add(format!("{program} {more:?}"), move || trial.run_with(link, &more))
        });
        let sockets = turns.add("UDP ping-pong".to_owned(), || ping_pong::measure(link));
        let ucx_latency = turns.add("ucx_perftest, tag_lat".to_owned(), || rivals::ucx(link, "tag_lat", 2));
        turns.run(self.repeat);

        let decimal = |id: Id| [turns.median(id).map(|value| format!("{value:.1}"))];
        let mut table = Table::new(&["bytes", "`ib_write_bw`", "`ib_send_bw`", "`ib_read_bw`"]);
        for (bytes, ids) in SIZES.into_iter().zip(&goodput) {
            table.row(&bytes.to_string(), ids.map(|id| turns.median(id).map(|value| table::rate(value, bytes))));
        }
        let mut beside =
            Table::new(&["rate / rate of iperf3 in the same round", "`ib_write_bw`", "`ib_send_bw`", "`ib_read_bw`"]);
        for (bytes, ids) in SIZES.into_iter().zip(&goodput).skip(2) {
            let share = |id| turns.ratio(id, tcp).map(|share| format!("{share:.2}"));
            beside.row(&bytes.to_string(), ids.map(share));
        }
        let mut rivals = Table::new(&["for comparison", "Gb/s"]);
        rivals.row("iperf3, TCP, one connection", decimal(tcp));
        rivals.row("UCX over TCP, `ucx_perftest -t tag_bw`, 64 KB", decimal(ucx));
        if let Some(quinn) = quinn {
            rivals.row("quinn, `bulk` (both ends in one process, loopback)", decimal(quinn));
        }
        let mut latency = Table::new(&["latency one way, 2 bytes", "us, typical"]);
        let names = ["`ib_send_lat`", "`ib_write_lat`", "`ib_read_lat`", "`ib_send_lat -e` (waits for events)"];
        for (name, id) in names.into_iter().zip(latencies) {
            latency.row(name, decimal(id));
        }
        latency.row("UDP ping-pong, blocking sockets", decimal(sockets));
        latency.row("UCX over TCP, `ucx_perftest -t tag_lat`", decimal(ucx_latency));
        let [table, beside, rivals, latency] = [table, beside, rivals, latency].map(Table::into_text);
        format!("Gb/s of payload (millions of messages/s):\n\n{table}\n{rivals}\n{beside}\n{latency}")
    }

    /// Returns the table of goodput with losses, packet by packet.
    fn losses(&self) -> Result<String> {
        let repeat = self.few();
        let columns = RECOVERIES.map(|recovery| [recovery.to_owned(), format!("{recovery}, relative to 0 %")]);
        let mut headings = vec!["64 KB", "lost, %"];
        headings.extend(columns.iter().flatten().map(String::as_str));
        headings.push("melo / irn in the same round");
        let mut table = Table::new(&headings);
        let link = self.link;
        link.segments(false)?;
        for program in OPERATIONS {
            let mut whole = [None; RECOVERIES.len()];
            for loss in LOSSES {
                link.lose(loss)?;
                let mut turns = Turns::default();
                let ids = RECOVERIES.map(|recovery| {
                    let trial = Perftest { recovery, ..self.perftest(program, 65_536, iterations(recovery, loss)) };
                    turns.add(format!("{program} {recovery}, {loss} % lost"), move || trial.run(link))
                });
                turns.run(repeat);
                let mut cells = Vec::new();
                for (id, whole) in ids.into_iter().zip(&mut whole) {
                    let value = turns.median(id);
                    if loss == 0 {
                        *whole = value;
                    }
                    cells.push(value.map(|value| format!("{value:.2}")));
                    let share = value.zip(*whole).map(|(some, whole)| some / whole);
                    cells.push(share.map(|share| format!("{:.0} %", share * 100.0)));
                }
                let [irn, melo, _] = ids;
                cells.push(turns.ratio(melo, irn).map(|ratio| format!("{ratio:.2}")));
                table.row_of(&[format!("`{program}`"), loss.to_string()], cells);
            }
        }
        link.lose(0)?;
        link.segments(true)?;
        let table = table.into_text();
        Ok(format!(
            "Gb/s of payload under packet loss. The kernel's segmentation and coalescing are off, so that the network drops\n\
             single RoCE packets:\n\n{table}"
        ))
    }
}

/// Returns the number of iterations, so that each trial takes a second or a few.
fn iterations(recovery: &str, loss: u64) -> u64 {
    match (recovery, loss) {
        (_, 0) => 8_000,
        ("irn" | "melo", 1) => 8_000,
        ("irn", _) => 4_000,
        ("melo", _) => 1_000,
        (_, 1) => 1_000,
        _ => 100,
    }
}
