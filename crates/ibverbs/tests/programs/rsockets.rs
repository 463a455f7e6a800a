//! Tests of sockets over RDMA: rdma-core's own programs, and Python's sockets with rdma-core's `librspreload.so`.

use std::path::Path;

use selvedge_dataplane::impair::{Class, Impairment, Loss};
use selvedge_units::Chance;

use crate::impaired::{network, only_roce};
use crate::support::{FIRST, LOOPBACK, Listens, Namespaces, Pair, build, fresh_port, have, said, wait_until};

const HERE: Pair<'_> = Pair { server: LOOPBACK, client: LOOPBACK, address: "127.0.0.1", environment: &[] };

const PRELOAD: &str = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so";

fn has_preload() -> bool {
    let is_there = have(&["python3"]) && Path::new(PRELOAD).is_file();
    if !is_there {
        eprintln!("skipped: no librspreload.so here: install librdmacm1");
    }
    is_there
}

/// Returns the command of one side of a conversation of `sockets.py`.
fn with_sockets(address: &str, kind: &str, role: &str, port: u16) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sockets.py");
    // `librspreload.so` is preloaded behind this library, in the Python process alone.
    let arguments = format!("{} {kind} {role} {address} {port}", script.display());
    format!("export LD_PRELOAD=$LD_PRELOAD:{PRELOAD}; exec python3 {arguments}")
}

/// Runs both sides of a kind of conversation of `sockets.py`; a server that is `killed` fails.
fn converse(pair: &Pair<'_>, kind: &str) {
    let port = fresh_port();
    let [server, client] = ["server", "client"].map(|role| with_sockets(pair.address, kind, role, port));
    let server = if kind == "killed" { format!("({server}); test $? = 137") } else { server };
    let said = pair.meet(&["sh", "-c", &server], &["sh", "-c", &client], Listens::Rdma(port));
    assert_eq!(said, "well\n", "{kind}");
}

fn stream(pair: &Pair<'_>, words: &[&str]) {
    let port = fresh_port();
    let text = port.to_string();
    let line = [&["rstream", "-p", &text], words].concat();
    let said = pair.connect(&line, &[&line[..], &["-s", pair.address]].concat(), port);
    assert!(said.contains("custom"), "{words:?}: {said}");
}

/// Runs rdma-core's `rstream` in its modes; `v` makes it compare the contents.
fn stream_in_every_mode(pair: &Pair<'_>) {
    let sizes = ["-S", "10000", "-C", "50", "-I", "20"];
    for mode in [&[][..], &["-T", "b"], &["-T", "a"], &["-T", "n"], &["-T", "a", "-T", "b"], &["-T", "r"]] {
        stream(pair, &[&["-T", "v"], mode, &sizes[..]].concat());
    }
    stream(pair, &["-T", "v", "-T", "b", "-S", "3000000", "-C", "4", "-I", "4"]);
    stream(pair, &["-T", "v", "-T", "b", "-S", "7", "-C", "3000", "-I", "2"]);
    // Buffers that are smaller than what is sent at once, and keep-alive messages.
    stream(pair, &["-T", "v", "-T", "b", "-B", "3000", "-S", "50000", "-C", "5", "-I", "4"]);
    stream(pair, &["-T", "v", "-k", "1", "-S", "1000", "-C", "10", "-I", "5"]);
}

#[test]
fn rstream_runs_in_every_mode() {
    if have(&["rstream"]) {
        stream_in_every_mode(&HERE);
    }
}

#[test]
fn rstream_runs_between_namespaces_over_both_protocols() {
    if !have(&["rstream"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("rstream") else { return };
    stream_in_every_mode(&namespaces.pair(&[]));
    stream(&Pair { address: "fd78::1", ..namespaces.pair(&[]) }, &["-T", "v", "-S", "9000", "-C", "20", "-I", "9"]);
}

#[test]
fn connections_that_nobody_listens_for_are_refused() {
    if !have(&["rstream"]) {
        return;
    }
    let port = fresh_port().to_string();
    // `rstream` does not ask why a connection that it polls for fails.
    for (mode, told) in [("b", "rconnect: Connection refused"), ("n", "rpoll: Operation now in progress")] {
        let refused = LOOPBACK.run(&["rstream", "-s", "127.0.0.1", "-p", &port, "-T", mode, "-S", "9", "-C", "1"]);
        assert!(said(&refused).contains(told), "{mode}: {}", said(&refused));
    }
}

#[test]
fn each_function_does_what_its_manual_says() {
    if !have(&["python3"]) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/rsockets.py").display().to_string();
    let output = LOOPBACK.run(&["python3", &script, &fresh_port().to_string()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "well\n", "{}", said(&output));
}

#[test]
fn preloaded_programs_talk_over_rdma() {
    if has_preload() {
        for kind in ["bulk", "half", "small", "polled", "timed", "crowd", "forgetful"] {
            converse(&HERE, kind);
        }
    }
}

#[test]
fn preloaded_programs_talk_between_namespaces() {
    if !has_preload() {
        return;
    }
    let Some(namespaces) = Namespaces::new("rsockets") else { return };
    for address in [FIRST, "fd78::1"] {
        let pair = Pair { address, ..namespaces.pair(&[]) };
        for kind in ["bulk", "half", "polled"] {
            converse(&pair, kind);
        }
    }
}

#[test]
fn every_byte_arrives_where_packets_are_lost() {
    if !has_preload() {
        return;
    }
    let loss = Loss::Random(Chance::from_f64(0.02).expect("a probability"));
    let Some(bed) = network("rsocket", &Impairment { loss, ..only_roce() }) else { return };
    for recovery in ["irn", "go-back-n"] {
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        for kind in ["bulk", "half", "small", "polled", "forgetful"] {
            converse(&bed.pair(&environment), kind);
        }
    }
    let report = bed.close();
    assert!(report.counts.iter().all(|direction| direction[Class::Data as usize].lost > 0));
}

#[test]
fn who_reads_from_a_peer_that_is_killed_hears_of_it() {
    if !has_preload() {
        return;
    }
    let Some(namespaces) = Namespaces::new("rskilled") else { return };
    converse(&HERE, "killed");
    converse(&namespaces.pair(&[]), "killed");
}

#[test]
fn iperf3_measures_both_directions_and_several_connections() {
    if !has_preload() || !have(&["iperf3"]) {
        return;
    }
    for words in ["-n 20M", "-n 20M -R", "-n 20M -P 3"] {
        let port = fresh_port();
        let preload = format!("export LD_PRELOAD=$LD_PRELOAD:{PRELOAD}; exec iperf3 -p {port}");
        let (server, client) = (format!("{preload} -s -1"), format!("{preload} -c 127.0.0.1 {words}"));
        let said = HERE.meet(&["sh", "-c", &server], &["sh", "-c", &client], Listens::Rdma(port));
        assert!(said.contains("iperf Done"), "{words}: {said}");
    }
}

#[test]
fn peers_that_break_the_protocol_lose_their_connection_and_nothing_else() {
    let Some(program) = build("rogue.c", &["-lrdmacm", "-libverbs"]) else { return };
    if !has_preload() {
        return;
    }
    let port = fresh_port();
    let server = with_sockets("127.0.0.1", "rogues", "server", port);
    let mut server = LOOPBACK.command(&["sh", "-c", &server], &[]).spawn().expect("timeout runs");
    assert!(wait_until(&mut server, || LOOPBACK.has("udp", &format!(":{port:04X} "), "")));
    let rogue = LOOPBACK.run(&[&program, "127.0.0.1", &port.to_string()]);
    let server = server.wait_with_output().expect("the child process can be waited for");
    let told = "\
no private data: refused
a list without entries: refused
more bytes than there is room for: flushed
more bytes than were written: flushed
a third buffer: flushed
a message without an immediate: flushed
a Write beyond the buffer: remote access error
a Write into the buffer of another: remote access error
messages of a later version: success
";
    assert_eq!(String::from_utf8_lossy(&rogue.stdout), told, "{}\n{}", said(&rogue), said(&server));
    let heard = "\
b'' EPROTO
b'' EPROTO
b'' EPROTO
b'' EPROTO
b'' ECONNRESET
b'' ECONNRESET
b'' ECONNRESET
b'fine' end
";
    assert_eq!(String::from_utf8_lossy(&server.stdout), heard, "{}", said(&server));
}
