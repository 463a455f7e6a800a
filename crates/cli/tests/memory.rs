//! Test that a study's memory does not depend on the number of flows so far: rows go to disk as flows end.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use selvedge_testkit::Scratch;

#[test]
fn flows_that_have_ended_are_on_disk() {
    // Pages of the program that are read count, too, and differ between runs: the largest of several runs is taken. The
    // number of flows fills the pages of a table before they are written: with fewer flows, buffers are smaller.
    for _ in 0..3 {
        run(100_000);
    }
    let few = peak_kb();
    // A row is 104 bytes: 83 MB more, of which less than a hundredth may stay in memory.
    run(900_000);
    let many = peak_kb();
    assert!(many < few + 768, "{few} kB for 100,000 flows, {many} kB for 900,000");
}

/// Runs a study of `flows` flows.
fn run(flows: u64) {
    let scratch = Scratch::new(&format!("memory-{flows}")).with("study.toml", include_str!("come-and-go.toml"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(scratch.path()).args(["run", "study.toml", "-q", "--threads", "1", "--out", "out"]);
    command.args(["--set", &format!("stop.flows={flows}")]).stdout(Stdio::null());
    let ended = command.status().expect("the program starts");
    assert!(ended.success(), "{ended}");
}

/// Returns the peak memory of the largest study so far, as counted by the kernel to the study's end.
fn peak_kb() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts").max_rss()
}
