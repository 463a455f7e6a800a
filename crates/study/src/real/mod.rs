//! Runs of a scenario on a real network: two processes, each with a software RNIC in a network namespace of its own,
//! and between them the scenario's switches and links, which carry their frames as those of `selvedge lab` do.
//!
//! ```text
//!   SimConfig ─translate─> Trial ─exchange─> two processes (peer.rs) ────> messages that are done ─> FlowRow
//!                            └─────────────> switches (between.rs) ──────> what they did ──────────> RunRecord
//! ```
//!
//! The interface is that of the simulator ([`crate::Simulate`]): everything made of rows and records works for both.
//! Only features that both support are translated; other keys are refused.

mod between;
mod conduct;
mod exchange;
mod peer;
mod translate;

use std::io;
use std::path::Path;

use selvedge_scenario::{Plan, World};
use selvedge_sim::record::Recording;
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig};
use selvedge_telemetry::{Observer, RunRecord};

use crate::StudyError;

pub use peer::serve;

/// Acquires the right to make network namespaces for this process. Must be called while the process has one thread.
///
/// # Errors
/// Returns an error with advice if the kernel does not permit namespaces.
pub fn acquire() -> io::Result<()> {
    selvedge_dataplane::impair::acquire().map(drop)
}

/// Checks that the real network supports everything in a plan's runs on it.
///
/// # Errors
/// Returns an error about the first unsupported key.
pub fn check(plan: &Plan) -> Result<(), StudyError> {
    for point in plan.points().filter(|point| plan.series[point.series].world == World::Real) {
        translate::translate(&plan.config(point), plan.library(point))
            .map_err(|error| StudyError::refused(&plan.series[point.series].name, point.seed, &error))?;
    }
    Ok(())
}

/// Returns a function that runs scenarios between two processes of `program`, which calls [`serve`] when started with
/// `words`. [`acquire`] must be called first. Runs take place one at a time, because they share this machine.
pub fn run<'a>(
    program: &'a Path,
    words: &'a [&'a str],
) -> impl Fn(&SimConfig, &dyn Library, Parallel, &mut dyn Observer, Option<Recording<'_>>) -> Result<RunRecord, ConfigError>
+ Sync
+ 'a {
    move |config, library, _, observer, recording| {
        if recording.is_some() {
            return Err(ConfigError::new(
                "",
                "nothing is recorded in the real world: leave --trace and --trace-events out, or --real",
            ));
        }
        let trial = translate::translate(config, library)?;
        conduct::conduct(trial, program, words, observer)
            .map_err(|error| ConfigError::new("", format!("in the real world: {error}")))
    }
}
