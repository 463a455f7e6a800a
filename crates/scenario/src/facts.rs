//! Facts about a scenario before it is run: its network and its traffic in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use selvedge_sim::Network;
use selvedge_sim::topology::{Framing, Graph, LinkLoad, Node, PathClass, uniform_link_loads};
use selvedge_sim::workload::schedule::Action;
use selvedge_sim::workload::{Extent, FlowSpec, Generator, Workload, WorkloadSummary};
use selvedge_units::words::{in_ranges, plural};
use selvedge_units::{HostId, SwitchId};
use serde::Serialize;

use crate::listed::FlowListTotals;
use crate::plan::{Plan, PlannedSeries};

/// Facts about a network, in numbers. `Display` is for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TopologyFacts {
    /// Number of hosts.
    pub hosts: usize,
    /// Switches by tier, those with hosts first.
    pub switches_by_tier: Vec<usize>,
    /// Names of hosts, and of switches: "h0 ... h7", "leaf0 ... leaf3, spine0".
    pub names: [String; 2],
    /// Links of one kind, those of hosts first.
    pub links: Vec<LinkFacts>,
    /// The path with the longest propagation delay.
    pub longest_path: PathFacts,
    /// Base round-trip time: twice the propagation delay of the longest path, in microseconds.
    pub base_rtt_us: f64,
    /// The largest bandwidth-delay product of any path, by the slowest link on it.
    pub bdp_bytes: u64,
    /// Classes of pairs of hosts with equal paths, the shortest first: windows, round-trip times and timeouts at "auto"
    /// are derived from them.
    pub path_classes: Vec<PathClassFacts>,
    /// Rate at which all hosts below a switch can send upwards, spread evenly over the paths, divided by the rate of
    /// the links upwards from it, at the worst switch; 1 or less means no oversubscription. `None`: no link leads
    /// upwards.
    pub oversubscription: Option<f64>,
    /// Highest payload load, as a fraction of the rate of hosts' links, that hosts can offer in full packets, each to
    /// all others alike, before some link is overloaded. Headers come on top, as for the loads of workloads.
    pub highest_uniform_load: f64,
    /// First link to be overloaded above that load.
    pub bottleneck: Option<String>,
}

/// Links of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkFacts {
    /// Kinds of nodes that the links join: "hosts - tier 0".
    pub between: String,
    /// Number of links.
    pub count: usize,
    /// Rate of each direction.
    pub rate_gbps: f64,
    /// Propagation delay.
    pub delay_us: f64,
}

/// Facts about one path through the network.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathFacts {
    /// Host at which it begins.
    pub from: String,
    /// Host at which it ends.
    pub to: String,
    /// Number of links on the path.
    pub links: u32,
    /// Propagation delay, one way, in microseconds.
    pub propagation_us: f64,
}

/// Class of pairs of hosts with equal paths.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathClassFacts {
    /// Number of ordered pairs of hosts.
    pub pairs: u64,
    /// Sender of one of the pairs.
    pub from: String,
    /// Receiver of the path.
    pub to: String,
    /// Number of links on the longest path of the pair.
    pub links: u32,
    /// Rate of the sender's link.
    pub sender_gbps: f64,
    /// Rate of the slowest link of any path of the pair.
    pub bottleneck_gbps: f64,
    /// Round-trip propagation delay on the longest paths, in microseconds.
    pub rtt_us: f64,
    /// Bandwidth-delay product in bytes: the round-trip time multiplied by the rate of the slowest link.
    pub bdp_bytes: u64,
}

impl PathClassFacts {
    fn new(graph: &Graph, class: &PathClass) -> Self {
        let name = |host: HostId| graph.hosts[host.index()].name.clone();
        Self {
            pairs: class.pairs,
            from: name(class.example.0),
            to: name(class.example.1),
            links: class.links(),
            sender_gbps: class.sender.as_gbps_f64(),
            bottleneck_gbps: class.bottleneck().as_gbps_f64(),
            rtt_us: class.propagation().as_us_f64(),
            bdp_bytes: class.bottleneck().amount_in(class.propagation()).get(),
        }
    }
}

impl fmt::Display for PathClassFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, from, to, links, sender_gbps, bottleneck_gbps, rtt_us, bdp_bytes } = self;
        let links = plural(u64::from(*links), "link");
        let rate = match sender_gbps == bottleneck_gbps {
            true => format!("{sender_gbps} Gb/s"),
            false => format!("{sender_gbps} Gb/s into {bottleneck_gbps}"),
        };
        write!(
            f,
            "{}, as {from} to {to}: {links}, {rate}, RTT {rtt_us} us, BDP {bdp_bytes} bytes",
            plural(*pairs, "pair")
        )
    }
}

impl TopologyFacts {
    /// Returns the facts about `network`, for packets with this framing.
    pub fn new(network: &Network, framing: Framing) -> Self {
        let graph = network.graph();
        let longest = network.longest();
        let tiers = graph.switches.iter().map(|switch| usize::from(switch.tier) + 1).max().unwrap_or(0);
        let mut switches_by_tier = vec![0; tiers];
        graph.switches.iter().for_each(|switch| switches_by_tier[usize::from(switch.tier)] += 1);
        let worst = uniform_link_loads(graph, network.routes(), 1.0).worst();
        let goodput = framing.mtu.get() as f64 / (framing.mtu + framing.overhead).get() as f64;
        Self {
            hosts: graph.host_count() as usize,
            switches_by_tier,
            names: [
                in_ranges(graph.host_ids().map(|host| graph.hosts[host.index()].name.as_str())),
                in_ranges(graph.switches.iter().map(|switch| switch.name.as_str())),
            ],
            links: link_facts(graph),
            longest_path: PathFacts {
                from: graph.hosts[longest.src.index()].name.clone(),
                to: graph.hosts[longest.dst.index()].name.clone(),
                links: longest.links,
                propagation_us: longest.propagation.as_us_f64(),
            },
            base_rtt_us: network.base_rtt().as_us_f64(),
            bdp_bytes: network.bdp().bytes.get(),
            path_classes: path_classes(network),
            oversubscription: oversubscription(network),
            highest_uniform_load: goodput * worst.map_or(1.0, |worst| (1.0 / worst.load).min(1.0)),
            bottleneck: worst.filter(|worst| worst.load > 1.0 + 1e-9).map(|worst| direction(graph, worst)),
        }
    }
}

impl fmt::Display for TopologyFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiers: Vec<String> =
            self.switches_by_tier.iter().enumerate().map(|(tier, count)| format!("{count} in tier {tier}")).collect();
        row(f, "hosts", self.hosts)?;
        let by_tier = if tiers.is_empty() { String::new() } else { format!(" ({})", tiers.join(", ")) };
        row(f, "switches", format!("{}{by_tier}", self.switches_by_tier.iter().sum::<usize>()))?;
        let names: Vec<&str> = self.names.iter().map(String::as_str).filter(|names| !names.is_empty()).collect();
        row(f, "names", names.join("; "))?;
        for links in &self.links {
            let LinkFacts { between, count, rate_gbps, delay_us } = links;
            row(f, "links", format!("{count} {between}, {rate_gbps} Gb/s, {delay_us} us"))?;
        }
        let PathFacts { from, to, links, propagation_us } = &self.longest_path;
        row(f, "longest path", format!("{from} to {to}: {}, {propagation_us} us", plural(u64::from(*links), "link")))?;
        row(f, "base RTT", format!("{} us (propagation)", self.base_rtt_us))?;
        row(f, "BDP", format!("{} bytes", self.bdp_bytes))?;
        let shown = if self.path_classes.len() > MOST_CLASSES { &[] } else { &self.path_classes[..] };
        for class in shown {
            row(f, "paths", class)?;
        }
        if let ([], [shortest, .., longest]) = (shown, &self.path_classes[..]) {
            let PathClassFacts { rtt_us: least, .. } = shortest;
            let PathClassFacts { rtt_us: most, .. } = longest;
            row(f, "paths", format!("{} classes, RTT {least} to {most} us (all: --json)", self.path_classes.len()))?;
        }
        if let Some(factor) = self.oversubscription {
            row(f, "oversubscription", format!("{factor:.2} : 1"))?;
        }
        // Rounded down, so that it can be carried.
        let load = format!("{:.1} %", (self.highest_uniform_load * 1000.0 + ROUNDING).floor() / 10.0);
        let traffic = "payload, uniform traffic in full packets";
        match &self.bottleneck {
            Some(link) => row(f, "highest load", format!("{load} ({traffic}; the link {link} fills first)")),
            None => row(f, "highest load", format!("{load} ({traffic})")),
        }
    }
}

/// Facts about the traffic of a study's first series, in numbers. `Display` is for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadFacts {
    /// Workloads of the traffic.
    pub workloads: Vec<SourceFacts>,
    /// Flows of one run; `None` if the number is not known beforehand.
    pub flows: Option<u64>,
    /// Most loaded direction of any link, headers included: its name, and the load as a fraction of its rate. For lists
    /// of flows, loads are means like [`SourceFacts::load`].
    pub worst_link: Option<(String, f64)>,
    /// Sizes of the first flows by number, smallest to largest: the fraction of flows that are no
    /// larger, and the size in bytes.
    pub sizes: Vec<(f64, u64)>,
    /// Number of flows that `sizes` summarises.
    pub sampled: usize,
    /// The first flows.
    pub first_flows: Vec<FlowFacts>,
}

/// Facts about one workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SourceFacts {
    /// Kind of the workload, as in "poisson".
    pub kind: &'static str,
    /// Name of the workload in results: with a number or an operation where there are several, as in "poisson\[1\]",
    /// "verbs.read".
    pub name: String,
    /// Hosts that may send.
    pub senders: usize,
    /// Hosts that may receive.
    pub receivers: usize,
    /// Payload that each sender offers, as a fraction of its link's rate; for a list of flows, the mean from the first
    /// start until the last flow would be complete in an empty network.
    pub load: Option<f64>,
    /// Mean flow size.
    pub mean_size_bytes: f64,
    /// Flows that start per second, over all senders.
    pub flows_per_second: Option<f64>,
    /// Mean time during which flows keep starting, in microseconds.
    pub duration_us: Option<f64>,
}

/// Facts about one flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowFacts {
    /// Start of the flow, in microseconds.
    pub start_us: f64,
    /// Sender of the flow.
    pub src: String,
    /// Receiver of the flow.
    pub dst: String,
    /// Payload in bytes.
    pub size_bytes: u64,
}

impl WorkloadFacts {
    /// Returns the facts about the traffic of `plan`'s first series with its first seed.
    pub fn new(plan: &Plan) -> Self {
        let series = &plan.series[0];
        let graph = series.network.graph();
        let (mut workload, first) = first_flows(series, plan.seeds[0]);
        let name = |host: selvedge_units::HostId| graph.hosts[host.index()].name.clone();
        let first_flows = first.iter().take(SHOWN).map(|flow| FlowFacts {
            start_us: flow.start.as_us_f64(),
            src: name(flow.src),
            dst: name(flow.dst),
            size_bytes: flow.size.get(),
        });
        let lists = FlowListTotals::of(series, &workload);
        let stop = series.scenario.stop;
        let endless = |summary: &WorkloadSummary| summary.extent == Extent::Endless;
        let per_second: f64 =
            workload.summaries.iter().filter(|summary| endless(summary)).filter_map(|one| one.flows_per_second).sum();
        // Workloads without an end share the remaining number of flows.
        let until_last = |summary: &WorkloadSummary| {
            let flows = stop.flows.filter(|_| endless(summary) && per_second > 0.0)?;
            Some(flows as f64 / per_second * 1e6)
        };
        let duration_us = |summary: &WorkloadSummary| {
            let of_its_own = summary.duration?.saturating_sub(summary.first).as_us_f64();
            let until_end = stop.time.map(|end| end.saturating_sub(summary.first).as_us_f64());
            Some(until_last(summary).into_iter().chain(until_end).fold(of_its_own, f64::min))
        };
        let workloads = (0..).zip(std::mem::take(&mut workload.summaries)).map(|(number, summary)| SourceFacts {
            duration_us: duration_us(&summary),
            kind: summary.kind,
            name: summary.key,
            senders: summary.senders,
            receivers: summary.receivers,
            load: summary.load.or_else(|| lists.get(&number)?.load(series)),
            mean_size_bytes: summary.mean_size,
            flows_per_second: summary.flows_per_second.or_else(|| lists.get(&number)?.per_second()),
        });
        let workloads: Vec<SourceFacts> = workloads.collect();
        // The load of workloads without lists is not known.
        let is_listed = lists.len() == workloads.len();
        let worst = series.worst_link.or_else(|| FlowListTotals::worst_link(&lists, series).filter(|_| is_listed));
        let mut sizes: Vec<u64> = first.iter().map(|flow| flow.size.get()).collect();
        sizes.sort_unstable();
        let at = |level: f64| Some((level, *sizes.get(((sizes.len() as f64 * level).ceil() as usize).max(1) - 1)?));
        Self {
            workloads,
            flows: series.flows,
            worst_link: worst.map(|worst| (direction(graph, worst), worst.load)),
            sizes: LEVELS.iter().filter_map(|&level| at(level)).collect(),
            sampled: sizes.len(),
            first_flows: first_flows.collect(),
        }
    }
}

impl fmt::Display for WorkloadFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for source in &self.workloads {
            let mut text =
                format!("{} from {} to {}", source.name, plural(source.senders as u64, "host"), source.receivers);
            if let Some(load) = source.load {
                write!(text, ", load {}", percent(load))?;
            }
            write!(text, ", mean size {:.0} bytes", source.mean_size_bytes)?;
            if let Some(rate) = source.flows_per_second {
                write!(text, ", {rate:.0} flows/s")?;
            }
            if let Some(duration) = source.duration_us.filter(|&us| us > 0.0) {
                write!(text, ", for {}", span(duration))?;
            }
            row(f, "workload", text)?;
        }
        match self.flows {
            Some(flows) => row(f, "flows per run", flows)?,
            None => row(f, "flows per run", "as many as the time allows")?,
        }
        if let Some((link, load)) = &self.worst_link {
            row(f, "fullest link", format!("{link}: {} with headers", percent(*load)))?;
        }
        if !self.sizes.is_empty() {
            writeln!(f, "\nsizes of the first {}", plural(self.sampled as u64, "flow"))?;
            let largest = (self.sizes.iter().map(|&(_, size)| size).max().unwrap_or(1).max(2) as f64).ln();
            for &(level, size) in &self.sizes {
                // On a logarithmic scale: most distributions span five decades.
                let width = ((size.max(1) as f64).ln() / largest * 40.0).round() as usize;
                writeln!(f, "  {:>5.1} %  {size:>12} bytes  {}", level * 100.0, "#".repeat(width.max(1)))?;
            }
        }
        if !self.first_flows.is_empty() {
            writeln!(f, "\nfirst flows")?;
        }
        for flow in &self.first_flows {
            let FlowFacts { start_us, src, dst, size_bytes } = flow;
            writeln!(f, "  {start_us:>14.3} us  {src} -> {dst}  {size_bytes} bytes")?;
        }
        Ok(())
    }
}

/// Formats a percentage with one decimal, or as many as two digits need.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if !(f64::MIN_POSITIVE..1.0).contains(&percent) {
        return format!("{percent:.1} %");
    }
    let decimals = (1.0 - percent.log10().floor()) as usize;
    let text = format!("{percent:.decimals$}");
    // 0.5, not 0.50.
    format!("{} %", text.strip_suffix('0').unwrap_or(&text))
}

/// Formats a time in the unit that suits it.
fn span(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{:.1} ns", us * 1e3),
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// Returns the workload of one run, and the flows with which it begins.
fn first_flows(series: &PlannedSeries, seed: u64) -> (Workload, Vec<FlowSpec>) {
    let mut workload = series.workload(seed);
    let mut flows: Vec<FlowSpec> = Vec::new();
    let mut stream = workload.stream.clone();
    while flows.len() < SAMPLED
        && let Some(flow) = stream.next_flow()
    {
        flows.push(flow);
    }
    for closed in &mut workload.loops {
        let clients: Vec<_> = closed.clients().collect();
        flows.extend(clients.into_iter().flat_map(|client| closed.begin(client)));
    }
    for posting in &mut workload.postings {
        let asking: BTreeSet<_> = posting.connections().iter().map(|connection| connection.src).collect();
        flows.extend(asking.into_iter().flat_map(|host| posting.begin(host)));
    }
    for executor in &mut workload.executors {
        let mut actions = Vec::new();
        executor.hosts().for_each(|host| executor.begin(host, &mut actions));
        flows.extend(
            actions.into_iter().filter_map(|action| if let Action::Flow(flow) = action { Some(flow) } else { None }),
        );
    }
    flows.sort_by_key(|flow| (flow.start, flow.workload, flow.id));
    flows.truncate(SAMPLED);
    (workload, flows)
}

fn path_classes(network: &Network) -> Vec<PathClassFacts> {
    let mut classes: Vec<&PathClass> = network.paths().classes().all().iter().collect();
    classes.sort_by_key(|class| (class.propagation(), class.links(), class.sender, class.example));
    classes.into_iter().map(|class| PathClassFacts::new(network.graph(), class)).collect()
}

fn link_facts(graph: &Graph) -> Vec<LinkFacts> {
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    for link in &graph.links {
        let (a, b) = (graph.height(link.a), graph.height(link.b));
        *kinds.entry((a.min(b), a.max(b), link.rate, link.delay)).or_default() += 1;
    }
    let name = |height: u32| if height == 0 { "hosts".to_owned() } else { format!("tier {}", height - 1) };
    kinds
        .into_iter()
        .map(|((low, high, rate, delay), count)| LinkFacts {
            between: format!("{} - {}", name(low), name(high)),
            count,
            rate_gbps: rate.as_gbps_f64(),
            delay_us: delay.as_us_f64(),
        })
        .collect()
}

/// Returns the ratio of hosts' traffic to the capacity of the links upwards, at the switch where it is highest.
fn oversubscription(network: &Network) -> Option<f64> {
    let graph = network.graph();
    let ports = network.routes().ports();
    let rate = |link: u32| graph.links[link as usize].rate.as_gbps_f64();
    let mut upwards: Vec<SwitchId> = (0..graph.switches.len() as u32).map(SwitchId).collect();
    upwards.sort_by_key(|&switch| graph.height(Node::Switch(switch)));
    let mut offered = vec![0.0; upwards.len()];
    let mut worst: Option<f64> = None;
    for switch in upwards {
        let height = graph.height(Node::Switch(switch));
        let ports = ports.of(switch);
        let own = ports.iter().filter(|port| port.peer.switch().is_none());
        let all = offered[switch.index()] + own.map(|port| rate(port.link)).sum::<f64>();
        let above = || ports.iter().filter(|port| graph.height(port.peer) > height);
        let up: f64 = above().map(|port| rate(port.link)).sum();
        if all == 0.0 || up == 0.0 {
            continue;
        }
        for port in above() {
            if let Some(peer) = port.peer.switch() {
                offered[peer.index()] += all * rate(port.link) / up;
            }
        }
        worst = Some(worst.map_or(all / up, |worst| worst.max(all / up)));
    }
    worst
}

fn direction(graph: &Graph, load: LinkLoad) -> String {
    let link = &graph.links[load.link as usize];
    let (from, to) = if load.from_a { (link.a, link.b) } else { (link.b, link.a) };
    format!("{} -> {}", graph.name(from), graph.name(to))
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    writeln!(f, "{name:<17} {value}")
}

/// Tolerance for sums of many shares of a load.
const ROUNDING: f64 = 1e-6;
/// Number of flows that are sampled for sizes.
const SAMPLED: usize = 10_000;
/// Number of flows that are listed.
const SHOWN: usize = 10;
/// Maximum number of classes of paths that are listed.
const MOST_CLASSES: usize = 12;
const LEVELS: [f64; 9] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
