//! Tests of `selvedge lab` and `selvedge switch`: their errors, hosts that reach each other, and that nothing is left.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use selvedge_testkit::Scratch;

const RACK: &str = r#"[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 1
host-link = { rate = "100Mbps", delay = "50us" }
spine-link = { rate = "100Mbps", delay = "50us" }
"#;

fn selvedge(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(words);
    command
}

fn run(words: &[&str]) -> Output {
    selvedge(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Returns a folder with the file rack.toml, and the file's path.
fn rack(purpose: &str, text: &str) -> (Scratch, String) {
    let folder = Scratch::new(purpose);
    let path = folder.path().join("rack.toml");
    fs::write(&path, text).expect("the folder can be written");
    let path = path.to_str().expect("a plain path").to_owned();
    (folder, path)
}

/// Returns a name that no other test has.
fn name(purpose: &str) -> String {
    format!("svr{}{purpose}", std::process::id())
}

/// Returns the namespaces of a laboratory that exist.
fn namespaces(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|space| space.starts_with(name)).collect()
}

/// Returns whether a laboratory could be made; prints why not. Nothing but the machine is a reason.
fn could_be_made(output: &Output) -> bool {
    let lacks = ["no permission", "package iproute2", "/dev/net/tun", "AF_XDP"];
    let is_refused = output.status.code() == Some(2) && lacks.iter().any(|what| said(output).contains(what));
    if is_refused {
        eprintln!("skipped: no laboratory here: {}", said(output));
    }
    !is_refused
}

#[test]
fn errors_name_the_file_the_line_and_the_key() {
    let (_folder, wrong) = rack("lab-wrong", &RACK.replace("spines", "spine"));
    for words in [&["lab", &wrong, "--without", "--", "true"][..], &["switch", "--config", &wrong, "--without"]] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("rack.toml:3:1: topology.leaf-spine.spine: unknown key"), "{}", said(&output));
    }
    let (_folder, right) = rack("lab-right", RACK);
    for (words, message) in [
        (&["lab", "/nowhere", "--without", "--", "true"][..], "/nowhere: no such file"),
        (&["lab", &right, "--without", "--name", "a/b", "--", "true"], "is no name for a namespace"),
        (&["lab", &right, "--without", "--mtu", "100", "--", "true"], "100 is not in 576..=9000"),
        (&["lab", &right, "--priority", "8", "--", "true"], "8 is not in 0..=7"),
        (&["lab", &right, "--every", "1ms", "--", "true"], "--samples"),
        (&["lab", &right, "--trace-limit", "1GB", "--", "true"], "--trace-dir"),
        (&["lab", &right, "--without", "--trace-dir", "x", "--", "true"], "--trace-dir"),
        (&["switch", "--config", &right, "--without", "--port", "h0"], "expected HOST=PORT, as in h0=eth1"),
        (&["switch", "--config", &right, "--without", "--port", "h00=x"], "the rack has no host \"h00\", did you mean"),
        (&["switch", "--config", &right, "--without", "--port", "h0=tun:x"], "xdp, packet and tap are"),
        (&["switch", "--config", &right, "--without", "--port", "h0=sv-none-here/x"], "port of h0: cannot enter"),
        (&["switch", "--config", &right, "--without", "--port", "h0=svnone"], "there is no interface svnone"),
    ] {
        let output = run(words);
        assert!(output.status.code() == Some(2) && said(&output).contains(message), "{words:?}: {}", said(&output));
    }
}

#[test]
fn switches_have_seven_classes_at_most() {
    let (_folder, file) = rack("lab-classes", RACK);
    let priorities: Vec<String> = (0..8).map(|priority| format!("--priority={priority}")).collect();
    let mut words = vec!["lab", &file, "--name"];
    let name = name("c");
    words.push(&name);
    words.extend(priorities.iter().map(String::as_str));
    words.extend(["--", "true"]);
    let output = run(&words);
    assert_eq!(output.status.code(), Some(2));
    if could_be_made(&run(&["lab", &file, "--name", &name, "--", "true"])) {
        assert!(said(&output).contains("8 priorities would have classes"), "{}", said(&output));
    }
}

#[test]
fn hosts_of_a_scenario_reach_each_other() {
    let scenario = format!("title = 'a'\n{RACK}[workload.incast]\nsenders = 1\nsize = '1MB'\n");
    let (_folder, file) = rack("lab-reach", &scenario);
    for kind in ["xdp", "packet", "tap"] {
        let name = name(kind);
        let script = "for host in $SELVEDGE_LAB_HOSTS; do echo $host; done
            ! command -v ping > /dev/null && exit 5
            ip netns exec $SELVEDGE_LAB_NS_h0 ping -q -c 1 -W 5 $SELVEDGE_LAB_ADDRESS_h1 > /dev/null || exit 6
            ip netns exec $SELVEDGE_LAB_NS_h1 ping -q -c 1 -W 5 10.77.0.1 > /dev/null || exit 7
            exit 5";
        let words = ["lab", &file, "--json", "--name", &name, "--ports", kind, "--", "sh", "-c", script];
        let output = run(&words);
        if !could_be_made(&output) {
            continue;
        }
        assert_eq!(output.status.code(), Some(5), "{kind}: {}", said(&output));
        assert!(said(&output).contains("without effect on real packets: workload"), "{}", said(&output));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let json = text.strip_prefix("h0\nh1\n").unwrap_or_else(|| panic!("{text}"));
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert!(json["ports"]["h1"]["received"].is_u64() && json["switches"]["counts"]["refused"] == 0, "{json}");
        assert_eq!(namespaces(&name), [""; 0]);
    }
}

#[test]
fn packets_take_the_time_of_their_links_and_meet_their_losses() {
    if Command::new("ping").arg("-V").output().is_err() {
        eprintln!("skipped: ping is missing");
        return;
    }
    let rack_of = |more: &str| {
        rack("lab-fabric", &RACK.replace("50us", "5ms").replace("spines = 2", &format!("spines = 1{more}")))
    };
    let ping = "ip netns exec $SELVEDGE_LAB_NS_h0 ping -n -c 20 -i 0.02 -W 2 $SELVEDGE_LAB_ADDRESS_h1";
    let measure = |name: &str, file: &str, more: &[&str]| {
        let words = [&["lab", file, "--json", "--name", name], more, &["--", "sh", "-c", ping]].concat();
        let output = run(&words);
        let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        let json = text.find("{\n").map(|at| serde_json::from_str::<serde_json::Value>(&text[at..]).expect("JSON"));
        (output, text, json)
    };
    // Eight links of 5 ms there and back.
    let (_folder, file) = rack_of("");
    let (output, text, json) = measure(&name("f"), &file, &[]);
    if !could_be_made(&output) {
        return;
    }
    let times: Vec<f64> = text.split("time=").skip(1).filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect();
    assert_eq!(times.len(), 20, "{text}");
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((40.0..41.5).contains(&least), "{times:?}");
    let json = json.expect("counters");
    let output = &json["switches"]["places"]["leaf0:spine0"];
    assert!(output["frames"].as_u64() >= Some(20) && output["drops"] == 0, "{json}");
    // A spine that loses everything towards one leaf.
    let loss = "loss=[{link='leaf1 - spine0', direction='b-to-a', model={random={rate='100%'}}}]";
    let samples = file.replace("rack.toml", "ports.parquet");
    let more = ["--set", loss, "--samples", &samples, "--every", "1ms", "--priority", "5"];
    let (_, text, json) = measure(&name("l"), &file, &more);
    let table = fs::read(&samples).expect("a table");
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1") && table.len() > 2_000, "{} bytes", table.len());
    let json = json.expect("counters");
    assert!(text.contains("100% packet loss"), "{text}");
    assert!(json["switches"]["places"]["data"]["link-loss"].as_u64() >= Some(20), "{json}");
    assert!(json["switches"]["places"]["leaf1:spine0"]["drops"].as_u64() >= Some(20), "{json}");
}

/// Datagrams over a link that loses some, in a recording: its files, and what `selvedge explain` makes of it.
#[test]
fn a_recording_tells_where_packets_were() {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("skipped: python3 is missing");
        return;
    }
    let (folder, file) = rack("lab-trace", &RACK.replace("spines = 2", "spines = 1"));
    let traces = folder.path().join("traces");
    let traces = traces.to_str().expect("a plain path");
    // 200 datagrams at twice the rate of the slower link, of which the queue holds them all.
    let send = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
                for n in range(200):\n s.sendto(bytes(1000),('10.77.0.2',7000)); time.sleep(.0005)\ntime.sleep(.5)";
    let script = format!("ip netns exec $SELVEDGE_LAB_NS_h0 python3 -c \"{send}\"");
    let slow = "topology.leaf-spine.spine-link.rate='8Mbps'";
    let loss = "loss=[{link='leaf0 - spine0', direction='a-to-b', model={random={rate='10%'}}}]";
    let sets = ["--set", slow, "--set", loss, "--set", "switch.buffer.input-queued.per-port='1MB'"];
    let name = name("t");
    let lab = |more: &[&str]| {
        let words = [&["lab", &file, "--json", "--name", &name, "--trace-dir", traces], &sets[..], more].concat();
        run(&[&words[..], &["--", "sh", "-c", &script]].concat())
    };
    let output = lab(&[]);
    if !could_be_made(&output) {
        return;
    }
    assert!(said(&output).contains("tells why flows were slow"), "{}", said(&output));
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lost = counts["switches"]["places"]["spine0:leaf0"]["drops"].as_u64().expect("a counter");
    let file_of = |name: &str| fs::read(Path::new(traces).join(name)).expect("a file");
    assert!(file_of("lab.pcapng").starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(!file_of("lab.perfetto-trace").is_empty());
    let explained = run(&["explain", traces, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let flow = &report["flows"][0];
    assert!(flow["name"].as_str().is_some_and(|name| name.ends_with("> 10.77.0.2:7000")), "{flow}");
    assert_eq!((flow["packets"].as_u64(), flow["bytes"].as_u64()), (Some(200), Some(200_000)));
    let of_flow: u64 = flow["lost"].as_array().expect("a list").iter().filter_map(|place| place["data"].as_u64()).sum();
    assert!(of_flow <= lost && flow["arrived"].as_u64() == Some(200 - of_flow), "{flow}");
    let parts = flow["parts"].as_object().expect("parts");
    let total: u64 = parts.values().filter_map(serde_json::Value::as_u64).sum();
    let took = flow["end_ps"].as_u64().expect("a time") - flow["start_ps"].as_u64().expect("a time");
    assert_eq!(total, took);
    // Half of the packets' time and more is behind others of the flow, at the slower link.
    assert_eq!(flow["per_packet"]["queues"][0]["port"], "leaf0:spine0");
    let of_packets = &flow["per_packet"]["parts"];
    let waited = of_packets["own_queueing_ps"].as_u64().expect("a time");
    assert!(waited * 2 > of_packets["serialisation_ps"].as_u64().expect("a time"), "{flow}");
    let text = String::from_utf8(run(&["explain", traces, "--flow", "0"]).stdout).expect("UTF-8");
    assert!(text.contains("where the time went") && text.contains("each packet in the fabric"), "{text}");
    for (words, message) in [
        (&["--seed", "1"][..], "has no series and no seeds"),
        (&["--flow", "99"], "there is no flow 99; flows are numbered 0 to"),
    ] {
        let output = run(&[&["explain", traces], words].concat());
        assert!(output.status.code() == Some(2) && said(&output).contains(message), "{}", said(&output));
    }
    // A recording that has reached its limit says when.
    let output = lab(&["--trace-limit", "100KB"]);
    assert!(
        output.status.success() && said(&output).contains("(--trace-limit sets another size)"),
        "{}",
        said(&output)
    );
    assert!(file_of("lab.events").len() < 600_000);
    assert!(String::from_utf8_lossy(&run(&["explain", traces]).stdout).contains("the recording ends there"));
    fs::write(Path::new(traces).join("lab.events"), "something else").expect("the folder can be written");
    let output = run(&["explain", traces]);
    assert!(output.status.code() == Some(2) && said(&output).contains("lab.events:1: "), "{}", said(&output));
}

/// An unmodified MPI program on each host of a fabric that loses packets: it checks what it receives, and the recording
/// tells which of its connections lost packets and where.
#[test]
fn an_mpi_job_runs_over_a_fabric_that_loses_packets() {
    for (program, version) in [("mpicc", "--version"), ("mpirun", "--version"), ("unshare", "--version")] {
        if !Command::new(program).arg(version).output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {program} is missing");
            return;
        }
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mpi");
    let folder = Scratch::new("lab-mpi");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (program, traces) = (path("alltoall"), path("traces"));
    let source = example.join("alltoall.c");
    let compiled = Command::new("mpicc").args(["-O2", "-o", &program]).arg(source).status().expect("a compiler");
    assert!(compiled.success());
    let (rack, job) = (example.join("rack.toml"), example.join("run.sh"));
    let [rack, job] = [&rack, &job].map(|path| path.to_str().expect("a plain path"));
    let name = name("m");
    let output = run(&["lab", rack, "--name", &name, "--trace-dir", &traces, "--", job, &program, "20000", "5"]);
    if !could_be_made(&output) {
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("alltoall of 20000 bytes, 4 ranks: "), "{text}{}", said(&output));
    let explained = run(&["explain", &traces, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let flows = report["flows"].as_array().expect("flows");
    // Each two ranks have a connection, and each gets five times 20 kB there, with a header each.
    let large: Vec<_> = flows.iter().filter(|flow| flow["bytes"].as_u64() >= Some(100_000)).collect();
    assert_eq!(large.len(), 6, "{}", said(&run(&["explain", &traces])));
    let lost_on_links = |flow: &&serde_json::Value| {
        let places = flow["lost"].as_array().into_iter().flatten();
        places.filter(|place| place["reason"] == "link-loss").filter_map(|place| place["data"].as_u64()).sum::<u64>()
    };
    let lossy = large.iter().filter(|flow| lost_on_links(flow) > 0).count();
    assert!((1..=4).contains(&lossy), "of four connections between the leaves, 5 % of their packets: {lossy}");
    assert_eq!(namespaces(&name), [""; 0]);
}

#[test]
fn a_laboratory_that_was_killed_leaves_nothing_to_the_next() {
    if !is_root() {
        eprintln!("skipped: only root's laboratories can be seen from outside");
        return;
    }
    let (_folder, file) = rack("lab-killed", RACK);
    let name = name("k");
    let words = ["lab", &file, "--name", &name, "--", "sleep", "60"];
    let mut running = selvedge(&words).stderr(Stdio::null()).spawn().expect("the program starts");
    wait_until(|| namespaces(&name).len() == 3 || running.try_wait().expect("a child process").is_some());
    if let Some(status) = running.try_wait().expect("a child process") {
        eprintln!("skipped: no laboratory here ({status})");
        return;
    }
    running.kill().expect("a child process");
    running.wait().expect("a child process");
    assert_eq!(namespaces(&name).len(), 3);
    let next = run(&["lab", &file, "--name", &name, "--", "true"]);
    assert_eq!(next.status.code(), Some(0), "{}", said(&next));
    assert!(
        said(&next).contains("removed what a laboratory that was killed has left: 3 namespaces"),
        "{}",
        said(&next)
    );
    assert_eq!(namespaces(&name), [""; 0]);
    assert!(!Path::new(&format!("/run/selvedge/lab-{name}")).exists());
}

/// Switches between interfaces that somebody else has made, whose hosts leave checksums to them.
#[test]
fn a_switch_that_was_killed_takes_its_ports_back() {
    if !is_root() || Command::new("ping").arg("-V").output().is_err() {
        eprintln!("skipped: root and ping are needed");
        return;
    }
    let (_folder, file) = rack("switch-killed", RACK);
    let name = name("s");
    let hosts = Hosts::make(&name);
    for prefix in ["", "packet:"] {
        let ports = ["0", "1"].map(|host| format!("h{host}={prefix}{name}-sw/p{host}"));
        let words = ["switch", "--config", &file, "--port", &ports[0], "--port", &ports[1]];
        let start =
            || Running(selvedge(&words).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"));
        let first = start();
        assert!(hosts.ping(), "{prefix}");
        drop(first);
        assert!(!hosts.ping(), "nobody forwards: {prefix}");
        let mut second = start();
        assert!(hosts.ping(), "{prefix}");
        hosts.send_datagram();
        Command::new("sh").args(["-c", &format!("kill {}", second.0.id())]).status().expect("a shell");
        assert_eq!(second.0.wait().expect("a child process").code(), Some(0));
    }
    // An interface that goes away ends the switch, which says so.
    let ports = ["0", "1"].map(|host| format!("h{host}={name}-sw/p{host}"));
    let words = ["switch", "--config", &file, "--port", &ports[0], "--port", &ports[1]];
    let switch = selvedge(&words).stderr(Stdio::piped()).spawn().expect("it starts");
    assert!(hosts.ping());
    ip(&["-n", &format!("{name}-sw"), "link", "delete", "p1"]);
    let output = switch.wait_with_output().expect("a child process");
    assert!(output.status.code() == Some(1) && said(&output).contains("a port has failed"), "{}", said(&output));
}

/// Two namespaces, and one in which pairs of both end.
struct Hosts(String);

impl Hosts {
    fn make(name: &str) -> Self {
        let hosts = Self(name.to_owned());
        for space in ["sw", "0", "1"] {
            ip(&["netns", "add", &format!("{name}-{space}")]);
        }
        for host in ["0", "1"] {
            let (space, port, switch) = (format!("{name}-{host}"), format!("p{host}"), format!("{name}-sw"));
            let one = ["numtxqueues", "1", "numrxqueues", "1"];
            let pair = [&["link", "add", "name", &port, "netns", &switch], &one[..], &["type", "veth", "peer", "name"]];
            ip(&[&pair.concat()[..], &["eth0", "netns", &space], &one].concat());
            ip(&["-n", &switch, "link", "set", &port, "up"]);
            ip(&[
                "-n",
                &space,
                "address",
                "add",
                &format!("10.77.0.{}/16", host.parse::<u8>().expect("a number") + 1),
                "dev",
                "eth0",
            ]);
            ip(&["-n", &space, "link", "set", "eth0", "up"]);
        }
        hosts
    }

    /// Returns whether the first host reaches the second, within some seconds.
    fn ping(&self) -> bool {
        let words = ["netns", "exec", &format!("{}-0", self.0), "ping", "-q", "-c", "1", "-W", "1", "10.77.0.2"];
        (0..3).any(|_| Command::new("ip").args(words).output().is_ok_and(|output| output.status.success()))
    }

    /// Sends a datagram to a program at the second host, which gets it if its checksum is right.
    fn send_datagram(&self) {
        if Command::new("python3").arg("-V").output().is_err() {
            eprintln!("skipped: python3 is missing");
            return;
        }
        let receive = "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('',7000))\ns.settimeout(20)\n\
                       print('ready',flush=True)\nassert s.recv(9)==b'hello'";
        let send = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nfor _ in range(50):\n s.sendto(b'hello',('10.77.0.2',7000))\n time.sleep(.05)";
        let within = |host: &str, program: &str| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &format!("{}-{host}", self.0), "python3", "-c", program]);
            command
        };
        let mut receiver = within("1", receive).stdout(Stdio::null()).spawn().expect("`ip` is there");
        let _ = within("0", send).output();
        assert!(receiver.wait().expect("a child process").success(), "no datagram with a right checksum");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for space in namespaces(&format!("{}-", self.0)) {
            let _ = Command::new("ip").args(["netns", "delete", &space]).status();
        }
    }
}

/// A process that is killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn ip(words: &[&str]) {
    assert!(Command::new("ip").args(words).status().expect("`ip` is there").success(), "{words:?}");
}

#[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
