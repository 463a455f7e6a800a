//! Arguments of `selvedge switch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge_dataplane::switch::ports::{PortKind, PortPlace};
use selvedge_scenario::Rack;
use selvedge_units::words::did_you_mean;

use super::options::SwitchOptions;

/// Kinds of ports.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// veth pairs and rings of AF_XDP (root)
    Xdp,
    /// veth pairs and AF_PACKET
    Packet,
    /// TAP devices
    Tap,
}

impl From<Kind> for PortKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Xdp => Self::Xdp,
            Kind::Packet => Self::Packet,
            Kind::Tap => Self::Tap,
        }
    }
}

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SwitchArgs {
    /// Rack: a file with [topology], [switch], [nic], [[loss]] and [[failures]], as scenarios have them
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Interface that leads to a host; may be repeated [default: the interface with the host's name]
    ///
    /// PORT is the name of an interface, in another network namespace as NAMESPACE/NAME. `tap:` before it makes a TAP
    /// device; `xdp:` and `packet:` choose how an existing one is used.
    #[arg(long = "port", value_name = "HOST=PORT")]
    ports: Vec<String>,
    #[command(flatten)]
    pub(super) options: SwitchOptions,
}

impl SwitchArgs {
    /// Returns the place of each host's port.
    pub(super) fn places(&self, rack: &Rack) -> Result<Vec<PortPlace>, String> {
        let graph = rack.network.graph();
        let names: Vec<&str> = graph.host_ids().map(|host| graph.hosts[host.index()].name.as_str()).collect();
        let mut places: Vec<Option<PortPlace>> = vec![None; names.len()];
        for text in &self.ports {
            let wrong = |why: String| format!("--port {text}: {why}");
            let (host, place) =
                text.split_once('=').ok_or_else(|| wrong("expected HOST=PORT, as in h0=eth1".to_owned()))?;
            let at = names.iter().position(|name| *name == host).ok_or_else(|| {
                wrong(format!("the rack has no host \"{host}\"{}", did_you_mean(host, names.iter().copied())))
            })?;
            let place = place.parse().map_err(wrong)?;
            if places[at].replace(place).is_some() {
                return Err(wrong(format!("{host} has a port already")));
            }
        }
        let of_name = |name: &str| name.parse().map_err(|why| format!("{why}; give --port {name}=PORT"));
        places.into_iter().zip(names).map(|(place, name)| place.map_or_else(|| of_name(name), Ok)).collect()
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  selvedge switch --config rack.toml                              # interfaces named like the hosts: h0, h1, ...
  selvedge switch --config rack.toml --port h0=eth1 --port h1=eth2 --port h2=sv-c/eth0
  selvedge switch --config rack.toml --port h0=tap:tap0 --port h1=tap:tap1 --json

A host behind a veth pair, by hand:
  ip netns add a; ip link add h0 type veth peer name eth0 netns a; ip link set h0 up
  ip -n a address add 10.77.0.1/16 dev eth0; ip -n a link set eth0 up; ip netns exec a ethtool -K eth0 tso off gso off

Ports are found by the addresses that their hosts send from. All switches of the rack, and the links between them, are
this process; interfaces are found as they are and left as they are, so that a switch that was killed is simply started
again. Interfaces are used by AF_XDP, or by AF_PACKET where the kernel does not allow that, which is said once. Hosts
must cut their packets to the MTU themselves: frames that are longer are dropped and counted. It needs root, or
CAP_NET_RAW and CAP_NET_ADMIN.
Ctrl-C and SIGTERM end it; counters are printed then. Exit status: 0 it ended as told, 1 an interface failed, 2 wrong
arguments, no permission, or no such interface.";
