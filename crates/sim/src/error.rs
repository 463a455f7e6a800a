//! What can be wrong with a configuration, and where files come from.

use std::fmt;

use crate::topology::Graph;
use crate::workload::schedule::Schedule;
use crate::workload::{Cdf, FlowList, StartUnit};

/// A configuration that cannot be built; names the key and says what would be right.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfigError {
    /// The key within the part that was built, as "k" or "link.rate". Empty: the part as a whole.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Where loads are too high together, that of the fullest link, above 1: of several configurations, what suits the
    /// one with the highest suits all.
    pub overload: Option<f64>,
}

impl ConfigError {
    /// An error about `key`.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), overload: None }
    }
    /// The same error, seen from outside the table `prefix`.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.key = if self.key.is_empty() { prefix.to_owned() } else { format!("{prefix}.{}", self.key) };
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.key, self.message) }
    }
}
impl std::error::Error for ConfigError {}

/// Where named distributions and files come from. The simulator opens no files itself. A library has none
/// but what it says.
pub trait Library {
    /// The flow-size distribution with this name or path ("cdf:web-search", "file:sizes.txt").
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        Err(nothing("distribution", reference))
    }
    /// The flows in this file, whose starts have this unit if the file does not say it. The key of an error is empty or
    /// "start-unit".
    fn flows(&self, path: &str, _: StartUnit) -> Result<FlowList, ConfigError> {
        Err(nothing("file", path))
    }
    /// The schedule in this file.
    fn schedule(&self, path: &str) -> Result<Schedule, ConfigError> {
        Err(nothing("file", path))
    }
    /// The network in this file.
    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        Err(nothing("file", path))
    }
    /// The numbers of lost packets in this file.
    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        Err(nothing("file", path))
    }
}

/// A library without anything in it.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Library for NoFiles {}

fn nothing(what: &str, name: &str) -> ConfigError {
    ConfigError::new("", format!("there is no {what} \"{name}\" here"))
}
