//! Whether a file can be written, asked before the work whose outcome goes there.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::StudyError;

/// Makes sure that `path` can be written. What is there stays as it is, and nothing is left there.
///
/// # Errors
/// It cannot.
pub fn check_writable(path: &Path) -> Result<(), StudyError> {
    let writable = match fs::metadata(path) {
        Ok(meta) if meta.is_file() || meta.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        // To open a pipe and close it again would tell its reader that all has been said.
        Ok(_) => Ok(()),
        Err(_) => make_and_remove(path),
    };
    writable.map_err(|error| StudyError::io(path, "write it", &error))
}

/// Makes a file, and the folders for it, and removes what it has made.
fn make_and_remove(path: &Path) -> io::Result<()> {
    let folders = || path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let made: Vec<&Path> = folders().take_while(|folder| !folder.exists()).collect();
    let folder = folders().next().map_or(Ok(()), fs::create_dir_all);
    let outcome = folder.and_then(|()| {
        drop(OpenOptions::new().append(true).create(true).open(path)?);
        // A link may have led to a file that was not there.
        fs::remove_file(path.canonicalize()?)
    });
    for folder in made {
        // It may not have come to be, or somebody has put something there meanwhile.
        let _ = fs::remove_dir(folder);
    }
    outcome
}
