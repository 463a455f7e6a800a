//! Signals to child processes, which the standard library does not offer.

use std::io;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Asks a child process to end (`SIGTERM`). It must not have been waited for.
///
/// # Errors
/// Returns the system's error.
pub fn ask_to_end(child: &Child) -> io::Result<()> {
    Ok(kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?)
}
