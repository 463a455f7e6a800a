//! Execution of one study, from its plan to its report.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use selvedge_results::{
    Cut, Fabric, GroupKind, GroupTraits, PointFiles, PointSummary, ReportInput, SeriesInfo, SeriesTraits, StudyInfo,
    Summary, Sweep, SweepAxis, SweepPoint, Table, merge, render_report, render_sweep_csv, summarise,
};
use selvedge_scenario::{Grid, GridAxis, GridPoint, Plan, PlannedSeries, Point, Scenario, World};
use selvedge_sim::workload::WorkloadSummary;
use selvedge_units::words::all_of;

use crate::folder::SCENARIO;
use crate::labels::{labels, write_all_links};
use crate::queue::Queue;
use crate::run::{Job, Pool, Worlds, into_inner, lock};
use crate::seeds::add_seeds;
use crate::{ResultsFolder, StudyError, StudyEstimate, fct};

/// A plan and the way to run it.
pub struct Study<'a> {
    /// Plan to run.
    pub plan: &'a Plan,
    /// Folder for the results.
    pub folder: &'a ResultsFolder,
    /// Number of threads; at least 1.
    pub threads: usize,
    /// Functions that run the series.
    pub worlds: Worlds<'a>,
    /// Receiver of progress, which may interrupt the study.
    pub watch: &'a dyn Watch,
    /// Function that returns the seconds since the study began.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Version of the program.
    pub version: &'a str,
    /// Command that began the study, for the report.
    pub command: &'a str,
    /// Estimated cost of the runs, for the display of progress; `None`: progress is based on the plan's flows.
    pub estimate: Option<&'a StudyEstimate>,
    /// Function that returns whether the study needs more seeds, if its folder permits any; `None`: as its verdict
    /// says.
    pub needs_seeds: Option<&'a (dyn Fn(&Summary) -> bool + Sync)>,
}

/// Receiver of a study's progress. Methods are called from several threads.
pub trait Watch: Sync {
    /// Reports that this part of the study is done, 0 to 1.
    fn on_progress(&self, part: f64);
    /// Reports a complete point.
    fn on_point(&self, plan: &Plan, point: Point, summary: &PointSummary) {
        let _ = (plan, point, summary);
    }
    /// Reports a noteworthy event.
    fn on_notice(&self, text: &str);
    /// Returns whether to stop.
    fn interrupted(&self) -> bool;
}

/// The result of a study.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The study is complete, and its results are in their folder.
    Complete(Box<Summary>),
    /// The study was interrupted; complete points are kept for a continuation.
    Interrupted {
        /// Number of complete points.
        done: usize,
        /// Number of all points.
        of: usize,
    },
}

impl Study<'_> {
    /// Returns the points of `plan` that are not complete in `folder`.
    pub fn left(plan: &Plan, folder: &ResultsFolder) -> Vec<Point> {
        plan.points().filter(|&point| !folder.has(point)).collect()
    }

    /// Runs the points that are not complete yet, and finishes the results folder. If a second seed gives the same runs
    /// as the first, nothing in the study is random, and the other seeds are left out. If the folder's marker says so,
    /// seeds are added until the verdict is decided.
    ///
    /// # Errors
    /// Returns an error if the simulator refuses a point, or files cannot be written or read.
    pub fn run(&self) -> Result<Outcome, StudyError> {
        let asked = &self.plan.seeds;
        let mut plan = self.plan.clone();
        let mut done = Done::new();
        let probes = asked.len().min(2);
        for seeds in [probes, asked.len()] {
            plan.seeds = asked[..seeds].to_vec();
            let until = seeds as f64 / asked.len() as f64;
            if !self.complete(&plan, &mut done, until)? {
                return self.interrupted(&done);
            }
            if seeds == probes && ignores_seeds(&plan, &done) {
                plan.seeds.truncate(1);
                return self.finish(&plan, &done, true).map(|summary| Outcome::Complete(Box::new(summary)));
            }
        }
        let most = self.folder.until_decided().unwrap_or(0);
        let needs_seeds = |summary: &Summary| match self.needs_seeds {
            Some(needs_seeds) => needs_seeds(summary),
            None => summary.verdict.needs_seeds,
        };
        while plan.seeds.len() < most && needs_seeds(&self.summary(&plan, &done, false)) {
            let before = plan.seeds.len();
            let more = add_seeds(&mut plan.seeds, most);
            self.watch.on_notice(&format!("not decided with {before} seeds: {more} more"));
            if !self.complete(&plan, &mut done, 1.0)? {
                return self.interrupted(&done);
            }
        }
        self.finish(&plan, &done, false).map(|summary| Outcome::Complete(Box::new(summary)))
    }

    /// Runs those of `points` that are not complete yet, for the process that holds the folder; returns how many are
    /// complete then.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Study::run`].
    pub fn run_points(&self, points: &[Point]) -> Result<usize, StudyError> {
        let todo: Vec<Point> = points.iter().copied().filter(|&point| !self.folder.has(point)).collect();
        let done = self.simulated(self.plan, &todo, 0.0..1.0, false)?;
        Ok(points.len() - todo.len() + done.len())
    }

    /// Loads the complete points of `plan` and runs the others; `until` is the progress of the study at their end.
    /// Returns whether all are complete.
    fn complete(&self, plan: &Plan, done: &mut Done, until: f64) -> Result<bool, StudyError> {
        let mut todo = Vec::new();
        for point in plan.points().filter(|point| !done.contains_key(point)).collect::<Vec<_>>() {
            match self.folder.finished(plan, point) {
                Ok(Some(summary)) => drop(done.insert(point, summary)),
                Ok(None) => todo.push(point),
                Err(damage) => {
                    self.watch.on_notice(&damage);
                    todo.push(point);
                }
            }
        }
        let before = done.len() as f64 / self.plan.points().count().max(done.len()) as f64;
        done.extend(self.simulated(plan, &todo, before..until.max(before), true)?);
        Ok(plan.points().all(|point| done.contains_key(&point)))
    }

    fn interrupted(&self, done: &Done) -> Result<Outcome, StudyError> {
        self.folder.mark((self.elapsed)())?;
        Ok(Outcome::Interrupted { done: done.len(), of: self.plan.points().count().max(done.len()) })
    }

    /// Runs `todo`, which is this part of the study, and updates the folder's marker if it `marks`; returns
    /// the complete
    /// points.
    fn simulated(
        &self,
        plan: &Plan,
        todo: &[Point],
        part: Range<f64>,
        marks: bool,
    ) -> Result<Vec<(Point, PointSummary)>, StudyError> {
        let labels = labels(plan);
        let job = |&point: &Point| Job {
            labels: labels[point.series].clone(),
            plan,
            point,
            files: self.folder.point(point),
            traced: Some((self.folder, self.version)),
            expected: self.estimate.and_then(|estimate| estimate.of_run(point.series)),
        };
        let jobs: Vec<Job<'_>> = todo.iter().map(job).collect();
        let queue = Queue::new(todo.iter().map(|point| (0, point.series)));
        let done = Mutex::new(Vec::new());
        let keep = |number: usize, summary| {
            // One thread at a time: the folder's marker is written.
            let mut done = lock(&done);
            done.push((todo[number], summary));
            if marks { self.folder.mark((self.elapsed)()) } else { Ok(()) }
        };
        let pool = Pool { worlds: self.worlds, watch: self.watch };
        pool.run(&jobs, queue, self.threads, part, &keep)?;
        Ok(into_inner(done))
    }

    /// Returns the summary of the points of `plan`, all of which are `done`.
    fn summary(&self, plan: &Plan, done: &Done, deterministic: bool) -> Summary {
        let points = points_of(plan, done);
        let wall_s = self.folder.earlier_s() + (self.elapsed)();
        summary_of(plan, &points, self.threads, self.version, wall_s, deterministic)
    }

    /// Joins the points' files, writes the summary and the report, and renames the folder to its final name.
    /// `deterministic` says whether other seeds give the same runs.
    fn finish(&self, plan: &Plan, done: &Done, deterministic: bool) -> Result<Summary, StudyError> {
        let files: Vec<PointFiles> = plan.points().map(|point| self.folder.point(point)).collect();
        let place = |name: &str| self.folder.partial().join(name);
        merge(files.iter().map(|files| &files.flows), &place("flows.parquet"), Table::Flows)?;
        merge(files.iter().map(|files| &files.ports), &place("ports.parquet"), Table::Ports)?;
        write_all_links(plan, &place("links.parquet"))?;
        fct::write_all(plan, self.folder)?;

        let (summary, points) = (self.summary(plan, done, deterministic), points_of(plan, done));
        let scenario_toml = plan.to_toml();
        let fabric = match summary.sweep {
            Some(_) => None,
            None => Some(Fabric::of(self.folder.partial(), &summary, FABRIC_ROOM)?),
        };
        let report = ReportInput {
            summary: &summary,
            points: &points,
            fabric: fabric.as_ref(),
            scenario_toml: &scenario_toml,
            command: self.command,
        };
        self.folder.write("report.html", &render_report(&report))?;
        self.folder.write("summary.json", &summary.to_json())?;
        if let Some(table) = render_sweep_csv(&summary) {
            self.folder.write("sweep.csv", &table)?;
        }
        if plan.seeds != self.plan.seeds {
            self.folder.write(SCENARIO, &scenario_toml)?;
        }
        self.folder.complete()?;
        Ok(summary)
    }
}

/// Number of characters that links over time have in a report.
const FABRIC_ROOM: usize = 350_000;

/// Summaries of complete points.
type Done = BTreeMap<Point, PointSummary>;

/// Returns the summaries of the points of `plan` in its order, which does not depend on the threads.
fn points_of(plan: &Plan, done: &Done) -> Vec<PointSummary> {
    plan.points().filter_map(|point| done.get(&point).cloned()).collect()
}

/// Returns whether the second seed gives every series the same run as the first. Runs on a real network have no
/// fingerprint.
fn ignores_seeds(plan: &Plan, done: &Done) -> bool {
    let [first, second] = plan.seeds[..] else { return false };
    let fingerprint = |series, seed| done.get(&Point { series, seed }).map(|summary| &summary.run.fingerprint);
    let is_known = |fingerprint: &&String| fingerprint.bytes().any(|digit| digit != b'0');
    (0..plan.series.len()).all(|series| {
        let of_first = fingerprint(series, first).filter(is_known);
        of_first.is_some() && of_first == fingerprint(series, second)
    })
}

/// Returns the summary of a plan's points, which took `wall_s` seconds.
pub(crate) fn summary_of(
    plan: &Plan,
    points: &[PointSummary],
    threads: usize,
    version: &str,
    wall_s: f64,
    deterministic: bool,
) -> Summary {
    let info = StudyInfo {
        title: plan.title.clone(),
        scenario: plan.in_one_line(),
        threads,
        version: version.to_owned(),
        wall_s,
        deterministic,
        sweep: plan.grid.as_ref().map(sweep_of),
    };
    let series: Vec<SeriesInfo> = plan.series.iter().map(|series| series_info(plan, series)).collect();
    let mut summary = summarise(&info, &series, points);
    summary.warnings.extend(short_runs(plan, points));
    summary.warnings.extend(plan.warnings.iter().cloned());
    summary
}

/// Returns the grid as results name it.
fn sweep_of(grid: &Grid) -> Sweep {
    let json = |value: &_| serde_json::to_value(value).expect("values of scenarios are JSON");
    let axis = |axis: &GridAxis| SweepAxis {
        keys: axis.keys.clone(),
        values: axis.values.iter().map(|step| step.iter().map(json).collect()).collect(),
    };
    let point = |point: &GridPoint| SweepPoint { case: point.case.clone(), at: point.at.clone() };
    Sweep { axes: grid.axes.iter().map(axis).collect(), points: grid.points.iter().map(point).collect() }
}

/// Smallest length of a run in base round trips for meaningful means: queues, the reactions of congestion control and
/// pauses take several round trips each to develop.
const ROUND_TRIPS: f64 = 10.0;

/// Returns a warning about runs that are too short to reach a steady state, naming the shortest of them.
fn short_runs(plan: &Plan, points: &[PointSummary]) -> Option<String> {
    let short = plan.series.iter().filter_map(|series| {
        let base_rtt_us = series.network.base_rtt().as_us_f64();
        let own = points.iter().filter(|point| point.series == series.name);
        let longest_us = own.map(|point| point.run.delivery_us).fold(0.0, f64::max);
        let ran = points.iter().any(|point| point.series == series.name);
        let is_short = ran && series.world == World::Simulated && longest_us < ROUND_TRIPS * base_rtt_us;
        is_short.then_some((series.name.as_str(), longest_us, base_rtt_us))
    });
    let short: Vec<(&str, f64, f64)> = short.collect();
    let &(_, longest_us, base_rtt_us) = short.iter().min_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
    let names: Vec<&str> = short.iter().map(|&(name, ..)| name).collect();
    let who = if short.len() == plan.series.len() { "all series".to_owned() } else { all_of(&names) };
    Some(format!(
        "Runs of {who} are over within {longest_us:.1} us, less than {ROUND_TRIPS} round trips of {base_rtt_us:.1} us: queues \
         and congestion controls have not settled, so that the numbers are those of a beginning. Give more flows, or \
         more time."
    ))
}

/// Returns the loss recovery as verdicts name it: go-back-N behind switches that repair losses is NetRT.
fn recovery_of(scenario: &Scenario) -> &'static str {
    match scenario.transport.recovery_name() {
        "go-back-n" if scenario.switch.netrt.enabled => "netrt",
        name => name,
    }
}

/// Returns the groups of a workload, if it has any.
fn group_traits(workload: &WorkloadSummary) -> Option<GroupTraits> {
    workload.group?;
    let kind = match workload.kind {
        _ if workload.is_job() => GroupKind::Job,
        "incast" => GroupKind::Incast,
        _ => GroupKind::AllToAll,
    };
    Some(GroupTraits { workload: workload.key.clone(), kind })
}

fn series_info(plan: &Plan, series: &PlannedSeries) -> SeriesInfo {
    let scenario = &series.scenario;
    SeriesInfo {
        name: series.name.clone(),
        series: series.series.clone(),
        case: series.case.clone(),
        traits: SeriesTraits {
            pfc: scenario.switch.pfc.enabled,
            recovery: recovery_of(scenario).to_owned(),
            congestion: scenario.transport.congestion_name().to_owned(),
            acks: series.acks().to_owned(),
            control: series.control.clone(),
            groups: series.workloads.iter().filter_map(group_traits).collect(),
            ungrouped: series.workloads.iter().any(|workload| workload.group.is_none()),
        },
        cut: match series.is_endless {
            true => Cut::Always,
            false if plan.ends_as_built_in => Cut::BuiltIn,
            false => Cut::Written,
        },
    }
}
