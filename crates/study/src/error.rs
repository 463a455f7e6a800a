//! Why a study stopped.

use std::fmt;
use std::io;
use std::path::Path;

use selvedge_results::{ResultsError, is_storage_failure};
use selvedge_sim::ConfigError;
use selvedge_traces::TraceError;

/// Why a study stopped, and what to do about it.
#[derive(Debug)]
pub struct StudyError {
    message: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Something about the call is wrong: a folder that exists, results of another version.
    Input,
    /// Something went wrong on the way.
    Failure,
    /// Storage failed: the disk is full, say. What is complete stays.
    Storage,
}

impl StudyError {
    /// Whether the user can put it right by calling differently.
    pub fn is_input(&self) -> bool {
        self.kind == Kind::Input
    }

    /// Whether the disk is full, or does not work: the study can be continued when that is put right.
    pub fn is_storage_failure(&self) -> bool {
        self.kind == Kind::Storage
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: Kind::Input }
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: Kind::Failure }
    }

    /// Something that was read is wrong, which its own error says.
    pub(crate) fn wrong(error: impl fmt::Display) -> Self {
        Self::input(error.to_string())
    }

    /// The operating system refused.
    pub(crate) fn io(path: &Path, doing: &str, error: &io::Error) -> Self {
        let message = format!("{}: cannot {doing}: {error}", path.display());
        match is_storage_failure(error) {
            true => Self {
                message: format!("{message}; see that there is space left there, or choose another folder"),
                kind: Kind::Storage,
            },
            false => Self::input(message),
        }
    }

    /// The simulator refused a point.
    pub(crate) fn refused(series: &str, seed: u64, error: &ConfigError) -> Self {
        Self::input(format!("series \"{series}\", seed {seed}: {error}"))
    }
}

impl From<ResultsError> for StudyError {
    /// About a file: a full disk, say, or a damaged part.
    fn from(error: ResultsError) -> Self {
        let kind = if error.is_storage_failure() { Kind::Storage } else { Kind::Input };
        Self { message: error.to_string(), kind }
    }
}

impl From<TraceError> for StudyError {
    fn from(error: TraceError) -> Self {
        let kind = if is_storage_failure(error.cause()) { Kind::Storage } else { Kind::Failure };
        Self { message: error.to_string(), kind }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for StudyError {}
