//! A scenario once it is checked: what runs, and what came of every "auto".

use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_sim::config::{BufferConfig, TransportConfig};
use selvedge_sim::fault::{DropList, LossModel, LossPlan, link_events};
use selvedge_sim::topology::{Framing, Graph, LinkLoad, Topology};
use selvedge_sim::workload::{BuildEnv, Extent, Measure, Sizes, WorkloadConfig, WorkloadSummary};
use selvedge_sim::{ConfigError, SimConfig};
use selvedge_units::{Duration, Instant, Rate, Setting};

use crate::check::{
    Finding, check, check_accounts, check_arrivals, check_begin, check_nic, check_priorities, check_repeats,
    check_window,
};
use crate::digest;
use crate::document::Document;
use crate::draft::{Draft, Variant};
use crate::error::{Place, ScenarioError};
use crate::input;
use crate::library::FileLibrary;
use crate::network::Network;
use crate::origin::built_in;
use crate::path::KeyPath;
use crate::resolve::{Transports, in_common, resolve, sampling_interval, settle};
use crate::scenario::{Scenario, Seeds};
use crate::written::{written, written_values};

/// A study that can run: series and seeds, without an "auto".
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the study is called.
    pub title: String,
    /// What it is about; may be empty.
    pub description: String,
    /// Each series runs once per seed; ascending order is not required.
    pub seeds: Vec<u64>,
    /// What is compared, in the order of tables; at least one.
    pub series: Vec<PlannedSeries>,
    /// What a person should know before trusting the results.
    pub warnings: Vec<String>,
    /// Whether the end of its runs is the built-in study's, which nobody has written.
    pub ends_as_built_in: bool,
    library: FileLibrary,
}

/// One series of a plan.
#[derive(Clone, Debug)]
pub struct PlannedSeries {
    /// Its name, which includes its case if there are several: "30 % load: irn".
    pub name: String,
    /// Its name among the series of its case.
    pub series: String,
    /// The condition under which it runs, if there are several.
    pub case: Option<String>,
    /// The scenario with its values in place, and without "auto", but where each host has its own.
    pub scenario: Scenario,
    /// Its transport at the fastest hosts.
    pub transport: TransportConfig,
    /// The same at others, by the rates of their links, where that makes a difference.
    pub transports: Vec<(Rate, TransportConfig)>,
    /// Its network.
    pub network: Arc<Network>,
    /// Each of its workloads in numbers.
    pub workloads: Vec<WorkloadSummary>,
    /// The most loaded direction of any link under random arrivals, headers included.
    pub worst_link: Option<LinkLoad>,
    /// How many flows a run has, if that is known beforehand.
    pub flows: Option<u64>,
    /// Whether there is always another flow until its time is up.
    pub is_endless: bool,
    /// Where it runs.
    pub world: World,
    library: FileLibrary,
}

/// Where a series runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    /// In the simulator.
    Simulated,
    /// Between two processes of this machine.
    Real,
}

impl World {
    /// The case of a plan that runs in several.
    pub const fn case(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

/// One run of a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Point {
    /// Position of its series in [`Plan::series`].
    pub series: usize,
    /// Its seed.
    pub seed: u64,
}

/// What the command line changes about a scenario file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// `--topology`: a file whose network takes the place of the scenario's.
    pub topology: Option<PathBuf>,
    /// `--flows`: a file whose flows take the place of the scenario's workloads.
    pub flows: Option<PathBuf>,
    /// `--set key=value`, in order.
    pub sets: Vec<String>,
    /// `--series a,b`: series of the file by name, or presets.
    pub series: Option<String>,
    /// `--seeds`.
    pub seeds: Option<Seeds>,
    /// Whether to apply the file's `[smoke]`, as `check --smoke` does.
    pub smoke: bool,
}

impl Plan {
    /// The same plan in another world.
    #[must_use]
    pub fn in_world(mut self, world: World) -> Self {
        self.series.iter_mut().for_each(|series| series.world = world);
        self
    }

    /// The same plan in these worlds, each a case that is named after it.
    ///
    /// # Errors
    /// When the plan has cases of its own.
    pub fn in_worlds(mut self, worlds: &[World]) -> Result<Self, ScenarioError> {
        if self.series.iter().any(|series| series.case.is_some()) {
            let why = "it runs in two worlds, which are its cases: leave [[case]] out";
            return Err(ScenarioError::new(Place::File(self.title), "case", why));
        }
        let series = std::mem::take(&mut self.series);
        let in_one = |world: World| {
            let case = world.case();
            let named = move |series: PlannedSeries| PlannedSeries {
                name: format!("{case}: {}", series.name),
                case: Some(case.to_owned()),
                world,
                ..series
            };
            series.iter().cloned().map(named)
        };
        self.series = worlds.iter().copied().flat_map(in_one).collect();
        Ok(self)
    }

    /// The plan of a scenario file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place and what would be right.
    pub fn from_file(path: &Path, changes: &Changes) -> Result<Self, ScenarioError> {
        let (document, library) = document_at(path)?;
        Self::from_document(document, library, changes)
    }

    /// The plan of the scenario `text`, which messages call `name`; paths in it are relative to
    /// `folder`.
    ///
    /// # Errors
    /// As [`Plan::from_file`].
    pub fn from_text(name: &str, text: &str, folder: &Path, changes: &Changes) -> Result<Self, ScenarioError> {
        Self::from_document(Document::parse(name, text)?, FileLibrary::new(folder), changes)
    }

    /// The plan of the resolved scenario at `path`, in the folder of its results.
    ///
    /// # Errors
    /// As [`Plan::from_file`].
    pub fn from_results(path: &Path) -> Result<Self, ScenarioError> {
        let (name, text) = read(path)?;
        let library = FileLibrary::of_results(path.parent().unwrap_or(Path::new("")));
        Self::from_document(Document::parse(&name, &text)?, library, &Changes::default())
    }

    pub(crate) fn from_document(
        document: Document,
        library: FileLibrary,
        changes: &Changes,
    ) -> Result<Self, ScenarioError> {
        let draft = Draft::read(document, changes)?;
        let variants = draft.variants(changes.series.as_deref())?;
        Builder::new(&draft, library).plan(variants)
    }

    /// All runs, series by series.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        (0..self.series.len()).flat_map(|series| self.seeds.iter().map(move |&seed| Point { series, seed }))
    }

    /// What the simulator needs for one run.
    pub fn config(&self, point: Point) -> SimConfig {
        let series = &self.series[point.series];
        let scenario = &series.scenario;
        SimConfig {
            paths: Arc::clone(series.network.paths()),
            switch: scenario.switch.clone(),
            nic: scenario.nic.clone(),
            transport: series.transport,
            transports: series.transports.clone(),
            beside: scenario.beside.clone(),
            workload: scenario.workload.clone(),
            measure: scenario.measure,
            loss: scenario.loss.clone(),
            failures: scenario.failures.clone(),
            seed: point.seed,
            stop: scenario.stop,
            sample: scenario.sample.resolve(|| None),
        }
    }

    /// Where the files come from that a run of this series names.
    pub fn library(&self, point: Point) -> &FileLibrary {
        &self.series[point.series].library
    }

    /// The resolved scenario as a file that runs to the same results, wherever it lies.
    pub fn to_toml(&self) -> String {
        written(self)
    }

    /// Files that the resolved scenario names by relative paths, because they came through pipes: where
    /// the scenario is, these belong beside it.
    pub fn kept_inputs(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        self.library.kept()
    }

    /// A hash of everything that results depend on: the resolved scenario and the content of the
    /// files that it names.
    pub fn fingerprint(&self) -> u64 {
        digest::of(self.to_toml().as_bytes()) ^ self.library.digest()
    }
}

impl PlannedSeries {
    /// No flow starts before this.
    pub fn begin(&self) -> Instant {
        Instant::ZERO + first_start(&self.workloads)
    }

    /// A hash of everything that its runs depend on, beside the seed: equal ones have equal results.
    pub fn digest(&self) -> u64 {
        let world = u64::from(self.world == World::Real);
        digest::of(written_values(&self.scenario).as_bytes()) ^ self.library.digest() ^ world
    }
    /// Where the files come from that it names.
    pub fn library(&self) -> &FileLibrary {
        &self.library
    }
}

impl Network {
    /// The network of a scenario's first series and how its packets look there, whether or not the rest of the scenario
    /// can run; and what a person should know about the scenario. `None`: the built-in one.
    ///
    /// # Errors
    /// The scenario cannot be read, or has no such network.
    pub fn of_scenario(
        path: Option<&Path>,
        changes: &Changes,
    ) -> Result<(Arc<Self>, Framing, Vec<String>), ScenarioError> {
        let (document, library) = match path {
            Some(path) => document_at(path)?,
            None => built_in()?,
        };
        let draft = Draft::read(document, changes)?;
        let variants = draft.variants(changes.series.as_deref())?;
        let mut builder = Builder::new(&draft, library);
        let network = builder.network(&variants[0])?;
        let Scenario { nic, transport, .. } = &variants[0].scenario;
        let framing = builder.framing(&variants[0], &network).unwrap_or_else(|_| nic.framing(transport));
        let warnings = match builder.plan(variants) {
            Ok(plan) => plan.warnings,
            Err(error) => {
                let cannot = format!("a run of this scenario would be refused: {error}");
                builder.library.warnings().into_iter().chain([cannot]).collect()
            }
        };
        Ok((network, framing, warnings))
    }

    /// The network of a document's first series and how its packets look there, whatever else it lacks.
    pub(crate) fn of_document(
        document: Document,
        library: FileLibrary,
        changes: &Changes,
    ) -> Result<(Arc<Self>, Framing, FileLibrary), ScenarioError> {
        let draft = Draft::read(document, changes)?;
        let variants = draft.variants(changes.series.as_deref())?;
        let mut builder = Builder::new(&draft, library);
        let network = builder.network(&variants[0])?;
        let framing = builder.framing(&variants[0], &network)?;
        Ok((network, framing, builder.library))
    }
}

/// Turns the variants of a draft into series.
struct Builder<'a> {
    draft: &'a Draft,
    library: FileLibrary,
    /// All that there are.
    variants: Vec<Variant>,
    /// Networks by what they were built from: most series share one.
    networks: Vec<(Topology, Arc<Network>)>,
    /// The traffic of the latest series, which the next often shares: loads of large networks take their time.
    traffic: Option<(BuiltFrom, Traffic)>,
}

/// What traffic depends on, within one study.
type BuiltFrom = (Topology, WorkloadConfig, Framing, Measure, Option<u64>);

/// A series' workloads in numbers.
#[derive(Clone, Debug)]
struct Traffic {
    summaries: Vec<WorkloadSummary>,
    worst_link: Option<LinkLoad>,
    extent: Extent,
}

impl<'a> Builder<'a> {
    fn new(draft: &'a Draft, library: FileLibrary) -> Self {
        Self { draft, library, variants: Vec::new(), networks: Vec::new(), traffic: None }
    }

    fn plan(&mut self, variants: Vec<Variant>) -> Result<Plan, ScenarioError> {
        let seeds = checked_seeds(self.draft)?;
        let mut warnings = Vec::new();
        let mut series = Vec::new();
        self.variants.clone_from(&variants);
        for variant in variants {
            series.push(self.series(variant, &seeds, &mut warnings)?);
        }
        let library = self.library.clone();
        warnings.extend(library.warnings());
        keep_each_once(&mut warnings);
        let Scenario { title, description, .. } = self.draft.written().clone();
        Ok(Plan { title, description, seeds, series, warnings, ends_as_built_in: false, library })
    }

    fn series(
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
        // What flows are like depends on resolved keys, and timeouts on the priorities that flows ask for.
        let resolved = Resolved::of(&variant, &network, &[]).map_err(refuse)?;
        let Traffic { summaries, worst_link, extent } = self.traffic(&variant, &resolved, &network, seeds, &library)?;
        let asks = summaries.iter().any(|summary| !summary.priorities.is_empty());
        let resolved = if asks { Resolved::of(&variant, &network, &summaries).map_err(refuse)? } else { resolved };
        let Resolved { mut scenario, transport, transports, findings } = resolved;
        if let Some(beside) = &scenario.beside {
            beside.which(&summaries).map_err(|error| self.error(&variant, "beside", error))?;
        }
        let of_traffic = check_traffic(&scenario, &network, &summaries).map_err(refuse)?;
        warnings.extend(findings.into_iter().chain(of_traffic).map(|finding| refuse(finding).to_string()));
        let of_pfc = draft.overruled(&variant).or_else(|| draft.mislabelled(&variant));
        warnings.extend(of_pfc.map(|warning| warning.to_string()));
        let extent = extent.limited(scenario.stop.flows);
        if extent == Extent::Endless && scenario.stop.time.is_none() {
            let message =
                "the traffic never ends: say when to stop, as in stop = { flows = 10_000 } or { time = \"10ms\" }";
            return Err(draft.error(&variant, "stop", message));
        }
        let span = span_of_starts(&scenario, &summaries).map_err(refuse)?;
        settle(&mut scenario.sample, Some(sampling_interval(&network, span)));
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
            transports,
            workloads: summaries,
            worst_link,
            flows: extent.known(),
            is_endless: extent == Extent::Endless,
            world: World::Simulated,
            library,
            network,
        })
    }

    /// What runs on the network, whose losses and failures are checked, too.
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
            // How much links carry depends on the network, too.
            if is_about_all { self.draft.blamed(variant, error, SIZES_OF_LOADS) } else { error }
        })?;
        let extent = workload.extent();
        let traffic = Traffic { summaries: workload.summaries, worst_link: workload.worst_link, extent };
        self.traffic = Some((from, traffic.clone()));
        Ok(traffic)
    }

    /// Of series with the same traffic, which differ in headers, the one that loads links most if one does too much:
    /// what is advised then suits all.
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

    fn network(&mut self, variant: &Variant) -> Result<Arc<Network>, ScenarioError> {
        let topology = &variant.scenario.topology;
        if let Some((_, network)) = self.networks.iter().find(|(known, _)| known == topology) {
            return Ok(Arc::clone(network));
        }
        let graph = topology.build(&self.library).map_err(|error| {
            let is_about_all = !error.key.contains('.');
            let error = self.error(variant, "topology", error);
            // Several of its keys together: the one that was changed last.
            if is_about_all { self.draft.blamed(variant, error, &[]) } else { error }
        })?;
        let network = Network::new(graph)
            .ok_or_else(|| self.draft.error(variant, "topology", "no host can reach another: connect at least two"))?;
        let network = Arc::new(network);
        self.networks.push((topology.clone(), Arc::clone(&network)));
        Ok(network)
    }

    /// How packets look on it.
    fn framing(&self, variant: &Variant, network: &Network) -> Result<Framing, ScenarioError> {
        let resolved = check_nic(&variant.scenario).and_then(|()| Resolved::of(variant, network, &[]));
        let resolved = resolved.map_err(|finding| self.draft.error(variant, &finding.key, finding.message))?;
        Ok(resolved.scenario.nic.framing(&resolved.transport))
    }

    /// An error that a part reports about itself, which stands under `key`.
    fn error(&self, variant: &Variant, key: &str, error: ConfigError) -> ScenarioError {
        // Workloads know about two keys that are not theirs.
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

/// The scenario of a series without an "auto", checked.
struct Resolved {
    /// Its transport is what all hosts have in common.
    scenario: Scenario,
    /// That of the fastest hosts.
    transport: TransportConfig,
    transports: Transports,
    /// What a person should know.
    findings: Vec<Finding>,
}

impl Resolved {
    fn of(variant: &Variant, network: &Network, workloads: &[WorkloadSummary]) -> Result<Self, Finding> {
        let mut scenario = variant.scenario.clone();
        let transports = resolve(&mut scenario, network, workloads);
        let transport = scenario.transport;
        let mut findings = Vec::new();
        for &(_, other) in iter::once(&(network.line_rate(), transport)).chain(&transports) {
            scenario.transport = other;
            let found = check(&variant.name, &scenario, network, workloads);
            findings.extend(found.map_err(|finding| in_words_of_links(finding, &variant.scenario, network))?);
        }
        scenario.transport = in_common(transport, &transports);
        Ok(Self { scenario, transport, transports, findings })
    }
}

/// Series share most of what is to be said about them.
fn keep_each_once(warnings: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    warnings.retain(|warning| known.insert(warning.clone()));
}

/// A finding about buffers which nobody has written but the topology's file: said of that.
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

/// A finding about a credit which nobody has written, and which long links make what it is: said of these.
fn in_words_of_links(finding: Finding, scenario: &Scenario, network: &Network) -> Finding {
    let is_auto = scenario.transport.eqds.is_some_and(|eqds| eqds.window == Setting::Auto);
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

/// The first key below `path`, which has this value, that is called "delay" and says `delay`.
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

/// The key of what the topology's file may say instead.
const PER_PORT: &str = "switch.buffer.input-queued.per-port";

/// The scenario in the file at `path`; paths in it are relative to its folder, or to where we are if it comes through
/// standard input.
fn document_at(path: &Path) -> Result<(Document, FileLibrary), ScenarioError> {
    let (name, text) = read(path)?;
    let folder = path.parent().filter(|_| path != Path::new("/dev/stdin")).unwrap_or(Path::new(""));
    Ok((Document::parse(&name, &text)?, FileLibrary::new(folder)))
}

/// The file's name in messages, and its text.
fn read(path: &Path) -> Result<(String, String), ScenarioError> {
    let name = path.display().to_string();
    let text = input::read_text(path).map_err(|error| ScenarioError::unreadable(&name, &error))?;
    Ok((name, text))
}

fn checked_seeds(draft: &Draft) -> Result<Vec<u64>, ScenarioError> {
    let place = draft.place("seeds");
    // An option says what it is about.
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

/// What decides how much of their links flows take, beside their own keys.
const SIZES_OF_LOADS: &[&str] = &["topology", "workload", "nic.mtu", "nic.header", "nic.gap"];
/// More would be a mistake.
const MOST_SEEDS: u64 = 10_000;

/// No flow of these workloads starts before this.
fn first_start(workloads: &[WorkloadSummary]) -> Duration {
    workloads.iter().map(|workload| workload.first).min().unwrap_or_default()
}

/// What a person should know about traffic on a network although it can run.
fn check_traffic(
    scenario: &Scenario,
    network: &Network,
    workloads: &[WorkloadSummary],
) -> Result<Vec<Finding>, Finding> {
    let priorities = scenario.switch.priorities(&scenario.nic, scenario.beside.as_ref(), workloads);
    let mut findings = check_repeats(&scenario.workload, workloads, scenario.stop.flows);
    findings.extend(check_priorities(scenario, &priorities, workloads)?);
    findings.extend(check_accounts(scenario, network, &priorities)?);
    Ok(findings)
}

/// Over how long a time flows start, or may; checked.
fn span_of_starts(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Result<Duration, Finding> {
    let (begin, stop) = (first_start(workloads), scenario.stop.time);
    check_begin(begin, stop, &scenario.measure)?;
    check_arrivals(workloads, stop)?;
    check_window(workloads, stop, &scenario.measure)?;
    let last = workloads.iter().filter_map(|workload| workload.duration).max().unwrap_or_default();
    let starts = last.saturating_sub(begin);
    Ok(match stop.map(|end| end.saturating_sub(begin)) {
        Some(end) if starts.is_zero() => end,
        Some(end) => end.min(starts),
        None => starts,
    })
}

/// Whether the samples of one run, whose flows start over `span`, fit on a disk.
fn check_samples(scenario: &Scenario, graph: &Graph, span: Duration) -> Result<(), String> {
    let Setting::Value(interval) = scenario.sample else { return Ok(()) };
    let (samples, ports) = (span.as_ps() / interval.as_ps().max(1), 2 * graph.links.len() as u64);
    let rows = samples.saturating_mul(ports);
    if rows <= MOST_SAMPLES {
        return Ok(());
    }
    let least = Duration::from_us((span.as_ps().saturating_mul(ports) / MOST_SAMPLES).div_ceil(1_000_000));
    Err(format!("{samples} samples of {ports} ports are too many to keep: give at least \"{least}\", or \"off\""))
}

/// Rows of one run, a few bytes each.
const MOST_SAMPLES: u64 = 1_000_000_000;

/// Lets the scenario run from any folder; what came through pipes keeps a relative path.
fn absolute_paths(scenario: &mut Scenario, library: &FileLibrary) -> Result<(), ConfigError> {
    let resolved = |key: &str, path: &str| {
        library.resolve(path).into_os_string().into_string().map_err(|place| {
            let message = format!("{}: the path is no text in UTF-8; rename what leads there", place.display());
            ConfigError::new(key, message)
        })
    };
    let absolute = |key: &str, path: &mut String| resolved(key, path).map(|place| *path = place);
    if let Topology::File(file) = &mut scenario.topology {
        absolute("topology.file.path", &mut file.path)?;
    }
    for loss in &mut scenario.loss {
        if let LossModel::Trace(DropList::Path(path)) = &mut loss.model {
            absolute("loss", path)?;
        }
    }
    let WorkloadConfig {
        goal,
        flows,
        poisson,
        closed_loop,
        verbs,
        // These name no files.
        incast: _,
        permutation: _,
        all_to_all: _,
        collective: _,
        mixture_of_experts: _,
        pipeline: _,
    } = &mut scenario.workload;
    goal.0.iter_mut().try_for_each(|goal| absolute("workload.goal.path", &mut goal.path))?;
    flows.0.iter_mut().try_for_each(|flows| absolute("workload.flows.path", &mut flows.path))?;
    let sizes = poisson.0.iter_mut().map(|poisson| &mut poisson.sizes);
    let sizes = sizes.chain(closed_loop.0.iter_mut().map(|closed| &mut closed.sizes));
    for sizes in sizes.chain(verbs.0.iter_mut().map(|verbs| &mut verbs.sizes)) {
        if let Sizes::Named(reference) = sizes
            && let Some(path) = reference.strip_prefix("file:")
        {
            *reference = format!("file:{}", resolved("workload", path)?);
        }
    }
    Ok(())
}

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
