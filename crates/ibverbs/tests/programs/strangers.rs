//! NICs of other makers: they send to UDP port 4791 alone, and reach every process of a host.

use std::process::Child;

use crate::support::{FIRST, Namespaces, Pair, have, said, shell, wait_until};

/// Environment in which a program's NIC behaves like one of another maker.
const STRANGER: &[(&str, &str)] = &[("SELVEDGE_WIRE", "standard")];

/// A server with a Selvedge NIC that waits for its client.
struct Server {
    words: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts a server and waits until it listens on this port of a protocol.
    fn start(pair: &Pair<'_>, words: &[&str], (protocol, port): (&str, u16)) -> Self {
        let mut child = pair.server.command(words, &[]).spawn().expect("timeout runs");
        let line = format!(":{port:04X} ");
        let is_up = wait_until(&mut child, || pair.server.has(protocol, &line, ""));
        assert!(is_up, "{words:?}");
        Self { words: words.iter().map(ToString::to_string).collect(), child }
    }
    /// Runs a client whose NIC behaves like one of another maker.
    fn meet(self, pair: &Pair<'_>, client: &[&str]) {
        let client = pair.client.command(client, STRANGER).output().expect("timeout runs");
        let server = self.child.wait_with_output().expect("the child process can be waited for");
        let is_well = client.status.success() && server.status.success();
        assert!(is_well, "{:?}\n-- client: {}\n-- server: {}", self.words, said(&client), said(&server));
    }
    fn end(mut self) {
        shell(&format!("kill {}", self.child.id())).expect("the process to kill runs");
        self.child.wait().expect("the child process can be waited for");
    }
}

fn pingpong(port: &str) -> Vec<&str> {
    vec!["ibv_rc_pingpong", "-d", "sv_eth0", "-g", "1", "-n", "50", "-s", "10000", "-c", "-p", port]
}

#[test]
fn strangers_reach_every_process_of_a_host() {
    if !have(&["ibv_rc_pingpong"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("shared") else { return };
    let pair = namespaces.pair(&[]);
    let start = |port: &str| Server::start(&pair, &pingpong(port), ("tcp", port.parse().expect("a port")));
    let meet = |server: Server, port: &str| server.meet(&pair, &[&pingpong(port)[..], &[FIRST]].concat());

    let [first, second, third] = ["18601", "18602", "18603"].map(start);
    meet(third, "18603");
    meet(first, "18601");
    meet(second, "18602");

    // The first server leaves, so that positions in the group differ from slots, and another comes.
    let [first, second, third] = ["18611", "18612", "18613"].map(start);
    first.end();
    let fourth = start("18614");
    meet(third, "18613");
    meet(fourth, "18614");
    meet(second, "18612");
}

#[test]
fn strangers_connect_to_every_process_of_a_host() {
    if !have(&["rping"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("sharedcm") else { return };
    let pair = namespaces.pair(&[]);
    let rping = |who, port| vec!["rping", who, "-a", FIRST, "-p", port, "-C", "10", "-V", "-S", "4000"];
    let start = |port: &'static str| Server::start(&pair, &rping("-s", port), ("udp", port.parse().expect("a port")));
    let [first, second, third] = ["7401", "7402", "7403"].map(start);
    third.meet(&pair, &rping("-c", "7403"));
    first.end();
    second.meet(&pair, &rping("-c", "7402"));
}
