//! Arguments of `selvedge eqds lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use selvedge_dataplane::lab::Plan;
use selvedge_units::Rate;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct LabArgs {
    /// Number of hosts
    #[arg(long, value_name = "N", required_unless_present = "rack")]
    hosts: Option<u32>,
    /// Network of a file, as `selvedge lab` makes it: its hosts, and its switches in this process, which may trim
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hosts", "rate", "buffer", "paths"])]
    pub(super) rack: Option<PathBuf>,
    /// Change one value of the rack: its dotted key, and a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// Print the counters of the rack's switches at the end as JSON, to standard output
    #[arg(long)]
    pub(super) json: bool,
    /// Rate of each link, as in 1Gbps [default: as fast as the machine is]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Queue of a switch towards each link, in packets of full length; it needs --rate
    #[arg(long, value_name = "PACKETS", default_value_t = 100, requires = "rate")]
    buffer: u32,
    /// MTU of all links
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u16).range(576..))]
    pub(super) mtu: u16,
    /// Spine switches: paths between any two hosts that are not at one leaf switch; 1 is one switch for all hosts
    #[arg(long, value_name = "P", default_value_t = 1)]
    paths: u32,
    /// No daemons: the network alone, to compare with
    #[arg(long)]
    pub(super) without: bool,
    /// Rate that daemons hand out as credit [default: that of their host's link; without --rate, 10Gbps]
    #[arg(long, value_name = "RATE", conflicts_with = "without")]
    credit_rate: Option<Rate>,
    /// More settings for the eqds.toml of each host, from a file: keys of the top first, then tables
    #[arg(long, value_name = "FILE", conflicts_with = "without")]
    pub(super) config_extra: Option<PathBuf>,
    /// Beginning of the namespaces' names: sv-eqds-h1 is the first host
    #[arg(long, value_name = "NAME", default_value = "sv-eqds")]
    pub(super) name: String,
    /// Program to run, and its arguments; without: until Ctrl-C
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) command: Vec<OsString>,
}

impl LabArgs {
    /// Returns the plan of the network.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        // Of an argument that conflicts with another one, clap forgets who requires it.
        for (option, is_given) in [("--set", !self.sets.is_empty()), ("--json", self.json)] {
            if is_given {
                return Err(format!("{option} is about the switches of a rack: give --rack FILE in place of --hosts"));
            }
        }
        let (rate, buffer, mtu, paths) = (self.rate, self.buffer, self.mtu, self.paths);
        let hosts = self.hosts.unwrap_or_default();
        let plan = Plan { name: self.name.clone(), hosts, rate, buffer, mtu, paths };
        plan.check().map(|()| plan)
    }

    /// Returns the link rate that the daemon of a host is told whose link has this rate.
    pub(super) fn credit_rate(&self, link: Option<Rate>) -> Rate {
        self.credit_rate.or(link).unwrap_or(Rate::from_gbps(10))
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  selvedge eqds lab --hosts 2 -- sh -c 'ip netns exec sv-eqds-h1 ping -c 3 $SELVEDGE_LAB_INNER_2'
  selvedge eqds lab --hosts 9 --rate 100Mbps --buffer 20 -- figures/eqds-real/incast.py
  selvedge eqds lab --hosts 9 --rate 100Mbps --buffer 20 --without -- figures/eqds-real/incast.py
  selvedge eqds lab --hosts 8 --paths 4 --rate 100Mbps -- ./try.sh
  selvedge eqds lab --rack rack.toml --json -- ./try.sh     # the switches of `selvedge lab`
  selvedge eqds lab --hosts 4                     # then, in other terminals:
    ip netns exec sv-eqds-h1 ping 10.80.2.1

Host i is the namespace sv-eqds-h<i>, with address 10.79.0.<i> outside and 10.80.<i>.1 inside. With --rack, host 1 is
the file's first host, with its name there and an address in 10.77.0.0/16 outside. A daemon of each host serves
10.80.<i>.0/24. PROGRAM runs in none of them; `ip netns exec NAME` enters. Its environment:
  SELVEDGE_LAB_HOSTS                              number of hosts
  SELVEDGE_LAB_NS_<i>                             namespace of host i
  SELVEDGE_LAB_OUTER_<i>, SELVEDGE_LAB_INNER_<i>  addresses of host i
  SELVEDGE_LAB_SOCKET_<i>                         control socket: selvedge eqds status --socket ...
  SELVEDGE_LAB_FOLDER                             h<i>.toml and h<i>.log of each host, until the end
  SELVEDGE_LAB_RATE, _BUFFER, _MTU, _PATHS        the network: bits per second (empty: unlimited), packets, bytes
  SELVEDGE_LAB_WITHOUT                            1 with --without
It needs root or, with a PROGRAM, a kernel that gives ordinary users namespaces, where PROGRAM is root and sees no
other network. At the end everything is removed, and processes in the namespaces are ended. Exit status: PROGRAM's;
2 wrong arguments, no permission, or a daemon that does not start.";
