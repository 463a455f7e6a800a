//! Tests of ports and of what carries frames, between network namespaces: real programs send through a switch.
#![cfg(target_os = "linux")]

mod support;

use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use selvedge_dataplane::lab::{Rack, RackHost, RackPlan};
use selvedge_dataplane::switch::ports::PortKind;
use selvedge_dataplane::switch::{Bridge, Directory, Outcome, PortCounts, Running};
use selvedge_units::Rate;

use support::Fifo;

/// Kinds of ports, `None` for the best.
const KINDS: [Option<PortKind>; 3] = [None, Some(PortKind::Packet), Some(PortKind::Tap)];

/// A rack of two hosts and a running switch.
struct Testbed {
    plan: RackPlan,
    running: Option<Running<Fifo>>,
    _rack: Rack,
}

impl Testbed {
    /// Makes a rack for a test; `None`, with a line that says why, if that is impossible here.
    fn open(purpose: &str, kind: Option<PortKind>, rate: Rate) -> Option<Self> {
        let host = |name: &str| RackHost { name: name.to_owned(), rate: None };
        let suffix = kind.map_or("best", PortKind::name);
        let name = format!("svs{}{purpose}{suffix}", std::process::id());
        let plan = RackPlan { name, hosts: vec![host("a"), host("b")], mtu: 1_500, kind };
        let racked = match Rack::open(&plan, &mut || false) {
            Ok(racked) => racked,
            Err(error) => {
                eprintln!("skipped: no rack of kind {suffix} here: {error}");
                return None;
            }
        };
        for note in &racked.notes {
            eprintln!("note: {note}");
        }
        let mut directory = Directory::new(2);
        (0..2).for_each(|host| directory.add(host, plan.station(host), plan.addresses(host)));
        let bridge = Bridge::new(Fifo::new(2, rate, 200_000), directory);
        let running = Running::start(bridge, racked.ports, None).expect("a thread");
        Some(Self { plan, running: Some(running), _rack: racked.rack })
    }

    fn command(&self, host: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.plan.namespace(host)]).args(words);
        command
    }

    fn output(&self, host: usize, words: &[&str]) -> Output {
        self.command(host, words).output().expect("`ip` is there")
    }

    fn close(mut self) -> Outcome<Fifo> {
        self.running.take().expect("it runs").close().expect("no port failed")
    }
}

/// Returns whether a program exists; prints what is skipped without it.
fn has(program: &str) -> bool {
    let is_there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = is_there.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: {program} is missing");
    }
    is_there
}

fn dropped(counts: &PortCounts) -> u64 {
    counts.malformed + counts.forged + counts.refused
}

#[test]
fn hosts_ping_each_other_over_both_versions_of_ip() {
    if !has("ping") {
        return;
    }
    for kind in KINDS {
        let Some(testbed) = Testbed::open("p", kind, Rate::from_gbps(1)) else { continue };
        let ping = |from, words: &[&str]| {
            let output = testbed.output(from, &[&["ping", "-q", "-c", "5", "-i", "0.01", "-W", "5"], words].concat());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && text.contains(" 0% packet loss"), "{kind:?} {words:?}: {text}");
        };
        ping(0, &[&testbed.plan.address(1).to_string()]);
        ping(1, &["-s", "1400", "-M", "do", &testbed.plan.address(0).to_string()]);
        ping(0, &["-6", &testbed.plan.address6(1).to_string()]);
        let outcome = testbed.close();
        let [first, second] = &outcome.ports[..] else { panic!("two ports") };
        // Questions for addresses are answered; nothing is flooded but what stacks say to groups.
        assert!(first.answered >= 2 && second.answered >= 1, "{:?}", outcome.ports);
        assert!(first.sent >= 15 && second.sent >= 15, "{:?}", outcome.ports);
        assert_eq!((dropped(first), dropped(second), outcome.engine.full), (0, 0, 0), "{:?}", outcome.ports);
    }
}

#[test]
fn tcp_gets_the_rate_of_the_switch() {
    if !has("iperf3") {
        return;
    }
    const MBPS: f64 = 200.0;
    for kind in KINDS {
        let Some(testbed) = Testbed::open("t", kind, Rate::from_bps(MBPS as u64 * 1_000_000)) else { continue };
        let mut server =
            Server(testbed.command(1, &["iperf3", "-s", "-1"]).stdout(Stdio::null()).spawn().expect("`ip` is there"));
        let address = testbed.plan.address(1).to_string();
        let measure = || {
            let output = testbed.output(0, &["iperf3", "-c", &address, "-t", "2", "-J"]);
            serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON of iperf3")
        };
        // With -J, a client that comes too early ends with status 0, too.
        let mut json = measure();
        for _ in 0..50 {
            if json.get("error").is_none() {
                break;
            }
            wait();
            json = measure();
        }
        let received = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{json}"));
        let _ = server.0.wait();
        // Checksums are there: a wrong one would cost a timeout each.
        assert!((0.6 * MBPS..1.05 * MBPS).contains(&(received / 1e6)), "{kind:?}: {} Mb/s", received / 1e6);
        let outcome = testbed.close();
        eprintln!("{kind:?}: {} Mb/s, {:?}", received / 1e6, outcome.ports);
        assert_eq!((outcome.ports[0].malformed, outcome.ports[0].forged), (0, 0));
    }
}

#[test]
fn every_datagram_of_a_burst_arrives_or_is_counted() {
    if !has("python3") {
        return;
    }
    const SENT: u64 = 20_000;
    let sender = "import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
                  for n in range(int(sys.argv[2])): s.sendto(n.to_bytes(4,'big')*15,(sys.argv[1],9))";
    for kind in KINDS {
        let Some(testbed) = Testbed::open("u", kind, Rate::from_gbps(10)) else { continue };
        let address = testbed.plan.address(1).to_string();
        let output = testbed.output(0, &["python3", "-c", sender, &address, &SENT.to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let arrived = || received(&testbed);
        let mut before = 0;
        while arrived() > before {
            before = arrived();
            wait();
        }
        let total = arrived();
        let kernel = transmit_drops(&testbed);
        let outcome = testbed.close();
        let [first, second] = &outcome.ports[..] else { panic!("two ports") };
        let lost = first.overflowed + second.refused + outcome.engine.full + kernel;
        eprintln!("{kind:?}: {total} of {SENT} arrived, {lost} lost: {:?}", outcome.ports);
        // Stacks send a few frames of their own.
        assert!(total + lost >= SENT && total <= SENT + 50, "{total} arrived, {lost} lost: {:?}", outcome.ports);
        assert!(second.sent >= total && first.received + first.overflowed + kernel >= SENT);
    }
}

#[test]
fn a_switch_that_starts_again_takes_its_ports_back() {
    if !has("ping") {
        return;
    }
    for kind in [None, Some(PortKind::Packet)] {
        let Some(mut testbed) = Testbed::open("r", kind, Rate::from_gbps(1)) else { continue };
        let ping = |testbed: &Testbed| {
            let address = testbed.plan.address(1).to_string();
            testbed.output(0, &["ping", "-q", "-c", "1", "-W", "1", &address]).status.success()
        };
        assert!(ping(&testbed));
        drop(testbed.running.take());
        assert!(!ping(&testbed), "nobody forwards");
        let ports = testbed._rack.ports(kind).expect("the interfaces are there").0;
        let mut directory = Directory::new(2);
        (0..2).for_each(|host| directory.add(host, testbed.plan.station(host), testbed.plan.addresses(host)));
        let bridge = Bridge::new(Fifo::new(2, Rate::from_gbps(1), 200_000), directory);
        testbed.running = Some(Running::start(bridge, ports, None).expect("a thread"));
        assert!(ping(&testbed));
    }
}

/// Returns the number of datagrams that host 1 has received, for whom nobody listens.
fn received(testbed: &Testbed) -> u64 {
    column(testbed, 1, 1)
}

/// Returns the number of frames that the kernel of host 0 has dropped before its interface.
fn transmit_drops(testbed: &Testbed) -> u64 {
    column(testbed, 0, 11)
}

/// Returns a number of `/proc/net/dev` about `eth0`.
fn column(testbed: &Testbed, host: usize, number: usize) -> u64 {
    let output = testbed.output(host, &["cat", "/proc/net/dev"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).expect("a line");
    line.split_whitespace().nth(number).and_then(|number| number.parse().ok()).expect("a number")
}

/// A process that is ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of processes waits for them")]
fn wait() {
    thread::sleep(Duration::from_millis(100));
}
