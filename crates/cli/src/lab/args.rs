//! Arguments of `selvedge lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use selvedge_dataplane::lab::{RackHost, RackPlan};
use selvedge_scenario::Rack;
use selvedge_units::HostId;

use crate::switch::{Kind, SwitchOptions};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct LabArgs {
    /// Rack: a file with [topology], [switch], [nic], [[loss]] and [[failures]], as scenarios have them
    ///
    /// A whole scenario will do: its traffic and its series are ignored.
    #[arg(value_name = "FILE")]
    pub(super) rack: PathBuf,
    /// Beginning of the namespaces' names: sv-h0 is the host h0
    #[arg(long, value_name = "NAME", default_value = "sv")]
    name: String,
    /// Kind of the ports towards hosts [default: xdp, and packet where the kernel does not allow it]
    #[arg(long, value_enum, value_name = "KIND")]
    ports: Option<Kind>,
    #[command(flatten)]
    pub(super) options: SwitchOptions,
    /// Program to run, and its arguments; without: until Ctrl-C
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) command: Vec<OsString>,
}

impl LabArgs {
    /// Returns the plan of the hosts.
    pub(super) fn plan(&self, rack: &Rack) -> Result<RackPlan, String> {
        let mut plan = plan_of(rack, &self.name, self.options.mtu);
        plan.kind = self.ports.map(Kind::into);
        if self.options.without {
            plan.hosts.iter_mut().for_each(|host| host.rate = None);
        }
        plan.check().map(|()| plan)
    }
}

/// Returns the plan of a rack's hosts, which send at the rates of their links.
pub(crate) fn plan_of(rack: &Rack, name: &str, mtu: u16) -> RackPlan {
    let graph = rack.network.graph();
    let rate = |host| graph.links.iter().find(|link| [link.a, link.b].contains(&host)).map(|link| link.rate);
    let host = |id: HostId| RackHost { name: graph.hosts[id.index()].name.clone(), rate: rate(id.into()) };
    RackPlan { name: name.to_owned(), hosts: graph.host_ids().map(host).collect(), mtu, kind: None }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  selvedge lab rack.toml -- sh -c 'ip netns exec sv-h0 ping -c 3 $SELVEDGE_LAB_ADDRESS_h1'
  selvedge lab rack.toml --json -- ./job.sh
  selvedge lab rack.toml --trace-dir trace -- ./job.sh    # then, why was it slow: selvedge explain trace
  selvedge lab rack.toml --without -- ./job.sh            # no switches, to compare with
  selvedge lab rack.toml --set switch.ecn.enabled=false   # then, in other terminals:
    ip netns exec sv-h0 selvedge verbs -- ib_write_bw -d sv_eth0
    ip netns exec sv-h1 selvedge verbs -- ib_write_bw -d sv_eth0 10.77.0.1

A file rack.toml of four leaves and two spines (`selvedge keys topology` describes the keys):
  [topology.leaf-spine]
  leaves = 4
  spines = 2
  hosts-per-leaf = 2
  host-link = { rate = \"100Mbps\", delay = \"50us\" }
  spine-link = { rate = \"100Mbps\", delay = \"50us\" }

  [switch.ecn]
  enabled = true

  [[loss]]
  link = \"leaf0 - spine1\"
  model.random.rate = \"1%\"

Each host is a namespace, sv-<host>, with one interface, eth0: 10.77.0.1 and fd77::1 for the first, 10.77.0.2 for the
second, all in 10.77.0.0/16. The switches and the links between them are this process. PROGRAM runs in none of the
hosts; `ip netns exec NAME` enters. Its environment:
  SELVEDGE_LAB_HOSTS                    names of the hosts, in order
  SELVEDGE_LAB_NS_<host>                namespace of a host; letters other than A-Z, a-z, 0-9 are _
  SELVEDGE_LAB_ADDRESS_<host>, SELVEDGE_LAB_ADDRESS6_<host>
Classes follow the tag's priority, or the upper three bits of the DSCP. It needs root or, with a PROGRAM, a kernel that
gives ordinary users namespaces. Counters are printed at the end (to standard error, where there is a PROGRAM; --json to
standard output). Exit status: PROGRAM's; 2 wrong arguments or no permission, 1 an interface failed.";
