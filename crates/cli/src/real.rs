//! Scenarios on real hosts.

use selvedge_scenario::Plan;
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig};
use selvedge_telemetry::{Observer, RunRecord};

use crate::output::Failure;

/// Name of the command that runs one end of a trial.
#[cfg(target_os = "linux")]
const END: &str = "trial-end";

/// Acquires the right to make network namespaces, which requires a process with a single thread.
#[cfg(target_os = "linux")]
pub(crate) fn acquire() -> Result<(), String> {
    selvedge_study::real::acquire().map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn acquire() -> Result<(), String> {
    Err("the real world needs Linux".to_owned())
}

/// Checks that real hosts can run `plan`, before anything is written.
#[cfg(target_os = "linux")]
pub(crate) fn check(plan: &Plan) -> Result<(), Failure> {
    Ok(selvedge_study::real::check(plan)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn check(_: &Plan) -> Result<(), Failure> {
    Ok(())
}

/// Runs a trial between two processes of this program.
#[cfg(target_os = "linux")]
pub(crate) fn run()
-> impl Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
+ Sync {
    |config, library, parallel, observer, recording| {
        let program = std::env::current_exe()
            .map_err(|error| ConfigError::new("", format!("cannot find this program again: {error}")))?;
        selvedge_study::real::run(&program, &[END])(config, library, parallel, observer, recording)
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run()
-> impl Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
+ Sync {
    |_, _, _, _, _| Err(ConfigError::new("", "the real world needs Linux"))
}

/// Runs one end of a trial.
#[cfg(target_os = "linux")]
pub(crate) fn end() -> Result<(), Failure> {
    selvedge_study::real::serve().map_err(|error| Failure::outcome(error.to_string()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end() -> Result<(), Failure> {
    Err(Failure::outcome("the real world needs Linux"))
}
