//! Checks of the places where results are or will be, and the messages about them.

use std::fs;
use std::io;
use std::path::Path;

use super::names::{LOCK, MARKER, SCENARIO, SUMMARY};
use crate::StudyError;

/// Returns a description of what prevents new results at `target`, if anything; with `force`, results there do not.
fn obstacle(target: &Path, force: bool) -> Result<Option<&'static str>, StudyError> {
    match fs::metadata(target) {
        Err(_) if target.is_symlink() => Ok(Some("is a link that leads nowhere")),
        // If the path cannot be created, creation reports the error.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(StudyError::io(target, "look at it", &error)),
        Ok(meta) if !meta.is_dir() => Ok(Some("is a file")),
        Ok(_) if is_empty(target) => Ok(None),
        Ok(_) if !target.join(SUMMARY).exists() => Ok(Some("exists and holds no results of a study")),
        Ok(_) => Ok((!force).then_some(RESULTS)),
    }
}

/// Checks that a new study may use `target`.
pub(super) fn check_target(target: &Path, force: bool) -> Result<(), StudyError> {
    let Some(found) = obstacle(target, force)? else { return Ok(()) };
    let or_force = if found == RESULTS { ", or give --force to replace them" } else { "" };
    Err(StudyError::input(format!("{}: {found}; choose another --out{or_force}", target.display())))
}

/// Checks that a study in progress can still be renamed to `target`.
pub(super) fn check_way(target: &Path, replace: bool) -> Result<(), StudyError> {
    let Some(found) = obstacle(target, replace)? else { return Ok(()) };
    let message = "where the unfinished results are to go; move that away";
    Err(StudyError::input(format!("{}: {found}, {message}", target.display())))
}

/// Returns the reason why `partial` has no marker.
pub(super) fn nothing_to_resume(target: &Path, partial: &Path) -> StudyError {
    if lacks_only_its_name(partial) {
        return only_lacks_its_name(partial, target);
    }
    let (path, message) = if is_ours(partial) {
        (partial, "the run ended before it had begun to simulate; nothing is lost: give the same command again")
    } else if target.join(SUMMARY).exists() {
        (target, "these results are complete; there is nothing to resume")
    } else {
        (partial, "no unfinished results here; expected a folder as in results/name-1.partial")
    };
    StudyError::input(format!("{}: {message}", path.display()))
}

pub(super) fn cannot_make(folder: &Path, error: &io::Error) -> StudyError {
    StudyError::input(format!("{}: cannot make this folder: {error}; choose another --out", folder.display()))
}

/// Returns whether a run created this folder and has not completed it: it has the marker, or was left before it had
/// one.
pub(super) fn is_ours(partial: &Path) -> bool {
    let has = |name: &str| partial.join(name).exists();
    has(MARKER) || has(LOCK) && !has(SUMMARY) || is_empty(partial)
}

/// Returns whether the run that created this folder was ended between its last two steps.
pub(super) fn lacks_only_its_name(partial: &Path) -> bool {
    let has = |name: &str| partial.join(name).exists();
    has(SUMMARY) && has(SCENARIO) && !has(MARKER) && !has("parts")
}

pub(super) fn only_lacks_its_name(partial: &Path, target: &Path) -> StudyError {
    let (partial, target) = (partial.display(), target.display());
    StudyError::input(format!("{partial}: these results are complete and only lack their name; rename it to {target}"))
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

const RESULTS: &str = "results are here already";
