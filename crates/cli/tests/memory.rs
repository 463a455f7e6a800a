//! A study's memory does not depend on how many flows there have been: rows go to disk as flows end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use selvedge_testkit::Scratch;

#[test]
fn flows_that_have_ended_are_on_disk() {
    if !std::path::Path::new("/proc/self/status").exists() {
        eprintln!("skipped: peak memory is read from /proc, which this system does not have");
        return;
    }
    // A row is 104 bytes, 40 MB in all. Pages of the program itself that are read count, too: not each run has the
    // same.
    let (few, many) = (peak_kb(10_000), peak_kb(400_000));
    assert!(many < few + 768, "{few} kB for 10,000 flows, {many} kB for 400,000");
}

/// Peak memory of a study of `flows` flows.
fn peak_kb(flows: u64) -> u64 {
    let scratch = Scratch::new(&format!("memory-{flows}")).with("study.toml", include_str!("come-and-go.toml"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(scratch.path()).args(["run", "study.toml", "-q", "--threads", "1", "--out", "out"]);
    command.args(["--set", &format!("stop.flows={flows}")]).stdout(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The peak so far never falls, so that the last look tells.
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("it can be waited for") {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = line.unwrap_or(peak);
        #[expect(clippy::disallowed_methods, reason = "another process takes its time")]
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(ended.success() && peak > 0, "{ended}, {peak} kB");
    peak
}
