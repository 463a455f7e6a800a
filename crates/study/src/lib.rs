//! From a plan to a results folder.
//!
//! A [`Study`] runs the points of a plan on a pool of threads, each point into files of its own in
//! a folder that is marked as unfinished (`<name>.partial`). When all are there it joins them,
//! writes the summary and the report, and renames the folder: results appear whole or not at all.
//! What was interrupted continues from the points that are complete.
//!
//! On Linux, what two hosts do over one link can be run in the real world, too (`real`): the same rows come of it.
//!
//! A [`Batch`] runs many plans for their summaries alone, and what they have in common once. A [`FigureCheck`] does so
//! with [`Figures`], and holds what their papers claim against the results.
//!
//! Reads no clock and prints nothing: who calls it says how long it took, whether to stop, and what
//! to show ([`Watch`]).
#![forbid(unsafe_code)]

mod available;
mod batch;
mod calibration;
mod check;
mod claims;
mod compare;
mod error;
mod estimate;
mod fct;
mod figure;
mod finished;
mod folder;
mod labels;
mod queue;
#[cfg(target_os = "linux")]
pub mod real;
mod run;
mod seeds;
mod study;
mod text;
mod trace;
mod writable;

pub use available::Available;
pub use batch::{Batch, Completed, Ended, KnownRuns};
pub use calibration::measured_rate;
pub use check::{Checked, FigureCheck};
pub use claims::ClaimsFiles;
pub use compare::Contrast;
pub use error::StudyError;
pub use estimate::{SeriesEstimate, StudyEstimate};
pub use figure::{Figure, Figures};
pub use finished::Finished;
pub use folder::{Marker, ResultsFolder, free_name};
pub use run::{Simulate, Worlds};
pub use study::{Outcome, Study, Watch};
pub use text::{amount, bytes, span};
pub use trace::Tracing;
pub use writable::check_writable;
