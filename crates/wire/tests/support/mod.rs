//! The checks of the fuzz targets, so that `cargo test` can replay their corpora.

use selvedge_wire::{Aeth, Bth, Datagram, Ethernet, Extension, Frame, Ipv4, Ipv6, Pfc, Reth, Udp, eqds, tcp};

/// Parses `bytes` as every header. Headers that parse must survive a round trip.
pub(crate) fn check_headers(bytes: &[u8]) {
    if let Ok((header, _)) = Bth::parse(bytes) {
        assert_eq!(Bth::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Aeth::parse(bytes) {
        assert_eq!(Aeth::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Extension::parse(bytes) {
        assert_eq!(Extension::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Reth::parse(bytes) {
        assert_eq!(Reth::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Pfc::parse(bytes) {
        assert_eq!(Pfc::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Ethernet::parse(bytes) {
        assert_eq!(Ethernet::parse(&header.emit()), Ok((header, &[][..])));
    }
    // Length fields include the payload, so it must be appended.
    if let Ok((header, payload)) = Ipv4::parse(bytes) {
        assert_eq!(Ipv4::parse(&[&header.emit(), payload].concat()), Ok((header, payload)));
    }
    if let Ok((header, payload)) = Udp::parse(bytes) {
        assert_eq!(Udp::parse(&[&header.emit(), payload].concat()), Ok((header, payload)));
    }
    if let Ok((frame, payload)) = Frame::parse(bytes) {
        let mut buffer = vec![0; frame.length(payload.len())];
        assert_eq!(Frame::parse(frame.emit(payload, &mut buffer)), Ok((frame, payload)));
    }
    if let Ok((datagram, payload)) = Datagram::parse(bytes) {
        let mut buffer = [0; Datagram::LONGEST_HEADERS];
        let again = [datagram.emit(&mut buffer), payload].concat();
        assert_eq!(Datagram::parse(&again), Ok((datagram, payload)));
    }
    if let Ok((header, payload)) = tcp::Header::parse(bytes) {
        let mut buffer = [0; tcp::Header::LONGEST];
        let again = [header.emit(&mut buffer), payload].concat();
        assert_eq!(tcp::Header::parse(&again), Ok((header, payload)));
    }
    if let Ok((header, payload)) = Ipv6::parse(bytes) {
        assert_eq!(Ipv6::parse(&[&header.emit(), payload].concat()), Ok((header, payload)));
    }
    check_tunnel_headers(bytes);
    check_tunnel_packets(bytes);
}

/// Parses `bytes` as a tunnel's packet of version 1, and as a datagram around one.
pub(crate) fn check_tunnel_packets(bytes: &[u8]) {
    check_tunnel_packet(bytes);
    if let Ok((head, content)) = eqds::v1::Head::parse(bytes) {
        let mut buffer = [0; eqds::v1::Head::LONGEST];
        let written = head.emit(&mut buffer).expect("both addresses have one version of IP");
        assert_eq!(written.len() + content.len(), bytes.len());
        // Unlike a head, content has no reason.
        assert_eq!(eqds::v1::Head::parse(written), Ok((head, &[][..])));
    }
    if let Ok((_, _, payload)) = eqds::v1::Datagram::parse(bytes) {
        check_tunnel_packet(payload);
    }
}

/// Parses `bytes` as a tunnel's packet of version 1. Its fields must survive a round trip; reserved bits and unknown
/// options need not.
fn check_tunnel_packet(bytes: &[u8]) {
    use eqds::v1::{LONGEST, Packet, Words};

    let Ok(parsed) = Packet::parse(bytes) else { return };
    assert!(parsed.header().len() <= LONGEST && parsed.header().len() + parsed.sent_payload() <= 65_535);
    assert!(bytes.starts_with(parsed.header()));
    assert_eq!(parsed.covered(&mut [0; LONGEST]).len() + parsed.mac().len(), parsed.header().len());
    if let Some(payload) = parsed.payload() {
        assert_eq!(payload.len(), parsed.sent_payload());
        if let Ok((words, part)) = Words::parse(payload) {
            assert_eq!([&words.emit()[..], part].concat(), payload);
        }
    }
    let mut buffer = [0; LONGEST];
    let header = parsed.packet.emit(parsed.sent_payload(), &mut buffer);
    let again = Packet::parse(header).expect("a header that was read can be read again");
    assert_eq!(again.packet, parsed.packet);
}

/// Parses `bytes` as EQDS's headers, in both widths, and as its datagrams. Those that parse must survive a round trip.
fn check_tunnel_headers(bytes: &[u8]) {
    for layout in [eqds::Layout::Wide, eqds::Layout::Compact] {
        let mut buffer = [0; 16];
        if let Ok((header, _)) = eqds::DataHeader::parse(layout, bytes) {
            assert_eq!(eqds::DataHeader::parse(layout, header.emit(layout, &mut buffer)), Ok((header, &[][..])));
        }
        if let Ok((header, _)) = eqds::ControlHeader::parse(layout, bytes) {
            assert_eq!(eqds::ControlHeader::parse(layout, header.emit(layout, &mut buffer)), Ok((header, &[][..])));
        }
    }
    if let Ok((datagram, payload)) = eqds::Datagram::parse(bytes) {
        let mut buffer = vec![0; datagram.length(payload.len())];
        assert_eq!(eqds::Datagram::parse(datagram.emit(payload, &mut buffer)), Ok((datagram, payload)));
        assert!(eqds::Datagram::is_one(bytes));
    }
}
