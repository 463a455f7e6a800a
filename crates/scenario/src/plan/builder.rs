//! Construction of series from the variants of a draft, with every "auto" resolved and everything checked.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use selvedge_document::KeyPath;
use selvedge_sim::config::{BufferConfig, TransportConfig};
use selvedge_sim::fault::{LossPlan, link_events};
use selvedge_sim::topology::{Framing, LinkLoad, Topology};
use selvedge_sim::workload::{BuildEnv, Extent, Measure, WorkloadConfig, WorkloadSummary};
use selvedge_sim::{ConfigError, Network, Transports, sampling_interval};
use selvedge_units::{Duration, Setting};

use super::paths::absolute_paths;
use super::{Plan, PlannedSeries, World};
use crate::check::{Finding, check, check_nic, check_samples, check_traffic, span_of_starts};
use crate::device;
use crate::draft::{Draft, Variant};
use crate::error::{Place, ScenarioError};
use crate::library::FileLibrary;
use crate::ranges::in_common;
use crate::scenario::{Scenario, Seeds};

/// Converter of the variants of a draft into series.
pub(super) struct Builder<'a> {
    draft: &'a Draft,
    pub(super) library: FileLibrary,
    /// Variants of the draft, all of them.
    variants: Vec<Variant>,
    /// Networks with the topologies they were built from: most series share one.
    networks: Vec<(Topology, Arc<Network>)>,
    /// Traffic of the latest series, which the next often shares: the loads of large networks take long to compute.
    traffic: Option<(BuiltFrom, Traffic)>,
}

/// Parameters that determine traffic within one study.
type BuiltFrom = (Topology, WorkloadConfig, Framing, Measure, Option<u64>);

/// Workloads of a series, in numbers.
#[derive(Clone, Debug)]
struct Traffic {
    summaries: Vec<WorkloadSummary>,
    worst_link: Option<LinkLoad>,
    extent: Extent,
}

impl<'a> Builder<'a> {
    pub(super) fn new(draft: &'a Draft, library: FileLibrary) -> Self {
        Self { draft, library, variants: Vec::new(), networks: Vec::new(), traffic: None }
    }

    pub(super) fn plan(&mut self, variants: Vec<Variant>, controls: bool) -> Result<Plan, ScenarioError> {
        let seeds = checked_seeds(self.draft)?;
        let mut warnings = Vec::new();
        let mut series = Vec::new();
        self.variants.clone_from(&variants);
        for variant in &variants {
            series.push(self.series(variant.clone(), &seeds, &mut warnings)?);
        }
        self.control(&mut series, &variants, &seeds, controls);
        let library = self.library.clone();
        warnings.extend(library.warnings());
        keep_each_once(&mut warnings);
        let Scenario { title, description, .. } = self.draft.written().clone();
        let (swept, grid) = (self.draft.swept(), self.draft.grid().cloned());
        Ok(Plan { title, description, seeds, series, warnings, ends_as_built_in: false, swept, grid, library })
    }

    pub(super) fn series(
        &mut self,
        variant: Variant,
        seeds: &[u64],
        warnings: &mut Vec<String>,
    ) -> Result<PlannedSeries, ScenarioError> {
        let draft = self.draft;
        let network = self.network(&variant)?;
        let library = self.library.among(network.graph());
        let refuse = |finding: Finding| {
            let finding = in_words_of_file(finding, &variant.scenario, &library);
            draft.error(&variant, &finding.key, finding.message)
        };
        check_nic(&variant.scenario).map_err(refuse)?;
        // Properties of flows depend on resolved keys, and timeouts on the priorities of flows.
        let resolved = Resolved::of(&variant, &network, &[]).map_err(refuse)?;
        let Traffic { summaries, worst_link, extent } = self.traffic(&variant, &resolved, &network, seeds, &library)?;
        let asks = summaries.iter().any(|summary| !summary.priorities.is_empty());
        let resolved = if asks { Resolved::of(&variant, &network, &summaries).map_err(refuse)? } else { resolved };
        let Resolved { mut scenario, transport, transports, findings } = resolved;
        if let Some(beside) = &scenario.beside {
            beside.which(&summaries).map_err(|error| self.error(&variant, "beside", error))?;
        }
        let of_traffic = check_traffic(&scenario, &network, &summaries).map_err(refuse)?;
        let of_devices = device::findings(&variant.devices, &variant.scenario, &network);
        let findings = of_devices.into_iter().chain(findings).chain(of_traffic);
        warnings.extend(findings.map(|finding| refuse(finding).to_string()));
        let of_pfc = draft.overruled(&variant).or_else(|| draft.mislabelled(&variant));
        warnings.extend(of_pfc.map(|warning| warning.to_string()));
        let extent = extent.limited(scenario.stop.flows);
        scenario.stop.check(extent).map_err(|error| draft.error(&variant, &error.key, error.message))?;
        let span = span_of_starts(&scenario, &summaries).map_err(refuse)?;
        scenario.sample = sampling_interval(scenario.sample, &network, span).into();
        check_samples(&scenario, network.graph(), span).map_err(|message| draft.error(&variant, "sample", message))?;
        absolute_paths(&mut scenario, &library).map_err(|error| draft.error(&variant, &error.key, error.message))?;
        Ok(PlannedSeries {
            name: match &variant.case {
                Some(case) => format!("{case}: {}", variant.name),
                None => variant.name.clone(),
            },
            series: variant.name,
            case: variant.case,
            scenario,
            transport,
            transports: transports.hosts,
            path_transports: transports.paths,
            workloads: summaries,
            worst_link,
            flows: extent.known(),
            is_endless: extent == Extent::Endless,
            world: World::Simulated,
            control: None,
            is_added: false,
            library,
            network,
        })
    }

    /// Returns the traffic on the network, after checking it together with losses and failures.
    fn traffic(
        &mut self,
        variant: &Variant,
        resolved: &Resolved,
        network: &Network,
        seeds: &[u64],
        library: &FileLibrary,
    ) -> Result<Traffic, ScenarioError> {
        let (scenario, graph) = (&resolved.scenario, network.graph());
        LossPlan::new(graph, &scenario.loss, seeds[0], library).map_err(|error| self.error(variant, "loss", error))?;
        link_events(graph, &scenario.failures).map_err(|error| self.error(variant, "failures", error))?;
        let env = BuildEnv {
            graph,
            routes: network.routes(),
            seed: seeds[0],
            library,
            framing: scenario.nic.framing(&scenario.transport),
            measure: scenario.measure,
            stop_flows: scenario.stop.flows,
        };
        let Scenario { topology, workload, .. } = scenario;
        let from = (topology.clone(), workload.clone(), env.framing, env.measure, env.stop_flows);
        if let Some((known, traffic)) = &self.traffic
            && *known == from
        {
            return Ok(traffic.clone());
        }
        let workload = workload.build(&env).map_err(|error| {
            let (variant, error) = self.most_loaded(variant, error, network, &env);
            let is_about_all = error.key.is_empty() || !error.key.contains(['.', '[']);
            let error = self.error(variant, "workload", error);
            // The load of links depends on the network, too.
            if is_about_all { self.draft.blamed(variant, error, SIZES_OF_LOADS) } else { error }
        })?;
        let extent = workload.extent();
        let traffic = Traffic { summaries: workload.summaries, worst_link: workload.worst_link, extent };
        self.traffic = Some((from, traffic.clone()));
        Ok(traffic)
    }

    /// Returns, of series with the same traffic but different headers, the one that loads links most if one overloads a
    /// link: advice about it suits all of them.
    fn most_loaded<'v>(
        &'v self,
        variant: &'v Variant,
        error: ConfigError,
        network: &Network,
        env: &BuildEnv<'_>,
    ) -> (&'v Variant, ConfigError) {
        if error.overload.is_none() {
            return (variant, error);
        }
        let traffic = |of: &Variant| (of.scenario.topology.clone(), of.scenario.workload.clone());
        let alike = self.variants.iter().filter(|other| traffic(other) == traffic(variant));
        let others = alike.filter_map(|other| {
            let Resolved { scenario, .. } = Resolved::of(other, network, &[]).ok()?;
            let framing = scenario.nic.framing(&scenario.transport);
            Some((other, scenario.workload.build(&BuildEnv { framing, ..*env }).err()?))
        });
        let more = |a: &ConfigError, b: &ConfigError| a.overload < b.overload;
        others.fold((variant, error), |most, other| if more(&most.1, &other.1) { other } else { most })
    }

    pub(super) fn network(&mut self, variant: &Variant) -> Result<Arc<Network>, ScenarioError> {
        let topology = &variant.scenario.topology;
        if let Some((_, network)) = self.networks.iter().find(|(known, _)| known == topology) {
            return Ok(Arc::clone(network));
        }
        let graph = topology.build(&self.library).map_err(|error| {
            let is_about_all = !error.key.contains('.');
            let error = self.error(variant, "topology", error);
            // An error of several keys together is attributed to the one that was changed last.
            if is_about_all { self.draft.blamed(variant, error, &[]) } else { error }
        })?;
        let network = Network::of_checked(graph).map_err(|error| self.error(variant, "topology", error))?;
        let network = Arc::new(network);
        self.networks.push((topology.clone(), Arc::clone(&network)));
        Ok(network)
    }

    /// Returns the framing of packets on the network.
    pub(super) fn framing(&self, variant: &Variant, network: &Network) -> Result<Framing, ScenarioError> {
        let resolved = check_nic(&variant.scenario).and_then(|()| Resolved::of(variant, network, &[]));
        let resolved = resolved.map_err(|finding| self.draft.error(variant, &finding.key, finding.message))?;
        Ok(resolved.scenario.nic.framing(&resolved.transport))
    }

    /// Returns the scenario without an "auto", whatever its traffic, and warnings about its devices. Warnings about the
    /// transport are left out: it sends nothing.
    pub(super) fn settled(
        &self,
        variant: &Variant,
        network: &Network,
    ) -> Result<(Scenario, Vec<String>), ScenarioError> {
        let resolved = check_nic(&variant.scenario).and_then(|()| Resolved::of(variant, network, &[]));
        let refuse = |finding: Finding| self.draft.error(variant, &finding.key, finding.message);
        let Resolved { scenario, .. } = resolved.map_err(refuse)?;
        let of_devices = device::findings(&variant.devices, &variant.scenario, network);
        Ok((scenario, of_devices.into_iter().map(|finding| refuse(finding).to_string()).collect()))
    }

    /// Returns an error that a part reports about itself, as an error about `key`.
    pub(super) fn error(&self, variant: &Variant, key: &str, error: ConfigError) -> ScenarioError {
        // Workloads report errors of two keys outside of `workload`.
        let foreign = error.key.starts_with("measure") || error.key.starts_with("stop");
        let key = match &*error.key {
            inner if foreign => inner.to_owned(),
            "" => key.to_owned(),
            inner if inner.starts_with('[') => format!("{key}{inner}"),
            inner => format!("{key}.{inner}"),
        };
        self.draft.error(variant, &key, error.message)
    }
}

/// Keys, beside those of loads, that determine the share of their links that flows take.
const SIZES_OF_LOADS: &[&str] = &["topology", "workload", "nic.mtu", "nic.header", "nic.gap"];

/// Scenario of a series, checked and without an "auto".
struct Resolved {
    /// Scenario with the transport settings that all hosts and paths have in common.
    scenario: Scenario,
    /// Transport of the hosts with the fastest links.
    transport: TransportConfig,
    transports: Transports,
    /// Findings to show to the user.
    findings: Vec<Finding>,
}

impl Resolved {
    fn of(variant: &Variant, network: &Network, workloads: &[WorkloadSummary]) -> Result<Self, Finding> {
        let resolved = variant.scenario.settings().resolve(network, workloads);
        let selvedge_sim::Resolved { switch, nic, transport, transports, beside } = resolved;
        let mut scenario = Scenario { switch, nic, beside, ..variant.scenario.clone() };
        let mut findings = Vec::new();
        for &(_, other) in iter::once(&(network.line_rate(), transport)).chain(&transports.hosts) {
            scenario.transport = other;
            let found = check(&variant.name, &scenario, network, workloads);
            findings.extend(found.map_err(|finding| in_words_of_links(finding, &variant.scenario, network))?);
        }
        for of_path in &transports.paths.distinct {
            of_path.check_engines().map_err(|error| Finding::new(&error.key, error.message))?;
        }
        scenario.transport = in_common(transport, &transports);
        Ok(Self { scenario, transport, transports, findings })
    }
}

/// Keeps each warning once, because most of them are the same for all series.
fn keep_each_once(warnings: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    warnings.retain(|warning| known.insert(warning.clone()));
}

/// Returns a finding about buffers that only the topology's file sets, reworded to name the file.
fn in_words_of_file(finding: Finding, scenario: &Scenario, library: &FileLibrary) -> Finding {
    let (Topology::File(file), BufferConfig::InputQueued(buffer)) = (&scenario.topology, &scenario.switch.buffer)
    else {
        return finding;
    };
    let is_meant = finding.key == PER_PORT || finding.message.contains(PER_PORT);
    let Some(queue) = library.least_queue(&file.path).filter(|_| is_meant && buffer.per_port == Setting::Auto) else {
        return finding;
    };
    match &*finding.key {
        PER_PORT => Finding {
            key: "topology.file.path".to_owned(),
            message: format!("{queue}: {} ({PER_PORT} goes before it)", finding.message),
        },
        _ => Finding { message: finding.message.replace(PER_PORT, &queue), ..finding },
    }
}

/// Returns a finding about an automatic credit that is too large because of long links, reworded to name the links.
fn in_words_of_links(finding: Finding, scenario: &Scenario, network: &Network) -> Finding {
    let is_auto = scenario.transport.tunnels().is_some_and(|eqds| eqds.window == Setting::Auto);
    let longest = network.graph().links.iter().map(|link| link.delay).max();
    let Some(delay) = longest.filter(|_| is_auto && finding.key == "transport.eqds.window") else { return finding };
    let topology = toml::Value::try_from(&scenario.topology).expect("a topology can be written");
    let message = format!(
        "with links as long as {delay}, transport.eqds.window \"auto\" is too large ({}): make them shorter, or give that",
        finding.message
    );
    let root = KeyPath::root().join("topology");
    let key = key_of_delay(&root, &topology, delay).unwrap_or(root).to_string();
    Finding { key, message }
}

/// Returns the first key below `path`, with the value `value`, that is called "delay" and has the value `delay`.
fn key_of_delay(path: &KeyPath, value: &toml::Value, delay: Duration) -> Option<KeyPath> {
    let below = |(step, value): (&str, &toml::Value)| match value {
        toml::Value::String(text) => (step == "delay" && text.parse() == Ok(delay)).then(|| path.join(step)),
        other => key_of_delay(&path.join(step), other, delay),
    };
    match value {
        toml::Value::Table(table) => table.iter().find_map(|(step, value)| below((step, value))),
        toml::Value::Array(list) => list.iter().enumerate().find_map(|(at, value)| below((&at.to_string(), value))),
        _ => None,
    }
}

/// Key of the buffer size that the topology's file may set instead.
const PER_PORT: &str = "switch.buffer.input-queued.per-port";

fn checked_seeds(draft: &Draft) -> Result<Vec<u64>, ScenarioError> {
    let place = draft.place("seeds");
    // An argument names its option already.
    let key = if let Place::Argument(_) = place { "" } else { "seeds" };
    let wrong = |message: String| ScenarioError::new(place.clone(), key, message);
    if let Seeds::Count(count) = draft.written().seeds
        && count > MOST_SEEDS
    {
        return Err(wrong(format!("{count} seeds are too many; give at most {MOST_SEEDS}")));
    }
    let seeds = draft.written().seeds.list();
    if seeds.is_empty() {
        return Err(wrong("without a seed nothing would run; give at least one".to_owned()));
    }
    for (index, seed) in seeds.iter().enumerate() {
        if seeds[..index].contains(seed) {
            return Err(wrong(format!("seed {seed} twice would count one run as two; leave one out")));
        }
        if *seed > i64::MAX as u64 {
            return Err(wrong(format!("seed {seed} is too large; give at most {}", i64::MAX)));
        }
    }
    Ok(seeds)
}

/// Maximum number of seeds; a larger number is taken for a mistake.
const MOST_SEEDS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::keep_each_once;

    #[test]
    fn what_two_series_are_warned_about_is_told_once() {
        let mut warnings = ["a", "b", "a", "c", "b"].map(str::to_owned).to_vec();
        keep_each_once(&mut warnings);
        assert_eq!(warnings, ["a", "b", "c"]);
    }
}
