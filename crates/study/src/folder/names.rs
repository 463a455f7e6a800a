//! Names of results folders and of the files in them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns whether a run gives this name to a file or folder in its folder.
pub(super) fn is_name_of_ours(name: &OsStr) -> bool {
    const NAMES: [&str; 14] = [
        "flows.parquet",
        "ports.parquet",
        "links.parquet",
        "report.html",
        "fct.txt",
        "traces",
        "inputs",
        "parts",
        SUMMARY,
        SCENARIO,
        "sweep.csv",
        SWEEP,
        MARKER,
        LOCK,
    ];
    let text = name.to_string_lossy();
    NAMES.contains(&&*text) || text.starts_with("fct-") && text.ends_with(".txt")
}

/// Returns the destination of a symbolic link, if it exists: the link is kept, and files are written to the
/// destination.
pub(super) fn behind_link(path: PathBuf) -> PathBuf {
    if path.is_symlink() { fs::canonicalize(&path).unwrap_or(path) } else { path }
}

pub(super) fn is_partial(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes())
}

pub(crate) fn partial_of(target: &Path) -> PathBuf {
    with_suffix(target, SUFFIX)
}

/// Returns the name of `partial` after completion. Names need not be UTF-8.
pub(super) fn target_of(partial: &Path) -> PathBuf {
    let extension = SUFFIX.trim_start_matches('.');
    if partial.extension().is_some_and(|own| own == extension) { partial.with_extension("") } else { PathBuf::new() }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

pub(crate) const MARKER: &str = "unfinished.json";
pub(super) const LOCK: &str = "unfinished.lock";
pub(crate) const SCENARIO: &str = "scenario.toml";
pub(crate) const SUMMARY: &str = "summary.json";
pub(super) const SWEEP: &str = "sweep.json";
pub(super) const SUFFIX: &str = ".partial";
