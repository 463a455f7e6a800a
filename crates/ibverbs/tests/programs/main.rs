//! Tests of programs that were built for RDMA hardware, as Debian ships them, with this library.

mod bottleneck;
mod captures;
mod impaired;
mod multicast;
mod rdma_core;
mod rsockets;
mod strangers;
mod support;
mod surface;
mod ucx;

use support::{FIRST, LOOPBACK, Namespaces, Pair, build, have, libraries, shell, symbols, turn};

const HERE: Pair<'_> = Pair { server: LOOPBACK, client: LOOPBACK, address: "127.0.0.1", environment: &[] };

#[test]
fn every_symbol_that_rdma_core_exports_is_there_in_its_version() {
    let theirs = std::path::Path::new("/usr/lib/x86_64-linux-gnu/libibverbs.so.1");
    let Some(theirs) = symbols(theirs) else {
        eprintln!("skipped: no libibverbs.so.1 of rdma-core's, or no objdump here");
        return;
    };
    let ours = symbols(&libraries().join("libibverbs.so.1")).expect("the library was built");
    // Symbols that have another meaning since version 1.1: no program has been linked with the first version since
    // 2008.
    let is_old = |symbol: &str| {
        symbol.strip_suffix("@IBVERBS_1.0").is_some_and(|name| theirs.contains(&format!("{name}@IBVERBS_1.1")))
    };
    let missing: Vec<_> = theirs.iter().filter(|symbol| !ours.contains(symbol) && !is_old(symbol)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn devices_are_listed() {
    if !have(&["ibv_devices", "ibv_devinfo"]) {
        return;
    }
    let output = LOOPBACK.run(&["ibv_devinfo", "-v", "-d", "sv_lo"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["PORT_ACTIVE", "Ethernet", "::ffff:127.0.0.1", "RoCE v2", "4096 (5)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn examples_of_rdma_core_play_ping_pong() {
    if !have(&["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"]) {
        return;
    }
    for words in [
        &["-g", "1", "-n", "100", "-c"][..],
        &["-g", "1", "-n", "100", "-e", "-c"],
        &["-g", "1", "-n", "100", "-N", "-c"],
        &["-g", "1", "-n", "20", "-s", "1000000", "-m", "4096", "-c"],
    ] {
        HERE.run("ibv_rc_pingpong", words);
    }
    HERE.run("ibv_uc_pingpong", &["-g", "1", "-n", "100", "-s", "5000"]);
    HERE.run("ibv_uc_pingpong", &["-g", "1", "-n", "100", "-e"]);
    HERE.run("ibv_ud_pingpong", &["-g", "1", "-n", "100"]);
    HERE.run("ibv_ud_pingpong", &["-g", "1", "-n", "100", "-e"]);
    HERE.run("ibv_srq_pingpong", &["-g", "1", "-n", "100"]);
    HERE.run("ibv_srq_pingpong", &["-g", "1", "-n", "100", "-e"]);
}

#[test]
fn an_address_without_a_gid_is_refused_and_explained() {
    if !have(&["ibv_rc_pingpong"]) {
        return;
    }
    let outcome = std::panic::catch_unwind(|| HERE.run("ibv_rc_pingpong", &["-n", "1"]));
    let message = *outcome.expect_err("LIDs mean nothing here").downcast::<String>().expect("a panic with a message");
    assert!(message.contains("selvedge: sv_lo: an address without a GID"), "{message}");
}

#[test]
fn the_first_gid_works_where_it_can_and_is_explained_where_not() {
    if !have(&["ibv_rc_pingpong"]) {
        return;
    }
    // Loopback has no link-local address, but leads to itself.
    HERE.run("ibv_rc_pingpong", &["-g", "0", "-n", "10", "-c"]);
    let Some(namespaces) = Namespaces::new("gid") else { return };
    namespaces.pair(&[]).run("ibv_rc_pingpong", &["-g", "0", "-n", "10", "-c"]);
    for name in &namespaces.names {
        shell(&format!("ip -n {name} -6 addr flush dev eth0")).expect("ip removes the addresses");
    }
    let pair = namespaces.pair(&[]);
    let run = || pair.run("ibv_rc_pingpong", &["-g", "0", "-n", "1"]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let message = *outcome.expect_err("should panic").downcast::<String>().expect("a panic with a message");
    assert!(message.contains("GID 0 leads nowhere") && message.contains("use GID 1 (10.78.0.1)"), "{message}");
}

#[test]
fn what_programs_do_to_their_nic_is_refused_and_kills_nobody() {
    let Some(program) = build("hostile.c", &["-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    let expected = "\
write: success
content: same
beyond: remote access error
guessed key: remote access error
write to unmapped: remote access error
read from unmapped: transport retry counter exceeded
register unmapped: refused
parent's queue in a child: refused
child's own: success
child: well
after it all: success
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// Programs of perftest, and the arguments of each test.
const PERFTEST: &[(&str, &[&str])] = &[
    ("ib_write_bw", &[]),
    ("ib_write_bw", &["-b"]),
    ("ib_write_bw", &["-q", "4"]),
    ("ib_write_bw", &["--use_old_post_send"]),
    ("ib_write_bw", &["-a"]),
    ("ib_write_bw", &["-c", "UC"]),
    ("ib_read_bw", &[]),
    ("ib_read_bw", &["-b"]),
    ("ib_send_bw", &[]),
    ("ib_send_bw", &["-b"]),
    ("ib_send_bw", &["-e"]),
    ("ib_send_bw", &["--use-srq", "-q", "2"]),
    ("ib_send_bw", &["-s", "64", "-I", "64"]),
    ("ib_send_bw", &["-a"]),
    ("ib_send_bw", &["-c", "UC"]),
    ("ib_send_bw", &["-c", "UD"]),
    ("ib_atomic_bw", &[]),
    ("ib_atomic_bw", &["-A", "CMP_AND_SWAP"]),
    ("ib_write_lat", &[]),
    ("ib_write_lat", &["-I", "64", "-s", "64"]),
    ("ib_write_lat", &["-c", "UC"]),
    ("ib_read_lat", &[]),
    ("ib_send_lat", &[]),
    ("ib_send_lat", &["-e"]),
    ("ib_send_lat", &["-c", "UC"]),
    ("ib_send_lat", &["-c", "UD"]),
    ("ib_atomic_lat", &[]),
];

fn perftest(pair: &Pair<'_>, is_lossy: bool) {
    for (program, words) in PERFTEST {
        // Lost datagrams and packets of unreliable connections are not retransmitted, and the program waits for them.
        // And `ib_send_lat -e` before 23.07 takes an event of either queue for that of the other, which works only as
        // long as acknowledgements come before answers.
        if is_lossy
            && (words.contains(&"UD") || words.contains(&"UC") || (*program, *words) == ("ib_send_lat", &["-e"]))
        {
            continue;
        }
        // -F: processors whose frequency changes are no reason to fail.
        let mut all = vec!["-F", "-n", if words.contains(&"-a") { "20" } else { "200" }];
        all.extend_from_slice(words);
        pair.run(program, &all);
    }
}

/// Runs programs that find each other by the connection manager, each on the port that it listens on.
fn by_connection_manager(pair: &Pair<'_>) {
    let to = pair.address;
    let rping = |who: &'static str, port| vec!["rping", who, "-a", to, "-p", port, "-C", "20", "-V", "-S", "4000"];
    pair.connect(&rping("-s", "7300"), &rping("-c", "7300"), 7_300);
    pair.connect(&["ucmatose", "-p", "7301"], &["ucmatose", "-p", "7301", "-s", to], 7_301);
    pair.connect(&["udaddy"], &["udaddy", "-s", to], 7_174);
    pair.connect(&["rdma_server", "-p", "7303"], &["rdma_client", "-p", "7303", "-s", to], 7_303);
    pair.connect(&["rdma_xserver", "-p", "7304"], &["rdma_xclient", "-p", "7304", "-s", to], 7_304);
}

fn has_rdmacm() -> bool {
    have(&["rping", "ucmatose", "udaddy", "rdma_server", "rdma_xserver"])
}

#[test]
fn a_child_keeps_no_port_of_its_parents() {
    let Some(program) = build("heir.c", &["-lrdmacm", "-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    let expected = "while it listens: EADDRINUSE\nwhile its child lives on: free\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", support::said(&output));
}

#[test]
fn the_other_side_hears_that_a_process_has_ended() {
    let Some(program) = build("leaver.c", &["-lrdmacm", "-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    let expected = "\
RDMA_CM_EVENT_CONNECT_REQUEST
RDMA_CM_EVENT_ESTABLISHED
RDMA_CM_EVENT_DISCONNECTED
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", support::said(&output));
}

#[test]
fn identifiers_go_over_to_another_channel_with_their_events() {
    let Some(program) = build("migrate.c", &["-lrdmacm", "-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    let expected = "\
bound again: EINVAL
left behind: nothing
came along: RDMA_CM_EVENT_ADDR_RESOLVED
since then: RDMA_CM_EVENT_ROUTE_RESOLVED
the listener's: RDMA_CM_EVENT_CONNECT_REQUEST
the client's: RDMA_CM_EVENT_REJECTED
left behind: nothing
who asked nobody: RDMA_CM_EVENT_REJECTED
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", support::said(&output));
}

#[test]
fn one_queue_and_channel_for_both_directions_go_once() {
    let Some(program) = build("shared_queue.c", &["-lrdmacm", "-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "gone: 3 times\n", "{}", support::said(&output));
}

#[test]
fn what_cannot_be_is_refused_as_a_whole_and_changes_nothing() {
    let Some(program) = build("refused.c", &["-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program, LOOPBACK.device]);
    let expected = "\
datagrams that write: EOPNOTSUPP
datagrams: made
unreliable Reads: EOPNOTSUPP
unreliable Writes: made
another MTU: EINVAL
more than there is room for: ENOMEM
as many: posted
completed: 4
drained: yes
keys without descriptors: nobody guesses them
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", support::said(&output));
}

#[test]
fn connections_are_made_by_address_and_port() {
    if !has_rdmacm() || !has_perftest() {
        return;
    }
    let _turn = turn();
    by_connection_manager(&HERE);
    let write = ["ib_write_bw", "-R", "-F", "-n", "100", "-p", "7310"];
    HERE.connect(&write, &[&write[..], &["127.0.0.1"]].concat(), 7_310);
    let send = ["ib_send_lat", "-R", "-F", "-n", "100", "-p", "7311"];
    HERE.connect(&send, &[&send[..], &["127.0.0.1"]].concat(), 7_311);
}

#[test]
fn connections_are_made_between_namespaces_and_with_losses() {
    if !has_rdmacm() || !have(&["nft"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("cm") else { return };
    by_connection_manager(&namespaces.pair(&[]));
    namespaces.lose(1);
    let rping = |who: &'static str| ["rping", who, "-a", FIRST, "-p", "7320", "-C", "50", "-V", "-S", "40000"];
    namespaces.pair(&[]).connect(&rping("-s"), &rping("-c"), 7_320);
}

#[test]
fn every_symbol_of_librdmacm_is_there_in_its_version() {
    let theirs = std::path::Path::new("/usr/lib/x86_64-linux-gnu/librdmacm.so.1");
    let Some(theirs) = symbols(theirs) else {
        eprintln!("skipped: no librdmacm.so.1 of rdma-core's, or no objdump here");
        return;
    };
    let ours = symbols(&libraries().join("librdmacm.so.1")).expect("the library was built");
    let missing: Vec<_> = theirs.iter().filter(|symbol| !ours.contains(symbol)).collect();
    assert!(missing.is_empty() && !theirs.is_empty(), "{missing:?}");
}

fn has_perftest() -> bool {
    have(&["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_write_lat"])
}

#[test]
fn perftest_over_loopback() {
    if has_perftest() {
        perftest(&HERE, false);
    }
}

#[test]
fn perftest_between_namespaces() {
    if !has_perftest() {
        return;
    }
    let Some(namespaces) = Namespaces::new("plain") else { return };
    perftest(&namespaces.pair(&[]), false);
    namespaces.pair(&[]).run("ibv_rc_pingpong", &["-g", "2", "-n", "100", "-c"]);
}

#[test]
fn packets_that_are_too_long_are_explained() {
    if !have(&["ibv_rc_pingpong"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("mtu") else { return };
    let pair = namespaces.pair(&[]);
    let run = || pair.run("ibv_rc_pingpong", &["-g", "1", "-m", "4096", "-n", "1"]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let message =
        *outcome.expect_err("4096 bytes do not fit into 1500").downcast::<String>().expect("a panic with a message");
    assert!(message.contains("Message too long") && message.contains("path MTU"), "{message}");
}

#[test]
fn perftest_with_losses() {
    if !has_perftest() || !have(&["nft"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("lossy") else { return };
    namespaces.lose(1);
    for recovery in ["irn", "melo", "go-back-n"] {
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        let pair = namespaces.pair(&environment);
        perftest(&pair, true);
        // -c verifies received data.
        pair.run("ibv_rc_pingpong", &["-g", "1", "-n", "300", "-s", "20000", "-c"]);
    }
}
