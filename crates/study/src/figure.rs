//! Figures: folders with a scenario, and what a paper claims of its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_results::{
    CheckedFigure, Expectations, FootprintNic, Footprints, Summary, check, check_smoke, measure, needs_seeds,
};
use selvedge_scenario::{Changes, NicUse, Plan, SchemeFacts, World};

use crate::StudyError;
use crate::folder::SCENARIO;

/// Figures that can run. All of them are read before the first runs: a typing error in the last costs no time.
#[derive(Debug)]
pub struct Figures {
    /// In the order of the paths that they were found in, and by name within each.
    pub all: Vec<Figure>,
    /// Claims that cannot be checked here, with their figures and why.
    pub skipped: Vec<String>,
}

/// A figure that can run.
#[derive(Debug)]
pub struct Figure {
    /// Its folder.
    pub folder: PathBuf,
    /// Its runs.
    pub plan: Plan,
    expectations: Expectations,
    /// What its series keep on NICs or in switches, where claims are about that.
    state: Footprints,
    /// Whether its runs are too short to judge.
    smoke: bool,
}

impl Figures {
    /// Reads the figures in `paths`, at any depth; with `smoke`, as the `[smoke]` of their scenarios says. `real` is
    /// asked once whether the real world can be had, and only if some figure wants it; where it cannot, claims about it
    /// are skipped.
    ///
    /// # Errors
    /// There is no figure in one of the paths, or one cannot be read.
    pub fn read(paths: &[PathBuf], smoke: bool, real: impl Fn() -> Result<(), String>) -> Result<Self, StudyError> {
        let mut folders = Vec::new();
        for path in paths {
            let before = folders.len();
            find(path, &mut folders)?;
            if folders.len() == before {
                let message = format!("no figure here; expected a folder with a {SCENARIO} and an {EXPECT}");
                return Err(StudyError::input(format!("{}: {message}", path.display())));
            }
        }
        let mut figures = Self { all: Vec::new(), skipped: Vec::new() };
        let mut answer = None;
        for folder in folders {
            figures.read_one(folder, smoke, || answer.get_or_insert_with(&real).clone())?;
        }
        Ok(figures)
    }

    /// Makes sure that results of all of them fit into one folder, each by its name.
    ///
    /// # Errors
    /// Two have the same name: one's results would replace the other's.
    pub fn check_apart(&self) -> Result<(), StudyError> {
        let mut known: BTreeMap<String, &Path> = BTreeMap::new();
        for figure in &self.all {
            if let Some(other) = known.insert(figure.name(), &figure.folder) {
                let (other, own, name) = (other.display(), figure.folder.display(), figure.name());
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

impl Figure {
    /// "figures/irn/fig1" as "irn-fig1": a name for its results.
    pub fn name(&self) -> String {
        let last_two = self.folder.components().rev().take(2);
        let parts: Vec<String> = last_two.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("-")
    }

    /// With how many seeds at most it runs where fewer do not decide all claims; `None`: with those of its plan. A
    /// smoke run decides nothing.
    pub fn max_seeds(&self) -> Option<usize> {
        self.expectations.max_seeds.filter(|&most| !self.smoke && most > self.plan.seeds.len())
    }

    /// Whether more seeds may decide a claim that those of its results decide neither way.
    pub fn needs_seeds(&self, summary: &Summary) -> bool {
        needs_seeds(&self.expectations, &self.state.added_to(summary))
    }

    /// Holds its claims against its results, `shared` runs of which another figure had asked for before.
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

/// What the series of `plan` keep, as far as it is counted.
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

/// The figures in `path`, at any depth, by name.
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
