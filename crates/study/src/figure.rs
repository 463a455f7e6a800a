//! Figures: folders with a scenario, and a paper's claims about its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_results::{
    CheckedFigure, Expectations, FootprintNic, Footprints, Summary, check, check_smoke, measure, needs_seeds,
};
use selvedge_scenario::{Changes, NicUse, Plan, SchemeFacts, World};

use crate::StudyError;
use crate::folder::SCENARIO;
#[cfg(target_os = "linux")]
use crate::programs::{PROGRAMS, ProgramFigure};

/// Figures to run. All are read before the first runs, so that an error in the last one costs no time.
#[derive(Debug)]
pub struct Figures {
    /// Figures in the order of the given paths, and by name within each path.
    pub all: Vec<Figure>,
    /// Figures of real programs, in the order of the given paths.
    #[cfg(target_os = "linux")]
    pub programs: Vec<ProgramFigure>,
    /// Claims that cannot be checked on this machine, with their figures and the reason.
    pub skipped: Vec<String>,
}

/// A figure to run.
#[derive(Debug)]
pub struct Figure {
    /// Folder of the figure.
    pub folder: PathBuf,
    /// Plan of the figure's runs.
    pub plan: Plan,
    expectations: Expectations,
    /// State of the series on NICs or in switches, if claims are about it.
    state: Footprints,
    /// Whether the runs are too short to judge.
    smoke: bool,
}

impl Figures {
    /// Reads the figures in `paths`, at any depth; with `smoke`, shortened as the `[smoke]` of their scenarios says.
    /// `real` is called once to ask whether runs on a real network are possible, and only if some figure has such runs;
    /// if they are not possible, claims about them are skipped.
    ///
    /// # Errors
    /// Returns an error if one of the paths has no figure, or a figure cannot be read.
    pub fn read(paths: &[PathBuf], smoke: bool, real: impl Fn() -> Result<(), String>) -> Result<Self, StudyError> {
        let mut folders = Vec::new();
        for path in paths {
            let before = folders.len();
            find(path, &mut folders)?;
            if folders.len() == before {
                let message =
                    format!("no figure here; expected a folder with an {EXPECT} and a {SCENARIO} or {PROGRAMS}");
                return Err(StudyError::input(format!("{}: {message}", path.display())));
            }
        }
        let mut figures = Self {
            all: Vec::new(),
            #[cfg(target_os = "linux")]
            programs: Vec::new(),
            skipped: Vec::new(),
        };
        let mut answer = None;
        for folder in folders {
            figures.read_one(folder, smoke, || answer.get_or_insert_with(&real).clone())?;
        }
        Ok(figures)
    }

    /// Checks that the results of all figures fit into one folder, each under its name.
    ///
    /// # Errors
    /// Returns an error if two figures have equal names: one's results would replace the other's.
    pub fn check_apart(&self) -> Result<(), StudyError> {
        let mut known: BTreeMap<String, &Path> = BTreeMap::new();
        let folders = self.all.iter().map(|figure| &figure.folder);
        #[cfg(target_os = "linux")]
        let folders = folders.chain(self.programs.iter().map(|figure| &figure.folder));
        for folder in folders {
            let name = name_of(folder);
            if let Some(other) = known.insert(name.clone(), folder) {
                let (other, own) = (other.display(), folder.display());
                let message =
                    format!("its results and those of {other} would both be kept as {name}; check one of them");
                return Err(StudyError::input(format!("{own}: {message} at a time, or without --out")));
            }
        }
        Ok(())
    }

    fn read_one(
        &mut self,
        folder: PathBuf,
        smoke: bool,
        real: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), StudyError> {
        if folder.join(PROGRAMS).is_file() {
            return self.read_programs(&folder, smoke, real);
        }
        let path = folder.join(EXPECT);
        let text = fs::read_to_string(&path).map_err(|error| StudyError::io(&path, "read it", &error))?;
        let mut expectations = Expectations::parse(&text, &path.display().to_string()).map_err(StudyError::wrong)?;
        let changes = Changes { smoke, ..Changes::default() };
        let mut plan = Plan::from_file(&folder.join(SCENARIO), &changes).map_err(StudyError::wrong)?;
        if expectations.real {
            let worlds: &[World] = match real() {
                Ok(()) => &[World::Simulated, World::Real],
                Err(why) => {
                    let aside = expectations.set_aside(World::Real.case()).into_iter();
                    self.skipped.extend(aside.map(|claim| format!("{}: \"{claim}\": {why}", folder.display())));
                    &[World::Simulated]
                }
            };
            plan = plan.in_worlds(worlds).map_err(StudyError::wrong)?;
        }
        let series: Vec<_> = plan.series.iter().map(|series| (series.case.as_deref(), &*series.series)).collect();
        let state = expectations.footprint.as_ref().map_or_else(Footprints::default, |nic| count_state(&plan, nic));
        expectations.check_names(&series, &state).map_err(StudyError::wrong)?;
        self.all.push(Figure { folder, plan, expectations, state, smoke });
        Ok(())
    }
}

impl Figures {
    /// Reads a figure of programs, or says why it cannot run here.
    #[cfg(target_os = "linux")]
    fn read_programs(
        &mut self,
        folder: &Path,
        smoke: bool,
        real: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), StudyError> {
        let figure = ProgramFigure::read(folder, EXPECT, smoke)?;
        match figure.lacks().map_or_else(real, Err) {
            Ok(()) => self.programs.push(figure),
            Err(why) => {
                self.skipped.extend(figure.claims().map(|claim| format!("{}: \"{claim}\": {why}", folder.display())))
            }
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn read_programs(
        &mut self,
        folder: &Path,
        _: bool,
        real: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), StudyError> {
        self.skipped.extend(real().err().map(|why| format!("{}: {why}", folder.display())));
        Ok(())
    }
}

impl Figure {
    /// Returns the name for the figure's results: "irn-fig1" for "figures/irn/fig1".
    pub fn name(&self) -> String {
        name_of(&self.folder)
    }

    /// Returns the largest number of seeds to run if fewer leave claims undecided; `None` for the number in the plan. A
    /// smoke run decides nothing.
    pub fn max_seeds(&self) -> Option<usize> {
        self.expectations.max_seeds.filter(|&most| !self.smoke && most > self.plan.seeds.len())
    }

    /// Returns whether more seeds may decide a claim that these results leave undecided.
    pub fn needs_seeds(&self, summary: &Summary) -> bool {
        needs_seeds(&self.expectations, &self.state.added_to(summary))
    }

    /// Checks the claims against the results; `shared` is the number of runs that another figure had requested before.
    pub fn checked(&self, summary: &Summary, shared: usize) -> CheckedFigure {
        let Self { folder, plan, expectations, state, smoke } = self;
        let summary = state.added_to(summary);
        let check = if *smoke { check_smoke } else { check };
        CheckedFigure {
            figure: folder.display().to_string(),
            title: plan.title.clone(),
            smoke: *smoke,
            seeds: summary.seeds.len(),
            runs: summary.run.points.len(),
            shared,
            cpu_s: summary.run.cpu_s,
            claims: check(expectations, &summary),
            measured: measure(expectations, &summary),
            not_run: expectations.not_run.clone(),
        }
    }
}

/// Returns the name for the results of the figure in a folder: its last two parts.
pub(crate) fn name_of(folder: &Path) -> String {
    let last_two = folder.components().rev().take(2);
    let parts: Vec<String> = last_two.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("-")
}

/// Returns the state of the series of `plan`, as far as it is counted.
fn count_state(plan: &Plan, nic: &FootprintNic) -> Footprints {
    let FootprintNic { queue_pairs, work_requests, cache } = *nic;
    let nic = NicUse { cache, queue_pairs: queue_pairs.get().into(), work_requests: work_requests.into() };
    let mut state = Footprints::default();
    for series in &plan.series {
        if let Ok(scheme) = SchemeFacts::new(series, nic) {
            state.add(series.case.as_deref(), &series.series, scheme.numbers(nic));
        }
    }
    state
}

/// Collects the figures in `path`, at any depth, by name.
fn find(path: &Path, figures: &mut Vec<PathBuf>) -> Result<(), StudyError> {
    if path.join(EXPECT).is_file() {
        figures.push(path.to_owned());
        return Ok(());
    }
    if path.is_file() {
        return Err(StudyError::input(format!(
            "{0}: is a file; a figure is a folder with a {SCENARIO} and an {EXPECT} (a scenario alone: selvedge run {0})",
            path.display()
        )));
    }
    let entries = fs::read_dir(path).map_err(|error| StudyError::io(path, "read it", &error))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().try_for_each(|folder| find(folder, figures))
}

const EXPECT: &str = "expect.toml";
#[cfg(not(target_os = "linux"))]
const PROGRAMS: &str = "program.toml";
