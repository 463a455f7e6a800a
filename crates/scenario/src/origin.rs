//! Sources of plans other than scenario files: the built-in study, and other simulators' files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use selvedge_document::Document;
use selvedge_formats::htsim_cm::{ConnectionMatrix, SwitchTier};
use selvedge_formats::{Dialect, cdf, detect, goal};
use selvedge_sim::Library;
use selvedge_sim::Network;
use selvedge_sim::fault::{LinkFailure, LinkSelector};
use selvedge_sim::topology::{Framing, Graph, Topology, TopologyFile};
use selvedge_sim::workload::{FlowFile, GoalFile, WorkloadConfig};
use selvedge_units::Duration;

use crate::error::{Place, ScenarioError, utf8};
use crate::library::FileLibrary;
use crate::plan::{Changes, Plan, network_of_document};
use crate::scenario::Scenario;
use crate::series::Series;

/// The text of the study that runs when no scenario is given: the default case of the IRN paper.
pub const BUILT_IN: &str = include_str!("../built-in.toml");

/// Returns the built-in study. Its text is marked as unseen.
pub(crate) fn built_in() -> Result<(Document, FileLibrary), ScenarioError> {
    Ok((Document::parse("the built-in study", BUILT_IN)?.unseen(), FileLibrary::new("")))
}

/// Returns the error for a file of another simulator that is given as a scenario, with the option to use instead.
/// `None` if the file is none of these.
pub(crate) fn of_other_simulator(name: &str, content: &[u8]) -> Option<ScenarioError> {
    let is_distribution = || cdf::read(content, name, cdf::SizeUnit::Auto).is_ok();
    if let Some(error) = goal::unfinished(content, name) {
        return Some(ScenarioError::new(Place::File(name.to_owned()), "", error.message));
    }
    let message = match detect(content, name) {
        Ok(dialect) if dialect.is_topology() => {
            format!(
                "this is {}, not a scenario: give it as --topology {name}, and the traffic as --flows FILE",
                with_article(dialect)
            )
        }
        Ok(dialect) => {
            format!(
                "this is {}, not a scenario: give it as --flows {name}, and the network as --topology FILE",
                with_article(dialect)
            )
        }
        Err(_) if is_distribution() => {
            format!(
                "this is a distribution of flow sizes, not a scenario: name it in one, as in sizes = \"file:{name}\""
            )
        }
        Err(_) => return None,
    };
    Some(ScenarioError::new(Place::File(name.to_owned()), "", message))
}

fn with_article(dialect: Dialect) -> String {
    let name = dialect.to_string();
    // "ns-3" is spelt, "htsim" is not.
    let article = if name.starts_with("ns-3") { "an" } else { "a" };
    format!("{article} {name}")
}

impl Plan {
    /// Returns the plan of the built-in study.
    ///
    /// # Errors
    /// Returns an error if `changes` are invalid.
    pub fn built_in(changes: &Changes) -> Result<Self, ScenarioError> {
        let (document, library) = built_in()?;
        let mut plan = Self::from_document(document, library, changes)?;
        plan.ends_as_built_in = changes.sets.iter().all(|set| !set.trim_start().starts_with("stop"));
        Ok(plan)
    }

    /// Returns the plan of a topology and a flow list (or GOAL schedule) of another simulator: IRN and RoCE, both with
    /// DCQCN, each with and without PFC, unless `changes` chooses series. Failed links of a connection matrix have
    /// failed from the beginning.
    ///
    /// # Errors
    /// Returns an error if the files or `changes` are invalid.
    pub fn from_files(topology: &Path, flows: &Path, changes: &Changes) -> Result<Self, ScenarioError> {
        let name = format!("--topology {} --flows {}", topology.display(), flows.display());
        let library = FileLibrary::new("");
        let topology = utf8("--topology", topology)?.to_owned();
        let flows = utf8("--flows", flows)?.to_owned();
        let wrong = |file: &str, message: String| {
            ScenarioError::new(Place::Argument(name.clone()), "", swapped(&library, file, &topology, &flows, message))
        };
        let graph = library.topology(&topology).map_err(|error| wrong(&topology, error.message))?;
        let matrix = library.connection_matrix(&flows).map_err(|error| wrong(&flows, error.message))?;
        let failures = match matrix {
            Some(matrix) => failures(&matrix, &graph, |line, word| library.place(&flows, line, word))
                .map_err(|message| wrong(&flows, message))?,
            None => Vec::new(),
        };
        let is_schedule = library.dialect(&flows).is_ok_and(Dialect::is_schedule);
        let traffic = if is_schedule {
            WorkloadConfig { goal: GoalFile::new(flows.clone()).into(), ..WorkloadConfig::default() }
        } else {
            WorkloadConfig { flows: FlowFile::new(flows.clone()).into(), ..WorkloadConfig::default() }
        };
        let stem =
            |path: &str| Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into());
        let scenario = Scenario {
            failures,
            series: Some(DEFAULT_SERIES.iter().map(|preset| Series::of_preset(preset)).collect()),
            ..Scenario::new(
                format!("{} on {}", stem(&flows), stem(&topology)),
                Topology::File(TopologyFile { path: topology.clone() }),
                traffic,
            )
        };
        let text = toml::to_string(&scenario).expect("a scenario can be written");
        Self::from_document(Document::parse(&name, &text)?.unseen(), library, changes)
    }
}

/// Returns the network in a file of another simulator, the framing of packets on it (of the series that `changes`
/// chooses, or else of irn), and warnings about the file.
///
/// # Errors
/// Returns an error if the file or `changes` are invalid.
pub fn network_from_file(
    path: &Path,
    changes: &Changes,
) -> Result<(Arc<Network>, Framing, Vec<String>), ScenarioError> {
    let library = FileLibrary::new("");
    let path = utf8("--topology", path)?.to_owned();
    let name = format!("--topology {path}");
    let wrong = |message: String| ScenarioError::argument(name.clone(), message);
    let topology = Topology::File(TopologyFile { path });
    topology.build(&library).map_err(|error| wrong(error.message))?;
    // The scenario is never run.
    let scenario = Scenario::new(name.clone(), topology, WorkloadConfig::default());
    let text = toml::to_string(&scenario).expect("a scenario can be written");
    let (network, framing, library) = network_of_document(Document::parse(&name, &text)?.unseen(), library, changes)?;
    Ok((network, framing, library.warnings()))
}

/// Returns the failed links of a connection matrix.
///
/// htsim names links of aggregation switches only: link `l` of switch `s` leads to the core `(s mod a) * a + l`, with
/// `a` aggregation switches per pod. (htsim wires the switch to the cores `s mod a`, `s mod a + a`, and so on, and
/// stops with an error where a failure names another core.)
fn failures(
    matrix: &ConnectionMatrix,
    graph: &Graph,
    place: impl Fn(u64, &str) -> String,
) -> Result<Vec<LinkFailure>, String> {
    let cores = graph.switches.iter().filter(|switch| switch.name.starts_with("core")).count();
    // Each ToR has links to all aggregation switches of its pod, perhaps several.
    let above = graph.links.iter().filter(|link| graph.name(link.a) == "tor0").map(|link| link.b);
    let per_pod = above.collect::<BTreeSet<_>>().len().max(1) as u32;
    matrix
        .failures
        .iter()
        .map(|failure| {
            let wrong = |word: &str, message: String| Err(format!("{}: {message}", place(failure.line, word)));
            let tier = match failure.tier {
                SwitchTier::Agg => None,
                SwitchTier::Tor => Some("TOR"),
                SwitchTier::Core => Some("CORE"),
            };
            if let Some(tier) = tier {
                let remedy = "those of others stand in a scenario, under [[failures]]";
                return wrong(tier, format!("found {tier}, but htsim fails links from AGG to core alone; {remedy}"));
            }
            if cores == 0 {
                return wrong("failure", "failed links need an htsim topology of three tiers".into());
            }
            let switches = graph.switches.iter().filter(|switch| switch.name.starts_with("agg")).count();
            if failure.switch as usize >= switches {
                let message = format!("there is no AGG switch {}: they are 0 to {}", failure.switch, switches - 1);
                return wrong(&failure.switch.to_string(), message);
            }
            let first = failure.switch % per_pod * per_pod;
            let link = |core: u32| LinkSelector::Between(format!("agg{}", failure.switch), format!("core{core}"));
            let core = first.saturating_add(failure.link);
            let link = match link(core).links(graph).as_deref() {
                Ok([_]) => link(core),
                // htsim fails the first link of a bundle alone.
                Ok([in_bundle, ..]) => LinkSelector::Index(*in_bundle),
                _ => {
                    let known = (first..cores as u32).filter(|&core| link(core).links(graph).is_ok());
                    let known: Vec<String> =
                        known.take(8).map(|core| format!("{} (to core{core})", core - first)).collect();
                    let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
                    let message = format!(
                        "htsim takes link {} of AGG switch {} for one to core{core}, which does not exist; links of \
                         this switch that can fail: {known}",
                        failure.link, failure.switch
                    );
                    return wrong("link_id", message);
                }
            };
            Ok(LinkFailure { link, at: Duration::ZERO, until: None })
        })
        .collect()
}

/// Returns `message`, or a hint that the two files were given in the wrong order.
fn swapped(library: &FileLibrary, file: &str, topology: &str, flows: &str, message: String) -> String {
    let is = |path: &str, what: fn(Dialect) -> bool| library.dialect(path).is_ok_and(what);
    let is_traffic = |dialect: Dialect| dialect.is_flow_list() || dialect.is_schedule();
    if is(topology, is_traffic) && is(flows, Dialect::is_topology) {
        return format!("{file} is not what --topology or --flows says: the two are swapped");
    }
    message
}

/// Default series: IRN and RoCE, each with and without PFC, with the congestion control of most RoCE NICs.
const DEFAULT_SERIES: [&str; 4] = ["irn+dcqcn", "irn+dcqcn+pfc", "roce+dcqcn+pfc", "roce+dcqcn"];
