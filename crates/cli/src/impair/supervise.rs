//! Supervision of the user's program, and signals.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use selvedge_dataplane::impair::ask_to_end;

use crate::output::Failure;

/// Interval at which to look whether a program has ended.
const GLANCE: Duration = Duration::from_millis(10);
/// Number of checks before a program that does not end by itself is sent a signal, after an interruption.
const GRACE: u32 = 100;
/// Number of further checks before a program is killed, after it was sent a signal: signals from elsewhere than a
/// terminal do not reach it.
const ASKED: u32 = 200;

/// Receiver of Ctrl-C and other signals to end.
pub(super) struct Signals(Receiver<()>);

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        let (send, receive) = channel();
        ctrlc::set_handler(move || send.send(()).unwrap_or_default())
            .map_err(|error| Failure::outcome(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Self(receive))
    }
    /// Waits until a signal comes.
    pub(super) fn wait(&self) {
        let _ = self.0.recv();
    }
}

/// Runs a program to its end; returns its status, like a shell. Ctrl-C reaches the program, too; a program that it does
/// not end is first sent a signal to end, and then killed.
pub(super) fn run(program: &OsString, arguments: &[OsString], signals: &Signals) -> Result<u8, Failure> {
    let unable = |error: std::io::Error| Failure::input(format!("cannot run {}: {error}", program.display()));
    let mut child = Command::new(program).args(arguments).spawn().map_err(unable)?;
    let mut patience = None;
    loop {
        if let Some(status) = child.try_wait().map_err(unable)? {
            return Ok(as_shells_say(status));
        }
        match signals.0.recv_timeout(GLANCE) {
            Ok(()) => patience = patience.or(Some(GRACE + ASKED)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        patience = patience.map(|looks| looks.saturating_sub(1));
        match patience {
            Some(ASKED) => ask_to_end(&child).map_err(unable)?,
            Some(0) => child.kill().map_err(unable)?,
            _ => {}
        }
    }
}

fn as_shells_say(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
