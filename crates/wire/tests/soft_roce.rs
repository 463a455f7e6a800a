//! Tests with a capture of Linux's soft RoCE, an independent implementation.

use selvedge_wire::cm::{self, Mad, Message};
use selvedge_wire::verbs::{Headers, Ours};
use selvedge_wire::{Bth, EtherType, Ethernet, Icrc, Ipv4, Udp};

mod support;

/// Every header parses and is emitted unchanged, and every ICRC equals the computed one.
#[test]
fn headers_of_a_real_rnic_survive() {
    let root = std::env::var("SELVEDGE_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into());
    for file in ["cm.pcap", "rxe1.pcap"] {
        let path = format!("{root}/traces/rxe/{file}");
        let Ok(capture) = std::fs::read(&path) else {
            eprintln!("skipped: {path} cannot be read; set SELVEDGE_SHARED to the folder that holds it");
            return;
        };
        let headers = frames(&capture).filter(|frame| check_frame(frame)).count();
        assert!(headers > 10, "{file}: only {headers} headers found");
    }
}

/// Checks a RoCEv2 frame; returns `false` if the frame is of another kind.
fn check_frame(frame: &[u8]) -> bool {
    support::check_headers(frame);
    let (ethernet, packet) = Ethernet::parse(frame).expect("a frame has a header");
    if ethernet.kind != EtherType::IPV4 {
        return false;
    }
    let (ip, datagram) = Ipv4::parse(packet).expect("a kernel gets its checksums right");
    let Ok((udp @ Udp { destination: Udp::ROCE, .. }, message)) = Udp::parse(datagram) else { return false };
    let (bth, _) = Bth::parse(message).expect("soft RoCE speaks version 0");
    let sent = (*packet.first_chunk().unwrap(), *datagram.first_chunk().unwrap(), *message.first_chunk().unwrap());
    assert_eq!((ip.emit(), udp.emit(), bth.emit()), sent);
    let (covered, icrc) = message.split_last_chunk().expect("an ICRC");
    let mut crc = Icrc::begin(sent.0, sent.1, sent.2);
    crc.update(&covered[Bth::LENGTH..]);
    assert_eq!(crc.finish(), *icrc, "opcode {:#04x}", bth.opcode);
    let (headers, payload) = Headers::parse(&message[..message.len() - Icrc::LENGTH]).expect("only supported headers");
    assert_eq!(headers.ours, Ours::No);
    if headers.deth.is_some_and(|deth| deth.qkey == cm::QKEY) {
        let mad = Mad::parse(payload).expect("a message of connection management");
        assert_eq!(Mad::parse(&mad.emit()), Ok(mad));
        let Message::Request(request) = mad.message else { return true };
        let source = request.ip.source.to_ipv4_mapped();
        assert_eq!((source, request.service >> 16), (Some(ip.source), 0x0106), "{request:?}");
        assert_eq!((request.mtu, request.retries, request.not_ready_retries), (3, 7, 7));
    }
    let mut emitted = [0; Headers::LONGEST];
    let length = headers.emit(payload.len(), &mut emitted);
    assert_eq!(emitted[..length], message[..length], "opcode {:#04x}", bth.opcode);
    true
}

/// Returns the frames of a classic little-endian pcap file.
fn frames(capture: &[u8]) -> impl Iterator<Item = &[u8]> {
    assert_eq!(capture[..4], 0xa1b2_c3d4u32.to_le_bytes(), "a little-endian pcap file");
    let mut rest = &capture[24..];
    std::iter::from_fn(move || {
        let (header, behind) = rest.split_at_checked(16)?;
        let length = u32::from_le_bytes(header[8..12].try_into().expect("four bytes")) as usize;
        let (frame, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some(frame)
    })
}
