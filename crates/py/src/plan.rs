//! Plans and their results folders.

use std::path::PathBuf;

use pyo3::prelude::*;
use selvedge_scenario::{Changes, FootprintFacts, NicUse, Plan as Planned, Point, Seeds, TopologyFacts, WorkloadFacts};
use selvedge_study::{Available, Marker, Outcome, ResultsFolder, Study, StudyEstimate, Worlds};
use selvedge_units::Bytes;

use crate::work::{Progress, interruptible};
use crate::{StudyError, VERSION, json, of_scenario, of_study};
use selvedge_study::{Stopwatch, timed_run};

/// Checked scenario, ready to run.
#[pyclass(frozen, module = "selvedge._native")]
pub(crate) struct Plan(pub(crate) Planned);

#[pymethods]
impl Plan {
    /// Checks the scenario in `text`, or in the file `path`; messages about a text call it `name`.
    #[new]
    #[pyo3(signature = (*, path=None, text=None, name="study", folder=PathBuf::new(), sets=Vec::new(), series=None, seeds=None, sweeps=Vec::new(), controls=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python's")]
    fn new(
        path: Option<PathBuf>,
        text: Option<&str>,
        name: &str,
        folder: PathBuf,
        sets: Vec<String>,
        series: Option<String>,
        seeds: Option<Vec<u64>>,
        sweeps: Vec<String>,
        controls: bool,
    ) -> PyResult<Self> {
        let changes = Changes { sets, series, seeds: seeds.map(Seeds::List), sweeps, controls, ..Changes::default() };
        let plan = match (path, text) {
            (Some(path), _) => {
                let inside = path.join("scenario.toml");
                Planned::from_file(if inside.is_file() { &inside } else { &path }, &changes)
            }
            (None, Some(text)) => Planned::from_text(name, text, &folder, &changes),
            (None, None) => Planned::built_in(&changes),
        };
        plan.map(Self).map_err(|error| of_scenario(&error))
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }
    #[getter]
    fn summary(&self) -> String {
        self.0.in_one_line()
    }
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.0.seeds.clone()
    }
    /// Names of the series, case by case.
    #[getter]
    fn series(&self) -> Vec<String> {
        self.0.series.iter().map(|series| series.name.clone()).collect()
    }
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }
    /// Number of runs.
    #[getter]
    fn runs(&self) -> usize {
        self.0.points().count()
    }
    /// Resolved scenario, as TOML.
    fn toml(&self) -> String {
        self.0.to_toml()
    }
    fn topology(&self) -> PyResult<String> {
        let series = &self.0.series[0];
        json(&TopologyFacts::new(&series.network, series.scenario.nic.framing(&series.transport)))
    }
    fn workload(&self) -> PyResult<String> {
        json(&WorkloadFacts::new(&self.0))
    }
    fn footprint(&self, cache: u64, queue_pairs: u64, work_requests: u64) -> PyResult<String> {
        let nic = NicUse { cache: Bytes::new(cache), queue_pairs, work_requests };
        json(&FootprintFacts::new(&self.0, nic).map_err(|error| StudyError::new_err(error.to_string()))?)
    }
    /// Estimated packets, memory and bounds, as JSON.
    fn estimate(&self, py: Python<'_>, threads: usize) -> PyResult<String> {
        let points: Vec<Point> = self.0.points().collect();
        let estimate = py.detach(|| StudyEstimate::new(&self.0, &points, threads.max(1)));
        json(&estimate.map_err(|error| of_study(&error))?)
    }
    /// Creates the results folder `target`, unfinished.
    fn create(&self, target: PathBuf, force: bool) -> PyResult<Folder> {
        let marker = Marker::new(&self.0, VERSION, "Python");
        let folder = ResultsFolder::create(&target, &self.0, &marker, force).map_err(|error| of_study(&error))?;
        Ok(Folder { plan: self.0.clone(), folder })
    }
}

/// Results folder under construction; no other process may open it.
#[pyclass(frozen, module = "selvedge._native")]
pub(crate) struct Folder {
    plan: Planned,
    folder: ResultsFolder,
}

#[pymethods]
impl Folder {
    /// Opens unfinished results to continue them.
    #[staticmethod]
    fn resume(path: PathBuf) -> PyResult<Self> {
        let folder = ResultsFolder::open(&path).map_err(|error| of_study(&error))?;
        let mut plan = Planned::from_results(&folder.scenario()).map_err(|error| of_scenario(&error))?;
        folder.check(&plan, VERSION).map_err(|error| of_study(&error))?;
        plan.warnings = folder.warnings().to_vec();
        plan.swept = folder.swept().to_vec();
        plan.grid = folder.grid().map_err(|error| of_study(&error))?;
        Ok(Self { plan, folder })
    }
    /// Path of the results when they are complete.
    #[getter]
    fn target(&self) -> PathBuf {
        self.folder.target().to_owned()
    }
    /// Path of the results until then.
    #[getter]
    fn partial(&self) -> PathBuf {
        self.folder.partial().to_owned()
    }
    /// Numbers of the runs that are not complete.
    fn left(&self) -> Vec<usize> {
        let left = Study::left(&self.plan, &self.folder);
        self.plan.points().enumerate().filter(|(_, point)| left.contains(point)).map(|(number, _)| number).collect()
    }
    /// Runs what is left, and completes the results; returns their path.
    #[pyo3(signature = (threads, tell=None))]
    fn run(&self, py: Python<'_>, threads: usize, tell: Option<Py<PyAny>>) -> PyResult<PathBuf> {
        let points = Study::left(&self.plan, &self.folder);
        let outcome = interruptible(py, tell.as_ref(), |watch| {
            let threads = threads.max(1);
            let estimate = StudyEstimate::new(&self.plan, &points, threads)?;
            let estimate = estimate.with_available(Available::of_this_process());
            estimate.check()?;
            with_study(&self.plan, &self.folder, threads, watch, Some(&estimate), |study| study.run())
        })?;
        match outcome.map_err(|error| of_study(&error))? {
            Outcome::Complete(_) => Ok(self.folder.target().to_owned()),
            Outcome::Interrupted { done, of } => {
                Err(StudyError::new_err(format!("interrupted: {done} of {of} runs are complete")))
            }
        }
    }
}

/// Runs these runs of unfinished results for the process that holds them; returns how many of them are complete.
#[pyfunction]
pub(crate) fn run_points(py: Python<'_>, partial: PathBuf, numbers: Vec<usize>, threads: usize) -> PyResult<usize> {
    let folder = ResultsFolder::join(&partial).map_err(|error| of_study(&error))?;
    let plan = Planned::from_results(&folder.scenario()).map_err(|error| of_scenario(&error))?;
    folder.check(&plan, VERSION).map_err(|error| of_study(&error))?;
    let mut plan = plan;
    plan.swept = folder.swept().to_vec();
    let points: Vec<Point> =
        plan.points().enumerate().filter(|(number, _)| numbers.contains(number)).map(|(_, point)| point).collect();
    let done = interruptible(py, None, |watch| {
        with_study(&plan, &folder, threads.max(1), watch, None, |study| study.run_points(&points))
    })?;
    done.map_err(|error| of_study(&error))
}

fn with_study<T>(
    plan: &Planned,
    folder: &ResultsFolder,
    threads: usize,
    watch: &Progress,
    estimate: Option<&StudyEstimate>,
    run: impl FnOnce(&Study<'_>) -> T,
) -> T {
    let began = Stopwatch::start();
    let simulated = timed_run(threads);
    run(&Study {
        plan,
        folder,
        threads,
        worlds: Worlds { simulated: &simulated, real: &simulated },
        watch,
        elapsed: &move || began.seconds(),
        version: VERSION,
        command: "Python",
        estimate,
        needs_seeds: None,
    })
}
