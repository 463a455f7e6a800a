//! Standard output, standard error, and failures of commands.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use console::Term;
use selvedge_scenario::ScenarioError;
use selvedge_study::StudyError;

use crate::progress::interrupted_status;

/// Reason why a command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit status.
    pub(crate) status: u8,
    /// Message to print; empty if it was printed already.
    pub(crate) message: String,
    /// Whether storage failed: the results can be continued when there is space.
    pub(crate) storage: bool,
}

impl Failure {
    /// Returns the failure of invalid input.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { status: 2, message: message.into(), storage: false }
    }
    /// Returns the failure of valid input whose outcome is not as required.
    pub(crate) fn outcome(message: impl Into<String>) -> Self {
        Self { status: 1, message: message.into(), storage: false }
    }
    /// Returns the failure of an interruption, by Ctrl-C or a signal.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { status: interrupted_status(), message: message.into(), storage: false }
    }
    /// Returns the failure of a file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::input(format!("{}: cannot be read: {error}", path.display()))
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Self::input(error.to_string())
    }
}
impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error.is_input() {
            true => Self::input(error.to_string()),
            false => Self { storage: error.is_storage_failure(), ..Self::outcome(error.to_string()) },
        }
    }
}

/// Writes to standard output. A reader that closes the pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Returns the outcome of writing to standard output; a broken pipe is no failure.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::outcome(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a line to standard error; a failure to write is ignored.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Returns indented JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("our values have text keys only")
}

/// Returns whether standard output shows colours.
pub(crate) fn has_color() -> bool {
    io::stdout().is_terminal() && allows_control()
}

/// Returns whether a terminal may get control codes: not if `NO_COLOR` is set (see no-color.org), or if the terminal
/// understands none, as that called "dumb".
pub(crate) fn allows_control() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    // Only Unix has names of terminals.
    !(no_color || cfg!(unix) && dumb)
}

/// Returns the columns of standard output: those of the terminal, unless the environment sets another number.
pub(crate) fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.or_else(|| columns_of(&Term::stdout())).unwrap_or(100)
}

/// Returns the columns of a terminal; `None` if `term` is no terminal.
pub(crate) fn columns_of(term: &Term) -> Option<usize> {
    let (_, columns) = term.size_checked()?;
    // Some terminals report zero columns: the width is unknown.
    (columns > 0).then_some(usize::from(columns))
}
