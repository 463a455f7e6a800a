//! Errors on files, worded so that a person can act on them.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// The reason why a file of results could not be written or read: which file, what is wrong, what to do.
#[derive(Debug)]
pub struct ResultsError {
    path: PathBuf,
    what: String,
    remedy: Cow<'static, str>,
    is_storage: bool,
}

/// Returns whether `error` is a failure of storage: no space left, a quota exceeded, a device that does not work. In
/// that case the request itself was valid.
pub fn is_storage_failure(error: &io::Error) -> bool {
    /// EIO, which has no [`io::ErrorKind`] of its own.
    const INPUT_OUTPUT: i32 = 5;
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::WriteZero)
        || error.raw_os_error() == Some(INPUT_OUTPUT)
}

impl ResultsError {
    /// Returns the path of the file that the error is about.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether storage failed ([`is_storage_failure`]).
    pub fn is_storage_failure(&self) -> bool {
        self.is_storage
    }

    /// Replaces the remedy: parts of a study are simulated again, for example, but complete results are not.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// Creates the error of an operation that the operating system refused.
    pub(crate) fn io(path: &Path, doing: &str, error: &io::Error) -> Self {
        Self {
            path: path.into(),
            what: format!("cannot {doing}: {error}"),
            remedy: remedy(error),
            is_storage: is_storage_failure(error),
        }
    }

    /// Creates the error of a file whose content is not what its name promises.
    pub(crate) fn damaged(path: &Path, what: impl fmt::Display) -> Self {
        Self { path: path.into(), what: what.to_string(), remedy: RESUME.into(), is_storage: false }
    }

    /// Creates the error of a Parquet writer that failed, nearly always because of the disk.
    pub(crate) fn write(path: &Path, error: &ParquetError) -> Self {
        let error: &dyn fmt::Display = match error {
            // The system's own message is clearer without Parquet's around it.
            ParquetError::External(error) => match error.downcast_ref::<io::Error>() {
                Some(error) => return Self::io(path, "write", error),
                None => error,
            },
            error => error,
        };
        Self {
            path: path.into(),
            what: format!("cannot write: {error}"),
            remedy: "check that the folder may be written to and has space left".into(),
            is_storage: false,
        }
    }
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.path.display(), self.what, self.remedy)
    }
}

impl std::error::Error for ResultsError {}

/// Returns the remedy for an operation that the system refused.
fn remedy(error: &io::Error) -> Cow<'static, str> {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    match is_storage_failure(error) {
        true if full => "see that there is space left there, or choose another folder",
        true => "check the device that holds it",
        false => "check that the folder exists, may be written to and has space left",
    }
    .into()
}

/// The remedy for a part of a study that cannot be read.
const RESUME: &str = "delete it and run again with --resume: only what is missing is simulated anew";
