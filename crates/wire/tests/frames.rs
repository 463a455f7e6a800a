//! Tests of whole frames: parsing and emitting are inverse, and agree with other implementations.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use selvedge_units::{Instant, Psn, QpNumber, TcpSeq};
use selvedge_wire::eqds::Layout;
use selvedge_wire::tcp::{self, Flags, Segment, TcpDatagram, Timestamps};
use selvedge_wire::verbs::opcode::operation;
use selvedge_wire::verbs::{self, Headers};
use selvedge_wire::{
    Aeth, Bth, Content, Ecn, Envelope, Extended, Extension, Frame, Hole, Icrc, Ipv4, MacAddress, Opcode, ParseError,
    Pfc, Reth, Roce, Syndrome, Udp,
};

fn mac() -> impl Strategy<Value = MacAddress> {
    any::<[u8; 6]>().prop_map(MacAddress)
}

/// Returns a strategy of opcodes with the headers that follow.
fn extended() -> impl Strategy<Value = (u8, Extended)> {
    let plain = prop::sample::select(vec![
        Opcode::SEND_FIRST,
        Opcode::SEND_MIDDLE,
        Opcode::SEND_LAST,
        Opcode::SEND_ONLY,
        Opcode::WRITE_MIDDLE,
        Opcode::WRITE_LAST,
    ]);
    let reth = (any::<bool>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(only, address, key, length)| {
        let opcode = if only { Opcode::WRITE_ONLY } else { Opcode::WRITE_FIRST };
        (opcode, Extended::Reth(Reth { address, key, length }))
    });
    let aeth = (0u8..32, 0u32..1 << 24).prop_map(|(credits, msn)| Aeth { syndrome: Syndrome::Ack(credits), msn });
    let extension = (any::<u64>(), any::<bool>(), 0..Psn::MODULUS).prop_map(|(ps, retransmission, sack)| Extension {
        sent_at: Instant::from_ps(ps),
        retransmission,
        sack: Psn::new(sack),
        ..Extension::default()
    });
    prop_oneof![
        plain.prop_map(|opcode| (opcode, Extended::None)),
        reth,
        aeth.clone().prop_map(|aeth| (Opcode::ACKNOWLEDGE, Extended::Aeth(aeth))),
        (aeth.clone(), extension.clone(), any::<[[u16; 2]; 3]>()).prop_map(|(aeth, extension, holes)| {
            let holes = holes.map(|[start, length]| Hole { start, length });
            (Opcode::ACKNOWLEDGE, Extended::Holes(aeth, Extension { holes: true, ..extension }, holes))
        }),
        (aeth, extension).prop_map(|(aeth, extension)| (Opcode::ACKNOWLEDGE, Extended::Selective(aeth, extension))),
        Just((Opcode::CONGESTION_NOTIFICATION, Extended::Cnp)),
    ]
}

prop_compose! {
    /// Returns a strategy of datagrams for `payload` bytes of payload.
    fn roce(payload: usize)(
        source in any::<u32>(), destination in any::<u32>(), dscp in 0u8..64,
        ecn in prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Marked]),
        identification in any::<u16>(), ttl in any::<u8>(), port in port(),
        (opcode, extended) in extended(), qp in 0u32..1 << 24, psn in 0..Psn::MODULUS, ack_request in any::<bool>(),
    ) -> Roce {
        Roce {
            envelope: Envelope { source: source.into(), destination: destination.into(), dscp, ecn, identification, ttl },
            port,
            bth: Bth {
                opcode,
                pad: (payload.next_multiple_of(4) - payload) as u8,
                destination: QpNumber(qp),
                psn: Psn::new(psn),
                ack_request,
                ..Bth::default()
            },
            extended,
        }
    }
}

/// Returns a strategy of source ports: any port is entropy, those of tunnels included.
fn port() -> impl Strategy<Value = u16> {
    prop_oneof![8 => any::<u16>(), 1 => Just(Layout::Wide.port()), 1 => Just(Layout::Compact.port())]
}

/// Returns a strategy of frames with their payloads.
fn frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    let roce = prop::collection::vec(any::<u8>(), 0..64).prop_flat_map(|payload| {
        roce(payload.len()).prop_map(move |roce| {
            // An AETH without further headers precedes no payload.
            let bare = matches!(roce.extended, Extended::Aeth(_));
            let payload = if bare { Vec::new() } else { payload.clone() };
            let bth = Bth { pad: if bare { 0 } else { roce.bth.pad }, ..roce.bth };
            (Content::Roce(Roce { bth, ..roce }), payload)
        })
    });
    let pfc = (any::<u8>(), any::<[u16; 8]>())
        .prop_map(|(classes, quanta)| (Content::Pfc(Pfc { classes, quanta }), Vec::new()));
    (mac(), mac(), prop_oneof![4 => roce, 1 => pfc])
        .prop_map(|(destination, source, (content, payload))| (Frame { destination, source, content }, payload))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_survives_the_wire((frame, payload) in frame()) {
        let mut buffer = [0xaa; 256];
        let bytes = frame.emit(&payload, &mut buffer).to_vec();
        prop_assert_eq!(bytes.len(), frame.length(payload.len()));
        prop_assert_eq!(Frame::parse(&bytes), Ok((frame, &payload[..])));
        // A frame cut at any point is an error (padding aside), not a panic.
        if let Content::Roce(roce) = frame.content {
            for length in 0..14 + roce.length(payload.len()) {
                prop_assert!(Frame::parse(&bytes[..length]).is_err());
            }
        }
    }
    #[test]
    fn a_flipped_bit_is_noticed_unless_routers_may_flip_it((frame, payload) in frame(), at in 0usize..512) {
        let Content::Roce(roce) = frame.content else { return Ok(()) };
        let mut buffer = [0; 256];
        let length = roce.emit(&payload, &mut buffer).len();
        let (byte, bit) = (at / 8 % length, at % 8);
        buffer[byte] ^= 1 << bit;
        let masked = (26..28).contains(&byte) || byte == 32;
        prop_assert_eq!(Roce::parse(&buffer[..length]).is_ok(), masked, "byte {}", byte);
    }
}

const ENVELOPE: Envelope = Envelope {
    source: Ipv4Addr::new(10, 0, 0, 1),
    destination: Ipv4Addr::new(10, 0, 0, 2),
    dscp: 24,
    ecn: Ecn::NotCapable,
    identification: 0,
    ttl: 64,
};

#[test]
fn a_nak_is_what_scapy_makes_of_it() {
    // scapy 2.8: IP(id=7, tos=0x62) / UDP(sport=50000) / BTH(opcode=0x11, dqpn=5, psn=9) / AETH(syndrome=0x60, msn=3)
    let expected = "0200000000020200000000010800\
                    4562003000074000401126520a0000010a000002\
                    c35012b7001c0000\
                    1100ffff0000000500000009\
                    60000003\
                    37ae587f";
    let aeth = Aeth { syndrome: Syndrome::SEQUENCE_ERROR, msn: 3 };
    let frame = Frame {
        destination: MacAddress::local(2),
        source: MacAddress::local(1),
        content: Content::Roce(Roce {
            envelope: Envelope { ecn: Ecn::Capable, identification: 7, ttl: 64, ..ENVELOPE },
            port: 50_000,
            bth: Bth {
                opcode: Opcode::ACKNOWLEDGE,
                partition: 0xffff,
                destination: QpNumber(5),
                psn: Psn::new(9),
                ..Bth::default()
            },
            extended: Extended::Aeth(aeth),
        }),
    };
    assert_eq!(hex(frame.emit(&[], &mut [0; 256])), expected);
}

#[test]
fn a_write_is_what_scapy_makes_of_it() {
    let expected = "0200000000020200000000010800\
                    45630044123440003f1115100a0000010a000002\
                    c00112b700300000\
                    0a30ffff0001020380fffffe\
                    00000000deadbeef0000123400000005\
                    68656c6c6f000000\
                    25b19ddd";
    let frame = Frame {
        destination: MacAddress::local(2),
        source: MacAddress::local(1),
        content: Content::Roce(Roce {
            envelope: Envelope { ecn: Ecn::Marked, identification: 0x1234, ttl: 63, ..ENVELOPE },
            port: Udp::source_port(1),
            bth: Bth {
                opcode: Opcode::WRITE_ONLY,
                partition: 0xffff,
                destination: QpNumber(0x010203),
                ack_request: true,
                psn: Psn::new(0xff_fffe),
                ..Bth::default()
            },
            extended: Extended::Reth(Reth { address: 0xdead_beef, key: 0x1234, length: 5 }),
        }),
    };
    assert_eq!(hex(frame.emit(b"hello", &mut [0; 256])), expected);
}

#[test]
fn a_tcp_segment_is_what_scapy_makes_of_it() {
    let expected = "0200000000020200000000010800\
                    4562003900094000400626520a0000010a000002\
                    c0011d2f000003e8000007d08018020033ec0000\
                    0101080a0000000300000004\
                    68656c6c6f";
    let segment = Segment {
        seq: TcpSeq::new(1_000),
        ack: TcpSeq::new(2_000),
        flags: Flags::PSH | Flags::ACK,
        window: 512,
        payload: 5,
        timestamps: Some(Timestamps { value: 3, echo: 4 }),
        ..Segment::default()
    };
    let envelope = Envelope { ecn: Ecn::Capable, identification: 9, ..ENVELOPE };
    let header = tcp::Header { source: 49_153, destination: 7_471, segment };
    let frame = Frame {
        destination: MacAddress::local(2),
        source: MacAddress::local(1),
        content: Content::Tcp(TcpDatagram { envelope, header }),
    };
    let mut buffer = [0; 256];
    let bytes = frame.emit(b"hello", &mut buffer);
    assert_eq!(hex(bytes), expected);
    assert_eq!(Frame::parse(bytes), Ok((frame, &b"hello"[..])));
    for bit in 34 * 8..bytes.len() * 8 {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Frame::parse(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn an_rdma_operation_comes_back_as_it_was_sent() {
    let headers = Headers {
        bth: Bth { opcode: operation::SEND_ONLY_IMMEDIATE, pad: 3, ..Bth::default() },
        immediate: Some([1, 2, 3, 4]),
        ..Headers::default()
    };
    let content = Content::Rdma(verbs::Datagram { envelope: ENVELOPE, port: 50_000, headers });
    let frame = Frame { destination: MacAddress::local(2), source: MacAddress::local(1), content };
    let mut buffer = [0; 128];
    let bytes = frame.emit(b"hello", &mut buffer);
    assert_eq!(bytes.len(), frame.length(5));
    assert_eq!(Frame::parse(bytes), Ok((frame, &b"hello"[..])));
    let mut damaged = bytes.to_vec();
    damaged[60] ^= 1;
    assert_eq!(Frame::parse(&damaged), Err(ParseError::Checksum));
}

#[test]
fn a_pause_is_what_the_standard_says() {
    let frame = Frame {
        destination: MacAddress::MAC_CONTROL,
        source: MacAddress::local(1),
        content: Content::Pfc(Pfc::new(0b1000, 0xffff)),
    };
    let expected = "0180c20000010200000000018808\
                    01010008\
                    000000000000ffff0000000000000000";
    assert_eq!(hex(frame.emit(&[], &mut [0xaa; 64])), format!("{expected}{:0<52}", ""));
}

#[test]
fn what_is_not_ours_says_so() {
    let mut bytes = [0; 64];
    assert_eq!(Frame::parse(&bytes), Err(ParseError::EtherType(0)));
    bytes[12..14].copy_from_slice(&[0x88, 0x08]);
    assert_eq!(Frame::parse(&bytes), Err(ParseError::MacControl(0)));
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x60, 0]);
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Version(0x60)));
    bytes[14] = 0x45;
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Checksum));
    bytes[14..34].copy_from_slice(&ENVELOPE.around(1, 30).emit());
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Protocol(1)));
    bytes[14..34].copy_from_slice(&ENVELOPE.around(Ipv4::TCP, 30).emit());
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Checksum));
    bytes[14..34].copy_from_slice(&ENVELOPE.around(Ipv4::UDP, 30).emit());
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Length { found: 30, said: 0 }));
    bytes[34..42].copy_from_slice(&Udp { destination: 53, length: 30, ..Udp::default() }.emit());
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Port(53)));
    bytes[34..42].copy_from_slice(&Udp { destination: Udp::ROCE, length: 30, ..Udp::default() }.emit());
    assert_eq!(Frame::parse(&bytes), Err(ParseError::Checksum));
}

/// The check value of the CRC, after a header: the residue after the CRC itself is always equal.
#[test]
fn a_crc_over_itself_leaves_the_known_residue() {
    let mut crc = Icrc::begin([0; 20], [0; 8], [0; 12]);
    crc.update(&crc.finish());
    assert_eq!(crc.finish(), 0x2144_df1cu32.to_le_bytes());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
