//! Errors of configurations, and the source of files.

use std::fmt;

use crate::topology::Graph;
use crate::workload::schedule::Schedule;
use crate::workload::{Cdf, FlowList, StartUnit};

/// A configuration that cannot be built: the key, and what would be right.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfigError {
    /// Key within the part that was built, such as "k" or "link.rate". Empty: the part as a whole.
    pub key: String,
    /// Message: what is wrong and what would be right.
    pub message: String,
    /// Load of the fullest link, above 1, where loads are too high together: of several configurations, the remedy of
    /// the one with the highest load suits all.
    pub overload: Option<f64>,
}

impl ConfigError {
    /// Creates an error about `key`.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), overload: None }
    }
    /// Returns an error of a workload with its key in a scenario. Workloads report errors of two keys outside of
    /// `workload`: "measure" and "stop".
    #[must_use]
    pub(crate) fn of_workload(self) -> Self {
        let is_foreign = ["measure", "stop"].iter().any(|key| self.key.starts_with(key));
        if is_foreign { self } else { self.within("workload") }
    }
    /// Returns the error with its key prefixed by the table `prefix`.
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

/// Source of named distributions and files: the simulator opens no files itself. A library holds nothing beyond what it
/// implements.
pub trait Library {
    /// Returns the flow-size distribution with this name or path ("cdf:web-search", "file:sizes.txt").
    ///
    /// # Errors
    /// There is none, or it is invalid.
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        Err(nothing("distribution", reference))
    }
    /// Returns the flows in this file, whose starts have this unit unless the file gives one.
    ///
    /// # Errors
    /// There is no such file, or it is invalid; the key is empty or "start-unit".
    fn flows(&self, path: &str, _: StartUnit) -> Result<FlowList, ConfigError> {
        Err(nothing("file", path))
    }
    /// Returns the schedule in this file.
    ///
    /// # Errors
    /// There is no such file, or it is invalid.
    fn schedule(&self, path: &str) -> Result<Schedule, ConfigError> {
        Err(nothing("file", path))
    }
    /// Returns the network in this file.
    ///
    /// # Errors
    /// There is no such file, or it is invalid.
    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        Err(nothing("file", path))
    }
    /// Returns the numbers of lost packets in this file.
    ///
    /// # Errors
    /// There is no such file, or it is invalid.
    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        Err(nothing("file", path))
    }
}

/// An empty library.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Library for NoFiles {}

fn nothing(what: &str, name: &str) -> ConfigError {
    ConfigError::new("", format!("there is no {what} \"{name}\" here"))
}
