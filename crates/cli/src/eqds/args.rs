//! Arguments of `selvedge eqds`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use selvedge_dataplane::eqds::default_socket;

#[derive(Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct EqdsArgs {
    #[command(subcommand)]
    pub(super) command: EqdsCommand,
}

#[derive(Subcommand)]
pub(super) enum EqdsCommand {
    /// Start the daemon, in the foreground: a device inside, UDP outside, until Ctrl-C or `down`
    ///
    /// Everything that the daemon makes (device, addresses, routes) ends with it, also by kill -9. SIGHUP or `reload`
    /// reads the settings anew. Under systemd: Type=notify-reload, with WatchdogSec= if wanted.
    #[command(after_long_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// Show the state of the daemon: tunnels, queues, losses
    Status {
        /// Print JSON, with all counters
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Show a table of peers: state, round-trip time, bytes under way
    Peers(ControlArgs),
    /// Read the settings anew: tunnels to unchanged peers go on; faulty settings change nothing
    Reload(ControlArgs),
    /// End the daemon, and wait until it has ended
    Down(ControlArgs),
    /// Print the state in Prometheus' text format
    #[command(after_long_help = METRICS_EXAMPLES)]
    Metrics(ControlArgs),
    /// Measure native messages: latency and bandwidth (eqdsperf)
    Perf(super::perf::PerfArgs),
    /// Make a network of hosts on this machine, each with an EQDS daemon
    #[command(after_long_help = super::lab::EXAMPLES)]
    Lab(Box<super::lab::LabArgs>),
}

#[derive(Args)]
pub(super) struct UpArgs {
    /// Settings
    #[arg(long, value_name = "FILE", default_value = "/etc/selvedge/eqds.toml")]
    pub(super) config: PathBuf,
    /// Only check the settings, and show what follows from them
    #[arg(long)]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) control: ControlArgs,
}

#[derive(Args)]
pub(super) struct ControlArgs {
    /// Control socket of the daemon [default: /run/selvedge/eqds.sock; without root, selvedge/eqds.sock in
    /// XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl ControlArgs {
    pub(super) fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  (umask 077; wg genkey > a.key)                  once per host; `wg pubkey < a.key` is for its peers
  selvedge eqds up --config eqds.toml --check     are the settings good?
  selvedge eqds up --config eqds.toml             on each host; then all programs use the tunnels:
    ping 10.1.1.1
  selvedge eqds status
  selvedge eqds status --json | jq '.peers[].tunnels'
  selvedge eqds reload                            after a change of eqds.toml
  selvedge eqds perf server                       on one host, and on another:
    selvedge eqds perf client 10.1.1.1
  selvedge eqds down

A file eqds.toml of host a, whose peer is b (`selvedge schema eqds` describes every key):
  name = \"a\"
  addresses = [\"192.0.2.1\"]          # outside
  link-rate = \"10Gbps\"
  prefixes = [\"10.1.0.0/24\"]         # inside, here
  inner-addresses = [\"10.1.0.1/24\"]
  private-key-file = \"a.key\"

  [[peer]]
  name = \"b\"
  address = \"192.0.2.2\"
  prefixes = [\"10.1.1.0/24\"]
  public-key = \"...\"                 # of b

Exit status: 0 well, 1 it could not be finished or no daemon answers, 2 wrong settings or no
permission.";

const UP_EXAMPLES: &str = "\
Examples:
  selvedge eqds up --config eqds.toml --check
  selvedge eqds up --config eqds.toml
  selvedge eqds up --config b.toml --socket /run/selvedge/b.sock    a second daemon of one host

It needs root, or CAP_NET_ADMIN.
Exit status: 0 it ended as told, 1 its device was removed or something failed, 2 wrong settings, no
permission, or an address, port, device or route is taken.";

const METRICS_EXAMPLES: &str = "\
Examples:
  selvedge eqds metrics
  selvedge eqds metrics > /var/lib/prometheus/node-exporter/eqds.prom.new &&
    mv /var/lib/prometheus/node-exporter/eqds.prom.new /var/lib/prometheus/node-exporter/eqds.prom";
