//! Tests of `selvedge eqds lab`: its errors; the network that it makes, and that nothing of it is left.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use selvedge_testkit::Scratch;
use selvedge_tunnel::config::Config;
use serde_json::{Value, json};

/// Words that name the command.
const LAB: &[&str] = &["eqds", "lab"];

fn lab(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(LAB).args(words);
    command
}

fn run(words: &[&str]) -> Output {
    lab(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Returns a name that no other test has.
fn name(purpose: &str) -> String {
    format!("svl{}{purpose}", std::process::id())
}

/// Returns the namespaces of a laboratory that exist.
fn namespaces(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|space| space.starts_with(&format!("{name}-"))).collect()
}

/// Returns whether a laboratory could be made; prints why not. Nothing but the machine is a reason.
fn could_be_made(output: &Output) -> bool {
    let lacks = ["no permission", "package iproute2", "/dev/net/tun"];
    let is_refused = output.status.code() == Some(2) && lacks.iter().any(|what| said(output).contains(what));
    if is_refused {
        eprintln!("skipped: no laboratory here: {}", said(output));
    }
    !is_refused
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_made() {
    for (words, message) in [
        (&["--hosts", "0"][..], "a laboratory without hosts has no use; give 1 to 200, as in --hosts 8"),
        (&["--hosts", "201"], "201 hosts are too many for one machine; give 1 to 200"),
        (&["--hosts", "4", "--paths", "0"], "0 paths; give 1 to 64"),
        (&["--hosts", "1", "--paths", "2"], "several paths need at least 2 hosts"),
        (&["--hosts", "2", "--rate", "1Kbps"], "give 100Kbps or more"),
        (&["--hosts", "2", "--rate", "1Gbps", "--buffer", "1"], "give 2 or more"),
        (&["--hosts", "2", "--buffer", "20"], "not provided:\n  --rate <RATE>"),
        (&["--hosts", "2", "--name", "a/b"], "is no name for a namespace"),
        (&["--hosts", "2", "--mtu", "100"], "100 is not in 576..=65535"),
        (&["--hosts", "2", "--config-extra", "/nowhere"], "/nowhere: cannot be read: No such file"),
        (&["--hosts", "2", "--config-extra", "/nowhere", "--without"], "cannot be used with '--without'"),
        (&["--rack", "/nowhere"], "/nowhere: no such file"),
        (&["--rack", "rack.toml", "--hosts", "2"], "cannot be used with"),
        (&["--hosts", "2", "--json"], "--json is about the switches of a rack: give --rack FILE"),
        (&["--hosts", "2", "--set", "switch.ecn.enabled=true"], "--set is about the switches of a rack"),
        (&["--json"], "--hosts <N>"),
    ] {
        let output = run(&[words, &["--", "true"]].concat());
        assert!(output.status.code() == Some(2) && said(&output).contains(message), "{words:?}: {}", said(&output));
    }
}

#[test]
fn without_iproute2_the_package_is_named() {
    if !is_root() {
        eprintln!("skipped: as an ordinary user, another message may come first");
        return;
    }
    let output =
        lab(&["--hosts", "2", "--name", &name("p"), "--without", "--", "true"]).env("PATH", "/nowhere").output();
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("(package iproute2)"), "{}", said(&output));
}

#[test]
fn hosts_reach_each_other_at_the_rate_of_their_links() {
    const RATE: f64 = 8e6;
    let name = name("r");
    // Host 1 sends as fast as its link takes packets; in the middle of it, what arrives at host 2 is counted twice.
    let script = r#"
        within() { ip netns exec "$@"; }
        arrived() { echo $(within $SELVEDGE_LAB_NS_2 cat /sys/class/net/eth0/statistics/rx_bytes) $(cut -d' ' -f1 /proc/uptime); }
        for from in 1 2 3; do
            address=SELVEDGE_LAB_OUTER_$((from % 3 + 1))
            space=SELVEDGE_LAB_NS_$from
            if command -v ping > /dev/null; then
                within ${!space} ping -q -c 1 -W 5 ${!address} > /dev/null || exit 1
            fi
        done
        payload=$(printf %01400d 0)
        within $SELVEDGE_LAB_NS_1 bash -c "exec 3> /dev/udp/$SELVEDGE_LAB_OUTER_2/9; while :; do echo $payload >&3; done 2> /dev/null" &
        sleep 1; arrived; sleep 3; arrived
        kill %1
        env | grep ^SELVEDGE_LAB_
        exit 5"#;
    let output = run(&["--hosts", "3", "--rate", "8Mbps", "--name", &name, "--without", "--", "bash", "-c", script]);
    if !could_be_made(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut lines = text.lines();
    let mut arrived = || -> (f64, f64) {
        let line = lines.next().expect("a line");
        let (bytes, seconds) = line.split_once(' ').expect("two numbers");
        (bytes.parse().expect("a number"), seconds.parse().expect("a number"))
    };
    let (before, after) = (arrived(), arrived());
    let rate = (after.0 - before.0) * 8.0 / (after.1 - before.1);
    assert!((0.8 * RATE..1.2 * RATE).contains(&rate), "{rate} bits per second arrive");
    let variables: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
    let of = |variable: &str| variables[format!("SELVEDGE_LAB_{variable}").as_str()];
    assert_eq!((of("HOSTS"), of("RATE"), of("WITHOUT")), ("3", "8000000", "1"));
    assert_eq!((of("NS_3"), of("OUTER_3"), of("INNER_3")), (&*format!("{name}-h3"), "10.79.0.3", "10.80.3.1"));
    assert_eq!(namespaces(&name), [""; 0]);
    assert!(!Path::new(of("FOLDER")).exists());
}

#[test]
fn several_paths_are_equal_cost_routes() {
    let name = name("s");
    let script = "ip netns exec $1-leaf1 ip route show 10.79.0.0/24 | grep -c nexthop";
    let words = ["--hosts", "5", "--paths", "3", "--name", &name, "--without", "--", "sh", "-c", script, "sh", &name];
    let output = run(&words);
    if !could_be_made(&output) {
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3", "{}", said(&output));
    assert_eq!(namespaces(&name), [""; 0]);
}

#[test]
fn each_host_has_a_daemon_with_settings_of_its_own() {
    let folder = Scratch::new("eqds-lab");
    let extra = folder.path().join("extra.toml");
    fs::write(&extra, "paths = 3\n").expect("the folder can be written");
    let extra = extra.to_str().expect("a plain path");
    let name = name("d");
    let script = "ip -n $SELVEDGE_LAB_NS_2 -oneline address show dev eqds0; cat $SELVEDGE_LAB_FOLDER/h*.toml";
    let output =
        run(&["--hosts", "3", "--rate", "50Mbps", "--name", &name, "--config-extra", extra, "--", "sh", "-c", script]);
    if !could_be_made(&output) {
        return;
    }
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(text.contains("inet 10.80.2.1/24"), "{text} {}", said(&output));
    for (line, times) in [("paths = 3", 3), ("link-rate = \"50Mbps\"", 3), ("[[peer]]", 6), ("name = \"h2\"", 3)] {
        assert_eq!(text.matches(line).count(), times, "{line}: {text}");
    }
    assert_eq!(namespaces(&name), [""; 0]);
}

/// Packets that the switch cuts to their headers arrive as such, and are sent again at once; no answer is missing.
#[test]
fn daemons_hear_of_packets_that_a_switch_has_trimmed() {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("skipped: python3 is missing");
        return;
    }
    let figure = concat!(env!("CARGO_MANIFEST_DIR"), "/../../figures/eqds-real");
    let [rack, extra] = ["trims", "at-once"].map(|file| format!("{figure}/trimming/{file}.toml"));
    let program = format!("{figure}/incast.py");
    let name = name("t");
    let words = ["--rack", &rack, "--set", "topology.leaf-spine.hosts-per-leaf=5", "--json", "--name", &name];
    let incast = ["--config-extra", &extra, "--", "python3", &program, "--size", "20000", "--rounds", "5"];
    let mut command = lab(&[&words[..], &incast, &["--seconds", "0"]].concat());
    let output = command.env("SELVEDGE", env!("CARGO_BIN_EXE_selvedge")).output().expect("the program starts");
    if !could_be_made(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (lines, counters) = text.split_at(text.find("{\n").expect("the switches' counters"));
    let line = |figure: &str| -> Value {
        let line = lines.lines().find(|line| line.contains(&format!("\"figure\": \"{figure}\""))).expect("a line");
        serde_json::from_str(line).expect("JSON")
    };
    let counters: Value = serde_json::from_str(counters).expect("JSON");
    let trims = counters["switches"]["places"]["leaf0:h0"]["trims"].as_u64().expect("a counter");
    let (answers, daemon) = (line("incast"), line("daemon"));
    assert_eq!((&answers["n"], &answers["missing"]), (&json!(20), &json!(0)), "{text}");
    // What is cut after the status was asked for, or lost in a daemon's socket, is not in the daemon's counter.
    let heard = daemon["trimmed"].as_u64().expect("a counter");
    assert!(heard > 0 && heard <= trims, "{heard} of {trims} trims");
    assert!(daemon["retransmissions"].as_u64() >= Some(heard / 2), "{text}");
    assert_eq!(namespaces(&name), [""; 0]);
}

#[test]
fn a_daemon_that_does_not_start_says_why() {
    let folder = Scratch::new("eqds-lab-wrong");
    let extra = folder.path().join("extra.toml");
    fs::write(&extra, "nonsense = 1\n").expect("the folder can be written");
    let name = name("w");
    let words = ["--hosts", "2", "--name", &name, "--config-extra", extra.to_str().expect("a plain path")];
    let output = run(&[&words[..], &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(2));
    if !said(&output).contains("the daemon of h1 does not start") {
        eprintln!("skipped: no laboratory here: {}", said(&output));
        return;
    }
    assert!(said(&output).contains("unknown key \"nonsense\""), "{}", said(&output));
    assert_eq!(namespaces(&name), [""; 0]);
}

/// Connections outlive daemons: key epochs grow with each start, and what was under way is sent again.
#[test]
fn no_byte_of_a_connection_is_lost_when_daemons_are_killed_under_load() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/restarts.py");
    let (name, selvedge) = (name("x"), env!("CARGO_BIN_EXE_selvedge"));
    let output = run(&["--hosts", "2", "--name", &name, "--", "python3", script, selvedge]);
    if !could_be_made(&output) {
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains(" blocks, 4 kills: well"), "{text}{}", said(&output));
}

#[test]
fn nothing_is_left_whatever_ends_a_laboratory() {
    if !is_root() {
        eprintln!("skipped: only root's laboratories can be seen from outside");
        return;
    }
    let name = name("k");
    let start = || {
        let script = format!("ip netns exec {name}-h1 sleep 60 & echo; sleep 60");
        let mut command = lab(&["--hosts", "2", "--name", &name, "--without", "--", "sh", "-c", &script]);
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        // All namespaces, and the process in one.
        let is_up = || namespaces(&name).len() == 3 && !inhabitants(&format!("{name}-h1")).is_empty();
        for _ in 0..1_000 {
            if is_up() || running.try_wait().expect("a child process").is_some() {
                break;
            }
            wait();
        }
        running
    };
    let mut running = start();
    if let Some(status) = running.try_wait().expect("a child process") {
        eprintln!("skipped: no laboratory here ({status})");
        return;
    }
    let second = run(&["--hosts", "1", "--name", &name, "--without", "--", "true"]);
    assert!(second.status.code() == Some(2) && said(&second).contains("runs already, in process"), "{}", said(&second));
    signal("TERM", running.id());
    assert_eq!(running.wait().expect("a child process").code(), Some(143));
    assert_eq!(namespaces(&name), [""; 0]);

    let mut running = start();
    signal("KILL", running.id());
    running.wait().expect("a child process");
    assert_eq!(namespaces(&name).len(), 3);
    let next = run(&["--hosts", "1", "--name", &name, "--without", "--", "true"]);
    assert_eq!(next.status.code(), Some(0), "{}", said(&next));
    assert!(
        said(&next).contains("removed what a laboratory that was killed has left: 3 namespaces"),
        "{}",
        said(&next)
    );
    assert_eq!(namespaces(&name), [""; 0]);
    assert!(!Path::new(&format!("/run/selvedge/lab-{name}")).exists());

    // Namespaces of somebody else are not touched.
    let other = format!("{name}-h1");
    ip(&["netns", "add", &other]);
    let refused = run(&["--hosts", "1", "--name", &name, "--without", "--", "true"]);
    assert_eq!(namespaces(&name), [other.as_str()]);
    ip(&["netns", "delete", &other]);
    let message = format!("there is a network namespace {other} already: `ip netns delete {other}` removes it");
    assert!(refused.status.code() == Some(2) && said(&refused).contains(&message), "{}", said(&refused));
}

#[test]
fn daemons_accept_the_examples() {
    let folder = Scratch::new("eqds-examples");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/eqds");
    let key = folder.path().join("a-b.key");
    fs::write(&key, "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n").expect("the folder can be written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    let configs = ["a", "b"].map(|host| {
        let path = folder.path().join(format!("{host}.toml"));
        fs::copy(examples.join(format!("{host}.toml")), &path).expect("the example is there");
        Config::read(&path).map_err(|error| error.to_string()).expect("the example is right")
    });
    let [a, b] = &configs;
    assert_eq!((&a.peers[0].prefixes, a.peers[0].address.ip()), (&b.prefixes, b.addresses[0]));
    assert_eq!((&b.peers[0].prefixes, b.peers[0].address.ip()), (&a.prefixes, a.addresses[0]));
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

#[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
fn wait() {
    thread::sleep(Duration::from_millis(20));
}

fn signal(name: &str, process: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(status.expect("a shell").success());
}

fn ip(words: &[&str]) {
    assert!(Command::new("ip").args(words).status().expect("`ip` is there").success());
}

/// Returns the numbers of the processes in a namespace.
fn inhabitants(namespace: &str) -> String {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output().expect("`ip` is there");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
