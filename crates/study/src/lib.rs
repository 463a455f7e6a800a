//! From a plan to a results folder.
//!
//! A [`Study`] runs the points of a plan on a pool of threads, each point into files of its own in
//! a folder that is marked as unfinished (`<name>.partial`). When all are there it joins them,
//! writes the summary and the report, and renames the folder: results appear whole or not at all.
//! What was interrupted continues from the points that are complete.
//!
//! A [`Batch`] runs many plans for their summaries alone, and what they have in common once.
//!
//! Reads no clock and prints nothing: who calls it says how long it took, whether to stop, and what
//! to show ([`Watch`]).
#![forbid(unsafe_code)]

mod batch;
mod error;
mod fct;
mod folder;
mod queue;
mod run;
mod study;
mod trace;

pub use batch::{Batch, Completed, Ended};
pub use error::StudyError;
pub use folder::{Marker, ResultsFolder, free_name};
pub use run::Simulate;
pub use study::{Outcome, Study, Watch};
pub use trace::Tracing;
