//! UCX, and MPI over it: both look for devices in files, too.

use std::path::Path;
use std::process::Command;

use crate::HERE;
use crate::support::{LOOPBACK, Listens, Namespaces, Pair, fresh_port, have, said};

/// Value of `UCX_TLS`: UCX establishes reliable connections by datagrams.
const RELIABLE: &str = "rc_verbs,ud_verbs:aux";

/// Transports, and arguments of `ucx_perftest`.
type Test = (&'static str, &'static [&'static str]);

const TESTS: &[Test] = &[
    (RELIABLE, &["tag_lat", "-n", "200"]),
    (RELIABLE, &["tag_bw", "-n", "100", "-s", "100000"]),
    (RELIABLE, &["ucp_get", "-n", "100", "-s", "10000"]),
    (RELIABLE, &["ucp_fadd", "-n", "100"]),
    (RELIABLE, &["stream_bw", "-n", "100", "-s", "50000"]),
    (RELIABLE, &["ucp_am_bw", "-n", "100", "-s", "3000"]),
    ("ud_verbs", &["tag_lat", "-n", "200"]),
    ("ud_verbs", &["tag_bw", "-n", "100", "-s", "20000"]),
];

/// Test that polls memory until the last of many Writes to the same place has arrived. It needs Writes in order; IRN
/// and MELO place packets as they come (IRN, section 5.3.3), and a retransmitted packet may overwrite newer data.
const PUT: Test = (RELIABLE, &["ucp_put_bw", "-n", "100", "-s", "10000"]);

fn perftest(pair: &Pair<'_>, tests: &[Test], recovery: &str) {
    let device = format!("{}:1", pair.server.device);
    for (transports, words) in tests {
        let environment = [("UCX_TLS", *transports), ("UCX_NET_DEVICES", &device), ("SELVEDGE_RECOVERY", recovery)];
        let pair = Pair { environment: &environment, ..*pair };
        let port = fresh_port();
        let text = port.to_string();
        let server = ["ucx_perftest", "-p", &text];
        let client = [&["ucx_perftest", pair.address, "-p", &text, "-t"], *words].concat();
        pair.meet(&server, &client, Listens::Tcp(port));
    }
}

#[test]
fn ucx_finds_our_devices() {
    if !have(&["ucx_info"]) {
        return;
    }
    let output = LOOPBACK.run(&["ucx_info", "-d"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["Transport: rc_verbs", "Transport: ud_verbs", "Device: sv_lo:1"] {
        assert!(text.contains(part), "{part}: {}", said(&output));
    }
}

#[test]
fn ucx_perftest_runs_over_all_transports() {
    if have(&["ucx_perftest"]) {
        perftest(&HERE, TESTS, "irn");
        perftest(&HERE, &[PUT], "irn");
    }
}

#[test]
fn ucx_perftest_runs_with_losses() {
    if !have(&["ucx_perftest", "nft"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("ucx") else { return };
    namespaces.lose(1);
    perftest(&namespaces.pair(&[]), TESTS, "irn");
    perftest(&namespaces.pair(&[]), &[PUT], "go-back-n");
}

#[test]
fn mpi_over_ucx_computes_right() {
    if !have(&["mpirun", "mpicc", "ucx_info"]) {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("collective");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collective.c");
    let built = Command::new("mpicc").args(["-O1", "-o"]).arg(&program).arg(source).output().expect("mpicc runs");
    assert!(built.status.success(), "{}", said(&built));
    let program = program.to_str().expect("a path of ours");
    let environment = [("UCX_TLS", "rc_verbs,ud_verbs:aux,self"), ("UCX_NET_DEVICES", "sv_lo:1")];
    // Open MPI's own transports, which do not use UCX, are switched off.
    let words =
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "--mca", "pml", "ucx", "--mca", "osc", "ucx"];
    let words = [&words[..], &["--mca", "btl", "^openib,uct", program]].concat();
    let output = LOOPBACK.command(&words, &environment).output().expect("timeout runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3 ranks, 0 wrong\n", "{}", said(&output));
}
