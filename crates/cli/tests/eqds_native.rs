//! Native messages between the hosts of a laboratory: `selvedge eqds perf`, the C library, unmodified UDP programs, and
//! a hostile program.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// Steps that scripts have in common. Hosts 1 and 2 have daemons; within a host, programs find its daemon.
const PROLOGUE: &str = r#"
set -e
within() {
    local host=$1; shift
    local space=SELVEDGE_LAB_NS_$host socket=SELVEDGE_LAB_SOCKET_$host
    ip netns exec ${!space} env SELVEDGE_EQDS=${!socket} timeout 60 "$@"
}
udp() { local host=$1; shift; within $host env LD_PRELOAD=$LIBRARIES/libselvedge_udp.so "$@"; }
await() { for _ in $(seq 500); do if grep -q "$1" "$2" 2> /dev/null; then return; fi; sleep 0.02; done; cat "$2" >&2; exit 9; }
there=$SELVEDGE_LAB_INNER_2
cd $SELVEDGE_LAB_FOLDER
within 1 ip link set lo up
within 2 ip link set lo up
"#;

/// Returns the folder with the libraries, which are built once.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in the target folder");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "--package", "selvedge-native-c", "--package", "selvedge-udp", "--target-dir"])
            .arg(target);
        let made = build.output().expect("cargo runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        target.join("debug")
    })
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the crates' folder")
}

/// Returns whether these programs are there; prints which is not.
fn have(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = programs.iter().find(|name| !std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if let Some(name) = missing {
        eprintln!("skipped: no {name} here: `cargo xtask setup` installs it");
    }
    missing.is_none()
}

/// Runs a script in a laboratory of two hosts; returns its output, or `None` where there can be none.
fn laboratory(purpose: &str, script: &str) -> Option<String> {
    let name = format!("svn{}{purpose}", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(["eqds", "lab", "--hosts", "2", "--name", &name, "--", "bash", "-c", &(PROLOGUE.to_owned() + script)]);
    command.env("LIBRARIES", libraries()).env("CRATES", crates()).env("SELVEDGE", env!("CARGO_BIN_EXE_selvedge"));
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(2) && said.contains("no permission") {
        eprintln!("skipped: no laboratory here: {said}");
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}\n{said}", output.status);
    Some(text)
}

#[test]
fn perf_measures_latency_and_bandwidth_and_says_why_it_cannot() {
    let script = r#"
        within 2 $SELVEDGE eqds perf server 2> server.log & await ready server.log
        within 1 $SELVEDGE eqds perf client $there --count 200 --time 500ms --json
        ! within 1 $SELVEDGE eqds perf client $there --port 9 2> port.log
        ! within 1 $SELVEDGE eqds perf client 192.0.2.1 2> route.log
        ! $SELVEDGE eqds perf client $there --socket /nowhere 2> daemon.log
        cat port.log route.log daemon.log
        kill %1"#;
    let Some(text) = laboratory("p", script) else { return };
    let end = text.find("\n}\n").expect("JSON") + 3;
    let report: Value = serde_json::from_str(&text[..end]).expect("JSON");
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {text}"));
    assert!(number("/latency/us/p50") >= number("/latency/us/least") && number("/latency/us/least") > 1.0, "{text}");
    assert!(number("/latency/us/p999") >= number("/latency/us/p99"), "{text}");
    assert!(number("/bandwidth/messages") > 10.0 && number("/bandwidth/gbps") > 0.01, "{text}");
    for message in ["no server has port 9 of 10.80.2.1", "no peer serves 192.0.2.1", "no EQDS daemon takes programs on"]
    {
        assert!(text[end..].contains(message), "{message}: {text}");
    }
}

#[test]
fn c_programs_exchange_messages() {
    if !have(&["cc"]) {
        return;
    }
    let script = r#"
        ln -s $LIBRARIES/libselvedge_native_c.so libselvedge-eqds.so
        cc -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -o echo -I $CRATES/native/include \
            $CRATES/native/examples/echo.c -L . -lselvedge-eqds
        export LD_LIBRARY_PATH=$PWD
        within 2 ./echo server 7000 > server.log & await ready server.log
        within 1 ./echo client $there 7000
        ! within 1 ./echo client $there 7001 2>&1
        kill %1"#;
    let Some(text) = laboratory("c", script) else { return };
    assert!(text.contains("hello, hello, round trip ") && text.contains("was not taken: outcome 2"), "{text}");
}

#[test]
fn unmodified_udp_programs_use_native_messages() {
    if !have(&["python3", "iperf3"]) {
        return;
    }
    // In the end, the second daemon ends and another begins: its programs go on.
    let script = r#"
        udp 2 python3 $CRATES/udp/tests/echo.py server $there > server.log & await ready server.log
        udp 1 python3 $CRATES/udp/tests/echo.py client $there
        udp 2 iperf3 -s -1 --forceflush > iperf.log & await listening iperf.log
        udp 1 iperf3 -u -b 50M -t 1 -J -c $there > iperf.json
        python3 -c 'import json; r = json.load(open("iperf.json"))["end"]["sum"]; print("iperf", r["packets"], r["lost_packets"])'
        $SELVEDGE eqds status --json --socket $SELVEDGE_LAB_SOCKET_1 > status.json
        python3 -c 'import json; t = json.load(open("status.json"))["peers"][0]["tunnels"]; print("sent", *[(t["eqif"] + "=" + str(t["packets-sent"])) for t in t])'
        $SELVEDGE eqds down --socket $SELVEDGE_LAB_SOCKET_2
        within 2 $SELVEDGE eqds up --config $SELVEDGE_LAB_FOLDER/h2.toml --socket $SELVEDGE_LAB_SOCKET_2 2> up.log &
        await ready up.log
        udp 1 python3 $CRATES/udp/tests/echo.py again $there
        kill %1"#;
    let Some(text) = laboratory("u", script) else { return };
    assert_eq!(text.matches("well\n").count(), 2, "{text}");
    let words = |start: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"));
        line.split(' ').skip(1).collect()
    };
    let [packets, lost] = words("iperf")[..] else { panic!("{text}") };
    let (packets, lost): (u32, u32) = (packets.parse().expect("a number"), lost.parse().expect("a number"));
    assert!(packets > 1_000 && lost < packets / 20, "{text}");
    let sent = |kind: &str| -> u32 {
        let tunnels = words("sent");
        let tunnel = tunnels.iter().find_map(|tunnel| tunnel.strip_prefix(kind)?.strip_prefix('='));
        tunnel.expect("a tunnel").parse().expect("a number")
    };
    assert!(sent("native") > packets && sent("other") < 20, "{text}");
}

#[test]
fn udp_programs_may_call_whatever_the_c_library_has() {
    if !have(&["python3", "cc"]) {
        return;
    }
    // With optimisation and checks, the library's functions have other names.
    let script = r#"
        cc -Wall -Wextra -Werror -o plain $CRATES/udp/tests/calls.c
        cc -O2 -D_FORTIFY_SOURCE=2 -Wall -Wextra -Werror -o checked $CRATES/udp/tests/calls.c
        udp 2 python3 $CRATES/udp/tests/echo.py server $there > server.log & await ready server.log
        udp 1 ./plain $there
        udp 1 ./checked $there
        $SELVEDGE eqds status --json --socket $SELVEDGE_LAB_SOCKET_1 > status.json
        python3 -c 'import json; t = json.load(open("status.json"))["peers"][0]["tunnels"]; print("sent", *[(t["eqif"] + "=" + str(t["packets-sent"])) for t in t])'
        kill %1"#;
    let Some(text) = laboratory("l", script) else { return };
    assert_eq!(text.matches("well\n").count(), 2, "{text}");
    assert!(text.contains("other=0") && !text.contains("native=0"), "they went as messages: {text}");
}

#[test]
fn programs_that_write_nonsense_harm_nobody() {
    if !have(&["python3"]) {
        return;
    }
    let script = r#"
        within 2 $SELVEDGE eqds perf server 2> server.log & await ready server.log
        within 1 $SELVEDGE eqds perf client $there --count 100 --time 4s --json > perf.json &
        within 1 python3 $CRATES/udp/tests/hostile.py $SELVEDGE_LAB_SOCKET_1
        wait %2
        within 1 $SELVEDGE eqds perf client $there --count 10 --time 0s
        $SELVEDGE eqds status --json --socket $SELVEDGE_LAB_SOCKET_1 | grep '"programs"'
        kill %1"#;
    let Some(text) = laboratory("h", script) else { return };
    assert!(text.contains("well\n") && text.contains("latency    10 questions"), "{text}");
    assert!(text.contains("\"programs\": 0,"), "all were removed: {text}");
}
