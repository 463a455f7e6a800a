//! Tests of estimates and progress on standard error, and of runs that exceed memory or disk.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::{SMALL, Scratch, parsed, text};

/// Scenario that takes a second or more on any machine.
const LONG: &str = r#"
title = "long"
seeds = 1
series = ["irn"]
[topology.leaf-spine]
leaves = 8
spines = 4
hosts-per-leaf = 16
host-link = { rate = "100Gbps", delay = "600ns" }
spine-link = { rate = "400Gbps", delay = "1us" }
[workload.all-to-all]
size = "4MB"
"#;

/// Scenario of two million flows at once, which take some gigabytes.
const LARGE: &str = r#"
title = "large"
seeds = 1
series = ["irn"]
stop = { flows = 10_000_000 }
[topology.leaf-spine]
leaves = 8
spines = 4
hosts-per-leaf = 8
host-link = { rate = "100Gbps", delay = "600ns" }
spine-link = { rate = "400Gbps", delay = "1us" }
[workload.closed-loop]
sizes = { fixed = "1KB" }
outstanding = 30_000
"#;

#[test]
fn an_estimate_runs_nothing() {
    let scratch = Scratch::new("estimate").with("small.toml", SMALL);
    for option in ["--estimate", "--dry-run"] {
        let (out, error) = scratch.expect(0, &["run", "small.toml", option]);
        assert!(out.contains(" packet-hops in 8 runs") && out.contains("of memory"), "{out}");
        assert_eq!(error, "");
    }
    assert!(!scratch.join("results").exists());
    let (out, _) = scratch.expect(0, &["run", "small.toml", "--estimate", "--json", "--threads", "2"]);
    let estimate = parsed(&out);
    assert_eq!((estimate["runs"].as_u64(), estimate["threads"].as_u64()), (Some(8), Some(2)), "{out}");
    for key in ["packet_hops", "memory_bytes", "memory_at_most_bytes", "seconds"] {
        assert!(estimate[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {out}");
    }
    assert_eq!(estimate["series"][0]["series"], "irn");
    assert_eq!(estimate["series"][0]["flows"].as_f64(), Some(50.0));
    assert_eq!(estimate["series"][0]["payload_bytes"].as_f64(), Some(200_000.0));
}

#[test]
fn a_run_says_first_what_it_takes() {
    let scratch = Scratch::new("says-first").with("small.toml", SMALL);
    let (_, error) = scratch.expect(0, &["run", "small.toml", "--out", "out"]);
    let line = error.lines().find(|line| line.starts_with("estimate: ")).unwrap_or_else(|| panic!("{error}"));
    assert!(line.contains("packet-hops in 8 runs") && line.contains("of memory"), "{line}");
    let (_, error) = scratch.expect(0, &["run", "small.toml", "--out", "quiet", "--quiet"]);
    assert_eq!(error, "");
}

#[test]
fn lines_tell_how_a_run_goes_where_there_is_no_terminal() {
    let scratch = Scratch::new("lines").with("long.toml", LONG);
    let mut command = scratch.command(&["run", "long.toml", "--threads", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.starts_with("progress: ")).expect("a line");
    child.kill().and_then(|()| child.wait()).expect("a child process");
    let percent = line.strip_prefix("progress: ").and_then(|rest| rest.split(' ').next()).expect("a number");
    let percent: f64 = percent.parse().expect("a number");
    assert!(percent < 100.0 && line.contains("% done after ") && line.contains(" left"), "{line}");
}

/// Runs `arguments` with an address space of `kilobytes`.
#[cfg(target_os = "linux")]
fn limited(scratch: &Scratch, kilobytes: u32, arguments: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_selvedge");
    let script = format!("ulimit -v {kilobytes}; exec '{program}' {arguments}");
    let mut command = Command::new("sh");
    let output = command.current_dir(scratch.0.path()).args(["-c", &script]).output().expect("a shell");
    (output.status.code(), text(&output.stderr))
}

#[test]
#[cfg(target_os = "linux")]
fn what_exceeds_memory_is_refused() {
    let scratch = Scratch::new("refused").with("large.toml", LARGE);
    let (status, error) = limited(&scratch, 1_000_000, "run large.toml --threads 1");
    assert_eq!(status, Some(2), "{error}");
    for part in ["needs about ", "GB of memory", "(ulimit -v)", "workload.closed-loop.outstanding", "--ignore-memory"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!scratch.join("results").exists(), "nothing has begun");
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_is_used_up_is_a_message_and_status_1() {
    let scratch = Scratch::new("exhausted").with("large.toml", LARGE);
    let (status, error) = limited(&scratch, 1_000_000, "run large.toml --threads 1 --ignore-memory --out out");
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("error: out of memory: the system refused "), "{error}");
    assert!(error.contains("selvedge run --resume out.partial"), "{error}");
    assert!(!error.contains("panicked") && scratch.join("out.partial/unfinished.json").exists(), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn small_studies_run_in_little_memory() {
    let scratch = Scratch::new("little").with("small.toml", SMALL);
    let (status, error) = limited(&scratch, 500_000, "run small.toml --threads 2 --out out");
    assert_eq!(status, Some(0), "{error}");
}

/// Runs `script` with `full`, a file system of `kilobytes`; `None` where mounting is not allowed.
#[cfg(target_os = "linux")]
fn on_small_disk(scratch: &Scratch, kilobytes: u32, script: &str) -> Option<(Option<i32>, String)> {
    fs::create_dir_all(scratch.join("full")).expect("writable");
    let script = format!("mount -t tmpfs -o size={kilobytes}k none full || exit 99; {script}");
    let mut command = Command::new("unshare");
    command.current_dir(scratch.0.path()).args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let output = command.output().ok()?;
    let error = text(&output.stderr);
    if output.status.code() == Some(99) || error.contains("unshare failed") {
        eprintln!("skipped: no file system of its own for this test ({})", error.trim());
        return None;
    }
    Some((output.status.code(), error))
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_status_1_and_the_study_goes_on_when_there_is_space() {
    let program = env!("CARGO_BIN_EXE_selvedge");
    let scratch = Scratch::new("full-disk").with("small.toml", SMALL);
    let run = format!("'{program}' run small.toml --set stop.flows=20000 --threads 1 -q --out full/out");
    let script = format!(
        "{run}; status=$?; mount -o remount,size=50M full; '{program}' run --resume full/out -q > /dev/null && \
         test -e full/out/summary.json && exit $status; exit 98"
    );
    let Some((status, error)) = on_small_disk(&scratch, 200, &script) else { return };
    assert_eq!(status, Some(1), "{error}");
    for part in ["full/out.partial/", "No space left on device", "space left", "selvedge run --resume full/out.partial"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_a_traced_run() {
    let program = env!("CARGO_BIN_EXE_selvedge");
    let scratch = Scratch::new("full-trace").with("small.toml", SMALL);
    let script = format!(
        "'{program}' run small.toml --set stop.flows=20000 --trace all --trace-dir full/traces --threads 1 -q --out out"
    );
    let Some((status, error)) = on_small_disk(&scratch, 300, &script) else { return };
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("full/traces/") && error.contains("No space left on device"), "{error}");
}

#[test]
fn a_full_device_is_status_1_for_what_is_printed() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let scratch = Scratch::new("dev-full").with("small.toml", SMALL);
    let mut command = scratch.command(&["run", "small.toml", "--estimate"]);
    let output = command.stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
