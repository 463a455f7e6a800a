//! Why a study stopped.

use std::fmt;
use std::io;
use std::path::Path;

use selvedge_results::ResultsError;
use selvedge_sim::ConfigError;

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
}

impl StudyError {
    /// Whether the user can put it right by calling differently.
    pub fn is_input(&self) -> bool {
        self.kind == Kind::Input
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
        Self::input(format!("{}: cannot {doing}: {error}", path.display()))
    }

    /// The simulator refused a point.
    pub(crate) fn refused(series: &str, seed: u64, error: &ConfigError) -> Self {
        Self::input(format!("series \"{series}\", seed {seed}: {error}"))
    }
}

impl From<ResultsError> for StudyError {
    /// About a file: a full disk, say, or a damaged part.
    fn from(error: ResultsError) -> Self {
        Self::input(error.to_string())
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for StudyError {}
