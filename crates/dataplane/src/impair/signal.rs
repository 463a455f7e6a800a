//! What the standard library cannot say to a program.

use std::io;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Asks a program to end (`SIGTERM`), which has not been waited for.
///
/// # Errors
/// As the system has it.
pub fn ask_to_end(child: &Child) -> io::Result<()> {
    Ok(kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?)
}
