//! Daemons of a laboratory: started together, watched, ended together.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use selvedge_dataplane::impair::ask_to_end;
use selvedge_dataplane::lab::end_with_parent;

use super::settings;
use super::sites::Sites;
use crate::output::{self, Failure};
use crate::supervise::Signals;

/// Looks, one each 10 ms, for a daemon to start: in all, and for each host more.
const STARTED: u32 = 2_000;
const STARTED_EACH: u32 = 50;
/// Looks for a daemon that has been asked to end.
const ENDED: u32 = 300;
/// Time in which a daemon answers.
const ANSWERED: Duration = Duration::from_secs(2);
/// Last lines of a daemon's log that a message has.
const LINES: usize = 5;

/// Daemons of all hosts. Dropping the value ends them.
pub(super) struct Daemons<'a> {
    all: Vec<Daemon>,
    signals: &'a Signals,
}

struct Daemon {
    host: u32,
    child: Child,
    log: PathBuf,
}

impl<'a> Daemons<'a> {
    /// Starts all daemons, with the settings in `folder`, and waits until each answers or a signal comes.
    pub(super) fn start(sites: &Sites, folder: &Path, signals: &'a Signals) -> Result<Self, Failure> {
        let unable = |error: std::io::Error| Failure::outcome(format!("cannot start a daemon: {error}"));
        let program = std::env::current_exe().map_err(unable)?;
        let mut daemons = Self { all: Vec::new(), signals };
        for host in sites.all() {
            let log = settings::log(folder, host);
            let said = File::create(&log).map_err(unable)?;
            let mut command = Command::new("ip");
            command.args(["netns", "exec", sites.host(host)]).arg(&program).args(["eqds", "up", "--config"]);
            command.arg(folder.join(format!("h{host}.toml"))).arg("--socket").arg(settings::socket(folder, host));
            command.stdin(Stdio::null()).stdout(said.try_clone().map_err(unable)?).stderr(said);
            end_with_parent(&mut command);
            let child = command.spawn().map_err(unable)?;
            daemons.all.push(Daemon { host, child, log });
        }
        for at in 0..daemons.all.len() {
            let mut has_ended = None;
            let daemon = &mut daemons.all[at];
            let socket = settings::socket(folder, daemon.host);
            let is_up = signals.wait_for(STARTED + STARTED_EACH * sites.count(), || {
                has_ended = daemon.child.try_wait().unwrap_or_default();
                has_ended.is_some() || answers(&socket)
            });
            match has_ended {
                Some(status) => return Err(Failure::input(daemon.ended("does not start", status))),
                None if !is_up && !signals.has_come() => {
                    let message = format!("the daemon of h{} does not answer{}", daemon.host, daemon.last_lines());
                    return Err(Failure::outcome(message));
                }
                None => {}
            }
        }
        Ok(daemons)
    }

    /// Says which daemons have ended before they were asked to.
    pub(super) fn tell_of_ended(&mut self) {
        for daemon in &mut self.all {
            if let Ok(Some(status)) = daemon.child.try_wait() {
                output::say(&daemon.ended("has ended by itself", status));
            }
        }
    }
}

impl Drop for Daemons<'_> {
    fn drop(&mut self) {
        for daemon in &mut self.all {
            if let Ok(None) = daemon.child.try_wait() {
                let _ = ask_to_end(&daemon.child);
            }
        }
        for daemon in &mut self.all {
            let has_ended = || !matches!(daemon.child.try_wait(), Ok(None));
            // A second Ctrl-C ends the patience.
            if !self.signals.wait_for(ENDED, has_ended) {
                let _ = daemon.child.kill();
                let _ = daemon.child.wait();
            }
        }
    }
}

impl Daemon {
    fn ended(&self, how: &str, status: ExitStatus) -> String {
        format!("the daemon of h{} {how} ({status}){}", self.host, self.last_lines())
    }

    /// Returns the end of what the daemon has said.
    fn last_lines(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.trim().lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        if last.is_empty() { String::new() } else { format!(":\n  {}", last.join("\n  ")) }
    }
}

/// Returns whether a daemon answers on its control socket.
fn answers(socket: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWERED))?;
        stream.write_all(b"{\"command\":\"status\"}\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)
    };
    ask().is_ok_and(|bytes| bytes > 0)
}
