//! Tests of `selvedge eqds`: its errors; and, between network namespaces, what the daemon makes and takes back.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use selvedge_testkit::Scratch;
use selvedge_tunnel::base64;
use selvedge_tunnel::keys::Secret;

/// Time in which the kernel has removed the device of a process that ended, at the latest.
const PATIENCE: Duration = Duration::from_millis(5_000);
const GLANCE: Duration = Duration::from_millis(20);

fn eqds(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_selvedge")).arg("eqds").args(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the settings of host `own`, 1 to 9, whose only peer is `other`.
fn settings(folder: &Path, own: u8, other: u8) -> String {
    format!(
        "name = \"h{own}\"\naddresses = [\"192.0.2.{own}\"]\nlink-rate = \"1Gbps\"\nprefixes = [\"10.77.{own}.0/24\"]\n\
         inner-addresses = [\"10.77.{own}.1/24\"]\nprivate-key = \"{}\"\nstate = \"{}\"\n\n{}",
        base64::encode(&[own; 32]),
        folder.join(format!("epochs-{own}")).display(),
        peer(other)
    )
}

fn peer(number: u8) -> String {
    format!(
        "[[peer]]\nname = \"h{number}\"\naddress = \"192.0.2.{number}\"\nprefixes = [\"10.77.{number}.0/24\"]\n\
         public-key = \"{}\"\n",
        base64::encode(&Secret::new([number; 32]).public())
    )
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    path.to_str().expect("a plain path").to_owned()
}

/// A network namespace, removed in the end.
struct Namespace(String);

impl Namespace {
    /// Makes a namespace in which 192.0.2.`host` is an address; `None`, with a line that says so, where that is
    /// impossible.
    fn new(purpose: &str, host: u8) -> Option<Self> {
        if !Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: no /dev/net/tun here");
            return None;
        }
        let name = format!("sv-eqds{}-{purpose}{host}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        match made {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!("skipped: no network namespaces here: {}", said(&output).trim());
                return None;
            }
            Err(error) => {
                eprintln!("skipped: no `ip` here (package iproute2): {error}");
                return None;
            }
        }
        let namespace = Self(name);
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace.ip(&["address", "add", &format!("192.0.2.{host}/32"), "dev", "lo"]);
        Some(namespace)
    }

    fn ip(&self, words: &[&str]) -> String {
        let output = Command::new("ip").args(["-n", &self.0]).args(words).output().expect("iproute2 is installed");
        assert!(output.status.success(), "ip {words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
    fn has_device(&self, name: &str) -> bool {
        self.ip(&["-brief", "link"]).lines().any(|line| line.starts_with(name))
    }
    /// Waits until the device of a process that was killed is gone.
    fn waits_for_the_end_of(&self, name: &str) -> bool {
        let mut left = PATIENCE;
        while self.has_device(name) && !left.is_zero() {
            pause();
            left = left.saturating_sub(GLANCE);
        }
        !self.has_device(name)
    }
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, env!("CARGO_BIN_EXE_selvedge"), "eqds"]).args(words);
        command
    }
    /// Runs a command that ends by itself.
    fn eqds(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }
    /// Starts the daemon and waits until it is ready.
    fn up(&self, config: &str, socket: &str) -> Daemon {
        self.up_with(config, socket, &[])
    }
    /// Starts the daemon with these variables of the environment and waits until it is ready.
    fn up_with(&self, config: &str, socket: &str, environment: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&["up", "--config", config, "--socket", socket]);
        command.envs(environment.iter().copied());
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said = BufReader::new(process.stderr.take().expect("a piped stream"));
        let mut line = String::new();
        said.read_line(&mut line).expect("the text is UTF-8");
        assert!(line.starts_with("ready: "), "{line}");
        Daemon { process, said }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// A running daemon, killed in the end.
struct Daemon {
    process: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Daemon {
    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &command]).status().expect("a shell").success());
    }
    fn status(&mut self) -> Option<i32> {
        self.process.wait().expect("a child process").code()
    }
    fn says(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the text is UTF-8");
        line
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel removes devices in its own time")]
fn pause() {
    thread::sleep(GLANCE);
}

fn socket(folder: &Path) -> (PathBuf, String) {
    let path = folder.join("run/eqds.sock");
    (path.clone(), path.to_str().expect("a plain path").to_owned())
}

#[test]
fn wrong_settings_are_refused_before_anything_is_made() {
    let scratch = Scratch::new("eqds-wrong");
    let good = settings(scratch.path(), 1, 2);
    let none = scratch.path().join("none.toml");
    for words in [&["up", "--check", "--config"][..], &["up", "--config"]] {
        let output = eqds(&[words, &[none.to_str().expect("a plain path")]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("no such file; --config FILE names another"));
        let wrong = write(scratch.path(), "wrong.toml", &good.replace("10.77.1.1/24", "10.77.2.1/24"));
        let output = eqds(&[words, &[&wrong]].concat());
        let message = said(&output);
        assert!(
            output.status.code() == Some(2) && message.contains("wrong.toml:5:20: inner-addresses[0]"),
            "{message}"
        );
    }
    let config = write(scratch.path(), "good.toml", &good);
    let output = eqds(&["up", "--check", "--config", &config]);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in
        ["h1", "192.0.2.1, UDP port 49016", "eqds0", "10.77.1.1/24", "MTU inside  1416 bytes", "192.0.2.2:49016"]
    {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
}

#[test]
fn without_a_daemon_questions_say_how_to_start_one() {
    let scratch = Scratch::new("eqds-none");
    let (_, socket) = socket(scratch.path());
    for command in ["status", "peers", "metrics", "reload", "down"] {
        let output = eqds(&[command, "--socket", &socket]);
        let message = said(&output);
        assert!(output.status.code() == Some(1) && message.contains("`selvedge eqds up --config FILE`"), "{message}");
    }
}

#[test]
fn the_daemon_takes_everything_back_however_it_ends() {
    let scratch = Scratch::new("eqds-life");
    let Some(host) = Namespace::new("life", 1) else { return };
    let config = write(scratch.path(), "eqds.toml", &settings(scratch.path(), 1, 2));
    let (path, socket) = socket(scratch.path());
    let before = host.ip(&["route"]);
    let daemon = host.up(&config, &socket);

    let device = host.ip(&["link", "show", "eqds0"]);
    assert!(device.contains("mtu 1416") && device.contains("qlen 1000"), "{device}");
    assert!(host.ip(&["address", "show", "eqds0"]).contains("inet 10.77.1.1/24"));
    assert!(host.ip(&["route"]).contains("10.77.2.0/24 dev eqds0"));
    assert_eq!(fs::metadata(&path).expect("a control socket").permissions().mode() & 0o777, 0o600);

    let output = host.eqds(&["status", "--json", "--socket", &socket]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&status["device"], &status["mtu"]), (&"eqds0".into(), &1_416.into()), "{status}");
    let output = host.eqds(&["status", "--socket", &socket]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("eqds0 (10.77.1.1/24), MTU 1416"), "{output:?}");
    assert!(host.eqds(&["peers", "--socket", &socket]).status.success());
    let output = host.eqds(&["metrics", "--socket", &socket]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("selvedge_eqds_device_mtu_bytes 1416\n"));

    let second = host.eqds(&["up", "--config", &config, "--socket", &socket]);
    assert!(said(&second).contains("a daemon answers on"), "{}", said(&second));
    let elsewhere = format!("{socket}2");
    let third = host.eqds(&["up", "--config", &config, "--socket", &elsewhere]);
    assert!(said(&third).contains("has UDP port 49016 of 192.0.2.1"), "{}", said(&third));
    assert_eq!((second.status.code(), third.status.code()), (Some(2), Some(2)));
    assert!(!Path::new(&elsewhere).exists() && path.exists());

    drop(daemon);
    assert!(host.waits_for_the_end_of("eqds0"), "after kill -9");
    assert_eq!(host.ip(&["route"]), before);
    assert!(path.exists(), "the socket that the killed daemon left");

    let mut daemon = host.up(&config, &socket);
    let output = host.eqds(&["down", "--socket", &socket]);
    assert_eq!((output.status.code(), daemon.status()), (Some(0), Some(0)), "{}", said(&output));
    assert!(!host.has_device("eqds0") && !path.exists());

    let mut daemon = host.up(&config, &socket);
    daemon.signal("TERM");
    assert_eq!(daemon.status(), Some(0));
    assert!(!host.has_device("eqds0") && !path.exists());
}

#[test]
fn names_routes_and_files_of_others_are_left_alone() {
    let scratch = Scratch::new("eqds-taken");
    let Some(host) = Namespace::new("taken", 1) else { return };
    let config = write(scratch.path(), "eqds.toml", &settings(scratch.path(), 1, 2));
    let (path, socket) = socket(scratch.path());
    let refused = |message: &str| {
        let output = host.eqds(&["up", "--config", &config, "--socket", &socket]);
        assert!(output.status.code() == Some(2) && said(&output).contains(message), "{}", said(&output));
    };
    host.ip(&["route", "add", "10.77.2.0/24", "dev", "lo"]);
    refused("there is a route to 10.77.2.0/24 of peer \"h2\" already");
    assert!(!host.has_device("eqds0") && !path.exists(), "nothing is half configured");
    host.ip(&["route", "delete", "10.77.2.0/24"]);
    host.ip(&["tuntap", "add", "dev", "eqds0", "mode", "tun"]);
    refused("there is a network device eqds0 already");
    assert!(host.has_device("eqds0"), "it belongs to another program");
    host.ip(&["link", "delete", "eqds0"]);
    host.ip(&["address", "delete", "192.0.2.1/32", "dev", "lo"]);
    refused("192.0.2.1 is not an address of this host");
    host.ip(&["address", "add", "192.0.2.1/32", "dev", "lo"]);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is ours");
    fs::write(&path, "text").expect("the folder is ours");
    refused("is a file, not a control socket");
    assert_eq!(fs::read_to_string(&path).expect("the file is left alone"), "text");
    fs::remove_file(&path).expect("the file is ours");
    let mut daemon = host.up(&config, &socket);
    host.ip(&["link", "delete", "eqds0"]);
    assert_eq!(daemon.status(), Some(1));
    assert!(daemon.says().contains("the device eqds0 was removed by another program") && !path.exists());
}

#[test]
fn settings_are_read_anew_or_stay_as_they_were() {
    let scratch = Scratch::new("eqds-reload");
    let Some(host) = Namespace::new("reload", 1) else { return };
    let first = settings(scratch.path(), 1, 2);
    let config = write(scratch.path(), "eqds.toml", &first);
    let (_, socket) = socket(scratch.path());
    let mut daemon = host.up(&config, &socket);
    let routes = || host.ip(&["route"]);
    let has = |number: u8| routes().contains(&format!("10.77.{number}.0/24 dev eqds0"));

    write(scratch.path(), "eqds.toml", &format!("{first}{}", peer(3)));
    let output = host.eqds(&["reload", "--socket", &socket]);
    assert!(
        output.status.success() && said(&output).contains("reloaded: h1 on eqds0, MTU 1416, 2 peers"),
        "{output:?}"
    );
    assert!(daemon.says().starts_with("reloaded: "));
    assert!(has(2) && has(3), "{}", routes());

    for (wrong, message) in [
        (first.replace("192.0.2.2", "192.0.2"), "expected an address"),
        (first.replace("name = \"h1\"", "name = \"h1\"\nport = 5000"), "`port` has changed, which takes a new start"),
    ] {
        write(scratch.path(), "eqds.toml", &wrong);
        let output = host.eqds(&["reload", "--socket", &socket]);
        assert!(output.status.code() == Some(2) && said(&output).contains(message), "{}", said(&output));
        assert!(said(&output).contains("the old settings stay"));
        assert!(daemon.says().contains(message));
        assert!(has(2) && has(3), "{}", routes());
    }

    host.ip(&["route", "add", "10.77.5.0/24", "dev", "lo"]);
    let moved = first.replace("h2", "h5").replace("10.77.2.0", "10.77.5.0").replace("10.77.1.1/24", "10.77.1.7/24");
    write(scratch.path(), "eqds.toml", &moved);
    daemon.signal("HUP");
    let message = daemon.says();
    assert!(message.contains("there is a route to 10.77.5.0/24"), "{message}");
    assert!(has(2) && has(3) && host.ip(&["address"]).contains("10.77.1.1/24"), "{}", routes());
    host.ip(&["route", "delete", "10.77.5.0/24"]);
    daemon.signal("HUP");
    assert!(daemon.says().starts_with("reloaded: "));
    assert!(has(5) && !has(2) && !has(3), "{}", routes());
    let addresses = host.ip(&["address"]);
    assert!(addresses.contains("10.77.1.7/24") && !addresses.contains("10.77.1.1/24"), "{addresses}");
}

#[test]
fn the_service_manager_is_told() {
    let scratch = Scratch::new("eqds-notify");
    let Some(host) = Namespace::new("notify", 1) else { return };
    let config = write(scratch.path(), "eqds.toml", &settings(scratch.path(), 1, 2));
    let (_, socket) = socket(scratch.path());
    let place = scratch.join("notify");
    let manager = UnixDatagram::bind(&place).expect("the folder is ours");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let environment = [("NOTIFY_SOCKET", place.to_str().expect("a plain path")), ("WATCHDOG_USEC", "100000")];
    let mut daemon = host.up_with(&config, &socket, &environment);
    let heard = |word: &str| {
        let mut buffer = [0; 1_000];
        loop {
            let length = manager.recv(&mut buffer).expect(word);
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line == word) {
                return text;
            }
        }
    };
    assert!(heard("READY=1").contains("STATUS=h1 on eqds0, MTU 1416, 1 peer"));
    heard("WATCHDOG=1");
    heard("WATCHDOG=1");
    daemon.signal("HUP");
    assert!(heard("RELOADING=1").contains("MONOTONIC_USEC="));
    heard("READY=1");
    daemon.signal("INT");
    heard("STOPPING=1");
    assert_eq!(daemon.status(), Some(0));
}

#[test]
fn packets_pass_between_two_hosts() {
    let scratch = Scratch::new("eqds-ping");
    let (Some(a), Some(b)) = (Namespace::new("ping", 1), Namespace::new("ping", 2)) else { return };
    let ends = [format!("sve{}a", std::process::id()), format!("sve{}b", std::process::id())];
    a.ip(&["link", "add", &ends[0], "type", "veth", "peer", "name", &ends[1], "netns", &b.0]);
    for (host, end, (own, other)) in [(&a, &ends[0], (1, 2)), (&b, &ends[1], (2, 1))] {
        host.ip(&["link", "set", end, "up"]);
        host.ip(&["route", "add", &format!("192.0.2.{other}/32"), "dev", end, "src", &format!("192.0.2.{own}")]);
    }
    let sockets =
        [1, 2].map(|own| scratch.path().join(format!("{own}.sock")).to_str().expect("a plain path").to_owned());
    let configs = [(1, 2), (2, 1)]
        .map(|(own, other)| write(scratch.path(), &format!("{own}.toml"), &settings(scratch.path(), own, other)));
    let _daemons = [a.up(&configs[0], &sockets[0]), b.up(&configs[1], &sockets[1])];
    for size in ["56", "1388", "20000"] {
        let words = ["netns", "exec", &a.0, "ping", "-c", "5", "-i", "0.2", "-W", "2", "-s", size, "10.77.2.1"];
        match Command::new("ip").args(words).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                if said(&output).contains("exec of \"ping\" failed") {
                    eprintln!("skipped: no `ping` here (package iputils-ping)");
                    return;
                }
                assert!(text.contains(" 0% packet loss"), "{size} bytes: {text}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    let output = a.eqds(&["status", "--json", "--socket", &sockets[0]]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(status["peers"][0]["established"], true, "{status}");
}
