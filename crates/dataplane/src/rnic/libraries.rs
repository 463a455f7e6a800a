//! Place of the libraries that unmodified RDMA programs load.

use std::env;
use std::path::{Path, PathBuf};

/// File name of the verbs library.
pub const LIBRARY: &str = "libibverbs.so.1";
/// Environment variable with the folder of the libraries, if they are not beside this program.
const FOLDER: &str = "SELVEDGE_LIBRARIES";

/// Returns the folder with the libraries: `chosen`, else the value of `SELVEDGE_LIBRARIES`, else `lib/selvedge` or
/// `lib` beside the folder of this program.
///
/// # Errors
/// Returns a message with the remedy if there is no verbs library.
pub fn libraries(chosen: Option<&Path>) -> Result<PathBuf, String> {
    // In a package, libraries for Selvedge alone have a folder of their own.
    let beside = || {
        let lib = env::current_exe().ok()?.parent()?.parent()?.join("lib");
        let own = lib.join("selvedge");
        Some(if own.is_dir() { own } else { lib })
    };
    let chosen = chosen.map(Path::to_owned).or_else(|| env::var_os(FOLDER).map(PathBuf::from));
    let folder = chosen.or_else(beside).unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or(folder);
    if folder.join(LIBRARY).is_file() {
        return Ok(folder);
    }
    let folder = folder.display();
    Err(format!(
        "no {LIBRARY} in {folder}: `cargo xtask dist` makes it, and Debian's package selvedge-verbs has it; --libraries or \
         {FOLDER} says where it is"
    ))
}
