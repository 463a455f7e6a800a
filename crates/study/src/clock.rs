//! Measurement of time: beside the data plane, the only module that reads clocks.

use std::time::Instant;

use cpu_time::{ProcessTime, ThreadTime};
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig, run, run_recorded};
use selvedge_telemetry::{Observer, RunRecord};

/// Wall time since the stopwatch was started.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    #[expect(clippy::disallowed_methods, reason = "whoever runs a study is told how long it took")]
    pub fn start() -> Self {
        Self(Instant::now())
    }
    /// Returns the wall time since the start in seconds.
    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Runs the simulator once and measures the time, in a study that has `threads` threads in all.
pub fn timed_run(
    threads: usize,
) -> impl Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
+ Sync {
    move |config, library, parallel, observer, recording| {
        let share = parallel.threads as f64 / threads as f64;
        let alone = parallel.threads == 1;
        let (wall, thread, process) = (Stopwatch::start(), ThreadTime::now(), ProcessTime::now());
        let mut record = match recording {
            None => run(config, library, parallel, observer),
            Some(Recording { focus, recorder }) => run_recorded(config, library, parallel, observer, focus, recorder),
        }?;
        record.wall_s = wall.seconds();
        // The threads inside one run are not counted; the run gets a share of the process's time equal to its share of
        // threads.
        let cpu = if alone { thread.elapsed().as_secs_f64() } else { process.elapsed().as_secs_f64() * share };
        record.cpu_s = cpu;
        Ok(record)
    }
}
