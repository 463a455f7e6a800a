//! Arguments of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use selvedge_scenario::{Seeds, preset_help};
use selvedge_sim::record::FlowKey;
use selvedge_units::Bytes;

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
    #[command(override_usage = RUN_USAGE, after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Run figures and compare them with their papers' claims: a verdict per claim
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Explain why flows of a study were slow: their completion times split into causes
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Compare two results folders: the differences of their scenarios and of each metric
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Open results in a browser: the report and all rows, or several folders side by side
    ///
    /// Serves pages to browsers on this host until Ctrl-C; tables are read from disk as they are asked for.
    #[command(after_long_help = OPEN_EXAMPLES)]
    Open(OpenArgs),
    /// Show a network before running anything: hosts, links, RTT, BDP, the load it can carry
    Topology(TopologyArgs),
    /// Show the traffic before running anything: load, sizes, first flows
    Workload(WorkloadArgs),
    /// Show the cost of loss recovery on a NIC: bits per queue pair, per WQE, share of its cache
    #[command(after_long_help = FOOTPRINT_EXAMPLES)]
    Footprint(FootprintArgs),
    /// Simulate for another program: it injects flows and advances the time, in JSON over standard input and output
    ///
    /// Each request and each answer is one JSON object behind its length in 4 bytes. The requests are open, inject,
    /// advance, drain and close; docs/serve.md describes them.
    Serve,
    /// Run an IRN engine on an event trace and print its output trace
    ///
    /// Each line is answered as it comes, also through a pipe. Memory depends on the number of queue pairs in the
    /// trace, not on its length.
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Run a program that needs RDMA hardware, without any: a software RNIC over UDP
    #[command(after_long_help = VERBS_EXAMPLES)]
    Verbs(VerbsArgs),
    /// Make an impaired network to test programs on: loss, duplication, corruption, delay, reordering, from a seed
    #[cfg(target_os = "linux")]
    #[command(after_long_help = crate::impair::EXAMPLES)]
    Impair(Box<crate::impair::ImpairArgs>),
    /// Run programs on a network of this machine: hosts as namespaces, between them the switches of a scenario
    #[cfg(target_os = "linux")]
    #[command(after_long_help = crate::lab::EXAMPLES)]
    Lab(Box<crate::lab::LabArgs>),
    /// Be the switches of a scenario, between interfaces of this machine: veth, TAP, network cards
    #[cfg(target_os = "linux")]
    #[command(after_long_help = crate::switch::EXAMPLES)]
    Switch(Box<crate::switch::SwitchArgs>),
    /// Carry traffic between hosts through EQDS tunnels: paced by credit from the receiver, spread over paths
    #[cfg(target_os = "linux")]
    #[command(after_long_help = crate::eqds::EXAMPLES)]
    Eqds(crate::eqds::EqdsArgs),
    /// Tell that `selvedge lab` has taken its place
    #[command(hide = true, disable_help_flag = true)]
    Tor {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// One end of a trial, started by `run --real`
    #[command(hide = true)]
    TrialEnd,
    /// Look up the keys of a scenario file: their values, meanings and defaults
    #[command(after_long_help = KEYS_EXAMPLES)]
    Keys {
        /// Place, as in "workload.incast". Default: at the top
        #[arg(default_value = "", hide_default_value = true)]
        path: String,
        /// Print all keys, as a page in Markdown
        #[arg(long, conflicts_with = "path")]
        all: bool,
    },
    /// Look up commercial devices, for nic.preset and switch.preset: their settings, and sources
    Presets {
        /// Device, as in "connectx-7". Default: a table of all
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of scenario files, for editors, or that of results
    Schema {
        /// Kind of files
        #[arg(value_enum, default_value = "scenario")]
        of: Described,
    },
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Write the manual page of each command, for packages
    #[command(hide = true)]
    Manual {
        /// Folder to write to; it must exist
        folder: PathBuf,
    },
}

/// Files that have a schema.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Described {
    /// Scenario files
    Scenario,
    /// summary.json, among the results
    Summary,
    /// eqds.toml, the settings of EQDS's daemon
    Eqds,
}

/// Input of a study.
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
    /// Series to compare, by name, or schemes as in irn,roce+pfc
    #[arg(long, value_name = "LIST", long_help = series_help())]
    pub(crate) series: Option<String>,
    /// Change one value of the scenario: its dotted key, and a TOML value; may be repeated
    ///
    /// Replaces the value in every series where the key applies. Units need no quotes: --set switch.pfc.headroom=20KB
    /// --set workload.poisson.load=0.5
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Run at every one of these values of a key, crossed with those of others; may be repeated
    ///
    /// Values are separated by commas, or a TOML list or range: --sweep workload.poisson.load=0.3,0.5,0.7 --sweep
    /// 'workload.poisson.load={ from = 0.1, to = 0.9, step = 0.2 }'. [sweep] in a scenario can zip keys and
    /// leave points
    /// out.
    #[arg(long = "sweep", value_name = "KEY=VALUES")]
    pub(crate) sweeps: Vec<String>,
    /// Run each series with this many seeds (5), or with these (1,2,3)
    #[arg(long, value_name = "N|LIST", allow_hyphen_values = true)]
    pub(crate) seeds: Option<Seeds>,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Folder for the results; it must not hold any yet [default: results/<title>-<n>]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results that are in the folder
    #[arg(long)]
    pub(crate) force: bool,
    /// Continue interrupted results
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "topology", "flows", "series", "sets", "sweeps", "seeds", "out", "force"])]
    pub(crate) resume: Option<PathBuf>,
    /// Run on real hosts: two processes in network namespaces, each with a software RNIC (Linux)
    ///
    /// The scenario has one [workload.verbs] between two hosts, and loses packets on one link at most, at random; a
    /// device between the two namespaces loses packets from the same seeds. Needs root, or user namespaces.
    #[arg(long, conflicts_with_all = ["resume", "what"])]
    pub(crate) real: bool,
    #[command(flatten)]
    pub(crate) tracing: TraceArgs,
    /// Add no controls: series beyond those asked for, each of which differs from one of these in PFC alone
    ///
    /// A study that compares series with PFC and series without is given the controls that it lacks, if they are cheap:
    /// without them, other differences between the series look like effects of PFC.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_controls: bool,
    /// Add seeds until the verdict is decided, up to N in all
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "50", conflicts_with = "resume", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) until_decided: Option<u16>,
    /// Print the cost of the study (packets, memory, time), and do not run it; with --json as JSON
    #[arg(long, visible_alias = "dry-run", conflicts_with = "real")]
    pub(crate) estimate: bool,
    /// Print summary.json to standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Selection of packets and events to trace.
#[derive(Args)]
pub(crate) struct TraceArgs {
    /// Trace a flow, a port or everything: flow=ID, port=ID, all; may be repeated
    ///
    /// The first run of each series writes a capture for Wireshark (.pcapng) and a timeline for ui.perfetto.dev
    /// (.perfetto-trace). flow=12 is flow 12 of the first workload, flow=1:12 of the second; port=h3:leaf0 (or 'h3 -
    /// leaf0') is the port of h3 towards leaf0, port=leaf0 means all ports of that node, port=17 goes by number.
    #[arg(long = "trace", value_name = "WHAT", conflicts_with = "resume", group = "traced")]
    pub(crate) what: Vec<String>,
    /// Write the events at IRN's senders and receivers, for its hardware modules: irn, or irn=HOST; may be repeated
    ///
    /// The first run of each series with IRN writes two files for each host, in the format of the IRN authors' event
    /// traces, for `selvedge replay irn-receiver` and `irn-sender`, and for the modules in rtl/. A third file maps
    /// queue pairs to their numbers.
    #[arg(long = "trace-events", value_name = "WHAT", conflicts_with_all = ["what", "resume"], group = "traced")]
    pub(crate) events: Vec<String>,
    /// Folder for the traces [default: traces, among the results]
    #[arg(long = "trace-dir", value_name = "DIR", requires = "traced")]
    pub(crate) folder: Option<PathBuf>,
    /// Keep the payload in captures: zeros, for programs that need whole packets
    ///
    /// Without this option, captures have headers and checksums alone, and the length of each packet.
    #[arg(long = "trace-payload", requires = "what", conflicts_with_all = ["snaplen", "events"])]
    pub(crate) payload: bool,
    /// Cut packets in captures after this many bytes, headers included
    ///
    /// Wireshark cannot dissect RoCE packets that are cut short.
    #[arg(long = "trace-snaplen", value_name = "BYTES", requires = "what", conflicts_with = "events", value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub(crate) snaplen: Option<u32>,
}

/// Options of runs.
#[derive(Args)]
pub(crate) struct RunOptions {
    /// Use at most this many threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Run although it may need more memory than there is
    #[arg(long)]
    pub(crate) ignore_memory: bool,
    /// Print no progress and no notices
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Figures (folders with an expect.toml and a scenario.toml or program.toml), or folders of figures
    ///
    /// The series of a program.toml are real programs, which run one at a time; claims that this machine cannot check
    /// are skipped with the reason.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Only check that the figures run: fewer flows and seeds, as in each scenario's [smoke]
    ///
    /// Smoke runs are too short to judge; claims are shown, and only those fail that have no value.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Keep the results of each figure, in this folder
    ///
    /// With this option, figures run one after the other; otherwise runs that several of them need are run once.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the tables of claims, as a page for a browser [default, for several figures without --smoke or --json:
    /// results/claims.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the tables of claims, as Markdown
    ///
    /// FILE has a section per paper (the folder that holds the figures). Sections of papers that are not run stay as
    /// they are.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Commit that this program was built from, for the tables of claims
    #[arg(long, value_name = "REV")]
    pub(crate) revision: Option<String>,
    /// Print the figures with their claims and verdicts as a JSON list to standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// Results of `selvedge run`, of which one run is simulated again, with full records; or the folder that `selvedge
    /// lab --trace-dir` wrote
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,
    /// Explain this flow in full: its number, or workload:number where there are several workloads
    #[arg(long, value_name = "ID", value_parser = flow_key, conflicts_with = "worst")]
    pub(crate) flow: Option<FlowKey>,
    /// Explain the flows with the highest slowdown; of real flows, those with the most bytes [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) worst: Option<u32>,
    /// Take the run of this series [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) series: Option<String>,
    /// Take the run with this seed [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print JSON, times in picoseconds
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress and no notices
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
pub(crate) struct TopologyArgs {
    /// Scenario file (TOML), or a folder with a scenario.toml; without: the IRN paper's default case
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Network from a file of another simulator: ns-3 RDMA topology.txt, htsim .topo
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Series whose headers the highest load counts: one of the scenario by name, or a scheme, as in irn+hpcc [default:
    /// the first series; with --topology alone, irn]
    ///
    /// If there are several, the first counts.
    #[arg(long, value_name = "LIST")]
    pub(crate) series: Option<String>,
    /// Change one value of the scenario first, as in nic.mtu=4096B; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
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
pub(crate) struct FootprintArgs {
    /// Scenario file (TOML), or a folder with a scenario.toml; without: the IRN paper's default case
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Schemes to show [default: every loss recovery and its variants]
    #[arg(long, value_name = "LIST")]
    pub(crate) series: Option<String>,
    /// Change one value of the scenario first; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Size of the NIC's cache
    #[arg(long, value_name = "BYTES", default_value = "4MB", value_parser = some_bytes)]
    pub(crate) cache: Bytes,
    /// Queue pairs in the cache
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub(crate) qps: u64,
    /// Work queue elements in the cache
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub(crate) wqes: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Maximum of a count: larger numbers overflow 64 bits in products.
const MOST: u64 = 1 << 32;

#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    pub(crate) engine: Engine,
}

#[derive(Subcommand)]
pub(crate) enum Engine {
    /// Lines "qp opcode psn" to lines "nack expected sack msn cqes"
    IrnReceiver {
        /// Trace; - reads standard input
        file: PathBuf,
        #[command(flatten)]
        hardware: HardwareArgs,
    },
    /// Lines "qp event fields" to one line of outcome and state each
    IrnSender {
        /// Trace; - reads standard input
        file: PathBuf,
        /// Packets of each flow
        #[arg(long, value_name = "N", default_value_t = 2807)]
        flow_packets: u64,
        /// Maximum number of packets in flight (BDP-FC)
        #[arg(long, value_name = "N", default_value_t = 111, value_parser = clap::value_parser!(u32).range(1..))]
        cap: u32,
        /// Maximum number of packets in flight for which RTO_low holds
        #[arg(long, value_name = "N", default_value_t = 3)]
        low_packets: u32,
        #[command(flatten)]
        hardware: HardwareArgs,
    },
}

#[derive(Args)]
pub(crate) struct HardwareArgs {
    /// Packets that a bitmap holds
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 21))]
    pub(crate) bitmap: u32,
    /// PSNs wrap at 2^24 and are checked, as in Selvedge's hardware (rtl/); else they count on, as in the authors'
    #[arg(long)]
    pub(crate) wrap: bool,
    /// Append the bitmaps in hexadecimal: a receiver's map1 and map2, a sender's SACKs
    #[arg(long)]
    pub(crate) state: bool,
}

fn some_bytes(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.get() == 0 {
        Err("a NIC without cache has no share to give; give a size above".to_owned())
    } else {
        Ok(bytes)
    }
}

/// Parses a flow: "17", or "1:17" in the second workload.
fn flow_key(text: &str) -> Result<FlowKey, String> {
    let (workload, id) = text.split_once(':').unwrap_or(("0", text));
    match (workload.parse(), id.parse()) {
        (Ok(workload), Ok(id)) => Ok(FlowKey { workload, id }),
        _ => Err("give the flow's number, as in 17, or workload:number, as in 1:17".to_owned()),
    }
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

What may stand in a scenario file: selvedge keys";

const KEYS_EXAMPLES: &str = "\
Examples:
  selvedge keys                                   what a scenario is made of
  selvedge keys workload                          kinds of traffic
  selvedge keys workload.incast
  selvedge keys transport.recovery.irn";

/// Usage of `run`. The parser's own text for the given arguments would show FILE beside --resume, which takes none.
const RUN_USAGE: &str = "\
selvedge run [OPTIONS] [FILE]
       selvedge run --resume <DIR> [--threads <N>] [--quiet] [--json]";

const RUN_EXAMPLES: &str = "\
Examples:
  selvedge run                                    the built-in study
  selvedge run --seeds 10 --out results/ten       more certain
  selvedge run figures/irn/fig1 --json            machine-readable
  selvedge run my.toml --set topology.fat-tree.k=8 --series irn,roce+pfc
  selvedge run --topology topology.txt --flows flow.txt --series irn,roce+pfc
  selvedge run --seeds 1 --trace flow=12          a capture and a timeline of one flow
  selvedge run --series irn --trace-events irn=h3 events for IRN's hardware modules (selvedge replay, rtl/)
  selvedge run my.toml --sweep workload.poisson.load=0.3,0.5,0.7  a grid of values; one table and map
  selvedge run my.toml --estimate                 what it would take: packets, memory, time
  selvedge run --resume results/ten.partial       after Ctrl-C

The results folder holds summary.json, report.html, flows.parquet, ports.parquet and the resolved
scenario.toml; with lists of flows from files (GOAL has none) also fct.txt in the form of HPCC's ns-3
(first series, first seed) and fct-<series>.txt. It appears when it is complete; until then it is
called <name>.partial.

Exit status: 0 the study is complete, 1 it could not be finished, 2 wrong input, 130 interrupted,
143 ended by SIGTERM (129: SIGHUP).";

const CHECK_EXAMPLES: &str = "\
Examples:
  selvedge check figures/irn/fig1
  selvedge check figures --smoke                  all figures, in minutes: do they run?
  selvedge check figures/irn --html claims.html   the whole evaluation of a paper, claim by claim

Exit status: 0 all claims hold or fail for a known reason, 1 some claim fails or a run could not be finished,
2 wrong input, 130 interrupted, 143 ended by SIGTERM (129: SIGHUP).";

const FOOTPRINT_EXAMPLES: &str = "\
Examples:
  selvedge footprint                              the IRN paper's section 6.1, recomputed
  selvedge footprint --set topology.fat-tree.link.rate=100Gbps --cache 8MB --qps 10000
  selvedge footprint my.toml --series irn,irn+no-sack --json

Counted is what a NIC has to keep beyond go-back-N's state, from the settings that a run of the
scenario would use: bitmaps, for example, are as long as the BDP cap, in pieces of 32 bits.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  selvedge explain results/ten                    the ten slowest flows of the first series and seed
  selvedge explain results/ten --series roce+pfc --worst 30
  selvedge explain results/ten --flow 1873        one flow in full: parts, places, last packet, pauses
  selvedge explain lab                            the flows of programs, after `selvedge lab --trace-dir lab`

The parts of a completion time add up to it. They are
  serialisation   the flow's own bits on its slowest link, the last packet's on the others
  propagation     the last packet in flight
  queueing        behind other flows in switches, there or on the way of acknowledgements back
  pause           stopped by priority flow control; by whom, and what was behind it, is shown
  nic             behind other queue pairs and acknowledgements at the sender
  pacing, window  held by congestion control
  cap             held by the loss recovery's limit on packets in flight (BDP-FC)
  recovery        waiting for news of a loss, sending again
  timeout         waiting for a retransmission timeout
  outage          waiting for a link that was down
How they are told apart, and the parts of real flows: docs/explain.md.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  selvedge compare results/our-pod-1 results/our-pod-2
  selvedge compare results/our-pod-1 results/our-pod-2 --json

Series are matched by name and case. Ratios are those of B over A; where both have run the same flows, they are
paired by seed. What is in --json: docs/results.md.";

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Folder of results
    pub(crate) a: PathBuf,
    /// Folder of results to compare with the first
    pub(crate) b: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const OPEN_EXAMPLES: &str = "\
Examples:
  selvedge open results/our-pod-1
  selvedge open results/our-pod-1 results/our-pod-2 --port 8080

Only this host can connect. From another: ssh -L 8080:127.0.0.1:8080 host";

#[derive(Args)]
pub(crate) struct OpenArgs {
    /// Folders of results
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// Port on 127.0.0.1 [default: any that is free]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  selvedge replay irn-receiver recvInput.txt > out.txt
  zcat trace.gz | selvedge replay irn-sender - | head
  selvedge replay irn-sender --bitmap 320 --cap 277 --wrap --state sendInput.txt";

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct VerbsArgs {
    /// Show devices, their GIDs and MTUs, and missing parts of this host
    #[arg(long, conflicts_with = "command")]
    pub(crate) info: bool,
    /// Print JSON
    #[arg(long, requires = "info")]
    pub(crate) json: bool,
    /// Loss recovery between two Selvedge NICs
    #[arg(long, value_name = "NAME", value_parser = ["irn", "irn-paper", "melo", "go-back-n"])]
    pub(crate) recovery: Option<String>,
    /// Folder with libibverbs.so.1; default: lib beside this program's folder, or the value of SELVEDGE_LIBRARIES
    #[arg(long, value_name = "FOLDER")]
    pub(crate) libraries: Option<PathBuf>,
    /// Program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

const VERBS_EXAMPLES: &str = "\
Examples:
  selvedge verbs --info
  selvedge verbs -- ibv_devinfo
  selvedge verbs -- ib_write_bw -d sv_lo               # one terminal
  selvedge verbs -- ib_write_bw -d sv_lo 127.0.0.1     # another
  selvedge verbs --recovery go-back-n -- ib_send_bw -d sv_eth0 10.0.0.2";
