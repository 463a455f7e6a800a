use selvedge_units::{Duration, Instant, Psn, QpNumber};

use super::*;
use crate::aeth::Syndrome;
use crate::extension::Waited;

/// Returns `Headers` of this opcode, with all fields set that its layout has.
fn full(opcode: u8, ours: Ours) -> Option<Headers> {
    let layout = opcode::layout(opcode)?;
    let uses = matches!(ours, Ours::Uses(_));
    let waited = Waited::of(Some(Duration::from_us(20)));
    let sent_at = Instant::from_ps(77);
    let extension = Extension { sent_at, retransmission: true, holes: uses, sack: Psn::new(9), waited };
    let reth = Reth { address: 0x1234_5678_9abc, key: 7, length: 4_096 };
    Some(Headers {
        bth: Bth {
            opcode,
            partition: 0xffff,
            destination: QpNumber(0x12_3456),
            psn: Psn::new(0xff_ffff),
            pad: 3,
            ..Bth::default()
        },
        ours,
        flush: layout.flush.then_some(Feth { placement: Feth::GLOBAL | Feth::PERSISTENT, selectivity: Feth::REGION }),
        deth: layout.deth.then_some(Deth { qkey: 0x1111_1111, source: QpNumber(5) }),
        reth: (layout.reth || (uses && layout.write)).then_some(reth),
        atomic: layout.atomic.then_some(AtomicEth { address: 8, key: 9, swap_add: 10, compare: 11 }),
        aeth: (layout.aeth || (uses && layout.middle)).then_some(Aeth { syndrome: Syndrome::NO_CREDITS, msn: 3 }),
        original: layout.original.then_some(u64::MAX - 1),
        immediate: layout.immediate.then_some([1, 2, 3, 4]),
        invalidate: layout.invalidate.then_some(0xdead_beef),
        extension: uses.then_some(extension),
        placement: (uses && layout.placed).then_some(Placement { wqe: 1 << 31, packet: 2 }),
        holes: uses.then_some([Hole { start: 1, length: 2 }; 3]),
    })
}

#[test]
fn every_opcode_comes_back_as_it_was_sent_and_none_survives_being_cut() {
    let mut known = 0;
    for opcode in 0..=255 {
        for ours in [Ours::No, Ours::Offers(3), Ours::Uses(15)] {
            let Some(headers) = full(opcode, ours) else { continue };
            known += 1;
            let mut buffer = [0; Headers::LONGEST + 8];
            let length = headers.emit(5, &mut buffer);
            assert!(length <= Headers::LONGEST, "{length}");
            assert_eq!(length, headers.length(), "{opcode:#x}");
            buffer[length..][..5].copy_from_slice(b"hello");
            let packet = &buffer[..length + 8];
            assert_eq!(Headers::parse(packet), Ok((headers, &b"hello"[..])), "{opcode:#x}");
            for short in 0..length {
                assert!(Headers::parse(&packet[..short]).is_err(), "{opcode:#x} cut to {short} of {length}");
            }
        }
    }
    assert_eq!(known, 3 * 40, "26 operations of reliable connections, 12 of unreliable ones, two of datagrams");
}

/// Only packets of one length can leave together, and messages of a few packets have many first and last packets.
#[test]
fn between_two_of_our_own_all_packets_of_a_message_are_equally_long() {
    use opcode::operation::*;
    for message in [
        [SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY],
        [WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY],
        [READ_RESPONSE_FIRST, READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST, READ_RESPONSE_ONLY],
    ] {
        let lengths = message.map(|opcode| full(opcode, Ours::Uses(1)).map(|headers| headers.length()));
        assert!(lengths[0].is_some() && lengths.iter().all(|length| *length == lengths[0]), "{message:?}: {lengths:?}");
    }
}

#[test]
fn reserved_bits_that_mean_nothing_to_us_are_ignored() {
    for bits in 0..0x80 {
        let ours = Ours::from_bits(bits);
        assert!(ours == Ours::No || ours.bits() == bits, "{bits:#x}");
    }
    assert_eq!(Ours::from_bits(0), Ours::No);
}

#[test]
fn a_flush_names_placement_selectivity_and_range() {
    let bth = Bth { opcode: opcode::operation::FLUSH, ..Bth::default() };
    let flush = Some(Feth { placement: Feth::PERSISTENT, selectivity: Feth::RANGE });
    let reth = Some(Reth { address: 0x1122_3344_5566_7788, key: 0x0102_0304, length: 0x40 });
    let mut buffer = [0; Headers::LONGEST];
    let length = Headers { bth, flush, reth, ..Headers::default() }.emit(0, &mut buffer);
    // The bytes that Linux's soft RoCE sends.
    let expected = [0, 0, 0, 2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 1, 2, 3, 4, 0, 0, 0, 0x40];
    assert_eq!(buffer[Bth::LENGTH..length], expected);
}

#[test]
fn the_papers_format_costs_what_section_6_3_says() {
    use super::opcode::operation as op;
    let (reth, aeth) = (Reth { address: 1, key: 2, length: 3 }, Aeth { syndrome: Syndrome::NO_CREDITS, msn: 4 });
    let ours = Headers {
        ours: Ours::Uses(1),
        extension: Some(Extension::default()),
        placement: Some(Placement::default()),
        ..Headers::default()
    };
    let of = |opcode, headers: Headers| Headers { bth: Bth { opcode, ..Bth::default() }, ..headers };
    let writes = Headers { reth: Some(reth), ..ours };
    let answers = Headers { aeth: Some(aeth), ..ours };
    let bth = Bth::LENGTH;
    for (headers, standard, irn) in [
        (of(op::SEND_FIRST, ours), bth, 6),
        (of(op::SEND_MIDDLE, ours), bth, 6),
        (of(op::SEND_ONLY_IMMEDIATE, Headers { immediate: Some([0; 4]), ..ours }), bth + 4, 6),
        (of(op::WRITE_FIRST, writes), bth + 16, 0),
        (of(op::WRITE_MIDDLE, writes), bth, 16),
        (of(op::WRITE_LAST, writes), bth, 16),
        (of(op::WRITE_LAST_IMMEDIATE, Headers { immediate: Some([0; 4]), ..writes }), bth + 4, 19),
        (of(op::READ_REQUEST, writes), bth + 16, 3),
        (of(op::READ_RESPONSE_FIRST, answers), bth + 4, 0),
        (of(op::READ_RESPONSE_MIDDLE, answers), bth, 0),
        (of(op::ACKNOWLEDGE, Headers { placement: None, ..answers }), bth + 4, 0),
    ] {
        let opcode = headers.bth.opcode;
        assert_eq!((headers.standard_length(), headers.irn_length()), (standard, standard + irn), "{opcode:#x}");
        assert!(headers.length() >= headers.irn_length(), "{opcode:#x}: ours are no shorter");
    }
    let standard = of(op::SEND_ONLY, Headers::default());
    assert_eq!((standard.length(), standard.irn_length()), (bth, bth));
}
