//! Errors of the daemon and of its control.

use std::fmt;
use std::io;

/// Reason why the daemon does not start or ends, or why it does not answer; with a remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EqdsError {
    /// Whether settings, permissions or other conditions that the user chooses are wrong; else something failed.
    pub is_input: bool,
    message: String,
}

impl EqdsError {
    /// Returns the error of settings or permissions.
    pub(super) fn input(message: impl Into<String>) -> Self {
        Self { is_input: true, message: message.into() }
    }
    /// Returns the error of something that failed.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { is_input: false, message: message.into() }
    }
    /// Returns the error of a system call; `what` is the attempted action.
    pub(super) fn system(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::failed(format!("{what}: {error}"))
    }
}

impl fmt::Display for EqdsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EqdsError {}
