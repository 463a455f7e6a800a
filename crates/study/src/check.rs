//! Figures against what their papers claim.

use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, io};

use selvedge_results::CheckedFigure;
use selvedge_scenario::Plan;

use crate::run::{into_inner, lock};
use crate::{Batch, Completed, Figure, StudyError, Watch, Worlds};

/// Figures, and how to run them together: on all cores, without results folders, what several of them need once.
pub struct FigureCheck<'a> {
    /// What to run.
    pub figures: &'a [Figure],
    /// On how many threads; at least 1.
    pub threads: usize,
    /// What runs their series.
    pub worlds: Worlds<'a>,
    /// Who is told, and may say stop.
    pub watch: &'a dyn Watch,
    /// Seconds since the check began.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Version of the program.
    pub version: &'a str,
}

/// How a check ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Checked {
    /// All figures, in their order.
    Complete(Vec<CheckedFigure>),
    /// Somebody said stop.
    Interrupted {
        /// Runs that were done.
        done: usize,
        /// All different runs.
        of: usize,
    },
}

impl FigureCheck<'_> {
    /// Runs all figures; calls `complete` with each as soon as its last run is done, from several threads.
    ///
    /// # Errors
    /// A run that the simulator refuses, or temporary files that cannot be written.
    pub fn run(&self, complete: &(dyn Fn(&CheckedFigure) + Sync)) -> Result<Checked, StudyError> {
        let plans: Vec<Plan> = self.figures.iter().map(|figure| figure.plan.clone()).collect();
        let scratch = Scratch::new()?;
        let done: Mutex<Vec<Option<CheckedFigure>>> = Mutex::new(vec![None; plans.len()]);
        let batch = Batch {
            plans: &plans,
            scratch: &scratch.0,
            threads: self.threads,
            worlds: self.worlds,
            watch: self.watch,
            elapsed: self.elapsed,
            version: self.version,
        };
        let ended = batch.run(&|Completed { plan, summary, shared }| {
            let checked = self.figures[plan].checked(&summary, shared);
            complete(&checked);
            lock(&done)[plan] = Some(checked);
        })?;
        if ended.done < ended.runs {
            return Ok(Checked::Interrupted { done: ended.done, of: ended.runs });
        }
        Ok(Checked::Complete(into_inner(done).into_iter().flatten().collect()))
    }
}

/// A folder for temporary files, which goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, StudyError> {
        let folder = std::env::temp_dir();
        let mut number = 0;
        loop {
            // A folder that is there is somebody else's: another thread's, or another container's with the same number.
            let path = folder.join(format!("selvedge-check-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(StudyError::io(&path, "make this folder", &error)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody knows the folder; what cannot be removed is the system's to clear.
        let _ = fs::remove_dir_all(&self.0);
    }
}
