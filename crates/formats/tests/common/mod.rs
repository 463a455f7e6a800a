//! Files of other projects, which are not part of this one.

use std::path::PathBuf;

/// Returns a file under `$SELVEDGE_SHARED`; prints a notice and returns `None` if it is absent.
pub(crate) fn shared(path: &str) -> Option<Vec<u8>> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder = std::env::var_os("SELVEDGE_SHARED").map_or_else(default, PathBuf::from);
    let path = folder.join(path);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("skipped: {}: {error}", path.display());
            None
        }
    }
}
