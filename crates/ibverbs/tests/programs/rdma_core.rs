//! rdma-core's own tests of its connection manager, in Python; and functions that are newer than Debian's rdma-core.

use std::path::{Path, PathBuf};

use selvedge_dataplane::rnic::Device;

use crate::support::{LOOPBACK, Place, build, said, shell};

/// Where Debian's package `rdma-core` has them.
const TESTS: &str = "/usr/share/doc/rdma-core/tests";

/// They ask by /sys/class/infiniband which interface is a device's, which is known of hardware only.
fn with_hardware() -> Option<Device> {
    let has_hardware =
        |device: &Device| Path::new("/sys/class/net").join(&device.interface).join("device/net").is_dir();
    Device::all().ok()?.into_iter().find(|device| device.is_up && has_hardware(device))
}

#[test]
fn rdma_cores_tests_of_connections_pass() {
    if !Path::new(TESTS).is_dir() || !Path::new("/usr/lib/python3/dist-packages/pyverbs").is_dir() {
        eprintln!("skipped: no tests of rdma-core's, or no pyverbs here: install rdma-core and python3-pyverbs");
        return;
    }
    let Some(device) = with_hardware() else {
        eprintln!("skipped: no network interface with hardware here, which rdma-core's tests ask for");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rdma-core");
    let (from, to) = (TESTS, folder.display());
    shell(&format!("rm -rf {to} && mkdir -p {to} && cp -r {from} {to} && gunzip {to}/tests/*.gz"))
        .expect("they unpack");
    let script = folder.join("tests/run_tests.py").display().to_string();
    let words = ["/usr/bin/python3", &script, "--gid", "1", "--dev", &device.name, "-v", "tests.test_rdmacm"];
    let output = Place { device: &device.name, ..LOOPBACK }.run(&words);
    let text = String::from_utf8_lossy(&output.stderr);
    let passed = text.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(output.status.success() && passed == 7, "{}", said(&output));
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
