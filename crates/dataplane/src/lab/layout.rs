//! The network of a laboratory as commands for `ip` and `tc`, in the order in which they succeed.

use selvedge_units::Rate;

use super::plan::Plan;

/// Address of each switch on the side of its hosts.
const GATEWAY: &str = "10.79.0.254";
/// Prefix of all hosts.
const HOSTS: &str = "10.79.0.0/24";
/// Bytes of an Ethernet header, which `tc` counts.
const ETHERNET: u32 = 14;
/// Packets that wait at a host.
const HOST_QUEUE: u32 = 1_000;
/// Settings of the kernel in each switch. The first ones count for devices that come later.
pub(super) const SWITCH_SETTINGS: &[(&str, &str)] = &[
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/ip_forward", "1"),
    // Routes are chosen by addresses and ports: a flow stays on its path.
    ("net/ipv4/fib_multipath_hash_policy", "1"),
];
/// Settings of the kernel at each host.
pub(super) const HOST_SETTINGS: &[(&str, &str)] =
    &[("net/ipv4/conf/default/rp_filter", "0"), ("net/ipv4/conf/all/rp_filter", "0")];

/// A namespace, and what is done in it once all links are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    /// Name of the namespace.
    pub(super) name: String,
    /// Whether it is a switch.
    pub(super) is_switch: bool,
    /// Commands for `ip`.
    pub(super) ip: Vec<String>,
    /// Commands for `tc`.
    pub(super) tc: Vec<String>,
}

/// A network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Namespaces, in the order in which they are made.
    pub(super) nodes: Vec<Node>,
    /// Commands for `ip` that make the links, in no namespace.
    pub(super) links: Vec<String>,
}

impl Layout {
    /// Returns the network of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut layout = Self { nodes: Vec::new(), links: Vec::new() };
        let spines = if plan.paths > 1 { plan.paths } else { 0 };
        // As many hosts as paths, so that the links between switches carry what hosts send; and more than one switch.
        let per_leaf = if spines == 0 { plan.hosts } else { spines.min(plan.hosts.div_ceil(2)) };
        let leaves = plan.hosts.div_ceil(per_leaf);
        let leaf_of = |host: u32| (host - 1) / per_leaf + 1;
        let leaf =
            |leaf: u32| if spines == 0 { format!("{}-switch", plan.name) } else { format!("{}-leaf{leaf}", plan.name) };
        let spine = |spine: u32| format!("{}-spine{spine}", plan.name);
        for number in 1..=leaves {
            let mut node = Node::switch(leaf(number));
            node.ip.push(format!("address add {GATEWAY}/32 dev lo"));
            for host in plan.all().filter(|host| leaf_of(*host) == number) {
                node.attach(plan, &format!("p{host}"), plan.outer(host), &mac(0, host, 0));
                node.ip.push(format!("route add {} dev p{host}", plan.outer(host)));
            }
            let mut hops = String::new();
            for up in 1..=spines {
                node.attach(plan, &format!("s{up}"), spine_address(up), &mac(3, number, up));
                node.ip.push(format!("route add {} dev s{up}", spine_address(up)));
                hops += &format!(" nexthop via {} dev s{up} onlink", spine_address(up));
            }
            if spines > 0 {
                node.ip.insert(2, format!("address add {} dev lo", leaf_address(number)));
                node.ip.push(format!("route add {HOSTS}{hops}"));
            }
            layout.nodes.push(node);
        }
        for number in 1..=spines {
            let mut node = Node::switch(spine(number));
            node.ip.push(format!("address add {} dev lo", spine_address(number)));
            for down in 1..=leaves {
                node.attach(plan, &format!("l{down}"), leaf_address(down), &mac(2, down, number));
                for host in plan.all().filter(|host| leaf_of(*host) == down) {
                    let via = leaf_address(down);
                    node.ip.push(format!("route add {} via {via} dev l{down} onlink", plan.outer(host)));
                }
            }
            layout.nodes.push(node);
        }
        for host in plan.all() {
            layout.nodes.push(Node::host(plan, host));
            let port = End { node: leaf(leaf_of(host)), device: format!("p{host}"), mac: mac(1, host, 0) };
            let own = End { node: plan.host(host), device: "eth0".to_owned(), mac: mac(0, host, 0) };
            layout.link(plan.mtu, &port, &own);
        }
        for (down, up) in (1..=leaves).flat_map(|down| (1..=spines).map(move |up| (down, up))) {
            let lower = End { node: leaf(down), device: format!("s{up}"), mac: mac(2, down, up) };
            let upper = End { node: spine(up), device: format!("l{down}"), mac: mac(3, down, up) };
            layout.link(plan.mtu, &lower, &upper);
        }
        layout
    }

    fn link(&mut self, mtu: u16, one: &End, other: &End) {
        let end = |end: &End| format!("{} mtu {mtu} address {} netns {}", end.device, end.mac, end.node);
        self.links.push(format!("link add name {} type veth peer name {}", end(one), end(other)));
    }
}

/// One end of a link.
struct End {
    node: String,
    device: String,
    mac: String,
}

impl Node {
    fn switch(name: String) -> Self {
        Self { name, is_switch: true, ip: vec!["link set lo up".to_owned()], tc: Vec::new() }
    }

    fn host(plan: &Plan, host: u32) -> Self {
        let mut node =
            Self { name: plan.host(host), is_switch: false, ip: vec!["link set lo up".to_owned()], tc: Vec::new() };
        let address = plan.outer(host);
        node.begin("eth0");
        node.ip.extend([
            format!("address add {address}/24 dev eth0 noprefixroute"),
            format!("neighbour add {GATEWAY} lladdr {} dev eth0 nud permanent", mac(1, host, 0)),
            format!("route add {HOSTS} via {GATEWAY} dev eth0 onlink src {address}"),
        ]);
        node.tc.extend(plan.rate.map(|rate| shaped(rate, plan.mtu, "eth0", HOST_QUEUE, plan.buffer)));
        node
    }

    /// Starts a device of a switch, behind which a neighbour is.
    fn attach(&mut self, plan: &Plan, device: &str, neighbour: impl core::fmt::Display, mac: &str) {
        self.begin(device);
        self.ip.push(format!("neighbour add {neighbour} lladdr {mac} dev {device} nud permanent"));
        self.tc.extend(plan.rate.map(|rate| shaped(rate, plan.mtu, device, plan.buffer, plan.buffer)));
    }

    /// Starts a device. It gets no address of IPv6, for which the kernel would send packets of its own.
    fn begin(&mut self, device: &str) {
        self.ip.push(format!("link set {device} addrgenmode none"));
        self.ip.push(format!("link set {device} up"));
    }
}

/// Returns the command that limits the rate of a device and the queue before it, of so many packets, behind which a
/// switch has a queue of `buffer` packets.
pub(super) fn shaped(rate: Rate, mtu: u16, device: &str, packets: u32, buffer: u32) -> String {
    let rate = rate.as_bps();
    let packet = u64::from(u32::from(mtu) + ETHERNET);
    // Timers are late by about 50 us; what the bucket holds makes up for that. More than a quarter of a switch's queue
    // would pass a long packet that the queue cannot hold.
    let late = rate / 8 / 20_000;
    let burst = late.clamp(2 * packet, u64::from(buffer / 4).clamp(2, 8) * packet);
    let limit = u64::from(packets) * packet;
    format!("qdisc add dev {device} root tbf rate {rate}bit burst {burst} limit {limit}")
}

/// Returns the hardware address of a device. Kinds: 0 a host, 1 the port towards it, 2 a leaf, 3 a spine.
fn mac(kind: u8, one: u32, other: u32) -> String {
    format!("02:53:56:{kind:02x}:{one:02x}:{other:02x}")
}

fn leaf_address(leaf: u32) -> String {
    format!("10.79.1.{leaf}")
}

fn spine_address(spine: u32) -> String {
    format!("10.79.2.{spine}")
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn one_path_is_one_switch() {
        let layout = Layout::new(&plan(3, 1));
        assert_eq!(
            layout.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
            ["lab-switch", "lab-h1", "lab-h2", "lab-h3"]
        );
        assert_eq!(
            layout.links[1],
            "link add name p2 mtu 1500 address 02:53:56:01:02:00 netns lab-switch type veth peer name eth0 mtu 1500 \
             address 02:53:56:00:02:00 netns lab-h2"
        );
        let port = "qdisc add dev p2 root tbf rate 100000000bit burst 3028 limit 30280";
        assert_eq!(layout.nodes[0].tc[1], port);
        assert_eq!(layout.nodes[2].tc, [port.replace("p2", "eth0").replace("30280", "1514000")]);
        let mut fast = plan(3, 1);
        fast.rate = None;
        assert!(Layout::new(&fast).nodes.iter().all(|node| node.tc.is_empty()));
    }

    #[test]
    fn several_paths_are_leaves_and_spines() {
        let layout = Layout::new(&plan(5, 2));
        let names: Vec<&str> = layout.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names[..5], ["lab-leaf1", "lab-leaf2", "lab-leaf3", "lab-spine1", "lab-spine2"]);
        assert_eq!(layout.links.len(), 5 + 3 * 2);
        let routes = |node: usize| layout.nodes[node].ip.iter().filter(|command| command.starts_with("route"));
        assert_eq!(
            routes(0).next_back().unwrap(),
            "route add 10.79.0.0/24 nexthop via 10.79.2.1 dev s1 onlink nexthop via 10.79.2.2 dev s2 onlink"
        );
        assert_eq!(routes(3).count(), 5, "a spine knows every host");
        assert!(routes(3).any(|route| route == "route add 10.79.0.5 via 10.79.1.3 dev l3 onlink"));
        // Two hosts are still at two switches.
        assert_eq!(Layout::new(&plan(2, 4)).nodes.iter().filter(|node| node.name.contains("leaf")).count(), 2);
    }

    #[test]
    fn a_bucket_never_passes_a_long_packet_that_its_queue_cannot_hold() {
        for (mbps, buffer, burst) in [(1_000, 100, 6_250), (100_000, 100, 8 * 1_514), (100_000, 10, 2 * 1_514)] {
            let command = shaped(Rate::from_bps(mbps * 1_000_000), 1_500, "p1", buffer, buffer);
            assert!(command.contains(&format!(" burst {burst} ")), "{command}");
        }
    }
}
