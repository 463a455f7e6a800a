//! Traces of a study: of the first run of each series.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_scenario::{Plan, Point};
use selvedge_sim::record::Focus;
use selvedge_traces::{PortNames, Selection, Selector, TraceError, TraceFiles, TracePaths};
use serde::{Deserialize, Serialize};

use crate::{ResultsFolder, StudyError};

/// What to trace, as a person says it; nothing by default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tracing {
    /// [`Selector`]s.
    pub what: Vec<String>,
    /// Bytes to keep of each packet; `None`: all.
    pub snaplen: Option<usize>,
    /// Folder for the files; `None`: `traces` among the results.
    pub folder: Option<PathBuf>,
}

impl Tracing {
    /// Whether anything is to be traced.
    pub fn is_off(&self) -> bool {
        self.what.is_empty()
    }

    /// Whether the runs to be traced have what is to be traced.
    ///
    /// # Errors
    /// A selector that cannot be read, a port or flow that does not exist; says what does.
    pub fn check(&self, plan: &Plan) -> Result<(), StudyError> {
        for point in plan.points().filter(|&point| self.covers(plan, point)) {
            let selection = self.selection(plan, point)?;
            for key in selection.flows() {
                plan.series[point.series].find_flow(point.seed, key).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Where the files go, for results in `results`.
    pub fn folder(&self, results: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| results.join("traces"))
    }

    /// Whether this run is to be traced: the first of its series.
    fn covers(&self, plan: &Plan, point: Point) -> bool {
        !self.is_off() && plan.seeds.first() == Some(&point.seed)
    }

    fn selection(&self, plan: &Plan, point: Point) -> Result<Selection, StudyError> {
        let selectors: Result<Vec<Selector>, String> = self.what.iter().map(|text| text.parse()).collect();
        let names = PortNames::new(plan.series[point.series].network.graph());
        selectors.and_then(|selectors| Selection::new(&selectors, &names)).map_err(refused)
    }

    /// The files for a run, and what to record for them; `None` if it is not to be traced.
    pub(crate) fn begin(
        &self,
        plan: &Plan,
        point: Point,
        results: &ResultsFolder,
        program: &str,
    ) -> Result<Option<(TraceFiles, Focus)>, StudyError> {
        if !self.covers(plan, point) {
            return Ok(None);
        }
        let focus = self.selection(plan, point)?.focus();
        let folder = self.folder(results.partial());
        fs::create_dir_all(&folder).map_err(|error| StudyError::io(&folder, "make this folder", &error))?;
        let paths = paths(&folder, &plan.series[point.series].name, point.seed);
        let config = plan.config(point);
        let files = TraceFiles::create(paths, &config, &focus, self.snaplen, program)?;
        Ok(Some((files, focus)))
    }
}

fn paths(folder: &Path, series: &str, seed: u64) -> TracePaths {
    let stem = format!("{}-seed{seed}", series.replace('/', "_"));
    TracePaths {
        capture: folder.join(format!("{stem}.pcapng")),
        timeline: folder.join(format!("{stem}.perfetto-trace")),
    }
}

fn refused(message: String) -> StudyError {
    StudyError::input(format!("--trace: {message}"))
}

impl From<TraceError> for StudyError {
    fn from(error: TraceError) -> Self {
        Self::failure(error.to_string())
    }
}
