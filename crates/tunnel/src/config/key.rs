//! Secrets in `eqds.toml`, or in files that it names.

use std::fs;
use std::path::Path;

use crate::keys::Secret;

/// Reads a key file; the error says what to do.
pub(super) fn read(path: &Path) -> Result<Secret, String> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("no file {}; make it by `(umask 077; wg genkey > {0})`", path.display())
        }
        _ => format!("{} cannot be read: {error}", path.display()),
    })?;
    private(path)?;
    Secret::from_base64(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns an error if others than its owner can read or write the file.
#[cfg(unix)]
pub(super) fn private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;

    // A text that is no file, as in tests and checks of standard input, has no permissions.
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let message =
            format!("{} has a secret and the mode {mode:03o}: others may use it; run `chmod 600 {0}`", path.display());
        return Err(message);
    }
    Ok(())
}

/// Accepts any file: permissions are those of Unix.
#[cfg(not(unix))]
pub(super) fn private(_: &Path) -> Result<(), String> {
    Ok(())
}
