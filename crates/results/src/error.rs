//! What can go wrong with files, said so that a person can act on it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why a file of results could not be written or read: which file, what is wrong, what to do.
#[derive(Debug)]
pub struct ResultsError {
    path: PathBuf,
    what: String,
    remedy: Cow<'static, str>,
    is_storage: bool,
}

/// Whether `error` says that storage failed: no space is left, a quota is used up, a device does not work. Nothing is
/// wrong with what was asked for then.
pub fn is_storage_failure(error: &io::Error) -> bool {
    /// EIO, which has no kind.
    const INPUT_OUTPUT: i32 = 5;
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::WriteZero)
        || error.raw_os_error() == Some(INPUT_OUTPUT)
}

impl ResultsError {
    /// The file it is about.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether storage failed ([`is_storage_failure`]).
    pub fn is_storage_failure(&self) -> bool {
        self.is_storage
    }

    /// The same, where something else helps: parts of a study are simulated anew, complete results are not.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// The operating system refused.
    pub(crate) fn io(path: &Path, doing: &str, error: &io::Error) -> Self {
        Self {
            path: path.into(),
            what: format!("cannot {doing}: {error}"),
            remedy: remedy(error),
            is_storage: is_storage_failure(error),
        }
    }

    /// The file is not what its name promises.
    pub(crate) fn damaged(path: &Path, what: impl fmt::Display) -> Self {
        Self { path: path.into(), what: what.to_string(), remedy: RESUME.into(), is_storage: false }
    }

    /// The Parquet writer gave up: nearly always the disk.
    pub(crate) fn write(path: &Path, error: &ParquetError) -> Self {
        let error: &dyn fmt::Display = match error {
            // What the system says is clearer alone.
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

/// What to do when the system refuses.
fn remedy(error: &io::Error) -> Cow<'static, str> {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    match is_storage_failure(error) {
        true if full => "see that there is space left there, or choose another folder",
        true => "check the device that holds it",
        false => "check that the folder exists, may be written to and has space left",
    }
    .into()
}

/// What to do about a part of a study that cannot be read.
const RESUME: &str = "delete it and run again with --resume: only what is missing is simulated anew";
