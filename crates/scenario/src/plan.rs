//! Checked scenarios: the series to run, with every "auto" resolved.

mod builder;
mod controls;
mod network;
mod paths;
mod rack;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_document::Document;
use selvedge_sim::Network;
use selvedge_sim::SimConfig;
use selvedge_sim::config::{PathTransports, TransportConfig};
use selvedge_sim::topology::LinkLoad;
use selvedge_sim::workload::WorkloadSummary;
use selvedge_units::{Instant, Rate};

use self::builder::Builder;
pub(crate) use self::network::network_of_document;
pub use self::network::network_of_scenario;
pub use self::rack::Rack;
use crate::check::first_start;
use crate::draft::Draft;
use crate::error::{Place, ScenarioError, unreadable};
use crate::library::FileLibrary;
use crate::origin::of_other_simulator;
use crate::scenario::{Scenario, Seeds};
use crate::sweep::Grid;
use crate::written::{value_of, written, written_values};
use crate::{digest, input};

/// Study that can run: series and seeds, without an "auto".
#[derive(Clone, Debug)]
pub struct Plan {
    /// Title of the study.
    pub title: String,
    /// Description of the study; may be empty.
    pub description: String,
    /// Seeds, with one run each per series; ascending order is not required.
    pub seeds: Vec<u64>,
    /// Series to compare, in the order of tables; at least one.
    pub series: Vec<PlannedSeries>,
    /// Warnings to heed before trusting the results.
    pub warnings: Vec<String>,
    /// Whether the condition for the end of runs is that of the built-in study, not written by the user.
    pub ends_as_built_in: bool,
    /// Keys that the study's cases change, in the order of their first mention. A plan that is read back from results
    /// has none: there, each series has values of its own.
    pub swept: Vec<String>,
    /// Points of the study's sweep, if it has one. A plan that is read back from results has none.
    pub grid: Option<Grid>,
    library: FileLibrary,
}

/// Value of a key, for tables.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyValue {
    /// Numeric value.
    Number(f64),
    /// Any other value: a text without its quotes, or TOML.
    Text(String),
}

impl std::fmt::Display for KeyValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Series of a plan.
#[derive(Clone, Debug)]
pub struct PlannedSeries {
    /// Name of the series, which includes its case if there are several: "30 % load: irn".
    pub name: String,
    /// Name of the series within its case.
    pub series: String,
    /// Case in which the series runs, if there are several.
    pub case: Option<String>,
    /// Scenario with the values of the series, without "auto" except where hosts or paths have different values.
    pub scenario: Scenario,
    /// Transport at the hosts with the fastest links.
    pub transport: TransportConfig,
    /// Transports at hosts with slower links, by rate, where they differ from `transport`.
    pub transports: Vec<(Rate, TransportConfig)>,
    /// Transports for flows on paths of each class, where they differ from `transport`.
    pub path_transports: PathTransports,
    /// Network of the series.
    pub network: Arc<Network>,
    /// Workloads of the series, in numbers.
    pub workloads: Vec<WorkloadSummary>,
    /// The most loaded direction of any link under random arrivals, headers included.
    pub worst_link: Option<LinkLoad>,
    /// Number of flows of a run, if known beforehand.
    pub flows: Option<u64>,
    /// Whether a run has flows without end until its time is up.
    pub is_endless: bool,
    /// World in which the series runs.
    pub world: World,
    /// Name of the series of the same case that differs only in PFC, or the name that such a series would have, where
    /// some series of the case have PFC and some do not; `None` where there can be no such series.
    pub control: Option<String>,
    /// Whether the series was added as a control of another, not asked for by the user.
    pub is_added: bool,
    library: FileLibrary,
}

/// World in which a series runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum World {
    /// Run in the simulator.
    Simulated,
    /// Run between two processes of this machine.
    Real,
}

impl World {
    /// Returns the case of a plan that runs in several.
    pub const fn case(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

/// Run of a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Point {
    /// Position of the run's series in [`Plan::series`].
    pub series: usize,
    /// Seed of the run.
    pub seed: u64,
}

/// Changes that the command line makes to a scenario file.
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
    /// `--sweep key=values`, in order: axes of the sweep beside those of the file.
    pub sweeps: Vec<String>,
    /// `--seeds`: seeds in place of the file's.
    pub seeds: Option<Seeds>,
    /// Whether to apply the file's `[smoke]`, as `check --smoke` does.
    pub smoke: bool,
    /// Whether to add controls where they are missing and cheap: copies of series with PFC switched. Without them a
    /// study may compare schemes that differ in more than PFC.
    pub controls: bool,
}

impl Plan {
    /// Returns this plan, to be run in another world.
    #[must_use]
    pub fn in_world(mut self, world: World) -> Self {
        self.series.iter_mut().for_each(|series| series.world = world);
        self
    }

    /// Returns this plan, to be run in each of these worlds, each a case named after its world.
    ///
    /// # Errors
    /// Returns an error if the plan has cases of its own.
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

    /// Returns the plan of a scenario file.
    ///
    /// # Errors
    /// Returns the first error, with its place and valid values.
    pub fn from_file(path: &Path, changes: &Changes) -> Result<Self, ScenarioError> {
        let (document, library) = document_at(path)?;
        Self::from_document(document, library, changes)
    }

    /// Returns the plan of the scenario `text`, which messages call `name`; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Plan::from_file`].
    pub fn from_text(name: &str, text: &str, folder: &Path, changes: &Changes) -> Result<Self, ScenarioError> {
        Self::from_document(Document::parse(name, text)?, FileLibrary::new(folder), changes)
    }

    /// Returns the plan of the resolved scenario at `path`, in the folder of its results.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Plan::from_file`].
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
        Builder::new(&draft, library).plan(variants, changes.controls)
    }

    /// Returns all runs, series by series.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        (0..self.series.len()).flat_map(|series| self.seeds.iter().map(move |&seed| Point { series, seed }))
    }

    /// Returns the simulator's configuration for one run.
    pub fn config(&self, point: Point) -> SimConfig {
        let series = &self.series[point.series];
        let scenario = &series.scenario;
        SimConfig {
            paths: Arc::clone(series.network.paths()),
            switch: scenario.switch.clone(),
            nic: scenario.nic.clone(),
            transport: series.transport,
            transports: series.transports.clone(),
            path_transports: series.path_transports.clone(),
            beside: scenario.beside.clone(),
            workload: scenario.workload.clone(),
            measure: scenario.measure,
            loss: scenario.loss.clone(),
            failures: scenario.failures.clone(),
            seed: point.seed,
            stop: scenario.stop,
            sample: scenario.sample.resolve(|| None),
            looks: selvedge_sim::config::Looks::default(),
        }
    }

    /// Returns the library of the files that a run of this series names.
    pub fn library(&self, point: Point) -> &FileLibrary {
        &self.series[point.series].library
    }

    /// Returns the resolved scenario as a file that produces the same results, wherever it is stored.
    pub fn to_toml(&self) -> String {
        written(self)
    }

    /// Returns the files that the resolved scenario names by relative paths, because they came through pipes: they must
    /// be stored beside the scenario.
    pub fn kept_inputs(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        self.library.kept()
    }

    /// Returns a hash of everything that results depend on: the resolved scenario and the content of the files that it
    /// names.
    pub fn fingerprint(&self) -> u64 {
        digest::of(self.to_toml().as_bytes()) ^ self.library.digest()
    }
}

impl PlannedSeries {
    /// Returns the time before which no flow starts.
    pub fn begin(&self) -> Instant {
        Instant::ZERO + first_start(&self.workloads)
    }

    /// Returns a hash of everything that the series' runs depend on, beside the seed: series with equal hashes have
    /// equal results.
    pub fn digest(&self) -> u64 {
        let world = u64::from(self.world == World::Real);
        digest::of(written_values(&self.scenario).as_bytes()) ^ self.library.digest() ^ world
    }
    /// Returns the value of the key at the dotted path `key`; `None` if this series has none.
    pub fn value_of(&self, key: &str) -> Option<KeyValue> {
        value_of(&self.scenario, key)
    }

    /// Returns the library of the files that the plan names.
    pub fn library(&self) -> &FileLibrary {
        &self.library
    }
}

/// Returns the scenario in the file at `path`; paths in it are relative to its folder, or to the current folder if it
/// comes through standard input.
fn document_at(path: &Path) -> Result<(Document, FileLibrary), ScenarioError> {
    let name = path.display().to_string();
    let content = input::read(path).map_err(|error| unreadable(&name, &error))?;
    let other = |error: ScenarioError| of_other_simulator(&name, &content).unwrap_or(error);
    let no_text = || unreadable(&name, &std::io::ErrorKind::InvalidData.into());
    let text = std::str::from_utf8(&content).map_err(|_| other(no_text()))?;
    let folder = path.parent().filter(|_| path != Path::new("/dev/stdin")).unwrap_or(Path::new(""));
    Ok((Document::parse(&name, text).map_err(other)?, FileLibrary::new(folder)))
}

/// Returns the file's name in messages, and its text.
fn read(path: &Path) -> Result<(String, String), ScenarioError> {
    let name = path.display().to_string();
    let text = input::read_text(path).map_err(|error| unreadable(&name, &error))?;
    Ok((name, text))
}
