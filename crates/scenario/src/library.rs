//! Files of other simulators, and distributions by name, as the simulator wants them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use selvedge_formats::htsim_cm::{self, ConnectionMatrix};
use selvedge_formats::htsim_topo::{self, FatTreeFile};
use selvedge_formats::ns3_flow::{self, FlowList as Ns3Flows};
use selvedge_formats::ns3_topology::{self, SwitchKind, Topology as Ns3Topology};
use selvedge_formats::{Dialect, FormatError, Parsed, Warning, cdf, detect};
use selvedge_sim::topology::{Graph, Link, LinkConfig, Node};
use selvedge_sim::workload::{Cdf, FlowList, ListedFlow, Start, TriggerKind};
use selvedge_sim::{ConfigError, Library};
use selvedge_units::{Bytes, Duration, HostId, SwitchId};

use crate::suggest::{nearest, one_of};

/// The files that scenarios name, each read once; relative paths begin at one folder.
///
/// Nodes keep the ids of their file as names. In flow lists, a node id is the host of that name, or,
/// where no host has a number for a name, the host of that number.
#[derive(Clone, Debug)]
pub struct FileLibrary {
    folder: PathBuf,
    /// Hosts by the number that flow lists call them.
    hosts: Arc<BTreeMap<u32, HostId>>,
    shared: Arc<Mutex<Shared>>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Shared {
    files: BTreeMap<PathBuf, Arc<Vec<u8>>>,
    /// What is questionable in a file, by its name; each once.
    warnings: Vec<String>,
}

impl FileLibrary {
    /// A library whose relative paths begin at `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), hosts: Arc::default(), shared: Arc::default() }
    }

    /// The same library, with flow lists between the hosts of `graph`.
    #[must_use]
    pub fn among(&self, graph: &Graph) -> Self {
        let ids = || (0..).map(HostId);
        let named: BTreeMap<u32, HostId> =
            graph.hosts.iter().zip(ids()).filter_map(|(host, id)| Some((host.name.parse().ok()?, id))).collect();
        let numbered = || (0..graph.hosts.len() as u32).zip(ids()).collect();
        let hosts = if named.is_empty() { numbered() } else { named };
        Self { hosts: Arc::new(hosts), ..self.clone() }
    }

    /// The file at `path`, which the folder completes; absolute if it exists.
    pub fn resolve(&self, path: &str) -> PathBuf {
        let joined = self.folder.join(path);
        fs::canonicalize(&joined).unwrap_or(joined)
    }

    /// What was questionable in the files read so far: "flow.txt:1: ...".
    pub fn warnings(&self) -> Vec<String> {
        self.shared().warnings.clone()
    }

    /// A hash of the content of every file read so far.
    pub(crate) fn digest(&self) -> u64 {
        self.shared().files.values().fold(0, |hash, content| hash.rotate_left(1) ^ crate::digest::of(content))
    }

    /// The connection matrix at `path`, if that is what it is.
    pub(crate) fn connection_matrix(&self, path: &str) -> Result<Option<ConnectionMatrix>, ConfigError> {
        let content = self.content(path)?;
        match detect(&content, path).map_err(said)? {
            Dialect::HtsimMatrix => self.matrix(path, &content).map(Some),
            _ => Ok(None),
        }
    }

    /// What a topology or flow list is written in.
    pub(crate) fn dialect(&self, path: &str) -> Result<Dialect, ConfigError> {
        detect(&self.content(path)?, path).map_err(said)
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self, path: &str) -> Result<Arc<Vec<u8>>, ConfigError> {
        let file = self.folder.join(path);
        let mut shared = self.shared();
        if let Some(content) = shared.files.get(&file) {
            return Ok(Arc::clone(content));
        }
        let content = fs::read(&file).map_err(|error| {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
            let place = folder.map(|folder| format!("; there is no folder {}", folder.display())).unwrap_or_default();
            ConfigError::new("", format!("cannot read {}: {error}{place}", file.display()))
        })?;
        let content = Arc::new(content);
        shared.files.insert(file, Arc::clone(&content));
        Ok(content)
    }

    fn matrix(&self, path: &str, content: &[u8]) -> Result<ConnectionMatrix, ConfigError> {
        htsim_cm::read(content, path, htsim_cm::StartUnit::Auto).map(|parsed| self.noted(path, parsed)).map_err(said)
    }

    /// The value, its warnings kept.
    fn noted<T>(&self, path: &str, parsed: Parsed<T>) -> T {
        self.note(path, parsed.warnings);
        parsed.value
    }

    fn note(&self, path: &str, warnings: impl IntoIterator<Item = Warning>) {
        let mut shared = self.shared();
        for Warning { line, message } in warnings {
            let text = format!("{path}:{line}: {message}");
            if !shared.warnings.contains(&text) {
                shared.warnings.push(text);
            }
        }
    }

    fn host(&self, path: &str, line: u64, node: u32) -> Result<HostId, ConfigError> {
        self.hosts.get(&node).copied().ok_or_else(|| {
            let (first, last) = (self.hosts.keys().next(), self.hosts.keys().next_back());
            let known = match first.zip(last) {
                Some((first, last)) => format!("the topology's hosts have numbers from {first} to {last}"),
                None => "the topology has no hosts".to_owned(),
            };
            ConfigError::new("", format!("{path}:{line}: node {node} is not a host: {known}"))
        })
    }

    fn ns3_flows(&self, path: &str, mut list: Ns3Flows) -> Result<FlowList, ConfigError> {
        self.note(path, list.settle_surplus(|id| self.hosts.contains_key(&id)));
        let flows = (0..).zip(&list.flows).map(|(position, flow)| {
            Ok(ListedFlow {
                id: flow.id.unwrap_or(position),
                src: self.host(path, flow.line, flow.src)?,
                dst: self.host(path, flow.line, flow.dst)?,
                size: flow.size,
                start: Start::At(flow.start),
                on_sent: None,
                on_received: None,
            })
        });
        Ok(FlowList { flows: flows.collect::<Result<_, ConfigError>>()?, triggers: Vec::new() })
    }

    fn htsim_flows(&self, path: &str, matrix: &ConnectionMatrix) -> Result<FlowList, ConfigError> {
        let index: BTreeMap<u32, u32> = matrix.triggers.keys().copied().zip(0..).collect();
        let trigger = |id: &u32| index.get(id).copied();
        let flows = (0..).zip(&matrix.flows).map(|(position, flow)| {
            Ok(ListedFlow {
                id: flow.id.map_or(position, u64::from),
                src: self.host(path, flow.line, flow.src)?,
                dst: self.host(path, flow.line, flow.dst)?,
                size: flow.size,
                start: match flow.start {
                    htsim_cm::Start::At(start) => Start::At(start),
                    htsim_cm::Start::Trigger(id) => Start::Triggered(index[&id]),
                },
                on_sent: flow.on_sent.as_ref().and_then(trigger),
                on_received: flow.on_received.as_ref().and_then(trigger),
            })
        });
        let kind = |trigger: &htsim_cm::Trigger| match trigger.kind {
            htsim_cm::TriggerKind::OneShot => TriggerKind::OneShot,
            htsim_cm::TriggerKind::MultiShot => TriggerKind::MultiShot,
            htsim_cm::TriggerKind::Barrier(count) => TriggerKind::Barrier(count),
        };
        Ok(FlowList {
            flows: flows.collect::<Result<_, ConfigError>>()?,
            triggers: matrix.triggers.values().map(kind).collect(),
        })
    }

    fn ns3_graph(&self, path: &str, file: &Ns3Topology) -> Graph {
        let is_nv = |id: &u32| file.switches.get(id) == Some(&SwitchKind::NvSwitch);
        let links = || file.links.iter().filter(|link| !is_nv(&link.a) && !is_nv(&link.b));
        if file.links.len() > links().count() {
            let message = "NVSwitches and their links are left out: hosts of one server talk through the network";
            self.note(path, [Warning { line: 1, message: message.to_owned() }]);
        }
        let linked: std::collections::BTreeSet<u32> = links().flat_map(|link| [link.a, link.b]).collect();
        let mut graph = Graph::default();
        let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
        for id in file.hosts().filter(|id| linked.contains(id)) {
            nodes.insert(id, graph.add_host(id.to_string(), 0).into());
        }
        for &id in file.switches.keys().filter(|id| linked.contains(id)) {
            nodes.insert(id, graph.add_switch(id.to_string(), 0, 0).into());
        }
        let unlinked = file.hosts().filter(|id| !linked.contains(id)).count();
        if unlinked > 0 {
            let message = format!("{unlinked} hosts of the header have no link and are left out");
            self.note(path, [Warning { line: 1, message }]);
        }
        graph.links = links()
            .map(|link| Link {
                a: nodes[&link.a],
                b: nodes[&link.b],
                rate: link.rate,
                delay: link.delay,
                loss: link.loss,
            })
            .collect();
        graph.place_switches();
        graph
    }

    fn htsim_graph(&self, path: &str, file: &FatTreeFile) -> Graph {
        if file.tiers.iter().any(|tier| tier.queue_up.is_some() || tier.queue_down.is_some()) {
            let message = "Queue_Up and Queue_Down are not used: buffers are set by switch.buffer";
            self.note(path, [Warning { line: 1, message: message.to_owned() }]);
        }
        let mut graph = Graph::default();
        for host in 0..file.hosts {
            graph.add_host(htsim_topo::Node::Host(host).to_string(), 0);
        }
        // Switches tier by tier; `first` is the number of a tier's first.
        let (tors, aggs) = (file.tors(), file.aggs());
        let all = (0..tors)
            .map(htsim_topo::Node::Tor)
            .chain((0..aggs).map(htsim_topo::Node::Agg))
            .chain((0..file.cores).map(htsim_topo::Node::Core));
        for node in all {
            graph.add_switch(node.to_string(), 0, 0);
        }
        let place = |node| match node {
            htsim_topo::Node::Host(n) => Node::Host(HostId(n)),
            htsim_topo::Node::Tor(n) => Node::Switch(SwitchId(n)),
            htsim_topo::Node::Agg(n) => Node::Switch(SwitchId(tors + n)),
            htsim_topo::Node::Core(n) => Node::Switch(SwitchId(tors + aggs + n)),
        };
        // Half of a switch's delay on the link that enters it, half on the one that leaves it.
        let switch_delay = |node| match node {
            htsim_topo::Node::Host(_) => Duration::ZERO,
            htsim_topo::Node::Tor(_) => file.tiers[0].switch_delay,
            htsim_topo::Node::Agg(_) => file.tiers[1].switch_delay,
            htsim_topo::Node::Core(_) => file.tiers[2].switch_delay,
        };
        for link in file.links() {
            let through = (switch_delay(link.lower) + switch_delay(link.upper)) / 2;
            let config = LinkConfig { rate: link.rate, delay: link.delay + through };
            graph.connect(place(link.lower), place(link.upper), config);
        }
        graph.place_switches();
        graph
    }
}

impl Library for FileLibrary {
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        let points = match reference.split_once(':') {
            Some(("cdf", name)) => cdf::known(name).ok_or_else(|| unknown_distribution(name))?,
            Some(("file", path)) => {
                let content = self.content(path)?;
                let parsed = cdf::read(&**content, path, cdf::SizeUnit::Auto).map_err(said)?;
                self.noted(path, parsed)
            }
            _ => {
                let message = format!("\"{reference}\" is neither \"cdf:<name>\" nor \"file:<path>\"");
                return Err(ConfigError::new("", message));
            }
        };
        let fraction = |share: u64| share as f64 / 18_446_744_073_709_551_616.0;
        let points: Vec<(Bytes, f64)> = points.points.iter().map(|&(size, share)| (size, fraction(share))).collect();
        Cdf::new(&points)
    }

    fn flows(&self, path: &str) -> Result<FlowList, ConfigError> {
        let content = self.content(path)?;
        match detect(&content, path).map_err(said)? {
            Dialect::HtsimMatrix => self.htsim_flows(path, &self.matrix(path, &content)?),
            dialect if dialect.is_flow_list() => {
                let parsed = ns3_flow::read(&**content, path, ns3_flow::Options::default()).map_err(said)?;
                self.ns3_flows(path, self.noted(path, parsed))
            }
            other => Err(ConfigError::new("", format!("{path} is a {other}; expected a list of flows"))),
        }
    }

    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        let content = self.content(path)?;
        let mut drops = Vec::new();
        for (line, text) in (1..).zip(String::from_utf8_lossy(&content).lines()) {
            for word in text.split('#').next().unwrap_or_default().split_whitespace() {
                let number = word.parse().map_err(|_| {
                    let message = format!("{path}:{line}: found \"{word}\", expected the number of a packet, from 0");
                    ConfigError::new("", message)
                })?;
                drops.push(number);
            }
        }
        Ok(drops)
    }

    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        let content = self.content(path)?;
        match detect(&content, path).map_err(said)? {
            Dialect::HtsimTopology => {
                let parsed = htsim_topo::read(&**content, path).map_err(said)?;
                Ok(self.htsim_graph(path, &self.noted(path, parsed)))
            }
            dialect if dialect.is_topology() => {
                let parsed = ns3_topology::read(&**content, path).map_err(said)?;
                Ok(self.ns3_graph(path, &self.noted(path, parsed)))
            }
            other => Err(ConfigError::new("", format!("{path} is a {other}; expected a topology"))),
        }
    }
}

fn said(error: FormatError) -> ConfigError {
    ConfigError::new("", error.to_string())
}

fn unknown_distribution(name: &str) -> ConfigError {
    let hint = match nearest(name, cdf::NAMES.iter().copied()) {
        Some(meant) => format!("did you mean \"cdf:{meant}\"?"),
        None => format!("known are {}; a file is written as \"file:<path>\"", one_of(cdf::NAMES)),
    };
    ConfigError::new("", format!("there is no distribution \"{name}\"; {hint}"))
}
