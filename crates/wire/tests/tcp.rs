//! Property tests of TCP headers and packed segments: inverse operations, conforming to the standard, never a panic.

use proptest::prelude::*;
use selvedge_units::TcpSeq;
use selvedge_wire::ParseError;
use selvedge_wire::tcp::{Flags, Header, Sacks, Segment, SegmentContext, Stream, SynOptions, Tcp, Timestamps};

fn seq() -> impl Strategy<Value = TcpSeq> {
    any::<u32>().prop_map(TcpSeq::new)
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    prop::option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }))
}

prop_compose! {
    /// Returns a strategy of SYNs, and ordinary segments with SACK blocks if they fit.
    fn segment()(
        seq in seq(), ack in seq(), bits in any::<u8>(), window in any::<u16>(), payload in 0u16..64,
        timestamps in timestamps(),
        mss in any::<Option<u16>>(), window_scale in any::<Option<u8>>(), sack_permitted in any::<bool>(),
        blocks in prop::collection::vec((self::seq(), self::seq()), 0..=Sacks::MOST),
    ) -> Segment {
        let flags = Flags::from_bits(bits);
        let is_syn = flags.contains(Flags::SYN);
        let room = if timestamps.is_some() { Sacks::BESIDE_TIMESTAMPS } else { Sacks::MOST };
        Segment {
            seq, ack, flags, window, payload, timestamps,
            syn: if is_syn { SynOptions { mss, window_scale, sack_permitted } } else { SynOptions::default() },
            sacks: if is_syn { Sacks::default() } else { blocks.into_iter().take(room).collect() },
        }
    }
}

fn way() -> impl Strategy<Value = SegmentContext> {
    any::<[bool; 2]>().prop_map(|[is_backward, is_again]| SegmentContext { is_backward, is_again })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_header_survives_the_wire(segment in segment(), source in any::<u16>(), destination in any::<u16>()) {
        let header = Header { source, destination, segment };
        let mut buffer = [0; Header::LONGEST];
        let emitted = header.emit(&mut buffer);
        prop_assert_eq!(emitted.len(), segment.header());
        let payload = vec![7; segment.payload.into()];
        let bytes = [emitted, &payload].concat();
        prop_assert_eq!(Header::parse(&bytes), Ok((header, &payload[..])));
        for length in 0..segment.header() {
            prop_assert!(Header::parse(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn a_segment_without_sack_blocks_is_packed_exactly(segment in segment(), way in way(), end in seq()) {
        let mut segment = Segment { sacks: Sacks::default(), ..segment };
        if segment.flags.contains(Flags::SYN) {
            segment.payload = 0;
        }
        let stream = Stream { mss: 1_024, end };
        let packed = Tcp::pack(&segment, way, stream);
        let clock = segment.timestamps.unwrap_or_default().value;
        prop_assert_eq!(packed.unpack(TcpSeq::new(1), clock, stream), segment);
        prop_assert_eq!((packed.payload(), packed.is_backward(), packed.is_again()),
            (segment.payload, way.is_backward, way.is_again));
    }

    #[test]
    fn sack_blocks_of_full_segments_are_packed_exactly(
        initial in any::<u32>(), acked in 0u32..1_000, cuts in prop::collection::btree_set(1u32..2_000, 8),
        count in 1usize..=4, tail in 1u16..1_024, reaches_end in any::<bool>(), is_stamped in any::<bool>(), ece in any::<bool>(),
    ) {
        let mss = 1_024;
        let place = |segments: u32| TcpSeq::new(initial.wrapping_add(segments * u32::from(mss)));
        let cuts: Vec<u32> = cuts.into_iter().map(|cut| acked + cut).collect();
        let end = TcpSeq::new(place(acked + 2_000).get().wrapping_add(tail.into()));
        let count = if is_stamped { count.min(Sacks::BESIDE_TIMESTAMPS) } else { count };
        let mut blocks: Vec<_> = cuts.chunks(2).take(count).map(|cut| (place(cut[0]), place(cut[1]))).collect();
        if reaches_end {
            blocks.last_mut().expect("at least one block").1 = end;
        }
        blocks.reverse();
        let segment = Segment {
            seq: TcpSeq::new(77),
            ack: place(acked),
            flags: Flags::ACK | Flags::ECE.when(ece),
            window: 9,
            timestamps: is_stamped.then_some(Timestamps { value: 5, echo: 6 }),
            sacks: blocks.into_iter().collect(),
            ..Segment::default()
        };
        let stream = Stream { mss, end };
        let packed = Tcp::pack(&segment, SegmentContext { is_backward: true, is_again: false }, stream);
        prop_assert_eq!(packed.unpack(TcpSeq::new(77), 5, stream), segment);
    }

    #[test]
    fn packing_never_reports_more_than_has_arrived(
        ack in any::<u32>(), offsets in prop::collection::btree_set(1u32..100_000, 6), mss in 1u16..9_000,
    ) {
        let offsets: Vec<u32> = offsets.into_iter().collect();
        let place = |offset: u32| TcpSeq::new(ack.wrapping_add(offset));
        let segment = Segment {
            ack: TcpSeq::new(ack),
            flags: Flags::ACK,
            sacks: offsets.chunks(2).map(|edges| (place(edges[0]), place(edges[1]))).collect(),
            ..Segment::default()
        };
        let stream = Stream { mss, end: place(1 << 30) };
        let packed = Tcp::pack(&segment, SegmentContext { is_backward: true, is_again: false }, stream);
        for (from, to) in packed.unpack(TcpSeq::new(0), 0, stream).sacks.iter() {
            let (from, to) = (from.get().wrapping_sub(ack), to.get().wrapping_sub(ack));
            prop_assert!(from >= to || offsets.chunks(2).any(|edges| edges[0] <= from && to <= edges[1]));
        }
    }
}

#[test]
fn a_syn_looks_as_common_stacks_send_it() {
    let segment = Segment {
        seq: TcpSeq::new(0x0102_0304),
        flags: Flags::SYN,
        window: 64_240,
        syn: SynOptions { mss: Some(1_460), window_scale: Some(7), sack_permitted: true },
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..Segment::default()
    };
    let mut buffer = [0; Header::LONGEST];
    #[rustfmt::skip]
    assert_eq!(Header { source: 40_000, destination: 80, segment }.emit(&mut buffer), [
        0x9c, 0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0,
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ]);
}

#[test]
fn an_acknowledgement_with_three_blocks_is_full() {
    let block = (TcpSeq::new(10), TcpSeq::new(20));
    let segment = Segment {
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        sacks: [block; 4].into_iter().collect(),
        ..Segment::default()
    };
    assert_eq!(segment.header(), Header::LONGEST);
    assert_eq!(Segment { timestamps: None, ..segment }.header(), 56);
}

#[test]
fn illegal_lengths_are_errors() {
    let mut bytes = [0; 24];
    assert_eq!(Header::parse(&bytes), Err(ParseError::DataOffset(0)));
    bytes[12] = 0x60;
    assert!(Header::parse(&bytes).is_ok());
    bytes[20..].copy_from_slice(&[8, 3, 0, 0]);
    assert_eq!(Header::parse(&bytes), Err(ParseError::TcpOption(8)), "time stamps of one byte");
    for illegal in [[1, 1, 1, 8], [8, 0, 0, 0], [8, 1, 0, 0], [8, 10, 0, 0]] {
        bytes[20..].copy_from_slice(&illegal);
        assert_eq!(Header::parse(&bytes), Err(ParseError::TcpOption(8)), "{illegal:?}");
    }
    bytes[20..].copy_from_slice(&[77, 4, 0, 0]);
    assert!(Header::parse(&bytes).is_ok(), "unknown options are skipped");
}
