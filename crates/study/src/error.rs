//! Errors that stop a study.

use std::fmt;
use std::io;
use std::path::Path;

use selvedge_results::{ResultsError, is_storage_failure};
use selvedge_sim::ConfigError;
use selvedge_traces::TraceError;

/// The reason why a study stopped, and the remedy.
#[derive(Debug)]
pub struct StudyError {
    message: String,
    kind: ErrorKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ErrorKind {
    /// The call is invalid: a folder exists, or results are of another version.
    Input,
    /// A failure during the study.
    Failure,
    /// A failure of storage, such as a full disk. Complete points are kept.
    Storage,
}

impl StudyError {
    /// Returns whether the user can correct the error by another call.
    pub fn is_input(&self) -> bool {
        self.kind == ErrorKind::Input
    }

    /// Returns whether the disk is full or does not work; the study can be continued once that is repaired.
    pub fn is_storage_failure(&self) -> bool {
        self.kind == ErrorKind::Storage
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: ErrorKind::Input }
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: ErrorKind::Failure }
    }

    /// Creates an error about invalid input, with the message of the input's own error.
    pub(crate) fn wrong(error: impl fmt::Display) -> Self {
        Self::input(error.to_string())
    }

    /// Creates an error about an operation that the operating system refused.
    pub(crate) fn io(path: &Path, doing: &str, error: &io::Error) -> Self {
        let message = format!("{}: cannot {doing}: {error}", path.display());
        match is_storage_failure(error) {
            true => Self {
                message: format!("{message}; see that there is space left there, or choose another folder"),
                kind: ErrorKind::Storage,
            },
            false => Self::input(message),
        }
    }

    /// Creates an error about a point that the simulator refused.
    pub(crate) fn refused(series: &str, seed: u64, error: &ConfigError) -> Self {
        Self::input(format!("series \"{series}\", seed {seed}: {error}"))
    }
}

impl From<ResultsError> for StudyError {
    /// Converts an error about a file, such as a full disk or a damaged part.
    fn from(error: ResultsError) -> Self {
        let kind = if error.is_storage_failure() { ErrorKind::Storage } else { ErrorKind::Input };
        Self { message: error.to_string(), kind }
    }
}

impl From<TraceError> for StudyError {
    fn from(error: TraceError) -> Self {
        let kind = if is_storage_failure(error.cause()) { ErrorKind::Storage } else { ErrorKind::Failure };
        Self { message: error.to_string(), kind }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for StudyError {}
