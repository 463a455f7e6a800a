//! Execution of studies: from a plan to a results folder.
//!
//! A [`Study`] runs the points of a plan on a pool of threads, each point into files of its own in a folder that is
//! marked as unfinished (`<name>.partial`). When all points are complete, it joins their files, writes the summary and
//! the report, and renames the folder: results appear completely or not at all. An interrupted study continues from its
//! complete points.
//!
//! Figures whose series are real programs ([`ProgramFigure`]) run one program at a time.
//!
//! On Linux, RDMA operations between two hosts can also run on a real network (`real`), with equal kinds of rows as
//! result.
//!
//! A [`Batch`] runs many plans for their summaries only, and runs that they share once. A [`FigureCheck`] does this
//! with [`Figures`], and checks the claims of their papers against the results.
//!
//! Reads no clock and prints nothing: the caller supplies the elapsed time, decides whether to stop, and displays
//! progress ([`Watch`]).
#![forbid(unsafe_code)]

mod available;
mod batch;
mod calibration;
mod check;
mod claims;
mod clock;
mod compare;
mod error;
mod estimate;
mod fct;
mod figure;
mod finished;
mod folder;
mod labels;
#[cfg(target_os = "linux")]
mod programs;
mod queue;
#[cfg(target_os = "linux")]
pub mod real;
mod run;
mod seeds;
mod serve;
mod study;
mod text;
mod trace;
mod viewer;
mod writable;

pub use available::Available;
pub use batch::{Batch, Completed, Ended, KnownRuns};
pub use calibration::measured_rate;
pub use check::{Checked, FigureCheck};
pub use claims::ClaimsFiles;
pub use clock::{Stopwatch, timed_run};
pub use compare::Contrast;
pub use error::StudyError;
pub use estimate::{SeriesEstimate, StudyEstimate};
pub use figure::{Figure, Figures};
pub use finished::Finished;
pub use folder::{Marker, ResultsFolder, free_name};
#[cfg(target_os = "linux")]
pub use programs::{Measured, ProgramFigure};
pub use run::{Simulate, Worlds};
pub use serve::{Open, Opened, serve};
pub use study::{Outcome, Study, Watch};
pub use text::{amount, bytes, span};
pub use trace::Tracing;
pub use viewer::Viewer;
pub use writable::check_writable;
