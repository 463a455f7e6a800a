//! Tests of rdma-core itself, in Python; and functions that are newer than Debian's rdma-core.

use std::path::{Path, PathBuf};
use std::process::Output;

use selvedge_dataplane::rnic::Device;

use crate::support::{LOOPBACK, Place, build, said, shell};

/// Folder in which Debian's package `rdma-core` has the tests.
const TESTS: &str = "/usr/share/doc/rdma-core/tests";

/// Names of the tests that Linux's soft RoCE passes.
const SOFT_ROCE: &str = include_str!("../soft-roce.txt");
/// Tests that soft RoCE skips and that must pass here: memory on demand, regions that change, parent domains.
const MORE: [&str; 6] = [
    "test_mr_rereg_addr",
    "test_mr_rereg_access",
    "test_odp_rc_traffic",
    "test_odp_implicit_sync_prefetch_rc_traffic",
    "test_default_allocators_rc_traffic",
    "test_mem_align_srq_excq_rc_traffic",
];

/// Returns a device with hardware, if there is one: tests of the connection manager look in /sys/class/infiniband for a
/// device's interface, which is known for hardware only.
fn with_hardware() -> Option<Device> {
    let has_hardware =
        |device: &Device| Path::new("/sys/class/net").join(&device.interface).join("device/net").is_dir();
    Device::all().ok()?.into_iter().find(|device| device.is_up && has_hardware(device))
}

/// Returns the command that runs these tests on a device; prints the reason if there is none.
fn suite(device: &str, folder: &str) -> Option<Vec<String>> {
    if !Path::new(TESTS).is_dir() || !Path::new("/usr/lib/python3/dist-packages/pyverbs").is_dir() {
        eprintln!("skipped: no tests of rdma-core's, or no pyverbs here: install rdma-core and python3-pyverbs");
        return None;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let (from, to) = (TESTS, folder.display());
    shell(&format!("rm -rf {to} && mkdir -p {to} && cp -r {from} {to} && gunzip {to}/tests/*.gz"))
        .expect("the tests unpack");
    let script = folder.join("tests/run_tests.py").display().to_string();
    Some(["/usr/bin/python3", &script, "--gid", "1", "--dev", device, "-v"].map(str::to_owned).into())
}

/// Runs the tests; returns the names of those that passed, and the output. No test may fail; those without a device are
/// skipped.
fn passed(device: &str, words: &[&str]) -> (Vec<String>, Output) {
    let output = Place { device, ..LOOPBACK }.run(words);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    // A test's description may come between its name and its result.
    let mut name = "";
    let mut all = Vec::new();
    for line in text.lines() {
        if line.starts_with("test_") {
            name = line.split(' ').next().unwrap_or_default();
        }
        // Other output may come in between.
        if line == "ok" || line.ends_with("... ok") {
            all.push(name.to_owned());
        }
    }
    (all, output)
}

#[test]
fn rdma_cores_tests_of_verbs_pass() {
    let Some(words) = suite(LOOPBACK.device, "rdma-core-verbs") else { return };
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let (all, output) = passed(LOOPBACK.device, &words);
    let theirs = SOFT_ROCE.lines().filter(|line| line.starts_with("test_"));
    let missing: Vec<_> = theirs.chain(MORE).filter(|name| !all.iter().any(|passed| passed == name)).collect();
    assert!(missing.is_empty(), "{missing:?}: {}", said(&output));
    assert!(all.len() >= 110, "{} passed: {}", all.len(), said(&output));
}

#[test]
fn rdma_cores_tests_of_connections_pass() {
    let Some(device) = with_hardware() else {
        eprintln!("skipped: no network interface with hardware here, which rdma-core's tests ask for");
        return;
    };
    let Some(words) = suite(&device.name, "rdma-core") else { return };
    let words: Vec<_> = words.iter().map(String::as_str).chain(["tests.test_rdmacm"]).collect();
    let (all, output) = passed(&device.name, &words);
    assert_eq!(all.len(), 10, "{}", said(&output));
}

#[test]
fn functions_of_newer_versions_are_found() {
    let Some(program) = build("recent.c", &["-libverbs", "-ldl"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    let expected = "\
memory: 4096 bytes
memory of a descriptor: EOPNOTSUPP
buffer: 5000 bytes, aligned
counter: EOPNOTSUPP
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
}

#[test]
fn words_are_written_at_one_stroke_and_flushed() {
    let Some(program) = build("once.c", &["-libverbs"]) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}", std::process::id()));
    let output = LOOPBACK.run(&[&program, LOOPBACK.device, &file.display().to_string()]);
    let _ = std::fs::remove_file(file);
    let expected = "\
capabilities: 0x7
ordinary memory that is to survive: EINVAL
atomic write: success
written: yes
posted: success
flush: success
flush of all: success
flush to the file: success
in the file: yes
no right to that: remote access error
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
}
