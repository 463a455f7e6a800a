//! Errors of a scenario, addressed to the person who wrote it.

use std::path::Path;

pub use selvedge_document::{DocumentError as ScenarioError, Place};

/// Returns the error for a file that cannot be read.
pub(crate) fn unreadable(file: &str, error: &std::io::Error) -> ScenarioError {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file",
        std::io::ErrorKind::IsADirectory => {
            "this is a folder without a scenario.toml; expected a scenario file, or a folder with one"
        }
        std::io::ErrorKind::InvalidData => "not a text in UTF-8",
        _ => return ScenarioError::new(Place::File(file.to_owned()), "", format!("cannot be read: {error}")),
    };
    ScenarioError::new(Place::File(file.to_owned()), "", hint)
}

/// Returns the path that `option` gives, if it is UTF-8, as scenarios need.
pub(crate) fn utf8<'a>(option: &str, path: &'a Path) -> Result<&'a str, ScenarioError> {
    path.to_str().ok_or_else(|| {
        let message = "its path is no text in UTF-8, as those in scenarios are; rename it, or what leads to it";
        ScenarioError::argument(format!("{option} {}", path.display()), message)
    })
}
