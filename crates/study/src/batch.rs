//! Runs of many plans for their summaries only, without results folders.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use selvedge_results::{PointFiles, PointSummary, Summary};
use selvedge_scenario::{Plan, Point};

use crate::labels::labels;
use crate::queue::Queue;
use crate::run::{Job, Pool, Worlds, lock};
use crate::study::summary_of;
use crate::{StudyError, Watch};

/// Several plans whose runs share all cores, plan by plan, without waiting in between. Runs that are equal in several
/// plans are done once.
pub struct Batch<'a> {
    /// Plans to run.
    pub plans: &'a [Plan],
    /// Folder for temporary files of the runs; empty again afterwards.
    pub scratch: &'a Path,
    /// Number of threads; at least 1.
    pub threads: usize,
    /// Functions that run the series.
    pub worlds: Worlds<'a>,
    /// Receiver of progress, which may interrupt the batch.
    pub watch: &'a dyn Watch,
    /// Function that returns the seconds since the batch began.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Version of the program.
    pub version: &'a str,
    /// Summaries of runs that are done already.
    pub known: &'a KnownRuns,
    /// The batch's part of the whole task, within 0 to 1.
    pub part: Range<f64>,
}

/// Summaries of runs, keyed by the digest of the series and the seed.
pub type KnownRuns = BTreeMap<(u64, u64), PointSummary>;

/// One plan of a batch with all its runs done.
#[derive(Debug)]
pub struct Completed {
    /// Index of the plan in [`Batch::plans`].
    pub plan: usize,
    /// Summary of the plan; its wall time is the batch's so far.
    pub summary: Summary,
    /// Number of runs that an earlier plan had requested.
    pub shared: usize,
    /// Summaries of all runs of the plan, including those already known.
    pub points: KnownRuns,
}

/// The end of a batch: number of runs required, and number done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Number of runs done.
    pub done: usize,
    /// Number of different runs.
    pub runs: usize,
    /// Number of points of all plans: runs, and their duplicates.
    pub points: usize,
}

impl Batch<'_> {
    /// Runs all plans; calls `complete` for each plan as soon as its last run is done, from several threads.
    ///
    /// # Errors
    /// Returns an error if the simulator refuses a run, or files cannot be written.
    pub fn run(&self, complete: &(dyn Fn(Completed) + Sync)) -> Result<Ended, StudyError> {
        let Runs { first, of_plan } = Runs::of(self.plans, self.known);
        let of_known = (0..of_plan.len()).filter(|&plan| of_plan[plan].iter().all(Option::is_none));
        of_known.filter_map(|plan| self.completed(plan, &of_plan[plan], &first, &[])).for_each(complete);
        let files = |number: usize| PointFiles::new(self.scratch, number, 0);
        let labels: Vec<_> = self.plans.iter().map(labels).collect();
        let job = |(number, &(plan, point)): (usize, &(usize, Point))| Job {
            plan: &self.plans[plan],
            point,
            labels: labels[plan][point.series].clone(),
            files: files(number),
            traced: None,
            expected: None,
        };
        let jobs: Vec<Job<'_>> = first.iter().enumerate().map(job).collect();
        let mut groups = BTreeMap::new();
        let queue = Queue::new(first.iter().map(|&(plan, point)| {
            let next = groups.len();
            (plan, *groups.entry((plan, point.series)).or_insert(next))
        }));
        let done: Mutex<Vec<Option<PointSummary>>> = Mutex::new(vec![None; jobs.len()]);
        let keep = |number: usize, summary: PointSummary| {
            let PointFiles { flows, ports, summary: file } = files(number);
            for path in [flows, ports, file] {
                fs::remove_file(&path).map_err(|error| StudyError::io(&path, "remove it", &error))?;
            }
            let ready: Vec<Completed> = {
                let mut done = lock(&done);
                done[number] = Some(summary);
                let asked = (0..of_plan.len()).filter(|&plan| of_plan[plan].contains(&Some(number)));
                asked.filter_map(|plan| self.completed(plan, &of_plan[plan], &first, &done)).collect()
            };
            ready.into_iter().for_each(complete);
            Ok(())
        };
        let pool = Pool { worlds: self.worlds, watch: self.watch };
        pool.run(&jobs, queue, self.threads, self.part.clone(), &keep)?;
        let finished = lock(&done).iter().flatten().count();
        Ok(Ended { done: finished, runs: jobs.len(), points: of_plan.iter().map(Vec::len).sum() })
    }

    /// Returns the plan's results, if all its runs are done.
    fn completed(
        &self,
        plan: usize,
        runs: &[Option<usize>],
        first: &[(usize, Point)],
        done: &[Option<PointSummary>],
    ) -> Option<Completed> {
        let own = &self.plans[plan];
        let points: Option<Vec<PointSummary>> = own
            .points()
            .zip(runs)
            .map(|(point, &run)| {
                // The same run may have another name in another plan.
                let planned = &own.series[point.series];
                let known = || self.known.get(&(planned.digest(), point.seed)).cloned();
                let summary = run.map_or_else(known, |run| done[run].clone())?;
                Some(PointSummary { series: planned.name.clone(), ..summary })
            })
            .collect();
        let points = points?;
        let summary = summary_of(own, &points, self.threads, self.version, (self.elapsed)(), false);
        let shared = runs.iter().flatten().filter(|&&run| first[run].0 != plan).count();
        let keys = own.points().map(|point| (own.series[point.series].digest(), point.seed));
        Some(Completed { plan, summary, shared, points: keys.zip(points).collect() })
    }
}

/// The different runs of several plans.
struct Runs {
    /// Plan and point that first requested each run.
    first: Vec<(usize, Point)>,
    /// Index of the run of each point of each plan; `None` if its summary is known.
    of_plan: Vec<Vec<Option<usize>>>,
}

impl Runs {
    fn of(plans: &[Plan], known: &KnownRuns) -> Self {
        let mut asked: BTreeMap<(u64, u64), Option<usize>> = BTreeMap::new();
        let mut first = Vec::new();
        let mut of_plan = Vec::new();
        for (number, plan) in plans.iter().enumerate() {
            let digests: Vec<u64> = plan.series.iter().map(selvedge_scenario::PlannedSeries::digest).collect();
            let runs = plan.points().map(|point| {
                let key = (digests[point.series], point.seed);
                let run = asked.entry(key).or_insert_with(|| {
                    let run = (!known.contains_key(&key)).then_some(first.len());
                    first.extend(run.map(|_| (number, point)));
                    run
                });
                *run
            });
            of_plan.push(runs.collect());
        }
        Self { first, of_plan }
    }
}
