//! Commands `ip` and `tc` of iproute2, and texts of errors.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Runs `ip` with these arguments.
///
/// # Errors
/// Returns an error if the program is missing, or what it said if it failed.
pub(crate) fn ip(words: &[&str]) -> io::Result<()> {
    let text = format!("ip {}", words.join(" "));
    let output = Command::new("ip").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(explained(&format!("cannot run `{text}` (package iproute2)")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{text}` failed: {}", said.trim())))
}

/// Runs one `ip` for many commands, which are the arguments that it would have alone; returns what it printed.
///
/// # Errors
/// Returns an error if the program is missing, or the first command that failed and what `ip` said of it.
pub(crate) fn ip_batch(options: &[&str], commands: &[String]) -> io::Result<String> {
    batch("ip", options, commands)
}

/// Runs one `tc` for many commands, which are the arguments that it would have alone; returns what it printed.
///
/// # Errors
/// Returns an error if the program is missing, or the first command that failed and what `tc` said of it.
pub(crate) fn tc_batch(options: &[&str], commands: &[String]) -> io::Result<String> {
    batch("tc", options, commands)
}

fn batch(program: &str, options: &[&str], commands: &[String]) -> io::Result<String> {
    if commands.is_empty() {
        return Ok(String::new());
    }
    let unable = format!("cannot run `{program}` (package iproute2)");
    let missing = || explained(&unable);
    let mut command = Command::new(program);
    command.args(options).args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(missing())?;
    let text = commands.join("\n") + "\n";
    let mut input = child.stdin.take().expect("standard input is a pipe");
    // A program that ends early, at a command that fails, closes the pipe. A thread of its own writes: both pipes of a
    // long list may be full at once.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(text.as_bytes()));
        child.wait_with_output()
    });
    let output = output.map_err(missing())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let (said, number) = said.trim().rsplit_once("Command failed -:").unwrap_or((said.trim(), ""));
    let number = number.trim().parse::<usize>().ok();
    let failed = number.and_then(|number| commands.get(number.checked_sub(1)?)).map_or("-batch", String::as_str);
    Err(io::Error::other(format!("`{program} {failed}` failed: {}", said.trim())))
}

/// Returns a function that puts `what` (the attempted action) before a system error's text.
pub(crate) fn explained(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}
