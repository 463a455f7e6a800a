//! Runs of other programs.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::root;

/// Returns a command of the cargo that runs this program, at the root of the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command in full view.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let text = text_of(command);
    eprintln!("$ {text}");
    let status = command.status().with_context(|| format!("cannot run `{text}`"))?;
    ensure!(status.success(), "`{text}` failed ({status})");
    Ok(())
}

/// Returns the text that a command prints to standard output; its standard error is shown.
///
/// # Errors
/// Returns an error if the command cannot be started or fails, or prints something else than UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let text = text_of(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{text}`"))?;
    ensure!(output.status.success(), "`{text}` failed ({})", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{text}` printed something else than UTF-8"))
}

/// Runs a command of which only failures are of interest.
///
/// # Errors
/// Returns an error if the command cannot be started or fails; the error contains its output.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    let text = text_of(command);
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{text}`"))?;
    ensure!(done.status.success(), "`{text}` failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(())
}

/// Returns the command as text, as in a shell.
pub(crate) fn text_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
