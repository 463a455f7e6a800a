//! Errors in a text, addressed to the person who wrote it.

use std::fmt;

/// Fault of a text: place, key, fault and valid values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentError {
    /// Place where the faulty value was written.
    pub place: Place,
    /// The key, as "switch.pfc.headroom"; empty where the text as a whole is meant.
    pub key: String,
    /// Description of the fault, and of valid values.
    pub message: String,
}

/// Place where a part of a text was written.
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

impl DocumentError {
    /// Returns an error at `place` about `key`.
    pub fn new(place: Place, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place, key: key.into(), message: message.into() }
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

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}
impl std::error::Error for DocumentError {}
