//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use selvedge_scenario::{Seeds, preset_help};

/// Do I need a lossless fabric?
///
/// Simulates RDMA traffic packet by packet through a data center network and compares loss
/// recoveries with and without priority flow control (PFC).
#[derive(Parser)]
#[command(name = "selvedge", version, arg_required_else_help = true, after_long_help = EXAMPLES)]
pub(crate) struct Selvedge {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a study: series x seeds on all cores, into a results folder with a report
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Run figures against what their papers claim: a verdict per claim
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Look at a network before running anything: hosts, links, RTT, BDP, the load it can carry
    Topology(TopologyArgs),
    /// Look at the traffic before running anything: load, sizes, first flows
    Workload(WorkloadArgs),
    /// Drive an IRN engine by an event trace and print its output trace
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What to study.
#[derive(Args)]
pub(crate) struct Input {
    /// Scenario file (TOML), or a folder with a scenario.toml; without: the IRN paper's default case
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Network from a file of another simulator: ns-3 RDMA topology.txt, htsim .topo
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Flows from a file of another simulator: ns-3 RDMA flow.txt, htsim .cm
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    /// What to compare: series of the scenario by name, or schemes as in irn,roce+pfc
    #[arg(long, value_name = "LIST", long_help = series_help())]
    pub(crate) series: Option<String>,
    /// Change one value of the scenario: its dotted key, and a TOML value; may be repeated
    ///
    /// It replaces what is there, in every series where the key applies. Units need no quotes:
    /// --set switch.pfc.headroom=20KB --set workload.poisson.load=0.5
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Run each series with this many seeds (5), or with these (1,2,3)
    #[arg(long, value_name = "N|LIST")]
    pub(crate) seeds: Option<Seeds>,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Folder for the results; it must not hold any [default: results/<title>-<n>]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results that are in the folder
    #[arg(long)]
    pub(crate) force: bool,
    /// Continue interrupted results
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "topology", "flows", "series", "sets", "seeds", "out", "force"])]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tracing: TraceArgs,
    #[command(flatten)]
    pub(crate) manner: Manner,
}

/// What to look at packet by packet.
#[derive(Args)]
pub(crate) struct TraceArgs {
    /// Trace a flow, a port or everything: flow=ID, port=ID, all; may be repeated
    ///
    /// The first run of each series writes a capture for Wireshark (.pcapng) and a timeline for
    /// ui.perfetto.dev (.perfetto-trace). flow=12 is flow 12 of the first workload, flow=1:12 of the
    /// second; port=h3:leaf0 is the port of h3 towards leaf0, port=leaf0 means all ports of that node,
    /// port=17 goes by number.
    #[arg(long = "trace", value_name = "WHAT", conflicts_with = "resume")]
    pub(crate) what: Vec<String>,
    /// Folder for the traces [default: traces, among the results]
    #[arg(long = "trace-dir", value_name = "DIR", requires = "what")]
    pub(crate) folder: Option<PathBuf>,
    /// Keep at most this many bytes of each packet in captures [default: all]
    ///
    /// Makes files small; but Wireshark cannot dissect RoCE packets that are cut short.
    #[arg(long = "trace-snaplen", value_name = "BYTES", requires = "what", value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub(crate) snaplen: Option<u32>,
}

/// How to run.
#[derive(Args)]
pub(crate) struct Manner {
    /// Print summary.json to standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Use at most this many threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// No progress, no notices
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Figures (folders with a scenario.toml and an expect.toml), or folders of figures
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Only try whether the figures run: fewer flows and seeds, as each scenario's [smoke] says
    ///
    /// Such runs are too short to judge; claims are shown, and only those fail that have no value.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Keep the results of each figure, in this folder
    ///
    /// Figures run one after the other then; otherwise what several of them need is run once.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the table of claims, as a page for a browser [default, for several figures:
    /// results/claims.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the table of claims, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) manner: Manner,
}

#[derive(Args)]
pub(crate) struct TopologyArgs {
    /// Scenario file (TOML), or a folder with a scenario.toml; without: the IRN paper's default case
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A file of another simulator instead: ns-3 RDMA topology.txt, htsim .topo
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) topology: Option<PathBuf>,
    /// Change one value of the scenario first; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "topology")]
    pub(crate) sets: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct WorkloadArgs {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    pub(crate) engine: Engine,
}

#[derive(Subcommand)]
pub(crate) enum Engine {
    /// Lines "qp opcode psn" to lines "nack expected sack msn cqes"
    IrnReceiver {
        /// The trace; - reads standard input
        file: PathBuf,
    },
    /// Lines "qp event fields" to one line of outcome and state each
    IrnSender {
        /// The trace; - reads standard input
        file: PathBuf,
        /// Packets of each flow
        #[arg(long, value_name = "N", default_value_t = 2807)]
        flow_packets: u64,
    },
}

fn series_help() -> String {
    format!("What to compare: series of the scenario by name, or schemes:\n{}", preset_help())
}

const EXAMPLES: &str = "\
Examples:
  selvedge run                                    the IRN paper's default case, four schemes
  selvedge run my.toml --set workload.poisson.load=0.5
  selvedge run --topology topology.txt --flows flow.txt --series irn,roce+pfc
  selvedge check figures/irn/fig1                 a published figure, claim by claim
  selvedge topology my.toml                       what a scenario means, before running it

Scenario files are explained by their schema: selvedge schema";

const RUN_EXAMPLES: &str = "\
Examples:
  selvedge run                                    the built-in study
  selvedge run --seeds 10 --out results/ten       more certain
  selvedge run figures/irn/fig1 --json            machine-readable
  selvedge run my.toml --set topology.fat-tree.k=8 --series irn,roce+pfc
  selvedge run --topology topology.txt --flows flow.txt --series irn,roce+pfc
  selvedge run --seeds 1 --trace flow=12          a capture and a timeline of one flow
  selvedge run --resume results/ten.partial       after Ctrl-C

The results folder holds summary.json, report.html, flows.parquet, ports.parquet and the resolved
scenario.toml; with flows from a file also fct.txt in the form of HPCC's ns-3 (first series, first
seed) and fct-<series>.txt. It appears when it is complete; until then it is called <name>.partial.";

const CHECK_EXAMPLES: &str = "\
Examples:
  selvedge check figures/irn/fig1
  selvedge check figures --smoke                  all figures, in minutes: do they run?
  selvedge check figures/irn --html claims.html   the whole evaluation of a paper, claim by claim

Exit status: 0 all claims hold or fail for a known reason, 1 some claim fails, 2 wrong input.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  selvedge replay irn-receiver recvInput.txt > out.txt
  zcat trace.gz | selvedge replay irn-sender - | head";
