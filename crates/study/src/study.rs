//! One study, from its plan to its report.

use std::sync::Mutex;

use selvedge_results::{
    Cut, GroupKind, GroupTraits, PointFiles, PointSummary, ReportInput, SeriesInfo, SeriesTraits, StudyInfo, Summary,
    Table, merge, render_report, summarise,
};
use selvedge_scenario::{Plan, PlannedSeries, Point, Scenario};
use selvedge_sim::workload::WorkloadSummary;

use crate::queue::Queue;
use crate::run::{Job, Pool, Worlds, into_inner, lock};
use crate::{ResultsFolder, StudyError, StudyEstimate, fct};

/// A plan and how to run it.
pub struct Study<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// Where to.
    pub folder: &'a ResultsFolder,
    /// On how many threads; at least 1.
    pub threads: usize,
    /// What runs its series.
    pub worlds: Worlds<'a>,
    /// Who is told, and may say stop.
    pub watch: &'a dyn Watch,
    /// Seconds since the study began.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Version of the program.
    pub version: &'a str,
    /// The command, for the report.
    pub command: &'a str,
    /// What its runs cost, for how much of it is done; `None`: by what the plan says of flows.
    pub estimate: Option<&'a StudyEstimate>,
}

/// Who is told how a study goes. Called from several threads.
pub trait Watch: Sync {
    /// This part of the study is done, 0 to 1.
    fn on_progress(&self, part: f64);
    /// A point is complete.
    fn on_point(&self, plan: &Plan, point: Point, summary: &PointSummary) {
        let _ = (plan, point, summary);
    }
    /// Something worth knowing happened.
    fn on_notice(&self, text: &str);
    /// Whether to stop.
    fn interrupted(&self) -> bool;
}

/// How a study ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The results are in their folder.
    Complete(Box<Summary>),
    /// Somebody said stop; what is complete stays for another time.
    Interrupted {
        /// Points that are complete.
        done: usize,
        /// All points.
        of: usize,
    },
}

impl Study<'_> {
    /// The points of `plan` that are not complete in `folder`.
    pub fn left(plan: &Plan, folder: &ResultsFolder) -> Vec<Point> {
        plan.points().filter(|&point| !folder.has(point)).collect()
    }

    /// Runs the points that are not complete yet, and finishes the results folder.
    ///
    /// # Errors
    /// A point that the simulator refuses, or files that cannot be written or read.
    pub fn run(&self) -> Result<Outcome, StudyError> {
        let mut complete: Vec<(Point, PointSummary)> = Vec::new();
        let mut todo = Vec::new();
        for point in self.plan.points() {
            match self.folder.finished(self.plan, point) {
                Ok(Some(summary)) => complete.push((point, summary)),
                Ok(None) => todo.push(point),
                Err(damage) => {
                    self.watch.on_notice(&damage);
                    todo.push(point);
                }
            }
        }
        let of = self.plan.points().count();
        complete.extend(self.simulated(&todo, complete.len() as f64 / of as f64)?);
        if complete.len() < of {
            self.folder.mark((self.elapsed)())?;
            return Ok(Outcome::Interrupted { done: complete.len(), of });
        }
        // In the plan's order, however the threads ran.
        complete.sort_by_key(|(point, _)| self.plan.points().position(|other| other == *point));
        let points: Vec<PointSummary> = complete.into_iter().map(|(_, summary)| summary).collect();
        self.finish(&points).map(|summary| Outcome::Complete(Box::new(summary)))
    }

    /// Runs `todo`, of the whole of which `before` is done; returns what is complete.
    fn simulated(&self, todo: &[Point], before: f64) -> Result<Vec<(Point, PointSummary)>, StudyError> {
        let job = |&point: &Point| Job {
            plan: self.plan,
            point,
            files: self.folder.point(point),
            traced: Some((self.folder, self.version)),
            expected: self.estimate.and_then(|estimate| estimate.of_run(point.series)),
        };
        let jobs: Vec<Job<'_>> = todo.iter().map(job).collect();
        let queue = Queue::new(todo.iter().map(|point| (0, point.series)));
        let done = Mutex::new(Vec::new());
        let keep = |number: usize, summary| {
            // One at a time, for the folder's sake.
            let mut done = lock(&done);
            done.push((todo[number], summary));
            self.folder.mark((self.elapsed)())
        };
        let pool = Pool { worlds: self.worlds, watch: self.watch };
        pool.run(&jobs, queue, self.threads, before, &keep)?;
        Ok(into_inner(done))
    }

    /// Joins the points' files, writes what is read by people, and gives the folder its name.
    fn finish(&self, points: &[PointSummary]) -> Result<Summary, StudyError> {
        let plan = self.plan;
        let files: Vec<PointFiles> = plan.points().map(|point| self.folder.point(point)).collect();
        let place = |name: &str| self.folder.partial().join(name);
        merge(files.iter().map(|files| &files.flows), &place("flows.parquet"), Table::Flows)?;
        merge(files.iter().map(|files| &files.ports), &place("ports.parquet"), Table::Ports)?;
        fct::write_all(plan, self.folder)?;

        let wall_s = self.folder.earlier_s() + (self.elapsed)();
        let summary = summary_of(plan, points, self.threads, self.version, wall_s);
        let scenario_toml = plan.to_toml();
        let report = ReportInput { summary: &summary, points, scenario_toml: &scenario_toml, command: self.command };
        self.folder.write("report.html", &render_report(&report))?;
        self.folder.write("summary.json", &summary.to_json())?;
        self.folder.complete()?;
        Ok(summary)
    }
}

/// The summary of a plan's points, which took `wall_s` seconds.
pub(crate) fn summary_of(plan: &Plan, points: &[PointSummary], threads: usize, version: &str, wall_s: f64) -> Summary {
    let info = StudyInfo {
        title: plan.title.clone(),
        scenario: plan.in_one_line(),
        threads,
        version: version.to_owned(),
        wall_s,
    };
    let series: Vec<SeriesInfo> = plan.series.iter().map(|series| series_info(plan, series)).collect();
    let mut summary = summarise(&info, &series, points);
    summary.warnings.extend(plan.warnings.iter().cloned());
    summary
}

/// What repairs losses, as verdicts name it: go-back-N behind switches that repair them is NetRT.
fn recovery_of(scenario: &Scenario) -> &'static str {
    match scenario.transport.recovery_name() {
        "go-back-n" if scenario.switch.netrt.enabled => "netrt",
        name => name,
    }
}

/// What the groups of a workload are, if it has any.
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
