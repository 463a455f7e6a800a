//! Check whether a file can be written, before the work that produces its content.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::StudyError;

/// Checks that `path` can be written. Existing files are left unchanged, and no new ones remain.
///
/// # Errors
/// Returns an error if it cannot.
pub fn check_writable(path: &Path) -> Result<(), StudyError> {
    let writable = match fs::metadata(path) {
        Ok(meta) if meta.is_file() || meta.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        // Opening and closing a pipe would signal the end of its input to the reader.
        Ok(_) => Ok(()),
        Err(_) => make_and_remove(path),
    };
    writable.map_err(|error| StudyError::io(path, "write it", &error))
}

/// Creates a file with its folders, and removes everything created.
fn make_and_remove(path: &Path) -> io::Result<()> {
    let folders = || path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let made: Vec<&Path> = folders().take_while(|folder| !folder.exists()).collect();
    let folder = folders().next().map_or(Ok(()), fs::create_dir_all);
    let outcome = folder.and_then(|()| {
        drop(OpenOptions::new().append(true).create(true).open(path)?);
        // The path may be a link whose destination did not exist.
        fs::remove_file(path.canonicalize()?)
    });
    for folder in made {
        // An error is ignored: the folder may not exist, or another process may have put files there.
        let _ = fs::remove_dir(folder);
    }
    outcome
}
