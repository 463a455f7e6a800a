//! Complete results, opened again for further analysis.

use std::path::{Path, PathBuf};

use selvedge_results::{DeadlockReport, Flows, PointRun, ResultsError, SeedDeadlock, read_flows};
use selvedge_scenario::{Changes, Plan, PlannedSeries, Point};
use selvedge_sim::record::{FlowKey, Recording};
use selvedge_sim::{Parallel, run_recorded};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RunRecord};
use selvedge_units::{Instant, PortId};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::folder::{MARKER, SCENARIO, SUMMARY, partial_of, without_trailing_slash};
use crate::{StudyError, Watch};

/// A complete results folder, and the plan that it came from.
#[derive(Debug)]
pub struct Finished {
    folder: PathBuf,
    plan: Plan,
    version: String,
    runs: Vec<PointRun>,
    /// Deadlocks of each series, in the plan's order.
    deadlocks: Vec<Vec<SeedDeadlock>>,
}

impl Finished {
    /// Opens the results in `folder`.
    ///
    /// # Errors
    /// Returns an error if there are no results, or they are not complete.
    pub fn open(folder: &Path) -> Result<Self, StudyError> {
        let folder = without_trailing_slash(folder);
        check_complete(&folder)?;
        let plan = Plan::from_file(&folder.join(SCENARIO), &Changes::default())
            .map_err(|error| StudyError::input(error.to_string()))?;
        let stored: StoredSummary = read_summary(&folder, &anew(&folder, may_be_real(&plan)))?;
        let deadlocks = stored.series.into_iter().map(|series| series.deadlocks).collect();
        Ok(Self { folder, plan, version: stored.run.version, runs: stored.run.points, deadlocks })
    }

    /// Returns the plan that was run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// Returns the version of the program that ran the plan.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the run of this series with this seed; the first series or seed if not given.
    ///
    /// # Errors
    /// Returns an error that lists the existing runs if there is no such run.
    pub fn point(&self, series: Option<&str>, seed: Option<u64>) -> Result<Point, StudyError> {
        let here = self.folder.display();
        let Plan { series: all, seeds, .. } = &self.plan;
        let series = match series {
            None => 0,
            Some(name) => all.iter().position(|series| series.name == name).ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
                StudyError::input(format!("{here}: no series \"{name}\"; there are {}", names.join(", ")))
            })?,
        };
        let seed = seed.unwrap_or(seeds[0]);
        if !seeds.contains(&seed) {
            let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
            return Err(StudyError::input(format!("{here}: no seed {seed}; there are {}", seeds.join(", "))));
        }
        Ok(Point { series, seed })
    }

    /// Returns the flow with this key in a run.
    ///
    /// # Errors
    /// Returns an error if there is no such flow, or the table of flows is damaged.
    pub fn flow(&self, point: Point, key: FlowKey) -> Result<FlowRow, StudyError> {
        let mut flows = self.flows(point)?;
        flows.find(|row| row.as_ref().map_or(true, |row| FlowKey::from(row) == key)).unwrap_or_else(|| {
            let series = &self.plan.series[point.series].name;
            let FlowKey { workload, id } = key;
            let place = if workload == 0 { String::new() } else { format!(" of workload {workload}") };
            let known = self.flows(point)?.filter_map(Result::ok).filter(|row| row.workload == workload);
            let range = known.fold(None, |range, FlowRow { id, .. }| match range {
                None => Some((id, id)),
                Some((first, last)) => Some((first.min(id), last.max(id))),
            });
            let remedy = match range {
                None => format!("there is no workload {workload}"),
                Some((first, last)) => format!("they are numbered {first} to {last}"),
            };
            let here = self.folder.display();
            Err(StudyError::input(format!("{here}: no flow {id}{place} in {series}, seed {}; {remedy}", point.seed)))
        })
    }

    /// Returns the deadlock that ended a run, if any.
    pub fn deadlock(&self, point: Point) -> Option<&DeadlockReport> {
        let found = self.deadlocks.get(point.series)?.iter().find(|found| found.seed == point.seed)?;
        Some(&found.deadlock)
    }

    /// Returns the `count` measured flows of a run with the largest slowdown, except flows of the workloads `without`.
    /// The time of an unfinished flow ends with the run.
    ///
    /// # Errors
    /// Returns an error if the table of flows is damaged.
    pub fn slowest(&self, point: Point, count: usize, without: &[u16]) -> Result<Vec<FlowRow>, StudyError> {
        let end = self.end(point);
        let mut slowest: Vec<(f64, FlowRow)> = Vec::new();
        for row in self.flows(point)? {
            let row = row?;
            if row.measured && !without.contains(&row.workload) {
                let row_ended = FlowRow { finish: row.finish.or(Some(end.max(row.start))), ..row };
                slowest.push((row_ended.slowdown().unwrap_or_default(), row));
            }
            if slowest.len() > 2 * count + 1_000 {
                keep(&mut slowest, count);
            }
        }
        keep(&mut slowest, count);
        Ok(slowest.into_iter().map(|(_, row)| row).collect())
    }

    /// Runs a point again until these flows are done, or until its end if it is to end in the same deadlock. Reports
    /// the events within the focus of `recording` to its recorder, and progress to `watch`. Returns `None` if
    /// interrupted.
    ///
    /// # Errors
    /// Returns an error if the simulator refuses the run, or a flow or the deadlock differs from the recorded one.
    pub fn simulate_again(
        &self,
        point: Point,
        threads: usize,
        flows: &[FlowRow],
        deadlock: Option<&DeadlockReport>,
        recording: Recording<'_>,
        watch: &dyn Watch,
    ) -> Result<Option<RunRecord>, StudyError> {
        let config = self.plan.config(point);
        let parallel = Parallel::on(threads);
        // The run continues until the last of these flows is done.
        let ends = flows.iter().map(|flow| flow.finish).max_by_key(|finish| finish.unwrap_or(Instant::NEVER)).flatten();
        let until = ends.filter(|_| deadlock.is_none()).unwrap_or_else(|| self.end(point));
        let to_the_end = deadlock.is_some();
        let mut expected =
            Expected { flows, open: flows.len(), to_the_end, until, watch, interrupted: false, differs: None };
        let library = self.plan.library(point);
        let Recording { focus, recorder } = recording;
        let record = run_recorded(&config, library, parallel, &mut expected, focus, recorder)
            .map_err(|error| StudyError::refused(&self.plan.series[point.series].name, point.seed, &error))?;
        if expected.interrupted {
            return Ok(None);
        }
        let (then, now) = match expected.differs {
            Some(differs) => differs,
            None if expected.open == 0 => {
                let stuck: Vec<PortId> = deadlock.iter().flat_map(|deadlock| deadlock.ports()).collect();
                let again: Vec<PortId> =
                    record.deadlock.iter().flat_map(|deadlock| deadlock.cycle.iter().map(|hop| hop.port)).collect();
                if deadlock.is_some() && stuck != again {
                    return Err(self.changed("the run does not end in the same deadlock"));
                }
                return Ok(Some(record));
            }
            None => return Err(self.changed("a flow of these results does not come up again")),
        };
        let fct = |row: &FlowRow| row.fct().map_or_else(|| "did not finish".to_owned(), |fct| format!("took {fct}"));
        Err(self.changed(&format!("flow {} {} then, and {} now", then.id, fct(&then), fct(&now))))
    }

    /// Returns the end of a run.
    fn end(&self, point: Point) -> Instant {
        let name = &self.plan.series[point.series].name;
        let run = self.runs.iter().find(|run| run.series == *name && run.seed == point.seed);
        Instant::from_ps(run.map_or(0.0, |run| run.simulated_us * 1e6) as u64)
    }

    /// Returns the recorded flows of a run.
    fn flows(&self, point: Point) -> Result<impl Iterator<Item = Result<FlowRow, StudyError>>, StudyError> {
        let remedy = anew(&self.folder, may_be_real(&self.plan));
        let damaged = move |error: ResultsError| StudyError::from(error.with_remedy(remedy.clone()));
        let flows: Flows = read_flows(&self.folder.join("flows.parquet")).map_err(&damaged)?;
        let PlannedSeries { series, case, .. } = &self.plan.series[point.series];
        let (series, case) = (series.clone(), case.clone().unwrap_or_default());
        Ok(flows.filter_map(move |row| match row {
            Ok(row) => {
                let is_it = *row.series == series && *row.case == case && row.seed == point.seed;
                is_it.then_some(Ok(row.flow))
            }
            Err(error) => Some(Err(damaged(error))),
        }))
    }

    fn changed(&self, what: &str) -> StudyError {
        StudyError::input(format!(
            "{}: {what}: the simulator (version {} then) or a file that the scenario names has changed; run the study again",
            self.folder.display(),
            self.version
        ))
    }
}

/// Checks that `folder` holds the complete results of a study.
pub(crate) fn check_complete(folder: &Path) -> Result<(), StudyError> {
    let here = folder.display();
    let wrong = |message: &str| Err(StudyError::input(format!("{here}: {message}")));
    if folder.join(MARKER).exists() {
        return wrong(&format!("these results are not complete; first: selvedge run --resume {here}"));
    }
    if folder.join(SUMMARY).exists() {
        return Ok(());
    }
    let partial = partial_of(folder);
    if partial.join(MARKER).exists() {
        let partial = partial.display();
        return wrong(&format!("not complete yet; first: selvedge run --resume {partial}"));
    }
    wrong(match folder.metadata() {
        Ok(meta) if meta.is_dir() => {
            "holds no results of a study; expected a folder that `selvedge run` made, with a summary.json"
        }
        Ok(_) => "is a file; expected a folder that `selvedge run` made, as in results/name-1",
        Err(_) => "no such folder; expected one that `selvedge run` made, as in results/name-1",
    })
}

/// Reads the parts of a results folder's summary that `T` has. `remedy` is the advice if the summary is not in this
/// version's format.
pub(crate) fn read_summary<T: DeserializeOwned>(folder: &Path, remedy: &str) -> Result<T, StudyError> {
    let path = folder.join(SUMMARY);
    let text = std::fs::read_to_string(&path).map_err(|error| StudyError::io(&path, "read it", &error))?;
    serde_json::from_str(&text).map_err(|error| {
        let version = serde_json::from_str::<AnyVersion>(&text).map(|any| any.run.version);
        let what = match version {
            Ok(version) => format!("not a summary as this version writes it; it is by version {version} ({error})"),
            Err(_) => format!("damaged ({error})"),
        };
        StudyError::input(format!("{}: {what}; {remedy}", path.display()))
    })
}

/// Fields that summaries of all versions have.
#[derive(Deserialize)]
struct AnyVersion {
    run: AnyRun,
}

#[derive(Deserialize)]
struct AnyRun {
    version: String,
}

/// Returns whether results may be of a real network: results do not tell, but only RDMA operations can run on one.
fn may_be_real(plan: &Plan) -> bool {
    plan.series.iter().any(|series| !series.scenario.workload.verbs.is_empty())
}

/// Returns the remedy for complete results that cannot be read.
pub(crate) fn anew(folder: &Path, may_be_real: bool) -> String {
    let (scenario, folder) = (folder.join(SCENARIO), folder.display());
    let real = if may_be_real { " (and --real, if they are of the real world)" } else { "" };
    format!("make these results anew: selvedge run {} --out {folder} --force{real}", scenario.display())
}

/// Fields that are read from summary.json.
#[derive(Deserialize)]
struct StoredSummary {
    series: Vec<StoredSeries>,
    run: StoredRun,
}

#[derive(Deserialize)]
struct StoredSeries {
    deadlocks: Vec<SeedDeadlock>,
}

#[derive(Deserialize)]
struct StoredRun {
    version: String,
    points: Vec<PointRun>,
}

/// Keeps the `count` slowest flows, the slowest first.
fn keep(flows: &mut Vec<(f64, FlowRow)>, count: usize) {
    flows.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(FlowKey::from(x).cmp(&FlowKey::from(y))));
    flows.truncate(count);
}

/// An observer that waits until flows are done, and compares them with the recorded ones.
struct Expected<'a> {
    flows: &'a [FlowRow],
    open: usize,
    to_the_end: bool,
    /// Finish of the last of the flows.
    until: Instant,
    watch: &'a dyn Watch,
    interrupted: bool,
    /// The first flow that differs: the recorded row, and the new row.
    differs: Option<(FlowRow, FlowRow)>,
}

impl Observer for Expected<'_> {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        for row in rows {
            let Some(then) = self.flows.iter().find(|flow| FlowKey::from(*flow) == FlowKey::from(row)) else {
                continue;
            };
            self.open -= 1;
            if then != row && self.differs.is_none() {
                self.differs = Some((*then, *row));
            }
        }
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
    fn on_progress(&mut self, now: Instant, _: u64) -> bool {
        self.watch.on_progress((now.as_us_f64() / self.until.as_us_f64().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0));
        self.interrupted = self.watch.interrupted();
        (self.open > 0 || self.to_the_end) && !self.interrupted
    }
}
