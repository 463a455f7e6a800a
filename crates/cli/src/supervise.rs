//! Supervision of the user's program, and signals.

use std::cell::Cell;
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
pub(crate) struct Signals {
    signals: Receiver<()>,
    has_come: Cell<bool>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (send, receive) = channel();
        ctrlc::set_handler(move || send.send(()).unwrap_or_default())
            .map_err(|error| Failure::outcome(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Self { signals: receive, has_come: Cell::new(false) })
    }
    /// Waits until a signal comes.
    pub(crate) fn wait(&self) {
        let _ = self.signals.recv();
    }
    /// Waits until a signal comes, for [`GLANCE`] at most; returns whether one came.
    fn glance(&self) -> bool {
        match self.signals.recv_timeout(GLANCE) {
            Ok(()) => self.has_come.set(true),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
        true
    }
    /// Returns whether a signal has come since the start.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come.set(self.has_come.get() || self.signals.try_recv().is_ok());
        self.has_come.get()
    }
    /// Looks every 10 ms whether something is done, for `looks` times at most. Returns whether it was; a signal ends
    /// the wait.
    pub(crate) fn wait_for(&self, looks: u32, mut is_done: impl FnMut() -> bool) -> bool {
        for _ in 0..looks {
            if is_done() {
                return true;
            }
            if self.glance() {
                return false;
            }
        }
        is_done()
    }
}

/// Runs a program to its end; returns its status, like a shell. Ctrl-C reaches the program, too; a program that it does
/// not end is first sent a signal to end, and then killed.
pub(crate) fn run(command: &mut Command, signals: &Signals) -> Result<u8, Failure> {
    let mut child = command
        .spawn()
        .map_err(|error| Failure::input(format!("cannot run {}: {error}", command.get_program().display())))?;
    let unable = |error: std::io::Error| Failure::outcome(format!("cannot wait for the program: {error}"));
    let mut patience = None;
    loop {
        if let Some(status) = child.try_wait().map_err(unable)? {
            return Ok(as_shells_say(status));
        }
        if signals.glance() {
            patience = patience.or(Some(GRACE + ASKED));
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
