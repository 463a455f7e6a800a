//! Files of other simulators, and distributions by name, in the simulator's types.

mod files;
mod goal;
mod htsim;
mod ns3;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_formats::htsim_cm::{self, ConnectionMatrix};
use selvedge_formats::{
    Dialect, FormatError, Parsed, Warning, cdf, detect, goal as goal_file, htsim_topo, loss_trace, ns3_flow,
    ns3_topology,
};
use selvedge_sim::topology::Graph;
use selvedge_sim::workload::schedule::Schedule;
use selvedge_sim::workload::{Cdf, FlowFile, FlowList, StartUnit};
use selvedge_sim::{ConfigError, Library};
use selvedge_units::words::{nearest, one_of};
use selvedge_units::{Bytes, HostId};

use files::Files;

/// The files that scenarios name, each read once; relative paths begin at one folder.
///
/// Nodes keep the ids of their file as names. In flow lists, a node id is the host of that name, or,
/// where no host has a number for a name, the host of that number.
#[derive(Clone, Debug)]
pub struct FileLibrary {
    files: Files,
    /// Hosts, indexed by their numbers in flow lists.
    hosts: Arc<BTreeMap<u32, HostId>>,
}

impl FileLibrary {
    /// Returns a library whose relative paths begin at `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { files: Files::new(folder.into(), false), hosts: Arc::default() }
    }

    /// Returns the library of a scenario in the results folder `folder`: its relative paths are those of files that the
    /// folder keeps ([`Plan::kept_inputs`](crate::Plan::kept_inputs)), and stay relative.
    pub(crate) fn of_results(folder: &Path) -> Self {
        Self { files: Files::new(folder.to_owned(), true), hosts: Arc::default() }
    }

    /// Returns this library with flow lists between the hosts of `graph`.
    #[must_use]
    pub fn among(&self, graph: &Graph) -> Self {
        let hosts = || graph.hosts.iter().zip(graph.host_ids());
        let named: BTreeMap<u32, HostId> =
            hosts().filter_map(|(host, id)| Some((host.name.parse().ok()?, id))).collect();
        let numbered = || graph.host_ids().map(|id| (id.0, id)).collect();
        let hosts = if named.is_empty() { numbered() } else { named };
        Self { hosts: Arc::new(hosts), ..self.clone() }
    }

    /// Returns the name that the resolved scenario has for the file at `path`: its absolute path, if it exists.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.files.resolve(path)
    }

    /// Returns the warnings about the files read so far: "flow.txt:1: ...".
    pub fn warnings(&self) -> Vec<String> {
        self.files.warnings()
    }

    /// Returns the place and text where the htsim topology at `path` gives ports the smallest buffer, if it sets any:
    /// "x.topo:9:10: Queue_Up 9000".
    pub(crate) fn least_queue(&self, path: &str) -> Option<String> {
        let content = self.files.content(path).ok()?;
        if detect(&content, path) != Ok(Dialect::HtsimTopology) {
            return None;
        }
        let htsim_topo::WrittenQueue { room, place: (line, column), key } =
            htsim_topo::read(&**content, path).ok()?.value.least_queue?;
        Some(format!("{path}:{line}:{column}: {key} {}", room.get()))
    }

    /// Returns the warnings about the file at `path`, in parentheses behind a blank, or an empty text if there are
    /// none. A file that lacks lines is often wrong in other ways, too.
    fn notes_about(&self, path: &str) -> String {
        let notes = self.warnings_about(path);
        if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
    }

    /// Returns the warnings about the file at `path`.
    fn warnings_about(&self, path: &str) -> Vec<String> {
        let own = |warning: &String| warning.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'));
        self.warnings().into_iter().filter(own).collect()
    }

    /// Returns the contents that came through pipes, with their names in the resolved scenario.
    pub(crate) fn kept(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        self.files.kept()
    }

    /// Returns a hash of the content of every file read so far.
    pub(crate) fn digest(&self) -> u64 {
        let contents = self.files.contents();
        contents.iter().fold(0, |hash, (_, content)| hash.rotate_left(1) ^ crate::digest::of(content))
    }

    /// Returns the connection matrix at `path`, or `None` if the file is of another format.
    pub(crate) fn connection_matrix(&self, path: &str) -> Result<Option<ConnectionMatrix>, ConfigError> {
        let content = self.files.content(path)?;
        match detect(&content, path).map_err(said)? {
            // Warnings come when the flows of the file are read.
            Dialect::HtsimMatrix => {
                let parsed = htsim_cm::read(&**content, path, htsim_cm::StartUnit::Auto).map_err(said)?;
                Ok(Some(parsed.value))
            }
            _ => Ok(None),
        }
    }

    /// Returns the dialect of a topology or flow list.
    pub(crate) fn dialect(&self, path: &str) -> Result<Dialect, ConfigError> {
        detect(&self.files.content(path)?, path).map_err(said)
    }

    /// Returns the value, after keeping its warnings.
    fn noted<T>(&self, path: &str, parsed: Parsed<T>) -> T {
        self.note(path, parsed.warnings);
        parsed.value
    }

    fn note(&self, path: &str, warnings: impl IntoIterator<Item = Warning>) {
        self.files.note(path, warnings);
    }

    /// Returns the numbers that identify the flows in these lines: those of the file, if it gives each flow its own.
    fn numbers(&self, path: &str, written: impl Iterator<Item = (u64, Option<u64>)>) -> Vec<u64> {
        let written: Vec<(u64, Option<u64>)> = written.collect();
        let numbers: Vec<u64> = (0..).zip(&written).map(|(place, (_, id))| id.unwrap_or(place)).collect();
        let mut sorted: Vec<(u64, u64, bool)> =
            numbers.iter().zip(&written).map(|(&number, &(line, id))| (number, line, id.is_some())).collect();
        sorted.sort_unstable();
        // Messages of one connection have its number in htsim.
        let alike = || sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let Some(first) = alike().find(|pair| pair[0].2 && pair[1].2).or_else(|| alike().next()) else {
            return numbers;
        };
        let [(id, earlier, has_one), (_, line, has_one_too)] = [first[0], first[1]];
        let (line, why) = match (has_one, has_one_too) {
            (true, true) => (line, format!("flow id {id} is that of line {earlier}, too")),
            (true, false) => (line, "this flow has no id, and others have".to_owned()),
            (false, _) => (earlier, "this flow has no id, and others have".to_owned()),
        };
        let message = format!("{why}: flows are numbered as if none had an id, from 0");
        self.note(path, [Warning { line, message }]);
        (0..numbers.len() as u64).collect()
    }

    /// Returns the UDP destination ports that a list of flows gives, by the flows' ids.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn ports(&self, list: &FlowFile) -> Result<BTreeMap<u64, u16>, ConfigError> {
        let path = &list.path;
        let content = self.files.content(path)?;
        let dialect = detect(&content, path).map_err(said)?;
        // Connections of htsim have none.
        if dialect == Dialect::HtsimMatrix || !dialect.is_flow_list() {
            return Ok(BTreeMap::new());
        }
        let parsed = ns3_flow::read(&**content, path, ns3_flow::Options::default()).map_err(said)?;
        Ok(self.ns3_ports(path, parsed.value))
    }

    /// Returns the place of `word` in this line: file, line and column.
    pub(crate) fn place(&self, path: &str, line: u64, word: &str) -> String {
        self.files.place(path, line, word)
    }

    fn host(&self, path: &str, line: u64, node: u32) -> Result<HostId, ConfigError> {
        self.hosts.get(&node).copied().ok_or_else(|| {
            let (first, last) = (self.hosts.keys().next(), self.hosts.keys().next_back());
            let known = match first.zip(last) {
                Some((first, last)) if (*first..=*last).contains(&node) => {
                    "in the topology it is a switch, or has no link".to_owned()
                }
                Some((first, last)) => format!("the topology's hosts have numbers from {first} to {last}"),
                None => "the topology has no hosts".to_owned(),
            };
            let place = self.files.place(path, line, &node.to_string());
            ConfigError::new("", format!("{place}: node {node} is not a host: {known}"))
        })
    }
}

impl Library for FileLibrary {
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        let points = match reference.split_once(':') {
            Some(("cdf", name)) => cdf::known(name).ok_or_else(|| unknown_distribution(name))?,
            Some(("file", path)) => {
                let content = self.files.content(path)?;
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

    fn flows(&self, path: &str, start_unit: StartUnit) -> Result<FlowList, ConfigError> {
        let content = self.files.content(path)?;
        match detect(&content, path).map_err(said)? {
            Dialect::HtsimMatrix => {
                let parsed = htsim_cm::read(&**content, path, htsim::unit(start_unit)).map_err(said)?;
                self.htsim_flows(path, &self.noted(path, parsed))
            }
            dialect if dialect.is_flow_list() && start_unit != StartUnit::Auto => {
                let message = format!("{path} is a {dialect}, whose starts are seconds: leave this out");
                Err(ConfigError::new("start-unit", message))
            }
            dialect if dialect.is_flow_list() => {
                let parsed = ns3_flow::read(&**content, path, ns3_flow::Options::default()).map_err(said)?;
                self.ns3_flows(path, self.noted(path, parsed))
            }
            other if other.is_schedule() => {
                let message = format!("{path} is a {other}, not a list of flows: name it in [workload.goal]");
                Err(ConfigError::new("", message))
            }
            other => Err(ConfigError::new("", format!("{path} is a {other}; expected a list of flows"))),
        }
    }

    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        let content = self.files.content(path)?;
        loss_trace::read(&**content, path).map_err(said)
    }

    fn schedule(&self, path: &str) -> Result<Schedule, ConfigError> {
        let content = self.files.content(path)?;
        match detect(&content, path).map_err(said)? {
            dialect if dialect.is_schedule() => {
                let parsed = goal_file::read(&content, path).map_err(said)?;
                Ok(goal::schedule(&self.noted(path, parsed)))
            }
            other => Err(ConfigError::new("", format!("{path} is a {other}; expected a GOAL schedule"))),
        }
    }

    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        let content = self.files.content(path)?;
        match detect(&content, path).map_err(said)? {
            Dialect::HtsimTopology => {
                let parsed = htsim_topo::read(&**content, path).map_err(said)?;
                Ok(self.htsim_graph(path, &self.noted(path, parsed)))
            }
            dialect if dialect.is_topology() => {
                let parsed = ns3_topology::read(&**content, path).map_err(said)?;
                self.ns3_graph(path, &self.noted(path, parsed))
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
