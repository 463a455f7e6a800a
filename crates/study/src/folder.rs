//! The folder in which results appear.
//!
//! While a study runs, everything lies in `<name>.partial`: the marker `unfinished.json`, the
//! resolved `scenario.toml`, and the points in `parts/`. The last step renames it to `<name>`.
//!
//! Who writes there holds a lock on `unfinished.lock`, which the system takes back from a process that dies.

mod found;
mod names;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use selvedge_results::{PointFiles, PointSummary};
use selvedge_scenario::{Plan, Point};
use serde::{Deserialize, Serialize};

use self::found::{
    cannot_make, check_target, check_way, is_ours, lacks_only_its_name, nothing_to_resume, only_lacks_its_name,
};
use self::names::{LOCK, behind_link, is_name_of_ours, is_partial, target_of, with_suffix};
pub(crate) use self::names::{MARKER, SCENARIO, SUMMARY, partial_of, without_trailing_slash};
use crate::{StudyError, Tracing};

/// A results folder in the making. While there is one, no other can be had of the same folder, in any process.
#[derive(Debug)]
pub struct ResultsFolder {
    target: PathBuf,
    partial: PathBuf,
    marker: Marker,
    /// `None` where the file system has no locks.
    _lock: Option<File>,
}

/// What `unfinished.json` says: enough to know whether a study can be continued.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// What this file is for, in a sentence.
    pub note: String,
    /// Version of the program.
    pub version: String,
    /// [`Plan::fingerprint`], 16 hexadecimal digits.
    pub fingerprint: String,
    /// The command that began it.
    pub command: String,
    /// Whether an existing results folder is to be replaced at the end.
    pub replace: bool,
    /// What is traced.
    #[serde(default)]
    pub tracing: Tracing,
    /// [`Plan::warnings`], with the places that whoever began it knows.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// [`Plan::ends_as_built_in`].
    #[serde(default)]
    pub ends_as_built_in: bool,
    /// Seeds are added until the verdict is decided, up to so many in all.
    #[serde(default)]
    pub until_decided: Option<usize>,
    /// [`Plan::swept`].
    #[serde(default)]
    pub swept: Vec<String>,
    /// Seconds that were spent on it so far, as of the last complete point.
    #[serde(default)]
    pub wall_s: f64,
}

impl Marker {
    /// The marker of `plan`, begun by `command`.
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
    /// Makes `<target>.partial` for a new study, with `marker`, the resolved scenario of `plan`, and what
    /// that needs beside it. With `force`, unfinished results there are removed, and at the end those
    /// in `target` are replaced; what else is there is kept. Where `target` is a link, results go where it leads. What
    /// a run left that was killed before it had begun is taken over.
    ///
    /// # Errors
    /// Results exist and `force` was not given; `target` is something else than results; another process is
    /// writing there; the folder cannot be written.
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
            // Fails if another process was faster, so that no two write to one folder.
            fs::create_dir(&partial).map_err(|error| cannot_make(&partial, &error))?;
            lock(&partial)?
        };
        let marker = Marker { replace: force, ..marker.clone() };
        let folder = Self { _lock: lock, target, partial, marker };
        let parts = folder.parts();
        fs::create_dir(&parts).map_err(|error| StudyError::io(&parts, "make this folder", &error))?;
        folder.write(SCENARIO, &plan.to_toml())?;
        for (name, content) in plan.kept_inputs() {
            folder.keep(&name, &content)?;
        }
        folder.mark(0.0)?;
        Ok(folder)
    }

    /// Opens unfinished results: `<name>.partial`, or `<name>`.
    ///
    /// # Errors
    /// There are none, another process is writing there, their marker cannot be read, or something has taken their
    /// name meanwhile.
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
        // Who has thrown the points away wants them anew.
        let parts = folder.parts();
        fs::create_dir_all(&parts).map_err(|error| StudyError::io(&parts, "make this folder", &error))?;
        Ok(folder)
    }

    /// Whether these unfinished results are those of `plan` and this `version`.
    ///
    /// # Errors
    /// They are not; the message says what differs.
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

    /// Where the results will be.
    pub fn target(&self) -> &Path {
        &self.target
    }
    /// Where they are until then.
    pub fn partial(&self) -> &Path {
        &self.partial
    }
    /// The resolved scenario of the study.
    pub fn scenario(&self) -> PathBuf {
        self.partial.join(SCENARIO)
    }

    /// What a person should know about the scenario, as it was when the study began.
    pub fn warnings(&self) -> &[String] {
        &self.marker.warnings
    }

    /// The keys that the study's cases change.
    pub fn swept(&self) -> &[String] {
        &self.marker.swept
    }

    /// See [`Marker::ends_as_built_in`].
    pub fn ends_as_built_in(&self) -> bool {
        self.marker.ends_as_built_in
    }

    /// See [`Marker::until_decided`].
    pub fn until_decided(&self) -> Option<usize> {
        self.marker.until_decided
    }

    /// What is traced.
    pub fn tracing(&self) -> &Tracing {
        &self.marker.tracing
    }

    /// Seconds that earlier sessions have spent on the study.
    pub(crate) fn earlier_s(&self) -> f64 {
        self.marker.wall_s
    }

    /// Writes the marker, when this session has lasted for `wall_s` seconds.
    pub(crate) fn mark(&self, wall_s: f64) -> Result<(), StudyError> {
        let marker = Marker { wall_s: self.marker.wall_s + wall_s, ..self.marker.clone() };
        let text = serde_json::to_string_pretty(&marker).expect("a marker is text") + "\n";
        // By rename: whatever happens meanwhile, the folder can be told from others.
        let (path, new) = (self.partial.join(MARKER), self.partial.join(format!("{MARKER}.new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| StudyError::io(&path, "write it", &error))
    }

    /// The files of one point.
    pub(crate) fn point(&self, point: Point) -> PointFiles {
        PointFiles::new(&self.parts(), point.series, point.seed)
    }

    /// Whether the point is complete, as far as its summary is there.
    pub(crate) fn has(&self, point: Point) -> bool {
        self.point(point).summary.exists()
    }

    /// The point's summary, if it is complete. `Err`: one of its files is damaged, and how; it is put aside.
    pub(crate) fn finished(&self, plan: &Plan, point: Point) -> Result<Option<PointSummary>, String> {
        let files = self.point(point);
        if !files.summary.exists() {
            return Ok(None);
        }
        match files.completed(&plan.series[point.series].name, point.seed) {
            Ok(summary) => Ok(Some(summary)),
            Err(error) => {
                // The point's own files are written anew, so that a leftover does no harm.
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

    /// Keeps a file that the scenario names.
    fn keep(&self, name: &Path, content: &[u8]) -> Result<(), StudyError> {
        let path = self.partial.join(name);
        let parent = path.parent().unwrap_or(&self.partial);
        fs::create_dir_all(parent).map_err(|error| StudyError::io(parent, "make this folder", &error))?;
        fs::write(&path, content).map_err(|error| StudyError::io(&path, "write it", &error))
    }

    /// Removes what only unfinished results need, and gives the folder its name.
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
        // Without the marker nobody asks for the lock. What somebody has removed before is gone all the same.
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

/// The first of `<folder>/<stem>-1`, `-2`, ... at which there are no results, finished or not.
pub fn free_name(folder: &Path, stem: &str) -> PathBuf {
    (1u32..)
        .map(|n| folder.join(format!("{stem}-{n}")))
        .find(|name| !name.exists() && !partial_of(name).exists())
        .expect("some number is free")
}

/// Moves what no run has put into `old`.
fn move_others(old: &Path, target: &Path) -> Result<(), StudyError> {
    let entries = fs::read_dir(old).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| StudyError::io(old, "read it", &error))?;
    let others = entries.iter().filter(|entry| !is_name_of_ours(&entry.file_name()));
    others.map(|entry| (entry.path(), target.join(entry.file_name()))).try_for_each(|(from, to)| {
        fs::rename(&from, &to).map_err(|error| StudyError::io(&from, &format!("move it to {}", to.display()), &error))
    })
}

/// Removes all but the lock.
fn clear(partial: &Path) -> Result<(), StudyError> {
    let remove = |path: &Path| if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    let entries = fs::read_dir(partial).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = entries.map_err(|error| StudyError::io(partial, "read it", &error))?;
    paths.retain(|path| !path.ends_with(LOCK));
    // The marker goes first: without the rest, there is nothing to resume.
    paths.sort_by_key(|path| !path.ends_with(MARKER));
    paths.iter().try_for_each(|path| remove(path).map_err(|error| StudyError::io(path, "remove it", &error)))
}

/// The right to write to `partial`, until the file is closed.
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
