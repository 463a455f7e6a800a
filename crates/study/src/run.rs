//! Points on threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use selvedge_results::{PointRecorder, PointSummary};
use selvedge_scenario::{Plan, PlannedSeries, Point};
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig, port_infos};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RunRecord};
use selvedge_units::Instant;

use crate::queue::Queue;
use crate::{ResultsFolder, StudyError, Watch};

/// The simulator, as `selvedge_sim::run` and `run_recorded`; tests put something quicker in its place.
pub type Simulate = dyn Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
    + Sync;

/// What all threads share.
pub(crate) struct Pool<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a ResultsFolder,
    pub(crate) simulate: &'a Simulate,
    pub(crate) watch: &'a dyn Watch,
    pub(crate) version: &'a str,
    pub(crate) elapsed: &'a (dyn Fn() -> f64 + Sync),
}

impl Pool<'_> {
    /// Runs `todo` on `threads` threads, and returns what is complete. With fewer points than
    /// threads, each run gets several. Stops early when somebody asks for it or a point fails.
    pub(crate) fn run(&self, todo: &[Point], threads: usize) -> Result<Vec<(Point, PointSummary)>, StudyError> {
        let workers = threads.min(todo.len()).max(1);
        let queue = Mutex::new(Queue::new(todo.iter().copied(), self.plan.series.len()));
        let done = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
        let failed = AtomicBool::new(false);
        let meter = Meter::new(self.plan.points().count(), todo.len());
        let stop = |error| {
            failed.store(true, Ordering::Relaxed);
            lock(&failure).get_or_insert(error);
        };
        let worker = |index: usize| {
            let share = threads / workers + usize::from(index < threads % workers);
            while !failed.load(Ordering::Relaxed) && !self.watch.interrupted() {
                let Some(point) = lock(&queue).next() else { return };
                let meter = PointMeter { all: &meter, reported: 0, watch: self.watch };
                match self.run_point(point, share, meter, &failed) {
                    Ok(Some(summary)) => {
                        lock(&queue).learn(point.series, summary.run.wall_s);
                        self.watch.on_point(self.plan, point, &summary);
                        let mut done = lock(&done);
                        done.push((point, summary));
                        if let Err(error) = self.folder.mark((self.elapsed)()) {
                            stop(error);
                        }
                    }
                    Ok(None) => return,
                    Err(error) => stop(error),
                }
            }
        };
        thread::scope(|scope| {
            let worker = &worker;
            for index in 0..workers {
                scope.spawn(move || worker(index));
            }
        });
        match into_inner(failure) {
            Some(error) => Err(error),
            None => Ok(into_inner(done)),
        }
    }

    /// Runs one point; `None` when it was stopped.
    fn run_point(
        &self,
        point: Point,
        threads: usize,
        meter: PointMeter<'_>,
        failed: &AtomicBool,
    ) -> Result<Option<PointSummary>, StudyError> {
        let series = &self.plan.series[point.series];
        let config = self.plan.config(point);
        let files = self.folder.point(point);
        let recorder = PointRecorder::create(files, &series.name, point.seed, &port_infos(&config.graph))?;
        let mut observer = PointObserver { recorder, series, meter, failed, stopped: false };
        let parallel = Parallel { threads, partitions: threads };
        let library = self.plan.library(point);
        let mut traces =
            self.folder.tracing().begin(self.plan, point, self.folder, &format!("selvedge {}", self.version))?;
        let recording = traces.as_mut().map(|(recorder, focus)| Recording { focus, recorder });
        let record =
            catch_unwind(AssertUnwindSafe(|| (self.simulate)(&config, library, parallel, &mut observer, recording)));
        let record = record
            .map_err(|cause| crashed(series, point.seed, &*cause))?
            .map_err(|error| StudyError::refused(&series.name, point.seed, &error))?;
        let PointObserver { recorder, mut meter, stopped, .. } = observer;
        if stopped {
            // A full disk stops a run too; then this is an error, not an interruption.
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

/// Hands rows to the recorder and progress to whoever watches.
struct PointObserver<'a> {
    recorder: PointRecorder,
    series: &'a PlannedSeries,
    meter: PointMeter<'a>,
    failed: &'a AtomicBool,
    stopped: bool,
}

impl Observer for PointObserver<'_> {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.recorder.on_flows(rows);
    }
    fn on_ports(&mut self, rows: &[PortRow]) {
        self.recorder.on_ports(rows);
    }
    fn on_progress(&mut self, now: Instant, finished: u64) -> bool {
        let of_flows = self.series.flows.map(|flows| finished as f64 / flows.max(1) as f64);
        let of_time = self.series.scenario.stop.time.map(|end| now.as_us_f64() / end.as_us_f64());
        self.meter.report(of_flows.unwrap_or(0.0).max(of_time.unwrap_or(0.0)));
        let on = self.recorder.on_progress(now, finished)
            && !self.meter.watch.interrupted()
            && !self.failed.load(Ordering::Relaxed);
        self.stopped |= !on;
        on
    }
}

/// How much of the study is done, in millionths of a point.
struct Meter {
    points: u64,
    done: AtomicU64,
}

const POINT: f64 = 1e6;

impl Meter {
    fn new(points: usize, todo: usize) -> Self {
        Self { points: points as u64, done: AtomicU64::new((points - todo) as u64 * POINT as u64) }
    }
}

/// One point's part of the [`Meter`].
struct PointMeter<'a> {
    all: &'a Meter,
    reported: u64,
    watch: &'a dyn Watch,
}

impl PointMeter<'_> {
    /// This fraction of the point is done.
    fn report(&mut self, fraction: f64) {
        let now = (fraction.clamp(0.0, 1.0) * POINT) as u64;
        if now > self.reported {
            let before = self.all.done.fetch_add(now - self.reported, Ordering::Relaxed);
            let done = before + now - self.reported;
            self.reported = now;
            self.watch.on_progress(done as f64 / (self.all.points as f64 * POINT));
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
