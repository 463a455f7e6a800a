//! Captures of the NIC's packets, checked by other software: Wireshark dissects each without complaint, and Scapy
//! computes the same ICRC.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{FIRST, Namespaces, have, shell};

/// The system's Python, which has the system's packages; another may come before it in the path.
const PYTHON: &str = "/usr/bin/python3";

/// Script that prints how many packets of a capture Scapy has checked, and those whose ICRC it computes differently.
const ICRC: &str = "
import sys
from scapy.all import UDP, PcapReader, bind_layers
from scapy.contrib.roce import BTH
# Who asks for a connection may ask at the UDP port of the RDMA port's number.
bind_layers(UDP, BTH, dport=7330)
count = 0
for number, packet in enumerate(PcapReader(sys.argv[1]), 1):
    if BTH in packet:
        count += 1
        bth, before = packet[BTH], bytes(packet[BTH])
        if bth.compute_icrc(before[:-4])[-4:] != before[-4:]:
            print('packet', number, packet.summary())
print(count)
";

/// Programs with every kind of request, and with connections by the connection manager.
const PROGRAMS: [(&str, &[&str]); 9] = [
    ("ib_write_bw", &["-F", "-n", "20", "-s", "10000"]),
    ("ib_read_bw", &["-F", "-n", "20", "-s", "10000"]),
    ("ib_send_bw", &["-F", "-n", "20", "-s", "10001"]),
    ("ib_atomic_bw", &["-F", "-n", "20"]),
    ("ib_atomic_bw", &["-F", "-n", "20", "-A", "CMP_AND_SWAP"]),
    ("ib_send_bw", &["-F", "-n", "20", "-s", "1001", "-c", "UD"]),
    ("ib_send_bw", &["-F", "-n", "20", "-s", "5001", "-c", "UC"]),
    ("ib_write_bw", &["-F", "-n", "20", "-s", "5001", "-c", "UC"]),
    ("ibv_rc_pingpong", &["-g", "1", "-n", "20", "-s", "5000"]),
];

/// A capture of the packets that arrive at the first of two namespaces, as they were on the wire.
struct Capture {
    child: Child,
    file: PathBuf,
    sender: String,
}

impl Capture {
    fn begin(namespaces: &Namespaces, file: PathBuf) -> Self {
        let [listener, sender] = &namespaces.names;
        // Without this limit the kernel shows long packets that it would cut later.
        for name in &namespaces.names {
            shell(&format!("ip -n {name} link set eth0 gso_max_segs 1")).expect("the kernel can cut earlier");
        }
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", listener, "tshark", "-q", "-i", "eth0", "-f", "udp", "-F", "pcap", "-w"]);
        let child = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ip runs");
        let capture = Self { child, file, sender: sender.clone() };
        capture.hear("it listens");
        capture
    }

    /// Sends a message until it is in the file, which then contains all earlier packets, too.
    fn hear(&self, message: &str) {
        let send = format!("ip netns exec {} bash -c 'echo {message} > /dev/udp/{FIRST}/9; sleep 0.05'", self.sender);
        let is_there = || {
            let bytes = std::fs::read(&self.file).unwrap_or_default();
            bytes.windows(message.len()).any(|part| part == message.as_bytes())
        };
        // On a busy machine tshark takes long to begin.
        for _ in 0..2_400 {
            // A port where nobody listens refuses the message, but it is captured.
            let _ = shell(&send);
            if is_there() {
                return;
            }
        }
        panic!("tshark does not hear us in two minutes");
    }

    /// Ends the capture; returns the complete file.
    fn end(mut self) -> PathBuf {
        self.hear("it is over");
        shell(&format!("kill -INT {}", self.child.id())).expect("the capturing process runs");
        self.child.wait().expect("the child process can be waited for");
        self.file
    }
}

/// Returns the lines that tshark prints for a capture.
fn tshark(capture: &Path, arguments: &[&str]) -> Vec<String> {
    lines_of(Command::new("tshark").arg("-r").arg(capture).args(arguments))
}

fn lines_of(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("the program is installed");
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Returns the arguments by which tshark does not dissect payload, which is random here: its heuristics once took some
/// for Ethernet over InfiniBand, whose sender was a group address.
fn no_guesses() -> Vec<String> {
    let all = lines_of(Command::new("tshark").args(["-G", "heuristic-decodes"]));
    let guesses = all.iter().filter_map(|line| line.strip_prefix("infiniband.payload\t")?.split('\t').next());
    // Without the table of Ethernet's types tshark would not dissect the NIC's packets at all.
    let protocols: Vec<_> = guesses.filter(|&name| name != "ethertype").collect();
    assert!(protocols.contains(&"rpcordma"), "tshark says what it guesses: {protocols:?}");
    protocols.iter().map(|name| format!("--disable-protocol={name}")).collect()
}

#[test]
fn others_read_our_packets_without_complaint() {
    if !have(&["tshark", "ib_write_bw", "ib_atomic_bw", "rping", "ibv_rc_pingpong"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("capture") else { return };
    for recovery in ["irn", "go-back-n"] {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{recovery}.pcap"));
        let capture = Capture::begin(&namespaces, file);
        let environment = [("SELVEDGE_RECOVERY", recovery)];
        let pair = namespaces.pair(&environment);
        for (program, words) in PROGRAMS {
            pair.run(program, words);
        }
        let rping = |who: &'static str| ["rping", who, "-a", FIRST, "-p", "7330", "-C", "5", "-V"];
        pair.connect(&rping("-s"), &rping("-c"), 7_330);
        let file = capture.end();

        // Payload of the programs is not dissected.
        let quiet = no_guesses();
        let mut arguments: Vec<_> = quiet.iter().map(String::as_str).collect();
        arguments.extend(["-Y", "_ws.expert.severity >= 0x400000 or _ws.malformed or _ws.short"]);
        let complaints = tshark(&file, &arguments);
        assert!(complaints.is_empty(), "{recovery}: {complaints:#?}");
        let packets = tshark(&file, &["-Y", "infiniband", "-T", "fields", "-e", "infiniband.bth.opcode"]);
        for (name, opcode) in
            [("Send", "4"), ("Write", "6"), ("Read", "12"), ("CompareSwap", "19"), ("FetchAdd", "20"), ("UD", "100")]
        {
            assert!(
                packets.iter().any(|packet| packet == opcode),
                "{recovery}: no {name} among {} packets",
                packets.len()
            );
        }
        same_icrc_as_scapy(&file, packets.len());
    }
}

fn same_icrc_as_scapy(file: &Path, packets: usize) {
    let has_scapy = Command::new(PYTHON).args(["-c", "import scapy.contrib.roce"]).output();
    if !has_scapy.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no python3 with scapy here: `cargo xtask setup` installs it");
        return;
    }
    let output = Command::new(PYTHON).args(["-c", ICRC]).arg(file).output().expect("the program is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), packets.to_string(), "{}", String::from_utf8_lossy(&output.stderr));
}
