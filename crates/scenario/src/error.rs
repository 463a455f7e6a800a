//! Errors of a scenario, addressed to the person who wrote it.

use std::fmt;
use std::path::Path;

/// Reason why a scenario cannot be run: place, key, fault and valid values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// Place where the faulty value was written.
    pub place: Place,
    /// The key, as "switch.pfc.headroom"; empty where the text as a whole is meant.
    pub key: String,
    /// Description of the fault, and of valid values.
    pub message: String,
}

/// Place where a part of a scenario was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a file, at a line and column that count from 1.
    At {
        /// The file's name, as the user gave it.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// Place of a file as a whole, for example one that cannot be read.
    File(String),
    /// In an argument of the command line, which is quoted.
    Argument(String),
}

impl ScenarioError {
    /// Returns an error at `place` about `key`.
    pub(crate) fn new(place: Place, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place, key: key.into(), message: message.into() }
    }
    /// Returns the error for a file that cannot be read.
    pub(crate) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file",
            std::io::ErrorKind::IsADirectory => {
                "this is a folder without a scenario.toml; expected a scenario file, or a folder with one"
            }
            std::io::ErrorKind::InvalidData => "not a text in UTF-8",
            _ => return Self::new(Place::File(file.to_owned()), "", format!("cannot be read: {error}")),
        };
        Self::new(Place::File(file.to_owned()), "", hint)
    }
    /// Returns the path that `option` gives, if it is UTF-8, as scenarios need.
    pub(crate) fn utf8<'a>(option: &str, path: &'a Path) -> Result<&'a str, Self> {
        path.to_str().ok_or_else(|| {
            let message = "its path is no text in UTF-8, as those in scenarios are; rename it, or what leads to it";
            Self::argument(format!("{option} {}", path.display()), message)
        })
    }
    /// Returns an error in an argument of the command line.
    pub fn argument(argument: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Place::Argument(argument.into()), "", message)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::File(file) => f.write_str(file),
            Self::Argument(argument) => f.write_str(argument),
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}
impl std::error::Error for ScenarioError {}
