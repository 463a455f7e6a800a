//! Execution of points on a pool of threads.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use selvedge_results::{Labels, PointFiles, PointRecorder, PointSummary};
use selvedge_scenario::{Plan, PlannedSeries, Point, World};
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig, port_infos};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RankRow, RunRecord};
use selvedge_traces::TraceStatus;
use selvedge_units::{Bytes, Instant};

use crate::queue::Queue;
use crate::text::bytes;
use crate::{ResultsFolder, StudyError, Watch};

/// The simulator, as `selvedge_sim::run` and `run_recorded`; tests replace it with something faster.
pub type Simulate = dyn Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
    + Sync;

/// The functions that run simulated series and series on a real network.
#[derive(Clone, Copy)]
pub struct Worlds<'a> {
    /// Function that runs simulated series.
    pub simulated: &'a Simulate,
    /// Function that runs series on a real network; the simulator again if there are none.
    pub real: &'a Simulate,
}

/// One run: a point of a plan, and its files.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) point: Point,
    /// Labels of the run's rows.
    pub(crate) labels: Labels,
    pub(crate) files: PointFiles,
    /// Folder whose marker says what to trace, and the program's version.
    pub(crate) traced: Option<(&'a ResultsFolder, &'a str)>,
    /// Estimated work, and estimated bytes that receivers will accept; `None` without an estimate.
    pub(crate) expected: Option<(f64, f64)>,
}

impl Job<'_> {
    /// Returns the approximate work: the estimate, or the bytes that the flows carry if known.
    fn weight(&self) -> f64 {
        if let Some((work, _)) = self.expected {
            return work.max(1.0);
        }
        let series = &self.plan.series[self.point.series];
        let mean = series.workloads.iter().map(|workload| workload.mean_size).fold(1.0, f64::max);
        series.flows.map_or(1.0, |flows| flows as f64 * mean)
    }

    /// Returns the bytes that receivers will accept, if known.
    fn payload(&self) -> Option<f64> {
        let series = &self.plan.series[self.point.series];
        let of_one = match &series.workloads[..] {
            [only] => series.flows.map(|flows| flows as f64 * only.mean_size),
            _ => None,
        };
        self.expected.map(|(_, payload)| payload).or(of_one).filter(|&payload| payload > 0.0)
    }
}

/// State that all threads share.
pub(crate) struct Pool<'a> {
    pub(crate) worlds: Worlds<'a>,
    pub(crate) watch: &'a dyn Watch,
}

/// Function called with each run's number and summary, from several threads.
pub(crate) type OnComplete<'a> = dyn Fn(usize, PointSummary) -> Result<(), StudyError> + Sync + 'a;

impl Pool<'_> {
    /// Runs `jobs` on `threads` threads in the order of `queue`. With fewer jobs than threads, each run gets several
    /// threads. Stops early on request or when a run fails. `part` is the jobs' part of the whole task, within 0 to 1.
    pub(crate) fn run(
        &self,
        jobs: &[Job<'_>],
        queue: Queue,
        threads: usize,
        part: Range<f64>,
        complete: &OnComplete<'_>,
    ) -> Result<(), StudyError> {
        let workers = threads.min(jobs.len()).max(1);
        let queue = Mutex::new(queue);
        let failure = Mutex::new(None);
        let failed = AtomicBool::new(false);
        let meter = Meter::new(jobs.iter().map(Job::weight).sum(), part);
        let worker = |index: usize| {
            let share = threads / workers + usize::from(index < threads % workers);
            while !failed.load(Ordering::Relaxed) && !self.watch.interrupted() {
                let Some((number, group)) = lock(&queue).next() else { return };
                let job = &jobs[number];
                let meter = PointMeter { all: &meter, weight: job.weight(), reported: 0.0, watch: self.watch };
                let done = self.run_point(job, share, meter, &failed).and_then(|summary| {
                    let Some(summary) = summary else { return Ok(()) };
                    lock(&queue).learn(group, summary.run.wall_s);
                    self.watch.on_point(job.plan, job.point, &summary);
                    complete(number, summary)
                });
                if let Err(error) = done {
                    failed.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            }
        };
        thread::scope(|scope| {
            let worker = &worker;
            for index in 0..workers {
                let spawned = thread::Builder::new().spawn_scoped(scope, move || worker(index));
                // With fewer threads than requested the runs take longer; without any they are impossible.
                if let (Err(error), 0) = (spawned, index) {
                    let message =
                        format!("cannot start a thread: {error}; let this process have more memory or threads");
                    lock(&failure).get_or_insert(StudyError::failure(message));
                }
            }
        });
        into_inner(failure).map_or(Ok(()), Err)
    }

    /// Runs one point; returns `None` if it was stopped.
    fn run_point(
        &self,
        job: &Job<'_>,
        threads: usize,
        meter: PointMeter<'_>,
        failed: &AtomicBool,
    ) -> Result<Option<PointSummary>, StudyError> {
        let (plan, point) = (job.plan, job.point);
        let series = &plan.series[point.series];
        let config = plan.config(point);
        let workloads: Vec<_> =
            series.workloads.iter().map(|workload| (workload.key.as_str(), workload.group)).collect();
        let recorder = PointRecorder::create(
            job.files.clone(),
            job.labels.clone(),
            point.seed,
            &port_infos(config.paths.graph()),
        )?
        .with_begin(series.begin())
        .with_workloads(&workloads);
        let parallel = Parallel::on(threads);
        let library = plan.library(point);
        let mut traces = match job.traced {
            Some((folder, version)) => folder.tracing().begin(plan, point, folder, &format!("selvedge {version}"))?,
            None => None,
        };
        let tracing = traces.as_ref().map(|(files, _)| Growing { status: files.status(), told: GROWN });
        let payload = job.payload();
        let mut observer =
            PointObserver { recorder, series, meter, failed, tracing, payload, delivered: None, stopped: false };
        let recording = traces.as_mut().map(|(recorder, focus)| Recording { focus, recorder });
        let simulate = match series.world {
            World::Simulated => self.worlds.simulated,
            World::Real => self.worlds.real,
        };
        let record = catch_unwind(AssertUnwindSafe(|| simulate(&config, library, parallel, &mut observer, recording)));
        let record = record
            .map_err(|cause| crashed(series, point.seed, &*cause))?
            .map_err(|error| StudyError::refused(&series.name, point.seed, &error))?;
        let PointObserver { recorder, mut meter, tracing, stopped, .. } = observer;
        if stopped {
            if let Some((files, _)) = traces.filter(|_| tracing.is_some_and(|tracing| tracing.status.has_failed())) {
                files.finish(record.end)?;
            }
            // A full disk stops a run, too, but is an error rather than an interruption.
            return if self.watch.interrupted() || failed.load(Ordering::Relaxed) {
                Ok(None)
            } else {
                recorder.finish(&record).map(Some).map_err(StudyError::from)
            };
        }
        if let Some((traces, _)) = traces {
            for key in traces.finish(record.end)? {
                let (name, seed) = (&series.name, point.seed);
                self.watch.on_notice(&format!("--trace {key}: has not begun in series \"{name}\", seed {seed}"));
            }
        }
        let summary = recorder.finish(&record)?;
        meter.report(1.0);
        Ok(Some(summary))
    }
}

/// An observer that passes rows to the recorder and progress to the watch.
struct PointObserver<'a> {
    recorder: PointRecorder,
    series: &'a PlannedSeries,
    meter: PointMeter<'a>,
    failed: &'a AtomicBool,
    /// Growing traces, if any.
    tracing: Option<Growing>,
    /// Bytes that receivers will accept, if known.
    payload: Option<f64>,
    /// Bytes that receivers have accepted, if the run reports them.
    delivered: Option<f64>,
    stopped: bool,
}

/// Traces under construction, whose size is reported as it grows.
struct Growing {
    status: TraceStatus,
    /// Size in bytes at which the next report is due.
    told: u64,
}

/// Size of traces in bytes at the first report; later reports follow at each doubling.
const GROWN: u64 = 1_000_000_000;

impl PointObserver<'_> {
    /// Reports the size of the traces when due; returns whether they can be written.
    fn look_at_traces(&mut self, part: f64) -> bool {
        let Some(tracing) = &mut self.tracing else { return true };
        let written = tracing.status.written();
        if written >= tracing.told {
            tracing.told = written * 2;
            let (name, written) = (&self.series.name, bytes(written as f64));
            self.meter
                .watch
                .on_notice(&format!("traces of {name} take {written} after {:.0} % of the run", part * 100.0));
        }
        !tracing.status.has_failed()
    }
}

impl Observer for PointObserver<'_> {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.recorder.on_flows(rows);
    }
    fn on_ranks(&mut self, rows: &[RankRow]) {
        self.recorder.on_ranks(rows);
    }
    fn on_ports(&mut self, rows: &[PortRow]) {
        self.recorder.on_ports(rows);
    }
    fn on_delivered(&mut self, payload: Bytes) {
        self.delivered = Some(payload.get() as f64);
    }
    fn on_progress(&mut self, now: Instant, finished: u64) -> bool {
        // Delivered bytes measure progress. Finished flows do if bytes are unknown: a few large flows end late.
        let of_bytes = self.delivered.zip(self.payload).map(|(delivered, all)| delivered / all);
        let of_flows = self.series.flows.map(|flows| finished as f64 / flows.max(1) as f64);
        let of_time = self.series.scenario.stop.time.map(|end| now.as_us_f64() / end.as_us_f64());
        let part = of_bytes.or(of_flows).unwrap_or(0.0).max(of_time.unwrap_or(0.0));
        // The run reports its completion itself.
        self.meter.report(part.min(NEARLY));
        let on = self.recorder.on_progress(now, finished)
            && !self.meter.watch.interrupted()
            && !self.failed.load(Ordering::Relaxed)
            && self.look_at_traces(part);
        self.stopped |= !on;
        on
    }
}

/// Progress of the whole task.
struct Meter {
    /// Total weight of all jobs.
    weight: f64,
    /// The jobs' part of the whole task, within 0 to 1.
    part: Range<f64>,
    /// Progress of the jobs, in units of 1 / [`WHOLE`].
    done: AtomicU64,
}

/// Largest progress of a run that is reported before its end.
const NEARLY: f64 = 0.999;
/// Value of `done` when all jobs are complete.
const WHOLE: f64 = 1e12;

impl Meter {
    fn new(weight: f64, part: Range<f64>) -> Self {
        Self { weight, part, done: AtomicU64::new(0) }
    }
    /// Adds a part of a job of this weight; returns the progress of the whole task.
    fn add(&self, weight: f64, part: f64) -> f64 {
        let added = (part * weight / self.weight * WHOLE) as u64;
        let done = (self.done.fetch_add(added, Ordering::Relaxed) + added) as f64 / WHOLE;
        // Corrects rounding errors, so that complete jobs amount to the whole.
        let done = (done * 1e6).round() / 1e6;
        self.part.start + done * (self.part.end - self.part.start)
    }
}

/// Progress of one run within the [`Meter`].
struct PointMeter<'a> {
    all: &'a Meter,
    weight: f64,
    reported: f64,
    watch: &'a dyn Watch,
}

impl PointMeter<'_> {
    /// Reports that this fraction of the run is done.
    fn report(&mut self, fraction: f64) {
        let now = fraction.clamp(0.0, 1.0);
        if now > self.reported {
            self.watch.on_progress(self.all.add(self.weight, now - self.reported));
            self.reported = now;
        }
    }
}

fn crashed(series: &PlannedSeries, seed: u64, cause: &(dyn std::any::Any + Send)) -> StudyError {
    let text = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied());
    StudyError::failure(format!(
        "series \"{}\", seed {seed}: the simulator failed ({}); this is a bug in it: please report it with the scenario",
        series.name,
        text.unwrap_or("no message")
    ))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
