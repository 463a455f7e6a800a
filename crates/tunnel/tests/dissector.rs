//! The Wireshark dissector that comes with the package, on a capture with packets of every type, trimmed ones and
//! damaged ones.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_tunnel::keys::{Pair, Secret, Suite};
use selvedge_tunnel::{Epochs, Outbound};
use selvedge_wire::eqds::v1::{
    Body, Capabilities, Close, Common, Data, Datagram, Flags, Head, Next, Options, Outer, PORT, Packet, PacketType,
    Probe, Range, Ranges, Refusal, Report, Reset, ResetReason, Service, Words,
};
use selvedge_wire::{Ecn, Ipv4, Ipv6, Udp};

/// Expectation of a packet in the capture.
enum Expected {
    /// Nothing is wrong.
    Good(PacketType),
    /// A switch has trimmed the packet. Where the lengths of IP and UDP say more than what is there, Wireshark itself
    /// complains about these.
    Trimmed { lengths_agree: bool },
    /// The tunnel's packet is damaged: part of the complaint.
    Damaged(&'static str),
}

/// A capture of raw IP packets.
struct Capture {
    bytes: Vec<u8>,
    expected: Vec<Expected>,
}

impl Capture {
    fn new() -> Self {
        // Version 2.4, no time zone, snapshots of 65,535 bytes, link type 101: packets begin with IP.
        let mut bytes = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
        Self { bytes, expected: Vec::new() }
    }
    fn add(&mut self, packet: &[u8], expected: Expected) {
        let number = self.expected.len() as u32;
        for word in [number, 0, packet.len() as u32, packet.len() as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(packet);
        self.expected.push(expected);
    }
}

fn outer(is_v6: bool) -> Outer {
    let (dscp, ecn, protocol) = (0, Ecn::Capable, Ipv4::UDP);
    if is_v6 {
        let source = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let destination = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
        Outer::V6(Ipv6 { dscp, ecn, flow_label: 0, length: 0, protocol, hop_limit: 64, source, destination })
    } else {
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let (length, identification, dont_fragment, ttl) = (0, 0, true, 64);
        Outer::V4(Ipv4 { dscp, ecn, length, identification, dont_fragment, ttl, protocol, source, destination })
    }
}

/// Returns a datagram around `payload`, to the port `destination`.
fn datagram(is_v6: bool, destination: u16, payload: &[u8]) -> Vec<u8> {
    let udp = Udp { source: 49_152, destination, length: 0, checksum: 0 };
    let mut buffer = vec![0; Datagram::LONGEST + payload.len()];
    Datagram { outer: outer(is_v6), udp }.emit(payload, &mut buffer).to_vec()
}

fn data(next: Next) -> Body {
    Body::Data(Data { seq: 0x1234_5401, pull_target: 9, next, priority: 3, service: Service::Unordered })
}

/// Returns packets of every type with their payloads.
fn packets() -> Vec<(Flags, Body, Options, Vec<u8>)> {
    let mut ranges = Ranges::default();
    ranges.push(Range { offset: 2, packets: 3 });
    ranges.push(Range { offset: 9, packets: 1 });
    let none = Options::NONE;
    let capabilities = Some(Capabilities::SEALED.with(Capabilities::RANGES));
    let syn = Options { mtu: Some(1_472), capabilities, rate: Some(25_000), ..none };
    let words = Words { message: 7, offset: 1_000, length: 1_005 }.emit();
    let message = [&words[..], b"hello"].concat();
    let native = |source: &str, destination: &str, refusal| {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let mut buffer = [0; Head::LONGEST];
        let head = Head { refusal, source, destination, tag: 5 }.emit(&mut buffer).unwrap().to_vec();
        let words = Words { message: 8, offset: 0, length: head.len() as u32 + 2 }.emit();
        [&words[..], &head, b"hi"].concat()
    };
    let report = Report { number: 0x1234_5402, pull: 5, busy: 100, echo: 3, echo_epoch: 4, delay: 20 };
    let silent = Report { delay: Report::NO_ECHO, ..report };
    let reset = |reason| Body::Reset(Reset { seq: 1, reason });
    let close = |from_sender| Body::Close(Close { number: 1, from_sender });
    vec![
        (Flags::NONE, data(Next::Ip), none, datagram(false, 9, b"inside")),
        (Flags::NONE, data(Next::Ip), none, datagram(true, 9, b"inside")),
        (Flags::SYN, data(Next::Ip), syn, datagram(false, 9, b"inside")),
        (Flags::ACK, data(Next::Native), none, message.clone()),
        (Flags::NONE, data(Next::Native), none, native("10.80.1.1:7", "10.80.2.1:8", None)),
        (Flags::NONE, data(Next::Native), none, native("[fd00::1]:7", "[fd00::2]:8", Some(Refusal::Full))),
        (Flags::NONE, data(Next::Super), none, message),
        (Flags::SYN, Body::Request(Data { seq: 1 << 10, ..Data::default() }), syn, vec![]),
        (Flags::ACK.with(Flags::PULL).with(Flags::ECN_ECHO), Body::Report(report), none, vec![]),
        (Flags::SYN.with(Flags::SACK), Body::Report(silent), Options { sacks: ranges, ..none }, vec![]),
        (Flags::NACK, Body::Report(report), Options { nacks: ranges, ..none }, vec![]),
        (Flags::NONE, reset(ResetReason::NoTunnel), none, vec![]),
        (Flags::NONE, reset(ResetReason::OldEpoch), Options { floor: Some(3), ..none }, vec![]),
        (Flags::NONE, reset(ResetReason::Challenge), Options { challenge: Some(4), ..none }, vec![]),
        (Flags::NONE, close(true), none, vec![]),
        (Flags::NONE, close(false), none, vec![]),
        (Flags::NONE, Body::Probe(Probe { token: 1, size: 0 }), none, vec![0; 1_000]),
        (Flags::ACK, Body::Probe(Probe { token: 1, size: 1_036 }), none, vec![]),
    ]
}

fn capture() -> Capture {
    let pair = Pair::from_shared(&Secret::new([1; 32]), "a", "b", Suite::default()).unwrap();
    let mut epochs = Epochs::new(None, 0);
    epochs.stored(epochs.reserve());
    let mut capture = Capture::new();
    for (is_v6, is_sealed) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut out = Outbound::new(pair.outbound(), is_sealed, &mut epochs).unwrap();
        // SYNs carry the answer from here on.
        out.answer(1 << 60, &mut epochs).unwrap();
        for (flags, body, options, payload) in packets() {
            let packet = Packet { common: Common { flags, eqif: 1, path: 7, ..Common::default() }, body, options };
            let mut buffer = vec![0; 2_000];
            let bytes = out.write(&packet, [&payload, &[]], &mut epochs, &mut buffer).unwrap().to_vec();
            let header = 4 * usize::from(bytes[16]);
            let whole = datagram(is_v6, PORT, &bytes);
            capture.add(&whole, Expected::Good(body.kind()));
            let headers = whole.len() - bytes.len();
            for left in if payload.is_empty() { vec![] } else { vec![0, 3] } {
                let kept = header + left;
                let mut marked = bytes[..kept].to_vec();
                marked[1] |= Flags::TRIMMED.bits();
                capture.add(&datagram(is_v6, PORT, &marked), Expected::Trimmed { lengths_agree: true });
                capture.add(&datagram(is_v6, PORT, &bytes[..kept]), Expected::Trimmed { lengths_agree: true });
                capture.add(&whole[..headers + kept], Expected::Trimmed { lengths_agree: false });
            }
            let mut damage = |what: &'static str, change: &dyn Fn(&mut Vec<u8>)| {
                let mut bytes = bytes.clone();
                change(&mut bytes);
                capture.add(&datagram(is_v6, PORT, &bytes), Expected::Damaged(what));
            };
            damage("Unknown version", &|bytes| bytes[0] = 0x20 | bytes[0] & 0xf);
            damage("Unknown version or type", &|bytes| bytes[0] = 0x1f);
            damage("impossible header length", &|bytes| bytes[16] = 1);
            damage("impossible header length", &|bytes| bytes[16] = 255);
            damage("the header is cut", &|bytes| bytes.truncate(header - 1));
            damage("shorter than the common part", &|bytes| bytes.truncate(19));
            damage("more bytes than were sent", &|bytes| bytes.push(0));
            if options.mtu.is_some() {
                let at = Common::LENGTH + body.kind().length();
                damage("illegal length", &|bytes| bytes[at + 1] = 3);
                damage("illegal length", &|bytes| bytes[at + 1] = 255);
                damage("must be known", &|bytes| bytes[at] = 200);
            }
        }
    }
    capture
}

/// Returns a line per packet: type, then complaints; `None` without tshark.
fn dissect(capture: &Path) -> Option<Vec<(String, String)>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/eqds.lua");
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let fields = ["-T", "fields", "-E", "separator=|", "-e", "eqds.type", "-e", "_ws.expert.message"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-X").arg(format!("lua_script:{script}")).arg("-r").arg(capture).args(checks).args(fields);
    let output = tshark.output().ok()?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| {
        let (kind, complaints) = line.split_once('|').expect("two fields");
        (kind.to_owned(), complaints.to_owned())
    });
    Some(lines.collect())
}

#[test]
fn wireshark_shows_good_packets_and_complains_about_the_others() {
    let capture = capture();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("eqds.pcap");
    fs::write(&file, &capture.bytes).unwrap();
    let Some(lines) = dissect(&file) else {
        eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
        return;
    };
    assert_eq!(lines.len(), capture.expected.len());
    let trimmed = "A switch has trimmed the packet";
    let mut faults = Vec::new();
    for (at, ((kind, complaints), expected)) in lines.iter().zip(&capture.expected).enumerate() {
        let is_as_expected = match expected {
            Expected::Good(of) => *kind == (*of as u8).to_string() && complaints.is_empty(),
            Expected::Trimmed { lengths_agree: true } => complaints == trimmed,
            Expected::Trimmed { lengths_agree: false } => complaints.contains(trimmed) && !complaints.contains("Lua"),
            Expected::Damaged(what) => complaints.contains(what) && !complaints.contains("Lua"),
        };
        if !is_as_expected {
            faults.push(format!("{}: type {kind}: {complaints}", at + 1));
        }
    }
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), file.display());
}
