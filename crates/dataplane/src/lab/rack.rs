//! Hosts of a rack as network namespaces, each with one interface whose other end is a port of a switch.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use selvedge_units::Rate;
use selvedge_wire::MacAddress;

use super::layout::shaped;
use super::network::set;
use super::processes;
use crate::iproute::{ip_batch, tc_batch};
use crate::netns::{self, Netns};
use crate::switch::ports::{Port, PortKind, plain};

/// Greatest number of hosts.
const MOST_HOSTS: usize = 200;
/// Longest name of a namespace.
const LONGEST_NAME: usize = 64;
/// Addresses of the third byte of a host's address: 10.77.0.1 to 10.77.0.250, then 10.77.1.1.
const IN_A_ROW: usize = 250;
/// Name of the interface at each host.
const DEVICE: &str = "eth0";
/// Frames that wait at a host for its interface: those of a network card and its driver.
const HOST_QUEUE: u32 = 1_000;
/// Frames that a TAP device holds until the switch reads them.
const TAP_QUEUE: u32 = 10_000;

/// Configuration of a rack's hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RackPlan {
    /// Beginning of the names of all namespaces. With ports on veth pairs, it is also the name of the namespace with
    /// the switch's ends.
    pub name: String,
    /// Hosts, in the order of the ports.
    pub hosts: Vec<RackHost>,
    /// MTU of their interfaces in bytes.
    pub mtu: u16,
    /// Kind of the ports. `None`: on veth pairs, in the best way that the kernel allows.
    pub kind: Option<PortKind>,
}

/// A host of a rack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RackHost {
    /// Name of the host.
    pub name: String,
    /// Rate at which the host's kernel sends, so that its sockets wait as for a network card; `None` for as fast as it
    /// can.
    pub rate: Option<Rate>,
}

impl RackPlan {
    /// Checks names and numbers.
    ///
    /// # Errors
    /// Returns what is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        if self.hosts.len() > MOST_HOSTS {
            return Err(format!("{} hosts are too many for one machine; give at most {MOST_HOSTS}", self.hosts.len()));
        }
        for name in self.namespaces() {
            netns::check_name(&name)?;
            if name.len() > LONGEST_NAME {
                return Err(format!("the name \"{name}\" is too long; give at most {LONGEST_NAME} letters"));
            }
        }
        Ok(())
    }

    /// Returns the names of all namespaces: that of the switch first, then those of the hosts.
    pub fn namespaces(&self) -> Vec<String> {
        let hosts = (0..self.hosts.len()).map(|host| self.namespace(host));
        std::iter::once(self.name.clone()).chain(hosts).collect()
    }
    /// Returns the name of a host's namespace.
    pub fn namespace(&self, host: usize) -> String {
        format!("{}-{}", self.name, self.hosts[host].name)
    }
    /// Returns the hardware address of a host's interface.
    pub fn station(&self, host: usize) -> MacAddress {
        let [high, low] = (host as u16).to_be_bytes();
        MacAddress([0x02, 0x53, 0x56, 0x77, high, low])
    }
    /// Returns the IPv4 address of a host, in 10.77.0.0/16.
    pub fn address(&self, host: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, (host / IN_A_ROW) as u8, (host % IN_A_ROW + 1) as u8)
    }
    /// Returns the IPv6 address of a host, in `fd77::/64`.
    pub fn address6(&self, host: usize) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host as u16 + 1)
    }
    /// Returns all addresses of a host.
    pub fn addresses(&self, host: usize) -> [IpAddr; 2] {
        [self.address(host).into(), self.address6(host).into()]
    }
}

/// Namespaces of a rack's hosts. Dropping the value ends all processes in them and removes them.
#[derive(Debug)]
pub struct Rack {
    namespaces: Vec<Netns>,
}

/// A rack's hosts, ready, and the ports towards them.
#[derive(Debug)]
pub struct Racked {
    /// The namespaces.
    pub rack: Rack,
    /// Ports in the order of the hosts.
    pub ports: Vec<Port>,
    /// Reasons why something is not as it could be, to be told to the user.
    pub notes: Vec<String>,
}

impl Rack {
    /// Makes namespaces and ports. It asks `is_ended` between two steps whether to give up.
    ///
    /// # Errors Returns an error for a wrong plan, without permission ([`acquire`](crate::impair::acquire)), without
    /// `ip`, when a name is taken, or of kind `Interrupted` when it gave up. Nothing is left then.
    pub fn open(plan: &RackPlan, is_ended: &mut dyn FnMut() -> bool) -> io::Result<Racked> {
        plan.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let mut rack = Self { namespaces: Vec::with_capacity(plan.hosts.len() + 1) };
        let mut go_on = || if is_ended() { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(()) };
        for (at, name) in plan.namespaces().iter().enumerate() {
            go_on()?;
            let namespace = Netns::new(name)?;
            namespace.visit(|| settle(at == 0))?;
            rack.namespaces.push(namespace);
        }
        if plan.kind != Some(PortKind::Tap) {
            rack.make_pairs(plan)?;
        }
        let (ports, mut notes) = rack.ports(plan.kind)?;
        for (host, namespace) in rack.namespaces[1..].iter().enumerate() {
            go_on()?;
            ip_batch(&["-n", namespace.name()], &set_up(plan, host))?;
            let queue = plan.hosts[host].rate.map(|rate| shaped(rate, plan.mtu, DEVICE, HOST_QUEUE, HOST_QUEUE));
            if let Err(error) = tc_batch(&["-n", namespace.name()], queue.as_slice()) {
                let note =
                    format!("hosts send as fast as they can, and the switch drops what exceeds its links: {error}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        Ok(Racked { rack, ports, notes })
    }

    /// Tells all hosts each other's hardware addresses. Otherwise the first packets to a host wait for the answer to a
    /// question, where many are lost and others overtake them.
    ///
    /// # Errors
    /// Returns what `ip` said if it failed.
    pub fn introduce(&self, plan: &RackPlan) -> io::Result<()> {
        let [_, hosts @ ..] = &self.namespaces[..] else { return Ok(()) };
        for (own, namespace) in hosts.iter().enumerate() {
            let others = (0..hosts.len()).filter(|other| *other != own);
            let known = others.map(|other| {
                let (address, station) = (plan.address(other), written(plan.station(other)));
                format!("neighbour replace {address} lladdr {station} dev {DEVICE} nud permanent")
            });
            ip_batch(&["-n", namespace.name()], &known.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Opens the ports towards all hosts, in their order, and returns notes for the user. A switch that ends and starts
    /// again finds its interfaces as they were, unless they are TAP devices, which end with their ports.
    ///
    /// # Errors
    /// Returns the system's error, for example if an interface is gone.
    pub fn ports(&self, kind: Option<PortKind>) -> io::Result<(Vec<Port>, Vec<String>)> {
        let [switch, hosts @ ..] = &self.namespaces[..] else { return Ok((Vec::new(), Vec::new())) };
        if kind == Some(PortKind::Tap) {
            let taps = hosts.iter().map(|host| host.visit(|| Port::open(PortKind::Tap, DEVICE)));
            return Ok((taps.collect::<io::Result<_>>()?, Vec::new()));
        }
        let open = |host: usize| match kind {
            Some(kind) => Port::open(kind, &port(host)).map(|port| (port, None)),
            None => Port::open_best(&port(host)),
        };
        let opened = switch.visit(|| (0..hosts.len()).map(open).collect::<io::Result<Vec<_>>>())?;
        let why = opened.iter().find_map(|(_, why)| why.as_ref());
        let note = why.map(|why| format!("ports use AF_PACKET, which is slower than AF_XDP: {why}"));
        Ok((opened.into_iter().map(|(port, _)| port).collect(), note.into_iter().collect()))
    }

    /// Makes a veth pair between each host and the switch's namespace.
    fn make_pairs(&self, plan: &RackPlan) -> io::Result<()> {
        let [switch, hosts @ ..] = &self.namespaces[..] else { return Ok(()) };
        let pair = |(host, namespace): (usize, &Netns)| {
            let (name, mtu) = (namespace.name(), plan.mtu);
            // One queue, whose frames go to one socket.
            let queues = "numtxqueues 1 numrxqueues 1";
            let own = format!("{} mtu {mtu} netns {} {queues}", port(host), switch.name());
            format!("link add name {own} type veth peer name {DEVICE} mtu {mtu} netns {name} {queues}")
        };
        ip_batch(&[], &hosts.iter().enumerate().map(pair).collect::<Vec<_>>())?;
        for namespace in hosts {
            namespace.visit(|| plain(DEVICE))?;
        }
        let quiet = if has_ipv6(plan.mtu) { "addrgenmode none" } else { "" };
        let ups = (0..hosts.len()).map(|host| format!("link set {} {quiet} up", port(host)));
        ip_batch(&["-n", switch.name()], &ups.collect::<Vec<_>>()).map(drop)
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let names: Vec<&str> = self.namespaces.iter().map(Netns::name).collect();
        // A namespace whose name is gone lives as long as its last process.
        processes::end(&processes::within(&names));
    }
}

/// Returns whether an interface of this MTU in bytes has IPv6: some kernels have none, and it needs 1,280.
fn has_ipv6(mtu: u16) -> bool {
    mtu >= 1_280 && std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// Returns a hardware address as `ip` reads it.
fn written(MacAddress([a, b, c, d, e, f]): MacAddress) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// Returns the name of the switch's end of a pair.
fn port(host: usize) -> String {
    format!("p{host}")
}

/// Sets the kernel's values in the namespace of this thread.
fn settle(is_switch: bool) -> io::Result<()> {
    set("net/ipv4/conf/default/rp_filter", "0")?;
    set("net/ipv4/conf/all/rp_filter", "0")?;
    if is_switch {
        // Kernels without IPv6 have no such value. The switch's kernel must not talk to hosts.
        let _ = set("net/ipv6/conf/default/disable_ipv6", "1");
    }
    Ok(())
}

/// Returns the commands for `ip` that set up the interface of a host.
fn set_up(plan: &RackPlan, host: usize) -> Vec<String> {
    let queue = if plan.kind == Some(PortKind::Tap) { TAP_QUEUE } else { HOST_QUEUE };
    let has_ipv6 = has_ipv6(plan.mtu);
    let quiet = if has_ipv6 { "addrgenmode none" } else { "" };
    let mut commands = vec![
        "link set lo up".to_owned(),
        format!("link set {DEVICE} address {}", written(plan.station(host))),
        format!("link set {DEVICE} mtu {} txqueuelen {queue} {quiet}", plan.mtu),
        format!("link set {DEVICE} up"),
        format!("address add {}/16 dev {DEVICE}", plan.address(host)),
    ];
    if has_ipv6 {
        commands.push(format!("address add {}/64 dev {DEVICE} nodad", plan.address6(host)));
    }
    commands
}
