//! A scenario in the real world: two processes, each with a software RNIC in a network namespace of its own, and a
//! device between them that loses packets as the scenario says.
//!
//! ```text
//!   SimConfig ─translate─> Trial ─exchange─> two processes (peer.rs) ─> messages that are done ─> FlowRow
//!                            └─────────────> Testbed ───────────────> what was lost ──────────> RunRecord
//! ```
//!
//! It answers as the simulator does ([`crate::Simulate`]): whatever is made of rows and records holds for both. Only
//! what both worlds can do is translated; the rest is refused by key.

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

/// The right to make network namespaces, for this process. Must be called while it has one thread.
///
/// # Errors
/// Where the kernel allows none; says what would help.
pub fn acquire() -> io::Result<()> {
    selvedge_dataplane::impair::acquire().map(drop)
}

/// Whether the real world can do what a plan's runs in it ask for.
///
/// # Errors
/// The first thing that it cannot, by key.
pub fn check(plan: &Plan) -> Result<(), StudyError> {
    for point in plan.points().filter(|point| plan.series[point.series].world == World::Real) {
        translate::translate(&plan.config(point), plan.library(point))
            .map_err(|error| StudyError::refused(&plan.series[point.series].name, point.seed, &error))?;
    }
    Ok(())
}

/// Runs scenarios between two processes of `program`, which calls [`serve`] when it is given `words`. [`acquire`] comes
/// first. One at a time: they share this machine.
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
        conduct::conduct(&trial, program, words, observer)
            .map_err(|error| ConfigError::new("", format!("in the real world: {error}")))
    }
}
