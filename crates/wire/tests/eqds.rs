//! Property tests of EQDS headers: parsing and emitting are inverse, and never panic.

use proptest::prelude::*;
use selvedge_wire::ParseError;
use selvedge_wire::eqds::{ControlHeader, DataHeader, Flags, Layout, NextProtocol};

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Wide), Just(Layout::Compact)]
}

/// Returns the part of `value` that a field of the layout can hold: `bits` bits, half as many in compact headers.
fn fit(layout: Layout, value: u32, bits: u32) -> u32 {
    let bits = if layout == Layout::Wide { bits } else { bits / 2 };
    if bits == 32 { value } else { value & ((1 << bits) - 1) }
}

fn data(layout: Layout) -> impl Strategy<Value = DataHeader> {
    let next = prop_oneof![Just(NextProtocol::Native), Just(NextProtocol::Ip), Just(NextProtocol::Vxlan)];
    (any::<u8>(), 0..8u8, next, any::<[u32; 4]>()).prop_map(
        move |(flags, priority, next, [seq, target, path, sender])| DataHeader {
            flags: Flags::from_bits(flags),
            priority,
            next,
            seq: fit(layout, seq, 32),
            pull_target: fit(layout, target, 32),
            path: fit(layout, path, 16) as u16,
            sender: fit(layout, sender, 16) as u16,
        },
    )
}

fn control(layout: Layout) -> impl Strategy<Value = ControlHeader> {
    (any::<u8>(), any::<[u32; 4]>()).prop_map(move |(flags, [sender, number, pull, busy])| ControlHeader {
        flags: Flags::from_bits(flags),
        sender: fit(layout, sender, 16) as u16,
        number: fit(layout, number, 32),
        pull: fit(layout, pull, 32),
        busy: fit(layout, busy, 32),
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read((layout, header) in layout().prop_flat_map(|layout| (Just(layout), data(layout)))) {
        let mut buffer = [0; 16];
        let bytes = header.emit(layout, &mut buffer);
        prop_assert_eq!(bytes.len(), layout.length());
        prop_assert_eq!(DataHeader::parse(layout, bytes), Ok((header, &[][..])));
    }

    #[test]
    fn control_too((layout, header) in layout().prop_flat_map(|layout| (Just(layout), control(layout)))) {
        let mut buffer = [0; 16];
        let bytes = header.emit(layout, &mut buffer);
        prop_assert_eq!(ControlHeader::parse(layout, bytes), Ok((header, &[][..])));
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(layout in layout(), bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let mut buffer = [0; 16];
        if let Ok((header, rest)) = DataHeader::parse(layout, &bytes) {
            prop_assert_eq!(header.emit(layout, &mut buffer), &bytes[..bytes.len() - rest.len()]);
        }
        if let Ok((header, rest)) = ControlHeader::parse(layout, &bytes) {
            prop_assert_eq!(header.emit(layout, &mut buffer), &bytes[..bytes.len() - rest.len()]);
        }
    }
}

#[test]
fn fields_lie_where_figure_4_has_them() {
    let header = DataHeader {
        flags: Flags::SYN,
        priority: 5,
        next: NextProtocol::Ip,
        seq: 0x0102_0304,
        pull_target: 0x0506_0708,
        path: 0x090a,
        sender: 0x0b0c,
    };
    let mut buffer = [0; 16];
    assert_eq!(header.emit(Layout::Wide, &mut buffer), [0, 1, 0xa0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(header.emit(Layout::Compact, &mut buffer), [1, 0xa4, 3, 4, 7, 8, 10, 12]);
    let header = ControlHeader { flags: Flags::PULL, sender: 0x0102, number: 0x0304_0506, pull: 7, busy: 1 << 20 };
    assert_eq!(header.emit(Layout::Wide, &mut buffer), [0, 0x10, 1, 2, 3, 4, 5, 6, 0, 0, 0, 7, 0, 16, 0, 0]);
    assert_eq!(header.emit(Layout::Compact, &mut buffer), [0x10, 2, 5, 6, 0, 7, 255, 255], "busy time saturates");
}

#[test]
fn what_is_no_header_is_refused() {
    assert_eq!(DataHeader::parse(Layout::Wide, &[0; 15]), Err(ParseError::Truncated { found: 15, needed: 16 }));
    assert_eq!(ControlHeader::parse(Layout::Compact, &[0; 7]), Err(ParseError::Truncated { found: 7, needed: 8 }));
    assert_eq!(DataHeader::parse(Layout::Compact, &[0, 9, 0, 0, 0, 0, 0, 0]), Err(ParseError::Protocol(9)));
    assert_eq!(ControlHeader::parse(Layout::Wide, &[1; 16]), Err(ParseError::Reserved));
}
