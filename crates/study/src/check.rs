//! Checks of figures against the claims of their papers.

use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, io};

use selvedge_results::{CheckedFigure, Summary};
use selvedge_scenario::Plan;

use crate::batch::KnownRuns;
use crate::run::{into_inner, lock};
use crate::seeds::add_seeds;
use crate::{Batch, Completed, Figure, StudyError, Watch, Worlds};

/// Several figures to be checked together: on all cores, without results folders, and with shared runs done once.
pub struct FigureCheck<'a> {
    /// Figures to check.
    pub figures: &'a [Figure],
    /// Number of threads; at least 1.
    pub threads: usize,
    /// Functions that run the series.
    pub worlds: Worlds<'a>,
    /// Receiver of progress, which may interrupt the check.
    pub watch: &'a dyn Watch,
    /// Function that returns the seconds since the check began.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Version of the program.
    pub version: &'a str,
}

/// The result of a check.
#[derive(Clone, PartialEq, Debug)]
pub enum Checked {
    /// All figures, in their order.
    Complete(Vec<CheckedFigure>),
    /// The check was interrupted.
    Interrupted {
        /// Number of runs done.
        done: usize,
        /// Number of different runs.
        of: usize,
    },
}

impl FigureCheck<'_> {
    /// Runs all figures; calls `complete` with each as soon as its last run is done, from several threads.
    ///
    /// # Errors
    /// Returns an error if the simulator refuses a run, or temporary files cannot be written.
    pub fn run(&self, complete: &(dyn Fn(&CheckedFigure) + Sync)) -> Result<Checked, StudyError> {
        let scratch = Scratch::new()?;
        let done: Mutex<Vec<Option<CheckedFigure>>> = Mutex::new(vec![None; self.figures.len()]);
        // Figures with undecided claims continue with more seeds, together, as often as needed.
        let mut open: Vec<Open> = (0..self.figures.len()).map(|figure| Open::new(figure, self.figures)).collect();
        let mut known = KnownRuns::new();
        let (mut finished, mut runs, mut part) = (0, 0, 0.0..1.0);
        while !open.is_empty() {
            let plans: Vec<Plan> = open.iter().map(|open| open.plan.clone()).collect();
            let batch = Batch {
                plans: &plans,
                scratch: &scratch.0,
                threads: self.threads,
                worlds: self.worlds,
                watch: self.watch,
                elapsed: self.elapsed,
                version: self.version,
                known: &known,
                part,
            };
            let next: Mutex<Vec<(Open, KnownRuns)>> = Mutex::new(Vec::new());
            let ended = batch.run(&|Completed { plan, summary, shared, points }| {
                let Open { figure, shared: before, .. } = open[plan];
                let shared = before + shared;
                match self.with_more_seeds(&open[plan], &summary) {
                    Some(plan) => lock(&next).push((Open { figure, plan, shared }, points)),
                    None => {
                        let checked = self.figures[figure].checked(&summary, shared);
                        complete(&checked);
                        lock(&done)[figure] = Some(checked);
                    }
                }
            })?;
            (finished, runs) = (finished + ended.done, runs + ended.runs);
            if ended.done < ended.runs {
                return Ok(Checked::Interrupted { done: finished, of: runs });
            }
            let mut next = into_inner(next);
            // Sorted, so that the order does not depend on the threads.
            next.sort_by_key(|(open, _)| open.figure);
            (open, part) = (Vec::new(), 1.0..1.0);
            for (one, points) in next {
                open.push(one);
                known.extend(points);
            }
        }
        Ok(Checked::Complete(into_inner(done).into_iter().flatten().collect()))
    }

    /// Returns the plan of a figure with more seeds, if the figure needs more and permits them.
    fn with_more_seeds(&self, open: &Open, summary: &Summary) -> Option<Plan> {
        let figure = &self.figures[open.figure];
        let most = figure.max_seeds().filter(|_| figure.needs_seeds(summary))?;
        let (mut plan, before) = (open.plan.clone(), open.plan.seeds.len());
        let more = add_seeds(&mut plan.seeds, most);
        (more > 0).then(|| {
            self.watch.on_notice(&format!("{}: not decided with {before} seeds: {more} more", figure.folder.display()));
            plan
        })
    }
}

/// A figure that still has to run.
struct Open {
    /// Index of the figure in [`FigureCheck::figures`].
    figure: usize,
    /// Plan of the figure with all seeds so far.
    plan: Plan,
    /// Number of the figure's runs so far that another figure had requested before.
    shared: usize,
}

impl Open {
    fn new(figure: usize, all: &[Figure]) -> Self {
        Self { figure, plan: all[figure].plan.clone(), shared: 0 }
    }
}

/// A folder for temporary files, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, StudyError> {
        let folder = std::env::temp_dir();
        let mut number = 0;
        loop {
            // An existing folder belongs to another thread, or to another container with an equal process number.
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
        // An error is ignored: the folder is temporary, and the system clears it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
