//! Results folders: creation, continuation and completion.
//!
//! While a study runs, everything lies in `<name>.partial`: the marker `unfinished.json`, the
//! resolved `scenario.toml`, and the points in `parts/`. The last step renames it to `<name>`.
//!
//! A process that writes to the folder holds a lock on `unfinished.lock`, which the system releases when the process
//! ends.

mod found;
mod names;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use selvedge_results::{PointFiles, PointSummary};
use selvedge_scenario::{Grid, Plan, Point};
use serde::{Deserialize, Serialize};

use self::found::{
    cannot_make, check_target, check_way, is_ours, lacks_only_its_name, nothing_to_resume, only_lacks_its_name,
};
use self::names::{LOCK, SWEEP, behind_link, is_name_of_ours, is_partial, target_of, with_suffix};
pub(crate) use self::names::{MARKER, SCENARIO, SUMMARY, partial_of, without_trailing_slash};
use crate::{StudyError, Tracing};

/// A results folder under construction. While one is open, no process can open another on the same folder.
#[derive(Debug)]
pub struct ResultsFolder {
    target: PathBuf,
    partial: PathBuf,
    marker: Marker,
    /// `None` where the file system has no locks.
    _lock: Option<File>,
}

/// Content of `unfinished.json`: enough to decide whether a study can be continued.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Purpose of the file, in a sentence.
    pub note: String,
    /// Version of the program.
    pub version: String,
    /// Fingerprint of the plan ([`Plan::fingerprint`]), 16 hexadecimal digits.
    pub fingerprint: String,
    /// Command that began the study.
    pub command: String,
    /// Whether existing results are replaced at the end.
    pub replace: bool,
    /// Traces to write.
    #[serde(default)]
    pub tracing: Tracing,
    /// Warnings of the plan ([`Plan::warnings`]), including the places in files that only the beginning session knows.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether runs end as in the built-in study; see [`Plan::ends_as_built_in`].
    #[serde(default)]
    pub ends_as_built_in: bool,
    /// Largest number of seeds if seeds are added until the verdict is decided; `None` if they are not.
    #[serde(default)]
    pub until_decided: Option<usize>,
    /// Keys that cases change; see [`Plan::swept`].
    #[serde(default)]
    pub swept: Vec<String>,
    /// Seconds spent on the study, as of the last complete point.
    #[serde(default)]
    pub wall_s: f64,
}

impl Marker {
    /// Creates the marker of `plan`, begun by `command`.
    pub fn new(plan: &Plan, version: &str, command: &str) -> Self {
        Self {
            note: "These results are not complete. To continue: selvedge run --resume <this folder>".to_owned(),
            version: version.to_owned(),
            fingerprint: format!("{:016x}", plan.fingerprint()),
            command: command.to_owned(),
            replace: false,
            tracing: Tracing::default(),
            warnings: plan.warnings.clone(),
            ends_as_built_in: plan.ends_as_built_in,
            until_decided: None,
            swept: plan.swept.clone(),
            wall_s: 0.0,
        }
    }
}

impl ResultsFolder {
    /// Creates `<target>.partial` for a new study, with `marker`, the resolved scenario of `plan`, and the files that
    /// the scenario needs. With `force`, unfinished results there are removed, and at the end the results in `target`
    /// are replaced; other files there are kept. If `target` is a symbolic link, results go to its destination. The
    /// remains of a run that was killed before it had begun are taken over.
    ///
    /// # Errors
    /// Returns an error if results exist and `force` was not given, if `target` is something other than results, if
    /// another process writes to the folder, or if the folder cannot be written.
    pub fn create(target: &Path, plan: &Plan, marker: &Marker, force: bool) -> Result<Self, StudyError> {
        let target = behind_link(without_trailing_slash(target));
        let partial = partial_of(&target);
        let lock = if partial.exists() {
            let here = partial.display();
            if lacks_only_its_name(&partial) {
                return Err(only_lacks_its_name(&partial, &target));
            }
            if !is_ours(&partial) {
                let message = "is in the way and holds no unfinished results; choose another --out";
                return Err(StudyError::input(format!("{here}: {message}")));
            }
            let lock = lock(&partial)?;
            if partial.join(MARKER).exists() && !force {
                return Err(StudyError::input(format!(
                    "{here}: unfinished results are here; continue them with --resume {here}, or give --force to begin anew"
                )));
            }
            check_target(&target, force)?;
            clear(&partial)?;
            lock
        } else {
            check_target(&target, force)?;
            if let Some(parent) = partial.parent() {
                fs::create_dir_all(parent).map_err(|error| cannot_make(parent, &error))?;
            }
            // Fails if another process was faster, so that no two processes write to one folder.
            fs::create_dir(&partial).map_err(|error| cannot_make(&partial, &error))?;
            lock(&partial)?
        };
        let marker = Marker { replace: force, ..marker.clone() };
        let folder = Self { _lock: lock, target, partial, marker };
        let parts = folder.parts();
        fs::create_dir(&parts).map_err(|error| StudyError::io(&parts, "make this folder", &error))?;
        folder.write(SCENARIO, &plan.to_toml())?;
        if let Some(grid) = &plan.grid {
            folder.write(SWEEP, &(serde_json::to_string(grid).expect("a grid is text") + "\n"))?;
        }
        for (name, content) in plan.kept_inputs() {
            folder.keep(&name, &content)?;
        }
        folder.mark(0.0)?;
        Ok(folder)
    }

    /// Opens unfinished results: `<name>.partial`, or `<name>`.
    ///
    /// # Errors
    /// Returns an error if there are none, if another process writes there, if their marker cannot be read, or if
    /// something else has taken their name meanwhile.
    pub fn open(path: &Path) -> Result<Self, StudyError> {
        let path = behind_link(without_trailing_slash(path));
        let partial = if is_partial(&path) { path } else { partial_of(&path) };
        let target = target_of(&partial);
        let marker = partial.join(MARKER);
        let lock = if is_ours(&partial) { lock(&partial)? } else { None };
        let text = match fs::read_to_string(&marker) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(nothing_to_resume(&target, &partial)),
            Err(error) => return Err(StudyError::io(&marker, "read it", &error)),
        };
        let marker: Marker = serde_json::from_str(&text).map_err(|error| {
            let message = format!("not a marker of unfinished results ({error}); begin anew with --force");
            StudyError::input(format!("{}: {message}", marker.display()))
        })?;
        check_way(&target, marker.replace)?;
        let folder = Self { target, partial, marker, _lock: lock };
        // If the points were deleted, they are simulated again.
        let parts = folder.parts();
        fs::create_dir_all(&parts).map_err(|error| StudyError::io(&parts, "make this folder", &error))?;
        Ok(folder)
    }

    /// Opens unfinished results to run points for the process that holds them, perhaps on another machine: there is no
    /// lock, and only the files of points are written.
    ///
    /// # Errors
    /// Returns an error if there are none, or their marker cannot be read.
    pub fn join(partial: &Path) -> Result<Self, StudyError> {
        let partial = without_trailing_slash(partial);
        let marker = partial.join(MARKER);
        let text = fs::read_to_string(&marker).map_err(|error| StudyError::io(&marker, "read it", &error))?;
        let marker = serde_json::from_str(&text).map_err(|error| {
            StudyError::input(format!("{}: not a marker of unfinished results ({error})", marker.display()))
        })?;
        Ok(Self { target: target_of(&partial), partial, marker, _lock: None })
    }

    /// Checks that these unfinished results are those of `plan` and of this `version`.
    ///
    /// # Errors
    /// Returns an error that says what differs.
    pub fn check(&self, plan: &Plan, version: &str) -> Result<(), StudyError> {
        let (here, marker) = (self.partial.display(), &self.marker);
        if marker.version != version {
            return Err(StudyError::input(format!(
                "{here}: begun by version {}, this is {version}; results of both must not be mixed: begin anew",
                marker.version
            )));
        }
        let fingerprint = format!("{:016x}", plan.fingerprint());
        if marker.fingerprint != fingerprint {
            return Err(StudyError::input(format!(
                "{here}: the scenario, or a file that it names, has changed since ({} then, {fingerprint} now); begin anew",
                marker.fingerprint
            )));
        }
        Ok(())
    }

    /// Returns the path of the results after completion.
    pub fn target(&self) -> &Path {
        &self.target
    }
    /// Returns the path of the results until completion.
    pub fn partial(&self) -> &Path {
        &self.partial
    }
    /// Returns the path of the study's resolved scenario.
    pub fn scenario(&self) -> PathBuf {
        self.partial.join(SCENARIO)
    }

    /// Returns the warnings about the scenario, as of the beginning of the study.
    pub fn warnings(&self) -> &[String] {
        &self.marker.warnings
    }

    /// Returns the keys that the study's cases change.
    pub fn swept(&self) -> &[String] {
        &self.marker.swept
    }

    /// Returns the grid of the study's sweep, if it has one.
    ///
    /// # Errors
    /// Returns an error if its file cannot be read.
    pub fn grid(&self) -> Result<Option<Grid>, StudyError> {
        let path = self.partial.join(SWEEP);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StudyError::io(&path, "read it", &error)),
        };
        let wrong =
            |error| StudyError::input(format!("{}: damaged ({error}); begin anew with --force", path.display()));
        serde_json::from_str(&text).map(Some).map_err(wrong)
    }

    /// Returns whether runs end as in the built-in study; see [`Marker::ends_as_built_in`].
    pub fn ends_as_built_in(&self) -> bool {
        self.marker.ends_as_built_in
    }

    /// Returns the largest number of seeds to add; see [`Marker::until_decided`].
    pub fn until_decided(&self) -> Option<usize> {
        self.marker.until_decided
    }

    /// Returns the traces to write.
    pub fn tracing(&self) -> &Tracing {
        &self.marker.tracing
    }

    /// Returns the seconds that earlier sessions spent on the study.
    pub(crate) fn earlier_s(&self) -> f64 {
        self.marker.wall_s
    }

    /// Writes the marker; `wall_s` is the duration of this session so far.
    pub(crate) fn mark(&self, wall_s: f64) -> Result<(), StudyError> {
        let marker = Marker { wall_s: self.marker.wall_s + wall_s, ..self.marker.clone() };
        let text = serde_json::to_string_pretty(&marker).expect("a marker is text") + "\n";
        // By rename, so that the folder can be recognised after an interruption at any time.
        let (path, new) = (self.partial.join(MARKER), self.partial.join(format!("{MARKER}.new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| StudyError::io(&path, "write it", &error))
    }

    /// Returns the files of a point.
    pub(crate) fn point(&self, point: Point) -> PointFiles {
        PointFiles::new(&self.parts(), point.series, point.seed)
    }

    /// Returns whether the point's summary exists, which is written when the point is complete.
    pub(crate) fn has(&self, point: Point) -> bool {
        self.point(point).summary.exists()
    }

    /// Returns the point's summary, if it is complete. If a file is damaged, removes the summary and returns the
    /// description of the damage as `Err`.
    pub(crate) fn finished(&self, plan: &Plan, point: Point) -> Result<Option<PointSummary>, String> {
        let files = self.point(point);
        if !files.summary.exists() {
            return Ok(None);
        }
        match files.completed(&plan.series[point.series].name, point.seed) {
            Ok(summary) => Ok(Some(summary)),
            Err(error) => {
                // The point's other files are rewritten, so that leftovers do no harm.
                let _ = fs::remove_file(&files.summary);
                Err(error.with_remedy("this point is simulated anew").to_string())
            }
        }
    }

    /// Writes a file of the results.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<(), StudyError> {
        let path = self.partial.join(name);
        fs::write(&path, content).map_err(|error| StudyError::io(&path, "write it", &error))
    }

    /// Writes a copy of a file that the scenario names.
    fn keep(&self, name: &Path, content: &[u8]) -> Result<(), StudyError> {
        let path = self.partial.join(name);
        let parent = path.parent().unwrap_or(&self.partial);
        fs::create_dir_all(parent).map_err(|error| StudyError::io(parent, "make this folder", &error))?;
        fs::write(&path, content).map_err(|error| StudyError::io(&path, "write it", &error))
    }

    /// Removes the files that only unfinished results need, and renames the folder to its final name.
    pub(crate) fn complete(&self) -> Result<(), StudyError> {
        check_way(&self.target, self.marker.replace)?;
        let parts = self.parts();
        fs::remove_dir_all(&parts).map_err(|error| StudyError::io(&parts, "remove it", &error))?;
        let old = with_suffix(&self.target, ".old");
        let replaced = self.target.exists();
        if replaced {
            fs::rename(&self.target, &old).map_err(|error| StudyError::io(&self.target, "put it aside", &error))?;
        }
        let marker = self.partial.join(MARKER);
        fs::remove_file(&marker).map_err(|error| StudyError::io(&marker, "remove it", &error))?;
        // Without the marker the lock has no effect. A file that was removed before is no error.
        let _ = fs::remove_file(self.partial.join(LOCK));
        fs::rename(&self.partial, &self.target).map_err(|error| {
            StudyError::io(&self.partial, &format!("rename it to {}", self.target.display()), &error)
        })?;
        if replaced {
            move_others(&old, &self.target)?;
            fs::remove_dir_all(&old).map_err(|error| StudyError::io(&old, "remove it", &error))?;
        }
        Ok(())
    }

    fn parts(&self) -> PathBuf {
        self.partial.join("parts")
    }
}

/// Returns the first of `<folder>/<stem>-1`, `-2`, ... without results, finished or not.
pub fn free_name(folder: &Path, stem: &str) -> PathBuf {
    (1u32..)
        .map(|n| folder.join(format!("{stem}-{n}")))
        .find(|name| !name.exists() && !partial_of(name).exists())
        .expect("some number is free")
}

/// Moves files that are not results from `old` to `target`.
fn move_others(old: &Path, target: &Path) -> Result<(), StudyError> {
    let entries = fs::read_dir(old).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| StudyError::io(old, "read it", &error))?;
    let others = entries.iter().filter(|entry| !is_name_of_ours(&entry.file_name()));
    others.map(|entry| (entry.path(), target.join(entry.file_name()))).try_for_each(|(from, to)| {
        fs::rename(&from, &to).map_err(|error| StudyError::io(&from, &format!("move it to {}", to.display()), &error))
    })
}

/// Removes everything but the lock.
fn clear(partial: &Path) -> Result<(), StudyError> {
    let remove = |path: &Path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    let entries = fs::read_dir(partial).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = entries.map_err(|error| StudyError::io(partial, "read it", &error))?;
    paths.retain(|path| !path.ends_with(LOCK));
    // The marker goes first: without the other files, there is nothing to resume.
    paths.sort_by_key(|path| !path.ends_with(MARKER));
    paths.iter().try_for_each(|path| remove(path).map_err(|error| StudyError::io(path, "remove it", &error)))
}

/// Acquires the right to write to `partial`, held until the file is closed.
fn lock(partial: &Path) -> Result<Option<File>, StudyError> {
    let path = partial.join(LOCK);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let file = file.map_err(|error| StudyError::io(&path, "open it", &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let message = "in use by another process; wait until that ends, or end it, or choose another folder";
            Err(StudyError::input(format!("{}: {message}", partial.display())))
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}
