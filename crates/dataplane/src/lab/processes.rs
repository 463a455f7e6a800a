//! Processes in namespaces, and their end.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::netns;

/// Interval at which to look whether processes have ended.
const GLANCE: Duration = Duration::from_millis(10);
/// Number of looks before processes that were asked to end are killed.
const ASKED: u32 = 100;
/// Number of looks before killed processes are given up.
const KILLED: u32 = 50;

/// Returns the processes whose main thread is in one of these namespaces, this process excepted.
pub(super) fn within(names: &[&str]) -> Vec<Pid> {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let spaces: Vec<_> = names.iter().filter_map(|name| fs::metadata(netns::path(name)).ok()).map(identity).collect();
    let is_within = |pid: &i32| {
        let space = fs::metadata(format!("/proc/{pid}/ns/net")).map(identity);
        space.is_ok_and(|space| spaces.contains(&space))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| pid.cast_unsigned() != std::process::id()).filter(is_within).map(Pid::from_raw).collect()
}

/// Asks processes to end, and kills those that do not within a second.
pub(super) fn end(processes: &[Pid]) {
    let mut left = processes.to_vec();
    for (signal, looks) in [(Signal::SIGTERM, ASKED), (Signal::SIGKILL, KILLED)] {
        for pid in &left {
            // A process may have ended.
            let _ = kill(*pid, signal);
        }
        for _ in 0..looks {
            left.retain(|pid| is_running(*pid));
            if left.is_empty() {
                return;
            }
            wait();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel tells only parents when a process ends")]
fn wait() {
    std::thread::sleep(GLANCE);
}

/// Returns whether a process runs. One that has ended and only waits for its parent does not.
fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may contain any letter.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Lets a command's process get a signal to end when the thread that started it ends, however that happens. The process
/// is also the first of a group of its own: Ctrl-C in a terminal does not reach it. It blocks no signal, whatever this
/// process blocks.
#[expect(unsafe_code, reason = "there is no other way to say so before the program starts")]
pub fn end_with_parent(command: &mut Command) {
    command.process_group(0);
    let before = || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        Ok(SigSet::all().thread_unblock()?)
    };
    // SAFETY: the function makes two system calls, allocates nothing, and takes no lock.
    unsafe { command.pre_exec(before) };
}
